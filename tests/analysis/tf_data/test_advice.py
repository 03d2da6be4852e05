"""Advice on a tf.data pipeline, and the sentences about it: which one is given at both sides of
each limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.tf_data import changes as changes_module
from tb_tpuprof.analysis.tf_data import finding as finding_module
from tb_tpuprof.analysis.tf_data.advice import Waiting
from tb_tpuprof.analysis.tf_data.changes import NOTHING_KNOWN, Evidence, advice, evidence, stage_advice
from tb_tpuprof.analysis.tf_data.finding import PipelineVerdict, _gain, _work_text, sentence
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, Times, pipelines
from tb_tpuprof.analysis.tf_data.what_if import Estimate
from tests.analysis.tf_data.test_tf_data import prefetched

MS = 10**9
UNTUNED = {"parallelism": "4"}
TUNED = {"parallelism": "4", "autotune": "true"}
MAP = "Iterator::Root::ParallelMapV2"
ROOT = "Iterator::Root"


def stage(long_name: str, parent: int = -1, n_calls: int = 10) -> Stage:
    name = long_name.rpartition("::")[2].partition("[")[0]
    return Stage(name, long_name, Times(1, 1, 1, 0, n_calls), False, parent)


def advised(long_name: str, facts: Evidence = NOTHING_KNOWN) -> tuple[str, ...]:
    one = stage(long_name)
    return stage_advice(one, (one,), facts)


@pytest.mark.parametrize(
    ("facts", "start"),
    [
        (
            NOTHING_KNOWN,
            "Set `num_parallel_calls=tf.data.AUTOTUNE` on that `map`: it runs one element at a time.",
        ),
        (
            Evidence({"parallelism": "1"}, {}, (), True),
            (
                "Set `num_parallel_calls=tf.data.AUTOTUNE` on that `map`: it runs one element at a time. Its"
                " function is Python"
            ),
        ),
        (
            Evidence({"parallelism": "2"}, {}),
            "That `map` already runs on 2 threads. Make its function cheaper",
        ),
        (
            Evidence({"parallelism": "1", "autotune": "true"}, {}),
            "That `map` already runs on 1 thread (chosen by AUTOTUNE). Make",
        ),
        (Evidence({"parallelism": "1", "autotune": "false"}, {}), "Set `num_parallel_calls"),
        (
            Evidence(TUNED, {"threadpool_size": "4"}),
            (
                "The pool limits that `map` to 4 threads: remove"
                " `options.threading.private_threadpool_size=4` or raise it. Make"
            ),
        ),
        (
            Evidence(TUNED, {"threadpool_size": "5"}),
            "That `map` already runs on 4 threads (chosen by AUTOTUNE).",
        ),
        (
            Evidence(TUNED, {"threadpool_size": "0"}),
            "That `map` already runs on 4 threads (chosen by AUTOTUNE).",
        ),
        (Evidence(UNTUNED, {"threadpool_size": "4"}), "That `map` already runs on 4 threads. Make"),
        (
            Evidence({"parallelism": "1", "autotune": "true"}, {"threadpool_size": "1"}),
            "The pool limits that `map` to 1 thread: ",
        ),
        (Evidence(UNTUNED, {}, (19_900_000,) * 3), "Batch first: its function takes 19.9 µs per element"),
        (Evidence(UNTUNED, {}, (20_000_000,) * 3), "That `map` already runs on 4 threads."),
        (Evidence(UNTUNED, {}, (0,) * 3), "That `map` already runs on 4 threads."),
        (
            Evidence(UNTUNED, {}, (5 * MS,) * 3, True),
            "That `map` already runs on 4 threads. Its function is Python: its computation",
        ),
        (
            Evidence(UNTUNED, {}, (MS,) * 9 + (4 * MS,) * 2),
            "That `map` already runs on 4 threads. Its slowest elements take 4.0 times the median",
        ),
        (
            Evidence({**UNTUNED, "deterministic": "false"}, {}, (MS,) * 9 + (4 * MS,) * 2),
            "That `map` already runs on 4 threads. Make",
        ),
        (
            Evidence({**UNTUNED, "deterministic": "true"}, {}, (MS,) * 9 + (4 * MS,) * 2, True),
            "That `map` already runs on 4 threads. Its slowest",
        ),
    ],
)
def test_advice_on_a_map(facts: Evidence, start: str) -> None:
    texts = advised(MAP, facts)
    assert texts[0].startswith(start)
    assert texts[-2].startswith("Cache this stage's output")
    assert texts[-1].startswith("Do the work once, offline")


@pytest.mark.parametrize(
    ("long_name", "facts", "start", "n"),
    [
        ("Iterator::Root::Scan", NOTHING_KNOWN, "`scan` has no parallel form", 3),
        ("Iterator::Root::Window", NOTHING_KNOWN, "`Window` has no parallel form", 3),
        ("Iterator::Root::ParallelFilter", NOTHING_KNOWN, "Do the work of `filter` inside a parallel", 3),
        (
            "Iterator::Root::ParallelInterleaveV4",
            Evidence({"cycle_length": "6"}, {}),
            "It already reads in parallel: raise `cycle_length` (now 6), use",
            2,
        ),
        (
            "Iterator::Root::ParallelInterleaveV4",
            NOTHING_KNOWN,
            "It already reads in parallel: raise `cycle_length`, use",
            2,
        ),
        ("Iterator::Root::Interleave", NOTHING_KNOWN, "Use `interleave(..., cycle_length=n", 2),
        ("Iterator::Root::FlatMap", NOTHING_KNOWN, "Use `interleave(..., cycle_length=n", 2),
        (
            "Iterator::Root::ParallelBatch",
            NOTHING_KNOWN,
            "`batch` already copies its elements in parallel.",
            2,
        ),
        ("Iterator::Root::BatchV2", NOTHING_KNOWN, "`batch` copies its elements: set", 2),
        (
            "Iterator::Root::TFRecord",
            NOTHING_KNOWN,
            "Read several files at once: `interleave(tf.data.TFRecordDataset,",
            3,
        ),
        ("Iterator::Root::TensorSlice", NOTHING_KNOWN, "Read several parts at once: `interleave(", 3),
        ("Iterator::Root::Shuffle", NOTHING_KNOWN, "`shuffle` fills its buffer", 2),
        (
            "Iterator::Root::Prefetch",
            NOTHING_KNOWN,
            "The stages that feed this `prefetch` were not traced",
            2,
        ),
        ("Iterator::Root::Generator", NOTHING_KNOWN, "A Python generator produces one element at a time", 3),
        ("Iterator::Root::FlatMap[0]::BatchV2", NOTHING_KNOWN, "A batch per window copies", 2),
        ("Iterator::Root::FlatMap::ParallelBatch", NOTHING_KNOWN, "`batch` already", 2),
        ("Iterator::FlatMap", NOTHING_KNOWN, "Use `interleave", 2),
        ("Iterator::Root::DataService", NOTHING_KNOWN, "Elements come from tf.data service", 1),
    ],
)
def test_advice_on_other_stages(long_name: str, facts: Evidence, start: str, n: int) -> None:
    texts = advised(long_name, facts)
    assert texts[0].startswith(start)
    assert len(texts) == n


@pytest.mark.parametrize(("kept", "is_first"), [(8, True), (9, False), (0, False)])
def test_a_filter_that_keeps_fewer_than_5_of_6_comes_first(kept: int, is_first: bool) -> None:
    """From 1.2 elements per kept one on."""
    above, one = stage("Iterator::Root::Filter", -1, kept), stage("Iterator::Root::Filter::Map", 0, 10)
    assert stage_advice(one, (above, one))[0].startswith("`filter` after this `map`") == is_first
    even = stage("Iterator::Root::Filter", -1, 10), stage("Iterator::Root::Filter::Map", 0, 12)
    assert stage_advice(even[1], even)[0].startswith("`filter` after this `map` keeps 1 of 1.2 elements")
    other = stage("Iterator::Root::Batch", -1, 1), stage("Iterator::Root::Batch::Map", 0, 12)
    assert not stage_advice(other[1], other)[0].startswith("`filter`")


@pytest.mark.parametrize(("share", "is_python"), [(0.49, False), (0.5, False), (0.51, True), (0.9, True)])
def test_functions_are_python_where_python_takes_most_of_their_time(
    share: float, is_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = prefetched()
    monkeypatch.setattr(changes_module, "processor_time", lambda _: (1.0, share))
    assert [evidence(trace, one).is_python for one in pipelines(trace)] == [is_python]


def test_a_prefetch_with_its_input_in_the_trace() -> None:
    """The one that feeds it may stand anywhere among the stages; roots feed nothing."""
    prefetch = stage("Iterator::Root::Prefetch", -1)
    for parents, is_fed in (((-1, 0), True), ((-1, -1), False), ((-1, 1), False), ((-1, 7), False)):
        stages = (prefetch, stage("Iterator::Root::Prefetch::Map", parents[1]))
        text = stage_advice(prefetch, stages)[0]
        assert text.startswith("Do the work of `prefetch`" if is_fed else "The stages that feed this")


def pipeline(calls: list[tuple[int, int]], stages: tuple[Stage, ...] = (), **more: Any) -> Pipeline:
    """A pipeline of calls (duration, waited), one each second."""
    duration, waited = (np.array(column, np.int64) for column in zip(*calls, strict=True))
    columns: dict[str, Any] = {
        "name": "Host:0",
        "kind": "Host",
        "calls": np.arange(len(calls)),
        "start_ps": np.arange(len(calls)) * 1000 * MS,
        "duration_ps": duration,
        "waited_ps": waited,
        "is_complete": np.ones(len(calls), np.bool_),
        "stages": stages,
        "bottleneck": -1,
        "thread_count": 1,
    }
    return Pipeline(**(columns | more))


def test_pipelines_without_a_bottleneck_and_those_of_devices() -> None:
    assert advice(pipeline([(1, 1)])) == ("No change is needed: no call waited for a stage.",)
    assert advice(pipeline([(1, 1)], kind="Device"))[0].startswith("This is the device side")
    stages = stage(ROOT), stage("Iterator::Root::BatchV2", 0)
    assert advice(pipeline([(1, 1)], stages, bottleneck=1)) == stage_advice(stages[1], stages)


def said(
    found: Pipeline, waits: Waiting, level: str, step_ps: float | None = None, judged: bool = False
) -> str:
    verdict = PipelineVerdict(waits, level, "`Map`", "3 ms of work per call", (), "", ())  # type: ignore[arg-type]
    return sentence(found, verdict, "h", step_ps, judged)


CALLS = [(20 * MS, 20 * MS), (40 * MS, 40 * MS)]  # 30 ms on average


@pytest.mark.parametrize(
    ("waits", "level", "judged", "text"),
    [
        (
            Waiting(None, "hidden", 0),
            "unknown",
            False,
            (
                "The pipeline Host:0 on h takes 30.0 ms per call; it is prefetched; nothing in this host's"
                " trace waits for it."
            ),
        ),
        (
            Waiting(None, "outside", 0),
            "unknown",
            False,
            (
                "The pipeline Host:0 on h takes 30.0 ms per call; it runs outside the steps, for example for"
                " validation, so the steps do not wait for it."
            ),
        ),
        (
            Waiting(None, "", 0),
            "unknown",
            False,
            (
                "The pipeline Host:0 on h takes 30.0 ms per call; a rate needs at least two calls, and the"
                " trace has one."
            ),
        ),
        (
            Waiting(0.02, "step", 0),
            "good",
            False,
            (
                "tf.data keeps up: the pipeline Host:0 on h takes 30.0 ms per call; 2.00% of the step time is"
                " spent waiting for input. 2 of 2 calls took over 50 µs, but they overlap with compute."
            ),
        ),
        (
            Waiting(0.02, "step", 0),
            "good",
            True,
            (
                "tf.data keeps up: the pipeline Host:0 on h takes 30.0 ms per call. 2 of 2 calls took over 50"
                " µs, but they overlap with compute."
            ),
        ),
        (
            Waiting(0.1, "time", 1),
            "warn",
            False,
            (
                "Moderately input-bound: 10.0% of the time between calls is spent inside them. The pipeline"
                " Host:0 on h takes 30.0 ms per call; its bottleneck is `Map` with 3 ms of work per call."
            ),
        ),
        (
            Waiting(0.5, "step", 2),
            "bad",
            False,
            (
                "Highly input-bound: 50.0% of the step time is spent waiting for input. The pipeline Host:0"
                " on h takes 30.0 ms per call; its bottleneck is `Map` with 3 ms of work per call."
            ),
        ),
        (
            Waiting(0.5, "step", 2),
            "bad",
            True,
            (
                "The pipeline Host:0 on h takes 30.0 ms per call; its bottleneck is `Map` with 3 ms of work"
                " per call."
            ),
        ),
    ],
)
def test_the_verdict_in_a_sentence(waits: Waiting, level: str, judged: bool, text: str) -> None:
    assert said(pipeline(CALLS), waits, level, judged=judged) == text


def test_a_caller_that_waits_for_a_processor() -> None:
    late = pipeline([(20 * MS, 10 * MS), (40 * MS, 10 * MS)])
    text = said(late, Waiting(0.3, "step", 1, 0.3, "inside", True), "warn")
    assert (
        text
        == "Moderately input-bound: 30.0% of the step time is spent waiting for input. The pipeline Host:0 on"
        " h takes 30.0 ms per call; its elements are ready, but then the caller waits 20.0 ms for a"
        " processor."
    )


def test_calls_that_only_wake_threads() -> None:
    """Half of the calls' time after the elements were ready, and 2% of all time."""
    half = pipeline([(20 * MS, 10 * MS), (40 * MS, 20 * MS)])
    note = (
        " Elements were ready: 15.0 ms of each call (2.00% of the time) is spent waking a thread. Larger"
        " batches need fewer calls."
    )
    assert said(half, Waiting(0.0, "step", 0, 0.02), "good").endswith(note)
    assert not said(half, Waiting(0.0, "step", 0, 0.019), "good").endswith(note)
    less = pipeline([(20 * MS, 11 * MS), (40 * MS, 20 * MS)])
    assert "Elements were ready" not in said(less, Waiting(0.0, "step", 0, 0.02), "good")
    loop = pipeline(
        [(20 * MS, 1), (40 * MS, 2)], (stage("ReduceIterator::Root"), stage("ReduceIterator::Root::Scan", 0))
    )
    assert "Elements were ready" not in said(loop, Waiting(0.0, "step", 0, 0.5), "good")


