"""Files of records as TensorFlow writes them (TFRecord) -> positions of the records, with their checksums.

    length (8 bytes) | checksum of these 8 bytes (4) | data | checksum of the data (4)        little-endian

A checksum is CRC-32C, rotated right by 15 bits plus a constant, so that checksums of data with embedded
checksums stay useful.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_FRAME_BYTES = 16
_MAX_LANES = 1 << 16


@cache
def _table() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@cache
def _zeros(n_bytes_log2: int) -> tuple[Words, Words, Words, Words]:
    """The effect of 2^n zero bytes on a register, as four tables (one per byte of the register) of 256
    entries.
    """
    byte = np.arange(256, dtype=np.uint32)
    if n_bytes_log2 == 0:
        bytes_in_place = [byte << np.uint32(8 * k) for k in range(4)]
        first, second, third, fourth = (
            _table()[value & 0xFF] ^ (value >> np.uint32(8)) for value in bytes_in_place
        )
        return first, second, third, fourth
    half = _zeros(n_bytes_log2 - 1)
    first, second, third, fourth = (_apply(half, table) for table in half)
    return first, second, third, fourth


def _apply(tables: tuple[Words, Words, Words, Words], value: Words) -> Words:
    result: Words = (
        tables[0][value & 0xFF]
        ^ tables[1][value >> 8 & 0xFF]
        ^ tables[2][value >> 16 & 0xFF]
        ^ tables[3][value >> 24]
    )
    return result


def _raw(rows: Bytes) -> Words:
    """The register after each row of bytes, starting from zero."""
    register = np.zeros(len(rows), np.uint32)
    table = _table()
    for column in np.ascontiguousarray(rows.T):
        register = table[(register ^ column) & 0xFF] ^ (register >> np.uint32(8))
    return register


def _after_zeros(register: Words, n_bytes: int) -> Words:
    """The register after n_bytes more zero bytes."""
    for bit in range(n_bytes.bit_length()):
        if n_bytes >> bit & 1:
            register = _apply(_zeros(bit), register)
    return register


def crc32c(data: Bytes) -> int:
    """CRC-32C of bytes. Cuts them into lanes, computes the lanes together, then combines their results."""
    n_lanes, row = 1, max(len(data), 1)
    while row > n_lanes and n_lanes < _MAX_LANES:
        n_lanes *= 2
        row = -(-len(data) // n_lanes)
    # Leading zero bytes do not change a register of zero.
    padded = np.zeros(n_lanes * row, np.uint8)
    padded[len(padded) - len(data) :] = data
    registers = _raw(padded.reshape(n_lanes, row))
    while len(registers) > 1:
        registers = _after_zeros(registers[0::2], row) ^ registers[1::2]
        row *= 2
    # The real register starts with all ones.
    start = _after_zeros(np.array([0xFFFFFFFF], np.uint32), len(data))
    return int(registers[0] ^ start[0]) ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A checksum as files store it."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def record_spans(data: Bytes) -> tuple[Ints, Ints, str]:
    """(positions, sizes, description of the damage) of records, up to the first damaged one. A last record
    that is still being written is not damage.
    """
    blob, position, starts, sizes = np.ascontiguousarray(data).data, 0, [], []
    damage = ""
    while position + 12 <= len(blob):
        (size,) = struct.unpack_from("<Q", blob, position)
        if size > len(blob) - position - _FRAME_BYTES:
            if not _length_matches(data, position):
                damage = f"a record's length is damaged at byte {position}"
            break
        starts.append(position + 12)
        sizes.append(size)
        position += size + _FRAME_BYTES
    positions, lengths = np.array(starts, np.int64), np.array(sizes, np.int64)
    bad = _bad_lengths(data, positions)
    if len(bad):
        first = int(bad[0])
        damage = f"a record's length is damaged at byte {int(positions[first]) - 12}"
        positions, lengths = positions[:first], lengths[:first]
    return positions, lengths, damage


def _bad_lengths(data: Bytes, positions: Ints) -> Ints:
    """Indexes of the records whose length does not match its checksum."""
    if not len(positions):
        return np.empty(0, np.int64)
    heads = data[(positions - 12)[:, None] + np.arange(12)]
    start = _after_zeros(np.array([0xFFFFFFFF], np.uint32), 8)[0]
    crc = (_raw(heads[:, :8]) ^ start ^ np.uint32(0xFFFFFFFF)).astype(np.uint64)
    expected = (((crc >> np.uint64(15)) | (crc << np.uint64(17))) + np.uint64(_MASK_DELTA)) & np.uint64(
        0xFFFFFFFF
    )
    stored = np.ascontiguousarray(heads[:, 8:]).view("<u4")[:, 0]
    return np.flatnonzero(expected != stored.astype(np.uint64))


def _length_matches(data: Bytes, position: int) -> bool:
    (stored,) = struct.unpack("<I", data[position + 8 : position + 12].tobytes())
    return masked(crc32c(data[position : position + 8])) == int(stored)


def matches_checksum(data: Bytes, start: int, size: int) -> bool:
    """Whether a record's data matches its checksum."""
    (stored,) = struct.unpack("<I", data[start + size : start + size + 4].tobytes())
    return masked(crc32c(data[start : start + size])) == int(stored)
