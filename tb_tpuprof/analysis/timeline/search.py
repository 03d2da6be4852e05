"""A text → the events whose names (or arguments) contain it: their number by name, and the next ones from a
position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.lines import derived_lines
from tb_tpuprof.analysis.timeline.timeline import Timeline
from tb_tpuprof.native import matches, tally
from tb_tpuprof.trace.schema import TEXT
from tb_tpuprof.trace.trace import Trace

Flags = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Matches:
    """Matches on one host: metadata rows, further events of the file (empty: none), and names of derived
    events.
    """

    metadata: Flags
    events: Flags
    derived: Flags


@dataclass(frozen=True)
class NameCounts:
    """Matching events by name: the name's code, their number, and their total and longest duration in ps."""

    name: npt.NDArray[np.int32]
    n: Int64s
    total_ps: Int64s
    max_ps: Int64s


@once
def name_totals(trace: Trace) -> Int64s:
    """Count, total, shortest and longest duration in ps (rows 0 … 3) of the events of each metadata row."""
    result: Int64s = tally(trace.events["metadata"], trace.events["duration_ps"], len(trace.metadata))
    return result


@once
def _derived_totals(trace: Trace) -> Int64s:
    """The same of the derived events, by the code of their name."""
    derived_events = derived_lines(trace)
    result: Int64s = tally(derived_events.name, derived_events.duration_ps, len(derived_events.texts))
    return result


@once
def _lower_names(trace: Trace) -> dict[int, str]:
    """Names of events in lower case, by string id."""
    return {name: trace.strings.get(name).lower() for name in np.unique(trace.event_names).tolist()}


def find(trace: Trace, drawn: Timeline, text: str, with_arguments: bool = False) -> Matches:
    """The matches of a text, ignoring case: names as drawn, and, `with_arguments`, the texts in stats of
    events and of their metadata that were decoded on opening.
    """
    needle = text.lower()
    mark = np.zeros(len(trace.strings) + 1, np.bool_)
    mark[[name for name, lower in _lower_names(trace).items() if needle in lower]] = True
    metadata = mark[trace.event_names]
    names = drawn.names
    extra = np.array([needle in more.lower() for more in names.more], np.bool_)
    own_events = (
        names.own_event[extra[names.own_name - len(trace.strings)]] if len(extra) else names.own_event
    )
    own_events = own_events[~metadata[trace.events["metadata"][own_events]]]
    if with_arguments:
        owners, rows = _with_text(trace, needle)
        metadata[rows] = True
        own_events = np.concatenate((own_events, owners))
    events = np.zeros(trace.n_events if len(own_events) else 0, np.uint8)
    events[own_events] = 1
    derived = (
        extra[len(names.more) - len(drawn.derived_events.texts) :]
        if len(drawn.derived_events.texts)
        else np.zeros(0, np.bool_)
    )
    return Matches(metadata.view(np.uint8), events, derived.view(np.uint8))


def _with_text(trace: Trace, needle: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Events, and metadata rows, with a stat whose value contains the text."""
    owners = []
    for stats in (trace.event_stats, trace.metadata_stats):
        table = stats.table
        rows = np.flatnonzero(table["kind"] == TEXT)
        values = table["value"][rows]
        is_match = np.zeros(len(trace.strings), np.bool_)
        is_match[
            [value for value in np.unique(values).tolist() if needle in trace.strings.get(value).lower()]
        ] = True
        owners.append(table["owner"][rows[is_match[values]]])
    return owners[0], owners[1]


def counts(trace: Trace, drawn: Timeline, hits: Matches) -> NameCounts:
    """Number and duration of the matching events, by name."""
    totals = name_totals(trace)
    metadata_rows = np.flatnonzero((hits.metadata != 0) & (totals[0] > 0))
    parts = [
        (
            trace.event_names[metadata_rows],
            totals[0, metadata_rows],
            totals[1, metadata_rows],
            totals[3, metadata_rows],
        )
    ]
    if len(hits.events):
        events = np.flatnonzero(hits.events)
        metadata = trace.events["metadata"][events]
        events, metadata = events[hits.metadata[metadata] == 0], metadata[hits.metadata[metadata] == 0]
        duration = trace.events["duration_ps"][events]
        parts.append(
            (drawn.names.of_events(events, metadata), np.ones(len(events), np.int64), duration, duration)
        )
    if hits.derived.any():
        derived_totals = _derived_totals(trace)
        codes = np.flatnonzero((hits.derived != 0) & (derived_totals[0] > 0))
        names = (codes + (drawn.names.n_names - len(drawn.derived_events.texts))).astype(np.int32)
        parts.append((names, derived_totals[0, codes], derived_totals[1, codes], derived_totals[3, codes]))
    name, n, total, longest = (np.concatenate(column) for column in zip(*parts, strict=True))
    distinct, name_index = np.unique(name, return_inverse=True)
    sums = np.zeros((3, len(distinct)), np.int64)
    np.add.at(sums[0], name_index, n)
    np.add.at(sums[1], name_index, total)
    np.maximum.at(sums[2], name_index, longest)
    return NameCounts(distinct.astype(np.int32), sums[0], sums[1], sums[2])


def next_matches(
    trace: Trace, drawn: Timeline, hits: Matches, position: tuple[int, int], limit: int, backward: bool
) -> Int64s:
    """The first `limit` matching events after a position (start in ps, event), or, `backward`, the last ones
    before it; in time order.

    Events of equal start are ordered by number.
    """
    parts = []
    for layer, names, is_match, extra in (
        (drawn.file, trace.events["metadata"], hits.metadata, hits.events),
        (drawn.derived, drawn.derived_events.name, hits.derived, np.zeros(0, np.uint8)),
    ):
        if layer.n_events and (is_match.any() or extra.any()):
            bounds = _bounds(layer, position, backward)
            parts.append(matches(names, is_match, extra, bounds, limit, backward) + layer.first_event)
    events = np.concatenate([np.empty(0, np.int64), *parts])
    start = starts_of(drawn, events)
    order = np.lexsort((events, start))
    selected: Int64s = events[order[-limit:] if backward else order[:limit]]
    return selected


def starts_of(drawn: Timeline, events: Int64s) -> Int64s:
    """Starts in ps of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    start = np.empty(len(events), np.int64)
    start[~is_derived] = drawn.file.start_ps[events[~is_derived]]
    start[is_derived] = drawn.derived.start_ps[events[is_derived] - drawn.derived.first_event]
    return start


def durations_of(drawn: Timeline, events: Int64s) -> Int64s:
    """Durations in ps of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    duration = np.empty(len(events), np.int64)
    duration[~is_derived] = drawn.file.duration_ps[events[~is_derived]]
    duration[is_derived] = drawn.derived.duration_ps[events[is_derived] - drawn.derived.first_event]
    return duration


def _bounds(layer: Layer, position: tuple[int, int], backward: bool) -> Int64s:
    """Range [first, last) of each line's events after the position, or before it."""
    start_ps, event = position
    bounds = np.empty((layer.n_lines, 2), np.int64)
    for line in range(layer.n_lines):
        first, last = int(layer.line_offsets[line]), int(layer.line_offsets[line + 1])
        line_starts = layer.start_ps[first:last]
        left, right = (
            first + int(np.searchsorted(line_starts, start_ps)),
            first + int(np.searchsorted(line_starts, start_ps, side="right")),
        )
        after = min(max(event + 1 - layer.first_event, left), right)
        before = min(max(event - layer.first_event, left), right)
        bounds[line] = (first, before) if backward else (after, last)
    return bounds
