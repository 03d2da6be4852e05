"""TensorFlow graphs, SavedModels and event files for tests, written field by field: no TensorFlow, no code of
the package.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

FLOAT, DOUBLE, INT32, STRING, RESOURCE = 1, 2, 3, 7, 20


def varint(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def field(number: int, value: bytes | str | int) -> bytes:
    """A field of a message: bytes and text with their length, numbers as varints."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(key: str, value: bytes) -> bytes:
    return field(5, field(1, key) + field(2, value))


def node(
    op: str,
    name: str = "",
    *,
    device: str = "",
    calls: Sequence[str] = (),
    marks: Sequence[str] = (),
    **types: int | Sequence[int],
) -> bytes:
    """A NodeDef. `types` are its attributes that are a type or a list of types, `calls` functions that it
    names, `marks` texts.
    """
    data = field(1, name or op) + field(2, op) + (field(4, device) if device else b"")
    for key, value in types.items():
        packed = (
            field(6, value) if isinstance(value, int) else field(1, field(6, b"".join(map(varint, value))))
        )
        data += attribute(key, packed)
    for i, function in enumerate(calls):
        data += attribute(f"f{i}", field(10, field(1, function)))
    for mark in marks:
        data += attribute(mark, field(2, "0"))
    return data


def graph_def(nodes: Sequence[bytes], functions: dict[str, Sequence[bytes]] | None = None) -> bytes:
    library = b"".join(
        field(1, field(1, field(1, name)) + b"".join(field(3, inner) for inner in body))
        for name, body in (functions or {}).items()
    )
    return b"".join(field(1, one) for one in nodes) + (field(2, library) if functions else b"")


def saved_model(graph: bytes, tags: Sequence[str] = ("serve",)) -> bytes:
    meta = field(1, b"".join(field(4, tag) for tag in tags))
    return field(1, 1) + field(2, meta + field(2, graph))


def crc32c(data: bytes) -> int:
    """Bit by bit, as the standard says."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def event_file(*events: bytes) -> bytes:
    return b"".join(record(one) for one in (field(3, "brain.Event:2"), *events))