def test_slow_calls_are_hidden_below_a_fifth_of_a_step() -> None:
    waits = Waiting(0.0, "step", 0)
    assert "overlap with compute" not in said(pipeline(CALLS), waits, "good", 150 * MS)
    assert "overlap with compute" in said(pipeline(CALLS), waits, "good", 151 * MS)
    assert "overlap with compute" not in said(pipeline([(40_000_000, 1)] * 2), waits, "good", 151 * MS)


def estimate(
    kind: str, call: tuple[float, float] | None, step: tuple[float, float] | None = None, **more: Any
) -> Estimate:
    return Estimate(kind, f"<{kind}>", call, step, **more)


def test_the_best_change_in_words() -> None:
    now = estimate("now", (40 * MS, 40 * MS), (100 * MS, 100 * MS))
    parallel = estimate("parallel", (10 * MS, 20 * MS), (70 * MS, 80 * MS), limited_by="Batch")
    prefetch = estimate("prefetch", (5 * MS, 30 * MS), (60 * MS, 90 * MS))
    cache = estimate("cache", (1 * MS, 2 * MS), (50 * MS, 51 * MS))
    text = (
        "<parallel> alone would shorten each step from 100 ms to between 70.0 ms and 80.0 ms (estimated),"
        " then limited by Batch."
    )
    assert _gain((now, parallel, prefetch, cache)) == text  # the one with the least high end
    assert (
        _gain((now, cache))
        == "<cache> alone would shorten each step from 100 ms to between 50.0 ms and 51.0 ms (estimated)."
    )
    noted = estimate("prefetch", (5 * MS, 6 * MS), (60 * MS, 70 * MS), note="if it waits")
    assert _gain((now, parallel, noted)).startswith(
        "If it waits, <prefetch> alone would shorten each step from 100 ms to between 60.0 ms and 70.0 ms"
    )
    assert _gain((now, estimate("parallel", (1, 2), (1, 2), is_no_gain=True), cache)) == ""
    assert _gain((now,)) == ""
    without = estimate("now", (40 * MS, 40 * MS))
    call = "<parallel> alone would shorten each call from 40.0 ms to between 10.0 ms and 20.0 ms (estimated)."
    assert (
        _gain((without, estimate("parallel", (10 * MS, 20 * MS)), estimate("prefetch", (1 * MS, 30 * MS))))
        == call
    )
    none = Estimate("none", "cannot estimate", None, None, "", "no call waited for a stage")
    assert _gain((none,)) == "The gain of a change cannot be estimated: no call waited for a stage."


