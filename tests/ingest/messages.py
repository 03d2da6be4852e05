"""Protobuf messages written field by field, with doubles and fixed numbers."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from tests.ingest.hlo_protos import varint


class Fixed(NamedTuple):
    """A fixed64."""

    value: int


def written(*fields: tuple[int, Any]) -> bytes:
    """(number, value) pairs: whole numbers become varints, floats doubles, texts and bytes themselves."""
    parts: list[bytes] = []
    for number, value in fields:
        if isinstance(value, float):
            parts += [varint(number << 3 | 1), struct.pack("<d", value)]
        elif isinstance(value, Fixed):
            parts += [varint(number << 3 | 1), struct.pack("<Q", value.value)]
        elif isinstance(value, int):
            parts += [varint(number << 3), varint(value)]
        else:
            data = value.encode() if isinstance(value, str) else value
            parts += [varint(number << 3 | 2), varint(len(data)), data]
    return b"".join(parts)
