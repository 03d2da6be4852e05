"""Findings about slow hosts: outliers of runs with few steps, whole sentences, and what is gained.

Hosts compute for so many µs in each of their steps, and wait for one another in collectives.
"""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part
from tb_tpuprof.analysis.diagnosis.slow_hosts import _outliers, _own_ps, slow_hosts
from tests.analysis.diagnosis.drawn import columns, evidence, part
from tests.builders import PS

N = 3  # steps, too few to compare them one by one


def host(name: str, own_us: float, *parts: Part, exchange_us: float = 0.0) -> HostEvidence:
    """A host whose steps have so much work of its own, of which the parts are causes and the rest
    computes.
    """
    total = columns(*[own_us + exchange_us] * N)
    exchange = part(Cause.COMMUNICATION, *[exchange_us] * N)
    rest = total - np.sum([one.time_ps for one in (*parts, exchange)], axis=0)
    computes = replace(exchange, cause=Cause.COMPUTE, time_ps=rest)
    steps_us = [own_us + exchange_us] * N
    return evidence(*parts, exchange, computes, host=name, steps_us=steps_us)


def others(*exchange_us: float) -> list[HostEvidence]:
    """Three unlike hosts; the median of them and of one with more work is 103 µs."""
    waits = exchange_us or (0, 0, 0)
    return [
        host(name, own, exchange_us=wait)
        for name, own, wait in zip("abd", (100, 102, 104), waits, strict=True)
    ]


def compared(*hosts: HostEvidence, own: list[list[Finding]] | None = None) -> list[Finding]:
    return slow_hosts(hosts, own or [[] for _ in hosts], [slice(0, N)] * len(hosts))


def test_a_hosts_own_time_is_what_it_does_not_exchange() -> None:
    exchanges = [part(Cause.COMMUNICATION, 5, 10, 20), part(Cause.COMMUNICATION, 1, 2, 3)]
    given = evidence(*exchanges, part(Cause.INPUT, 50, 50, 50))
    assert (_own_ps(given) / PS).tolist() == [94, 188, 277]
    assert (_own_ps(evidence(part(Cause.INPUT, 50, 50, 50))) / PS).tolist() == [100, 200, 300]


def outliers_one_by_one(values: list[float]) -> dict[int, float]:
    """Those whose modified z-score is above 3.5 (Iglewicz and Hoaglin) and that exceed the median by 5%."""
    if len(values) < 3:
        return {}
    middle = median(values)
    spread = max(median([abs(value - middle) for value in values]), 0.01 * middle, 1.0)
    return {
        i: value - middle
        for i, value in enumerate(values)
        if 0.6745 * (value - middle) / spread > 3.5 and value > 1.05 * middle
    }


def test_outliers_are_those_of_a_plain_loop() -> None:
    rng = random.Random(7)
    n_slow = 0
    for _ in range(400):
        wide = rng.choice((0.001, 0.01, 0.03))
        values = [1e6 * rng.gauss(1, wide) for _ in range(rng.randint(1, 9))]
        if rng.random() < 0.7:
            values[rng.randrange(len(values))] *= rng.uniform(1.03, 1.2)
        expected = outliers_one_by_one(values)
        assert _outliers(np.array(values)) == pytest.approx(expected)
        n_slow += len(expected)
    assert n_slow > 50


@pytest.mark.parametrize(
    ("values", "slow"),
    [
        ([100.0, 100.0, 200.0], [2]),
        ([100.0, 200.0], []),
        ([1.0, 1.0, 1.0, 6.0], []),  # one z-score is a picosecond at least: 0.6745 * 5 is below 3.5
        ([1.0, 1.0, 1.0, 7.0], [3]),
        ([0.0, 0.0, 0.0], []),
        ([200.0, 200.0, 100.0], []),
        ([1000.0, 1000.0, 1000.0, 1050.0], []),  # 5% exactly
        ([1000.0, 1000.0, 1000.0, 1052.0], [3]),
    ],
)
def test_outliers_of_few_hosts(values: list[float], slow: list[int]) -> None:
    assert list(_outliers(np.array(values))) == slow


def test_a_slow_host_of_few_steps() -> None:
    """`c` takes 153 µs, of which it waits 45 for data: 50 more than the median, 49 more than the next one."""
    waits = part(Cause.INPUT, *[45] * N)
    (one,) = compared(*others(), host("c", 153, waits))
    assert one == Finding(
        Cause.INPUT,
        "`c` is slower than the other hosts: its own work takes 50.0 µs (32.7%) longer per step than theirs, "
        "most of it in waits for data.",
        50 * PS,
        50 / 153,
        "Hosts that train together wait for the slowest one whenever they exchange data.",
        Culprit("host", "c"),
        "c",
        base="of c's mean step",
        gain_ps=(0.0, 49 * PS),
        fix="Compare this host with another: data, share of the work, clock speed, other jobs on it.",
        evidence=(Evidence("Compared over 3 steps common to all hosts, without time in collectives.", "c"),),
        confidence="medium",
    )


def test_a_cause_is_most_of_the_excess_from_more_than_half_on() -> None:
    """The excess is 50 µs."""
    for waits_us, is_most in ((25, False), (25.1, True)):
        waits = part(Cause.INPUT, *[waits_us] * N)
        spread = part(Cause.PYTHON, *[50 - waits_us] * N)
        (one,) = compared(*others(), host("c", 153, waits, spread))
        assert ("most of it in waits for data" in one.sentence) == is_most


