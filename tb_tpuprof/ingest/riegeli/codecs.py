"""Compressed parts of chunks → their bytes. Brotli, which JAX writes, is a requirement; Zstandard and Snappy
come with the extra `riegeli`.

A compressed part begins with its unpacked size, and not more than that is ever unpacked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.riegeli.varints import Damaged, VarintReader

Bytes = npt.NDArray[np.uint8]
NONE, BROTLI, ZSTANDARD, SNAPPY = 0, ord("b"), ord("z"), ord("s")
NAMES = {BROTLI: "Brotli", ZSTANDARD: "Zstandard", SNAPPY: "Snappy"}
_PACKAGES = {BROTLI: "brotli", ZSTANDARD: "tb-tpuprof[riegeli]", SNAPPY: "tb-tpuprof[riegeli]"}


class MissingCodec(Exception):
    """A codec that is not installed: its name, and what to give to `pip install`."""

    def __init__(self, codec: int) -> None:
        self.name, self.package = NAMES[codec], _PACKAGES[codec]
        super().__init__(self.name)


def unpacked(codec: int, part: Bytes, most_bytes: int) -> Bytes:
    """The bytes of a part. Raises Damaged if it is no such part or has more than `most_bytes`, MissingCodec
    if the library is missing.
    """
    if codec == NONE:
        if len(part) > most_bytes:
            raise Damaged(f"a part has {len(part):,} bytes instead of at most {most_bytes:,}")
        return part
    if codec not in NAMES:
        raise Damaged(f"it is compressed in an unknown way ({codec:#04x})")
    reader = VarintReader(part)
    size = reader.number()
    if size > most_bytes:
        raise Damaged(f"a part has {size:,} bytes instead of at most {most_bytes:,}")
    packed = np.ascontiguousarray(reader.rest())
    content = _brotli(packed, size) if codec == BROTLI else _by_cramjam(codec, packed, size)
    if len(content) != size:
        raise Damaged(f"a part does not have the {size:,} bytes that it claims")
    return content


def _brotli(packed: Bytes, size: int) -> Bytes:
    try:
        import brotli
    except ImportError:
        raise MissingCodec(BROTLI) from None
    content, stream = bytearray(), brotli.Decompressor()
    data: Any = packed.data
    try:
        while len(content) <= size and not stream.is_finished():
            more = stream.process(data, output_buffer_limit=max(size - len(content), 1))
            if not more and not len(data):
                break
            content += more
            data = b""
    except brotli.error:
        raise Damaged("its Brotli data is damaged") from None
    if not stream.is_finished():
        raise Damaged("its Brotli data does not end")
    return np.frombuffer(content, np.uint8)


def _by_cramjam(codec: int, packed: Bytes, size: int) -> Bytes:
    try:
        import cramjam
    except ImportError:
        raise MissingCodec(codec) from None
    content = np.empty(size, np.uint8)
    source: Any = packed
    target: Any = content
    try:
        if codec == ZSTANDARD:
            n_written = cramjam.zstd.decompress_into(source, target)
        else:
            n_written = cramjam.snappy.decompress_raw_into(source, target)
    except (cramjam.DecompressionError, ValueError, OSError):
        raise Damaged(f"its {NAMES[codec]} data is damaged") from None
    return content[:n_written]
