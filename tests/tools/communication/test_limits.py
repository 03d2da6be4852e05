"""The communication page at its limits: hosts left out, the menu's share, sentences and rates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import CommOp, Traffic
from tb_tpuprof.analysis.comm.host import comm_between
from tb_tpuprof.analysis.comm.join import Comm, OpTimes
from tb_tpuprof.analysis.comm.picture import Boxes
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.session import Session
from tb_tpuprof.tools import comm_costs
from tb_tpuprof.tools.clocks import Clocks
from tb_tpuprof.tools.comm_costs import Costs, exposed_share
from tb_tpuprof.tools.communication import view as page_view
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
from tests.analysis.pod.test_numbers import collective
from tests.payload_columns import cells
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts
from tests.tools.communication.pages import joined
from tests.tools.communication.test_communication import exposed
from tests.tools.communication.test_words import columns, shown
from tests.tools.inference_profile.test_words import values

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
        (1, "1 of 3 hosts has no device in the others' steps: x0."),
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
    assert page.scalars["exposed_ps"].note.endswith(" of a step · 130 µs to 521 µs")
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
    ("parts", "kinds", "is_known"),
    [
        ([1, 2, 3], "TTT", True),
        ([1, None, 3], "TTT", False),
        ([1, None, 3], "TGT", False),
        ([1, None, 3], "TCT", True),  # beside accelerators, a host without any does not count
        ([None, 2, None], "CTG", False),
        ([None] * 3, "TTT", False),
        ([None] * 3, "CCC", False),
        ([], "", False),
    ],
)
def test_the_overview_needs_the_communication_of_all_hosts_with_accelerators(
    session: Session, monkeypatch: pytest.MonkeyPatch, parts: list[int | None], kinds: str, is_known: bool
) -> None:
    comm = joined(session)
    hosts = [f"h{i}" for i in range(len(parts))]
    found: dict[object, dict[str, object]] = {
        comm_between: dict(zip(hosts, parts, strict=True)),
        hardware: {
            host: SimpleNamespace(kind={"T": "TPU", "G": "GPU", "C": "CPU"}[kind])
            for host, kind in zip(hosts, kinds, strict=True)
        },
    }
    made: Any = SimpleNamespace(map=lambda function, those: [found[function][host] for host in those])
    clocks = Clocks(tuple(range(len(parts))))
    asked: list[tuple[list[int], tuple[int, ...]]] = []

    def answer(_session: Session, known: list[int], corrected: Clocks) -> Comm:
        asked.append((known, corrected.correction_ns))
        return comm

    monkeypatch.setattr(comm_costs, "joined_comm", answer)
    assert (comm_costs.comm_of(made, hosts, clocks) is comm) is is_known
    kept = [(part, i) for i, part in enumerate(parts) if part is not None]
    assert asked == ([([part for part, _ in kept], tuple(i for _, i in kept))] if is_known else [])
    assert bool(comm_costs.exposed_scalars(made, hosts, clocks)) is is_known
    none = np.zeros_like(comm.exposed_ps)
    quiet = replace(comm, exposed_ps=none, hidden_ps=none)
    monkeypatch.setattr(comm_costs, "joined_comm", lambda *_: quiet)
    assert comm_costs.exposed_scalars(made, hosts, clocks) == {}


def test_groups_of_pairs() -> None:
    one = collective()
    for n, text in ((1, "1 pair"), (1200, "1,200 pairs")):
        assert group_text(replace(one, op=replace(one.op, pairs=((0, 1),) * n)), "core") == text
    assert group_text(replace(one, groups=((0,),), group_size=1200), "core") == "all 1,200"
    assert group_text(replace(one, groups=((0,),) * 1200, group_size=1), "core") == ""
    assert group_text(replace(one, groups=((0, 1),) * 1200, group_size=2), "core") == "1,200 × 2 cores"


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
    columns = {column.name: cells(column) for column in table.columns}
    assert {name: columns[name] for name in ("lane", "op", "kind")} == {
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


def test_the_capture_is_called_that(session: Session, whole: Payload) -> None:
    assert columns(whole, "steps")["step_ps"] == "Capture"
    assert columns(whole, "ops")["n_per_step"] == "Runs per capture"
    assert columns(whole, "ops")["exposed_fraction"] == "Share of capture"
    assert whole.tables["ops"].note == "times of the capture, mean per core"
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


def test_what_the_exposed_share_is_made_of(session: Session) -> None:
    comm = joined(session)
    assert exposed_share(comm).note.endswith(": 228 µs collectives, 25.0 µs copies, 7.00 µs data in flight")
    gpus = replace(comm, pod=replace(comm.pod, kind="GPU"))
    assert exposed_share(gpus).note == (  # two on each host
        "260 µs per step, mean per device: a step computes while any GPU of its host does"
    )
    one_each = replace(comm.pod, kind="GPU", hosts=("a", "b", "c", "d"))
    # Streams of GPUs run nothing while data is in flight: the rest are copies.
    made_of = exposed_share(replace(comm, pod=one_each)).note
    assert made_of.endswith(": 228 µs collectives, 32.0 µs copies")
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
        (700_001, 200_000, 600_000, ": without 500 ns in operations that only start a transfer"),
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
