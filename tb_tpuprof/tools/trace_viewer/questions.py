"""Questions about the timeline's events: search, totals of a range, utilization over the whole trace."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.timeline import search as searching
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import event_names
from tb_tpuprof.analysis.timeline.totals import Stretch, busy_fractions, totals
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import Filled, Values, fill_scalars
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer import tables
from tb_tpuprof.tools.trace_viewer.window import layers_of, window_of

Int64s = np.typing.NDArray[np.int64]
Answer = tuple[dict[str, Table], dict[str, Scalar]]
MAX_TEXT = 1000
# Kinds of lines that count as busy on the minimap: those that show when something ran, not what it belonged
# to.
_BUSY_KINDS = frozenset(("hlo_ops", "stream", "thread", "python", "tf_data", "other", "async"))


def search_answer(view: View, params: Params) -> Answer:
    """Matching events in time order, and their names. Raises BadParameter, EventNotFound."""
    text = str(params["text"])
    if len(text) > MAX_TEXT:
        raise BadParameter("text", text, f"a text of at most {MAX_TEXT} characters")
    if "after_event" in params and "before_event" in params:
        raise BadParameter("before_event", params["before_event"], "only one of after_event and before_event")
    limit, is_backward = int(params["limit"]), "before_event" in params
    place = _place(view, params)
    by_name: dict[str, list[int]] = {}
    parts: list[tuple[HostView, Int64s]] = []
    for host in view.hosts:
        matches = searching.find(host.trace, host.drawn, text, bool(params["in_args"]))
        _add_counts(by_name, host, searching.counts(host.trace, host.drawn, matches))
        host_place = (place[0] - host.offset_ps, place[1] - int(host.event_ids(0)))
        parts.append(
            (host, searching.next_matches(host.trace, host.drawn, matches, host_place, limit, is_backward))
        )
    answer = {"matches": _matches_table(parts, limit, is_backward), "names": _names_table(by_name)}
    values = {"n_matches": sum(row[0] for row in by_name.values()), "n_names": len(by_name)}
    return answer, fill_scalars(tables.SEARCH_SCALARS, values)


def _place(view: View, params: Params) -> tuple[int, int]:
    """(time in the view, global id) to search after or before; before everything by default."""
    event_id = params.get("before_event", params.get("after_event"))
    if event_id is None:
        return -(2**60), -1
    host, event = view.host_of_event(int(event_id))
    return host.offset_ps + int(searching.starts_of(host.drawn, np.array([event]))[0]), int(event_id)


def _add_counts(by_name: dict[str, list[int]], host: HostView, counted: searching.NameCounts) -> None:
    columns = (column.tolist() for column in (counted.name, counted.n, counted.total_ps, counted.max_ps))
    for name, n, total_ps, max_ps in zip(*columns, strict=True):
        row = by_name.setdefault(host.drawn.names.text(name), [0, 0, 0])
        row[0], row[1], row[2] = row[0] + n, row[1] + total_ps, max(row[2], max_ps)


def _names_table(by_name: dict[str, list[int]]) -> Table:
    ordered = sorted(by_name.items(), key=lambda pair: (-pair[1][1], pair[0]))
    n, total_ps, max_ps = (np.array([row[i] for _, row in ordered], np.int64) for i in range(3))
    return tables.NAMES.fill(
        {"name": [name for name, _ in ordered], "n": n, "total_ps": total_ps, "max_ps": max_ps}
    )


def _matches_table(parts: list[tuple[HostView, Int64s]], limit: int, is_backward: bool) -> Table:
    """The matches of all hosts, merged in time order."""
    start = np.concatenate(
        [searching.starts_of(host.drawn, events) + host.offset_ps for host, events in parts]
    )
    event = np.concatenate([host.event_ids(events) for host, events in parts])
    order = np.lexsort((event, start))
    chosen = order[-limit:] if is_backward else order[:limit]
    return tables.MATCHES.fill(event_values(parts, chosen))


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
            *(searching.starts_of(host.drawn, events) + host.offset_ps for host, events in parts),
        ]
    )
    duration = np.concatenate(
        [np.empty(0, np.int64), *(searching.durations_of(host.drawn, events) for host, events in parts)]
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
            columns = (
                column.tolist()
                for column in (sums.name, sums.n, sums.total_ps, sums.self_ps, sums.min_ps, sums.max_ps)
            )
            for name, n, total_ps, self_ps, min_ps, max_ps in zip(*columns, strict=True):
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
    values = {"n_events": int(n.sum()), "range_ps": window.end_ps - window.start_ps}
    return {"totals": tables.TOTALS.fill(filled)}, fill_scalars(tables.TOTALS_SCALARS, values)


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
    columns: Filled = {
        "host": [host for host, _, pixels, _ in rows for _ in range(len(pixels))],
        "section": [section for _, section, pixels, _ in rows for _ in range(len(pixels))],
        "pixel": np.concatenate([np.empty(0, np.int64), *(row[2] for row in rows)]),
        "busy_fraction": np.concatenate([np.empty(0), *(row[3] for row in rows)]),
    }
    values = {"trace_duration_ps": view.duration_ps, "pixel_ps": pixel_ps, "n_pixels": width_px}
    return {"density": tables.DENSITY.fill(columns)}, fill_scalars(tables.MINIMAP_SCALARS, values)
