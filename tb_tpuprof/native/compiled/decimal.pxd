# Numbers → the shortest text that reads back as the same number. Doubles: R. Giulietti, "The Schubfach way to render doubles", 2020.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove, memset

cdef enum:
    LOWEST = -292  # the powers of ten in the table: 10^LOWEST … 10^324
    MOST_CHARACTERS = 26


cdef struct Decimal:
    uint64_t digits
    int exponent  # the number is digits · 10^exponent


cdef inline void product(uint64_t a, uint64_t b, uint64_t* high, uint64_t* low) noexcept nogil:
    """All 128 bits of a · b."""
    cdef uint64_t a0 = a & 0xFFFFFFFFULL, a1 = a >> 32, b0 = b & 0xFFFFFFFFULL, b1 = b >> 32
    cdef uint64_t middle = a1 * b0 + (a0 * b0 >> 32)
    cdef uint64_t rest = a0 * b1 + (middle & 0xFFFFFFFFULL)
    high[0] = a1 * b1 + (middle >> 32) + (rest >> 32)
    low[0] = a * b


cdef inline uint64_t scaled(const uint64_t* power, uint64_t value) noexcept nogil:
    """value · power / 2^128, where power is two words, the high one first; odd if the result is not exact."""
    cdef uint64_t low, high, rest, carried
    product(power[1], value, &carried, &rest)
    product(power[0], value, &high, &low)
    low += carried
    high += low < carried
    return high | (low > 1)


cdef inline Decimal shortest(uint64_t bits, const uint64_t* powers) noexcept nogil:
    """The shortest decimal within a double's rounding interval, the closest one of several. The double is finite and not 0."""
    cdef uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL
    cdef int biased = <int>(bits >> 52 & 0x7FF)
    cdef uint64_t c = fraction | 0x10000000000000ULL if biased else fraction
    cdef int q = biased - 1075 if biased else -1074
    cdef Decimal decimal
    cdef bint is_closer = fraction == 0 and biased > 1  # the neighbor below is half as far away
    cdef uint64_t odd = c & 1
    cdef int k, h
    cdef const uint64_t* power
    cdef uint64_t lower, middle, upper, s, tens
    cdef bint below, above
    if 0 <= -q < 53 and c & ((1ULL << -q) - 1) == 0:
        decimal.digits = c >> -q
        decimal.exponent = 0
        return decimal
    k = (q * 1262611 - (524031 if is_closer else 0)) >> 22
    h = q + ((-k * 1741647) >> 19) + 1
    power = powers + 2 * (-k - LOWEST)
    lower = scaled(power, (4 * c - 2 + is_closer) << h) + odd
    middle = scaled(power, (4 * c) << h)
    upper = scaled(power, (4 * c + 2) << h) - odd
    s = middle >> 2
    if s >= 10:
        tens = s // 10
        below = lower <= 40 * tens
        above = 40 * tens + 40 <= upper
        if below != above:
            decimal.digits = tens + above
            decimal.exponent = k + 1
            return decimal
    below = lower <= 4 * s
    above = 4 * s + 4 <= upper
    if below == above:
        above = middle > 4 * s + 2 or (middle == 4 * s + 2 and s & 1)
    decimal.digits = s + above
    decimal.exponent = k
    return decimal


cdef inline int put_whole(uint64_t value, uint8_t* out) noexcept nogil:
    """Write the digits of an integer; returns their number."""
    cdef uint8_t[20] backward
    cdef int n = 0, i
    while value >= 10:
        backward[n] = <uint8_t>(48 + value % 10)
        value //= 10
        n += 1
    backward[n] = <uint8_t>(48 + value)
    n += 1
    for i in range(n):
        out[i] = backward[n - 1 - i]
    return n


cdef inline int put_double(uint64_t bits, const uint64_t* powers, uint8_t* out) noexcept nogil:
    """Write a finite double as Python's repr does; returns the number of characters."""
    cdef int n = 0, n_digits, point
    cdef Decimal number
    if bits >> 63:
        out[n] = 45
        n += 1
        bits &= 0x7FFFFFFFFFFFFFFFULL
    if bits == 0:
        memcpy(out + n, b"0.0", 3)
        return n + 3
    number = shortest(bits, powers)
    while number.digits % 10 == 0:
        number.digits //= 10
        number.exponent += 1
    n_digits = put_whole(number.digits, out + n)
    point = n_digits + number.exponent  # digits before the point
    if point > 16 or point <= -4:
        if n_digits > 1:
            memmove(out + n + 2, out + n + 1, n_digits - 1)
            out[n + 1] = 46
            n += 1
        n += n_digits
        out[n] = 101
        out[n + 1] = 43 if point > 0 else 45
        n += 2
        point = point - 1 if point > 0 else 1 - point
        if point < 10:
            out[n] = 48
            n += 1
        return n + put_whole(point, out + n)
    if point <= 0:
        memmove(out + n + 2 - point, out + n, n_digits)
        memset(out + n, 48, 2 - point)
        out[n + 1] = 46
        return n + 2 - point + n_digits
    if point >= n_digits:
        memset(out + n + n_digits, 48, point - n_digits)
        memcpy(out + n + point, b".0", 2)
        return n + point + 2
    memmove(out + n + point + 1, out + n + point, n_digits - point)
    out[n + point] = 46
    return n + n_digits + 1
