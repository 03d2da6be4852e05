"""The host that sends late, from channels written down by hand: three unlike hosts, 1 ms steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.join import Channel, Pod, join
from tb_tpuprof.analysis.pod.senders import LateSender, late_sender
from tests.synthetic_pod import Pod as SyntheticPod
from tests.synthetic_pod import analysed

MS = 10**9
US = 10**6


@cache
def any_pod() -> Pod:
    return join(analysed(SyntheticPod(n_hosts=3, n_chips=1, n_steps=2)))


def pod(*channels: tuple[int, float, float]) -> Pod:
    """Channels as (core that sends, delay in µs, times per step); two cores on each of three hosts."""
    made = tuple(
        Channel(core, (core + 2) % 6, ("a",), 1, 100, 5.0 * US, delay * US, times, ("a", "a", "a"))
        for core, delay, times in channels
    )
    total = np.full((6, 2), MS, np.int64)
    return replace(any_pod(), channels=made, total_ps=total)


def test_the_mean_of_what_a_host_sends_counts_by_how_often() -> None:
    late = late_sender(pod((0, 4, 1), (1, 8, 3), (2, 100, 1), (3, 60, 3), (4, 1, 1), (5, 3, 1)))
    assert late == LateSender(1, (100 + 180) / 4 * US, pytest.approx((4 + 24 + 1 + 3) / 6 * US), 2)


def test_it_is_late_from_twice_the_others_and_one_percent_of_the_step_on() -> None:
    assert late_sender(pod((0, 20, 1), (2, 10, 1), (4, 10, 1))) == LateSender(0, 20 * US, 10 * US, 0)
    assert late_sender(pod((0, 19.9, 1), (2, 10, 1), (4, 10, 1))) is None
    assert late_sender(pod((0, 0, 1), (2, 0, 1), (4, 10, 1))) == LateSender(2, 10 * US, 0.0, 2)
    assert late_sender(pod((0, 0, 1), (2, 0, 1), (4, 9.9, 1))) is None


def test_without_others_that_send_none_is_late() -> None:
    assert late_sender(pod((0, 500, 1), (1, 300, 1))) is None
    assert late_sender(pod()) is None
    one = replace(pod((0, 500, 1), (1, 3, 1)), hosts=("h0",), host_of=np.zeros(6, np.int64))
    assert late_sender(one) is None


def test_one_of_two_hosts_may_be_late() -> None:
    two = replace(
        pod((0, 500, 1), (2, 3, 1), (3, 5, 1)), hosts=("h0", "h1"), host_of=np.repeat([0, 1], [2, 4])
    )
    assert late_sender(two) == LateSender(0, 500 * US, 4 * US, 0)


def test_its_longest_delay_is_among_its_own_channels() -> None:
    """Another host's single delay may be longer."""
    late = late_sender(pod((0, 200, 1), (1, 0, 9), (2, 90, 1), (3, 95, 1), (4, 0, 1)))
    assert late
    assert (late.host, late.channel) == (1, 3)
