"""Analyses of one host's file, in whatever process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage.results import pack
from tb_tpuprof.parallel.threads import alone
from tb_tpuprof.trace.trace import Trace


def evaluate(path: str, functions: Sequence[Callable[[Trace], Any]], is_alone: bool) -> list[bytes | None]:
    """Open a host's file and apply analyses, in whatever process this is called: packed results, None for one
    that does not travel.

    `is_alone`: on this thread alone. Nothing is kept of the trace. Raises StorageError or TraceFormatError,
    as opening does.
    """
    with alone(is_alone):
        trace = open_trace(path)
        return [pack(function(trace)) for function in functions]
