"""Pieces of annotated steps on a GPU, on a trace whose every stretch is written down."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import step_pieces, steps
from tb_tpuprof.trace.trace import Trace
from tests.analysis.steps.step_rows import rows_of
from tests.builders import PS, DrawnPlane, build, event


def jax_trace() -> Trace:
    """Annotated steps on a GPU: 3 compiles and loads, 4 waits for a copy that another thread prepares, 5 runs
    past its end, 6 only runs on the host.
    """
    main = [
        event("train", 0, 50, _r=1, step_num=3),
        event("$loop.py:9 fit", 1, 48),
        event("PjitFunction(f)", 2, 20),
        event("launch", 3, 2, correlation_id=1),
        event("backend_compile", 6, 5),
        event("$gen.py:4 batches", 25, 10),
        event("DevicePutWithSharding", 27, 5),
        event("launch", 40, 2, correlation_id=2),
        event("train", 66, 34, _r=1, step_num=4),
        event("np.asarray(jax.Array)", 67, 20),
        event("copy", 68, 2, correlation_id=3),
        event("launch", 90, 2, correlation_id=4),
        event("train", 100, 20, _r=1, step_num=5),
        event("launch", 110, 2, correlation_id=5),
        event("train", 150, 10, _r=1, step_num=6),
        event("x:X", 151, 5),
    ]
    other = [
        event("H2D Dispatch", 60, 12),
        event("H2D Dispatch", 71, 3),
        event("Linearize", 78, 2),
        event("TransferToNot it", 82, 2),
        event("H2D Dispatch", 105, 0),
        event("TransferToX", 108, 3),
    ]
    launching = [
        event("ThreadWork", 4, 30),
        event("cudaLaunchKernel", 10, 2),
        event("Loose", 36, 5, correlation_id=0),
    ]
    stream = [
        event("gemm", 8, 10, correlation_id=1),
        event("gemm_bf16", 45, 20, correlation_id=2),
        event("MemcpyDtoH", 75, 6, correlation_id=3),
        event("gemm", 93, 4, correlation_id=4),
        event("gemm", 112, 30, correlation_id=5),
        event("lost", 200, 5),
    ]
    lines = {"main": main, "other": other, "launching": launching, "next": [event("cuLaunchKernel", 52, 3)]}
    return build([DrawnPlane("/host:CPU", lines), DrawnPlane("/device:GPU:0", {"s": stream})])


def test_pieces_of_annotated_steps_on_a_gpu() -> None:
    trace = jax_trace()
    found, pieces = step_pieces(trace)
    assert (found.name, found.how, found.n_incomplete) == (("train 3", "train 4", "train 5"), "annotated", 0)
    assert ((found.start_ps // PS).tolist(), (found.duration_ps // PS).tolist()) == (
        [0, 66, 100],
        [65, 34, 42],
    )
    times = [
        {TimeClass(k).name: int(time) // PS for k, time in enumerate(row) if time} for row in found.class_ps
    ]
    assert times == [
        {
            "UNKNOWN": 65 - 60,
            "HOST_PYTHON": 12,
            "HOST_WAIT_LOADER": 10,
            "HOST_COMPILE": 8,
            "DEVICE_COMPUTE_32": 10,
            "DEVICE_COMPUTE_16": 20,
        },
        {"UNKNOWN": 24, "DEVICE_TO_HOST": 6, "DEVICE_COMPUTE_32": 4},
        {"UNKNOWN": 12, "DEVICE_COMPUTE_32": 30},
    ]
    assert [(wait.name, (wait.time_ps // PS).tolist()) for wait in found.waits] == [
        ("fit", [12, 0, 0]),
        ("batches", [10, 0, 0]),
    ]
    assert pieces is not None
    rows = rows_of(trace, pieces)
    fit, asarray = "$loop.py:9 fit", "np.asarray(jax.Array)"
    idle = {
        (start, end, klass, named, inner)
        for _, start, end, of_device, klass, named, inner in rows
        if of_device == "UNKNOWN"
    }
    computes, copies = "HOST_COMPUTE", "HOST_TO_DEVICE"
    assert idle == {
        (3, 5, computes, fit, "launch"),
        (40, 42, computes, fit, "launch"),
        (67, 68, computes, asarray, asarray),
        (68, 70, computes, "copy", "copy"),
        (70, 87, computes, asarray, asarray),
        (90, 92, computes, "launch", "launch"),
        (110, 112, computes, "launch", "launch"),
        (67, 68, copies, asarray, asarray),
        (68, 70, copies, "copy", "copy"),
        (70, 74, copies, asarray, asarray),
        (78, 80, copies, asarray, asarray),
        (110, 111, copies, "launch", "launch"),
        (4, 10, computes, "", "ThreadWork"),
        (10, 12, computes, "", "cudaLaunchKernel"),
        (12, 34, computes, "", "ThreadWork"),
        (52, 55, computes, "", "cuLaunchKernel"),
    }
    device = {
        (step, start, end, inner)
        for step, start, end, klass, _, named, inner in rows
        if klass.startswith("DEVICE")
    }
    assert device == {
        (0, 8, 18, "gemm"),
        (0, 45, 65, "gemm_bf16"),
        (1, 75, 81, "copy"),
        (1, 93, 97, "gemm"),
        (2, 112, 142, "gemm"),
    }
    host = [(start, end, klass) for _, start, end, klass, _, _, _ in rows if klass.startswith("HOST")]
    python, compiles, loads = "HOST_PYTHON", "HOST_COMPILE", "HOST_WAIT_LOADER"
    assert host == [
        (1, 2, python),
        (2, 3, compiles),
        (5, 6, compiles),
        (6, 11, compiles),
        (11, 22, compiles),
        (22, 25, python),
        (25, 27, loads),
        (27, 32, loads),
        (32, 35, loads),
        (35, 40, python),
        (42, 49, python),
    ]


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ((20, 45, 72), "annotated"),
        ((31, 45, 72), "annotated"),
        ((31, 64, 72), "dispatched"),
        ((31, 64, 95), "dispatched"),
    ],
)
def test_steps_that_launch_ahead_of_the_device_are_dispatched(ends: tuple[int, ...], how: str) -> None:
    """Steps begin at 0, 30 and 60 and end at 10, 40 and 70; more than half of their work must end after the
    next one begins.
    """
    main = [
        one
        for i in range(3)
        for one in (
            event("train", 30 * i, 10, _r=1, step_num=i),
            event("launch", 30 * i + 1, 2, correlation_id=i),
        )
    ]
    stream = [event("gemm", 30 * i + 4, end - 30 * i - 4, correlation_id=i) for i, end in enumerate(ends)]
    found = steps(
        build([DrawnPlane("/host:CPU", {"main": main}), DrawnPlane("/device:GPU:0", {"s": stream})])
    )
    assert found.how == how
    last = np.maximum.accumulate([max(end, 30 * i + 10) for i, end in enumerate(ends)]).tolist()
    starts = [max(30 * i, *last[:i]) if i else 0 for i in range(3)]
    kept = [i for i in range(3) if last[i] > starts[i]]
    assert (found.start_ps // PS).tolist() == [starts[i] for i in kept]
    assert (found.duration_ps // PS).tolist() == [last[i] - starts[i] for i in kept]
