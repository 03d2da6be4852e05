"""Which operator a kernel of PyTorch's traces goes to; which events lie on devices; what collectives are
called.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.kernels.kernels import kernels
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import Event, opened, rows
from tests.kineto_jobs import BACKWARD, HOST, LOADER, x

GPU = {"pid": 0, "tid": 7}


def ops(trace: Trace) -> dict[str, str]:
    """Operation by kernel."""
    found = kernels(trace)
    return dict(zip(found.name, found.op, strict=True))


def test_the_launch_decides_not_the_external_id(tmp_path: Path) -> None:
    """The kernels' ids are their own correlations here, and those are ids of other operators."""
    events = [
        x("cpu_op", "aten::conv2d", 0, 100, HOST, **{"External id": 1}),
        x("cpu_op", "aten::cudnn_convolution", 10, 50, HOST, **{"External id": 2}),
        x("cpu_op", "aten::relu", 100, 20, HOST, **{"External id": 3}),  # begins as the one before ends
        x("cpu_op", "MaxPool2DBackward", 0, 200, BACKWARD, **{"External id": 4}),
        *(
            x("cuda_runtime", "cudaLaunchKernel", at, 4, where, correlation=i)
            for i, (at, where) in enumerate(LAUNCHES, 1)
        ),
        *(
            x("kernel", f"k{i}", 300 + 10 * i, 5, GPU, correlation=i, **{"External id": i})
            for i in range(1, 6)
        ),
    ]
    found = ops(opened(tmp_path, events))
    assert found == {
        "k1": "aten::relu",
        "k2": "MaxPool2DBackward",
        "k3": "aten::cudnn_convolution",
        "k4": "aten::conv2d",
        "k5": "",
    }


LAUNCHES = ((100, HOST), (150, BACKWARD), (20, HOST), (70, HOST), (130, HOST))


@pytest.mark.parametrize("shift", [0, 7])
def test_external_ids_are_believed_only_where_launches_agree(tmp_path: Path, shift: int) -> None:
    """Three kernels have a launch in the file, one has none: its id counts if the ids of the others name
    their operators.
    """
    names = ("aten::mm", "aten::add", "aten::mul", "aten::sum")
    events: list[Event] = [
        x("cpu_op", name, 100 * i, 50, HOST, **{"External id": 11 + i}) for i, name in enumerate(names)
    ]
    events += [
        x("cuda_runtime", "cudaLaunchKernel", 100 * i + 10, 5, HOST, correlation=500 + i) for i in range(3)
    ]
    events += [
        x(
            "kernel",
            f"k{i}",
            1000 + 20 * i,
            5 + i,
            {"pid": 0, "tid": 7 + i},
            correlation=500 + i,
            **{"External id": 11 + (i + shift) % 4},
        )
        for i in range(4)
    ]
    told = "aten::sum" if shift == 0 else ""
    assert ops(opened(tmp_path, events)) == {
        "k0": "aten::mm",
        "k1": "aten::add",
        "k2": "aten::mul",
        "k3": told,
    }


def test_of_launches_with_one_correlation_the_last_before_the_kernel_counts(tmp_path: Path) -> None:
    events = [
        x("cpu_op", "aten::mm", 0, 50, HOST),
        x("cuda_runtime", "cudaLaunchKernel", 10, 5, HOST, correlation=9),
        x("cpu_op", "aten::add", 200, 50, {"pid": 101, "tid": 101}),
        x("cuda_runtime", "cudaLaunchKernel", 210, 5, {"pid": 101, "tid": 101}, correlation=9),
        x("kernel", "early", 20, 5, GPU, correlation=9),
        x("kernel", "late", 220, 5, {"pid": 1, "tid": 7}, correlation=9),
    ]
    assert ops(opened(tmp_path, events)) == {"early": "aten::mm", "late": "aten::add"}


def test_a_collective_is_called_by_what_the_file_says_it_does(tmp_path: Path) -> None:
    events: list[Event] = []
    for i, name in enumerate(("allreduce", "all_to_all", "")):
        told = {"Collective name": name} if name else {}
        events += [
            x("cpu_op", "record_param_comms", 100 * i, 50, HOST, **{"External id": i + 1}, **told),
            x("cuda_runtime", "cudaLaunchKernelExC", 100 * i + 10, 5, HOST, correlation=i + 1),
            x("kernel", f"nccl{i}", 1000 + 100 * i, 10 * i + 5, {"pid": 0, "tid": 20 + i}, correlation=i + 1),
        ]
    trace = opened(tmp_path, events)
    told = ("allreduce (record_param_comms)", "all_to_all (record_param_comms)", "record_param_comms")
    assert ops(trace) == {f"nccl{i}": name for i, name in enumerate(told)}
    stats = op_stats(trace)
    assert set(stats.host.name) == set(stats.device.name) == set(told)


