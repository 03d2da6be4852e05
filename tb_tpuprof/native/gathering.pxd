# What the decoder calls for every event and every stat.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t


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


# The stats of one key: the chunk that is being filled, how many it holds and has room for. As long as all are of one kind and their
# owners follow one another from `first` on, the chunk holds values alone; where that ends it becomes rows, and `kind` is 0.
cdef struct Slot:
    void* memory
    int64_t n
    int64_t room
    int64_t first
    int kind


cdef struct Span:
    int64_t start
    int64_t size


@cython.final
cdef class Gathered:
    cdef Slot* slots
    cdef dict chunks
    cdef object page
    cdef int32_t* added
    cdef int64_t n_added
    cdef int64_t added_room
    cdef Span* spans
    cdef int64_t n_spans
    cdef int64_t spans_room
    cdef uint8_t* texts
    cdef int64_t n_text_bytes
    cdef int64_t texts_room
    cdef int append(self, int32_t key, int64_t owner, int kind, int64_t value) noexcept nogil
    cdef void take_back(self) noexcept nogil
    cdef int64_t add_span(self, int64_t start, int64_t size) noexcept nogil
    cdef int64_t add_text(self, const uint8_t* text, int64_t size) noexcept nogil
    cdef void spread(self, Slot* slot) noexcept nogil
    cdef bint grow_added(self) noexcept nogil
    cdef bint add_chunk(self, int32_t key)
    cdef shorten(self, int32_t key)
