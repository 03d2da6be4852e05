"""The input pipeline of random TPU hosts compared with plain loops: steps, cores, SparseCores, threads,
several hosts.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from tb_tpuprof.analysis.input.host import host_input, host_time, sum_host_input
from tb_tpuprof.analysis.input.pipeline import (
    InputPart,
    InputPipeline,
    copy_fraction,
    input_part,
    input_pipeline,
)
from tb_tpuprof.analysis.input.tpu import SC_PARTS, TC_PARTS
from tb_tpuprof.analysis.steps.classes import TimeClass
from tests.plain.plain_input import HOST_CATEGORIES, PlainHost, host_times, plain_host, shown_times
from tests.plain.plain_steps import plain_steps
from tests.plain.random_input import DrawnHost, random_hosts

N_JOBS, AT_A_TIME = 80, 10
_WAITING = (TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_TO_DEVICE)
Job = tuple[list[DrawnHost], list[InputPart]]


@cache
def jobs(seed: int) -> list[Job]:
    rng = random.Random(f"input {seed}")
    drawn = [random_hosts(rng) for _ in range(AT_A_TIME)]
    return [(hosts, [input_part(host.trace()) for host in hosts]) for hosts in drawn]


@pytest.mark.parametrize("seed", range(N_JOBS // AT_A_TIME))
def test_parts_of_each_host_s_steps_are_those_of_plain_loops(seed: int) -> None:
    for hosts, parts in jobs(seed):
        for host, part in zip(hosts, parts, strict=True):
            expected = plain_host(host)
            assert part.cores is not None
            assert part.steps.duration_ps.tolist() == expected.duration
            assert {name: times.tolist() for name, times in part.cores.parts.items()} == expected.parts
            assert {name: times.tolist() for name, times in part.cores.sparse.items()} == expected.sparse
            assert part.moved_ps.tolist() == expected.moved
            assert part.cores.cores == tuple(str(core.number) for core in host.cores)
            assert part.cores.input_fraction.tolist() == [pytest.approx(row) for row in expected.shares]
            assert [
                sum(part.cores.parts[name][i] for name in TC_PARTS) for i in range(len(expected.duration))
            ] == (expected.duration)


@pytest.mark.parametrize("seed", range(N_JOBS // AT_A_TIME))
def test_hosts_together_are_the_mean_of_plain_loops(seed: int) -> None:
    for hosts, parts in jobs(seed):
        result = input_pipeline(parts)
        every = [plain_host(host) for host in hosts]
        common = plain_steps([part.steps for part in parts], [host.start_ns for host in hosts])
        durations = [sum(row) for row in common.class_ps]
        assert result.steps.duration_ps.tolist() == durations
        assert_same_cores(result, hosts, every, common.rows)
        assert result.moved_ps == sum(sum(one.moved) for one in every)
        waited = [sum(row[klass] for klass in _WAITING) for row in common.class_ps]
        assert result.input_fraction.tolist() == pytest.approx(
            [time / whole for time, whole in zip(waited, durations, strict=True)]
        )
        shares = [part.fraction for part in result.hosts]
        assert shares == sorted(shares, reverse=True)


def assert_same_cores(
    result: InputPipeline, hosts: list[DrawnHost], every: list[PlainHost], rows: list[list[int]]
) -> None:
    """Means over hosts; rounding losses count as idle."""
    steps = list(zip(*rows, strict=True))
    if not steps:
        assert result.cores is None
        return
    assert result.cores is not None
    for i, at in enumerate(steps):
        means = {
            name: sum(one.parts[name][row] for one, row in zip(every, at, strict=True)) // len(every)
            for name in TC_PARTS
        }
        lost = int(result.steps.duration_ps[i]) - sum(means.values())
        assert 0 <= abs(lost) <= len(TC_PARTS) * len(hosts)
        means["tc_idle"] += lost
        assert {name: result.cores.parts[name][i] for name in TC_PARTS} == means
        with_sparse = [(one, row) for one, row in zip(every, at, strict=True) if one.sparse]
        for name in SC_PARTS if with_sparse else ():
            assert result.cores.parts[name][i] == sum(
                one.sparse[name][row] for one, row in with_sparse
            ) // len(with_sparse)
        shares = [
            (one.shares[k][row], f"{host.name}:{core.number}")
            for host, one, row in zip(hosts, every, at, strict=True)
            for k, core in enumerate(host.cores)
        ]
        most = max(share for share, _ in shares)
        assert result.cores.least[i] == pytest.approx(min(share for share, _ in shares))
        assert result.cores.most[i] == pytest.approx(most)
        worst = [name for share, name in shares if share == pytest.approx(most)]
        assert result.cores.worst[i] in (worst if most > 0 else [""])
    assert ("sc_compute" in result.cores.parts) == any(one.sparse for one in every)


@pytest.mark.parametrize("seed", range(N_JOBS // AT_A_TIME))
def test_times_of_the_hosts_threads_are_those_of_plain_loops(seed: int) -> None:
    for hosts, parts in jobs(seed):
        for chosen in (hosts[:1], hosts):
            total, ratio = host_times(chosen)
            summed = sum_host_input([host_input(host.trace()) for host in chosen])
            assert {name: summed.time_ps(name) for name in HOST_CATEGORIES} == total
            shown = host_time(summed)
            assert shown.time_ps == pytest.approx(shown_times(total, ratio))
            is_known = bool(ratio and total["enqueuing"])
            assert shown.enqueue_fraction == (pytest.approx(ratio) if is_known else -1)
        found_job = input_pipeline(parts)
        copies = 0.0 if ratio else copy_fraction(found_job.steps)
        assert found_job.host_time.time_ps == pytest.approx(shown_times(total, ratio or copies))


def test_random_hosts_are_unlike() -> None:
    """The sample covers unlike cores, waiting in collectives, runs with and without infeed, and
    SparseCores.
    """
    every = [plain_host(host) for seed in range(4) for hosts, _ in jobs(seed) for host in hosts]
    assert sum(any(one.parts["collective_sync"]) for one in every) > 20
    assert sum(any(one.moved) for one in every) > 20
    assert sum(len({tuple(row) for row in one.shares}) > 1 for one in every) > 20
    assert sum(bool(one.sparse) for one in every) > 40
    assert sum(len(one.shares) == 3 for one in every) > 20
    n_enqueuing = sum(host_times(hosts)[1] > 0 for seed in range(4) for hosts, _ in jobs(seed))
    assert n_enqueuing > 10
