"""Line messages → event columns, on as many threads as there are processors: the native decoder releases the
interpreter's lock.

    lines    ▏python ─────────────────────────────────────▏▏tf_Compute/1 ─▏
    pieces   ├───────┤├────────┤├───────┤├───────┤├───────┤├──────────────┤   about PIECE_BYTES each, cut
                                                                              between events
    readers  ├────────────── 1 ──────────────────┤├────────── 2 ──────────┤   runs of whole pieces, of about
                                                                              equal size
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.storage.files import FileBytes, WindowBuffer
from tb_tpuprof.native.compiled.cutting import Cutter
from tb_tpuprof.native.compiled.events import Decoder
from tb_tpuprof.native.compiled.wire import spans
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.splitting import split_evenly
from tb_tpuprof.parallel.threads import call_in_parallel, n_threads
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatsByKey, all_of
from tb_tpuprof.trace.table import Table

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]
OpenPlane = Callable[[int, Decoder, bool], None]
PIECE_BYTES = 2**20  # fits a processor's own cache
_LEAST_WINDOW = 64  # large enough for any field's header
_TIME_LIMIT_PS = 2**61
_LINE_FIELDS: Ints = np.array((1, 2, 3, 4, 10, 11), np.int64)
_EVENTS = 3  # index of the events (field 4) in _LINE_FIELDS
_NONE: Ints = np.empty(0, np.int64)


def balanced(sizes: Ints) -> list[range]:
    """Runs of consecutive messages of about equal size in bytes, one per thread; at least one run."""
    return split_evenly(sizes, min(n_threads(), int(sizes.sum()) // POLICY.decoded_bytes_per_thread))


@dataclass(frozen=True)
class Pieces:
    """Parts of lines, cut between events, in the file's order: for each its line, its bytes and an upper
    bound on its number of events.
    """

    line: Ints
    starts: Ints
    ends: Ints
    n_events: Ints


@dataclass(frozen=True)
class LineParts:
    """The lines of all planes before their events are read. Names are numbers of gathered strings."""

    plane: Ints
    ids: Ints
    names: Ints
    timestamps_ns: Ints
    display_ids: Ints
    n_events: Ints
    pieces: Pieces
    n_bad: int


@dataclass(frozen=True)
class PlaneParts:
    """One plane's entries; numbers are positions in the gathered tables, not yet interned.

    `stat_keys[i]`: the first stat with the same name as stat i, which represents all of them. `lines`:
    positions and sizes of the line messages.
    """

    id: int
    name: int
    event_ids: Ints
    first_event_name: int
    first_display_name: int
    has_display_name: npt.NDArray[np.bool_]
    event_starts: Ints
    event_sizes: Ints
    stat_ids: Ints
    stat_keys: Ints
    first_stat_name: int
    stats: tuple[Ints, Ints]
    lines: tuple[Ints, Ints]
    n_damaged: int


def find_lines(
    file: FileBytes, planes: list[PlaneParts], add_names: Callable[[Ints, Ints], int]
) -> LineParts:
    """The lines' own fields and pieces. `add_names` gathers strings."""
    starts, sizes = (
        np.concatenate([_NONE, *column])
        for column in zip((_NONE, _NONE), *(plane.lines for plane in planes), strict=True)
    )
    is_cut = file.lacks(starts) | (sizes > PIECE_BYTES)
    whole, large, n = np.flatnonzero(~is_cut), np.flatnonzero(is_cut), len(starts)
    large = large[np.argsort(-sizes[large], kind="stable")]  # the longest walk starts first
    runs = [whole[run.start : run.stop] for run in balanced(sizes[whole])]
    walks = [
        partial(_cut, file, a, a + size)
        for a, size in zip(starts[large].tolist(), sizes[large].tolist(), strict=True)
    ]
    span_reads = [partial(spans, file.data, starts[run], sizes[run], _LINE_FIELDS, _EVENTS) for run in runs]
    results: list[Any] = call_in_parallel([*walks, *span_reads])
    cutters, whole_results = results[: len(walks)], results[len(walks) :]
    values, lengths, counts, bad = (np.concatenate(column) for column in zip(*whole_results, strict=True))
    ids, times, display_ids = (np.zeros(n, np.int64) for _ in range(3))
    ids[whole], times[whole], display_ids[whole] = values[:, 0], values[:, 2], values[:, 4]
    names = np.zeros((n, 4), np.int64)  # start and size of the name, then of the display name
    names[whole] = np.column_stack((values[:, 1], lengths[:, 1], values[:, 5], lengths[:, 5]))
    parts = [Pieces(whole, starts[whole], starts[whole] + sizes[whole], counts)]
    n_bad = int(bad.sum())
    for line, cutter in zip(large.tolist(), cutters, strict=True):
        ids[line], times[line], display_ids[line] = cutter.id, cutter.timestamp_ns, cutter.display_id
        names[line] = cutter.name_start, cutter.name_size, cutter.display_name_start, cutter.display_name_size
        ends, n_events = cutter.cuts()
        parts.append(Pieces(np.full(len(ends), line), np.append(starts[line], ends[:-1]), ends, n_events))
        n_bad += cutter.is_bad
    _read_names(file, names[large])
    use_display = names[:, 3] > 0
    first = add_names(
        np.where(use_display, names[:, 2], names[:, 0]), np.where(use_display, names[:, 3], names[:, 1])
    )
    pieces = _joined(parts)
    plane = np.repeat(np.arange(len(planes)), [len(plane.lines[0]) for plane in planes])
    n_events = np.bincount(pieces.line, pieces.n_events, n).astype(np.int64)
    return LineParts(plane, ids, np.arange(first, first + n), times, display_ids, n_events, pieces, n_bad)