def test_hosts_that_exchange_data_are_held_up() -> None:
    hosts = (*others(53, 51, 49), host("c", 153))
    (one,) = compared(*hosts)
    assert (
        one.sentence
        == "`c` holds up the other hosts: its own work takes 50.0 µs (32.7%) longer per step than theirs, "
        "most of it in compute."
    )


def test_the_hosts_own_finding_of_the_cause_says_what_to_do() -> None:
    """Of two of that cause, the one that gains most; the fix of one without any is the general one."""
    waits = part(Cause.INPUT, *[45] * N)
    hosts = (*others(), host("c", 153, waits))

    def told(cause: Cause, sentence: str, time_ps: float, fix: str = "Prefetch.") -> Finding:
        return Finding(cause, sentence, time_ps, 0.1, fix=fix, snippet="prefetch()")

    own = [told(Cause.INPUT, "First.", 5), told(Cause.INPUT, "Second.", 9), told(Cause.PYTHON, "Third.", 99)]
    (one,) = compared(*hosts, own=[[told(Cause.INPUT, "Other.", 99)], [], [], own])
    assert (one.reason, one.fix, one.snippet) == ("On `c`: Second.", "Prefetch.", "prefetch()")
    (other,) = compared(*hosts, own=[[], [], [], [told(Cause.INPUT, "First.", 5, fix="")]])
    assert other.reason == "On `c`: First."
    assert other.fix.startswith("Compare this host with another")


@pytest.mark.parametrize(("second_us", "slow"), [(156.1, []), (156, ["g"]), (150, ["g"])])
def test_a_second_host_that_is_as_slow_leaves_nothing_to_gain(second_us: float, slow: list[str]) -> None:
    """Less than 1% of the first host's step of 100 µs."""
    usual = [host(name, 100) for name in "abcdef"]
    found = compared(*usual, host("g", 157), host("h", second_us))
    assert [one.culprit.name for one in found] == slow


def test_a_host_with_less_of_every_cause_names_no_contention() -> None:
    """Contention, exchanges and warm-up are no work of a host's own."""
    busy = part(Cause.CONTENTION, *[55] * N)
    waits = part(Cause.INPUT, *[20] * N)
    (one,) = compared(*others(), host("c", 153, busy, waits))
    assert one.cause == Cause.INPUT


def test_findings_of_causes_that_take_no_longer_explain_nothing() -> None:
    """Other jobs take 60 µs of `c`, which computes for 93 µs, less than the others, and exchanges as they
    do.
    """
    slow = host("c", 153, part(Cause.CONTENTION, *[60] * N), exchange_us=9)
    found = [Finding(cause, cause.label, 5, 0.1, fix="Its own.", snippet="own()") for cause in Cause]
    (one,) = compared(*others(9, 9, 9), slow, own=[[], [], [], found])
    assert one.cause not in (Cause.COMMUNICATION, Cause.CONTENTION)
    assert one.fix.startswith("Compare this host with another")
    assert (one.reason[:5], one.snippet) == ("Hosts", "")


def test_the_mean_step_decides_of_few() -> None:
    """`c` takes 100, 100 and 259 µs: 153 on average."""
    steps_us = (100, 100, 259)
    uneven = evidence(part(Cause.COMPUTE, *steps_us), host="c", steps_us=steps_us)
    (one,) = compared(*others(), uneven)
    assert one.sentence.startswith("`c` is slower than the other hosts: its own work takes 50.0 µs")
    level = [
        replace(host(name, own), duration_ps=columns(*times))
        for name, own, times in (
            ("a", 100, (100, 100, 100)),
            ("b", 102, (102, 102, 102)),
            ("d", 104, (104, 104, 104)),
            ("e", 103, (50, 50, 209)),
        )
    ]
    assert compared(*level) == []


@pytest.mark.parametrize(("n", "slow"), [(4, []), (5, ["b"])])
def test_steps_are_compared_one_by_one_from_five_on(n: int, slow: list[str]) -> None:
    """Of two hosts, none is an outlier."""
    hosts = [
        evidence(part(Cause.COMPUTE, *[own] * n), host=name, steps_us=[own] * n)
        for name, own in (("a", 100), ("b", 200))
    ]
    found = slow_hosts(hosts, [[], []], [slice(0, n)] * 2)
    assert [one.culprit.name for one in found] == slow


def test_causes_are_compared_with_the_median_of_the_others() -> None:
    """They wait 0, 0 and 60 µs for data, `c` 50: more than half of its 97 µs more."""
    waits = [part(Cause.INPUT, *[time] * N) for time in (0, 0, 60, 50)]
    own = (100, 102, 104, 200)
    hosts = [host(name, time, wait) for name, time, wait in zip("abdc", own, waits, strict=True)]
    python = part(Cause.PYTHON, *[47] * N)
    hosts[3] = host("c", 200, waits[3], python)
    (one,) = compared(*hosts)
    assert (one.cause, "most of it in waits for data" in one.sentence) == (Cause.INPUT, True)


def test_the_first_hosts_step_is_what_a_gain_is_compared_with() -> None:
    """49 µs are 1% of a step of 4900 µs, however short the other hosts' steps are."""
    for first_us, n in ((4900, 1), (4901, 0)):
        first = host("a", 100, exchange_us=first_us - 100)
        rest = [host(name, own, exchange_us=10) for name, own in (("b", 102), ("d", 104), ("c", 153))]
        assert len(compared(first, *rest)) == n
