"""The small exam of the gate: real jobs, one of each cause, and healthy ones, run and diagnosed here and now.
The large one is `make exam`.

Causes take half of a step, and most of them sleep: a busy machine must not change what is right. What the
gate does not hold, the large exam does: small shares, contention and warm-up, which a busy machine plants by
itself, pairs, several devices and hosts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.exam.jobs import PLANTED, Draw, Job
from tests.exam.runner import run
from tests.exam.score import Mark, mark
from tests.exam.tracing import Pair, compared, diagnosed, pair

SEED = 17
# Framework, how the cause is planted, its share, whether Python is traced, whether steps are annotated.
SMALL: tuple[tuple[str, str, float, int, bool], ...] = (
    ("jax", "generator sleeps", 0.5, 1, False),
    ("jax", "python sleeps", 0.5, 1, True),
    ("jax", "new function in each step", 0.5, 0, True),
    ("jax", "item in a function", 0.45, 1, True),
    ("jax", "io_callback sleeps", 0.5, 1, False),
    ("jax", "small operations one by one", 0.5, 1, True),
    ("jax", "savez every 4th step", 0.5, 1, True),
    ("jax", "", 0.0, 1, False),
    ("tensorflow", "tf.data map", 0.5, 0, True),
    ("tensorflow", "new function in each step", 0.5, 0, True),
    ("tensorflow", "numpy_function sleeps", 0.5, 0, True),
    ("tensorflow", "", 0.0, 0, True),
)
NOT_ALWAYS_SEEN = {
    "io_callback sleeps",
    "numpy_function sleeps",
}  # on threads of the runtime, of which profiles have some
QUIET_CORES = 0.25  # what other processes may take before a wrong answer is blamed on them, once


def small_exam() -> dict[str, Job]:
    """The jobs by their labels. They wait for each step, on one device, so that nothing hides the cause."""
    draw, found = Draw(SEED), {}
    for framework, name, share, tracer, is_annotated in SMALL:
        parts = tuple(part for part in PLANTED if part.name == name and framework in part.frameworks)
        job = draw.job(parts, (share, 0.0), (tracer, is_annotated), framework, (1, "wait"))
        job = job if any(part.is_async for part in parts) else replace(job, end="wait")
        found[f"{framework} {name or 'healthy'}"] = job
    return found


JOBS = small_exam()


def examined(job: Job, folder: Path) -> tuple[Mark, Pair | None, dict[str, Any]]:
    """Run a job: its mark, the comparison with the same profile without Python frames, and its truth."""
    truth = run(job, folder, removed=False, patience_s=2.0)
    found = compared(truth, folder / job.name)
    if found is not None:
        return found.frames, found, truth
    (run_dir,) = (folder / job.name / "plugins" / "profile").iterdir()
    return mark(truth, diagnosed(run_dir)), None, truth


def problems(job: Job, found: Mark, frames: Pair | None) -> list[str]:
    """What is wrong about an answer."""
    wrong = [found.why] if found.why else []
    if (
        job.cause
        and found.is_right
        and found.is_culprit_right is None
        and job.parts[0].name not in NOT_ALWAYS_SEEN
    ):
        wrong.append("the profile does not show whom the answer should name")
    if not found.is_sum_right:
        wrong.append("causes do not sum to the step")
    if frames is not None and frames.worse:
        wrong.append(f"frames make it worse: {frames.none_text} became {frames.frames_text}")
    return wrong


def test_it_covers_what_it_must() -> None:
    causes = {job.cause for job in JOBS.values()}
    assert causes >= {
        "input",
        "python",
        "compilation",
        "synchronization",
        "callbacks",
        "dispatch",
        "periodic",
        "",
    }
    assert {job.framework for job in JOBS.values()} == {"jax", "tensorflow"}
    assert {job.tracer for job in JOBS.values()} == {0, 1}
    assert {job.is_annotated for job in JOBS.values()} == {False, True}
    assert len(JOBS) == len(SMALL)
    assert all(len(job.parts) == bool(name) for job, (_, name, *_) in zip(JOBS.values(), SMALL, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("label", JOBS)
def test_the_first_finding_names_cause_and_culprit(label: str, tmp_path: Path) -> None:
    job = JOBS[label]
    found, frames, truth = examined(job, tmp_path)
    if problems(job, found, frames) and truth["outside_cores"] > QUIET_CORES:
        print(
            f"Once more, for other processes took {truth['outside_cores']:.1f} cores: "
            f"{problems(job, found, frames)}"
        )
        found, frames, truth = examined(job, tmp_path / "again")
    assert not problems(job, found, frames), (
        f"{job.label}: met {truth.get('share', 0):.0%}, {truth['outside_cores']:.1f} cores busy outside"
    )
    assert (frames is not None) == bool(job.tracer)


def test_what_is_wrong_is_found() -> None:
    """The test above can fail: made-up answers about a job of it."""
    job = JOBS["jax python sleeps"]
    truth: dict[str, Any] = {
        "name": "j1",
        "label": "j1",
        "cause": "python",
        "accepted": [["python"]],
        "target": [0.5, 0.0],
        "tracer": 1,
        "hidden": [False],
        "host": "",
        "step_s": 0.04,
        "culprits": [{"function": "hop", "names": ["hop"], "places": [], "visible": True}],
    }
    finding = {"cause": "python", "share": 0.5, "culprit": {"name": "hop"}, "gain_ps": None}
    answer = {"findings": [finding], "level": "bad", "step_time_ps": 4e10, "causes": [{"time_ps": 4e10}]}
    wrong = {**answer, "findings": [{**finding, "cause": "input"}]}
    misnamed = {**answer, "findings": [{**finding, "culprit": {"name": "tick"}}]}
    unseen = {**truth, "culprits": [{**truth["culprits"][0], "visible": False}]}
    assert problems(job, mark(truth, answer), None) == []
    assert problems(job, mark(truth, wrong), None) == ["answered input"]
    assert problems(job, mark(truth, misnamed), None) == ["named tick, not hop"]
    assert problems(job, mark(unseen, answer), None) == [
        "the profile does not show whom the answer should name"
    ]
    assert problems(job, mark(truth, {**answer, "causes": []}), None) == ["causes do not sum to the step"]
    assert len(problems(job, mark(truth, wrong), pair(truth, wrong, truth, answer))) == 2
