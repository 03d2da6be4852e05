"""The communication page on both sides of its limits: hosts left out, the menu's share, sentences and rates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import CommOp, Traffic
from tb_tpuprof.analysis.comm.join import Comm, OpTimes
from tb_tpuprof.analysis.comm.picture import Boxes
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.session import Session
from tb_tpuprof.tools import comm_costs
from tb_tpuprof.tools.comm_costs import Costs, exposed_share
from tb_tpuprof.tools.communication import view as page_view
from tb_tpuprof.tools.communication.sentences import verdict
from tb_tpuprof.tools.communication.tables import (
    boxes_table,
    devices_table,
    group_text,
    ops_table,
    possible_rates,
    steps_table,
)
from tb_tpuprof.tools.communication.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.analysis.test_pod_numbers import collective
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts
from tests.tools.test_communication import exposed, joined
from tests.tools.test_communication_words import columns, shown
from tests.tools.test_inference_words import values
from tests.tools.test_pod_viewer import cells

US = 1_000_000


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("comm"), comm_hosts())), cache=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Payload:
    run = write_run(tmp_path_factory.mktemp("whole"), comm_hosts(has_steps=False))
    return TOOL.run(Session(str(run), cache=False), None, {})


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (1, "1 of 3 hosts have no device in the others' steps: x0."),
        (5, "5 of 7 hosts have no device in the others' steps: x0, x1, x2, x3, x4."),
        (6, "6 of 8 hosts have no device in the others' steps: x0, x1, x2, x3, x4 …."),
    ],
)
def test_hosts_left_out_are_named(
    session: Session, monkeypatch: pytest.MonkeyPatch, n: int, text: str
) -> None:
    """The run's hosts are two of them."""
    others = tuple(f"x{i}" for i in range(n))
    messages = [one.message for one in page_view._diagnostics(joined(session), ("h0", *others, "h1"))]
    assert messages == [text]
    assert page_view._diagnostics(joined(session), ("h0", "h1")) == ()


@pytest.mark.parametrize(("share", "text"), [(0.00499, ""), (0.00501, "1%"), (0.0149, "1%"), (0.42, "42%")])
def test_the_menu_shows_half_a_percent_or_more(
    session: Session, monkeypatch: pytest.MonkeyPatch, share: float, text: str
) -> None:
    TOOL.run(session, None, {})
    comm = exposed(joined(session), share / 0.26025)
    monkeypatch.setattr(page_view, "joined_comm", lambda *_: comm)
    assert TOOL.badge(session) == text


def test_the_spread_over_steps_is_said_if_there_is_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = joined(session)
    times = comm.exposed_ps.copy()
    times[:, 1] //= 2
    times[:, 4] *= 2
    page = shown(session, monkeypatch, exposed_ps=times)
    assert page.scalars["exposed_ps"].note.endswith(" of a step · 130 µs to 520 µs")
    mean = (4 + 0.5 + 2) / 6 * 260.25e6
    assert page.scalars["exposed_ps"].value == pytest.approx(mean)


