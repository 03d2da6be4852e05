"""Sentences of the communication page on both sides of their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import Traffic
from tb_tpuprof.analysis.comm.join import Comm
from tb_tpuprof.session import Session
from tb_tpuprof.tools.comm_costs import Costs
from tb_tpuprof.tools.communication.sentences import verdict
from tests.analysis.pod.test_numbers import collective
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts
from tests.tools.communication.pages import joined
from tests.tools.communication.test_communication import exposed
from tests.tools.communication.test_limits import op

US = 1_000_000


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("comm"), comm_hosts())), cache=False)


@pytest.mark.parametrize(
    ("hidden", "exposed_us", "text"),
    [
        (
            0.0,
            1.0,
            "Communication costs almost nothing: 1.00 µs (0.100%) of each step is exposed, and compute ",
        ),
        (3.0, 1.0, "hides 75.0% of it."),
        (0.0, 0.0, "hides 0% of it."),
    ],
)
def test_communication_that_costs_almost_nothing(
    session: Session, hidden: float, exposed_us: float, text: str
) -> None:
    comm = exposed(joined(session), 1.0)
    times = np.zeros_like(comm.exposed_ps)
    times[:, :, Traffic.DEVICES] = round(exposed_us * 1e6)
    covered = np.zeros_like(times)
    covered[:, :, Traffic.DEVICES] = round(hidden * 1e6)
    said = verdict(replace(comm, exposed_ps=times, hidden_ps=covered)).text
    assert text in said


def why(comm: Comm, kind: str, hidden: float, is_async: bool) -> str:
    top = comm.ops[0]
    made = replace(top, op=replace(top.op, is_async=is_async), hidden_ps=hidden, exposed_ps=100.0 - hidden)
    one = replace(comm, ops=(made,), pod=replace(comm.pod, kind=kind))
    return verdict(one).details[0].partition(": ")[2]


def test_why_an_operation_is_exposed(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    alone = "it is not asynchronous, so its core does nothing else meanwhile."
    assert why(comm, "TPU", 50.0, is_async=False) == alone
    assert why(comm, "GPU", 0.9, is_async=False) == "nothing computes while it runs."
    assert why(comm, "TPU", 0.9, is_async=True) == "nothing computes while it runs."
    assert why(comm, "TPU", 1.0, is_async=True) == "compute hides only 1.00% of it."
    assert why(comm, "GPU", 50.0, is_async=False) == "compute hides only 50.0% of it."
    nothing = replace(comm.ops[0], hidden_ps=0.0, exposed_ps=0.0)
    gpus = replace(comm, ops=(nothing,), pod=replace(comm.pod, kind="GPU"))
    assert verdict(gpus).details[0].endswith("nothing computes while it runs.")


def test_the_share_of_the_top_operation(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    top = replace(comm.ops[0], exposed_ps=Costs(comm).exposed_ps / 4)
    for more in (1, 2):
        said = verdict(replace(comm, ops=(top, *comm.ops * more))).details[0]
        assert said.startswith("25.0% of this time is `x.1`: ")
    assert verdict(comm).details[0].startswith("All of it is `x.1`: ")


def limited(comm: Comm, computing: list[list[int]]) -> list[str]:
    """Details on 4 devices in 2 steps, of which each moves 100 ps of 1,000 and computes this long."""
    moved = np.zeros((4, 2, 3), np.int64)
    moved[:, :, Traffic.DEVICES] = 100
    total = np.full((4, 2), 1000, np.int64)
    made = replace(
        comm,
        step_names=("a", "b"),
        exposed_ps=moved,
        hidden_ps=np.zeros_like(moved),
        total_ps=total,
        begin_ps=np.zeros_like(total),
        compute_ps=np.array(computing, np.int64),
        pod=replace(comm.pod, waited_ps=np.zeros(total.shape)),
    )
    return list(verdict(made).details[1:])


def test_what_limits_the_saving(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    enough = [[100, 100]] * 4
    assert limited(comm, enough) == []
    assert limited(comm, [[99, 99], *enough[1:]]) == []  # 99.75% of it could be hidden
    assert limited(comm, [[90, 80], *enough[1:]]) == [
        "On 1 of 4 cores, data moves for longer than the compute that could hide it."
    ]
    assert limited(comm, [[90, 80], [10, 20], [0, 99], [100, 100]]) == [
        "On 3 of 4 cores, data moves for longer than the compute that could hide it."
    ]
    assert limited(comm, [[50, 150]] * 4) == [
        "In some steps data moves for longer than the compute that could hide it."
    ]
    assert limited(comm, [[10, 50], [20, 50], [30, 50], [40, 50]]) == [
        "Data moves for 100 ps, longer than the 37.5 ps of compute that could hide it."
    ]


def test_data_that_hides_all_but_a_hundredth_is_not_limited(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    assert limited(comm, [[99, 99]] * 4) == []
    assert len(limited(comm, [[99, 98]] * 4)) == 1


def test_unlike_steps_and_kinds_of_traffic_count_with_their_means(session: Session) -> None:
    """Two devices move 100 and 300 ps, half of it copies, and compute 150 and 350: less is hidden already."""
    comm = exposed(joined(session), 1.0)
    moved = np.zeros((2, 2, 3), np.int64)
    moved[:, :, Traffic.DEVICES] = moved[:, :, Traffic.LOCAL] = [[50, 150], [50, 150]]
    total = np.full((2, 2), 1000, np.int64)

    def said(computing: list[list[int]], hidden: int = 0) -> list[str]:
        covered = np.full_like(moved, hidden)
        made = replace(
            comm,
            step_names=("a", "b"),
            cores=comm.cores[:2],
            host_of=comm.host_of[:2],
            exposed_ps=moved,
            hidden_ps=covered,
            total_ps=total,
            begin_ps=np.zeros_like(total),
            compute_ps=np.array(computing, np.int64),
            pod=replace(comm.pod, waited_ps=np.zeros((2, 2))),
        )
        return list(verdict(made).details[1:])

    some = "In some steps data moves for longer than the compute that could hide it."
    assert said([[150, 260]] * 2) == [some]  # 205 ps on average are more than 200
    assert said([[150, 240]] * 2) == [
        "Data moves for 200 ps, longer than the 195 ps of compute that could hide it."
    ]
    assert said([[150, 240], [150, 260]]) == [
        "On 1 of 2 cores, data moves for longer than the compute that could hide it."
    ]
    assert said([[150, 260]] * 2, 10)[0].startswith("Data moves for 230 ps")


def test_waiting_is_no_time_that_compute_could_hide(session: Session) -> None:
    """Of 260 µs half is waiting, and compute hides the other half."""
    comm = exposed(joined(session), 1.0)
    half = np.rint(comm.exposed_ps.sum(axis=2) / 2).astype(np.int64)
    made = replace(waits(comm, 0.5), compute_ps=half + 1)
    assert not any("data moves" in text.lower() for text in verdict(made).details)


@pytest.mark.parametrize(("waited", "says"), [(10, True), (9, False)])
def test_a_tenth_of_waiting_is_much(session: Session, waited: int, says: bool) -> None:
    """Of 100 ps."""
    comm = exposed(joined(session), 1.0)
    times = np.zeros_like(comm.exposed_ps)
    times[:, :, Traffic.DEVICES] = 100
    pod = replace(comm.pod, waited_ps=np.full(comm.total_ps.shape, float(waited)))
    made = replace(comm, exposed_ps=times, total_ps=np.full_like(comm.total_ps, 900), pod=pod)
    assert any("is waiting" in text for text in verdict(made).details) is says


@pytest.mark.parametrize(
    ("exposed_us", "level", "start"),
    [(10, "good", "Exposed"), (30, "warn", "Exposed"), (100, "bad", "Exposed"), (9, "good", "Communication")],
)
def test_levels_begin_at_their_limits(session: Session, exposed_us: int, level: str, start: str) -> None:
    """Of steps of 1,000 µs."""
    comm = exposed(joined(session), 1.0)
    times = np.zeros_like(comm.exposed_ps)
    times[:, :, Traffic.DEVICES] = exposed_us * US
    said = verdict(replace(comm, exposed_ps=times))
    assert (said.level, said.text.startswith(start)) == (level, True)


def test_one_exchange_makes_it_communication(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    few = np.ones_like(comm.exposed_ps)
    ops = {traffic: op("x", traffic) for traffic in (Traffic.DEVICES, Traffic.HOST, Traffic.LOCAL)}
    copies = replace(comm, exposed_ps=few, hidden_ps=few, ops=(ops[Traffic.HOST], ops[Traffic.LOCAL]))
    assert verdict(copies).text.startswith("Copies cost almost nothing")
    assert verdict(copies).text.endswith("compute hides 50.0% of their time.")
    one = replace(copies, ops=(*copies.ops, ops[Traffic.DEVICES]))
    assert verdict(one).text.startswith("Communication costs almost nothing")
    assert verdict(one).text.endswith("compute hides 50.0% of it.")


def waits(comm: Comm, waited: float, *pods: object) -> Comm:
    """Each device waits for this share of its exposed time."""
    times = comm.exposed_ps.sum(axis=2) * waited
    ops = tuple(replace(comm.ops[0], pod=pod) for pod in pods) or comm.ops
    return replace(comm, pod=replace(comm.pod, waited_ps=times), ops=ops)  # type: ignore[arg-type]


def test_waiting_that_hiding_does_not_remove(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    said = "Of the 260 µs, 52.0 µs is waiting, {}, which hiding does not remove."
    few, most = collective(wait_ps=1.0, last_core=0), collective(wait_ps=9.0, last_core=3)
    assert verdict(waits(comm, 0.2, few, most, None)).details[-1] == said.format("mostly for `h1 TPU:1`")
    unknown = said.format("for the last core to arrive")
    assert verdict(waits(comm, 0.2)).details[-1] == unknown
    assert verdict(waits(comm, 0.2, replace(most, last_core=-1))).details[-1] == unknown
    assert "is waiting" in verdict(waits(comm, 0.1001)).details[-1]
    assert not any("is waiting" in text for text in verdict(waits(comm, 0.0999)).details)


@pytest.mark.parametrize(("share", "has_link"), [(0.0099, False), (0.0101, True)])
def test_devices_are_compared_where_they_wait(session: Session, share: float, has_link: bool) -> None:
    """From a hundredth of the step on; 26% of it is exposed."""
    comm = waits(exposed(joined(session), 1.0), share / 0.26025)
    tools = [step.tool for step in verdict(comm).next]
    assert tools == (["trace_viewer", "pod_viewer"] if has_link else ["trace_viewer"])


@pytest.mark.parametrize(("waited", "has_link"), [(10, False), (11, True)])
def test_a_hundredth_of_unlike_steps(session: Session, waited: int, has_link: bool) -> None:
    """Of steps of 500 and 1,500 ps, in turn."""
    comm = exposed(joined(session), 1.0)
    total = np.full_like(comm.total_ps, 500)
    total[:, ::2] = 1500
    pod = replace(comm.pod, waited_ps=np.full(total.shape, float(waited)))
    moved = np.zeros_like(comm.exposed_ps)
    moved[:, :, Traffic.DEVICES] = 100
    made = replace(comm, total_ps=total, exposed_ps=moved, begin_ps=np.zeros_like(total), pod=pod)
    assert any(step.tool == "pod_viewer" for step in verdict(made).next) is has_link


@pytest.mark.parametrize(("gain", "text"), [(499, "save almost nothing."), (500, "save at most 0.0500%.")])
def test_a_gain_from_a_twentieth_of_a_percent(session: Session, gain: int, text: str) -> None:
    """Of steps of 1,000 µs; only that much compute could hide anything."""
    comm = exposed(joined(session), 1.0)
    computes = replace(comm, compute_ps=np.full_like(comm.total_ps, gain * 1000))
    assert verdict(computes).text.endswith(text)


def test_the_kind_of_traffic_with_more_than_half(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    for shares, traffic in (
        ((30, 40, 30), Traffic.DEVICES),
        ((20, 30, 50), Traffic.DEVICES),
        ((20, 29, 51), Traffic.LOCAL),
        ((20, 51, 29), Traffic.HOST),
        ((51, 20, 29), Traffic.DEVICES),
    ):
        times = np.zeros_like(comm.exposed_ps)
        times[:, :, [Traffic.DEVICES, Traffic.HOST, Traffic.LOCAL]] = shares
        assert Costs(replace(comm, exposed_ps=times)).traffic == traffic


def test_one_exchange_of_gpus_has_a_line(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    ops = (comm.ops[0], op("x", Traffic.HOST), op("y", Traffic.LOCAL))
    gpus = replace(comm, ops=ops, pod=replace(comm.pod, kind="GPU"))
    assert verdict(gpus).next[0].text.endswith(", on the lines Exposed communication")
    assert "Exposed" not in verdict(replace(gpus, ops=ops[1:])).next[0].text
