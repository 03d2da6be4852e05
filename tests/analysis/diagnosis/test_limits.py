"""Limits of what moves between causes and of what is periodic, at the limit and just below it."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.moved_parts import _each_ps, after_waits, in_turns, lost_to_stages
from tb_tpuprof.analysis.diagnosis.periodic_parts import _explains, _is_longer
from tb_tpuprof.analysis.diagnosis.records import Part, StepFunction, Sync
from tests.analysis.diagnosis.drawn import columns, function, part
from tests.builders import PS

LOSS = function("loss")


def moved(parts: tuple[Part, ...]) -> int:
    return sum(int(one.time_ps.sum()) for one in parts if one.cause == Cause.SYNCHRONIZATION)


@pytest.mark.parametrize(
    ("waits", "lost_us", "n_us"),
    [
        ((1, 1, 1, 1, 0), 15, 15),  # in four of five steps, 3% of 500 µs
        ((1, 1, 1, 0, 0), 15, 0),
        ((1, 1, 1, 1, 0), 14.9, 0),
    ],
)
def test_waits_in_four_of_five_steps_that_lose_3_percent_count(
    waits: tuple[int, ...], lost_us: float, n_us: float
) -> None:
    parts = (part(Cause.PYTHON, 60, 60, 60, 60, 60), part(Cause.COMPUTE, 40, 40, 40, 40, 40))
    lost = columns(lost_us, 0, 0, 0, 0)
    sync = Sync("float", LOSS, np.array(waits), lost, lost, columns(*[90] * 5), 0, 1)
    assert moved(after_waits(parts, [sync])) == n_us * PS


@pytest.mark.parametrize(("turns_us", "n_us"), [(9, 9), (8.9, 0)])
def test_turns_of_3_percent_count(turns_us: float, n_us: float) -> None:
    parts = (part(Cause.COMPUTE, 100, 100, 100),)
    assert moved(in_turns(parts, columns(turns_us, 0, 0), [])) == n_us * PS
    assert in_turns((), columns(0, 0, 0), []) == ()


@pytest.mark.parametrize(
    ("each_us", "share", "stages", "is_lost"),
    [
        (1000, 0.2, 0.5, True),
        (999, 0.2, 0.5, False),
        (1000, 0.199, 0.5, False),
        (1000, 0.2, 0.49, False),
    ],
)
def test_long_calls_are_waits_for_the_lock_of_python_stages(
    each_us: float, share: float, stages: float, is_lost: bool
) -> None:
    """Calls of a millisecond, for a fifth of the time, while at least half a stage runs."""
    call = part(Cause.DISPATCH, each_us)
    rest = part(Cause.COMPUTE, each_us / share - each_us - 1)
    found = lost_to_stages((call, rest, part(Cause.INPUT, 1)), stages)
    assert [one.cause for one in found] == [
        Cause.INPUT if is_lost else Cause.DISPATCH,
        Cause.COMPUTE,
        Cause.INPUT,
    ]


def test_the_mean_length_of_stretches() -> None:
    one = part(Cause.DISPATCH, 3, 6, 9)
    assert _each_ps(one) == 18 * PS
    assert _each_ps(Part(one.cause, one.klass, one.culprit, one.caller, "", one.time_ps, 4)) == 4.5 * PS
    assert _each_ps(Part(one.cause, one.klass, one.culprit, one.caller, "", one.time_ps, 0)) == 0


@pytest.mark.parametrize(
    ("high", "is_longer"),
    [
        ((100, 100, 100, 100, 5), True),  # four of five exceed the others' third quarter
        ((100, 100, 100, 5, 5), False),
        ((61, 61, 61, 61, 61), True),
        ((60, 60, 60, 60, 60), False),  # 5% of a step of 1000 exactly
    ],
)
def test_steps_that_compute_longer(high: tuple[int, ...], is_longer: bool) -> None:
    time = np.full(20, 10, np.int64)
    steps = np.array([1, 5, 9, 13, 17])
    time[steps] = high
    assert _is_longer(time, steps, 1000.0) == is_longer


@pytest.mark.parametrize(("excess", "explains"), [(2.0, True), (2.1, False), (1.0, True)])
def test_a_function_explains_twice_its_time(excess: float, explains: bool) -> None:
    """The median of the steps that call it, here of a picosecond."""
    assert _explains(StepFunction(LOSS, np.array([0, 1, 0, 1, 0, 1, 9])), excess) == explains
