"""Words and means of the communication page: where steps, devices and operations are unlike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.comm_costs import Costs, exposed_share
from tb_tpuprof.tools.communication import view as page_view
from tb_tpuprof.tools.communication.tables import devices_table, ops_table
from tb_tpuprof.tools.communication.view import TOOL
from tb_tpuprof.tools.core_names import core_name, unit_of
from tb_tpuprof.tools.payload import Payload
from tests.payload_columns import scalar, table
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts
from tests.tools.communication.pages import US, comm_session, joined, us


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return comm_session(tmp_path_factory.mktemp("comm"))


@pytest.fixture(scope="module")
def page(session: Session) -> Payload:
    return TOOL.run(session, None, {})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Payload:
    return TOOL.run(comm_session(tmp_path_factory.mktemp("whole"), has_steps=False), None, {})


def shown(session: Session, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Payload:
    """The page of the same run with other numbers."""
    comm = replace(joined(session), **changed)
    monkeypatch.setattr(page_view, "joined_comm", lambda *_: comm)
    return TOOL.run(session, None, {})


def columns(payload: Payload, name: str) -> dict[str, str]:
    return {column.name: column.title for column in payload.tables[name].columns}


def test_notes_name_the_step_or_the_capture(page: Payload, whole: Payload) -> None:
    assert page.scalars["hidden_ps"].note == "of a step, mean per core"
    assert page.scalars["exposed_ps"].note == "26.0% of a step"
    assert whole.scalars["hidden_ps"].note == "of the capture, mean per core"
    assert columns(page, "devices")["step_ps"] == "Step time"
    assert columns(whole, "devices")["step_ps"] == "Capture"
    name = "exposed_communication_fraction"
    assert "per step" in page.scalars[name].working
    assert "per step" not in whole.scalars[name].working


def test_the_hidden_share_is_of_all_communication(page: Payload) -> None:
    assert scalar(page, "hidden_fraction") == pytest.approx(354.75 / (354.75 + 260.25))
    assert page.scalars["hidden_fraction"].note == "355 µs of 615 µs of communication"


def test_unlike_steps_count_with_their_mean(session: Session) -> None:
    comm = joined(session)
    hidden, total = comm.hidden_ps.copy(), comm.total_ps.copy()
    hidden[:, 0] *= 4
    total[:, 0] *= 4
    unlike = replace(comm, hidden_ps=hidden, total_ps=total)
    assert Costs(unlike).step_ps == 1500 * US
    found = devices_table(unlike)
    by_name = {column.name: column.values for column in found.columns}
    assert us(list(by_name["hidden_ps"])) == pytest.approx([590 * 1.5, 330 * 1.5, 499 * 1.5, 0])
    assert exposed_share(unlike).value == pytest.approx(0.26025 / 1.5)


def test_the_time_of_one_of_several_runs(session: Session) -> None:
    comm = joined(session)
    twice = replace(comm, ops=tuple(replace(one, n_per_step=2.0) for one in comm.ops))
    never = replace(comm, ops=tuple(replace(one, n_per_step=0.0) for one in comm.ops))
    elapsed = [
        next(column.values for column in ops_table(one).columns if column.name == "elapsed_ps")
        for one in (comm, twice, never)
    ]
    assert us(list(elapsed[1])) == [float(value) / 2 / US for value in elapsed[0]] == [95, 200, 100, 250]
    assert np.isnan(np.asarray(elapsed[2], float)).all()


def test_copies_that_are_not_hidden_are_timed_exactly(session: Session) -> None:
    comm = joined(session)
    exposed = replace(comm, ops=tuple(replace(one, pod=None, hidden_ps=0.0) for one in comm.ops))
    hidden = replace(comm, ops=tuple(replace(one, pod=None, hidden_ps=1.0) for one in comm.ops))
    copy = [one.op.name for one in comm.ops].index("copy.5")
    remarks = [
        table(Payload("t", "r", (), {"ops": ops_table(one)}, {}), "ops")["remark"]
        for one in (exposed, hidden)
    ]
    assert remarks[0] == [None] * 4
    assert remarks[1][copy] == "bandwidth is a lower bound: from its start to its done"


@pytest.mark.parametrize(
    ("peak", "rate", "remark"),
    [
        (10.4e9, "5242880000.0", "bandwidth is a lower bound: from its start to its done"),
        (9e9, "nan", "bandwidth unknown: the size and the time give more than the device's memory carries"),
    ],
)
def test_a_copy_above_the_memory_s_peak_has_no_bandwidth_and_says_why(
    session: Session, peak: float, rate: str, remark: str
) -> None:
    """1 MiB in 200 µs is 5.2 GB/s, read and written."""
    comm = joined(session)
    copy = [one.op.name for one in comm.ops].index("copy.5")
    ops = table(Payload("t", "r", (), {"ops": ops_table(comm, peak)}, {}), "ops")
    assert (str(ops["bytes_per_s"][copy]), ops["remark"][copy]) == (rate, remark)


@pytest.mark.parametrize(("name", "title"), [("7", "Step 7"), ("Step#7", "Step#7"), ("my step", "my step")])
def test_names_of_steps_are_not_doubled(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str, title: str
) -> None:
    comm = joined(session)
    monkeypatch.setattr(page_view, "joined_comm", lambda *_: replace(comm, step_names=(name,) * 6))
    answer = TOOL.run(session, None, {}, "step")
    assert answer.tables["boxes"].title == f"{title} on h0 TPU:0"


def test_hosts_that_were_captured_apart_are_said(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = joined(session)
    none = np.zeros_like(comm.exposed_ps)
    apart = replace(comm.pod, is_disjoint=True)
    with pytest.raises(ToolUnavailable, match=r"steps do not overlap in time") as raised:
        shown(session, monkeypatch, hidden_ps=none, exposed_ps=none, pod=apart)
    assert raised.value.remedy == "Capture all hosts at the same time."
    with pytest.raises(ToolUnavailable, match="no device moved any data"):
        shown(session, monkeypatch, hidden_ps=none, exposed_ps=none)


def test_who_is_last_where_one_is_known(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = joined(session)
    with_last = [
        tuple(replace(one, pod=one.pod and replace(one.pod, last_core=core)) for one in comm.ops)
        for core in (-1, 0)
    ]
    notes = [
        shown(session, monkeypatch, ops=ops).scalars["wait_ps"].note
        for ops in (*with_last, tuple(replace(one, pod=None) for one in comm.ops))
    ]
    assert notes == ["in collectives", "h0 TPU:0 is last in 100% of the steps", "in collectives"]


def test_the_picture_asks_for_rows_from_the_first_on(session: Session) -> None:
    for name in ("device", "step"):
        assert TOOL.run(session, None, {name: -1}, "step").tables["boxes"].n_rows
        with pytest.raises(BadParameter):
            TOOL.run(session, None, {name: -2}, "step")


def test_the_most_exposed_device_is_drawn(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    comm = joined(session)
    more = comm.exposed_ps.copy()
    more[2] *= 3
    monkeypatch.setattr(page_view, "joined_comm", lambda *_: replace(comm, exposed_ps=more))
    assert scalar(TOOL.run(session, None, {}, "step"), "device") == 2


def test_words_for_what_is_compared(session: Session) -> None:
    pod = joined(session).pod
    assert unit_of(pod) == "core"
    assert core_name(pod, 1) == "h0 TPU:1"
    ranks = replace(pod, cores=tuple(replace(core, rank=7 - i) for i, core in enumerate(pod.cores)))
    assert unit_of(ranks) == "rank"
    assert core_name(ranks, 1) == "rank 6"
    assert [unit_of(replace(pod, kind=kind)) for kind in ("GPU", "CPU")] == ["GPU", "host"]


def test_runs_are_read_again_without_a_cache(tmp_path: Path) -> None:
    """The menu knows no share before the page was shown."""
    fresh = Session(str(write_run(tmp_path, comm_hosts())), cache=False)
    assert TOOL.badge(fresh) == ""
