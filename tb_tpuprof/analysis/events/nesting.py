"""Events of a line as a forest: which event contains which, and the spans that thread pools mark by a start
and a stop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once, shares
from tb_tpuprof.analysis.events.stat_rows import events_named, metadata_named
from tb_tpuprof.native import enclose, nest
from tb_tpuprof.trace.trace import Trace

_REGION_START = "ThreadpoolListener::StartRegion"
_REGION_STOP = "ThreadpoolListener::StopRegion"


@dataclass(frozen=True)
class Regions:
    """Work that a thread pool runs between two marks. `event`: the start marks (ascending); `end_ps`: when
    each region ends.
    """

    event: npt.NDArray[np.intp]
    end_ps: npt.NDArray[np.int64]


@once
def regions(trace: Trace) -> Regions:
    """Match each start mark with the last stop mark before the next start on its line.

    marks     ▏start        ▏stop        ▏start   ▏start
    region    ├─────────────┤            ├────────┤├── … all that lies inside belongs to whoever scheduled the
    region

    XLA writes a stop when the thread runs next, so that a thread's last region often has none: such a region
    ends where the line's next one begins, and the last one with the line's last event.
    """
    marks = events_named(trace, (_REGION_START, _REGION_STOP))
    is_start = metadata_named(trace, (_REGION_START,))[trace.events["metadata"][marks]]
    at = np.flatnonzero(is_start)
    start_rows = marks[at]
    if not len(start_rows):
        return Regions(np.empty(0, np.intp), np.empty(0, np.int64))
    line = trace.lines_at(start_rows)
    line_end = trace.line_offsets[line + 1]
    # The last mark before the next start and on the same line: a stop, or the start itself where no stop
    # followed.
    last = np.minimum(np.append(at[1:], len(marks)), np.searchsorted(marks, line_end)) - 1
    end = trace.events["start_ps"][marks[last]]
    open_ = np.flatnonzero(last == at)
    following = np.append(start_rows[1:], trace.n_events)[open_]
    end[open_] = _open_ends(trace, start_rows[open_], following, line_end[open_])
    return Regions(start_rows, end)


def _open_ends(
    trace: Trace,
    first: npt.NDArray[np.intp],
    following: npt.NDArray[np.intp],
    line_end: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Ends of regions without a stop, of which `following` are the next starts and `line_end` the rows after
    their lines' last events.
    """
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    follows = following < line_end
    ends: npt.NDArray[np.int64] = start[first]
    ends[follows] = start[following[follows]]
    last = np.flatnonzero(~follows)
    if len(last):  # one for each line at most
        bounds = np.column_stack((first[last], line_end[last])).ravel()
        ends[last] = np.maximum.reduceat(np.append(start + duration, 0), bounds)[::2]
    return ends


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
    """The event that directly contains each event on its line, -1 if none. Asynchronous events (stat `_a`)
    take no part.
    """
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


def are_inside(
    trace: Trace, rows: npt.NDArray[np.intp], chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Whether an event of a chosen metadata row is around each event, itself not counted."""
    parent, metadata = parents(trace), trace.events["metadata"]
    at = parent[rows]
    found = np.zeros(len(rows), np.bool_)
    while (at >= 0).any():
        open_ = at >= 0
        found[open_] |= chosen[metadata[at[open_]]]
        at[open_] = parent[at[open_]]
    return found


def nest_rows(
    trace: Trace, rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Nest a subset of events among themselves: (parent as an index into `rows`, self time in ps)."""
    start, end = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    end += start
    offsets = np.searchsorted(rows, trace.line_offsets).astype(np.int64)
    parent, self_ps = nest(start, end, offsets)
    return parent, self_ps
