"""Work of GPU operations: the same on the pages of framework operations, of HLO operations and on the
overview.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PlaneWriter, Stat, write_run
from tests.tools.test_hlo_stats import cells

US, GB = 1_000_000, 10**9
F32 = 4
M, K, N = 256, 128, 64
MI300X: dict[str, Stat] = {
    "device_vendor": "AMD",
    "compute_cap_major": 9,
    "compute_cap_minor": 4,
    "core_count": 304,
    "clock_rate": 2_100_000,
    "memory_size": 192 * 2**30,
    "memory_bandwidth": 2_662_400_000_000,
}


def program() -> bytes:
    """A product, an addition, and a call into an unknown library."""
    entry = [
        instruction(1, "parameter", array(M, K), f9=0),
        instruction(2, "parameter", array(K, N), f9=1),
        instruction(3, "dot", array(M, N), [1, 2], f30={1: (1,), 2: (0,)}, f7={2: "jit(f)/dot_general"}),
        instruction(4, "add", array(M, N), [3, 3], f7={2: "jit(f)/add"}),
        instruction(5, "custom-call", array(M, N), [4], f28="unheard_of_ffi", f7={2: "jit(f)/ffi_call"}),
    ]
    return proto([computation(1, "main", entry, 5)])


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Three GPUs with one, two and three runs of the program."""
    space = xspace_class()()
    PlaneWriter(space, "/host:metadata").metadata("jit_f(7)", {"Hlo Proto": program()})
    for gpu in range(3):
        plane = PlaneWriter(space, f"/device:GPU:{gpu}")
        plane.stats(plane.plane, MI300X)
        stream = plane.line("Stream #1(Compute)", 1, 0)
        for run in range(gpu + 1):
            kernels = (
                ("gemm", "dot.3", 0, 2 + gpu),
                ("k_add", "add.4", 6, 1),
                ("ffi", "custom-call.5", 8, 4),
            )
            for name, hlo_op, after, lasts in kernels:
                plane.event(
                    stream, name, (20 * run + after) * US, lasts * US, {"hlo_op": hlo_op, "program_id": 7}
                )
    space.hostnames.append(b"h")
    folder = tmp_path_factory.mktemp("gpu_work") / "run"
    return Session(str(write_run(folder, {"h": space.SerializeToString()})), cache=False)


TIMES = {"dot.3": 2 + 2 * 3 + 3 * 4, "add.4": 6, "custom-call.5": 24}
FLOPS = {"dot.3": 2 * M * N * K, "add.4": M * N}
BYTES = {"dot.3": F32 * (M * K + K * N + M * N), "add.4": F32 * 3 * M * N}


@pytest.mark.parametrize(("op", "name"), [("dot.3", "jit(f)/dot_general"), ("add.4", "jit(f)/add")])
def test_rates_and_limits_are_those_of_the_hlo_page(session: Session, op: str, name: str) -> None:
    hlo, framework = (
        cells(hlo_stats.TOOL.run(session, None, {})),
        cells(framework_op_stats.TOOL.run(session, None, {})),
    )
    hlo_row, row = hlo["op"].index(op), framework["operation"].index(name)
    seconds = TIMES[op] / 1e6
    assert (
        hlo["flop_rate_flops_per_s"][hlo_row]
        == framework["flop_rate_flops_per_s"][row]
        == pytest.approx(6 * FLOPS[op] / seconds)
    )
    assert (
        framework["memory_bandwidth_bytes_per_s"][row]
        == hlo["memory_bandwidth_bytes_per_s"][hlo_row]
        == pytest.approx(6 * BYTES[op] / seconds)
    )
    assert framework["bound_by"][row] == hlo["bound_by"][hlo_row]
    assert framework["nearest_limit"][row] == hlo["nearest_limit"][hlo_row] == "HBM"
    top = cells(overview_page.TOOL.run(session, None, {}), "top_ops")
    assert top["flop_rate_flops_per_s"][top["operation"].index(name)] == hlo["flop_rate_flops_per_s"][hlo_row]


def test_what_nobody_knows_is_unknown_on_every_page_and_in_no_sum(session: Session) -> None:
    framework = cells(framework_op_stats.TOOL.run(session, None, {}))
    row = framework["operation"].index("jit(f)/ffi_call")
    assert np.isnan(
        [framework["flop_rate_flops_per_s"][row], framework["memory_bandwidth_bytes_per_s"][row]]
    ).all()  # type: ignore[list-item]
    payload = roofline_model.TOOL.run(session, None, {})
    ops, programs = cells(payload), cells(payload, "programs")
    assert np.isnan(ops["hbm_bytes"][ops["op"].index("custom-call.5")])  # type: ignore[call-overload]
    assert (
        programs["hbm_bytes"][0]
        == np.nansum(np.array(ops["hbm_bytes"], np.float64))
        == 6 * sum(BYTES.values())
    )
    assert programs["flops"][0] == 6 * sum(FLOPS.values())
    span = sum(20 * (gpu + 1) - 8 for gpu in range(3)) / 1e6
    assert payload.scalars["efficiency_fraction"].value == pytest.approx(
        6 * sum(BYTES.values()) / span / 5.3e12
    )
    overview = overview_page.TOOL.run(session, None, {}).scalars
    assert overview["hbm_bandwidth_fraction"].value == pytest.approx(
        payload.scalars["efficiency_fraction"].value
    )


def test_a_sum_over_gpus_is_called_one(session: Session) -> None:
    busy = hlo_stats.TOOL.run(session, None, {}).scalars["busy_ps"]
    assert (busy.value, busy.note[:41]) == (50 * US, "summed over 3 GPUs: 16.7 µs per GPU, of 3")


def test_headline_donut_and_table_have_one_base(session: Session) -> None:
    payload = hlo_stats.TOOL.run(session, None, {})
    ops, donut = cells(payload), cells(payload, "by_op")
    assert payload.verdict
    assert payload.verdict.text.startswith(
        f"`{ops['op'][0]}` ({ops['category'][0]}) takes the most time: 24.0 µs (summed over 3 GPUs"
    )
    assert "48.0% of the operations' time" in payload.verdict.text
    assert ops["self_fraction"] == donut["fraction"] == pytest.approx([0.48, 0.4, 0.12])
    assert sum(cells(payload, "by_bound")["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]
