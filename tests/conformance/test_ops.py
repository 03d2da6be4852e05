"""Framework operations beside the peer's, row by row. Each deliberate difference stands here with its reason."""

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.op_metrics import OpMetrics
from tb_tpuprof.analysis.op_stats import op_stats, sum_op_stats
from tb_tpuprof.tools.framework_op_stats import TOOL
from tests.conformance.peer import NAMES, answer, open_session, rows

PS_PER_US = 1_000_000
PEER_ROWS = 500  # the peer shows that many rows of host and of device

# (run, side): rows that we have and the peer has not, and why.
MORE_OPS = {
    ("own_jax_cpu__mlp", "Host"): "XLA's operations on the CPU are counted: the peer leaves the page of a JAX run on CPU empty",
    ("xprof_gpu_multi_worker__GPU-multi-worker", "Device"): (
        "kernels without `tf_op` are named by the line of operations in the file: the peer calls GPUs all idle that computed for 59 ms"
    ),
    **{
        (f"tracelens_mi300_jax__{name}", "Device"): "kernels of no operation have rows: the peer calls a GPU idle that runs them"
        for name in ("jax08_attention", "jax08_gemm", "jax_conv_minimal_08")
    },
}
# (run, side): idle times that differ, and why.
OTHER_IDLE = {
    **dict.fromkeys(MORE_OPS, "more operations leave less idle time"),
    ("reactant__2025_02_05_11_07_48", "Host"): "memory allocations of no operation, see below, make no span in which to be idle",
}
# Names that the peer lists and we do not: an allocation without an operation says "(null)".
NO_OPERATION = {"(null)"}


def ours(name: str, side: str) -> OpMetrics:
    session = open_session(name)
    found = sum_op_stats([op_stats(session.trace(host)) for host in session.hosts])
    return found.host if side == "Host" else found.device


def theirs(name: str, side: str) -> dict[str, dict[str, Any]]:
    found = [row for row in rows(answer(name, "framework_op_stats")[0]) if row["host_or_device"] == side]
    return {row["operation"]: row for row in found}


@pytest.mark.parametrize("side", ["Host", "Device"])
@pytest.mark.parametrize("name", NAMES)
def test_occurrences_and_times_of_every_operation_are_the_peers(name: str, side: str) -> None:
    mine, peer = ours(name, side), theirs(name, side)
    row_of = {operation: i for i, operation in enumerate(mine.name)}
    for operation, row in peer.items():
        if operation == "IDLE" or operation in NO_OPERATION:
            continue
        i = row_of[operation]
        assert mine.type[i] == row["type"], operation
        assert mine.n_occurrences[i] == row["occurrences"], operation
        assert mine.time_ps[i] / PS_PER_US == pytest.approx(row["total_time"], abs=1e-6), operation
        assert mine.self_ps[i] / PS_PER_US == pytest.approx(row["total_self_time"], abs=1e-6), operation
        assert ("Eager" if mine.is_eager[i] else "Function") == row["eager"], operation


@pytest.mark.parametrize("side", ["Host", "Device"])
@pytest.mark.parametrize("name", NAMES)
def test_what_the_peer_does_not_show_was_cut_off_or_is_listed(name: str, side: str) -> None:
    mine, peer = ours(name, side), theirs(name, side)
    extra = [i for i, operation in enumerate(mine.name) if operation not in peer]
    if (name, side) in MORE_OPS:
        assert extra
    elif len(peer) < PEER_ROWS:
        assert not extra
    elif extra:
        shown = min(row["total_self_time"] for row in peer.values())
        assert max(mine.self_ps[i] for i in extra) / PS_PER_US <= shown + 1e-6


@pytest.mark.parametrize("side", ["Host", "Device"])
@pytest.mark.parametrize("name", NAMES)
def test_idle_time_is_the_peers(name: str, side: str) -> None:
    mine, peer = ours(name, side), theirs(name, side)
    if "IDLE" not in peer or (name, side) in OTHER_IDLE:
        return
    assert mine.idle_ps / PS_PER_US == pytest.approx(peer["IDLE"]["total_self_time"], abs=1e-3)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("tracelens_mi300")])
def test_idle_time_differs_by_the_kernels_of_no_operation(name: str) -> None:
    """Counted in the events alone: kernels on streams that name no instruction. With them the peer's idle time is ours."""
    mine, peer = ours(name, "Device"), theirs(name, "Device")
    unnamed = 0
    for trace in (open_session(name).trace(host) for host in open_session(name).hosts):
        named = set(trace.event_stats.texts("hlo_op").owner.tolist())
        for line in range(len(trace.lines)):
            if trace.plane_names[trace.lines["plane"][line]].startswith("/device:GPU") and trace.line_names[line].startswith("Stream"):
                rows_of_line = range(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
                names = {row: trace.strings[trace.metadata["name"][trace.events["metadata"][row]]] for row in rows_of_line}
                chosen = [row for row in rows_of_line if row not in named and not names[row].startswith(("Memcpy", "Memset"))]
                unnamed += int(trace.events["duration_ps"][chosen].sum())
    assert unnamed > 0
    assert mine.idle_ps + unnamed == pytest.approx(peer["IDLE"]["total_self_time"] * PS_PER_US, abs=1000)


def test_shares_are_the_peers() -> None:
    name = "own_tf_cpu__keras_callback"
    for table, idle in ((0, True), (1, False)):
        payload = TOOL.run(open_session(name), None, {"idle": idle}).tables["ops"]
        columns = {column.name: column for column in payload.columns}
        names = columns["operation"]
        assert names.strings is not None
        share = {
            names.strings[code]: value
            for code, value in zip(names.values.tolist(), columns["host_self_fraction"].values.tolist(), strict=True)
        }
        for row in rows(answer(name, "framework_op_stats")[table]):
            assert share[row["operation"]] == pytest.approx(row["host_total_self_time_percent"]), row["operation"]


def test_rates_of_tpu_operations_are_the_peers() -> None:
    name = "xprof_tpu_inference_2_old__run"
    mine, peer = ours(name, "Device"), theirs(name, "Device")
    for operation, flops, n_bytes, time_ps in zip(mine.name, mine.flops, mine.n_bytes, mine.time_ps, strict=True):
        # The peer's rate is in GFLOP/s and its bandwidth in GiB/s.
        assert flops / time_ps * 1000 == pytest.approx(peer[operation]["measured_flop_rate"], rel=1e-6)
        if operation.startswith("copy-"):  # bytes over the nanoseconds of a start, or over what was left to wait for, are no rate
            assert np.isnan(n_bytes) or n_bytes == 0
            continue
        assert n_bytes / time_ps * 1e12 / 2**30 == pytest.approx(peer[operation]["measured_memory_bw"], rel=1e-6)


def test_bounds_of_tpu_operations_are_the_peers() -> None:
    name = "xprof_tpu_inference_2_old__run"
    payload = TOOL.run(open_session(name), None, {}).tables["ops"]
    columns = {column.name: column for column in payload.columns}
    names, bound = columns["operation"], columns["nearest_limit"]
    assert names.strings is not None
    assert bound.strings is not None
    peer = theirs(name, "Device")
    for row in np.flatnonzero(columns["device_self_fraction"].values > 0).tolist():
        operation = names.strings[int(names.values[row])]
        if operation.startswith("copy-"):
            continue
        assert bound.strings[int(bound.values[row])] == peer[operation]["bound_by"], operation
