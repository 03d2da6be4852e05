"""XSpace bytes → Trace through the protobuf runtime and plain Python: the fallback if no extension is built,
and the oracle in tests.

Reads the same as `decoder.py` in the plainest way, with an object per event: correct rather than fast. A
damaged part fails the whole file here, since the runtime parses all or nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.storage.programs import programs_of
from tb_tpuprof.ingest.xspace.counter_lines import is_counter_line, with_counters
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import table_from_rows
from tb_tpuprof.trace.trace import Trace, TraceInfo

LIMIT = 2**61
UNNAMED_ID = -(2**63)
UNKNOWN_EVENT = b"(unknown event)"
_KINDS = {
    "double_value": schema.DOUBLE, "uint64_value": schema.UINT, "int64_value": schema.INT,
    "str_value": schema.TEXT, "bytes_value": schema.BYTES, "ref_value": 7,
}  # fmt: skip
Value = str | int | float


@dataclass
class _Rows:
    """Rows of each table, gathered while reading."""

    strings: dict[bytes, int] = field(default_factory=dict)
    planes: list[Any] = field(default_factory=list)
    lines: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    events: dict[tuple[int, int], list[Any]] = field(default_factory=lambda: defaultdict(list))
    metadata: list[Any] = field(default_factory=list)
    aggregates: list[Any] = field(default_factory=list)
    stat_names: list[Any] = field(default_factory=list)
    metadata_stats: list[Any] = field(default_factory=list)
    plane_stats: list[Any] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    blob: bytearray = field(default_factory=bytearray)
    n_left_out: int = 0

    def string(self, text: bytes) -> int:
        return self.strings.setdefault(text, len(self.strings))


class MessageSource:
    """Keeps the parsed messages: an event's position is its number in `messages` plus one, that of a stat's
    bytes their offset in `blob`.
    """

    def __init__(self, messages: list[Any], blob: bytearray, names: list[dict[int, bytes]]) -> None:
        self.messages = messages
        self.blob = blob
        self.names = names

    def read(self, position: int, size: int) -> bytes:
        """Bytes of stats, which are stored end to end."""
        return bytes(self.blob[position : position + size])

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns an array."""
        return np.frombuffer(self.read(position, size), np.uint8)

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, Value]]:
        """All stats of an event."""
        position = int(trace.events["position"][event])
        return self.stats_at(position) if position else []

    def stats_at(self, position: int) -> list[tuple[str, Value]]:
        """All stats of the event at a position."""
        plane, message = self.messages[position - 1]
        return [pair for stat in message.stats for pair in self._stat(stat, self.names[plane])]

    def programs(self, trace: Trace) -> Programs:
        """The compiled programs of the host."""
        return programs_of(trace)

    def _stat(self, stat: Any, names: dict[int, bytes]) -> list[tuple[str, Value]]:
        value_field = stat.WhichOneof("value")
        if value_field is None:
            return []
        name = names.get(stat.metadata_id, f"(stat {stat.metadata_id})".encode()).decode("utf-8", "replace")
        value = getattr(stat, value_field)
        if value_field == "ref_value":
            value = names.get(value, f"(text {value})".encode())
        if value_field == "bytes_value":
            return [(name, f"({len(value)} bytes)")]
        return [(name, value.decode("utf-8", "replace") if isinstance(value, bytes) else value)]


def decode_protobuf(
    data: npt.NDArray[np.uint8],
    path: str,
    host: str,
    damage: str = "",
    stats: frozenset[str] | None = None,
) -> Trace:
    """Decode a whole XSpace. Raises TraceFormatError if the bytes are not one. `damage`: what the file lacks,
    if it is only the intact part of one. `stats`: the stats of events to decode instead of those that
    analyses read.
    """
    return with_counters(decode_protobuf_tables(data, path, host, damage, stats))


def decode_protobuf_tables(
    data: npt.NDArray[np.uint8],
    path: str,
    host: str,
    damage: str = "",
    stats: frozenset[str] | None = None,
) -> Trace:
    """Like `decode_protobuf`, but samples of counters stay the events that they are in the file."""
    from google.protobuf.message import DecodeError

    if not len(data):
        raise TraceFormatError(path, -1, "is empty")
    space = xspace_class()()
    try:
        space.ParseFromString(data.tobytes())
    except DecodeError:
        raise TraceFormatError(path, -1, "is cut off, damaged or not an XSpace profile") from None
    if not (space.planes or space.errors or space.warnings or space.hostnames):
        raise TraceFormatError(path, 0, "is not a profile: it does not begin as an XSpace protobuf")
    if len(space.planes) > schema.MAX_PLANES:
        raise TraceFormatError(path, -1, f"contains {len(space.planes):,} planes, more than a profile has")
    n_lines = sum(len(plane.lines) for plane in space.planes)
    if n_lines > schema.MAX_LINES:
        raise TraceFormatError(path, -1, f"contains {n_lines:,} lines, more than a profile has")
    rows = _Rows()
    starts = [line.timestamp_ns for plane in space.planes for line in plane.lines if line.events]
    start_ns = min(starts, default=0)
    names = [_plane(rows, number, plane, start_ns) for number, plane in enumerate(space.planes)]
    return _trace(
        rows,
        space,
        names,
        TraceInfo(host, path, len(data), start_ns, damage=damage, n_damaged=int(bool(damage))),
        stats,
    )


