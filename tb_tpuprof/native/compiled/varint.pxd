# The primitives of the protobuf wire format, inlined into each reader. They stay within [pos, limit) for any bytes.

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Reads up to eight bytes of a varint at once: finds its last byte and packs its seven-bit groups. Returns its length,
       0 if it is longer (or the machine is not little-endian): the plain loop reads those. */
    static inline int tpuprof_varint8(const uint8_t* p, uint64_t* out) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t x, stop;
        int n;
        memcpy(&x, p, 8);
        stop = ~x & 0x8080808080808080ULL;
        if (!stop) return 0;
        n = __builtin_ctzll(stop) >> 3;
        x &= (stop ^ (stop - 1));
        x &= 0x7f7f7f7f7f7f7f7fULL;
        x = (x & 0x007f007f007f007fULL) | ((x & 0x7f007f007f007f00ULL) >> 1);
        x = (x & 0x00003fff00003fffULL) | ((x & 0x3fff00003fff0000ULL) >> 2);
        x = (x & 0x000000000fffffffULL) | ((x & 0x0fffffff00000000ULL) >> 4);
        *out = x;
        return n + 1;
    #else
        return 0;
    #endif
    }
    """
    int tpuprof_varint8(const uint8_t* p, uint64_t* out) noexcept nogil


cdef inline int short_varint(const uint8_t* p, uint64_t* out) noexcept nogil:
    """Length of the varint at `p`, 0 if it is longer than eight bytes. May read eight bytes."""
    if p[0] < 0x80:
        out[0] = p[0]
        return 1
    return tpuprof_varint8(p, out)


cdef inline int64_t varint(const uint8_t* p, int64_t pos, int64_t end, int64_t limit, uint64_t* out) noexcept nogil:
    """Position after the varint at `pos`, or -1 if it exceeds `end` or ten bytes. May read bytes up to `limit`."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef int n
    cdef uint8_t byte
    if pos < end and p[pos] < 0x80:
        out[0] = p[pos]
        return pos + 1
    if limit - pos >= 8:
        n = tpuprof_varint8(p + pos, out)
        if n > 0:
            return pos + n if n <= end - pos else -1
    while pos < end and shift < 70:
        byte = p[pos]
        pos += 1
        if shift < 64:
            value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = value
            return pos
        shift += 7
    return -1


cdef struct Field:
    int64_t number
    int wire
    int64_t value   # the number (wire type 0), else the position of the bytes
    int64_t size    # of the bytes


cdef inline int64_t read_field(const uint8_t* p, int64_t pos, int64_t end, int64_t limit, Field* out) noexcept nogil:
    """Read one field at `pos`; returns the position after it, or -1 if it is malformed. Groups (wire types 3 and 4), which XSpace
    does not have, count as malformed."""
    cdef uint64_t tag = 0
    cdef uint64_t value = 0
    pos = varint(p, pos, end, limit, &tag)
    if pos < 0 or tag >> 3 == 0 or tag >> 3 > 0x1FFFFFFF:
        return -1
    out.number = <int64_t>(tag >> 3)
    out.wire = <int>(tag & 7)
    out.size = 0
    if out.wire == 0:
        pos = varint(p, pos, end, limit, &value)
        out.value = <int64_t>value
        return pos
    if out.wire == 2:
        pos = varint(p, pos, end, limit, &value)
        if pos < 0 or value > <uint64_t>(end - pos):
            return -1
        out.size = <int64_t>value
    elif out.wire == 1:
        out.size = 8
    elif out.wire == 5:
        out.size = 4
    else:
        return -1
    out.value = pos
    return pos + out.size if out.size <= end - pos else -1
