"""First steps that take long."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.warming import warming
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of
from tests.builders import PS


def job(first: str, n: int = 7) -> Trace:
    """A first step of 40 µs with what is given in it, then steps of 9, 10, 11, 12 … µs: call of 2 µs,
    operation of 3.
    """
    steps, inside = box("train", 40), " " + first.ljust(39)
    for i in range(n - 1):
        steps += box("train", 9 + i)
        inside += " " + box("", 2) + box("d", 3) + " " * (3 + i)
    return trace_of(f"main  {steps}\nmain  {inside}", {"i": "IteratorGetNext"})


def box(name: str, width: int) -> str:
    """An event of a drawing."""
    return f"[{name:<{width - 2}}]"


@pytest.mark.parametrize(
    ("first", "cause", "more_us"),
    [
        (box("c", 29) + box("d", 3), Cause.COMPILATION, 29),
        (box("i", 26) + box("d", 3), Cause.INPUT, 26),
        (box("u", 31) + box("d", 3), Cause.PYTHON, 31),
        # The others compute for 2 + 3 µs.
        (box("d", 32), Cause.COMPUTE, 27),
    ],
)
def test_a_long_first_step_is_told_with_what_it_did_more_of(first: str, cause: Cause, more_us: int) -> None:
    found = warming(job(first))
    assert found is not None
    # Shown are the five in the middle: 9, 10, 11, 12 and 13 µs.
    assert (found.name, found.duration_ps, found.usual_ps, found.start_ps) == (
        "train 0",
        40 * PS,
        11 * PS,
        6 * PS,
    )
    assert (found.cause, found.cause_ps) == (cause, more_us * PS)


def test_a_first_step_of_less_than_twice_the_usual_is_none() -> None:
    steps = "[train    ]" * 7
    assert warming(trace_of(f"main  {steps}\nmain  {' [d      ]  ' * 7}")) is None


def test_of_few_steps_the_first_is_shown_like_the_others() -> None:
    assert warming(job(box("c", 29) + box("d", 3), n=5)) is None


def test_without_steps_there_is_none() -> None:
    assert warming(trace_of("main  [u  ]")) is None


def test_compilation_before_the_first_step_has_no_name() -> None:
    """Steps of 10, 10 and 12 µs, so that less than 20 is none: 13, where the first step begins while the
    second thread compiles.
    """
    text = """
    main   [c       ]   {first}[train   ][train   ][train     ]
    main                {first} [d    ]   [d    ]   [d     ]
    other      [c         ]
    """
    assert warming(trace_of(text.format(first=""))) is None
    long = warming(trace_of(text.format(first=" " * 4 + box("c", 9))))
    assert long is not None
    # From 7 to 17 and from 11 to 23, and 9 more.
    assert (long.name, long.duration_ps, long.usual_ps, long.cause, long.start_ps) == (
        "",
        25 * PS,
        10 * PS,
        Cause.COMPILATION,
        7 * PS,
    )


def test_compiling_counts_with_a_first_step_that_begins_after_it() -> None:
    """Compiled for 9 µs and then a first step of 15: neither is twice the usual 11, both together are."""
    steps, inside = box("train", 15), " " + box("d", 13) + " "
    for i in range(6):
        steps += box("train", 9 + i)
        inside += " " + box("d", 6) + " " * (2 + i)
    assert warming(trace_of(f"main  {' ' * 10}{steps}\nmain  {' ' * 10}{inside}")) is None
    first = warming(trace_of(f"main  {box('c', 9)} {steps}\nmain  {' ' * 10}{inside}"))
    assert first is not None
    assert (first.name, first.duration_ps, first.cause) == ("train 0", 24 * PS, Cause.COMPILATION)
    assert first.cause_ps == (9 + 15 - first.usual_ps // PS) * PS
