"""Plain twin of `compiled/packing.py`: the same names, arguments and results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Uint8s = npt.NDArray[np.uint8]
EXACT = 2**53 - 1


def packed(values: npt.NDArray[np.int64], is_delta: bool) -> tuple[str, int, int, bytes]:
    """(format of a number such as `u2`: letter and bytes; base; scale; planes) of integers, or of their
    differences.

    A number is base + scale · packed number; with differences it is base + scale · their sum so far. Numbers
    of several bytes are stored in planes, all lowest bytes first: similar bytes are adjacent and compress
    faster and smaller.

    Raises OverflowError if a number exceeds what a browser's number can represent.

            values   1000 1512 1256        base 1000, scale 256, differences 0 2 -1 in i1: 00 02 ff
    """
    if not len(values):
        return "u1", 0, 1, b""
    if int(values.min()) < -EXACT or int(values.max()) > EXACT:
        raise OverflowError
    base = int(values[0])
    if is_delta:
        numbers = np.diff(values, prepend=values[:1])
    else:
        base = int(values.min())
        numbers = values - base
    scale = math.gcd(*numbers.tolist()) or 1
    if (
        not is_delta
        and _width(int(numbers.max()) // scale) == _width(max(int(values.max()), 0))
        and base >= 0
    ):
        base, scale, numbers = 0, 1, values  # plain numbers if that takes no more bytes
    numbers = numbers // scale
    low, high = int(numbers.min()), int(numbers.max())
    width = _width(high) if low >= 0 else _width(2 * max(high, -low - 1))
    planes = np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)[:, :width].T
    return f"{'iu'[low >= 0]}{width}", base, scale, planes.tobytes()


def _width(value: int) -> int:
    """Bytes needed for a number."""
    return max(1, (value.bit_length() + 7) // 8)


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
        columns: tuple[npt.NDArray[np.int64], Int32s, Uint8s],
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
