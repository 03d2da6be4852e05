"""Traces of the pieces of one stream → one trace. Each piece is a whole XSpace with ids of its own.

    piece 1   /host:CPU   thread 7 ▪▪▪   1 dot, 2 add          whole   /host:CPU   thread 7 ▪▪▪▪▪
    piece 2   /host:CPU   thread 7 ▪▪    1 add, 2 tanh                             thread 9 ▪
                          thread 9 ▪                                  1 dot, 2 add, 3 tanh

What counts as the same in two pieces:

    plane             its name; the second plane of a name continues the second one
    line              its id within the plane, as in a single XSpace; its first name stays
    metadata          name, display name and all stats; its id stays unless other metadata have it already
    stat's name       the name
    stat of a plane   its name; the last piece that has it counts

Events of a line come piece by piece; lines whose pieces overlap in time are sorted. A piece's bytes are
needed only while it is added: afterwards there are its columns alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.xspace.counter_lines import is_counter_line, with_counters
from tb_tpuprof.ingest.xspace.piece_rows import (
    DistinctEntries,
    DistinctRows,
    GrownColumns,
    Ints,
    moved_rows,
    n_equal_before,
    places,
    unique_ids,
)
from tb_tpuprof.ingest.xspace.piece_stats import MergedStats, PackedStats, PieceLines, by_key, packed
from tb_tpuprof.native import Interner
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.native.memory import new_array
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace, TraceInfo, TraceSource

Block = Callable[[int, int], npt.NDArray[np.uint8]]
Columns = dict[str, npt.NDArray[Any]]
MAX_EVENTS = 2**31 - 2
MAX_PIECES = 100_000  # even a tiny one takes 2 ms
_TIME_LIMIT_PS = 2**61
_MOST_TEXTS = 1000  # of the profiler's errors, warnings and host names
_STAT_WORDS = 4  # of a stat within a row that stands for metadata
_HEAD_WORDS = 4


@dataclass
class _Piece:
    """What is kept of a piece with events or aggregates: its columns, with rows of `metadata` and `lines` as
    numbers of the whole. `first_ns`: the clock at its first event.
    """

    first_ns: int
    base: int
    events: Columns
    aggregates: Columns
    metadata: Ints
    lines: Ints
    n_events: Ints


class TraceMerger:
    """Adds pieces in the stream's order; `trace` is the whole. `path` is for errors."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.n_events = self.n_damaged = 0
        self.info: TraceInfo | None = None
        self._strings = Interner(int.from_bytes(os.urandom(8), "little"))
        self._pieces: list[_Piece] = []
        self._stats: dict[int, list[tuple[int, PackedStats]]] = {}
        self._plane_numbers, self._line_numbers = DistinctEntries(), DistinctRows()
        self._metadata_numbers, self._stat_name_numbers = DistinctEntries(), DistinctEntries()
        self._planes = GrownColumns(("id", "name"))
        self._lines = GrownColumns(("plane", "id", "display_id", "name"))
        self._metadata = GrownColumns(("plane", "id", "name", "display_name", "is_unknown"))
        self._stat_names = GrownColumns(("plane", "id", "name"))
        self._metadata_stats = GrownColumns(("owner", "key", "kind", "value", "size"))
        self._plane_stats = GrownColumns(("owner", "key", "kind", "value", "size", "piece"))

    def add(self, piece: Trace, block: Block, base: int) -> None:
        """Add the trace of a piece. `block` returns its bytes; in the whole their positions count from `base`
        on. Raises TraceFormatError if the whole exceeds a limit.
        """
        self._add_info(piece.info)
        self._check_size(piece)
        blob, offsets = piece.strings.blob, piece.strings.offsets
        string_ids = self._strings.add(np.ascontiguousarray(blob), offsets[:-1], np.diff(offsets))
        planes = self._add_planes(piece, string_ids)
        lines = self._add_lines(piece, string_ids, planes)
        metadata = self._add_metadata(piece, string_ids, planes, (block, base))
        stats = _stat_columns(piece.plane_stats, string_ids, base)
        stats["owner"] = planes[stats["owner"]]
        n_stats = len(stats["owner"])
        self._plane_stats.add(np.arange(n_stats), **stats, piece=np.full(n_stats, len(self._pieces)))
        number = len(self._pieces)
        self._pieces.append(_kept(piece, base, lines, metadata))
        for key, columns in by_key(piece.event_stats.stats):
            part = packed(columns, string_ids, base)
            self._stats.setdefault(int(string_ids[key]), []).append((number, part))

    def trace(
        self, info: TraceInfo, source: TraceSource, chosen_stats: frozenset[str] | None = None
    ) -> Trace:
        """The whole. `info` has what pieces do not know: host, path, damage. Ends with this call: the pieces
        are gone. `chosen_stats`: the stats of events to keep; if None, those that analyses read.
        """
        strings = Strings(*self._strings.strings())
        line_order = np.argsort(self._lines["plane"], kind="stable")
        metadata_order = np.lexsort((self._metadata["is_unknown"], self._metadata["plane"]))
        line_rows, metadata_rows = _inverse(line_order), _inverse(metadata_order)
        start_ns = min((p.first_ns for p in self._pieces if p.n_events.any()), default=None)
        if start_ns is None:
            start_ns = min((p.first_ns for p in self._pieces if len(p.aggregates["line"])), default=0)
        aggregates = self._aggregates(line_rows, metadata_rows)
        lines = [PieceLines(line_rows[piece.lines], piece.n_events) for piece in self._pieces]
        first, shifts = places([p.rows for p in lines], [p.n_events for p in lines], len(line_order))
        events, boundaries = self._events(start_ns, shifts, metadata_rows, info.size_bytes)
        new_row = _sort_lines(events, first, boundaries)
        kept = self._kept_stats(strings, chosen_stats)
        stats = {key: parts for key, parts in self._stats.items() if kept is None or key in kept}
        trace = Trace(
            replace(info, start_ns=start_ns),
            strings,
            self._planes_table(),
            self._lines_table(line_order, first),
            Table(schema.EVENTS, events),
            self._metadata_table(metadata_order),
            aggregates,
            self._stat_names_table(),
            StatTable(MergedStats(stats, lines, len(line_order), new_row), strings),
            StatTable(self._metadata_stats_table(metadata_rows), strings),
            StatTable(self._plane_stats_table(), strings),
            source,
        )
        self._stats = {}
        whole = with_counters(trace)
        return whole if kept is not None else self._without_cold(whole, chosen_stats)

    def merged_info(self, info: TraceInfo) -> TraceInfo:
        """Facts with the pieces' host names, errors and warnings, each text once."""
        own = self.info or info
        return replace(info, hostnames=own.hostnames, errors=own.errors, warnings=own.warnings)

    def _add_info(self, info: TraceInfo) -> None:
        def both(before: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(dict.fromkeys((*before, *now)))[:_MOST_TEXTS]

        before = self.info or replace(info, hostnames=(), errors=(), warnings=())
        self.n_damaged += info.n_damaged
        self.info = replace(
            before,
            hostnames=both(before.hostnames, info.hostnames),
            errors=both(before.errors, info.errors),
            warnings=both(before.warnings, info.warnings),
        )

    def _check_size(self, piece: Trace) -> None:
        """Raises TraceFormatError if a limit is exceeded."""
        self.n_events += piece.n_events
        if len(self._pieces) >= MAX_PIECES:
            raise TraceFormatError(
                self.path, -1, f"contains more than {MAX_PIECES:,} pieces, more than a profile has"
            )
        if self.n_events > min(MAX_EVENTS, max_events()):
            raise TraceFormatError(
                self.path,
                -1,
                f"contains more than {min(MAX_EVENTS, max_events()):,} events, which do not fit into this "
                "machine's memory",
                "Profile for a shorter time.",
            )

    def _add_planes(self, piece: Trace, string_ids: npt.NDArray[np.int32]) -> Ints:
        """The number of each plane of a piece."""
        before, names = len(self._plane_numbers), string_ids[piece.planes["name"]]
        numbers = self._plane_numbers.add(names)
        self._planes.add(numbers >= before, id=piece.planes["id"], name=names)
        return numbers

    def _add_lines(self, piece: Trace, string_ids: npt.NDArray[np.int32], planes: Ints) -> Ints:
        """The number of each line of a piece. Adds names of the planes' stats, too."""
        table, before = piece.lines, len(self._line_numbers)
        plane = planes[table["plane"]]
        numbers = self._line_numbers.add(plane, table["id"])
        if len(self._plane_numbers) > schema.MAX_PLANES or len(self._line_numbers) > schema.MAX_LINES:
            raise TraceFormatError(self.path, -1, "contains more planes or lines than a profile has")
        names = string_ids[table["name"]]
        self._lines.add(
            numbers >= before, plane=plane, id=table["id"], display_id=table["display_id"], name=names
        )
        table, before = piece.stat_names, len(self._stat_name_numbers)
        plane, names = planes[table["plane"]], string_ids[table["name"]]
        is_new = self._stat_name_numbers.add(plane, names) >= before
        self._stat_names.add(is_new, plane=plane, id=table["id"], name=names)
        return numbers

    def _add_metadata(
        self, piece: Trace, string_ids: npt.NDArray[np.int32], planes: Ints, place: tuple[Block, int]
    ) -> Ints:
        """The number of each row of metadata of a piece."""
        table, before = piece.metadata, len(self._metadata_numbers)
        plane, names = planes[table["plane"]], string_ids[table["name"]]
        display = np.where(table["display_name"] >= 0, string_ids[table["display_name"]], -1)
        is_unknown = np.append(table["plane"][1:] != table["plane"][:-1], True)[: len(table)]
        stats = _stat_columns(piece.metadata_stats, string_ids, place[1])
        rows = _content_rows((plane, is_unknown, names, display), stats, place)
        numbers = self._metadata_numbers.add_uneven(*rows)
        is_new = numbers >= before
        self._metadata.add(
            is_new, plane=plane, id=table["id"], name=names, display_name=display, is_unknown=is_unknown
        )
        has_new_owner = is_new[stats["owner"]]
        stats["owner"] = numbers[stats["owner"]]
        self._metadata_stats.add(has_new_owner, **stats)
        return numbers

    def _aggregates(self, line_rows: Ints, metadata_rows: Ints) -> Table:
        """Aggregates of all pieces, by line."""
        names = [spec.name for spec in schema.AGGREGATES]
        columns = {
            name: np.concatenate([np.empty(0, np.int64), *(piece.aggregates[name] for piece in self._pieces)])
            for name in names
        }
        columns["line"] = line_rows[columns["line"].astype(np.int64)]
        columns["metadata"] = metadata_rows[columns["metadata"].astype(np.int64)]
        order = np.argsort(columns["line"], kind="stable")
        return Table(
            schema.AGGREGATES,
            {spec.name: columns[spec.name][order].astype(spec.dtype) for spec in schema.AGGREGATES},
        )

    def _events(
        self, start_ns: int, shifts: list[Ints], metadata_rows: Ints, n_bytes: int
    ) -> tuple[Columns, Ints]:
        """(the events of all pieces, line by line; the rows at which a piece goes on with a line). Frees the
        pieces' columns one after another.
        """
        narrow = {"position": "uint32"} if n_bytes < 2**32 else {}
        events: Columns = {
            spec.name: new_array(self.n_events, narrow.get(spec.name, spec.dtype)) for spec in schema.EVENTS
        }
        boundaries = [np.empty(0, np.int64)]
        for piece, shift in zip(self._pieces, shifts, strict=True):
            rows, own = moved_rows(shift, piece.n_events), piece.events
            boundaries.append((shift + np.cumsum(piece.n_events) - piece.n_events)[piece.n_events > 0])
            later_ps = min((piece.first_ns - start_ns) * 1000, _TIME_LIMIT_PS)
            events["start_ps"][rows] = np.minimum(own["start_ps"], 2 * _TIME_LIMIT_PS) + later_ps
            events["duration_ps"][rows] = own["duration_ps"]
            events["metadata"][rows] = metadata_rows[piece.metadata][own["metadata"]]
            position = own["position"]
            events["position"][rows] = np.where(position > 0, position + np.uint64(piece.base), 0)
            piece.events = {}
        return events, np.concatenate(boundaries)

    def _kept_stats(self, strings: Strings, chosen: frozenset[str] | None) -> set[int] | None:
        """Keys of the stats of events to keep. None for all: lines of counters need every stat until they are
        counters.
        """
        if any(is_counter_line(strings.get(name)) for name in self._lines["name"].tolist()):
            return None
        return {strings.find(name) for name in self._names_to_keep(strings, chosen)}

    def _names_to_keep(self, strings: Strings, chosen: frozenset[str] | None) -> frozenset[str]:
        plane_names = [strings.get(name) for name in self._planes["name"].tolist()]
        return schema.hot_stats(plane_names) if chosen is None else chosen

    def _without_cold(self, trace: Trace, chosen: frozenset[str] | None) -> Trace:
        """A trace that has become one with counters, without the stats that served only these."""
        strings, table = trace.strings, trace.event_stats.table
        names = self._names_to_keep(strings, chosen)
        is_kept = np.isin(table["key"], [strings.find(name) for name in names])
        columns = {name: values[is_kept] for name, values in table.columns.items()}
        return replace(trace, event_stats=StatTable(Table(schema.STATS, columns), strings))

    def _planes_table(self) -> Table:
        return _table(schema.PLANES, {name: self._planes[name] for name in ("id", "name")})

    def _lines_table(self, order: Ints, first: Ints) -> Table:
        columns = {name: self._lines[name][order] for name in ("plane", "id", "display_id", "name")}
        return _table(schema.LINES, {**columns, "first_event": first[:-1], "n_events": np.diff(first)})

    def _metadata_table(self, order: Ints) -> Table:
        columns = {spec.name: self._metadata[spec.name][order] for spec in schema.METADATA}
        is_named = self._metadata["is_unknown"][order] == 0
        columns["id"][is_named] = unique_ids(columns["plane"][is_named], columns["id"][is_named])
        return _table(schema.METADATA, columns)

    def _stat_names_table(self) -> Table:
        order = np.argsort(self._stat_names["plane"], kind="stable")
        columns = {spec.name: self._stat_names[spec.name][order] for spec in schema.STAT_NAMES}
        columns["id"] = unique_ids(columns["plane"], columns["id"])
        return _table(schema.STAT_NAMES, columns)

    def _metadata_stats_table(self, metadata_rows: Ints) -> Table:
        columns = {spec.name: self._metadata_stats[spec.name] for spec in schema.STATS}
        columns["owner"] = metadata_rows[columns["owner"]]
        return _by_key_and_owner(columns)

    def _plane_stats_table(self) -> Table:
        """Of each name that a plane has, the stats of the last piece that has it."""
        columns = {spec.name: self._plane_stats[spec.name] for spec in schema.STATS}
        piece, names = self._plane_stats["piece"], DistinctRows().add(columns["owner"], columns["key"])
        last = np.zeros(int(names.max(initial=-1)) + 1, np.int64)
        np.maximum.at(last, names, piece)
        is_last = piece == last[names]
        return _by_key_and_owner({name: values[is_last] for name, values in columns.items()})


def _kept(piece: Trace, base: int, lines: Ints, metadata: Ints) -> _Piece:
    """A copy of a piece's columns: theirs share memory with much that is not needed any more."""
    aggregates = dict(piece.aggregates.columns)
    aggregates["line"] = lines[aggregates["line"]]
    aggregates["metadata"] = metadata[aggregates["metadata"]]
    events = {name: values.copy() for name, values in piece.events.columns.items()}
    n_events = piece.lines["n_events"].astype(np.int64)
    return _Piece(piece.info.start_ns, base, events, aggregates, metadata, lines, n_events)


def _stat_columns(stats: StatTable, string_ids: npt.NDArray[np.int32], base: int) -> Columns:
    """The columns of a piece's stats with the strings and positions of the whole, in the order of their
    owners.
    """
    table = stats.table
    order = np.argsort(table["owner"], kind="stable")
    columns = {name: values[order].astype(np.int64) for name, values in table.columns.items()}
    columns["key"] = string_ids[columns["key"]].astype(np.int64)
    is_text, is_bytes = columns["kind"] == schema.TEXT, columns["kind"] == schema.BYTES
    columns["value"][is_text] = string_ids[columns["value"][is_text]]
    columns["value"][is_bytes] += base
    return columns


def _content_rows(
    own: tuple[npt.NDArray[Any], ...], stats: Columns, place: tuple[Block, int]
) -> tuple[Ints, Ints]:
    """(numbers, offsets): a row for each row of metadata, with all that makes it what it is: `own` columns
    and its stats, ordered by key. Bytes are represented by their hash.
    """
    n, owner = len(own[0]), stats["owner"]
    counts = np.bincount(owner, minlength=n).astype(np.int64)
    offsets = np.append(0, np.cumsum(_HEAD_WORDS + _STAT_WORDS * counts))
    rows = np.zeros(int(offsets[-1]), np.int64)
    for i, column in enumerate(own):
        rows[offsets[:-1] + i] = column
    order = np.lexsort((stats["key"], owner))
    at = offsets[owner[order]] + _HEAD_WORDS + _STAT_WORDS * n_equal_before(owner[order])
    values = stats["value"].copy()
    for stat in np.flatnonzero(stats["kind"] == schema.BYTES).tolist():
        start, size = int(values[stat]) - place[1], int(stats["size"][stat])
        digest = hashlib.blake2b(place[0](start, size).tobytes(), digest_size=8).digest()
        values[stat] = int.from_bytes(digest, "little", signed=True)
    for i, column in enumerate((stats["key"], stats["kind"], values, stats["size"])):
        rows[at + i] = column[order]
    return rows, offsets


def _sort_lines(events: Columns, first: Ints, boundaries: Ints) -> npt.NDArray[np.int32] | None:
    """Sorts (in place) the lines in which a piece begins before the one before it ends. Returns the new row
    of each event, None if no line had to be sorted.
    """
    start, duration = events["start_ps"], events["duration_ps"]
    rows = boundaries[~np.isin(boundaries, first)]
    is_behind = (start[rows] < start[rows - 1]) | (
        (start[rows] == start[rows - 1]) & (duration[rows] > duration[rows - 1])
    )
    if not is_behind.any():
        return None
    new_row = np.arange(len(start), dtype=np.int32)
    for line in np.unique(np.searchsorted(first, rows[is_behind], side="right") - 1).tolist():
        a, b = int(first[line]), int(first[line + 1])
        order = np.lexsort((-duration[a:b], start[a:b]))
        for values in events.values():
            values[a:b] = values[a:b][order]
        new_row[a + order] = np.arange(a, b, dtype=np.int32)
    return new_row


def _inverse(order: Ints) -> Ints:
    """The place of each row in an order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _table(spec: tuple[schema.ColumnSpec, ...], columns: Columns) -> Table:
    return Table(spec, {column.name: columns[column.name].astype(column.dtype) for column in spec})


def _by_key_and_owner(columns: Columns) -> Table:
    order = np.lexsort((columns["owner"], columns["key"]))
    return _table(schema.STATS, {name: values[order] for name, values in columns.items()})
