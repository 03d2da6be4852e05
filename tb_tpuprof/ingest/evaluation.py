"""Analyses of one host's file, in whatever process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage.result_cache import pack
from tb_tpuprof.parallel.threads import single_threaded
from tb_tpuprof.trace.trace import Trace

Function = Callable[[Trace], Any]


def evaluate(path: str, functions: Sequence[Function], is_single_threaded: bool) -> list[bytes | None]:
    """Open a host's file and apply analyses: packed results, None for each that cannot be packed.

    `is_single_threaded`: do not split the work over threads. The trace is not kept. Raises StorageError or
    TraceFormatError, as `open_trace` does.
    """
    with single_threaded(is_single_threaded):
        trace = open_trace(path)
        return [pack(function(trace)) for function in functions]
