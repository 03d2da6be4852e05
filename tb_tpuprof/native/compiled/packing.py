# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers in few bytes. Compiled; the twins in `plain/packing.py` have the full docstrings."""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.tb_tpuprof.native.compiled.digits import bits

from tb_tpuprof.native.plain.packing import ENTROPY_WEIGHTS

Divisor = cython.struct(
    scale=int64_t,
    shift=cython.int,  # the scale is 2 ** shift times an odd number
    inverse=uint64_t,  # of the odd number, modulo 2 ** 64
    limit=uint64_t,  # the largest number whose product with the odd one has 63 bits
)
Range = cython.struct(low=int64_t, high=int64_t)
Survey = cython.struct(plain=Range, differences=Range, by=Divisor)
Plan = cython.struct(
    n=int64_t,
    base=int64_t,
    by=Divisor,
    width=cython.int,
    is_signed=cython.bint,
    is_delta=cython.bint,
    is_after=cython.bint,
    is_exact=cython.bint,
)
EXACT = cython.declare(int64_t, 9007199254740991)
TRIED = cython.declare(int64_t, 256)  # numbers that are packed in both ways to choose one
SHARP = cython.declare(int64_t, 65536)
TILE = cython.declare(int64_t, 512)  # numbers at a time, so that they stay in the first cache
WEIGHTS = cython.declare(int64_t[2049])
for _count, _weight in enumerate(ENTROPY_WEIGHTS):
    WEIGHTS[_count] = _weight


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def width_of(value: uint64_t) -> cython.int:
    return max(1, (bits(value) + 7) // 8)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def magnitude(value: int64_t) -> uint64_t:
    return cython.cast(uint64_t, value if value >= 0 else -value)


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
    if values.shape[0] == 0:
        return "u1", 0, 1, b""
    source: cython.pointer(cython.const[int64_t]) = cython.address(values[0])
    plan: Plan
    with cython.nogil:
        plan = planned(source, values.shape[0], is_delta)
    if not plan.is_exact:
        raise OverflowError
    planes = PyBytes_FromStringAndSize(cython.NULL, plan.n * plan.width)
    out: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(planes))
    with cython.nogil:
        in_planes(source, cython.address(plan), out)
    return f"{'i' if plan.is_signed else 'u'}{plan.width}", plan.base, plan.by.scale, planes


