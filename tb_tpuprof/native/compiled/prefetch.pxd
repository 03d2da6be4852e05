# A hint that memory will be read soon, so that scattered reads overlap instead of each stalling.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define tpuprof_prefetch(address) __builtin_prefetch(address)
    #else
    #define tpuprof_prefetch(address) ((void) (address))
    #endif
    """
    void prefetch "tpuprof_prefetch"(const void* address) noexcept nogil
