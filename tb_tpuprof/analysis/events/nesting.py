"""Events of a line as a forest: which event contains which, and the spans between the start and stop marks of
thread pools.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import events_named, metadata_named
from tb_tpuprof.native import enclose, nest
from tb_tpuprof.parallel.splitting import run_over_lines
from tb_tpuprof.trace.trace import Trace

_REGION_START = "ThreadpoolListener::StartRegion"
_REGION_STOP = "ThreadpoolListener::StopRegion"


@dataclass(frozen=True)
class Regions:
    """Work that a thread pool runs between two marks. `event`: the start marks (ascending); `end_ps`: the end
    of each region.
    """

    event: npt.NDArray[np.intp]
    end_ps: npt.NDArray[np.int64]


@once
def regions(trace: Trace) -> Regions:
    """Match each start mark with the last stop mark before the next start on its line.

    marks     ▏start        ▏stop        ▏start   ▏start
    region    ├─────────────┤            ├────────┤├── … events inside a region belong to its scheduler

    XLA writes a stop only when the thread runs again, so a thread's last region often has none. Such a region
    ends where the line's next region begins; the line's last region ends with the line's last event.
    """
    marks = events_named(trace, (_REGION_START, _REGION_STOP))
    is_start = metadata_named(trace, (_REGION_START,))[trace.events["metadata"][marks]]
    position = np.flatnonzero(is_start)
    start_rows = marks[position]
    if not len(start_rows):
        return Regions(np.empty(0, np.intp), np.empty(0, np.int64))
    line = trace.lines_at(start_rows)
    line_end = trace.line_offsets[line + 1]
    # The last mark before the next start on the same line: a stop, or the start itself if no stop follows.
    last = np.minimum(np.append(position[1:], len(marks)), np.searchsorted(marks, line_end)) - 1
    end = trace.events["start_ps"][marks[last]]
    unstopped = np.flatnonzero(last == position)
    following = np.append(start_rows[1:], trace.n_events)[unstopped]
    end[unstopped] = _open_ends(trace, start_rows[unstopped], following, line_end[unstopped])
    return Regions(start_rows, end)


def _open_ends(
    trace: Trace,
    first: npt.NDArray[np.intp],
    following: npt.NDArray[np.intp],
    line_end: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Ends of regions without a stop, in ps. `following`: the next start mark of each region; `line_end`: the
    row after the last event of its line.
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
    """End of each event (ascending) in ps; a region's start mark ends with its region."""
    pool_regions = regions(trace)
    ends: npt.NDArray[np.int64] = trace.events["start_ps"][rows]
    ends += trace.events["duration_ps"][rows]
    if len(pool_regions.event) and len(rows):
        position = np.searchsorted(rows, pool_regions.event)
        is_start_mark = position < len(rows)
        is_start_mark[is_start_mark] = rows[position[is_start_mark]] == pool_regions.event[is_start_mark]
        ends[position[is_start_mark]] = np.maximum(
            ends[position[is_start_mark]], pool_regions.end_ps[is_start_mark]
        )
    return ends


@once
def parents(trace: Trace) -> npt.NDArray[np.int32]:
    """The event that directly contains each event on its line, -1 if none. Asynchronous events (stat `_a`)
    neither contain nor are contained.
    """
    is_nested = None
    flags = trace.event_stats.ints("_a")
    if len(flags.owner):
        is_nested = np.ones(trace.n_events, np.uint8)
        is_nested[flags.owner[flags.value != 0]] = 0
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    pool_regions = regions(trace)
    region_ends = pool_regions.event.astype(np.int64), pool_regions.end_ps
    parent = np.empty(trace.n_events, np.int32)
    offsets = trace.line_offsets
    run_over_lines(
        offsets,
        lambda a, b: enclose(start, duration, offsets[a : b + 1], region_ends, parent, is_nested),
    )
    return parent


def are_inside(
    trace: Trace, rows: npt.NDArray[np.intp], chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """For each of the events `rows`, whether it lies inside another event with a chosen metadata row."""
    parent, metadata = parents(trace), trace.events["metadata"]
    ancestor = parent[rows]
    result = np.zeros(len(rows), np.bool_)
    while (ancestor >= 0).any():
        has_ancestor = ancestor >= 0
        result[has_ancestor] |= chosen[metadata[ancestor[has_ancestor]]]
        ancestor[has_ancestor] = parent[ancestor[has_ancestor]]
    return result


def nest_rows(
    trace: Trace, rows: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Nest a subset of events among themselves: (parent as an index into `rows`, self time in ps)."""
    start, end = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    end += start
    offsets = np.searchsorted(rows, trace.line_offsets).astype(np.int64)
    parent, self_ps = nest(start, end, offsets)
    return parent, self_ps
