"""Columns of integers -> protobuf wire bytes, a row at a time in the file but a column at a time in numpy.

Every field of an XEvent that the synthetic trace needs is a varint, and so is the length before each message:
a row is a fixed sequence of (tag, varint) pairs, of which some may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_MAX_VARINT_BYTES = 10


@dataclass(frozen=True)
class Field:
    """One (tag, varint) pair of every row; rows where `is_present` is false do without. Values are not
    negative.
    """

    tag: int
    values: UInt64s
    is_present: Bools | None = None

    def sizes(self) -> Int64s:
        """Bytes this field takes in each row, its tag included."""
        sizes = 1 + varint_sizes(self.values)
        return sizes if self.is_present is None else np.where(self.is_present, sizes, 0)


def varint_sizes(values: UInt64s) -> Int64s:
    """Bytes of each value as a varint: 7 bits a byte, at least one."""
    sizes = np.ones(len(values), dtype=np.int64)
    for n_bytes in range(1, _MAX_VARINT_BYTES):
        is_longer = values >= np.uint64(1) << np.uint64(7 * n_bytes)
        if not is_longer.any():
            break
        sizes += is_longer
    return sizes


def encode_rows(fields: list[Field]) -> bytes:
    """The rows one after another, each the fields in order."""
    sizes = [field.sizes() for field in fields]
    row_sizes = np.sum(sizes, axis=0)
    ends = np.cumsum(row_sizes)
    out = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    positions = ends - row_sizes
    for field, field_sizes in zip(fields, sizes, strict=True):
        _write_field(out, field, positions, field_sizes)
        positions = positions + field_sizes
    return out.tobytes()


def _write_field(out: npt.NDArray[np.uint8], field: Field, positions: Int64s, sizes: Int64s) -> None:
    rows = slice(None) if field.is_present is None else np.flatnonzero(field.is_present)
    values, positions, sizes = field.values[rows], positions[rows], sizes[rows] - 1
    out[positions] = field.tag
    for byte_index in range(int(sizes.max(initial=0))):
        if byte_index:
            has_byte = sizes > byte_index
            values, positions, sizes = values[has_byte], positions[has_byte], sizes[has_byte]
        low_bits = (values >> np.uint64(7 * byte_index)) & np.uint64(0x7F)
        out[positions + 1 + byte_index] = low_bits.astype(np.uint8) | np.where(
            sizes > byte_index + 1, 0x80, 0
        ).astype(np.uint8)


def varint(value: int) -> bytes:
    """One non-negative integer."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes) -> bytes:
    """A length-delimited field: a string, bytes or a message."""
    return varint(field << 3 | 2) + varint(len(data)) + data
