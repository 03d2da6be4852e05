"""Spans, steps, classes and launches of devices, compared with plain loops over unlike devices."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.events.planes import DERIVED_STEPS
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.analysis.steps.gpu import gpu_classes, gpu_parts, step_spans, stream_events
from tb_tpuprof.analysis.steps.kernel_precision import FULL, HALF, UNKNOWN, hlo_precision
from tb_tpuprof.analysis.steps.launches import kernel_launches, step_launches
from tb_tpuprof.analysis.steps.marks import step_marks
from tb_tpuprof.analysis.steps.tpu import category_class, step_markers, tpu_steps
from tb_tpuprof.analysis.steps.tpu_grouping import grouping_lines
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, event
from tests.ingest.hlo_protos import array, computation, instruction, proto

Step = tuple[int, int, int]  # group, start, end


def host(*events: DrawnEvent, line: str = "main") -> DrawnPlane:
    return DrawnPlane("/host:CPU", {line: list(events)})


def test_spans_on_the_device_s_clock_need_both_a_start_and_a_length() -> None:
    ops = [
        event("both", 50, 7, device_offset_ps=100 * PS, device_duration_ps=30 * PS),
        event("offset only", 60, 5, device_offset_ps=7),
        event("length only", 70, 4, device_duration_ps=9),
        event("zero start", 80, 6, device_offset_ps=0, device_duration_ps=3 * PS),
        event("zero length", 90, 8, device_offset_ps=5 * PS, device_duration_ps=0),
        event("short", 10, 2),
        event("long", 10, 20),
        event("inner", 12, 3),
    ]
    plane = DrawnPlane(
        "/device:TPU:0", {"Other": [event("x", 0, 1)], "XLA Ops": ops, "Last": [event("y", 0, 1)]}
    )
    spans = device_spans(build([plane]), 1)
    names = [ops[row - 1].name for row in spans.rows.tolist()]
    assert names == [
        "zero start",
        "zero length",
        "long",
        "short",
        "inner",
        "offset only",
        "length only",
        "both",
    ]
    assert (spans.start_ps / PS).tolist() == [0, 5, 10, 10, 12, 60, 70, 100]
    assert (spans.duration_ps / PS).tolist() == [3, 0, 20, 2, 3, 5, 4, 30]
    assert (spans.self_ps / PS).tolist() == [3, 0, 15, 2, 3, 5, 4, 30]


def test_marks_of_steps_and_of_annotations_without_work() -> None:
    """The last annotation to begin is not the last to end; without any there are no marks."""
    gpu = DrawnPlane("/device:GPU:0", {"stream": [event("k", 0, 0)]})
    main = [event("train", 5, 3, _r=1, step_num=5), event("train", 40, 8, _r=1, step_num=7)]
    other = [event("train", 20, 70, _r=1, step_num=6)]
    marks = step_marks(build([DrawnPlane("/host:CPU", {"main": main, "other": other}), gpu]))
    assert marks.name == ("train 5", "train 6", "train 7")
    assert ((marks.start_ps / PS).tolist(), marks.end_ps / PS) == ([5, 20, 40], 90)
    assert step_marks(build([host(event("x", 3, 5)), gpu])).end_ps == 0
    work = [
        one
        for i, length in enumerate((20, 20, 18))
        for one in (event("train", 20 * i, length, _r=1, step_num=i), event("w:Op", 20 * i, 9))
    ]
    found = step_marks(build([host(*work)]))
    assert found.name == ("train 0", "train 1", "train 2")
    assert ((found.start_ps / PS).tolist(), found.end_ps / PS) == ([0, 20, 40], 58)


def plain_spans(events: list[tuple[int, int, int]]) -> list[list[int]]:
    """Runs of events (start, length, group) of one group in time order; ungrouped ones belong to the latest
    group.
    """
    runs: list[list[int]] = []
    for start, length, group in sorted(events, key=lambda one: (one[0], one[1])):
        if group < 0 and not runs:
            continue
        group = group if group >= 0 else runs[-1][0]
        if runs and runs[-1][0] == group:
            runs[-1][2] = max(runs[-1][2], start + length)
        else:
            runs.append([group, start, start + length])
    return runs


def random_gpu(rng: random.Random, number: int, with_line: bool) -> tuple[DrawnPlane, dict[str, list[Any]]]:
    """A GPU with two streams, and what they and its line of steps contain: (start, length, group, is
    launched).
    """
    lines: dict[str, list[Any]] = {"a": [], "b": []}
    for name in lines:
        at = rng.randint(0, 9)
        for _ in range(rng.randint(0, 9)):
            length = rng.choice((0, 1, 3, 8))
            lines[name].append((at, length, rng.choice((-1, -1, 0, 1, 2)), rng.random() < 0.7))
            at += length + rng.randint(0, 3)
    if with_line:
        lines["Steps"] = [
            (30 * i + rng.randint(0, 9), rng.randint(0, 20), rng.choice((-1, 0, 1, 2)), False)
            for i in range(3)
        ]
    drawn = {
        name: [
            event(
                f"kernel{number}",
                start,
                length,
                **({"group_id": group} if group >= 0 else {}),
                **({"correlation_id": 5} if launched else {}),
            )
            for start, length, group, launched in rows
        ]
        for name, rows in lines.items()
    }
    return DrawnPlane(f"/device:GPU:{number}", drawn, line_ids={"Steps": DERIVED_STEPS}), lines


@pytest.mark.parametrize("seed", range(6))
def test_markers_and_events_of_random_gpus(seed: int) -> None:
    rng = random.Random(f"gpus {seed}")
    n_markers = 0
    for _ in range(15):
        made = [random_gpu(rng, i, rng.random() < 0.4) for i in range(3)]
        main = [event("train", 0, 1, group_id=0)]
        trace = build([host(*main), *(plane for plane, _ in made)])
        markers: list[list[int]] = []
        counted: list[tuple[int, int, int]] = []
        for i, (_, lines) in enumerate(made):
            events = [one for name in ("a", "b") for one in lines[name]]
            if "Steps" in lines:
                spans = [
                    [group, start, start + length]
                    for start, length, group, _ in sorted(lines["Steps"], key=lambda one: one[:2])
                    if group >= 0
                ]
            else:
                spans = plain_spans([one[:3] for one in events])
            rows = stream_events(trace, i + 1)
            assert len(rows) == len(events)
            own = step_spans(trace, i + 1, rows).T.tolist()
            assert own == [[group, start * PS, end * PS] for group, start, end in spans]
            if not any(group >= 0 for _, _, group, _ in events):
                continue
            work = [
                (group, start, start + length)
                for start, length, group, launched in events
                if launched and group >= 0 and group in {span[0] for span in spans}
            ]
            counted += work
            markers += [span for span in spans if span[0] in {one[0] for one in work}]
        parts = gpu_parts(trace)
        columns = (parts.marker_group, parts.marker_start // PS, parts.marker_end // PS)
        assert np.stack(columns, 1).tolist() == markers
        assert (
            list(
                zip(
                    parts.group.tolist(),
                    (parts.start // PS).tolist(),
                    (parts.end // PS).tolist(),
                    strict=True,
                )
            )
            == counted
        )
        assert parts.klass.tolist() == [TimeClass.DEVICE_COMPUTE_32] * len(counted)
        n_markers += len(markers)
    assert n_markers > 15


HALF_NAME, COPY, SUM = "kernel_half", "MemcpyHtoD", "ncclAllReduce"


def test_classes_of_kernels_by_shape_name_and_hlo() -> None:
    """A shape decides before the name, the HLO before both; copies and collectives stay what they are."""
    linked = {"hlo_module": "jit_f", "program_id": 7}
    rows: list[tuple[DrawnEvent, TimeClass]] = [
        (event("kernel", 0, 1), TimeClass.DEVICE_COMPUTE_32),
        (event(HALF_NAME, 1, 1), TimeClass.DEVICE_COMPUTE_16),
        (event("kernel", 2, 1, shape="(half, half)"), TimeClass.DEVICE_COMPUTE_16),
        (event(HALF_NAME, 3, 1, shape="(float, float)"), TimeClass.DEVICE_COMPUTE_32),
        (event(COPY, 4, 1, shape="(half)"), TimeClass.HOST_TO_DEVICE),
        (event("MemcpyDtoH", 5, 1), TimeClass.DEVICE_TO_HOST),
        (event("MemcpyDtoD", 6, 1), TimeClass.DEVICE_TO_DEVICE),
        (event(SUM, 7, 1), TimeClass.DEVICE_COLLECTIVES),
        (event("kernel", 8, 1, hlo_op="half.1", **linked), TimeClass.DEVICE_COMPUTE_16),
        (event(HALF_NAME, 9, 1, hlo_op="wide.2", **linked), TimeClass.DEVICE_COMPUTE_32),
        (event(SUM, 10, 1, hlo_op="half.1", **linked), TimeClass.DEVICE_COLLECTIVES),
        (event("kernel", 11, 1, hlo_op="wide.2", **linked), TimeClass.DEVICE_COMPUTE_32),
        (event(HALF_NAME, 12, 1, hlo_op="half.1", **linked), TimeClass.DEVICE_COMPUTE_16),
        (event(HALF_NAME, 13, 1, hlo_op="gone", **linked), TimeClass.DEVICE_COMPUTE_16),
    ]
    entry = [
        {**instruction(1, "add", array(2, code=16)), 1: "half.1"},
        {**instruction(2, "add", array(2)), 1: "wide.2"},
    ]
    hlo = proto([computation(1, "main", entry, 2)])
    metadata = DrawnPlane(
        "/host:metadata", {"x": [event("jit_f(7)", 0, 0)]}, metadata_stats={"jit_f(7)": {"Hlo Proto": hlo}}
    )
    trace = build([metadata, DrawnPlane("/device:GPU:0", {"stream": [one for one, _ in rows]})])
    events = stream_events(trace, 1)
    assert len(events) == len(rows)
    assert [TimeClass(k).name for k in gpu_classes(trace, events).tolist()] == [k.name for _, k in rows]
    backwards = gpu_classes(trace, events[::-1])
    assert backwards.tolist() == [k for _, k in rows][::-1]
    assert gpu_classes(trace, events[:0]).tolist() == []
    precision = hlo_precision(trace, np.append(events, 0)).tolist()
    assert precision == [*[UNKNOWN] * 8, HALF, FULL, HALF, FULL, HALF, UNKNOWN, UNKNOWN]
    plain = build([DrawnPlane("/device:GPU:0", {"stream": [one for one, _ in rows[:4]]})])
    assert gpu_classes(plain, stream_events(plain, 0)).tolist() == [k for _, k in rows[:4]]
    assert hlo_precision(plain, stream_events(plain, 0)).tolist() == [UNKNOWN] * 4


def launching_trace() -> Trace:
    """Steps 3, 4 and 5 launch kernels on two GPUs: start and length of each launch, start of its kernels."""
    main = [
        event("train", 0, 100, _r=1, step_num=3),
        event("l1", 5, 4, correlation_id=1),
        event("l2", 20, 10, correlation_id=2),
        event("l3", 50, 1, correlation_id=3),
        event("train", 100, 50, _r=1, step_num=4),
        event("l4", 110, 6, correlation_id=4),
        event("l5", 130, 2, correlation_id=5),
        event("train", 200, 30, _r=1, step_num=5),
        event("l6", 201, 9, correlation_id=6),
        event("outside", 300, 5, correlation_id=7),
        event("lost", 310, 5, correlation_id=99),
    ]
    first = [
        event("k", 7, 1, correlation_id=1),
        event("k", 35, 1, correlation_id=2),
        event("k", 60, 1, correlation_id=2),
        event("k", 118, 1, correlation_id=4),
        event("k", 400, 1, correlation_id=7),
        event("k", 500, 1, correlation_id=55),
        event("k", 510, 1, correlation_id=5000),
    ]
    second = [
        event("k", 52, 1, correlation_id=3),
        event("k", 140, 1, correlation_id=5),
        event("k", 250, 1, correlation_id=6),
    ]
    return build(
        [
            host(*main),
            DrawnPlane("/device:GPU:0", {"s": first}),
            DrawnPlane("/device:GPU:1", {"s": second}),
            DrawnPlane("/device:GPU:2", {"s": [event("k", 1, 1)]}),
        ]
    )


def test_launches_of_each_device_by_step() -> None:
    trace = launching_trace()
    pairs = kernel_launches(trace)
    starts = trace.events["start_ps"] // PS
    assert sorted(zip(starts[pairs.launch].tolist(), starts[pairs.kernel].tolist(), strict=True)) == [
        (5, 7),
        (20, 35),
        (20, 60),
        (50, 52),
        (110, 118),
        (130, 140),
        (201, 250),
        (300, 400),
    ]
    # Latencies: the kernel's start minus the launch's end (5 + 4 > 7 counts as none).
    found = [step_launches(trace, plane) for plane in (1, 2, 3)]
    assert [one.group.tolist() for one in found] == [[0, 1], [0, 1, 2], []]
    assert [starts[one.first].tolist() for one in found[:2]] == [[5, 110], [50, 130, 201]]
    assert [(one.start_ps // PS).tolist() for one in found[:2]] == [[5, 110], [50, 130, 201]]
    assert [(one.end_ps // PS).tolist() for one in found[:2]] == [[30, 116], [51, 132, 210]]
    assert [one.n.tolist() for one in found] == [[3, 1], [1, 1, 1], []]
    assert [(one.longest_ps // PS).tolist() for one in found[:2]] == [[10, 6], [1, 2, 9]]
    assert (found[0].mean_ps / PS).tolist() == [(4 + 10 + 10) / 3, 6]
    assert (found[0].longest_latency_ps // PS).tolist() == [30, 2]
    assert (found[0].mean_latency_ps / PS).tolist() == [(0 + 5 + 30) / 3, 2]
    assert (found[1].mean_latency_ps / PS).tolist() == [1, 8, 40]
    assert not len(kernel_launches(build([host(event("x", 0, 1))])).launch)


def test_steps_whose_launches_begin_in_another_order_than_their_groups() -> None:
    """Stated groups: 9 begins before 2; of two that begin at once the longer comes first."""
    main = [
        event("l1", 0, 5, correlation_id=1, group_id=9),
        event("l2", 10, 5, correlation_id=2, group_id=2),
        event("l3", 12, 30, correlation_id=3, group_id=2),
    ]
    other = [event("l4", 10, 50, correlation_id=4, group_id=3)]
    kernels = [event("k", 100, 1, correlation_id=i) for i in (1, 2, 3, 4)]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": main, "other": other}), DrawnPlane("/device:GPU:0", {"s": kernels})]
    )
    found = step_launches(trace, 1)
    assert found.group.tolist() == [9, 3, 2]
    assert (found.end_ps // PS).tolist() == [5, 60, 42]
    assert found.n.tolist() == [1, 1, 2]
    assert (found.longest_ps // PS).tolist() == [5, 50, 30]
    assert (found.longest_latency_ps // PS).tolist() == [95, 40, 85]


CATEGORY_CLASSES = {
    "infeed": "HOST_WAIT_INPUT",
    "outfeed": "DEVICE_TO_HOST",
    "host send": "DEVICE_TO_HOST",
    "host send-done": "DEVICE_TO_HOST",
    "host recv": "HOST_TO_DEVICE",
    "host recv-done": "HOST_TO_DEVICE",
    "send": "DEVICE_TO_DEVICE",
    "send-done": "DEVICE_TO_DEVICE",
    "recv": "DEVICE_TO_DEVICE",
    "recv-done": "DEVICE_TO_DEVICE",
    "all-reduce": "DEVICE_COLLECTIVES",
    "all-gather fusion": "DEVICE_COLLECTIVES",
    "all-to-all": "DEVICE_COLLECTIVES",
    "reduce-scatter": "DEVICE_COLLECTIVES",
    "collective-permute-start": "DEVICE_COLLECTIVES",
    "collective-broadcast": "DEVICE_COLLECTIVES",
    "convolution fusion": "DEVICE_COMPUTE_32",
    "": "DEVICE_COMPUTE_32",
    "infeed fusion": "DEVICE_COMPUTE_32",
}


def random_core(
    rng: random.Random, number: int
) -> tuple[DrawnPlane, list[Step], list[tuple[int, int, int, str]]]:
    """A core's step events (some groups twice), and its operations (group, start, length, category)."""
    steps: list[Step] = []
    ops: list[tuple[int, int, int, str]] = []
    groups = [group for group in range(5) if rng.random() < 0.85]
    for group in groups:
        begin = 100 * group + rng.randint(0, 10)
        end = begin + rng.randint(30, 80)
        middle = rng.randint(begin, end)
        steps += (
            [(group, begin, middle), (group, middle, end)] if rng.random() < 0.3 else [(group, begin, end)]
        )
        at = begin
        while at < end - 8:
            length = rng.randint(1, 8)
            ops.append((group if rng.random() < 0.9 else -1, at, length, rng.choice(list(CATEGORY_CLASSES))))
            at += length + rng.randint(0, 4)

    def stated(group: int) -> dict[str, int]:
        return {"group_id": group} if group >= 0 else {}

    lines = {
        "Steps": [event(str(group), start, end - start, **stated(group)) for group, start, end in steps],
        "XLA Ops": [
            event(f"op {category}", start, length, **stated(group)) for group, start, length, category in ops
        ],
    }
    stats = {f"op {category}": {"hlo_category": category} for category in CATEGORY_CLASSES if category}
    return DrawnPlane(f"/device:TPU:{number}", lines, metadata_stats=stats), steps, ops


