"""A heap simulator's trace → bytes held before each event, the peak, and the lifetime of each buffer.

Buffers that share memory form a group under a *root*, the buffer that was allocated; a group holds its root's
size while it has users:

    event        0        1            2        3         4            5
                 ALLOC a  SHARE b→a    FREE a   FREE b    SHARE c→a    FREE c
    users of a   1        2            1        0         1            0
    bytes before 0        A            A        A         0            A

Memory is taken when the number of users goes 0 → 1 and returned at 1 → 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import replay
from tb_tpuprof.trace.hlo_buffers import SHARE_WITH
from tb_tpuprof.trace.table import Table

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
_MAX_JUMPS = 64


@dataclass(frozen=True, eq=False)
class Heap:
    """`held` and `held_unpadded` (bytes before each event) have one row more than there are events. `peak` is
    an event, -1 if nothing is ever held.

    `start` and `end` are events per logical buffer (-1: not in the trace). An allocated buffer lives until
    its memory is returned; one that shares another's memory lives until it is freed itself. `live` are the
    buffers that account for the memory at the peak, in the order of their allocation.
    """

    held: Ints
    held_unpadded: Ints
    instruction: Ints
    peak: int
    start: Ints
    end: Ints
    live: Ints
    n_damaged: int


def simulate(events: Table, rows: slice, size: Ints, unpadded: Ints) -> Heap:
    """Replay the events `rows` of `events`; `size` and `unpadded` are bytes per logical buffer. Freeing a
    buffer that is not in use is ignored and counted in `n_damaged`.
    """
    kind, buffer, shared = (events[name][rows] for name in ("kind", "buffer", "shared_with"))
    sharing = np.flatnonzero((kind == SHARE_WITH) & (buffer >= 0) & (shared >= 0))
    root = _roots(buffer[sharing], shared[sharing], len(size))
    held, held_unpadded, start, end, until, n_refused = replay((kind, buffer, shared), root, size, unpadded)
    peak = int(held.argmax()) - 1
    live = buffer[: peak + 1][until[: peak + 1] > peak].astype(np.int64)
    n_unknown = int(((buffer < 0) | ((kind == SHARE_WITH) & (shared < 0))).sum())
    instruction = events["instruction"][rows].astype(np.int64)
    return Heap(held, held_unpadded, instruction, peak, start, end, live, n_unknown + n_refused)


def _roots(buffer: Rows, shared: Rows, n_buffers: int) -> Ints:
    """For each buffer the root of its chain of shared memory; the buffer itself if the chain is a cycle."""
    root = np.arange(n_buffers, dtype=np.int64)
    root[buffer] = shared
    for _ in range(_MAX_JUMPS):
        next_root = root[root]
        if np.array_equal(next_root, root):
            return root
        root = next_root
    itself = np.arange(n_buffers, dtype=np.int64)
    return np.where(root[root] == root, root, itself)
