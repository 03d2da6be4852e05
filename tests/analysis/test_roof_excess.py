"""Rates above a peak are reported on every page, with operation, number and likely reason."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.ops.roof_excess import excess_notices, roof_excesses
from tb_tpuprof.analysis.ops.roofline import roofs
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tb_tpuprof.tools.tool import Tool
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US = 1_000_000
PEAKS: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}


def session(n_bytes: int, flops: int = 0, duration_us: float = 10) -> Session:
    """One operation beside two that stay below every limit."""

    def stats(symbol: int, flops: int, n_bytes: int) -> Stats:
        return {
            "program_id": 7,
            "symbol_id": symbol,
            "hlo_category": "loop fusion",
            "flops": flops,
            "bytes_accessed": n_bytes,
        }

    metadata = {
        "fusion.1": stats(1, flops, n_bytes),
        "fusion.2": stats(2, 10, 20),
        "fusion.3": stats(3, 0, 30),
    }
    events = [
        DrawnEvent("fusion.1", 0, int(duration_us * US)),
        DrawnEvent("fusion.2", 20 * US, 2 * US),
        DrawnEvent("fusion.3", 30 * US, 3 * US),
    ]
    return session_of(build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, PEAKS, metadata)]))


def test_what_is_within_five_percent_of_the_peak_is_no_excess() -> None:
    assert roof_excesses(session(10_400).trace("worker-0")) == ()
    assert len(roof_excesses(session(10_600).trace("worker-0"))) == 1


@pytest.mark.parametrize(
    "tool",
    [hlo_stats.TOOL, roofline_model.TOOL, op_profile.TOOL, framework_op_stats.TOOL, overview_page.TOOL],
)
def test_every_page_reports_it(tool: Tool) -> None:
    told = [
        one
        for one in tool.run(session(15_000), None, {}).diagnostics
        if "a peak of the device" in one.message
    ]
    assert [one.severity for one in told] == ["warning"]
    assert "`fusion.1` at 150% of peak HBM bandwidth (1.00 GB/s)" in told[0].message
    assert "a cache served part of the bytes, or the peak is too low (source: the trace)" in told[0].message
    assert "TPUPROF_PEAKS" in told[0].remedy
    assert not any(
        "a peak of the device" in one.message for one in tool.run(session(9_000), None, {}).diagnostics
    )


def test_the_number_is_shown_as_it_is() -> None:
    found = cells(op_profile.TOOL.run(session(15_000), None, {}), "nodes")
    assert found["hbm_fraction"][found["name"].index("fusion.1")] == pytest.approx(1.5)


def test_the_reason_depends_on_what_is_exceeded() -> None:
    for given, part in (
        (session(0, flops=20_000_000), "FLOPs are fewer than counted"),
        (session(2_000, duration_us=0.5), "too short to be measured"),
    ):
        trace = given.trace("worker-0")
        (notice,) = excess_notices(roof_excesses(trace), roofs(trace))
        assert part in notice.message
