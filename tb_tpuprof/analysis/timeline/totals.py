"""Summaries of the timeline: a range of some tracks by name, the durations of all events of a name, and the
utilization of a section over the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline
from tb_tpuprof.native import histogram, nest, range_totals, tally
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
N_BINS = 24


@once
def name_totals(trace: Trace) -> Int64s:
    """Count, total, shortest and longest duration in ps (rows 0 … 3) of the events of each metadata row."""
    result: Int64s = tally(trace.events["metadata"], trace.events["duration_ps"], len(trace.metadata))
    return result


@dataclass(frozen=True)
class Stretch:
    """A time range in ps on the trace's clock, and the depths to include (both ends inclusive)."""

    start_ps: int
    end_ps: int
    depth_from: int = 0
    depth_to: int = 65_535


@dataclass(frozen=True)
class NameTotals:
    """By name: the number of events, and of their parts within the range the sum, the self time, the shortest
    and the longest, in ps.
    """

    name: npt.NDArray[np.int32]
    n: Int64s
    total_ps: Int64s
    self_ps: Int64s
    min_ps: Int64s
    max_ps: Int64s


def totals(
    trace: Trace, drawn: Timeline, layer: Layer, lines: npt.NDArray[np.integer], stretch: Stretch
) -> NameTotals:
    """Totals of some lines of a layer in a range, by name. Steps have their plain name, without number."""
    is_file = layer is drawn.file
    key = trace.events["metadata"] if is_file else drawn.derived_events.name
    n_keys = len(trace.metadata) if is_file else len(drawn.derived_events.texts)
    spans = layer.spans_within(lines, stretch.start_ps, stretch.end_ps)
    columns = layer.start_ps, layer.duration_ps, key, layer.depth
    sums = range_totals(
        columns, spans, stretch.start_ps, stretch.end_ps, stretch.depth_from, stretch.depth_to, n_keys
    )
    keys = np.flatnonzero(sums[0])
    first = len(drawn.names.strings) + len(drawn.names.more) - len(drawn.derived_events.texts)
    names = trace.event_names[keys] if is_file else (keys + first).astype(np.int32)
    return _by_name(names, sums[:, keys])


def _by_name(names: npt.NDArray[np.int32], key_sums: Int64s) -> NameTotals:
    """Merge rows of equal names: planes and lines number their metadata separately."""
    distinct, name_index = np.unique(names, return_inverse=True)
    sums = np.zeros((5, len(distinct)), np.int64)
    sums[3] = np.iinfo(np.int64).max
    for row in range(3):
        np.add.at(sums[row], name_index, key_sums[row])
    np.minimum.at(sums[3], name_index, key_sums[3])
    np.maximum.at(sums[4], name_index, key_sums[4])
    return NameTotals(distinct.astype(np.int32), *sums)


@dataclass(frozen=True)
class SameName:
    """All events of a name: their number, durations in ps, and how many last from edges[k] up to edges[k + 1]
    (the last inclusive).
    """

    n: int
    total_ps: int
    min_ps: int
    max_ps: int
    edges: Int64s
    counts: Int64s


def same_name(trace: Trace, drawn: Timeline, event: int) -> SameName:
    """Statistics of all events with this event's name (for steps without their number), in up to 24 bins of
    equal ratio.
    """
    if event >= drawn.derived.first_event:
        name = drawn.derived_events.name[event - drawn.derived.first_event]
        is_same = drawn.derived_events.name == name
        duration = drawn.derived_events.duration_ps[is_same]
        bounds = len(duration), int(duration.sum()), int(duration.min()), int(duration.max())
        edges = bin_edges(bounds[2], bounds[3])
        counts = histogram(np.zeros(len(duration), np.int32), duration, np.ones(1, np.uint8), edges)
        return SameName(*bounds, edges, counts)
    has_name = trace.event_names == trace.event_names[trace.events["metadata"][event]]
    metadata_totals = name_totals(trace)[:, has_name]
    metadata_totals = metadata_totals[:, metadata_totals[0] > 0]
    low, high = int(metadata_totals[2].min()), int(metadata_totals[3].max())
    edges = bin_edges(low, high)
    counts = histogram(
        trace.events["metadata"], trace.events["duration_ps"], has_name.astype(np.uint8), edges
    )
    return SameName(int(metadata_totals[0].sum()), int(metadata_totals[1].sum()), low, high, edges, counts)


