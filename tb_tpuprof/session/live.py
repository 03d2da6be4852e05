"""A profile in memory → the numbers of live monitoring."""

from __future__ import annotations

from tb_tpuprof.analysis.overview.live import LiveSample, live_sample
from tb_tpuprof.ingest.opening import trace_of_bytes


def measure(xspace: bytes | memoryview) -> LiveSample:
    """The numbers of monitoring from a profile that never becomes a run. Raises TraceFormatError."""
    return live_sample(trace_of_bytes(xspace, "the profile"))
