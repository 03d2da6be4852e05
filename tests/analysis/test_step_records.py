"""Classes, clocks, hardware of several hosts and records of steps, at both sides of each limit."""

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
from tb_tpuprof.analysis.steps.clocks import (
    ClockMarks,
    ClockOffset,
    Moments,
    _named_collectives,
    apart_sentences,
    clock_marks,
    clock_offsets,
    clock_sentences,
)
from tb_tpuprof.analysis.steps.combine import _bounded, common_steps, sum_hardware
from tb_tpuprof.analysis.steps.record import FirstStep, Steps, mark_input_stages, no_steps, trimmed
from tb_tpuprof.analysis.steps.steps import host_parts, step_pieces, steps
from tb_tpuprof.analysis.steps.waits import StepWait, waits_in_steps
from tb_tpuprof.trace.strings import Strings
from tests.builders import PS, DrawnPlane, build, drawing, event

S = 10**12
NONE = Moments(np.empty(0, np.int64), np.empty(0, np.int64))


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


def marks(
    start_s: float, *, steps: Moments = NONE, collectives: Moments = NONE, duration_s: float = 1
) -> ClockMarks:
    return ClockMarks(round(start_s * 1e9), round(duration_s * S), steps, collectives)


def moments(numbers: list[int], ends: list[int]) -> Moments:
    return Moments(np.array(numbers), np.array(ends, np.int64))


def test_offsets_are_medians_of_lags_at_shared_moments() -> None:
    """Three hosts 0, 7 and -3 ms apart, whose collectives jitter by some µs; a fourth has none, a fifth too few."""
    ms, us = 10**9, 10**6
    jitter = [(0, 0, 0), (3, -2, 1), (-40, 1, 0), (2, 5, -1), (0, 0, 60)]
    hosts = [
        marks(
            100,
            collectives=moments(
                [*range(2, 7), 90 + k],
                [i * 10 * ms + ahead * ms + jitter[i][k] * us for i in range(5)] + [999 * ms],
            ),
        )
        for k, ahead in enumerate((0, 7, -3))
    ]
    few = marks(100, collectives=moments([2, 3], [0, 1]))
    found = clock_offsets([*hosts[:2], marks(100), few, hosts[2]])
    assert [one.by for one in found] == ["collectives", "collectives", "", "", "collectives"]
    lags = np.array(
        [[ahead * ms + jitter[i][k] * us for i in range(5)] for k, ahead in enumerate((0, 7, -3))]
    )
    lags = lags - np.sort(lags, axis=0)[1]
    offset = np.median(lags, axis=1)
    spread = np.maximum(1.4826 * np.median(np.abs(lags - offset[:, None]), axis=1), us)
    middle = sorted(offset)[1]
    own = [found[i] for i in (0, 1, 4)]
    assert [one.offset_ps for one in own] == [round(value - middle) for value in offset]
    assert [one.uncertainty_ps for one in own] == [round(value) for value in spread]
    assert {one.n_moments for one in own} == {5}


def test_three_shared_moments_are_needed() -> None:
    ends = [0, 10 * S, 20 * S, 30 * S]
    for numbers, by in (([1, 2, 3], "collectives"), ([1, 2, 9], "steps")):
        hosts = [
            marks(0, steps=moments([1, 2, 3], ends[:3]), collectives=moments([1, 2, 3], ends[:3])),
            marks(5, steps=moments([1, 2, 3], ends[:3]), collectives=moments(numbers, ends[:3])),
        ]
        assert [one.by for one in clock_offsets(hosts)] == [by] * 2
    assert clock_offsets([marks(0, steps=moments([1, 2, 3], ends[:3]))]) == (ClockOffset(),)
    assert clock_offsets([]) == ()
    steps_only = clock_offsets(
        [
            marks(0, steps=moments([1, 2, 3], ends[:3]), duration_s=4),
            marks(5, steps=moments([1, 2, 3], ends[:3]), duration_s=9),
        ]
    )
    assert [(one.offset_ps, one.uncertainty_ps) for one in steps_only] == [
        (0, round(4.5 * S)),
        (5 * S, round(4.5 * S)),
    ]