def packed_parts(
    values: cython.const[int64_t][::1],
    order: cython.const[int32_t][::1],
    offsets: cython.const[int64_t][::1],
    is_delta: cython.bint,
    lengths: cython.const[int64_t][::1] = None,
):
    """Integers in parts; see `plain.packing.packed_parts`. Releases the interpreter's lock twice, not for
    each part: to get it back, a thread may have to wait for another that has it.
    """
    n: int64_t = order.shape[0]
    n_parts: int64_t = offsets.shape[0] - 1
    k: int64_t
    good: cython.bint = values.shape[0] == n and (lengths is None or lengths.shape[0] == n)
    plans: Plan[256]
    out: cython.pointer(uint8_t)[256]
    good = good and 0 <= n_parts <= 256
    for k in range(n_parts if good else 0):
        good = good and 0 <= offsets[k] < offsets[k + 1] <= n
    if not good:
        raise IndexError
    if n_parts == 0:
        return []
    gathered: int64_t[::1] = np.empty(n, np.int64)
    source: cython.pointer(cython.const[int64_t]) = cython.address(values[0])
    before: cython.pointer(cython.const[int64_t]) = cython.NULL
    if lengths is not None:
        before = cython.address(lengths[0])
    with cython.nogil:
        for k in range(n_parts):
            plans[k] = planned_part(
                source,
                cython.address(order[offsets[k]]),
                offsets[k + 1] - offsets[k],
                is_delta,
                before,
                cython.address(gathered[offsets[k]]),
            )
            good = good and plans[k].is_exact
    if not good:
        raise OverflowError
    planes = [PyBytes_FromStringAndSize(cython.NULL, plans[k].n * plans[k].width) for k in range(n_parts)]
    for k in range(n_parts):
        out[k] = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(planes[k]))
    with cython.nogil:
        for k in range(n_parts):
            in_planes(cython.address(gathered[offsets[k]]), cython.address(plans[k]), out[k])
    return [
        (
            f"{'i' if plans[k].is_signed else 'u'}{plans[k].width}",
            plans[k].base,
            plans[k].by.scale,
            planes[k],
            bool(plans[k].is_after),
        )
        for k in range(n_parts)
    ]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def planned_part(
    values: cython.pointer(cython.const[int64_t]),
    rows: cython.pointer(cython.const[int32_t]),
    n: int64_t,
    is_delta: cython.bint,
    lengths: cython.pointer(cython.const[int64_t]),
    gathered: cython.pointer(int64_t),
) -> Plan:
    """Gather a part's values, less the lengths of the rows before if the first ones then take fewer bits."""
    plan: Plan
    is_after: cython.bint = False
    size: int64_t = min(n, TRIED)
    if lengths != cython.NULL:
        gather(values, rows, size, cython.NULL, gathered)
        bits_by_start: int64_t = entropy(gathered, size)
        is_after = (
            gather(values, rows, size, lengths, gathered)
            and entropy(gathered, size) < bits_by_start
            and gather(values, rows, n, lengths, gathered)
        )
    if not is_after:
        gather(values, rows, n, cython.NULL, gathered)
    plan = planned(gathered, n, is_delta)
    plan.is_after = is_after
    return plan


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def gather(
    values: cython.pointer(cython.const[int64_t]),
    rows: cython.pointer(cython.const[int32_t]),
    n: int64_t,
    lengths: cython.pointer(cython.const[int64_t]),
    gathered: cython.pointer(int64_t),
) -> cython.bint:
    """The values of some rows, less the lengths of the rows before; False if a browser's numbers cannot
    represent all sums.
    """
    i: int64_t
    high: int64_t = 0
    sum_before: int64_t = 0
    if lengths == cython.NULL:
        for i in range(n):
            gathered[i] = values[rows[i]]
        return True
    for i in range(n):
        gathered[i] = values[rows[i]] - sum_before
        high = max(high, values[rows[i]])
        if not 0 <= lengths[rows[i]] <= EXACT - sum_before:
            return False
        sum_before += lengths[rows[i]]
    return high <= EXACT - sum_before


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def entropy(values: cython.pointer(cython.const[int64_t]), n: int64_t) -> int64_t:
    """Bits, times SHARP, of the packed differences of at most TRIED values if each byte takes as many as its
    frequency deserves.
    """
    planes: uint8_t[2048]
    n_bytes: int64_t[256]
    bits_saved: int64_t = 0
    i: int64_t
    plan: Plan = planned(values, n, True)
    if not plan.is_exact:
        return 64 * SHARP * n
    in_planes(values, cython.address(plan), planes)
    for i in range(256):
        n_bytes[i] = 0
    for i in range(plan.n * plan.width):
        n_bytes[planes[i]] += 1
    for i in range(256):
        bits_saved += WEIGHTS[n_bytes[i]]
    return WEIGHTS[plan.n * plan.width] - bits_saved


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def planned(values: cython.pointer(cython.const[int64_t]), n: int64_t, is_delta: cython.bint) -> Plan:
    """How numbers are packed; `is_exact` is false if one exceeds what a browser's number can represent."""
    plan: Plan
    plan.n = n
    plan.is_delta = is_delta
    plan.is_after = False
    plan.is_signed = False
    plan.base = 0
    plan.width = 0
    found: Survey = surveyed(values, n, is_delta)
    plan.by = found.by
    plan.is_exact = found.plain.low >= -EXACT and found.plain.high <= EXACT
    if not plan.is_exact:
        return plan
    plan.base = values[0] if is_delta else found.plain.low
    low: int64_t = found.differences.low // plan.by.scale
    high: int64_t = (found.differences.high if is_delta else found.plain.high - plan.base) // plan.by.scale
    if not is_delta and plan.base >= 0 and width_of(high) == width_of(found.plain.high):
        high = found.plain.high
        plan.by = divisor(1)
        plan.base = 0
    plan.is_signed = low < 0
    plan.width = width_of(2 * max(high, -low - 1)) if plan.is_signed else width_of(high)
    return plan


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def surveyed(values: cython.pointer(cython.const[int64_t]), n: int64_t, is_delta: cython.bint) -> Survey:
    """The ranges of the values and of their differences, and the greatest common divisor of the latter (of
    plain values from the first one, which is that of all from any base). The divisor found so far divides
    most tiles; where it does not, it at least halves.
    """
    found: Survey
    found.plain = Range(values[0], values[0])
    found.differences = Range(0, 0)
    found.by = divisor(1)
    scale: uint64_t = 0
    numbers: int64_t[512]
    first: int64_t = 0
    size: int64_t
    i: int64_t
    while first < n:
        size = min(n - first, TILE)
        found.plain = widened(found.plain, values + first, size)
        if found.plain.low < -EXACT or found.plain.high > EXACT:
            break
        if is_delta or scale != 1:
            numbers_of_tile(numbers, values, first, size, is_delta, values[0])
        if is_delta:
            found.differences = widened(found.differences, numbers, size)
        if scale != 1 and (scale == 0 or not divides(numbers, size, found.by)):
            for i in range(size):
                if numbers[i] != 0:
                    scale = gcd(magnitude(numbers[i]), scale)
            found.by = divisor(max(scale, 1))
        first += size
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def widened(known: Range, values: cython.pointer(cython.const[int64_t]), n: int64_t) -> Range:
    """A range with some more values."""
    low: int64_t = known.low
    high: int64_t = known.high
    i: int64_t
    for i in range(n):
        low = values[i] if values[i] < low else low
        high = values[i] if values[i] > high else high
    return Range(low, high)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def divisor(scale: int64_t) -> Divisor:
    """What it takes to divide by a scale of 1 or more."""
    by: Divisor
    by.scale = scale
    by.shift = 0
    odd: uint64_t = scale
    while odd & 1 == 0:
        odd >>= 1
        by.shift += 1
    by.limit = cython.cast(uint64_t, (cython.cast(uint64_t, 1) << 63) - 1) // odd
    by.inverse = odd  # right in its lowest 3 bits; each of Newton's steps doubles these
    for _ in range(5):
        by.inverse *= 2 - odd * by.inverse
    return by


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def quotient(number: int64_t, by: Divisor) -> int64_t:
    """A multiple of the scale divided by it. A division takes ten times as long."""
    return cython.cast(int64_t, cython.cast(uint64_t, number >> by.shift) * by.inverse)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def divides(numbers: cython.pointer(cython.const[int64_t]), n: int64_t, by: Divisor) -> cython.bint:
    """Whether all numbers are multiples of the scale: only then do their quotients, times the odd factor of
    the scale, not exceed 63 bits.
    """
    mask: uint64_t = (cython.cast(uint64_t, 1) << by.shift) - 1
    rest: uint64_t = 0
    i: int64_t
    for i in range(n):
        rest |= cython.cast(uint64_t, numbers[i]) & mask
        rest |= cython.cast(uint64_t, quotient(numbers[i], by)) + by.limit > 2 * by.limit
    return rest == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def numbers_of_tile(
    numbers: cython.pointer(int64_t),
    values: cython.pointer(cython.const[int64_t]),
    first: int64_t,
    size: int64_t,
    is_delta: cython.bint,
    base: int64_t,
) -> cython.void:
    """The numbers packed for `size` values from the first on."""
    i: int64_t
    if is_delta:
        numbers[0] = number_at(values, first, True, base)
        for i in range(1, size):
            numbers[i] = values[first + i] - values[first + i - 1]
    else:
        for i in range(size):
            numbers[i] = values[first + i] - base


