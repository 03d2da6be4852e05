"""A heap simulator's trace → bytes held before each event, the peak, and when each buffer comes and goes. Vectorised.

Buffers that share memory form a group under a *root*, the buffer that was allocated; a group holds its root's size while it has users:

    event        0        1            2        3         4            5
                 ALLOC a  SHARE b→a    FREE a   FREE b    SHARE c→a    FREE c
    users of a   1        2            1        0         1            0          memory taken where users go 0 → 1, given back at 1 → 0
    bytes before 0        A            A        A         0            A
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo_buffers import FREE, SHARE_WITH
from tb_tpuprof.trace.table import Table

Ints = npt.NDArray[np.int64]
_MAX_JUMPS = 64


@dataclass(frozen=True, eq=False)
class Heap:
    """`held` and `held_unpadded` have a row more than there are events. `peak` is an event, -1 where nothing is ever held.

    `start` and `end` are of each logical buffer (-1: not in the trace): one that was allocated lives until its memory is given back, one
    that shares another's until it is freed itself.
    `live` are the buffers that stand for what is held at the peak, in the order in which they came.
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
    """Replay the events `rows` of `events`; `size` and `unpadded` are of each logical buffer. A user that was never there is not freed."""
    kind, buffer, shared = (events[name][rows].astype(np.int64) for name in ("kind", "buffer", "shared_with"))
    n, n_buffers = len(kind), len(size)
    is_share, is_free = kind == SHARE_WITH, kind == FREE
    known = (buffer >= 0) & ~(is_share & (shared < 0))
    at = np.flatnonzero(known)
    root = _roots(buffer[at], shared[at], is_share[at], n_buffers)
    order = at[np.argsort(root[buffer[at]], kind="stable")]
    groups = root[buffer[order]]
    change = np.where(is_free[order], -1, 1).astype(np.int64)
    after, refused = _users(groups, change)
    before = after - np.where(refused, 0, change)
    taken = order[(before == 0) & (after == 1)]
    given = order[(before == 1) & (after == 0)]
    delta, delta_unpadded = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for part, sign in ((taken, 1), (given, -1)):
        delta[part] = sign * size[root[buffer[part]]]
        delta_unpadded[part] = sign * unpadded[root[buffer[part]]]
    held, held_unpadded = (np.concatenate(([0], np.cumsum(part))).astype(np.int64) for part in (delta, delta_unpadded))
    peak = int(held.argmax()) - 1
    start, end = _own_spans(buffer, known, is_free, n_buffers)
    until = _given_back(taken, given, root[buffer], n)
    owns = ~is_share[taken]
    end[buffer[taken[owns]]] = np.minimum(until[owns], n - 1)
    alive = (taken <= peak) & (until > peak)
    live = buffer[np.sort(taken[alive])]
    damaged = int((~known).sum() + refused.sum())
    return Heap(held, held_unpadded, events["instruction"][rows].astype(np.int64), peak, start, end, live, damaged)


def _roots(buffer: Ints, shared: Ints, is_share: npt.NDArray[np.bool_], n_buffers: int) -> Ints:
    """For each buffer the one whose memory it uses at last; itself where sharing goes round in a circle."""
    root = np.arange(n_buffers, dtype=np.int64)
    root[buffer[is_share]] = shared[is_share]
    for _ in range(_MAX_JUMPS):
        further = root[root]
        if np.array_equal(further, root):
            return root
        root = further
    own = np.arange(n_buffers, dtype=np.int64)
    return np.where(root[root] == root, root, own)


def _users(groups: Ints, change: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Users after each event of its group (events stand group by group), and which frees were refused because there were none."""
    n = len(groups)
    if not n:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    first = np.concatenate(([True], groups[1:] != groups[:-1]))
    number = np.cumsum(first) - 1
    total = np.cumsum(change)
    base = (total - change)[first][number]
    running = total - base
    # The least so far within the group: groups lie below one another by more than any sum can reach.
    shift = number * (2 * n + 2)
    least = np.minimum(np.minimum.accumulate(running - shift) + shift, 0)
    previous = np.where(first, 0, np.concatenate(([0], least[:-1])))
    return running - least, least < previous


def _own_spans(buffer: Ints, known: npt.NDArray[np.bool_], is_free: npt.NDArray[np.bool_], n_buffers: int) -> tuple[Ints, Ints]:
    """From the event by which a buffer came to the last that frees it; to the end where none does."""
    n = len(buffer)
    start, end = np.full(n_buffers, -1, np.int64), np.full(n_buffers, -1, np.int64)
    came, went = np.flatnonzero(known & ~is_free), np.flatnonzero(known & is_free)
    start[buffer[came]] = came
    end[buffer[came]] = n - 1
    end[buffer[went]] = np.where(start[buffer[went]] >= 0, went, -1)
    return start, end


def _given_back(taken: Ints, given: Ints, group: Ints, n: int) -> Ints:
    """For each event that takes memory the one that gives it back, n where none does. Both come group by group, in turn."""
    keys_taken, keys_given = group[taken] * (n + 1) + taken, group[given] * (n + 1) + given
    at = np.searchsorted(keys_given, keys_taken)
    result = np.full(len(taken), n, np.int64)
    found = at < len(given)
    found[found] = group[given[at[found]]] == group[taken[found]]
    result[found] = given[at[found]]
    return result
