# The primitives of JSON, inlined into the scanner. They stay within [pos, limit) for any bytes; -1 means cut off or damaged.

from libc.stdint cimport int64_t, int32_t, uint8_t, uint64_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #define TPUPROF_MICRO 1000000LL
    #define TPUPROF_FAR 4000000000000000000LL

    static inline int64_t tpuprof_space(const uint8_t* p, int64_t pos, int64_t limit) {
        while (pos < limit && (p[pos] == ' ' || p[pos] == '\\n' || p[pos] == '\\r' || p[pos] == '\\t')) pos++;
        return pos;
    }

    static inline int64_t tpuprof_space_or_comma(const uint8_t* p, int64_t pos, int64_t limit) {
        while (pos < limit && (p[pos] == ' ' || p[pos] == ',' || p[pos] == '\\n' || p[pos] == '\\r' || p[pos] == '\\t')) pos++;
        return pos;
    }

    /* Position of the quote that ends the string whose first character is at pos. */
    static inline int64_t tpuprof_string_end(const uint8_t* p, int64_t pos, int64_t limit) {
        int64_t start = pos, back;
        while (pos < limit) {
            const uint8_t* q = (const uint8_t*) memchr(p + pos, '"', (size_t) (limit - pos));
            if (!q) return -1;
            pos = q - p;
            back = pos;
            while (back > start && p[back - 1] == '\\\\') back--;
            if (((pos - back) & 1) == 0) return pos;
            pos++;
        }
        return -1;
    }

    /* Position after any value. Counts brackets without recursion, so a value may be arbitrarily deep. */
    static inline int64_t tpuprof_skip(const uint8_t* p, int64_t pos, int64_t limit) {
        int64_t depth = 0;
        while (pos < limit) {
            uint8_t c = p[pos];
            if (c == '"') {
                pos = tpuprof_string_end(p, pos + 1, limit);
                if (pos < 0) return -1;
                pos++;
                if (!depth) return pos;
            } else if (c == '{' || c == '[') {
                depth++;
                pos++;
            } else if (c == '}' || c == ']') {
                if (!depth) return -1;
                pos++;
                if (!--depth) return pos;
            } else if (depth) {
                pos++;
            } else {
                int64_t start = pos;
                while (pos < limit && c != ',' && c != '}' && c != ']' && c != ' ' && c != '\\n' && c != '\\r' && c != '\\t') {
                    if (c == '"' || c == '{' || c == '[' || c == ':') return -1;
                    if (++pos < limit) c = p[pos];
                }
                return pos > start ? pos : -1;
            }
        }
        return -1;
    }

    /* The text of a value: a string without its quotes, or a number as written. */
    static inline void tpuprof_bare(const uint8_t* p, int64_t* pos, int64_t* end) {
        if (*end - *pos >= 2 && p[*pos] == '"') { (*pos)++; (*end)--; }
    }

    static inline int tpuprof_slow_number(const uint8_t* p, int64_t size, double* out) {
        char text[64];
        char* stop;
        if (size <= 0 || size > 63) return 0;
        for (int64_t i = 0; i < size; i++) {
            uint8_t c = p[i];
            if (!((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E')) return 0;
        }
        memcpy(text, p, (size_t) size);
        text[size] = 0;
        *out = strtod(text, &stop);
        return stop == text + size && *out == *out && *out < 1e300 && *out > -1e300;
    }

    /* Microseconds as decimal text -> whole microseconds (rounded down) and the rest in ps; 0 if it is not a number. */
    static inline int tpuprof_time(const uint8_t* p, int64_t size, int64_t* us, int32_t* ps) {
        int64_t i = 0, whole = 0, part = 0, scale = TPUPROF_MICRO;
        int negative = 0, n = 0;
        if (size > 0 && p[0] == '-') { negative = 1; i = 1; }
        for (; i < size && p[i] >= '0' && p[i] <= '9'; i++, n++)
            whole = whole > TPUPROF_FAR / 10 ? TPUPROF_FAR : whole * 10 + (p[i] - '0');
        if (!n) return 0;
        if (i < size && p[i] == '.') {
            for (i++; i < size && p[i] >= '0' && p[i] <= '9'; i++) {
                if (scale > 1) { scale /= 10; part += (p[i] - '0') * scale; }
                else if (scale == 1) { part += p[i] >= '5'; scale = 0; }
            }
        }
        if (i < size) {
            double value, rest;
            if (!tpuprof_slow_number(p, size, &value)) return 0;
            if (value > 4e18) value = 4e18;
            if (value < -4e18) value = -4e18;
            whole = (int64_t) value;
            if ((double) whole > value) whole--;
            rest = (value - (double) whole) * 1e6 + 0.5;
            part = (int64_t) rest;
            negative = 0;
        }
        if (whole > TPUPROF_FAR) whole = TPUPROF_FAR;
        if (negative) { whole = -whole; part = -part; }
        if (part < 0) { part += TPUPROF_MICRO; whole--; }
        if (part >= TPUPROF_MICRO) { part -= TPUPROF_MICRO; whole++; }
        *us = whole;
        *ps = (int32_t) part;
        return 1;
    }

    /* An integer that fits int64 (kind 4) or uint64 (kind 3, its bits), else a double (kind 2, its bits); 0 if it is not a number. */
    static inline int tpuprof_number(const uint8_t* p, int64_t size, int64_t* out) {
        int64_t i = 0;
        uint64_t whole = 0;
        int negative = size > 0 && p[0] == '-', fits = 1;
        double value;
        for (i = negative; i < size && p[i] >= '0' && p[i] <= '9'; i++) {
            uint64_t digit = (uint64_t) (p[i] - '0');
            if (whole > (UINT64_MAX - digit) / 10) fits = 0;
            whole = whole * 10 + digit;
        }
        if (i == size && i > negative && fits) {
            if (negative && whole <= (uint64_t) INT64_MAX) { *out = -(int64_t) whole; return 4; }
            if (!negative && whole <= (uint64_t) INT64_MAX) { *out = (int64_t) whole; return 4; }
            if (!negative) { memcpy(out, &whole, 8); return 3; }
        }
        if (!tpuprof_slow_number(p, size, &value)) return 0;
        memcpy(out, &value, 8);
        return 2;
    }

    /* Multiply and mix eight bytes at a time. The seed differs between processes, so that no file can provoke collisions. */
    static inline uint64_t tpuprof_hash(const uint8_t* p, int64_t size, uint64_t seed) {
        const uint64_t prime = 0xFF51AFD7ED558CCDULL;
        uint64_t x = seed ^ ((uint64_t) size * prime), word;
        int64_t i = 0;
        for (; i + 8 <= size; i += 8) { memcpy(&word, p + i, 8); x = (x ^ word) * prime; x ^= x >> 32; }
        for (; i < size; i++) { x = (x ^ p[i]) * prime; x ^= x >> 32; }
        return x;
    }
    """
    int64_t space "tpuprof_space" (const uint8_t* p, int64_t pos, int64_t limit) noexcept nogil
    int64_t space_or_comma "tpuprof_space_or_comma" (const uint8_t* p, int64_t pos, int64_t limit) noexcept nogil
    int64_t string_end "tpuprof_string_end" (const uint8_t* p, int64_t pos, int64_t limit) noexcept nogil
    int64_t skip "tpuprof_skip" (const uint8_t* p, int64_t pos, int64_t limit) noexcept nogil
    void bare "tpuprof_bare" (const uint8_t* p, int64_t* pos, int64_t* end) noexcept nogil
    int read_time "tpuprof_time" (const uint8_t* p, int64_t size, int64_t* us, int32_t* ps) noexcept nogil
    int read_number "tpuprof_number" (const uint8_t* p, int64_t size, int64_t* out) noexcept nogil
    uint64_t hash_bytes "tpuprof_hash" (const uint8_t* p, int64_t size, uint64_t seed) noexcept nogil
