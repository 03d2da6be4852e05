"""Plain twin of `compiled/blocks.py`: checksum, Snappy and entries of blocks of LevelDB tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_POLYNOMIAL = 0x82F63B78  # of CRC-32C, bits reversed


def _table() -> list[int]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        values.append(value)
    return values


CRC_TABLE = _table()


def crc32c(data: Bytes) -> int:
    """CRC-32C (Castagnoli) of all bytes."""
    crc = 0xFFFFFFFF
    for byte in data.tobytes():
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def unsnap(data: Bytes, out: Bytes) -> int:
    """Unpack Snappy's elements (without the length before them) into `out`; returns the number of bytes
    written, -1 if the elements are malformed or exceed `out`.
    """
    packed, unpacked, position = data.tobytes(), bytearray(), 0
    while position < len(packed):
        tag = packed[position]
        position += 1
        size, n_extra = (tag >> 2) + 1, (0, 1, 2, 4)[tag & 3]
        if not tag & 3 and size > 60:
            n_extra = size - 60
        if n_extra > len(packed) - position:
            return -1
        extra = int.from_bytes(packed[position : position + n_extra], "little")
        position += n_extra
        if not tag & 3:
            size = extra + 1 if n_extra else size
            part = packed[position : position + size]
            position += size
        else:
            if tag & 3 == 1:
                size, extra = (tag >> 2 & 7) + 4, extra + (tag >> 5 << 8)
            if not 1 <= extra <= len(unpacked):
                return -1
            part = (bytes(unpacked[-extra:]) * (size // extra + 1))[:size]
        if len(part) < size or len(unpacked) + size > len(out):
            return -1
        unpacked += part
    out[: len(unpacked)] = np.frombuffer(bytes(unpacked), np.uint8)
    return len(unpacked)


def entries(data: Bytes, start: int, end: int, width: int) -> tuple[Bytes, Ints, int]:
    """The entries of a block in data[start:end], without its restart points: (keys uint8[n, width], padded
    with zeros; rows int64[n, 3] of key size, position and size of the value; bad).

    `bad` is the offset of the first malformed entry or of one whose key exceeds `width` bytes, else -1; the
    rows are those before it.
    """
    start, end = max(start, 0), min(end, len(data))
    blob = data.data
    keys: list[bytes] = []
    rows: list[tuple[int, int, int]] = []
    key, position, bad = b"", start, -1
    while position < end and width > 0:
        shared, after = _varint(blob, position, end)
        added, after = _varint(blob, after, end)
        size, after = _varint(blob, after, end)
        if after < 0 or shared > len(key) or shared + added > width or added + size > end - after:
            bad = position
            break
        key = key[:shared] + bytes(blob[after : after + added])
        keys.append(key.ljust(width, b"\0"))
        rows.append((len(key), after + added, size))
        position = after + added + size
    columns = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), max(width, 0)).copy()
    return columns, np.array(rows, np.int64).reshape(-1, 3), bad


def _varint(blob: memoryview, position: int, end: int) -> tuple[int, int]:
    """A varint and the position after it, -1 if it is cut off or `position` is -1."""
    value = shift = 0
    while 0 <= position < end and shift < 70:
        byte = blob[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
        shift += 7
    return 0, -1
