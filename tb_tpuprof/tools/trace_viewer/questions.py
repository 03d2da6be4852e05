"""Questions about the timeline's events: search, totals of a range, utilization over the whole trace."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.query.grammar import plain
from tb_tpuprof.analysis.query.grouping import grouped
from tb_tpuprof.analysis.query.spans import Parts
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import durations_of, event_names, starts_of
from tb_tpuprof.analysis.timeline.totals import Stretch, busy_fractions, totals
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import Filled, TableSpec, Values, fill_scalars
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer import tables
from tb_tpuprof.tools.trace_viewer.selection import Matches, first_rows, matches_of
from tb_tpuprof.tools.trace_viewer.window import layers_of, window_of

Int64s = np.typing.NDArray[np.int64]
Answer = tuple[dict[str, Table], dict[str, Scalar]]
MAX_TEXT = 1000
# Kinds of lines that count as busy on the minimap: those that show when something ran, not what it belonged
# to.
_BUSY_KINDS = frozenset(("hlo_ops", "stream", "thread", "python", "tf_data", "other", "async"))


def search_answer(view: View, params: Params) -> Answer:
    """Matching events in time order, and their names: of recorded tracks and, apart, of derived ones. Raises
    BadParameter, EventNotFound.
    """
    text = str(params["text"])
    if len(text) > MAX_TEXT:
        raise BadParameter("text", text, f"a text of at most {MAX_TEXT} characters")
    if "after_event" in params and "before_event" in params:
        raise BadParameter("before_event", params["before_event"], "only one of after_event and before_event")
    matches = matches_of(view, {}, plain(text, bool(params["in_args"])))
    recorded, derived = (_by_name(matches, is_derived) for is_derived in (False, True))
    answer = {
        "matches": _matches_table(view, matches, params),
        "names": _names_table(tables.NAMES, recorded),
        "derived_names": _names_table(tables.DERIVED_NAMES, derived),
    }
    values = {"n_matches": matches.n_recorded, "n_names": len(recorded), "n_derived": matches.n_derived}
    return answer, fill_scalars(tables.SEARCH_SCALARS, values)


def _by_name(matches: Matches, is_derived: bool) -> dict[str, list[int]]:
    """Number, total and longest of the matches by name, of all hosts."""
    by_name: dict[str, list[int]] = {}
    for host in matches.hosts:
        events = host.selection.derived if is_derived else host.selection.recorded
        duration = columns.durations(host.timeline.drawn, events)
        groups = grouped(host.timeline, Parts(events, duration, duration), "name")
        rows = (column.tolist() for column in (groups.n, groups.total_ps, groups.max_ps))
        for name, n, total_ps, max_ps in zip(groups.texts, *rows, strict=True):
            row = by_name.setdefault(name, [0, 0, 0])
            row[:] = row[0] + n, row[1] + total_ps, max(row[2], max_ps)
    return by_name


def _names_table(spec: TableSpec, by_name: dict[str, list[int]]) -> Table:
    ordered = sorted(by_name.items(), key=lambda pair: (-pair[1][1], pair[0]))
    n, total_ps, max_ps = (np.array([row[i] for _, row in ordered], np.int64) for i in range(3))
    return spec.fill({"name": [name for name, _ in ordered], "n": n, "total_ps": total_ps, "max_ps": max_ps})


def _matches_table(view: View, matches: Matches, params: Params) -> Table:
    """The matches of all hosts after (or before) an event, merged in time order; ties by their ids."""
    limit, is_backward = int(params["limit"]), "before_event" in params
    start_ps, event_id = _place(view, params)
    parts: list[tuple[HostView, Int64s]] = []
    for host in matches.hosts:
        start, ids = host.starts(host.events), host.view.event_ids(host.events)
        if is_backward:
            is_next = (start < start_ps) | ((start == start_ps) & (ids < event_id))
        else:
            is_next = (start > start_ps) | ((start == start_ps) & (ids > event_id))
        rows = np.flatnonzero(is_next)
        first = first_rows(-start[rows] if is_backward else start[rows], limit, is_backward)
        parts.append((host.view, host.events[rows[first]].astype(np.int64)))
    start = np.concatenate([starts_of(host.drawn, events) + host.offset_ps for host, events in parts])
    event = np.concatenate([host.event_ids(events) for host, events in parts])
    order = np.lexsort((event, start))
    return tables.MATCHES.fill(event_values(parts, order[-limit:] if is_backward else order[:limit]))


def _place(view: View, params: Params) -> tuple[int, int]:
    """(time in the view, global id) to search after or before; before everything by default."""
    event_id = params.get("before_event", params.get("after_event"))
    if event_id is None:
        return -(2**60), -1
    host, event = view.host_of_event(int(event_id))
    return host.offset_ps + int(starts_of(host.drawn, np.array([event]))[0]), int(event_id)


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


def totals_answer(view: View, params: Params) -> Answer:
    """Time by name in a window, over the chosen tracks and depths; absent tracks: all but the
    derived ones.
    """
    window = window_of(view, params)
    low, high = int(params["depth_from"]), int(params["depth_to"])
    if high < low:
        raise BadParameter("depth_to", high, f"at least depth_from, which is {low}")
    by_name: dict[str, list[int]] = {}
    chosen_ids = str(params.get("tracks", ""))
    for host, tracks in view.chosen_tracks(chosen_ids):
        chosen = [
            track for track in tracks if chosen_ids or not track.is_derived
        ]  # derived lines would count time twice
        stretch = Stretch(window.start_ps - host.offset_ps, window.end_ps - host.offset_ps, low, high)
        for layer, lines in layers_of(host, chosen):
            sums = totals(host.trace, host.drawn, layer, lines, stretch)
            values = (
                column.tolist()
                for column in (sums.name, sums.n, sums.total_ps, sums.self_ps, sums.min_ps, sums.max_ps)
            )
            for name, n, total_ps, self_ps, min_ps, max_ps in zip(*values, strict=True):
                row = by_name.setdefault(host.drawn.names.text(name), [0, 0, 0, min_ps, 0])
                row[:] = (
                    row[0] + n,
                    row[1] + total_ps,
                    row[2] + self_ps,
                    min(row[3], min_ps),
                    max(row[4], max_ps),
                )
    ordered = sorted(by_name.items(), key=lambda pair: (-pair[1][1], pair[0]))
    n, name_total_ps, name_self_ps, shortest, longest = (
        np.array([row[i] for _, row in ordered], np.int64) for i in range(5)
    )
    filled: Filled = {
        "name": [name for name, _ in ordered],
        "n": n,
        "total_ps": name_total_ps,
        "self_ps": name_self_ps,
        "avg_ps": name_total_ps / np.maximum(n, 1),
        "min_ps": shortest,
        "max_ps": longest,
    }
    scalars = {"n_events": int(n.sum()), "range_ps": window.end_ps - window.start_ps}
    return {"totals": tables.TOTALS.fill(filled)}, fill_scalars(tables.TOTALS_SCALARS, scalars)


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