def test_classes_of_categories() -> None:
    assert {category: category_class(category).name for category in CATEGORY_CLASSES} == CATEGORY_CLASSES


@pytest.mark.parametrize("seed", range(6))
def test_steps_of_random_cores(seed: int) -> None:
    rng, n_steps = random.Random(f"cores {seed}"), 0
    for _ in range(10):
        cores = [random_core(rng, i) for i in range(3)]
        trace = build([plane for plane, _, _ in cores])
        markers = []
        for i, (_, steps, _) in enumerate(cores):
            own = {
                group: (
                    min(start for other, start, _ in steps if other == group),
                    max(end for other, _, end in steps if other == group),
                )
                for group, _, _ in steps
            }
            markers.append(own)
            number, start, duration = step_markers(trace, i)
            assert list(
                zip(number.tolist(), (start // PS).tolist(), (duration // PS).tolist(), strict=True)
            ) == [(group, begin, end - begin) for group, (begin, end) in sorted(own.items())]
        with_steps = [own for own in markers if own]
        common = sorted(set.intersection(*map(set, with_steps))) if with_steps else []
        expected = []
        for group in common:
            start = min(own[group][0] for own in with_steps)
            duration = max(own[group][1] - own[group][0] for own in with_steps)
            class_ps = [0] * N_CLASSES
            for _, _, ops in cores:
                for other, _, length, category in ops:
                    if other == group:
                        class_ps[TimeClass[CATEGORY_CLASSES[category]]] += length * PS
            class_ps = [time // len(with_steps) for time in class_ps]
            class_ps[0] = duration * PS - sum(class_ps)
            expected.append((group, start * PS, duration * PS, class_ps))
        found = tpu_steps(trace)
        rows = zip(
            found.number.tolist(),
            found.start_ps.tolist(),
            found.duration_ps.tolist(),
            found.class_ps.tolist(),
            strict=True,
        )
        assert list(rows) == expected
        assert found.name == tuple(str(group) for group in common)
        n_steps += len(common)
    assert n_steps > 15


def test_a_core_that_is_busier_than_its_step_computes_less() -> None:
    """100 + 40 on a line of operations that overlap, in a step of 90: computing gives way,
    transfers do not.
    """
    ops = [("op", 0, 60), ("send", 60, 40), ("op", 100, 40)]
    lines = {
        "Steps": [
            event("0", 0, 90, group_id=0),
            event("1", 200, 10, group_id=1),
            event("2", 300, 0, group_id=2),
        ],
        "XLA Ops": [
            *(event(name, start, length, group_id=0) for name, start, length in ops),
            event("send", 200, 30, group_id=1),
        ],
    }
    trace = build([DrawnPlane("/device:TPU:0", lines, metadata_stats={"send": {"hlo_category": "send"}})])
    found = tpu_steps(trace)
    assert (found.number.tolist(), found.n_incomplete) == ([0], 2)
    assert found.class_ps[0, TimeClass.DEVICE_COMPUTE_32] == 50 * PS
    assert found.class_ps[0, TimeClass.DEVICE_TO_DEVICE] == 40 * PS
    assert found.class_ps[0, 0] == 0


def test_runs_on_cores_without_steps_are_counted_on_the_busiest() -> None:
    cores = [
        DrawnPlane(f"/device:TPU:{i}", {"XLA Modules": [event("m", 10 * j, 5) for j in range(n)]})
        for i, n in enumerate((2, 5, 3))
    ]
    found = tpu_steps(build(cores))
    assert (len(found), found.n_unmarked_runs) == (0, 5)
    assert (
        tpu_steps(build([DrawnPlane("/device:TPU:0", {"XLA Ops": [event("x", 0, 1)]})])).n_unmarked_runs == 0
    )


def test_the_line_that_divides_a_core_into_steps() -> None:
    some, none = [event("m", 0, 1)], list[DrawnEvent]()
    planes = [
        DrawnPlane("/device:TPU:0", {"Steps": some, "XLA Modules": some}),
        DrawnPlane("/device:TPU:1", {"Steps": none, "XLA Modules": some, "XLA Ops": some}),
        DrawnPlane("/device:TPU:2", {"XLA Ops": some}),
        DrawnPlane("/device:TPU:2 SparseCore 0", {"Sparse Core Steps": some, "Sparse Core Modules": some}),
    ]
    trace = build(planes)
    assert {plane: trace.line_names[line] for plane, line in grouping_lines(trace).items()} == {
        0: "Steps",
        1: "XLA Modules",
        3: "Sparse Core Steps",
    }
