"""Regions of thread pools → tasks: who enqueued each, how long it waited, and when it ran.

    python   ├─ dot.3 ─┬──┤                          `ThreadpoolListener::Record`, with a number (`_p`)
    pool 1             └─ waits ─▶├ region ──┬──┤    `StartRegion` with the same (`_c`), `StopRegion`
    pool 2                                   └─▶├ region ┤
    tasks                         ├ dot.3 ──────┤
                                                ├ dot.3 ─┤

A task is named after the event around its record; if that is itself a region, after what enqueued that one.
XLA:CPU splits an operation over its pool in this way, TensorFlow hands its operations to its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import parents, regions
from tb_tpuprof.analysis.events.stat_rows import events_named, events_with, values_at
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_RECORD = "ThreadpoolListener::Record"
_MOST_HOPS = 64  # each doubles the distance


@dataclass(frozen=True)
class PoolTasks:
    """One row per region, by start. `event`: its start mark; `record`: the event that enqueued it, and
    `owner`: the event around that one, -1 if the trace lacks it. Times in ps; `waited_ps`: from the record to
    the region's start, -1 if unknown.
    """

    event: Int64s
    start_ps: Int64s
    end_ps: Int64s
    record: Int64s
    owner: Int64s
    waited_ps: Int64s

    def taken(self, rows: npt.NDArray[np.intp]) -> PoolTasks:
        """A selection of the rows."""
        columns = (self.event, self.start_ps, self.end_ps, self.record, self.owner, self.waited_ps)
        return PoolTasks(*(column[rows] for column in columns))


@once
def pool_tasks(trace: Trace) -> PoolTasks:
    """The tasks of all thread pools of a trace."""
    found = regions(trace)
    event = found.event.astype(np.int64)
    if not len(event):
        none = np.empty(0, np.int64)
        return PoolTasks(none, none, none, none, none, none)
    start = trace.events["start_ps"]
    record = _records(trace, event)
    has_record = record >= 0
    owner = np.full(len(event), -1, np.int64)
    owner[has_record] = parents(trace)[record[has_record]]
    waited = np.where(has_record, start[event] - start[record], -1)
    tasks = PoolTasks(
        event,
        start[event],
        np.maximum(found.end_ps, start[event]),
        record,
        _outside(event, owner),
        np.where(waited < 0, -1, waited),
    )
    return tasks.taken(np.lexsort((start[event] - tasks.end_ps, start[event])))


def _records(trace: Trace, region: Int64s) -> Int64s:
    """The last record before each region with its number, -1 for none: numbers are used again."""
    records = events_named(trace, (_RECORD,)).astype(np.int64)
    produced, produced_keys = events_with(trace, "_pt", "_p")
    consumed, consumed_keys = events_with(trace, "_ct", "_c")
    missing = np.iinfo(np.int64).min
    key = values_at(records, produced, produced_keys, missing)
    records, key = records[key != missing], key[key != missing]
    sought = values_at(region, consumed, consumed_keys, missing)
    start = trace.events["start_ps"]
    keys = np.concatenate((key, sought))
    is_region = np.repeat([0, 1], [len(records), len(region)])
    order = np.lexsort((is_region, np.concatenate((start[records], start[region])), keys))
    latest = np.maximum.accumulate(np.where(is_region[order] == 0, np.arange(len(order)), -1))
    answered = np.flatnonzero((is_region[order] == 1) & (latest >= 0))
    answered = answered[keys[order[latest[answered]]] == keys[order[answered]]]
    result = np.full(len(region), -1, np.int64)
    result[order[answered] - len(records)] = records[order[latest[answered]]]
    return result


def _outside(region: Int64s, owner: Int64s) -> Int64s:
    """For each region the event that is no region at the end of its chain of owners, -1 if the chain ends
    without one.
    """
    place = np.searchsorted(region, owner)
    is_region = (owner >= 0) & (place < len(region))
    is_region[is_region] = region[place[is_region]] == owner[is_region]
    after = np.where(is_region, place, -1)  # the region that recorded it
    result: Int64s = owner.copy()
    for _ in range(_MOST_HOPS):
        chained = np.flatnonzero(after >= 0)
        if not len(chained):
            return result
        result[chained], after[chained] = result[after[chained]], after[after[chained]]
    result[after >= 0] = -1
    return result
