"""The bytes of a ProfileResponse → the spans of the profile in them, without copying it.

A reply may have gigabytes and come from any server at the address: its fields are walked by offset, each
length is checked against its container, and the number of fields read is limited.

    ProfileResponse   6 tool_data* {1 name, 2 data}   7 empty_trace   8 xspace
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_FIELDS = 10_000
MAX_TOOLS = 256
_XPLANE_NAMES = ("xplane.pb", "xplane")
_SIZES = {1: 8, 5: 4}
_HOSTNAMES, _MAX_HOST_BYTES = 4, 255  # XSpace: the hosts of its planes


class Malformed(ValueError):
    """Bytes that are not a message of the expected form."""


@dataclass(frozen=True)
class Reply:
    """The concatenated `pieces` are the XSpace (none: the server did not return it); `is_empty`: it has no
    events.
    """

    pieces: tuple[memoryview, ...]
    is_empty: bool

    @property
    def size_bytes(self) -> int:
        """Size of the profile."""
        return sum(len(piece) for piece in self.pieces)

    @property
    def host(self) -> str:
        """The host that the profile names first; empty if it names none. Raises Malformed."""
        for piece in self.pieces:
            for number, kind, start, stop in fields(piece, 0, len(piece)):
                if number == _HOSTNAMES and kind == 2 and start < stop <= start + _MAX_HOST_BYTES:
                    return bytes(piece[start:stop]).decode("utf-8", "replace")
        return ""


def read_reply(data: bytes | memoryview) -> Reply:
    """The profile in a reply. Raises Malformed. The pieces are views of `data`."""
    view = memoryview(data)
    pieces: list[memoryview] = []
    tools: list[memoryview] = []
    is_empty = False
    for number, kind, start, stop in fields(view, 0, len(view)):
        if number == 8 and kind == 2:
            # A repeated message field is merged, which is equivalent to joining its bytes.
            pieces.append(view[start:stop])
        elif number == 7 and kind == 0:
            is_empty = _varint(view, start, stop)[0] != 0
        elif number == 6 and kind == 2 and len(tools) < MAX_TOOLS:
            tools += _xplane_of(view, start, stop)
    profile_pieces = tuple(pieces) or tuple(tools[:1])
    if profile_pieces:
        is_empty = is_empty or not _has_events(profile_pieces)
    return Reply(profile_pieces, is_empty)


def fields(view: memoryview, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, start, stop) of each field's content. Raises Malformed, also for more than
    MAX_FIELDS.
    """
    n = 0
    while position < end:
        n += 1
        if n > MAX_FIELDS:
            raise Malformed(f"more than {MAX_FIELDS} fields")
        tag, start = _varint(view, position, end)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            stop = _varint(view, start, end)[1]
        elif kind == 2:
            size, start = _varint(view, start, end)
            stop = start + size
        elif kind in _SIZES:
            stop = start + _SIZES[kind]
        else:
            raise Malformed(f"wire type {kind} at byte {position}")
        if stop > end or not number:
            raise Malformed(
                f"a field exceeds the message at byte {position}"
                if number
                else f"field number 0 at byte {position}"
            )
        yield number, kind, start, stop
        position = stop


def _varint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise Malformed(f"it is cut off at byte {position}")
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Malformed(f"an endless number at byte {position}")


def _xplane_of(view: memoryview, start: int, stop: int) -> list[memoryview]:
    """The data of one tool's entry if it is a trace: older servers return it this way."""
    name, data = b"", None
    for number, kind, begin, end in fields(view, start, stop):
        if number == 1 and kind == 2:
            name = bytes(view[begin : min(end, begin + 1024)])
        elif number == 2 and kind == 2:
            data = view[begin:end]
    return [data] if data is not None and name.decode("utf-8", "replace").endswith(_XPLANE_NAMES) else []


def _has_events(pieces: tuple[memoryview, ...]) -> bool:
    """Whether an XSpace has an event (planes 1, their lines 3, their events 4); also checks that it is an
    XSpace.

    Reads only the planes before the first event. A plane with more than MAX_FIELDS fields counts as having
    events.
    """
    has_events = False
    for piece in pieces:
        for number, kind, start, stop in fields(piece, 0, len(piece)):
            if number == 1 and kind != 2:
                raise Malformed("its planes are not messages")
            if number == 1 and not has_events:
                has_events = _plane_has_events(piece, start, stop)
    return has_events


def _plane_has_events(view: memoryview, start: int, stop: int) -> bool:
    for n, (number, kind, begin, end) in enumerate(fields(view, start, stop)):
        if n == MAX_FIELDS - 1:
            return True
        if number == 3 and kind == 2 and any(inner == 4 for inner, *_ in fields(view, begin, end)):
            return True
    return False
