"""The host's time for input, advice on it, and ranges over cores, on records made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.input import stage as slow
from tb_tpuprof.analysis.input.advice import (
    Advice,
    costliest,
    input_advice,
    largest,
    loader_advice,
    short,
    stage,
)
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
from tb_tpuprof.analysis.input.stage import SlowStage
from tb_tpuprof.analysis.input.tpu import TC_PARTS, CoreSteps, _bucket, core_steps
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tb_tpuprof.analysis.steps.waits import StepWait
from tb_tpuprof.analysis.tf_data.what_if import Estimate
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing

MS = 10**9


def steps_of(*lengths: int, waits: tuple[StepWait, ...] = (), **classes: tuple[int, ...]) -> Steps:
    duration = np.array(lengths, np.int64)
    class_ps = np.zeros((len(lengths), N_CLASSES), np.int64)
    for name, times in classes.items():
        class_ps[:, TimeClass[name]] = times
    class_ps[:, 0] += duration - class_ps.sum(axis=1)
    start = np.cumsum(duration) - duration
    names = tuple(map(str, range(len(lengths))))
    return Steps(np.arange(len(lengths)), names, start, duration, class_ps, "annotation", waits=waits)


def host_of(*ops: tuple[str, str, int]) -> HostInput:
    """Operations (name, category, self time)."""
    n, times = len(ops), np.array([time for _, _, time in ops], np.int64)
    metrics = OpMetrics(
        tuple(name for name, _, _ in ops),
        ("Dataset",) * n,
        np.ones(n, np.int64),
        times,
        times,
        np.zeros(n, np.bool_),
        0,
    )
    return HostInput(metrics, tuple(category for _, category, _ in ops))


def pipeline_of(host: HostInput, steps: Steps | None = None, time: HostTime | None = None) -> InputPipeline:
    return InputPipeline(CommonSteps(steps or no_steps()), None, host, time or host_time(host), ())


def advised(*ops: tuple[str, str, int], level: str = "bad", framework: str = "") -> tuple[Advice, ...]:
    return input_advice(pipeline_of(host_of(*ops)), level, framework)


@pytest.mark.parametrize(("time", "n"), [(99, 0), (100, 1), (101, 1)])
def test_categories_matter_from_a_tenth_of_the_host_s_time_on(time: int, n: int) -> None:
    found = advised(("a::Filter", "preprocessing", 1000 - time), ("b::TFRecord", "demanded_reads", time))
    assert [one.category for one in found] == ["preprocessing", *["demanded_reads"] * n]
    assert {one.tool for one in found} == {"trace_viewer"}


def test_advice_by_category_the_largest_first() -> None:
    ops = [
        ("Iterator::Root::Prefetch::Shuffle::Map", "preprocessing", 30),
        ("Iterator::Root::Prefetch::TFRecord", "advanced_reads", 25),
        ("Iterator::Root::Interleave::ArrayRecord", "demanded_reads", 20),
        ("send:InfeedEnqueue", "enqueuing", 15),
        ("idle", "other", 10),
    ]
    found = advised(*ops)
    assert [one.category for one in found] == [
        "preprocessing",
        "advanced_reads",
        "demanded_reads",
        "enqueuing",
        "other",
    ]
    assert [one.tool for one in found] == [*["tf_data_bottleneck_analysis"] * 3, *["trace_viewer"] * 2]
    assert [one.text.split(":")[0].split(" ")[0] for one in found] == ["`…", "`…", "`…", "`send", "Between"]
    assert found[0].text.startswith("`…::Shuffle::Map` maps one element at a time")
    assert found[1].text.startswith("`…::Prefetch::TFRecord` reads ahead, but")
    assert found[2].text.startswith("`…::Interleave::ArrayRecord` reads on demand")
    assert found[3].text.startswith("`send:InfeedEnqueue` transfers data to the device")
    copies = InputPipeline(CommonSteps(no_steps()), None, host_of(), HostTime((5.0, 0, 0, 0, 0), -1), ())
    assert input_advice(copies, "bad")[0].text.startswith("Data is transferred to the device")


@pytest.mark.parametrize(
    ("name", "category", "start", "tool"),
    [
        ("load", "preprocessing", "`load` runs in the job's own process", "trace_viewer"),
        ("DataLoader.__next__", "demanded_reads", "`DataLoader.__next__` belongs to Grain", "trace_viewer"),
        (
            "enumerate(DataLoader)#x",
            "advanced_reads",
            "`enumerate(DataLoader)#x` belongs to PyTorch",
            "trace_viewer",
        ),
        (
            "Iterator::Root::Prefetch",
            "preprocessing",
            "`Iterator::Root::Prefetch` waits for stages",
            "tf_data_bottleneck_analysis",
        ),
        (
            "Iterator::Root::Odd",
            "preprocessing",
            "`Iterator::Root::Odd` takes most of the preprocessing",
            "tf_data_bottleneck_analysis",
        ),
        (
            "Iterator::Root::ParallelMapV2",
            "preprocessing",
            "`Iterator::Root::ParallelMapV2` already runs in parallel, so make",
            "tf_data_bottleneck_analysis",
        ),
        (
            "Iterator::Root::Batch",
            "preprocessing",
            "`Iterator::Root::Batch` copies elements",
            "tf_data_bottleneck_analysis",
        ),
    ],
)
def test_advice_on_a_stage(name: str, category: str, start: str, tool: str) -> None:
    found, *_ = advised((name, category, 10))
    assert found.text.startswith(start)
    assert (found.category, found.tool) == (category, tool)


def test_what_the_whole_pipeline_lacks() -> None:
    def lacks(*names: str) -> list[str]:
        found = advised(*((name, "preprocessing", 10) for name in names))
        return [one.text.split(" ")[0] for one in found[1:]]

    assert lacks("Iterator::Root::Map") == ["Nothing"]
    assert lacks("Iterator::Root::Prefetch::Map") == []
    assert lacks("Iterator::Root::ParallelMapV2") == []
    assert lacks("Iterator::Root::MapAndBatch") == []
    assert lacks("Iterator::Root::Prefetch::ForeverRepeat::Map") == ["The"]
    assert lacks("Iterator::Root::FiniteRepeat::Map") == ["Nothing", "The"]
    assert lacks("Iterator::Root::Prefetch::FiniteRepeat::MemoryCacheImpl::Map") == []
    assert lacks("Iterator::Root::Prefetch::FiniteRepeat::MemoryReader") == []
    assert lacks("Map") == []


def test_a_fast_input_gets_no_advice() -> None:
    assert [one.tool for one in advised(("Iterator::Root::Map", "preprocessing", 10), level="good")] == [
        "overview_page"
    ]


def loader_wait(total: int, name: str = "batches", file: str = "gen.py") -> StepWait:
    return StepWait(TimeClass.HOST_WAIT_LOADER, name, file, 15, np.array([total]))


@pytest.mark.parametrize(("copies", "n"), [(49, 0), (50, 1), (51, 1)])
def test_copies_matter_from_a_twentieth_of_the_steps_on(copies: int, n: int) -> None:
    steps = steps_of(1000, HOST_TO_DEVICE=(copies,))
    assert copy_fraction(steps) == copies / 1000
    words = {
        JAX: "jax.device_put",
        PYTORCH: "pin_memory",
        TENSORFLOW: "`prefetch_to_device`",
        "": "prefetch_to_device, jax",
    }
    for framework, word in words.items():
        for host in (host_of(), host_of(("load", "preprocessing", 5))):
            found = [
                one
                for one in input_advice(pipeline_of(host, steps), "bad", framework)
                if one.category == "input" and one.text.startswith("Copies")
            ]
            assert [word in one.text for one in found] == [True] * n
            assert [one.text.split(" of ")[0] for one in found] == [
                f"Copies to the device take {copies / 10:.2f}%"
            ] * n


@pytest.mark.parametrize(("waited", "is_cited"), [(49, False), (50, True), (51, True)])
def test_a_python_loader_matters_from_a_twentieth_of_the_steps_on(waited: int, is_cited: bool) -> None:
    other = StepWait(TimeClass.HOST_WAIT, "sleep", "", 0, np.array([900]))
    steps = steps_of(1000, waits=(other, loader_wait(waited)))
    found = input_advice(pipeline_of(host_of(), steps), "bad", PYTORCH)
    starts = [one.text.split(" ")[0] for one in found]
    assert starts == (["`batches`", "Load"] if is_cited else ["The", "Load"])
    assert (
        found[-1].text == "Load ahead in other threads or processes: `DataLoader` with `num_workers` and"
        " `persistent_workers=True`."
    )
    unknown = input_advice(pipeline_of(host_of(), steps), "unknown", PYTORCH)
    assert [one.text.split(" ")[0] for one in unknown] == [*["`batches`"] * is_cited, "The"]


def test_a_loader_that_has_workers_is_not_told_to_use_some() -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for level in ("bad", "warn", "unknown"):
        steps = steps_of(1000, waits=(loader_wait(500, name, ""),))
        (only,) = input_advice(pipeline_of(host_of(), steps), level, PYTORCH)
        assert only.text.startswith(
            f"`{name}` waits for worker processes that are too slow: use more of them"
        )
    cheap = steps_of(1000, waits=(loader_wait(49, name, ""),))
    texts = [one.text for one in input_advice(pipeline_of(host_of(), cheap), "bad", PYTORCH)]
    assert [text.split(" ")[0] for text in texts] == ["The", "Load"]


def test_without_operations_the_tracer_s_option_is_named() -> None:
    for framework, option in (
        (PYTORCH, "(with_stack=True)"),
        (JAX, "(python_tracer_level=1)"),
        ("", "(python_tracer_level=1)"),
    ):
        (look,) = input_advice(pipeline_of(host_of()), "unknown", framework)
        assert option in look.text
        assert look.tool == "trace_viewer"
    traced = steps_of(1000, waits=(loader_wait(1),))
    look, load = input_advice(pipeline_of(host_of(), traced), "warn", "other")
    assert look.text.endswith("does between steps.")
    assert load.text.startswith("Load ahead in other threads or processes: tf.data with")


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
    """Host a has the common steps as its second and third, host b as its first two, c has none of them, d no cores."""
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


def estimate(kind: str, step: tuple[float, float] | None, **more: Any) -> Estimate:
    return Estimate(kind, f"change {kind}", None, step, **more)


def test_of_the_changes_the_one_with_the_lowest_upper_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = drawing(
        "main  [train   ][train      ]\nmain  [a:A    ] [b:B      ]",
        {"train": [{"_r": 1, "step_num": i} for i in range(2)]},
    )
    mean = (10 + 13) / 2 * PS
    pipeline = cast(Any, SimpleNamespace(name="P"))
    stage = SlowStage("P", "Map", "`Map`", "Run more calls.")

    def best(*estimates: Estimate) -> SlowStage:
        monkeypatch.setattr(slow, "what_if", lambda _trace, _pipeline: estimates)
        return slow._with_gain(trace, pipeline, stage)

    assert best() == stage
    chosen = best(
        estimate("now", (1, 2)),
        estimate("parallel", (3.0, 9.0)),
        estimate("prefetch", (5.0, 8.0), note="if it is so"),
        estimate("parallel_prefetch", (1.0, 5.0), is_no_gain=True),
        estimate("parallel", None),
    )
    assert chosen == replace(
        stage, change="change prefetch", step_ps=(5.0, 8.0), now_ps=mean, note="if it is so"
    )
    assert best(estimate("parallel", (mean, mean))) == stage
    assert best(estimate("parallel", (1.0, mean - 1))).change == "change parallel"
    monkeypatch.setattr(slow, "what_if", lambda _trace, _pipeline: (estimate("parallel", (1.0, 2.0)),))
    assert slow._with_gain(drawing("main  [x]"), pipeline, stage) == stage


def test_sentences_on_the_slow_stage() -> None:
    plain = SlowStage("P", "Map", "`Map` (your `map` in a.py:3)", "")
    assert plain.gain_ps is None
    first = "The slow stage of the tf.data pipeline P is `Map` (your `map` in a.py:3)."
    assert plain.sentences == (first,)
    advised = replace(plain, advice="Run more calls.")
    assert advised.sentences == (f"{first} Run more calls.",)
    gain = replace(plain, change="8 threads", step_ps=(2.0 * MS, 6.0 * MS), now_ps=5.0 * MS)
    assert gain.gain_ps == (0, 3 * MS)
    assert gain.sentences[0] == first
    assert (
        gain.sentences[1]
        == "8 threads alone would shorten each step from 5.00 ms to between 2.00 ms and 6.00 ms (estimated)."
    )
    sure = replace(gain, step_ps=(2.0 * MS, 4.0 * MS), note="with free processors")
    assert sure.gain_ps == (MS, 3 * MS)
    assert sure.sentences[1].startswith("With free processors, ")


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
    """In each of two steps op x runs twice on both cores, op y (with an id) once; the shortest of each is communication."""

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
