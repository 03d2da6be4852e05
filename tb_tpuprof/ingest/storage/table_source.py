"""Reads from a streaming trace viewer's table what opening it left undecoded: an event's arguments."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tb_tpuprof.errors import ProfilerError, StorageError
from tb_tpuprof.ingest.storage.files import file_state, read_file
from tb_tpuprof.ingest.storage.leveldb import Table
from tb_tpuprof.ingest.storage.source import FileSource, Value
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields

SUFFIX, ARGUMENTS_SUFFIX = ".SSTABLE", ".metadata.SSTABLE"
METADATA_KEYS = (b"/trace", b"trace")
EVENT_KEY_BYTES = 10
_GROUP, _RAW_DATA, _NAME_TABLE = 5, 8, 8


class TableSource(FileSource):
    """Reads from a table, as long as the file has not changed since it was decoded."""

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All arguments of an event, in the file's order."""
        position = int(trace.events["position"][event])
        if file_state(self.state.path) != self.state:
            raise StorageError(f"{self.state.path} has changed since it was opened.", "Reload the page.")
        table = Table(read_file(self.state.path)[0], self.state.path)
        block = table.entries_at(position)
        row = block.row_at(position)
        if row < 0:
            return []
        message, key = block.value(row), block.key(row)
        raw_data = raw_data_of(message)
        second = None if raw_data else argument_table(self.state.path)
        if second:
            others = second.entries_near(key)
            row = others.row_of(key)
            raw_data = raw_data_of(others.value(row)) if row >= 0 else b""
        return list(arguments_of(message, raw_data, _texts_of(table)).items())


def argument_table(path: str) -> Table | None:
    """The table next to one, which has the arguments; None if there is none or if it is damaged."""
    if not path.endswith(SUFFIX):
        return None
    second = path.removesuffix(SUFFIX) + ARGUMENTS_SUFFIX
    try:
        return Table(read_file(second)[0], second)
    except ProfilerError:
        return None


def arguments_of(message: bytes, raw_data: bytes, text_of: Callable[[int], str | None]) -> dict[str, Value]:
    """The arguments of an event, its group first. `text_of`: the text that a number refers to."""
    arguments: dict[str, Value] = {}
    for number, wire, value in read_fields(message):
        if number == _GROUP and wire == 0 and isinstance(value, int):
            arguments["group_id"] = value - 2**64 if value >= 2**63 else value
    listed = [
        argument
        for number, wire, arguments_message in read_fields(raw_data)
        if number == 2 and wire == 2 and isinstance(arguments_message, bytes)
        for number_of_argument, _, argument in read_fields(arguments_message)
        if number_of_argument == 1 and isinstance(argument, bytes)
    ]
    for argument in listed:
        name, result = _argument(argument, text_of)
        if name and result is not None:
            arguments[name] = result
    return arguments


def raw_data_of(message: bytes) -> bytes:
    """The field of an event's message that has its arguments, empty if absent."""
    values = [value for number, wire, value in read_fields(message) if number == _RAW_DATA and wire == 2]
    return values[-1] if values and isinstance(values[-1], bytes) else b""


def _argument(message: bytes, text_of: Callable[[int], str | None]) -> tuple[str, Value | None]:
    """(name, value) of an argument; None for a value of an unknown kind."""
    name = ""
    result: Value | None = None
    for number, wire, value in read_fields(message):
        if isinstance(value, int):
            signed = value - 2**64 if number == 5 and value >= 2**63 else value
            result = signed if number in (3, 5) else result
        elif number == 1 and wire == 2:
            name = value.decode("utf-8", "replace")
        elif number == 2 and wire == 2:
            result = value.decode("utf-8", "replace")
        elif number == 4 and wire == 1:
            result = float(struct.unpack("<d", value)[0])
        elif number == 6 and wire == 1:
            result = text_of(int.from_bytes(value, "little"))
    return name, result


def _texts_of(table: Table) -> Callable[[int], str | None]:
    """The texts that numbers refer to, read when the first one is asked for."""

    def text_of(ref: int) -> str | None:
        described = _described(table)
        wanted = ref.to_bytes(8, "little")
        for number, wire, entry in read_fields(described):
            if number == _NAME_TABLE and wire == 2 and isinstance(entry, bytes):
                fields = {number: value for number, _, value in read_fields(entry)}
                text = fields.get(2, b"")
                if fields.get(1) == wanted and isinstance(text, bytes):
                    return text.decode("utf-8", "replace")
        return None

    return text_of


def _described(table: Table) -> bytes:
    """The Trace message of a table."""
    for key in METADATA_KEYS:
        entries = table.entries_near(key)
        row = entries.row_of(key)
        if row >= 0:
            return entries.value(row)
    return b""
