"""Fields of small protobuf messages that stats hold, without descriptors. Malformed bytes end the reading of
what encloses them.
"""

from __future__ import annotations

from tb_tpuprof.trace.wire import read_fields


def number_field(data: bytes, wanted: int) -> int:
    """The last varint of one number, 0 (protobuf's default) if there is none."""
    found = [
        value
        for number, wire, value in read_fields(data)
        if number == wanted and wire == 0 and isinstance(value, int)
    ]
    return (found or [0])[-1]
