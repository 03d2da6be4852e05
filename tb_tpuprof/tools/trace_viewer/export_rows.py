"""Events, marks, counters and arrows of one host → the rows of a Chrome trace, with their processes, threads
and texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.timeline.flows import arrow_ends, flows
from tb_tpuprof.analysis.timeline.tracks import Track
from tb_tpuprof.native import nest
from tb_tpuprof.tools.trace_hosts import HostView
from tb_tpuprof.tools.trace_viewer.window import Window
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Array = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
MAX_ARROWS = 200_000
MAX_TEXT = 4_000
COLUMNS = {
    "phase": np.uint8,
    "pid": np.int32,
    "tid": np.int64,
    "time": np.int64,
    "duration": np.int64,
    "id": np.int64,
    "name": np.int32,
    "cat": np.int32,
    "event": np.int64,
    "key": np.int32,
    "value": np.int64,
}
_MAX_TID = 2**32


class Texts:
    """Texts as JSON, by code."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self.codes: dict[tuple[int, str], int] = {}
        self.parts: list[bytes] = []

    def add(self, text: str) -> int:
        """Code of a text."""
        return self._put((0, text), json.dumps(text, ensure_ascii=False))

    def raw(self, members: str) -> int:
        """Code of a text that is already JSON."""
        return self._put((1, members), members)

    def of_strings(self, numbers: Array) -> npt.NDArray[np.int32]:
        """Codes of strings of the trace, long ones cut; -1 stays."""
        distinct, position = np.unique(numbers, return_inverse=True)
        codes = [self.add(self.strings.get(int(i))[:MAX_TEXT]) if i >= 0 else -1 for i in distinct.tolist()]
        return np.array(codes, np.int32)[position.reshape(-1)] if codes else np.empty(0, np.int32)

    def rendered(self) -> tuple[npt.NDArray[np.uint8], Int64s]:
        """(all texts end to end, offset of each)."""
        offsets = np.zeros(len(self.parts) + 1, np.int64)
        np.cumsum([len(part) for part in self.parts], out=offsets[1:])
        return np.frombuffer(b"".join(self.parts) or b"\0", np.uint8), offsets

    def _put(self, key: tuple[int, str], text: str) -> int:
        number = self.codes.setdefault(key, len(self.parts))
        if number == len(self.parts):
            self.parts.append(text.encode("utf-8", "replace"))
        return number


@dataclass(frozen=True)
class Places:
    """Maps each plane and line of a host to a process and thread of the file."""

    host: HostView
    tracks: list[Track]
    planes: dict[int, int]
    tids: dict[int, int]
    prefix: str = ""

    def names(self) -> Iterator[dict[str, object]]:
        """Metadata events: names and order of processes and threads."""
        trace = self.host.trace
        for plane, pid in self.planes.items():
            common: dict[str, object] = {"ph": "M", "pid": pid, "tid": 0}
            yield {
                **common,
                "name": "process_name",
                "args": {"name": self.prefix + (trace.plane_names[plane] or "(unnamed plane)")},
            }
            yield {**common, "name": "process_sort_index", "args": {"sort_index": pid}}
        for order, (line, tid) in enumerate(self.tids.items()):
            if trace.kind_of_line[line] == schema.STACK:
                common = {"ph": "M", "pid": self.planes[int(trace.lines["plane"][line])], "tid": tid}
                if trace.line_names[line]:
                    yield {**common, "name": "thread_name", "args": {"name": trace.line_names[line]}}
                yield {**common, "name": "thread_sort_index", "args": {"sort_index": order + 1}}

    def event_lines(self) -> list[tuple[int, int]]:
        """(line, its first event) of the lines that have events."""
        return [(line, int(self.host.trace.line_offsets[line])) for line in self.tids]


def places_of(host: HostView, tracks: list[Track], n_before: int, has_prefix: bool) -> Places:
    """Number the planes and lines of some tracks in their order. A line keeps its id as thread number if
    possible.
    """
    planes: dict[int, int] = {}
    tids: dict[int, int] = {}
    used: set[tuple[int, int]] = set()
    for track in tracks:
        pid = planes.setdefault(track.plane, n_before + len(planes) + 1)
        if track.line < len(host.trace.lines):
            tid = int(host.trace.lines["id"][track.line])
            while not 0 < tid < _MAX_TID or tid == pid or (pid, tid) in used:
                tid = 1 + (len(tids) + len(used) if not 0 < tid < _MAX_TID else tid) % (_MAX_TID - 1)
            used.add((pid, tid))
            tids[track.line] = tid
    return Places(host, tracks, planes, tids, f"{host.host}: " if has_prefix else "")


