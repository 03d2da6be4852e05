# What the decoder calls for every event and every stat.

cimport cython
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class IdMap:
    cdef int32_t[::1] dense
    cdef int64_t[::1] keys
    cdef int32_t[::1] rows
    cdef int32_t default
    cdef int32_t find(self, int64_t key) noexcept nogil
