"""A large XSpace file → its bytes without those that an outline never looks at: the lines of planes, and what large stats hold.

The array is as long as the file, so that every position is the file's own; what was left out is unread memory, which takes none. The
walk goes forward through the file in windows. It hops over what is large and not needed, and goes into what is large and holds more:

    XSpace ─ 1 plane ─ 4 entry ─ 2 metadata ─ 5 stat ─ 6 bytes (a program's HLO): hopped over
                    └ 3 line: hopped over

Damage is the decoder's to find: the walk ends at it, with the bytes that show it read.
"""

from __future__ import annotations

import os
from enum import Enum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.files import FileState, fill, is_url, read_range, storage_errors
from tb_tpuprof.native import fields
from tb_tpuprof.trace.wire import read_varint

LARGE_BYTES = 4 * 2**20  # below this all of it is read as fast
_PLANE_TAG = b"\x0a"
WINDOW_BYTES = 256 * 2**10
_MOST_HEADER_BYTES = 20  # a tag and a size
_DELIMITED = 2


class _Level(Enum):
    """What a message is, by its place: the fields that are gone into when they are large, and those that are hopped over."""

    SPACE = "space"
    PLANE = "plane"
    ENTRY = "entry"
    METADATA = "metadata"
    STAT = "stat"


_ENTERED = {
    (_Level.SPACE, 1): _Level.PLANE,
    (_Level.PLANE, 4): _Level.ENTRY,
    (_Level.ENTRY, 2): _Level.METADATA,
    (_Level.METADATA, 5): _Level.STAT,
}
_HOPPED = {(_Level.PLANE, 3), (_Level.STAT, 6)}


def reads_in_part(state: FileState) -> bool:
    """Whether a file is large, local, and begins as an XSpace does: neither packed nor JSON."""
    if is_url(state.path) or state.size_bytes < LARGE_BYTES or not hasattr(os, "preadv"):
        return False
    return read_range(state, 0, 1).tobytes() == _PLANE_TAG


def read_outline(path: str) -> npt.NDArray[np.uint8]:
    """The bytes of a plain local file that an outline needs, each in its place. Raises StorageError."""
    with storage_errors(path), open(path, "rb", buffering=0) as file:
        walk = _Walk(path, file.fileno(), os.fstat(file.fileno()).st_size)
        walk.go(0, len(walk.data), _Level.SPACE)
        return walk.data


def new_bytes(size: int) -> npt.NDArray[np.uint8]:
    """Memory that takes room only where it is written to."""
    return np.empty(size, np.uint8)


class _Walk:
    """`read_to`: up to where the file has been read without a gap from the last hop."""

    def __init__(self, path: str, file: int, size: int) -> None:
        self.path = path
        self.file = file
        self.data = new_bytes(size)
        self.read_to = 0

    def go(self, position: int, end: int, level: _Level) -> None:
        """Read one message, which lies between the positions."""
        while position < end:
            read_to = self._read(position, min(end, position + WINDOW_BYTES))
            _, bad = fields(self.data[:read_to], position, read_to)
            if bad < 0:
                position = read_to
                continue
            number, start, size = self._header(bad, end)
            if number < 0 or size > end - start:
                if read_to == end or bad == position:
                    return
                position = bad  # maybe only cut by the window
            elif size <= WINDOW_BYTES:
                self._read(bad, start + size)
                position = start + size
            else:
                self._large(start, size, level, number)
                position = start + size

    def _large(self, start: int, size: int, level: _Level, number: int) -> None:
        if (inner := _ENTERED.get((level, number))) is not None:
            self.go(start, start + size, inner)
        elif (level, number) not in _HOPPED:
            self._read(start, start + size)

    def _header(self, position: int, end: int) -> tuple[int, int, int]:
        """(field number, position, size) of the bytes whose header stands there; number -1 for every other field."""
        self._read(position, min(end, position + _MOST_HEADER_BYTES))
        head = self.data[position : min(end, position + _MOST_HEADER_BYTES)].tobytes()
        try:
            tag, at = read_varint(head, 0)
            size, at = read_varint(head, at)
        except (IndexError, ValueError):
            return -1, position, 0
        return (tag >> 3 if tag & 7 == _DELIMITED else -1), position + at, size

    def _read(self, position: int, end: int) -> int:
        """Have the bytes between the positions; returns up to where there are bytes now, at most a window more than asked for."""
        first = self.read_to if position <= self.read_to else position
        if end > first:
            last = min(len(self.data), max(end, first + WINDOW_BYTES))
            if not fill(self.file, self.data[first:last], first):
                raise StorageError(f"{self.path} became shorter while it was read.", "Wait until it is written, then reload the page.")
            self.read_to = last
        return end
