"""A window of a memory's history as the events that a screen can show: per pixel the minimum, the maximum and
the last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.native import extremes

Int64s = npt.NDArray[np.int64]


def window_events(events: MemoryEvents, memory: int, start_ps: int, end_ps: int, width_px: int) -> Int64s:
    """Events to draw from start to end on `width_px` pixels: all if they are few, else at most three per
    pixel.

    Peaks and troughs of any length stay visible: each pixel keeps the events with the minimum and the maximum
    in use, and the last event, whose level the next pixel begins with. The last event before the window comes
    first, for the level at its left edge.
    """
    rows = events.of(memory)
    low, high = (rows.start + np.searchsorted(events.start_ps[rows], [start_ps, end_ps + 1])).tolist()
    before = max(rows.start, low - 1)
    if high == low:
        return np.array([before], np.int64)
    if high - low <= 3 * width_px:
        return np.arange(before, high, dtype=np.int64)
    pixel_ps = -(-(end_ps - start_ps + 1) // width_px)
    edges = start_ps + pixel_ps * np.arange(1, (end_ps - start_ps) // pixel_ps + 1, dtype=np.int64)
    cuts = low + np.unique(
        np.concatenate(([0, high - low], np.searchsorted(events.start_ps[low:high], edges)))
    ).astype(np.int64)
    least, most = extremes(events.used_bytes, cuts)
    earlier = np.arange(before, low, dtype=np.int64)
    return np.unique(np.concatenate((earlier, least, most, cuts[1:] - 1)))
