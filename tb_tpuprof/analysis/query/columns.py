"""Columns of chosen events of either layer of a timeline: start, duration, line, name, step, self time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.query.facts import Codes
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline, event_names, timeline
from tb_tpuprof.analysis.timeline.totals import self_time
from tb_tpuprof.native import nest
from tb_tpuprof.parallel.splitting import run_over_lines
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Events = npt.NDArray[np.integer]
_FEW, _FEW_SHARE = 2000, 10


def are_recorded(drawn: Timeline, events: Events) -> bool:
    """Whether all events (ascending) are the file's."""
    return not len(events) or int(events[-1]) < drawn.derived.first_event


def _of_layers(
    drawn: Timeline, events: Events, file: npt.NDArray[np.integer], derived: npt.NDArray[np.integer]
) -> Int64s:
    """A column of both layers for ascending events."""
    if are_recorded(drawn, events):
        return file[events].astype(np.int64, copy=False)
    first = int(np.searchsorted(events, drawn.derived.first_event))
    return np.concatenate(
        (file[events[:first]], derived[events[first:] - drawn.derived.first_event]), dtype=np.int64
    )


def starts(drawn: Timeline, events: Events) -> Int64s:
    """Starts in ps on the trace's clock of ascending events."""
    return _of_layers(drawn, events, drawn.file.start_ps, drawn.derived.start_ps)


def durations(drawn: Timeline, events: Events) -> Int64s:
    """Durations in ps of ascending events."""
    return _of_layers(drawn, events, drawn.file.duration_ps, drawn.derived.duration_ps)


def depths(drawn: Timeline, events: Events) -> Int64s:
    """Rows below the track's first one of ascending events."""
    return _of_layers(drawn, events, drawn.file.depth, drawn.derived.depth)


def file_rows(drawn: Timeline, events: Events) -> Int64s:
    """The file's event of each ascending event: itself, or the first of a derived one."""
    if are_recorded(drawn, events):
        return events.astype(np.int64, copy=False)
    first = int(np.searchsorted(events, drawn.derived.first_event))
    source = drawn.derived_events.source[events[first:] - drawn.derived.first_event]
    return np.concatenate((events[:first], source), dtype=np.int64)


def lines(drawn: Timeline, events: Events) -> Int64s:
    """Lines, as numbered in the timeline, of ascending events."""
    parts = [
        _lines_of(layer, events[a:b] - layer.first_event) + layer.first_line
        for layer, (a, b) in zip(drawn.layers, _spans(drawn, events), strict=True)
        if b > a
    ]
    return np.concatenate([np.empty(0, np.int64), *parts], dtype=np.int64)


def _spans(drawn: Timeline, events: Events) -> tuple[tuple[int, int], tuple[int, int]]:
    first = int(np.searchsorted(events, drawn.derived.first_event))
    return (0, first), (first, len(events))


def first_of_lines(drawn: Timeline, events: Events, n: int) -> npt.NDArray[np.intp]:
    """Rows of the first n of the ascending events on each line: the n that start first are among these."""
    begins = [
        np.searchsorted(events[a:b], layer.line_offsets + layer.first_event) + a
        for layer, (a, b) in zip(drawn.layers, _spans(drawn, events), strict=True)
    ]
    first = np.concatenate([begin[:-1] for begin in begins])
    size = np.minimum(np.concatenate([np.diff(begin) for begin in begins]), n)
    rows: npt.NDArray[np.intp] = np.arange(size.sum()) + np.repeat(first - (np.cumsum(size) - size), size)
    return rows


def _lines_of(layer: Layer, local: Events) -> Int64s:
    """Lines of ascending events of a layer: their numbers of events, repeated."""
    ends = np.searchsorted(local, layer.line_offsets)
    return np.repeat(np.arange(layer.n_lines, dtype=np.int64), np.diff(ends))


def names(trace: Trace, drawn: Timeline, events: Events) -> npt.NDArray[np.int32]:
    """Names, as numbered in the timeline, of ascending events."""
    parts = [
        event_names(trace, drawn, layer, events[a:b] - layer.first_event)
        for layer, (a, b) in zip(drawn.layers, _spans(drawn, events), strict=True)
        if b > a
    ]
    return np.concatenate([np.empty(0, np.int32), *parts], dtype=np.int32)


def codes(drawn: Timeline, events: Events, of: Codes) -> npt.NDArray[np.int32]:
    """A fact's code of each event; derived events have that of their first event."""
    return of.of[file_rows(drawn, events)]


def self_times(trace: Trace, drawn: Timeline, events: Events) -> Int64s:
    """Durations without the events directly within, in ps, of ascending events. Those of few events are
    computed from the events within them, those of many from all events, once per trace.
    """
    if len(events) <= _FEW and _n_within(drawn, events) * _FEW_SHARE <= drawn.n_events:
        return np.array([self_time(drawn, event) for event in events.tolist()], np.int64)
    if are_recorded(drawn, events):
        return _file_self(trace)[events]
    return _of_layers(drawn, events, _file_self(trace), _derived_self(trace))


def _n_within(drawn: Timeline, events: Events) -> int:
    """Number of events that start while the given ones run, each counted as often."""
    n = 0
    for layer, (a, b) in zip(drawn.layers, _spans(drawn, events), strict=True):
        local = events[a:b] - layer.first_event
        ends = layer.start_ps[local] + layer.duration_ps[local]
        lasts = layer.line_offsets[layer.line_of(local) + 1].tolist()
        for event, end, last in zip(local.tolist(), ends.tolist(), lasts, strict=True):
            n += int(np.searchsorted(layer.start_ps[event:last], end))
    return n


@once
def _file_self(trace: Trace) -> Int64s:
    return _self_of(timeline(trace).file)


@once
def _derived_self(trace: Trace) -> Int64s:
    return _self_of(timeline(trace).derived)


def _self_of(layer: Layer) -> Int64s:
    """Self times of all events of a layer; never below 0, where events of a line overlap partly."""
    offsets = layer.line_offsets
    end = layer.start_ps + layer.duration_ps
    parts = run_over_lines(
        offsets,
        lambda a, b: nest(
            layer.start_ps[offsets[a] : offsets[b]],
            end[offsets[a] : offsets[b]],
            np.ascontiguousarray(offsets[a : b + 1] - offsets[a]),
        )[1],
    )
    joined: Int64s = np.concatenate([np.empty(0, np.int64), *parts])
    return np.maximum(joined, 0, out=joined)
