"""Where each rule begins to speak, and how strong its claims are: rule by rule.

Steps take 200 µs on average.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import DeviceOp, Group, HostEvidence, KernelUse, Pools, Warming
from tb_tpuprof.analysis.diagnosis.rules import (
    callbacks,
    communication,
    compilation,
    contention,
    device_compute,
    device_data_shuffle,
    device_recomputation,
    device_waits,
    dispatch,
    gpu_occupancy,
    gpu_precision,
    input,
    launching,
    not_recorded,
    periodic,
    python,
    synchronization,
    tpu_async_done,
    tpu_barrier_cores,
    tpu_debug_print,
    tpu_memory_bound,
    tpu_padding,
    tpu_sparse_core,
    transfers,
    warm_up,
)
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, PROGRAM
from tb_tpuprof.analysis.events.frameworks import PYTORCH
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import calls, evidence, function, part
from tests.analysis.diagnosis.rule_findings import HEALTHY, US, sync, thread


def found(rule: ModuleType, given: HostEvidence) -> list[Finding]:
    return list(rule.RULE.find(given))


def with_device(**given: object) -> HostEvidence:
    return evidence(kind="TPU", device=replace(HEALTHY, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "group", "least_us"),
    [
        (device_data_shuffle, "moves", 60),
        (device_recomputation, "remat", 20),
        (tpu_async_done, "waits", 20),
        (tpu_barrier_cores, "barrier", 20),
        (tpu_debug_print, "debug", 10),
        (tpu_sparse_core, "sparse", 20),
        (gpu_precision, "wide", 30),
    ],
)
def test_groups_of_operations(rule: ModuleType, group: str, least_us: int) -> None:
    for time_us, n in ((least_us, 1), (least_us - 0.01, 0)):
        assert len(found(rule, with_device(**{group: Group(time_us * US, 2, "x.1", time_us * US)}))) == n
    assert found(rule, evidence()) == []


OP = DeviceOp("dot.1", "dot", 20 * US, US, 0.1, 0.1, 0.2, "`dot`: 1 of 2", 0.5)


@pytest.mark.parametrize(
    ("rule", "changed", "n"),
    [
        (device_compute, {}, 1),
        (device_compute, {"time_ps": 19.9 * US}, 0),
        (device_compute, {"efficiency": 0.299}, 1),
        (device_compute, {"efficiency": 0.3}, 0),
        (tpu_padding, {}, 1),
        (tpu_padding, {"time_ps": 19.9 * US}, 0),
        (tpu_padding, {"fill": 0.599}, 1),
        (tpu_padding, {"fill": 0.6}, 0),
        (tpu_padding, {"hbm_fraction": 0.3}, 1),
        (tpu_padding, {"hbm_fraction": 0.301}, 0),
        (tpu_padding, {"hbm_fraction": float("nan")}, 1),
    ],
)
def test_single_operations(rule: ModuleType, changed: dict[str, float], n: int) -> None:
    assert len(found(rule, with_device(ops=(replace(OP, **changed),)))) == n  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "n"),
    [
        ({"hbm_fraction": 0.71}, 1),
        ({"hbm_fraction": 0.7}, 0),
        ({"flops_fraction": 0.49}, 1),
        ({"flops_fraction": 0.5}, 0),
        ({"compute_ps": 60 * US}, 1),
        ({"compute_ps": 59.9 * US}, 0),
    ],
)
def test_memory_bound_compute(changed: dict[str, float], n: int) -> None:
    device = {"hbm_fraction": 0.8, "flops_fraction": 0.2, **changed}
    assert len(found(tpu_memory_bound, with_device(**device))) == n


KERNEL = KernelUse("few", "aten::few", 20 * US, 20 * US, 0.5, 66)


@pytest.mark.parametrize(
    ("changed", "n"),
    [
        ({}, 1),
        ({"time_ps": 19.9 * US}, 0),
        ({"each_ps": 19.9 * US}, 0),
        ({"n_blocks": 67}, 0),
        ({"n_blocks": 0}, 0),
    ],
)
def test_kernels_of_few_blocks(changed: dict[str, float], n: int) -> None:
    kernel = replace(KERNEL, **changed)  # type: ignore[arg-type]
    assert len(found(gpu_occupancy, with_device(n_multiprocessors=132, kernels=(kernel,)))) == n


@pytest.mark.parametrize(
    ("rule", "cause", "kind", "fields", "gain"),
    [
        (callbacks, Cause.CALLBACKS, "CPU", {}, (0.8, 1.3)),
        (communication, Cause.COMMUNICATION, "TPU", {}, (0.0, 1.0)),
        (compilation, Cause.COMPILATION, "CPU", {}, (0.9, 1.75)),
        (device_waits, Cause.SYNCHRONIZATION, "GPU", {}, (0.5, 1.0)),
        (dispatch, Cause.DISPATCH, "CPU", {"calls": calls(PROGRAM, f=[8, 8, 8])}, (0.55, 1.0)),
        (dispatch, Cause.DISPATCH, "CPU", {"calls": calls(EAGER, f=[8, 8, 8])}, (0.6, 1.1)),
        (input, Cause.INPUT, "CPU", {}, (0.85, 1.5)),
        (input, Cause.INPUT, "GPU", {}, (0.85, 1.25)),
        (launching, Cause.DISPATCH, "GPU", {}, (0.0, 1.0)),
        (python, Cause.PYTHON, "CPU", {}, (0.75, 1.55)),
        (python, Cause.PYTHON, "GPU", {}, (0.75, 1.15)),
        (synchronization, Cause.SYNCHRONIZATION, "CPU", {}, (0.85, 1.4)),
        (transfers, Cause.TRANSFERS, "CPU", {}, (0.9, 1.4)),
    ],
)
def test_what_is_gained_of_the_time_of_a_cause(
    rule: ModuleType, cause: Cause, kind: str, fields: dict[str, object], gain: tuple[float, float]
) -> None:
    given = evidence(part(cause, 20, 20, 20, culprit=function("f")), kind=kind, **fields)  # type: ignore[arg-type]
    (one,) = found(rule, given)
    assert one.gain_ps == pytest.approx(tuple(20 * US * factor for factor in gain))


def test_causes_without_a_model_of_their_gain() -> None:
    (one,) = found(not_recorded, evidence(part(Cause.UNRECORDED, 20, 20, 20)))
    assert one.gain_ps is None
    (one,) = found(periodic, evidence(part(Cause.PERIODIC, 20, 20, 20)))
    assert one.gain_ps is None
    assert found(warm_up, evidence()) == []


def test_a_thread_that_slows_computing_gains_up_to_twice_its_time() -> None:
    slowed = part(Cause.CONTENTION, 20, 20, 20)
    (one,) = found(contention, evidence(slowed, other_threads=(thread(0.4),), pools=Pools(4, 3.0)))
    assert one.gain_ps == pytest.approx((12 * US, 36 * US))


@pytest.mark.parametrize(
    ("culprit_call", "sentence"),
    [
        ("float", "`float` waits for the device in each step"),
        ("", "The host waits for the device in each step"),
    ],
)
def test_a_wait_that_is_its_own_culprit_is_named_once(culprit_call: str, sentence: str) -> None:
    culprit = replace(function("float"), kind="call", file="", line=0) if culprit_call else function("")
    given = evidence(part(Cause.SYNCHRONIZATION, 20, 20, 20, culprit=culprit, call=culprit_call))
    (one,) = found(synchronization, given)
    assert one.sentence.startswith(sentence)


def test_a_wait_for_a_stream_is_for_pinned_memory_where_pytorch_copies() -> None:
    waits = part(Cause.SYNCHRONIZATION, 20, 20, 20, klass=TimeClass.HOST_WAIT)
    given = evidence(
        waits,
        part(Cause.TRANSFERS, 1, 1, 1),
        kind="GPU",
        framework=PYTORCH,
        syncs=(sync("cudaStreamSynchronize", (1, 1, 1)),),
    )
    (one,) = found(device_waits, given)
    assert one.fix == device_waits._PINNED.text


@pytest.mark.parametrize(
    ("rule", "strengths"),
    [
        (callbacks, [4, 4, 4, 4, 4, 4]),
        (compilation, [3, 3, 3]),
        (synchronization, [2, 2, 2, 2, 2]),
        (transfers, [3, 3, 2]),
        (contention, []),
        (input, []),
    ],
)
def test_the_strength_of_claims(rule: ModuleType, strengths: list[int]) -> None:
    assert [claim.strength for claim in rule.RULE.claims] == strengths


@pytest.mark.parametrize(("copies", "slows"), [(0.0618, False), (0.062, True)])
def test_copies_slow_computing_from_3_percent_on(copies: float, slows: bool) -> None:
    """Of two processors, so many copies take 2.998% or 3.007%."""
    given = evidence(part(Cause.TRANSFERS, 5, 5, 5), pools=Pools(2, 2.0), copies=copies)
    (one,) = found(transfers, given)
    assert ("take processors" in one.reason) == slows


@pytest.mark.parametrize("name", ["train 0", ""])
def test_a_long_first_step_takes_no_time_of_the_others(name: str) -> None:
    warming = Warming(name, round(900 * US), round(200 * US), Cause.INPUT, round(650 * US), 11)
    (one,) = found(warm_up, evidence(warming=warming))
    assert (one.time_ps, one.share, one.gain_ps) == (0.0, 0.0, None)
