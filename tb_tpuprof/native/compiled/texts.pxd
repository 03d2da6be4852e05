# Declarations of texts.py for json_events.py.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef struct Text:
    const uint8_t* p
    int64_t size
    uint64_t hash


cdef class Texts:
    cdef Text* texts
    cdef int32_t* slots
    cdef int64_t n
    cdef int64_t n_slots
    cdef uint64_t seed

    cdef int32_t add(self, const uint8_t* p, int64_t size) noexcept nogil
    cdef bint grow(self) noexcept nogil
