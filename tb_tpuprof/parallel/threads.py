"""Pieces of work on all processors: NumPy and the native loops let go of the interpreter's lock, so threads
are enough.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_MOST_THREADS = 8
_here = threading.local()


def n_processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def n_threads() -> int:
    """Into how many pieces work is worth cutting here: as many as there are processors, at most 8; 1 where it
    is to stay together.
    """
    return 1 if getattr(_here, "is_alone", False) else min(n_processors(), _MOST_THREADS)


@contextmanager
def alone(is_wanted: bool = True) -> Iterator[None]:
    """What this thread does meanwhile is not cut, if that is wanted: the other processors have as much to do
    already, and cutting costs.
    """
    before = getattr(_here, "is_alone", False)
    _here.is_alone = before or is_wanted
    try:
        yield
    finally:
        _here.is_alone = before


def side_by_side(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The function of each item, in their order. The caller works too, and each takes the next item when it
    is done with one.

    The threads stay, as starting some takes as long as a small answer; waking them still takes some 50 µs.
    Raises what the function raises.
    """
    todo = deque(enumerate(items))
    results: dict[int, R] = {}

    def work() -> None:
        while todo:
            try:
                place, item = todo.popleft()
            except IndexError:  # another took the last one
                return
            results[place] = function(item)

    helpers = [_pool().submit(work) for _ in range(min(n_threads(), len(todo)) - 1)]
    try:
        work()
    finally:
        todo.clear()
        started = [helper for helper in helpers if not helper.cancel()]
    for helper in started:
        helper.result()
    return [results[place] for place in sorted(results)]


def done(jobs: Iterable[Callable[[], R]]) -> list[R]:
    """What the jobs return, done side by side."""
    return side_by_side(_result, jobs)


def _result(job: Callable[[], R]) -> R:
    return job()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(n_threads() - 1, 1), "tb_tpuprof pieces")
