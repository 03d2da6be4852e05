"""A streaming trace viewer's table (`.SSTABLE`, `.tracetable`) → the same raw events as from a trace.json.

    key                                 value
    /trace                              Trace: 1 map of devices, 7 number of events, 8 map of texts by fixed64
    zoom level, time (8 bytes), serial  TraceEvent: 1 device, 2 resource, 3 name or 12 text of a name,
                                        5 group, 7 duration (ps), 8 arguments, 9 flow, 10 its part
                                        (1 start, 2 middle, 3 end)

The time is in the key, big-endian. Each event is in the table once, under the coarsest zoom level that shows
it; the 257th event of one time was left out when the table was written. An event without a resource is a
counter, or with a flow part of an async event. Newer tables leave the arguments to a second one next to them
(`.metadata.SSTABLE`, the same keys).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.chrome.decoder import EventFile, trace_of
from tb_tpuprof.ingest.chrome.events import DECODED_ARGUMENTS, MAX_EVENTS, RawEvents, Texts, times_of
from tb_tpuprof.ingest.chrome.message_reader import Arguments, MessageReader, Values, one
from tb_tpuprof.ingest.storage.leveldb import Entries, Table
from tb_tpuprof.ingest.storage.table_source import (
    EVENT_KEY_BYTES,
    METADATA_KEYS,
    argument_table,
    arguments_of,
)
from tb_tpuprof.native import parts, repeated, spans
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.native.plain.json_events import (
    BIND,
    COLUMNS,
    FLOW_IN,
    FLOW_OUT,
    HAS_ARGS,
    HAS_DURATION,
    HAS_ID,
    HAS_TIME,
    VALUE_COLUMNS,
)
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace, TraceSource

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_NAME, _GROUP, _DURATION, _RAW_DATA, _FLOW, _FLOW_PART, _NAME_REF = 3, 5, 7, 8, 9, 10, 12
_FIELDS = (1, 2, _NAME, _GROUP, _DURATION, _RAW_DATA, _FLOW, _FLOW_PART, _NAME_REF)
_N_EVENTS, _NAME_TABLE, _ARGUMENTS = 7, 8, 2
_START, _MIDDLE, _END = 1, 2, 3
_MOST_PS = 2**61
# The viewer names planes "host /device:GPU:0".
_HOST = re.compile(r"^\S+ (?=/(device|host):)")


def decode_table(data: Bytes, path: str, host: str, source: TraceSource) -> Trace:
    """Decode a whole file. Raises TraceFormatError if its index or its description of devices is damaged, or
    if it contains too many events.
    """
    reader = _reader(data, path)
    return trace_of(reader.raw(), EventFile(reader.data, path, host, source, reader.arguments_at))


def table_arguments(data: Bytes, path: str) -> tuple[Texts, Arguments]:
    """(texts, all arguments) of a whole file's events. Raises as `decode_table` does."""
    reader = _reader(data, path)
    arguments = reader.all_arguments()
    return reader.texts, arguments


def _reader(data: Bytes, path: str) -> _Reader:
    own = Table(data, path).entries()
    described = next((row for key in METADATA_KEYS if (row := own.row_of(key)) >= 0), -1)
    if described < 0:
        raise TraceFormatError(
            path,
            -1,
            "is a LevelDB table, but not of a trace, or its first block is damaged",
            "Open the .xplane.pb file that it was made from.",
        )
    n_events = len(own.keys)
    if n_events > min(MAX_EVENTS, max_events()):
        raise TraceFormatError(
            path,
            -1,
            f"contains {n_events:,} events, more than fit into this machine's memory",
            "Profile for a shorter time.",
        )
    second = argument_table(path)
    entries = own if second is None else _joined(own, second.entries())
    return _Reader(entries, len(own.keys), described)


def _joined(own: Entries, others: Entries) -> Entries:
    """Entries of both tables, those of the second one behind."""
    return Entries(
        np.concatenate((own.data, others.data)),
        np.concatenate((own.keys, others.keys)),
        np.concatenate((own.key_sizes, others.key_sizes)),
        np.concatenate((own.starts, others.starts + len(own.data))),
        np.concatenate((own.sizes, others.sizes)),
        0,
        own.n_damaged + others.n_damaged,
    )


