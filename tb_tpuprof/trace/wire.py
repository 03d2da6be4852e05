"""Protobuf wire format in plain Python, for single small messages: one event's stats, one program's HLO."""

from __future__ import annotations


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and the position behind it. Raises ValueError where it is cut off."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
    raise ValueError("a number is cut off")


def read_fields(data: bytes) -> list[tuple[int, int, int | bytes]]:
    """Fields of a small message as (number, wire type, value), up to where it is malformed."""
    found: list[tuple[int, int, int | bytes]] = []
    at = 0
    sizes = {1: 8, 5: 4}
    try:
        while at < len(data):
            tag, at = read_varint(data, at)
            wire = tag & 7
            if wire == 0:
                value, at = read_varint(data, at)
                found.append((tag >> 3, wire, value))
                continue
            size = sizes.get(wire, 0)
            if wire == 2:
                size, at = read_varint(data, at)
            elif not size:
                break
            if at + size > len(data):
                break
            found.append((tag >> 3, wire, data[at : at + size]))
            at += size
    except ValueError:
        pass
    return found
