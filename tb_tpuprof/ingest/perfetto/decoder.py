"""A Perfetto trace → its Trace: track events become the raw events of a Chrome trace.

    TrackEvent: 3 and 22 categories, 4 annotations, 6 legacy event, 9 type, 10 and 23 name, 11 track,
        30 and 44 value of a counter, 36 and 47 flows, 42 and 48 flows that end

Other data sources of a trace (scheduling, heap profiles, GPU counters) are not read; the trace says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.chrome.decoder import EventFile, trace_of
from tb_tpuprof.ingest.chrome.events import MAX_EVENTS, RawEvents, Texts
from tb_tpuprof.ingest.chrome.events import times_of as raw_times
from tb_tpuprof.ingest.perfetto.annotations import AnnotationReader, Arguments
from tb_tpuprof.ingest.perfetto.clocks import times_of
from tb_tpuprof.ingest.perfetto.interned import ARGUMENTS, CATEGORIES, NAMES, VALUES, Interned, text_ids
from tb_tpuprof.ingest.perfetto.packets import (
    DEFAULTS,
    EVENT,
    Ints,
    Packets,
    fixed,
    read_packets,
    read_spans,
    repeated_fixed,
)
from tb_tpuprof.ingest.perfetto.tracks import Track, tracks_of
from tb_tpuprof.native import fields, ints
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.native.plain.json_events import (
    BIND,
    BINDS_ENCLOSING,
    COLUMNS,
    FLOW_IN,
    FLOW_OUT,
    HAS_DURATION,
    HAS_TIME,
    LOCAL_ID,
    VALUE_COLUMNS,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace, TraceSource

_CATEGORY_NUMBERS, _ANNOTATIONS, _LEGACY, _TYPE, _NAME_NUMBER, _TRACK = 3, 4, 6, 9, 10, 11
_CATEGORY, _NAME, _VALUE, _REAL_VALUE = 22, 23, 30, 44
_FIELDS = (_CATEGORY_NUMBERS, _LEGACY, _TYPE, _NAME_NUMBER, _TRACK, _CATEGORY, _NAME, _VALUE, _REAL_VALUE)
_FLOWS, _ENDING_FLOWS = (36, 47), (42, 48)  # numbers, and the same with 8 bytes each
_COUNTER_TYPE = 4
_PHASE_OF_TYPE = {1: "B", 2: "E", 3: "i", _COUNTER_TYPE: "C"}
_TRACK_DEFAULTS, _DEFAULT_TRACK = 11, 11
# Of a legacy event.
_L_NAME, _L_PHASE, _L_DURATION_US, _L_ID, _L_SCOPE, _L_BIND, _L_LOCAL_ID, _L_GLOBAL_ID = (
    1,
    2,
    3,
    6,
    7,
    8,
    10,
    11,
)
_L_ENCLOSING, _L_DIRECTION, _L_PID, _L_TID = 12, 13, 18, 19
_LEGACY_FIELDS = (
    _L_NAME,
    _L_PHASE,
    _L_DURATION_US,
    _L_ID,
    _L_BIND,
    _L_LOCAL_ID,
    _L_GLOBAL_ID,
    _L_ENCLOSING,
    _L_DIRECTION,
    _L_PID,
    _L_TID,
)
_LONGEST_US = 2**40
_LARGER_BUFFER = "Record for a shorter time, or with a larger buffer."
_LOST = f"Events left out because packets before them were lost in recording: {{:,}}. {_LARGER_BUFFER}"


def decode_track_events(data: npt.NDArray[np.uint8], path: str, host: str, source: TraceSource) -> Trace:
    """Decode a whole file. Raises TraceFormatError if it has no track events, or too many."""
    packets = read_packets(data, path)
    _, bad = fields(data, 0, len(data))
    is_event = packets.fields[EVENT].is_bytes
    rows = np.flatnonzero(is_event & packets.has_state)
    n_lost = int(is_event.sum()) - len(rows)
    if not len(rows):
        if n_lost:
            raise TraceFormatError(
                path,
                -1,
                f"has {n_lost:,} track events that mean nothing: packets before them were lost when it was "
                "recorded",
                _LARGER_BUFFER,
            )
        if bad >= 0:
            raise TraceFormatError(path, int(bad), "is cut off or damaged before its first track event")
        raise TraceFormatError(
            path,
            -1,
            "is a Perfetto trace without track events",
            "Record the data source track_event. Traces of other sources, such as ftrace, open in Perfetto.",
        )
    if len(rows) > min(MAX_EVENTS, max_events()):
        raise TraceFormatError(
            path,
            -1,
            f"contains {len(rows):,} events, more than fit into this machine's memory",
            "Record for a shorter time.",
        )
    raw = _Reader(packets, rows, path).raw(int(bad))
    if n_lost:
        raw = replace(raw, notes=(_LOST.format(n_lost), *raw.notes))
    names = tuple(sorted({raw.texts.get(key) for key in np.unique(raw.values["key"]).tolist()} - {"name"}))
    return trace_of(raw, EventFile(data, path, host, source, lambda _position: {}, names))


@dataclass
class _Lines:
    """Ids of the texts that name each event's process and thread."""

    pid: Ints
    tid: Ints


