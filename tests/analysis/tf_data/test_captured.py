"""Pipelines that TensorFlow 2.21 ran (tests/data/tf_data), each with a planted slow stage, or before and
after a change.
"""

from __future__ import annotations

import json
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.pipeline import pipelines
from tb_tpuprof.analysis.tf_data.what_if import Estimate, what_if
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace.trace import Trace

DATA = Path(__file__).parents[2] / "data" / "tf_data"
INDEX: dict[str, list[dict[str, Any]]] = json.loads((DATA / "index.json").read_text("utf-8"))
PS_PER_MS = 1e9


def opened(name: str) -> Trace:
    return open_trace(str(DATA / f"{name}.xplane.pb.gz"))


def found_bottleneck(name: str) -> str:
    """The long name of the slowest pipeline's bottleneck."""
    slowest = max(pipelines(opened(name)), key=lambda pipeline: pipeline.max_ps)
    stage = slowest.bottleneck_stage
    return stage.long_name if stage else ""


def test_the_planted_stage_is_found_in_95_of_100_pipelines() -> None:
    missed = {
        case["name"]: found
        for case in INDEX["planted"]
        if not re.search(case["stage"], found := found_bottleneck(case["name"]))
    }
    n = len(INDEX["planted"])
    assert n >= 50
    assert {case["kind"] for case in INDEX["planted"]} == {
        "sleep",
        "arithmetic",
        "file",
        "generator",
        "copying",
    }
    assert len(missed) <= 0.05 * n, missed


@cache
def estimated(name: str, change: str) -> Estimate | None:
    """The estimate of a change; None where a pause of the machine made step times vary, which is what the
    reason says.
    """
    trace = opened(name)
    (pipeline,) = pipelines(trace)
    first, *others = what_if(trace, pipeline)
    if first.kind == "none":
        assert first.note.startswith("step times vary: ")
        return None
    (found,) = [estimate for estimate in others if estimate.kind == change]
    return found


def test_changes_that_were_made_gain_what_was_estimated() -> None:
    """Against the step measured after the change was really made, without the profiler: median error ≤ 10%,
    ≥ 90% in the interval.
    """
    errors, inside = [], []
    for case in INDEX["what_if"]:
        found = estimated(case["name"], case["change"])
        if found is None:
            continue
        bounds = found.step_ps
        assert bounds is not None, case["name"]
        low, high = (bound / PS_PER_MS for bound in bounds)
        measured = case["after"]["step_ms"]
        errors.append(abs((low + high) / 2 / measured - 1))
        inside.append(low <= measured <= high)
        assert high - low <= 0.5 * high, (
            f"{case['name']}: an interval of {low:.1f} to {high:.1f} ms says little"
        )
    assert len(errors) >= 0.8 * len(INDEX["what_if"])
    assert statistics.median(errors) <= 0.1
    assert sum(inside) >= 0.9 * len(inside)


def test_every_capture_tells_the_parameters_of_its_stages() -> None:
    from tb_tpuprof.analysis.tf_data.pipeline import call

    trace = opened("parallel_map_sleep")
    parameters = {node.name: dict(node.parameters) for node in call(trace, pipelines(trace)[0], 1).nodes}
    assert parameters["MapAndBatch"]["parallelism"] == "2"
    assert parameters["Root"]["cpu_budget"].isdigit()


@pytest.mark.parametrize("name", [case["name"] for case in INDEX["what_if"]])
def test_the_model_s_now_is_what_was_measured(name: str) -> None:
    trace = opened(name)
    now = what_if(trace, pipelines(trace)[0])[0]
    if now.kind == "none":
        assert now.note.startswith("step times vary: ")
        return
    assert now.kind == "now"
    assert now.step_ps is not None
    assert now.step_ps[0] == pytest.approx(float(steps(trace).duration_ps.mean()))  # as the tile says
