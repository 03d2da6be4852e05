"""Time charged to another cause, of random parts, compared with loops over parts and steps."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis import moved_parts as module
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Call, Calls, Gap, Part, Pools, Sync, ThreadActivity
from tb_tpuprof.analysis.diagnosis.tiny_calls import TinyCalls
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import function
from tests.plain import plain_moved as plain
from tests.plain.plain_moved import Row, Thread, Wait

SEEDS = range(4)
TIMES = 250
MS = 10**9
CAUSES = (
    Cause.COMPUTE, Cause.PYTHON, Cause.UNRECORDED, Cause.DISPATCH, Cause.INPUT, Cause.TRANSFERS, Cause.SYNCHRONIZATION,
)  # fmt: skip
CALLS = ("get", "result", "write", "Mul", "step", "wait", "")
NAMES = ("load", "report", "save", "")
AFTER = (
    "PjitFunction(f)",
    "EagerExecute: Mul",
    "TFE_Py",
    "aten::add",
    "cudaLaunchKernel",
    "hipLaunch",
    "mine",
    "",
)


def random_rows(rng: random.Random, n: int) -> list[Row]:
    rows = []
    for _ in range(rng.randint(1, 8)):
        time = tuple(rng.choice((0, 1, 3, 7, 20)) * MS for _ in range(n))
        names = rng.choice(NAMES), rng.choice(NAMES), rng.choice(CALLS)
        klass = rng.choice((TimeClass.HOST_WAIT, TimeClass.HOST_WAIT, TimeClass.HOST_PYTHON))
        rows.append(Row(rng.choice(CAUSES), *names, klass, rng.choice((0, 1, 2, 9, 40)), time))
    return sorted((row for row in rows if any(row.time)), key=lambda row: -sum(row.time))


def random_waits(rng: random.Random, n: int) -> list[Wait]:
    most = rng.choice((1, 2, 3))
    computed = [rng.randint(0, 15) * MS for _ in range(n)]
    waits = []
    for _ in range(rng.randint(0, 4)):
        columns = [[rng.randint(0, 12) * MS for _ in range(n)] for _ in range(2)]
        counts = [rng.randint(0, most) for _ in range(n)]
        waits.append(Wait(rng.choice(NAMES[:3]), rng.choice(CALLS), counts, *columns, computed))
    return waits


def random_threads(rng: random.Random) -> list[Thread]:
    return [
        Thread(rng.choice(NAMES), rng.choice((0.1, 0.29, 0.3, 0.5, 0.9)), rng.random() < 0.4)
        for _ in range(rng.randint(0, 3))
    ]


def random_pool(rng: random.Random) -> tuple[int, float]:
    return rng.choice((0, 1, 2, 4)), rng.choice((0.0, 0.5, 2.0, 3.5, 6.0))


def owner(name: str) -> Culprit:
    return function(name) if name else Culprit()


def parts_of(rows: Sequence[Row]) -> list[Part]:
    return [
        Part(row.cause, row.klass, owner(row.culprit), owner(row.caller), row.call, np.array(row.time), row.n)
        for row in rows
    ]


def rows_of(parts: Sequence[Part]) -> list[Row]:
    return [
        Row(one.cause, one.culprit.name, one.caller.name, one.call, one.klass, one.n, tuple(one.time_ps.tolist()))
        for one in parts
    ]  # fmt: skip


def syncs_of(waits: Sequence[Wait]) -> list[Sync]:
    return [Sync(wait.call, owner(wait.culprit), *map(np.array, wait[2:]), 0, 1) for wait in waits]


def threads_of(threads: Sequence[Thread]) -> list[ThreadActivity]:
    return [ThreadActivity("t", owner(one.culprit), one.running, 0.0, one.hands_over) for one in threads]


@pytest.mark.parametrize("seed", SEEDS)
def test_host_time_behind_waits(seed: int) -> None:
    rng, n_moved = random.Random(f"waits {seed}"), 0
    for _ in range(TIMES):
        n = rng.randint(1, 4)
        rows, waits, has_accelerator = random_rows(rng, n), random_waits(rng, n), rng.random() < 0.3
        made = rows_of(module.after_waits(parts_of(rows), syncs_of(waits), has_accelerator))
        assert made == plain.after_waits(rows, waits, has_accelerator)
        n_moved += made != rows
        turns = [rng.choice((0, 0, 1, 5)) * MS // 2 for _ in range(n)]
        in_turns = rows_of(module.in_turns(parts_of(rows), np.array(turns), syncs_of(waits)))
        assert in_turns == plain.in_turns(rows, turns, waits)
    assert n_moved > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_waits_for_input(seed: int) -> None:
    rng, n_moved = random.Random(f"stages {seed}"), 0
    for _ in range(TIMES):
        rows, stages = random_rows(rng, rng.randint(1, 4)), rng.choice((0.1, 0.49, 0.5, 0.7, 3.0))
        made = rows_of(module.lost_to_stages(parts_of(rows), stages))
        assert made == plain.lost_to_stages(rows, stages)
        threads = random_threads(rng)
        assert rows_of(module.from_producers(parts_of(rows), threads_of(threads))) == plain.from_producers(
            rows, threads
        )
        n_moved += made != rows
    assert n_moved > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_compute_lost_to_what_runs_on_the_same_processors(seed: int) -> None:
    rng, n_moved = random.Random(f"lost {seed}"), 0
    for _ in range(TIMES):
        rows, pool, threads = random_rows(rng, rng.randint(1, 4)), random_pool(rng), random_threads(rng)
        parts, activities, pools = parts_of(rows), threads_of(threads), Pools(*pool)
        made = rows_of(module.lost_to_threads(parts, activities, pools))
        assert made == plain.of_threads(rows, threads, pool)
        assert rows_of(module.lost_to_producers(parts, activities, pools)) == plain.of_producers(
            rows, threads, pool
        )
        copies = rng.choice((0.0, 0.5, 2.0))
        assert rows_of(module.lost_to_copies(parts, copies, pools)) == plain.of_copies(rows, copies, pool)
        for thread, activity in zip(threads, activities, strict=True):
            assert rows_of(module.lost_to_own_python(parts, activity, pools)) == plain.slowed(
                rows, thread.running, pool, Cause.PYTHON, thread.culprit, ""
            )
        assert rows_of(module.lost_to_own_python(parts, None, pools)) == rows
        n_moved += made != rows
    assert n_moved > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_price_of_calls(seed: int) -> None:
    rng, n_moved = random.Random(f"calls {seed}"), 0
    for _ in range(TIMES):
        n = rng.randint(1, 4)
        rows = random_rows(rng, n)
        names = frozenset(rng.sample(CALLS[:5], rng.randint(0, 3)))
        computed = [rng.choice((0, 1, 4)) * MS for _ in range(n)]
        made = rows_of(module.of_tiny_calls(parts_of(rows), TinyCalls(names, np.array(computed))))
        assert made == plain.of_tiny_calls(rows, names, computed)
        gaps = [
            (rng.choice(NAMES), rng.choice(AFTER), [rng.randint(0, 3) * MS for _ in range(n)])
            for _ in range(rng.randint(0, 4))
        ]
        short = [rng.randint(0, 4) * MS for _ in range(n)]
        counts = {kind: [rng.randint(0, 11) for _ in range(n)] for kind in ("program", "eager", "launch")}
        between = rows_of(
            module.between_calls(
                parts_of(rows),
                [Gap(before, after, np.array(time), 0, 1) for before, after, time in gaps],
                np.array(short),
                Calls(tuple(Call(kind, "f", np.array(per_step)) for kind, per_step in counts.items())),
            )
        )
        means = {kind: sum(per_step) / n for kind, per_step in counts.items()}
        expected = plain.between_calls(rows, gaps, short, means, lambda name: name in AFTER[:6])
        assert between == expected
        n_moved += between != rows
    assert n_moved > 0
