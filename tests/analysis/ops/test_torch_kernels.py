"""Work of kernels on a drawn PyTorch file with three unlike operators, a graph, a copy and a stray kernel.

thread 100  ├ aten::linear ─────────────────┤ ├ aten::add ┤ ├ aten::mm ┤ ├ cudaGraphLaunch ┤
              ├ aten::addmm ─────────────┤
stream 7        ▒▒▒▒▒ gemm (30)  ▒ splitK (6)   ▒▒ add (4)     ▒▒▒ mm (20, twice)  ▒ g1  ▒ stray
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.kernels.kernels import kernels
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.gpu import gpu_ops
from tb_tpuprof.analysis.ops.hlo_steps import step_work
from tb_tpuprof.analysis.ops.metrics import by_framework_op
from tb_tpuprof.analysis.ops.roof_excess import roof_excesses
from tb_tpuprof.analysis.ops.stats import op_stats, op_stats_by_shape, op_stats_by_stack
from tb_tpuprof.analysis.ops.torch_ops import torch_ops
from tb_tpuprof.analysis.ops.utilization import utilization
from tb_tpuprof.analysis.pytorch.kernels import kernel_work
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import Event, opened
from tests.kineto_jobs import HOST, x

GEMM, SPLIT_K = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "void splitKreduce_kernel<32>"
TF32_GEMM, ADD = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n", "void at::native::vectorized_elementwise_kernel<4>"
STREAM = {"pid": 0, "tid": 7}
_FLOPS = {"addmm": 2 * 64 * 32 * 16, "mm": 2 * 8 * 128 * 24}


def op(name: str, ts: float, dur: float, dims: list[Any], types: list[str], **more: Any) -> Event:
    """An operator with its inputs."""
    return x("cpu_op", name, ts, dur, HOST, **{"Input Dims": dims, "Input type": types, **more})


def kernel(name: str, ts: float, dur: float, correlation: int) -> Event:
    return x("kernel", name, ts, dur, STREAM, device=0, stream=7, correlation=correlation)


def launch(ts: float, correlation: int, name: str = "cudaLaunchKernel") -> Event:
    return x("cuda_runtime", name, ts, 1, HOST, correlation=correlation)


def frame(name: str, ts: float, dur: float) -> Event:
    return x("python_function", name, ts, dur, HOST)


def events() -> list[Event]:
    bf16, long = ["c10::BFloat16"] * 3, ["float", "float"]
    return [
        x("user_annotation", "ProfilerStep#1", 0, 300, HOST),
        frame("train.py(10): step", 5, 200),
        frame("model.py(12): forward", 8, 60),
        op("aten::linear", 10, 50, [[64, 32], [16, 32], [16]], bf16),
        op("aten::addmm", 12, 40, [[16], [64, 32], [32, 16], [], []], [*bf16, "Scalar", "Scalar"]),
        launch(14, 1),
        launch(16, 2),
        op("aten::add", 70, 10, [[64, 16], [64, 16], []], ["float", "float", "Scalar"]),
        launch(72, 3),
        op("aten::mm", 90, 10, [[8, 128], [128, 24]], long),
        launch(92, 4),
        op("aten::mm", 110, 10, [[8, 128], [128, 24]], long),
        launch(112, 5),
        op("aten::sort", 130, 5, [[64], [], []], ["float", "Scalar", "Scalar"]),
        launch(131, 6),
        op("Compiled", 140, 10, [[8, 8]], ["float"]),
        launch(142, 7, "cudaGraphLaunch"),
        op("aten::copy_", 155, 5, [[64], [64], []], ["float", "float", "Scalar"]),
        x("cuda_runtime", "cudaMemcpyAsync", 156, 1, HOST, correlation=8),
        kernel(GEMM, 100, 30, 1),
        kernel(SPLIT_K, 131, 6, 2),
        kernel(ADD, 140, 4, 3),
        kernel(TF32_GEMM, 150, 20, 4),
        kernel(TF32_GEMM, 171, 28, 5),
        kernel("sort", 200, 9, 6),
        kernel(GEMM, 210, 11, 7),
        kernel(GEMM, 222, 13, 7),
        kernel("stray", 240, 3, 0),
        x(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            250,
            2,
            STREAM,
            device=0,
            stream=7,
            correlation=8,
        ),
    ]


def whole(listed: list[Event], device: str = "NVIDIA H100 80GB HBM3") -> dict[str, Any]:
    properties = {"id": 0, "name": device, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    return {"schemaVersion": 1, "record_shapes": 1, "deviceProperties": [properties], "traceEvents": listed}


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return opened(tmp_path, whole(events()))


def names_of(trace: Trace, rows: Any) -> list[str]:
    return [trace.strings.get(int(i)) for i in trace.metadata["name"][trace.events["metadata"][rows]]]


def test_work_is_divided_by_the_duration_of_a_calls_kernels(trace: Trace) -> None:
    work = kernel_work(trace)
    assert names_of(trace, work.rows) == [GEMM, SPLIT_K, ADD, TF32_GEMM, TF32_GEMM, "sort"]
    assert names_of(trace, work.call) == ["aten::addmm"] * 2 + ["aten::add"] + ["aten::mm"] * 2 + [
        "aten::sort"
    ]
    addmm, mm = _FLOPS["addmm"], _FLOPS["mm"]
    assert work.flops[:5].tolist() == pytest.approx([addmm * 30 / 36, addmm * 6 / 36, 64 * 16, mm, mm])
    assert math.isnan(work.flops[5])
    of_addmm = 2 * (16 + 64 * 32 + 32 * 16 + 64 * 16)
    of_mm = 4 * (8 * 128 + 128 * 24 + 8 * 24)
    expected = [of_addmm * 30 / 36, of_addmm * 6 / 36, 3 * 4 * 64 * 16, of_mm, of_mm]
    assert work.n_bytes[:5].tolist() == pytest.approx(expected)
    # bfloat16 is the peak's precision, TF32 has half of its rate
    assert work.roof_flops[3] == pytest.approx(mm * 989.5 / 494.7)
    assert work.roof_flops[0] == work.flops[0]


def test_precision_of_32_bits_without_tensor_cores(tmp_path: Path) -> None:
    listed = [{**e, "name": "sgemm"} if e["name"] == TF32_GEMM else e for e in events()]
    work = kernel_work(opened(tmp_path, whole(listed)))
    assert work.roof_flops[3] == pytest.approx(_FLOPS["mm"] * 989.5 / 67)


def test_an_operator_around_a_product_has_none_of_its_own(tmp_path: Path) -> None:
    """A launch by `linear` itself takes nothing of what `addmm` inside it states."""
    listed = [*events(), launch(56, 20), kernel("epilogue", 260, 5, 20)]
    work = kernel_work(opened(tmp_path, whole(listed)))
    by_name = dict(
        zip(names_of(opened(tmp_path, whole(listed)), work.rows), work.flops.tolist(), strict=True)
    )
    assert math.isnan(by_name["epilogue"])
    assert by_name[GEMM] == pytest.approx(_FLOPS["addmm"] * 30 / 36)


def test_fills_beside_a_calls_kernels_do_not_hide_its_work(tmp_path: Path) -> None:
    listed = [
        *events(),
        x("cuda_runtime", "cudaMemsetAsync", 18, 1, HOST, correlation=21),
        x("gpu_memset", "Memset (Device)", 262, 2, STREAM, device=0, stream=7, correlation=21),
    ]
    ops = by_framework_op(gpu_ops(opened(tmp_path, whole(listed))))
    rows = {name: i for i, name in enumerate(ops.name)}
    assert ops.flops[rows["aten::addmm"]] == pytest.approx(_FLOPS["addmm"])
    assert ops.time_ps[rows["aten::addmm"]] == 38 * 10**6
    assert math.isnan(ops.n_bytes[rows["aten::copy_"]])  # a copy by the driver alone


def test_kernels_of_no_duration_share_equally(tmp_path: Path) -> None:
    listed = [{**e, "dur": 0} if e["name"] in (GEMM, SPLIT_K) else e for e in events()]
    assert kernel_work(opened(tmp_path, whole(listed))).flops[:2].tolist() == [_FLOPS["addmm"] / 2] * 2


def test_framework_operations_have_rates_and_tensor_core_time(trace: Trace) -> None:
    ops = by_framework_op(gpu_ops(trace))
    rows = {name: i for i, name in enumerate(ops.name)}
    mm, addmm, sort = rows["aten::mm"], rows["aten::addmm"], rows["aten::sort"]
    assert ops.flops[[mm, addmm]].tolist() == pytest.approx([2 * _FLOPS["mm"], _FLOPS["addmm"]])
    assert ops.roof_flops[mm] == pytest.approx(2 * _FLOPS["mm"] * 989.5 / 494.7)
    assert math.isnan(ops.flops[sort])
    assert ops.time_ps[[mm, addmm]].tolist() == [48 * 10**6, 36 * 10**6]
    on_tensor_cores = {name: ops.tensor_core_ps[i] / 10**6 for name, i in rows.items()}
    assert on_tensor_cores == {
        "aten::addmm": 30,
        "aten::add": 0,
        "aten::mm": 48,
        "aten::sort": 0,
        "aten::copy_": 0,
        "cudaGraphLaunch in Compiled": 24,
        "stray": 0,
    }


def test_device_operations_by_sizes(trace: Trace) -> None:
    ops = device_ops(trace)
    rows = {ops.name[i]: i for i in range(len(ops))}
    assert {
        name: (ops.category[i], int(ops.time_ps[i]) // 10**6, int(ops.n_occurrences[i]))
        for name, i in rows.items()
    } == {
        "aten::addmm (16, 64×32, 32×16)": ("matrix multiplication", 36, 1),
        "aten::add (64×16, 64×16)": ("elementwise", 4, 1),
        "aten::mm (8×128, 128×24)": ("matrix multiplication", 48, 2),
        "aten::sort (64)": ("reduction", 9, 1),
        "cudaGraphLaunch in Compiled": ("graph launch", 24, 1),
        "stray": ("kernel without an operator", 3, 1),
    }
    mm = rows["aten::mm (8×128, 128×24)"]
    assert ops.work.flops[mm] == 2 * _FLOPS["mm"]
    assert ops.work.knows_flops.tolist() == [
        name.startswith(("aten::addmm", "aten::add ", "aten::mm")) for name in rows
    ]
    assert ops.busy_ps == 124 * 10**6
    assert ops.span_ps == (252 - 100) * 10**6
    assert (ops.n_devices, ops.has_hlo, ops.programs) == (1, False, {0: "PyTorch"})


def test_calls_are_occurrences(trace: Trace) -> None:
    calls = torch_ops(trace)
    assert sorted(calls.time_ps.tolist()) == [n * 10**6 for n in (3, 4, 9, 20, 24, 28, 36)]
    first = dict(zip(names_of(trace, calls.event), calls.time_ps.tolist(), strict=True))
    assert first["sort"] == 9 * 10**6


def test_steps_and_utilization_sum_the_work(trace: Trace) -> None:
    total = _FLOPS["addmm"] + 64 * 16 + 2 * _FLOPS["mm"]
    assert step_work(trace).work.flops.tolist() == pytest.approx([total])
    use = utilization(trace)
    assert use.flops == pytest.approx(total)
    assert use.max_flops == pytest.approx(989.5e12 * 152e-6)


def test_rates_above_a_peak_are_reported(tmp_path: Path) -> None:
    big = [[4096, 4096], [4096, 4096]]
    listed = [op("aten::mm", 0, 10, big, ["c10::Half", "c10::Half"]), launch(2, 1), kernel(GEMM, 20, 50, 1)]
    listed.append(kernel("other", 80, 5, 0))
    (excess,) = roof_excesses(opened(tmp_path, whole(listed)))
    assert excess.op == "aten::mm (4096×4096, 4096×4096)"
    assert excess.least_ps == pytest.approx(2 * 4096**3 / 989.5e12 * 1e12)
    assert excess.time_ps == 50 * 10**6


def test_without_sizes_nothing_is_known(tmp_path: Path) -> None:
    listed = [
        {**e, "args": {k: v for k, v in e["args"].items() if not k.startswith("Input")}} for e in events()
    ]
    trace = opened(tmp_path, whole(listed))
    assert not len(device_ops(trace))
    assert np.isnan(op_stats(trace).device.amounts("flops")).all()
    assert op_stats(trace).device.tensor_core_ps.sum() == (30 + 48 + 24) * 10**6


def test_grouping_by_sizes_and_by_callers(tmp_path: Path) -> None:
    listed = [
        *events(),
        frame("model.py(40): other", 105, 20),
        op("aten::mm", 170, 5, [[3, 4], [4, 5]], ["float"] * 2),
    ]
    trace = opened(tmp_path, whole(listed))
    by_shape = op_stats_by_shape(trace)
    host = set(
        zip(by_shape.host.name, by_shape.host.details, by_shape.host.n_occurrences.tolist(), strict=True)
    )
    assert {row for row in host if row[0] == "aten::mm"} == {
        ("aten::mm", "8×128, 128×24", 2),
        ("aten::mm", "3×4, 4×5", 1),
    }
    device = dict(
        zip(
            zip(by_shape.device.name, by_shape.device.details, strict=True),
            by_shape.device.self_ps.tolist(),
            strict=True,
        )
    )
    assert device["aten::mm", "8×128, 128×24"] == 48 * 10**6
    assert device["stray", ""] == 3 * 10**6
    by_stack = op_stats_by_stack(trace)
    stacks = dict(
        zip(
            zip(by_stack.device.name, by_stack.device.details, strict=True),
            by_stack.device.self_ps.tolist(),
            strict=True,
        )
    )
    step, forward, other = (
        "train.py:10 step",
        "model.py:12 forward;train.py:10 step",
        "model.py:40 other;train.py:10 step",
    )
    assert stacks["aten::mm", step] == 20 * 10**6
    assert stacks["aten::mm", other] == 28 * 10**6
    assert stacks["aten::addmm", forward] == 36 * 10**6
    # however rows are told apart, times add up
    for stats in (by_shape, by_stack):
        assert stats.device.busy_ps == op_stats(trace).device.busy_ps
        assert stats.host.busy_ps == op_stats(trace).host.busy_ps


def test_backward_operators_have_the_callers_of_their_forward_operator(tmp_path: Path) -> None:
    thread = {"pid": 100, "tid": 200}

    def arrow(phase: str, ts: float, where: dict[str, int]) -> Event:
        return {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": 7, "ts": ts, "bp": "e", **where}

    listed = [
        *events(),
        arrow("s", 13, HOST),  # in aten::addmm
        x("cpu_op", "AddmmBackward0", 180, 20, thread),
        arrow("f", 181, thread),
        x("cpu_op", "aten::mm", 185, 10, thread),
        x("cuda_runtime", "cudaLaunchKernel", 187, 1, thread, correlation=40),
        x("cpu_op", "aten::mul", 230, 10, thread),  # outside of it
        kernel("gemm", 256, 6, 40),
    ]
    by_stack = op_stats_by_stack(opened(tmp_path, whole(listed)))
    device = {
        key: time // 10**6
        for key, time in zip(
            zip(by_stack.device.name, by_stack.device.details, strict=True),
            by_stack.device.self_ps.tolist(),
            strict=True,
        )
    }
    assert device["aten::mm", "model.py:12 forward;train.py:10 step"] == 6
    assert device["aten::mm", "train.py:10 step"] == 48
    host = set(zip(by_stack.host.name, by_stack.host.details, strict=True))
    assert ("aten::mul", "") in host


def test_recorded_call_stacks_of_old_files(tmp_path: Path) -> None:
    listed = events()
    (addmm,) = [e for e in listed if e["name"] == "aten::addmm"]
    addmm["args"]["Call stack"] = "old.py(3): call;main.py(1): run"
    by_stack = op_stats_by_stack(opened(tmp_path, whole(listed)))
    assert dict(zip(by_stack.device.name, by_stack.device.details, strict=True))["aten::addmm"] == (
        "old.py(3): call;main.py(1): run"
    )


def test_compiled_operations_are_told_apart_by_their_hlo(tmp_path: Path) -> None:
    """A job of JAX: `reduce_sum` runs on a matrix and on the column that it leaves."""
    packed = Path(__file__).parents[2] / "data" / "gpu" / "jax_async1.xplane.pb.gz"
    (tmp_path / "jax.xplane.pb").write_bytes(gzip.decompress(packed.read_bytes()))
    trace = open_trace(str(tmp_path / "jax.xplane.pb"))
    stats, plain = op_stats_by_shape(trace).device, op_stats(trace).device
    rows = list(zip(stats.name, stats.details, strict=True))
    assert {detail for name, detail in rows if name == "jit(step)/jvp()/reduce_sum"} == {
        "(bf16[8192,4096]) → f32[4096]",
        "(f32[4096]) → f32[]",
    }
    assert stats.busy_ps == plain.busy_ps
    assert len(stats) > len(plain)


def test_kernel_stats_name_the_graphs_launch(trace: Trace) -> None:
    table = kernels(trace)
    assert {op for name, op in zip(table.name, table.op, strict=True) if name == GEMM} == {
        "aten::addmm",
        "cudaGraphLaunch in Compiled",
    }


def test_operators_on_the_host_have_work_without_a_gpu(tmp_path: Path) -> None:
    listed = [e for e in events() if e["cat"] in ("cpu_op", "user_annotation")]
    ops = op_stats(opened(tmp_path, {"traceEvents": listed})).host
    flops = dict(zip(ops.name, ops.amounts("flops").tolist(), strict=True))
    assert flops["aten::mm"] == 2 * _FLOPS["mm"]
    assert flops["aten::addmm"] == _FLOPS["addmm"]
    assert math.isnan(flops["aten::linear"])  # addmm within it states the same
    assert math.isnan(flops["aten::sort"])


def test_host_operators_beside_a_gpu_have_none(trace: Trace) -> None:
    assert np.isnan(op_stats(trace).host.amounts("flops")).all()
