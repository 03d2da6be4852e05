"""Plain Python twin of `timeline.py`: the same names, arguments and results, for where no extension is built and for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BOX = np.dtype([("start", "<i8"), ("duration", "<i8"), ("row", "<i4"), ("event", "<i4"), ("n_merged", "<i4"), ("unused", "<i4")])


class Rows:
    """Events by row: those of row r are order[offsets[r]:offsets[r + 1]], sorted by start, without overlap."""

    def __init__(self, start: npt.NDArray[Any], duration: npt.NDArray[Any], order: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> None:
        self.start = start
        self.duration = duration
        self.order = order
        self.offsets = offsets

    def boxes(self, rows: npt.NDArray[np.int32], window_start: int, window_end: int, pixel_ps: int) -> npt.NDArray[Any]:
        """Boxes of the rows in the window, by row and start.

        An event of at least a pixel is a box of its own. Shorter ones that begin within the same two pixels, with no longer
        one between them, are one box: from the first's start to the last's end, with their number and the longest's id.

            events   ▏▏▏ ▏   ██████  ▏▏      pixels  | | | | | | |
            boxes    ███ ▏   ██████  ██      n_merged 3 1 1 2
        """
        found: list[tuple[int, ...]] = []
        for row in rows.tolist():
            if 0 <= row < len(self.offsets) - 1:
                found += self._row_boxes(row, window_start, window_end, max(pixel_ps, 1))
        return np.array(found, BOX) if found else np.empty(0, BOX)

    def _row_boxes(self, row: int, begin: int, end: int, pixel_ps: int) -> list[tuple[int, ...]]:
        events = self.order[self.offsets[row] : self.offsets[row + 1]]
        starts, durations = self.start[events], self.duration[events]
        seen = (starts + np.maximum(durations, 1) > begin) & (starts < end)
        merged: list[list[int]] = []
        last_bucket = -1
        for event, start, duration in zip(events[seen].tolist(), starts[seen].tolist(), durations[seen].tolist(), strict=True):
            bucket = max(start - begin, 0) // (2 * pixel_ps) if duration < pixel_ps else -2
            if merged and bucket == last_bucket:
                group = merged[-1]
                group[1] = start + duration - group[0]
                group[4] += 1
                if duration > group[5]:
                    group[3], group[5] = event, duration
                continue
            merged.append([start, duration, row, event, 1, duration])
            last_bucket = bucket if bucket >= 0 else -1
        return [(*group[:5], 0) for group in merged]
