"""A window of time and matching events → the parts of them within it, and how busy lines were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Events = npt.NDArray[np.integer]
MOST_DEPTH = 65_535
_MANY = 100_000


@dataclass(frozen=True)
class Window:
    """A range of time in ps on the trace's clock, and rows of the tracks (both ends inclusive)."""

    start_ps: int
    end_ps: int
    depth_from: int = 0
    depth_to: int = MOST_DEPTH


@dataclass(frozen=True)
class Parts:
    """Events that overlap a window, and of each in ps its part within it and the part of its self time."""

    events: Events
    part_ps: Int64s
    self_ps: Int64s


def overlapping(drawn: Timeline, events: Events, window: Window | None) -> Events:
    """The events that overlap a window; one without duration counts as 1 ps."""
    if window is None or not len(events):
        return events
    if len(events) >= _MANY and columns.are_recorded(drawn, events):
        events = _near(drawn.file, events, window)
    start = columns.starts(drawn, events)
    is_within = start < window.end_ps
    is_within &= start + np.maximum(columns.durations(drawn, events), 1) > window.start_ps
    if window.depth_from > 0 or window.depth_to < MOST_DEPTH:
        depth = columns.depths(drawn, events)
        is_within &= (depth >= window.depth_from) & (depth <= window.depth_to)
    return events if is_within.all() else events[is_within]


def _near(layer: Layer, events: Events, window: Window) -> Events:
    """The events of each line's stretch that contains all of its events in the window."""
    offsets = np.searchsorted(events, layer.line_offsets)
    lines = np.flatnonzero(np.diff(offsets))
    bounds = np.searchsorted(events, layer.spans_within(lines, window.start_ps, window.end_ps))
    if int((bounds[:, 1] - bounds[:, 0]).sum()) == len(events):
        return events
    return np.concatenate([events[a:b] for a, b in bounds.tolist()])


def parts_within(trace: Trace, drawn: Timeline, events: Events, window: Window | None) -> Parts:
    """Durations and self times of events, or of their parts within a window.

    An event that lies within has its own self time; of one that crosses an edge, the parts of the events
    directly inside (those on the next row) are subtracted from its part.
    """
    inside = overlapping(drawn, events, window)
    part = columns.durations(drawn, inside)
    self_ps = columns.self_times(trace, drawn, inside)
    if window is None or not len(inside):
        return Parts(inside, part, self_ps)
    start = columns.starts(drawn, inside)
    end = start + part
    crossing = np.flatnonzero((start < window.start_ps) | (end > window.end_ps))
    if not len(crossing):
        return Parts(inside, part, self_ps)
    part, self_ps = part.copy(), self_ps.copy()
    low, high = np.maximum(start[crossing], window.start_ps), np.minimum(end[crossing], window.end_ps)
    part[crossing] = np.maximum(high - low, 0)
    for i, a, b in zip(crossing.tolist(), low.tolist(), high.tolist(), strict=True):
        self_ps[i] = max(int(part[i]) - _covered_below(drawn, int(inside[i]), a, b), 0)
    return Parts(inside, part, self_ps)


def _covered_below(drawn: Timeline, event: int, low: int, high: int) -> int:
    """Time in ps that the row below an event's own covers from `low` to `high`."""
    layer, row, _ = drawn.row_of(event)
    if row + 1 >= len(layer.row_line) or layer.row_line[row + 1] != layer.row_line[row]:
        return 0
    return int(layer.rows.busy(np.array([row + 1], np.int32), low, max(high - low, 1), 1)[0])


def busy_ps(layer: Layer, line: int, window: Window, may_cross: bool) -> int:
    """Time in ps of a window that the events of a line (within the layer) cover. `may_cross`: its events may
    overlap partly, so that the outermost row does not show all.
    """
    first, length = int(layer.first_row[line]), max(window.end_ps - window.start_ps, 1)
    if not may_cross:
        return int(layer.rows.busy(np.array([first], np.int32), window.start_ps, length, 1)[0])
    begin, end = layer.spans_within(np.array([line]), window.start_ps, window.end_ps)[0].tolist()
    low = np.maximum(layer.start_ps[begin:end], window.start_ps)
    high = np.minimum(layer.start_ps[begin:end] + layer.duration_ps[begin:end], window.end_ps)
    if not len(low):
        return 0
    before = np.concatenate(([window.start_ps], np.maximum.accumulate(high)[:-1]))
    return int(np.maximum(high - np.maximum(low, before), 0).sum())
