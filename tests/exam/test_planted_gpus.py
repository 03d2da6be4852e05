"""Real H100 runs with one planted cause each (tests/data/gpu_planted): the diagnosis against what the jobs
measured of themselves.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis, Finding
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.why import diagnosis

DATA = Path(__file__).parents[1] / "data" / "gpu_planted"
RUNS: dict[str, dict[str, Any]] = json.loads((DATA / "index.json").read_text("utf-8"))["runs"]
PS = 1e12


@cache
def session(run: str) -> Session:
    (path,) = DATA.glob(f"{run}.*")
    return Session(str(path), cache=False)


def found(run: str) -> Diagnosis:
    return diagnosis(session(run))


def top(run: str) -> Finding:
    first = found(run).top
    assert first is not None
    return first


@pytest.mark.parametrize("run", ["torch_healthy", "jax_healthy"])
def test_a_healthy_job_has_no_finding(run: str) -> None:
    why = found(run)
    assert why.level == "good"
    assert why.top is None
    assert why.text.startswith("Compute-bound")


@pytest.mark.parametrize(
    ("run", "cause", "culprit"),
    [
        ("torch_item", Cause.SYNCHRONIZATION, "log_loss"),
        ("torch_python", Cause.PYTHON, "smooth_curve"),
        ("torch_small", Cause.DISPATCH, "many_small"),
        ("torch_pageable", Cause.TRANSFERS, "to_device"),
        ("torch_loader", Cause.INPUT, "decode"),
        ("torch_fp32", Cause.COMPUTE, "aten::mm"),
        ("jax_item", Cause.SYNCHRONIZATION, "log_loss"),
        ("jax_python", Cause.PYTHON, "smooth_curve"),
        ("jax_put", Cause.TRANSFERS, "send_table"),
    ],
)
def test_the_planted_cause_is_the_first_finding(run: str, cause: Cause, culprit: str) -> None:
    first = top(run)
    assert (first.cause, first.culprit.name) == (cause, culprit)
    assert culprit in first.sentence
    verdict = get_tool("overview_page").run(session(run), None, {}).verdict
    assert verdict is not None
    assert verdict.text.lower().endswith(first.sentence.lower())
    if first.culprit.kind == "function":
        assert first.culprit.file in ("train_job.py", "jax_train_job.py")
        assert first.culprit.line > 0


@pytest.mark.parametrize("run", ["torch_python", "torch_loader", "torch_pageable", "jax_python", "jax_put"])
def test_the_time_is_what_the_job_measured(run: str) -> None:
    """Time in which the GPU computed all the same is no loss, so a finding may say less, never more than the
    call took.
    """
    measured = mean(RUNS[run]["planted"][1:-1]) * PS
    assert 0.75 * measured <= top(run).time_ps <= 1.05 * measured


@pytest.mark.parametrize(("run", "after_s"), [("torch_item", 0.004), ("jax_item", 0.003)])
def test_a_wait_costs_no_more_than_the_shorter_of_computing_and_host_work(run: str, after_s: float) -> None:
    first = top(run)
    computing = next(one.time_ps for one in found(run).causes if one.cause == Cause.COMPUTE)
    # The launches of the next kernels and the wait's own latency are lost as well.
    assert first.time_ps <= min(after_s * PS, computing) + 0.15 * found(run).step_time_ps
    assert first.time_ps >= 0.8 * min(after_s * PS, computing)


@pytest.mark.parametrize("run", sorted(RUNS))
def test_nothing_saves_more_than_its_own_step(run: str) -> None:
    one = session(run)
    for name in column_of_steps(one):
        why = diagnosis(one, step=name)
        assert why.n_steps == 1
        assert sum(cause.time_ps for cause in why.causes) == pytest.approx(why.step_time_ps, rel=1e-6)
        for finding in why.findings:
            assert finding.time_ps <= why.step_time_ps
            assert finding.gain_ps is None or finding.gain_ps[1] <= why.step_time_ps


def column_of_steps(one: Session) -> tuple[str, ...]:
    (evidence,) = one.map(host_evidence, one.hosts)
    return evidence.names


@pytest.mark.parametrize("run", sorted(RUNS))
def test_nothing_saves_more_than_there_is(run: str) -> None:
    why = found(run)
    assert sum(one.time_ps for one in why.causes) == pytest.approx(why.step_time_ps, rel=1e-6)
    for one in why.findings:
        assert 0 <= one.time_ps <= why.step_time_ps
        assert one.gain_ps is None or 0 <= one.gain_ps[0] <= one.gain_ps[1] <= why.step_time_ps
