# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Protobuf wire format → arrays of fields, for single messages or thousands of them. Compiled.

Positions are byte offsets into the file. A malformed message yields the offset at which reading failed, never
a read out of bounds. The twin is `plain/wire.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint64_t
from cython.cimports.tb_tpuprof.native.compiled.varint import Field, read_field

from tb_tpuprof.native.memory import new_array

MOST = cython.declare(int64_t, 4611686018427387904)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    p: cython.pointer(cython.const[uint8_t]),
    pos: int64_t,
    end: int64_t,
    limit: int64_t,
    rows: cython.pointer(int64_t),
    bad: cython.pointer(int64_t),
) -> int64_t:
    """Count the fields of a message; if `rows` is given, also write (number, wire, value, size) of each."""
    n: int64_t = 0
    field_start: int64_t
    field: Field
    bad[0] = -1
    while pos < end:
        field_start = pos
        pos = read_field(p, pos, end, limit, cython.address(field))
        if pos < 0:
            bad[0] = field_start
            break
        if rows != cython.NULL:
            rows[4 * n] = field.number
            rows[4 * n + 1] = field.wire
            rows[4 * n + 2] = field.value
            rows[4 * n + 3] = field.size
        n += 1
    return n


def fields(data: cython.const[uint8_t][::1], start: int64_t, end: int64_t):
    """All fields of the message in data[start:end]: (rows int64[n, 4], bad). A row is number, wire type,
    value, size.

    For wire type 0 the value is the number itself; else the position of the bytes, and size their number. If
    the message is malformed, `bad` is the offset (else -1) and the rows are those before it.
    """
    start = max(start, 0)
    end = min(end, data.shape[0])
    bad: int64_t = -1
    if start >= end:
        return np.empty((0, 4), np.int64), -1
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    n: int64_t
    with cython.nogil:
        n = _walk(p, start, end, data.shape[0], cython.NULL, cython.address(bad))
    rows = new_array(4 * n, np.int64).reshape(n, 4)
    view: int64_t[:, ::1] = rows
    if n:
        with cython.nogil:
            _walk(p, start, end, data.shape[0], cython.address(view[0, 0]), cython.address(bad))
    return rows, bad


def spans(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    numbers: cython.const[int64_t][::1],
    counted: int64_t = -1,
):
    """The last field of each of `numbers`, for many messages of one type: (value, size int64[n, k], count
    int64[n], bad uint8[n]).

    Value and size are as in `fields`, column by column in memory; an absent field has value 0 and size -1.
    The count is the number of occurrences of the field numbers[counted]; int64[0] if `counted` is not given.
    """
    n: int64_t = starts.shape[0]
    k: int64_t = numbers.shape[0]
    if n == 0 or k == 0 or data.shape[0] == 0:
        nothing = np.zeros(n if counted >= 0 else 0, np.int64)
        return np.zeros((k, n), np.int64).T, np.full((k, n), -1, np.int64).T, nothing, np.zeros(n, np.uint8)
    values = new_array(k * n, np.int64).reshape(k, n)
    lengths = new_array(k * n, np.int64).reshape(k, n)
    counts = np.zeros(n if counted >= 0 else 0, np.int64)
    broken = np.zeros(n, np.uint8)
    v: int64_t[:, ::1] = values
    s: int64_t[:, ::1] = lengths
    c: int64_t[::1] = counts
    b: uint8_t[::1] = broken
    column_table = np.full(128, -1, np.int64)
    column_of: int64_t[::1] = column_table
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    limit: int64_t = data.shape[0]
    i: int64_t
    j: int64_t
    pos: int64_t
    end: int64_t
    field: Field
    for j in range(k):
        column_of[numbers[j]] = j
    with cython.nogil:
        for i in range(n):
            for j in range(k):
                v[j, i] = 0
                s[j, i] = -1
            pos = starts[i]
            if pos < 0 or sizes[i] < 0 or sizes[i] > limit - pos:
                b[i] = 1
                continue
            end = pos + sizes[i]
            while pos < end:
                pos = read_field(p, pos, end, limit, cython.address(field))
                if pos < 0:
                    b[i] = 1
                    break
                if 0 <= field.number < 128 and column_of[field.number] >= 0:
                    j = column_of[field.number]
                    v[j, i] = field.value
                    s[j, i] = field.size
                    if j == counted:
                        c[i] += 1
    return values.T, lengths.T, counts, broken


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _packed(
    p: cython.pointer(cython.const[uint8_t]),
    pos: int64_t,
    end: int64_t,
    out: cython.pointer(int64_t),
) -> int64_t:
    """Count the varints in p[pos:end], up to one that is cut off; if `out` is given, also write them."""
    n: int64_t = 0
    value: uint64_t = 0
    shift: cython.int = 0
    while pos < end:
        if shift < 64:
            value |= cython.cast(uint64_t, p[pos] & 0x7F) << shift
        shift += 7
        if p[pos] < 0x80:
            if out != cython.NULL:
                out[n] = cython.cast(int64_t, value)
            n += 1
            value = 0
            shift = 0
        elif shift >= 70:
            break
        pos += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _repeats(
    p: cython.pointer(cython.const[uint8_t]),
    pos: int64_t,
    end: int64_t,
    limit: int64_t,
    number: int64_t,
    is_message: cython.bint,
    first: cython.pointer(int64_t),
    second: cython.pointer(int64_t),
) -> int64_t:
    """Count one message's occurrences of a repeated field, numbers or messages; if `first` is given, also
    write them.
    """
    n: int64_t = 0
    field: Field
    while pos < end:
        pos = read_field(p, pos, end, limit, cython.address(field))
        if pos < 0:
            break
        if field.number != number:
            continue
        if is_message:
            if field.wire == 2:
                if first != cython.NULL:
                    first[n] = field.value
                    second[n] = field.size
                n += 1
        elif field.wire == 0:
            if first != cython.NULL:
                first[n] = field.value
            n += 1
        elif field.wire == 2:
            if first != cython.NULL:
                n += _packed(p, field.value, field.value + field.size, first + n)
            else:
                n += _packed(p, field.value, field.value + field.size, cython.NULL)
    return n


@cython.cfunc
def _gather(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    number: int64_t,
    is_message: cython.bint,
):
    n: int64_t = starts.shape[0]
    limit: int64_t = data.shape[0]
    offsets = np.zeros(n + 1, np.int64)
    if n == 0 or limit == 0:
        return offsets, np.empty(0, np.int64), np.empty(0, np.int64)
    o: int64_t[::1] = offsets
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    i: int64_t
    with cython.nogil:
        for i in range(n):
            o[i + 1] = o[i]
            if starts[i] >= 0 and 0 <= sizes[i] <= limit - starts[i]:
                o[i + 1] += _repeats(
                    p, starts[i], starts[i] + sizes[i], limit, number, is_message, cython.NULL, cython.NULL
                )
    first = new_array(o[n], np.int64)
    second = new_array(o[n] if is_message else 0, np.int64)
    if o[n] == 0:
        return offsets, first, second
    f: int64_t[::1] = first
    s: int64_t[::1] = second
    q: cython.pointer(int64_t)
    with cython.nogil:
        for i in range(n):
            if o[i + 1] > o[i]:
                q = cython.NULL
                if is_message:
                    q = cython.address(s[o[i]])
                _repeats(
                    p, starts[i], starts[i] + sizes[i], limit, number, is_message, cython.address(f[o[i]]), q
                )
    return offsets, first, second


def add_records(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    columns: cython.const[int64_t][::1],
    rows: cython.const[int64_t][:, ::1],
    out: cython.double[:, ::1],
):
    """Sum amounts by kind over messages of records (field 1) of two small numbers and an amount; see
    `plain.wire.add_records`.
    """
    limit: int64_t = data.shape[0]
    i: int64_t
    pos: int64_t
    end: int64_t
    record_pos: int64_t
    first: int64_t
    second: int64_t
    amount: int64_t
    number: int64_t
    record: Field
    field: Field
    if limit == 0:
        return
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    with cython.nogil:
        for i in range(starts.shape[0]):
            pos = starts[i]
            if pos < 0 or sizes[i] < 0 or sizes[i] > limit - pos:
                continue
            end = pos + sizes[i]
            while pos < end:
                pos = read_field(p, pos, end, limit, cython.address(record))
                if pos < 0:
                    break
                if record.number != 1 or record.wire != 2:
                    continue
                first = 0
                second = 0
                amount = 0
                record_pos = record.value
                while record_pos >= 0 and record_pos < record.value + record.size:
                    record_pos = read_field(
                        p, record_pos, record.value + record.size, limit, cython.address(field)
                    )
                    if record_pos < 0:
                        break
                    number = field.value if field.wire == 0 else -1
                    if field.number == 1:
                        first = number
                    elif field.number == 2:
                        second = number
                    elif field.number == 3:
                        amount = number
                if (
                    0 <= second < rows.shape[0]
                    and 0 <= first < rows.shape[1]
                    and 0 < amount < MOST
                    and rows[second, first] >= 0
                ):
                    out[rows[second, first], columns[i]] += amount


def parts(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    number: int64_t,
):
    """The repeated messages (or texts) of one field in many messages: (offsets int64[n + 1], starts, sizes of
    each part).

    Parts of message i are offsets[i] … offsets[i + 1]. A malformed message has those before the damage.
    """
    return _gather(data, starts, sizes, number, True)


def ints(
    data: cython.const[uint8_t][::1],
    starts: cython.const[int64_t][::1],
    sizes: cython.const[int64_t][::1],
    number: int64_t,
):
    """The repeated numbers of one field in many messages, packed or not: (offsets int64[n + 1], values
    int64).
    """
    offsets, values, _ = _gather(data, starts, sizes, number, False)
    return offsets, values
