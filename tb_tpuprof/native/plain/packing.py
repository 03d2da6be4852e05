"""Plain twins of `packing.py`: the same names, arguments and results, for where no extension is built and for
tests.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Uint8s = npt.NDArray[np.uint8]
EXACT = 2**53 - 1


def packed(values: npt.NDArray[np.int64], is_delta: bool) -> tuple[str, int, int, bytes]:
    """(letter and bytes of a number such as `u2`, base, scale, planes) of whole numbers, their differences or
    of nothing.

    A number is base + scale · packed one; of differences it is base + scale · the sum of those so far.
    Numbers of several bytes lie in planes, all lowest bytes first: what is alike comes together, and
    compresses faster and smaller.

    Raises OverflowError where one is beyond what a number in a browser holds.

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
        base, scale, numbers = 0, 1, values  # plain numbers where that costs no more
    numbers = numbers // scale
    low, high = int(numbers.min()), int(numbers.max())
    width = _width(high) if low >= 0 else _width(2 * max(high, -low - 1))
    planes = np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)[:, :width].T
    return f"{'iu'[low >= 0]}{width}", base, scale, planes.tobytes()


def listed(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> bytes:
    """Numbers as they stand in a JSON list, with commas between them; what is not finite is null. Doubles as
    `repr` writes them.
    """
    return ",".join([repr(value) if math.isfinite(value) else "null" for value in values.tolist()]).encode()


def _width(value: int) -> int:
    """Bytes that a number takes."""
    return max(1, (value.bit_length() + 7) // 8)


def deflated(data: bytes | memoryview) -> bytes:
    """Blocks of deflate, none of them the last, which end on a byte and do not look back behind the first.

    They are looked through for runs of a byte, and for how often each byte occurs: planes of bytes have few
    repetitions else. What both twins make unpacks to the same, but need not be the same: this one is zlib's.
    """
    made = zlib.compressobj(1, zlib.DEFLATED, -15, 9, zlib.Z_RLE)
    return made.compress(data) + made.flush(zlib.Z_FULL_FLUSH)


class Looks:
    """What boxes of some rows look like: the line, depth, name and family of each, by its row and its event's
    key.

    `of_row` are (line, depth) by row; `key` is a number by event, and `of_key` (name, family, whether events
    of the key can have names of their own); `of_line` is a family by line, 255 where that of the event
    counts. `own` are (event, ascending; its name; the family of all of these).
    """

    def __init__(
        self,
        of_row: tuple[Int32s, Int32s],
        key: Int32s,
        of_key: tuple[Int32s, Uint8s, Uint8s],
        of_line: Uint8s,
        own: tuple[Int32s, Int32s, int],
    ) -> None:
        self.row_line, self.row_depth = of_row
        self.key = key
        self.name, self.family, self.has_own = of_key
        self.of_line = of_line
        self.own_event, self.own_name, self.own_family = own

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

        `window` is its start and the picoseconds of a pixel; `shifts` are added to lines, times and events;
        names are marked in `seen`. Merged boxes are widened to whole pixels within their two, and their
        longest event is told to ten binary digits (0 where a box is one event): no eye can tell, and a full
        screen takes a third of the bytes.
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
        own = np.flatnonzero((self.has_own[key] != 0) & np.isin(event, self.own_event))
        name[own] = self.own_name[np.searchsorted(self.own_event, event[own])]
        family[own] = self.own_family
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
    """A number to ten binary digits, halves upward."""
    shift = max(value.bit_length() - 10, 0)
    return (value + (1 << shift >> 1)) >> shift << shift
