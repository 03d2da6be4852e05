"""Stragglers of random pods compared with plain loops: medians, onset, evidence, causes and gain; and whom
they name.
"""

from __future__ import annotations

import math
import random
from statistics import mean, median

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import PodCore
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part
from tb_tpuprof.analysis.pod.stragglers import Slow, gain, slow_units, stragglers

Times = list[list[float]]  # by unit and step
CAUSES = {
    "compute": (Part.HIGH_FLOPS, Part.LOW_FLOPS, Part.COMPUTE, Part.HOST_COMPUTE, Part.PYTHON, Part.COMPILE),
    "input": (Part.INPUT, Part.OUTPUT),
    "network": (Part.COLLECTIVE, Part.SEND, Part.DEVICE_COPY, Part.COPY_WAIT),
    "idle": (Part.IDLE, Part.WAIT, Part.LAUNCH),
}


def others(times: Times, unit: int, step: int) -> float:
    """The median of the other units."""
    return median(times[i][step] for i in range(len(times)) if i != unit)


def plain_slow(own_ps: Times) -> list[tuple[int, int, float, float, float]]:
    """(unit, since, excess, fraction, evidence) of slow units, as the module's documentation defines them."""
    n_units, n_steps = len(own_ps), len(own_ps[0])
    if n_units < 2 or n_steps < 5:
        return []
    ratio = [
        [math.log(max(own_ps[i][k], 1.0) / max(others(own_ps, i, k), 1.0)) for k in range(n_steps)]
        for i in range(n_units)
    ]
    changes = [abs(row[k + 1] - row[k]) for row in ratio for k in range(n_steps - 1)]
    rms = math.sqrt(mean(min(change, 1.0) ** 2 for change in changes) / 2)
    sigma = max(median(changes) / 0.6745 / math.sqrt(2), rms / 4, 1e-6)
    chance = math.sqrt(2 * math.log(n_units * n_steps)) + 3
    usual = median(abs(median(row)) for row in ratio) / 0.6745 if n_units >= 4 else 0.0
    slow = []
    for i, row in enumerate(ratio):
        best, since = -math.inf, 0
        for k in range(n_steps - 2):  # at least three steps follow
            evidence = mean(row[k:]) * math.sqrt(n_steps - k) / sigma
            if evidence > best:
                best, since = evidence, k
        level = mean(row[since:])
        is_slow = level >= math.log(1.05) and median(row[since:]) >= math.log(1.05)
        if is_slow and best >= chance and level >= 4 * usual:
            expected = [others(own_ps, i, k) for k in range(since, n_steps)]
            excess = mean(own_ps[i][since:]) - mean(expected)
            slow.append((i, since, excess, excess / max(mean(expected), 1.0), best))
    return sorted(slow, key=lambda one: -one[2])


def random_own(rng: random.Random) -> Times:
    """Three to nine units of which some are slow from some step on, by different factors."""
    n_units, n_steps = rng.randint(3, 9), rng.randint(5, 20)
    shared = [rng.uniform(8e8, 1.2e9) for _ in range(n_steps)]
    noise = rng.choice((0.0, 0.001, 0.02))
    own_ps = [[time * (1 + rng.uniform(-noise, noise)) for time in shared] for _ in range(n_units)]
    for unit in rng.sample(range(n_units), rng.choice((0, 1, 1, 2))):
        since, factor = rng.randrange(n_steps), rng.uniform(1.02, 1.6)
        own_ps[unit] = [time * factor if k >= since else time for k, time in enumerate(own_ps[unit])]
    return own_ps


@pytest.mark.parametrize("seed", range(10))
def test_slow_units_are_those_of_plain_loops(seed: int) -> None:
    rng = random.Random(f"slow {seed}")
    n_slow = 0
    for _ in range(40):
        own_ps = random_own(rng)
        result, expected = slow_units(np.array(own_ps)), plain_slow(own_ps)
        assert [(slow.unit, slow.since) for slow in result] == [row[:2] for row in expected]
        for slow, row in zip(result, expected, strict=True):
            assert (slow.excess_ps, slow.excess_fraction, slow.evidence) == pytest.approx(row[2:], rel=1e-6)
            assert slow.own_ps == pytest.approx(mean(own_ps[slow.unit][slow.since :]))
            assert slow.own_ps - slow.usual_ps == pytest.approx(slow.excess_ps, rel=1e-6)
            assert slow.causes == {"compute": 0.0}
        n_slow += len(expected)
    assert n_slow >= 5


