# Sizes of numbers.
from libc.stdint cimport uint64_t


cdef inline int bits(uint64_t value) noexcept nogil:
    """Number of binary digits. Branch-free steps, since the size of numbers is hard to predict."""
    cdef int n = 0
    cdef int step
    cdef int half = 32
    while half > 0:
        step = half if value >> half != 0 else 0
        value >>= step
        n += step
        half >>= 1
    return n + <int>value
