"""What makes a stretch a wait, and what is summed of each: compared with loops, and at the limits."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.synchronizing import (
    _are_silent,
    _function_of,
    _is_dispatch,
    _sync,
    _text,
    synchronizing,
)
from tests.analysis.diagnosis.drawn import trace_of, us
from tests.builders import drawing

Int64s = npt.NDArray[np.int64]
LEGEND = {"d": "dot.3", "f": "$array.py:10 __float__", "w": "$mine.py:60 loss"}


def busy_until(spans: list[tuple[int, int]]) -> object:
    """How long any of some spans covers up to each moment."""

    def busy(moments: Int64s) -> Int64s:
        return np.array(
            [sum(max(min(moment, last) - first, 0) for first, last in spans) for moment in moments.tolist()],
            np.int64,
        )

    return busy


@pytest.mark.parametrize("seed", range(10))
def test_silent_stretches_are_those_that_computing_fills_and_ends(seed: int) -> None:
    """They last 5% of the step, computing covers 80% of them and 30% of the last 2% of the step, and at most
    30% of the next 2%.
    """
    rng = random.Random(f"silent {seed}")
    n_silent = 0
    for _ in range(60):
        length = rng.choice((1000, 2000))
        near = length * 2 // 100
        start = rng.randint(0, 3) * 100
        end = start + rng.choice((length * 5 // 100 - 1, length * 5 // 100, rng.randint(30, 400)))
        done = end + rng.choice((0, -1, near // 2, -near // 2, -(near * 7 // 10), near * 3 // 10, near))
        covered = rng.choice((0.79, 0.8, 0.9, 1.0))
        first = end - round(covered * (end - start))
        spans = [(min(first, done), max(first, done))]
        if rng.random() < 0.3:
            spans.append((end + near // 2, end + near))
        busy = busy_until(spans)

        def of(a: int, b: int, busy: object = busy) -> int:
            return int((busy(np.array([b])) - busy(np.array([a])))[0])  # type: ignore[operator]

        expected = (
            end - start >= 0.05 * length
            and of(start, end) >= 0.8 * (end - start)
            and of(end - near, end) >= 0.3 * near
            and of(end, end + near) <= 0.3 * near
        )
        arrays = np.array([start]), np.array([end])
        assert _are_silent(arrays, np.array([length]), busy).tolist() == [expected]  # type: ignore[arg-type]
        n_silent += expected
    assert 3 < n_silent < 57


def test_waits_of_a_call_are_summed_in_each_step() -> None:
    """(step, start, end, free time after it, free time before more dispatch)."""
    table = [(0, 5, 9, 4, 4), (2, 50, 61, 7, 0), (2, 70, 75, 1, 1), (0, 11, 12, 2, 0)]
    computed = np.array([30, 40, 50, 60])
    sync = _sync(("float", Culprit("function", "loss")), table, 4, computed)
    assert (sync.call, sync.culprit.name) == ("float", "loss")
    assert sync.per_step.tolist() == [2, 0, 2, 0]
    assert sync.after_ps.tolist() == [6, 0, 8, 0]
    assert sync.before_dispatch_ps.tolist() == [4, 0, 1, 0]
    assert sync.computed_ps is computed
    assert (sync.first_ps, sync.last_ps) == (50, 61)


def test_calls_that_dispatch() -> None:
    names = (
        "PjitFunction(f)",
        "EagerExecute: Mul",
        "FunctionRun",
        "cudaLaunchKernel",
        "hipLaunchKernel",
        "cudaMalloc",
        "PjitFunction",
        "$mine.py:4 f",
    )
    trace = drawing("main " + "".join(f"[{name}]" for name in names))
    assert _is_dispatch(trace).tolist() == [True] * 5 + [False] * 3
    assert _text(trace, 7) == "f"
    assert _text(trace, 5) == "cudaMalloc"
    assert _function_of(trace, 7) == Culprit("function", "f", "mine.py", 4)
    assert _function_of(trace, 5) == Culprit()


def test_time_before_more_dispatch_is_apart_from_that_before_the_end() -> None:
    """Behind the first wait 5 µs until the next dispatch of the step; behind the second 8 until its function
    ends, though the next step dispatches.
    """
    (sync,) = synchronizing(
        trace_of(
            """
            main  [train                ][train                 ][train                  ]
            main  [u                   ] [u               ]      [u                    ]
            main   [d   ][a  ]     [g ]   [d ] [a ]               [g ][d   ]
            """,
            LEGEND,
            {"d": {"hlo_op": "dot.3"}},
        )
    )
    assert (us(sync.after_ps), us(sync.before_dispatch_ps)) == ([5, 8, 0], [5, 0, 0])


def test_another_wait_ends_the_time_behind_a_wait() -> None:
    """6 µs lie between the two waits of the first step, and 8 behind the second until the function ends."""
    (sync,) = synchronizing(
        trace_of(
            """
            main  [train                            ][train       ]
            main  [u                           ]     [d         ]
            main   [d   ][a  ]      [a ]
            """,
            LEGEND,
            {"d": {"hlo_op": "dot.3"}},
        )
    )
    assert (sync.per_step.tolist(), us(sync.after_ps)) == ([2, 0], [6 + 8, 0])
    assert us(sync.before_dispatch_ps) == [6, 0]


def test_waits_of_unlike_calls_and_functions_are_apart_the_costliest_first() -> None:
    found = synchronizing(
        trace_of(
            """
            main  [train                                          ][train       ]
            main  [u             ][w                         ]     [d         ]
            main   [d ][a  ]       [d ][f  ]   [g][a ]
            """,
            LEGEND,
            {"d": {"hlo_op": "dot.3"}},
        )
    )
    assert [(one.call, one.culprit.name, us(one.after_ps)) for one in found] == [
        ("np.asarray(jax.Array)", "loss", [8, 0]),
        ("np.asarray(jax.Array)", "update", [6, 0]),
        ("__float__", "loss", [3, 0]),
    ]


def test_of_waits_that_lose_nothing_the_most_frequent_comes_first() -> None:
    first, second = synchronizing(
        trace_of(
            """
            main  [train                                          ][train          ]
            main  [u      ][w     ][w     ]                        [d         ]
            main      [a  ]   [f  ]    [f ]
            """,
            LEGEND,
        )
    )
    assert (first.culprit.name, second.culprit.name) == ("loss", "update")


@pytest.mark.parametrize(("n_columns", "n"), [(4, 0), (5, 1)])
def test_a_call_waits_from_half_a_percent_of_the_step_on(n_columns: int, n: int) -> None:
    """Of 1000 columns."""
    wait = f"[a{' ' * (n_columns - 3)}]"
    trace = trace_of(f"main  [train{' ' * 993}]\nmain  [u{' ' * 900}]\nmain   [d  ]{wait}", LEGEND)
    assert len(synchronizing(trace)) == n
