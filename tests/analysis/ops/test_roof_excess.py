"""Operations of which more was counted than the device can do: unknown on every page, and in no sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tb_tpuprof.analysis.device.attainable import MISCOUNTED
from tb_tpuprof.analysis.ops.hlo import hlo_ops, merge_hlo_ops
from tb_tpuprof.analysis.ops.roof_excess import excess_notices, roof_excesses
from tb_tpuprof.analysis.ops.roofline import ABOVE_PEAK, roofs
from tb_tpuprof.analysis.ops.utilization import utilization
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tb_tpuprof.tools.tool import Tool
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US = 1_000_000
PEAKS: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}
PAGES = [hlo_stats.TOOL, roofline_model.TOOL, op_profile.TOOL, framework_op_stats.TOOL, overview_page.TOOL]
# Just below and just above the limit: (FLOPs, bytes, µs) on a core of 1 TFLOP/s and 1 GB/s.
POSSIBLE = {
    "dot.1": (20_900_000, 4_000, 20),
    "copy.2": (0, 10_400, 10),
    "short.3": (100, 520, 0.5),
}
IMPOSSIBLE = {
    "dot.1": (21_100_000, 4_000, 20),
    "copy.2": (0, 10_600, 10),
    "short.3": (100, 530, 0.5),
}


def session(ops: dict[str, tuple[int, int, float]], model_factor: int = 1) -> Session:
    """These operations, beside one that stays below every limit. `model_factor`: model FLOPs ÷ FLOPs."""
    every = {**ops, "fusion.4": (5_000_000, 3_000, 10.0)}
    metadata: dict[str, Stats] = {
        name: {
            "program_id": 7,
            "symbol_id": i + 1,
            "hlo_category": "loop fusion",
            "tf_op": f"scope/{name}:Op",
            "flops": flops,
            "model_flops": model_factor * flops,
            "bytes_accessed": n_bytes,
        }
        for i, (name, (flops, n_bytes, _)) in enumerate(every.items())
    }
    events = [
        DrawnEvent(name, 50 * i * US, int(duration * US))
        for i, (name, (_, _, duration)) in enumerate(every.items())
    ]
    return session_of(build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, PEAKS, metadata)]))


def one(name: str, work: tuple[int, int, float]) -> Session:
    """Two possible operations and this one."""
    return session({**POSSIBLE, name: work})


def shares(payload: Payload) -> list[float]:
    """Every share on a page that is known: of all tables and numbers."""
    values = [
        float(value)
        for table in payload.tables.values()
        for column in table.columns
        if column.unit == "fraction"
        for value in column.values.tolist()
    ]
    values += [
        float(scalar.value)
        for scalar in payload.scalars.values()
        if scalar.unit == "fraction" and scalar.value is not None
    ]
    return [value for value in values if not math.isnan(value)]


@pytest.mark.parametrize("name", sorted(POSSIBLE))
def test_five_percent_above_the_peak_are_at_the_peak(name: str) -> None:
    below, above = one(name, POSSIBLE[name]).trace("worker-0"), one(name, IMPOSSIBLE[name]).trace("worker-0")
    assert roof_excesses(below) == ()
    (excess,) = roof_excesses(above)
    assert excess.op == name
    flops, n_bytes, duration = IMPOSSIBLE[name]
    assert excess.least_ps == pytest.approx(flops if name == "dot.1" else n_bytes * 1_000)
    assert excess.time_ps == duration * US


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_operands_of_few_bits_may_have_more_model_flops_than_the_peak(factor: int) -> None:
    """A TPU multiplies 8 bits twice, 4 bits four times as fast; its compiler divides `flops` by as much."""
    ops = hlo_ops(session(POSSIBLE, factor).trace("worker-0"))
    dot = next(row for row in range(len(ops)) if ops.name[row] == "dot.1")
    assert not ops.work.is_miscounted.any()
    assert (ops.work.flops[dot], ops.work.model_flops[dot]) == (20_900_000, factor * 20_900_000)
    rows = cells(hlo_stats.TOOL.run(session(POSSIBLE, factor), None, {}), "ops")
    rate = rows["normalized_flops_per_s"][rows["op"].index("dot.1")]
    assert rate == pytest.approx(factor * 20_900_000 / 20e-6)
    excess = roof_excesses(session(IMPOSSIBLE, factor).trace("worker-0"))
    assert {one.op for one in excess} == set(IMPOSSIBLE)


@pytest.mark.parametrize("tool", PAGES)
@pytest.mark.parametrize("name", sorted(POSSIBLE))
def test_no_page_shows_more_than_a_peak(tool: Tool, name: str) -> None:
    for work in (POSSIBLE[name], IMPOSSIBLE[name]):
        payload = tool.run(one(name, work), None, {})
        assert max(shares(payload)) <= 1.0
        notices = [
            d for d in payload.diagnostics if "more work was counted than the device can do" in d.message
        ]
        assert len(notices) == (work == IMPOSSIBLE[name])
    assert notices[0].severity == "warning"
    assert f"`{name}` runs for" in notices[0].message
    assert "is unknown and is not included in sums" in notices[0].message
    assert "TPUPROF_PEAKS" in notices[0].remedy


def test_the_other_amount_of_the_operation_stays_known() -> None:
    rows = cells(roofline_model.TOOL.run(session(IMPOSSIBLE), None, {}), "ops")
    dot, copy = rows["op"].index("dot.1"), rows["op"].index("copy.2")
    assert math.isnan(rows["flop_rate_flops_per_s"][dot])
    assert rows["hbm_bytes_per_s"][dot] == pytest.approx(4_000 / 20e-6)
    assert math.isnan(rows["hbm_bytes_per_s"][copy])
    for row in (dot, copy):
        assert (rows["bound_by"][row], rows["nearest_limit"][row]) == (ABOVE_PEAK, ABOVE_PEAK)
        assert math.isnan(rows["efficiency_fraction"][row])
    fits = rows["op"].index("fusion.4")
    assert rows["bound_by"][fits] == "Compute"
    assert rows["efficiency_fraction"][fits] == pytest.approx(0.5)


def test_sums_leave_the_amounts_out() -> None:
    possible, impossible = (utilization(session(ops).trace("worker-0")) for ops in (POSSIBLE, IMPOSSIBLE))
    assert possible.flops == 20_900_000 + 100 + 5_000_000
    assert possible.hbm_bytes == 4_000 + 10_400 + 520 + 3_000
    assert impossible.flops == 100 + 5_000_000
    assert impossible.hbm_bytes == 4_000 + 3_000
    rows = cells(
        op_profile.TOOL.run(session(IMPOSSIBLE), None, {"group_by": "category", "idle": False}), "nodes"
    )
    assert rows["flops"][0] == 100 + 5_000_000
    assert math.isnan(rows["wasted_ps"][rows["name"].index("dot.1")])


def test_of_several_hosts_one_suffices() -> None:
    parts = [hlo_ops(session(ops).trace("worker-0")) for ops in (POSSIBLE, IMPOSSIBLE, POSSIBLE)]
    merged = merge_hlo_ops(parts)
    row = merged.find(7, "dot.1")
    is_miscounted = merged.work.is_miscounted.tolist()
    assert {merged.name[i] for i, one in enumerate(is_miscounted) if one} == set(IMPOSSIBLE)
    assert not merged.work.knows_flops[row]
    assert merged.work.space_bytes[0][row] == 3 * 4_000
    found = [
        excess
        for part in (POSSIBLE, IMPOSSIBLE, IMPOSSIBLE)
        for excess in roof_excesses(session(part).trace("worker-0"))
    ]
    (notice,) = excess_notices(found, roofs(session(POSSIBLE).trace("worker-0")))
    assert notice.message.startswith("For 3 operations")


def test_pages_of_several_hosts_leave_out_the_same_work() -> None:
    """Three unlike hosts; one counts too much for `dot.1`, whose FLOPs are then unknown on all of them."""
    fewer = {
        name: (flops // 2, n_bytes // 4, duration) for name, (flops, n_bytes, duration) in POSSIBLE.items()
    }
    for middle, flops, n_bytes in (
        (POSSIBLE, 2 * 20_900_000 + 10_450_000 + 250 + 15_000_000, 2 * 14_920 + 3_730 + 9_000),
        ({**POSSIBLE, "dot.1": IMPOSSIBLE["dot.1"]}, 250 + 15_000_000, 2 * 14_920 + 3_730 + 9_000),
    ):
        hosts = session_of(*(session(ops).trace("worker-0") for ops in (POSSIBLE, middle, fewer)))
        overview = overview_page.TOOL.run(hosts, None, {}).scalars
        whole = cells(roofline_model.TOOL.run(hosts, None, {}), "programs")
        seconds = whole["total_time_ps"][0] / 1e12
        assert (whole["flops"][0], whole["hbm_bytes"][0]) == (flops, n_bytes)
        assert overview["flops_fraction"].value == pytest.approx(flops / (seconds * 1e12))
        assert overview["hbm_bandwidth_fraction"].value == pytest.approx(n_bytes / (seconds * 1e9))


def test_a_sum_above_the_peak_is_unknown() -> None:
    """Streams run at once: each operation is possible by itself, all of them in the step's time are not."""
    from tb_tpuprof.analysis.ops.utilization import Utilization

    usual = Utilization(device_ps=US, flops=90, max_flops=100, hbm_bytes=104, max_bytes=100)
    assert (usual.flops_fraction, usual.bandwidth_fraction, usual.bound_by) == (0.9, 1.0, "memory")
    above = Utilization(device_ps=US, flops=90, max_flops=100, hbm_bytes=106, max_bytes=100)
    assert (above.flops_fraction, above.bandwidth_fraction) == (0.9, None)
    assert (above.roofline_fraction, above.bound_by) == (None, "")


