"""Serialized MemoryAccessBreakdowns (bytes that an operation reads and writes, by memory) → bytes by memory,
all messages at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.proto_fields import number_field
from tb_tpuprof.native import add_records
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.trace.wire import read_fields

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Memories that operations access. HBM: reads and writes together; the others by direction.
SPACES = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
_ROW = np.full(
    (4, 3), -1, np.int64
)  # row of SPACES by memory space (1 HBM, 2 CMEM, 3 VMEM) and operation (1 read, 2 write)
_ROW[1, :] = 0
_ROW[2, :] = 1, 1, 2
_ROW[3, :] = 3, 3, 4
_MEMORIES = {1: "HBM", 2: "CMEM", 3: "VMEM"}
_DIRECTIONS = {1: "read", 2: "written"}
_MAX_SIZE = 4096
_MAX_GAP = 1 << 16
_MAX_BLOCK = 1 << 24


def add_bytes(trace: Trace, position: Int64s, size: Int64s, column: Int64s, total: Floats) -> None:
    """Add to total (float64[5, n]) the bytes in each of SPACES that each message states, in the message's
    column.

    `position` and `size` locate the messages in the file. Damaged and unreasonably long messages add nothing.
    """
    if len(position) > 1 and not (position[1:] > position[:-1]).all():
        order = np.argsort(position, kind="stable")
        position, size, column = position[order], size[order], column[order]
    size = np.where(size <= _MAX_SIZE, size, 0)
    for rows in _blocks(position, size):
        first = int(position[rows][0])
        data = trace.source.block(first, int((position[rows] + size[rows]).max()) - first)
        add_records(data, position[rows] - first, size[rows], column[rows], _ROW, total)


def _blocks(position: Int64s, size: Int64s) -> list[slice]:
    """Groups of messages that are close together, to be read at once. Positions must ascend."""
    if not len(position):
        return []
    apart = position[1:] - (position + size)[:-1] > _MAX_GAP
    cuts = [0, *(np.flatnonzero(apart) + 1).tolist(), len(position)]
    blocks = []
    for a, b in itertools.pairwise(cuts):
        while a < b:
            end = min(b, max(a + 1, int(np.searchsorted(position, position[a] + _MAX_BLOCK))))
            blocks.append(slice(a, end))
            a = end
    return blocks


@dataclass(frozen=True)
class Access:
    """The bytes that an operation reads from, or writes to, one memory."""

    memory: str
    direction: str
    n_bytes: int


def accesses_of(trace: Trace, position: int, size: int) -> list[Access]:
    """One message's accesses by memory and direction, in its order; none of a message that is damaged or
    unreasonably long.
    """
    if not 0 < size <= _MAX_SIZE:
        return []
    message = trace.source.block(position, size).tobytes()
    n_bytes: dict[tuple[int, int], int] = {}
    for number, wire, record in read_fields(message):
        if number == 1 and wire == 2 and isinstance(record, bytes):
            key = number_field(record, 2), number_field(record, 1)
            amount = number_field(record, 3)
            n_bytes[key] = n_bytes.get(key, 0) + (amount if amount < 2**62 else 0)
    return [
        Access(_MEMORIES.get(memory, f"memory {memory}"), _DIRECTIONS.get(direction, "accessed"), amount)
        for (memory, direction), amount in n_bytes.items()
        if amount
    ]