@pytest.mark.parametrize(("spread_ms", "by"), [(32, "collectives"), (35, "")])
def test_hosts_whose_lags_spread_over_a_quarter_of_a_step_do_not_run_in_lockstep(
    spread_ms: int, by: str
) -> None:
    """Steps of 200 ms. One of two hosts is 2 × d late at every third moment and as early at every other third: its lags
    from the middle of both are -d, 0 and d, of which d is the median deviation; 1.4826 × d may be up to 50 ms.
    """
    step, d = 200 * 10**9, spread_ms * 10**9
    numbers = list(range(12))
    wave = [(0, 2 * d, -2 * d)[i % 3] for i in numbers]
    regular, wavy = [[i * step + late * k for i, late in zip(numbers, wave, strict=True)] for k in (0, 1)]
    found = clock_offsets([marks(0, collectives=moments(numbers, ends)) for ends in (regular, wavy)])
    assert [one.by for one in found] == [by] * 2


@pytest.mark.parametrize(
    ("offset", "uncertainty", "by", "is_apart", "counts"),
    [
        (3000, 1000, "steps", False, True),
        (2000, 1000, "steps", False, False),
        (-2001, 1000, "steps", False, True),
        (3000, 1000, "", False, False),
        (60 * S, 2 * 10**8, "steps", False, True),
        (60 * S + 1, 2 * 10**8, "steps", True, False),
        (-61 * S, 2 * 10**8, "steps", True, False),
        (61 * S, 10**8, "collectives", False, True),
        (61 * S, 10**8 + 1, "collectives", True, False),
        (61 * S, 2 * 10**8, "", False, False),
    ],
)
def test_offsets_count_beyond_twice_their_uncertainty_and_up_to_a_minute(
    offset: int, uncertainty: int, by: str, is_apart: bool, counts: bool
) -> None:
    found = ClockOffset(offset, uncertainty, by, 5)
    assert (found.is_apart, found.counts) == (is_apart, counts)
    assert found.correction_ns == (-round(offset / 1000) if counts else 0)


def test_sentences_on_clocks() -> None:
    offsets = [
        ClockOffset(7 * 10**9, 10**6, "collectives", 12),
        ClockOffset(),
        ClockOffset(-5 * S, S, "steps", 3),
    ]
    assert clock_sentences(["a", "b", "c"], offsets) == [
        (
            "The clock of a is 7.00 ms ± 1.00 µs ahead of the others (from collectives in 12 steps); its"
            " timestamps were corrected."
        ),
        (
            "The clock of c is 5.00 s ± 1.00 s behind the others (from the ends of 3 steps); its timestamps"
            " were corrected."
        ),
    ]
    apart = {
        61: "61.0 s",
        119: "119 s",
        120: "2 minutes",
        7199: "120 minutes",
        7200: "2 hours",
        172_799: "48 hours",
        172_800: "2 days",
        10**6: "12 days",
    }
    for seconds, text in apart.items():
        (sentence,) = apart_sentences(["h", "ok"], [ClockOffset(-seconds * S, S, "steps", 3), offsets[0]])
        assert sentence.startswith(f"h was captured {text} before the others."), sentence
    assert "after the others" in apart_sentences(["h"], [ClockOffset(70 * S, S, "steps", 3)])[0]


