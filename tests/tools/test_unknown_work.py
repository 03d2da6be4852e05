"""Work that is not in the trace is unknown, never 0; work under another name counts. The same on
all pages.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US = 1_000_000


def op(symbol: int, category: str, **work: int) -> Stats:
    return {"program_id": 7, "symbol_id": symbol, "hlo_category": category, **work}


# As an exported trace.json has it: `model_flops` and no `flops`; a Pallas kernel of which the compiler knows
# nothing; one with neither.
EXPORTED = {
    "dot.1": op(1, "convolution fusion", model_flops=4_000_000, bytes_accessed=2_000),
    "copy.2": op(2, "data formatting", model_flops=0, bytes_accessed=9_000),
    "pallas.3": op(3, "custom-call", model_flops=0, bytes_accessed=0),
    "add.4": op(4, "loop fusion", bytes_accessed=500),
}


def session(metadata: dict[str, Stats] = EXPORTED, peaks: Stats | None = None) -> Session:
    """Operations of 4, 3, 2 and 1 µs on one core; nothing on the other two."""
    events = [DrawnEvent(name, 10 * i * US, (4 - i) * US) for i, name in enumerate(metadata)]
    return session_of(build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, peaks or {}, metadata)]))


def by_op(payload_cells: dict[str, list[object]], column: str) -> dict[object, float]:
    names = payload_cells["op"] if "op" in payload_cells else payload_cells["name"]
    return {name: float(value) for name, value in zip(names, payload_cells[column], strict=True)}  # type: ignore[arg-type]


def test_model_flops_stand_in_for_missing_flops_on_every_page() -> None:
    run, rate = session(), 4_000_000 / 4e-6
    tables = [cells(hlo_stats.TOOL.run(run, None, {})), cells(roofline_model.TOOL.run(run, None, {}))]
    tables.append(cells(op_profile.TOOL.run(run, None, {}), "nodes"))
    for table in tables:
        rates = by_op(table, "flop_rate_flops_per_s")
        assert rates["dot.1"] == pytest.approx(rate)
        assert rates["copy.2"] == 0  # the file says 0
        assert math.isnan(rates["pallas.3"])
        assert math.isnan(rates["add.4"])
    assert by_op(tables[0], "operational_intensity_flops_per_byte")["dot.1"] == 2_000
    framework = cells(framework_op_stats.TOOL.run(run, None, {}))
    assert framework["flop_rate_flops_per_s"][framework["operation"].index("dot.1")] == pytest.approx(rate)
    top = cells(overview_page.TOOL.run(run, None, {}), "top_ops")
    assert top["flop_rate_flops_per_s"][top["operation"].index("dot.1")] == pytest.approx(rate)


def test_rates_of_the_whole_agree_between_pages() -> None:
    run = session(peaks={"peak_teraflops_per_second": 10.0, "peak_hbm_bw_gigabytes_per_second": 10.0})
    span, busy = 31e-6, 10e-6
    assert roofline_model.TOOL.run(run, None, {}).scalars["flop_rate_flops_per_s"].value == pytest.approx(
        4_000_000 / span
    )
    assert overview_page.TOOL.run(run, None, {}).scalars["flops_fraction"].value == pytest.approx(
        4_000_000 / span / 10e12
    )
    assert op_profile.TOOL.run(run, None, {}).scalars["flop_rate_flops_per_s"].value == pytest.approx(
        4_000_000 / busy
    )
    assert overview_page.TOOL.run(run, None, {}).scalars["hbm_bandwidth_fraction"].value == pytest.approx(
        11_500 / span / 10e9
    )


def test_without_any_costs_rates_are_unknown_and_not_zero() -> None:
    silent = session({name: op(i + 1, "loop fusion") for i, name in enumerate(("a.1", "b.2", "c.3"))})
    scalar = op_profile.TOOL.run(silent, None, {}).scalars["flop_rate_flops_per_s"]
    assert (scalar.value, scalar.note) == (None, "the trace has no FLOP or byte counts")
    for name in ("flop_rate_flops_per_s", "intensity_flops_per_byte"):
        assert roofline_model.TOOL.run(silent, None, {}).scalars[name].value is None
    assert np.isnan(cells(hlo_stats.TOOL.run(silent, None, {}))["flop_rate_flops_per_s"]).all()  # type: ignore[arg-type]


def test_custom_calls_without_counts_are_named_with_what_helps() -> None:
    notices = [
        one
        for one in hlo_stats.TOOL.run(session(), None, {}).diagnostics
        if "no FLOP or byte counts in trace or HLO" in one.message
    ]
    assert len(notices) == 1
    assert "1 operation (20.0% of the operations' time) has" in notices[0].message
    assert "cost_estimate" in notices[0].remedy


def test_the_program_s_row_is_the_sum_of_its_operations() -> None:
    """Also where an operation's bytes are stated but its work is not known: a call of unknown work adds
    nothing.
    """
    metadata = {**EXPORTED, "ffi.5": op(5, "custom-call", flops=0, bytes_accessed=0)}
    payload = roofline_model.TOOL.run(session(metadata), None, {})
    programs, ops = cells(payload, "programs"), cells(payload)
    for column in ("flops", "hbm_bytes"):
        assert programs[column][0] == np.nansum(np.array(ops[column], np.float64))


def test_tile_table_and_chart_have_one_intensity() -> None:
    payload = roofline_model.TOOL.run(session(), None, {})
    programs = cells(payload, "programs")
    assert (
        payload.scalars["intensity_flops_per_byte"].value
        == programs["operational_intensity_flops_per_byte"][0]
    )
    assert programs["operational_intensity_flops_per_byte"] == programs["hbm_flops_per_byte"]
    assert "HBM" in payload.scalars["intensity_flops_per_byte"].note
