"""Serialized MemoryAccessBreakdowns (what an operation reads and writes, by memory) → bytes by memory, all messages at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import parts, spans
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# Memories that an operation moves bytes in. HBM: both ways together; the others by direction.
SPACES = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
_ROW = np.full((4, 3), -1, np.int64)  # row of SPACES by memory space (1 HBM, 2 CMEM, 3 VMEM) and operation (1 read, 2 write)
_ROW[1, :] = 0
_ROW[2, :] = 1, 1, 2
_ROW[3, :] = 3, 3, 4
_ACCESS = np.array((1, 2, 3), np.int64)
_MAX_SIZE = 4096
_MAX_GAP = 1 << 16
_MAX_BLOCK = 1 << 24


def bytes_by_space(trace: Trace, position: Int64s, size: Int64s) -> npt.NDArray[np.float64]:
    """float64[5, n]: bytes in each of SPACES that the messages at these positions in the file name; what is damaged adds nothing."""
    result = np.zeros((len(SPACES), len(position)))
    size = np.where(size <= _MAX_SIZE, size, 0)
    order = np.argsort(position, kind="stable")
    for rows in _blocks(order, position, size):
        first, last = int(position[rows].min()), int((position[rows] + size[rows]).max())
        data = np.frombuffer(trace.source.read(first, last - first), np.uint8)
        start = position[rows] - first
        result[:, rows] = _sums(data, start, np.minimum(start + size[rows], len(data)) - start)
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


def _sums(data: Bytes, start: Int64s, size: Int64s) -> npt.NDArray[np.float64]:
    """Field 1, repeated: an access, with 1 operation, 2 memory space, 3 bytes."""
    offsets, starts, sizes = parts(data, start, np.maximum(size, 0), 1)
    values, found, _, _ = spans(data, starts, sizes, _ACCESS)
    message = np.repeat(np.arange(len(start)), np.diff(offsets))
    operation, space, n_bytes = np.where(found > 0, -1, values).T  # numbers have no size
    known = (space > 0) & (space < len(_ROW)) & (operation >= 0) & (operation < 3) & (n_bytes > 0) & (n_bytes < 2**62)
    key = _ROW[space[known], operation[known]] * len(start) + message[known]
    total = np.bincount(key, n_bytes[known].astype(np.float64), len(SPACES) * len(start))
    return total.reshape(len(SPACES), len(start)).astype(np.float64)
