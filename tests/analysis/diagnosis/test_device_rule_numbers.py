"""Each rule about devices alone on handmade evidence: its time, its gain, its culprit, and its threshold.

Steps take 100, 200 and 300 µs, so 20 µs per step is a tenth.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import (
    DeviceOp,
    Exchange,
    Group,
    HostEvidence,
    KernelUse,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.analysis.diagnosis.drawn import evidence, function, part
from tests.analysis.diagnosis.rule_findings import HEALTHY, US, findings, of, only, sync


def with_device(**given: object) -> HostEvidence:
    return evidence(kind="TPU", device=replace(HEALTHY, **given))  # type: ignore[arg-type]


def op(name: str, time_us: float, **given: object) -> DeviceOp:
    return replace(DeviceOp(name, "convolution fusion", time_us * US, US, 0.6, 0.2, 0.6), **given)  # type: ignore[arg-type]


def test_groups_of_device_operations_name_the_longest_and_start_at_their_threshold() -> None:
    rules = {
        "device_data_shuffle": ("moves", 60),
        "device_recomputation": ("remat", 20),
        "tpu_async_done": ("waits", 20),
        "tpu_barrier_cores": ("barrier", 20),
        "tpu_debug_print": ("debug", 10),
        "tpu_sparse_core": ("sparse", 20),
    }
    for rule, (group, least) in rules.items():
        exactly = Group(least * US, 3, "longest.1", 0.4 * least * US)
        one = only(rule, with_device(**{group: exactly}))
        assert of(one) == (least, (0.0, least), ("operation", "longest.1"))
        assert "40.0% of that in `longest.1`" in one.sentence
        assert one.confidence == "medium"
        assert findings(rule, with_device(**{group: replace(exactly, time_ps=(least - 0.01) * US)})) == []
        nameless = only(rule, with_device(**{group: Group(least * US, 1)}))
        assert (nameless.culprit, "`" in nameless.sentence) == (Culprit(), False)
        assert findings(rule, evidence(kind="CPU")) == []
        one_name = only(rule, with_device(**{group: Group(least * US, 1, "alone.1", least * US)}))
        assert one_name.sentence.endswith("(`alone.1`).")
        small = only(rule, with_device(**{group: Group(least * US, 9, "small.1", 0.09 * least * US)}))
        assert "small.1" not in small.sentence


def test_the_operation_that_loses_most_far_below_every_peak() -> None:
    ops = (
        op("long.1", 90, efficiency=0.28),  # loses 64.8 µs
        op("lossy.2", 80, efficiency=0.1, flops_fraction=0.07, hbm_fraction=0.1),  # 72 µs
        op("short.3", 19.9, efficiency=0.01),
        op("near.4", 100, efficiency=0.3),
        op("exactly.5", 20, efficiency=0.2),
    )
    one = only("device_compute", with_device(ops=ops))
    assert of(one) == (72.0, (0.0, 72.0), ("operation", "lossy.2"))
    assert "7.00%" in one.sentence
    assert "80.0 µs (40.0%)" in one.sentence
    assert of(only("device_compute", with_device(ops=ops[2:])))[2] == ("operation", "exactly.5")
    assert findings("device_compute", with_device(ops=ops[2:4])) == []
    assert one.evidence == ()
    known = replace(HEALTHY, ops=ops, sources=("data sheet", "trace"))
    (text,) = only("device_compute", evidence(kind="TPU", device=known)).evidence
    assert text.text == "Peaks of TPU v5 lite: compute: data sheet; memory: trace."


def test_memory_bound_compute_saves_at_most_half_and_never_the_arithmetic() -> None:
    ops = (
        op("matrix.1", 90, hbm_fraction=0.7),
        op("table.2", 40, hbm_fraction=0.71),
        op("table.3", 50, hbm_fraction=0.9),
    )
    device = replace(HEALTHY, hbm_fraction=0.75, flops_fraction=0.2, ops=ops)
    one = only("tpu_memory_bound", evidence(kind="TPU", device=device))
    assert of(one) == (90.0, (0.0, 90.0), ("operation", "table.2"))  # half of 180 µs
    assert "75.0%" in one.sentence
    assert "20.0%" in one.sentence
    unknown = only(
        "tpu_memory_bound",
        evidence(kind="TPU", device=replace(device, flops_fraction=float("nan"), ops=ops[:1])),
    )
    assert of(unknown) == (90.0, (0.0, 90.0), ("", ""))
    assert "matrix units" not in unknown.sentence
    least = replace(device, compute_ps=60 * US)
    assert of(only("tpu_memory_bound", evidence(kind="TPU", device=least)))[0] == 30.0
    for healthy in ({"compute_ps": 59.9 * US}, {"hbm_fraction": 0.7}, {"flops_fraction": 0.5}):
        assert findings("tpu_memory_bound", evidence(kind="TPU", device=replace(device, **healthy))) == []  # type: ignore[arg-type]


def test_padding_names_the_product_that_wastes_most() -> None:
    ops = (
        op("long.1", 100, product="`dot.1`: 5 of 8", fill=0.59),  # wastes 41 µs
        op("wasteful.2", 60, product="`dot.2`: 1 of 8", fill=0.25),  # 45 µs
        op("full.3", 200, product="`dot.3`: 6 of 8", fill=0.6),
        op("memory.4", 200, product="`dot.4`: 1 of 8", fill=0.1, hbm_fraction=0.31),
        op("short.5", 19, product="`dot.5`: 1 of 8", fill=0.01),
    )
    one = only("tpu_padding", with_device(ops=ops))
    assert of(one) == (45.0, (0.0, 45.0), ("operation", "wasteful.2"))
    assert "25.0%" in one.sentence
    assert findings("tpu_padding", with_device(ops=ops[2:])) == []
    assert of(only("tpu_padding", with_device(ops=(op("exactly.6", 20, product="p", fill=0.5),))))[0] == 10.0


def kernel(name: str, time_us: float, n_blocks: int, **given: object) -> KernelUse:
    return replace(KernelUse(name, f"aten::{name}", time_us * US, 20 * US, 0.5, n_blocks), **given)  # type: ignore[arg-type]


def test_the_longest_kernel_of_few_blocks() -> None:
    kernels = (
        kernel("wide", 150, 67),
        kernel("few", 40, 33),
        kernel("single", 30, 1),
        kernel("unknown", 160, 0),
        kernel("brief", 170, 2, each_ps=19.9 * US),
    )
    device = replace(HEALTHY, device="H100", n_multiprocessors=132, kernels=kernels)
    one = only("gpu_occupancy", evidence(kind="GPU", device=device))
    assert of(one) == (30.0, (0.0, 30.0), ("operation", "aten::few"))
    assert "33 blocks" in one.sentence
    assert "99 of the GPU's 132" in one.sentence
    single = only("gpu_occupancy", evidence(kind="GPU", device=replace(device, kernels=kernels[2:])))
    assert "1 block:" in single.sentence
    half = replace(device, kernels=(kernel("half", 20, 66, op=""),))
    assert of(only("gpu_occupancy", evidence(kind="GPU", device=half))) == (
        10.0,
        (0.0, 10.0),
        ("operation", "half"),
    )
    assert findings("gpu_occupancy", evidence(kind="GPU", device=replace(device, n_multiprocessors=0))) == []
    assert findings("gpu_occupancy", evidence(kind="GPU", device=replace(device, kernels=kernels[:1]))) == []


def test_matrix_products_in_32_bits_gain_a_tenth_to_a_half() -> None:
    wide = Group(30 * US, 2, "aten::mm", 24 * US)
    one = only("gpu_precision", with_device(wide=wide))
    assert of(one) == (15.0, (3.0, 15.0), ("operation", "aten::mm"))
    assert "80.0% of that in `aten::mm`" in one.sentence
    assert "30.0 µs (15.0%)" in one.sentence
    assert findings("gpu_precision", with_device(wide=replace(wide, time_ps=29.9 * US))) == []
    for framework, word in (
        (JAX, "jax_default_matmul_precision"),
        (PYTORCH, "autocast"),
        (TENSORFLOW, "mixed_bfloat16"),
        ("", ""),
    ):
        given = evidence(framework=framework, kind="GPU", device=replace(HEALTHY, wide=wide))
        assert word in only("gpu_precision", given).snippet


def communication(**given: object) -> HostEvidence:
    return evidence(
        part(Cause.COMMUNICATION, 30, 0, 60, span=(5, 9)),
        part(Cause.COMMUNICATION, 3, 3, 3, culprit=Culprit("operation", "all-reduce.1")),
        part(Cause.PYTHON, 50, 50, 50),
        kind="TPU",
        **given,  # type: ignore[arg-type]
    )


def test_exposed_collectives_are_summed_and_named_by_the_best_source() -> None:
    one = only("communication", communication())
    assert of(one) == (33.0, (0.0, 33.0), ("operation", "all-reduce.1"))
    assert [(shown.start_ps, shown.end_ps) for shown in one.evidence] == [(5, 9)]
    exchanges = (Exchange("all-gather", "1 (tensor)", 4, 2.0, 0.7), Exchange("all-reduce", "", 2, 1.0, 0.3))
    by_exchange = only("communication", communication(device=replace(HEALTHY, exchanges=exchanges)))
    assert by_exchange.culprit == Culprit("operation", "all-gather")
    assert "70.0% of it in `all-gather` among 4 ranks (tensor)" in by_exchange.sentence
    nameless = evidence(part(Cause.COMMUNICATION, 30, 0, 60), kind="TPU")
    assert only("communication", nameless).culprit == Culprit()
    group = replace(HEALTHY, collectives=Group(40 * US, 2, "reduce-scatter.4", 30 * US))
    by_group = only("communication", replace(nameless, device=group))
    assert by_group.culprit == Culprit("operation", "reduce-scatter.4")
    assert "75.0% of that in `reduce-scatter.4`" in by_group.sentence
    assert findings("communication", evidence(part(Cause.PYTHON, 50, 50, 50))) == []


def test_an_idle_gpu_after_a_wait_names_the_call_and_its_function() -> None:
    waits = (
        part(Cause.SYNCHRONIZATION, 10, 20, 30, klass=TimeClass.HOST_WAIT, call="aten::item", span=(1, 2)),
        part(Cause.SYNCHRONIZATION, 1, 2, 3, klass=TimeClass.HOST_WAIT, call="cudaStreamSynchronize"),
        part(Cause.SYNCHRONIZATION, 90, 90, 90, klass=TimeClass.DEVICE_COMPUTE_16),
    )
    given = evidence(*waits, kind="GPU", framework=PYTORCH, has_python=False)
    one = only("device_waits", given)
    assert of(one) == (22.0, (11.0, 22.0), ("call", "aten::item"))
    assert one.capture_option == "with_stack=True"
    assert "called once per step" in one.evidence[-1].text
    mine = function("log_loss")
    named = only(
        "device_waits", replace(given, syncs=(sync("aten::_local_scalar_dense", (2, 3, 4), culprit=mine),))
    )
    assert named.culprit == mine
    assert "`aten::_local_scalar_dense` in `log_loss` (mine.py:40)" in named.sentence
    assert (named.capture_option, named.evidence[-1].text.split(" is called ")[1]) == (
        "",
        "3 times per step.",
    )
    assert findings("device_waits", replace(given, kind="CPU")) == []
    assert findings("device_waits", evidence(waits[2], kind="GPU")) == []


def test_a_copy_from_pageable_memory_asks_for_pinned_memory() -> None:
    waits = part(Cause.SYNCHRONIZATION, 10, 20, 30, klass=TimeClass.HOST_WAIT, call="cudaStreamSynchronize")
    copies = part(Cause.TRANSFERS, 5, 5, 5)
    for parts, framework, is_pinned in (
        ((waits, copies), PYTORCH, True),
        ((waits,), PYTORCH, False),
        ((waits, copies), JAX, False),
        ((replace(waits, call="cudaDeviceSynchronize"), copies), PYTORCH, False),
    ):
        one = only("device_waits", evidence(*parts, kind="GPU", framework=framework))
        assert ("pin_memory" in one.snippet) == is_pinned


@pytest.mark.parametrize(
    ("call", "framework", "fix"),
    [
        ("cudaDeviceSynchronize", PYTORCH, "torch.cuda.synchronize()"),
        ("hipDeviceSynchronize", PYTORCH, "torch.cuda.synchronize()"),
        ("aten::item", PYTORCH, "`.item()`"),
        ("cudaDeviceSynchronize", JAX, "asynchronous"),
    ],
)
def test_a_wait_for_the_whole_device_is_no_read_of_a_tensor(call: str, framework: str, fix: str) -> None:
    waits = part(Cause.SYNCHRONIZATION, 10, 20, 30, klass=TimeClass.HOST_WAIT, call=call)
    one = only("device_waits", evidence(waits, kind="GPU", framework=framework))
    assert fix in one.fix
