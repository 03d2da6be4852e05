"""When a thread pool was given what it runs.

thread   ├ PjitFunction(step) ─┬─┤                 `ThreadpoolListener::Record`, with a number (`_p`)
pool                           └───▶├ region ──┤   `ThreadpoolListener::StartRegion`, with the same (`_c`)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.stat_rows import events_named, events_with, values_at
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_RECORD, _REGION = "ThreadpoolListener::Record", "ThreadpoolListener::StartRegion"


def handed_over(trace: Trace, events: Int64s, otherwise: Int64s) -> Int64s:
    """When each event's region was recorded, in ps; `otherwise` where the trace does not say."""
    is_region = np.array([name == _REGION for name in metadata_names(trace)], np.bool_)
    records = events_named(trace, (_RECORD,))
    region, parent = events.astype(np.int64), parents(trace)
    while True:
        inside = np.flatnonzero(region >= 0)
        inside = inside[~is_region[trace.events["metadata"][region[inside]]]]
        if not len(inside):
            break
        region[inside] = parent[region[inside]]
    known = np.flatnonzero(region >= 0)
    result: Int64s = otherwise.copy()
    if not len(known) or not len(records):
        return result
    order = np.argsort(region[known], kind="stable")
    known = known[order]
    used = values_at(region[known], *events_with(trace, "_ct", "_c"), -1)
    made = values_at(records, *events_with(trace, "_pt", "_p"), 0)
    by_key = np.argsort(made, kind="stable")
    at = np.minimum(np.searchsorted(made[by_key], used), len(made) - 1)
    found = made[by_key][at] == used
    result[known[found]] = trace.events["start_ps"][records[by_key[at[found]]]]
    return result