@dataclass
class Rows:
    """Rows of a Chrome trace. `event`: the event that a row begins or ends (-1 none); `key` and `value` are
    the argument of a counter.
    """

    columns: dict[str, Array]
    n_arrows_left_out: int = 0


@dataclass
class _Gathered:
    parts: list[dict[str, Array]] = field(default_factory=list)

    def add(self, n: int, **columns: Any) -> None:
        """Add rows; columns that are not named have default values."""
        filled = {"id": -1, "duration": -1, "cat": -1, "event": -1, "key": -1, "value": 0, "tid": 0} | columns
        self.parts.append(
            {name: np.broadcast_to(np.asarray(filled[name], kind), n) for name, kind in COLUMNS.items()}
        )

    def joined(self) -> dict[str, Array]:
        """All rows, in the writer's format."""
        return {
            name: np.ascontiguousarray(
                np.concatenate([np.empty(0, kind), *(part[name] for part in self.parts)])
            )
            for name, kind in COLUMNS.items()
        }


def rows_of(places: Places, inside: list[Array], window: Window, texts: Texts) -> Rows:
    """All rows of a host: `inside` are the events of each line to write."""
    host = places.host
    trace = host.trace
    gathered = _Gathered()
    events = np.concatenate([np.empty(0, np.int64), *inside]).astype(np.int64)
    line = np.repeat(np.fromiter(places.tids, np.int64, len(places.tids)), [len(part) for part in inside])
    kind = trace.kind_of_line[line]
    pid_of_plane = np.zeros(len(trace.planes), np.int32)
    pid_of_plane[list(places.planes)] = list(places.planes.values())
    tid_of_line = np.zeros(len(trace.lines), np.int64)
    tid_of_line[list(places.tids)] = list(places.tids.values())
    name_of = texts.of_strings(trace.event_names)
    track_kind = {track.line: track.kind for track in places.tracks}
    crosses = (kind == schema.ASYNC) | np.isin(
        line, [number for number, name in track_kind.items() if name == "async"]
    )
    facts: dict[str, Array] = {
        "pid": pid_of_plane[trace.lines["plane"][line]],
        "tid": tid_of_line[line],
        "time": trace.events["start_ps"][events].astype(np.int64) + host.offset_ps,
        "name": name_of[trace.events["metadata"][events]],
        "event": events,
    }
    for chosen, phase in (
        (~crosses & (kind != schema.INSTANTS), "X"),
        (~crosses & (kind == schema.INSTANTS), "i"),
    ):
        rows = np.flatnonzero(chosen)
        duration = trace.events["duration_ps"][events[rows]] if phase == "X" else -1
        gathered.add(
            len(rows),
            phase=ord(phase),
            duration=duration,
            **{name: values[rows] for name, values in facts.items()},
        )
    rows = np.flatnonzero(crosses)
    _add_async(gathered, trace, line[rows], {name: values[rows] for name, values in facts.items()}, texts)
    _add_counters(gathered, places, window, texts)
    written = np.zeros(trace.n_events, np.bool_)
    written[events[~crosses & (kind != schema.INSTANTS)]] = True  # arrows belong to threads
    left_out = _add_arrows(gathered, places, (pid_of_plane, tid_of_line), written, texts)
    return Rows(gathered.joined(), left_out)