def bin_edges(low: int, high: int) -> Int64s:
    """Edges of at most 24 bins of equal ratio from `low` to `high` (ps), distinct whole numbers; at least one
    bin.
    """
    if high <= low:
        return np.array([low, high + 1], np.int64)
    edges = np.geomspace(max(low, 1), high, N_BINS + 1)
    distinct = np.unique(np.append(np.round(edges).astype(np.int64), [low, high]))
    return (
        distinct[np.append(True, np.diff(distinct) > 0)][: N_BINS + 1]
        if len(distinct) <= N_BINS + 1
        else _drop_inner_edges(distinct)
    )


def _drop_inner_edges(edges: Int64s) -> Int64s:
    """Drop inner edges until at most 25 remain."""
    surplus = len(edges) - (N_BINS + 1)
    return np.concatenate((edges[:1], edges[1 + surplus :]))


def self_time(drawn: Timeline, event: int) -> int:
    """Duration in ps of an event without the events directly inside it, on its line."""
    layer = drawn.layer_of(event)
    local = event - layer.first_event
    last = int(layer.line_offsets[int(layer.line_of(np.array([local]))[0]) + 1])
    end = int(layer.start_ps[local] + max(layer.duration_ps[local], 1))
    last = local + int(np.searchsorted(layer.start_ps[local:last], end))
    start = layer.start_ps[local:last]
    _, self_ps = nest(start, start + layer.duration_ps[local:last], np.array([0, last - local]))
    return int(self_ps[0])


def ancestors(drawn: Timeline, event: int, limit: int) -> list[int]:
    """Events of the same line that contain an event, innermost first."""
    layer, row, _ = drawn.row_of(event)
    local = event - layer.first_event
    start, end = int(layer.start_ps[local]), int(layer.start_ps[local] + layer.duration_ps[local])
    line = int(layer.row_line[row])
    rows = np.arange(layer.first_row[line], row, dtype=np.int32)
    places = layer.rows.first_ending_after(rows, max(end - 1, start))
    candidates = [
        int(layer.order[position])
        for i, position in enumerate(places.tolist())
        if position < layer.row_offsets[rows[i] + 1]
    ]
    containing = [
        e
        for e in candidates
        if e < local and layer.start_ps[e] <= start and layer.start_ps[e] + layer.duration_ps[e] >= end
    ]
    return [layer.first_event + e for e in containing[::-1][:limit]]


def neighbour(drawn: Timeline, event: int, is_next: bool) -> int:
    """The event after (or before) an event on its track and depth, else on its track; -1 at the end of the
    track.
    """
    layer, row, position = drawn.row_of(event)
    position += 1 if is_next else -1
    if layer.row_offsets[row] <= position < layer.row_offsets[row + 1]:
        return layer.first_event + int(layer.order[position])
    line = int(layer.row_line[row])
    local = event - layer.first_event + (1 if is_next else -1)
    return (
        layer.first_event + local if layer.line_offsets[line] <= local < layer.line_offsets[line + 1] else -1
    )


def first_within(drawn: Timeline, event: int) -> int:
    """The first event directly below an event on its track, among those that start within it; -1 if there
    is none.
    """
    layer, row, _ = drawn.row_of(event)
    inner = row + 1
    if inner >= len(layer.row_line) or layer.row_line[inner] != layer.row_line[row]:
        return -1
    local = event - layer.first_event
    start, end = int(layer.start_ps[local]), int(layer.start_ps[local] + layer.duration_ps[local])
    (place,) = layer.rows.first_ending_after(np.array([inner], np.int32), start).tolist()
    for position in range(place, min(place + 2, int(layer.row_offsets[inner + 1]))):
        candidate = int(layer.order[position])
        if start <= layer.start_ps[candidate] < max(end, start + 1):
            return layer.first_event + candidate
    return -1


def busy_fractions(
    drawn: Timeline, lines: npt.NDArray[np.integer], pixel_ps: int, n_pixels: int, begin_ps: int
) -> npt.NDArray[np.float64]:
    """Share of each pixel that the outermost events of the file's lines cover, the mean over the lines."""
    rows = drawn.file.first_row[lines].astype(np.int32)
    covered = drawn.file.rows.busy(rows, begin_ps, pixel_ps, n_pixels)
    shares: npt.NDArray[np.float64] = np.minimum(covered / (pixel_ps * max(len(rows), 1)), 1.0)
    return shares
