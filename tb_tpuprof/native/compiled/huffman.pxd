# Huffman codes as deflate (RFC 1951) has them: none longer than a limit, and told by their lengths alone.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum:
    MAX_SYMBOLS = 288


cdef inline void code_lengths(const uint32_t* counts, int n, int limit, uint8_t* lengths) noexcept nogil:
    """The length of each symbol's code by how often it occurs (below 65536 times), 0 where it does not. At least two must occur."""
    cdef uint32_t[MAX_SYMBOLS] symbols
    cdef uint32_t[2 * MAX_SYMBOLS] weight
    cdef int32_t[2 * MAX_SYMBOLS] above  # the node that a node is part of, later its depth
    cdef int[2 * MAX_SYMBOLS] n_of_length
    cdef int used = by_count(counts, n, symbols)
    cdef int leaf = 0, inner = used, made, side, node, length, i
    cdef uint64_t room = 0
    for i in range(used):
        weight[i] = counts[symbols[i]]
    # The two lightest become one, again and again; leaves, and the nodes made of them, each come in the order of their weight.
    for made in range(used, 2 * used - 1):
        weight[made] = 0
        for side in range(2):
            if leaf < used and (inner >= made or weight[leaf] <= weight[inner]):
                node = leaf
                leaf += 1
            else:
                node = inner
                inner += 1
            weight[made] += weight[node]
            above[node] = made
    for length in range(limit + 1):
        n_of_length[length] = 0
    above[2 * used - 2] = 0
    for node in range(2 * used - 3, -1, -1):
        above[node] = above[above[node]] + 1
        if node < used:
            n_of_length[min(above[node], limit)] += 1
    # Codes cut to the limit take more room than there is, until shorter ones have been made longer.
    for length in range(1, limit + 1):
        room += <uint64_t>n_of_length[length] << (limit - length)
    while room > <uint64_t>1 << limit:
        length = limit - 1
        while n_of_length[length] == 0:
            length -= 1
        n_of_length[length] -= 1
        n_of_length[length + 1] += 2
        n_of_length[limit] -= 1
        room -= 1
    for i in range(n):
        lengths[i] = 0
    i = 0
    for length in range(limit, 0, -1):
        for side in range(n_of_length[length]):
            lengths[symbols[i]] = <uint8_t>length
            i += 1


cdef inline int by_count(const uint32_t* counts, int n, uint32_t* symbols) noexcept nogil:
    """The symbols that occur, the rarest first; their number."""
    cdef uint32_t[MAX_SYMBOLS] other
    cdef int used = 0, i
    for i in range(n):
        if counts[i] > 0:
            other[used] = i
            used += 1
    by_byte(counts, 0, other, used, symbols)
    by_byte(counts, 8, symbols, used, other)
    for i in range(used):
        symbols[i] = other[i]
    return used


cdef inline void by_byte(const uint32_t* counts, int shift, const uint32_t* symbols, int n, uint32_t* ordered) noexcept nogil:
    """Symbols by one byte of their count; those of equal ones stay as they stand."""
    cdef uint32_t[257] following
    cdef uint32_t byte
    cdef int i
    for i in range(257):
        following[i] = 0
    for i in range(n):
        following[((counts[symbols[i]] >> shift) & 255) + 1] += 1
    for i in range(256):
        following[i + 1] += following[i]
    for i in range(n):
        byte = (counts[symbols[i]] >> shift) & 255
        ordered[following[byte]] = symbols[i]
        following[byte] += 1


cdef inline void codes_of(const uint8_t* lengths, int n, uint32_t* codes) noexcept nogil:
    """The codes that the lengths (at most 15) stand for, with their first bit lowest: so they are written."""
    cdef uint32_t[17] following
    cdef uint32_t code = 0
    cdef int i, bit
    for i in range(17):
        following[i] = 0
    for i in range(n):
        if lengths[i] > 0:
            following[lengths[i] + 1] += 1
    for i in range(1, 17):
        code = (code + following[i]) << 1
        following[i] = code
    for i in range(n):
        code = following[lengths[i]]
        following[lengths[i]] += 1
        codes[i] = 0
        for bit in range(lengths[i]):
            codes[i] = (codes[i] << 1) | ((code >> bit) & 1)
