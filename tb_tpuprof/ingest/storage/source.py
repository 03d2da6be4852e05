"""Reads from a trace's file what opening it left undecoded: single events' stats, and blobs such as HLO
protos.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.storage.files import FileState, read_packed_range, read_range
from tb_tpuprof.ingest.storage.programs import programs_of
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields, read_varint

Value = str | int | float
_FIRST_READ = 1 << 16
_MAX_EVENT_BYTES = 64 * 2**20


class FileSource:
    """Reads from a plain (not gzipped) XSpace file, as long as it has not changed since it was decoded."""

    def __init__(self, state: FileState) -> None:
        self.state = state

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file. Raises StorageError if it is gone or has changed."""
        return self.block(position, size).tobytes()

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns an array, which avoids a copy of large parts."""
        return read_range(self.state, position, size)

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All stats of an event, in the file's order."""
        position = int(trace.events["position"][event])
        if not position:
            return []
        names = self._names(trace, event)
        message = self._message(position)
        return [
            stat
            for number, wire, value in read_fields(message)
            if number == 4 and wire == 2
            for stat in _stat(value, names)
        ]

    def programs(self, trace: Trace) -> Programs:
        """The compiled programs of the host."""
        return programs_of(trace)

    def _names(self, trace: Trace, event: int) -> Names:
        """The names of the stats that an event may have, by id."""
        return StatNames(trace, int(trace.metadata["plane"][int(trace.events["metadata"][event])]))

    def _message(self, position: int) -> bytes:
        """The event's message, whose tag is at `position`."""
        head = self.read(position, _FIRST_READ)
        _, offset = read_varint(head, 0)
        size, offset = read_varint(head, offset)
        if size > _MAX_EVENT_BYTES:
            raise TraceFormatError(self.state.path, position, f"contains an event of {size} bytes")
        return (
            head[offset : offset + size] if offset + size <= len(head) else self.read(position + offset, size)
        )


class BytesSource(FileSource):
    """Reads from an XSpace that is in memory and was never a file."""

    def __init__(self, state: FileState, data: npt.NDArray[np.uint8]) -> None:
        super().__init__(state)
        self.data = data

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the XSpace."""
        return self.block(position, size).tobytes()

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns a view of the same memory."""
        return self.data[position : position + size]


class PackedSource(FileSource):
    """Reads from a gzipped file, which must be unpacked up to the position: slow, but only the requested
    bytes are kept.
    """

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the unpacked file. Raises StorageError if the file is gone or has changed."""
        return read_packed_range(self.state, position, size)

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns an array."""
        return np.frombuffer(self.read(position, size), np.uint8)


class TraceEventSource(FileSource):
    """Reads from a plain file of TensorFlow's Trace protobuf, whose events have their arguments as pairs of
    texts.
    """

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All arguments of an event, in the file's order."""
        position = int(trace.events["position"][event])
        return list(event_arguments(self._message(position)).items()) if position else []


class PackedTraceEventSource(TraceEventSource):
    """Reads from a gzipped file of TensorFlow's Trace protobuf, which must be unpacked up to the position."""

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Bytes of the unpacked file. Raises StorageError if the file is gone or has changed."""
        return np.frombuffer(read_packed_range(self.state, position, size), np.uint8)


class ColumnSource(FileSource):
    """A file whose arguments were all decoded on opening."""

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All arguments of an event, by name."""
        table = trace.event_stats
        arguments: list[tuple[str, Value]] = []
        for name in table.names():
            column = table.columns(name)
            first, last = np.searchsorted(column.owner, [event, event + 1]).tolist()
            if not name.startswith("("):
                values = zip(column.kind[first:last].tolist(), column.value[first:last], strict=True)
                arguments += [(name, _value(trace, kind, value)) for kind, value in values]
        return sorted(arguments, key=lambda pair: pair[0])


def _value(trace: Trace, kind: int, value: np.int64) -> Value:
    if kind == schema.TEXT:
        return trace.strings.get(int(value))
    if kind == schema.DOUBLE:
        return float(value.view(np.float64))
    return int(value.view(np.uint64) if kind == schema.UINT else value)


def event_arguments(message: bytes) -> dict[str, Value]:
    """The arguments (field 11, a map of texts) of a TraceEvent."""
    entries = [
        value
        for number, wire, value in read_fields(message)
        if number == 11 and wire == 2 and isinstance(value, bytes)
    ]
    pairs = [
        {
            number: value
            for number, wire, value in read_fields(entry)
            if wire == 2 and isinstance(value, bytes)
        }
        for entry in entries
    ]
    return {
        pair.get(1, b"").decode("utf-8", "replace"): pair.get(2, b"").decode("utf-8", "replace")
        for pair in pairs
    }


class StatNames:
    """The names of a plane's stats, by id; each is decoded when it is requested."""

    def __init__(self, trace: Trace, plane: int) -> None:
        rows = np.flatnonzero(trace.stat_names["plane"] == plane)
        ids, names = trace.stat_names["id"][rows].tolist(), trace.stat_names["name"][rows].tolist()
        self._names = dict(zip(ids, names, strict=True))
        self._strings = trace.strings

    def get(self, key: int, default: str) -> str:
        """The name of a stat, or `default` for an unknown id."""
        name = self._names.get(key)
        return default if name is None else self._strings.get(name)


Names = StatNames | dict[int, str]


def _stat(message: int | bytes, names: Names) -> list[tuple[str, Value]]:
    """One XStat as (name, value); empty if it has no value."""
    key, result = 0, None
    for number, wire, value in read_fields(message) if isinstance(message, bytes) else []:
        if number == 1 and isinstance(value, int):
            key = value
        elif isinstance(value, int):
            result = stat_number(number, value, names) if number in (schema.UINT, schema.INT, 7) else result
        elif number == schema.DOUBLE and wire == 1:
            result = float(struct.unpack("<d", value)[0])
        elif number == schema.TEXT and wire == 2:
            result = value.decode("utf-8", "replace")
        elif number == schema.BYTES and wire == 2:
            result = f"({len(value)} bytes)"
    return [] if result is None else [(names.get(key, f"(stat {key})"), result)]


def stat_number(kind: int, value: int, names: Names) -> Value:
    """A varint interpreted by its kind: uint64, int64, or a reference to a text."""
    signed = value - 2**64 if value >= 2**63 else value
    if kind == 7:
        return names.get(signed, f"(text {signed})")
    return signed if kind == schema.INT else value
