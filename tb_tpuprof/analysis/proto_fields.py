"""Fields of small protobuf messages that stats hold, without descriptors. Malformed bytes end the reading of what encloses them."""

from __future__ import annotations

from collections.abc import Iterator

from tb_tpuprof.trace.wire import read_fields


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Varint and length-delimited fields as (number, value); others are skipped."""
    return ((number, value) for number, wire, value in read_fields(data) if wire in (0, 2))


def messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """The length-delimited fields of one number."""
    return (value for number, value in fields(data) if number == wanted and isinstance(value, bytes))


def number_field(data: bytes, wanted: int) -> int:
    """The last varint of one number, 0 (protobuf's default) if there is none."""
    return ([value for number, value in fields(data) if number == wanted and isinstance(value, int)] or [0])[-1]
