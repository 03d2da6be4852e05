"""Shares and sums of the HLO pages: one base, one grouping, and sums over cores are labeled."""

from __future__ import annotations

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US = 1_000_000


def op(program: int, symbol: int, category: str) -> Stats:
    return {
        "program_id": program,
        "symbol_id": symbol,
        "hlo_category": category,
        "flops": 10,
        "bytes_accessed": 100,
    }


@pytest.fixture(scope="module")
def session() -> Session:
    """Three cores that run three programs for unlike times; two programs have an operation of the
    same name.
    """
    planes = []
    for core in range(3):
        events = [
            DrawnEvent("fusion.1", 0, (10 + core) * US),
            DrawnEvent("fusion.2", 20 * US, 4 * US),
            DrawnEvent("copy-start.3", 25 * US, 1000),
            DrawnEvent("copy-done.3", 30 * US, 20 * US),
        ]
        metadata = {
            "fusion.1": op(core % 2, 1, "loop fusion"),
            "fusion.2": op(2, 2, "output fusion"),
            "copy-start.3": op(2, 3, "copy-start"),
            "copy-done.3": op(2, 4, "copy-done"),
        }
        peaks: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}
        planes.append(DrawnPlane(f"/device:TPU:{core}", {"XLA Ops": events}, peaks, metadata))
    return session_of(build(planes))


BUSY = 33 + 12 + 60  # µs, and 3 ns


def test_the_headline_is_the_table_s_first_row_with_its_number(session: Session) -> None:
    payload = hlo_stats.TOOL.run(session, None, {})
    ops, donut = cells(payload), cells(payload, "by_op")
    assert ops["op"][0] == "copy-done.3"
    assert ops["self_fraction"][0] == pytest.approx(60 / BUSY, rel=1e-3)
    assert donut["fraction"] == ops["self_fraction"]  # each slice a row
    assert payload.verdict
    assert (
        "60.0 µs (summed over 3 cores: 20.0 µs per core), 57.1% of the operations' time"
        in payload.verdict.text
    )
    assert {"fusion.1 of 0", "fusion.1 of 1"} <= set(donut["name"])  # two programs', as two rows
    assert sum(ops["self_fraction"]) == pytest.approx(1)  # type: ignore[arg-type]


def test_the_same_share_of_waiting_on_four_pages(session: Session) -> None:
    sentence = "57.1% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`): "
    sentence += "60.0 µs summed over 3 cores, 20.0 µs per core."
    for tool in (op_profile, roofline_model, overview_page):
        verdict = tool.TOOL.run(session, None, {}).verdict
        assert verdict
        assert verdict.text.startswith(sentence)
    stats = hlo_stats.TOOL.run(session, None, {})
    assert stats.verdict
    assert stats.verdict.text.startswith(f"{sentence} `copy-done.3` ")
    by_bound = cells(stats, "by_bound")
    assert by_bound["name"][0] == "Waiting"
    assert by_bound["fraction"][0] == pytest.approx(60 / BUSY, rel=1e-3)


def test_what_is_below_every_limit_is_not_called_bound(session: Session) -> None:
    ops = cells(roofline_model.TOOL.run(session, None, {}))
    limits = dict(zip(ops["op"], ops["bound_by"], strict=True))
    assert (limits["fusion.1"], limits["fusion.2"], limits["copy-done.3"]) == ("Below every limit",) * 2 + (
        "Waiting",
    )
    assert dict(zip(ops["op"], ops["nearest_limit"], strict=True))["fusion.1"] == "HBM"


def test_waiting_is_no_headroom(session: Session) -> None:
    """At the roofline a copy would not be waited for less: the operation to look at is one that works."""
    verdict = roofline_model.TOOL.run(session, None, {}).verdict
    assert verdict
    assert "`fusion.1` of `0` (loop fusion) has the largest headroom" in verdict.details[0]


def test_sums_over_cores_are_called_so(session: Session) -> None:
    for tool in (hlo_stats, op_profile):
        assert tool.TOOL.run(session, None, {}).scalars["busy_ps"].note == (
            "summed over 3 cores: 35.0 µs per core, of 50.0 µs from its first operation to its last"
        )
    programs = {
        column.name: column
        for column in roofline_model.TOOL.run(session, None, {}).tables["programs"].columns
    }
    assert (programs["total_time_ps"].title, programs["time_per_device_ps"].title) == (
        "Time, all devices",
        "Span per device",
    )
    assert programs["time_per_device_ps"].values.tolist() == [50 * US]
