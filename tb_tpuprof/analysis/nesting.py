"""Events of a line as a forest: which event contains which, and the spans that thread pools mark by a start and a stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memo import once, shares
from tb_tpuprof.analysis.stat_rows import events_named, metadata_named
from tb_tpuprof.native import enclose, nest
from tb_tpuprof.trace.trace import Trace

_REGION_START = "ThreadpoolListener::StartRegion"
_REGION_STOP = "ThreadpoolListener::StopRegion"


@dataclass(frozen=True)
class Regions:
    """Work that a thread pool runs between two marks. `event`: the start marks (ascending); `end_ps`: when each region ends."""

    event: npt.NDArray[np.intp]
    end_ps: npt.NDArray[np.int64]


@once
def regions(trace: Trace) -> Regions:
    """Match each stop mark with the last start mark before it on its line.

    marks     ▏start        ▏stop
    region    ├─────────────┤        all that lies inside belongs to whoever scheduled the region
    """
    marks = events_named(trace, (_REGION_START, _REGION_STOP))
    is_start = metadata_named(trace, (_REGION_START,))[trace.events["metadata"][marks]]
    start_rows, stop_rows = marks[is_start], marks[~is_start]
    if not len(start_rows) or not len(stop_rows):
        return Regions(np.empty(0, np.intp), np.empty(0, np.int64))
    before = np.searchsorted(start_rows, stop_rows) - 1
    matched = before >= 0
    of_start, of_stop = (np.searchsorted(trace.line_offsets, rows, side="right") for rows in (start_rows, stop_rows))
    matched[matched] = of_start[before[matched]] == of_stop[matched]
    # Of several stops after one start the last is kept: it is the latest.
    event, last = np.unique(before[matched][::-1], return_index=True)
    return Regions(start_rows[event], trace.events["start_ps"][stop_rows[matched][::-1][last]])


def event_ends(trace: Trace, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """End of each of the events (ascending), where a region's start mark lasts as long as its region."""
    found = regions(trace)
    ends: npt.NDArray[np.int64] = trace.events["start_ps"][rows]
    ends += trace.events["duration_ps"][rows]
    if len(found.event) and len(rows):
        at = np.searchsorted(rows, found.event)
        inside = at < len(rows)
        inside[inside] = rows[at[inside]] == found.event[inside]
        ends[at[inside]] = np.maximum(ends[at[inside]], found.end_ps[inside])
    return ends


@once
def parents(trace: Trace) -> npt.NDArray[np.int32]:
    """The event that directly contains each event on its line, -1 if none. Asynchronous events (stat `_a`) take no part."""
    take = None
    flags = trace.event_stats.ints("_a")
    if len(flags.owner):
        take = np.ones(trace.n_events, np.uint8)
        take[flags.owner[flags.value != 0]] = 0
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    found = regions(trace)
    longer = found.event.astype(np.int64), found.end_ps
    parent = np.empty(trace.n_events, np.int32)
    offsets = trace.line_offsets
    shares(offsets, lambda a, b: enclose(start, duration, offsets[a : b + 1], longer, parent, take))
    return parent


def nest_rows(trace: Trace, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Nest a subset of events among themselves: (parent as an index into `rows`, self time in ps)."""
    start, end = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    end += start
    offsets = np.searchsorted(rows, trace.line_offsets).astype(np.int64)
    parent, self_ps = nest(start, end, offsets)
    return parent, self_ps
