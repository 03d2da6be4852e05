"""A large XSpace file → its bytes without the large lines of planes and without large payloads of stats.

The array is as long as the file, so every offset is the file's own; skipped parts are untouched memory, which
takes no space. The walk goes forward through the file in windows. It skips large payloads, and descends into
large messages that contain other parts:

    XSpace ─ 1 plane ─ 4 entry ─ 2 metadata ─ 5 stat ─ 6 bytes (a program's HLO): skipped
                    └ 3 line: skipped

An outline reads neither the lines nor the metadata of events of planes without programs: runs of such entries
pass through a reused buffer, and all but the first become one entry that nobody reads. The lines of a whole
trace are read piece by piece through `window`, into such a buffer too: the file as a whole is never in
memory, and reused memory is many times faster than fresh memory.

Damage is left to the decoder: the walk ends there, with the damaged bytes read.
"""

from __future__ import annotations

import os
from enum import Enum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.storage.files import (
    FileBytes,
    FileState,
    WindowBuffer,
    fill,
    is_chrome_trace,
    is_url,
    read_range,
    storage_errors,
)
from tb_tpuprof.ingest.storage.programs import STATS
from tb_tpuprof.native import fields, parts, spans
from tb_tpuprof.native.memory import HUGE_PAGE, on_huge_pages, sparse_bytes
from tb_tpuprof.trace.wire import read_varint

LARGE_BYTES = 4 * 2**20  # smaller files are read just as fast as a whole
_PLANE_TAG = b"\x0a"
WINDOW_BYTES = 256 * 2**10
_MOST_HEADER_BYTES = 20  # a tag and a size
_DELIMITED = 2
_MESSAGE = _NAME = 2  # of an entry, and of metadata


class _Level(Enum):
    """Kinds of messages, by their position in the file; _ENTERED lists the fields that the walk enters if
    they are large.
    """

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
_LINE, _BLOB = (_Level.PLANE, 3), (_Level.STAT, 6)
_ENTRY, _STAT_NAME = 4, 5
_SKIP_HEADER = b"\x22\x80\x80\x80\x80\x00"  # the header of an entry, with space for its size


def reads_in_part(state: FileState) -> bool:
    """Whether a file is large, local, and starts like an XSpace: neither gzipped nor JSON."""
    if is_url(state.path) or state.size_bytes < LARGE_BYTES or not hasattr(os, "preadv"):
        return False
    head = read_range(state, 0, 4096)
    return head[:1].tobytes() == _PLANE_TAG and not is_chrome_trace(head)


