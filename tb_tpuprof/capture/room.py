"""Bounds memory and disk space of a capture's replies: 256 targets may return 2 GiB each at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.errors import StorageError
from tb_tpuprof.native.machine_memory import memory_budget

_POLL_S = 0.2
_LEAST_BYTES_PER_S = 2**20


class Place:
    """One reply's share of a room. Its methods are called on the reply's own thread."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.size = 0  # bytes, once it is admitted
        self.n_received = 0
        self.n_received_before = 0  # when the present period began
        self.taken_at = 0.0  # on the monotonic clock

    def take(self, size: int) -> None:
        """Wait for room for a reply of `size` bytes. Raises StorageError if the disk is too full."""
        self._room.admit(self, size)

    def is_too_slow(self, n_received: int) -> bool:
        """Whether the reply, of which so many bytes have arrived, must make room for others that wait."""
        self.n_received = n_received
        return self._room.must_go(self)


class Room:
    """Admits replies while together they take at most `limit_bytes` (0: `memory_budget`) of memory and fit
    on the disk. The others wait unread; one reply is always admitted. Thread-safe.

    While any wait, those admitted must together receive 1 MiB per second, averaged over a period of
    `patience_s`; otherwise the slowest of them must go. `free_bytes` returns how much may still be written,
    None if that is unknown.
    """

    def __init__(
        self,
        free_bytes: Callable[[], int | None],
        cancel: Cancellation,
        limit_bytes: int = 0,
        patience_s: float = 60.0,
    ) -> None:
        self.limit_bytes = limit_bytes or memory_budget()
        self._free_bytes = free_bytes
        self._cancel = cancel
        self._patience_s = patience_s
        self._places: set[Place] = set()
        self._n_waiting = 0
        self._period_began_at = 0.0
        self._n_received = 0  # in this period, by places that are given back
        self._slowest: Place | None = None  # which must go
        self._changed = Condition()

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Context manager: the place of one reply, until it is written."""
        place = Place(self)
        try:
            yield place
        finally:
            with self._changed:
                self._places.discard(place)
                self._n_received += place.n_received - place.n_received_before
                self._changed.notify_all()

    def admit(self, place: Place, size: int) -> None:
        """Wait until there is room for `size` bytes. Raises StorageError if the disk is too full."""
        with self._changed:
            self._check_disk(size)
            if self._is_full(size):
                self._wait(size)
            self._check_disk(size)
            place.size, place.taken_at = size, time.monotonic()
            self._places.add(place)

    def must_go(self, place: Place) -> bool:
        """Whether an admitted reply is the slowest of those that receive too little while others wait."""
        if not self._n_waiting:
            return False
        if time.monotonic() - self._period_began_at >= self._patience_s:
            with self._changed:
                self._judge()
        return self._slowest is place

    def _judge(self) -> None:
        """End a period, if it is long enough."""
        seconds = time.monotonic() - self._period_began_at
        if seconds >= self._patience_s:
            received = [place.n_received - place.n_received_before for place in self._places]
            is_enough = self._n_received + sum(received) >= _LEAST_BYTES_PER_S * seconds
            self._slowest = None if is_enough else self._slowest_place()
            self._begin_period()

    def _wait(self, size: int) -> None:
        if not self._n_waiting:
            self._slowest = None
            self._begin_period()
        self._n_waiting += 1
        try:
            # After a cancellation the connection is closed already, so nothing is received.
            while self._is_full(size) and not self._cancel.is_set():
                self._changed.wait(_POLL_S)
        finally:
            self._n_waiting -= 1

    def _begin_period(self) -> None:
        self._period_began_at, self._n_received = time.monotonic(), 0
        for place in self._places:
            place.n_received_before = place.n_received

    def _slowest_place(self) -> Place | None:
        """The place that received least in this period; None if all are newer or complete."""
        old = [
            place
            for place in self._places
            if place.taken_at <= self._period_began_at and place.n_received < place.size
        ]
        return min(old, key=lambda place: place.n_received - place.n_received_before, default=None)

    @property
    def _admitted(self) -> int:
        return sum(place.size for place in self._places)

    def _is_full(self, size: int) -> bool:
        return bool(self._places) and self._admitted + size > self.limit_bytes

    def _check_disk(self, size: int) -> None:
        free = self._free_bytes()
        if free is not None and self._admitted + size > free:
            raise StorageError(
                f"There is no disk space for a profile of {size / 2**20:,.0f} MiB: "
                f"{max(0, free - self._admitted) / 2**20:,.0f} MiB may be used.",
                "Free some space, or capture into another logdir.",
            )