def _cut(file: FileBytes, start: int, end: int) -> Cutter:
    """Walk through one line and cut it into pieces."""
    cutter, is_done = Cutter(start, end, PIECE_BYTES), False
    with file.window_buffer() as window_buffer:
        while not is_done:
            window, base = file.window(
                cutter.position, min(end, cutter.position + max(PIECE_BYTES, _LEAST_WINDOW)), window_buffer
            )
            is_done = cutter.feed(window, base)
    return cutter


def _read_names(file: FileBytes, names: Ints) -> None:
    """Copy the names of lines that were not read to their positions in the file's bytes."""
    with file.window_buffer() as window_buffer:
        for start, size in names.reshape(-1, 2).tolist():
            if size > 0:
                window, base = file.window(start, start + size, window_buffer)
                if base:
                    file.data[start : start + size] = window


def _joined(parts: list[Pieces]) -> Pieces:
    """Pieces of many lines, in the lines' order."""
    line, starts, ends, n_events = (
        np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)
        for name in ("line", "starts", "ends", "n_events")
    )
    order = np.argsort(line, kind="stable")
    return Pieces(line[order], starts[order], ends[order], n_events[order])


class LineReader:
    """Reads the events of all lines of a file into columns. After `read`, `decoders` have the stats of the
    events.
    """

    def __init__(
        self,
        file: FileBytes,
        events: Columns,
        lines: LineParts,
        n_keys: int,
        keeps_all: npt.NDArray[np.bool_],
    ) -> None:
        """`n_keys`: number of stats; `keeps_all`: for each gathered string, whether lines with that name keep
        all stats of their events.
        """
        self.file = file
        self.events = events
        self.keeps_all = keeps_all
        self.lines = lines
        self.pieces = lines.pieces
        self.n_keys = n_keys
        self.first_rows = np.cumsum(self.pieces.n_events) - self.pieces.n_events
        self.n_read = np.zeros(len(self.first_rows), np.int64)
        self.decoders: list[Decoder] = []

    def read(self, start_ns: int, open_plane: OpenPlane) -> tuple[Columns, bool]:
        """(columns of table `lines` with names still as numbers of gathered strings, whether every line is in
        order).
        """
        runs = balanced(self.pieces.ends - self.pieces.starts)
        self.decoders = [Decoder(tuple(self.events.values()), self.n_keys) for _ in runs]
        reads = [
            partial(self._read_run, run, decoder, start_ns, open_plane)
            for run, decoder in zip(runs, self.decoders, strict=True)
        ]
        in_order = call_in_parallel(reads)
        line_parts = self.lines
        first_pieces = np.searchsorted(self.pieces.line, np.arange(len(line_parts.ids)))
        n_events = np.bincount(self.pieces.line, self.n_read, len(line_parts.ids))
        columns = (
            line_parts.plane,
            line_parts.ids,
            line_parts.display_ids,
            line_parts.names,
            self.first_rows[first_pieces],
            n_events,
        )
        lines = {
            spec.name: values.astype(spec.dtype) for spec, values in zip(schema.LINES, columns, strict=True)
        }
        return lines, all(in_order) and self._pieces_in_order()

    def compact(self, lines: Columns, stats: StatsByKey) -> tuple[Columns, Table | StatsByKey]:
        """The event columns without the gaps that malformed events left at the ends of their pieces, and the
        stats renumbered accordingly.
        """
        n_events = int(self.n_read.sum())
        if n_events == len(self.events["start_ps"]):
            return self.events, stats
        n_skipped = self.first_rows - (np.cumsum(self.n_read) - self.n_read)
        rows = np.repeat(n_skipped, self.n_read) + np.arange(n_events)
        new_row = np.zeros(len(self.events["start_ps"]), np.int32)
        new_row[rows] = np.arange(n_events, dtype=np.int32)
        lines["first_event"] = np.cumsum(lines["n_events"]) - lines["n_events"]
        table = all_of(stats)
        moved_stats = Table(schema.STATS, {**table.columns, "owner": new_row[table["owner"]]})
        return {name: values[rows] for name, values in self.events.items()}, moved_stats

    def _pieces_in_order(self) -> bool:
        """Whether each piece of a line starts no earlier than the previous piece ends; False if a piece has
        gaps.
        """
        pieces = np.flatnonzero(self.pieces.line[1:] == self.pieces.line[:-1]) + 1
        if (self.n_read != self.pieces.n_events)[np.append(pieces, pieces - 1)].any():
            return False
        pieces = pieces[self.n_read[pieces] > 0]
        first_after = self.first_rows[pieces]
        start, duration = self.events["start_ps"], self.events["duration_ps"]
        last_before = first_after - 1
        return bool(
            (
                (start[last_before] < start[first_after])
                | (
                    (start[last_before] == start[first_after])
                    & (duration[last_before] >= duration[first_after])
                )
            ).all()
        )

    def _read_run(self, run: range, decoder: Decoder, start_ns: int, open_plane: OpenPlane) -> bool:
        with self.file.window_buffer() as window_buffer:
            return self._read_pieces(run, decoder, start_ns, open_plane, window_buffer)

    def _read_pieces(
        self, run: range, decoder: Decoder, start_ns: int, open_plane: OpenPlane, window_buffer: WindowBuffer
    ) -> bool:
        in_order, opened, line_parts = True, (-1, False), self.lines
        for piece, line in zip(run, self.pieces.line[run.start : run.stop].tolist(), strict=True):
            plane_and_mode = (int(line_parts.plane[line]), bool(self.keeps_all[line_parts.names[line]]))
            if plane_and_mode != opened:
                open_plane(plane_and_mode[0], decoder, plane_and_mode[1])
                opened = plane_and_mode
            offset_ps = min(
                max((int(line_parts.timestamps_ns[line]) - start_ns) * 1000, -_TIME_LIMIT_PS), _TIME_LIMIT_PS
            )
            start, end = int(self.pieces.starts[piece]), int(self.pieces.ends[piece])
            window, base = self.file.window(start, end, window_buffer)
            first, count = int(self.first_rows[piece]), int(self.pieces.n_events[piece])
            self.n_read[piece], piece_in_order = decoder.read_piece(
                window, base, start, end, offset_ps, first, count
            )
            in_order &= piece_in_order
        return in_order
