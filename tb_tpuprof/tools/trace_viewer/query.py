"""Questions about a query: its slices, their totals by group, where a window has hits; and the language's
fields.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns, spans
from tb_tpuprof.analysis.query.arguments import argument_names
from tb_tpuprof.analysis.query.grammar import BY_NAME, FIELDS
from tb_tpuprof.analysis.query.grouping import (
    ARGUMENT,
    KEYS,
    Groups,
    are_in_group,
    argument_values,
    grouped,
    values_of,
)
from tb_tpuprof.analysis.query.hits import box_hits, covered_pixels, of_layer
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest import arguments
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import Values, fill_scalars, known_texts
from tb_tpuprof.tools.trace_hosts import View
from tb_tpuprof.tools.trace_viewer import query_tables as tables
from tb_tpuprof.tools.trace_viewer.selection import (
    HostMatches,
    Matches,
    first_rows,
    matches_of,
    query_of,
)
from tb_tpuprof.tools.trace_viewer.window import layers_of, window_of
from tb_tpuprof.trace.schema import ASYNC

Answer = tuple[dict[str, Table], dict[str, Scalar]]
Int64s = npt.NDArray[np.int64]
SORTS = ("start", "dur", "self", "name", "track", "step", "host")


def slices_answer(view: View, params: Params) -> Answer:
    """Matching events in a chosen order. Raises BadQuery, BadParameter, EventNotFound."""
    matches = _of_group(matches_of(view, params, query_of(params)), params)
    names = _argument_names(params)
    order, is_descending = str(params["sort"]), bool(params["descending"])
    limit, offset = int(params["limit"]), int(params["offset"])
    if "from_ps" in params:
        if order != "start" or is_descending:
            raise BadParameter("from_ps", params["from_ps"], "only with sort=start, ascending")
        offset = _n_before(matches, int(params["from_ps"]))
        offset = min(offset, max(matches.n - 1, 0))
    chosen = _page(matches, order, is_descending, offset, limit)
    total_ps = sum(_total_within(host) for host in matches.hosts)
    values = {"n_matches": matches.n, "total_ps": total_ps, "first": offset, **matches.counts}
    return {"slices": _slices_table(matches, chosen, names)}, fill_scalars(tables.SLICES_SCALARS, values)


def _of_group(matches: Matches, params: Params) -> Matches:
    """The matches of one group, if the parameters name its key. Raises BadParameter."""
    group = str(params["group"])
    if "by" not in params:
        if group:
            raise BadParameter("group", group, "only with by, the key that the group is of")
        return matches
    key = _key_of(params)
    hosts = tuple(host.only(are_in_group(host.timeline, host.events, key, group)) for host in matches.hosts)
    n = sum(len(host.events) for host in hosts)
    if matches.is_derived:
        return replace(matches, hosts=hosts, n_derived=n)
    return replace(matches, hosts=hosts, n_recorded=n)


def _key_of(params: Params) -> str:
    key = str(params["by"])
    if key not in KEYS and not (key.startswith(ARGUMENT) and len(key) > len(ARGUMENT)):
        raise BadParameter("by", key, f"one of {', '.join(KEYS)}, or arg.NAME")
    return key


def _argument_names(params: Params) -> list[str]:
    names = list(dict.fromkeys(name for name in str(params.get("arguments", "")).split(",") if name))
    if len(names) > tables.MAX_ARGUMENTS:
        raise BadParameter("arguments", params["arguments"], f"at most {tables.MAX_ARGUMENTS} names")
    return names


def _n_before(matches: Matches, time_ps: int) -> int:
    """Number of matches that start before a time of the view."""
    return sum(int(np.count_nonzero(host.starts(host.events) < time_ps)) for host in matches.hosts)


def _total_within(host: HostMatches) -> int:
    drawn, events = host.timeline.drawn, host.events
    duration = columns.durations(drawn, events)
    if host.window is None:
        return int(duration.sum())
    start = columns.starts(drawn, events)
    low = np.maximum(start, host.window.start_ps)
    return int(np.maximum(np.minimum(start + duration, host.window.end_ps) - low, 0).sum())


def _page(
    matches: Matches, order: str, is_descending: bool, offset: int, limit: int
) -> list[tuple[int, int]]:
    """(host's index, event) of the matches of one page, in order; ties by start, then by event."""
    if order == "start" and not is_descending:
        firsts = [
            host.only(columns.first_of_lines(host.timeline.drawn, host.events, offset + limit))
            for host in matches.hosts
        ]
        matches = replace(matches, hosts=tuple(firsts))
    keys = [_sort_keys(host, order) for host in matches.hosts]
    if order in ("name", "track", "step", "host"):
        keys = _ranked(matches, order)
    parts = [
        first_rows(
            -key if is_descending else key,
            offset + limit,
            ties=None if order == "start" else partial(_starts_of_rows, host),
        )
        for key, host in zip(keys, matches.hosts, strict=True)
    ]
    key = np.concatenate([np.empty(0, np.int64), *(k[rows] for k, rows in zip(keys, parts, strict=True))])
    host_of = np.repeat(np.arange(len(parts)), [len(rows) for rows in parts])
    event = np.concatenate(
        [np.empty(0, np.int64), *(host.events[rows] for host, rows in zip(matches.hosts, parts, strict=True))]
    )
    starts = [host.starts(host.events[rows]) for host, rows in zip(matches.hosts, parts, strict=True)]
    start = np.concatenate([np.empty(0, np.int64), *starts])
    ordered = np.lexsort((event, host_of, start, -key if is_descending else key))[offset : offset + limit]
    return list(zip(host_of[ordered].tolist(), event[ordered].tolist(), strict=True))


def _starts_of_rows(host: HostMatches, rows: npt.NDArray[np.intp]) -> Int64s:
    return host.starts(host.events[rows])


def _sort_keys(host: HostMatches, order: str) -> Int64s:
    if order == "dur":
        return columns.durations(host.timeline.drawn, host.events)
    if order == "self":
        return columns.self_times(host.timeline.trace, host.timeline.drawn, host.events)
    return host.starts(host.events)


def _ranked(matches: Matches, order: str) -> list[Int64s]:
    """The rank of each match's text among those of all hosts."""
    values = [values_of(host.timeline, host.events, order) for host in matches.hosts]
    used = [np.unique(one.of[one.of >= 0]).tolist() for one in values]
    texts = sorted({one.text(code) for one, codes in zip(values, used, strict=True) for code in codes})
    rank = {text: i for i, text in enumerate(texts)}
    ranks = []
    for one, codes in zip(values, used, strict=True):
        of_code = np.full(one.n_codes + 1, -1, np.int64)
        of_code[codes] = [rank[one.text(code)] for code in codes]
        ranks.append(of_code[one.of])
    return ranks


def _slices_table(matches: Matches, chosen: list[tuple[int, int]], names: list[str]) -> Table:
    n = len(chosen)
    numbers = {
        name: np.zeros(n, np.int64) for name in ("event", "track", "start_ps", "duration_ps", "self_ps")
    }
    texts: dict[str, list[str]] = {name: [""] * n for name in ("host", "track_name", "name", "step", *names)}
    for index, host in enumerate(matches.hosts):
        rows = np.array([i for i, (of, _) in enumerate(chosen) if of == index], np.intp)
        if not len(rows):
            continue
        events = np.array([chosen[i][1] for i in rows.tolist()], np.int64)
        order = np.argsort(events)
        rows, events = rows[order], events[order]
        _fill_slices(host, events, rows, numbers, texts, names)
    filled: dict[str, Values] = {
        "event": numbers["event"],
        "track": numbers["track"],
        **{name: known_texts(texts[name]) for name in ("name", "track_name", "host", "step")},
        **{name: numbers[name] for name in ("start_ps", "duration_ps", "self_ps")},
    }
    titles = {f"argument_{i}": name for i, name in enumerate(names, 1)}
    filled |= {column: known_texts(texts[name]) for column, name in titles.items()}
    return tables.SLICES.fill(filled, titles=titles)


def _fill_slices(
    host: HostMatches,
    events: Int64s,
    rows: npt.NDArray[np.intp],
    numbers: dict[str, Int64s],
    texts: dict[str, list[str]],
    names: list[str],
) -> None:
    """Write the values of ascending events of one host into the given rows."""
    timeline, view = host.timeline, host.view
    lines = columns.lines(timeline.drawn, events)
    numbers["event"][rows] = view.event_ids(events)
    numbers["track"][rows] = view.track_ids(lines)
    numbers["start_ps"][rows] = host.starts(events)
    numbers["duration_ps"][rows] = columns.durations(timeline.drawn, events)
    numbers["self_ps"][rows] = columns.self_times(timeline.trace, timeline.drawn, events)
    track_names = {track.line: f"{track.section} · {track.name}" for track in view.tracks}
    found: dict[str, list[str]] = {
        "host": [view.host] * len(rows),
        "track_name": [track_names.get(line, "") for line in lines.tolist()],
    }
    for key in ("name", "step"):
        values = values_of(timeline, events, key)
        found[key] = [values.text(code) if code >= 0 else "" for code in values.of.tolist()]
    file_rows = columns.file_rows(timeline.drawn, events)
    for name in names:
        code, values_of_name = argument_values(timeline.trace, file_rows, name, timeline.source)
        found[name] = [values_of_name[i] if i >= 0 else "" for i in code.tolist()]
    for key, column in found.items():
        for row, text in zip(rows.tolist(), column, strict=True):
            texts[key][row] = text


def groups_answer(view: View, params: Params) -> Answer:
    """Totals of the matches by a key. Raises BadQuery, BadParameter, EventNotFound."""
    key = _key_of(params)
    matches = matches_of(view, params, query_of(params))
    rows: dict[str, list[int]] = {}
    n_left_out = 0
    for host in matches.hosts:
        parts = spans.parts_within(host.timeline.trace, host.timeline.drawn, host.events, host.window)
        groups = grouped(host.timeline, parts, key)
        n_left_out += groups.n_left_out
        _add_groups(rows, host, groups)
    ordered = sorted(rows.items(), key=lambda pair: (-pair[1][1], pair[0]))
    limit = int(params["limit"])
    note = f"{n_left_out:,} groups with the least time are left out." if n_left_out else ""
    sums = [sum(row[i] for row in rows.values()) for i in range(3)]
    values = {
        "n_groups": len(rows) + n_left_out,
        "n_events": matches.n,
        "total_ps": sums[1],
        "self_ps": sums[2],
        "range_ps": matches.end_ps - matches.start_ps,
        **matches.counts,
    }
    return {"groups": _groups_table(ordered[:limit], note)}, fill_scalars(tables.GROUPS_SCALARS, values)


def _add_groups(rows: dict[str, list[int]], host: HostMatches, groups: Groups) -> None:
    """Merge a host's groups. A row: n, total, self, shortest, longest, then the longest event, its track,
    start and duration.
    """
    order = np.argsort(groups.longest)
    events = groups.longest[order]
    facts = np.stack(
        (
            host.view.event_ids(events),
            host.view.track_ids(columns.lines(host.timeline.drawn, events)),
            host.starts(events),
            columns.durations(host.timeline.drawn, events),
        )
    )
    of_longest = np.empty_like(facts)
    of_longest[:, order] = facts
    table = np.stack((groups.n, groups.total_ps, groups.self_ps, groups.min_ps, groups.max_ps, *of_longest))
    for text, new in zip(groups.texts, table.T.tolist(), strict=True):
        row = rows.get(text)
        if row is None:
            rows[text] = new
            continue
        longest = new[4:] if new[4] > row[4] else row[4:]
        rows[text] = [row[0] + new[0], row[1] + new[1], row[2] + new[2], min(row[3], new[3]), *longest]


def _groups_table(ordered: list[tuple[str, list[int]]], note: str) -> Table:
    numbers = np.array([row for _, row in ordered], np.int64).reshape(-1, 9).T
    n, total, self_ps, low, high, event, track, start, duration = numbers
    return tables.GROUPS.fill(
        {
            "group": [text for text, _ in ordered],
            "n": n,
            "total_ps": total,
            "self_ps": self_ps,
            "avg_ps": total / np.maximum(n, 1),
            "min_ps": low,
            "max_ps": high,
            "longest_event": event,
            "longest_track": track,
            "longest_start_ps": start,
            "longest_duration_ps": duration,
        },
        note,
    )


def hits_answer(view: View, params: Params) -> Answer:
    """The boxes of a window that contain matches, and the pixels. Raises BadQuery, BadParameter,
    EventNotFound.
    """
    window = window_of(view, params)
    everywhere = {name: value for name, value in params.items() if name in ("query", "of")}
    matches = matches_of(view, everywhere, query_of(params))
    chosen = {host.host: tracks for host, tracks in view.chosen_tracks(str(params.get("tracks", "")))}
    parts: list[tuple[Int64s, ...]] = []
    ruler = np.zeros(window.width_px, np.int64)
    n_in_window = n_boxes = 0
    for host in matches.hosts:
        offset = host.view.offset_ps
        own = window.start_ps - offset, window.end_ps - offset, window.pixel_ps
        for layer, lines in layers_of(host.view, chosen[host.view.host]):
            found = box_hits(layer, lines, of_layer(host.timeline.drawn, layer, host.selection), own)
            track = host.view.track_ids(found.line + layer.first_line)
            parts.append((found.box + n_boxes, track, found.depth, found.n))
            n_boxes += found.n_boxes
        inside = spans.overlapping(host.timeline.drawn, host.events, spans.Window(own[0], own[1]))
        n_in_window += len(inside)
        ruler += covered_pixels(host.timeline.drawn, inside, own, window.width_px)
    box, track, depth, n = (
        np.concatenate([np.empty(0, np.int64), *(part[i] for part in parts)]) for i in range(4)
    )
    pixels = np.flatnonzero(ruler)
    answer = {
        "hits": tables.HITS.fill({"box": box, "track": track, "depth": depth, "n": n}),
        "ruler": tables.RULER.fill({"pixel": pixels.astype(np.int64), "n": ruler[pixels]}),
    }
    values = {
        "n_in_window": n_in_window,
        "n_matches": matches.n,
        "n_boxes": n_boxes,
        "pixel_ps": window.pixel_ps,
    }
    return answer, fill_scalars(tables.HITS_SCALARS, {**values, **matches.counts})


def utilization_answer(view: View, params: Params) -> Answer:
    """How much of a window each track's events cover."""
    window = window_of(view, params)
    rows = []
    for host, chosen in view.chosen_tracks(str(params.get("tracks", ""))):
        own = spans.Window(window.start_ps - host.offset_ps, window.end_ps - host.offset_ps)
        for track in chosen:
            for layer, lines in layers_of(host, [track]):
                line = int(lines[0])
                is_async = layer is host.drawn.file and host.trace.kind_of_line[line] == ASYNC
                busy = spans.busy_ps(layer, line, own, bool(is_async))
                rows.append((int(host.track_ids(track.line)), host.host, track, busy))
    length = max(window.end_ps - window.start_ps, 1)
    busy_ps = np.array([busy for *_, busy in rows], np.int64)
    table = tables.UTILIZATION.fill(
        {
            "track": np.array([number for number, *_ in rows], np.int64),
            "host": [host for _, host, _, _ in rows],
            "section": [track.section for _, _, track, _ in rows],
            "name": [track.name for _, _, track, _ in rows],
            "is_derived": np.array([track.is_derived for _, _, track, _ in rows], np.bool_),
            "busy_ps": busy_ps,
            "busy_fraction": busy_ps / length,
        }
    )
    return {"utilization": table}, fill_scalars(
        tables.UTILIZATION_SCALARS, {"range_ps": window.end_ps - window.start_ps}
    )


def fields_answer(view: View, _params: Params) -> Answer:
    """The fields that a query may have."""
    names = sorted({name for host in view.hosts for name in argument_names(host.trace, arguments)})
    fields = [(field.name, field.kind, field.meaning) for field in FIELDS]
    fields += [(f"{ARGUMENT}{_quoted(name)}", "argument", "Argument of events") for name in names]
    field, kind, meaning = (list(column) for column in zip(*fields, strict=True))
    table = tables.FIELDS.fill({"field": field, "kind": kind, "meaning": meaning})
    return {"fields": table}, fill_scalars(tables.FIELDS_SCALARS, {"n_arguments": len(fields) - len(BY_NAME)})


def _quoted(name: str) -> str:
    return name if name and not any(letter in name for letter in ' :=~<>"\t\n') else f'"{name}"'
