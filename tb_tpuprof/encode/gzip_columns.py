"""Binary columns → gzip: the texts of the header well, the arrays fast, by what planes of bytes are like
(`native.deflated`).

The parts are compressed in parallel; each ends on a byte, and none looks back at another:

    gzip head | header, deflated | full flush | arrays, deflated | full flush | … | last block | checksum,
    length
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial

from tb_tpuprof.native import deflated
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LAST_BLOCK = b"\x03\0"
_TEXTS_LEVEL, _WINDOW_BITS, _MEMORY_LEVEL = 4, 15, 9


def gzipped(body: bytes) -> bytes:
    """The answer of `encode_columns` as one member of gzip."""
    whole = memoryview(body)
    (length,) = struct.unpack("<I", body[4:8])
    texts, arrays = whole[: 8 + length], whole[8 + length :]
    size = POLICY.gzip_bytes_per_part
    parts = [partial(deflated, arrays[at : at + size]) for at in range(0, len(arrays), size)]
    jobs: list[Callable[[], bytes]] = [partial(_checksum, body), partial(_deflated_texts, texts), *parts]
    checksum, *packed = call_in_parallel(jobs, is_worthwhile=len(body) >= POLICY.min_parallel_gzip_bytes)
    return b"".join([_HEAD, *packed, _LAST_BLOCK, checksum, struct.pack("<I", len(body) & 0xFFFFFFFF)])


def _checksum(body: bytes) -> bytes:
    return struct.pack("<I", zlib.crc32(body))


def _deflated_texts(texts: memoryview) -> bytes:
    """Blocks of deflate, the last of them ending on a byte."""
    made = zlib.compressobj(_TEXTS_LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL)
    return made.compress(texts) + made.flush(zlib.Z_FULL_FLUSH)
