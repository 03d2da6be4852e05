"""Pages of a PyTorch run with the sizes of its inputs: the drawn job of `test_torch_kernels`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Column, Payload
from tests.analysis.ops.test_torch_kernels import events, kernel, launch, op, whole
from tests.analysis.pod.test_process_groups import default, rank, unlisted
from tests.ingest.chrome_files import Event, written
from tests.kineto_jobs import HOST, x
from tests.tools.drawn_session import session_of

ADDMM, MM, ADD = 2 * 64 * 32 * 16, 2 * 8 * 128 * 24, 64 * 16
HALF_PEAK, TF32_PEAK, HBM = 989.5e12, 494.7e12, 3350e9


def run(folder: Path, listed: list[Event], **more: Any) -> Session:
    (folder / "run").mkdir()
    written(folder / "run", whole(listed, **more), "worker.pt.trace.json")
    return Session(str(folder / "run"), cache=False)


def cells(column: Column) -> list[Any]:
    return (
        [column.strings[i] if i >= 0 else "" for i in column.values.tolist()]
        if column.strings
        else column.values.tolist()
    )


def table(payload: Payload, name: str) -> dict[str, list[Any]]:
    return {column.name: cells(column) for column in payload.tables[name].columns}


def row(payload: Payload, name: str, key: str, value: str) -> dict[str, Any]:
    columns = table(payload, name)
    place = columns[key].index(value)
    return {column: values[place] for column, values in columns.items()}


def test_framework_op_stats_have_rates_and_shares_of_the_peak(tmp_path: Path) -> None:
    payload = get_tool("framework_op_stats").run(run(tmp_path, events()), None, {})
    mm = row(payload, "ops", "operation", "aten::mm")
    assert mm["flop_rate_flops_per_s"] == pytest.approx(2 * MM / 48e-6)
    assert mm["compute_fraction"] == pytest.approx(2 * MM / 48e-6 / TF32_PEAK)
    assert mm["tensor_core_fraction"] == 1
    addmm = row(payload, "ops", "operation", "aten::addmm")
    assert addmm["compute_fraction"] == pytest.approx(ADDMM / 36e-6 / HALF_PEAK)
    assert addmm["tensor_core_fraction"] == pytest.approx(30 / 36)
    assert "input_shapes" not in mm
    assert "call_stack" not in mm


@pytest.mark.parametrize(
    ("group", "column", "text"),
    [("shape", "input_shapes", "8×128, 128×24"), ("stack", "call_stack", "train.py:10 step")],
)
def test_the_choice_of_groups_adds_a_column(tmp_path: Path, group: str, column: str, text: str) -> None:
    more = [
        op("aten::mm", 170, 5, [[3, 4], [4, 5]], ["float"] * 2),
        launch(171, 30),
        kernel("gemm", 255, 9, 30),
    ]
    session = run(tmp_path, [*events(), *more])
    payload = get_tool("framework_op_stats").run(session, None, {"group": group})
    assert row(payload, "ops", "operation", "aten::mm")[column] == text
    assert not payload.diagnostics
    plain = get_tool("framework_op_stats").run(session, None, {})
    assert (payload.verdict, payload.scalars) == (plain.verdict, plain.scalars)


@pytest.mark.parametrize("group", ["shape", "stack"])
def test_groups_that_were_not_recorded_are_said_so(tmp_path: Path, group: str) -> None:
    listed = [
        {**e, "args": {k: v for k, v in e["args"].items() if not k.startswith("Input")}}
        for e in events()
        if e["cat"] != "python_function"
    ]
    payload = get_tool("framework_op_stats").run(run(tmp_path, listed), None, {"group": group})
    (notice,) = payload.diagnostics
    assert {"shape": "record_shapes=True", "stack": "with_stack=True"}[group] in notice.remedy


def test_roofline_of_operators(tmp_path: Path) -> None:
    payload = get_tool("roofline_model").run(run(tmp_path, events()), None, {})
    mm = row(payload, "ops", "op", "aten::mm (8×128, 128×24)")
    n_bytes = 2 * 4 * (8 * 128 + 128 * 24 + 8 * 24)
    assert mm["flops"] == 2 * MM
    assert mm["hbm_bytes"] == n_bytes
    assert mm["operational_intensity_flops_per_byte"] == pytest.approx(2 * MM / n_bytes)
    assert mm["compute_fraction"] == pytest.approx(2 * MM / 48e-6 / TF32_PEAK)
    assert mm["efficiency_fraction"] == pytest.approx(max(mm["compute_fraction"], n_bytes / 48e-6 / HBM))
    total = row(payload, "programs", "step", "Total")
    assert total["flops"] == pytest.approx(ADDMM + ADD + 2 * MM)
    assert any("with known FLOPs" in notice.message for notice in payload.diagnostics)
    (known,) = [notice for notice in payload.diagnostics if "with known FLOPs" in notice.message]
    assert "71.0%" in known.message  # (36 + 4 + 48) of 124 µs


def test_a_program_lasts_as_long_as_its_device_although_kernels_overlap(tmp_path: Path) -> None:
    """Kernels of 100, 100 and 10 µs on two streams, within 115 µs."""
    listed = [x("user_annotation", "ProfilerStep#1", 0, 300, HOST)]
    for i, (start, length, stream) in enumerate(((100, 100, 7), (110, 100, 13), (205, 10, 7))):
        listed += [
            op("aten::mm", 10 * i + 5, 4, [[8, 128], [128, 24]], ["float"] * 2),
            launch(10 * i + 6, i + 1),
            {**kernel("gemm", start, length, i + 1), "tid": stream},
        ]
    session = run(tmp_path, listed)
    page = get_tool("roofline_model").run(session, None, {})
    total = row(page, "programs", "step", "Total")
    assert total["total_time_ps"] == 115 * 10**6
    assert total["flop_rate_flops_per_s"] == pytest.approx(3 * MM / 115e-6)
    overview = get_tool("overview_page").run(session, None, {})
    shares = overview.scalars["roofline_fraction"].value, page.scalars["efficiency_fraction"].value
    assert shares[0] == pytest.approx(shares[1])
    assert shares[0] == pytest.approx(3 * 4 * (8 * 128 + 128 * 24 + 8 * 24) / 115e-6 / HBM)


def test_op_profile_of_operators_and_the_card_of_one(tmp_path: Path) -> None:
    session = run(tmp_path, events())
    payload = get_tool("op_profile").run(session, None, {"group_by": "category"})
    products = row(payload, "nodes", "name", "matrix multiplication")
    assert products["self_time_ps"] == 84 * 10**6
    assert products["flops"] == pytest.approx(ADDMM + 2 * MM)
    shares = ADDMM / HALF_PEAK + 2 * MM / TF32_PEAK
    assert products["flops_fraction"] == pytest.approx(shares / 84e-6)
    assert payload.verdict is not None
    assert payload.verdict.next[-2].tool == "framework_op_stats"
    card = get_tool("op_profile").run(session, None, {"op": "aten::mm (8×128, 128×24)"}, "op")
    assert card.scalars["flops"].value == MM
    assert table(card, "longest")["duration_ps"] == [28 * 10**6]


def test_without_sizes_the_pages_say_what_to_record(tmp_path: Path) -> None:
    listed = [
        {**e, "args": {k: v for k, v in e["args"].items() if not k.startswith("Input")}} for e in events()
    ]
    session = run(tmp_path, listed)
    for tool in ("roofline_model", "op_profile"):
        with pytest.raises(ToolUnavailable) as error:
            get_tool(tool).run(session, None, {})
        assert "record_shapes=True" in error.value.remedy
    with pytest.raises(ToolUnavailable) as error:
        get_tool("hlo_stats").run(session, None, {})
    assert "XLA" in error.value.remedy


def test_hlo_stats_need_hlo(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable):
        get_tool("hlo_stats").run(run(tmp_path, events()), None, {})


def test_the_overview_shows_tensor_cores_and_utilization(tmp_path: Path) -> None:
    payload = get_tool("overview_page").run(run(tmp_path, events()), None, {})
    assert row(payload, "top_ops", "operation", "aten::addmm")["tensor_core_fraction"] == pytest.approx(
        30 / 36
    )
    shares = (ADDMM + ADD) / HALF_PEAK + 2 * MM / TF32_PEAK
    utilization = payload.scalars["flops_fraction"]
    assert utilization.value == pytest.approx(shares / 152e-6)
    assert "precision" in utilization.note


def test_process_groups_in_the_pod_viewer(tmp_path: Path) -> None:
    trace = rank(tmp_path, default(10, 5, 1), unlisted(40, 30, 3))
    payload = get_tool("pod_viewer").run(session_of(trace), None, {})
    groups = table(payload, "process_groups")
    assert groups["group"][:2] == ["7", "0"]
    assert groups["ranks"][:2] == ["4, 5", "0–3"]
    assert groups["time_ps"][:2] == [30 * 10**6, 5 * 10**6]
    assert groups["description"][0] == "mesh_tp"
