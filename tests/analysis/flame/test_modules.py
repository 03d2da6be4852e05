"""PyTorch's layers and the kernels of their forward calls, gradients and updates, on a trace
written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.flame.modules import has_modules, module_nodes
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace

US = 1_000_000
MAIN, ENGINE = 11, 12


def call(name: str, cat: str, start: float, duration: float, tid: int = MAIN, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": duration, "args": args,
    }  # fmt: skip


def launch(start: float, kernel_us: float, number: int, tid: int = MAIN) -> list[dict[str, Any]]:
    """A launch and its kernel, which runs 500 µs later."""
    kernel = call(
        f"kernel{number}", "kernel", 500 + start, kernel_us, 7, correlation=number, device=0, stream=7
    )
    return [
        call("cudaLaunchKernel", "cuda_runtime", start, 1, tid, correlation=number),
        {**kernel, "pid": 0},
    ]


def arrow(number: int, start: float, end: float) -> list[dict[str, Any]]:
    shared = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": 1}
    return [
        {**shared, "ph": "s", "tid": MAIN, "ts": start},
        {**shared, "ph": "f", "bp": "e", "tid": ENGINE, "ts": end},
    ]


EVENTS = [
    call("nn.Module: Net_0", "python_function", 10, 90),
    call("nn.Module: Linear_0", "python_function", 20, 20),
    call("aten::mm", "cpu_op", 22, 10),
    *launch(25, 3, 1),
    call("nn.Module: Linear_1", "python_function", 50, 30),
    call("aten::mm", "cpu_op", 52, 20),
    *launch(55, 5, 2),
    *launch(58, 7, 3),
    *launch(90, 11, 4),  # inside Net_0, in none of its layers
    *launch(104, 13, 5),  # outside of all
    call("autograd::engine::evaluate_function: MmBackward0", "cpu_op", 120, 20, ENGINE),
    call("MmBackward0", "cpu_op", 122, 15, ENGINE),
    *launch(125, 17, 6, ENGINE),
    *arrow(1, 52, 122),  # the gradient of Linear_1's product
    call("autograd::engine::evaluate_function: AccumulateGrad", "cpu_op", 150, 10, ENGINE),
    *launch(152, 19, 7, ENGINE),  # tied to nothing
    call("Optimizer.step#SGD.step", "user_annotation", 170, 20),
    *launch(175, 23, 8),
]


def trace_of(folder: Path, events: list[dict[str, Any]]) -> Trace:
    (folder / "h.pt.trace.json").write_text(json.dumps({"traceEvents": events, "schemaVersion": 1}))
    session = Session(str(folder), cache=False)
    return session.trace(session.hosts[0])


def found(trace: Trace, window: tuple[int, int] = (0, 10**12)) -> dict[str, tuple[float, float, int]]:
    """(own, total in µs, calls) by path."""
    nodes = module_nodes(trace, [(np.array([window[0]]), np.array([window[1]]))])
    paths: list[str] = []
    for node in nodes:
        name = node.name.removeprefix("nn.Module: ")
        paths.append(f"{paths[node.parent]}/{name}" if node.parent >= 0 else name)
        assert node.phase == paths[-1].partition("/")[0]
    return {
        path: (node.own_ps[0] / US, node.total_ps[0] / US, node.calls[0])
        for path, node in zip(paths, nodes, strict=True)
    }


def test_kernels_belong_to_the_layers_that_launch_them(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, EVENTS)
    assert has_modules(trace)
    assert found(trace) == {
        "forward": (0, 39, 5),
        "forward/Net_0": (11, 26, 4),
        "forward/Net_0/Linear_0": (3, 3, 1),
        "forward/Net_0/Linear_1": (12, 12, 2),
        "forward/(outside of modules)": (13, 13, 1),
        "backward": (0, 36, 2),
        "backward/Net_0": (0, 17, 1),
        "backward/Net_0/Linear_1": (17, 17, 1),
        "backward/(outside of modules)": (19, 19, 1),
        "optimizer": (0, 23, 1),
        "optimizer/(outside of modules)": (23, 23, 1),
    }


def test_kernels_count_in_the_step_that_launches_them(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, EVENTS)
    zero = int(trace.events["start_ps"].min())  # the trace begins with its first event, at 10 µs
    assert found(trace, (zero + (55 - 10) * US, zero + (90 - 10) * US)) == {
        "forward": (0, 12, 2),
        "forward/Net_0": (0, 12, 2),
        "forward/Net_0/Linear_1": (12, 12, 2),
    }


def test_without_kernels_modules_take_the_host_s_time(tmp_path: Path) -> None:
    events = [
        event for event in EVENTS if event["cat"] in ("python_function", "cpu_op") and event["tid"] == MAIN
    ]
    assert found(trace_of(tmp_path, events)) == {
        "forward": (0, 90, 5),
        "forward/Net_0": (40, 90, 5),
        "forward/Net_0/Linear_0": (20, 20, 2),
        "forward/Net_0/Linear_1": (30, 30, 2),
    }


@pytest.mark.parametrize("depth", [3, 150])
def test_layers_as_deep_as_a_hostile_trace_has_them(tmp_path: Path, depth: int) -> None:
    events = [call(f"nn.Module: L_{i}", "python_function", i, 1000 - 2 * i) for i in range(depth)]
    paths = found(trace_of(tmp_path, events))
    assert max(path.count("/") for path in paths) == min(depth, 100)


def mark(start: float, size: int, total: int, tid: int = MAIN, device: int = 1) -> dict[str, Any]:
    """An allocation (a negative size: a deallocation) and the memory in use after it."""
    args = {"Bytes": size, "Device Type": device, "Device Id": 0 if device else -1, "Addr": int(start * 10)}
    args["Total Allocated"] = total
    return {
        "ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": tid, "ts": start, "args": args,
    }  # fmt: skip


# Net_0 is called with 1000 bytes in use: 1000, 1500, 1800, 1500 | 1500, 3500 | 3400; backward: 3470, 3070.
MARKS = [
    mark(5, 1000, 1000),
    mark(23, 500, 1500),
    mark(26, 300, 1800),
    mark(31, -300, 1500),
    mark(53, 2000, 3500),
    mark(95, -100, 3400),
    mark(126, 70, 3470, ENGINE),  # in the gradient of Linear_1's product
    mark(130, -400, 3070, ENGINE),
    mark(155, 40, 3110, ENGINE),  # tied to nothing
    mark(180, 6, 3116),  # the optimizer's
    mark(24, 9_999, 9_999, device=0),  # the host's memory is another one
]


def memory_of(trace: Trace, window: tuple[int, int] = (0, 10**12)) -> dict[str, tuple[float | None, ...]]:
    nodes = module_nodes(trace, [(np.array([window[0]]), np.array([window[1]]))])
    paths: list[str] = []
    for node in nodes:
        name = node.name.removeprefix("nn.Module: ")
        paths.append(f"{paths[node.parent]}/{name}" if node.parent >= 0 else name)
    return {
        path: (node.allocated_bytes, node.net_bytes, node.peak_bytes)
        for path, node in zip(paths, nodes, strict=True)
    }


def test_memory_belongs_to_the_innermost_module(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [*EVENTS, *MARKS])
    assert memory_of(trace) == {
        "forward": (3800, 3400, None),
        "forward/Net_0": (2800, 2400, 2500),
        "forward/Net_0/Linear_0": (800, 500, 800),
        "forward/Net_0/Linear_1": (2000, 2000, 2000),
        "forward/(outside of modules)": (1000, 1000, None),
        "backward": (110, -290, None),
        "backward/Net_0": (70, -330, None),
        "backward/Net_0/Linear_1": (70, -330, None),
        "backward/(outside of modules)": (40, 40, None),
        "optimizer": (6, 6, None),
        "optimizer/(outside of modules)": (6, 6, None),
    }
    times = {path: own for path, (own, _, _) in found(trace).items()}
    assert times["forward/Net_0"] == 11  # as without memory
    assert times["forward/(outside of modules)"] == 13


def test_memory_counts_in_the_step_in_which_it_is_allocated(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [*EVENTS, *MARKS])
    zero = int(trace.events["start_ps"].min()) - 5 * US  # the trace begins with its first mark, at 5 µs
    window = (zero + 50 * US, zero + 100 * US)
    assert memory_of(trace, window) == {
        "forward": (2000, 1900, None),
        "forward/Net_0": (2000, 1900, None),
        "forward/Net_0/Linear_1": (2000, 2000, 2000),
    }


def test_only_the_host_s_memory_counts_where_no_device_has_any(tmp_path: Path) -> None:
    marks = [mark(23, 5, 5, device=0), mark(55, 7, 12, device=0), mark(60, -7, 5, device=0)]
    memory = memory_of(trace_of(tmp_path, [*EVENTS, *marks]))
    assert memory["forward/Net_0"] == (12, 5, 12)
    assert memory["forward/Net_0/Linear_1"] == (7, 0, 7)
    assert memory["backward"] == (None, None, None)


def test_modules_that_only_allocate_are_shown(tmp_path: Path) -> None:
    silent = call("nn.Module: Dropout_0", "python_function", 82, 6)
    trace = trace_of(tmp_path, [*EVENTS, silent, mark(84, 64, 64), mark(86, -64, 0)])
    assert memory_of(trace)["forward/Net_0/Dropout_0"] == (64, 0, 64)
    assert found(trace)["forward/Net_0/Dropout_0"] == (0, 0, 0)


def test_without_marks_memory_is_unknown(tmp_path: Path) -> None:
    assert set(memory_of(trace_of(tmp_path, EVENTS)).values()) == {(None, None, None)}