@pytest.mark.parametrize("seed", range(5))
def test_causes_are_excesses_over_the_other_units_medians(seed: int) -> None:
    rng = random.Random(f"causes {seed}")
    for _ in range(10):
        n_units, n_steps = rng.randint(3, 6), rng.randint(6, 12)
        part_ps = np.array(
            [
                [[rng.uniform(1e6, 9e6) for _ in range(N_PARTS)] for _ in range(n_steps)]
                for _ in range(n_units)
            ]
        )
        slow_unit, cause = rng.randrange(n_units), rng.choice(list(CAUSES))
        part_ps[slow_unit, :, CAUSES[cause][rng.randrange(len(CAUSES[cause]))]] += 3e8
        slow_found = slow_units(part_ps.sum(axis=2), part_ps)
        assert [slow.unit for slow in slow_found] == [slow_unit]
        assert slow_found[0].cause == cause
        for name, parts in CAUSES.items():
            times = [
                [float(sum(part_ps[i, k, part] for part in parts)) for k in range(n_steps)]
                for i in range(n_units)
            ]
            excess = mean(
                times[slow_unit][k] - others(times, slow_unit, k) for k in range(slow_found[0].since, n_steps)
            )
            assert slow_found[0].causes[name] == pytest.approx(excess)


def plain_gain(own_ps: Times, unit_of: list[int], slow: tuple[int, int], is_synchronous: bool) -> float:
    """The drop of the job's step if all rows of a unit became faster by what their mean exceeds the others'
    median.
    """
    unit, since = slow
    steps = range(since, len(own_ps[0]))
    means = [
        [
            mean(own_ps[row][k] for row in range(len(own_ps)) if unit_of[row] == one)
            for k in range(len(own_ps[0]))
        ]
        for one in sorted(set(unit_of))
    ]
    better = [
        [
            time - max(means[unit][k] - others(means, unit, k), 0) if unit_of[row] == unit else time
            for k, time in enumerate(line)
        ]
        for row, line in enumerate(own_ps)
    ]
    if is_synchronous:
        return mean(max(line[k] for line in own_ps) for k in steps) - mean(
            max(line[k] for line in better) for k in steps
        )
    return max(mean(line[k] for k in steps) for line in own_ps) - max(
        mean(line[k] for k in steps) for line in better
    )


@pytest.mark.parametrize("is_synchronous", [True, False])
def test_the_gain_is_that_of_plain_loops(is_synchronous: bool) -> None:
    rng = random.Random("gain")
    for _ in range(60):
        own_ps = random_own(rng)
        sizes = [rng.randint(1, 3) for _ in range(len(own_ps))]
        unit_of = [unit for unit, size in enumerate(sizes) for _ in range(size)][: len(own_ps)]
        if max(unit_of) < 1:
            continue
        slow = Slow(rng.randint(0, max(unit_of)), rng.randrange(len(own_ps[0])), 0.0, 0.0, 0.0, {}, 0.0, 0.0)
        result = gain(np.array(own_ps), slow, is_synchronous, np.array(unit_of))
        assert result == pytest.approx(
            plain_gain(own_ps, unit_of, (slow.unit, slow.since), is_synchronous), abs=1e-3
        )
        alone = gain(np.array(own_ps), slow, is_synchronous)
        assert alone == pytest.approx(
            plain_gain(own_ps, list(range(len(own_ps))), (slow.unit, slow.since), is_synchronous), abs=1e-3
        )