def test_the_loader_is_input_where_there_is_no_device(tmp_path: Path) -> None:
    events: list[Event] = []
    for i, length in enumerate((400, 300, 500)):
        events += [
            x("user_annotation", f"ProfilerStep#{i}", 1000 * i, 1000, HOST),
            x("user_annotation", LOADER.format("SingleProcess"), 1000 * i, length, HOST),
            x("cpu_op", "aten::mm", 1000 * i + length, 900 - length, HOST),
        ]
    found = steps(opened(tmp_path, events))
    assert (found.duration_ps // 10**6).tolist() == [1000] * 3
    assert (found.category_ps("input") // 10**6).tolist() == [400, 300, 500]
    assert (found.class_ps[:, TimeClass.HOST_COMPUTE] // 10**6).tolist() == [500, 600, 400]


@pytest.mark.parametrize("label", ["MTIA", "XPU", "HPU"])
def test_other_accelerators_are_devices(tmp_path: Path, label: str) -> None:
    meta = [
        {"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": f"{label} {pid}"}}
        for pid in (17, 18, 19)
    ]
    kind = "mtia_ccp_events" if label == "MTIA" else "kernel"
    events = [x("cpu_op", "aten::mm", 0, 50, HOST)]
    events += [
        x(kind, name, 100 * pid, pid, {"pid": pid, "tid": 3000 + pid})
        for name, pid in (("pe_exe", 17), ("merge", 18), ("remote", 19))
    ]
    copies = [
        x("mtia_ccp_events", "dma_request", 5000, 5, {"pid": 17, "tid": 3017}),
        x("mtia_ccp_events", "event_wait", 0, 900, {"pid": 17, "tid": 8}),
    ]
    trace = opened(tmp_path, {"traceEvents": meta + events + (copies if label == "MTIA" else [])})
    assert {trace.plane_names[plane] for plane in planes(trace).gpus} == {
        f"/device:{label}:{pid}" for pid in (17, 18, 19)
    }
    assert sorted(kernels(trace).name) == ["merge", "pe_exe", "remote"]
    assert (
        op_stats(trace).device.busy_ps == (17 + 18 + 19) * 10**6
    )  # neither waiting nor moving data computes
    assert (hardware(trace).device, hardware(trace).n_devices) == (label, 3)
    assert [line for _, line, name, *_ in rows(trace) if name == "event_wait"] == (
        ["Synchronization - from #8"] if label == "MTIA" else []
    )


@pytest.mark.parametrize(
    ("name", "fetches"),
    [
        (LOADER.format("SingleProcess"), True),
        ("enumerate(DataPipe)#MapperIterDataPipe.__next__", True),
        ("/usr/lib/python3/site-packages/torch/utils/data/dataloader.py(633): __next__", True),
        ("torch/utils/data/dataloader.py(633): _next_data", False),  # lies in the one above
        ("torch/nn/modules/module.py(1501): _call_impl", False),
        ("Optimizer.step#SGD.step", False),
    ],
)
def test_what_fetches_a_batch(tmp_path: Path, name: str, fetches: bool) -> None:
    events: list[Event] = []
    for i, length in enumerate((400, 300, 500)):
        events += [
            x("user_annotation", f"ProfilerStep#{i}", 1000 * i, 1000, HOST),
            x("python_function" if ".py" in name else "user_annotation", name, 1000 * i + 5, length, HOST),
            x("cpu_op", "aten::mm", 1000 * i + 600, 20, HOST),
            x("cuda_runtime", "cudaLaunchKernel", 1000 * i + 610, 5, HOST, correlation=i + 1),
            x("kernel", "gemm", 1000 * i + 650, 300 - 50 * i, {"pid": 0, "tid": 7 + i}, correlation=i + 1),
        ]
    found = steps(opened(tmp_path, events))
    assert (found.category_ps("input") // 10**6).tolist() == ([400, 300, 500] if fetches else [0, 0, 0])
    assert (found.category_ps("device_compute") // 10**6).tolist() == [300, 250, 200]
