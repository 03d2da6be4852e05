"""Sorted events → rows for drawing: each line's events by depth, so that any window of a row is one range of
an index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import Rows, lanes
from tb_tpuprof.parallel.splitting import run_over_lines

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Layer:
    """Events to draw: those of the file, or those derived from them.

    Its lines and events are numbered from `first_line` and `first_event`. Row r is (row_line[r],
    row_depth[r]), with lines numbered within the layer; line i has rows first_row[i] … first_row[i] +
    n_depths[i], and the events of row r are order[row_offsets[r]:row_offsets[r + 1]]. `depth` is that of each
    event; `rows` computes windows. The last event ends at `end_ps`.
    """

    first_line: int
    first_event: int
    start_ps: Int64s
    duration_ps: Int64s
    end_ps: int
    line_offsets: Int64s
    depth: npt.NDArray[np.uint16]
    n_depths: Int32s
    first_row: Int64s
    row_line: Int32s
    row_depth: Int32s
    order: Int32s
    row_offsets: Int64s
    rows: Rows

    @property
    def n_lines(self) -> int:
        """Number of lines."""
        return len(self.n_depths)

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.start_ps)

    def rows_of(self, lines: npt.NDArray[np.integer]) -> Int32s:
        """Rows of the lines (numbered within the layer), line by line from the outermost."""
        parts = [
            np.arange(self.first_row[line], self.first_row[line] + self.n_depths[line], dtype=np.int32)
            for line in lines.tolist()
        ]
        return np.concatenate([*parts, np.empty(0, np.int32)])

    def line_of(self, events: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
        """Lines (within the layer) of events (within the layer)."""
        return np.searchsorted(self.line_offsets, events, side="right") - 1

    def spans_within(self, lines: npt.NDArray[np.integer], start_ps: int, end_ps: int) -> Int64s:
        """For each line the range [first, last) of its events that contains all events in the window;
        int64[lines, 2].
        """
        spans = np.zeros((len(lines), 2), np.int64)
        for i, line in enumerate(lines.tolist()):
            first, last = int(self.line_offsets[line]), int(self.line_offsets[line + 1])
            rows = self.rows_of(np.array([line]))
            places = self.rows.first_ending_after(rows, start_ps)
            open_places = places[places < self.row_offsets[rows + 1]]
            begin = int(self.order[open_places].min()) if len(open_places) else last
            end = first + int(np.searchsorted(self.start_ps[first:last], end_ps))
            spans[i] = begin, max(begin, end)
        return spans


def layer(
    start_ps: Int64s, duration_ps: Int64s, line_offsets: Int64s, first_line: int = 0, first_event: int = 0
) -> Layer:
    """Depths by nesting (see `native.lanes`) and the index over them; about 20 ns and 7 bytes per event."""
    depth = np.empty(len(start_ps), np.uint16)
    line_parts = run_over_lines(
        line_offsets, lambda a, b: lanes(start_ps, duration_ps, line_offsets[a : b + 1], depth)
    )
    n_depths, row_sizes = (np.concatenate([part[i] for part in line_parts]) for i in (0, 1))
    first_row = np.cumsum(n_depths, dtype=np.int64) - n_depths
    row_line = np.repeat(np.arange(len(n_depths), dtype=np.int32), n_depths)
    row_depth = (np.arange(len(row_line)) - first_row[row_line]).astype(np.int32)
    rows = Rows(start_ps, duration_ps, row_sizes)
    run_over_lines(line_offsets, lambda a, b: rows.place(line_offsets[a : b + 1], first_row[a:b], depth))
    rows.finish()
    return Layer(
        first_line,
        first_event,
        start_ps,
        duration_ps,
        max(part[2] for part in line_parts),
        line_offsets,
        depth,
        n_depths,
        first_row,
        row_line,
        row_depth,
        rows.order,
        rows.offsets,
        rows,
    )