class _Reader:
    """Builds the columns of all events, followed by metadata events that name processes and threads."""

    def __init__(self, packets: Packets, rows: npt.NDArray[np.intp], path: str) -> None:
        self.packets = packets
        self.rows = rows
        self.texts = Texts([])
        self.messages = packets.fields[EVENT].at(rows)
        self.generation = packets.generation[rows]
        self.fields = read_spans(packets.data, self.messages, _FIELDS)
        self.legacy = read_spans(packets.data, self.fields[_LEGACY], _LEGACY_FIELDS)
        self.track = self._track_of()
        used = np.unique(self.track).tolist()
        if len(used) > schema.MAX_LINES:
            what = f"contains {len(used):,} tracks, more than a profile has"
            raise TraceFormatError(path, -1, what, "Record for a shorter time.")
        # A single event may be on a thread that no track of an event describes.
        is_moved = any((self.legacy[field].numbers() > 0).any() for field in (_L_PID, _L_TID))
        self.tracks = tracks_of(packets, used, with_all=is_moved)

    def raw(self, bad: int) -> RawEvents:
        """The events, in the order of their sequences."""
        n = len(self.rows)
        times = times_of(self.packets)
        is_timed, ns = times.is_timed[self.rows], times.ns[self.rows]
        names = self._line_names()
        columns: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(n + len(names), kind) for name, kind in COLUMNS.items()
        }
        columns["position"][:n] = self.messages.value
        columns["us"][:n], columns["rest_ps"][:n] = ns // 1000, ns % 1000 * 1000
        columns["name"][:n], columns["cat"][:] = self._names(), -1
        columns["cat"][:n] = self._categories()
        lines = self._lines()
        columns["pid"][:n], columns["tid"][:n] = lines.pid, lines.tid
        columns["phase"][:n] = self._phases()
        columns["flags"][:n] = np.where(is_timed, HAS_TIME, 0)
        self._add_legacy(columns, n)
        values = self._values(columns, n)
        values = self._add_line_names(columns, values, names, n)
        clock = raw_times(columns)
        return RawEvents(
            columns,
            values,
            self.texts,
            {},
            clock.start_ps,
            clock.usable,
            clock.start_us * 1000,
            bad,
            int((~clock.usable[:n]).sum()),
            clock.n_moved,
        )

    def _track_of(self) -> Ints:
        """The uuid of each event's track: its own, else the default of its generation."""
        packets = self.packets
        defaults = read_spans(packets.data, packets.fields[DEFAULTS], (_TRACK_DEFAULTS,))[_TRACK_DEFAULTS]
        default = read_spans(packets.data, defaults, (_DEFAULT_TRACK,))[_DEFAULT_TRACK]
        latest = packets.latest(default.is_number)[self.rows]
        inherited = np.where(latest >= 0, default.value[np.maximum(latest, 0)], 0)
        return np.where(self.fields[_TRACK].is_number, self.fields[_TRACK].value, inherited)

    def _by_track(self, value: Callable[[Track], int]) -> Ints:
        """A number of each event's track."""
        uuids, inverse = np.unique(self.track, return_inverse=True)
        numbers = np.array([value(self.tracks[uuid]) for uuid in uuids.tolist()], np.int64)
        return numbers[inverse.reshape(-1)]

    def _lines(self) -> _Lines:
        add = self.texts.add
        pid, tid = self._by_track(lambda track: add(track.pid)), self._by_track(lambda track: add(track.tid))
        for ids, field in ((pid, _L_PID), (tid, _L_TID)):
            is_set = self.legacy[field].is_number & (self.legacy[field].value > 0)
            numbers, inverse = np.unique(self.legacy[field].value[is_set], return_inverse=True)
            ids[is_set] = np.array([add(str(number)) for number in numbers.tolist()], np.int64)[
                inverse.reshape(-1)
            ]
        return _Lines(pid, tid)

    def _names(self) -> Ints:
        names = Interned(self.packets, NAMES, self.texts)
        written = text_ids(self.packets.data, self.fields[_NAME], self.texts)
        known = names.ids(self.generation, self.fields[_NAME_NUMBER])
        legacy = names.ids(self.generation, self.legacy[_L_NAME])
        name = np.where(written >= 0, written, np.where(known >= 0, known, legacy))
        of_track = self._by_track(lambda track: self.texts.add(_counter_name(track)))
        return np.where((self.fields[_TYPE].numbers() == _COUNTER_TYPE) & (name < 0), of_track, name)

    def _categories(self) -> Ints:
        written = text_ids(self.packets.data, self.fields[_CATEGORY], self.texts)
        categories = Interned(self.packets, CATEGORIES, self.texts)
        return np.where(
            written >= 0, written, categories.ids(self.generation, self.fields[_CATEGORY_NUMBERS])
        )

    def _phases(self) -> npt.NDArray[np.uint8]:
        phase = np.full(256, ord("i"), np.uint8)
        for number, letter in _PHASE_OF_TYPE.items():
            phase[number] = ord(letter)
        return phase[np.clip(self.fields[_TYPE].numbers(), 0, 255)]

    def _add_legacy(self, columns: dict[str, npt.NDArray[Any]], n: int) -> None:
        """Phases, durations and ids of events converted from Chrome's JSON."""
        legacy = self.legacy
        is_legacy = legacy[_L_PHASE].is_number & (legacy[_L_PHASE].value > 0) & (legacy[_L_PHASE].value < 128)
        columns["phase"][:n][is_legacy] = legacy[_L_PHASE].value[is_legacy]
        duration_us = np.clip(legacy[_L_DURATION_US].numbers(), 0, _LONGEST_US)
        columns["duration_ps"][:n] = duration_us * 10**6
        flags = columns["flags"]
        flags[:n] |= np.where(legacy[_L_DURATION_US].is_number, HAS_DURATION, 0).astype(np.uint8)
        for field, flag in ((_L_ID, 0), (_L_GLOBAL_ID, 0), (_L_LOCAL_ID, LOCAL_ID)):
            is_set = legacy[field].is_number
            columns["id"][:n][is_set] = legacy[field].value[is_set]
            flags[:n] |= np.where(is_set, flag, 0).astype(np.uint8)
        flags[:n] |= np.where(legacy[_L_ENCLOSING].numbers() > 0, BINDS_ENCLOSING, 0).astype(np.uint8)

    def _values(self, columns: dict[str, npt.NDArray[Any]], n: int) -> dict[str, npt.NDArray[Any]]:
        """Arguments, values of counters, and flows."""
        reader = AnnotationReader(
            self.packets.data,
            self.generation,
            Interned(self.packets, ARGUMENTS, self.texts),
            Interned(self.packets, VALUES, self.texts),
            self.texts,
        )
        rows = [reader.read(self.messages, _ANNOTATIONS), self._counter_values(), self._flows(columns, n)]
        joined = {
            name: np.concatenate([getattr(part, name) for part in rows])
            for name in ("event", "key", "kind", "value")
        }
        order = np.argsort(joined["event"], kind="stable")
        return {name: joined[name][order].astype(dtype) for name, dtype in VALUE_COLUMNS.items()}

    def _counter_values(self) -> Arguments:
        """The value of each counter event; increments are added up per sequence and track."""
        whole, real = self.fields[_VALUE], self.fields[_REAL_VALUE]
        is_counter = self.fields[_TYPE].numbers() == _COUNTER_TYPE
        rows = np.flatnonzero(is_counter & (whole.is_number | (real.size == 8)))
        value = whole.numbers()[rows].astype(np.float64)
        is_real = real.size[rows] == 8
        value[is_real] = fixed(self.packets.data, real.value[rows][is_real]).view(np.float64)
        multiplier = self._by_track(lambda track: track.counter.multiplier if track.counter else 1)[rows]
        is_incremental = self._by_track(
            lambda track: int(bool(track.counter and track.counter.is_incremental))
        )[rows]
        order = np.lexsort((np.arange(len(rows)), self.track[rows], self.packets.sequence[self.rows[rows]]))
        order = order[is_incremental[order] > 0]
        total = np.cumsum(value[order])
        keys = self.track[rows][order], self.packets.sequence[self.rows[rows]][order]
        is_new = np.append(True, (np.diff(keys[0]) != 0) | (np.diff(keys[1]) != 0))[: len(order)]
        first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0)) if len(order) else order
        value[order] = total - total[first] + value[order][first]
        value *= multiplier
        key = np.full(len(rows), self.texts.add("value"))
        return Arguments(rows, key, np.full(len(rows), schema.DOUBLE), value.view(np.int64))

    def _flows(self, columns: dict[str, npt.NDArray[Any]], n: int) -> Arguments:
        """The flows that events belong to, and in `flags` whether arrows lead to and from each event."""
        event, flow, is_end = (
            np.concatenate(part)
            for part in zip(*(self._flow_ids(*one) for one in ((_FLOWS, 0), (_ENDING_FLOWS, 1))), strict=True)
        )
        legacy = self.legacy
        time = columns["us"][:n] * 1000 + columns["rest_ps"][:n] // 1000
        order = np.lexsort((is_end, time[event], flow)) if len(event) else np.empty(0, np.intp)
        event, flow, is_end = event[order], flow[order], is_end[order]
        has_earlier = np.append(False, flow[1:] == flow[:-1])[: len(flow)]
        flags = columns["flags"]
        flags[event[has_earlier]] |= FLOW_IN
        flags[event[is_end == 0]] |= FLOW_OUT
        bound = np.flatnonzero(legacy[_L_BIND].is_number & (legacy[_L_DIRECTION].numbers() > 0))
        direction = legacy[_L_DIRECTION].value[bound]
        flags[bound] |= (np.where(direction & 1, FLOW_IN, 0) | np.where(direction & 2, FLOW_OUT, 0)).astype(
            np.uint8
        )
        event, flow = np.concatenate((event, bound)), np.concatenate((flow, legacy[_L_BIND].value[bound]))
        key = np.full(len(event), self.texts.add("(bind)"))
        return Arguments(event, key, np.full(len(event), BIND), flow)

    def _flow_ids(self, numbers: tuple[int, int], is_end: int) -> tuple[Ints, Ints, Ints]:
        """(event, flow, `is_end`) of both encodings of a repeated field."""
        start, size = self.messages.value, self.messages.size
        offsets, old = ints(self.packets.data, start, size, numbers[0])
        event, flow = [np.repeat(np.arange(len(start)), np.diff(offsets))], [old]
        ids = repeated_fixed(self.packets.data, self.messages, numbers[1])
        event.append(ids[0])
        flow.append(ids[1])
        events = np.concatenate(event)
        return events, np.concatenate(flow), np.full(len(events), is_end)

    def _line_names(self) -> list[tuple[str, str, str]]:
        """(pid, tid or "", name) of all processes and threads that have one."""
        tracks = self.tracks.values()
        processes = {track.pid: track.process_name for track in tracks if track.process_name}
        threads = {(track.pid, track.tid): track.name for track in tracks if track.name and not track.counter}
        return [(pid, "", name) for pid, name in processes.items()] + [
            (pid, tid, name) for (pid, tid), name in threads.items()
        ]

    def _add_line_names(
        self,
        columns: dict[str, npt.NDArray[Any]],
        values: dict[str, npt.NDArray[Any]],
        names: list[tuple[str, str, str]],
        n: int,
    ) -> dict[str, npt.NDArray[Any]]:
        """Fill the metadata events after the n events, and append their arguments."""
        add = self.texts.add
        columns["phase"][n:] = ord("M")
        columns["pid"][n:] = [add(pid) for pid, _, _ in names]
        columns["tid"][n:] = [add(tid) for _, tid, _ in names]
        columns["name"][n:] = [add("thread_name" if tid else "process_name") for _, tid, _ in names]
        added = {
            "value": [add(name) for _, _, name in names],
            "event": range(n, n + len(names)),
            "key": [add("name")] * len(names),
            "kind": [schema.TEXT] * len(names),
        }
        return {
            name: np.concatenate((values[name], np.array(added[name], dtype)))
            for name, dtype in VALUE_COLUMNS.items()
        }


def _counter_name(track: Track) -> str:
    unit = track.counter.unit if track.counter else ""
    return f"{track.name} ({unit})" if unit else track.name
