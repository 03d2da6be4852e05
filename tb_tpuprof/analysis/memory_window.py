"""A window of a memory's history as the events that a screen can show: in each pixel the least, the most and the last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory_events import MemoryEvents

Int64s = npt.NDArray[np.int64]


def window_events(events: MemoryEvents, memory: int, start_ps: int, end_ps: int, width_px: int) -> Int64s:
    """Events to draw from start to end on so many pixels: all if they are few, else at most three a pixel.

    Peaks and troughs of any length stay: of each pixel the events with the least and the most in use are kept, and the last,
    whose level the next pixel begins with. The last event before the window comes first, for the level at its left edge.
    """
    rows = events.of(memory)
    low, high = np.searchsorted(events.start_ps[rows], [start_ps, end_ps + 1])
    inside = np.arange(rows.start + int(low), rows.start + int(high))
    before = np.arange(inside[0] - 1, inside[0]) if len(inside) and low > 0 else np.empty(0, np.int64)
    if not len(inside):
        before = np.arange(rows.start + max(0, int(low) - 1), rows.start + max(0, int(low) - 1) + 1)
    if len(inside) <= 3 * width_px:
        return np.concatenate((before, inside)).astype(np.int64)
    pixel = (events.start_ps[inside] - start_ps) // max(1, -(-(end_ps - start_ps + 1) // width_px))
    used = events.used_bytes[inside]
    order = np.lexsort((np.arange(len(inside)), used, pixel))
    is_first = np.append(True, pixel[order][1:] != pixel[order][:-1])
    least, most = order[is_first], order[np.append(is_first[1:], True)]
    last = np.flatnonzero(np.append(pixel[1:] != pixel[:-1], True))
    kept = inside[np.unique(np.concatenate((least, most, last)))]
    return np.concatenate((before, kept)).astype(np.int64)
