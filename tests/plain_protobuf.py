"""Fields of a protobuf message, read in the plainest way: what tests count files with, and nothing of this
project.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def plain_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field: varints as numbers, the rest as bytes. Nothing is checked."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint() if key & 7 == 2 else 8 if key & 7 == 1 else 4
            yield key >> 3, data[at : at + size]
            at += size
