"""Matching events and a window on a screen → which of its boxes contain matches, and which pixels.

row         ▐█████▌ ▐▒▒▒▒▌ ▐▒▒▒▒▌        boxes of the window, as drawn
matches       1       3                  the number of matches in each: exact, however many there are
ruler       ▔▔▔▔▔▔▔ ▔ ▔▔                 pixels that a match covers, on any track
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.query.matching import Selection
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline

Int64s = npt.NDArray[np.int64]
Events = npt.NDArray[np.integer]


@dataclass(frozen=True)
class BoxHits:
    """Boxes with matches: index among all boxes of the lines, line within the layer, depth, and the number of
    matches. `n_boxes`: of all boxes.
    """

    box: Int64s
    line: Int64s
    depth: Int64s
    n: Int64s
    n_boxes: int


def of_layer(drawn: Timeline, layer: Layer, selection: Selection) -> Events:
    """The matches in a layer, on any of its lines, numbered within it, ascending."""
    if layer is drawn.derived:
        return selection.derived[selection.derived >= layer.first_event] - layer.first_event
    of_file = selection.derived[selection.derived < drawn.derived.first_event]
    return np.union1d(selection.recorded, of_file) if len(of_file) else selection.recorded


def box_hits(
    layer: Layer, lines: npt.NDArray[np.integer], matches: Events, window: tuple[int, int, int]
) -> BoxHits:
    """The boxes with matches of some lines of a layer. `matches` are numbered within the layer; the window is
    (start, end, pixel) in ps.
    """
    boxes = layer.rows.boxes(layer.rows_of(lines), *window)
    none = np.empty(0, np.int64)
    if not len(boxes) or not len(matches):
        return BoxHits(none, none, none, none, len(boxes))
    is_match = np.zeros(layer.n_events, np.bool_)
    is_match[matches] = True
    has_matches = np.diff(np.searchsorted(matches, layer.line_offsets)) > 0
    row, n_merged = boxes["row"], boxes["n_merged"]
    candidates = np.flatnonzero(has_matches[layer.row_line[row]])
    n = _matches_of_boxes(layer, row[candidates], n_merged[candidates], is_match, window[0])
    box = candidates[n > 0]
    return BoxHits(
        box.astype(np.int64),
        layer.row_line[row[box]].astype(np.int64),
        layer.row_depth[row[box]].astype(np.int64),
        n[n > 0],
        len(boxes),
    )


def _matches_of_boxes(
    layer: Layer,
    row: npt.NDArray[np.int32],
    n_merged: npt.NDArray[np.int32],
    is_match: npt.NDArray[np.bool_],
    start_ps: int,
) -> Int64s:
    """Number of matches in each box. The boxes of a row contain successive entries of `order`, the first of
    them the first event that ends after the window's start.
    """
    firsts = np.flatnonzero(np.append(True, row[1:] != row[:-1])[: len(row)])
    begin = layer.rows.first_ending_after(np.ascontiguousarray(row[firsts]), start_ps)
    ends = np.cumsum(n_merged, dtype=np.int64)
    before = ends - n_merged
    result = np.zeros(len(row), np.int64)
    for first, last, place in zip(
        firsts.tolist(), [*firsts[1:].tolist(), len(row)][: len(firsts)], begin.tolist(), strict=True
    ):
        count = int(ends[last - 1] - before[first])
        marks = is_match[layer.order[place : place + count]]
        result[first:last] = np.add.reduceat(marks, before[first:last] - before[first], dtype=np.int64)
    return result


def covered_pixels(drawn: Timeline, events: Events, window: tuple[int, int, int], n_pixels: int) -> Int64s:
    """Number of the events in each pixel of a window; an event is in every pixel that it touches."""
    start_ps, end_ps, pixel_ps = window
    start = columns.starts(drawn, events)
    end = start + np.maximum(columns.durations(drawn, events), 1)
    seen = np.flatnonzero((start < end_ps) & (end > start_ps))
    first = np.maximum(start[seen] - start_ps, 0) // pixel_ps
    last = np.minimum((end[seen] - 1 - start_ps) // pixel_ps, n_pixels - 1)
    change = np.bincount(first, minlength=n_pixels + 1)
    change[: n_pixels + 1] -= np.bincount(last + 1, minlength=n_pixels + 1)[: n_pixels + 1]
    return np.cumsum(change)[:n_pixels]
