"""Plain twin of `compiled/timeline.py`: the same names, arguments and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Uint8s = npt.NDArray[np.uint8]
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


class BoxStyles:
    """Per-box style columns of some rows: line, depth, name and family of each box, by its row and its
    event's key.

    `of_row` has (line, depth) by row; `key` a number by event, and `of_key` (name, family, whether events of
    the key can have names of their own); `of_line` has a family by line, 255 if the event's family counts.
    `own_names` has (events, ascending; their names; the family of all of these).
    """

    def __init__(
        self,
        of_row: tuple[Int32s, Int32s],
        key: Int32s,
        of_key: tuple[Int32s, Uint8s, Uint8s],
        of_line: Uint8s,
        own_names: tuple[Int32s, Int32s, int],
    ) -> None:
        self.row_line, self.row_depth = of_row
        self.key = key
        self.name, self.family, self.has_own = of_key
        self.of_line = of_line
        self.own_event, self.own_name, self.own_family = own_names

    def fill(
        self,
        columns: tuple[Int64s, Int32s, Uint8s],
        boxes: npt.NDArray[Any],
        window: tuple[int, int],
        shifts: tuple[int, int, int],
        seen: Uint8s,
    ) -> None:
        """Fill columns of boxes: rows line, start, duration, longest, event as int64; depth, name, n_merged
        as int32; the families.

        `window` is its start and the picoseconds per pixel; `shifts` are added to lines, times and events;
        names are marked in `seen`. Merged boxes are widened to whole pixels within their two, and the
        duration of their longest event is rounded to seven binary digits (0 if a box is one event): the
        difference is invisible, and a full screen takes a third of the bytes.
        """
        origin_ps, pixel_ps = window
        row, event, n_merged = boxes["row"], boxes["event"], boxes["n_merged"]
        start, duration, longest = boxes["start"].copy(), boxes["duration"].copy(), boxes["longest"].copy()
        merged = np.flatnonzero(n_merged > 1)
        begin = start[merged] - origin_ps
        end = -(-(begin + duration[merged]) // pixel_ps) * pixel_ps
        begin = np.maximum(begin, 0) // pixel_ps * pixel_ps
        pair_end = begin // (2 * pixel_ps) * (2 * pixel_ps) + 2 * pixel_ps
        start[merged] = begin + origin_ps
        duration[merged] = np.minimum(end, pair_end) - begin
        longest[merged] = [_rounded(value) for value in longest[merged].tolist()]
        longest[n_merged <= 1] = 0
        line, key = self.row_line[row], self.key[event]
        name, family = self.name[key], self.family[key]
        has_own_name = np.flatnonzero((self.has_own[key] != 0) & np.isin(event, self.own_event))
        name[has_own_name] = self.own_name[np.searchsorted(self.own_event, event[has_own_name])]
        family[has_own_name] = self.own_family
        longs, ints, families = columns
        longs[:] = (
            line.astype(np.int64) + shifts[0],
            start + shifts[1],
            duration,
            longest,
            event.astype(np.int64) + shifts[2],
        )
        ints[:] = self.row_depth[row], name, n_merged
        families[:] = np.where(self.of_line[line] == 255, family, self.of_line[line])
        seen[name] = 1


def _rounded(value: int) -> int:
    """A number rounded to seven binary digits, halves upward."""
    shift = max(value.bit_length() - 7, 0)
    return (value + (1 << shift >> 1)) >> shift << shift
