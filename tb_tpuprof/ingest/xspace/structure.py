"""The kind of protobuf bytes by their structure: an XSpace, TensorFlow's older Trace, a Perfetto trace, or
HLO. Any of these parses as any other.

A plane has an id (a number), a name (a text) and messages, each in its field; ids and names are as a profiler
writes them, without control characters. A plane with a field of another kind, or with bytes for a name, is
evidence against an XSpace; a plane with correct content is evidence for one. Damage in some planes does not
affect others: one good plane makes the file an XSpace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.hlo.message import Message
from tb_tpuprof.native import fields
from tb_tpuprof.trace.wire import read_varint

Bytes = npt.NDArray[np.uint8]
_NUMBER, _DELIMITED = 0, 2
_PLANE = 1
_TEXTS = (2, 3, 4)  # of a space: errors, warnings, hostnames
_WIRE_OF = {1: _NUMBER, 2: _DELIMITED, 3: _DELIMITED, 4: _DELIMITED, 5: _DELIMITED, 6: _DELIMITED}
_NAME, _STAT = 2, 6
# Wire types of the fields of a line, of the entries of both maps, and of a stat. A later version may have
# other fields.
_PARTS = {
    3: {1: 0, 10: 0, 2: 2, 11: 2, 3: 0, 9: 0, 12: 0, 4: 2},
    4: {1: 0, 2: 2},
    5: {1: 0, 2: 2},
    6: {1: 0, 2: 1, 3: 0, 4: 0, 5: 2, 6: 2, 7: 0},
}
# Wire types in TensorFlow's Trace: the entry of a device, a device, an event.
_ENTRY, _DEVICE = {1: 0, 2: 2}, {1: 2, 2: 0, 3: 2}
_EVENT = {1: 0, 2: 0, 3: 2, 9: 0, 10: 0, 11: 2}
# Wire types in a packet of a Perfetto trace; the fields that make it one.
_PACKET = dict.fromkeys((6, 11, 12, 33, 36, 50, 59, 60, 89), 2)
_PACKET |= dict.fromkeys((8, 10, 13, 41, 58, 79, 87), 0)
_PACKET_SEQUENCE, _PACKET_CONTENT = 10, {8, 11, 60}
# Wire types in an HloProto's module (1 name, 2 entry, 3 computations, 5 program id) and in a computation
# (1 name, 2 instructions).
_MODULE, _COMPUTATION = {1: 2, 2: 2, 3: 2, 4: 2, 5: 0, 6: 0}, {1: 2, 2: 2, 4: 2}
_NOT_NAME = re.compile(rb"[\x00-\x1f\x7f]")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_HEADER_BYTES, _MOST_PLANE_BYTES, _MOST_PLANE_READ = 20, 2**40, 2**20
_MOST_PLANES, _MOST_PARTS, _MOST_BYTES = 64, 16, 2**12


class _Evidence(Enum):
    AGAINST = -1
    NONE = 0
    FOR = 1


def is_xspace(data: Bytes, top: npt.NDArray[np.int64]) -> bool:
    """Whether a message with these top-level fields (rows of number, wire type, position, size) is an XSpace.

    Planes without any content, or messages without planes, count as an XSpace: a profiler that recorded
    nothing, or failed, writes such files.
    """
    if not (np.isin(top[:, 0], (_PLANE, *_TEXTS)) & (top[:, 1] == _DELIMITED)).any():
        return False
    planes = top[(top[:, 0] == _PLANE) & (top[:, 1] == _DELIMITED)]
    evidence = [
        _plane_evidence(data, int(start), int(size)) for start, size in planes[:_MOST_PLANES, 2:].tolist()
    ]
    if _Evidence.FOR in evidence:
        return True
    is_space_field = np.isin(top[:, 0], (_PLANE, *_TEXTS)) & (top[:, 1] == _DELIMITED)
    if (not len(planes) and not is_space_field.all()) or (~is_space_field & (top[:, 0] <= max(_TEXTS))).any():
        return False
    texts = top[np.isin(top[:, 0], _TEXTS) & (top[:, 1] == _DELIMITED)][:_MOST_PLANES, 2:].tolist()
    return _Evidence.AGAINST not in evidence and all(_is_text(data, start, size) for start, size in texts)


def begins_as_xspace(data: Bytes) -> bool:
    """Whether a file without a single whole field starts with a plane of an XSpace: then it is cut off."""
    head = data[:_MOST_HEADER_BYTES].tobytes()
    try:
        tag, offset = read_varint(head, 0)
        size, offset = read_varint(head, offset)
    except ValueError:
        return False
    if tag != _PLANE << 3 | _DELIMITED or size > _MOST_PLANE_BYTES:
        return False
    return _plane_evidence(data, offset, len(data) - offset) is _Evidence.FOR


def is_trace_events(data: Bytes, top: npt.NDArray[np.int64]) -> bool:
    """Whether these top-level fields are those of TensorFlow's Trace: named devices (1), and events (4) if
    any.
    """
    if not len(top) or not np.isin(top[:, 0], (1, 4)).all() or (top[:, 1] != _DELIMITED).any():
        return False
    entries, events = (top[top[:, 0] == number][:_MOST_PLANES, 2:].tolist() for number in (1, 4))
    devices = [Message(data, *span).span(2) for span in entries]
    names = [Message(data, *span).span(1) for span in devices]
    if not all(size and _is_text(data, start, size) for start, size in names):
        return False
    fits = [_fits(data, span, _ENTRY) for span in entries] + [_fits(data, span, _DEVICE) for span in devices]
    return (
        all(fits)
        and bool(entries or events)
        and (not events or any(_fits(data, span, _EVENT) for span in events))
    )


def is_track_events(data: Bytes, top: npt.NDArray[np.int64]) -> bool:
    """Whether these top-level fields are packets of a Perfetto trace: all fields of a known number have its
    wire type, and at least one packet is from a sequence and has a time, an event or a track's description.
    """
    if not len(top) or (top[:, 0] != 1).any() or (top[:, 1] != _DELIMITED).any():
        return False
    packets = top[:_MOST_PLANES, 2:].tolist()
    wires = [
        {int(number): int(wire) for number, wire, *_ in fields(data, start, start + size)[0].tolist()}
        for start, size in packets
    ]
    if any(_PACKET.get(number, wire) != wire for packet in wires for number, wire in packet.items()):
        return False
    return any(_PACKET_SEQUENCE in packet and _PACKET_CONTENT & set(packet) for packet in wires)


def is_hlo(data: Bytes, top: npt.NDArray[np.int64]) -> bool:
    """Whether these top-level fields are those of an HloProto: a named module with computations."""
    first = top[(top[:, 0] == 1) & (top[:, 1] == _DELIMITED), 2:].tolist()
    if len(first) != 1 or not _fits(data, first[0], _MODULE):
        return False
    module = Message(data, *first[0])
    name, computations = module.span(1), module.spans(3)
    is_named = bool(name[1]) and _is_text(data, *name)
    return (
        is_named
        and bool(computations)
        and all(_fits(data, span, _COMPUTATION) for span in computations[:_MOST_PARTS])
    )


def _fits(data: Bytes, span: Sequence[int], wires: Mapping[int, int]) -> bool:
    """Whether a message is whole and each of its fields has the wire type that `wires` has for its number, if
    any.
    """
    start, size = span
    rows, bad = fields(data, start, start + size)
    return bad < 0 and all(wires.get(number, wire) == wire for number, wire in rows[:256, :2].tolist())


def _plane_evidence(data: Bytes, start: int, size: int) -> _Evidence:
    rows, bad = fields(data, start, start + min(size, _MOST_PLANE_READ))
    bad = bad if size <= _MOST_PLANE_READ else -1
    plane_fields = rows[(rows[:, 0] >= 1) & (rows[:, 0] <= _STAT)]
    if not len(plane_fields):
        return _Evidence.NONE if not size else _Evidence.AGAINST
    numbers, wires = plane_fields[:, 0], plane_fields[:, 1]
    if any((wires[numbers == number] != wire).any() for number, wire in _WIRE_OF.items()):
        return _Evidence.AGAINST
    names = plane_fields[numbers == _NAME, 2:].tolist()
    if not all(_is_text(data, position, length, _NOT_NAME) for position, length in names):
        return _Evidence.AGAINST
    parts = plane_fields[numbers > _NAME][:_MOST_PARTS].tolist()
    if not all(_is_part(data, number, position, length) for number, _, position, length in parts):
        return _Evidence.AGAINST
    has_name = any(length for _, length in names)
    return _Evidence.FOR if has_name or (bad < 0 and any(length for *_, length in parts)) else _Evidence.NONE


def _is_part(data: Bytes, number: int, start: int, size: int) -> bool:
    """Whether the fields of a line, of metadata or of a stat have their wire types. Reads only the start of
    large ones.
    """
    rows, _ = fields(data, start, min(start + size, start + _MOST_BYTES))
    return all(_PARTS[number].get(field, wire) == wire for field, wire in rows[:_MOST_PARTS, :2].tolist())


def _is_text(data: Bytes, start: int, size: int, forbidden: re.Pattern[bytes] = _NOT_TEXT) -> bool:
    return not forbidden.search(data[start : start + min(size, _MOST_BYTES)].tobytes())
