"""A text → the events whose names (or arguments) hold it: how many of which name, and the next ones from a
place on.
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
class Found:
    """What matches on one host: rows of `metadata`, further events of the file (empty: none), and names of
    derived events.
    """

    metadata: Flags
    events: Flags
    derived: Flags


@dataclass(frozen=True)
class NameCounts:
    """Matching events by name: the name's number, how many, and their total and longest duration."""

    name: npt.NDArray[np.int32]
    n: Int64s
    total_ps: Int64s
    max_ps: Int64s


@once
def name_totals(trace: Trace) -> Int64s:
    """Count, total, shortest and longest (rows 0 … 3) of the events of each row of `metadata`."""
    result: Int64s = tally(trace.events["metadata"], trace.events["duration_ps"], len(trace.metadata))
    return result


@once
def _derived_totals(trace: Trace) -> Int64s:
    """The same of the derived events, by the code of their name."""
    made = derived_lines(trace)
    result: Int64s = tally(made.name, made.duration_ps, len(made.texts))
    return result


@once
def _lower_names(trace: Trace) -> dict[int, str]:
    """Names of events in lower case, by the string's id."""
    return {name: trace.strings.get(name).lower() for name in np.unique(trace.event_names).tolist()}


def find(trace: Trace, drawn: Timeline, text: str, with_arguments: bool = False) -> Found:
    """What holds the text in whatever case: names as they are drawn, and with `with_arguments` the texts
    among the stats of events and of their metadata that were decoded on opening.
    """
    needle = text.lower()
    mark = np.zeros(len(trace.strings) + 1, np.bool_)
    mark[[name for name, lower in _lower_names(trace).items() if needle in lower]] = True
    metadata = mark[trace.event_names]
    names = drawn.names
    extra = np.array([needle in more.lower() for more in names.more], np.bool_)
    own = names.own_event[extra[names.own_name - len(trace.strings)]] if len(extra) else names.own_event
    own = own[~metadata[trace.events["metadata"][own]]]
    if with_arguments:
        owners, rows = _with_text(trace, needle)
        metadata[rows] = True
        own = np.concatenate((own, owners))
    events = np.zeros(trace.n_events if len(own) else 0, np.uint8)
    events[own] = 1
    derived = (
        extra[len(names.more) - len(drawn.made.texts) :] if len(drawn.made.texts) else np.zeros(0, np.bool_)
    )
    return Found(metadata.view(np.uint8), events, derived.view(np.uint8))


def _with_text(trace: Trace, needle: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Events, and rows of `metadata`, that have a stat with the text in its value."""
    found = []
    for stats in (trace.event_stats, trace.metadata_stats):
        table = stats.table
        rows = np.flatnonzero(table["kind"] == TEXT)
        values = table["value"][rows]
        wanted = np.zeros(len(trace.strings), np.bool_)
        wanted[
            [value for value in np.unique(values).tolist() if needle in trace.strings.get(value).lower()]
        ] = True
        found.append(table["owner"][rows[wanted[values]]])
    return found[0], found[1]


def counts(trace: Trace, drawn: Timeline, found: Found) -> NameCounts:
    """How many events match, by name."""
    totals = name_totals(trace)
    chosen = np.flatnonzero((found.metadata != 0) & (totals[0] > 0))
    parts = [(trace.event_names[chosen], totals[0, chosen], totals[1, chosen], totals[3, chosen])]
    if len(found.events):
        events = np.flatnonzero(found.events)
        metadata = trace.events["metadata"][events]
        events, metadata = events[found.metadata[metadata] == 0], metadata[found.metadata[metadata] == 0]
        duration = trace.events["duration_ps"][events]
        parts.append(
            (drawn.names.of_events(events, metadata), np.ones(len(events), np.int64), duration, duration)
        )
    if found.derived.any():
        made = _derived_totals(trace)
        codes = np.flatnonzero((found.derived != 0) & (made[0] > 0))
        names = (codes + (drawn.names.n_names - len(drawn.made.texts))).astype(np.int32)
        parts.append((names, made[0, codes], made[1, codes], made[3, codes]))
    name, n, total, longest = (np.concatenate(column) for column in zip(*parts, strict=True))
    distinct, place = np.unique(name, return_inverse=True)
    sums = np.zeros((3, len(distinct)), np.int64)
    np.add.at(sums[0], place, n)
    np.add.at(sums[1], place, total)
    np.maximum.at(sums[2], place, longest)
    return NameCounts(distinct.astype(np.int32), sums[0], sums[1], sums[2])


def next_matches(
    trace: Trace, drawn: Timeline, found: Found, place: tuple[int, int], limit: int, backward: bool
) -> Int64s:
    """The first `limit` matching events after a place (start in ps, event), or with `backward` the last ones
    before it; in time order.

    Events of one start follow one another by their number.
    """
    parts = []
    for layer, names, wanted, extra in (
        (drawn.file, trace.events["metadata"], found.metadata, found.events),
        (drawn.derived, drawn.made.name, found.derived, np.zeros(0, np.uint8)),
    ):
        if layer.n_events and (wanted.any() or extra.any()):
            bounds = _bounds(layer, place, backward)
            parts.append(matches(names, wanted, extra, bounds, limit, backward) + layer.first_event)
    events = np.concatenate([np.empty(0, np.int64), *parts])
    start = starts_of(drawn, events)
    order = np.lexsort((events, start))
    chosen: Int64s = events[order[-limit:] if backward else order[:limit]]
    return chosen


def starts_of(drawn: Timeline, events: Int64s) -> Int64s:
    """Starts of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    start = np.empty(len(events), np.int64)
    start[~is_derived] = drawn.file.start_ps[events[~is_derived]]
    start[is_derived] = drawn.derived.start_ps[events[is_derived] - drawn.derived.first_event]
    return start


def durations_of(drawn: Timeline, events: Int64s) -> Int64s:
    """Durations of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    duration = np.empty(len(events), np.int64)
    duration[~is_derived] = drawn.file.duration_ps[events[~is_derived]]
    duration[is_derived] = drawn.derived.duration_ps[events[is_derived] - drawn.derived.first_event]
    return duration


def _bounds(layer: Layer, place: tuple[int, int], backward: bool) -> Int64s:
    """[first, last) of each line's events after the place, or before it."""
    start_ps, event = place
    bounds = np.empty((layer.n_lines, 2), np.int64)
    for line in range(layer.n_lines):
        first, last = int(layer.line_offsets[line]), int(layer.line_offsets[line + 1])
        here = layer.start_ps[first:last]
        left, right = (
            first + int(np.searchsorted(here, start_ps)),
            first + int(np.searchsorted(here, start_ps, side="right")),
        )
        after = min(max(event + 1 - layer.first_event, left), right)
        before = min(max(event - layer.first_event, left), right)
        bounds[line] = (first, before) if backward else (after, last)
    return bounds
