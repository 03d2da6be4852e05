"""One memory's allocations by who made them → bytes allocated, kept, in use at a moment, and at most.

    A allocates  5 ├─────────┤          allocated 8, kept 0, at the moment 5, at most 5
    A allocates  3            ├──┤
    B allocates  2     ├──────────────  allocated 2, kept 2, at the moment 2, at most 2
                          ↑ moment

A deallocation counts for who allocated, so the bytes at the moment add up to all that was allocated in the
capture and is in use then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.events import MemoryEvents

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Holders:
    """By key, most bytes at the moment first, then most at any time. `at_bytes`, `n_at`: allocations in use
    at the moment; `kept`: those in use at the end of the capture; `most_bytes`: the most that was in use at
    any time.
    """

    key: Int64s
    allocated_bytes: Int64s
    n_allocated: Int64s
    at_bytes: Int64s
    n_at: Int64s
    kept_bytes: Int64s
    n_kept: Int64s
    most_bytes: Int64s

    def __len__(self) -> int:
        return len(self.key)


def allocations(events: MemoryEvents, memory: int) -> Int64s:
    """The allocations of one memory."""
    rows = events.of(memory)
    result: Int64s = rows.start + np.flatnonzero(events.is_allocation[rows]).astype(np.int64)
    return result


def holders(events: MemoryEvents, rows: Int64s, keys: Int64s, event: int) -> Holders:
    """Allocations (`rows`, of one memory) by key, as they are right after an event."""
    key, group = np.unique(keys, return_inverse=True)
    group, n = group.reshape(-1), len(key)
    size, end = events.allocation_bytes[rows].astype(np.int64), events.partner[rows].astype(np.int64)

    def summed(values: npt.NDArray[np.integer]) -> Int64s:
        result = np.zeros(n, np.int64)
        np.add.at(result, group, values)
        return result

    is_at = (rows <= event) & (end > event)
    is_kept = end >= len(events.partner)
    most = _most(rows, end, size, group, n)
    columns = (
        key.astype(np.int64),
        summed(size),
        summed(np.ones(len(rows), np.int64)),
        summed(size * is_at),
        summed(is_at.astype(np.int64)),
        summed(size * is_kept),
        summed(is_kept.astype(np.int64)),
        most,
    )
    order = np.lexsort((key, -columns[1], -most, -columns[3]))
    return Holders(*(column[order] for column in columns))


def _most(rows: Int64s, end: Int64s, size: Int64s, group: npt.NDArray[np.intp], n: int) -> Int64s:
    """The most bytes in use at any time, by group."""
    if not n:
        return np.zeros(0, np.int64)
    time, change, of = (
        np.concatenate((rows, end)),
        np.concatenate((size, -size)),
        np.concatenate((group, group)),
    )
    order = np.lexsort((time, of))
    of, level = of[order], np.cumsum(change[order])
    first = np.searchsorted(of, np.arange(n))
    # The changes of each group add up to 0, so every group begins at 0.
    return np.maximum.reduceat(level, first)
