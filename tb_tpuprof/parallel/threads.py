"""Parts of one host's work on several threads: NumPy and the native loops release the interpreter's lock, so
threads suffice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import TypeVar

from tb_tpuprof.parallel.policy import POLICY

T = TypeVar("T")
R = TypeVar("R")
_this_thread = threading.local()


def n_threads() -> int:
    """Threads to split this thread's work over: at most one per processor; 1 within `single_threaded`."""
    is_single = getattr(_this_thread, "is_single", False)
    return 1 if is_single else min(POLICY.n_processors(), POLICY.max_threads)


@contextmanager
def single_threaded(is_wanted: bool = True) -> Iterator[None]:
    """In this context, keep the current thread's work on this thread, if `is_wanted`. For hosts that fill
    the processors: splitting their work further only costs time.
    """
    before = getattr(_this_thread, "is_single", False)
    _this_thread.is_single = before or is_wanted
    try:
        yield
    finally:
        _this_thread.is_single = before


def run_in_parallel(function: Callable[[T], R], items: Iterable[T], is_worthwhile: bool = True) -> list[R]:
    """The function's results in the order of the items; computed one after the other unless `is_worthwhile`.

    The caller works too; each thread takes the next item when it finishes one. The pool keeps its threads,
    because starting one takes as long as a small answer. Raises what the function raises.
    """
    waiting = deque(enumerate(items))
    results: dict[int, R] = {}

    def work() -> None:
        while waiting:
            try:
                position, item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            results[position] = function(item)

    n_more = min(n_threads(), len(waiting)) - 1 if is_worthwhile else 0
    helpers = []
    with suppress(RuntimeError):  # the interpreter is exiting: this thread does all the work
        for _ in range(n_more):
            helpers.append(_pool().submit(work))
    try:
        work()
    finally:
        waiting.clear()
        started = [helper for helper in helpers if not helper.cancel()]
    for helper in started:
        helper.result()
    return [results[position] for position in sorted(results)]


def call_in_parallel(calls: Iterable[Callable[[], R]], is_worthwhile: bool = True) -> list[R]:
    """Results of the calls; see `run_in_parallel`."""
    return run_in_parallel(_result, calls, is_worthwhile)


def _result(call: Callable[[], R]) -> R:
    return call()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(n_threads() - 1, 1), "tb_tpuprof parts")
