"""The records of the evidence: what is not given, and what they derive from their numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import (
    COMPUTES,
    DEVICE_WORK,
    NO_POOLS,
    Call,
    Calls,
    DeviceEvidence,
    DeviceOp,
    Gap,
    Group,
    Period,
    Pools,
    busy_thread,
)
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, PROGRAM
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import NOBODY, calls, columns, evidence, function, part, us
from tests.analysis.diagnosis.rule_findings import HEALTHY, sync, thread
from tests.builders import PS


def test_what_is_not_given_is_none() -> None:
    assert Group() == Group(0.0, 0, "", 0.0)
    assert Pools(0, 0.0) == NO_POOLS
    assert Evidence("a") == Evidence("a", "", -1, -1)
    assert Period(NOBODY, "", Cause.PYTHON, 4, 3, 1.0, 1.0, 0, 1).programs == ()
    assert Calls() == Calls(())
    device = DeviceEvidence("H100", 1.0, 1.0)
    assert (device.n_kernels, device.n_multiprocessors, device.sources) == (0.0, 0, ("", ""))
    assert math.isnan(device.flops_fraction)
    assert math.isnan(device.hbm_fraction)
    groups = device.moves, device.remat, device.waits, device.barrier, device.debug, device.sparse
    assert {*groups, device.collectives, device.wide} == {Group()}
    assert (device.ops, device.kernels, device.exchanges, device.runtime_calls) == ((), (), (), ())
    host = evidence()
    assert (host.device, host.pools, host.stage, host.ahead) == (None, NO_POOLS, "", None)
    assert (host.copies, host.stages, host.tiny_ps) == (0.0, 0.0, 0.0)


def test_a_finding_says_nothing_that_is_not_given() -> None:
    bare = Finding(Cause.PYTHON, "A sentence.", 1.0, 0.5)
    texts = (bare.reason, bare.host, bare.fix, bare.snippet, bare.capture_option)
    assert texts == ("", "", "", "", "")
    assert (bare.culprit, bare.base, bare.gain_ps) == (Culprit(), "of the mean step", None)
    assert (bare.evidence, bare.confidence, bare.docs) == ((), "high", "causes/python")


def test_classes_in_which_something_computes() -> None:
    assert set(COMPUTES) == {
        TimeClass.HOST_COMPUTE,
        TimeClass.DEVICE_COMPUTE_32,
        TimeClass.DEVICE_COMPUTE_16,
    }


def test_a_busy_thread_runs_python_for_three_tenths_of_the_time() -> None:
    idle, busy, busier = thread(0.299), thread(0.3), thread(0.9)
    assert busy_thread([]) is None
    assert busy_thread([idle]) is None
    assert busy_thread([idle, busy, busier]) == busy
    assert busy_thread([thread(0.9, hands_over=True), thread(0.9, culprit=NOBODY), busier]) == busier


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("a", "b", "between `a` and `b`"),
        ("a", "", "between `a` and the end of the step"),
        ("", "b", "before `b`"),
        ("", "", "throughout the step"),
        (DEVICE_WORK, DEVICE_WORK, "between runs on the device"),
        (DEVICE_WORK, "b", "between the device's work and `b`"),
        (DEVICE_WORK, "", "between the device's work and the end of the step"),
        ("a", DEVICE_WORK, "between `a` and the device's work"),
        ("", DEVICE_WORK, "before the device's work"),
        ("a", "a", "between `a` and `a`"),
    ],
)
def test_the_place_of_a_gap(before: str, after: str, where: str) -> None:
    assert Gap(before, after, columns(1, 2, 3), 0, 1).where == where


def test_calls_per_step() -> None:
    assert Call(PROGRAM, "f", np.array([1, 2, 6])).mean == 3
    assert Call(PROGRAM, "f", np.empty(0, np.int64)).mean == 0
    given = Calls(calls(PROGRAM, f=[1, 2, 6], g=[0, 0, 3]).all + calls(EAGER, mul=[9, 0, 0]).all)
    assert [given.per_step(kind) for kind in (PROGRAM, EAGER, "other")] == [4, 3, 0]
    assert [(one.name, one.per_step.tolist()) for one in given.of_step(2).all] == [("f", [6]), ("g", [3])]


@pytest.mark.parametrize(
    ("pools", "running", "lost"),
    [
        (Pools(2, 2.0), 2.0, 0.5),
        (Pools(2, 1.0), 1.0, 0.0),
        (Pools(2, 1.0), 3.0, 0.5),
        (Pools(2, 5.0), 2.0, 0.5),
        (Pools(2, 0.0), 0.0, 0.0),
        (Pools(0, 0.0), 1.0, 0.0),
        (Pools(1, 1.0), 0.0, 0.0),
    ],
)
def test_compute_lost_to_threads(pools: Pools, running: float, lost: float) -> None:
    assert pools.lost(running) == pytest.approx(lost)


@pytest.mark.parametrize(("efficiency", "lost_ps"), [(0.25, 60.0), (0.0, 80.0), (1.0, 0.0), (1.5, 0.0)])
def test_time_that_an_operation_loses_to_its_nearest_peak(efficiency: float, lost_ps: float) -> None:
    op = DeviceOp("dot.1", "dot", 80.0, 1.0, 0.1, 0.1, efficiency)
    assert op.lost_ps == lost_ps
    assert (op.product, math.isnan(op.fill)) == ("", True)


def test_the_mean_step_and_shares_of_it() -> None:
    host = evidence(part(Cause.INPUT, 10, 20, 60), part(Cause.INPUT, 1, 1, 1), part(Cause.PYTHON, 9, 9, 9))
    assert (host.step_ps, host.n_steps) == (200 * PS, 3)
    assert (host.time_ps(Cause.INPUT), host.time_ps(Cause.DISPATCH)) == (31 * PS, 0)
    assert host.share(50 * PS) == 0.25
    none = evidence(steps_us=())
    assert (none.step_ps, none.n_steps, none.share(50 * PS)) == (0, 0, 0)


def test_the_evidence_of_one_step() -> None:
    whole = evidence(
        part(Cause.INPUT, 10, 20, 60),
        part(Cause.PYTHON, 0, 5, 0),
        part(Cause.DISPATCH, 7, 0, 7),
        calls=calls(PROGRAM, f=[1, 2, 6], g=[0, 0, 3]),
        syncs=(sync("item", (1, 2, 3), (4, 5, 6), function("read")),),
        gaps=(Gap("a", "b", columns(7, 8, 9), 0, 1),),
        periods=(Period(NOBODY, "", Cause.PYTHON, 4, 3, 1.0, 1.0, 0, 1),),
        turns_ps=columns(1, 2, 3),
        device=replace(HEALTHY, n_kernels=9.0),
    )
    one = whole.of_step(1)
    assert (one.names, us(one.start_ps), us(one.duration_ps)) == (("train 1",), [100], [200])
    assert [(each.cause, us(each.time_ps)) for each in one.parts] == [
        (Cause.INPUT, [20]),
        (Cause.PYTHON, [5]),
    ]
    assert (one.periods, one.warming, us(one.turns_ps)) == ((), None, [2])
    assert [(each.name, each.per_step.tolist()) for each in one.calls.all] == [("f", [2])]
    (wait,) = one.syncs
    assert (wait.per_step.tolist(), us(wait.computed_ps)) == ([2], [5])
    assert (us(wait.after_ps), us(wait.before_dispatch_ps)) == ([0], [0])
    assert [us(gap.time_ps) for gap in one.gaps] == [[8]]
    assert one.device is not None
    assert (one.device.n_kernels, one.device.busy_ps) == (9.0, 0.0)
    assert evidence().of_step(0).device is None
