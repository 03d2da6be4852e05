"""Asynchronous operations: their work counts once and over their whole time, whatever their starts and dones
take.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, host_categories, offload_wait_ps
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import LIMITS, Roofs, rates
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.ops.utilization import utilization
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.synthetic import memory_accesses
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US, NS = 1_000_000, 1_000
MB = 1_000_000
PEAKS: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}
PEAK = Roofs(1e12, (1e9, 0.0, 0.0, 0.0, 0.0))


def half(symbol: int, category: str, n_bytes: int) -> Stats:
    return {
        "program_id": 7,
        "symbol_id": symbol,
        "hlo_category": category,
        "flops": 0,
        "bytes_accessed": n_bytes,
    }


# The done of another number than its start's; one of the host's memory; a start whose done never runs.
COPY = "%copy-start.5 = (f32[2], f32[2], u32[]) copy-start(%p)"
COPY_DONE = "%copy-done.9 = f32[2] copy-done((f32[2], f32[2], u32[]) %copy-start.5)"
OFFLOAD, OFFLOAD_DONE = (
    "%slice-start.1 = x",
    "%slice-done.1 = f32[2]{0:S(5)} async-done((f32[2]) %slice-start.1)",
)
ORPHAN = "%all-gather-start.3 = f32[8] all-gather-start(%p)"
ADD = "%add.4 = f32[2] add(%a, %b)"
METADATA: dict[str, Stats] = {
    COPY: half(1, "copy-start", 2 * MB),
    COPY_DONE: half(2, "copy-done", 2 * MB) | {"memory_access_breakdown": memory_accesses((1, 1, 2 * MB))},
    OFFLOAD: half(3, "async-start", 3 * MB),
    OFFLOAD_DONE: half(4, "async-done", 3 * MB),
    ORPHAN: half(5, "all-gather", 4 * MB),
    ADD: {
        "program_id": 7,
        "symbol_id": 6,
        "hlo_category": "loop fusion",
        "flops": 1000,
        "bytes_accessed": MB,
    },
}


def core(number: int, shift: int) -> DrawnPlane:
    """Two copies of 2 MB, in flight for 10 ms and 14 ms, of which 4 and 1 ms are waited for; an offload of 3
    MB that is hidden.
    """
    ms = 1000 * US
    events = [
        DrawnEvent(COPY, shift, 2 * NS),
        DrawnEvent(OFFLOAD, shift + ms, 2 * NS),
        DrawnEvent(ADD, shift + 2 * ms, 4 * ms),
        DrawnEvent(COPY_DONE, shift + 6 * ms, 4 * ms),
        DrawnEvent(COPY, shift + 20 * ms, 2 * NS),
        DrawnEvent(COPY_DONE, shift + 33 * ms, ms),
        DrawnEvent(OFFLOAD_DONE, shift + 40 * ms, 3 * NS),
        DrawnEvent(ORPHAN, shift + 50 * ms, 2 * NS),
    ]
    return DrawnPlane(f"/device:TPU:{number}", {"XLA Ops": events}, PEAKS, METADATA)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return build([core(0, 0), core(1, 300 * US)])


def row_of(ops: HloOps, name: str) -> int:
    return next(
        i for i in range(len(ops)) if ops.name[i].startswith(name) or ops.name[i].startswith(f"%{name}")
    )


def test_halves_find_one_another_by_the_done_s_operand(trace: Trace) -> None:
    found = async_ops(trace)
    names = [trace.strings.get(int(i)) for i in trace.event_names.tolist()]
    pairs = {(names[found.start_of[row]], names[row]) for row in np.flatnonzero(found.start_of >= 0).tolist()}
    assert {(a.lstrip("%").split()[0], b.lstrip("%").split()[0]) for a, b in pairs} == {
        ("copy-start.5", "copy-done.9"), ("slice-start.1", "slice-done.1"),
    }  # fmt: skip
    assert found.n_matched.sum() == 2 * 3
    assert found.elapsed_ps.sum() == 2 * (24_000 * US + 39_000 * US + 3 * NS)
    assert found.is_orphan.sum() == 2  # one row of metadata per core


def test_bytes_count_once_and_over_the_whole_copy(trace: Trace) -> None:
    ops = hlo_ops(trace)
    copy, start, offload, orphan = (
        row_of(ops, name) for name in ("copy-done.9", "copy-start.5", "slice-done.1", "all-gather-start.3")
    )
    assert ops.work.n_bytes[[copy, start, offload]].tolist() == [4 * 2 * MB, 0, 2 * 3 * MB]
    assert ops.work_ps[[copy, start]].tolist() == [2 * 24_000 * US, 0]
    speed = rates(ops.work, ops.work_ps, PEAK)
    assert speed.space_bytes_per_s[0][copy] == pytest.approx(2 * 2e6 / 24e-3)
    assert speed.space_bytes_per_s[0][offload] == pytest.approx(3e6 / 39e-3)
    assert np.isnan(speed.space_bytes_per_s[0][[start, orphan]]).all()
    assert not ops.work.is_known[orphan]
    limits = [LIMITS[i] for i in speed.limits(ops.is_waiting)[[copy, offload, start]].tolist()]
    assert limits == ["Waiting", "Waiting", "Unknown"]


def test_no_page_shows_a_rate_above_the_peak(trace: Trace) -> None:
    session = session_of(trace)
    for tool, table in ((hlo_stats, "ops"), (roofline_model, "ops"), (op_profile, "nodes")):
        payload = tool.TOOL.run(session, None, {})
        found = np.array(cells(payload, table)["hbm_bytes_per_s"], np.float64)
        assert np.nanmax(found) < 1.05e9, tool
        assert not any("above a peak" in one.message for one in payload.diagnostics)
    nodes = cells(op_profile.TOOL.run(session, None, {}), "nodes")
    by_name = {
        str(name).lstrip("%").split()[0]: share
        for name, share in zip(nodes["name"], nodes["hbm_fraction"], strict=True)
    }
    assert by_name["copy-done.9"] == pytest.approx(2 * 2e6 / 24e-3 / 1e9)
    assert by_name["async-done"] == pytest.approx(3e6 / 39e-3 / 1e9)


def test_all_pages_count_the_same_work(trace: Trace) -> None:
    session, total = session_of(trace), 2 * (2 * 2 * MB + 3 * MB + MB)
    programs, ops = (cells(roofline_model.TOOL.run(session, None, {}), name) for name in ("programs", "ops"))
    assert programs["hbm_bytes"][0] == np.nansum(np.array(ops["hbm_bytes"], np.float64)) == total
    assert cells(op_profile.TOOL.run(session, None, {}), "nodes")["hbm_bytes"][0] == total
    assert utilization(trace).hbm_bytes == total
    assert utilization(trace).flops == 2 * 1000


def test_a_done_s_own_time_gives_no_rate_among_framework_operations(trace: Trace) -> None:
    found = op_stats(trace).device
    n_bytes = dict(
        zip((name.lstrip("%").split()[0] for name in found.name), found.n_bytes.tolist(), strict=True)
    )
    assert np.isnan(n_bytes["copy-done.9"])
    assert n_bytes["add.4"] == 2 * MB


def test_waiting_for_the_host_s_memory_is_told_apart(trace: Trace) -> None:
    assert offload_wait_ps(trace) == 2 * 3 * NS
    sentence = category_sentence(host_categories(trace))
    assert "50.0% " not in sentence  # 10 of 18 ms
    assert (
        "55.6% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`): 10.0 ms "
        "summed over 2 cores" in sentence
    )


def test_a_host_offload_is_called_so() -> None:
    events = [
        DrawnEvent(OFFLOAD, 0, 2 * NS),
        DrawnEvent(ADD, US, US),
        DrawnEvent(OFFLOAD_DONE, 2 * US, 8 * US),
    ]
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, PEAKS, METADATA)])
    assert category_sentence(host_categories(trace)) == (
        "88.9% of the operations' time on the TPU is waiting for host-offload copies (`async-done`): 8.00 µs."
    )


def test_a_done_without_its_start_in_the_capture_has_no_rate() -> None:
    events = [DrawnEvent(COPY_DONE, 0, 2 * NS), DrawnEvent(ADD, US, US), DrawnEvent(COPY, 5 * US, 2 * NS)]
    ops = hlo_ops(build([DrawnPlane("/device:TPU:0", {"XLA Ops": events}, PEAKS, METADATA)]))
    row = row_of(ops, "copy-done.9")
    assert (ops.work.knows_bytes[row], ops.work.n_bytes[row]) == (False, 0)