def test_the_reason_depends_on_what_is_exceeded() -> None:
    for name, part in (
        ("dot.1", "fewer FLOPs ran than were counted"),
        ("copy.2", "a cache served part of the bytes, or the peak is too low (source: the trace)"),
        ("short.3", "too short to be measured"),
    ):
        trace = one(name, IMPOSSIBLE[name]).trace("worker-0")
        (notice,) = excess_notices(roof_excesses(trace), roofs(trace))
        assert part in notice.message


def test_rates_of_the_operations_page_end_at_the_peak() -> None:
    rows = cells(hlo_stats.TOOL.run(session(IMPOSSIBLE), None, {}), "ops")
    rates = np.array(rows["flop_rate_flops_per_s"])
    assert np.nanmax(rates) == pytest.approx(5_000_000 / 10e-6)


def streams(starts_us: tuple[int, int, int]) -> Session:
    """Three unlike operations of a GPU of 2.5 GB/s, each on a stream of its own at 60%, 45% and 30% of it."""
    large, medium, small = array(1000), array(750), array(500)
    entry = [
        instruction(1, "parameter", large),
        instruction(2, "parameter", medium),
        instruction(3, "parameter", small),
        instruction(4, "add", large, [1, 1]),
        instruction(5, "multiply", medium, [2, 2]),
        instruction(6, "subtract", small, [3, 3]),
    ]
    hlo = proto([computation(1, "main", entry, 6)])
    program = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent("module(0)", 0, 0)]},
        metadata_stats={"module(0)": {"Hlo Proto": hlo}},
    )
    lines = {
        f"Stream #{i + 1}": [
            DrawnEvent(f"k{i}", at * US, 8 * US, {"hlo_op": op, "program_id": 0, "correlation_id": i + 1})
        ]
        for i, (op, at) in enumerate(zip(("add.4", "multiply.5", "subtract.6"), starts_us, strict=True))
    }
    stats: Stats = {"peak_teraflops_per_second": 1.0, "memory_bandwidth": 2_500_000_000}
    return session_of(build([program, DrawnPlane("/device:GPU:0", lines, stats)]))


def test_what_runs_at_once_has_no_utilization_above_the_peak() -> None:
    """By hand: 12,000 + 9,000 + 6,000 bytes, two operands read and a result written, in 24 µs one after
    another, or in 8 µs at once: 45% or 135% of 2.5 GB/s.
    """
    for starts, share in (((0, 8, 16), 0.45), ((0, 0, 0), None)):
        run = streams(starts)
        assert roof_excesses(run.trace("worker-0")) == ()
        assert utilization(run.trace("worker-0")).bandwidth_fraction == (share and pytest.approx(share))
        overview = overview_page.TOOL.run(run, None, {}).scalars["hbm_bandwidth_fraction"]
        assert overview.value == (share and pytest.approx(share))
        assert (MISCOUNTED in overview.note) == (share is None)
        for tool in PAGES:
            assert max(shares(tool.run(run, None, {})), default=0.0) <= 1.0, tool.name
        whole = roofline_model.TOOL.run(run, None, {}).scalars["efficiency_fraction"]
        assert whole.value == (share and pytest.approx(share))
