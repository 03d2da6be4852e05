"""A window of the timeline → its events as CSV, one row for each, by host, track and time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import event_names
from tb_tpuprof.errors import TooLarge
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.spreadsheet import cell_text
from tb_tpuprof.tools.trace_hosts import HostView, open_view
from tb_tpuprof.tools.trace_viewer.window import Window, layer_of_line, window_of

MAX_ROWS = 2_000_000
HEADER = ("event", "host", "section", "track", "depth", "name", "start_ps", "duration_ps")
_CHUNK_ROWS = 1 << 15
Int64s = npt.NDArray[np.int64]
# A track's host, the layer it is in, its section and name, and its events in the window, numbered within the
# layer.
_Part = tuple[HostView, Layer, str, str, Int64s]


def events_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterator[bytes]]:
    """The run's name, and the file in parts. Without `tracks`, derived tracks are left out: they repeat the
    time of the recorded ones.

    Takes start_ps, end_ps, tracks, depth_from and depth_to. Raises what `open_view` raises, BadParameter and
    TooLarge.
    """
    opened = open_view(session, hosts)
    window = window_of(opened, params)
    chosen_ids = str(params.get("tracks", ""))
    parts: list[_Part] = []
    for host, tracks in opened.chosen_tracks(chosen_ids):
        for track in tracks:
            layer = layer_of_line(host, track.line)
            if layer is not None and (chosen_ids or not track.is_derived):
                events = _inside(host, layer, track.line - layer.first_line, window)
                parts.append((host, layer, track.section, track.name, events))
    n_total = sum(len(part[4]) for part in parts)
    if n_total > MAX_ROWS:
        raise TooLarge(
            f"The window contains {n_total:,} events; a CSV file can have at most {MAX_ROWS:,}.",
            "Narrow the window (start_ps, end_ps), or choose fewer tracks or hosts.",
        )
    return session.run, _texts(parts)


def _inside(host: HostView, layer: Layer, line: int, window: Window) -> Int64s:
    """Events of a line that overlap the window, at the window's depths."""
    start_ps, end_ps = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps
    first, last = layer.spans_within(np.array([line]), start_ps, end_ps)[0].tolist()
    start, duration, depth = (
        column[first:last] for column in (layer.start_ps, layer.duration_ps, layer.depth)
    )
    is_inside = start + np.maximum(duration, 1) > start_ps
    is_inside &= (depth >= window.depth_from) & (depth <= window.depth_to)
    events: Int64s = np.flatnonzero(is_inside) + first
    return events


def _texts(parts: list[_Part]) -> Iterator[bytes]:
    yield (",".join(HEADER) + "\n").encode()
    for host, layer, section, track, events in parts:
        known: dict[int, str] = {}
        places = [cell_text(text) for text in (host.host, section, track)]
        for begin in range(0, len(events), _CHUNK_ROWS):
            chunk = events[begin : begin + _CHUNK_ROWS]
            yield _rows(host, layer, places, chunk, known)


def _rows(host: HostView, layer: Layer, places: list[str], events: Int64s, known: dict[int, str]) -> bytes:
    """Rows of one track; `known` holds the texts of names so far."""
    names = event_names(host.trace, host.drawn, layer, events)
    for name in np.unique(names).tolist():
        if name not in known:
            known[name] = cell_text(host.drawn.names.text(name))
    out = io.StringIO()
    columns = (
        host.event_ids(events + layer.first_event).tolist(),
        *([place] * len(events) for place in places),
        layer.depth[events].tolist(),
        [known[name] for name in names.tolist()],
        (layer.start_ps[events] + host.offset_ps).tolist(),
        layer.duration_ps[events].tolist(),
    )
    csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
    return out.getvalue().encode("utf-8", "replace")