class PartialFile(FileBytes):
    """A plain local file; `data` has all of it except for large lines and large stats. Raises
    StorageError.
    """

    def __init__(self, path: str, is_outline: bool = False) -> None:
        self.path = path
        with storage_errors(path):
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (open for as long as windows are read)
            walk = _Walk(path, self._file.fileno(), os.fstat(self._file.fileno()).st_size, is_outline)
            walk.go(0, len(walk.data), _Level.SPACE)
        super().__init__(walk.data)
        self._skipped = np.array(walk.lines, np.int64)  # ascending: the walk goes forward

    def window(self, start: int, end: int, window_buffer: WindowBuffer) -> tuple[npt.NDArray[np.uint8], int]:
        """The bytes of a line from `start` to `end`, and the file offset of the array's first byte. Raises
        StorageError.
        """
        if not self._is_within_skipped(start):
            return self.data, 0
        memory = window_buffer.take(end - start)
        with storage_errors(self.path):
            if not fill(self._file.fileno(), memory, start):
                raise _became_shorter(self.path)
        return memory, start

    def lacks(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each message start, whether the message was skipped."""
        return np.isin(starts, self._skipped[:, 0]) if len(self._skipped) else np.zeros(len(starts), np.bool_)

    def release(self) -> None:
        """Drop the bytes and close the file."""
        super().release()
        self._file.close()

    def _is_within_skipped(self, position: int) -> bool:
        if not len(self._skipped):
            return False
        before = int(np.searchsorted(self._skipped[:, 0], position, side="right")) - 1
        return before >= 0 and position < int(self._skipped[before].sum())


def has_programs(data: npt.NDArray[np.uint8], start: int, size: int) -> bool:
    """Whether the plane has stats with the names of those that contain a program's HLO."""
    _, starts, sizes = parts(data, np.array([start]), np.array([size]), _STAT_NAME)
    for number in (_MESSAGE, _NAME):
        values, lengths, _, _ = spans(data, starts, sizes, np.array([number]))
        starts, sizes = values[:, 0], np.maximum(lengths[:, 0], 0)
    program_stats = {name.encode() for name in STATS}
    return any(
        data[a : a + n].tobytes() in program_stats
        for a, n in zip(starts.tolist(), sizes.tolist(), strict=True)
        if n <= _MOST_HEADER_BYTES
    )


def _became_shorter(path: str) -> StorageError:
    return StorageError(
        f"{path} became shorter while it was being read.",
        "Wait until it is fully written, then reload the page.",
    )


def new_bytes(size: int) -> npt.NDArray[np.uint8]:
    """Zeroed memory that takes space only where it is written to."""
    return sparse_bytes(size)


class _Walk:
    """`data` has been read without a gap from `read_from` to `read_to`; `lines` has position and size of the
    skipped lines.
    """

    def __init__(self, path: str, file: int, size: int, is_outline: bool) -> None:
        self.path = path
        self.file = file
        self.data = new_bytes(size)
        self.is_outline = is_outline
        self.read_from = self.read_to = 0
        self.huge_pages_to = 0
        self.window_buffer = WindowBuffer()
        self.lines: list[tuple[int, int]] = []

    def go(self, position: int, end: int, level: _Level, skips_entries: bool = False) -> None:
        """Read one message, which spans `position` to `end`."""
        while position < end:
            if skips_entries and (position := self._skip_entries(position, end)) >= end:
                return
            read_to = self._read(position, min(end, position + WINDOW_BYTES))
            _, bad = fields(self.data[:read_to], position, read_to)
            if bad < 0:
                position = read_to
                continue
            number, start, size = self._header(bad, end)
            if number < 0 or size > end - start:
                if read_to == end or bad == position:
                    return
                position = bad  # perhaps only cut off by the window
            elif size <= WINDOW_BYTES:
                self._read(bad, start + size)
                position = start + size
            else:
                self._large(start, size, level, number)
                position = start + size

    def _large(self, start: int, size: int, level: _Level, number: int) -> None:
        if (inner := _ENTERED.get((level, number))) is not None:
            n_lines, skips = len(self.lines), self.is_outline and inner is _Level.PLANE
            self.go(start, start + size, inner, skips)
            if skips and has_programs(self.data, start, size):
                del self.lines[n_lines:]
                self.read_from = self.read_to = start
                self.go(start, start + size, inner)
        elif (level, number) == _LINE:
            self.lines.append((start, size))
        elif (level, number) != _BLOB:
            self._read(start, start + size)

    def _skip_entries(self, position: int, end: int) -> int:
        """Replace each window's entries by one entry; returns the position of the first field that is not an
        entry, or is large.
        """
        while position < end:
            window = self.window_buffer.take(min(end - position, WINDOW_BYTES))
            if not fill(self.file, window, position):
                raise _became_shorter(self.path)
            rows, _ = fields(window, 0, len(window))
            is_other = np.append((rows[:, 0] != _ENTRY) | (rows[:, 1] != _DELIMITED), True)
            n_entries = int(is_other.argmax())
            first, last = (int(rows[i, 2:].sum()) for i in (0, n_entries - 1)) if n_entries else (0, 0)
            if last - first < len(_SKIP_HEADER):
                return position
            replacement = np.append(window[:first], np.frombuffer(_SKIP_HEADER, np.uint8))
            size = last - first - len(_SKIP_HEADER)
            replacement[first + 1 :] |= np.array(
                [size >> 7 * i & 0x7F for i in range(len(_SKIP_HEADER) - 1)], np.uint8
            )
            self.data[position : position + len(replacement)] = replacement
            position += last
            if n_entries < len(rows):
                return position
        return position

    def _header(self, position: int, end: int) -> tuple[int, int, int]:
        """(field number, position, size) of the payload whose header is at `position`; number -1 for a field
        without a length.
        """
        self._read(position, min(end, position + _MOST_HEADER_BYTES))
        head = self.data[position : min(end, position + _MOST_HEADER_BYTES)].tobytes()
        try:
            tag, offset = read_varint(head, 0)
            size, offset = read_varint(head, offset)
        except (IndexError, ValueError):
            return -1, position, 0
        return (tag >> 3 if tag & 7 == _DELIMITED else -1), position + offset, size

    def _read(self, position: int, end: int) -> int:
        """Ensure that the bytes from `position` to `end` have been read (and up to a window more); returns
        `end`.
        """
        first = self.read_to if position <= self.read_to else position
        if end > first:
            last = min(len(self.data), max(end, first + WINDOW_BYTES))
            if first > self.read_to:
                self.read_from = first
            if first >= self.huge_pages_to and first - self.read_from >= HUGE_PAGE:
                # After a long read, expect as much again.
                self.huge_pages_to = first + (first - self.read_from)
                on_huge_pages(self.data, first, self.huge_pages_to)
            if not fill(self.file, self.data[first:last], first):
                raise _became_shorter(self.path)
            self.read_to = last
        return end