@pytest.mark.parametrize(
    ("blocking", "lanes", "text"),
    [
        (101, {}, "10.1 ms of work per call"),  # up to 1% more than the calls waited
        (102, {}, "10.2 ms of work per call, part of which ran ahead of the call"),
        (102, {"map": "1"}, "10.2 ms of work per call, part of which ran ahead of the call"),
        (200, {"map": "2", "batch": "6"}, "20.0 ms of work per call, spread over 6 threads"),
        (200, {"map": "3", "batch": "2", "other": "9"}, "20.0 ms of work per call, spread over 3 threads"),
        (200, {"map": "-1"}, "20.0 ms of work per call, part of which ran ahead of the call"),
    ],
)
def test_work_that_is_longer_than_the_call_has_a_reason(
    blocking: int, lanes: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a map below a batch; the other stage is beside them."""
    times = Times(0, 0, 2 * blocking * MS // 10, 0, 2)
    stages = (
        stage(ROOT),
        stage("batch", 0),
        Stage("map", "map", times, True, 1),
        stage("other", 0),
    )
    monkeypatch.setattr(
        finding_module, "parameters_of", lambda *_: {name: {"parallelism": n} for name, n in lanes.items()}
    )
    trace: Any = None
    assert _work_text(trace, pipeline([(12 * MS, 10 * MS)] * 2, stages, bottleneck=2), stages[2]) == text
