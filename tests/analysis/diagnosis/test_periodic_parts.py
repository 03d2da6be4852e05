"""Work that only every n-th step does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.periodic_parts import without_periodic
from tb_tpuprof.analysis.diagnosis.records import Calls, Part, Period, StepFunction
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM
from tests.analysis.diagnosis.drawn import calls, columns, function, part, rows, us
from tests.builders import PS

SAVE, LOG = function("save"), function("log", "shop.py", 7)


def test_the_excess_of_every_fourth_step_is_periodic_and_the_rest_is_not() -> None:
    """12 steps of 100 µs: `save` takes 2 µs, but 42, 47 and 37 in steps 3, 7 and 11; `log` takes 5, 6 or 7 in
    each.
    """
    saved = part(Cause.PYTHON, 2, 2, 2, 42, 2, 2, 2, 47, 2, 2, 2, 37, culprit=SAVE, call="write", span=(3, 9))
    logged = part(Cause.PYTHON, *[5, 6, 7] * 4, culprit=LOG)
    kept, (period,) = without_periodic([saved, logged], Calls(), columns(*[100] * 12))
    assert rows(kept) == {
        (Cause.PYTHON, "save", "", "write"): [2] * 12,
        (Cause.PERIODIC, "save", "", "write"): [0, 0, 0, 40, 0, 0, 0, 45, 0, 0, 0, 35],
        (Cause.PYTHON, "log", "", ""): [5, 6, 7] * 4,
    }
    assert (period.culprit, period.call, period.was, period.every, period.n) == (
        SAVE,
        "write",
        Cause.PYTHON,
        4,
        3,
    )
    assert (period.excess_ps, period.mean_ps) == (40 * PS, 10 * PS)
    assert (period.first_ps, period.last_ps, period.programs) == (3, 9, ())


def test_input_that_every_fourth_step_waits_for_stays_input() -> None:
    """Three unlike waits beside the same times in Python, of which the excess is periodic."""
    times = [2, 2, 2, 42, 2, 2, 2, 47, 2, 2, 2, 37]
    waited = part(Cause.INPUT, *times, culprit=LOG)
    saved = part(Cause.PYTHON, *times, culprit=SAVE)
    kept, (period,) = without_periodic([waited, saved], Calls(), columns(*[150] * 12))
    assert rows(kept)[(Cause.INPUT, "log", "", "")] == times
    assert (period.culprit, period.was) == (SAVE, Cause.PYTHON)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([2, 2, 2, 42, 2, 2, 2], "fewer than eight steps"),
        ([2, 2, 2, 42, 2, 2, 2, 2, 2, 2, 2, 2], "once is no period"),
        ([2, 2, 42, 2, 2, 2, 2, 42, 2, 42, 2, 2], "unequal distances"),
        ([2, 2, 7, 16, 2, 2, 2, 16, 2, 2, 2, 16], "14% of the step is noise next to 5%"),
        ([2, 2, 2, 16, 2, 2, 2, 2, 2, 2, 2, 2], "once is no period, however clear"),
        ([2, 2, 2, 6, 2, 2, 2, 6, 2, 2, 2, 6], "4% of the step is little"),
        ([2, 12] * 6, "two kinds of steps in turn"),
        ([2, 42, 42, 2, 2, 42, 42, 2, 2, 42, 42, 2], "two in a row"),
        ([5, 5, 5, 85, 5, 5, 5, 25, 5, 5, 5, 85], "one a quarter of the others"),
        ([2, 2, 2, 2, 2, 2, 2, 42, 2, 42, 2, 42], "none in the first seven steps"),
        ([2, 42, 2, 42, 2, 2, 2, 2, 2, 2, 2, 2], "none in the last eight steps"),
        ([1, 40, 3, 90, 60, 7, 20, 75, 33, 8, 55, 88], "anything"),
    ],
)
def test_what_is_not_periodic(times: list[float], why: str) -> None:
    made = part(Cause.PYTHON, *times, culprit=SAVE)
    kept, periods = without_periodic([made], Calls(), columns(*[100] * len(times)))
    assert (kept, periods) == ((made,), ()), why


def test_work_that_most_steps_do_not_do_may_last_as_long_as_it_likes() -> None:
    """2 µs of 100 are as good as nothing, so that 9 and 44 are one period; of 3 and 15 µs neither is much of
    a step.
    """
    made = part(Cause.PYTHON, 0, 0, 2, 9, 0, 1, 0, 44, 0, 0, 2, 30, culprit=SAVE)
    _kept, (period,) = without_periodic([made], Calls(), columns(*[100] * 12))
    assert (period.every, period.n) == (4, 3)
    little = part(Cause.PYTHON, 0, 0, 2, 3, 0, 1, 0, 15, 0, 0, 2, 6, culprit=SAVE)
    assert without_periodic([little], Calls(), columns(*[101] * 12))[1] == ()


def test_something_small_now_and_then_hides_no_period() -> None:
    """85 µs in every fourth step, and 3 or 4 once or twice in between."""
    made = part(Cause.UNRECORDED, 0, 0, 0, 85, 0, 4, 0, 92, 0, 0, 3, 88)
    _kept, (period,) = without_periodic([made], Calls(), columns(*[100] * 12))
    assert (period.every, period.n) == (4, 3)


def test_every_second_step_is_a_period() -> None:
    made = part(Cause.PYTHON, *[0, 30] * 4, culprit=SAVE)
    kept, (period,) = without_periodic([made], Calls(), columns(*[100] * 8))
    assert (period.every, period.n, period.mean_ps) == (2, 4, 15 * PS)
    assert rows(kept) == {(Cause.PERIODIC, "save", "", ""): [0, 30] * 4}


def test_parts_of_one_culprit_are_judged_together_and_split_again() -> None:
    """`save` itself, and `save` in `write`: together 60 more; a third of what they take goes back to what is
    usual.
    """
    own = part(Cause.PYTHON, *[10, 10, 10, 30] * 3, culprit=SAVE)
    inside = part(Cause.PYTHON, *[10, 10, 10, 50] * 3, culprit=SAVE, call="write")
    kept, (period,) = without_periodic([own, inside], Calls(), columns(*[100] * 12))
    assert period.excess_ps == 60 * PS
    assert period.call == "write"
    times = rows(kept)
    # 80 in such a step, 20 in others: three quarters of each part are excess.
    assert times[Cause.PERIODIC, "save", "", ""] == [0, 0, 0, 22.5] * 3
    assert times[Cause.PERIODIC, "save", "", "write"] == [0, 0, 0, 37.5] * 3
    assert times[Cause.PYTHON, "save", "", ""] == [10, 10, 10, 7.5] * 3


def test_programs_that_these_steps_alone_call_are_named() -> None:
    """Computing has no culprit; `evaluate` runs in every third step, `grow` in all, `once` in one of them."""
    computed = part(Cause.COMPUTE, *[20, 20, 80] * 3)
    called = calls(PROGRAM, evaluate=[0, 0, 2] * 3, grow=[1] * 9, once=[0, 0, 1] + [0] * 6)
    _kept, (period,) = without_periodic([computed], called, columns(*[100] * 9))
    assert (period.culprit, period.was, period.programs) == (Culprit(), Cause.COMPUTE, ("evaluate",))


def test_dispatching_is_its_callers() -> None:
    first = part(Cause.DISPATCH, *[0, 0, 0, 20] * 3, culprit=Culprit("call", "a"), caller=SAVE)
    second = part(Cause.DISPATCH, *[0, 0, 0, 30] * 3, culprit=Culprit("call", "b"), caller=SAVE)
    _kept, (period,) = without_periodic([first, second], Calls(), columns(*[100] * 12))
    assert (period.culprit, period.mean_ps) == (SAVE, 12.5 * PS)


def test_the_longest_period_comes_first() -> None:
    saved = part(Cause.PYTHON, *[0, 0, 0, 40] * 4, culprit=SAVE)
    logged = part(Cause.PYTHON, *[30, 0] * 8, culprit=LOG)
    _kept, periods = without_periodic([saved, logged], Calls(), columns(*[100] * 16))
    assert [(period.culprit, period.every, period.mean_ps) for period in periods] == [
        (LOG, 2, 15 * PS),
        (SAVE, 4, 10 * PS),
    ]


def test_nothing_of_nothing() -> None:
    assert without_periodic([], Calls(), columns()) == ((), ())
    assert without_periodic([], Calls(), columns(*[100] * 9)) == ((), ())


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 6),
    st.lists(st.lists(st.integers(0, 1000), min_size=12, max_size=12), min_size=1, max_size=4),
)
def test_no_time_is_lost(every: int, tables: list[list[int]]) -> None:
    bump = np.where(np.arange(12) % every == every - 1, 400, 0)
    parts = [
        replace(
            part(Cause.PYTHON, *[0] * 12, culprit=(SAVE, LOG)[i % 2], call=str(i)),
            time_ps=np.array(table, np.int64) // 20 + bump,
        )
        for i, table in enumerate(tables)
    ]
    kept, periods = without_periodic(parts, Calls(), np.full(12, 1000, np.int64))
    whole = np.sum([one.time_ps for one in parts], axis=0)
    assert np.sum([one.time_ps for one in kept] or [whole], axis=0).tolist() == whole.tolist()
    assert all((one.time_ps >= 0).all() and one.time_ps.any() for one in kept)
    periodic = sum(one.mean_ps for one in kept if one.cause == Cause.PERIODIC)
    assert periodic == pytest.approx(sum(period.mean_ps for period in periods), abs=len(parts))
    assert us([period.mean_ps for period in periods]) == sorted(
        us([period.mean_ps for period in periods]), reverse=True
    )


def slowed(*, compute: list[float], saving: list[float]) -> tuple[tuple[Part, ...], tuple[Period, ...]]:
    """Steps of 100 µs that compute, during some of which `save` runs."""
    parts = [part(Cause.COMPUTE, *compute)]
    return without_periodic(
        parts, Calls(), columns(*[100] * len(compute)), [StepFunction(SAVE, columns(*saving))]
    )


def test_a_function_that_slows_computing_in_every_fourth_step_is_periodic_work() -> None:
    """Computing usually takes 50 µs, but 60, 64 and 75 in steps 3, 7 and 11. In step 11, `save` itself lasts
    only 20 µs, and cannot cost 25.
    """
    kept, (period,) = slowed(
        compute=[50, 52, 48, 60, 50, 47, 53, 64, 50, 50, 51, 75],
        saving=[0, 0, 0, 12, 0, 0, 0, 30, 0, 0, 0, 20],
    )
    assert rows(kept) == {
        (Cause.COMPUTE, "", "", ""): [50, 52, 48, 50, 50, 47, 53, 50, 50, 50, 51, 55],
        (Cause.PERIODIC, "save", "", ""): [0, 0, 0, 10, 0, 0, 0, 14, 0, 0, 0, 20],
    }
    assert (period.culprit, period.was, period.every, period.n) == (SAVE, Cause.COMPUTE, 4, 3)
    assert us([period.excess_ps]) == [pytest.approx(44 / 3)]


@pytest.mark.parametrize(
    ("compute", "saving", "why"),
    [
        ([50, 50, 50, 54] * 3, [0, 0, 0, 30] * 3, "4% of the step is noise"),
        ([50, 50, 50, 70] * 3, [0, 0, 0, 9] * 3, "it lasts less than half of the excess"),
        ([50, 50, 50, 70] * 3, [0, 0, 0, 30, 0, 0, 30, 0, 0, 0, 0, 30], "at irregular intervals"),
        ([50, 70, 75, 70, 50, 70, 75, 55, 50, 70, 50, 70], [0, 0, 0, 30] * 3, "other steps compute as long"),
        ([50, 50, 50, 70, 50, 50, 50, 70], [0, 0, 0, 30] * 2, "two steps are few"),
    ],
)
def test_what_a_function_does_not_slow(compute: list[float], saving: list[float], why: str) -> None:
    _kept, periods = slowed(compute=compute, saving=saving)
    assert [period.culprit for period in periods if period.culprit == SAVE] == [], why


def test_the_time_of_a_slowing_function_outside_of_computing_belongs_to_the_same_period() -> None:
    """Alone, 3 and 12 µs of `save` would be no period: neither is much of a step."""
    parts = [
        part(Cause.COMPUTE, *[50, 50, 50, 70] * 3),
        part(Cause.PYTHON, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 12, culprit=SAVE),
    ]
    functions = [StepFunction(SAVE, columns(*[0, 0, 0, 30] * 3))]
    kept, periods = without_periodic(parts, Calls(), columns(*[100] * 12), functions)
    assert {(period.culprit, period.every) for period in periods} == {(SAVE, 4)}
    assert rows(kept) == {
        (Cause.COMPUTE, "", "", ""): [50] * 12,
        (Cause.PERIODIC, "save", "", ""): [0, 0, 0, 23, 0, 0, 0, 20, 0, 0, 0, 32],
    }


def test_short_work_far_above_every_other_step_is_periodic_and_so_is_what_it_slows() -> None:
    """Dispatch takes 1 or 2 µs, but 10, 8 and 7 in steps 3, 7 and 11 of 100 µs; these also compute longest:
    66, 62 and 58 instead of 50.
    """
    parts = [
        part(Cause.DISPATCH, 1, 2, 1, 10, 1, 1, 2, 8, 1, 1, 1, 7),
        part(Cause.COMPUTE, 50, 55, 49, 66, 50, 47, 50, 62, 44, 50, 51, 58),
    ]
    kept, periods = without_periodic(parts, Calls(), columns(*[100] * 12))
    assert [(period.was, period.every, period.n) for period in periods] == [
        (Cause.COMPUTE, 4, 3),
        (Cause.DISPATCH, 4, 3),
    ]
    assert us([period.excess_ps for period in periods]) == [12, pytest.approx(22 / 3)]
    assert rows(kept)[Cause.COMPUTE, "", "", ""] == [50, 55, 49, 50, 50, 47, 50, 50, 44, 50, 51, 50]


@pytest.mark.parametrize(
    ("dispatch", "compute", "why"),
    [
        ([1, 2, 1, 10] * 3, [50, 70, 70, 60] * 3, "other steps compute longer"),
        ([1, 2, 1, 10] * 3, [50, 50, 50, 54] * 3, "4% of the step is noise"),
        ([1, 2, 5, 10] * 3, [50, 50, 50, 60] * 3, "10 is not far above 5, so 60 can be anything"),
    ],
)
def test_what_computes_longer_for_another_reason(
    dispatch: list[float], compute: list[float], why: str
) -> None:
    parts = [part(Cause.DISPATCH, *dispatch), part(Cause.COMPUTE, *compute)]
    _kept, periods = without_periodic(parts, Calls(), columns(*[100] * 12))
    assert [period for period in periods if period.was == Cause.COMPUTE and not period.programs] == [], why


def test_calls_that_run_into_the_next_step_occur_once_per_period() -> None:
    """`evaluate` is called 9 times about every fourth step: 7 and 2, 9, 8 and 1, 5 and 4 times. Its steps
    compute 20 µs longer than the other's 50, or 14 and 6.
    """
    computed = part(Cause.COMPUTE, 50, 64, 56, 50, 50, 70, 50, 50, 50, 68, 52, 50, 50, 61, 59, 50)
    called = calls(PROGRAM, evaluate=[0, 7, 2, 0, 0, 9, 0, 0, 0, 8, 1, 0, 0, 5, 4, 0])
    _kept, (period,) = without_periodic([computed], called, columns(*[100] * 16))
    assert (period.every, period.n, period.programs) == (4, 4, ("evaluate",))
    assert us([period.excess_ps, period.mean_ps]) == [20, 5]


@pytest.mark.parametrize(
    ("per_step", "why"),
    [
        ([0, 7, 2, 0, 0, 9, 0, 0, 8, 1, 0, 0, 0, 0, 5, 4], "at distances of 4, 3 and 6"),
        ([0, 7, 2, 1, 0, 9, 1, 1, 0, 8, 1, 1, 0, 9, 1, 0], "in three of four steps"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 7, 2, 0, 0, 9, 0, 0, 5], "none in the first eight steps"),
        ([0, 7, 2, 0, 0, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 0], "twice"),
        ([1] * 16, "in every step"),
        ([0] * 16, "never"),
    ],
)
def test_calls_that_are_not_periodic(per_step: list[int], why: str) -> None:
    computed = part(Cause.COMPUTE, *[50 + n for n in per_step])
    called = calls(PROGRAM, evaluate=per_step)
    assert without_periodic([computed], called, columns(*[100] * 16))[1] == (), why
