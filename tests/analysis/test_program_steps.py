"""Steps of a JAX program that annotates none: from call to call of its main program."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.program_steps import main_calls
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of, us


def starts(trace: Trace) -> list[float]:
    return us(trace.events["start_ps"][main_calls(trace)])


def test_the_main_program_is_the_one_after_which_most_time_passes() -> None:
    """`shrink` is called more often, and is the first; far more time passes after `grow`."""
    trace = trace_of(
        """
        main  [h ] [g ]        [h ][h ][g ]            [h ][g ]     [h ][g ]
        """
    )
    assert starts(trace) == [11, 31, 51, 64]


def test_steps_last_from_call_to_call() -> None:
    """Unlike ones: 20, 16 and 31 µs; after the last call no other begins."""
    trace = trace_of(
        """
        main  [g ] [u          ]  [g ]  [u    ]   [g ] [u                   ]    [g ] [u   ]
        """
    )
    found = steps(trace)
    assert (found.source, found.how) == ("program", "loop")
    assert us(found.duration_ps) == [20, 16, 31]
    assert us(found.start_ps) == [6, 26, 42]
    assert found.name == ("0", "1", "2")
    assert found.n_trimmed == 1


def test_a_call_inside_of_a_call_is_no_step() -> None:
    trace = trace_of(
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
        ("/device:GPU:0:\nmain  [g ]   [g ]     [g ]   [g ]", "not on the host"),
    ],
)
def test_too_little_is_no_loop(text: str, why: str) -> None:
    assert starts(trace_of(text)) == [], why


def test_the_thread_that_calls_most_is_the_loops() -> None:
    trace = trace_of(
        """
        other       [h ]           [h ]          [h ]                        [h ]
        main  [g ]   [g ]     [g ]   [g ]  [g ]
        """
    )
    assert starts(trace) == [6, 13, 22, 29, 35]


def test_calls_that_follow_one_another_closely_are_steps_all_the_same() -> None:
    trace = trace_of("main  [g   ][g  ][g      ][g ]")
    assert us(steps(trace).duration_ps) == [6, 5, 9]


def test_annotated_steps_win() -> None:
    trace = trace_of(
        """
        main  [train           ][train           ]
        main   [g ]  [g ][d ]     [g ] [g ] [d ]
        """
    )
    assert steps(trace).source == "annotation"
    assert us(steps(trace).duration_ps) == [18, 18]


def test_the_last_call_counts_as_long_as_it_lasts() -> None:
    """After `grow` 5 + 5 + 28 µs pass, in the last 28 of which it runs itself; after `shrink` 10 + 10 + 10."""
    trace = trace_of("main  [g ] [h      ] [g ] [h      ] [h      ] [g                          ]")
    assert starts(trace) == [6, 21, 46]