def test_names_of_collectives() -> None:
    names = [
        "",
        "all-reduce.1",
        "fusion",
        "ALL-GATHER",
        "reduce",
        "gather",
        "alltoall",
        "all-to-all.3",
        "reduce-scatter",
        "reducescatter",
        "ncclKernel",
        "rcclX",
        "%f = f32[] all-reduce(x), to_apply=%sum",
        "allreduce",
        "accl",
        "xall-toall",
        "to-all",
        "all",
        "reduce",
    ]
    expected = {
        "all-reduce.1",
        "ALL-GATHER",
        "alltoall",
        "all-to-all.3",
        "reduce-scatter",
        "reducescatter",
        "ncclKernel",
        "rcclX",
        names[12],
        "allreduce",
        "xall-toall",
    }
    strings = Strings.of(name.encode() for name in names)
    assert [names[i] for i in np.flatnonzero(_named_collectives(strings, np.arange(len(names))))] == [
        name for name in names if name in expected
    ]
    backwards = np.arange(len(names))[::-1]
    assert [names[backwards[i]] for i in np.flatnonzero(_named_collectives(strings, backwards))] == [
        name for name in names[::-1] if name in expected
    ]


def test_moments_are_the_last_ends_in_annotated_steps() -> None:
    """Numbers of roots count if there are any; a collective outside of steps does not; the first GPU's only."""
    main = [
        event("train", 0, 50, _r=1, step_num=7),
        event("l1", 1, 2, correlation_id=1),
        event("inner", 5, 9, step_num=99),
        event("train", 60, 20, _r=1, step_num=6),
        event("l2", 61, 2, correlation_id=2),
        event("train", 90, 5, _r=1, step_num=6),
        event("l3", 91, 2, correlation_id=3),
        event("l4", 97, 1, correlation_id=4),
    ]
    first = [
        event("nccl", 10, 5, correlation_id=1),
        event("nccl", 12, 1, correlation_id=1),
        event("gemm", 20, 90, correlation_id=1),
        event("all-reduce", 65, 9, correlation_id=1),
        event("nccl", 92, 30, correlation_id=3),
        event("nccl", 200, 9, correlation_id=4),
    ]
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": main}),
            DrawnPlane("/device:GPU:0", {"a": first}),
            DrawnPlane("/device:GPU:1", {"a": [event("nccl", 300, 9, correlation_id=1)]}),
        ]
    )
    found = clock_marks(trace)
    assert (found.steps.number.tolist(), (found.steps.end_ps // PS).tolist()) == ([6, 7], [95, 50])
    assert (found.collectives.number.tolist(), (found.collectives.end_ps // PS).tolist()) == (
        [6, 7],
        [122, 74],
    )
    unrooted = build(
        [DrawnPlane("/host:CPU", {"main": [event("a", 0, 5, step_num=3), event("b", 9, 5, step_num=1)]})]
    )
    marked = clock_marks(unrooted)
    assert (
        marked.steps.number.tolist(),
        (marked.steps.end_ps // PS).tolist(),
        len(marked.collectives.number),
    ) == ([1, 3], [14, 5], 0)


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


def steps_of(
    starts: list[int], length: int = 10, waits: tuple[StepWait, ...] = (), source: str = "annotation"
) -> Steps:
    n = len(starts)
    class_ps = np.zeros((n, N_CLASSES), np.int64)
    class_ps[:, 0] = length
    names = tuple(f"s{i}" for i in range(n))
    return Steps(
        np.arange(n),
        names,
        np.array(starts, np.int64),
        np.full(n, length, np.int64),
        class_ps,
        source,
        waits=waits,
    )


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
    """Group 0 counts; what is inside of another event of its class does not, nor do events and annotations without a step."""
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


def test_collectives_without_annotated_steps_are_no_moments() -> None:
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": [event("l", 1, 2, correlation_id=1)]}),
            DrawnPlane("/device:GPU:0", {"a": [event("nccl", 10, 5, correlation_id=1)]}),
        ]
    )
    found = clock_marks(trace)
    assert (len(found.steps.number), len(found.collectives.number)) == (0, 0)
    assert steps_of([1]).n_unmarked_runs == 0


def test_at_most_four_million_pairs_are_compared_at_once() -> None:
    """A row with more is compared alone."""
    million = 10**6
    parts = _bounded(np.array([4 * million, 1, 5 * million, million, 3 * million, 1]))
    assert [(part.start, part.stop) for part in parts] == [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]
    assert _bounded(np.empty(0, np.int64)) == []
