"""Loops that wait for data, or do not: step time, number of steps and the share of waiting against what the
programs measured.

Both sides are of one run, so a busy machine moves them together. Steps: all but the first and the last, as
the pages show them. Tolerances: step time 5% and 0.2 ms (the program's clock is read outside the steps);
shares 5 points, and where a trace shows waiting only in part, as said.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.tools.input_pipeline_analyzer.view import TOOL as INPUT
from tb_tpuprof.tools.overview_page.view import TOOL as OVERVIEW
from tb_tpuprof.tools.payload import Payload
from tests.truth.runner import Truth, profiled

SHARE = 0.05

pytestmark = pytest.mark.slow


def pages(truth: Truth) -> tuple[Payload, Payload]:
    """The overview and the input pipeline's page, which agree on steps and waiting."""
    session = truth.session()
    overview, found = OVERVIEW.run(session, None, {}), INPUT.run(session, None, {})
    for name in ("n_steps", "step_time_avg_ps", "input_fraction"):
        assert overview.scalars[name].value == found.scalars[name].value, name
    return overview, found


def jax(loader: str, tracer: int) -> Truth:
    """A JAX loop; tests of tf.data in JAX need both packages."""
    packages = ("jax", "tensorflow") if loader == "tfdata" else ("jax",)
    return profiled("input_jax.py", loader, str(tracer), packages=packages)


def tensorflow(loop: str, data: str) -> Truth:
    """A TensorFlow loop."""
    return profiled("input_tf.py", loop, data, packages=("tensorflow",))


def step_s(truth: Truth) -> float:
    """Mean time from one step's start to the next, without the first and the last step."""
    start = np.array(truth.facts["steps"])[:, 0]
    return float(np.diff(start)[1:].mean())


def waited(truth: Truth) -> float:
    """Share of the steps' time in which the program waited, without the first and the last step."""
    return float(np.mean(truth.facts["wait_s"][1:-1])) / step_s(truth)


def assert_steps(payload: Payload, truth: Truth) -> None:
    """As many steps as ran, as long as they took."""
    assert payload.scalars["n_steps"].value == len(truth.facts["steps"]) - 2
    assert payload.scalars["step_time_avg_ps"].value == pytest.approx(step_s(truth) * 1e12, rel=0.05, abs=2e8)


@pytest.mark.parametrize("loader", ["generator", "before", "queue"])
def test_a_jax_loop_that_waits_for_its_loader_says_so_and_where(loader: str) -> None:
    truth = jax(loader, 1)
    overview, found = pages(truth)
    assert_steps(overview, truth)
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)
    place = "`__next__` (input_jax.py:" if loader == "queue" else "`sleepy_batches` (input_jax.py:"
    for payload in (overview, found):
        assert payload.verdict is not None
        assert payload.verdict.text.startswith("Highly input-bound: each step waits ")
        assert place in payload.verdict.text


@pytest.mark.parametrize("loader", ["generator", "before", "queue"])
def test_without_the_python_tracer_the_same_time_is_untraced_and_possibly_waiting(loader: str) -> None:
    truth = jax(loader, 0)
    overview, found = pages(truth)
    assert_steps(overview, truth)
    # A busy machine leaves time between operations, too.
    assert waited(truth) - SHARE <= overview.scalars["other_fraction"].value <= waited(truth) + 3 * SHARE
    assert found.verdict is not None
    assert found.verdict.text.startswith("Possibly input-bound: ")


@pytest.mark.parametrize("tracer", [0, 1])
def test_steps_of_two_programs_that_fetch_the_loss_are_all_found(tracer: int) -> None:
    truth = jax("loss", tracer)
    overview, _found = pages(truth)
    assert_steps(overview, truth)


@pytest.mark.parametrize("tracer", [0, 1])
def test_time_in_an_annotation_is_not_computing(tracer: int) -> None:
    truth = jax("annotation", tracer)
    overview, found = pages(truth)
    assert_steps(overview, truth)
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)
    for payload in (overview, found):
        assert payload.verdict is not None
        assert payload.verdict.text.endswith("for data in `load`.")


def test_work_of_python_itself_is_python_under_its_function() -> None:
    truth = jax("python", 1)
    overview, _found = pages(truth)
    assert_steps(overview, truth)
    assert overview.scalars["host_python_fraction"].value == pytest.approx(waited(truth), abs=SHARE)
    assert overview.verdict is not None
    assert "`digest` (input_jax.py:" in overview.verdict.text


@pytest.mark.parametrize("tracer", [0, 1])
def test_a_healthy_jax_loop_is_compute_bound_however_it_is_traced(tracer: int) -> None:
    truth = jax("sync", tracer)
    overview, found = pages(truth)
    assert_steps(overview, truth)
    assert overview.verdict is not None
    assert found.verdict is not None
    # On a busy machine threads wait for a processor, which no trace shows: untraced time, never Python's and
    # never data's.
    shares = {
        name: overview.scalars[name].value or 0
        for name in ("host_compute_fraction", "other_fraction", "input_fraction")
    }
    assert shares["host_compute_fraction"] + shares["other_fraction"] > 0.98
    assert shares["host_compute_fraction"] > 0.75
    # Handing over a batch of NumPy is a cost of its own, of some 5% here, when the Python tracer slows it
    # down.
    calm = ("Compute-bound: ", "Moderately transfer-bound: ")
    assert overview.verdict.text.startswith(calm) or shares["other_fraction"] >= 0.03
    assert found.verdict.text.startswith("Not input-bound") or shares["other_fraction"] >= 0.03


