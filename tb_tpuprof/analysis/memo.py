"""Analyses build on one another: a function marked `once` is computed once per Trace and kept as long as the Trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TypeVar

from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")
_LOCK = RLock()


def once(function: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Keep the result of a pure analysis beside the trace that it was computed from."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(trace: Trace) -> T:
        with _LOCK:
            results: dict[str, T] = trace.__dict__.setdefault("_analyses", {})
            lock: RLock = trace.__dict__.setdefault("_analysis_lock", RLock())
        with lock:
            if name not in results:
                results[name] = function(trace)
            return results[name]

    return kept
