"""A file that ends too early → its intact part as a shorter XSpace.

plane ┤ line ├┤ line ├┤ event ├┤ ev       the lengths of the last plane and of its last line are shortened, so
                               ↑ cut      that both end with the last whole event

Nothing moves: a shorter length is written in as many bytes as the old one, so file offsets stay valid. What
follows within the cut plane is missing, usually the names of its events, because profilers write these last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import fields
from tb_tpuprof.trace.wire import read_varint
from tb_tpuprof.units import format_bytes, format_fraction

Bytes = npt.NDArray[np.uint8]
_SPACE_FIELDS, _PLANE, _LINE, _DELIMITED = (1, 2, 3, 4), 1, 3, 2
_TAGS = tuple(number << 3 | _DELIMITED for number in _SPACE_FIELDS)
_MOST_HEADER_BYTES, _MOST_LENGTH_BYTES = 20, 10
_MOST_MISSING_BYTES = 2**40  # a longer field is damage, not a cut


class Intact(NamedTuple):
    """The intact part of a file, and how many bytes the file lacks at least. `lacks_names`: it ends within a
    plane, whose names come last.
    """

    data: Bytes
    n_missing: int
    lacks_names: bool = False

    @property
    def damage(self) -> str:
        """What is missing, in words."""
        n_whole = len(self.data) + self.n_missing
        share = format_fraction(self.n_missing / n_whole)
        names = ", with the names of the last events" if self.lacks_names else ""
        return (
            f"the file is cut off: at least {format_bytes(self.n_missing)} of it ({share}) are missing{names}"
        )


class _Header(NamedTuple):
    """A field's number, where the bytes of its length and of its content begin, and that length."""

    number: int
    length_at: int
    start: int
    size: int


def intact_part(data: Bytes) -> Intact | None:
    """The intact part of an XSpace that ends within one of its fields; None for any other bytes."""
    _, cut = fields(data, 0, len(data))
    if cut < 0:
        return None
    header = _header(data, cut)
    if header is None:  # the cut is within the header
        is_short = cut and len(data) - cut < _MOST_LENGTH_BYTES and int(data[cut]) in _TAGS
        return Intact(data[:cut], 1) if is_short else None
    if header.number not in _SPACE_FIELDS:
        return None
    n_missing = header.start + header.size - len(data)
    if not 0 < n_missing <= _MOST_MISSING_BYTES:
        return None
    if header.number != _PLANE:
        return Intact(data[:cut], n_missing) if cut else None
    patched = data.copy()
    return Intact(patched[: _intact_end(data, header, patched)], n_missing, lacks_names=True)


def _intact_end(data: Bytes, plane: _Header, patched: Bytes) -> int:
    """Where the cut plane now ends; writes the lengths of the plane and of its cut line into `patched`."""
    _, cut = fields(data, plane.start, len(data))
    end = len(data) if cut < 0 else cut
    line = _header(data, cut) if cut >= 0 else None
    if line is not None and line.number == _LINE and line.start < len(data) < line.start + line.size:
        _, cut_event = fields(data, line.start, len(data))
        end = len(data) if cut_event < 0 else cut_event
        _write_length(patched, line, end - line.start)
    _write_length(patched, plane, end - plane.start)
    return end


def _header(data: Bytes, position: int) -> _Header | None:
    """The header of a field with a length; None if it is cut off or damaged."""
    head = data[position : position + _MOST_HEADER_BYTES].tobytes()
    try:
        tag, n_tag = read_varint(head, 0)
        size, n_header = read_varint(head, n_tag)
    except (IndexError, ValueError):
        return None
    return _Header(tag >> 3, position + n_tag, position + n_header, size) if tag & 7 == _DELIMITED else None


def _write_length(data: Bytes, field: _Header, size: int) -> None:
    """Write a length in as many bytes as the field's own: continuation bits pad it."""
    n_bytes = field.start - field.length_at
    for i in range(n_bytes):
        data[field.length_at + i] = (size >> 7 * i & 0x7F) | (0x80 if i < n_bytes - 1 else 0)
