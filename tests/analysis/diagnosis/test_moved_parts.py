"""Time that is charged to another cause than the work that ran in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.moved_parts import after_waits, between_calls, lost_to_stages
from tb_tpuprof.analysis.diagnosis.records import Calls, Gap, Part, Sync
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, LAUNCH, MANY, PROGRAM
from tests.analysis.diagnosis.drawn import calls, columns, function, part, rows

NONE = columns(0, 0, 0)
LOSS, REPORT = function("loss"), function("report", "shop.py", 7)


def sync(
    after: tuple[float, ...], computed: tuple[float, ...], per_step: tuple[int, ...] = (1, 1, 1)
) -> Sync:
    return Sync(
        "__float__",
        LOSS,
        np.array(per_step, np.int64),
        columns(*after),
        columns(*after),
        columns(*computed),
        0,
        1,
    )


def whole() -> tuple[Part, ...]:
    """Python of two functions, what is unrecorded, and computing for the rest of steps of 100, 200 and 300
    µs.
    """
    return (
        part(Cause.COMPUTE, 60, 130, 250),
        part(Cause.PYTHON, 20, 40, 30, culprit=REPORT),
        part(Cause.UNRECORDED, 15, 20, 20),
        part(Cause.PYTHON, 5, 10, 0, culprit=LOSS),
    )


def test_the_hosts_time_behind_a_wait_is_the_waits_the_longest_part_first() -> None:
    other = replace(sync((9, 9, 9), (90, 90, 90)), culprit=REPORT)
    moved = after_waits(whole(), [sync((25, 30, 60), (60, 130, 250)), other])
    assert rows(moved) == {
        (Cause.COMPUTE, "", "", ""): [60, 130, 250],
        (Cause.PYTHON, "report", "", ""): [0, 10, 0],
        (Cause.SYNCHRONIZATION, "loss", "report", "__float__"): [20, 30, 30],
        (Cause.SYNCHRONIZATION, "loss", "", "__float__"): [5, 0, 20],
        (Cause.UNRECORDED, "", "", ""): [10, 20, 0],
        (Cause.PYTHON, "loss", "", ""): [5, 10, 0],
    }
    means = [one.mean_ps for one in moved]
    assert means == sorted(means, reverse=True)


def test_no_more_is_lost_than_there_is_computing_to_hide_it_behind() -> None:
    moved = rows(after_waits(whole(), [sync((20, 40, 30), (7, 13, 300))]))
    assert moved[Cause.SYNCHRONIZATION, "loss", "report", "__float__"] == [7, 13, 30]
    assert moved[Cause.PYTHON, "report", "", ""] == [13, 27, 0]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no wait"),
        ([sync((20, 40, 30), (60, 130, 250), (1, 0, 1))], "fewer than 0.8 waits per step"),
        ([sync((5, 5, 7), (60, 130, 250))], "17 of 600 µs are less than 3%"),
        ([sync((20, 40, 30), (5, 5, 5))], "15 of 600 µs could be hidden"),
    ],
)
def test_waits_that_cost_little_move_nothing(found: list[Sync], why: str) -> None:
    assert rows(after_waits(whole(), found)) == rows(whole()), why


def test_behind_the_only_wait_of_a_step_that_dispatches_no_more_the_host_works_by_itself() -> None:
    """Unless there are several: then what follows one of them could run before the next."""
    last = replace(sync((20, 40, 30), (60, 130, 250)), before_dispatch_ps=columns(0, 0, 0))
    assert rows(after_waits(whole(), [last])) == rows(whole())
    assert rows(after_waits(whole(), [last], has_accelerator=True)) != rows(whole())
    several = replace(last, per_step=np.array([2, 1, 2], np.int64))
    assert rows(after_waits(whole(), [several]))[Cause.SYNCHRONIZATION, "loss", "report", "__float__"] == [
        20,
        40,
        30,
    ]


def test_waits_of_one_function_count_together() -> None:
    """Two kinds of `loss`, each once per step, are several waits; that of `report` is another's."""
    first = replace(sync((10, 20, 10), (60, 130, 250)), before_dispatch_ps=columns(0, 0, 0))
    second = replace(first, call="Await", after_ps=columns(10, 10, 10))
    other = replace(first, culprit=REPORT, after_ps=columns(15, 15, 15))
    moved = rows(after_waits(whole(), [first, other, second]))
    assert moved[Cause.SYNCHRONIZATION, "loss", "report", "__float__"] == [20, 30, 20]
    assert rows(after_waits(whole(), [first, other])) == rows(whole())


GAP = Gap("PjitFunction(grow)", "PjitFunction(shrink)", columns(10, 15, 30), 0, 1)


