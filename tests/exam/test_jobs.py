"""The exam's jobs: their names say nothing, they cover what they must, and a seed always gives
the same ones.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exam.jobs import EVERY_CELL, Job, jobs
from tests.exam.programs import Source
from tests.exam.runner import HARNESS, run

SEEDS = (1, 2, 77)
# What a name must not give away.
TELLING = frozenset(
    re.findall(
        r"\w+",
        """
    async batch batches bottleneck busy cache callback callbacks checkpoint compile compilation contention copy data dataset
    device dispatch eager eval evaluate fetch generator healthy input iterator item items jit load loader log logger logs metric
    metrics model periodic prefetch print producer python queue read reader retrace save saver slow sleep spin stall step steps
    sync train trainer transfer wait warm warmup worker write writer
    """,
    )
)
# Prescribed by Keras, TensorFlow and JAX.
PRESCRIBED = {
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_epoch_end",
    "logs",
    "inject_prefetch",
    "__init__",
    "__len__",
    "__getitem__",
}


def names(text: str) -> Iterator[str]:
    """All names that a source gives: functions, classes, arguments, variables, attributes; and its one-word
    texts.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and not re.search(r"\s", node.value)
        ):
            yield node.value


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


@pytest.mark.parametrize("seed", SEEDS)
def test_names_say_nothing(seed: int) -> None:
    for job in jobs(seed):
        for file, text in Source(job).files.items():
            given = {file.removesuffix(".py"), job.names["rig"], *names(text)} - PRESCRIBED
            telling = {name for name in given if words(name) & TELLING}
            assert not telling, f"{job.label}: {telling}"


def test_the_harness_says_nothing() -> None:
    """Its texts are keys of JSON, which no profile shows."""
    tree = ast.parse(HARNESS.read_text("utf-8"))
    given = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert not {name for name in given if words(name) & TELLING}


def test_a_telling_name_is_found() -> None:
    text = "def slow_path(x):\n    saveAll = x\n    hop.last_step = 'loader'\n"
    assert {name for name in names(text) if words(name) & TELLING} == {
        "slow_path",
        "saveAll",
        "last_step",
        "loader",
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_cover_what_they_must(seed: int) -> None:
    drawn = jobs(seed)
    planted, healthy = [job for job in drawn if job.cause], [job for job in drawn if not job.cause]
    assert len(planted) >= 84
    assert len(healthy) >= 24
    single = [job for job in planted if job.share and not job.second]
    cells = Counter(
        (job.cause, job.parts[0].shares.index(job.share), job.tracer, job.is_annotated) for job in single
    )
    for cause in EVERY_CELL:
        assert [
            cells[cause, share, tracer, annotated]
            for share in range(3)
            for tracer in (0, 1)
            for annotated in (False, True)
        ] == [1] * 12
    for cause in ("contention", "transfers"):
        some = [job for job in planted if job.cause == cause and not job.second]
        assert Counter(job.parts[0].shares.index(job.share) for job in some) == {0: 2, 1: 2, 2: 2}
        assert Counter(job.tracer for job in some) == {0: 3, 1: 3}
        assert {job.is_annotated for job in some} == {True, False}
    assert Counter((job.tracer, job.is_annotated) for job in planted if job.cause == "warm_up") == Counter(
        {(tracer, annotated): 1 for tracer in (0, 1) for annotated in (False, True)}
    )
    assert len([job for job in planted if job.second]) >= 8
    for some in (planted, healthy):
        assert {job.framework for job in some} == {"jax", "tensorflow", "keras"}
        assert {job.tracer for job in some} == {0, 1}
        assert {job.n_devices for job in some} == {1, 2, 4}
        assert {job.n_hosts for job in some} == {1, 2}
    assert {job.end for job in healthy if job.framework == "jax"} == {"none", "wait", "float"}


@pytest.mark.parametrize("seed", SEEDS)
def test_mechanisms_are_spread(seed: int) -> None:
    """Each cause is planted in each of its ways at least once, and none much more often than the others."""
    uses = Counter(part for job in jobs(seed) for part in job.parts if part.cause)
    for cause in EVERY_CELL:
        times = [uses[part] for part in uses if part.cause == cause]
        assert max(times) - min(times) <= 3, cause


def test_a_seed_gives_the_same_jobs() -> None:
    def drawn(seed: int) -> list[tuple[Job, dict[str, str]]]:
        jobs.cache_clear()
        return [(job, Source(job).files) for job in jobs(seed)]

    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)


def test_numbers_say_nothing() -> None:
    """Jobs of one cause do not follow one another."""
    causes = [job.cause for job in jobs(1)]
    assert sum(one == other for one, other in itertools.pairwise(causes)) < len(causes) / 3


@pytest.mark.parametrize("seed", SEEDS)
def test_culprits_stand_where_it_is_said(seed: int) -> None:
    for job in jobs(seed):
        source = Source(job)
        assert source.main in source.files
        for place, part in enumerate(job.parts):
            culprit = source.culprit(place)
            assert bool(part.culprits) == bool(culprit["places"]), job.label
            assert culprit["visible"] <= bool(culprit["names"])
            for drawn in culprit["places"]:
                line = source.files[drawn["file"]].splitlines()[drawn["line"] - 1].strip()
                assert re.match(rf"(def|class) {drawn['name']}\b", line)


def test_steps_come_in_whole_laps() -> None:
    for job in jobs(1):
        assert 12 <= job.n_steps <= 25
        assert all(job.n_steps % part.lap == 0 for part in job.parts)


def test_pairs_have_two_causes_whose_amount_can_be_chosen() -> None:
    for job in jobs(1):
        if job.second:
            assert job.cause != job.second
            assert job.share > job.second_share > 0
            assert all(part.tune == "amount" and part.is_direct for part in job.parts)


@pytest.mark.slow
def test_a_job_runs(tmp_path: Path) -> None:
    """One job of Python work: its profile is there, and what it measured agrees with itself."""
    some = [
        job
        for job in jobs(1)
        if (job.framework, job.cause, job.second, job.share) == ("jax", "python", "", 0.3)
    ]
    job = next(job for job in some if job.end != "none")
    truth = run(job, tmp_path, removed=True)
    assert len(list((tmp_path / job.name).rglob("*.xplane.pb"))) == job.n_hosts
    assert len(list((tmp_path / "removed" / job.name).rglob("*.xplane.pb"))) == job.n_hosts
    measured = truth["measured"]["with"]
    assert len(measured["steps"]) == job.n_steps
    assert 0.1 < measured["spent_s"] / truth["step_s"] < 0.6
    assert truth["measured"]["without"]["spent_s"] == 0
    assert truth["cause"] == "python"
    assert run(job, tmp_path, removed=True) == truth
