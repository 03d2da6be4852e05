"""Serialized MemoryAccessBreakdowns (what an operation reads and writes, by memory) → bytes by memory, all messages at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# Memories that an operation moves bytes in. HBM: both ways together; the others by direction.
SPACES = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
_ROW = np.full((4, 3), -1, np.int64)  # row of SPACES by memory space (1 HBM, 2 CMEM, 3 VMEM) and operation (1 read, 2 write)
_ROW[1, :] = 0
_ROW[2, :] = 1, 1, 2
_ROW[3, :] = 3, 3, 4
_MAX_ENTRIES = 64
_MAX_FIELDS = 8
_MAX_SIZE = 4096
_MAX_GAP = 1 << 16
_MAX_BLOCK = 1 << 24


def bytes_by_space(trace: Trace, spans: Sequence[tuple[int, int, int]]) -> npt.NDArray[np.float64]:
    """float64[5, n]: bytes in each of SPACES that the messages at (_, position in the file, size) name; what is damaged adds nothing."""
    result = np.zeros((len(SPACES), len(spans)))
    size = np.array([size if size <= _MAX_SIZE else 0 for _, _, size in spans], np.int64)
    position = np.array([position for _, position, _ in spans], np.int64)
    order = np.argsort(position, kind="stable")
    for rows in _blocks(order, position, size):
        first, last = int(position[rows].min()), int((position[rows] + size[rows]).max())
        data = np.frombuffer(trace.source.read(first, last - first), np.uint8)
        start = position[rows] - first
        result[:, rows] = _sums(data, start, np.minimum(start + size[rows], len(data)))
    return result


def _blocks(order: npt.NDArray[np.intp], position: Int64s, size: Int64s) -> list[npt.NDArray[np.intp]]:
    """Messages that lie close together, to be read at once."""
    blocks: list[npt.NDArray[np.intp]] = []
    if not len(order):
        return blocks
    start = position[order]
    apart = np.append(False, start[1:] - (start + size[order])[:-1] > _MAX_GAP)
    group = np.cumsum(apart)
    for part in np.split(order, np.flatnonzero(apart)) if group[-1] else [order]:
        begin = position[part]
        cuts = np.flatnonzero(np.diff((begin - begin[0]) // _MAX_BLOCK)) + 1
        blocks += np.split(part, cuts)
    return blocks


def _sums(data: Bytes, start: Int64s, end: Int64s) -> npt.NDArray[np.float64]:
    """Field 1, repeated: an access, with 1 operation, 2 memory space, 3 bytes. All messages advance in step."""
    result = np.zeros((len(SPACES), len(start)))
    at = start.copy()
    for _ in range(_MAX_ENTRIES):
        rows = np.flatnonzero(at < end)
        if not len(rows):
            break
        key, here = _varints(data, at[rows], end[rows])
        value, here = _varints(data, here, end[rows])
        stop = np.where(key & 7 == 2, np.minimum(here + np.maximum(value, 0), end[rows]), here)
        at[rows] = np.where(np.isin(key & 7, (0, 2)), stop, end[rows])
        numbers = _fields(data, here, np.where(key == 10, stop, here))
        operation, space, n_bytes = (numbers[i] for i in (1, 2, 3))
        known = (space > 0) & (space < len(_ROW)) & (operation >= 0) & (operation < 3) & (n_bytes > 0) & (n_bytes < 2**62)
        chosen = rows[known]
        result[_ROW[space[known], operation[known]], chosen] += n_bytes[known]
    return result


def _fields(data: Bytes, start: Int64s, end: Int64s) -> Int64s:
    """int64[4, n]: the numbers of fields 1 to 3 of each message."""
    numbers = np.zeros((4, len(start)), np.int64)
    at = start.copy()
    for _ in range(_MAX_FIELDS):
        rows = np.flatnonzero(at < end)
        if not len(rows):
            break
        key, here = _varints(data, at[rows], end[rows])
        value, here = _varints(data, here, end[rows])
        is_number = key & 7 == 0
        at[rows] = np.where(is_number, here, end[rows])
        field = np.where(is_number & (key >> 3 < len(numbers)) & (key > 0), key >> 3, 0)
        numbers[field, rows] = value
    return numbers


def _varints(data: Bytes, at: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """A number from each place and where it ends; what is cut off or too long ends with the message."""
    value, at = np.zeros(len(at), np.int64), at.copy()
    rows = np.flatnonzero(at < end)
    for shift in range(0, 63, 7):
        if not len(rows):
            return value, at
        byte = data[at[rows]]
        value[rows] |= (byte & 0x7F).astype(np.int64) << shift
        at[rows] += 1
        rows = rows[(byte >= 0x80) & (at[rows] < end[rows])]
    at[rows] = end[rows]
    return value, at
