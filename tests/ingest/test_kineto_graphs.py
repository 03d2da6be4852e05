"""Kernels of CUDA graphs by the operators that put them there: three unlike graphs in one file.

graph 4   captured in the file: nodes 11 (aten::mm), 12 (aten::relu); replayed twice
graph 5   captured in the file: node 11 (aten::add), another one of the same number; node 13 by no operator
graph 6   captured before the profile
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.ops.torch_ops import torch_ops
from tb_tpuprof.analysis.ops.utilization import utilization
from tb_tpuprof.ingest.chrome.kineto_graphs import creators
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import Event, opened
from tests.kineto_jobs import HOST, x

STREAM = {"pid": 0, "tid": 7}
DIMS = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}


def launch(ts: float, correlation: int, name: str = "cudaLaunchKernel", **ids: int) -> Event:
    more = {key.replace("_", " "): value for key, value in ids.items()}
    return x("cuda_runtime", name, ts, 1, HOST, correlation=correlation, **more)


def kernel(name: str, ts: float, dur: float, correlation: int, graph: int, node: int) -> Event:
    more = {"graph id": graph, "graph node id": node} if graph else {}
    return x("kernel", name, ts, dur, STREAM, device=0, stream=7, correlation=correlation, **more)


def events() -> list[Event]:
    return [
        x("cpu_op", "aten::mm", 10, 10, HOST, **DIMS),
        launch(12, 1, graph_id=4, graph_node_id=11),
        x("cpu_op", "aten::relu", 22, 5, HOST),
        launch(23, 2, graph_id=4, graph_node_id=12),
        x("cpu_op", "aten::add", 30, 5, HOST),
        launch(31, 3, graph_id=5, graph_node_id=11),
        launch(40, 4, graph_id=5, graph_node_id=13),
        x("cpu_op", "Compiled", 50, 10, HOST, **DIMS),
        launch(52, 5, "cudaGraphLaunch"),
        launch(70, 6, "cudaGraphLaunch"),
        launch(80, 7, "cudaGraphLaunch"),
        launch(90, 8, "cudaGraphLaunch"),
        x("cpu_op", "aten::mm", 95, 4, HOST, **DIMS),
        launch(96, 9),
        kernel("gemm", 100, 20, 5, 4, 11),
        kernel("relu", 121, 3, 5, 4, 12),
        kernel("gemm", 130, 22, 6, 4, 11),
        kernel("relu", 153, 5, 6, 4, 12),
        kernel("add", 160, 7, 7, 5, 11),
        kernel("fill", 168, 2, 7, 5, 13),
        kernel("gemm", 171, 11, 8, 6, 11),
        kernel("gemm", 190, 20, 9, 0, 0),
    ]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}
    content = {"schemaVersion": 1, "record_shapes": 1, "deviceProperties": [device], "traceEvents": events()}
    return opened(tmp_path, content)


def test_kernels_of_graphs_have_the_operators_that_put_them_there(trace: Trace) -> None:
    texts = trace.event_stats.texts("tf_op")
    op = {int(row): trace.strings.get(int(text)) for row, text in zip(texts.owner, texts.value, strict=True)}
    details = trace.event_stats.texts("kernel_details").owner.tolist()
    found = {int(trace.events["start_ps"][row]) // 10**6 + 10: op.get(row, "") for row in details}
    assert found == {
        100: "aten::mm",
        121: "aten::relu",
        130: "aten::mm",
        153: "aten::relu",
        160: "aten::add",
        168: "cudaGraphLaunch",
        171: "cudaGraphLaunch",
        190: "aten::mm",
    }


def test_their_time_counts_under_the_operator_and_no_call_s_work_does(trace: Trace) -> None:
    device = op_stats(trace).device
    time = dict(zip(device.name, (device.self_ps // 10**6).tolist(), strict=True))
    assert {name: time[name] for name in ("aten::mm", "aten::relu", "aten::add")} == {
        "aten::mm": 20 + 22 + 20,
        "aten::relu": 3 + 5,
        "aten::add": 7,
    }
    assert time["cudaGraphLaunch"] == 2 + 11
    ops = torch_ops(trace).ops
    rows = {ops.name[i]: int(ops.time_ps[i]) // 10**6 for i in range(len(ops))}
    assert rows["aten::mm"] == 42
    assert rows["aten::mm (64×32, 32×16)"] == 20
    assert sum(rows.values()) == 90
    assert utilization(trace).flops == pytest.approx(2 * 64 * 32 * 16)  # the one call outside of graphs


@pytest.mark.parametrize("seed", range(20))
def test_creators_of_random_nodes(seed: int) -> None:
    """Plain: the last launch of a graph's node that an operator is around."""
    chance = np.random.default_rng(seed)
    kernels, launches = (tuple(chance.integers(-1, 4, (2, n))) for n in (40, 25))
    operator = chance.integers(-1, 99, 25)
    created = {}
    for graph, node, one in zip(*launches, operator, strict=True):
        if one >= 0:
            created[int(graph), int(node)] = int(one)
    expected = [
        created.get((int(graph), int(node)), -1) if graph > 0 and node > 0 else -1
        for graph, node in zip(*kernels, strict=True)
    ]
    found = creators((kernels[0], kernels[1]), (launches[0], launches[1]), operator)
    assert found.tolist() == expected


def test_nodes_are_numbered_within_their_graph() -> None:
    kernels = np.array([4, 4, 5, 0, 9, 5]), np.array([11, 12, 11, 11, 11, 0])
    launches = np.array([4, 5, 4, 4, 0]), np.array([11, 11, 12, 11, 12])
    operator = np.array([100, 200, -1, 300, 400])
    assert creators(kernels, launches, operator).tolist() == [300, -1, 200, -1, -1, -1]
    none = np.empty(0, np.int64)
    assert creators(kernels, (none, none), none).tolist() == [-1] * 6
    assert creators((none, none), launches, operator).tolist() == []
