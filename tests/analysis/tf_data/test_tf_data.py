from __future__ import annotations

import time

import numpy as np
import pytest

from tb_tpuprof.analysis.tf_data.forest import forest, stage_name
from tb_tpuprof.analysis.tf_data.pipeline import call, pipelines
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace, TraceInfo
from tests.builders import PS, Blobs, DrawnEvent, DrawnPlane, build, drawing

ROOT, PREFETCH, MAP, RANGE = (
    "Iterator::Root",
    "Iterator::Root::Prefetch",
    "Iterator::Root::Prefetch::Map",
    "Iterator::Root::Prefetch::Map::Range",
)


def event(name: str, start: float, duration: float, **stats: int) -> DrawnEvent:
    """An event, times in µs."""
    return DrawnEvent(name, int(start * PS), int(duration * PS), stats)


def plane(**lines: list[DrawnEvent]) -> DrawnPlane:
    return DrawnPlane(
        "/host:CPU",
        {name: sorted(events, key=lambda e: (e.start_ps, -e.duration_ps)) for name, events in lines.items()},
    )


def prefetched() -> Trace:
    """Two calls, made ahead on another thread: element 7 while the consumer waits, element 8
    before it asks.
    """
    consumer = [
        event(ROOT, 0, 100, id=1),
        event(PREFETCH, 1, 98, id=2, parent_id=1),
        event("PrefetchConsume", 98, 0.5, element_id=7),
        event(ROOT, 200, 4, id=1),
        event(PREFETCH, 201, 2, id=2, parent_id=1),
        event("PrefetchConsume", 201.5, 0.5, element_id=8),
    ]
    producer = [
        event("PrefetchProduce", 4, 92, element_id=7),
        event(MAP, 5, 90, id=3, parent_id=2),
        event(RANGE, 6, 10, id=4, parent_id=3),
        event("PrefetchProduce", 104, 92, element_id=8),
        event(MAP, 105, 90, id=3, parent_id=2),
        event(RANGE, 106, 10, id=4, parent_id=3),
        event("PrefetchProduce", 204, 92, element_id=9),
        event(MAP, 205, 90, id=3, parent_id=2),
    ]
    return build([plane(consumer=consumer, producer=producer)])


