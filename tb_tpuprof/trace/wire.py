"""Protobuf wire format in plain Python, for single small messages: one event's stats, one program's HLO."""

from __future__ import annotations


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The varint at `position` and the position after it. Raises ValueError if it is cut off."""
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
        shift += 7
    raise ValueError("a number is cut off")


def read_fields(data: bytes) -> list[tuple[int, int, int | bytes]]:
    """Fields of a small message as (number, wire type, value), up to the first malformed one."""
    fields: list[tuple[int, int, int | bytes]] = []
    position = 0
    sizes = {1: 8, 5: 4}
    try:
        while position < len(data):
            tag, position = read_varint(data, position)
            wire = tag & 7
            if wire == 0:
                value, position = read_varint(data, position)
                fields.append((tag >> 3, wire, value))
                continue
            size = sizes.get(wire, 0)
            if wire == 2:
                size, position = read_varint(data, position)
            elif not size:
                break
            if position + size > len(data):
                break
            fields.append((tag >> 3, wire, data[position : position + size]))
            position += size
    except ValueError:
        pass
    return fields
