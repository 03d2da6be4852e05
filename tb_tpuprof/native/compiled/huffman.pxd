# Huffman codes as in deflate (RFC 1951): none longer than a limit, and defined by their lengths alone.

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum:
    MAX_SYMBOLS = 288


cdef inline void code_lengths(const uint32_t* counts, int n, int limit, uint8_t* lengths) noexcept nogil:
    """The length of each symbol's code by its frequency (below 65536), 0 if it does not occur. At least two symbols must occur."""
    cdef uint32_t[MAX_SYMBOLS] symbols
    cdef uint32_t[2 * MAX_SYMBOLS] weight
    cdef int32_t[2 * MAX_SYMBOLS] above  # the parent of each node, later its depth
    cdef int[2 * MAX_SYMBOLS] n_of_length
    cdef int used = by_count(counts, n, symbols)
    cdef int leaf = 0, inner = used, merged, side, node, length, i
    cdef uint64_t code_space = 0
    for i in range(used):
        weight[i] = counts[symbols[i]]
    # Repeatedly merge the two lightest nodes; leaves and merged nodes each come in the order of their weight.
    for merged in range(used, 2 * used - 1):
        weight[merged] = 0
        for side in range(2):
            if leaf < used and (inner >= merged or weight[leaf] <= weight[inner]):
                node = leaf
                leaf += 1
            else:
                node = inner
                inner += 1
            weight[merged] += weight[node]
            above[node] = merged
    for length in range(limit + 1):
        n_of_length[length] = 0
    above[2 * used - 2] = 0
    for node in range(2 * used - 3, -1, -1):
        above[node] = above[above[node]] + 1
        if node < used:
            n_of_length[min(above[node], limit)] += 1
    # Codes truncated to the limit overfill the code space, until shorter ones have been merged longer.
    for length in range(1, limit + 1):
        code_space += <uint64_t>n_of_length[length] << (limit - length)
    while code_space > <uint64_t>1 << limit:
        length = limit - 1
        while n_of_length[length] == 0:
            length -= 1
        n_of_length[length] -= 1
        n_of_length[length + 1] += 2
        n_of_length[limit] -= 1
        code_space -= 1
    for i in range(n):
        lengths[i] = 0
    i = 0
    for length in range(limit, 0, -1):
        for side in range(n_of_length[length]):
            lengths[symbols[i]] = <uint8_t>length
            i += 1


cdef inline int by_count(const uint32_t* counts, int n, uint32_t* symbols) noexcept nogil:
    """Write the symbols that occur, the rarest first; returns their number."""
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
    """Stable sort of symbols by one byte of their count."""
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
    """The codes defined by the lengths (at most 15), with the first bit lowest, as they are written."""
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
