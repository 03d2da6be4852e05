"""Names of all kinds of events of a trace, decoded once for the analyses that look at each of them."""

from __future__ import annotations

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.trace.trace import Trace


@once
def metadata_names(trace: Trace) -> list[str]:
    """The name of each metadata row, empty for none. Read only."""
    ids = trace.metadata["name"]
    if len(ids) and int(ids.min()) >= 0:
        return trace.strings.take(ids)
    return [trace.strings.get(i) for i in ids.tolist()]
