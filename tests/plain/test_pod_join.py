"""The pod of random hosts compared with plain loops: parts, waiting, collectives, links, own time, the job's
step.
"""

from __future__ import annotations

import random

import pytest

from tb_tpuprof.analysis.pod.join import Pod, join
from tb_tpuprof.analysis.pod.parts import Part
from tests.plain.plain_pod import PlainPod
from tests.plain.random_pods import random_pod

N_PODS, AT_A_TIME = 200, 25


def pods(seed: int) -> list[tuple[Pod, PlainPod]]:
    rng = random.Random(f"pods {seed}")
    drawn = [random_pod(rng) for _ in range(AT_A_TIME)]
    plain = [PlainPod(hosts, added) for hosts, added in drawn]
    return [(join(hosts, added), one) for (hosts, added), one in zip(drawn, plain, strict=True)]


def assert_same_cores(pod: Pod, expected: PlainPod) -> None:
    assert list(pod.hosts) == [part.host for part, _ in expected.hosts]
    assert [core.name for core in pod.cores] == [part.cores[k].name for part, k, _ in expected.cores]
    assert [pod.hosts[i] for i in pod.host_of.tolist()] == [part.host for part, _, _ in expected.cores]
    assert pod.device_of.tolist() == expected.device_of
    assert list(pod.step_names) == expected.names[: expected.n_steps]
    assert pod.part_ps.shape[:2] == pod.total_ps.shape == (len(expected.cores), expected.n_steps)
    for (core, step), parts in expected.part_ps.items():
        assert pod.part_ps[core, step].tolist() == parts
        assert pod.total_ps[core, step] == expected.total_ps[core, step]
        assert pod.late_idle_ps[core, step] == expected.late_idle[core, step]
        assert pod.own_ps[core, step] == expected.own_ps(core, step)
    assert pod.n_devices == sum(part.n_devices for part, _ in expected.hosts)
    assert pod.all_idle_ps.tolist() == pytest.approx(expected.mean_by_step("all_idle"))
    assert pod.host_step_ps.tolist() == pytest.approx(expected.mean_by_step("duration"))
    assert dict(pod.apart) == expected.apart


@pytest.mark.parametrize("seed", range(N_PODS // AT_A_TIME))
def test_random_pods_are_those_of_plain_loops(seed: int) -> None:
    shared = 0
    for pod, expected in pods(seed):
        assert_same_cores(pod, expected)
        assert pod.is_synchronous == expected.is_synchronous
        for since in (0, 1):
            assert pod.job_ps(since) == pytest.approx(expected.job_ps(since))
        shared += len(expected.hosts) >= 3 and len(expected.cores) >= 4
    assert shared >= 8


@pytest.mark.parametrize("seed", range(N_PODS // AT_A_TIME))
def test_collectives_and_links_of_random_pods_are_those_of_plain_loops(seed: int) -> None:
    for pod, expected in pods(seed):
        assert len(pod.collectives) == len(expected.collectives)
        for collective, plain in zip(pod.collectives, expected.collectives, strict=True):
            assert collective.op.name == plain.names[0]
            assert [place + 1 for place in collective.ordinals] == [
                int(name.partition("#")[2]) for name in plain.names if "#" in name
            ]
            assert (collective.n_per_step, collective.transfer_ps, collective.wait_ps) == pytest.approx(
                (plain.n_per_step, plain.transfer_ps, plain.wait_ps)
            )
            assert (collective.groups, collective.group_size, collective.n_seen) == (
                plain.groups,
                plain.group_size,
                plain.n_seen,
            )
        links, n_out = expected.channels()
        assert pod.n_unplaced == n_out
        assert [
            (collective.source, collective.target, collective.ops, collective.size_bytes)
            for collective in pod.channels
        ] == [link[:4] for link in links]
        for channel, link in zip(pod.channels, links, strict=True):
            times = channel.latency_ps, channel.send_delay_ps, channel.n_per_step
            assert times == pytest.approx(link[4:], nan_ok=True)


def test_random_pods_are_unlike() -> None:
    """The sample covers waiting cores, groups, links that lead out, late idling, and hosts captured apart."""
    every = [pair for seed in range(4) for pair in pods(seed)]
    assert sum(bool(found.part_ps[:, :, Part.COLLECTIVE_WAIT].any()) for found, _ in every) > 50
    assert sum(bool(found.late_idle_ps.any()) for found, _ in every) > 50
    assert sum(any(len(one.groups) > 1 for one in found.collectives) for found, _ in every) > 30
    assert sum(found.n_unplaced > 0 for found, _ in every) > 20
    assert sum(bool(found.channels) for found, _ in every) > 30
    assert sum(bool(found.apart) for found, _ in every) > 5
    assert sum(any(len(one.ordinals) > 1 for one in found.collectives) for found, _ in every) > 10
