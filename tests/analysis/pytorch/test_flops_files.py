"""FLOPs of recorded PyTorch jobs against what else is known of them: the model of the job, and a plain
reading of the raw file, event by event.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.stats import op_stats_by_shape
from tb_tpuprof.analysis.pytorch.kernels import call_work, kernel_work, operator_calls
from tb_tpuprof.ingest.opening import open_trace

DATA = Path(__file__).parents[2] / "data" / "gpu"
TRACES = Path(os.environ.get("TPUPROF_CORPUS", "/nowhere"))
N_STEPS, BATCH = 6, 64  # of tests/data/gpu/capture_torch.py
# (output positions, weights) of its network's convolutions and (in, out) of its linear layers
CONVOLUTIONS = ((64 * 64, 3 * 64 * 9), (32 * 32, 64 * 128 * 9), (16 * 16, 128 * 256 * 9))
LINEARS = ((4096, 4096), (4096, 10))
FILES = (
    "tracelens_torch/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens_torch/traces/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "tracelens_torch/traces/mi300/resnet_act_checkpoint.json.gz",
    "hta/trace_diff/control/control.json.gz",
    "kineto_samples/resnet50_num_workers_4/worker0.1623212756351.pt.trace.json.gz",
)


@pytest.mark.parametrize("run", ["torch_async", "torch_loader0", "torch_sleepy"])
def test_flops_of_a_known_network(run: str) -> None:
    """Forward and both gradients of each layer, without the gradient of the images."""
    once = [BATCH * 2 * positions * weights for positions, weights in CONVOLUTIONS]
    once += [BATCH * 2 * n_in * n_out for n_in, n_out in LINEARS]
    expected = N_STEPS * (3 * sum(once) - once[0])
    trace = open_trace(str(DATA / f"{run}.pt.trace.json.gz"))
    work = kernel_work(trace)
    counted = sum(
        flops
        for flops, product in zip(work.flops.tolist(), work.calls.has_products[work.kind], strict=True)
        if product
    )
    assert counted == pytest.approx(expected, rel=1e-12)


def test_flops_of_torchs_own_counter() -> None:
    """`torch.utils.flop_counter` on the same program. It does not count attention on the CPU, and it counts
    the weight's gradient of a grouped convolution once per group, which is 4 times too often here.
    """
    folder = DATA.parent / "kineto"
    expected = json.loads((folder / "products.json").read_text("utf-8"))
    grouped = 2 * 4 * (16 * 16) * (16 * 2 * 9)
    expected["aten.convolution_backward"] -= 3 * grouped
    ops = op_stats_by_shape(open_trace(str(folder / "products.pt.trace.json.gz"))).host
    flops: dict[str, float] = defaultdict(float)
    for name, amount in zip(ops.name, np.nan_to_num(ops.amounts("flops")).tolist(), strict=True):
        flops[name.removeprefix("aten::")] += amount
    # The transposed one runs in `_convolution` itself.
    flops["convolution"] = flops["mkldnn_convolution"] + flops["_convolution"]
    assert {f"aten.{name}": flops[name] for name in flops if f"aten.{name}" in expected} == expected
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    assert flops[attention] == 2 * 4 * 2 * 11 * 11 * (8 + 8)
    assert flops[f"{attention}_backward"] == 2 * 4 * 2 * 11 * 11 * (3 * 8 + 2 * 8)


def _events(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", errors="replace") as file:
        content = json.load(file)
    listed = content["traceEvents"] if isinstance(content, dict) else content
    return [event for event in listed if event.get("ph") == "X" and isinstance(event.get("args"), dict)]


def _plain_flops(event: dict[str, Any]) -> float:
    """FLOPs of a product by its inputs, 0 if it is none or they are not recorded; independent of the
    package.
    """
    args, name = event["args"], event["name"]
    dims = args.get("Input Dims", args.get("Input dims")) or []
    values = args.get("Concrete Inputs") or []
    if name == "aten::mm" and len(dims) > 1:
        return 2.0 * dims[0][0] * dims[0][1] * dims[1][1]
    if name == "aten::addmm" and len(dims) > 2:
        return 2.0 * dims[1][0] * dims[1][1] * dims[2][1]
    if name == "aten::bmm" and len(dims) > 1:
        return 2.0 * dims[0][0] * dims[0][1] * dims[0][2] * dims[1][2]
    if name == "aten::cudnn_convolution_backward_input" and len(dims) > 2:
        return 2.0 * math.prod(dims[1]) / dims[1][1] * math.prod(dims[2])
    if name in ("aten::cudnn_convolution", "aten::miopen_convolution") and values:
        first = 2 if name == "aten::cudnn_convolution" else 3
        padding, stride, dilation = (json.loads(values[first + i]) for i in range(3))
        total = 2.0 * dims[0][0] * math.prod(dims[1])
        for i, size in enumerate(dims[0][2:]):
            total *= (size + 2 * padding[i] - dilation[i] * (dims[1][2 + i] - 1) - 1) // stride[i] + 1
        return total
    if name == "aten::convolution_backward" and values:
        wanted = values[10].strip("[]").split(", ")[:2].count("True")
        return wanted * 2.0 * math.prod(dims[0]) / dims[0][1] * math.prod(dims[2])
    if name == "aten::_flash_attention_forward" and values:
        b, s, h, d = dims[0]
        return 2.0 * b * h * (s * (s + 1) // 2 if values[8] == "True" else s * s) * 2 * d
    return 0.0


def _plainly_counted(path: Path) -> dict[str, float]:
    """FLOPs by operator: those of each innermost operator around a launch, once."""
    events = _events(path)
    by_thread: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("cat") in ("cpu_op", "Operator"):
            by_thread[event["tid"]].append(event)
    for listed in by_thread.values():
        listed.sort(key=lambda event: (event["ts"], -event["dur"]))
    kernels = {
        event["args"].get("correlation") for event in events if event.get("cat") in ("kernel", "Kernel")
    }
    launching: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") not in ("cuda_runtime", "cuda_driver", "Runtime"):
            continue
        if event["args"].get("correlation") not in kernels or "GraphLaunch" in event["name"]:
            continue
        ops = by_thread[event["tid"]]
        before = ops[: bisect_right(ops, event["ts"], key=lambda op: op["ts"])]
        for op in reversed(before):
            if event["ts"] < op["ts"] + max(op["dur"], 1e-9):
                launching[id(op)] = op
                break
    total: dict[str, float] = defaultdict(float)
    for event in launching.values():
        total[event["name"]] += _plain_flops(event)
    return {name: flops for name, flops in total.items() if flops}


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_flops_by_operator_equal_a_plain_reading(file: str) -> None:
    path = TRACES / file
    if not path.exists():
        pytest.skip(f"TPUPROF_CORPUS has no {file}")
    expected = _plainly_counted(path)
    trace = open_trace(str(path))
    work = kernel_work(trace)
    events = np.unique(work.call)
    calls, kind = operator_calls(trace, events)
    counted, kept, above = (defaultdict[str, float](float) for _ in range(3))
    is_above = np.isin(events, work.call[work.flops_excess > 0])
    for row, flops, is_impossible in zip(
        kind.tolist(), call_work(trace, events, calls, kind)[0].tolist(), is_above.tolist(), strict=True
    ):
        name = trace.strings.get(int(calls.name[row]))
        counted[name] += 0.0 if math.isnan(flops) else flops
        above[name] += flops if is_impossible else 0.0
    for row, flops in zip(work.kind.tolist(), work.flops.tolist(), strict=True):
        kept[trace.strings.get(int(work.calls.name[row]))] += 0.0 if math.isnan(flops) else flops
    assert len(expected) >= 2
    assert {name: counted[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    # What exceeds the peak is left out, and nothing else.
    assert {name: kept[name] + above[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert (sum(above.values()) > 0) == ("num_workers" in file)
