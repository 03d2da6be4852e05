# A hint that memory will be read soon: reads far apart come together then, instead of each being waited for.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define tpuprof_prefetch(address) __builtin_prefetch(address)
    #else
    #define tpuprof_prefetch(address) ((void) (address))
    #endif
    """
    void prefetch "tpuprof_prefetch"(const void* address) noexcept nogil
