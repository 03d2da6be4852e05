"""Analyses build on one another: a function marked `once` is computed once per Trace and kept as long as the
Trace.

What does not build on one another runs side by side: `together` for analyses, `shares` for the lines of a
trace. NumPy and the native loops let go of the interpreter's lock, so threads are enough.
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
    """Keep the result of a pure analysis beside the trace that it was computed from."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(trace: Trace) -> T:
        with _LOCK:
            results: dict[str, T] = trace.__dict__.setdefault("_analyses", {})
            lock: RLock = trace.__dict__.setdefault("_analysis_locks", {}).setdefault(name, RLock())
        with lock:
            if name not in results:
                results[name] = function(trace)
            return results[name]

    return kept


def together(trace: Trace, *functions: Callable[[Trace], Any]) -> None:
    """Compute analyses that are marked `once` ahead of their use, side by side where the trace is large
    enough.
    """
    if trace.n_events >= _FEW_EVENTS:
        beside(trace.n_events, *(partial(function, trace) for function in functions))


def beside(n_events: int, *jobs: Callable[[], object]) -> None:
    """Do jobs that do not build on one another, side by side where they are about many events."""
    if n_events < _FEW_EVENTS or len(jobs) < 2:
        for job in jobs:
            job()
        return
    threads.done(jobs)


def shares(line_offsets: npt.NDArray[np.int64], work: Callable[[int, int], T]) -> list[T]:
    """Give each processor a run of consecutive lines with about equally many events; `work` takes the first
    line and the one after the last. Returns what it returned, run by run.
    """
    n_events, n_lines = int(line_offsets[-1]), len(line_offsets) - 1
    n = min(threads.n_threads(), n_lines) if n_events >= _FEW_EVENTS else 1
    if n < 2:
        return [work(0, n_lines)]
    cuts = np.searchsorted(line_offsets, [n_events * i // n for i in range(1, n)]).tolist()
    return threads.done(
        partial(work, first, end) for first, end in zip([0, *cuts], [*cuts, n_lines], strict=True)
    )
