"""What describes events in answers, and the question about utilization over the whole trace."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import durations_of, event_names, starts_of
from tb_tpuprof.analysis.timeline.totals import busy_fractions
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import Filled, Values, fill_scalars
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer import tables

Int64s = np.typing.NDArray[np.int64]
Answer = tuple[dict[str, Table], dict[str, Scalar]]
# Kinds of lines that count as busy on the minimap: those that show when something ran, not what it belonged
# to.
_BUSY_KINDS = frozenset(("hlo_ops", "stream", "thread", "python", "tf_data", "other", "async"))


def event_values(parts: list[tuple[HostView, Int64s]], chosen: Int64s | None = None) -> dict[str, Values]:
    """Values of the columns that describe events: of all in `parts`, or of the `chosen` positions among
    them.
    """
    event = np.concatenate([np.empty(0, np.int64), *(host.event_ids(events) for host, events in parts)])
    track = np.concatenate(
        [np.empty(0, np.int64), *(host.track_ids(lines_of(host, events)) for host, events in parts)]
    )
    start = np.concatenate(
        [
            np.empty(0, np.int64),
            *(starts_of(host.drawn, events) + host.offset_ps for host, events in parts),
        ]
    )
    duration = np.concatenate(
        [np.empty(0, np.int64), *(durations_of(host.drawn, events) for host, events in parts)]
    )
    picked = np.arange(len(event)) if chosen is None else chosen
    texts = [text for host, events in parts for text in names_of(host, events)]
    names = [texts[i] for i in picked.tolist()]
    return {
        "event": event[picked],
        "track": track[picked],
        "name": names,
        "start_ps": start[picked],
        "duration_ps": duration[picked],
    }


def names_of(host: HostView, events: Int64s) -> list[str]:
    """Names of events of either layer."""
    names = np.empty(len(events), np.int64)
    for layer, is_in_layer in _by_layer(host, events):
        names[is_in_layer] = event_names(
            host.trace, host.drawn, layer, events[is_in_layer] - layer.first_event
        )
    text = {name: host.drawn.names.text(name) for name in np.unique(names).tolist()}
    return [text[name] for name in names.tolist()]


def _by_layer(host: HostView, events: Int64s) -> tuple[tuple[Layer, np.typing.NDArray[np.bool_]], ...]:
    is_derived = events >= host.drawn.derived.first_event
    return (host.drawn.file, ~is_derived), (host.drawn.derived, is_derived)


def lines_of(host: HostView, events: Int64s) -> Int64s:
    """Lines of events of either layer."""
    lines = np.empty(len(events), np.int64)
    for layer, is_in_layer in _by_layer(host, events):
        lines[is_in_layer] = layer.line_of(events[is_in_layer] - layer.first_event) + layer.first_line
    return lines


def minimap_answer(view: View, params: Params) -> Answer:
    """Utilization of each section in each of `width_px` parts of the whole trace."""
    width_px = int(params["width_px"])
    pixel_ps = max(1, -(-view.duration_ps // width_px))
    rows: list[tuple[str, str, Int64s, np.typing.NDArray[np.float64]]] = []
    for host in view.hosts:
        sections: dict[str, list[int]] = {}
        for track in host.tracks:
            if track.kind in _BUSY_KINDS and not track.is_derived:
                sections.setdefault(track.section, []).append(track.line)
        for section, lines in sections.items():
            shares = busy_fractions(host.drawn, np.array(lines), pixel_ps, width_px, -host.offset_ps)
            pixels = np.flatnonzero(shares)
            rows.append((host.host, section, pixels.astype(np.int64), shares[pixels]))
    density: Filled = {
        "host": [host for host, _, pixels, _ in rows for _ in range(len(pixels))],
        "section": [section for _, section, pixels, _ in rows for _ in range(len(pixels))],
        "pixel": np.concatenate([np.empty(0, np.int64), *(row[2] for row in rows)]),
        "busy_fraction": np.concatenate([np.empty(0), *(row[3] for row in rows)]),
    }
    values = {"trace_duration_ps": view.duration_ps, "pixel_ps": pixel_ps, "n_pixels": width_px}
    return {"density": tables.DENSITY.fill(density)}, fill_scalars(tables.MINIMAP_SCALARS, values)
