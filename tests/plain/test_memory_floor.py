"""Floors, rises and suspects of random allocations in two memories, compared with loops over events."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.analysis.memory.floor import floor_of, floors
from tb_tpuprof.analysis.memory.peak import active_allocations, event_at, excess_bytes, memory_peak
from tests.builders import DrawnEvent, DrawnPlane, Value, build

NS = 1_000
NAMES = ("GPU_0_bfc", "cpu")
OPS = ("", "matmul", "gather", "loop")
History = list[
    tuple[int, int, int, str, int]
]  # time, bytes in use, address, operation, size (negative: freed)


def random_history(rng: random.Random, n_steps: int) -> History:
    """Allocations of which some are freed soon, some never, and events at equal times."""
    leak = rng.choice((0, 50, 400, 400))
    live: dict[int, tuple[int, str]] = {}
    time, address, history = rng.randint(0, 5), 1, []
    while time < 100 * n_steps:
        if live and rng.random() < (0.5 if len(live) < 6 else 0.8):
            freed = rng.choice(sorted(live))
            size, op = live.pop(freed)
            entry = freed, op, -size
        else:
            address += 1
            kept = leak and rng.random() < 0.4
            size, op = (leak if kept else rng.choice((8, 8, 20, 60))), rng.choice(OPS)
            if not kept:
                live[address] = size, op
            entry = address, op, size
        used = sum(size for *_, size in history) + entry[2]
        history.append((time, used, *entry))
        time += rng.choice((0, 1, 10, 25, 100)) if rng.random() < 0.8 else 50 - time % 50
    return history


def events_of(history: History, memory: str) -> list[DrawnEvent]:
    events = []
    for time, used, address, op, size in history:
        stats: dict[str, Value] = {"allocator_name": memory, "bytes_allocated": used, "addr": address}
        stats |= {"bytes_reserved": 0, "bytes_available": 10**6 - used, "allocation_bytes": abs(size)}
        if op and size > 0:
            stats["tf_op"] = op
        name = "MemoryAllocation" if size > 0 else "MemoryDeallocation"
        events.append(DrawnEvent(name, time * NS, 0, stats))
    return events


def plain_floor(history: History, begin: int, end: int) -> int:
    """Least in use from `begin` to `end`, with the level at its beginning; before all events, the first
    level.
    """
    earlier = [used for time, used, *_ in history if time <= begin]
    inside = [used for time, used, *_ in history if begin <= time < end]
    level = earlier[-1] if earlier else history[0][1]
    return min([level, *inside])


def plain_slope(levels: list[int], peak: int) -> float:
    """Rise per step, if it is steady."""
    rise = levels[-1] - levels[0]
    total = sum(abs(after - before) for before, after in pairwise(levels))
    if rise < 0.005 * peak or rise < 0.8 * total:
        return 0.0
    edges = [round(i * (len(levels) - 1) / 3) for i in range(4)]
    if any(levels[b] - levels[a] < 0.25 * rise / 3 for a, b in pairwise(edges)):
        return 0.0
    return median(
        (levels[j] - levels[i]) / (j - i) for i in range(len(levels)) for j in range(i + 1, len(levels))
    )


def plain_suspects(history: History, begin: int, end: int) -> list[tuple[str, int, int]]:
    """(operation, bytes, number) of what was allocated from `begin` to before `end` and is still there."""
    freed = {address for time, _, address, _, size in history if size < 0 and time < end}
    kept = [
        (op, size)
        for time, _, address, op, size in history
        if size > 0 and begin <= time < end and address not in freed
    ]
    rows = [
        (op, sum(size for other, size in kept if other == op), sum(other == op for other, _ in kept))
        for op in {op for op, _ in kept}
    ]
    return sorted(rows, key=lambda row: -row[1])


@pytest.mark.parametrize("seed", range(8))
def test_floors_rises_and_suspects(seed: int) -> None:
    rng, n_rises = random.Random(f"floors {seed}"), 0
    for _ in range(25):
        n_steps = rng.randint(4, 20)
        histories = [random_history(rng, n_steps) for _ in NAMES]
        lines = {name: events_of(history, name) for name, history in zip(NAMES, histories, strict=True)}
        events = memory_events(build([DrawnPlane("/host:CPU", lines)]))
        starts, end = [100 * i for i in range(n_steps)], 100 * n_steps
        bounds = [*starts, end]
        for name, history in zip(NAMES, histories, strict=True):
            memory = events.memories.index(name)
            expected = [plain_floor(history, a, b) for a, b in pairwise(bounds)]
            assert floors(events, memory, np.array(bounds) * NS).tolist() == expected
            shuffled = rng.sample(starts, len(starts))
            made = floor_of(events, memory, np.array(shuffled) * NS, end * NS)
            first = -(-n_steps // 5)
            assert (made.floor_bytes.tolist(), made.first, made.n_steps) == (expected, first, n_steps - first)
            peak = max(used for _, used, *_ in history)
            slope = plain_slope(expected[first:], peak) if n_steps - first >= 6 else 0.0
            assert made.rise_bytes_per_step == pytest.approx(slope)
            suspects = plain_suspects(history, 100 * first, end) if slope > 0 else []
            assert [row[1] for row in made.suspects] == [row[1] for row in suspects[:3]]
            assert set(made.suspects) <= set(suspects)
            n_rises += slope > 0
    assert n_rises > 0


@pytest.mark.parametrize("seed", range(8))
def test_peaks_and_what_is_live(seed: int) -> None:
    rng = random.Random(f"peaks {seed}")
    for _ in range(25):
        histories = [random_history(rng, 4) for _ in NAMES]
        lines = {name: events_of(history, name) for name, history in zip(NAMES, histories, strict=True)}
        events = memory_events(build([DrawnPlane("/host:CPU", lines)]))
        for name, history in zip(NAMES, histories, strict=True):
            memory = events.memories.index(name)
            peak = memory_peak(events, memory)
            most = max(used for _, used, *_ in history)
            at = max(i for i, (_, used, *_) in enumerate(history) if used == most)
            n_allocations = sum(size > 0 for *_, size in history)
            assert (peak.at - int(events.first[memory]), peak.used_bytes) == (at, most)
            assert (peak.n_allocations, peak.n_deallocations) == (n_allocations, len(history) - n_allocations)
            assert (peak.capacity_bytes, peak.used_fraction) == (10**6, pytest.approx(most / 10**6))
            moment = rng.randint(-5, 400)
            last = [i for i, (time, *_) in enumerate(history) if time <= moment]
            assert event_at(events, memory, moment * NS) - events.first[memory] == (last[-1] if last else 0)
            row = rng.randrange(len(history))
            freed = {address for _, _, address, _, size in history[: row + 1] if size < 0}
            live: dict[tuple[str, int], int] = {}
            for _, _, address, op, size in history[: row + 1]:
                if size > 0 and address not in freed:
                    live[op, size] = live.get((op, size), 0) + 1
            active = active_allocations(events, memory, int(events.first[memory]) + row)
            totals = sorted((size * n for (_, size), n in live.items()), reverse=True)
            assert active.total_bytes.tolist() == totals
            assert active.n_occurrences.sum() == sum(live.values())
            assert active.older_bytes == 0
            assert excess_bytes(events, memory, int(events.first[memory]) + row) == 0
