"""Bounds memory and disk space of a capture's replies: 256 targets may return 2 GiB each at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.errors import StorageError
from tb_tpuprof.native.machine_memory import memory_budget

_POLL_S = 0.2


class Room:
    """Admits replies while together they take at most `limit_bytes` (0: `memory_budget`) of memory and fit
    on the disk. The others wait unread; one reply is always admitted. Thread-safe.

    `free_bytes` returns how much may still be written, None if that is unknown.
    """

    def __init__(
        self, free_bytes: Callable[[], int | None], cancel: Cancellation, limit_bytes: int = 0
    ) -> None:
        self.limit_bytes = limit_bytes or memory_budget()
        self._free_bytes = free_bytes
        self._cancel = cancel
        self._admitted = 0
        self._changed = Condition()

    @contextmanager
    def place(self) -> Iterator[Callable[[int], None]]:
        """Context manager: the place of one reply, until it is written. Its value, called with the reply's
        size before it is received, waits for room. Raises StorageError if the disk is too full.
        """
        taken: list[int] = []

        def take(size: int) -> None:
            self._admit(size)
            taken.append(size)

        try:
            yield take
        finally:
            with self._changed:
                self._admitted -= sum(taken)
                self._changed.notify_all()

    def _admit(self, size: int) -> None:
        with self._changed:
            self._check_disk(size)
            while self._admitted and self._admitted + size > self.limit_bytes:
                if self._cancel.is_set():
                    break  # the connection is closed already, so nothing is received
                self._changed.wait(_POLL_S)
            self._check_disk(size)
            self._admitted += size

    def _check_disk(self, size: int) -> None:
        free = self._free_bytes()
        if free is not None and self._admitted + size > free:
            raise StorageError(
                f"The logdir's disk has no space for a profile of {size / 2**20:,.0f} MiB: "
                f"{max(0, free - self._admitted) / 2**20:,.0f} MiB may be used.",
                "Free some space, or capture into another logdir.",
            )
