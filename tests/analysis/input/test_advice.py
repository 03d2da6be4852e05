"""Advice on the input, and sentences on its slow stage, on records made by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.input import stage as slow
from tb_tpuprof.analysis.input.advice import Advice, input_advice
from tb_tpuprof.analysis.input.host import HostInput, HostTime, host_time
from tb_tpuprof.analysis.input.pipeline import InputPipeline, copy_fraction
from tb_tpuprof.analysis.input.stage import SlowStage
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tb_tpuprof.analysis.steps.waits import StepWait
from tb_tpuprof.analysis.tf_data.what_if import Estimate
from tests.analysis.input.records import MS, host_of, steps_of
from tests.builders import PS, drawing


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


def test_a_change_saves_at_most_what_the_steps_wait() -> None:
    """Of steps of 5 ms, which a change would shorten to 2 to 4 ms: by the wait of each step."""
    stage = SlowStage("P", "Map", "`Map`", "", "8 threads", (2.0 * MS, 4.0 * MS), 5.0 * MS)
    for wait_ms, step_ms in ((0.5, (4.5, 4.5)), (1.5, (3.5, 4.0)), (3.0, (2.0, 4.0)), (9.0, (2.0, 4.0))):
        step_ps = stage.saving_at_most(wait_ms * MS).step_ps
        assert step_ps == pytest.approx(tuple(one * MS for one in step_ms)), wait_ms
    assert replace(stage, step_ps=None).saving_at_most(0.0) == replace(stage, step_ps=None)


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