def test_what_was_made_ahead_belongs_to_the_call_that_took_it() -> None:
    trace = prefetched()
    (pipeline,) = pipelines(trace)
    assert (pipeline.name, pipeline.kind, len(pipeline.calls), pipeline.n_slow) == ("Host:0", "Host", 2, 1)
    assert pipeline.duration_ps.tolist() == [100 * PS, 4 * PS]
    slowest, other = call(trace, pipeline, 1), call(trace, pipeline, 2)
    assert [
        (n.name, n.parent, n.duration_ps // PS, n.self_ps // PS, n.n_calls, n.is_blocking)
        for n in slowest.nodes
    ] == [
        ("Root", -1, 100, 2, 1, True),
        ("Prefetch", 0, 98, 8, 1, True),
        ("Map", 1, 90, 80, 1, True),
        ("Range", 2, 10, 10, 1, True),
    ]
    assert slowest.nodes[slowest.bottleneck].name == "Map"
    assert [node.is_blocking for node in other.nodes] == [True, True, False, False]
    assert (
        other.nodes[other.bottleneck].name == "Map"
    )  # of the pipeline: sentence, table and drawing name one stage
    stage = pipeline.bottleneck_stage
    assert stage is not None
    assert stage.long_name == MAP
    assert forest(trace).n_orphans == 1


def test_self_times_of_a_call_never_count_what_overlaps_twice() -> None:
    found = forest(prefetched())
    assert (found.self_ps >= 0).all()
    assert (found.self_ps <= found.duration_ps).all()
    assert (found.work_ps <= found.self_ps).all()


def test_children_that_overlap_one_another_are_taken_off_once() -> None:
    made = [[event("Iterator::Root::ParallelBatch::Map", 10, 50, id=3, parent_id=2)],
            [event("Iterator::Root::ParallelBatch::Map", 20, 50, id=4, parent_id=2)]]  # fmt: skip
    trace = build(
        [
            plane(
                a=[
                    event(ROOT, 0, 100, id=1),
                    event("Iterator::Root::ParallelBatch", 0, 100, id=2, parent_id=1),
                ],
                b=made[0],
                c=made[1],
            )
        ]
    )
    (pipeline,) = pipelines(trace)
    nodes = {node.name: node for node in call(trace, pipeline, 1).nodes}
    assert nodes["ParallelBatch"].self_ps == 40 * PS
    assert nodes["Map"].n_iterators == 2


def test_waiting_for_a_thread_of_the_pool_is_not_the_stage_s_work() -> None:
    pool = [event("ExecutorState::Process", 80, 10, id=50)]
    caller = [event(ROOT, 0, 100, id=1), event("Iterator::Root::FlatMap", 1, 95, id=2, parent_id=1),
              event("InstantiatedCapturedFunction::Run", 5, 90, id=50)]  # fmt: skip
    (pipeline,) = pipelines(build([plane(caller=caller, pool=pool)]))
    times = next(stage.times for stage in pipeline.stages if stage.name == "FlatMap")
    # Up to 20 µs is what getting onto a free thread takes: that is the function's own cost.
    assert (times.self_ps, times.work_ps, times.function_ps) == (95 * PS, (95 - 75 + 20) * PS, 10 * PS)


def test_pipelines_of_devices_are_known_by_their_generator() -> None:
    trace = drawing(
        "main  [Iterator::Prefetch                 ]\nmore      [Iterator::Prefetch::Generator]\nhost  "
        "[Iterator::Root]",
        {
            "Iterator::Prefetch": {"id": 5},
            "Iterator::Prefetch::Generator": {"id": 6, "parent_id": 5},
            "Iterator::Root": {"id": 9},
        },
    )
    assert sorted((p.name, p.stages[0].long_name) for p in pipelines(trace)) == [
        ("Device:0", "Iterator::Prefetch"),
        ("Host:0", "Iterator::Root"),
    ]


def test_roots_without_an_id_are_told_apart_by_name() -> None:
    trace = drawing("main  [Iterator::Model]   [Iterator::Model]")
    (pipeline,) = pipelines(trace)
    assert len(pipeline.calls) == 2


def test_a_cycle_of_parents_is_cut_and_counted() -> None:
    a, b = "Iterator::Root::ParallelBatch", "Iterator::Root::ParallelBatch::ParallelMapV2"
    trace = build(
        [
            plane(
                main=[event(ROOT, 0, 10, id=1)],
                one=[event(a, 20, 10, id=2, parent_id=3)],
                two=[event(b, 20, 10, id=3, parent_id=2)],
            ),
        ]
    )
    found = forest(trace)
    assert (found.n_in_cycles, found.n_orphans) == (2, 0)
    assert [node.name for node in call(trace, pipelines(trace)[0], 1).nodes] == ["Root"]


def test_calls_that_the_capture_cut_are_counted() -> None:
    trace = build([plane(main=[event(MAP, 0, 10, id=3, parent_id=2), event(ROOT, 50, 10, id=1)])])
    assert forest(trace).n_orphans == 1
    assert len(pipelines(trace)) == 1


def test_what_the_capture_cut_is_not_given_to_a_later_call() -> None:
    main = [
        event(MAP, 0, 10, id=3, parent_id=2),
        event("Iterator::Root::Prefetch", 20, 30, id=2, parent_id=1),
    ]
    sync = [
        event("Iterator::Root::Batch::Map", 0, 10, id=7, parent_id=6),
        event("Iterator::Root::Batch", 20, 10, id=6, parent_id=1),
    ]
    found = forest(build([plane(main=[event(ROOT, 19, 40, id=1)], other=main, third=sync)]))
    assert dict(zip(found.iterator.tolist(), (found.parent >= 0).tolist(), strict=True)) == {
        1: False,
        3: True,
        2: False,
        7: False,
        6: False,
    }


def test_a_trace_without_iterators_has_no_pipelines() -> None:
    trace = drawing("main  [MatMul:MatMul]")
    assert pipelines(trace) == ()
    assert len(forest(trace)) == 0


def test_stages_made_anew_for_each_element_are_one_and_branches_stay_apart() -> None:
    assert stage_name("Iterator::Root::FlatMap[12]::TFRecord") == "Iterator::Root::FlatMap::TFRecord"
    assert (
        stage_name("Iterator::Root::ParallelInterleaveV4[3]::Map")
        == "Iterator::Root::ParallelInterleaveV4::Map"
    )
    assert (
        stage_name("Iterator::Root::ForeverRepeat[0]::Zip[1]::Map")
        == "Iterator::Root::ForeverRepeat::Zip[1]::Map"
    )
    assert (
        stage_name("Iterator::Root::DirectedInterleave[1]::Map")
        == "Iterator::Root::DirectedInterleave[1]::Map"
    )


def many(n_pipelines: int, n_calls: int, depth: int) -> Trace:
    """A trace of many pipelines, each a chain of stages on a thread of its own."""
    per_line = n_calls * depth
    n = n_pipelines * per_line
    level = np.tile(np.arange(depth), n_pipelines * n_calls)
    line = np.repeat(np.arange(n_pipelines), per_line)
    start = np.tile(np.repeat(np.arange(n_calls), depth) * 1_000_000, n_pipelines) + level * 1000
    names = ["/host:CPU", "id", "parent_id", *("Iterator::Root" + "::Map" * i for i in range(depth))]
    strings = Strings.of(name.encode() for name in names)
    ids = line * 100 + level + 1
    owner = np.arange(n)
    stats = [
        np.concatenate(parts)
        for parts in (
            (owner, owner),
            (np.full(n, 1), np.full(n, 2)),
            (np.full(n, schema.INT),) * 2,
            (ids, ids - 1),
            (np.zeros(n),) * 2,
        )
    ]

    def table(spec: tuple[schema.ColumnSpec, ...], *columns: object) -> Table:
        return Table(spec, {c.name: np.array(v).astype(c.dtype) for c, v in zip(spec, columns, strict=True)})

    none = StatTable(table(schema.STATS, *[[]] * 5), strings)
    lines = np.arange(n_pipelines)
    return Trace(
        TraceInfo("host", "made", 0, 0),
        strings,
        table(schema.PLANES, [0], [0]),
        table(schema.LINES, lines * 0, lines, lines * 0, lines * 0, lines * per_line, lines * 0 + per_line),
        table(schema.EVENTS, start, 900_000 - 2000 * level, level, owner * 0),
        table(schema.METADATA, np.zeros(depth), np.arange(depth), np.arange(depth) + 3, np.full(depth, -1)),
        table(schema.AGGREGATES, *[[]] * 4),
        table(schema.STAT_NAMES, *[[]] * 3),
        StatTable(table(schema.STATS, *stats), strings),
        none,
        none,
        Blobs(),
    )


@pytest.mark.slow
def test_a_million_events_in_two_hundred_pipelines_take_two_seconds() -> None:
    trace = many(200, 1000, 5)
    begin = time.process_time()
    found = pipelines(trace)
    nodes = call(trace, found[-1], 1000).nodes
    took = time.process_time() - begin
    assert len(forest(trace)) == 1_000_000
    assert (len(found), {len(p.calls) for p in found}, len(nodes)) == (200, {1000}, 5)
    assert took <= 2, f"{took:.1f} s"
