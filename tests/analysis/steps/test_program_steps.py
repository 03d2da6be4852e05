"""Steps of loops that annotate none: from call to call of the main program."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.steps.program import main_calls, n_phases
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of

COLUMN_PS = 200 * 10**6  # 5 columns are a millisecond
EAGER = {"e": "EagerLocalExecute: MatMul", "f": "EagerLocalExecute: Mul"}


def loop(text: str) -> Trace:
    return trace_of(text, EAGER, column_ps=COLUMN_PS)


def starts(trace: Trace) -> list[float]:
    """In columns of the drawing."""
    return (trace.events["start_ps"][main_calls(trace)] / COLUMN_PS).tolist()


def test_of_programs_that_are_spread_alike_the_rarest_is_the_main_one() -> None:
    """`grow` is called four times, twice in the last step; `shrink` once in each of three."""
    trace = loop(
        """
        main  [g ] [h ]             [g ] [h ]               [g ][g ] [h ]
        """
    )
    assert starts(trace) == [11, 33, 61]


def test_of_equally_frequent_ones_the_first_is() -> None:
    trace = loop("main  [h ] [g ]        [h ] [g ]    [h ] [g ]")
    assert starts(trace) == [6, 23, 36]


def test_one_of_many_small_programs_is_not() -> None:
    """`shrink` is called eight times, but every 0.8 ms; `grow` three times, every 3 ms."""
    trace = loop("main  [h ][h ][h ][h ][g ][h ][h ][h ][h ]     [g ]        [g ]")
    assert starts(trace) == [22, 47, 59]


def test_steps_last_from_call_to_call() -> None:
    """Unlike ones: 20, 16 and 31 columns; after the last call no other begins."""
    trace = loop(
        """
        main  [g ] [u          ]  [g ]  [u    ]   [g ] [u                   ]    [g ] [u   ]
        """
    )
    found = steps(trace)
    assert (found.source, found.how) == ("program", "loop")
    assert (found.duration_ps / COLUMN_PS).tolist() == [20, 16, 31]
    assert (found.start_ps / COLUMN_PS).tolist() == [6, 26, 42]
    assert found.name == ("0", "1", "2")
    assert found.n_trimmed == 1


def test_operations_that_run_eagerly_make_steps_where_no_program_does() -> None:
    text = "main  [e ] [f ]        [e ][f ]         [e ] [f ]      [e ]"
    assert starts(loop(text)) == [11, 27, 45]
    # A program of JAX wins, although it is called less often.
    assert starts(loop(f"{text} [g ]     [g ]    [g ]")) == [60, 69, 77]


def test_a_call_inside_of_a_call_is_no_step() -> None:
    trace = loop(
        """
        main  [h            ]     [h        ]    [h        ]
        main    [g  ][g   ]         [g  ]          [g ]
        """
    )
    assert starts(trace) == [6, 26, 41]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("main  [g ]   [g ]     [h ]   [h ]", "no program is called three times"),
        ("main  [u ]   [u ]     [u ]   [u ]", "no program is called"),
        ("main  [g][g][g][g]", "the calls follow one another within a millisecond"),
        ("/device:GPU:0:\nmain  [g ]   [g ]     [g ]   [g ]", "not on the host"),
    ],
)
def test_too_little_is_no_loop(text: str, why: str) -> None:
    assert starts(loop(text)) == [], why


def test_the_thread_that_calls_most_is_the_loops() -> None:
    trace = loop(
        """
        other       [h ]           [h ]          [h ]                        [h ]
        main  [g ]   [g ]     [g ]   [g ]  [g ]
        """
    )
    assert starts(trace) == [6, 13, 22, 29, 35]


def test_calls_that_follow_one_another_closely_are_steps_all_the_same() -> None:
    trace = loop("main  [g   ][g  ][g      ][g ]")
    assert (steps(trace).duration_ps / COLUMN_PS).tolist() == [6, 5, 9]


def test_annotated_steps_win() -> None:
    trace = loop(
        """
        main  [train           ][train           ]
        main   [g ]  [g ][d ]     [g ] [g ] [d ]
        """
    )
    assert steps(trace).source == "annotation"
    assert (steps(trace).duration_ps / COLUMN_PS).tolist() == [18, 18]


def test_calls_that_come_at_once_are_as_far_apart_as_their_runs() -> None:
    """Four calls in 2 ms of a thread that never waits; their runs take 3, 4, 2 and 3 ms."""
    trace = trace_of(
        """
        main  [g ][g ][g ][g ]
        main   [c] [c] [c] [c]
        pool    [r            ][r                 ][r       ][r            ]
        """,
        {"c": "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", "r": "dot.3"},
        {"r": [{"run_id": number, "hlo_op": "dot.3"} for number in (4, 5, 6, 7)]},
        COLUMN_PS // 2,
    )
    assert (trace.events["start_ps"][main_calls(trace)] * 2 // COLUMN_PS).tolist() == [6, 10, 14, 18]
    assert len(steps(trace)) == 4


TURNS = "[g ] [u    ] [g ] [v   ] [g ] [s  ] "


def test_a_loop_that_calls_it_in_turns_has_a_step_for_each_turn() -> None:
    """`grow` before `update`, before `report` and before a sleep, three times: three steps of three calls,
    the last of them open.
    """
    trace = loop("main  " + TURNS * 3)
    assert len(TURNS) == 36
    assert starts(trace) == [6, 42, 78]
    assert n_phases(trace) == 3
    found = steps(trace)
    assert (found.duration_ps / COLUMN_PS).tolist() == [36, 36]


def test_work_of_every_third_call_makes_no_turn() -> None:
    """One of three calls is followed by something of its own, the others by nothing of theirs: periodic work
    of every third step.
    """
    trace = loop("main  " + "[g ] [u  ] [g ] [u  ] [g ] [u  ] [v   ] " * 3)
    assert len(starts(trace)) == 9
    assert n_phases(trace) == 1


def test_two_turns_are_too_few_to_tell() -> None:
    trace = loop("main  " + TURNS * 2)
    assert len(starts(trace)) == 6
    assert n_phases(trace) == 1


def test_calls_inside_of_one_frame_of_the_loop_are_of_one_step() -> None:
    """`fit` calls `update` three times, which calls the operation twice, once in `report`: 30 and 34 columns
    from first to first.
    """
    trace = trace_of(
        """
        main  [x                                                                                                       ]
        main    [u                         ]  [u                         ]      [u                         ]
        main      [e ][v    ]                   [e ][v    ]                       [e ][v    ]
        main           [e ]                          [e ]                              [e ]
        """,
        {**EAGER, "x": "$keras_loop.py:3 fit"},
        column_ps=COLUMN_PS,
    )
    assert starts(trace) == [10, 40, 74]
    assert n_phases(trace) == 2


def test_calls_of_a_loop_that_holds_nothing_else_are_steps() -> None:
    trace = trace_of(
        "main  [u                              ]\nmain   [e ]      [e ]    [e ]   [e ]",
        EAGER,
        column_ps=COLUMN_PS,
    )
    assert starts(trace) == [7, 17, 25, 32]
    assert n_phases(trace) == 1
