"""A heap simulator's trace → bytes held before each event, the peak, and when each buffer comes and goes.

Buffers that share memory form a group under a *root*, the buffer that was allocated; a group holds its root's
size while it has users:

    event        0        1            2        3         4            5
                 ALLOC a  SHARE b→a    FREE a   FREE b    SHARE c→a    FREE c
    users of a   1        2            1        0         1            0          memory taken where users go
    0 → 1, given back at 1 → 0
    bytes before 0        A            A        A         0            A
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
    """`held` and `held_unpadded` have a row more than there are events. `peak` is an event, -1 where nothing
    is ever held.

    `start` and `end` are of each logical buffer (-1: not in the trace): one that was allocated lives until
    its memory is given back, one that shares another's until it is freed itself. `live` are the buffers that
    stand for what is held at the peak, in the order in which they came.
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
    """Replay the events `rows` of `events`; `size` and `unpadded` are of each logical buffer. A user that was
    never there is not freed.
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
    """For each buffer the one whose memory it uses at last, by which shares with which; itself where that
    goes round in a circle.
    """
    root = np.arange(n_buffers, dtype=np.int64)
    root[buffer] = shared
    for _ in range(_MAX_JUMPS):
        further = root[root]
        if np.array_equal(further, root):
            return root
        root = further
    own = np.arange(n_buffers, dtype=np.int64)
    return np.where(root[root] == root, root, own)
