"""Trace → rows for drawing: each line's events by depth, so that a window of any row is one run of an index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import Rows, lanes, rows_by_depth
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class Timeline:
    """Drawing rows of a trace. Row r is (row_line[r], row_depth[r]); line i has rows first_row[i] … first_row[i] + n_depths[i].

    `depth` is that of each event; `rows` answers windows.
    """

    depth: npt.NDArray[np.uint16]
    n_depths: npt.NDArray[np.int32]
    first_row: npt.NDArray[np.int64]
    row_line: npt.NDArray[np.int32]
    row_depth: npt.NDArray[np.int32]
    row_offsets: npt.NDArray[np.int64]
    rows: Rows


def timeline(trace: Trace) -> Timeline:
    """Depths by nesting (see `native.lanes`) and the index over them; about 20 ns and 6 bytes an event."""
    events = trace.events
    depth, n_depths = lanes(events["start_ps"], events["duration_ps"], trace.line_offsets)
    order, offsets = rows_by_depth(depth, trace.line_offsets, n_depths)
    first_row = np.cumsum(n_depths, dtype=np.int64) - n_depths
    row_line = np.repeat(np.arange(len(n_depths), dtype=np.int32), n_depths)
    row_depth = (np.arange(len(row_line)) - first_row[row_line]).astype(np.int32)
    rows = Rows(events["start_ps"], events["duration_ps"], order, offsets)
    return Timeline(depth, n_depths, first_row, row_line, row_depth, offsets, rows)
