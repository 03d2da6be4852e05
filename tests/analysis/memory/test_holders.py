"""Who holds a memory, against a plain loop over random allocations of several keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.holders import allocations, holders


@dataclass
class Drawn:
    """The columns of `MemoryEvents` that holders are made of; memories of 30, 40 and 30 events."""

    is_allocation: np.ndarray
    allocation_bytes: np.ndarray
    partner: np.ndarray

    def of(self, memory: int) -> slice:
        first = (0, 30, 70, 100)
        return slice(first[memory], first[memory + 1])


def drawn(seed: int) -> Drawn:
    """In each memory blocks of random sizes that end later or never."""
    chance = np.random.default_rng(seed)
    is_allocation = np.zeros(100, np.bool_)
    size, partner = np.zeros(100, np.int64), np.full(100, -1)
    for begin, end in ((0, 30), (30, 70), (70, 100)):
        alive: list[int] = []
        for row in range(begin, end):
            if alive and chance.random() < 0.45:
                block = alive.pop(int(chance.integers(len(alive))))
                partner[block], partner[row], size[row] = row, block, size[block]
            else:
                is_allocation[row], size[row], partner[row] = True, chance.integers(1, 9), 100
                alive.append(row)
    return Drawn(is_allocation, size, partner)


@pytest.mark.parametrize("seed", range(8))
def test_holders_of_a_memory(seed: int) -> None:
    events: Any = drawn(seed)
    chance = np.random.default_rng(seed)
    key_of = chance.integers(-1, 4, 100)
    for memory, (begin, end) in enumerate(((0, 30), (30, 70), (70, 100))):
        rows = allocations(events, memory)
        assert rows.tolist() == [row for row in range(begin, end) if events.is_allocation[row]]
        for event in (begin, begin + 7, end - 3, end - 1):
            found = holders(events, rows, key_of[rows], event)
            expected = []
            for key in sorted(set(key_of[rows].tolist())):
                own = [row for row in rows.tolist() if key_of[row] == key]
                size = {row: int(events.allocation_bytes[row]) for row in own}
                at = [row for row in own if row <= event < events.partner[row]]
                kept = [row for row in own if events.partner[row] == 100]
                most = max(
                    sum(size[row] for row in own if row <= moment < events.partner[row])
                    for moment in range(begin, end)
                )
                columns = (
                    sum(size.values()),
                    len(own),
                    sum(size[row] for row in at),
                    len(at),
                    sum(size[row] for row in kept),
                    len(kept),
                    most,
                )
                expected.append((key, *columns))
            expected.sort(key=lambda row: (-row[3], -row[7], -row[1], row[0]))
            columns = (
                found.key,
                found.allocated_bytes,
                found.n_allocated,
                found.at_bytes,
                found.n_at,
                found.kept_bytes,
                found.n_kept,
                found.most_bytes,
            )
            assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
            assert len(found) == len(expected)


def test_equal_holders_are_in_the_order_of_bytes_then_keys() -> None:
    """In use: 4, 4, 4, 4; at most: 4, 6, 4, 4; allocated: 4, 6, 5, 4."""
    size = np.array([4, 2, 2, 4, 4, 1, 4, 0, 0])
    key = np.array([9, 5, 5, 7, 8, 7, 5, 0, 0])
    partner = np.array([100, 7, 100, 8, 100, 100, 8, 1, 3])
    events: Any = Drawn(np.array([True] * 7 + [False] * 2), size, partner)
    rows = np.arange(7)
    found = holders(events, rows, key[rows], 8)
    assert found.key.tolist() == sorted(
        set(key[rows].tolist()),
        key=lambda one: (
            -sum(size[row] for row in rows if key[row] == one and partner[row] > 8),
            -max(
                sum(size[row] for row in rows if key[row] == one and row <= moment < partner[row])
                for moment in range(9)
            ),
            -sum(size[row] for row in rows if key[row] == one),
            one,
        ),
    )


def test_nothing_is_held_by_nobody() -> None:
    none = np.zeros(0, np.int64)
    events: Any = Drawn(np.zeros(100, np.bool_), np.zeros(100, np.int64), np.full(100, -1))
    assert len(allocations(events, 1)) == 0
    found = holders(events, none, none, 3)
    assert (len(found), found.most_bytes.tolist()) == (0, [])
