"""Memoizes analyses: a function marked `once` is computed once per Trace and its result lives as long as the
Trace.

Independent work runs in parallel: `precompute` for analyses, `map_line_ranges` for the lines of a trace.
NumPy and the native loops release the GIL, so threads are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_tpuprof.parallel import threads
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")
_LOCK = RLock()
_FEW_EVENTS = 100_000  # below this a thread costs more than it saves


def once(function: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Decorator: keep the result of a pure analysis with the trace that it was computed from."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def memoized(trace: Trace) -> T:
        with _LOCK:
            results: dict[str, T] = trace.__dict__.setdefault("_analyses", {})
            lock: RLock = trace.__dict__.setdefault("_analysis_locks", {}).setdefault(name, RLock())
        with lock:
            if name not in results:
                results[name] = function(trace)
            return results[name]

    return memoized


def precompute(trace: Trace, *functions: Callable[[Trace], Any]) -> None:
    """Compute analyses marked `once` ahead of their use, in parallel if the trace is large enough."""
    if trace.n_events >= _FEW_EVENTS:
        run_jobs(trace.n_events, *(partial(function, trace) for function in functions))


def run_jobs(n_events: int, *jobs: Callable[[], object]) -> None:
    """Run independent jobs, in parallel if they process many events."""
    if n_events < _FEW_EVENTS or len(jobs) < 2:
        for job in jobs:
            job()
        return
    threads.done(jobs)


def map_line_ranges(line_offsets: npt.NDArray[np.int64], work: Callable[[int, int], T]) -> list[T]:
    """Split the lines into consecutive ranges with about equally many events, one per processor, and call
    `work(first line, line after the last)` on each. Returns the results in order.
    """
    n_events, n_lines = int(line_offsets[-1]), len(line_offsets) - 1
    n_ranges = min(threads.n_threads(), n_lines) if n_events >= _FEW_EVENTS else 1
    if n_ranges < 2:
        return [work(0, n_lines)]
    cuts = np.searchsorted(line_offsets, [n_events * i // n_ranges for i in range(1, n_ranges)]).tolist()
    return threads.done(
        partial(work, first, end) for first, end in zip([0, *cuts], [*cuts, n_lines], strict=True)
    )
