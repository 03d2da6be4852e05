"""The place of unrecorded time in a step."""

from __future__ import annotations

from hypothesis import given, settings

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.parts import parts
from tb_tpuprof.analysis.diagnosis.records import DEVICE_WORK, Gap
from tb_tpuprof.analysis.diagnosis.unrecorded import gaps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import columns, evidence, part, rows, trace_of, us
from tests.analysis.diagnosis.random_traces import traces
from tests.analysis.diagnosis.rule_findings import only
from tests.builders import PS


def where(trace: Trace) -> dict[tuple[str, str], list[float]]:
    return {(gap.before, gap.after): us(gap.time_ps) for gap in gaps(trace)}


def test_gaps_are_named_by_what_lies_around_them() -> None:
    """Three unlike steps: 7, 3 and 0 µs between the program and the operation, 4, 0 and 2 before the program,
    0, 5 and 1 at the end.
    """
    trace = trace_of(
        """
        main  [train               ][train             ][train         ]
        main      [g ]       [d   ] [g     ]   [d ]       [g ][d     ]
        """
    )
    assert where(trace) == {
        ("PjitFunction(grow)", "dot:Dot"): [7, 3, 0],
        ("", "PjitFunction(grow)"): [4, 0, 2],
        ("dot:Dot", ""): [1, 5, 2],
    }
    first, *_ = gaps(trace)
    assert (first.first_ps, first.last_ps) == (14 * PS, 21 * PS)
    assert rows(parts(trace))[Cause.UNRECORDED, "", "", ""] == [12, 8, 4]


def test_what_ends_last_is_before_a_gap_not_what_begins_last() -> None:
    """The pool's operation begins before the call, and outlasts it."""
    trace = trace_of(
        """
        main  [train               ][train               ]
        main  [o][g ]         [d   ][o][g ]        [h    ]
        pool    [e        ]           [e       ]
        """,
        {"o": "send", "e": "mul:Mul"},
        {"o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}], "e": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}]},
    )
    assert where(trace) == {("mul:Mul", "dot:Dot"): [3, 0], ("mul:Mul", "PjitFunction(shrink)"): [0, 3]}


def test_what_ends_last_is_before_the_end_of_the_step() -> None:
    trace = trace_of(
        """
        main  [train               ][train               ]
        main  [o][g ]               [o][g ]
        pool    [e        ]           [e       ]
        """,
        {"o": "send", "e": "mul:Mul"},
        {"o": [{"_pt": 1, "_p": 1}, {"_pt": 1, "_p": 2}], "e": [{"_ct": 1, "_c": 1}, {"_ct": 1, "_c": 2}]},
    )
    assert where(trace) == {("mul:Mul", ""): [9, 10]}


def test_only_the_longest_three_kinds_are_kept() -> None:
    trace = trace_of(
        """
        main  [train                                  ][train               ]
        main     [g ]     [d   ] [h ]  [d  ]      [c ]   [d ]
        """
    )
    assert where(trace) == {
        ("dot:Dot", ""): [0, 16],
        ("dot:Dot", "backend_compile"): [6, 0],
        ("PjitFunction(grow)", "dot:Dot"): [5, 0],
    }


def test_a_gap_in_words() -> None:
    def words(before: str, after: str) -> str:
        return Gap(before, after, columns(1, 2, 3), 0, 1).where

    assert words("a", "b") == "between `a` and `b`"
    assert "`a`" in words("a", "")
    assert "end" in words("a", "")
    assert words("", "b") == "before `b`"
    assert "`" not in words("", "")
    assert words(DEVICE_WORK, "b") == "between the device's work and `b`"


def test_a_gap_of_one_step() -> None:
    gap = Gap("a", "b", columns(1, 2, 3), 0, 1)
    assert us(gap.of_step(1).time_ps) == [2]
    assert (gap.of_step(1).before, gap.of_step(1).after) == ("a", "b")


def test_without_steps_there_are_no_gaps() -> None:
    assert gaps(trace_of("main  [g  ]   [h  ]")) == ()


@settings(max_examples=100, deadline=None)
@given(traces())
def test_gaps_of_any_trace_are_no_longer_than_what_is_unrecorded(trace: Trace) -> None:
    unrecorded = [one.time_ps for one in parts(trace) if one.cause == Cause.UNRECORDED]
    for number in range(len(parts(trace)[0].time_ps) if parts(trace) else 0):
        times = [int(gap.time_ps[number]) for gap in gaps(trace)]
        assert all(time >= 0 for time in times)
        callbacks = sum(
            int(one.time_ps[number])
            for one in parts(trace)
            if one.klass == 0 and one.cause == Cause.CALLBACKS
        )
        assert sum(times) <= sum(int(time[number]) for time in unrecorded) + callbacks
    assert all(gap.first_ps < gap.last_ps for gap in gaps(trace))


def test_time_that_was_not_recorded_is_not_waiting_for_data_if_the_work_was_called_before() -> None:
    for is_ahead, start in (
        (False, "Python ran, or the thread waited, perhaps for data: "),
        (True, "Not waiting for data: each step's work was called before the previous step's work ended. "),
    ):
        given = evidence(part(Cause.UNRECORDED, 20, 40, 60), has_python=False, is_ahead=is_ahead)
        assert only("not_recorded", given).reason.startswith(start)