@cython.cfunc
@cython.inline
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
@cython.nogil
@cython.exceptval(check=False)
def in_planes(
    values: cython.pointer(cython.const[int64_t]),
    plan: cython.pointer(cython.const[Plan]),
    out: cython.pointer(uint8_t),
) -> cython.void:
    """Byte k of number i, divided by the scale that divides all numbers, goes to out[k * n + i]; a tile of
    numbers at a time, for all planes.
    """
    n: int64_t = plan.n
    width: cython.int = plan.width
    numbers: int64_t[512]
    words: uint32_t[512]
    half: cython.int
    first: int64_t = 0
    size: int64_t
    i: int64_t
    k: cython.int
    while first < n:
        size = min(n - first, TILE)
        numbers_of_tile(numbers, values, first, size, plan.is_delta, plan.base)
        if plan.by.scale > 1:
            for i in range(size):
                numbers[i] = quotient(numbers[i], plan.by)
        for half in range(2):  # 32-bit words split into bytes in fewer steps
            for i in range(size if width > 4 * half else 0):
                words[i] = cython.cast(uint32_t, numbers[i] >> (32 * half))
            for k in range(4 * half, min(width, 4 * half + 4)):
                for i in range(size):
                    out[k * n + first + i] = cython.cast(uint8_t, words[i] >> (8 * (k - 4 * half)))
        first += TILE


def divided(parts: cython.const[uint8_t][::1]):
    """Rows by part; see `plain.packing.divided`."""
    n: int64_t = parts.shape[0]
    numbers = np.empty(n, np.uint8)
    order = np.empty(n, np.int32)
    number: uint8_t[::1] = numbers
    out: int32_t[::1] = order
    next_place: int64_t[256]
    odd: int64_t[256]
    number_of: uint8_t[256]
    i: int64_t
    size: int64_t
    end: int64_t = 0
    k: cython.int = 0
    value: cython.int
    with cython.nogil:
        for value in range(256):
            next_place[value] = 0
            odd[value] = 0
        for i in range(0, n - 1, 2):  # two counters for each part: adding to one twice in a row has to wait
            next_place[parts[i]] += 1
            odd[parts[i + 1]] += 1
        if n % 2:
            odd[parts[n - 1]] += 1
    offsets = [0]
    for value in range(256):
        size = next_place[value] + odd[value]
        number_of[value] = cython.cast(uint8_t, k)
        next_place[value] = end
        if size:
            k += 1
            end += size
            offsets.append(end)
    with cython.nogil:
        for i in range(n):
            number[i] = number_of[parts[i]]
            out[next_place[parts[i]]] = cython.cast(int32_t, i)
            next_place[parts[i]] += 1
    return numbers, order, np.array(offsets, np.int64)
