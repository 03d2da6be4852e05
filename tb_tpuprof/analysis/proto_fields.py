"""Fields of small protobuf messages that stats hold, without descriptors. Malformed bytes end the reading of what encloses them."""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Varint and length-delimited fields as (number, value); others are skipped."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                return
            yield tag >> 3, data[at : at + size]
            at += size
        elif wire == 0:
            value, at = _varint(data, at)
            if at > end:
                return
            yield tag >> 3, value
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            return


def messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """The length-delimited fields of one number."""
    return (value for number, value in fields(data) if number == wanted and isinstance(value, bytes))


def number_field(data: bytes, wanted: int) -> int:
    """The last varint of one number, 0 (protobuf's default) if there is none."""
    return ([value for number, value in fields(data) if number == wanted and isinstance(value, int)] or [0])[-1]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, len(data) + 1