@pytest.mark.parametrize("kind", [PROGRAM, EAGER, LAUNCH])
def test_between_many_calls_the_frameworks_python_runs(kind: str) -> None:
    other = Gap("dot:Dot", "mul:Mul", columns(5, 5, 5), 0, 1)
    launched = Gap("PjitFunction(grow)", "cudaLaunchKernel", columns(3, 1, 0), 0, 1)
    opening = Gap("", "PjitFunction(grow)", columns(2, 2, 2), 0, 1)
    moved = between_calls(
        whole(), [other, GAP, launched, opening], NONE, calls(kind, grow=[4, 4, 4], shrink=[5, 4, 3])
    )
    assert rows(moved) == {
        **{key: time for key, time in rows(whole()).items() if key[0] != Cause.UNRECORDED},
        # 30 of the third step's 20 cannot be moved.
        (Cause.DISPATCH, "", "", ""): [13, 16, 20],
        (Cause.UNRECORDED, "", "", ""): [2, 4, 0],
    }


def test_between_few_calls_it_is_not_known_what_runs() -> None:
    few = calls(PROGRAM, grow=[MANY, MANY, MANY - 1])
    assert rows(between_calls(whole(), [GAP], NONE, few)) == rows(whole())
    assert rows(between_calls(whole(), [], NONE, calls(PROGRAM, grow=[MANY] * 3))) == rows(whole())
    assert between_calls((), (), NONE, Calls()) == ()


def test_short_gaps_between_many_calls_are_theirs_however_they_are_called() -> None:
    moved = rows(between_calls(whole(), [GAP], columns(12, 9, 0), calls(EAGER, Mul=[MANY] * 3)))
    assert moved[Cause.DISPATCH, "", "", ""] == [12, 15, 20]
    assert moved[Cause.UNRECORDED, "", "", ""] == [3, 5, 0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([Cause.PYTHON, Cause.UNRECORDED, Cause.COMPUTE, Cause.INPUT]),
            *[st.integers(0, 99)] * 3,
        ),
        max_size=6,
    ),
    st.lists(st.integers(0, 200), min_size=3, max_size=3),
    st.lists(st.integers(0, 200), min_size=3, max_size=3),
)
def test_causes_still_add_up(
    table: list[tuple[Cause, int, int, int]], after: list[int], computed: list[int]
) -> None:
    parts = [
        part(cause, *times, culprit=Culprit("function", str(i)))
        for i, (cause, *times) in enumerate(table)
        if any(times)
    ]
    before = np.sum([one.time_ps for one in parts] or [columns(0, 0, 0)], axis=0)
    moved = after_waits(parts, [sync(tuple(after), tuple(computed))])
    moved = between_calls(moved, [GAP], NONE, calls(EAGER, Mul=[9, 9, 9]))
    assert np.sum([one.time_ps for one in moved] or [columns(0, 0, 0)], axis=0).tolist() == before.tolist()
    assert all((one.time_ps >= 0).all() for one in moved)
    untouched = [one for one in moved if one.cause in (Cause.COMPUTE, Cause.INPUT)]
    assert rows(untouched) == rows(one for one in parts if one.cause in (Cause.COMPUTE, Cause.INPUT))
    taken = np.sum(
        [one.time_ps for one in moved if one.cause == Cause.SYNCHRONIZATION] or [columns(0, 0, 0)], axis=0
    )
    assert (taken <= np.minimum(columns(*after), columns(*computed))).all()


GENERATOR, EXECUTE, DELETE = (Culprit("call", name) for name in ("GetNext", "Execute", "Delete"))


def held_up(execute_ms: float, stretches: int) -> tuple[Part, ...]:
    """Three steps that wait 2, 3 and 4 ms for data, are in long calls, in short ones and in none."""
    return (
        part(Cause.COMPUTE, 5000, 6000, 7000),
        replace(part(Cause.DISPATCH, *[execute_ms * 1000] * 3, culprit=EXECUTE), n=stretches),
        replace(part(Cause.DISPATCH, 200, 300, 400, culprit=DELETE), n=30),
        part(Cause.UNRECORDED, 1000, 0, 2000),
        part(Cause.INPUT, 2000, 3000, 4000, culprit=GENERATOR, call="GetNext"),
    )


def test_long_calls_while_a_python_stage_runs_wait_for_the_interpreter_lock() -> None:
    """Two calls of 5 ms per step; the short calls stay dispatch."""
    times = rows(lost_to_stages(held_up(10, 6), 0.9))
    assert times == {
        (Cause.COMPUTE, "", "", ""): [5000, 6000, 7000],
        (Cause.INPUT, "GetNext", "Execute", "GetNext"): [10_000] * 3,
        (Cause.DISPATCH, "Delete", "", ""): [200, 300, 400],
        (Cause.INPUT, "GetNext", "", "GetNext"): [3000, 3000, 6000],
    }


@pytest.mark.parametrize(
    ("parts", "stages", "why"),
    [
        (held_up(10, 6), 0.4, "no Python stage runs most of the time"),
        (held_up(10, 60), 0.9, "each call lasts half a millisecond"),
        (held_up(2, 3), 0.9, "the calls are a small part of the steps"),
        (held_up(10, 6)[:-1], 0.9, "no step waits for data"),
    ],
)
def test_calls_that_are_no_waits_for_the_interpreter_lock(
    parts: tuple[Part, ...], stages: float, why: str
) -> None:
    assert rows(lost_to_stages(parts, stages)) == rows(parts), why
