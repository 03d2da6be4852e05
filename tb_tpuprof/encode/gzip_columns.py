"""Binary columns → gzip: the texts of the header well, the arrays fast, and not at all where they are as good as random.

Planes of bytes hold runs but few repetitions, so that runs and the frequency of bytes are all that is looked for. The parts are
compressed side by side; each ends on a byte, and none looks back at another:

    gzip head | header, deflated | full flush | runs, deflated | full flush | stored | … | last block | checksum, length
"""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from tb_tpuprof.native import is_dense

T = TypeVar("T")
R = TypeVar("R")
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LAST_BLOCK = b"\x03\0"
_HEADER_LEVEL, _ARRAYS_LEVEL = 4, 1
_WINDOW_BITS, _MEMORY_LEVEL = 15, 9
_CHUNK_BYTES = 1 << 15
_MAX_RUN_CHUNKS = 4
_MANY_BYTES = 1 << 17  # below this a thread costs more than it saves


def gzipped(body: bytes) -> bytes:
    """The answer of `encode_columns` as one member of gzip."""
    whole = memoryview(body)
    (length,) = struct.unpack("<I", body[4:8])
    first = 8 + length
    runs = [(0, first, "texts"), *_runs(whole[first:], first)]
    if len(body) < _MANY_BYTES:
        parts = [_deflated(whole[a:b], kind) for a, b, kind in runs]
        checksum = zlib.crc32(body)
    else:
        later = _pool().submit(zlib.crc32, body)
        parts = side_by_side(lambda run: _deflated(whole[run[0] : run[1]], run[2]), runs)
        checksum = later.result()
    return b"".join([_HEAD, *parts, _LAST_BLOCK, struct.pack("<II", checksum, len(body) & 0xFFFFFFFF)])


def side_by_side(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of each item, on as many threads as there are processors."""
    return list(_pool().map(function, items))


def _runs(arrays: memoryview, first: int) -> list[tuple[int, int, str]]:
    """(from, to, kind) of what is compressed together: successive chunks of one kind, not too many."""
    dense = is_dense(arrays, _CHUNK_BYTES).tolist()
    cuts = [i for i in range(1, len(dense)) if dense[i] != dense[i - 1]]
    found = []
    for low, high in itertools.pairwise([0, *cuts, len(dense)]):
        step = 1 if dense and low < len(dense) and dense[low] else _MAX_RUN_CHUNKS
        for at in range(low, high, step):
            end = min(min(at + step, high) * _CHUNK_BYTES, len(arrays))
            found.append((first + at * _CHUNK_BYTES, first + end, "dense" if dense[at] else "runs"))
    return found


def _deflated(data: memoryview, kind: str) -> bytes:
    """Blocks of deflate, the last of them ending on a byte."""
    if kind == "dense":
        return struct.pack("<BHH", 0, len(data), len(data) ^ 0xFFFF) + data
    is_text = kind == "texts"
    strategy = zlib.Z_DEFAULT_STRATEGY if is_text else zlib.Z_RLE
    made = zlib.compressobj(_HEADER_LEVEL if is_text else _ARRAYS_LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL, strategy)
    return made.compress(data) + made.flush(zlib.Z_FULL_FLUSH)


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: starting some takes as long as a small answer."""
    return ThreadPoolExecutor(min(os.cpu_count() or 1, 4), "tb_tpuprof encoding")
