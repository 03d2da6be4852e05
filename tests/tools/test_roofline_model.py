from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.roofline_model.view import TOOL
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.synthetic import Parts, TpuJob, tpu_hosts, tpu_xspace, write_run
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

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
    assert verdict.text == (
        "55.6% of the operations' time is limited by HBM. The program as a whole runs at 48.8% of its roofline, "
        "idle time included."
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