def pod_of(n_cores: list[int], slow_cores: set[int], n_steps: int = 8) -> Pod:
    """Hosts with the given numbers of cores, which compute for 100 µs and 0.1 µs more per core (slow cores
    50% longer) and wait for the slowest.
    """
    n = sum(n_cores)
    compute = np.array(
        [
            [(100 + i / 10 + k % 2) * (1.5 if i in slow_cores else 1.0) for k in range(n_steps)]
            for i in range(n)
        ]
    )
    compute = (compute * 1e6).astype(np.int64)
    total = np.broadcast_to(compute.max(axis=0) + 10_000_000, (n, n_steps)).astype(np.int64)
    part_ps = np.zeros((n, n_steps, N_PARTS), np.int64)
    part_ps[:, :, Part.COMPUTE] = compute
    part_ps[:, :, Part.COLLECTIVE_WAIT] = total - compute
    cores = tuple(PodCore(f"core {i}", i, i, i, i) for i in range(n))
    zeros = np.zeros((n, n_steps), np.int64)
    return Pod(
        tuple(f"host {i}" for i in range(len(n_cores))),
        "TPU",
        "TPU v4",
        cores,
        np.repeat(np.arange(len(n_cores)), n_cores),
        np.arange(n),
        tuple(map(str, range(n_steps))),
        part_ps,
        total,
        (),
        (),
        0,
        False,
        0,
        zeros,
        n,
        np.zeros(n_steps),
        np.zeros(n_steps),
    )


@pytest.mark.parametrize(
    ("n_cores", "slow_cores", "named"),
    [
        ([4, 4, 4, 4, 4], {5}, {("host 1", 5)}),  # one of four cores: the core
        ([4, 4, 4, 4, 4], {4, 7}, {("host 1", 4), ("host 1", 7)}),  # half of them: the cores
        ([4, 4, 4, 4, 4], {4, 5, 7}, {("host 1", -1)}),  # more than half: the host
        ([4, 4, 4, 4, 4], {4, 5, 6, 7}, {("host 1", -1)}),
        ([1, 1, 1, 1, 1, 1], {2}, {("host 2", -1)}),  # a host is its only core
        ([2, 1, 3, 2, 2, 4], {2}, {("host 1", -1)}),
        ([2, 1, 3, 2, 2, 4], {3, 10}, {("host 2", 3), ("host 5", 10)}),
        ([4, 4, 4, 4, 4], set(), set()),
    ],
)
def test_a_host_is_named_if_most_of_its_cores_are_slow_else_the_cores(
    n_cores: list[int], slow_cores: set[int], named: set[tuple[str, int]]
) -> None:
    pod = pod_of(n_cores, slow_cores)
    all_stragglers = stragglers(pod)
    assert {(straggler.host, straggler.core) for straggler in all_stragglers} == named
    excesses = [straggler.slow.excess_ps for straggler in all_stragglers]
    assert excesses == sorted(excesses, reverse=True)
    for straggler in all_stragglers:
        assert straggler.slow.cause == "compute"
        assert straggler.job_ps == pytest.approx(pod.total_ps.max(axis=0).mean())
        assert 0 <= straggler.gain_ps < straggler.job_ps
        assert straggler.gain_fraction == pytest.approx(straggler.gain_ps / straggler.job_ps)


def test_the_gain_of_a_straggler_ends_the_idling_of_others() -> None:
    """Cores that idle while the straggler works do not set the step's time once it is faster: with host 1
    like the median the slowest core computes for 100.9 µs on average.
    """
    pod = pod_of([1, 1, 1, 1, 1], {1})
    idle = pod.part_ps[:, :, Part.COLLECTIVE_WAIT].copy()
    idle[1] = 0
    pod.part_ps[:, :, Part.COLLECTIVE_WAIT] -= idle
    pod.part_ps[:, :, Part.IDLE] += idle
    pod.part_ps[1, :, Part.COLLECTIVE] = 1  # a collective makes the cores synchronous
    named = stragglers(pod)
    assert [one.host for one in named] == ["host 1"]
    # From (100.1 + 0.5) × 1.5 = 150.9 to 100.4 + 0.5 µs
    assert named[0].gain_ps == pytest.approx((150.9 - 100.9) * 1e6, rel=1e-3)