@dataclass(frozen=True)
class _Events:
    """Fields of all events: `number` and `size` by field; the size is -1 where the field is absent."""

    number: dict[int, Ints]
    size: dict[int, Ints]

    def value(self, field: int) -> Ints:
        """The numbers of a field, 0 where it is absent or has bytes."""
        return np.where(self.size[field] == 0, self.number[field], 0)

    def has(self, field: int) -> npt.NDArray[np.bool_]:
        """Whether an event has a number in this field."""
        has_number: npt.NDArray[np.bool_] = self.size[field] == 0
        return has_number


class _Reader(MessageReader):
    """Builds columns of the first `n_own` of the entries; the others have only arguments. `described` is the
    entry with the Trace message.
    """

    def __init__(self, entries: Entries, n_own: int, described: int) -> None:
        super().__init__(entries.data)
        self.entries = entries
        self.n_own = n_own
        self.span = int(entries.starts[described]), int(entries.sizes[described])
        is_event = (entries.key_sizes == EVENT_KEY_BYTES) & (np.arange(len(entries.keys)) < n_own)
        self.rows = np.flatnonzero(is_event)
        self.starts, self.sizes = entries.starts[self.rows], entries.sizes[self.rows]
        self.refs, self.ref_texts = self._name_table()
        self._raw_spans = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def raw(self) -> RawEvents:
        """The events, ends of async ones, and a metadata event for each device and resource with a name."""
        events, broken = self._fields()
        n = len(self.starts)
        start = self._times()
        duration = events.value(_DURATION)
        duration = np.where((duration >= 0) & (duration < _MOST_PS), duration, 0)
        is_timed = (broken == 0) & (start >= 0)
        phase, flags = _phases(events)
        ends = np.flatnonzero((phase == ord("b")) & (events.value(_FLOW_PART) == _MIDDLE))
        names = [line._replace(name=_HOST.sub("", line.name)) for line in self.named_lines(*self.span)]
        columns: Values = {name: np.zeros(n + len(ends) + len(names), kind) for name, kind in COLUMNS.items()}
        rows = np.append(np.arange(n), ends)  # the end of a whole async event is a row of its own
        time = np.append(start, (start + duration)[ends])
        last = len(rows)
        columns["position"][:last] = self.starts[rows]
        columns["us"][:last], columns["rest_ps"][:last] = time // 10**6, time % 10**6
        columns["duration_ps"][:n] = np.where(phase == ord("X"), duration, 0)
        columns["name"][:last] = self._names(events)[rows]
        columns["cat"][:] = -1
        columns["id"][:last] = events.value(_FLOW)[rows]
        columns["pid"][:last] = self.decimal(events.value(1))[rows]
        columns["tid"][:last] = self.decimal(events.value(2))[rows]
        columns["phase"][:last] = phase[rows]
        columns["phase"][n:last] = ord("e")
        columns["flags"][:last] = np.where(is_timed, flags, 0)[rows]
        added = self.with_names(self._values(events, phase), columns, names, last)
        times = times_of(columns)
        return RawEvents(
            columns,
            added,
            self.texts,
            {},
            times.start_ps,
            times.usable,
            0,
            -1,
            int((~times.usable[:n]).sum()),
            times.n_moved,
            self.entries.n_damaged,
            self._left_out(n),
        )

    def _left_out(self, n: int) -> tuple[str, ...]:
        """A note if the table's own count of events exceeds that of its entries."""
        values, sizes, _, _ = spans(self.data, one(self.span[0]), one(self.span[1]), one(_N_EVENTS))
        n_lacking = int(values[0, 0]) - n if int(sizes[0, 0]) == 0 else 0
        if n_lacking <= 0 or self.entries.n_damaged:
            return ()
        return (
            f"The table lacks {n_lacking:,} events of the profile that it was made from: viewers leave out "
            "those beyond the 256th at one time.",
        )

    def all_arguments(self) -> Arguments:
        """All arguments of all events, with their groups."""
        events, _ = self._fields()
        owner, key, kind, value = self.arguments(*self._raw_data(events))
        grouped = np.flatnonzero(events.has(_GROUP))
        group = np.full(len(grouped), self.texts.add("group_id"))
        return Arguments(
            self.starts[np.concatenate((owner, grouped))],
            np.concatenate((key, group)),
            np.concatenate((kind, np.full(len(grouped), schema.INT))),
            np.concatenate((value, events.number[_GROUP][grouped])),
        )

    def _fields(self) -> tuple[_Events, npt.NDArray[np.uint8]]:
        """The events' fields, and whether each message is malformed."""
        values, sizes, _, broken = spans(self.data, self.starts, self.sizes, np.array(_FIELDS, np.int64))
        return (
            _Events(dict(zip(_FIELDS, values.T, strict=True)), dict(zip(_FIELDS, sizes.T, strict=True))),
            broken,
        )

    def arguments_at(self, position: int) -> dict[str, str | int | float]:
        """The arguments of the event whose message is at a position."""
        i = int(np.searchsorted(self.starts, position))
        start, size = int(self._raw_spans[0][i]), int(self._raw_spans[1][i])
        raw_data = self.data[start : start + size].tobytes()
        return arguments_of(self.entries.value(int(self.rows[i])), raw_data, self._text_of)

    def _text_of(self, ref: int) -> str | None:
        i = int(np.searchsorted(self.refs, np.uint64(ref)))
        return self.texts.get(int(self.ref_texts[i])) if i < len(self.refs) and self.refs[i] == ref else None

    def _times(self) -> Ints:
        """The time in each key (ps), -1 for times beyond int64."""
        big_endian = np.ascontiguousarray(self.entries.keys[self.rows, 1:9]).view(">u8").reshape(-1)
        return np.where(big_endian < _MOST_PS, big_endian, 2**64 - 1).astype(np.uint64).view(np.int64)

    def _name_table(self) -> tuple[npt.NDArray[np.uint64], Ints]:
        """(numbers of the texts that events refer to, ascending; the texts)."""
        start, size = self.span
        _, starts, sizes = parts(self.data, one(start), one(size), _NAME_TABLE)
        values, value_sizes, _, _ = spans(self.data, starts, sizes, np.array([1, 2], np.int64))
        texts = self.interned(values[:, 1], value_sizes[:, 1])
        refs = self._fixed(values[:, 0], value_sizes[:, 0])
        refs, last = np.unique(refs[::-1], return_index=True)  # of a number that is there twice, the last
        return refs, texts[::-1][last]

    def _fixed(self, positions: Ints, sizes: Ints) -> npt.NDArray[np.uint64]:
        """The fixed64 at these positions, 0 where there are no 8 bytes."""
        start = np.where(sizes == 8, positions, 0)
        gathered = self.data[np.minimum(start[:, None] + np.arange(8), max(len(self.data) - 1, 0))]
        numbers = np.ascontiguousarray(gathered).view("<u8").reshape(-1)
        return np.where(sizes == 8, numbers, 0).astype(np.uint64)

    def _referred(self, refs: npt.NDArray[np.uint64]) -> Ints:
        """The text that each number refers to, -1 for none."""
        if not len(self.refs):
            return np.full(len(refs), -1, np.int64)
        index = np.minimum(np.searchsorted(self.refs, refs), len(self.refs) - 1)
        return np.where(self.refs[index] == refs, self.ref_texts[index], -1)

    def _names(self, events: _Events) -> Ints:
        own = self.interned(events.number[_NAME], events.size[_NAME])
        has_ref = events.size[_NAME_REF] == 8
        referred = self._referred(self._fixed(events.number[_NAME_REF], events.size[_NAME_REF]))
        return np.where(has_ref, referred, own)

    def _values(self, events: _Events, phase: npt.NDArray[np.uint8]) -> Values:
        """The arguments that analyses read, all arguments of counters, groups of events, and flows."""
        self._raw_spans = self._raw_data(events)
        owner, key, kind, value = self.arguments(*self._raw_spans)
        decoded = [i for name in DECODED_ARGUMENTS if (i := self.texts.find(name)) >= 0]
        is_kept = np.isin(key, decoded) | (phase[owner] == ord("C"))
        grouped = np.flatnonzero(events.has(_GROUP))
        bound = np.flatnonzero(events.has(_FLOW) & (phase == ord("X")))
        group, bind = self.texts.add("group_id"), self.texts.add("(bind)")
        columns: dict[str, list[Any]] = {
            "value": [value[is_kept], events.number[_GROUP][grouped], events.number[_FLOW][bound]],
            "event": [owner[is_kept], grouped, bound],
            "key": [key[is_kept], np.full(len(grouped), group), np.full(len(bound), bind)],
            "kind": [kind[is_kept], np.full(len(grouped), schema.INT), np.full(len(bound), BIND)],
        }
        order = np.argsort(np.concatenate(columns["event"]), kind="stable")
        return {
            name: np.concatenate(columns[name])[order].astype(dtype) for name, dtype in VALUE_COLUMNS.items()
        }

    def _raw_data(self, events: _Events) -> tuple[Ints, Ints]:
        """(positions, sizes) of each event's arguments: its own, else those in the second table."""
        starts, sizes = events.number[_RAW_DATA].copy(), np.maximum(events.size[_RAW_DATA], 0)
        others = np.arange(self.n_own, len(self.entries.keys))
        others = others[self.entries.key_sizes[others] == EVENT_KEY_BYTES]
        lacking = np.flatnonzero(sizes == 0)
        if len(others) and len(lacking):
            text = f"S{EVENT_KEY_BYTES}"
            keys = np.ascontiguousarray(self.entries.keys[:, :EVENT_KEY_BYTES]).view(text).reshape(-1)
            others = others[np.argsort(keys[others], kind="stable")]
            sought = keys[self.rows[lacking]]
            place = np.minimum(np.searchsorted(keys[others], sought), len(others) - 1)
            is_same = keys[others[place]] == sought
            values, value_sizes, _, _ = spans(
                self.data, self.entries.starts[others], self.entries.sizes[others], one(_RAW_DATA)
            )
            lacking, place = lacking[is_same], place[is_same]
            starts[lacking], sizes[lacking] = values[place, 0], np.maximum(value_sizes[place, 0], 0)
        return np.where(sizes > 0, starts, 0), sizes

    def arguments(self, starts: Ints, sizes: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """(event, name, kind, value) of all arguments in the events' raw data. Texts are ids."""
        values, value_sizes, _, _ = spans(self.data, starts, sizes, one(_ARGUMENTS))
        listed, listed_sizes = values[:, 0], np.maximum(value_sizes[:, 0], 0)
        offsets, starts, sizes = parts(self.data, np.where(listed_sizes > 0, listed, 0), listed_sizes, 1)
        owner = repeated(np.arange(len(listed), dtype=np.int32), np.diff(offsets))
        values, value_sizes, _, _ = spans(self.data, starts, sizes, np.arange(1, 7))
        key = self.interned(values[:, 0], value_sizes[:, 0])
        value, kind = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
        for column, kind_of_field in ((2, schema.INT), (4, schema.INT)):
            is_number = value_sizes[:, column] == 0
            value[is_number], kind[is_number] = values[is_number, column], kind_of_field
        kind[(value_sizes[:, 2] == 0) & (value < 0)] = schema.UINT
        is_real = value_sizes[:, 3] == 8
        value[is_real] = self._fixed(values[is_real, 3], value_sizes[is_real, 3]).view(np.int64)
        kind[is_real] = schema.DOUBLE
        text = self.interned(values[:, 1], value_sizes[:, 1])
        text[(text < 0) & (value_sizes[:, 1] == 0)] = self.texts.add("")
        is_ref = value_sizes[:, 5] == 8
        text[is_ref] = self._referred(self._fixed(values[is_ref, 5], value_sizes[is_ref, 5]))
        has_text = text >= 0
        value[has_text], kind[has_text] = text[has_text], schema.TEXT
        chosen = np.flatnonzero((kind > 0) & (key >= 0))
        return owner[chosen].astype(np.int64), key[chosen], kind[chosen], value[chosen]


def _phases(events: _Events) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(phase, flags) of each event as trace.json writes them."""
    part = events.value(_FLOW_PART)
    has_line, has_flow = events.has(2), events.has(_FLOW)
    phase = np.select(
        [has_line, ~has_flow, part == _END, (part == _START) | (part == _MIDDLE)],
        [ord("X"), ord("C"), ord("e"), ord("b")],
        ord("n"),
    ).astype(np.uint8)
    flags = np.full(len(phase), HAS_TIME | HAS_ARGS, np.uint8)
    flags[has_line] |= HAS_DURATION
    flags[has_flow & ~has_line] |= HAS_ID
    flags[has_flow & has_line & np.isin(part, (_START, _MIDDLE))] |= FLOW_OUT
    flags[has_flow & has_line & np.isin(part, (_MIDDLE, _END))] |= FLOW_IN
    return phase, flags
