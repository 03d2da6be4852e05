"""Plain twin of `compiled/timeline.py`: the same names, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
_LONGS = [(name, "<i8") for name in ("start", "duration", "longest")]
BOX = np.dtype(_LONGS + [(name, "<i4") for name in ("row", "event", "n_merged", "unused")])


class Rows:
    """Events by row, one row per line and depth: row r has the events order[offsets[r]:offsets[r + 1]],
    sorted by start, without overlap.

    `row_sizes` (int64[rows]) is the number of events of each row, as counted by `lanes`. Rows are complete
    after `place` has received all lines and `finish` was called. `order`: int32[events], `offsets`:
    int64[rows + 1].
    """

    def __init__(self, start: Int64s, duration: Int64s, row_sizes: Int64s) -> None:
        self.start = start
        self.duration = duration
        self.order = np.empty(len(start), np.int32)
        self.offsets = np.concatenate(([0], np.cumsum(row_sizes))).astype(np.int64)

    def place(self, line_offsets: Int64s, first_rows: Int64s, depth: npt.NDArray[np.uint16]) -> None:
        """Put the events of some lines into rows, starting at each line's first row. Several threads can
        share the lines.
        """
        for first, last, row in zip(
            line_offsets[:-1].tolist(), line_offsets[1:].tolist(), first_rows.tolist(), strict=True
        ):
            offset = self.offsets[row]
            self.order[offset : offset + last - first] = first + np.argsort(depth[first:last], kind="stable")

    def finish(self) -> None:
        """Complete the rows after all lines were placed."""

    def boxes(
        self, rows: npt.NDArray[np.int32], window_start: int, window_end: int, pixel_ps: int
    ) -> npt.NDArray[Any]:
        """Boxes of the rows in the window, by row and start.

        An event of at least a pixel is a box of its own. Shorter events that start within the same two
        pixels, without a longer one between them, share a box: from the first one's start to the last one's
        end, with their count and the id and duration of the longest.

            events   ▏▏▏ ▏   ██████  ▏▏      pixels  | | | | | | |
            boxes    ███ ▏   ██████  ██      n_merged 3 1 1 2
        """
        boxes: list[tuple[int, ...]] = []
        for row in rows.tolist():
            if 0 <= row < len(self.offsets) - 1:
                boxes += self._row_boxes(row, window_start, window_end, max(pixel_ps, 1))
        return np.array(boxes, BOX) if boxes else np.empty(0, BOX)

    def first_ending_after(self, rows: npt.NDArray[np.int32], time: int) -> npt.NDArray[np.int64]:
        """Index in `order` of each row's first event that ends after the time, the row's end if none does.

        An event without duration counts as 1 ps; 0 for a row out of range.
        """
        indexes = np.zeros(len(rows), np.int64)
        for i, row in enumerate(rows.tolist()):
            if 0 <= row < len(self.offsets) - 1:
                first, last = self.offsets[row], self.offsets[row + 1]
                events = self.order[first:last]
                indexes[i] = first + np.count_nonzero(
                    self.start[events] + np.maximum(self.duration[events], 1) <= time
                )
        return indexes

    def busy(
        self, rows: npt.NDArray[np.int32], begin: int, pixel_ps: int, n_pixels: int
    ) -> npt.NDArray[np.int64]:
        """Picoseconds covered by events in each of the pixels from `begin` on, summed over the rows.

        pixels   |   |   |   |   |     of 4 ps
        events     ██████   ██████
        busy       2   4   1   4   1
        """
        covered = np.zeros(n_pixels, np.int64)
        edges = begin + pixel_ps * np.arange(n_pixels + 1, dtype=np.int64)
        for row in rows.tolist():
            if 0 <= row < len(self.offsets) - 1:
                events = self.order[self.offsets[row] : self.offsets[row + 1]]
                for start, duration in zip(
                    self.start[events].tolist(), self.duration[events].tolist(), strict=True
                ):
                    covered += np.maximum(
                        np.minimum(start + duration, edges[1:]) - np.maximum(start, edges[:-1]), 0
                    )
        return covered

    def _row_boxes(self, row: int, begin: int, end: int, pixel_ps: int) -> list[tuple[int, ...]]:
        events = self.order[self.offsets[row] : self.offsets[row + 1]]
        starts, durations = self.start[events], self.duration[events]
        seen = (starts + np.maximum(durations, 1) > begin) & (starts < end)
        merged: list[list[int]] = []
        last_bucket = -1
        for event, start, duration in zip(
            events[seen].tolist(), starts[seen].tolist(), durations[seen].tolist(), strict=True
        ):
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
        return [(group[0], group[1], group[5], *group[2:5], 0) for group in merged]
