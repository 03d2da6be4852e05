# Validation of strict JSON, which may be copied from one file into another. Stays within [pos, end) for any bytes.

from libc.stdint cimport int64_t, uint8_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline int64_t tpuprof_json_space(const uint8_t* p, int64_t pos, int64_t end) {
        while (pos < end && (p[pos] == ' ' || p[pos] == '\\n' || p[pos] == '\\r' || p[pos] == '\\t')) pos++;
        return pos;
    }

    /* Whether p[pos:end] is one value of strict JSON in UTF-8, no deeper than TPUPROF_DEEPEST; the position after it, or -1. */
    #define TPUPROF_DEEPEST 64

    static inline int64_t tpuprof_valid_string(const uint8_t* p, int64_t pos, int64_t end) {
        while (pos < end) {
            uint8_t c = p[pos];
            if (c == '"') return pos + 1;
            if (c < 0x20) return -1;
            if (c == '\\\\') {
                if (pos + 1 >= end) return -1;
                c = p[pos + 1];
                if (c == 'u') {
                    if (pos + 6 > end) return -1;
                    for (int i = 2; i < 6; i++) {
                        uint8_t h = p[pos + i];
                        if (!((h >= '0' && h <= '9') || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F'))) return -1;
                    }
                    pos += 6;
                } else if (c == '"' || c == '\\\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't') {
                    pos += 2;
                } else {
                    return -1;
                }
            } else if (c < 0x80) {
                pos++;
            } else {
                int n = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
                uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
                if (c < 0xC2 || c > 0xF4 || pos + n >= end) return -1;
                if (p[pos + 1] < low || p[pos + 1] > high) return -1;
                for (int i = 2; i <= n; i++) if (p[pos + i] < 0x80 || p[pos + i] > 0xBF) return -1;
                pos += n + 1;
            }
        }
        return -1;
    }

    static inline int64_t tpuprof_digits(const uint8_t* p, int64_t pos, int64_t end) {
        int64_t start = pos;
        while (pos < end && p[pos] >= '0' && p[pos] <= '9') pos++;
        return pos > start ? pos : -1;
    }

    static inline int64_t tpuprof_valid_scalar(const uint8_t* p, int64_t pos, int64_t end) {
        if (p[pos] == '"') return tpuprof_valid_string(p, pos + 1, end);
        if (end - pos >= 4 && (!memcmp(p + pos, "true", 4) || !memcmp(p + pos, "null", 4))) return pos + 4;
        if (end - pos >= 5 && !memcmp(p + pos, "false", 5)) return pos + 5;
        if (p[pos] == '-') pos++;
        if (pos < end && p[pos] == '0') pos++;
        else pos = tpuprof_digits(p, pos, end);
        if (pos > 0 && pos < end && p[pos] == '.') pos = tpuprof_digits(p, pos + 1, end);
        if (pos > 0 && pos < end && (p[pos] == 'e' || p[pos] == 'E')) {
            pos++;
            if (pos < end && (p[pos] == '+' || p[pos] == '-')) pos++;
            pos = tpuprof_digits(p, pos, end);
        }
        return pos;
    }

    static int64_t tpuprof_valid(const uint8_t* p, int64_t pos, int64_t end, int depth) {
        uint8_t close;
        int is_first = 1;
        if (pos >= end) return -1;
        if (p[pos] != '{' && p[pos] != '[') return tpuprof_valid_scalar(p, pos, end);
        if (depth >= TPUPROF_DEEPEST) return -1;
        close = p[pos] + 2;
        for (pos++;; is_first = 0) {
            pos = tpuprof_json_space(p, pos, end);
            if (pos < end && p[pos] == close && is_first) return pos + 1;
            if (!is_first) {
                if (pos < end && p[pos] == close) return pos + 1;
                if (pos >= end || p[pos] != ',') return -1;
                pos = tpuprof_json_space(p, pos + 1, end);
            }
            if (close == '}') {
                if (pos >= end || p[pos] != '"') return -1;
                pos = tpuprof_valid_string(p, pos + 1, end);
                if (pos < 0) return -1;
                pos = tpuprof_json_space(p, pos, end);
                if (pos >= end || p[pos] != ':') return -1;
                pos = tpuprof_json_space(p, pos + 1, end);
            }
            pos = tpuprof_valid(p, pos, end, depth + 1);
            if (pos < 0) return -1;
        }
    }

    static inline int tpuprof_is_valid(const uint8_t* p, int64_t pos, int64_t end) { return tpuprof_valid(p, pos, end, 0) == end; }
    """
    int is_valid "tpuprof_is_valid" (const uint8_t* p, int64_t pos, int64_t end) noexcept nogil
