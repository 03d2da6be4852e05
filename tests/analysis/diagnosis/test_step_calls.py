"""Number of calls in each step."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.records import Calls
from tb_tpuprof.analysis.diagnosis.step_calls import COMPILE, EAGER, LAUNCH, PROGRAM, step_calls
from tests.analysis.diagnosis.drawn import calls, trace_of

LEGEND = {
    "e": "EagerLocalExecute: MatMul",
    "i": "PjitFunction(__inference_grow_12)",
    "j": "PjitFunction(__inference_grow_34)",
    "l": "cudaLaunchKernel",
    "t": "tf.function-graph_building",
    "r": "$mine.py:5 retraced",
    "x": "CpuCompiler::Compile",
    "y": "lower_sharding_computation",
    "z": "hipGraphLaunch",
}


def counted(found: Calls) -> dict[tuple[str, str], list[int]]:
    return {(call.kind, call.name): call.per_step.tolist() for call in found.all}


def test_calls_are_counted_in_the_step_in_which_they_begin() -> None:
    """Three unlike steps; the last call of the first one reaches into the second; one call is before all
    steps, on another thread.
    """
    trace = trace_of(
        """
        main        [train              ][train          ][train             ]
        main         [g ][g ][h ][d  ]     [g ][h ]  [d]   [e][e][l][d]  [z]
        worker  [g ]                  [h   ]   [h ]          [g ]
        """,
        LEGEND,
    )
    assert counted(step_calls(trace)) == {
        (PROGRAM, "shrink"): [2, 2, 0],
        (PROGRAM, "grow"): [2, 1, 1],
        (EAGER, "MatMul"): [0, 0, 2],
        (LAUNCH, "cudaLaunchKernel"): [0, 0, 1],
        (LAUNCH, "hipGraphLaunch"): [0, 0, 1],
    }


def test_a_call_that_is_written_twice_is_one() -> None:
    """PjitFunction is recorded twice, one inside the other; another program inside it is a separate call."""
    trace = trace_of(
        """
        main   [train           ][train     ][train    ]
        main    [g          ][d]  [g ][d ]    [h   ][d]
        main     [g     ]          []          [g ]
        main      [h]
        """
    )
    assert counted(step_calls(trace)) == {(PROGRAM, "grow"): [1, 1, 1], (PROGRAM, "shrink"): [1, 0, 1]}


def test_numbers_of_functions_are_no_part_of_their_names() -> None:
    trace = trace_of(
        """
        main   [train           ][train     ][train    ]
        main    [i ][j ]    [d]   [j ] [d]    [d]
        """,
        LEGEND,
    )
    assert counted(step_calls(trace)) == {(PROGRAM, "grow"): [2, 1, 0]}


def test_compilations_are_of_the_program_around_them_and_those_inside_another_count_once() -> None:
    trace = trace_of(
        """
        main   [train               ][train            ][train     ]
        main    [g           ][d]     [r         ][d]    [c  ][d]
        main     [c   ][c  ]           [t       ]
        main      [x]                     [c ]
        main    [y]
        """,
        LEGEND,
    )
    # Of `backend_compile` all are counted under what the first of them compiles.
    assert counted(step_calls(trace)) == {
        (COMPILE, "grow"): [2, 0, 1],
        (COMPILE, "$mine.py:5 retraced"): [0, 1, 0],
        (PROGRAM, "grow"): [1, 0, 0],
    }


def test_sums_and_single_steps() -> None:
    mixed = Calls(calls(PROGRAM, grow=[3, 0, 6], shrink=[0, 2, 1]).all + calls(EAGER, Mul=[5, 5, 5]).all)
    assert mixed.per_step(PROGRAM) == 4
    assert mixed.per_step(EAGER) == 5
    assert mixed.per_step(LAUNCH) == 0
    assert [call.name for call in mixed.of(PROGRAM)] == ["grow", "shrink"]
    assert mixed.of(PROGRAM)[0].mean == 3
    assert counted(mixed.of_step(0)) == {(PROGRAM, "grow"): [3], (EAGER, "Mul"): [5]}
    assert counted(mixed.of_step(2)) == {
        (PROGRAM, "grow"): [6],
        (PROGRAM, "shrink"): [1],
        (EAGER, "Mul"): [5],
    }


def test_the_most_frequent_comes_first() -> None:
    trace = trace_of(
        """
        main   [train            ][train          ]
        main    [h ][g ][g ][d]    [e][g][h][d]
        """,
        LEGEND,
    )
    assert [call.name for call in step_calls(trace).all] == ["grow", "shrink", "MatMul"]
    assert step_calls(trace).all[0].mean == pytest.approx(1.5)


def test_without_steps_nothing_is_counted() -> None:
    assert step_calls(trace_of("main  [g  ][h  ]")) == Calls()
    assert Calls().per_step(PROGRAM) == 0
    assert Calls().of_step(3) == Calls()


def test_the_first_event_of_a_trace_is_around_others_like_any_other() -> None:
    """On a thread that is drawn before the steps'."""
    trace = trace_of(
        """
        worker   [g                 ]
        worker    [g    ]     [c ]
        main   [train               ][train          ]
        main     [d]                    [d]
        """
    )
    assert counted(step_calls(trace)) == {(PROGRAM, "grow"): [1, 0], (COMPILE, "grow"): [1, 0]}


def test_a_program_without_a_name_is_counted() -> None:
    trace = trace_of("main [train    ][train    ]\nmain  [o ][d ]    [o ]", {"o": "PjitFunction()"})
    assert counted(step_calls(trace)) == {(PROGRAM, ""): [1, 1]}
