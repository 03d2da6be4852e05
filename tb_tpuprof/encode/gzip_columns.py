"""Binary columns → gzip: the texts of the header well, the arrays fast, by what planes of bytes are like (`native.deflated`).

The parts are compressed side by side; each ends on a byte, and none looks back at another:

    gzip head | header, deflated | full flush | arrays, deflated | full flush | … | last block | checksum, length
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from tb_tpuprof.native import deflated

T = TypeVar("T")
R = TypeVar("R")
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LAST_BLOCK = b"\x03\0"
_TEXTS_LEVEL, _WINDOW_BITS, _MEMORY_LEVEL = 4, 15, 9
_PART_BYTES = 1 << 17
_MANY_BYTES = 1 << 18  # below this a thread costs more than it saves


def gzipped(body: bytes) -> bytes:
    """The answer of `encode_columns` as one member of gzip."""
    whole = memoryview(body)
    (length,) = struct.unpack("<I", body[4:8])
    texts, arrays = whole[: 8 + length], whole[8 + length :]
    parts = [arrays[at : at + _PART_BYTES] for at in range(0, len(arrays), _PART_BYTES)]
    if len(body) < _MANY_BYTES:
        packed = [_deflated_texts(texts), *map(deflated, parts)]
        checksum = zlib.crc32(body)
    else:
        first, later = _pool().submit(_deflated_texts, texts), _pool().submit(zlib.crc32, body)
        arrays_packed = side_by_side(deflated, parts)
        packed = [first.result(), *arrays_packed]
        checksum = later.result()
    return b"".join([_HEAD, *packed, _LAST_BLOCK, struct.pack("<II", checksum, len(body) & 0xFFFFFFFF)])


def side_by_side(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of each item, on as many threads as there are processors."""
    return list(_pool().map(function, items))


def _deflated_texts(texts: memoryview) -> bytes:
    """Blocks of deflate, the last of them ending on a byte."""
    made = zlib.compressobj(_TEXTS_LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL)
    return made.compress(texts) + made.flush(zlib.Z_FULL_FLUSH)


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: starting some takes as long as a small answer."""
    return ThreadPoolExecutor(min(os.cpu_count() or 1, 4), "tb_tpuprof encoding")
