"""Traces drawn as text: rows are lines, columns are time.

    drawing('''
        main     [train      ][train      ]
        worker     <MatMul:MatMul>
    ''')

A character is a microsecond. `[name ]` and `<name >` are events from the opening bracket to the closing one,
both included: as long as the text is wide. Lines of one thread that overlap are drawn on several rows of the
same name, the outer ones first. A plane begins with a row that ends in a colon (`/device:GPU:0:`); without
one all is on `/host:CPU`. Stats come in a mapping from an event's name to its stats, or to a list of them,
one for each event of the name in time order.
"""

from __future__ import annotations

import re
import struct
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tb_tpuprof.ingest.storage.programs import programs_of
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import table_from_rows
from tb_tpuprof.trace.trace import Trace, TraceInfo

PS = 1_000_000  # a column is a microsecond
Value = int | float | str | bytes
Stats = Mapping[str, Value]
_EVENT = re.compile(r"\[([^\[\]<>]*)\]|<([^\[\]<>]*)>")


@dataclass
class DrawnEvent:
    """An event as drawn; times in ps."""

    name: str
    start_ps: int
    duration_ps: int
    stats: Stats = field(default_factory=dict)


def event(name: str, start: int, length: int, **stats: Value) -> DrawnEvent:
    """An event whose times are in units of PS, as in drawings."""
    return DrawnEvent(name, start * PS, length * PS, stats)


@dataclass
class DrawnPlane:
    """A plane as drawn: its lines by name, its own stats, stats of its metadata by event name, ids of lines
    by name.
    """

    name: str
    lines: dict[str, list[DrawnEvent]] = field(default_factory=dict)
    stats: Stats = field(default_factory=dict)
    metadata_stats: Mapping[str, Stats] = field(default_factory=dict)
    line_ids: Mapping[str, int] = field(default_factory=dict)


class Blobs:
    """Bytes of stats, in place of a file."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, value: bytes) -> int:
        """The position of these bytes."""
        self.data += value
        return len(self.data) - len(value)

    def read(self, position: int, size: int) -> bytes:
        """The bytes at a position."""
        return bytes(self.data[position : position + size])

    def block(self, position: int, size: int) -> np.ndarray:
        """The same as an array."""
        return np.frombuffer(self.read(position, size), np.uint8)

    def event_stats(self, _trace: Trace, _event: int) -> list[tuple[str, str | int | float]]:
        """Nothing: drawn traces keep all stats in their tables."""
        return []

    def programs(self, trace: Trace) -> Programs:
        """The programs whose HLO stats hold."""
        return programs_of(trace)


def drawn_planes(text: str, stats: Mapping[str, Stats | Sequence[Stats]] | None = None) -> list[DrawnPlane]:
    """Planes of a drawing."""
    planes = [DrawnPlane("/host:CPU")]
    rows = [row for row in textwrap.dedent(text).splitlines() if row.strip()]
    for row in rows:
        if row.rstrip().endswith(":") and not _EVENT.search(row):
            planes.append(DrawnPlane(row.strip()[:-1]))
            continue
        label = _label(row)
        events = planes[-1].lines.setdefault(label, [])
        for match in _EVENT.finditer(row):
            name = (match[1] if match[1] is not None else match[2]).strip()
            events.append(DrawnEvent(name, match.start() * PS, (match.end() - match.start()) * PS))
    for plane in planes:
        for events in plane.lines.values():
            events.sort(key=lambda event: (event.start_ps, -event.duration_ps))
    _attach(planes, stats or {})
    return [plane for plane in planes if plane.lines]


def _label(row: str) -> str:
    """The line's name: what stands before the first event."""
    match = _EVENT.search(row)
    return row[: match.start()].strip() if match else row.strip()


def _attach(planes: list[DrawnPlane], stats: Mapping[str, Stats | Sequence[Stats]]) -> None:
    by_name: dict[str, list[DrawnEvent]] = {}
    for plane in planes:
        for events in plane.lines.values():
            for event in events:
                by_name.setdefault(event.name, []).append(event)
    for name, given in stats.items():
        events = sorted(by_name[name], key=lambda event: event.start_ps)
        each = [given] * len(events) if isinstance(given, Mapping) else list(given)
        for event, values in zip(events, each, strict=True):
            event.stats = values


def drawing(text: str, stats: Mapping[str, Stats | Sequence[Stats]] | None = None, **info: object) -> Trace:
    """The trace of a drawing."""
    return build(drawn_planes(text, stats), **info)


class _Interner:
    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids))


def build(planes: Sequence[DrawnPlane], **info: object) -> Trace:
    """A Trace of planes. `info` overrides fields of TraceInfo."""
    intern, blobs = _Interner(), Blobs()
    rows: dict[str, list[tuple[int, ...]]] = {
        key: [] for key in ("planes", "lines", "events", "metadata", "event", "meta", "plane")
    }
    for number, plane in enumerate(planes):
        rows["planes"].append((number, intern(plane.name)))
        rows["plane"] += [_stat(number, key, value, intern, blobs) for key, value in plane.stats.items()]
        names = list(dict.fromkeys(event.name for events in plane.lines.values() for event in events))
        metadata = {name: len(rows["metadata"]) + i for i, name in enumerate(names)}
        for name, row in metadata.items():
            rows["metadata"].append((number, row, intern(name), -1))
            rows["meta"] += [
                _stat(row, key, value, intern, blobs)
                for key, value in plane.metadata_stats.get(name, {}).items()
            ]
        for line, events in plane.lines.items():
            line_id = plane.line_ids.get(line, len(rows["lines"]) + 1)
            rows["lines"].append((number, line_id, 0, intern(line), len(rows["events"]), len(events)))
            for event in events:
                row = len(rows["events"])
                rows["events"].append((event.start_ps, event.duration_ps, metadata[event.name], 0))
                rows["event"] += [_stat(row, key, value, intern, blobs) for key, value in event.stats.items()]
    strings = Strings.of(text.encode() for text in intern.ids)
    by_key = [sorted(rows[key], key=lambda row: (row[1], row[0])) for key in ("event", "meta", "plane")]
    tables = [StatTable(table_from_rows(schema.STATS, made), strings) for made in by_key]
    fields = {"host": "host", "path": "drawn", "size_bytes": 0, "start_ns": 0, **info}
    return Trace(
        TraceInfo(**fields),  # type: ignore[arg-type]
        strings,
        table_from_rows(schema.PLANES, rows["planes"]),
        table_from_rows(schema.LINES, rows["lines"]),
        table_from_rows(schema.EVENTS, rows["events"]),
        table_from_rows(schema.METADATA, rows["metadata"]),
        table_from_rows(schema.AGGREGATES, []),
        table_from_rows(schema.STAT_NAMES, []),
        *tables,
        blobs,
    )


def _stat(owner: int, key: str, value: Value, intern: _Interner, blobs: Blobs) -> tuple[int, ...]:
    if isinstance(value, str):
        return owner, intern(key), schema.TEXT, intern(value), 0
    if isinstance(value, bytes):
        return owner, intern(key), schema.BYTES, blobs.put(value), len(value)
    if isinstance(value, float):
        return owner, intern(key), schema.DOUBLE, struct.unpack("<q", struct.pack("<d", value))[0], 0
    return owner, intern(key), schema.INT, value, 0
