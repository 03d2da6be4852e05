"""What is being read at the moment, and how far it is: told by whoever reads, asked by whoever waits."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """How far the reading is. `host` is one of those being read; sizes are those of the files."""

    host: str
    n_hosts: int
    n_done: int
    size_bytes: int
    done_bytes: int
    seconds: float


@dataclass
class _Work:
    sizes: dict[str, int]
    left: dict[str, int]
    start: float


class Progress:
    """Pieces of work that go on at the same time. Safe for use by several threads."""

    def __init__(self) -> None:
        self._works: dict[int, _Work] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def reading(self, sizes: Mapping[str, int]) -> Iterator[int]:
        """The hosts with the sizes of their files are read in this context; yields the number by which `done`
        knows the work.
        """
        number = next(self._numbers)
        with self._lock:
            self._works[number] = _Work(dict(sizes), dict(sizes), time.monotonic())
        try:
            yield number
        finally:
            with self._lock:
                del self._works[number]

    def done(self, number: int, host: str) -> None:
        """Take note that a host is read."""
        with self._lock:
            self._works[number].left.pop(host, None)

    def standing(self) -> Standing | None:
        """The largest piece of work under way; None where nothing is."""
        with self._lock:
            work = max(self._works.values(), key=lambda work: sum(work.sizes.values()), default=None)
            if work is None:
                return None
            size, left = sum(work.sizes.values()), sum(work.left.values())
            n, n_done = len(work.sizes), len(work.sizes) - len(work.left)
            return Standing(
                next(iter(work.left), ""), n, n_done, size, size - left, time.monotonic() - work.start
            )
