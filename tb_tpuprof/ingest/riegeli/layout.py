"""A Riegeli/records file → the places of its chunks, from headers alone.

    blocks     ├── 64 KiB ────────────┼── 64 KiB ────────────┼── 64 KiB ────────────┤
    headers    ▪                      ▪                      ▪
    chunks     ▏s▏records ▏records ────────────────▏records ─────────▏padding ─────────▏

A block begins with a header of 24 bytes, which interrupts the chunk there and says where that chunk begins
and ends. A chunk has a header of 40 bytes, its data and possibly padding. Where a chunk's header is damaged,
reading goes on at the next chunk that a block's header knows. All headers carry hashes, which show damage.

`base` numbers the bytes of all records as if they stood end to end. A chunk that is damaged keeps its place,
so that positions do not depend on what can be read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.riegeli.varints import Damaged
from tb_tpuprof.native import record_hash

Bytes = npt.NDArray[np.uint8]
Read = Callable[[int, int], Bytes]  # (position, size) → those bytes, or as many as the file has
BLOCK_BYTES, _BLOCK_HEADER, _CHUNK_HEADER = 1 << 16, 24, 40
_USABLE = BLOCK_BYTES - _BLOCK_HEADER
PADDING_KIND, SIMPLE_KIND, TRANSPOSED_KIND = b"prt"
_NUMBERS = struct.Struct("<QQQQQ")
MOST_BYTES = 2**62  # of all records together: positions stay int64
MOST_CHUNKS = 2**18  # of a file; encoders fill chunks up to 1 MiB, so such a file would have 256 GiB
# The headers of the first block and of the signature chunk, which every file begins with.
BLOCK_START = bytes.fromhex("83af70d10d884a3f00000000000000004000000000000000")
SIGNATURE_START = bytes.fromhex("91bac23c9287e1a90000000000000000e19f13c0e9b1c37273")


class Chunk(NamedTuple):
    """A chunk that has records: where it begins in the file, and what its header says. `size`: bytes of its
    records; `base`: bytes of the records of all chunks before it.
    """

    begin: int
    data_size: int
    data_hash: int
    kind: int
    n_records: int
    size: int
    base: int


@dataclass(frozen=True)
class Layout:
    """The chunks with records of a file, ascending.

    `n_lost`: stretches that were skipped because a header is damaged, `lost_bytes` their bytes; `n_unknown`:
    chunks with records of a kind that is not known here. `cut_at`: where the chunk begins that the end of the
    file cuts off, -1 if none. `is_closed`: the file ends as its writer leaves it, with padding up to the end
    of a block.
    """

    chunks: tuple[Chunk, ...]
    n_lost: int
    lost_bytes: int
    n_unknown: int
    cut_at: int
    is_closed: bool

    @cached_property
    def bases(self) -> npt.NDArray[np.int64]:
        """The position of the first byte of each chunk's records."""
        return np.array([chunk.base for chunk in self.chunks], np.int64)

    @property
    def n_bytes(self) -> int:
        """Bytes of all records."""
        return self.chunks[-1].base + self.chunks[-1].size if self.chunks else 0


def begins_as_riegeli(head: bytes) -> bool:
    """Whether a file with these first bytes is a Riegeli/records file; either of its first headers suffices,
    since the other may be damaged.
    """
    start = len(BLOCK_START)
    is_signed = head[start : start + len(SIGNATURE_START)] == SIGNATURE_START
    return is_signed or head.startswith(BLOCK_START)


