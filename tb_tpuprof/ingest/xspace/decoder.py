"""XSpace bytes → Trace, by the native decoder.

    file ─ fields ─▶ planes ─ fields ─▶ metadata, lines ─ Decoder ─▶ event columns, hot stats ─ order ─▶ Trace

Damaged parts of a plane are left out and counted. If the file's own frame is damaged (cut off, overwritten,
not a profile), reading fails and reports the offset.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.storage import programs as hlo_programs
from tb_tpuprof.ingest.storage.files import FileBytes
from tb_tpuprof.ingest.xspace import ordering
from tb_tpuprof.ingest.xspace.counter_lines import is_counter_line, with_counters
from tb_tpuprof.ingest.xspace.lines import LineParts, LineReader, PlaneParts, find_lines
from tb_tpuprof.ingest.xspace.stat_columns import GatheredStats
from tb_tpuprof.native.compiled.events import Decoder
from tb_tpuprof.native.compiled.gathering import IdMap
from tb_tpuprof.native.compiled.interning import intern, joined
from tb_tpuprof.native.compiled.wire import fields, spans
from tb_tpuprof.native.machine_memory import max_events
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings, find_bytes
from tb_tpuprof.trace.table import Table, empty_columns
from tb_tpuprof.trace.trace import Trace, TraceInfo, TraceSource

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Texts = tuple[Bytes, Ints, Ints]  # all texts end to end, the start and the size of each
PLANE, ERROR, WARNING, HOSTNAME = 1, 2, 3, 4
MAX_EVENTS = 2**31 - 2
UNNAMED_ID = -(2**63)
UNKNOWN_EVENT = b"(unknown event)"


@dataclass
class Spans:
    """Positions and sizes of strings in the file, gathered over all planes."""

    starts: list[Ints]
    sizes: list[Ints]
    n: int = 0

    def add(self, starts: Ints, sizes: Ints) -> int:
        """Append strings; returns the number of the first one. Absent strings (size -1) and numbers in their
        place (size 0) are empty.
        """
        first = self.n
        self.starts.append(np.where(sizes > 0, starts, 0))
        self.sizes.append(np.maximum(sizes, 0))
        self.n += len(starts)
        return first

    def intern(
        self, data: Bytes, texts: list[Texts]
    ) -> tuple[Strings, npt.NDArray[np.int32], list[npt.NDArray[np.int32]]]:
        """(the distinct strings, the id of each gathered string, the ids of the strings of each of `texts`).
        The last distinct string is the name of nameless events.
        """
        starts, sizes = self._all()
        ids, first = intern(data, starts, sizes, _seed())
        blob, offsets = joined(data, starts[first], sizes[first])
        n_gathered, ends = len(first), np.cumsum([len(part) for _, part, _ in texts])
        of_texts = _NO_IDS
        if len(ends) and ends[-1]:
            data = np.concatenate([blob, *(part for part, _, _ in texts)])
            part_starts = np.cumsum([len(blob), *(len(part) for part, _, _ in texts)])
            starts = np.concatenate(
                [
                    offsets[:-1],
                    *(
                        part + part_start
                        for (_, part, _), part_start in zip(texts, part_starts.tolist(), strict=False)
                    ),
                ]
            )
            sizes = np.concatenate([np.diff(offsets), *(part for _, _, part in texts)])
            # The gathered strings come first and are distinct, so they keep their ids.
            both, first = intern(data, starts, sizes, _seed())
            blob, offsets = joined(data, starts[first], sizes[first])
            of_texts = both[n_gathered:]
        strings = Strings(
            np.concatenate([blob, np.frombuffer(UNKNOWN_EVENT, np.uint8)]),
            np.append(offsets, len(blob) + len(UNKNOWN_EVENT)),
        )
        return strings, ids, np.split(of_texts, ends[:-1])

    def texts(self, data: npt.NDArray[np.uint8], rows: Ints) -> list[bytes]:
        """The strings with these numbers."""
        starts, sizes = (column[rows].tolist() for column in self._all())
        return [data[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True)]

    def _all(self) -> tuple[Ints, Ints]:
        return np.concatenate([*self.starts, _NONE]), np.concatenate([*self.sizes, _NONE])


_NONE: Ints = np.empty(0, np.int64)
_NO_IDS: npt.NDArray[np.int32] = np.empty(0, np.int32)


def decode(
    file: FileBytes,
    path: str,
    host: str,
    source: TraceSource,
    is_outline: bool = False,
    damage: str = "",
    stats: frozenset[str] | None = None,
) -> Trace:
    """Decode a whole XSpace. Releases the file's bytes as soon as possible. Raises TraceFormatError if they
    are not an XSpace. `damage`: what the file lacks, if it is only the intact part of one. `stats`: the stats
    of events to decode instead of those that analyses read.

    An outline has the planes with their stats, and the metadata of planes with programs; no lines and no
    events.
    """
    return with_counters(decode_tables(file, path, host, source, is_outline, damage, stats))


def decode_tables(
    file: FileBytes,
    path: str,
    host: str,
    source: TraceSource,
    is_outline: bool = False,
    damage: str = "",
    stats: frozenset[str] | None = None,
) -> Trace:
    """Like `decode`, but samples of counters stay the events that they are in the file."""
    top = _frame(file.data, path)
    strings = Spans([], [])
    plane_spans = top[top[:, 0] == PLANE, 2:].tolist()
    if len(plane_spans) > schema.MAX_PLANES:
        raise TraceFormatError(path, -1, f"contains {len(plane_spans):,} planes, more than a profile has")
    planes = [_plane(file, start, size, strings, is_outline) for start, size in plane_spans]
    n_lines = sum(len(plane.lines[0]) for plane in planes)
    if n_lines > schema.MAX_LINES:
        raise TraceFormatError(path, -1, f"contains {n_lines:,} lines, more than a profile has")
    lines = find_lines(file, planes, strings.add)
    n_events = int(lines.n_events.sum())
    if n_events > min(MAX_EVENTS, max_events()):
        raise TraceFormatError(
            path,
            -1,
            f"contains {n_events:,} events, more than fit into this machine's memory",
            "Profile for a shorter time.",
        )
    info = replace(_info(file.data, top, path, host), is_outline=is_outline, damage=damage)
    return _Assembly(file, planes, lines, strings).trace(file, info, source, stats)


def _frame(data: npt.NDArray[np.uint8], path: str) -> Ints:
    """The top-level fields, all of which must be known and whole."""
    if not len(data):
        raise TraceFormatError(path, -1, "is empty")
    top, bad = fields(data, 0, len(data))
    is_known = (top[:, 0] >= PLANE) & (top[:, 0] <= HOSTNAME) & (top[:, 1] == 2)
    if not is_known.any():
        raise TraceFormatError(path, max(bad, 0), "is not a profile: it does not begin as an XSpace protobuf")
    if bad >= 0:
        raise TraceFormatError(path, bad, "is cut off or damaged")
    return top[is_known]  # type: ignore[no-any-return]


def _info(data: npt.NDArray[np.uint8], top: Ints, path: str, host: str) -> TraceInfo:
    def texts(number: int) -> tuple[str, ...]:
        rows = top[top[:, 0] == number, 2:][:1000].tolist()
        return tuple(data[a : a + min(n, 10_000)].tobytes().decode("utf-8", "replace") for a, n in rows)

    return TraceInfo(host, path, len(data), 0, texts(HOSTNAME), texts(ERROR), texts(WARNING))


def _last(rows: Ints, number: int, wire: int, default: tuple[int, int] = (0, -1)) -> tuple[int, int]:
    matching = rows[(rows[:, 0] == number) & (rows[:, 1] == wire), 2:]
    return (int(matching[-1, 0]), int(matching[-1, 1])) if len(matching) else default


def _parts(rows: Ints, number: int) -> tuple[Ints, Ints]:
    matching = rows[(rows[:, 0] == number) & (rows[:, 1] == 2)]
    return np.ascontiguousarray(matching[:, 2]), np.ascontiguousarray(matching[:, 3])


def _numbers(*numbers: int) -> Ints:
    return np.array(numbers, np.int64)


def _plane(file: FileBytes, start: int, size: int, strings: Spans, is_outline: bool) -> PlaneParts:
    data = file.data
    rows, bad = fields(data, start, start + size)
    name_start, name_size = _last(rows, 2, 2)
    name = strings.add(_numbers(name_start), _numbers(name_size))
    stat_ids, stat_starts, stat_sizes, n_bad_stats = _map_entries(data, *_parts(rows, 5))
    stat_values, stat_name_sizes, _, _ = spans(data, stat_starts, stat_sizes, _numbers(2))
    if is_outline:
        kept_fields = (
            (1, 2, 4, 5, 6) if _has_programs(data, stat_values[:, 0], stat_name_sizes[:, 0]) else (1, 2, 5, 6)
        )
        rows = rows[np.isin(rows[:, 0], kept_fields)]
    event_keys, event_starts, event_sizes, n_bad_events = _map_entries(data, *_parts(rows, 4))
    values, sizes, _, _ = spans(data, event_starts, event_sizes, _numbers(2, 4))
    event_name = strings.add(values[:, 0], sizes[:, 0])
    display_name = strings.add(values[:, 1], sizes[:, 1])
    stat_name = strings.add(stat_values[:, 0], stat_name_sizes[:, 0])
    stat_keys = _first_equals(data, stat_values[:, 0], stat_name_sizes[:, 0])
    return PlaneParts(
        _last(rows, 1, 0)[0],
        name,
        event_keys,
        event_name,
        display_name,
        sizes[:, 1] > 0,
        event_starts,
        event_sizes,
        stat_ids,
        stat_keys,
        stat_name,
        _parts(rows, 6),
        _parts(rows, 3),
        (bad >= 0) + n_bad_events + n_bad_stats,
    )


def _has_programs(data: npt.NDArray[np.uint8], starts: Ints, sizes: Ints) -> bool:
    """Whether one of the stats' names is that of a program's HLO."""
    return any(find_bytes(data, starts, sizes, name.encode()) >= 0 for name in hlo_programs.STATS)


def _map_entries(data: npt.NDArray[np.uint8], starts: Ints, sizes: Ints) -> tuple[Ints, Ints, Ints, int]:
    """(keys, positions of the messages, their sizes, number of malformed entries) of a map<int64,
    Message>.
    """
    values, lengths, _, bad = spans(data, starts, sizes, _numbers(1, 2))
    return values[:, 0], values[:, 1], np.maximum(lengths[:, 1], 0), int(bad.sum())


def _first_equals(data: npt.NDArray[np.uint8], starts: Ints, sizes: Ints) -> Ints:
    """For each string, the index of the first string equal to it."""
    ids, first = intern(data, np.where(sizes > 0, starts, 0), np.maximum(sizes, 0), _seed())
    return first[ids]  # type: ignore[no-any-return]


def _seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


class _Assembly:
    """Reads lines and stats of all planes into columns, then builds the tables."""

    def __init__(self, file: FileBytes, planes: list[PlaneParts], lines: LineParts, strings: Spans) -> None:
        data = file.data
        self.planes = planes
        self.strings = strings
        self.names: npt.NDArray[np.int32] = np.empty(0, np.int32)
        narrow = {"position": "uint32"} if len(data) < 2**32 else {}
        self.events = empty_columns(schema.EVENTS, int(lines.n_events.sum()), narrow)
        self.metadata_rows = np.cumsum([0] + [len(plane.event_ids) + 1 for plane in planes])
        self.stat_rows = np.cumsum([0] + [len(plane.stat_ids) for plane in planes])
        keeps_all = self._names_matching(
            data, [lines.names], lambda text: is_counter_line(text.decode("utf-8", "replace"))
        )
        n_keys = int(self.stat_rows[-1])
        self.lines = LineReader(file, self.events, lines, n_keys, keeps_all)
        self.other_stats = {
            part: Decoder(tuple(self.events.values()), n_keys) for part in ("metadata", "plane")
        }

    def trace(
        self,
        file: FileBytes,
        info: TraceInfo,
        source: TraceSource,
        chosen_stats: frozenset[str] | None = None,
    ) -> Trace:
        """The whole trace. Decodes in the order of dependencies; releases the file's bytes as soon as they
        have been read.
        """
        start_ns = self._start_ns()
        is_hot = self._hot_stats(file.data, chosen_stats)
        lines, in_order = self.lines.read(
            start_ns,
            lambda plane, decoder, keeps_all: self._open_plane(plane, decoder, None if keeps_all else is_hot),
        )
        self._read_other_stats(file.data)
        decoders = {"event": self.lines.decoders} | {
            part: [decoder] for part, decoder in self.other_stats.items()
        }
        all_decoders = [decoder for part_decoders in decoders.values() for decoder in part_decoders]
        strings, self.names, texts = self.strings.intern(
            file.data, [decoder.stats.text_spans() for decoder in all_decoders]
        )
        lines["name"] = self.names[lines["name"]]
        n_damaged = (
            self.lines.lines.n_bad
            + sum(plane.n_damaged for plane in self.planes)
            + sum(decoder.n_left_out for decoder in all_decoders)
        )
        n_aggregates = sum(decoder.n_aggregates for decoder in self.lines.decoders)
        for decoder in all_decoders:
            decoder.release()
        file.release()
        stats = self._gathered(decoders, texts)
        events, event_stats = self.lines.compact(lines, stats["event"])
        columns = ordering.ordered(events, lines, event_stats, in_order, n_aggregates)
        shift_ns = ordering.shift_to_start(columns.events)
        info_fields = {
            **info.__dict__,
            "start_ns": start_ns + shift_ns,
            "n_damaged": int(n_damaged) + bool(info.damage),
        }
        trace = Trace(
            TraceInfo(**info_fields),
            strings,
            self._planes_table(),
            columns.lines,
            Table(schema.EVENTS, columns.events),
            self._metadata_table(len(strings) - 1),
            columns.aggregates,
            self._stat_names_table(),
            StatTable(columns.stats, strings),
            StatTable(stats["metadata"], strings),
            StatTable(stats["plane"], strings),
            source,
        )
        if trace.n_events:
            trace.take_duration(max(decoder.last_end for decoder in self.lines.decoders) - shift_ns * 1000)
        return trace

    def _gathered(
        self, decoders: dict[str, list[Decoder]], texts: list[npt.NDArray[np.int32]]
    ) -> dict[str, GatheredStats]:
        """The stats of each part's decoders. Takes the string ids of their texts out of `texts`, in order."""
        names_of_planes = (
            self.names[plane.first_stat_name : plane.first_stat_name + len(plane.stat_ids)]
            for plane in self.planes
        )
        keys = np.concatenate([_NO_IDS, *names_of_planes])
        return {
            part: GatheredStats(
                [decoder.stats for decoder in part_decoders], keys, [texts.pop(0) for _ in part_decoders]
            )
            for part, part_decoders in decoders.items()
        }

    def _start_ns(self) -> int:
        """The earliest clock of a line that has events."""
        line_parts = self.lines.lines
        times = line_parts.timestamps_ns[line_parts.n_events > 0]
        return int(times.min()) if len(times) else 0

    def _hot_stats(self, data: npt.NDArray[np.uint8], chosen: frozenset[str] | None) -> npt.NDArray[np.bool_]:
        """For each string so far, whether it is the name of a stat to decode: a `chosen` one, or, if none are
        given, one to decode on opening.
        """
        plane_names = self.strings.texts(data, np.array([plane.name for plane in self.planes], np.int64))
        names = schema.hot_stats([name.decode("utf-8", "replace") for name in plane_names])
        hot = {name.encode() for name in (names if chosen is None else chosen)}
        return self._names_matching(
            data, [p.first_stat_name + np.arange(len(p.stat_ids)) for p in self.planes], hot.__contains__
        )

    def _names_matching(
        self, data: npt.NDArray[np.uint8], numbers: list[Ints], matches: Callable[[bytes], bool]
    ) -> npt.NDArray[np.bool_]:
        """For each string so far, whether it is one of the given numbers and satisfies `matches`."""
        rows = np.concatenate([_NONE, *numbers]).astype(np.int64)
        result = np.zeros(self.strings.n, np.bool_)
        result[rows] = [matches(text) for text in self.strings.texts(data, rows)]
        return result

    def _open_plane(self, number: int, decoder: Decoder, is_hot: npt.NDArray[np.bool_] | None) -> None:
        plane = self.planes[number]
        first = int(self.metadata_rows[number])
        n = len(plane.event_ids)
        event_map = IdMap(plane.event_ids, np.arange(first, first + n, dtype=np.int32), first + n)
        stat_rows = np.arange(len(plane.stat_ids), dtype=np.int32) + np.int32(self.stat_rows[number])
        keep = stat_rows[plane.stat_keys]
        if is_hot is not None:
            hot = is_hot[plane.first_stat_name : plane.first_stat_name + len(plane.stat_ids)]
            keep = np.where(hot, keep, -1).astype(np.int32)
        decoder.open_plane(event_map, IdMap(plane.stat_ids, keep), IdMap(plane.stat_ids, stat_rows))

    def _read_other_stats(self, data: Bytes) -> None:
        """Stats of event metadata and of planes."""
        for number, plane in enumerate(self.planes):
            self._open_plane(number, self.other_stats["metadata"], None)
            first, n = int(self.metadata_rows[number]), len(plane.event_starts)
            owners = np.arange(first, first + n, dtype=np.int32)
            self.other_stats["metadata"].read_stats(data, plane.event_starts, plane.event_sizes, owners, 5)
            self._open_plane(number, self.other_stats["plane"], None)
            starts, sizes = plane.stats
            self.other_stats["plane"].read_stats(
                data, starts, sizes, np.full(len(starts), number, np.int32), 0
            )

    def _planes_table(self) -> Table:
        ids = np.array([plane.id for plane in self.planes], np.int64)
        names = self.names[np.array([plane.name for plane in self.planes], np.int64)]
        return Table(schema.PLANES, {"id": ids, "name": names})

    def _metadata_table(self, unknown: int) -> Table:
        """Rows of all planes; the last row of each plane represents events whose metadata the file lacks."""
        columns = empty_columns(schema.METADATA, int(self.metadata_rows[-1]))
        for number, plane in enumerate(self.planes):
            first, n = int(self.metadata_rows[number]), len(plane.event_ids)
            columns["plane"][first : first + n + 1] = number
            columns["id"][first : first + n] = plane.event_ids
            columns["id"][first + n] = UNNAMED_ID
            columns["name"][first : first + n] = self.names[
                plane.first_event_name : plane.first_event_name + n
            ]
            display = self.names[plane.first_display_name : plane.first_display_name + n]
            columns["display_name"][first : first + n] = np.where(plane.has_display_name, display, -1)
            columns["name"][first + n] = unknown
            columns["display_name"][first + n] = -1
        return Table(schema.METADATA, columns)

    def _stat_names_table(self) -> Table:
        planes = [np.full(len(plane.stat_ids), number, np.int32) for number, plane in enumerate(self.planes)]
        names = [self.names[p.first_stat_name : p.first_stat_name + len(p.stat_ids)] for p in self.planes]
        no_ints = np.empty(0, np.int32)
        columns = {
            "plane": np.concatenate([*planes, no_ints]),
            "id": np.concatenate([*(plane.stat_ids for plane in self.planes), _NONE]),
            "name": np.concatenate([*names, no_ints]),
        }
        return Table(schema.STAT_NAMES, columns)
