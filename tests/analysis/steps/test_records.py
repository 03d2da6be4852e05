"""Classes, common steps, hardware of several hosts and records of steps, at both sides of each limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.steps.classes import (
    CATEGORIES,
    N_CLASSES,
    NOT_COUNTED,
    ON_GPU,
    STEP_MARKER,
    TimeClass,
    gpu_class,
    host_class,
    host_classes,
)
from tb_tpuprof.analysis.steps.combine import common_steps, sum_hardware
from tb_tpuprof.analysis.steps.record import FirstStep, mark_input_stages, no_steps, trimmed
from tb_tpuprof.analysis.steps.steps import host_parts, step_pieces, steps
from tb_tpuprof.analysis.steps.waits import StepWait, waits_in_steps
from tests.analysis.steps.record_drawing import S, steps_of
from tests.builders import PS, DrawnPlane, build, drawing, event


def test_where_classes_overlap_the_device_s_computing_wins() -> None:
    ascending = (
        "UNKNOWN HOST_PYTHON HOST_WAIT HOST_WAIT_LOADER HOST_COMPUTE HOST_COMPILE HOST_TO_HOST HOST_TO_DEVICE"
        " HOST_PREPARE DEVICE_COLLECTIVES HOST_WAIT_INPUT DEVICE_TO_DEVICE DEVICE_TO_HOST DEVICE_COMPUTE_32"
        " DEVICE_COMPUTE_16"
    )
    assert [TimeClass(i).name for i in range(N_CLASSES)] == ascending.split()
    in_categories = [klass for classes in CATEGORIES.values() for klass in classes]
    assert sorted(in_categories) == list(range(N_CLASSES)), "each class is in one category"
    assert {klass.name for klass in ON_GPU} == {
        "HOST_TO_DEVICE",
        "DEVICE_COLLECTIVES",
        "DEVICE_TO_DEVICE",
        "DEVICE_TO_HOST",
        "DEVICE_COMPUTE_32",
        "DEVICE_COMPUTE_16",
    }
    assert NOT_COUNTED >= N_CLASSES
    assert STEP_MARKER > NOT_COUNTED


HOST_CLASSES = {
    "train": STEP_MARKER,
    "test": STEP_MARKER,
    "EagerExecute": NOT_COUNTED,
    "EagerKernelExecute": NOT_COUNTED,
    "FunctionRun": NOT_COUNTED,
    "IteratorGetNext": TimeClass.HOST_WAIT_INPUT,
    "iteratorgetnextOp::DoCompute": TimeClass.HOST_WAIT_INPUT,
    "IteratorGetNex": TimeClass.HOST_COMPUTE,
    "$train.py:15 batches": NOT_COUNTED,
    "loop.py(15): batches": NOT_COUNTED,
    "backend_compile": TimeClass.HOST_COMPILE,
    "PjitFunction(f)": TimeClass.HOST_COMPUTE,
    "MemcpyHtoD": TimeClass.HOST_TO_DEVICE,
    "memcpyHtoH": TimeClass.HOST_TO_HOST,
    "MemcpyDtoH": TimeClass.HOST_COMPUTE,
    "x:InfeedEnqueueTuple": TimeClass.HOST_TO_DEVICE,
    "MatMul:MatMul": TimeClass.HOST_COMPUTE,
}


def test_classes_of_host_events() -> None:
    assert {name: host_class(name) for name in HOST_CLASSES} == HOST_CLASSES
    names = list(HOST_CLASSES)
    planes = [
        DrawnPlane("/other", {"l": [event("MatMul:MatMul", 0, 1)]}),
        DrawnPlane("/host:CPU", {"m": [event(name, 0, 1) for name in names]}),
    ]
    trace = build(planes)
    assert host_classes(trace, (1,)).tolist() == [NOT_COUNTED, *HOST_CLASSES.values()]
    assert host_classes(trace, ()).tolist() == [NOT_COUNTED] * (1 + len(names))


@pytest.mark.parametrize(
    ("name", "shape", "klass"),
    [
        ("MemcpyHtoD", "", "HOST_TO_DEVICE"),
        ("memcpyDtoH", "half", "DEVICE_TO_HOST"),
        ("memcpyDtoD", "", "DEVICE_TO_DEVICE"),
        ("MemcpyHtoH", "", "DEVICE_COMPUTE_32"),
        ("ncclKernel_AllReduce", "", "DEVICE_COLLECTIVES"),
        ("gemm_bf16", "", "DEVICE_COMPUTE_16"),
        ("gemm_bf16", "float", "DEVICE_COMPUTE_32"),
        ("gemm", "half", "DEVICE_COMPUTE_16"),
        ("gemm", "", "DEVICE_COMPUTE_32"),
    ],
)
def test_classes_of_events_on_streams(name: str, shape: str, klass: str) -> None:
    assert gpu_class(name, shape).name == klass


def test_hardware_of_several_hosts() -> None:
    parts = [
        Hardware("CPU", "CPU", 0),
        Hardware("TPU", "v4", 4, 1.0, n_chips=2, n_replicas=3, n_partitions=2),
        Hardware("TPU", "v5", 8, 2.0, n_chips=5, n_replicas=1, n_partitions=7),
        Hardware("TPU", "v6", 1, n_replicas=6, n_partitions=1),
    ]
    found = sum_hardware(parts)
    assert (found.device, found.n_devices, found.n_chips, found.peak_flops_per_s) == ("v4", 13, 7, 1.0)
    assert (found.n_replicas, found.n_partitions) == (1, 7)
    assert sum_hardware(parts[:1]) == parts[0]


def test_hosts_a_second_or_a_day_apart() -> None:
    day, part = 86_400 * 10**9, steps_of([0, 20, 40])

    # The steps of a host that starts 50 ps + 1 s later begin exactly a second after the others' end.
    def disjoint(shift_ps: int) -> bool:
        late = replace(part, start_ps=part.start_ps + shift_ps)
        return common_steps([part, late], [0, 0]).is_disjoint

    assert [disjoint(shift) for shift in (50, 50 + S, 51 + S)] == [False, False, True]
    assert [
        common_steps([part, replace(part, start_ps=part.start_ps - apart * 1000)], [0, apart]).is_disjoint
        for apart in (day, day + 1)
    ] == [False, True]


@pytest.mark.parametrize("shift", [0, 3, -3, 999, -999])
def test_hosts_that_began_up_to_a_thousand_steps_apart(shift: int) -> None:
    n = 1200
    one, other = (
        steps_of([100 * i for i in range(n)], 90),
        steps_of([100 * (i - shift) for i in range(n)], 90),
    )
    common = common_steps([one, other], [0, 0])
    first = max(0, -shift)
    assert common.rows == (
        slice(first, first + n - abs(shift)),
        slice(first + shift, first + shift + n - abs(shift)),
    )


def test_mean_waits_of_hosts_by_name() -> None:
    def wait(name: str, *times: int, file: str = "") -> StepWait:
        return StepWait(TimeClass.HOST_WAIT, name, file, 0, np.array(times))

    parts = [
        steps_of([0, 20, 40], waits=(wait("a", 1, 2, 3), wait("b", 9, 9, 9))),
        steps_of([0, 20, 40], waits=(wait("a", 5, 6, 8), wait("a", 40, 40, 40, file="f.py"))),
        steps_of([0, 20, 40]),
    ]
    waits = common_steps(parts, [0, 0, 0]).steps.waits
    assert [(one.name, one.file, one.time_ps.tolist()) for one in waits] == [
        ("a", "f.py", [13] * 3),
        ("b", "", [3] * 3),
        ("a", "", [2, 2, 3]),
    ]


def test_five_steps_are_kept_of_six_the_inner_four() -> None:
    waits = (StepWait(TimeClass.HOST_WAIT, "w", "", 0, np.arange(6)),)
    five = steps_of(list(range(5)))
    assert trimmed(five) is five
    six = replace(
        steps_of([0, 10, 30, 60, 100, 150], waits=waits), duration_ps=np.array([90, 20, 30, 40, 50, 61])
    )
    found = trimmed(six)
    assert (found.name, found.n_trimmed, found.waits[0].time_ps.tolist()) == (
        ("s1", "s2", "s3", "s4"),
        2,
        [1, 2, 3, 4],
    )
    assert found.first == FirstStep("s0", 0, 90, 40, found.first.class_ps if found.first else np.empty(0))
    opened = trimmed(replace(six, n_trimmed=1))
    assert (opened.name, opened.n_trimmed) == (("s1", "s2", "s3", "s4", "s5"), 2)


@pytest.mark.parametrize(
    ("duration", "waited", "fills"),
    [(300, 300, False), (301, 151, True), (301, 150, False), (302, 151, False), (900, 451, True)],
)
def test_a_first_step_that_fills_a_buffer(duration: int, waited: int, fills: bool) -> None:
    class_ps = np.zeros(N_CLASSES, np.int64)
    class_ps[[TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_TO_DEVICE]] = waited - 50, 50
    first = FirstStep("s", 0, duration, 100, class_ps)
    assert (first.input_ps, first.fills_a_buffer) == (waited, fills)


def test_no_steps_have_no_shares() -> None:
    assert no_steps(3, 4).fraction("input") == 0
    assert (len(no_steps()), no_steps(3, 4).n_incomplete, no_steps(3, 4).n_unmarked_runs) == (0, 3, 4)
    assert no_steps().class_ps.shape == (0, N_CLASSES)


def test_waits_of_chosen_steps_the_longest_first() -> None:
    waits = [
        StepWait(TimeClass.HOST_WAIT, name, "", 0, np.array(times))
        for name, times in (("z", [9, 2, 0]), ("b", [0, 1, 1]), ("a", [0, 2, 0]), ("gone", [5, 0, 0]))
    ]
    found = waits_in_steps(waits, np.array([1, 2]))
    assert [(one.name, one.total_ps) for one in found] == [("a", 2), ("b", 2), ("z", 2)]
    assert StepWait(TimeClass.HOST_WAIT, "f", "a.py", 3, np.array([1])).title == "`f` (a.py:3)"


def test_parts_of_a_host_s_steps() -> None:
    """Group 0 counts; what is inside of another event of its class does not, nor do events and annotations
    without a step.
    """
    main = [
        event("train", 0, 40, _r=1, step_num=4),
        event("a:A", 2, 10),
        event("a:A", 3, 4),
        event("IteratorGetNext", 20, 5),
        event("test", 50, 5),
        event("train", 60, 30, _r=1, step_num=5),
        event("q", 61, 9, _ipl_stage_name="s"),
        event("r", 62, 3, _ipl_stage_name="t"),
        event("b:B", 95, 3),
    ]
    parts = host_parts(build([DrawnPlane("/host:CPU", {"main": main})]))
    assert (
        parts.marker_group.tolist(),
        (parts.marker_start // PS).tolist(),
        (parts.marker_end // PS).tolist(),
    ) == ([0, 1], [0, 60], [40, 90])
    rows = list(
        zip(
            parts.group.tolist(),
            (parts.start // PS).tolist(),
            (parts.end // PS).tolist(),
            parts.klass.tolist(),
            strict=True,
        )
    )
    counted = [row for row in rows if row[3] < NOT_COUNTED and row[0] >= 0]
    assert counted == [
        (0, 2, 12, TimeClass.HOST_COMPUTE),
        (0, 20, 25, TimeClass.HOST_WAIT_INPUT),
        (1, 61, 70, TimeClass.HOST_WAIT_INPUT),
    ]
    empty = host_parts(drawing("main  [a:A  ]"))
    columns = ("marker_group", "marker_start", "marker_end", "group", "start", "end", "klass")
    assert [len(getattr(empty, name)) for name in columns] == [0] * 7


def test_only_the_outermost_and_unfed_stages_of_an_input_pipeline_are_waited_for() -> None:
    main = [
        event("first", 0, 9, _ipl_stage_name="a"),
        event("inner", 1, 3, _ipl_stage_name="b"),
        event("fed", 20, 9, _ipl_stage_name="c", _ct=1, _c=5),
    ]
    main += [
        event("unfed", 40, 9, _ipl_stage_name="d", _ct=1, _c=6),
        event("sends", 60, 2, _pt=1, _p=5),
        event("FunctionRun", 70, 5, _ipl_stage_name="e"),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": main})])
    event_class = np.array([TimeClass.HOST_COMPUTE] * 5 + [NOT_COUNTED], np.uint8)
    mark_input_stages(trace, event_class)
    waits, computes = TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_COMPUTE
    assert event_class.tolist() == [waits, computes, computes, waits, computes, NOT_COUNTED]


@pytest.mark.parametrize("kind", ["annotated", "incomplete", "unmarked"])
def test_steps_of_gpus_are_annotated_or_the_device_s(kind: str) -> None:
    launches = [event(f"l{i}", 10 * i + 1, 2, correlation_id=i + 1) for i in range(3)]
    kernels = [event("k", 10 * i + 4, 3, correlation_id=i + 1) for i in range(3)]
    markers = {"annotated": "train", "incomplete": "train", "unmarked": "FunctionRun"}
    main = sorted(
        [*launches, *(event(markers[kind], 10 * i, 9, _r=1, step_num=i) for i in range(3))],
        key=lambda one: one.start_ps,
    )
    stream = (
        [event("MemcpyHtoD", 10 * i + 4, 3, correlation_id=i + 1) for i in range(3)]
        if kind == "incomplete"
        else kernels
    )
    trace = build([DrawnPlane("/host:CPU", {"main": main}), DrawnPlane("/device:GPU:0", {"s": stream})])
    found, pieces = step_pieces(trace)
    assert steps(trace) is found
    if kind == "annotated":
        assert (found.source, (found.duration_ps // PS).tolist(), pieces is not None) == (
            "annotation",
            [9, 9, 9],
            True,
        )
    elif kind == "incomplete":
        assert (len(found), found.n_incomplete) == (0, 3)
    else:
        assert (found.source, (found.duration_ps // PS).tolist(), pieces) == ("device", [3, 3, 3], None)
