"""Communication of several hosts: one finding with means over the hosts, the gain of hiding it, and slow
hosts by the pod's own times.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.host import comm_host
from tb_tpuprof.analysis.comm.join import join_comm
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.exchange import JobExchange, OwnTimes, job_exchange
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.pod.stragglers import Slow, Straggler, host_stragglers, own_by_host, stragglers
from tb_tpuprof.ingest.opening import trace_of_bytes
from tests.analysis.diagnosis.drawn import evidence, part
from tests.builders import PS
from tests.pod_drawing import drawn_pod
from tests.synthetic_comm import comm_hosts

REDUCE, GATHER = Culprit("operation", "all-reduce.4"), Culprit("operation", "all-gather.7")
N = 3  # steps of 100, 200 and 300 µs
REDUCES = {"fusion.9": "convolution fusion", "all-reduce.3": "all-reduce"}


def host(name: str, exchanged_us: tuple[float, ...], culprit: Culprit = REDUCE) -> HostEvidence:
    exchanges = (part(Cause.COMMUNICATION, *exchanged_us, culprit=culprit),) if any(exchanged_us) else ()
    return evidence(*exchanges, host=name, kind="TPU")


def exchange(*gain_us: float, own: OwnTimes | None = None) -> JobExchange:
    return JobExchange(tuple(f"train {i}" for i in range(N)), np.array(gain_us) * PS, own)


def communication(hosts: list[HostEvidence], known: JobExchange | None = None) -> Finding:
    rows = [slice(0, N)] * len(hosts)
    (one,) = (
        one
        for one in diagnose(hosts, rows, known).findings
        if one.cause == Cause.COMMUNICATION and one.culprit.kind != "host"
    )
    return one


def test_hosts_have_one_finding_with_their_mean_and_the_host_that_spends_most() -> None:
    """24, 60 and 0 µs per step on average: 28 of 200 µs; host b spends more than the others."""
    hosts = [host("a", (12, 24, 36)), host("b", (30, 60, 90)), host("c", (0, 0, 0))]
    one = communication(hosts)
    assert (one.time_ps, one.share) == (28 * PS, pytest.approx(0.14))
    assert (one.host, one.base, one.gain_ps) == ("", "of the mean step", (0.0, 28 * PS))
    assert one.sentence == (
        "Each step spends 28.0 µs (14.0%) in collectives while nothing computes; most on "
        "`b`: 60.0 µs (30.0%) "
        "(mostly `all-reduce.4`)."
    )


def test_hosts_that_are_alike_are_not_named() -> None:
    """Up to 10% above the mean: 20, 21 and 22 µs are 21 µs; with 24 µs instead of 22, one is named."""
    hosts = [host("a", (20, 20, 20)), host("b", (21, 21, 21)), host("c", (22, 22, 22))]
    assert communication(hosts).sentence == (
        "Each step spends 21.0 µs (10.5%) in collectives while nothing computes (mostly `all-reduce.4`)."
    )
    assert "most on `c`: 24.0 µs" in communication([*hosts[:2], host("c", (24, 24, 24))]).sentence
    unlike = [*hosts[:2], host("c", (22, 22, 22), GATHER)]
    assert communication(unlike).sentence.endswith("while nothing computes.")


def test_its_gain_is_that_of_hiding_and_at_most_its_time() -> None:
    hosts = [host("a", (12, 24, 36)), host("b", (30, 60, 90)), host("c", (0, 0, 0))]
    assert communication(hosts, exchange(3, 6, 12)).gain_ps == (0.0, 7 * PS)
    assert communication(hosts, exchange(30, 60, 120)).gain_ps == (0.0, 28 * PS)
    assert communication(hosts[:1], exchange(3, 6, 12)).gain_ps == (0.0, 7 * PS)
    nothing = communication(hosts, exchange(0, 0, 0))
    assert (nothing.gain_ps, nothing.rank) == ((0.0, 0.0), 30 * PS)  # half of what b spends


def test_one_step_has_the_gain_of_that_step() -> None:
    one = exchange(3, 6, 12, own=OwnTimes(("a", "b"), np.ones((2, N)), ()))
    assert (one.mean_gain_ps, one.of_step(2).mean_gain_ps) == (7 * PS, 12 * PS)
    assert (one.of_step(2).step_names, one.of_step(2).own) == (("train 2",), None)


def test_a_job_without_steps_or_without_traffic_has_no_exchange() -> None:
    def of(files: dict[str, bytes]) -> JobExchange | None:
        return job_exchange(
            join_comm([comm_host(trace_of_bytes(data, name)) for name, data in files.items()])
        )

    assert of(comm_hosts(has_steps=False)) is None
    assert of(drawn_pod([["fusion.9:0-900"], ["fusion.9:0-800"]], REDUCES)) is None
    alone = of({"h0": comm_hosts()["h0"]})
    assert alone is not None
    assert alone.own is None


def test_the_pod_s_own_times_are_steps_without_waiting() -> None:
    """Drawn by hand: h0 waits 210 and 80 µs and idles 19 µs more than h1's first core on each; h1 waits 120
    and 0, and its second core idles 10 µs more.
    """
    one = job_exchange(
        join_comm([comm_host(trace_of_bytes(data, name)) for name, data in comm_hosts().items()])
    )
    assert one is not None
    assert one.own is not None
    assert one.own.hosts == ("h0", "h1")
    own = [(1000 - 210 - 19 + 1000 - 80 - 19) / 2, (1000 - 120 + 1000 - 10) / 2]
    assert (one.own.own_ps / PS).tolist() == [[value] * 6 for value in own]
    ((name, core, excess),) = ((slow.host, slow.core, slow.slow.excess_ps) for slow in one.own.slow)
    assert (name, core, excess) == ("h1", -1, pytest.approx((own[1] - own[0]) * PS))


def slow_finding(steps: int, network_ps: float = 0.0, saved_us: float = 9.0) -> Finding:
    """Host b of three, 12 µs slower by the pod and 30 µs by its collectives."""
    names, own_us = ("a", "b", "c"), (60.0, 74.0, 62.0)
    exchanged = (90.0, 60.0, 90.0)
    hosts = [
        evidence(
            part(Cause.COMMUNICATION, *[time] * steps, culprit=REDUCE),
            part(Cause.COMPUTE, *[150 - time] * steps),
            steps_us=[150] * steps,
            host=name,
            kind="TPU",
        )
        for name, time in zip(names, exchanged, strict=True)
    ]
    causes = {"compute": 12 * PS - network_ps, "network": network_ps}
    slow = Slow(1, 0, 12.0 * PS, 0.2, 9.0, causes, 74.0 * PS, 62.0 * PS)
    own_ps = np.array([[time] * steps for time in own_us]) * PS
    own = OwnTimes(names, own_ps, (Straggler("b", -1, slow, saved_us * PS, 150.0 * PS),))
    gain = JobExchange(tuple(map(str, range(steps))), np.full(steps, 5.0 * PS), own)
    findings = diagnose(hosts, [slice(0, steps)] * 3, gain).findings
    (one,) = (one for one in findings if one.culprit == Culprit("host", "b"))
    return one


def test_a_slow_host_has_the_excess_and_the_gain_of_the_pod() -> None:
    one = slow_finding(6)
    assert (one.cause, one.time_ps, one.gain_ps) == (Cause.COMPUTE, 12 * PS, (0.0, 9 * PS))
    assert one.evidence[0].text == "Compared over 6 steps common to all hosts, without waiting for others."
    assert slow_finding(6, saved_us=20).gain_ps == (0.0, 12 * PS)
    moving = slow_finding(6, network_ps=40.0 * PS)
    assert (moving.cause, moving.rank) == (Cause.COMMUNICATION, 4.5 * PS)
    assert moving.sentence.endswith("most of it in moving data.")


@pytest.mark.parametrize(("steps", "gain_us"), [(4, 12), (5, 9)])
def test_five_steps_are_enough_for_the_pod(steps: int, gain_us: int) -> None:
    assert slow_finding(steps).gain_ps == (0.0, gain_us * PS)


def test_outliers_of_unlike_steps_are_those_of_the_means() -> None:
    """60, 74 and 62 µs on average; a's longest step is the longest of all."""
    hosts = [evidence(steps_us=[150] * 3, host=name, kind="TPU") for name in "abc"]
    own_ps = np.array([[20, 30, 130], [74, 74, 74], [61, 62, 63]]) * PS
    own = OwnTimes(("a", "b", "c"), own_ps, ())
    gain = JobExchange(("0", "1", "2"), np.full(3, 5.0 * PS), own)
    slow = [one for one in diagnose(hosts, [slice(0, 3)] * 3, gain).findings if one.culprit.kind == "host"]
    assert [(one.host, one.time_ps, one.gain_ps) for one in slow] == [("b", 12 * PS, (0.0, 12 * PS))]


