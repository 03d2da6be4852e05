"""Plain twin of `compiled/packing.py`: the same names, arguments and results."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Uint8s = npt.NDArray[np.uint8]
EXACT = 2**53 - 1
TRIED = 256  # numbers that are packed in both ways to choose one
SHARP = 2**16
# Of n bytes, c of them alike, the c save this of n's own entry.
ENTROPY_WEIGHTS: list[int] = [0, *(round(SHARP * n * math.log2(n)) for n in range(1, 8 * TRIED + 1))]


def packed(values: Int64s, is_delta: bool) -> tuple[str, int, int, bytes]:
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


def packed_parts(
    values: Int64s, order: Int32s, offsets: Int64s, is_delta: bool, lengths: Int64s | None = None
) -> list[tuple[str, int, int, bytes, bool]]:
    """`packed` of each part, and whether it counts from the end before. `order` and `offsets` are those of
    `divided`.

    `lengths` of values that are starts: a part whose first differences take fewer bits so counts from the
    end before (the start and the length of the row before).

    Raises OverflowError as `packed`; IndexError if there is not one value and length for each row.

        starts  0 5 9     lengths  5 3 1     from the ends  0 0 1
    """
    if len(values) != len(order) or (lengths is not None and len(lengths) != len(order)):
        raise IndexError
    return [
        _packed_part(values[rows], is_delta, None if lengths is None else lengths[rows])
        for rows in (order[a:b] for a, b in itertools.pairwise(offsets.tolist()))
    ]


def _packed_part(values: Int64s, is_delta: bool, lengths: Int64s | None) -> tuple[str, int, int, bytes, bool]:
    if lengths is not None and _is_exact(values[:TRIED], lengths[:TRIED]):
        ends = values - (np.cumsum(lengths) - lengths)
        if _entropy(ends[:TRIED]) < _entropy(values[:TRIED]) and _is_exact(values, lengths):
            return *packed(ends, is_delta), True
    return *packed(values, is_delta), False


def _is_exact(values: Int64s, lengths: Int64s) -> bool:
    """Whether a browser's numbers can represent every start and the sum of the lengths before it."""
    return int(lengths.min()) >= 0 and sum(lengths.tolist()) + max(int(values.max()), 0) <= EXACT


def _entropy(values: Int64s) -> int:
    """Bits, times SHARP, of packed differences if each byte takes as many as its frequency deserves."""
    try:
        planes = packed(values, True)[3]
    except OverflowError:
        return 64 * SHARP * len(values)
    counts = np.bincount(np.frombuffer(planes, np.uint8), minlength=256)
    saved: int = sum(ENTROPY_WEIGHTS[count] for count in counts.tolist())
    return ENTROPY_WEIGHTS[len(planes)] - saved


def divided(parts: Uint8s) -> tuple[Uint8s, Int32s, Int64s]:
    """(the number of each row's part, from 0 in ascending order; rows by part; where each part begins in
    these, and the last one's end).

        parts  7 2 7 2 2     numbers  1 0 1 0 0     rows  1 3 4 0 2     begins  0 3 5
    """
    sizes = np.bincount(parts, minlength=256)
    used = np.flatnonzero(sizes)
    number = np.zeros(256, np.uint8)
    number[used] = np.arange(len(used))
    order = np.argsort(parts, kind="stable").astype(np.int32)
    return number[parts], order, np.cumsum([0, *sizes[used].tolist()], dtype=np.int64)
