"""The parts of sentences that findings share, and the bounds of their gains.

Steps take 100, 200 and 300 µs.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence
from tb_tpuprof.analysis.diagnosis.records import Part
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    by_culprit,
    fix_for,
    gain,
    listed,
    most_called,
    most_gain,
    often,
    python_option,
    shown,
    time_and_share,
    total,
    usual,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, SERVING, TENSORFLOW, UNKNOWN
from tests.analysis.diagnosis.drawn import columns, evidence, function, part
from tests.analysis.diagnosis.rule_findings import US
from tests.builders import PS

UPDATE, REPORT = function("update"), function("report", "shop.py", 7)


def python(*times_us: float, **given: object) -> Part:
    return part(Cause.PYTHON, *times_us, **given)  # type: ignore[arg-type]


def test_the_fix_is_that_of_the_framework_else_the_general_one() -> None:
    fixes = {JAX: Fix("jit"), TENSORFLOW: Fix("graph"), "": Fix("other")}
    texts = {
        name: fix_for(fixes, evidence(framework=name)).text
        for name in (JAX, TENSORFLOW, SERVING, PYTORCH, UNKNOWN)
    }
    assert texts == {JAX: "jit", TENSORFLOW: "graph", SERVING: "graph", PYTORCH: "other", UNKNOWN: "other"}


def test_how_to_capture_python() -> None:
    assert python_option(evidence(has_python=True)) == ""
    options = {
        framework: python_option(evidence(framework=framework, has_python=False))
        for framework in (JAX, TENSORFLOW, PYTORCH)
    }
    assert options == {
        JAX: "python_tracer_level=1",
        TENSORFLOW: "tpuprof capture --python_tracer_level 1",
        PYTORCH: "with_stack=True",
    }


@pytest.mark.parametrize(
    ("time_us", "gain_us"),
    [
        (40, (20, 80)),  # at most 40 and 0.8 of the other 160
        (100, (50, 180)),  # 100 + 0.8 * 100
        (200, (100, 200)),
        (0, (0, 0)),
    ],
)
def test_a_gain_is_a_factor_of_the_time_up_to_most_of_the_rest(
    time_us: float, gain_us: tuple[float, float]
) -> None:
    given = evidence()
    assert gain(given, time_us * US, 0.5, 2.0) == tuple(pytest.approx(one * US) for one in gain_us)
    assert most_gain(given, time_us * US) == pytest.approx((time_us + 0.8 * (200 - time_us)) * US)


def test_a_gain_of_more_than_the_step_is_bounded_on_both_sides() -> None:
    assert gain(evidence(), 100 * US, 2.0, 3.0) == (180 * US, 180 * US)


def test_a_time_with_its_share_of_the_step() -> None:
    assert time_and_share(evidence(), 25 * US) == "25.0 µs (12.5%)"
    assert time_and_share(evidence(steps_us=()), 25 * US) == "25.0 µs (0%)"


def test_times_of_parts_are_summed() -> None:
    parts = [python(0, 12, 48), python(5, 5, 2)]
    assert (total(parts), usual(parts)) == (24 * US, 17 * US)
    assert (total([]), usual([])) == (0, 0)


def test_the_longest_part_is_shown_with_its_place() -> None:
    given = evidence()
    short, long = python(1, 2, 3, span=(4, 5)), python(4, 4, 4, span=(0, 7))
    assert shown(given, [short, long], "Here") == (Evidence("Here", "worker-0", 0, 7),)
    assert shown(given, [python(4, 4, 4), short], "Here") == (Evidence("Here"),)
    assert shown(given, [], "Here") == (Evidence("Here"),)
    assert shown(given, [], "") == ()
    assert shown(given, [short], "") == (Evidence("", "worker-0", 4, 5),)


def test_parts_are_grouped_by_the_function_to_blame() -> None:
    def blamed(*parts: Part) -> list[tuple[str, float]]:
        return [(culprit.name, sum(one.mean_ps for one in mine) / PS) for culprit, mine in by_culprit(parts)]

    mine = python(3, 3, 3, culprit=UPDATE)
    called = python(6, 6, 6, culprit=Culprit("call", "x"), caller=UPDATE)
    annotated = python(12, 12, 12, culprit=Culprit("annotation", "anneal"), caller=UPDATE)
    assert blamed(mine, called, annotated) == [("anneal", 12), ("update", 9)]
    assert blamed(python(1, 1, 1, culprit=REPORT, caller=UPDATE), mine) == [("update", 3), ("report", 1)]
    assert blamed(python(1, 1, 1, culprit=Culprit("call", "x"))) == [("x", 1)]
    assert blamed() == []


def test_the_call_that_takes_more_than_half() -> None:
    own, write, read = python(4, 4, 4), python(5, 5, 5, call="write"), python(2, 2, 2, call="read")
    assert most_called([own, write]) == "write"
    assert most_called([own, write, read]) == ""
    assert most_called([write, own, python(1, 1, 1)]) == ""  # exactly half
    more = Part(write.cause, write.klass, write.culprit, write.caller, "write", write.time_ps + 1)
    assert most_called([more, own, python(1, 1, 1)]) == "write"
    assert most_called([write, python(9, 9, 9), write]) == "write"
    assert most_called([own]) == ""
    assert most_called([]) == ""


def test_lists_of_words() -> None:
    assert [listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == [
        "",
        "`a`",
        "`a` and `b`",
        "`a`, `b` and `c`",
    ]


def test_numbers_of_calls_in_words() -> None:
    counts = ([1, 1, 1], [0, 1, 4], [12, 12, 13])
    assert [often(np.array(count)) for count in counts] == ["once", "1.67 times", "12.3 times"]


def test_titles() -> None:
    assert UPDATE.title == "`update` (mine.py:40)"
    assert Culprit("program", "grow").title == "`grow`"
    assert Culprit().title == ""
    assert Culprit() == Culprit("", "", "", 0)


def test_a_part_has_no_place_and_no_stretches_unless_they_are_given() -> None:
    bare = Part(Cause.PYTHON, python(1).klass, Culprit(), Culprit(), "", columns())
    assert (bare.mean_ps, bare.n, bare.first_ps, bare.last_ps) == (0, 0, -1, -1)
    assert python(1, 2, 6).mean_ps == 3 * US
