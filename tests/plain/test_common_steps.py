"""`common_steps` compared with plain loops, on random jobs of three to six unlike hosts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.combine import CommonSteps, common_steps
from tests.plain.plain_steps import PlainSteps, plain_steps
from tests.plain.random_hosts import random_job

N_JOBS = 400


def assert_same(result: CommonSteps, expected: PlainSteps) -> None:
    assert [list(range(rows.start, rows.stop)) for rows in result.rows] == expected.rows
    assert list(result.steps.name) == expected.names
    assert result.steps.start_ps.tolist() == expected.start_ps
    assert result.steps.class_ps.tolist() == expected.class_ps
    assert result.steps.duration_ps.tolist() == [sum(row) for row in expected.class_ps]
    waits = {
        (wait.kind, wait.name, wait.file, wait.line): wait.time_ps.tolist() for wait in result.steps.waits
    }
    assert waits == expected.waits
    assert (result.n_without, result.is_disjoint) == (expected.n_without, expected.is_disjoint)


@pytest.mark.parametrize("seed", range(N_JOBS // 50))
def test_the_steps_of_random_hosts_are_those_of_plain_loops(seed: int) -> None:
    rng = random.Random(f"steps {seed}")
    shared = 0
    for _ in range(50):
        job = random_job(rng)
        expected = plain_steps(job.parts, job.start_ns)
        result = common_steps(job.parts, job.start_ns)
        assert_same(result, expected)
        shared += len(expected.names) > 0 and sum(bool(rows) for rows in expected.rows) >= 3
        totals = [(-wait.total_ps, wait.name) for wait in result.steps.waits]
        assert totals == sorted(totals)
    assert shared >= 20  # jobs in which three hosts or more have steps in common


def test_random_jobs_are_unlike() -> None:
    """The sample covers hosts without steps, with other clocks, without devices, and shifted against one
    another.
    """
    rng = random.Random("steps 0")
    jobs = [random_job(rng) for _ in range(N_JOBS)]
    plain = [plain_steps(job.parts, job.start_ns) for job in jobs]
    assert sum(one.n_without > 0 for one in plain) > 20
    assert sum(one.is_disjoint for one in plain) > 10
    assert sum(len({rows[0] for rows in one.rows if rows}) > 1 for one in plain) > 100
    assert sum(len({part.source for part in job.parts if len(part)}) > 1 for job in jobs) > 10


def test_steps_that_are_not_in_order_are_aligned_as_well() -> None:
    """Steps of a host may overlap (asynchronous loops); then all pairs are compared."""
    rng = random.Random("disorder")
    for _ in range(100):
        job = random_job(rng, with_strays=False)
        part = job.parts[0]
        order = np.array(rng.sample(range(len(part)), len(part)))
        job.parts[0] = type(part)(
            part.number,
            part.name,
            part.start_ps[order],
            part.duration_ps[order],
            part.class_ps[order],
            part.source,
        )
        assert_same(common_steps(job.parts, job.start_ns), plain_steps(job.parts, job.start_ns))


def test_without_steps_what_was_left_out_is_counted_over_all_hosts() -> None:
    rng = random.Random(4)
    job = random_job(rng)
    empty = [
        type(part)(
            part.number[:0],
            (),
            part.start_ps[:0],
            part.duration_ps[:0],
            part.class_ps[:0],
            "",
            i + 1,
            0,
            2 * i,
        )
        for i, part in enumerate(job.parts)
    ]
    result = common_steps(empty, job.start_ns)
    n = len(empty)
    assert (result.steps.n_incomplete, result.steps.n_unmarked_runs) == (n * (n + 1) // 2, n * (n - 1))
    assert result.n_without == n
    assert not result.is_disjoint


def test_a_lone_host_with_steps_keeps_all_that_is_known_of_them() -> None:
    rng = random.Random(5)
    job = random_job(rng, with_strays=False)
    none = job.parts[0]
    none = type(none)(none.number[:0], (), none.start_ps[:0], none.duration_ps[:0], none.class_ps[:0])
    for place in range(3):
        parts = [job.parts[1] if i == place else none for i in range(3)]
        result = common_steps(parts, [0, 5, 9])
        assert result.steps is job.parts[1]
        assert result.n_without == 2
        lengths = [rows.stop - rows.start for rows in result.rows]
        assert lengths == [len(job.parts[1]) if i == place else 0 for i in range(3)]
