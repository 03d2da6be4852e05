"""Random hosts of one job, which differ in their number of steps, when steps begin, how long they last, and
their clocks.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import StepWait

_WAITS = (
    (TimeClass.HOST_WAIT_LOADER, "batches", "train.py", 15),
    (TimeClass.HOST_WAIT_LOADER, "batches", "train.py", 40),
    (TimeClass.HOST_WAIT, "sleep", "", 0),
    (TimeClass.HOST_PYTHON, "digest", "hash.py", 3),
)


@dataclass(frozen=True)
class Job:
    """Steps of each host and the clock at each trace's 0, as `common_steps` takes them."""

    parts: list[Steps]
    start_ns: list[int]


def random_job(rng: random.Random, with_strays: bool = True) -> Job:
    """Three to six hosts in lockstep, each with some of the steps and its own small delays. `with_strays`:
    some hosts have no steps, no devices, or were captured at another time.

    Times are multiples of half a unit, so that equal overlaps occur.
    """
    unit = rng.choice((1_000, 2_000, 7_000))
    n_steps = rng.randint(3, 9)
    length = [rng.randint(2, 6) * unit for _ in range(n_steps)]
    source = rng.choice(("annotation", "device", "program"))
    parts, start_ns = [], []
    for host in range(rng.randint(3, 6)):
        clock = rng.randint(0, 40)
        first = rng.randint(0, min(3, n_steps - 1))
        chosen = list(range(first, max(first + 1, n_steps - rng.randint(0, 3))))
        late = rng.randint(-3, 3) * unit // 2
        begin = [100_000 + sum(length[:i]) + late + rng.randint(0, 1) * unit // 2 for i in chosen]
        duration = [max(unit // 2, length[i] + rng.randint(-2, 1) * unit // 2) for i in chosen]
        odd = rng.random() if with_strays else 1.0
        if odd < 0.1:
            begin, duration = [], []
        elif odd < 0.13:
            begin = [time + rng.randint(2, 4) * 10**12 for time in begin]
        parts.append(_steps(rng, host, (begin, duration), "annotation" if 0.2 < odd < 0.3 else source, clock))
        start_ns.append(clock + (10**14 if 0.3 < odd < 0.32 else 0))
    return Job(parts, start_ns)


def _steps(
    rng: random.Random, host: int, times: tuple[list[int], list[int]], source: str, clock: int
) -> Steps:
    """Steps whose classes sum up to their durations, and waits, some of them shared with other hosts."""
    begin, duration = times
    n = len(begin)
    class_ps = np.zeros((n, N_CLASSES), np.int64)
    for i in range(n):
        remaining_ps = duration[i]
        for klass in rng.sample(range(1, N_CLASSES), 4):
            class_ps[i, klass] = rng.randint(0, remaining_ps)
            remaining_ps -= int(class_ps[i, klass])
        class_ps[i, 0] = remaining_ps
    waits = tuple(
        StepWait(*kind, np.array([rng.randint(0, 999) for _ in range(n)], np.int64))
        for kind in rng.sample(_WAITS, rng.randint(0, 3))
    )
    return Steps(
        np.arange(n, dtype=np.int64) + 10 * host,
        tuple(f"train {10 * host + i}" for i in range(n)),
        np.array(begin, np.int64) - clock * 1000,
        np.array(duration, np.int64),
        class_ps,
        source if n else "",
        rng.randint(0, 2),
        rng.randint(0, 2),
        rng.randint(0, 2) if not n else 0,
        waits=tuple(sorted(waits, key=lambda wait: (-wait.total_ps, wait.name))) if n else (),
        is_on_devices=source == "annotation" and rng.random() < 0.4,
    )
