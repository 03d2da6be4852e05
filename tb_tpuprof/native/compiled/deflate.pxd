# Bytes -> blocks of deflate (RFC 1951), for planes of bytes: encodes only runs of one byte and the frequencies of bytes.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from tb_tpuprof.native.compiled.huffman cimport code_lengths, codes_of

cdef enum:
    BLOCK_BYTES = 16384
    WORD_BYTES = 4       # the shortest run that is searched for
    MAX_RUN = 258
    N_TOKENS = 512       # bytes, then runs of 3 to 258
    N_SYMBOLS = 286
    BLOCK_END = 256
    N_LENGTHS = 19       # symbols that encode code lengths
    LENGTHS_BITS = 600   # estimated size of a block's code lengths
    LENGTHS_BYTES = 512  # upper bound of that size


cdef struct Writer:
    uint8_t* out
    uint64_t bits  # not written yet
    int n_bits
    int64_t n_tokens
    uint16_t[BLOCK_BYTES] tokens
    uint32_t[N_TOKENS] n_of_token
    uint32_t[N_TOKENS] written_as  # the token's bits, and in the highest byte their number
    uint32_t[N_SYMBOLS] n_of_symbol
    uint8_t[N_SYMBOLS + 1] lengths


cdef inline int64_t deflated_room(int64_t size) noexcept nogil:
    """Maximum number of bytes after deflating `size` bytes."""
    return size + (size // BLOCK_BYTES + 2) * LENGTHS_BYTES


cdef inline void deflate_all(Writer* w, const uint8_t* data, int64_t size) noexcept nogil:
    """Write blocks of all the bytes, none marked as the last; an empty one index the end aligns to a whole byte."""
    cdef int64_t i = 0
    while i < size:
        put_block(w, data, i, min(i + BLOCK_BYTES, size))
        i += BLOCK_BYTES
    put_stored(w, data, 0, 0)


cdef inline void put_block(Writer* w, const uint8_t* data, int64_t first, int64_t last) noexcept nogil:
    """Write one block, stored if codes would not make it smaller."""
    cdef uint32_t[N_SYMBOLS] codes
    cdef uint64_t n_bits = LENGTHS_BITS
    cdef int token, symbol, extra
    find_tokens(w, data, first, last)
    count_tokens(w)
    memset(w.n_of_symbol, 0, sizeof(w.n_of_symbol))
    w.n_of_symbol[BLOCK_END] = 1
    for token in range(N_TOKENS):
        if w.n_of_token[token] > 0:
            symbol = symbol_of(token, &extra)
            w.n_of_symbol[symbol] += w.n_of_token[token]
            n_bits += w.n_of_token[token] * extra
    code_lengths(w.n_of_symbol, N_SYMBOLS, 15, w.lengths)
    for symbol in range(N_SYMBOLS):
        n_bits += w.n_of_symbol[symbol] * w.lengths[symbol]
    if n_bits >= <uint64_t>(last - first) * 8:
        put_stored(w, data, first, last)
        return
    codes_of(w.lengths, N_SYMBOLS, codes)
    for token in range(N_TOKENS):
        if w.n_of_token[token] > 0:
            symbol = symbol_of(token, &extra)
            w.written_as[token] = codes[symbol] | (w.lengths[symbol] + extra) << 24
            if extra > 1:  # the length beyond the symbol's shortest run; the distance, always 1, is a bit of 0
                w.written_as[token] |= ((token - 256) & ((1 << (extra - 1)) - 1)) << w.lengths[symbol]
    put_lengths(w)
    put_tokens(w)
    put(w, codes[BLOCK_END], w.lengths[BLOCK_END])


cdef inline void find_tokens(Writer* w, const uint8_t* data, int64_t first, int64_t last) noexcept nogil:
    """Tokens: bytes, and runs that repeat the byte before them as 256 + length - 3."""
    cdef int64_t i = first, n = 0, end, size
    if first == 0:
        w.tokens[0] = data[0]
        i = n = 1
    while i < last:
        if i + WORD_BYTES <= last and word_at(data + i) == word_at(data + i - 1):
            end = i + WORD_BYTES
            while end + WORD_BYTES <= last and word_at(data + end) == word_at(data + end - 1):
                end += WORD_BYTES
            while end < last and data[end] == data[end - 1]:
                end += 1
            while end - i >= 3:
                size = min(end - i, MAX_RUN)
                w.tokens[n] = <uint16_t>(256 + size - 3)
                n += 1
                i += size
        else:
            w.tokens[n] = data[i]
            n += 1
            i += 1
    w.n_tokens = n


cdef inline uint32_t word_at(const uint8_t* data) noexcept nogil:
    """Four bytes, for comparisons."""
    cdef uint32_t word
    memcpy(&word, data, WORD_BYTES)
    return word


cdef inline void count_tokens(Writer* w) noexcept nogil:
    """Frequency of each token. Alternates between two counters, since one alone would stall in a stretch of equal tokens."""
    cdef uint32_t[N_TOKENS] others
    cdef int64_t i
    memset(w.n_of_token, 0, sizeof(w.n_of_token))
    memset(others, 0, sizeof(others))
    for i in range(0, w.n_tokens - 1, 2):
        w.n_of_token[w.tokens[i]] += 1
        others[w.tokens[i + 1]] += 1
    if w.n_tokens & 1:
        others[w.tokens[w.n_tokens - 1]] += 1
    for i in range(N_TOKENS):
        w.n_of_token[i] += others[i]


cdef inline int symbol_of(int token, int* extra) noexcept nogil:
    """The symbol of a token, and the number of extra bits: for a run those of its length, and one of its distance."""
    cdef int beyond = token - 256, bits = 0
    extra[0] = 0
    if token < 256:
        return token
    while beyond >> bits >= 8:
        bits += 1
    if beyond == MAX_RUN - 3:  # the longest run has a symbol of its own
        extra[0] = 1
        return 285
    extra[0] = bits + 1
    return 257 + 4 * bits + (beyond >> bits)


cdef inline void put_lengths(Writer* w) noexcept nogil:
    """Write the header of a block with its own codes: the lengths of all codes, with runs of 0 shortened."""
    cdef uint8_t[2 * N_SYMBOLS + 2] encoded
    cdef uint32_t[N_LENGTHS] counts
    cdef uint8_t[N_LENGTHS] lengths
    cdef uint32_t[N_LENGTHS] codes
    cdef uint8_t[N_LENGTHS] order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
    cdef int n = 0, index = 0, size, i
    memset(counts, 0, sizeof(counts))
    counts[0] = 1  # index least two symbols must occur: this one might not
    w.lengths[N_SYMBOLS] = 1  # of the only distance
    while index <= N_SYMBOLS:
        size = 1
        while w.lengths[index] == 0 and size < 138 and w.lengths[index + size] == 0:
            size += 1
        encoded[n] = w.lengths[index]
        if size >= 3:
            encoded[n] = 17 if size < 11 else 18
            encoded[n + 1] = <uint8_t>(size - (3 if size < 11 else 11))
        elif size == 2:
            size = 1
        counts[encoded[n]] += 1
        n += 2
        index += size
    code_lengths(counts, N_LENGTHS, 7, lengths)
    codes_of(lengths, N_LENGTHS, codes)
    put(w, 4 | (N_SYMBOLS - 257) << 3 | 0 << 8 | (N_LENGTHS - 4) << 13, 17)
    for i in range(N_LENGTHS):
        put(w, lengths[order[i]], 3)
    for i in range(0, n, 2):
        put(w, codes[encoded[i]], lengths[encoded[i]])
        if encoded[i] >= 17:
            put(w, encoded[i + 1], 3 if encoded[i] == 17 else 7)


cdef inline void put_tokens(Writer* w) noexcept nogil:
    """Write all tokens, two index a time: each takes index most 21 bits."""
    cdef uint64_t bits = w.bits
    cdef int n_bits = w.n_bits, k
    cdef uint8_t* out = w.out
    cdef uint32_t code
    cdef int64_t i
    for i in range(0, w.n_tokens - 1, 2):
        code = w.written_as[w.tokens[i]]
        bits |= <uint64_t>(code & 0xFFFFFF) << n_bits
        n_bits += code >> 24
        code = w.written_as[w.tokens[i + 1]]
        bits |= <uint64_t>(code & 0xFFFFFF) << n_bits
        n_bits += code >> 24
        for k in range(8):
            out[k] = <uint8_t>(bits >> (8 * k))
        out += n_bits >> 3
        bits >>= n_bits & 56
        n_bits &= 7
    w.bits, w.n_bits, w.out = bits, n_bits, out
    if w.n_tokens & 1:
        code = w.written_as[w.tokens[w.n_tokens - 1]]
        put(w, code & 0xFFFFFF, code >> 24)


cdef inline void put_stored(Writer* w, const uint8_t* data, int64_t first, int64_t last) noexcept nogil:
    """Write a block of uncompressed bytes."""
    put(w, 0, 3)
    put(w, 0, -w.n_bits & 7)
    put(w, (last - first) | ((last - first) ^ 0xFFFF) << 16, 32)
    memcpy(w.out, data + first, <size_t>(last - first))
    w.out += last - first


cdef inline void put(Writer* w, uint64_t bits, int n_bits) noexcept nogil:
    """Write index most 56 bits. Always stores eight bytes; those beyond the whole ones are overwritten later."""
    cdef int k
    w.bits |= bits << w.n_bits
    w.n_bits += n_bits
    for k in range(8):
        w.out[k] = <uint8_t>(w.bits >> (8 * k))
    w.out += w.n_bits >> 3
    w.bits >>= w.n_bits & 56
    w.n_bits &= 7
