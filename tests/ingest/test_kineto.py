"""PyTorch's traces become what XPlanes are: steps, launches, kernels with their operations and details."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.ops.gpu import gpu_ops
from tb_tpuprof.analysis.ops.host import host_ops
from tb_tpuprof.analysis.steps.classes import TimeClass, gpu_class
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.ingest.chrome.kineto import _is_outermost
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import opened, rows

HOST, BACKWARD, GPU = {"pid": 100, "tid": 100}, {"pid": 100, "tid": 200}, {"pid": 0, "tid": 7}


def x(cat: str, name: str, ts: int, dur: int, where: dict[str, int], **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **where, "args": args}


def one_step(number: int, at: int) -> list[dict[str, Any]]:
    """A step with a forward kernel from the main thread and a backward kernel from the autograd thread."""
    first = 10 * number
    details = {
        "grid": [4, 2, 1],
        "block": [128, 1, 1],
        "registers per thread": 32,
        "shared memory": 1024,
        "est. achieved occupancy %": 50,
    }
    return [
        x("user_annotation", f"ProfilerStep#{number}", at, 90, HOST, **{"External id": first}),
        x("cpu_op", "aten::mm", at + 10, 20, HOST, **{"External id": first + 1}),
        x(
            "cuda_runtime",
            "cudaLaunchKernel",
            at + 15,
            5,
            HOST,
            **{"External id": first + 1, "correlation": first + 1},
        ),
        x("cpu_op", "MmBackward0", at + 40, 30, BACKWARD, **{"External id": first + 2}),
        x("cpu_op", "aten::mm", at + 45, 20, BACKWARD, **{"External id": first + 3}),
        x(
            "cuda_runtime",
            "cudaLaunchKernel",
            at + 50,
            5,
            BACKWARD,
            **{"External id": first + 3, "correlation": first + 2},
        ),
        x(
            "kernel",
            "gemm_half",
            at + 30,
            25,
            GPU,
            **{"External id": first + 1, "correlation": first + 1, **details},
        ),
        x("kernel", "gemm_half", at + 60, 15, GPU, **{"correlation": first + 2, **details}),
        x("gpu_user_annotation", f"ProfilerStep#{number}", at + 30, 45, GPU, **{"External id": first}),
    ]


def job(tmp_path: Path) -> Trace:
    devices = [
        {
            "id": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "totalGlobalMem": 80 * 10**9,
            "computeMajor": 9,
            "computeMinor": 0,
            "numSms": 132,
        }
    ]
    meta = [
        {"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": label}}
        for pid, label in ((100, "CPU"), (0, "GPU 0"))
    ]
    events = [event for number in range(3) for event in one_step(number + 5, 1000 * number)]
    return opened(
        tmp_path,
        {
            "schemaVersion": 1,
            "deviceProperties": devices,
            "baseTimeNanoseconds": 10**18,
            "traceEvents": meta + events,
        },
    )


def test_planes_lines_and_clock(tmp_path: Path) -> None:
    trace = job(tmp_path)
    assert trace.plane_names == ["/host:CPU", "/device:GPU:0"]
    assert trace.line_names == ["thread 100", "thread 200", "Annotations - from #7", "Stream #7"]
    assert planes(trace).is_derived_line.tolist() == [False, False, True, False]
    assert trace.info.start_ns == 10**18


def test_steps_gather_what_all_their_threads_launched(tmp_path: Path) -> None:
    trace = job(tmp_path)
    found = steps(trace)
    assert found.name == ("ProfilerStep 5", "ProfilerStep 6", "ProfilerStep 7")
    assert found.duration_ps.tolist() == [90 * 10**6] * 3  # the marker's, however long its kernels take
    assert found.class_ps[:, TimeClass.DEVICE_COMPUTE_16].tolist() == [40 * 10**6] * 3
    on_stream = [i for i, row in enumerate(rows(trace)) if row[1] == "Stream #7"]
    assert groups(trace).group[on_stream].tolist() == [0, 0, 1, 1, 2, 2]


def test_kernels_are_charged_to_their_operations(tmp_path: Path) -> None:
    trace = job(tmp_path)
    ops = gpu_ops(trace)
    assert (ops.name, ops.type, ops.n_occurrences.tolist()) == (("aten::mm/gemm_half",), ("mm",), [6])
    host = host_ops(trace)
    assert dict(zip(host.name, host.n_occurrences.tolist(), strict=True)) == {"aten::mm": 6, "MmBackward0": 3}
    details = trace.event_stats.texts("kernel_details")
    assert {trace.strings[i] for i in details.value.tolist()} == {
        "regs:32 static_shared:1024 grid:4,2,1 block:128,1,1 occ_pct:50"
    }
    assert len(details.owner) == 6


def test_the_device_is_known_by_its_properties(tmp_path: Path) -> None:
    found = hardware(job(tmp_path))
    assert (found.device, found.n_devices, found.memory_bytes) == ("NVIDIA H100 80GB HBM3", 1, 80 * 10**9)
    assert found.peak_flops_per_s > 9e14


@pytest.mark.parametrize(
    ("member", "device"),
    [
        ("hip_runtime_version", "AMD GPU gfx942"),
        ("roctracer_version", "AMD GPU gfx942"),
        ("cuda_runtime_version", "NVIDIA GPU (Hopper)"),
    ],
)
def test_a_device_without_a_name_is_of_the_runtimes_vendor(tmp_path: Path, member: str, device: str) -> None:
    listed = [{"id": 0, "name": "", "computeMajor": 9, "computeMinor": 4, "numSms": 304}]
    kernels = [x("kernel", "gemm", 10, 20, GPU, correlation=3)]
    trace = opened(tmp_path, {member: 7, "deviceProperties": listed, "traceEvents": kernels})
    assert hardware(trace).device == device


def test_categories_of_older_versions(tmp_path: Path) -> None:
    events = [
        x("Operator", "ProfilerStep#3", 0, 100, HOST),
        x("Operator", "aten::add", 1, 9, HOST, **{"External id": 4}),
        x("Runtime", "cudaLaunchKernel", 2, 3, HOST, **{"external id": 4, "correlation": 8}),
        x("Kernel", "add", 20, 5, {"pid": 0, "tid": "stream 7"}, **{"external id": 4, "correlation": 8}),
        x("Memcpy", "Memcpy HtoD (Pageable -> Device)", 30, 5, {"pid": 0, "tid": "stream 7"}, correlation=9),
    ]
    trace = opened(tmp_path, events)
    assert trace.plane_names == ["/host:CPU", "/device:GPU:0"]
    assert trace.lines["id"].tolist() == [100, 7]
    assert gpu_ops(trace).name == ("aten::add/add",)
    texts = trace.event_stats.texts("tf_op").value.tolist()
    assert sorted(trace.strings[text] for text in texts) == [
        "aten::add",
        "aten::add",
    ]  # a step is no operation
    assert gpu_class("Memcpy HtoD (Pageable -> Device)") == TimeClass.HOST_TO_DEVICE


def test_memory_marks_become_counters(tmp_path: Path) -> None:
    def mark(ts: int, used: int, device: int) -> dict[str, Any]:
        args = {
            "Total Allocated": used,
            "Total Reserved": 100,
            "Device Id": device,
            "Device Type": int(device >= 0),
            "Bytes": 1,
        }
        return {
            "ph": "i",
            "s": "t",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "ts": ts,
            **HOST,
            "args": args,
        }

    trace = opened(
        tmp_path, [x("cpu_op", "aten::mm", 0, 9, HOST), mark(1, 5, 0), mark(2, 7, 0), mark(3, 1, -1)]
    )
    found = {
        (trace.strings.get(n), trace.strings.get(s)): m
        for n, s, m in zip(
            *(trace.counters[c].tolist() for c in ("name", "series", "n_samples")), strict=True
        )
    }
    assert found == {
        ("Memory of GPU 0", "in use"): 2,
        ("Memory of GPU 0", "reserved"): 2,
        ("Memory of the host", "in use"): 1,
        ("Memory of the host", "reserved"): 1,
    }


def test_a_thread_that_shares_a_stream_s_number_stays_on_the_host(tmp_path: Path) -> None:
    events = [
        x("python_function", "main", 0, 50, {"pid": 0, "tid": 7}),
        x("cpu_op", "aten::mm", 1, 9, HOST),
        x("kernel", "k", 3, 5, GPU, correlation=1),
    ]
    trace = opened(tmp_path, events)
    assert {(row[0], row[2]) for row in rows(trace)} == {
        ("/host:CPU", "main"),
        ("/host:CPU", "aten::mm"),
        ("/device:GPU:0", "k"),
    }


def test_events_of_a_line_are_outermost_whatever_ends_last_on_another() -> None:
    """Line 0 has a long event around a short one; on lines 1 and 2 one follows the other, or overlaps it."""
    events = [(0, 0, 100), (0, 5, 1), (1, 0, 2), (1, 2, 2), (2, 40, 9), (2, 45, 9), (2, 60, 1)]
    line, start, duration = np.array(events).T
    assert _is_outermost(line, start, duration).tolist() == [True, False, True, True, True, False, True]
    assert _is_outermost(line[:0], start[:0], duration[:0]).tolist() == []
