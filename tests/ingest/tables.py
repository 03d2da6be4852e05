"""LevelDB tables for tests: a writer with blocks, checksums and Snappy, and a reader in plain Python that
shares nothing with the project.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from tests.ingest.hlo_protos import varint

MAGIC = bytes.fromhex("57fb808b247547db")
Entry = tuple[bytes, bytes]


def plain_crc32c(data: bytes) -> int:
    """CRC-32C, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A checksum as tables store it."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def block_of(entries: Sequence[Entry], restart_every: int = 4) -> bytes:
    """The bytes of a block: keys share prefixes, except at restart points."""
    out, restarts, last = bytearray(), [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % restart_every == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def snappy(data: bytes) -> bytes:
    """Snappy: literals, and copies of the longest part that starts with the same four bytes, also
    overlapping.
    """
    out, literal, position = bytearray(varint(len(data))), bytearray(), 0
    seen: dict[bytes, int] = {}

    def flush() -> None:
        while literal:
            part = bytes(literal[:100])
            del literal[:100]
            size = len(part) - 1
            out.extend(bytes([size << 2]) if size < 60 else bytes([60 << 2, size]))
            out.extend(part)

    while position < len(data):
        start = seen.get(data[position : position + 4], -1)
        seen[data[position : position + 4]] = position
        n = 0
        if start >= 0 and position - start < 65536:
            while n < 64 and position + n < len(data) and data[start + n] == data[position + n]:
                n += 1
        if n >= 4:
            flush()
            back = position - start
            if n < 12 and back < 2048:
                out.extend([back >> 8 << 5 | n - 4 << 2 | 1, back & 255])
            else:
                out.extend([n - 1 << 2 | 2, back & 255, back >> 8])
            position += n
        else:
            literal.append(data[position])
            position += 1
    flush()
    return bytes(out)


def stored(block: bytes, is_packed: bool) -> bytes:
    """A block with its trailer."""
    content = (snappy(block) if is_packed else block) + bytes([is_packed])
    return content + struct.pack("<I", masked(plain_crc32c(content)))


def table_of(entries: Sequence[Entry], is_packed: bool = True, per_block: int = 7) -> bytes:
    """A whole table; the index names each block by its last key."""
    out, index = bytearray(), []
    for first in range(0, len(entries), per_block):
        part = entries[first : first + per_block]
        data = stored(block_of(part), is_packed)
        index.append((part[-1][0], varint(len(out)) + varint(len(data) - 5)))
        out += data
    return finished(bytes(out), index)


def finished(blocks: bytes, index: Sequence[Entry]) -> bytes:
    """Blocks with an index and a footer."""
    meta, listed = stored(block_of([]), False), stored(block_of(index, 1), False)
    footer = varint(len(blocks)) + varint(len(meta) - 5)
    footer += varint(len(blocks) + len(meta)) + varint(len(listed) - 5)
    return blocks + meta + listed + footer.ljust(40, b"\0") + MAGIC


def plain_varint(data: bytes, offset: int) -> tuple[int, int]:
    """(number, offset after it)."""
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, offset


def plain_block(data: bytes, start: int, size: int) -> list[Entry]:
    """The entries of a block of a table."""
    content = data[start : start + size]
    if data[start + size] == 1:
        content = plain_unsnap(content)
    (n_restarts,) = struct.unpack("<I", content[-4:])
    end, offset, key, entries = len(content) - 4 - 4 * n_restarts, 0, b"", []
    while offset < end:
        shared, offset = plain_varint(content, offset)
        added, offset = plain_varint(content, offset)
        value, offset = plain_varint(content, offset)
        key = key[:shared] + content[offset : offset + added]
        offset += added
        entries.append((key, content[offset : offset + value]))
        offset += value
    return entries


def plain_table(data: bytes) -> Iterator[Entry]:
    """All entries of a table, read in the plainest way."""
    numbers, offset = [], 0
    for _ in range(4):
        number, offset = plain_varint(data[-48:], offset)
        numbers.append(number)
    for _, place in plain_block(data, numbers[2], numbers[3]):
        start, used = plain_varint(place, 0)
        yield from plain_block(data, start, plain_varint(place, used)[0])


def plain_unsnap(data: bytes) -> bytes:
    """Snappy's inverse, a byte at a time."""
    position = next(i for i, byte in enumerate(data) if byte < 128) + 1
    out = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                n = size - 60
                size = int.from_bytes(data[position : position + n], "little") + 1
                position += n
            out += data[position : position + size]
            position += size
            continue
        n = (1, 2, 4)[(tag & 3) - 1]
        back = int.from_bytes(data[position : position + n], "little")
        position += n
        size = (tag >> 2) + 1
        if n == 1:
            back, size = back | tag >> 5 << 8, (tag >> 2 & 7) + 4
        for _ in range(size):
            out.append(out[-back])
    return bytes(out)


def mended_table(data: bytes) -> bytes:
    """A damaged table with the checksums that its blocks ought to have, as far as its index names them."""
    out = bytearray(data)

    def mend(start: int, size: int) -> None:
        if 0 <= start <= start + size + 5 <= len(out):
            crc = masked(plain_crc32c(bytes(out[start : start + size + 1])))
            out[start + size + 1 : start + size + 5] = struct.pack("<I", crc)

    try:
        numbers, offset = [], 0
        for _ in range(4):
            number, offset = plain_varint(data[-48:], offset)
            numbers.append(number)
        mend(numbers[2], numbers[3])
        for _, place in plain_block(bytes(out), numbers[2], numbers[3]):
            start, used = plain_varint(place, 0)
            mend(start, plain_varint(place, used)[0])
    except (IndexError, struct.error, StopIteration):
        pass
    return bytes(out)
