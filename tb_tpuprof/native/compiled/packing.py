# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns for the screen: boxes with their styles, numbers in few bytes. Compiled; the twins in
`plain/packing.py` have the full docstrings.
"""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.tb_tpuprof.native.compiled.prefetch import prefetch

Box = cython.struct(
    start=int64_t,
    duration=int64_t,
    longest=int64_t,
    row=int32_t,
    event=int32_t,
    n_merged=int32_t,
    unused=int32_t,
)
KEEP = cython.declare(uint8_t, 255)
DIGITS = cython.declare(cython.int, 7)
AHEAD = cython.declare(int64_t, 24)  # how many boxes ahead keys are prefetched
EXACT = cython.declare(int64_t, 9007199254740991)
TILE = cython.declare(int64_t, 512)  # numbers in `in_planes` at a time


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def bits(value: uint64_t) -> cython.int:
    """Number of binary digits. Branch-free steps, since the size of numbers is hard to predict."""
    n: cython.int = 0
    step: cython.int
    half: cython.int = 32
    while half > 0:
        step = half if value >> half != 0 else 0
        value >>= step
        n += step
        half >>= 1
    return n + cython.cast(cython.int, value)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def width_of(value: uint64_t) -> cython.int:
    return max(1, (bits(value) + 7) // 8)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gcd(a: uint64_t, b: uint64_t) -> uint64_t:
    rest: uint64_t
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


def packed(values: cython.const[int64_t][::1], is_delta: cython.bint):
    """Integers or their differences in planes of bytes; see `plain.packing.packed`."""
    n: int64_t = values.shape[0]
    if n == 0:
        return "u1", 0, 1, b""
    i: int64_t
    low: int64_t = values[0]
    high: int64_t = values[0]
    first: int64_t
    last: int64_t
    base: int64_t = values[0]
    scale: uint64_t = 0
    width: cython.int
    number: int64_t
    reciprocal: cython.double = 1.0
    source: cython.pointer(cython.const[int64_t]) = cython.address(values[0])
    with cython.nogil:
        for i in range(n):
            low = values[i] if values[i] < low else low
            high = values[i] if values[i] > high else high
    if low < -EXACT or high > EXACT:
        raise OverflowError
    with cython.nogil:
        first = 0
        last = 0
        if is_delta:
            for i in range(1, n):
                number = values[i] - values[i - 1]
                first = number if number < first else first
                last = number if number > last else last
        else:
            base = low
            last = high - low
        for i in range(n):
            if scale == 1:
                break
            number = number_at(source, i, is_delta, base)
            if scale > 1 and quotient(number, reciprocal) * cython.cast(int64_t, scale) == number:
                continue
            if (scale & (scale - 1)) != 0 or scale == 0 or (cython.cast(uint64_t, number) & (scale - 1)) != 0:
                scale = gcd(cython.cast(uint64_t, number if number >= 0 else -number), scale)
                reciprocal = 1.0 / cython.cast(cython.double, max(scale, 1))
        scale = max(scale, 1)
        if not is_delta and base >= 0 and width_of(cython.cast(uint64_t, last) // scale) == width_of(high):
            last = high
            scale = 1
            base = 0
    first //= cython.cast(int64_t, scale)
    last //= cython.cast(int64_t, scale)
    width = width_of(last) if first >= 0 else width_of(2 * cython.cast(uint64_t, max(last, -first - 1)))
    planes = PyBytes_FromStringAndSize(cython.NULL, n * width)
    out: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(planes))
    with cython.nogil:
        in_planes(source, n, width, out, is_delta, base, cython.cast(int64_t, scale))
    return f"{'u' if first >= 0 else 'i'}{width}", base, cython.cast(int64_t, scale), planes


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def number_at(
    values: cython.pointer(cython.const[int64_t]), i: int64_t, is_delta: cython.bint, base: int64_t
) -> int64_t:
    """The number packed for value i: its difference from the value before, or from the base."""
    if not is_delta:
        return values[i] - base
    return values[i] - values[i - 1] if i > 0 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def quotient(number: int64_t, reciprocal: cython.double) -> int64_t:
    """A multiple of a number divided by it: exact below 2^50. A division takes ten times as long."""
    return cython.cast(
        int64_t, cython.cast(cython.double, number) * reciprocal + (0.5 if number >= 0 else -0.5)
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def in_planes(
    values: cython.pointer(cython.const[int64_t]),
    n: int64_t,
    width: cython.int,
    out: cython.pointer(uint8_t),
    is_delta: cython.bint,
    base: int64_t,
    scale: int64_t,
) -> cython.void:
    """Byte k of number i, divided by a scale that divides all numbers, goes to out[k * n + i]; a tile of
    numbers at a time, for all planes.
    """
    numbers: int64_t[512]
    words: uint32_t[512]
    half: cython.int
    first: int64_t = 0
    size: int64_t
    i: int64_t
    k: cython.int
    shift: cython.int = bits(scale) - 1
    reciprocal: cython.double = 1.0 / cython.cast(cython.double, scale)
    is_small: cython.bint = width <= 6
    while first < n:
        size = min(n - first, TILE)
        if is_delta:
            numbers[0] = number_at(values, first, True, base)
            for i in range(1, size):
                numbers[i] = values[first + i] - values[first + i - 1]
        else:
            for i in range(size):
                numbers[i] = values[first + i] - base
        if scale > 1 and (scale & (scale - 1)) == 0:
            for i in range(size):
                numbers[i] >>= shift
        elif scale > 1 and is_small:
            for i in range(size):
                numbers[i] = quotient(numbers[i], reciprocal)
        elif scale > 1:
            for i in range(size):
                numbers[i] //= scale
        for half in range(2):  # 32-bit words split into bytes in fewer steps
            for i in range(size if width > 4 * half else 0):
                words[i] = cython.cast(uint32_t, numbers[i] >> (32 * half))
            for k in range(4 * half, min(width, 4 * half + 4)):
                for i in range(size):
                    out[k * n + first + i] = cython.cast(uint8_t, words[i] >> (8 * (k - 4 * half)))
        first += TILE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pair_of(begin: int64_t, pair_ps: int64_t, pixel_ps: int64_t) -> int64_t:
    """Start of the pair of pixels that `begin` falls into: usually the pair before (`pair_ps`) or the next
    one.
    """
    if begin < pair_ps or begin >= pair_ps + 2 * pixel_ps:
        pair_ps += 2 * pixel_ps
        if begin < pair_ps or begin >= pair_ps + 2 * pixel_ps:
            pair_ps = begin // (2 * pixel_ps) * 2 * pixel_ps
    return pair_ps


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rounded(value: int64_t) -> int64_t:
    """A number rounded to seven binary digits, halves upward."""
    shift: cython.int = max(bits(value) - DIGITS, 0)
    return ((value + ((cython.cast(int64_t, 1) << shift) >> 1)) >> shift) << shift


@cython.final
@cython.cclass
class BoxStyles:
    """Per-box style columns of some rows; see `plain.packing.BoxStyles`."""

    row_line: cython.const[int32_t][::1]
    row_depth: cython.const[int32_t][::1]
    key: cython.const[int32_t][::1]
    name: cython.const[int32_t][::1]
    family: cython.const[uint8_t][::1]
    has_own: cython.const[uint8_t][::1]
    of_line: cython.const[uint8_t][::1]
    own_event: cython.const[int32_t][::1]
    own_name: cython.const[int32_t][::1]
    own_family: uint8_t

    def __init__(self, of_row, key, of_key, of_line, own_names):
        self.row_line, self.row_depth = of_row
        self.key = key
        self.name, self.family, self.has_own = of_key
        self.of_line = of_line
        self.own_event, self.own_name, self.own_family = own_names

    def fill(self, columns, boxes, window, shifts, seen: uint8_t[::1]):
        """Columns of boxes, merged ones on whole pixels; see `plain.packing.BoxStyles.fill`."""
        n: int64_t = len(boxes)
        if n == 0:
            return
        raw: cython.const[uint8_t][::1] = boxes.view(np.uint8)
        box: cython.pointer(cython.const[Box]) = cython.cast(
            cython.pointer(cython.const[Box]), cython.address(raw[0])
        )
        longs: int64_t[:, :] = columns[0]
        ints: int32_t[:, :] = columns[1]
        families: uint8_t[:] = columns[2]
        origin_ps: int64_t = window[0]
        pixel_ps: int64_t = window[1]
        line_shift: int64_t = shifts[0]
        time_shift: int64_t = shifts[1]
        event_shift: int64_t = shifts[2]
        pair_ps: int64_t = 0
        i: int64_t
        own_row: int64_t
        m: int32_t
        line: int32_t
        name: int32_t
        family: uint8_t
        begin: int64_t
        end: int64_t
        longest: int64_t
        with cython.nogil:
            for i in range(n):
                prefetch(cython.address(self.key[box[min(i + AHEAD, n - 1)].event]))
                line = self.row_line[box[i].row]
                m = self.key[box[i].event]
                name = self.name[m]
                family = self.family[m]
                if self.has_own[m]:
                    own_row = self.own_at(box[i].event)
                    if own_row >= 0:
                        name = self.own_name[own_row]
                        family = self.own_family
                if self.of_line[line] != KEEP:
                    family = self.of_line[line]
                begin = box[i].start - origin_ps
                end = begin + box[i].duration
                longest = 0
                if box[i].n_merged > 1:
                    begin = max(begin, 0)
                    pair_ps = pair_of(begin, pair_ps, pixel_ps)
                    # Without branches, which would be hard to predict.
                    begin = pair_ps + pixel_ps * (begin >= pair_ps + pixel_ps)
                    end = pair_ps + pixel_ps * ((end > pair_ps) + (end > pair_ps + pixel_ps))
                    longest = rounded(box[i].longest)
                longs[0, i] = line + line_shift
                longs[1, i] = begin + origin_ps + time_shift
                longs[2, i] = end - begin
                longs[3, i] = longest
                longs[4, i] = box[i].event + event_shift
                ints[0, i] = self.row_depth[box[i].row]
                ints[1, i] = name
                ints[2, i] = box[i].n_merged
                families[i] = family
                if 0 <= name < seen.shape[0]:
                    seen[name] = 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def own_at(self, event: int32_t) -> int64_t:
        """Index of an event among those with names of their own, -1 if it is not one of them."""
        low: int64_t = 0
        high: int64_t = self.own_event.shape[0]
        middle: int64_t
        while low < high:
            middle = (low + high) // 2
            if self.own_event[middle] < event:
                low = middle + 1
            else:
                high = middle
        return low if low < self.own_event.shape[0] and self.own_event[low] == event else -1
