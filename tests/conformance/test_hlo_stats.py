"""Compiled operations beside the peer's, row by row and column by column. Each deliberate difference stands
here with its reason.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.tools.hlo_stats.view import TOOL
from tests.conformance.peer import answer, open_session, rows
from tests.tools.test_hlo_stats import cells

GIB = 2**30
RUNS = (
    "xprof_tpu_inference_2_old__run",
    "tracelens_mi300_jax__jax08_gemm",
    "tracelens_mi300_jax__jax08_attention",
    "tracelens_mi300_jax__jax_conv_minimal_08",
    "reactant__2025_02_05_11_07_48",
)
TPU = RUNS[0]

# The peer's column, ours, and what turns ours into the peer's unit.
SAME = {
    "occurrences": ("n_occurrences", 1.0),
    "total_time": ("total_time_ps", 1e-6),
    "avg_time": ("avg_time_ps", 1e-6),
    "total_self_time": ("total_self_time_ps", 1e-6),
    "avg_self_time": ("avg_self_time_ps", 1e-6),
    "total_self_time_percent": ("device_time_fraction", 100.0),
    "dma_stall_percent": ("dma_stall_fraction", 1.0),
}
WORK = {
    "model_flop_rate": ("flop_rate_flops_per_s", 1e-9),
    "normalized_flop_rate": ("normalized_flops_per_s", 1e-9),
    "measured_memory_bw": ("memory_bandwidth_bytes_per_s", 1 / GIB),
    "hbm_bw": ("hbm_bytes_per_s", 1 / GIB),
    "operational_intensity": ("all_memories_flops_per_byte", 1.0),
}
TEXTS = {"category": "category", "tf_op_name": "provenance", "core_type": "core"}

# The peer counts an asynchronous copy's bytes for its start and its done, each over its own time: up to 3
# EB/s. Here they count once, where the copy ends, over the whole of it.
COPIES = re.compile(r"copy-(start|done)(\.\d+)?")


def joined(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Our rows with the peer's, by program and operation."""
    found = cells(TOOL.run(open_session(name), None, {}))
    mine = {
        (re.sub(r".*\((\d+)\)$", r"\1", str(program)), op): {key: values[i] for key, values in found.items()}
        for i, (program, op) in enumerate(zip(found["program"], found["op"], strict=True))
    }
    theirs = {(row["program_id"], row["hlo_op_name"]): row for row in rows(answer(name, "hlo_stats"))}
    assert set(mine) == set(theirs)
    return [(mine[key], theirs[key]) for key in mine]


def number(value: object) -> float:
    assert isinstance(value, (int, float))
    return 0.0 if math.isnan(value) else float(value)


@pytest.mark.parametrize("name", RUNS)
def test_times_shares_and_texts_are_the_peer_s(name: str) -> None:
    for mine, theirs in joined(name):
        for column, (ours, factor) in SAME.items():
            assert number(mine[ours]) * factor == pytest.approx(theirs[column], rel=1e-6, abs=1e-9), (
                mine["op"],
                column,
            )
        for column, ours in TEXTS.items():
            assert (mine[ours] or "") == theirs[column], (mine["op"], column)
        assert mine["expression"] == theirs["hlo_op_expression"][:2000]
        source = re.sub(r"<[^>]*>", "", re.sub(r"title='[^']*'", "", theirs["source_info"]))
        assert (mine["source"] or "") == source
        assert theirs["hlo_rematerialization"] == ("Yes" if mine["is_rematerialized"] else "No")
        assert theirs["outside_compilation"] == ("Yes" if mine["is_outside_compiled"] else "No")


@pytest.mark.parametrize("name", RUNS)
def test_order_and_running_sum_are_the_peer_s(name: str) -> None:
    found = cells(TOOL.run(open_session(name), None, {}))
    peer = rows(answer(name, "hlo_stats"))
    assert found["total_self_time_ps"] == pytest.approx([row["total_self_time"] * 1e6 for row in peer])
    assert np.cumsum(found["device_time_fraction"]) == pytest.approx(
        [row["cumulative_total_self_time_percent"] / 100 for row in peer]
    )


def test_work_of_a_tpu_is_the_peer_s() -> None:
    for mine, theirs in joined(TPU):
        for column, (ours, factor) in WORK.items():
            if column in ("hbm_bw", "measured_memory_bw") and COPIES.fullmatch(str(mine["op"])):
                assert number(mine[ours]) * factor < theirs[column]
                continue
            assert number(mine[ours]) * factor == pytest.approx(theirs[column], rel=1e-6), (
                mine["op"],
                column,
            )
        if not COPIES.fullmatch(str(mine["op"])):
            assert mine["nearest_limit"] == theirs["bound_by"]


@pytest.mark.parametrize("name", RUNS[1:])
def test_work_on_gpus_is_the_peer_s_where_the_models_agree(name: str) -> None:
    """Bytes of loop fusions are the same. The rest differs for these reasons: the peer's GPU cost model gives
    an addition 3 FLOPs and an exponential up to hundreds (XLA's own, and ours, one each); it counts a matrix
    fusion's operands once per use; cuBLAS calls are no work there; and bytes of a cuDNN call are in no
    memory.
    """
    n_compared = 0
    for mine, theirs in joined(name):
        if mine["category"] == "custom-call" or str(mine["op"]).startswith("gemm"):
            assert theirs["model_flop_rate"] == 0 or number(
                mine["flop_rate_flops_per_s"]
            ) * 1e-9 == pytest.approx(theirs["model_flop_rate"], rel=0.02)
            continue
        n_compared += 1
        assert number(mine["memory_bandwidth_bytes_per_s"]) / GIB == pytest.approx(
            theirs["measured_memory_bw"], rel=1e-6
        )
        assert number(mine["flop_rate_flops_per_s"]) * 1e-9 <= theirs["model_flop_rate"] * (1 + 1e-6)
        if theirs["bound_by"] != "Compute":
            assert mine["nearest_limit"] == theirs["bound_by"]
    assert n_compared


@pytest.mark.parametrize("name", RUNS[1:])
def test_cublas_calls_are_work(name: str) -> None:
    """Where the peer says 0. A bfloat16 product at most reaches the MI300X's peak of 1,307 TFLOP/s."""
    for mine, theirs in joined(name):
        if "__cublas$gemm" in str(mine["expression"]):
            assert theirs["model_flop_rate"] == 0
            assert 1e14 < number(mine["flop_rate_flops_per_s"]) < 1.307e15


def test_a_jax_run_on_cpu_has_rows_where_the_peer_has_none() -> None:
    found = cells(TOOL.run(open_session("own_jax_cpu__mlp"), None, {}))
    assert rows(answer("own_jax_cpu__mlp", "hlo_stats")) == []
    assert len(found["op"]) == 98
    # Dense_1 of the job: 64 × 1024 × 256 (batch, in, out), two FLOPs each; checked by hand in its HLO.
    row = found["op"].index("ynn_fusion.17")
    flops = number(found["flop_rate_flops_per_s"][row]) * number(found["avg_time_ps"][row]) / 1e12
    assert np.isclose(flops, _product(str(found["expression"][row])), rtol=0.5)


def _product(expression: str) -> float:
    """FLOPs that the result's shape and 256 contracted elements give at least."""
    dims = re.search(r"= f32\[(\d+),(\d+)\]", expression)
    assert dims
    return 2.0 * int(dims[1]) * int(dims[2]) * 256
