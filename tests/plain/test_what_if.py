"""The model of tf.data pipelines compared with simulated threads, and its estimates with plain loops."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.tf_data import what_if as module
from tb_tpuprof.analysis.tf_data.simulation import CONSUMER, Part, simulate
from tb_tpuprof.analysis.tf_data.what_if import Estimate, Model, processor_time, what_if
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.plain.plain_pipeline import means
from tests.plain.plain_what_if import PlainEstimate, estimates
from tests.plain.random_pipelines import MS, random_model, random_parts, times


@pytest.mark.parametrize("seed", range(10))
def test_random_pipelines_take_as_long_as_their_threads_would(seed: int) -> None:
    rng = random.Random(f"pipelines {seed}")
    for _ in range(8):
        parts, consumer, pool = random_parts(rng), times(rng, 20 * MS), rng.randint(1, 5)
        simulated = simulate(parts, np.array(consumer), pool)
        assert (simulated.period_ps, simulated.wait_ps) == pytest.approx(
            means(parts, consumer, pool), rel=1e-9
        )


def part(name: str, parent: int, kind: str, work: float = 0.0, function: float = 0.0, lanes: int = 1) -> Part:
    runs = np.array([function] if function else [])
    return Part(name, parent, kind, 1.0, np.array([work]), runs, lanes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("lanes", "period"), [(1, 60), (2, 30), (3, 20), (4, 20)])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_a_parallel_map_fetches_an_element_on_one_of_its_lanes(
    lanes: int, period: float, is_ordered: bool
) -> None:
    """TensorFlow 2.21, a map of 20 ms below a parallel one of 40 ms: 62, 32, 22 ms per element on 1, 2, 3
    lanes.
    """
    stages = (
        part("Root", -1, "inline"),
        part("ParallelMapV2", 0, "lanes", 0, 40, lanes),
        part("Map", 1, "inline", 20),
    )
    stages = (stages[0], Part(**{**vars(stages[1]), "is_ordered": is_ordered}), stages[2])
    assert simulate(stages, np.zeros(1), 8).period_ps == pytest.approx(period)


@pytest.mark.parametrize("planted", ["Batch", "ParallelMapV2", "TFRecord", CONSUMER])
def test_the_limit_is_the_stage_or_the_consumer_that_is_slow(planted: str) -> None:
    took = {"Batch": 3.0, "ParallelMapV2": 4.0, "TFRecord": 2.0, CONSUMER: 5.0}
    took[planted] *= 20
    stages = (
        part("Root", -1, "inline"),
        part("Prefetch", 0, "prefetch"),
        part("Batch", 1, "inline", took["Batch"]),
        part("ParallelMapV2", 2, "lanes", 0, took["ParallelMapV2"], 3),
        part("TFRecord", 3, "inline", took["TFRecord"]),
    )
    assert simulate(stages, np.array([took[CONSUMER]]), 3).limited_by == planted


def test_two_stages_of_one_thread_count_together_and_the_longer_one_is_named() -> None:
    """Batch and shuffle take 5 + 6 on the caller's thread, each less than the map's 8 on its own."""
    stages = (
        part("Root", -1, "inline"),
        part("Batch", 0, "inline", 5),
        part("Shuffle", 1, "inline", 6),
        part("Prefetch", 2, "prefetch"),
        part("Map", 3, "inline", 8),
    )
    assert simulate(stages, np.zeros(1), 1).limited_by == "Shuffle"


def assert_same(estimate: Estimate, expected: PlainEstimate, names: set[str]) -> None:
    assert estimate.kind == expected.kind
    assert estimate.latency_ps == pytest.approx(expected.latency_ps, rel=1e-9, abs=1.0)
    if expected.step_ps is None:
        assert estimate.step_ps is None
    else:
        assert estimate.step_ps == pytest.approx(expected.step_ps, rel=1e-9)
    assert estimate.limited_by == expected.limit if expected.limit else estimate.limited_by in names
    assert estimate.is_no_gain == expected.is_no_gain
    assert ("if its Python function waits" in estimate.note) == expected.has_condition
    assert (estimate.note == "hardly any gain") == expected.is_no_gain


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_estimates_of_random_pipelines_are_those_of_plain_loops(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"what if {seed}")
    for _ in range(8):
        model = random_model(rng)
        now, _ = means(model.parts, model.consumer_ps.tolist(), model.pool or 99)
        if rng.random() < 0.85:  # mostly within what the model may differ by
            model = Model(**{**vars(model), "period_ps": now * rng.uniform(0.7, 1.45)})
        monkeypatch.setattr(module, "build", lambda _trace, _pipeline, model=model: model)
        results, expected = what_if(None, None), estimates(model)  # type: ignore[arg-type]
        if isinstance(expected, str):
            assert [estimate.kind for estimate in results] == ["none"]
            assert ("overlap" in results[0].note) == (expected == "overlap")
            assert ("does not show the rest" in results[0].note) == (expected == "rest")
            continue
        names = {estimate.name for estimate in model.parts} | {CONSUMER, "Prefetch", "MapAndBatch"}
        for estimate, plain in zip(results, expected, strict=True):
            assert_same(estimate, plain, names)


@pytest.mark.slow
def test_random_models_are_unlike() -> None:
    """The sample covers all changes, all limits, and models that explain too little and too much."""
    rng = random.Random("unlike")
    every = [estimates(random_model(rng)) for _ in range(60)]
    all_estimates = [one for results in every if not isinstance(results, str) for one in results]
    assert {one.kind for one in all_estimates} == {
        "now",
        "parallel",
        "prefetch",
        "parallel_prefetch",
        "cache",
        "remove",
    }
    assert {one.limit.partition(" (")[0] for one in all_estimates} == {
        "",
        "the thread pool",
        "the processors",
    }
    assert {one.is_no_gain for one in all_estimates if one.kind != "now"} == {True, False}
    assert {results for results in every if isinstance(results, str)} == {"rest", "overlap"}


@pytest.mark.parametrize("seed", range(20))
def test_processors_kept_busy_are_those_of_plain_loops(seed: int) -> None:
    """Captures do not begin at 0, threads overlap, and Python functions are excluded."""
    rng = random.Random(f"processors {seed}")
    begin = rng.randint(1, 50) * 10**9
    lines = {}
    for thread in range(rng.randint(3, 6)):
        position_ps, events = begin + rng.randint(0, 1000), []
        for _ in range(rng.randint(1, 6)):
            length = rng.randint(10, 900)
            events.append(DrawnEvent(EXECUTOR if rng.random() < 0.7 else "other", position_ps, length))
            if rng.random() < 0.5:
                name = rng.choice(("PyFunc", "Map/EagerPyFunc", "x:PyFuncStateless", "PyFunctions"))
                events.append(DrawnEvent(name, position_ps, rng.randint(1, length)))
            position_ps += length + rng.randint(0, 300)
        lines[f"thread {thread}"] = events
    every = [event for events in lines.values() for event in events]
    executed = sum(event.duration_ps for event in every if event.name == EXECUTOR)
    python = sum(event.duration_ps for event in every if event.name.endswith(("PyFunc", "PyFuncStateless")))
    python = min(python, executed)
    span = max(event.start_ps + event.duration_ps for event in every) - min(event.start_ps for event in every)
    busy, share = processor_time(build([DrawnPlane("/host:CPU", lines)]))
    assert busy == pytest.approx((executed - python) / span)
    assert share == pytest.approx(python / executed if executed else 0.0)
