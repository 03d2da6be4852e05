# Hash maps and append buffers that the decoder uses for every event and every stat.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


@cython.final
cdef class IdMap:
    cdef int32_t[::1] dense
    cdef int64_t[::1] keys
    cdef int32_t[::1] rows
    cdef int32_t default
    cdef int32_t find(self, int64_t key) noexcept nogil


cdef struct StatRow:
    int64_t value
    int32_t owner
    int32_t kind


# The stats of one key: the chunk being filled, the number of its stats and its capacity. While all stats are of one kind and their
# owners are consecutive from `first` on, the chunk has only values; after that it is converted to rows, and `kind` is 0.
#
# Events of one type have the same stats in the same order, so a slot remembers how a stat of its key starts, and which key followed it:
# a stat that starts with `start` under `mask` has this key and the kind `expected_kind`, and its number is `head` bytes after its start.
cdef struct Slot:
    void* memory
    int64_t n
    int64_t capacity
    int64_t first
    int kind
    int expected_kind
    uint64_t start
    uint64_t mask
    int64_t head
    Slot* next


cdef struct Span:
    int64_t start
    int64_t size


@cython.final
cdef class Gathered:
    cdef Slot* slots
    cdef dict chunks
    cdef object page
    cdef Span* spans
    cdef int64_t n_spans
    cdef int64_t spans_capacity
    cdef uint8_t* texts
    cdef int64_t n_text_bytes
    cdef int64_t texts_capacity
    cdef int append(self, int32_t key, int64_t owner, int kind, int64_t value) noexcept nogil
    cdef void remove_last(self, int32_t key, int64_t owner) noexcept nogil
    cdef int64_t add_span(self, int64_t start, int64_t size) noexcept nogil
    cdef int64_t add_text(self, const uint8_t* text, int64_t size) noexcept nogil
    cdef void spread(self, Slot* slot) noexcept nogil
    cdef bint add_chunk(self, int32_t key)
    cdef shorten(self, int32_t key, int64_t owner)