def _add_async(
    gathered: _Gathered, trace: Trace, line: Int64s, facts: dict[str, Array], texts: Texts
) -> None:
    """Begins, ends and marks. Events nested in others of their line have the id of the outermost, so that
    they stay on its line.
    """
    n_events = len(line)
    start = facts["time"]
    length = trace.events["duration_ps"][facts["event"]].astype(np.int64)
    offsets = np.append(np.flatnonzero(np.append(True, line[1:] != line[:-1])[:n_events]), n_events).astype(
        np.int64
    )
    root = _roots(start, start + length, offsets)
    is_mark = length == 0
    begin, at_end = np.arange(n_events), np.flatnonzero(~is_mark)
    row = np.concatenate((begin, at_end))
    time = np.concatenate((start, (start + length)[at_end]))
    # At the same time: marks at the end of their outermost, ends (inner before outer), begins (outer before
    # inner), other marks.
    closes = is_mark & (root != begin) & (start == (start + length)[root])
    rank = np.concatenate((np.select([closes, is_mark], [0, 3], 2), np.ones(len(at_end), np.int64)))
    inner = np.concatenate((begin, -at_end))
    order = np.lexsort((inner, rank, time, root[row]))
    phase = np.concatenate((np.where(is_mark, ord("n"), ord("b")), np.full(len(at_end), ord("e"))))
    shared = {name: facts[name][row][order] for name in ("pid", "tid", "name", "event")}
    first_id = int(sum(len(part["id"]) for part in gathered.parts))
    gathered.add(
        len(order), phase=phase[order], time=time[order], id=root[row][order] + first_id,
        cat=texts.add("async"), **shared,
    )  # fmt: skip


def _roots(start: Int64s, end: Int64s, offsets: Int64s) -> Int64s:
    """The outermost event around each; each event by itself if events within one cross, because an end
    would not identify the event it closes.
    """
    n_events = len(start)
    parent, _ = nest(start, end, offsets)
    root = np.where(parent >= 0, parent, np.arange(n_events))
    while n_events and (root[root] != root).any():
        root = root[root]
    order = np.argsort(parent, kind="stable")
    order = order[(parent[order] >= 0) & (end[order] > start[order])]
    siblings = parent[order][1:] == parent[order][:-1]
    crossing = siblings & (end[order][:-1] > start[order][1:])
    bad = np.zeros(n_events, np.bool_)
    bad[root[order[1:][crossing]]] = True
    return np.where(bad[root], np.arange(n_events), root)


def _add_counters(gathered: _Gathered, places: Places, window: Window, texts: Texts) -> None:
    """Samples in the window and the last one before it, for each series."""
    host = places.host
    trace = host.trace
    for track in places.tracks:
        counter = host.counter_of(track.line)
        if counter < 0:
            continue
        first, n_samples = (int(trace.counters[name][counter]) for name in ("first_sample", "n_samples"))
        time = trace.samples["time_ps"][first : first + n_samples] + host.offset_ps
        begin, end = np.searchsorted(time, [window.start_ps, window.end_ps])
        inside = slice(
            max(int(np.searchsorted(time, window.start_ps, "right")) - 1, 0) if begin else 0, int(end)
        )
        series = int(trace.counters["series"][counter])
        gathered.add(
            len(time[inside]),
            phase=ord("C"),
            pid=places.planes[track.plane],
            time=time[inside],
            name=texts.add(trace.strings.get(int(trace.counters["name"][counter]))),
            key=texts.add(trace.strings.get(series) if series >= 0 else "value"),
            value=np.ascontiguousarray(
                trace.samples["value"][first : first + n_samples][inside], np.float64
            ).view(np.int64),
        )


def _add_arrows(
    gathered: _Gathered,
    places: Places,
    threads: tuple[Array, Array],
    written: npt.NDArray[np.bool_],
    texts: Texts,
) -> int:
    """Arrows between written events; returns the number that exceeds the limit."""
    trace, offset_ps = places.host.trace, places.host.offset_ps
    arrows = flows(trace)
    chosen = np.flatnonzero(written[arrows.source] & written[arrows.target])
    first = chosen[:MAX_ARROWS]
    from_ps, to_ps = arrow_ends(trace, arrows, first)
    kinds = np.array([texts.add(kind) for kind in arrows.kinds], np.int32)
    for phase, event, time in (("s", arrows.source[first], from_ps), ("f", arrows.target[first], to_ps)):
        line = trace.event_line[event]
        gathered.add(
            len(first),
            phase=ord(phase),
            pid=threads[0][trace.lines["plane"][line]],
            tid=threads[1][line],
            time=time + offset_ps,
            id=np.arange(len(first)),
            name=kinds[arrows.kind[first]],
            cat=kinds[arrows.kind[first]],
        )
    return len(chosen) - len(first)
