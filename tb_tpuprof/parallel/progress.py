"""Read progress: the reader updates it, the progress route polls it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingProgress:
    """How much has been read. `host` is one of the hosts being read, empty once all are read; sizes are
    file sizes.
    """

    host: str
    n_hosts: int
    n_done: int
    size_bytes: int
    done_bytes: int
    seconds: float


@dataclass
class _Task:
    sizes: dict[str, int]
    left: dict[str, int]
    start: float


class ProgressTracker:
    """Read tasks that run at the same time. Thread-safe."""

    def __init__(self) -> None:
        self._tasks: dict[int, _Task] = {}
        self._ids = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def reading(self, sizes: Mapping[str, int]) -> Iterator[int]:
        """In this context, hosts with files of these sizes (in bytes) are read; yields the task's id for
        `host_done`.
        """
        task = next(self._ids)
        with self._lock:
            self._tasks[task] = _Task(dict(sizes), dict(sizes), time.monotonic())
        try:
            yield task
        finally:
            with self._lock:
                del self._tasks[task]

    def host_done(self, task: int, host: str) -> None:
        """Mark a host of the task as read."""
        with self._lock:
            self._tasks[task].left.pop(host, None)

    def current(self) -> ReadingProgress | None:
        """The progress of the largest task; None while nothing is read."""
        with self._lock:
            task = max(self._tasks.values(), key=lambda task: sum(task.sizes.values()), default=None)
            if task is None:
                return None
            size, left_bytes = sum(task.sizes.values()), sum(task.left.values())
            n_hosts, n_done = len(task.sizes), len(task.sizes) - len(task.left)
            seconds = time.monotonic() - task.start
            return ReadingProgress(
                next(iter(task.left), ""), n_hosts, n_done, size, size - left_bytes, seconds
            )
