"""TensorFlow's Trace protobuf (`.trace`, TensorFlow 1.x and 2.1, Cloud TPU) → the same raw events as from its
later trace.json.

    Trace: 1 map of devices ─ Device: 1 name, 3 map of resources ─ Resource: 1 name
           4 events ─ TraceEvent: 1 device, 2 resource, 3 name, 9 timestamp (ps), 10 duration (ps), 11 map of
           arguments

TensorFlow 2.2 and later write the same events as trace.json, so everything after this module treats both
alike. An event's position is that of its tag; 0 if its length is encoded in more bytes than needed, so that
its arguments cannot be located.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.chrome.decoder import EventFile, trace_of
from tb_tpuprof.ingest.chrome.events import DECODED_ARGUMENTS, MAX_EVENTS, RawEvents, Texts, times_of
from tb_tpuprof.ingest.chrome.message_reader import Arguments, MessageReader, one
from tb_tpuprof.ingest.storage.source import event_arguments
from tb_tpuprof.native import fields, parts, repeated, spans
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.native.plain.json_events import COLUMNS, HAS_ARGS, HAS_DURATION, HAS_TIME, VALUE_COLUMNS
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace, TraceSource
from tb_tpuprof.trace.wire import read_varint

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_EVENTS, _ARGUMENTS = 4, 11
_EVENT_TAG = _EVENTS << 3 | 2
_MOST_PS = 2**61
_MOST_HEADER_BYTES = 11
# TensorFlow 2.1's names of arguments → those of trace.json and the analyses.
_RENAMED = {b"long name": b"long_name"}


def decode_trace_events(data: Bytes, path: str, host: str, source: TraceSource) -> Trace:
    """Decode a whole file. Raises TraceFormatError if it is cut off before its first event or contains too
    many.
    """
    _, starts, sizes = parts(data, one(0), one(len(data)), _EVENTS)
    n_events = len(starts)
    if n_events > min(MAX_EVENTS, max_events()):
        raise TraceFormatError(
            path,
            -1,
            f"contains {n_events:,} events, more than fit into this machine's memory",
            "Profile for a shorter time.",
        )
    raw = _Reader(data, starts, sizes, _RENAMED).raw()
    if raw.bad >= 0 and not len(starts):
        raise TraceFormatError(path, raw.bad, "is cut off or damaged")
    return trace_of(
        raw,
        EventFile(
            data,
            path,
            host,
            source,
            lambda position: event_arguments(_message(data, position)) if position else {},
        ),
    )


def trace_event_arguments(data: Bytes) -> tuple[Texts, Arguments]:
    """(texts, all arguments) of a whole file's events."""
    _, starts, sizes = parts(data, one(0), one(len(data)), _EVENTS)
    reader = _Reader(data, starts, sizes)
    arguments = reader.arguments()
    return reader.texts, arguments


class _Reader(MessageReader):
    """Builds columns of all events and of the names of devices and resources."""

    def __init__(
        self,
        data: Bytes,
        starts: Ints,
        sizes: Ints,
        renamed: Mapping[bytes, bytes] = MappingProxyType({}),
    ) -> None:
        super().__init__(data, renamed)
        self.starts = starts
        self.sizes = sizes

    def raw(self) -> RawEvents:
        """The events, followed by a metadata event for each device and resource that has a name."""
        numbers, sizes, _, broken = spans(
            self.data, self.starts, self.sizes, np.array([1, 2, 3, 9, 10], np.int64)
        )
        n = len(self.starts)
        # 0 if there are bytes in place of a number.
        device, resource, _, start, duration = np.where(sizes > 0, 0, numbers).T
        is_timed = (broken == 0) & (start >= 0)
        names = self.named_lines(0, len(self.data))
        columns: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(n + len(names), kind) for name, kind in COLUMNS.items()
        }
        columns["position"][:n] = self._positions()
        columns["us"][:n], columns["rest_ps"][:n] = start // 10**6, start % 10**6
        columns["duration_ps"][:n] = np.where((duration >= 0) & (duration < _MOST_PS), duration, 0)
        columns["name"][:n] = self.interned(numbers[:, 2], sizes[:, 2])
        columns["cat"][:] = -1
        columns["pid"][:n], columns["tid"][:n] = self.decimal(device), self.decimal(resource)
        columns["phase"][:n] = ord("X")
        columns["flags"][:n] = np.where(is_timed, HAS_TIME | HAS_DURATION | HAS_ARGS, 0)
        values = self.with_names(self._decoded_arguments(), columns, names, n)
        times = times_of(columns)
        _, bad = fields(self.data, 0, len(self.data))
        n_left_out = int((~times.usable[:n]).sum())
        return RawEvents(
            columns,
            values,
            self.texts,
            {},
            times.start_ps,
            times.usable,
            times.start_us * 1000,
            int(bad),
            n_left_out,
            times.n_moved,
        )

    def _positions(self) -> Ints:
        """Position of each event's tag, 0 if its length has more bytes than needed."""
        n_digits = 1 + sum((self.sizes >= 1 << 7 * i).astype(np.int64) for i in range(1, 9))
        tag_positions = self.starts - n_digits - 1
        positions: Ints = np.where(
            (tag_positions >= 0) & (self.data[np.maximum(tag_positions, 0)] == _EVENT_TAG), tag_positions, 0
        )
        return positions

    def arguments(self) -> Arguments:
        """All arguments of all events, which are texts."""
        owner, key, positions, sizes = self._pairs()
        value = self.interned(positions, sizes)
        value[value < 0] = self.texts.add("")
        return Arguments(self._positions()[owner], key, np.full(len(key), schema.TEXT), value)

    def _decoded_arguments(self) -> dict[str, npt.NDArray[Any]]:
        """The arguments that analyses read."""
        owner, key, positions, sizes = self._pairs()
        is_decoded = np.isin(key, [self.texts.find(name) for name in DECODED_ARGUMENTS])
        value = self.interned(positions[is_decoded], sizes[is_decoded])
        kind = np.full(len(value), schema.TEXT)
        columns = {"value": value, "event": owner[is_decoded], "key": key[is_decoded], "kind": kind}
        return {name: columns[name].astype(dtype) for name, dtype in VALUE_COLUMNS.items()}

    def _pairs(self) -> tuple[Ints, Ints, Ints, Ints]:
        """(event, name as id, position and size of the text) of all arguments."""
        offsets, starts, sizes = parts(self.data, self.starts, self.sizes, _ARGUMENTS)
        positions, span_sizes, _, _ = spans(self.data, starts, sizes, np.array([1, 2], np.int64))
        owner = repeated(np.arange(len(self.starts), dtype=np.int32), np.diff(offsets))
        key = self.interned(positions[:, 0], span_sizes[:, 0])
        return owner, key, positions[:, 1], span_sizes[:, 1]


def _message(data: Bytes, position: int) -> bytes:
    """The event whose tag is at `position`."""
    head = data[position : position + _MOST_HEADER_BYTES].tobytes()
    size, length = read_varint(head, 1)
    return data[position + length : position + length + size].tobytes()
