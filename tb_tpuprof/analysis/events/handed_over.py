"""When work was handed to a thread pool.

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
    """When the region around each event was recorded (handed to the pool), in ps; `otherwise` where the trace
    has no record of it.
    """
    is_region = np.array([name == _REGION for name in metadata_names(trace)], np.bool_)
    records = events_named(trace, (_RECORD,))
    region, parent = events.astype(np.int64), parents(trace)
    while True:
        unresolved = np.flatnonzero(region >= 0)
        unresolved = unresolved[~is_region[trace.events["metadata"][region[unresolved]]]]
        if not len(unresolved):
            break
        region[unresolved] = parent[region[unresolved]]
    in_region = np.flatnonzero(region >= 0)
    result: Int64s = otherwise.copy()
    if not len(in_region) or not len(records):
        return result
    order = np.argsort(region[in_region], kind="stable")
    in_region = in_region[order]
    consumer_key = values_at(region[in_region], *events_with(trace, "_ct", "_c"), -1)
    producer_key = values_at(records, *events_with(trace, "_pt", "_p"), 0)
    by_key = np.argsort(producer_key, kind="stable")
    nearest = np.minimum(np.searchsorted(producer_key[by_key], consumer_key), len(producer_key) - 1)
    is_match = producer_key[by_key][nearest] == consumer_key
    result[in_region[is_match]] = trace.events["start_ps"][records[by_key[nearest[is_match]]]]
    return result
