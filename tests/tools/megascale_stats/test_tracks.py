"""Transfers between slices on the timeline: a line of each core, drawn from the sends to the recv-dones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tests.synthetic import PS_PER_US, TpuJob, tpu_xspace, write_run
from tests.synthetic_dcn import dcn_hosts
from tests.tools.trace_viewer.questions import line_named, rows

LINE = "DCN Transfers"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("dcn") / "run", dcn_hosts())), cache=False)


def boxes(session: Session, host: str) -> list[tuple[str, str, int, int]]:
    """(core, rendezvous, start, duration) in µs."""
    payload = TOOL.run(session, (host,), {"width_px": 20_000})
    return sorted(
        (box["section"], box["name"], box["start_ps"] // PS_PER_US, box["duration_ps"] // PS_PER_US)
        for box in line_named(payload, LINE)
    )


def test_each_core_has_its_own_transfers(session: Session) -> None:
    assert boxes(session, "synthetic-0") == [
        ("TPU:0", "all-reduce.1", 0, 340),
        ("TPU:1", "all-gather.7", 10, 190),
        ("TPU:1", "all-reduce.1", 0, 300),
    ]
    assert boxes(session, "synthetic-1") == [("TPU:0", "permute.3", 1000, 800)]
    assert boxes(session, "synthetic-2") == [
        ("TPU:0", "all-reduce.1", 0, 70),
        ("TPU:0", "all-reduce.1", 100, 220),
        ("TPU:1", "scatter.9", 0, 90),
        ("TPU:2", "ragged.6", 95, 5),
        ("TPU:2", "shuffle.5", 50, 45),
    ]


def arguments(session: Session, host: str, name: str) -> dict[str, str]:
    payload = TOOL.run(session, (host,), {"width_px": 20_000})
    (event,) = [box["event"] for box in line_named(payload, LINE) if box["name"] == name]
    answer = TOOL.run(session, (host,), {"event": event}, question="event")
    return {row["name"]: row["value"] for row in rows(answer, "arguments")}


def test_a_transfer_s_panel_has_its_slack_and_stall(session: Session) -> None:
    stated = arguments(session, "synthetic-0", "all-gather.7")
    assert {name: stated[name] for name in ("transfer_type", "network_bytes", "slack_us", "stall_us")} == {
        "transfer_type": "ALL_GATHER",
        "network_bytes": "1000000",
        "slack_us": "70.000",
        "stall_us": "95.000",
    }
    halves = ("in_send_us", "in_send_done_us", "in_recv_us", "in_recv_done_us")
    assert [stated[name] for name in halves] == ["20.000", "5.000", "10.000", "60.000"]
    assert stated["required_gbit_per_s"] == f"{1e6 * 8 / 70e-6 / 1e9:.3f}"


def test_what_is_unknown_is_left_out(session: Session) -> None:
    without_slack = arguments(session, "synthetic-1", "permute.3")
    assert without_slack["network_bytes"] == "1000000"
    assert "required_gbit_per_s" not in without_slack
    assert "network_bytes" not in arguments(session, "synthetic-2", "ragged.6")


def test_a_job_on_one_slice_has_no_such_line(tmp_path: Path) -> None:
    alone = Session(str(write_run(tmp_path / "run", {"h": tpu_xspace(TpuJob())})), cache=False)
    assert line_named(TOOL.run(alone, None, {"width_px": 2000}), LINE) == []
