"""When the work of a pool's events ended: with the last operation within, not when the thread got around to
saying so. On a busy machine a thread may be suspended just before it leaves, and runs again much later.

    pool   ├ StartRegion ────────────────────────┤
             ├ ExecutorState::Process ──────────┤
               ├ MatMul ──┤ ← worked until here
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import cpu_events
from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.events.nesting import event_ends, parents, regions
from tb_tpuprof.analysis.events.stat_rows import events_named
from tb_tpuprof.trace.trace import Trace

_DONE = "ExecutorDoneCallback"  # reports to the caller that the work is done
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


def worked_until(trace: Trace, rows: Rows) -> Int64s:
    """When the work of each event (ascending) ended, in ps: that of a pool's region with the last operation
    of XLA within, at most the region's own end.
    """
    result = event_ends(trace, rows)
    pool_regions, ops = regions(trace), cpu_events(trace)
    region = np.searchsorted(pool_regions.event, ops.event) - 1
    region[region >= 0] = np.where(
        trace.event_line[pool_regions.event[region[region >= 0]]] == trace.event_line[ops.event[region >= 0]],
        region[region >= 0],
        -1,
    )
    last_stop = np.zeros(len(pool_regions.event), np.int64)
    np.maximum.at(last_stop, region[region >= 0], ops.stop_ps[region >= 0])
    _shorten(result, rows, pool_regions.event, last_stop)
    return result


def executed_until(trace: Trace, rows: Rows) -> Int64s:
    """When the caller of each event's work (ascending) could go on, in ps: of a region or executor of
    TensorFlow, when the last traced operation within had ended. What may follow there is not traced: small
    operations, or a thread that does not run. So this says whose work a step waits for, not how long that
    took.
    """
    result = worked_until(trace, rows)
    _shorten(result, rows, *_executions(trace))
    return result


def _shorten(ends: Int64s, rows: Rows, events: Rows, last: Int64s) -> None:
    """Let those of the rows that are among the events end by the events' `last`; 0 is unknown."""
    position = np.searchsorted(events, rows)
    is_known = position < len(events)
    is_known[is_known] = (events[position[is_known]] == rows[is_known]) & (last[position[is_known]] > 0)
    ends[is_known] = np.minimum(ends[is_known], last[position[is_known]])


def _executions(trace: Trace) -> tuple[Rows, Int64s]:
    """Events around TensorFlow's operations, ascending, and when the last operation within each ended, in
    ps: 0 if there is none. A callback that reports the end of the work is over when it begins.
    """
    executors, reports = events_named(trace, (EXECUTOR,)), events_named(trace, (_DONE,))
    if not len(executors) and not len(reports):
        return np.empty(0, np.intp), np.empty(0, np.int64)
    wrappers = np.unique(np.concatenate((regions(trace).event, executors, reports))).astype(np.intp)
    is_wrapper = np.zeros(trace.n_events, np.bool_)
    is_wrapper[wrappers] = True
    start, duration, parent = trace.events["start_ps"], trace.events["duration_ps"], parents(trace)
    last = np.zeros(trace.n_events, np.int64)
    ops = np.flatnonzero((parent >= 0) & (duration > 0) & ~is_wrapper & is_wrapper[parent])
    around: Rows = np.concatenate((reports, parent[ops])).astype(np.intp)
    end: Int64s = np.concatenate((start[reports], start[ops] + duration[ops]))
    while len(around):
        np.maximum.at(last, around, end)
        around = parent[around].astype(np.intp)
        is_further = (around >= 0) & is_wrapper[around]
        around, end = around[is_further], end[is_further]
    return wrappers, last[wrappers]