def file_layout(read: Read, n_bytes: int) -> Layout:
    """The layout of a file of `n_bytes`. Reads the headers only. Raises Damaged if it has too many chunks."""
    chunks: list[Chunk] = []
    position = base = n_lost = lost_bytes = n_unknown = n_headers = 0
    cut_at, is_closed = -1, False
    while position < n_bytes:
        n_headers += 1
        if n_headers > MOST_CHUNKS:
            raise Damaged(f"it has more than {MOST_CHUNKS:,} chunks")
        header = without_block_headers(read(position, _CHUNK_HEADER + _BLOCK_HEADER), position)
        if len(header) < _CHUNK_HEADER:
            cut_at = position
            break
        chunk = _chunk(header[:_CHUNK_HEADER], position, base)
        if chunk is None:
            after = _next_chunk(read, position, n_bytes)
            n_lost, lost_bytes = n_lost + 1, lost_bytes + after - position
            position = after
            continue
        if _data_end(chunk) > n_bytes or position + chunk.n_records > n_bytes:
            cut_at = position
            break
        if chunk.n_records and chunk.kind in (SIMPLE_KIND, TRANSPOSED_KIND):
            chunks.append(chunk)
            base += chunk.size
        else:
            n_unknown += chunk.n_records > 0
        position = _chunk_end(chunk)
        is_closed = chunk.kind == PADDING_KIND and position == n_bytes and not n_bytes % BLOCK_BYTES
    return Layout(tuple(chunks), n_lost, lost_bytes, n_unknown, cut_at, is_closed)


def chunk_data(read: Read, chunk: Chunk) -> Bytes:
    """The data of a chunk, without the headers of blocks; empty if its hash is wrong or the file is shorter
    now.
    """
    raw = read(chunk.begin, _data_end(chunk) - chunk.begin)
    data = without_block_headers(raw, chunk.begin)[_CHUNK_HEADER : _CHUNK_HEADER + chunk.data_size]
    is_whole = len(data) == chunk.data_size and record_hash(data) == chunk.data_hash
    return data if is_whole else data[:0]


def without_block_headers(raw: Bytes, position: int) -> Bytes:
    """Bytes that begin at a position of the file, without the headers of blocks among them."""
    parts, i = [], 0
    while i < len(raw):
        within = (position + i) % BLOCK_BYTES
        if within < _BLOCK_HEADER:
            i += _BLOCK_HEADER - within
            continue
        parts.append(raw[i : i + BLOCK_BYTES - within])
        i += BLOCK_BYTES - within
    return parts[0] if len(parts) == 1 else np.concatenate([raw[:0], *parts])


def _chunk(header: Bytes, position: int, base: int) -> Chunk | None:
    """What a chunk's header says; None if it is damaged."""
    header_hash, data_size, data_hash, kind_and_records, size = _NUMBERS.unpack(header.tobytes())
    if record_hash(np.ascontiguousarray(header[8:])) != header_hash:
        return None
    if data_size > MOST_BYTES or size > MOST_BYTES - base:
        return None
    kind, n_records = kind_and_records & 0xFF, kind_and_records >> 8
    return Chunk(position, data_size, data_hash, kind, n_records, size, base)


def _data_end(chunk: Chunk) -> int:
    """Where the data of a chunk end, with the headers of blocks within."""
    size = _CHUNK_HEADER + chunk.data_size
    n_blocks = (size + (chunk.begin + _USABLE - 1) % BLOCK_BYTES) // _USABLE
    return chunk.begin + size + n_blocks * _BLOCK_HEADER


def _chunk_end(chunk: Chunk) -> int:
    """Where the next chunk begins: a chunk has at least a byte for each record, and never ends in or right
    after a block's header.
    """
    end = chunk.begin + chunk.n_records
    return max(_data_end(chunk), end + max(0, -end % BLOCK_BYTES - (_USABLE - 1)))


def _next_chunk(read: Read, position: int, n_bytes: int) -> int:
    """Where the next chunk begins, according to the headers of blocks after `position`; the file's end if
    none says.
    """
    block = (position // BLOCK_BYTES + 1) * BLOCK_BYTES
    while block + _BLOCK_HEADER <= n_bytes:
        header = read(block, _BLOCK_HEADER)
        if len(header) < _BLOCK_HEADER:
            break
        header_hash, before, after = struct.unpack("<QQQ", header.tobytes())
        if record_hash(np.ascontiguousarray(header[8:])) == header_hash:
            if not before:
                return block
            end: int = block + after
            if after and -end % BLOCK_BYTES < _USABLE:
                return min(end, n_bytes)
        block += BLOCK_BYTES
    return n_bytes
