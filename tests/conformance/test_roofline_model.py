"""The roofline's rows beside the peer's. Each deliberate difference stands here with its reason."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.tools.roofline_model.view import TOOL
from tests.conformance.peer import answer, open_session, rows
from tests.conformance.test_hlo_stats import COPIES, GIB, RUNS, TPU, number
from tests.tools.test_hlo_stats import cells

SAME = {
    "occurrences": ("n_occurrences", 1.0),
    "total_time": ("total_time_ps", 1e-6),
    "avg_time": ("avg_time_ps", 1e-6),
    "total_self_time": ("total_self_time_ps", 1e-6),
    "total_self_time_percent": ("device_time_fraction", 1.0),
    "total_time_in_percentage": ("time_fraction", 1.0),
}
MEASURES = {
    "measured_flop_rate": ("flop_rate_flops_per_s", 1e-9),
    "model_flop_rate": ("model_flops_per_s", 1e-9),
    "measured_memory_bw": ("memory_bandwidth_bytes_per_s", 1 / GIB),
    "hbm_bw": ("hbm_bytes_per_s", 1 / GIB),
    "vmem_read_bw": ("vmem_read_bytes_per_s", 1 / GIB),
    "operational_intensity": ("all_memories_flops_per_byte", 1.0),
    "hbm_operational_intensity": ("hbm_flops_per_byte", 1.0),
    "bottleneck_operational_intensity": ("bound_flops_per_byte", 1.0),
    "optimal_flop_rate": ("optimal_flops_per_s", 1e-9),
    "roofline_efficiency": ("efficiency_fraction", 1.0),
    "compute_efficiency": ("compute_fraction", 1.0),
    "max_mem_bw_utilization": ("memory_fraction", 1.0),
}


@pytest.mark.parametrize("transfers", [True, False])
@pytest.mark.parametrize("name", RUNS)
def test_times_and_shares_are_the_peer_s(name: str, transfers: bool) -> None:
    found = cells(TOOL.run(open_session(name), None, {"transfers": str(transfers).lower()}))
    peer = [
        row
        for row in rows(answer(name, "roofline_model")[0])
        if row["rank"] and row["include_infeed_outfeed"] == transfers
    ]
    order = {(row["hlo_module_id"], row["operation"]): row for row in peer}
    assert len(order) == len(peer) == len(found["op"])
    running = [row["cumulative_total_self_time_percent"] for row in sorted(peer, key=lambda row: row["rank"])]
    assert np.cumsum(found["device_time_fraction"]) == pytest.approx(running)
    for i, (program, op) in enumerate(zip(found["program"], found["op"], strict=True)):
        theirs = order[str(program).rpartition("(")[2].rstrip(")"), op]
        for column, (ours, factor) in SAME.items():
            assert number(found[ours][i]) * factor == pytest.approx(theirs[column], rel=1e-6, abs=1e-12), (
                op,
                column,
            )
        assert found["category"][i] == theirs["category"]


def test_measures_of_a_tpu_are_the_peer_s() -> None:
    """Asynchronous copies apart: the peer counts their bytes for both halves, each over its own time."""
    payload = TOOL.run(open_session(TPU), None, {})
    found, programs = cells(payload), cells(payload, "programs")
    peer = [row for row in rows(answer(TPU, "roofline_model")[0]) if row["include_infeed_outfeed"]]
    for i, op in enumerate(found["op"]):
        theirs = next(row for row in peer if row["operation"] == op)
        if COPIES.fullmatch(str(op)):
            continue
        assert found["nearest_limit"][i] == theirs["bound_by"]
        assert number(found["time_per_device_ps"][i]) * 1e-6 == pytest.approx(theirs["total_time_per_core"])
        for column, (ours, factor) in MEASURES.items():
            assert number(found[ours][i]) * factor == pytest.approx(theirs[column], rel=1e-6), (op, column)
    # The program's row counts each copy's HBM bytes once on either side, but of all memories together twice
    # at the peer.
    assert programs["step"] == ["Total"]  # there are no steps; the peer's average of none is a row of zeros
    for column, (ours, factor) in MEASURES.items():
        if column in ("measured_memory_bw", "operational_intensity"):
            continue
        assert number(programs[ours][0]) * factor == pytest.approx(peer[0][column], rel=1e-6), column


@pytest.mark.parametrize("name", RUNS)
def test_peaks_and_ridges_are_the_peer_s(name: str) -> None:
    payload = TOOL.run(open_session(name), None, {})
    peer = answer(name, "roofline_model")[0]["p"]
    roofs = cells(payload, "roofs")
    ridge = dict(zip(roofs["name"], roofs["ridge_flops_per_byte"], strict=True))
    halved = (
        5300e9 / 2662.4e9 if "mi300" in name else 1.0
    )  # the peer believes ROCm's tracer, see tests/analysis/device/test_peaks.py
    assert number(payload.scalars["peak_flops_per_s"].value) / 1e9 == pytest.approx(
        float(peer["peak_flop_rate"]), rel=1e-5
    )
    assert number(payload.scalars["peak_hbm_bytes_per_s"].value) / GIB == pytest.approx(
        halved * float(peer["peak_hbm_bw"]), rel=1e-5
    )
    assert number(ridge["hbm"]) == pytest.approx(float(peer["hbm_ridge_point"]) / halved, rel=1e-5)
    shared = ridge.get("shared", ridge.get("vmem_write"))
    assert number(shared) == pytest.approx(float(peer["vmem_write_ridge_point"]), rel=1e-5)
