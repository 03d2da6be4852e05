# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Blocks of LevelDB tables: their checksum, Snappy's compression, and their entries. Compiled.

Malformed bytes yield -1 or the offset at which reading failed, never a read or a write out of bounds. The
twin is `plain/blocks.py`.
"""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tb_tpuprof.native.compiled.varint import varint

from tb_tpuprof.native.plain.blocks import CRC_TABLE

_CRC = cython.declare(uint32_t[256])


@cython.cfunc
def _fill_table():
    i: cython.int
    for i in range(256):
        _CRC[i] = CRC_TABLE[i]


_fill_table()


def crc32c(data: cython.const[uint8_t][::1]):
    """CRC-32C (Castagnoli) of all bytes."""
    crc: uint32_t = 0xFFFFFFFF
    i: int64_t
    with cython.nogil:
        for i in range(data.shape[0]):
            crc = _CRC[(crc ^ data[i]) & 0xFF] ^ (crc >> 8)
    return crc ^ cython.cast(uint32_t, 0xFFFFFFFF)


def unsnap(data: cython.const[uint8_t][::1], out: uint8_t[::1]):
    """Unpack Snappy's elements (without the length before them) into `out`; returns the number of bytes
    written, -1 if the elements are malformed or exceed `out`.
    """
    n: int64_t
    if not data.shape[0] or not out.shape[0]:
        return -1 if data.shape[0] else 0
    with cython.nogil:
        n = _unsnap(cython.address(data[0]), data.shape[0], cython.address(out[0]), out.shape[0])
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _unsnap(
    p: cython.pointer(cython.const[uint8_t]), end: int64_t, out: cython.pointer(uint8_t), room: int64_t
) -> int64_t:
    pos: int64_t = 0
    n: int64_t = 0
    size: int64_t
    back: int64_t
    i: int64_t
    tag: uint8_t
    n_extra: cython.int
    while pos < end:
        tag = p[pos]
        pos += 1
        if tag & 3 == 0:
            size = tag >> 2
            n_extra = size - 59 if size >= 60 else 0
            if n_extra > end - pos:
                return -1
            if n_extra:
                size = _little_endian(p + pos, n_extra)
                pos += n_extra
            size += 1
            if size > end - pos or size > room - n:
                return -1
            memcpy(out + n, p + pos, size)
            pos += size
            n += size
            continue
        n_extra = 1 if tag & 3 == 1 else 2 if tag & 3 == 2 else 4
        if n_extra > end - pos:
            return -1
        back = _little_endian(p + pos, n_extra)
        pos += n_extra
        if n_extra == 1:
            size = ((tag >> 2) & 7) + 4
            back += cython.cast(int64_t, tag >> 5) << 8
        else:
            size = (tag >> 2) + 1
        if back < 1 or back > n or size > room - n:
            return -1
        if back >= size:
            memcpy(out + n, out + n - back, size)
        else:  # the copy overlaps what it writes: it repeats the last bytes
            for i in range(size):
                out[n + i] = out[n + i - back]
        n += size
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _little_endian(p: cython.pointer(cython.const[uint8_t]), n: cython.int) -> int64_t:
    value: int64_t = 0
    i: cython.int
    for i in range(n):
        value |= cython.cast(int64_t, p[i]) << (8 * i)
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    p: cython.pointer(cython.const[uint8_t]),
    start: int64_t,
    end: int64_t,
    width: int64_t,
    keys: cython.pointer(uint8_t),
    rows: cython.pointer(int64_t),
    bad: cython.pointer(int64_t),
) -> int64_t:
    """Count the entries from `start` to `end`; if `rows` is given, also write their keys, which start as
    zeros, and (size of the key, position of the value, its size) of each.
    """
    n: int64_t = 0
    pos: int64_t = start
    key_size: int64_t = 0
    shared: uint64_t = 0
    added: uint64_t = 0
    size: uint64_t = 0
    after: int64_t
    bad[0] = -1
    while pos < end:
        after = varint(p, pos, end, end, cython.address(shared))
        if after >= 0:
            after = varint(p, after, end, end, cython.address(added))
        if after >= 0:
            after = varint(p, after, end, end, cython.address(size))
        if (
            after < 0
            or shared > cython.cast(uint64_t, key_size)
            or added > cython.cast(uint64_t, width) - shared
            or added > cython.cast(uint64_t, end - after)
            or size > cython.cast(uint64_t, end - after) - added
        ):
            bad[0] = pos
            break
        key_size = cython.cast(int64_t, shared + added)
        if rows != cython.NULL:
            if shared:
                memcpy(keys + n * width, keys + (n - 1) * width, shared)
            memcpy(keys + n * width + shared, p + after, added)
            rows[3 * n] = key_size
            rows[3 * n + 1] = after + cython.cast(int64_t, added)
            rows[3 * n + 2] = cython.cast(int64_t, size)
        pos = after + cython.cast(int64_t, added) + cython.cast(int64_t, size)
        n += 1
    return n


def entries(data: cython.const[uint8_t][::1], start: int64_t, end: int64_t, width: int64_t):
    """The entries of a block in data[start:end], without its restart points: (keys uint8[n, width], padded
    with zeros; rows int64[n, 3] of key size, position and size of the value; bad).

    `bad` is the offset of the first malformed entry or of one whose key exceeds `width` bytes, else -1; the
    rows are those before it.
    """
    start = max(start, 0)
    end = min(end, data.shape[0])
    bad: int64_t = -1
    if start >= end or width < 1:
        return np.zeros((0, max(width, 0)), np.uint8), np.zeros((0, 3), np.int64), -1
    p: cython.pointer(cython.const[uint8_t]) = cython.address(data[0])
    n: int64_t
    with cython.nogil:
        n = _walk(p, start, end, width, cython.NULL, cython.NULL, cython.address(bad))
    keys = np.zeros((n, width), np.uint8)
    rows = np.zeros((n, 3), np.int64)
    key_view: uint8_t[:, ::1] = keys
    row_view: int64_t[:, ::1] = rows
    if n:
        with cython.nogil:
            _walk(
                p,
                start,
                end,
                width,
                cython.address(key_view[0, 0]),
                cython.address(row_view[0, 0]),
                cython.address(bad),
            )
    return keys, rows, bad
