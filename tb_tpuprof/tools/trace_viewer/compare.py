"""Two windows of the timeline, A and B → their totals by name or by track, and the differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.totals import Stretch, totals
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.native import range_totals, repeated
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.spec import fill_scalars
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer.mark_tables import COMPARED, COMPARED_SCALARS
from tb_tpuprof.tools.trace_viewer.question import Answer
from tb_tpuprof.tools.trace_viewer.window import layers_of

_N, _TOTAL, _SELF = range(3)


@dataclass(frozen=True)
class _Key:
    """What a row stands for: a name (`track` -1), or a track, whose name may not be the only one."""

    name: str
    track: int = -1


Sums = dict[_Key, list[int]]  # number of events, total and self time in ps


def compare_answer(view: View, params: Params) -> Answer:
    """A and B by name or track, over the chosen tracks; absent tracks: all but the derived ones.

    Raises BadParameter, EventNotFound.
    """
    by_track = params["by"] == "track"
    windows = [_window(params, prefix) for prefix in ("a", "b")]
    chosen_ids = str(params.get("tracks", ""))
    of_a, of_b = (_sums(view, window, chosen_ids, by_track) for window in windows)
    none = [0, 0, 0]
    pairs = [(key, of_a.get(key, none), of_b.get(key, none)) for key in dict.fromkeys((*of_a, *of_b))]
    pairs.sort(key=lambda pair: (-abs(pair[2][_SELF] - pair[1][_SELF]), -pair[2][_TOTAL], pair[0].name))
    a, b = (np.array([pair[i] for pair in pairs], np.int64).reshape(-1, 3).T for i in (1, 2))
    columns = {
        "name": [key.name for key, _, _ in pairs],
        "track": np.array([key.track for key, _, _ in pairs], np.int64),
        "self_a_ps": a[_SELF],
        "self_b_ps": b[_SELF],
        "self_difference_ps": b[_SELF] - a[_SELF],
        "total_a_ps": a[_TOTAL],
        "total_b_ps": b[_TOTAL],
        "total_difference_ps": b[_TOTAL] - a[_TOTAL],
        "n_a": a[_N],
        "n_b": b[_N],
    }
    length_a, length_b = (end_ps - start_ps for start_ps, end_ps in windows)
    values = {
        "length_a_ps": length_a,
        "length_b_ps": length_b,
        "length_difference_ps": length_b - length_a,
        "n_events_a": int(a[_N].sum()),
        "n_events_b": int(b[_N].sum()),
    }
    return {"compared": COMPARED.fill(columns)}, fill_scalars(COMPARED_SCALARS, values)


def _window(params: Params, prefix: str) -> tuple[int, int]:
    start_ps, end_ps = (int(params[f"{prefix}_{name}"]) for name in ("start_ps", "end_ps"))
    if end_ps <= start_ps:
        raise BadParameter(f"{prefix}_end_ps", end_ps, f"more than {prefix}_start_ps, which is {start_ps}")
    return start_ps, end_ps


def _sums(view: View, window: tuple[int, int], chosen_ids: str, by_track: bool) -> Sums:
    sums: Sums = {}
    for host, tracks in view.chosen_tracks(chosen_ids):
        # Derived lines would count time twice.
        chosen = [track for track in tracks if chosen_ids or not track.is_derived]
        stretch = Stretch(window[0] - host.offset_ps, window[1] - host.offset_ps)
        for layer, lines in layers_of(host, chosen):
            add = _add_tracks if by_track else _add_names
            add(sums, host, layer, lines, stretch)
    return sums


def _add_names(
    sums: Sums, host: HostView, layer: Layer, lines: npt.NDArray[np.int64], stretch: Stretch
) -> None:
    made = totals(host.trace, host.drawn, layer, lines, stretch)
    columns = (column.tolist() for column in (made.name, made.n, made.total_ps, made.self_ps))
    for name, *values in zip(*columns, strict=True):
        row = sums.setdefault(_Key(host.drawn.names.text(name)), [0, 0, 0])
        row[:] = [before + value for before, value in zip(row, values, strict=True)]


def _add_tracks(
    sums: Sums, host: HostView, layer: Layer, lines: npt.NDArray[np.int64], stretch: Stretch
) -> None:
    line_of = repeated(np.arange(layer.n_lines, dtype=np.int32), np.diff(layer.line_offsets))
    columns = layer.start_ps, layer.duration_ps, line_of, layer.depth
    spans = layer.spans_within(lines, stretch.start_ps, stretch.end_ps)
    made = range_totals(
        columns,
        spans,
        stretch.start_ps,
        stretch.end_ps,
        stretch.depth_from,
        stretch.depth_to,
        layer.n_lines,
    )
    names = {track.line: f"{track.section} · {track.name}" for track in host.tracks}
    for line in lines[made[0, lines] > 0].tolist():
        number = layer.first_line + line
        key = _Key(names[number], int(host.track_ids(number)))
        sums[key] = [int(made[row, line]) for row in (_N, _TOTAL, _SELF)]
