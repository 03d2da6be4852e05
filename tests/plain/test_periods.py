"""Periodic work of random steps, compared with loops over steps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.periodic_parts import without_periodic
from tb_tpuprof.analysis.diagnosis.records import Part, StepFunction
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import calls, function
from tests.plain.plain_periods import Called, Function, PlainPart, plain_periods

UNIT = 10_000  # a step takes about 100 units, so that shares of 2, 5 and 15% are met exactly
NAMES = ("save", "log", "evaluate")
CAUSES = (Cause.COMPUTE, Cause.PYTHON, Cause.DISPATCH, Cause.UNRECORDED)


def pattern(rng: random.Random, n: int) -> list[int]:
    """Times of steps: some usual length, noise, and something in every few steps, sometimes not in all of
    them.
    """
    usual = rng.choice((0, 0, 1, 2, 3, 20, 40))
    noise = rng.choice((0, 0, 1, 2, 5))
    time = [max(0, usual + rng.randint(-noise, noise)) for _ in range(n)]
    every, first = rng.randint(1, 6), rng.randint(0, 6)
    height = rng.choice((2, 3, 5, 6, 7, 14, 15, 16, 20, 30, 60))
    for step in range(first, n, every):
        if rng.random() < 0.97:
            time[step] += rng.choice((height, height, height, height // 2, height + 1))
    if rng.random() < 0.3:
        time[rng.randrange(n)] += rng.choice((3, 8, 15))
    return [one * UNIT for one in time]


def counts(rng: random.Random, n: int) -> list[int]:
    """Calls of a program in each step: in every few steps, in some of them in two in a row."""
    every, first, is_split = rng.randint(2, 5), rng.randint(0, 5), rng.random() < 0.6
    result = [0] * n
    for step in range(first, n, every):
        result[step] += rng.randint(1, 6)
        if is_split and step + 1 < n and rng.random() < 0.7:
            result[step + 1] += rng.randint(1, 6)
    return result


def drawn(rng: random.Random) -> tuple[list[PlainPart], Called, list[int], list[Function]]:
    """Parts of the steps, calls, durations and functions. Some patterns are shared, so that they explain
    others.
    """
    n = rng.choice((7, 8, 9, 10, 12, 12, 15, 18, 24))
    shared = [pattern(rng, n) for _ in range(2)]
    parts: list[PlainPart] = []
    for _ in range(rng.randint(1, 5)):
        cause = rng.choice(CAUSES)
        culprit = "" if cause == Cause.COMPUTE else rng.choice(NAMES)
        caller = rng.choice(("", *NAMES)) if cause == Cause.DISPATCH else ""
        time = rng.choice((*shared, pattern(rng, n)))
        parts.append(PlainPart(cause, culprit, caller, f"call{len(parts)}", time))
    called = {name: counts(rng, n) for name in ("grow", "shrink")[: rng.randint(0, 2)]}
    durations = [(100 + rng.choice((0, 0, 0, 40, 7))) * UNIT for _ in range(n)]
    functions = []
    for name in NAMES[: rng.randint(0, 3)]:
        steps = range(rng.randint(0, 3), n, rng.randint(2, 5))
        functions.append((name, [rng.randint(1, 30) * UNIT if step in steps else 0 for step in range(n)]))
    for name, like in zip(NAMES, shared, strict=False):
        if rng.random() < 0.4:
            middle = sorted(like)[(n - 1) // 2]
            times = [max(0, one - middle) * rng.choice((1, 2, 3)) // 3 for one in like]
            functions.append((name, times))
    return parts, called, durations, [one for one in functions if any(one[1])]


def owner(name: str) -> Culprit:
    return function(name) if name else Culprit()


@pytest.mark.parametrize("seed", range(10))
def test_periodic_work_equals_that_of_loops_over_steps(seed: int) -> None:
    rng = random.Random(f"periods {seed}")
    n_periods = 0
    for _ in range(150):
        parts, called, durations, functions = drawn(rng)
        made = [
            Part(one.cause, TimeClass.HOST_PYTHON, owner(one.culprit), owner(one.caller), one.call,
                 np.array(one.time, np.int64))
            for one in parts
        ]  # fmt: skip
        kept, periods = without_periodic(
            made,
            calls(PROGRAM, **called),
            np.array(durations, np.int64),
            [StepFunction(function(name), np.array(time, np.int64)) for name, time in functions],
        )
        plain_kept, plain = plain_periods(parts, called, durations, functions)
        assert [
            (one.cause, one.culprit.name, one.caller.name, one.call, one.time_ps.tolist()) for one in kept
        ] == [(one.cause, one.culprit, one.caller, one.call, one.time) for one in plain_kept]
        assert [(one.culprit.name, one.call, one.was, one.every, one.n, one.programs) for one in periods] == [
            (one.culprit, one.call, one.was, one.every, one.n, one.programs) for one in plain
        ]
        assert [(one.excess_ps, one.mean_ps) for one in periods] == [
            pytest.approx((one.excess, one.mean)) for one in plain
        ]
        n_periods += len(plain)
    assert n_periods > 20
