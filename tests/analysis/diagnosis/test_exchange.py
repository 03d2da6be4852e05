"""What the communication of all hosts says beside their findings: known only where all of it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.host import comm_host
from tb_tpuprof.analysis.comm.join import Comm, join_comm
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.exchange import JobExchange, job_exchange
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.job_communication import job_communication
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.ingest.opening import trace_of_bytes
from tests.analysis.diagnosis.drawn import evidence, part
from tests.analysis.diagnosis.test_job_communication import GATHER, REDUCE, communication, host
from tests.analysis.pod.test_numbers import collective
from tests.builders import PS
from tests.synthetic_comm import comm_hosts


@pytest.fixture(scope="module")
def comm() -> Comm:
    return join_comm([comm_host(trace_of_bytes(data, name)) for name, data in comm_hosts().items()])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "CPU"),
        ("is_synchronous", False),
        ("is_wait_known", False),
        ("hosts", ("h0",)),
        ("own_ps", np.zeros((4, 0))),
    ],
)
def test_hosts_are_compared_only_where_waiting_is_known(
    comm: Comm, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    assert _has_own_times(comm)
    if name in ("kind", "hosts"):
        assert not _has_own_times(replace(comm, pod=replace(comm.pod, **{name: value})))
    else:
        monkeypatch.setattr(Pod, name, value)
        assert not _has_own_times(replace(comm, pod=replace(comm.pod)))


def _has_own_times(comm: Comm) -> bool:
    made = job_exchange(comm)
    assert made is not None
    return made.own is not None


def test_one_collective_with_several_participants_separates_waiting(comm: Comm) -> None:
    alone, together = collective(n_seen=1), collective(n_seen=2)
    for made, is_known in (((), True), ((alone,), False), ((alone, together, alone), True)):
        assert replace(comm.pod, collectives=made).is_wait_known is is_known


def test_the_gain_of_a_step_is_its_mean_over_the_devices(comm: Comm) -> None:
    found = job_exchange(comm)
    assert found is not None
    gain = comm.gain_ps
    n_devices, n_steps = gain.shape
    for step in range(n_steps):
        mean = sum(float(gain[device, step]) for device in range(n_devices)) / n_devices
        assert found.gain_ps[step] == pytest.approx(mean)
        assert found.of_step(step).mean_gain_ps == pytest.approx(mean)
    unlike = JobExchange(("a", "b", "c"), np.array([1.0, 2.0, 9.0]), None)
    assert unlike.mean_gain_ps == 4.0
    assert [unlike.of_step(i).gain_ps.tolist() for i in range(3)] == [[1.0], [2.0], [9.0]]
    assert JobExchange((), np.empty(0), None).mean_gain_ps == 0.0


def test_a_capture_without_steps_has_none(comm: Comm) -> None:
    assert job_exchange(replace(comm, step_names=(WHOLE,))) is None
    assert job_exchange(replace(comm, step_names=("x", WHOLE))) is not None
    none = np.zeros_like(comm.exposed_ps)
    assert job_exchange(replace(comm, exposed_ps=none, hidden_ps=none)) is None
    assert job_exchange(replace(comm, exposed_ps=none)) is not None
    assert job_exchange(replace(comm, hidden_ps=none)) is not None


def test_shares_are_of_the_mean_step_of_unlike_hosts() -> None:
    """30, 60 and 90 µs in steps of 200, 400 and 600 µs on average: 60 of 400 µs; b's share is the largest."""
    hosts = [
        evidence(
            part(Cause.COMMUNICATION, *[time] * 3, culprit=REDUCE),
            host=name,
            kind="TPU",
            steps_us=[0.5 * step, step, 1.5 * step],
        )
        for name, time, step in (("a", 30, 200), ("b", 64, 400), ("c", 86, 600))
    ]
    one = communication(hosts)
    assert (one.time_ps, one.share) == (60 * PS, pytest.approx(60 / 400))
    # What stands beside is the host with the largest share, if its time is above the mean, too.
    assert "most on" not in one.sentence
    assert one.rank == pytest.approx(64 * PS / 2)


def test_a_tenth_above_the_mean_is_alike() -> None:
    """9, 10 and 11 µs, then 8.9, 10 and 11.1."""
    hosts = [host(name, (time,) * 3) for name, time in (("a", 9), ("b", 10), ("c", 11))]
    assert "most on" not in communication(hosts).sentence
    hosts = [host(name, (time,) * 3) for name, time in (("a", 8.9), ("b", 10), ("c", 11.1))]
    assert "most on `c`: 11.1 µs" in communication(hosts).sentence


def test_one_host_has_no_other_to_be_named_beside() -> None:
    assert communication([host("a", (12, 24, 36))]).sentence == (
        "Each step spends 24.0 µs (12.0%) in collectives while nothing computes (mostly `all-reduce.4`)."
    )
    same = [host(name, (20, 20, 20), GATHER) for name in "abc"]
    assert communication(same).sentence.endswith("(mostly `all-gather.7`).")
    assert communication(same).culprit == Culprit("operation", "all-gather.7")
    assert job_communication([(host("a", (0, 0, 0)), [])], None) == []
