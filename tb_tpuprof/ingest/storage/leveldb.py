"""A LevelDB table in memory → its entries: short keys and their values.

    ┌ block ┬ block ┬ … ┬ index ┬ footer ┐   block   entries, restart points, compression, CRC-32C
    └───────┴───────┴───┴───────┴────────┘   index   a block: the last key of each block → its place
                                             footer  48 bytes: place of the index, padding, magic number

Positions count in the unpacked blocks, joined in the order of the index. A block with a wrong checksum is
left out and counted. Format: LevelDB's table_format.md and Snappy's format_description.txt.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.native import crc32c, entries, unsnap
from tb_tpuprof.native.machine_memory import machine_memory
from tb_tpuprof.native.memory import new_array
from tb_tpuprof.trace.wire import read_varint

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
MAGIC = bytes.fromhex("57fb808b247547db")
KEY_BYTES = 16  # the longest key that is read
_FOOTER_BYTES, _TRAILER_BYTES, _MOST_VARINT = 48, 5, 10
_PLAIN, _SNAPPY = 0, 1
# Snappy's densest element writes 64 bytes from 3.
_MOST_RATIO, _LEAST_ROOM = 22, 16
_SHARE_FOR_UNPACKED = 4  # of the memory: the columns need some, too
_NO_KEYS = np.zeros((0, KEY_BYTES), np.uint8)


class _Place(NamedTuple):
    """A block in the file (without its trailer), and its size unpacked; -1 if that is unknown."""

    start: int
    size: int
    unpacked: int


@dataclass(frozen=True)
class Entries:
    """Entries of a table or of one block, whose values are in `data`. Its first byte is at the table's
    position `base`; `n_damaged` blocks are missing.
    """

    data: Bytes
    keys: Bytes
    key_sizes: Ints
    starts: Ints
    sizes: Ints
    base: int = 0
    n_damaged: int = 0

    def key(self, row: int) -> bytes:
        """The key of an entry."""
        return self.keys[row, : int(self.key_sizes[row])].tobytes()

    def value(self, row: int) -> bytes:
        """The value of an entry."""
        start = int(self.starts[row])
        return self.data[start : start + int(self.sizes[row])].tobytes()

    def row_of(self, key: bytes) -> int:
        """The entry with this key, -1 if there is none."""
        padded = np.frombuffer(key[:KEY_BYTES].ljust(KEY_BYTES, b"\0"), np.uint8)
        rows = np.flatnonzero((self.keys == padded).all(axis=1) & (self.key_sizes == len(key)))
        return int(rows[0]) if len(rows) else -1

    def row_at(self, position: int) -> int:
        """The entry whose value is at a position of the table, -1 if there is none."""
        rows = np.flatnonzero(self.starts == position - self.base)
        return int(rows[0]) if len(rows) else -1


class Table:
    """A table whose blocks are unpacked when read. Raises TraceFormatError if its index is damaged."""

    def __init__(self, data: Bytes, path: str) -> None:
        self.data = data
        self.path = path
        self._places, self._last_keys = self._index()
        sizes = np.array([max(place.unpacked, 0) for place in self._places], np.int64)
        self._bases = np.append(0, np.cumsum(sizes))
        limit = machine_memory() // _SHARE_FOR_UNPACKED
        if self.size_bytes > limit:
            raise TraceFormatError(
                path, -1, f"unpacks to more than {limit / 2**30:.1f} GiB", "Profile for a shorter time."
            )

    @property
    def size_bytes(self) -> int:
        """Bytes of all blocks, unpacked."""
        return int(self._bases[-1])

    def entries(self) -> Entries:
        """All entries, in the file's order, which is that of their keys."""
        return self._read(0, len(self._places))

    def entries_at(self, position: int) -> Entries:
        """The entries of the block at a position."""
        i = int(np.searchsorted(self._bases, position, "right")) - 1
        return self._read(i, i + 1)

    def entries_near(self, key: bytes) -> Entries:
        """The entries of the only block that may have this key."""
        i = bisect_left(self._last_keys, key)
        return self._read(i, i + 1)

    def _read(self, first: int, end: int) -> Entries:
        """The entries of these blocks, as far as there are such."""
        first, end = max(first, 0), min(end, len(self._places))
        if first >= end:
            nothing = np.zeros(0, np.int64)
            return Entries(np.zeros(0, np.uint8), _NO_KEYS, nothing, nothing, nothing)
        base = int(self._bases[first])
        data = new_array(int(self._bases[end]) - base, np.uint8)
        parts = [self._block_entries(i, data, base) for i in range(first, end)]
        keys = np.concatenate([keys for keys, _, _ in parts])
        rows = np.concatenate([rows for _, rows, _ in parts])
        n_damaged = sum(not is_whole for _, _, is_whole in parts)
        key_sizes, starts, sizes = np.ascontiguousarray(rows.T)
        return Entries(data, keys, key_sizes, starts, sizes, base, n_damaged)

    def _block_entries(self, i: int, out: Bytes, base: int) -> tuple[Bytes, Ints, bool]:
        """(keys, rows, whether all of it is intact) of a block, which is unpacked to its place in `out`, of
        which the first byte is at the position `base`.
        """
        start, end = int(self._bases[i]) - base, int(self._bases[i + 1]) - base
        if self._unpack(self._places[i], out[start:end]):
            last = end - 4 - 4 * int.from_bytes(out[end - 4 : end].tobytes(), "little")
            if last >= start:
                keys, rows, bad = entries(out, start, last, KEY_BYTES)
                return keys, rows, bad < 0
        out[start:end] = 0
        return _NO_KEYS, np.zeros((0, 3), np.int64), False

    def _index(self) -> tuple[list[_Place], list[bytes]]:
        """The places of the blocks, and the last key of each or one after it."""
        footer = self.data[-_FOOTER_BYTES:].tobytes()
        try:
            numbers, offset = [], 0
            for _ in range(4):  # the places of the meta index and of the index
                number, offset = read_varint(footer[:-8], offset)
                numbers.append(number)
        except ValueError:
            numbers = [0, 0, 0, 0]
        place = self._place(numbers[2], numbers[3])
        block = new_array(max(place.unpacked, 0), np.uint8)
        if place.unpacked < 4 or not self._unpack(place, block):
            raise self._damaged()
        end = len(block) - 4 - 4 * int.from_bytes(block[-4:].tobytes(), "little")
        if end < 0:
            raise self._damaged()
        keys, rows, bad = entries(block, 0, end, KEY_BYTES)
        if bad >= 0:
            raise self._damaged()
        places, covered = [], 0
        for _, value_start, value_size in rows.tolist():
            here = self._handle(block[value_start : value_start + value_size].tobytes())
            # Blocks follow one another; a block that is named twice would be unpacked twice.
            places.append(here if here.start >= covered else _Place(0, 0, -1))
            covered = max(covered, here.start + here.size)
        last_keys = [keys[row, :size].tobytes() for row, size in enumerate(rows[:, 0].tolist())]
        return places, last_keys

    def _damaged(self) -> TraceFormatError:
        return TraceFormatError(
            self.path,
            len(self.data) - _FOOTER_BYTES,
            "is a LevelDB table whose index is damaged or missing",
            "Copy the file again in binary mode, or open the .xplane.pb file that it was made from.",
        )

    def _handle(self, value: bytes) -> _Place:
        try:
            start, offset = read_varint(value, 0)
            size, _ = read_varint(value, offset)
        except ValueError:
            return _Place(0, 0, -1)
        return self._place(start, size)

    def _place(self, start: int, size: int) -> _Place:
        """The block there; of unknown size if it is outside the file or of an unknown compression."""
        end = start + size
        if size < 1 or end + _TRAILER_BYTES > len(self.data):
            return _Place(0, 0, -1)
        kind = int(self.data[end])
        unpacked = size if kind == _PLAIN else -1
        if kind == _SNAPPY:
            try:
                unpacked, _ = read_varint(self.data[start : start + min(size, _MOST_VARINT)].tobytes(), 0)
            except ValueError:
                unpacked = -1
            if unpacked > _MOST_RATIO * size + _LEAST_ROOM:
                unpacked = -1
        return _Place(start, size, unpacked)

    def _unpack(self, place: _Place, out: Bytes) -> bool:
        """Fill `out` with the block; False if it is damaged."""
        start, size, unpacked = place
        if unpacked < 4 or unpacked != len(out):
            return False
        end = start + size
        crc = crc32c(self.data[start : end + 1])
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        if masked != int.from_bytes(self.data[end + 1 : end + _TRAILER_BYTES].tobytes(), "little"):
            return False
        if int(self.data[end]) == _PLAIN:
            out[:] = self.data[start:end]
            return True
        _, header = read_varint(self.data[start : start + min(size, _MOST_VARINT)].tobytes(), 0)
        return bool(unsnap(self.data[start + header : end], out) == unpacked)