def test_of_few_steps_the_pod_s_outliers_are_slow() -> None:
    """Of 60, 74 and 62 µs the median is 62: 12 µs more, and 12 more than the second."""
    one = slow_finding(3)
    assert (one.time_ps, one.gain_ps) == (12 * PS, (0.0, 12 * PS))


def test_slow_hosts_are_the_stragglers_and_those_with_one_slow_core() -> None:
    """Both cores of h1 are 60 µs late; of h2 only one is, by 100."""
    cores = [
        ["fusion.9:0-400 all-reduce.3:400-600", "fusion.9:0-404 all-reduce.3:404-600"],
        ["fusion.9:0-460 all-reduce.3:460-600", "fusion.9:0-466 all-reduce.3:466-600"],
        ["fusion.9:0-410 all-reduce.3:410-600", "fusion.9:0-500 all-reduce.3:500-600"],
        ["fusion.9:0-402 all-reduce.3:402-600", "fusion.9:0-408 all-reduce.3:408-600"],
    ]
    files = drawn_pod(cores, REDUCES)
    pod = join_comm([comm_host(trace_of_bytes(data, name)) for name, data in files.items()]).pod
    by_host, named = host_stragglers(pod), {(one.host, one.core): one for one in stragglers(pod)}
    own = pod.own_ps.reshape(4, 2, 6).mean(axis=1)
    assert own_by_host(pod).tolist() == own.tolist()
    for one in by_host:
        if (one.host, -1) in named:
            assert one == named[one.host, -1]
        others = np.delete(own, one.slow.unit, axis=0)
        excess = own[one.slow.unit].mean() - np.median(others, axis=0).mean()
        assert one.slow.excess_ps == pytest.approx(excess)
    assert {one.host for one in by_host} >= {host for host, core in named if core < 0}
    assert ("h2", 5) in named
