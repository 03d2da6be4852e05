"""Trace → columns of its boxes: the track, depth, name and family of every box of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.names import FAMILY_OF_KIND, Family, first_more
from tb_tpuprof.analysis.timeline.timeline import timeline
from tb_tpuprof.analysis.timeline.tracks import tracks
from tb_tpuprof.native import BoxStyles
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.splitting import split_evenly
from tb_tpuprof.parallel.threads import n_threads, run_in_parallel
from tb_tpuprof.trace.trace import Trace

_BY_NAME = 255  # marks a line whose events get their families by name


@once
def box_styles(trace: Trace) -> tuple[BoxStyles, BoxStyles]:
    """Style tables of the boxes: of the file's layer and of the derived one."""
    drawn = timeline(trace)
    names, derived_events = drawn.names, drawn.derived_events
    file = BoxStyles(
        (drawn.file.row_line, drawn.file.row_depth),
        trace.events["metadata"],
        (names.of_metadata, names.family_of_metadata, names.has_own.view(np.uint8)),
        _line_families(trace, drawn.file, _BY_NAME),
        (names.own_event, names.own_name, Family.STEP),
    )
    more = (first_more(names, derived_events.texts) + np.arange(len(derived_events.texts))).astype(np.int32)
    none = np.zeros(len(more), np.uint8)
    layer = drawn.derived
    families = _line_families(trace, layer, Family.XLA_OP)
    return file, BoxStyles(
        (layer.row_line, layer.row_depth),
        derived_events.name,
        (more, none, none),
        families,
        (names.own_event[:0], names.own_name[:0], 0),
    )


def _line_families(trace: Trace, layer: Layer, default: int) -> npt.NDArray[np.uint8]:
    """The family that a line gives all of its boxes; derived lines in the file are XLA's too."""
    of_line = np.full(layer.n_lines, default, np.uint8)
    for track in tracks(trace):
        line = track.line - layer.first_line
        if 0 <= line < layer.n_lines and track.kind != "counter":
            of_line[line] = FAMILY_OF_KIND.get(track.kind, Family.XLA_OP if track.is_derived else default)
    return of_line


@dataclass(frozen=True)
class Boxes:
    """Columns of boxes: `longs` are line, start, duration, longest, event; `ints` are depth, name, n_merged;
    `seen` marks the names in use.
    """

    longs: npt.NDArray[np.int64]
    ints: npt.NDArray[np.int32]
    family: npt.NDArray[np.uint8]
    seen: npt.NDArray[np.uint8]


def box_columns(
    trace: Trace,
    layer: Layer,
    lines: npt.NDArray[np.integer],
    window: tuple[int, int, int],
    shifts: tuple[int, int, int],
) -> Boxes:
    """Boxes of some lines of a layer in a window (start, end and pixel in ps; times and lines are the layer's
    own).

    `shifts` are added to the returned lines, times and events. See `native.Rows.boxes` and
    `native.BoxStyles.fill`.
    """
    start_ps, end_ps, pixel_ps = window
    drawn = timeline(trace)
    style = box_styles(trace)[layer is drawn.derived]
    parts = _parts(layer, layer.rows_of(lines), start_ps, end_ps)
    box_parts = run_in_parallel(lambda rows: layer.rows.boxes(rows, start_ps, end_ps, pixel_ps), parts)
    ends = np.cumsum([0, *(len(part) for part in box_parts)]).tolist()
    n = ends[-1]
    boxes = Boxes(
        np.empty((5, n), np.int64),
        np.empty((3, n), np.int32),
        np.empty(n, np.uint8),
        np.zeros(drawn.names.n_names, np.uint8),
    )

    def fill(span: tuple[npt.NDArray[Any], int, int]) -> None:
        part, a, b = span
        style.fill(
            (boxes.longs[:, a:b], boxes.ints[:, a:b], boxes.family[a:b]),
            part,
            (start_ps, pixel_ps),
            shifts,
            boxes.seen,
        )

    run_in_parallel(fill, zip(box_parts, ends[:-1], ends[1:], strict=True))
    return boxes


def _parts(
    layer: Layer, rows: npt.NDArray[np.int32], start_ps: int, end_ps: int
) -> list[npt.NDArray[np.int32]]:
    """Split the rows into parts with about equal numbers of events, several per thread, if the window has
    many events.
    """
    share = (end_ps - start_ps) / max(int(layer.start_ps[-1]), 1) if layer.n_events else 0.0
    if n_threads() < 2 or layer.n_events * share < POLICY.min_parallel_drawn_events:
        return [rows]
    n_events = layer.row_offsets[rows + 1] - layer.row_offsets[rows]
    parts = split_evenly(n_events, POLICY.parts_per_thread * n_threads())
    return [rows[part.start : part.stop] for part in parts]
