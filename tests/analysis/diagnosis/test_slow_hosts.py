"""Hosts that are slower than the others, compared over the steps that all of them ran at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.slow_hosts import slow_hosts
from tests.analysis.diagnosis.drawn import evidence, part
from tests.builders import PS

N = 12
LOAD = Culprit("function", "load", "data.py", 3)
REDUCE = Culprit("op", "all-reduce")


def host(name: str, first_number: int, input_us: Sequence[float], exchange_us: float = 0.0) -> HostEvidence:
    """Steps of 100 µs of computing, and what they wait for data and for the other hosts."""
    waits = part(Cause.INPUT, *input_us, culprit=LOAD)
    exchanges = part(Cause.COMMUNICATION, *[exchange_us] * len(input_us), culprit=REDUCE)
    computes = part(Cause.COMPUTE, *[100] * len(input_us))
    made = evidence(waits, exchanges, computes, steps_us=(1,) * len(input_us), host=name)
    duration_ps = waits.time_ps + exchanges.time_ps + computes.time_ps
    names = tuple(f"train {first_number + i}" for i in range(len(input_us)))
    return replace(made, names=names, duration_ps=duration_ps, start_ps=np.cumsum(duration_ps) - duration_ps)


def test_steps_are_compared_by_time_whatever_their_names() -> None:
    """The three hosts number their steps apart, so that no name is on two of them: `c` waits 40, 47 or 54 µs,
    the others 3 and 5 at most.
    """
    hosts = [host("a", 0, [1, 2, 3] * 4), host("b", 100, [5] * N), host("c", 200, [40, 47, 54] * 4)]
    (one,) = slow_hosts(hosts, [[], [], []], [slice(0, N)] * 3)
    assert (one.cause, one.culprit) == (Cause.INPUT, Culprit("host", "c"))
    # Against the median of the two others, 2 and 5 µs: 47 - 3.5. Against the slower: 47 - 5.
    assert one.time_ps == pytest.approx(43.5 * PS, rel=0.02)
    assert one.gain_ps == pytest.approx((0, 42 * PS), rel=0.02)


def test_only_common_steps_count() -> None:
    """`b` is slow in its first steps only, which `a` did not run."""
    slow_start = host("b", 0, [90] * N + [2] * N)
    usual = host("a", 0, [3] * N)
    assert slow_hosts([usual, slow_start], [[], []], [slice(0, N), slice(N, 2 * N)]) == []
    (one,) = slow_hosts([usual, slow_start], [[], []], [slice(0, N), slice(0, N)])
    assert one.culprit.name == "b"


@pytest.mark.parametrize("rows", [(), (slice(0, 0),) * 3, (slice(0, N), slice(0, 0), slice(0, 0))])
def test_hosts_without_common_steps_are_not_compared(rows: Sequence[slice]) -> None:
    hosts = [host("a", 0, [1] * N), host("b", 0, [2] * N), host("c", 0, [50] * N)]
    assert slow_hosts(hosts, [[], [], []], rows) == []


def test_a_host_without_common_steps_is_left_out_of_the_comparison() -> None:
    hosts = [host("idle", 0, [500] * N), host("b", 0, [2] * N), host("c", 0, [50] * N)]
    (one,) = slow_hosts(hosts, [[], [], []], [slice(0, 0), slice(0, N), slice(0, N)])
    assert one.culprit.name == "c"
    assert one.time_ps == pytest.approx(48 * PS, rel=0.02)


def test_waiting_for_the_slow_host_is_no_work_of_the_others() -> None:
    """All steps take 160 µs: `c` works for 150 of them, the others wait in the all-reduce."""
    hosts = [
        host("a", 0, [5] * N, exchange_us=55),
        host("b", 0, [10] * N, exchange_us=50),
        host("c", 0, [50] * N, exchange_us=10),
    ]
    (one,) = slow_hosts(hosts, [[], [], []], [slice(0, N)] * 3)
    assert one.culprit.name == "c"
    assert one.sentence.startswith("`c` holds up the other hosts: its own work takes 42.5 µs")
    assert one.gain_ps == pytest.approx((0, 40 * PS), rel=0.02)
