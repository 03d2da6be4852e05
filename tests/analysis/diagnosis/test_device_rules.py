"""Rules about accelerators, each with the least evidence for a finding, and just below its threshold."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import (
    DeviceEvidence,
    DeviceOp,
    Exchange,
    Group,
    HostEvidence,
    KernelUse,
)
from tb_tpuprof.ingest.opening import trace_of_bytes
from tests.synthetic import Parts, TpuJob, tpu_xspace

MS = 1e9  # of steps of 1 ms that compute throughout
HEALTHY = DeviceEvidence("TPU v5 lite", MS, MS, 0.0, 0.6, 0.4)


@cache
def host() -> HostEvidence:
    """A synthetic host whose TPU computes all the time."""
    job = TpuJob(parts=Parts(compute=0.999), flops=120_000_000_000, n_bytes=300_000_000)
    return host_evidence(trace_of_bytes(tpu_xspace(job), "synthetic"))


def found(device: DeviceEvidence, kind: str = "TPU") -> list[Finding]:
    why = diagnose([replace(host(), device=device, kind=kind)])
    for one in why.findings:
        assert 0 <= one.time_ps <= why.step_time_ps
        assert one.gain_ps is not None
        assert 0 <= one.gain_ps[0] <= one.gain_ps[1] <= why.step_time_ps
        assert one.sentence.endswith(".")
        assert one.fix
    return list(why.findings)


def op(**about: object) -> DeviceOp:
    return replace(DeviceOp("fusion.7", "convolution fusion", 0.5 * MS, 0.5 * MS, 0.6, 0.2, 0.6), **about)  # type: ignore[arg-type]


def kernel(**about: object) -> KernelUse:
    return replace(KernelUse("softmax_kernel", "aten::softmax", 0.4 * MS, 0.1 * MS, 0.5, 1056), **about)  # type: ignore[arg-type]


def test_a_healthy_tpu_has_no_finding() -> None:
    why = diagnose([host()])
    assert (why.level, why.findings) == ("good", ())
    assert found(replace(HEALTHY, ops=(op(),))) == []


@pytest.mark.parametrize(
    ("least", "device", "word"),
    [
        (0.30, lambda time: replace(HEALTHY, moves=Group(time, 3, "transpose.4", time / 2)), "`transpose.4`"),
        (
            0.10,
            lambda time: replace(HEALTHY, remat=Group(time, 1, "fusion.1.remat", time)),
            "`fusion.1.remat`",
        ),
        (0.10, lambda time: replace(HEALTHY, waits=Group(time, 1, "copy-done.2", time)), "`copy-done.2`"),
        (0.10, lambda time: replace(HEALTHY, barrier=Group(time, 1, "barrier-cores.1", time)), "barrier"),
        (0.05, lambda time: replace(HEALTHY, debug=Group(time, 1, "debug_print.1", time)), "debug output"),
        (0.10, lambda time: replace(HEALTHY, sparse=Group(time, 1, "", time)), "SparseCores"),
    ],
    ids=["data shuffle", "recomputation", "async-done", "barrier cores", "debug print", "SparseCore"],
)
def test_a_share_of_the_step_is_a_finding_from_its_threshold_on(
    least: float, device: object, word: str
) -> None:
    step = host().step_ps
    (above,) = found(device(1.02 * least * step))  # type: ignore[operator]
    assert word in above.sentence
    assert above.cause == Cause.COMPUTE
    assert found(device(0.98 * least * step)) == []  # type: ignore[operator]


@pytest.mark.parametrize(
    ("hbm", "flops", "speaks"),
    [(0.8, 0.3, True), (0.69, 0.3, False), (0.8, 0.55, False), (float("nan"), 0.1, False)],
)
def test_memory_bound_is_hbm_used_up_and_matrix_units_not(hbm: float, flops: float, speaks: bool) -> None:
    device = replace(
        HEALTHY, hbm_fraction=hbm, flops_fraction=flops, ops=(op(hbm_fraction=0.9, efficiency=0.9),)
    )
    assert [("HBM bandwidth" in one.sentence) for one in found(device)] == [True] * speaks


def test_an_operation_far_below_every_peak_is_named_with_its_shares() -> None:
    (one,) = found(replace(HEALTHY, ops=(op(flops_fraction=0.04, hbm_fraction=0.11, efficiency=0.11),)))
    assert "`fusion.7` (convolution fusion)" in one.sentence
    assert "4.00%" in one.sentence
    assert "11.0%" in one.sentence
    assert one.time_ps == pytest.approx(0.5 * MS * 0.89)


@pytest.mark.parametrize("efficiency", [0.3, float("nan")])
def test_an_operation_near_a_peak_or_of_unknown_work_is_not(efficiency: float) -> None:
    assert found(replace(HEALTHY, ops=(op(efficiency=efficiency),))) == []


def test_padding_names_the_product_and_its_waste() -> None:
    (one,) = found(replace(HEALTHY, ops=(op(product="`dot.3`: rows 9 padded to 16", fill=0.5),)))
    assert "`dot.3`: rows 9 padded to 16" in one.sentence
    assert one.time_ps == pytest.approx(0.25 * MS)
    assert found(replace(HEALTHY, ops=(op(product="`dot.3`: no padding", fill=0.9),))) == []


def test_a_kernel_of_few_blocks_leaves_the_gpu_empty() -> None:
    device = replace(HEALTHY, device="H100", n_multiprocessors=132)
    (one,) = found(replace(device, kernels=(kernel(n_blocks=4),)), "GPU")
    assert "128 of the GPU's 132 multiprocessors" in one.sentence
    for fine in (
        kernel(),
        kernel(n_blocks=0),
        kernel(n_blocks=4, each_ps=1e6),
        kernel(n_blocks=4, time_ps=0.05 * MS),
    ):
        assert found(replace(device, kernels=(fine,)), "GPU") == []


def test_products_in_32_bits_are_a_finding_where_they_take_much() -> None:
    (one,) = found(replace(HEALTHY, wide=Group(0.5 * MS, 2, "aten::mm", 0.4 * MS)), "GPU")
    assert "`aten::mm`" in one.sentence
    assert found(replace(HEALTHY, wide=Group(0.1 * MS, 2, "aten::mm", 0.1 * MS)), "GPU") == []


def test_a_collective_is_named_with_its_group() -> None:
    exchange = Exchange("all-reduce", "0 (default_pg)", 8, 3.0, 0.9)
    assert exchange.title == "`all-reduce` among 8 ranks (default_pg)"
    job = TpuJob(parts=Parts(compute=0.5, collective=0.4))
    evidence = host_evidence(trace_of_bytes(tpu_xspace(job), "synthetic"))
    named = next(one for one in diagnose([evidence]).findings if one.cause == Cause.COMMUNICATION)
    assert named.culprit.name.startswith("all-reduce")
    assert "`all-reduce" in named.sentence


def test_a_single_step_does_not_use_the_mean_of_all() -> None:
    evidence = replace(host(), device=replace(HEALTHY, moves=Group(0.9 * MS, 1, "copy.1", 0.9 * MS)))
    assert diagnose([evidence]).findings
    assert not diagnose([evidence.of_step(0)]).findings
