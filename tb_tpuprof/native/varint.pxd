# The two primitives of the protobuf wire format, inlined into each reader. Both stay within [pos, end) whatever the bytes are.

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef inline int64_t varint(const uint8_t* p, int64_t pos, int64_t end, uint64_t* out) noexcept nogil:
    """Position behind the varint at `pos`, or -1 where it runs past `end` or past ten bytes."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    if pos < end and p[pos] < 0x80:
        out[0] = p[pos]
        return pos + 1
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


cdef inline int64_t skip(const uint8_t* p, int64_t pos, int64_t end, int wire) noexcept nogil:
    """Position behind a field's value, or -1. Groups (wire types 3 and 4) are refused: XSpace has none."""
    cdef uint64_t size = 0
    if wire == 0:
        return varint(p, pos, end, &size)
    if wire == 2:
        pos = varint(p, pos, end, &size)
        if pos < 0 or size > <uint64_t>(end - pos):
            return -1
        return pos + <int64_t>size
    if wire == 1:
        return pos + 8 if end - pos >= 8 else -1
    if wire == 5:
        return pos + 4 if end - pos >= 4 else -1
    return -1


cdef struct Field:
    int64_t number
    int wire
    int64_t value   # the number (wire type 0), else the position of the bytes
    int64_t size    # of the bytes


cdef inline int64_t read_field(const uint8_t* p, int64_t pos, int64_t end, Field* out) noexcept nogil:
    """Read one field at `pos`; position behind it, or -1 where it is malformed."""
    cdef uint64_t tag = 0
    cdef uint64_t value = 0
    pos = varint(p, pos, end, &tag)
    if pos < 0 or tag >> 3 == 0 or tag >> 3 > 0x1FFFFFFF:
        return -1
    out.number = <int64_t>(tag >> 3)
    out.wire = <int>(tag & 7)
    if out.wire == 0:
        out.size = 0
        pos = varint(p, pos, end, &value)
        out.value = <int64_t>value
        return pos
    if out.wire == 2:
        pos = varint(p, pos, end, &value)
        if pos < 0 or value > <uint64_t>(end - pos):
            return -1
        out.value = pos
        out.size = <int64_t>value
        return pos + out.size
    out.value = pos
    pos = skip(p, pos, end, out.wire)
    out.size = pos - out.value
    return pos
