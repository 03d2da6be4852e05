"""Line messages → event columns, on as many threads as there are processors: the native decoder does not hold the interpreter's lock.

lines    ▏python ───────────────▏▏tf_Compute/1 ─▏▏tf_Compute/2 ──▏
readers  ├──────── 1 ───────────┤├───────────── 2 ──────────────┤      runs of whole lines, of about equal bytes
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native.events import Decoder
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]
OpenPlane = Callable[[int, Decoder, bool], None]
_MIN_BYTES_PER_THREAD = 2 * 2**20
_MAX_THREADS = 8
_TIME_LIMIT_PS = 2**61


def balanced(sizes: Ints) -> list[range]:
    """Runs of consecutive messages of about equal bytes, one per thread; at least one run."""
    total = int(sizes.sum())
    n_runs = max(1, min(os.cpu_count() or 1, _MAX_THREADS, total // _MIN_BYTES_PER_THREAD, len(sizes)))
    middle = np.cumsum(sizes) - sizes / 2
    cuts = np.searchsorted(middle, [total * i / n_runs for i in range(1, n_runs)]).tolist()
    return [range(a, b) for a, b in itertools.pairwise([0, *cuts, len(sizes)]) if b > a] or [range(0)]


@dataclass(frozen=True)
class PlaneParts:
    """One plane's entries: numbers are positions in the gathered tables, not yet interned."""

    id: int
    name: int
    event_ids: Ints
    first_event_name: int
    first_display_name: int
    has_display_name: npt.NDArray[np.bool_]
    event_starts: Ints
    event_sizes: Ints
    stat_ids: Ints
    first_stat_name: int
    own_stats: tuple[Ints, Ints]
    lines: LineParts
    n_damaged: int


@dataclass(frozen=True)
class LineParts:
    """The lines of a plane before their events are read."""

    starts: Ints
    sizes: Ints
    ids: Ints
    names: Ints
    timestamps_ns: Ints
    display_ids: Ints
    n_events: Ints


class LineReader:
    """Reads the events of all lines of a file into columns. After `read`, `decoders` hold the stats of the events."""

    def __init__(self, data: npt.NDArray[np.uint8], events: Columns, planes: list[PlaneParts], keeps_all: npt.NDArray[np.bool_]) -> None:
        """`keeps_all`: of each gathered string, whether the stats of lines called so are all to be kept."""
        self.data = data
        self.events = events
        self.keeps_all = keeps_all
        self.lines = [(number, i) for number, plane in enumerate(planes) for i in range(len(plane.lines.starts))]
        self.planes = planes
        counts = np.array([planes[number].lines.n_events[i] for number, i in self.lines], np.int64)
        self.first_rows = np.cumsum(counts) - counts
        self.decoders: list[Decoder] = []

    def read(self, start_ns: int, open_plane: OpenPlane) -> tuple[Columns, bool]:
        """(columns of table `lines` with names still as numbers of gathered strings, whether every line is in order)."""
        runs = balanced(np.array([self.planes[number].lines.sizes[i] for number, i in self.lines], np.int64))
        self.decoders = [Decoder(self.data, tuple(self.events.values())) for _ in runs]
        with ThreadPoolExecutor(len(runs)) as pool:
            found = list(pool.map(lambda run, decoder: self._read_run(run, decoder, start_ns, open_plane), runs, self.decoders))
        del self.data
        rows = [row for part, _ in found for row in part]
        columns = list(zip(*rows, strict=True)) or [()] * len(schema.LINES)
        return {c.name: np.array(v, c.dtype) for c, v in zip(schema.LINES, columns, strict=True)}, all(ok for _, ok in found)

    def compact(self, lines: Columns, stats: dict[str, Table]) -> Columns:
        """The event columns without the gaps that malformed events left at the ends of their lines."""
        n_events = int(lines["n_events"].sum())
        first_rows = np.cumsum(lines["n_events"]) - lines["n_events"]
        if n_events == len(self.events["start_ps"]):
            return self.events
        moved = (lines["first_event"] - first_rows).astype(np.int64)
        rows = np.repeat(moved, lines["n_events"]) + np.arange(n_events)
        new_row = np.zeros(len(self.events["start_ps"]), np.int32)
        new_row[rows] = np.arange(n_events, dtype=np.int32)
        lines["first_event"] = first_rows
        table = stats["event"]
        stats["event"] = Table(schema.STATS, {**table.columns, "owner": new_row[table["owner"]]})
        return {name: values[rows] for name, values in self.events.items()}

    def _read_run(self, run: range, decoder: Decoder, start_ns: int, open_plane: OpenPlane) -> tuple[list[tuple[int, ...]], bool]:
        rows: list[tuple[int, ...]] = []
        in_order = True
        opened = (-1, False)
        for line in run:
            number, i = self.lines[line]
            part, first = self.planes[number].lines, int(self.first_rows[line])
            wanted = (number, bool(self.keeps_all[part.names[i]]))
            if wanted != opened:
                open_plane(number, decoder, wanted[1])
                opened = wanted
            offset_ps = min(max((int(part.timestamps_ns[i]) - start_ns) * 1000, -_TIME_LIMIT_PS), _TIME_LIMIT_PS)
            start = int(part.starts[i])
            n, line_in_order = decoder.read_line(start, start + int(part.sizes[i]), offset_ps, first)
            in_order &= line_in_order
            rows.append((number, int(part.ids[i]), int(part.display_ids[i]), int(part.names[i]), first, n))
        return rows, in_order
