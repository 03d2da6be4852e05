"""Ranges of gains: some of the step remains, and a likely gain ranks findings."""

from __future__ import annotations

import math

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.rules import rules
from tests.analysis.diagnosis.drawn import evidence, function, part
from tests.builders import PS

STEP_US = 200  # the mean of `evidence`


@pytest.mark.parametrize("time_us", [10, 120, 199, 200])
@pytest.mark.parametrize("cause", [Cause.INPUT, Cause.PYTHON, Cause.COMPILATION, Cause.CALLBACKS])
def test_a_gain_leaves_some_of_the_step_unless_the_cause_takes_all_of_it(cause: Cause, time_us: int) -> None:
    given = evidence(part(cause, time_us, time_us, time_us, culprit=function("update")))
    (one,) = [one for rule in rules() if rule.cause == cause for one in rule.find(given)]
    assert one.gain_ps is not None
    assert one.gain_ps[1] <= (time_us + 0.8 * (STEP_US - time_us)) * PS * (1 + 1e-9)


@pytest.mark.parametrize("times_us", [(10, 40, 70), (90, 190, 260), (20, 20, 20)])
@pytest.mark.parametrize(
    "cause",
    [Cause.INPUT, Cause.PYTHON, Cause.COMPILATION, Cause.CALLBACKS, Cause.TRANSFERS, Cause.SYNCHRONIZATION],
)
def test_no_finding_promises_more_than_it_measures(cause: Cause, times_us: tuple[int, ...]) -> None:
    """Rules know by how much removing a cause saves more than its time; that ranks findings, no more."""
    (rule_finding,) = [
        one
        for rule in rules()
        if rule.cause == cause
        for one in rule.find(evidence(part(cause, *times_us, culprit=function("update"))))
    ]
    (one,) = diagnose([evidence(part(cause, *times_us, culprit=function("update")))]).findings
    measured_ps = sum(times_us) / len(times_us) * PS
    assert one.time_ps == pytest.approx(measured_ps)
    assert one.gain_ps is not None
    assert 0 < one.gain_ps[0] <= one.gain_ps[1] == pytest.approx(measured_ps)
    assert rule_finding.gain_ps is not None
    assert one.gain_ps[0] == min(rule_finding.gain_ps[0], one.time_ps)
    assert rule_finding.gain_ps[1] > measured_ps
    assert one.rank == rule_finding.rank


def finding(time_ps: float, gain_ps: tuple[float, float] | None) -> Finding:
    return Finding(Cause.PYTHON, "", time_ps, 0.1, gain_ps=gain_ps)


def test_findings_rank_by_the_likely_gain() -> None:
    """The geometric mean of the range; its middle if nothing may be gained; the time if no model says."""
    assert finding(100, (80, 125)).rank == pytest.approx(100)
    assert finding(100, (90, 160)).rank == pytest.approx(120)
    assert finding(100, (0.5, 8)).rank == 2  # ps
    assert finding(100, (0, 60)).rank == 30
    assert finding(100, None).rank == 100
    assert math.isfinite(finding(0, (0, 0)).rank)
