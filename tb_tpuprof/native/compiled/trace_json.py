# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of events → Chrome trace JSON; and the spans of an event's arguments in a file's own JSON. Compiled;
the twin is `plain/trace_json.py`.
"""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint64_t
from cython.cimports.libc.stdio import snprintf
from cython.cimports.libc.stdlib import free, realloc, strtod
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.tb_tpuprof.native.compiled.json_lex import skip, space, space_or_comma, string_end
from cython.cimports.tb_tpuprof.native.compiled.json_valid import is_valid

ROW_BYTES = cython.declare(int64_t, 512)  # of a row without its texts


def members(data: cython.const[uint8_t][::1], positions: cython.const[int64_t][::1], max_bytes: int64_t):
    """Spans of arguments and categories; see `plain.trace_json.members`."""
    n: int64_t = positions.shape[0]
    spans = np.zeros((n, 4), np.int64)
    if n == 0 or data.shape[0] == 0:
        return spans
    out: int64_t[:, ::1] = spans
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    limit: int64_t = data.shape[0]
    i: int64_t
    with cython.nogil:
        for i in range(n):
            if 0 <= positions[i] < limit and p[positions[i]] == 123:
                _members(p, positions[i] + 1, limit, max_bytes, cython.address(out[i, 0]))
    return spans


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _members(
    p: cython.pointer(cython.const[uint8_t]),
    pos: int64_t,
    limit: int64_t,
    max_bytes: int64_t,
    out: cython.pointer(int64_t),
) -> cython.void:
    key: int64_t
    size: int64_t
    start: int64_t
    while True:
        pos = space_or_comma(p, pos, limit)
        if pos >= limit or p[pos] != 34:
            return
        key = pos + 1
        pos = string_end(p, key, limit)
        if pos < 0:
            return
        size = pos - key
        pos = space(p, pos + 1, limit)
        if pos >= limit or p[pos] != 58:
            return
        start = space(p, pos + 1, limit)
        pos = skip(p, start, limit)
        if pos < 0:
            return
        if size == 4 and p[start] == 123 and memcmp(p + key, b"args", 4) == 0:
            if pos - start > max_bytes or not is_valid(p, start, pos):
                out[0] = out[1] = -1
                continue
            out[0] = space(p, start + 1, pos - 1)
            out[1] = pos - 1
        elif (
            size == 3
            and p[start] == 34
            and memcmp(p + key, b"cat", 3) == 0
            and pos - start <= max_bytes
            and is_valid(p, start, pos)
        ):
            out[2] = start
            out[3] = pos


@cython.final
@cython.cclass
class EventWriter:
    """Writes events as lines of JSON; see `plain.trace_json.EventWriter`."""

    phase: cython.const[uint8_t][::1]
    pid: cython.const[int32_t][::1]
    tid: cython.const[int64_t][::1]
    time: cython.const[int64_t][::1]
    duration: cython.const[int64_t][::1]
    id: cython.const[int64_t][::1]
    name: cython.const[int32_t][::1]
    cat: cython.const[int32_t][::1]
    common: cython.const[int32_t][::1]
    first_stat: cython.const[int64_t][::1]
    key: cython.const[int32_t][::1]
    kind: cython.const[uint8_t][::1]
    value: cython.const[int64_t][::1]
    blob: cython.const[uint8_t][::1]
    offsets: cython.const[int64_t][::1]
    data: cython.const[uint8_t][::1]
    spans: cython.const[int64_t][:, ::1]
    out: cython.pointer(uint8_t)
    size: int64_t
    capacity: int64_t
    is_full: cython.bint

    def __cinit__(self, rows, stats, texts, data, spans):
        (
            self.phase,
            self.pid,
            self.tid,
            self.time,
            self.duration,
            self.id,
            self.name,
            self.cat,
            self.common,
        ) = rows
        self.first_stat, self.key, self.kind, self.value = stats
        self.blob, self.offsets = texts
        self.data = data
        self.spans = spans
        self.out = cython.NULL
        self.size = self.capacity = 0
        self.is_full = False

    def __dealloc__(self):
        free(self.out)

    def lines(self, first: int64_t, last: int64_t):
        """The rows from `first` to before `last`, as bytes."""
        i: int64_t
        self.size = 0
        self.is_full = False
        with cython.nogil:
            for i in range(max(first, 0), min(last, self.phase.shape[0])):
                self.put_row(i)
                if self.is_full:
                    break
        if self.is_full:
            raise MemoryError
        return (
            PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.out), self.size) if self.size else b""
        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_row(self, i: int64_t) -> cython.void:
        phase: uint8_t = self.phase[i]
        self.put(b',\n{"ph":"', 9)
        self.put(cython.cast(cython.p_char, cython.address(phase)), 1)
        self.put(b'","pid":', 8)
        self.put_int(self.pid[i])
        self.put(b',"tid":', 7)
        self.put_int(self.tid[i])
        self.put(b',"ts":', 6)
        self.put_us(self.time[i])
        if self.duration[i] >= 0:
            self.put(b',"dur":', 7)
            self.put_us(self.duration[i])
        if self.id[i] >= 0:
            self.put(b',"id":"', 7)
            self.put_int(self.id[i])
            self.put(b'"', 1)
        if phase == 105:
            self.put(b',"s":"p"', 8)
        elif phase == 102:
            self.put(b',"bp":"e"', 9)
        self.put(b',"name":', 8)
        self.put_text(self.name[i])
        if i < self.spans.shape[0] and self.spans[i, 5] > self.spans[i, 4]:
            self.put(b',"cat":', 7)
            self.put_data(self.spans[i, 4], self.spans[i, 5])
        elif self.cat[i] >= 0:
            self.put(b',"cat":', 7)
            self.put_text(self.cat[i])
        self.put_args(i)
        self.put(b"}", 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_args(self, i: int64_t) -> cython.void:
        k: int64_t
        n: int64_t = 0
        has_data: cython.bint = i < self.spans.shape[0]
        if self.common[i] >= 0:
            n = self.open_args(n)
            self.put_text(self.common[i])
        for k in range(self.first_stat[i], self.first_stat[i + 1]):
            n = self.open_args(n)
            self.put_text(self.key[k])
            self.put(b":", 1)
            self.put_value(self.kind[k], self.value[k])
        for k in range(0, 4, 2):
            if has_data and self.spans[i, k + 1] > self.spans[i, k]:
                n = self.open_args(n)
                self.put_data(self.spans[i, k], self.spans[i, k + 1])
        if n > 0:
            self.put(b"}", 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def open_args(self, n: int64_t) -> int64_t:
        if n == 0:
            self.put(b',"args":{', 9)
        else:
            self.put(b",", 1)
        return n + 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_value(self, kind: uint8_t, value: int64_t) -> cython.void:
        real: cython.double
        if kind == 5:
            self.put_text(cython.cast(int32_t, value))
        elif kind == 3:
            self.put_unsigned(cython.cast(uint64_t, value))
        elif kind == 2:
            memcpy(cython.address(real), cython.address(value), 8)
            self.put_real(real)
        else:
            self.put_int(value)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def reserve(self, n: int64_t) -> cython.bint:
        if self.size + n <= self.capacity:
            return True
        capacity: int64_t = max(2 * self.capacity, self.size + n + ROW_BYTES)
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.out, cython.cast(cython.size_t, capacity)))
        if grown == cython.NULL:
            self.is_full = True
            return False
        self.out = grown
        self.capacity = capacity
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put(self, text: cython.p_const_char, n: int64_t) -> cython.void:
        if n > 0 and self.reserve(n):
            memcpy(self.out + self.size, text, cython.cast(cython.size_t, n))
            self.size += n

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_text(self, code: int32_t) -> cython.void:
        if 0 <= code < self.offsets.shape[0] - 1 and self.offsets[code + 1] > self.offsets[code]:
            start: int64_t = self.offsets[code]
            self.put(
                cython.cast(cython.p_const_char, cython.address(self.blob[start])),
                self.offsets[code + 1] - start,
            )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_data(self, start: int64_t, end: int64_t) -> cython.void:
        if 0 <= start < end <= self.data.shape[0]:
            self.put(cython.cast(cython.p_const_char, cython.address(self.data[start])), end - start)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_unsigned(self, value: uint64_t) -> cython.void:
        digits: cython.char[24]
        first_digit: int64_t = 24
        while True:
            first_digit -= 1
            digits[first_digit] = cython.cast(cython.char, 48 + value % 10)
            value //= 10
            if value == 0:
                break
        self.put(cython.address(digits[first_digit]), 24 - first_digit)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_int(self, value: int64_t) -> cython.void:
        if value < 0:
            self.put(b"-", 1)
        self.put_unsigned(cython.cast(uint64_t, value) if value >= 0 else ~cython.cast(uint64_t, value) + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_us(self, ps: int64_t) -> cython.void:
        """Picoseconds as microseconds, with no more digits than necessary."""
        part: int64_t
        scale: int64_t = 100000
        digit: cython.char
        if ps < 0:
            self.put(b"-", 1)
            ps = -ps
        self.put_unsigned(cython.cast(uint64_t, ps // 1000000))
        part = ps % 1000000
        if part:
            self.put(b".", 1)
        while part:
            digit = cython.cast(cython.char, 48 + part // scale)
            self.put(cython.address(digit), 1)
            part %= scale
            scale //= 10

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put_real(self, value: cython.double) -> cython.void:
        text: cython.char[40]
        n: int64_t
        k: int64_t
        if not (-1e308 < value < 1e308):
            self.put(b"null", 4)
            return
        n = snprintf(text, 40, b"%.15g", value)
        if strtod(text, cython.NULL) != value:
            n = snprintf(text, 40, b"%.17g", value)
        for k in range(n):
            if text[k] == 44:  # some locales
                text[k] = 46
        self.put(text, n)
