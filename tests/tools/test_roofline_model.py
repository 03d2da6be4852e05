from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.roofline_model.view import TOOL
from tests.builders import DrawnEvent, DrawnPlane, Stats, build, drawing
from tests.golden_files import demo_runs
from tests.synthetic import Parts, TpuJob, tpu_hosts, tpu_xspace, write_run
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import US, cells
from tests.tools.test_hlo_stats import tpu as drawn_tpu

JOB = TpuJob(Parts(compute=0.5, infeed=0.1, outfeed=0.1, collective=0.2), n_steps=5)
STEP_PS = JOB.n_cores * JOB.step_ps


@pytest.fixture(scope="module")
def tpu(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("roofline") / "run"
    return Session(str(write_run(folder, {"synthetic-tpu": tpu_xspace(JOB)})), cache=False)


def test_program_average_and_steps(tpu: Session) -> None:
    programs = cells(TOOL.run(tpu, None, {}), "programs")
    assert programs["step"] == ["Total", "Average", "0", "1", "2", "3", "4"]
    assert programs["total_time_ps"] == [5 * STEP_PS, *[STEP_PS] * 6]
    rate = JOB.flops / (JOB.step_ps / 1e12)
    assert programs["flop_rate_flops_per_s"] == pytest.approx([rate] * 7)
    assert programs["hbm_bytes_per_s"] == pytest.approx([JOB.n_bytes / (JOB.step_ps / 1e12)] * 7)
    assert programs["bound_by"] == ["HBM"] * 7
    assert programs["efficiency_fraction"] == pytest.approx(
        [JOB.n_bytes / (JOB.step_ps / 1e12) / JOB.peak_bytes_per_s] * 7
    )


def test_without_infeed_and_outfeed_their_time_is_gone(tpu: Session) -> None:
    payload = TOOL.run(tpu, None, {"transfers": "false"})
    programs = cells(payload, "programs")
    assert programs["total_time_ps"] == pytest.approx([0.8 * 5 * STEP_PS, *[0.8 * STEP_PS] * 6])
    assert set(cells(payload)["category"]) == {"convolution fusion", "all-reduce"}
    assert cells(payload)["self_fraction"][0] == pytest.approx(0.5 / 0.7)
    assert cells(payload)["device_time_fraction"][0] == pytest.approx(0.5 / 0.8)


def test_an_operation_s_row(tpu: Session) -> None:
    row = {name: values[0] for name, values in cells(TOOL.run(tpu, None, {})).items()}
    seconds = 0.5 * JOB.step_ps / 1e12
    assert row["op"] == "fusion.2"
    assert row["flop_rate_flops_per_s"] == pytest.approx(JOB.flops / seconds)
    assert row["all_memories_flops_per_byte"] == pytest.approx(JOB.flops / (8 * JOB.n_bytes))
    assert row["hbm_flops_per_byte"] == row["bound_flops_per_byte"] == pytest.approx(JOB.flops / JOB.n_bytes)
    assert row["operational_intensity_flops_per_byte"] == row["hbm_flops_per_byte"]
    assert row["vmem_read_flops_per_byte"] == pytest.approx(JOB.flops / (7 * JOB.n_bytes))
    assert row["time_per_device_ps"] == 5 * 0.5 * JOB.step_ps
    assert row["compute_fraction"] == pytest.approx(JOB.flops / seconds / JOB.peak_flops_per_s)


def test_roofs_and_ridge(tpu: Session) -> None:
    payload = TOOL.run(tpu, None, {})
    assert cells(payload, "roofs")["title"] == ["HBM"]
    assert cells(payload, "roofs")["ridge_flops_per_byte"][0] == pytest.approx(197e12 / 819e9)
    verdict = payload.verdict
    assert verdict
    assert (
        verdict.text
        == "55.6% of the operations' time is limited by HBM. The program as a whole runs at 48.8% of its"
        " roofline, idle time included."
    )
    assert " (expected gain at its roofline: up to " in verdict.next[0].text


def test_hosts_are_summed(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = write_run(tmp_path_factory.mktemp("roofline") / "run", tpu_hosts(JOB, (1.0, 1.0)))
    session = Session(str(folder), cache=False)
    one_host, both_hosts = (
        cells(TOOL.run(session, hosts, {}), "programs") for hosts in ([session.hosts[0]], None)
    )
    assert both_hosts["step"] == one_host["step"]
    assert both_hosts["total_time_ps"] == [2 * n for n in one_host["total_time_ps"]]  # type: ignore[operator]
    assert both_hosts["time_per_device_ps"] == one_host["time_per_device_ps"]
    assert both_hosts["flop_rate_flops_per_s"] == pytest.approx(one_host["flop_rate_flops_per_s"])


def test_a_cpu_has_points_but_no_roofs() -> None:
    payload = TOOL.run(Session(str(demo_runs()["jax_train"]), cache=False), None, {})
    assert payload.tables["roofs"].n_rows == 0
    assert payload.verdict
    assert payload.verdict.level == "unknown"
    ops = cells(payload, "ops")
    top = int(np.argmax(ops["total_self_time_ps"]))  # type: ignore[arg-type]
    assert payload.verdict.text.startswith(f"`{ops['op'][top]}` takes the most time: ")
    assert "No roofline is drawn, because the peak rates are unknown." in payload.verdict.text
    fastest = int(np.nanargmax(np.array(ops["flop_rate_flops_per_s"], np.float64)))
    assert f"`{ops['op'][fastest]}`" in payload.verdict.details[0]
    # No device's idle time is known, and the memory is not HBM.
    rate, intensity = (
        payload.scalars[name].note for name in ("flop_rate_flops_per_s", "intensity_flops_per_byte")
    )
    assert (rate, intensity) == ("while operations run", "FLOPs per byte moved to and from main memory")
    for name in ("ops", "programs"):
        assert not [column.title for column in payload.tables[name].columns if "HBM" in column.title]
    assert payload.tables["programs"].note.startswith("total: over the time that operations run")
    programs = cells(payload, "programs")
    assert programs["step"][:2] == ["Total", "Average"]
    assert np.isfinite(programs["flop_rate_flops_per_s"]).all()  # type: ignore[call-overload]
    assert np.isnan(programs["efficiency_fraction"]).all()  # type: ignore[call-overload]
    # Every step runs the same program: as many FLOPs, whatever its time.
    flops = [
        r * t
        for r, t in zip(programs["flop_rate_flops_per_s"][2:], programs["total_time_ps"][2:], strict=True)
    ]  # type: ignore[operator]
    assert np.median(flops) == pytest.approx(np.max(flops), rel=0.05)


def test_without_compiled_operations_it_says_why() -> None:
    with pytest.raises(ToolUnavailable):
        TOOL.run(session_of(drawing("main [x ]")), None, {})


def test_a_collective_has_no_headroom_since_links_limit_it() -> None:
    def op(category: str, symbol: int, n_bytes: int, program: int = 7) -> Stats:
        return {"program_id": program, "symbol_id": symbol, "hlo_category": category, "flops": 1,
                "bytes_accessed": n_bytes}  # fmt: skip

    session = drawn_tpu(
        {
            "all-reduce.1": op("all-reduce", 1, 1_000),
            "all-gather.2": op("all-gather", 2, 1_000),
            "add.1": op("loop fusion", 3, 2_500),
            "mul.1": op("loop fusion", 4, 2_000),
        },
        [
            DrawnEvent("all-reduce.1", 0, 9 * US),
            DrawnEvent("all-gather.2", 10 * US, 8 * US),
            DrawnEvent("add.1", 20 * US, 5 * US),
            DrawnEvent("mul.1", 30 * US, 3 * US),
        ],
    )
    verdict = TOOL.run(session, None, {}).verdict
    assert verdict is not None
    # At 1 GB/s, 2.50 µs of the 5 are lost in add.1 and 1 µs of the 3 in mul.1, of 25 µs.
    assert verdict.details == (
        "`add.1` (loop fusion) has the largest headroom: it runs at 50.0% of its roofline.",
    )
    assert "up to 10.0% of the operations' time" in verdict.next[0].text


def test_an_operation_that_several_programs_have_is_named_with_its_program() -> None:
    traces = []
    for program, duration in ((5, 4 * US), (6, 7 * US), (9, 5 * US)):
        stats: Stats = {"program_id": program, "symbol_id": 1, "hlo_category": "loop fusion", "flops": 1,
                        "bytes_accessed": 1_000}  # fmt: skip
        lines = {
            "XLA Modules": [DrawnEvent(f"jit_f{program}({program})", 0, duration)],
            "XLA Ops": [DrawnEvent("add.1", 0, duration)],
        }
        peaks: Stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 1.0}
        traces.append(build([DrawnPlane("/device:TPU:0", lines, peaks, {"add.1": stats})]))
    verdict = TOOL.run(session_of(*traces), None, {}).verdict
    assert verdict is not None
    assert verdict.details[0].startswith("`add.1` of `jit_f6(6)` (loop fusion) has the largest headroom")
    assert verdict.next[0].params == {"program": "jit_f6(6)", "op": "add.1"}
    alone = TOOL.run(session_of(traces[0]), None, {}).verdict
    assert alone is not None
    assert alone.details[0].startswith("`add.1` (loop fusion) has")