def _plane(rows: _Rows, number: int, plane: Any, start_ns: int) -> dict[int, bytes]:
    rows.planes.append((plane.id, rows.string(plane.name)))
    names = {entry.key: entry.value.name for entry in plane.stat_metadata}
    rows.stat_names += [(number, entry.key, rows.string(entry.value.name)) for entry in plane.stat_metadata]
    metadata_rows = {}
    for entry in plane.event_metadata:
        display = rows.string(entry.value.display_name) if entry.value.display_name else -1
        metadata_rows[entry.key] = len(rows.metadata)
        rows.metadata_stats += _stats(rows, len(rows.metadata), entry.value.stats, names, None)
        rows.metadata.append((number, entry.key, rows.string(entry.value.name), display))
    unknown = len(rows.metadata)
    rows.metadata.append((number, UNNAMED_ID, rows.string(UNKNOWN_EVENT), -1))
    rows.plane_stats += _stats(rows, number, plane.stats, names, None)
    for line in plane.lines:
        _line(rows, number, line, start_ns, lambda key: metadata_rows.get(key, unknown))
    return names


def _line(rows: _Rows, plane: int, line: Any, start_ns: int, metadata_row: Any) -> None:
    key = (plane, line.id)
    rows.lines.setdefault(key, [plane, line.id, line.display_id, rows.string(line.display_name or line.name)])
    line_start = _clamped((line.timestamp_ns - start_ns) * 1000)
    number = list(rows.lines).index(key)
    keeps_all = is_counter_line((line.display_name or line.name).decode("utf-8", "replace"))
    for event in line.events:
        if not event.ByteSize():
            rows.n_left_out += 1
            continue
        row = metadata_row(event.metadata_id)
        duration = min(max(event.duration_ps, 0), LIMIT)
        if event.WhichOneof("data") == "num_occurrences":
            rows.aggregates.append((number, row, min(max(event.num_occurrences, 0), LIMIT), duration))
            continue
        position = 0
        if event.stats:
            rows.messages.append((plane, event))
            position = len(rows.messages)
        rows.events[key].append(
            (
                _clamped(_clamped(event.offset_ps) + line_start),
                duration,
                row,
                position,
                event,
                plane,
                keeps_all,
            )
        )


def _clamped(value: int) -> int:
    return min(max(value, -LIMIT), LIMIT)


def _stats(
    rows: _Rows, owner: int, stats: Any, names: dict[int, bytes], kept_names: set[bytes] | None
) -> list[tuple[int, ...]]:
    stat_rows: list[tuple[int, ...]] = []
    for stat in stats:
        value_field = stat.WhichOneof("value")
        name = names.get(stat.metadata_id)
        if value_field is None or name is None or (kept_names is not None and name not in kept_names):
            continue
        kind, value, size = _KINDS[value_field], getattr(stat, value_field), 0
        if kind == 7:
            if value not in names:
                continue
            kind, value = schema.TEXT, names[value]
        if kind == schema.BYTES:
            size = len(value)
            rows.blob += value
            value = len(rows.blob) - len(value)
        elif kind == schema.TEXT:
            value = rows.string(value)
        elif kind == schema.DOUBLE:
            value = int(np.float64(value).view(np.int64))
        elif value >= 2**63:
            value -= 2**64
        stat_rows.append((owner, rows.string(name), kind, value, size))
    return stat_rows


def _trace(
    rows: _Rows,
    space: Any,
    names: list[dict[int, bytes]],
    info: TraceInfo,
    chosen_stats: frozenset[str] | None,
) -> Trace:
    hot = schema.hot_stats(plane.name.decode("utf-8", "replace") for plane in space.planes)
    hot_names = {name.encode() for name in (hot if chosen_stats is None else chosen_stats)}
    lines: list[Any] = []
    events: list[Any] = []
    stats: list[tuple[int, ...]] = []
    for key, line in rows.lines.items():
        ordered = sorted(rows.events[key], key=lambda event: (event[0], -event[1]))
        lines.append((*line, len(events), len(ordered)))
        for *columns, message, plane, keeps_all in ordered:
            stats += _stats(rows, len(events), message.stats, names[plane], None if keeps_all else hot_names)
            events.append(columns)
    shift_ns = min((event[0] for event in events), default=0) // 1000
    events = [(start - shift_ns * 1000, *rest) for start, *rest in events]

    def texts(values: Any) -> tuple[str, ...]:
        return tuple(value[:10_000].decode("utf-8", "replace") for value in values[:1000])

    info_fields = {
        "start_ns": info.start_ns + shift_ns,
        "hostnames": texts(space.hostnames),
        "errors": texts(space.errors),
        "warnings": texts(space.warnings),
        "n_damaged": info.n_damaged + rows.n_left_out,
    }
    strings = Strings.of(rows.strings)
    tables: dict[str, Any] = {
        "planes": table_from_rows(schema.PLANES, rows.planes),
        "lines": table_from_rows(schema.LINES, lines),
        "events": table_from_rows(schema.EVENTS, events),
        "metadata": table_from_rows(schema.METADATA, rows.metadata),
        "aggregates": table_from_rows(schema.AGGREGATES, rows.aggregates),
        "stat_names": table_from_rows(schema.STAT_NAMES, rows.stat_names),
    }
    for name, stat_rows in (
        ("event_stats", stats),
        ("metadata_stats", rows.metadata_stats),
        ("plane_stats", rows.plane_stats),
    ):
        by_key = sorted(stat_rows, key=lambda stat: (stat[1], stat[0]))
        tables[name] = StatTable(table_from_rows(schema.STATS, by_key), strings)
    source = MessageSource(rows.messages, rows.blob, names)
    return Trace(TraceInfo(**{**info.__dict__, **info_fields}), strings, source=source, **tables)
