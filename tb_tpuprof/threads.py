"""Pieces of work on all processors: NumPy and the native loops let go of the interpreter's lock, so threads are enough."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
N_THREADS = min(os.cpu_count() or 1, 8)


def side_by_side(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The function of each item, in their order. The caller works too, and each takes the next item when it is done with one.

    The threads stay, as starting some takes as long as a small answer; waking them still takes some 50 µs. Raises what the
    function raises.
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

    helpers = [_pool().submit(work) for _ in range(min(N_THREADS, len(todo)) - 1)]
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
    return ThreadPoolExecutor(max(N_THREADS - 1, 1), "tb_tpuprof pieces")
