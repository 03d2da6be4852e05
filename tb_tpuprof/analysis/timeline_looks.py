"""Trace → what its boxes look like: the track, depth, name and family of whatever box of a layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.timeline import Timeline, timeline
from tb_tpuprof.analysis.timeline_layers import Layer
from tb_tpuprof.analysis.timeline_names import FAMILY_OF_KIND, Family, first_more
from tb_tpuprof.analysis.timeline_tracks import tracks
from tb_tpuprof.native import Looks
from tb_tpuprof.threads import N_THREADS, side_by_side
from tb_tpuprof.trace.trace import Trace

_MANY_EVENTS = 50_000  # below this a thread costs more than it saves
_BY_NAME = 255  # the family of a line whose events have families of their own


@once
def looks(trace: Trace) -> tuple[Looks, Looks]:
    """Looks of boxes of the file's layer and of the derived one."""
    drawn = timeline(trace)
    names, made = drawn.names, drawn.made
    file = Looks(
        (drawn.file.row_line, drawn.file.row_depth),
        trace.events["metadata"],
        (names.of_metadata, names.family_of_metadata, names.has_own.view(np.uint8)),
        _line_families(trace, drawn.file, _BY_NAME),
    )
    more = (first_more(names, made.texts) + np.arange(len(made.texts))).astype(np.int32)
    none = np.zeros(len(more), np.uint8)
    own = drawn.derived
    return file, Looks((own.row_line, own.row_depth), made.name, (more, none, none), _line_families(trace, own, Family.XLA_OP))


def _line_families(trace: Trace, layer: Layer, default: int) -> npt.NDArray[np.uint8]:
    """The family that a line gives to all of its boxes; derived lines of the file are XLA's too."""
    of_line = np.full(layer.n_lines, default, np.uint8)
    for track in tracks(trace):
        line = track.line - layer.first_line
        if 0 <= line < layer.n_lines and track.kind != "counter":
            of_line[line] = FAMILY_OF_KIND.get(track.kind, Family.XLA_OP if track.is_derived else default)
    return of_line


def box_columns(
    trace: Trace, drawn: Timeline, layer: Layer, lines: npt.NDArray[np.integer], start_ps: int, end_ps: int, pixel_ps: int
) -> npt.NDArray[np.int64]:
    """Boxes of some lines of a layer in a window: rows line, depth, start, duration, longest, name, family, event, n_merged.

    Lines, times and events are the layer's own. See `native.Rows.boxes` and `native.Looks.fill`.
    """
    look = looks(trace)[layer is drawn.derived]
    parts = _parts(layer, layer.rows_of(lines), start_ps, end_ps)
    found = side_by_side(lambda rows: layer.rows.boxes(rows, start_ps, end_ps, pixel_ps), parts)
    ends = np.cumsum([0, *(len(part) for part in found)]).tolist()
    columns, marks = np.empty((9, ends[-1]), np.int64), np.empty(ends[-1], np.uint8)
    spans = zip(found, ends[:-1], ends[1:], strict=True)
    side_by_side(lambda s: look.fill(columns[:, s[1] : s[2]], marks[s[1] : s[2]], s[0], start_ps, pixel_ps), spans)
    own = np.flatnonzero(marks)
    if len(own):
        event = columns[7, own]
        name = drawn.names.of_events(event, trace.events["metadata"][event])
        columns[5, own] = name
        numbered = own[name >= len(drawn.names.strings)]
        line_family = _line_families(trace, layer, _BY_NAME)[columns[0, numbered]]
        columns[6, numbered] = np.where(line_family == _BY_NAME, Family.STEP, line_family)
    return columns


def _parts(layer: Layer, rows: npt.NDArray[np.int32], start_ps: int, end_ps: int) -> list[npt.NDArray[np.int32]]:
    """The rows in as many parts of about equally many events as there are processors, where the window holds many."""
    share = (end_ps - start_ps) / max(int(layer.start_ps[-1]), 1) if layer.n_events else 0.0
    n = min(2 * N_THREADS, len(rows))  # what one has left when the other is done is little then
    if N_THREADS < 2 or n < 2 or layer.n_events * share < _MANY_EVENTS:
        return [rows]
    weight = np.cumsum(layer.row_offsets[rows + 1] - layer.row_offsets[rows])
    return np.split(rows, np.searchsorted(weight, [weight[-1] * i // n for i in range(1, n)]) + 1)