@pytest.mark.parametrize("tracer", [0, 1])
def test_steps_that_only_dispatch_last_until_their_work_is_done(tracer: int) -> None:
    """12 steps dispatch within a millisecond; the loop as a whole takes the time of their work."""
    truth = jax("async", tracer)
    overview, found = pages(truth)
    n = len(truth.facts["steps"])
    whole = truth.facts["end"] - truth.facts["steps"][0][0]
    assert overview.scalars["n_steps"].value == n - 2
    assert overview.scalars["step_time_avg_ps"].value == pytest.approx(whole / n * 1e12, rel=0.25)
    assert found.verdict is not None
    assert found.verdict.level == "good"


def test_jax_fed_by_tf_data_waits_in_its_iterator() -> None:
    truth = jax("tfdata", 1)
    overview, _found = pages(truth)
    assert_steps(overview, truth)
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)


def test_a_custom_loop_without_annotations_waits_between_its_functions() -> None:
    truth = tensorflow("custom", "slow")
    overview, found = pages(truth)
    assert_steps(overview, truth)
    # `next` is a call from Python, of which the trace shows all but its own few 100 µs.
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)
    assert found.verdict is not None
    assert found.verdict.level in ("warn", "bad")


def test_a_custom_loop_whose_data_is_ready_does_not_wait() -> None:
    truth = tensorflow("custom", "ready")
    overview, found = pages(truth)
    assert_steps(overview, truth)
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)
    assert found.verdict is not None
    assert found.verdict.level == "good"


@pytest.mark.parametrize("data", ["slow", "ready"])
def test_annotated_steps_win_over_loops_inside(data: str) -> None:
    truth = tensorflow("matloop", data)
    overview, _found = pages(truth)
    assert_steps(overview, truth)
    assert truth.session().map(steps, truth.session().hosts)[0].name[0] == "train 1"
    assert overview.scalars["input_fraction"].value == pytest.approx(waited(truth), abs=SHARE)


def test_with_several_steps_per_execution_each_fetch_is_a_step() -> None:
    truth = tensorflow("spe", "slow")
    overview, found = pages(truth)
    calls = np.array(truth.facts["steps"])
    per_call = 4
    assert overview.scalars["n_steps"].value == len(calls) * per_call - 2
    step = float(np.diff(calls[:, 0]).mean()) / per_call
    assert overview.scalars["step_time_avg_ps"].value == pytest.approx(step * 1e12, rel=0.1)
    # Each batch sleeps 20 ms in its map while the step waits.
    assert overview.scalars["input_fraction"].value == pytest.approx(0.0205 / step, abs=0.1)
    assert found.verdict is not None
    assert found.verdict.text.startswith("Highly input-bound")


def test_a_loop_over_a_dataset_inside_of_a_function_has_steps() -> None:
    truth = tensorflow("graph", "slow")
    overview, found = pages(truth)
    whole = truth.facts["end"] - truth.facts["begin"]
    assert overview.scalars["n_steps"].value in (
        10,
        11,
    )  # 12, and the call that finds the end; the first and the last left out
    assert overview.scalars["step_time_avg_ps"].value == pytest.approx(whole / 12 * 1e12, rel=0.2)
    share = 0.02 * 12 / whole
    assert overview.scalars["input_fraction"].value == pytest.approx(share, abs=0.1)
    assert found.verdict is not None
    assert found.verdict.text.startswith("Highly input-bound")


@pytest.mark.parametrize("data", ["slow", "ready"])
def test_keras_waits_or_does_not(data: str) -> None:
    truth = tensorflow("keras", data)
    overview, found = pages(truth)
    assert_steps(overview, truth)
    assert found.verdict is not None
    if data == "ready":
        assert found.verdict.text.startswith("Not input-bound")
        assert found.verdict.level == "good"
        return
    assert " input-bound: each step waits " in found.verdict.text
    # Each batch sleeps 20 ms in its map while the step waits.
    assert overview.scalars["input_fraction"].value == pytest.approx(0.0215 / step_s(truth), abs=0.08)


def test_a_first_step_that_fills_a_buffer_is_reported() -> None:
    truth = tensorflow("trace", "shuffle")
    overview, found = pages(truth)
    filled = truth.facts["wait_s"][0]
    for payload in (overview, found):
        assert payload.verdict is not None
        text = next(text for text in payload.verdict.details if "(train 0)" in text)
        told = float(text.partition(" waited ")[2].partition(" ms")[0]) / 1e3
        assert told == pytest.approx(filled, rel=0.1)
