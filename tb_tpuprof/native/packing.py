# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns for the screen: boxes with what they look like, whole numbers in few bytes, and these compressed; see `plain_packing.py`."""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.tb_tpuprof.native.deflate import Writer, deflate_all, deflated_room

Box = cython.struct(start=int64_t, duration=int64_t, longest=int64_t, row=int32_t, event=int32_t, n_merged=int32_t, unused=int32_t)
KEEP = cython.declare(uint8_t, 255)
DIGITS = cython.declare(cython.int, 10)
EXACT = cython.declare(int64_t, 9007199254740991)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def bits(value: uint64_t) -> cython.int:
    n: cython.int = 0
    while value >= 256:
        value >>= 8
        n += 8
    while value > 0:
        value >>= 1
        n += 1
    return n


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
    """Whole numbers or their differences in planes of bytes; see `plain_packing.packed`."""
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
    source: cython.pointer(cython.const[int64_t]) = cython.address(values[0])
    numbers: int64_t[::1]
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
            if (scale & (scale - 1)) != 0 or scale == 0 or (cython.cast(uint64_t, number) & (scale - 1)) != 0:
                scale = gcd(cython.cast(uint64_t, number if number >= 0 else -number), scale)
        scale = max(scale, 1)
        if not is_delta and base >= 0 and width_of(cython.cast(uint64_t, last) // scale) == width_of(high):
            last = high
            scale = 1
            base = 0
    if scale > 1:  # divided once, rather than once for each byte
        numbers = np.empty(n, np.int64)
        with cython.nogil:
            first //= cython.cast(int64_t, scale)
            last //= cython.cast(int64_t, scale)
            divided(source, n, is_delta, base, cython.cast(int64_t, scale), cython.address(numbers[0]))
        source = cython.address(numbers[0])
    width = width_of(last) if first >= 0 else width_of(2 * cython.cast(uint64_t, max(last, -first - 1)))
    planes = PyBytes_FromStringAndSize(cython.NULL, n * width)
    out: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(planes))
    with cython.nogil:
        if scale > 1:
            in_planes(source, n, width, out, False, 0)
        else:
            in_planes(source, n, width, out, is_delta, base)
    return f"{'u' if first >= 0 else 'i'}{width}", base, cython.cast(int64_t, scale), planes


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def divided(
    values: cython.pointer(cython.const[int64_t]),
    n: int64_t,
    is_delta: cython.bint,
    base: int64_t,
    scale: int64_t,
    out: cython.pointer(int64_t),
) -> cython.void:
    """What is packed of each value, by a scale that divides all."""
    i: int64_t
    shift: cython.int = bits(scale) - 1
    if (scale & (scale - 1)) == 0:
        for i in range(n):
            out[i] = number_at(values, i, is_delta, base) >> shift
    else:
        for i in range(n):
            out[i] = number_at(values, i, is_delta, base) // scale


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def number_at(values: cython.pointer(cython.const[int64_t]), i: int64_t, is_delta: cython.bint, base: int64_t) -> int64_t:
    """What is packed of value i: what it is more than the one before, or than the base."""
    if not is_delta:
        return values[i] - base
    return values[i] - values[i - 1] if i > 0 else 0


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
) -> cython.void:
    """Byte k of number i goes to out[k * n + i]."""
    i: int64_t
    k: cython.int
    for k in range(width):
        if is_delta:
            out[k * n] = 0
            for i in range(1, n):
                out[k * n + i] = cython.cast(uint8_t, (values[i] - values[i - 1]) >> (8 * k))
        else:
            for i in range(n):
                out[k * n + i] = cython.cast(uint8_t, (values[i] - base) >> (8 * k))


def deflated(data: cython.const[uint8_t][::1]):
    """Blocks of deflate, the last of them ending on a byte; see `plain_packing.deflated`."""
    size: int64_t = data.shape[0]
    blocks = PyBytes_FromStringAndSize(cython.NULL, deflated_room(size))
    start: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(blocks))
    writer: cython.pointer(Writer) = cython.cast(cython.pointer(Writer), malloc(cython.sizeof(Writer)))
    if writer == cython.NULL:
        raise MemoryError
    writer.out = start
    writer.bits = 0
    writer.n_bits = 0
    with cython.nogil:
        deflate_all(writer, cython.address(data[0]) if size else start, size)
    size = writer.out - start
    free(writer)
    return blocks[:size]


@cython.final
@cython.cclass
class Looks:
    """What boxes of some rows look like; see `plain_packing.Looks`."""

    row_line: cython.const[int32_t][::1]
    row_depth: cython.const[int32_t][::1]
    key: cython.const[int32_t][::1]
    name: cython.const[int32_t][::1]
    family: cython.const[uint8_t][::1]
    has_own: cython.const[uint8_t][::1]
    of_line: cython.const[uint8_t][::1]

    def __init__(self, of_row, key, of_key, of_line):
        self.row_line, self.row_depth = of_row
        self.key = key
        self.name, self.family, self.has_own = of_key
        self.of_line = of_line

    def fill(self, columns: int64_t[:, :], own: uint8_t[::1], boxes, origin_ps: int64_t, pixel_ps: int64_t):
        """Columns of boxes, merged ones on whole pixels; see `plain_packing.Looks.fill`."""
        n: int64_t = len(boxes)
        if n == 0:
            return
        raw: cython.const[uint8_t][::1] = boxes.view(np.uint8)
        box: cython.pointer(cython.const[Box]) = cython.cast(cython.pointer(cython.const[Box]), cython.address(raw[0]))
        i: int64_t
        m: int32_t
        line: int32_t
        begin: int64_t
        end: int64_t
        longest: int64_t
        shift: cython.int
        with cython.nogil:
            for i in range(n):
                line = self.row_line[box[i].row]
                m = self.key[box[i].event]
                columns[0, i] = line
                columns[1, i] = self.row_depth[box[i].row]
                columns[2, i] = box[i].start
                columns[3, i] = box[i].duration
                longest = 0
                if box[i].n_merged > 1:
                    begin = box[i].start - origin_ps
                    end = begin + box[i].duration
                    end = (end + pixel_ps - 1) // pixel_ps
                    begin = max(begin, 0) // pixel_ps
                    end = min(end, (begin | 1) + 1)
                    columns[2, i] = begin * pixel_ps + origin_ps
                    columns[3, i] = (end - begin) * pixel_ps
                    shift = max(bits(box[i].longest) - DIGITS, 0)
                    longest = ((box[i].longest + ((cython.cast(int64_t, 1) << shift) >> 1)) >> shift) << shift
                columns[4, i] = longest
                columns[5, i] = self.name[m]
                columns[6, i] = self.family[m] if self.of_line[line] == KEEP else self.of_line[line]
                columns[7, i] = box[i].event
                columns[8, i] = box[i].n_merged
                own[i] = self.has_own[m]
