"""Where steps wait, in words: functions and annotations by their share of a category's time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.metrics import no_ops
from tb_tpuprof.analysis.ops.recommend import _where, finding
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import FirstStep
from tb_tpuprof.analysis.steps.waits import StepWait
from tests.analysis.ops.test_cost_sentences import MS, steps_of

NO_OPS = OpStats(no_ops(), no_ops(), no_ops())
LOADER, PYTHON = TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_PYTHON


def wait(kind: TimeClass, name: str, ms: int, file: str = "x.py") -> StepWait:
    """A wait in the second of two steps."""
    return StepWait(kind, name, file, 3 if file else 0, np.array([0, ms]) * MS)


@pytest.mark.parametrize(
    ("waits", "text"),
    [
        ([], ""),
        ([wait(PYTHON, "f", 900)], ""),  # of another kind
        ([wait(LOADER, "f", 900)], " in `f` (x.py:3)"),
        ([wait(LOADER, "f", 899)], ", most of it in `f` (x.py:3)"),
        ([wait(LOADER, "f", 400, ""), wait(PYTHON, "p", 990), wait(LOADER, "g", 400)], ", most of it in `f`"),
        (
            [wait(LOADER, "f", 399), wait(LOADER, "g", 300), wait(LOADER, "h", 100), wait(LOADER, "i", 99)],
            " in `f` (x.py:3) and `g` (x.py:3) and `h` (x.py:3)",
        ),
        (
            [wait(LOADER, "f", 300), wait(LOADER, "g", 300), wait(LOADER, "h", 99)],
            " in `f` (x.py:3) and `g` (x.py:3)",
        ),
        ([wait(LOADER, n, 200) for n in "abcd"], " in `a` (x.py:3) and `b` (x.py:3) and `c` (x.py:3)"),
        ([wait(LOADER, n, 90) for n in "abc"], ""),
    ],
)
def test_the_places_of_a_second_of_waiting(waits: list[StepWait], text: str) -> None:
    steps = steps_of({"HOST_WAIT_LOADER": 400}, {"HOST_WAIT_LOADER": 600})
    assert _where(replace(steps, waits=tuple(waits)), "input") == text


def test_waits_of_a_category_without_time_have_no_place() -> None:
    assert _where(replace(steps_of({}, {}), waits=(wait(LOADER, "f", 0),)), "input") == ""


@pytest.mark.parametrize(
    ("waits", "text"),
    [
        (
            [wait(PYTHON, "f", 400)],
            "Highly Python-bound: each step spends 200 ms (20.0%) in Python in `f` (x.py:3).",
        ),
        (
            [wait(PYTHON, "f", 400, "")],
            (
                "200 ms (20.0%) of each step is in `f`, where no operation was traced: Python, other host"
                " work, or waiting."
            ),
        ),
        ([wait(LOADER, "f", 400, "")], "Highly Python-bound: each step spends 200 ms (20.0%) in Python."),
    ],
)
def test_python_and_annotations(waits: list[StepWait], text: str) -> None:
    steps = steps_of({"HOST_PYTHON": 200}, {"HOST_PYTHON": 200})
    assert finding(replace(steps, waits=tuple(waits)), NO_OPS, "GPU").text == text


@pytest.mark.parametrize(
    ("duration", "waited", "is_told"), [(3001, 1501, True), (3000, 1501, False), (3001, 1500, False)]
)
def test_a_first_step_that_fills_a_buffer(duration: int, waited: int, is_told: bool) -> None:
    """It takes more than three times as long as usual, most of it waiting for data."""
    class_ps = np.zeros(N_CLASSES, np.int64)
    class_ps[LOADER] = waited * MS
    first = FirstStep("train 0", 0, duration * MS, 1000 * MS, class_ps)
    details = finding(replace(steps_of({}), first=first), NO_OPS, "GPU").details
    told = (
        (
            "The first step (train 0) waited 1.50 s of 3.00 s for data and is left out: buffers are"
            " filled and workers started only once."
        ),
    )
    assert details == (told if is_told else ())
