"""The host's time for input, and ranges over cores, on records made by hand."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tb_tpuprof.analysis.input.advice import costliest, largest, loader_advice, short, stage
from tb_tpuprof.analysis.input.host import (
    HOST_CATEGORIES,
    HostInput,
    HostTime,
    host_input,
    host_time,
    input_category,
    sum_host_input,
)
from tb_tpuprof.analysis.input.pipeline import (
    InputPart,
    InputPipeline,
    _core_range,
    copy_fraction,
    input_part,
    input_pipeline,
)
from tb_tpuprof.analysis.input.tpu import TC_PARTS, CoreSteps, _bucket, core_steps
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tests.analysis.input.records import host_of, steps_of
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing


def test_names_of_stages_and_their_merged_times() -> None:
    assert [
        stage(name)
        for name in ("A::Prefetch::Generator", "A::Generator", "A::MapV2[3]", "Batch[0]", "A::FlatMapV10")
    ] == [
        "DeviceGenerator",
        "Generator",
        "Map",
        "Batch",
        "FlatMap",
    ]
    assert [short(name) for name in ("a", "a::b", "a::b::c", "a::b::c::d")] == [
        "a",
        "a::b",
        "a::b::c",
        "…::c::d",
    ]
    host = host_of(
        ("Iterator::Root::Map[0]", "preprocessing", 30),
        ("Iterator::Root::Map[1]", "preprocessing", 40),
        ("Iterator::Root::Batch", "preprocessing", 60),
        ("Iterator::Root::Prefetch", "preprocessing", 900),
        ("read", "demanded_reads", 800),
    )
    assert largest(host, "preprocessing") == ("Iterator::Root::Map", 70)
    assert costliest(host, "demanded_reads") == "read"
    assert largest(host, "enqueuing") == ("", 0)
    assert largest(host_of(("Iterator::Root", "preprocessing", 5)), "preprocessing") == ("Iterator::Root", 5)
    assert loader_advice("PyGrainPool").startswith("`PyGrainPool` belongs to Grain")


def test_enqueues_of_each_thread_but_the_last() -> None:
    """Thread a: 4, 6 and 9 long, starting at 0, 10 and 30; thread b: 20 long at 5; thread c none."""

    def enqueue(start: int, length: int, name: str = "q:InfeedEnqueueTuple") -> DrawnEvent:
        return DrawnEvent(name, start * PS, length * PS)

    lines = {
        "a": [enqueue(0, 4), enqueue(7, 2, "x:Other"), enqueue(10, 6), enqueue(30, 9)],
        "b": [enqueue(5, 20)],
        "c": [enqueue(50, 1, "InfeedEnqueueAll:Op"), enqueue(90, 1, "InfeedEnqueueAll:Op")],
        "d": [enqueue(60, 3), enqueue(75, 5)],
    }
    host = host_input(build([DrawnPlane("/host:CPU", lines)]))
    assert (host.enqueue_ps // PS, host.between_ps // PS) == (4 + 6 + 3, 10 + 20 + 15)
    device = DrawnPlane("/device:TPU:0", {"XLA Ops": [enqueue(0, 4), enqueue(10, 6)]})
    elsewhere = host_input(build([DrawnPlane("/host:CPU", {"c": lines["c"]}), device]))
    assert (elsewhere.enqueue_ps, elsewhere.between_ps) == (0, 0)


def test_operations_of_the_input_keep_their_columns() -> None:
    trace = drawing("""
        a   [Iterator::Root::Map   ][x:Op  ][load:Read     ]
        b   [Iterator::Root::Map          ]
        """)
    host = host_input(trace)
    assert dict(zip(host.ops.name, host.category, strict=True)) == {
        "Iterator::Root::Map": "preprocessing",
        "load": "demanded_reads",
    }
    assert (host.ops.n_occurrences.tolist(), (host.ops.self_ps // PS).tolist()) == ([2, 1], [24 + 31, 16])
    assert host.self_ps == 71 * PS
    summed = sum_host_input([host, host, host_input(drawing("a  [load:Read ]"))])
    assert dict(zip(summed.ops.name, (summed.ops.self_ps // PS).tolist(), strict=True)) == {
        "Iterator::Root::Map": 110,
        "load": 32 + 12,
    }
    assert summed.time_ps("preprocessing") == 110 * PS
    assert summed.time_ps("other") == 0
    assert sum_host_input([host]) is host


def test_prefetches_wait_only_for_stages_below_them() -> None:
    host = host_input(
        drawing("""
        a   [Iterator::Root               ]
        b   [Iterator::Root::Prefetch           ]
        c   [Iterator::Root::Prefetch::Map            ]
        d   [Iterator::Root::Batch::Prefetch            ]
        """)
    )
    categories = dict(zip(host.ops.name, host.category, strict=True))
    assert categories == {
        "Iterator::Root": "waiting",
        "Iterator::Root::Prefetch": "waiting",
        "Iterator::Root::Prefetch::Map": "preprocessing",
        "Iterator::Root::Batch::Prefetch": "preprocessing",
    }


@pytest.mark.parametrize(
    ("times", "enqueue", "between", "copies", "shown", "fraction"),
    [
        ((40, 10, 20, 30, 0), 20, 100, 0.9, (40, 160 / 6, 320 / 6, 480 / 6, 0), 0.2),
        ((40, 10, 20, 30, 40), 100, 100, 0.0, (40, 0, 0, 0, 0), 1.0),
        ((40, 10, 0, 0, 0), 300, 100, 0.0, (40, 0, 0, 0, 0), 1.0),
        ((40, 10, 30, 0, 0), 0, 0, 0.5, (40, 10, 30, 0, 0), 0.5),
        ((40, 10, 30, 0, 0), 0, 0, 2.0, (40, 0, 0, 0, 0), 1.0),
        ((40, 0, 0, 0, 0), 0, 0, 0.25, (40, 0, 0, 0, 120), 0.25),
        ((0, 10, 30, 0, 0), 0, 0, 0.5, (0, 10, 30, 0, 0), -1),
        ((40, 10, 30, 0, 0), 0, 100, 0.5, (40, 10, 30, 0, 0), -1),
    ],
)
def test_time_by_category(
    times: tuple[int, ...],
    enqueue: int,
    between: int,
    copies: float,
    shown: tuple[float, ...],
    fraction: float,
) -> None:
    host = host_of(
        *(
            (f"op{i}", category, time)
            for i, (category, time) in enumerate(zip(HOST_CATEGORIES, times, strict=True))
        )
    )
    made = host_time(HostInput(host.ops, host.category, enqueue, between), copies)
    assert made.time_ps == pytest.approx(shown)
    assert made.enqueue_fraction == fraction
    assert made.total_ps == pytest.approx(sum(shown))
    assert made.largest == HOST_CATEGORIES[int(np.argmax(shown))]


def test_no_time_has_no_largest_category() -> None:
    assert HostTime((0.0,) * 5, -1).largest == ""
    names = (
        "Iterator::Root::Cache::MemoryReader::TFRecord",
        "Iterator::Root::MemoryWriter::SSTable",
        "Iterator::Root::Zip::RecordIO",
    )
    assert [input_category(name, "Dataset") for name in names] == [
        "demanded_reads" if "Zip" in name else "advanced_reads" for name in names
    ]


def part_of(steps: Steps, host: str = "h", cores: CoreSteps | None = None, moved: int = 0) -> InputPart:
    return InputPart(
        host, "TPU", steps, np.array([moved, moved]), cores, host_of(), cast(Any, None), (), 0, False
    )


def test_parts_without_steps_have_no_share() -> None:
    empty = part_of(no_steps())
    assert np.isnan(empty.fraction)
    assert np.isnan(empty.waiting_ps)
    waits = part_of(steps_of(100, 300, HOST_WAIT_INPUT=(10, 20), HOST_TO_DEVICE=(5, 25)))
    assert (waits.fraction, waits.waiting_ps) == (60 / 400, 30)
    assert copy_fraction(no_steps()) == 0
    assert waits.host_time.enqueue_fraction == -1
    order = [
        part_of(no_steps(), "none"),
        part_of(steps_of(10), "zero"),
        waits,
        part_of(steps_of(10, HOST_WAIT_INPUT=(9,)), "most"),
    ]
    assert [part.host for part in input_pipeline(order).hosts] == ["most", "h", "zero", "none"]
    moved = InputPipeline(
        CommonSteps(steps_of(0, 10, HOST_WAIT_INPUT=(0, 4))),
        None,
        host_of(),
        host_time(host_of()),
        (part_of(no_steps(), moved=3), part_of(no_steps(), moved=4)),
    )
    assert (moved.moved_ps, moved.input_fraction.tolist()) == (14, [0, 0.4])


def cores_of(
    names: tuple[str, ...],
    shares: list[list[float]],
    compute: list[int],
    sparse: dict[str, list[int]] | None = None,
) -> CoreSteps:
    zeros = np.zeros(len(compute), np.int64)
    parts = {name: np.array(compute) if name == "tc_compute" else zeros for name in TC_PARTS}
    return CoreSteps(
        names, np.array(shares), parts, {name: np.array(times) for name, times in (sparse or {}).items()}
    )


def test_the_range_over_the_cores_of_unlike_hosts() -> None:
    """Host a has the common steps as its second and third, host b as its first two, c has none of them, d no
    cores.
    """
    a = cores_of(("0", "1"), [[0.9, 0.1, 0.0], [0.9, 0.3, 0.0]], [1, 10, 21], {"sc_compute": [1, 7, 9]})
    b = cores_of(("4",), [[0.2, 0.0, 0.8]], [31, 42, 5])
    c = cores_of(("0",), [[0.99, 0.99]], [7, 7])
    parts = [part_of(no_steps(), name, cores) for name, cores in (("a", a), ("b", b), ("c", c), ("d", None))]
    rows = (slice(1, 3), slice(0, 2), slice(0, 0), slice(0, 2))
    common = CommonSteps(steps_of(100, 200), rows=rows)
    found = _core_range(parts, common)
    assert found is not None
    assert (found.least.tolist(), found.most.tolist()) == ([0.1, 0], [0.3, 0])
    assert found.worst == ("a:1", "")
    assert found.parts["tc_compute"].tolist() == [(10 + 31) // 2, (21 + 42) // 2]
    assert found.parts["tc_idle"].tolist() == [100 - 20, 200 - 31]
    assert found.parts["sc_compute"].tolist() == [7, 9], "the mean over hosts with SparseCores"
    assert _core_range(parts[2:], CommonSteps(steps_of(100, 200), rows=rows[2:])) is None
    assert _core_range(parts, CommonSteps(no_steps(), rows=rows)) is None


@pytest.mark.parametrize(
    ("category", "bucket"),
    [
        ("infeed", 0),
        ("host recv-done", 1),
        ("host send", 2),
        ("host send-done", 2),
        ("sparse-core-v0 infeed wait", 3),
        ("all-gather", 4),
        ("reduce-scatter fusion", 4),
        ("outfeed", 5),
        ("fusion", 5),
        ("", 5),
        ("send", 5),
    ],
)
def test_buckets_of_categories(category: str, bucket: int) -> None:
    assert _bucket(category) == bucket


def test_collectives_without_ids_are_told_apart_by_their_occurrence() -> None:
    """In each of two steps op x runs twice on both cores, op y (with an id) once; the shortest of each is
    communication.
    """

    def core(number: int, lengths: list[tuple[int, int, int]]) -> DrawnPlane:
        events = []
        for step, (first, second, other) in enumerate(lengths):
            at = 100 * step
            events += [
                DrawnEvent("x", (at + 1) * PS, first * PS),
                DrawnEvent("x", (at + 31) * PS, second * PS),
                DrawnEvent("y", (at + 61) * PS, other * PS, {"all_reduce_unique_id": step}),
            ]
        steps = [DrawnEvent(str(i), 100 * i * PS, 100 * PS) for i in range(len(lengths))]
        stats = {name: {"hlo_category": "all-reduce"} for name in "xy"}
        return DrawnPlane(f"/device:TPU:{number}", {"Steps": steps, "XLA Ops": events}, metadata_stats=stats)

    trace = build([core(0, [(20, 5, 9), (10, 10, 30)]), core(3, [(12, 25, 9), (4, 29, 7)])])
    cores = core_steps(trace)
    assert cores is not None
    assert cores.cores == ("0", "3")
    assert (cores.parts["collective_sync"] // PS).tolist() == [(8 + 20 + 0) // 2, (6 + 19 + 23) // 2]
    part = input_part(trace)
    assert part.cores is not None
    assert (part.kind, part.has_loop_ops, part.start_ns) == ("TPU", False, 0)