def test_runs_are_summed_over_operations(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = joined(session)
    runs = [(1, 2, 4), (8, 16, 32), (64, 128, 256), (0, 0, 512)]
    ops = tuple(replace(one, n_runs=n) for one, n in zip(comm.ops, runs, strict=True))
    page = shown(session, monkeypatch, ops=ops)
    assert page.scalars["n_runs"].value == 1023
    assert page.scalars["n_exposed_runs"].value == 4 + 32 + 256 + 512
    table = {column.name: column.values for column in page.tables["ops"].columns}
    for name, place in (("n_hidden", 0), ("n_partly", 1), ("n_exposed", 2)):
        assert list(table[name]) == [one[place] for one in runs]


def test_waiting_is_a_tile_if_there_is_any(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = joined(session)
    for wait, has_tile in ((0.0, False), (1.0, True)):
        monkeypatch.setattr(type(comm), "pod_wait_ps", wait)
        assert ("wait_ps" in shown(session, monkeypatch).tiles) is has_tile


def wait_texts(session: Session, monkeypatch: pytest.MonkeyPatch, last_core: int) -> str:
    comm = joined(session)
    unlike = ((5.0, last_core), (90.0, 2), (7.0, 3))
    ops = [
        replace(comm.ops[0], pod=collective(wait_ps=wait, last_core=core, last_fraction=0.75))
        for wait, core in unlike
    ]
    return shown(session, monkeypatch, ops=tuple(ops)).scalars["wait_ps"].note


def test_the_collective_that_waits_most_names_the_last_device(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wait_texts(session, monkeypatch, 0) == "h1 TPU:0 is last in 75.0% of the steps"


def test_without_a_captured_pair_waiting_is_unknown(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = joined(session)
    monkeypatch.setattr(type(comm), "pod_wait_ps", None)
    number = shown(session, monkeypatch).scalars["wait_ps"]
    assert number.value is None
    assert number.note == "only one participant of each collective was captured"
    none = shown(session, monkeypatch, pod=replace(comm.pod, collectives=()))
    assert none.scalars["wait_ps"].note.startswith("the trace has no collective")


def op(name: str, traffic: Traffic = Traffic.DEVICES, **pod: object) -> OpTimes:
    """An operation, of a collective with these properties."""
    made = collective(**pod) if pod else None
    return OpTimes(CommOp(name, "all-reduce", traffic, False), 0.0, 5.0, 5.0, 1.0, (0, 0, 1), made)


def test_bus_bandwidth_is_weighted_by_the_transfers_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """800 B three times in 6, 12 and 24 ps, by four ranks: 600, 300 and 150 TB/s; the fourth is unknown."""
    ops = (
        op("a", transfer_ps=6.0),
        op("b", transfer_ps=12.0),
        op("c", transfer_ps=24.0),
        op("d"),
        op("e", Traffic.LOCAL, transfer_ps=1.0),
    )
    number = shown(session, monkeypatch, ops=ops).scalars["bus_bytes_per_s"]
    assert number.value == pytest.approx((600 * 6 + 300 * 12 + 150 * 24) / 42 * 1e12)
    assert number.note.startswith("up to 600 TB/s; 3 of 4 collectives")
    local = shown(session, monkeypatch, ops=(op("e", Traffic.LOCAL),)).scalars["bus_bytes_per_s"]
    assert (local.value, local.note) == (None, "nothing is exchanged between devices")
    unknown = shown(session, monkeypatch, ops=(op("d"),)).scalars["bus_bytes_per_s"]
    assert (unknown.value, unknown.note) == (None, "the size or the group of the collectives is unknown")


@pytest.mark.parametrize(
    ("traffic", "peak", "is_known"),
    [
        (Traffic.LOCAL, 800e12, True),
        (Traffic.LOCAL, 800e12 / 1.04, True),
        (Traffic.LOCAL, 800e12 / 1.06, False),
        (Traffic.LOCAL, 0.0, True),
        (Traffic.DEVICES, 1.0, True),
    ],
)
def test_a_copy_reads_and_writes_its_memory(traffic: Traffic, peak: float, is_known: bool) -> None:
    """400 TB/s of copying are 800 of the memory."""
    rates = possible_rates(op("x", traffic, transfer_ps=6.0), peak)
    assert (rates[0] == pytest.approx(400e12)) if is_known else rates == (None, None)


def test_an_impossible_copy_of_an_unknown_group_is_unknown_too() -> None:
    assert possible_rates(op("x", Traffic.LOCAL, kind="odd", transfer_ps=6.0), 0.0)[1] is None
    assert possible_rates(op("x", Traffic.LOCAL, kind="odd", transfer_ps=6.0), 1.0) == (None, None)


def test_the_first_device_may_be_last(session: Session) -> None:
    comm = joined(session)
    ops = tuple(
        replace(comm.ops[0], pod=collective(last_core=core, last_fraction=0.25 + core)) for core in (-1, 0, 2)
    )
    table = ops_table(replace(comm, ops=ops))
    (last,) = (cells(column) for column in table.columns if column.name == "last")
    assert last == [None, "h0 TPU:0", "h1 TPU:0"]
    assert values(table, "last_fraction") == pytest.approx([np.nan, 0.25, 2.25], nan_ok=True)


@pytest.mark.parametrize(
    ("parts", "is_available"),
    [
        ([(0, 0), (0, 0), (0, 0)], False),
        ([(0, 0), (0, 5), (0, 0)], True),
        ([(0, 0), (5, 0), (0, 0)], True),
        ([(0, 0)] * 3 + [(5, 5)], True),
        ([(0, 0)] * 4 + [(5, 5)], False),
    ],
)
def test_one_of_the_first_hosts_with_hidden_or_exposed_traffic_suffices(
    parts: list[tuple[int, int]], is_available: bool
) -> None:
    made = {
        f"h{i}": SimpleNamespace(exposed_ps=np.array([0, one]), hidden_ps=np.array([other, 0]))
        for i, (one, other) in enumerate(parts)
    }
    session: Any = SimpleNamespace(hosts=tuple(made), get=lambda _function, host: made[host])
    assert bool(page_view.available(session)) is is_available


@pytest.mark.parametrize(
    ("parts", "is_known"), [([1, 2, 3], True), ([1, None, 3], False), ([None] * 3, False), ([], False)]
)
def test_the_overview_needs_the_communication_of_all_hosts(
    session: Session, monkeypatch: pytest.MonkeyPatch, parts: list[int | None], is_known: bool
) -> None:
    comm = joined(session)
    monkeypatch.setattr(comm_costs, "joined_comm", lambda *_: comm)
    made: Any = SimpleNamespace(map=lambda *_: parts)
    assert (comm_costs.comm_of(made, ("a",), None) is comm) is is_known  # type: ignore[arg-type]
    scalars = comm_costs.exposed_scalars(made, ("a",), None)  # type: ignore[arg-type]
    assert bool(scalars) is is_known
    none = np.zeros_like(comm.exposed_ps)
    quiet = replace(comm, exposed_ps=none, hidden_ps=none)
    monkeypatch.setattr(comm_costs, "joined_comm", lambda *_: quiet)
    assert comm_costs.exposed_scalars(made, ("a",), None) == {}  # type: ignore[arg-type]


def test_groups_of_pairs() -> None:
    one = collective()
    for n, text in ((1, "1 pair"), (1200, "1,200 pairs")):
        assert group_text(replace(one, op=replace(one.op, pairs=((0, 1),) * n)), "core") == text
    assert group_text(replace(one, groups=((0,),), group_size=1200), "core") == "all 1,200"
    assert group_text(replace(one, groups=((0,),) * 1200, group_size=1), "core") == "1,200 × 1 core"


def test_runs_that_are_not_drawn_are_counted() -> None:
    boxes = Boxes(
        np.array([-1, 0, 1, 2]),
        ("exposed", "compute", "partly", "hidden"),
        np.array([1, -1, 0, 1]),
        np.array([5, 6, 7, 8]),
        np.array([1, 2, 3, 4]),
        0,
    )
    named = [op("a").op, op("b").op]
    table = boxes_table(boxes, named, "Step 3")
    texts = {column.name: column for column in table.columns}
    shown_texts = {
        name: [texts[name].strings[i] if i >= 0 else None for i in texts[name].values.tolist()]  # type: ignore[index]
        for name in ("lane", "op", "kind")
    }
    assert shown_texts == {
        "lane": ["Exposed", "Compute", "Lane 1", "Lane 2"],
        "op": ["b", None, "a", "b"],
        "kind": ["exposed", "compute", "partly", "hidden"],
    }
    assert (table.note, table.title) == ("", "Step 3")
    assert boxes_table(replace(boxes, n_left_out=1), named, "").note == "1 short runs are not drawn"
    assert boxes_table(replace(boxes, n_left_out=1200), named, "").note == "1,200 short runs are not drawn"


def test_steps_and_devices_are_means_of_unlike_ones(session: Session) -> None:
    comm = joined(session)
    chance = np.random.default_rng(3)
    shape = comm.total_ps.shape
    n_devices, n_steps = shape
    exposed_ps, hidden = (chance.integers(1, 50, (*shape, 3)) for _ in range(2))
    partly = hidden // 3
    total = chance.integers(900, 1000, shape)
    compute = hidden.sum(axis=2) + chance.integers(0, 99, shape)
    made = replace(
        comm, exposed_ps=exposed_ps, hidden_ps=hidden, partly_ps=partly, total_ps=total, compute_ps=compute
    )
    waiting, gain = made.waiting_ps, made.gain_ps
    steps = steps_table(made)
    for step in range(n_steps):
        row = {column.name: column.values[step] for column in steps.columns}
        sums = {
            name: sum(int(cells[device, step].sum()) for device in range(n_devices)) / n_devices
            for name, cells in (
                ("step", total),
                ("compute", compute),
                ("hidden", hidden),
                ("partly", partly),
                ("exposed", exposed_ps),
            )
        }
        assert row["step_ps"] == pytest.approx(sums["step"])
        assert row["compute_ps"] == pytest.approx(sums["compute"] - sums["hidden"])
        assert row["hidden_ps"] == pytest.approx(sums["hidden"] - sums["partly"])
        assert row["exposed_ps"] == pytest.approx(sums["exposed"])
        assert row["other_ps"] == pytest.approx(sums["step"] - sums["compute"] - sums["exposed"])
        assert row["waiting_ps"] == pytest.approx(sum(waiting[:, step]) / n_devices)
        assert row["best_ps"] == pytest.approx(sums["step"] - sum(gain[:, step]) / n_devices)
    devices = devices_table(made)
    for i, device in enumerate(values(devices, "device_row")):
        row = {column.name: column.values[i] for column in devices.columns}
        own = int(device)
        assert row["step_ps"] == pytest.approx(sum(total[own]) / n_steps)
        assert row["exposed_ps"] == pytest.approx(int(exposed_ps[own].sum()) / n_steps)
        assert row["hidden_ps"] == pytest.approx(int(hidden[own].sum()) / n_steps)
        assert row["waiting_ps"] == pytest.approx(sum(waiting[own]) / n_steps)
        assert row["compute_ps"] == pytest.approx(sum(compute[own]) / n_steps)
        assert row["exposed_fraction"] == pytest.approx(int(exposed_ps[own].sum()) / int(total[own].sum()))
    shown_first = values(devices, "exposed_ps")
    assert shown_first == sorted(shown_first, reverse=True)


def test_an_empty_step_has_no_share(session: Session) -> None:
    comm = joined(session)
    nothing = replace(comm, total_ps=np.zeros_like(comm.total_ps))
    assert (Costs(nothing).exposed_fraction, Costs(nothing).gain_fraction) == (0.0, 0.0)
    assert values(devices_table(nothing), "exposed_fraction")[0] == pytest.approx(380e6)
    assert values(ops_table(nothing), "exposed_fraction")[0] == pytest.approx(190e6)


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


def test_the_capture_is_called_that(session: Session, whole: Payload) -> None:
    assert columns(whole, "steps")["step_ps"] == "Capture"
    assert columns(whole, "ops")["n_per_step"] == "Runs per capture"
    assert columns(whole, "ops")["exposed_fraction"] == "Share of capture"
    assert whole.tables["ops"].note == "times are means per capture and core"
    assert whole.tables["devices"].note == "of the whole capture"
    assert devices_table(joined(session)).note == "mean of all steps"
    share = whole.scalars["exposed_communication_fraction"].note
    assert share.startswith("1.56 ms of the capture, mean per device")
    assert whole.scalars["n_shown_steps"].note == "none are marked"
    assert whole.scalars["capture_span_ps"].note == "mean of 4 cores"


def test_words_of_a_cpu_and_titles_of_tables(session: Session, whole: Payload) -> None:
    comm = joined(session)
    cpu = replace(comm, pod=replace(comm.pod, kind="CPU"))
    assert ops_table(comm).note == "times are means per step and core"
    assert ops_table(cpu).note == "times are means per step and device"
    assert steps_table(cpu).note == "mean over 4 devices"
    assert values(devices_table(cpu), "device_row") == values(devices_table(comm), "device_row")
    titles = {column.name: column.title for column in steps_table(comm).columns}
    assert (titles["step"], titles["step_ps"]) == ("Step", "Step time")
    assert np.isfinite(values(ops_table(comm), "bytes_per_s")).all()  # of unknown memory, too
    total = comm.total_ps.copy()
    total[:, ::2] *= 3
    unlike = values(ops_table(replace(comm, total_ps=total)), "exposed_fraction")
    assert unlike == pytest.approx([one / 2 for one in values(ops_table(comm), "exposed_fraction")])
    assert steps_table(comm).title != whole.tables["steps"].title == "The capture"


def test_one_exchange_of_gpus_has_a_line(session: Session) -> None:
    comm = exposed(joined(session), 1.0)
    ops = (comm.ops[0], op("x", Traffic.HOST), op("y", Traffic.LOCAL))
    gpus = replace(comm, ops=ops, pod=replace(comm.pod, kind="GPU"))
    assert verdict(gpus).next[0].text.endswith(", on the lines Exposed communication")
    assert "Exposed" not in verdict(replace(gpus, ops=ops[1:])).next[0].text


def test_what_the_exposed_share_is_made_of(session: Session) -> None:
    comm = joined(session)
    assert exposed_share(comm).note.endswith(": 228 µs collectives, 25.0 µs copies, 7.00 µs data in flight")
    gpus = replace(comm, pod=replace(comm.pod, kind="GPU"))
    assert exposed_share(gpus).note == "260 µs per step, mean per device"  # two on each host
    one_each = replace(comm.pod, kind="GPU", hosts=("a", "b", "c", "d"))
    assert exposed_share(replace(comm, pod=one_each)).note.endswith("7.00 µs data in flight")
    cpus = replace(one_each, kind="CPU")
    assert exposed_share(replace(comm, pod=cpus)).note == "260 µs per step, mean per device"
    other = replace(comm, pod=replace(comm.pod, part_ps=comm.pod.part_ps[:, 1:]))
    assert exposed_share(other).note == "260 µs per step, mean per device"


def test_copies_of_both_kinds_are_added(session: Session) -> None:
    comm = joined(session)
    times = np.zeros_like(comm.exposed_ps)
    times[:, :, Traffic.HOST], times[:, :, Traffic.LOCAL] = 400_000, 300_000
    parts = np.zeros_like(comm.pod.part_ps)
    made = replace(comm, exposed_ps=times, pod=replace(comm.pod, part_ps=parts))
    assert exposed_share(made).note == "700 ns per step, mean per device: 700 ns copies"


@pytest.mark.parametrize(
    ("collectives", "devices", "local", "note"),
    [
        (0, 499_999, 0, ""),
        (0, 0, 499_999, ""),
        (0, 0, 500_000, ": 500 ns copies"),
        (0, 500_000, 0, ": 500 ns data in flight"),
        (0, 500_000, 600_000, ": 600 ns copies, 500 ns data in flight"),
        (700_000, 200_000, 600_000, ": 700 ns collectives, 600 ns copies"),
        (700_001, 200_000, 600_000, ""),  # more than is exposed: the classes are of something else
    ],
)
def test_parts_from_a_twentieth_of_a_percent(
    session: Session, collectives: int, devices: int, local: int, note: str
) -> None:
    """Of steps of 1,000 µs."""
    comm = joined(session)
    parts, times = np.zeros_like(comm.pod.part_ps), np.zeros_like(comm.exposed_ps)
    parts[:, :, Part.COLLECTIVE] = collectives
    times[:, :, Traffic.DEVICES], times[:, :, Traffic.LOCAL] = devices, local
    made = replace(comm, exposed_ps=times, pod=replace(comm.pod, part_ps=parts))
    assert exposed_share(made).note.partition("mean per device")[2] == note
