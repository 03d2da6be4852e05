"""Reads fields of small protobuf messages in stats, without descriptors. Malformed bytes end the reading of
the enclosing message.
"""

from __future__ import annotations

from tb_tpuprof.trace.wire import read_fields


def number_field(data: bytes, field: int) -> int:
    """The last varint with the field number `field`, 0 (protobuf's default) if there is none."""
    values = [
        value
        for number, wire, value in read_fields(data)
        if number == field and wire == 0 and isinstance(value, int)
    ]
    return (values or [0])[-1]
