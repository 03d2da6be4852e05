"""A channel by step: which core of which host, and which of its steps, on three hosts of unlike sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.join import Channel, Pod
from tb_tpuprof.analysis.pod.link_times import LinkTimes, channel_steps, mean_times, times_in_step
from tests.analysis.pod.test_senders import any_pod

N_CORES = (2, 1, 3)
FIRST = (0, 2, 1)  # the common steps begin at these steps of the hosts
N_STEPS = 3
OPS = ("send.1", "recv.1", "recv-done.1")


def pod() -> Pod:
    host_of = np.repeat(np.arange(3), N_CORES)
    names = tuple(str(i) for i in range(N_STEPS))
    return replace(any_pod(), host_of=host_of, first_step=FIRST, step_names=names)


def times(host: int, lacks: str = "") -> LinkTimes:
    """Begins that differ by host, core, step and operation; each operation ends 7 after its begin."""
    shape = N_CORES[host], FIRST[host] + N_STEPS + 1, len(OPS)
    core, step, op = np.indices(shape)
    begin = 10_000.0 * (host + 1) + 1000.0 * core + 100.0 * step + 10.0 * op
    ops = tuple("other" if name == lacks else name for name in OPS)
    return LinkTimes(ops, begin, begin + 7, np.ones(shape, np.int64))


def begin_of(host: int, core: int, op: int) -> np.ndarray:
    """By common step."""
    steps = FIRST[host] + np.arange(N_STEPS)
    return 10_000.0 * (host + 1) + 1000.0 * core + 100.0 * steps + 10.0 * op


def channel(source: int, target: int) -> Channel:
    return Channel(source, target, OPS, 1, 100, 5.0, 5.0, 1.0, OPS)


@pytest.mark.parametrize(
    ("source", "target", "places"),
    [
        (0, 5, ((0, 0), (2, 2))),
        (5, 0, ((2, 2), (0, 0))),
        (1, 2, ((0, 1), (1, 0))),
        (4, 1, ((2, 1), (0, 1))),
        (3, 4, ((2, 0), (2, 1))),
    ],
)
def test_steps_of_both_ends(
    source: int, target: int, places: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """Latency is from the later of send and receive to the receive's end; the delay from receive to send."""
    (sender, sends), (receiver, receives) = places
    found = channel_steps(pod(), channel(source, target), (times(sender), times(receiver)))
    sent, ready = begin_of(sender, sends, 0), begin_of(receiver, receives, 1)
    received = begin_of(receiver, receives, 2) + 7
    assert found.latency_ps.tolist() == np.maximum(received - np.maximum(sent, ready), 0).tolist()
    assert found.send_delay_ps.tolist() == np.maximum(sent - ready, 0).tolist()


@pytest.mark.parametrize("lacks", OPS)
def test_an_end_that_did_not_run_is_unknown(lacks: str) -> None:
    found = channel_steps(pod(), channel(0, 5), (times(0, lacks), times(2, lacks)))
    assert np.isnan(found.latency_ps).all()
    assert np.isnan(found.send_delay_ps).all() == (lacks != "recv-done.1")


ENDS = ((0, 5), (5, 0), (1, 2), (4, 1), (3, 4), (2, 2))


def of_all(lacks: dict[int, str]) -> list[LinkTimes]:
    """The times of all hosts, with numbers of runs that differ by host, core, step and operation."""
    made = []
    for host in range(3):
        one = times(host, lacks.get(host, ""))
        core, step, op = np.indices(one.n_runs.shape)
        made.append(replace(one, n_runs=1000 * host + 100 * core + 10 * step + op))
    return made


@pytest.mark.parametrize("lacks", [{}, {0: "send.1"}, {2: "recv.1", 1: "recv-done.1"}])
@pytest.mark.parametrize("step", range(N_STEPS))
def test_all_channels_in_a_step_are_each_of_them(step: int, lacks: dict[int, str]) -> None:
    channels = tuple(channel(*ends) for ends in ENDS)
    one, hosts = replace(pod(), channels=channels), of_all(lacks)
    found = times_in_step(one, step, hosts)
    for row, (source, target) in enumerate(ENDS):
        sender, receiver = int(one.host_of[source]), int(one.host_of[target])
        alone = channel_steps(one, channels[row], (hosts[sender], hosts[receiver]))
        for name in ("latency_ps", "send_delay_ps"):
            expected = float(getattr(alone, name)[step])
            assert float(getattr(found, name)[row]) == pytest.approx(expected, nan_ok=True)
        core = source - sum(N_CORES[:sender])
        n = 1000 * sender + 100 * core + 10 * (FIRST[sender] + step)
        assert found.n_per_step[row] == (0 if lacks.get(sender) == "send.1" else n)


def test_means_are_those_of_the_channels() -> None:
    channels = tuple(
        replace(channel(*ends), latency_ps=5.0 + i, send_delay_ps=7.0 * i, n_per_step=0.5 + i)
        for i, ends in enumerate(ENDS)
    )
    found = mean_times(replace(pod(), channels=channels))
    assert found.latency_ps.tolist() == [5, 6, 7, 8, 9, 10]
    assert found.send_delay_ps.tolist() == [0, 7, 14, 21, 28, 35]
    assert found.n_per_step.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert len(mean_times(replace(pod(), channels=())).latency_ps) == 0
