"""The name of each metadata row, decoded once for all analyses that inspect them."""

from __future__ import annotations

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.trace.trace import Trace


@once
def metadata_names(trace: Trace) -> list[str]:
    """The name of each metadata row, empty if it has none. Callers must not modify the list."""
    ids = trace.metadata["name"]
    if len(ids) and int(ids.min()) >= 0:
        return trace.strings.take(ids)
    return [trace.strings.get(i) for i in ids.tolist()]
