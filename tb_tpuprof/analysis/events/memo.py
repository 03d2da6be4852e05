"""Analyses build on one another: a function marked `once` is computed once per trace and kept as long as the
trace is (`Trace.memo`).

Results that outlive the trace are kept by the session (`session/host_store.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")


def once(function: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Keep the result of a pure analysis in the memo of the trace that it was computed from."""

    @wraps(function)
    def kept(trace: Trace) -> T:
        return trace.memo.get(function, trace)

    return kept


def compute_ahead(trace: Trace, *functions: Callable[[Trace], Any]) -> None:
    """Compute analyses marked `once` in parallel before they are used; nothing where the trace is small."""
    if trace.n_events >= POLICY.min_parallel_events:
        call_in_parallel(partial(function, trace) for function in functions)
