import gzip
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view
from tb_tpuprof.tools.framework_op_stats.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.payload_columns import table
from tests.tools.drawn_session import session_of


def host_trace() -> Trace:
    return drawing("main  [a/While:While     ]   [a/While:While     ]\nmain    [x/Add:Add]")


def ops(payload: Payload, name: str = "ops") -> dict[str, list[object]]:
    return table(payload, name)


def test_rows_are_ranked_by_self_time() -> None:
    rows = ops(TOOL.run(session_of(host_trace()), None, {"idle": "true"}))
    assert rows["operation"] == ["a/While", "x/Add", "IDLE"]
    assert rows["n_occurrences"] == [2, 1, 0]
    assert rows["total_self_time_ps"] == [29 * PS, 11 * PS, 3 * PS]
    assert rows["total_time_ps"] == [40 * PS, 11 * PS, 3 * PS]
    assert rows["rank"] == [1, 2, 3]
    assert rows["host_self_fraction"] == pytest.approx([29 / 43, 11 / 43, 3 / 43])
    assert rows["host_cumulative_fraction"][-1] == pytest.approx(1)
    assert all(math.isnan(value) for value in rows["device_self_fraction"])  # type: ignore[arg-type]


def test_idle_is_left_out_unless_asked_for() -> None:
    rows = ops(TOOL.run(session_of(host_trace()), None, {}))
    assert "IDLE" not in rows["operation"]
    assert rows["host_self_fraction"] == pytest.approx([29 / 40, 11 / 40])


def test_rates_and_bounds_of_device_operations() -> None:
    stats = {
        "d": {
            "program_id": 1,
            "symbol_id": 2,
            "tf_op": "jit(f)/dot:",
            "flops": 8_000_000,
            "bytes_accessed": 4_000_000,
        }
    }
    plane = DrawnPlane(
        "/device:TPU:0", {"XLA Ops": [DrawnEvent("d", 0, 4 * PS)]}, {"peak_teraflops_per_second": 4.0}, stats
    )
    rows = ops(TOOL.run(session_of(build([plane])), None, {}))
    assert rows["flop_rate_flops_per_s"] == [2e12]
    assert rows["memory_bandwidth_bytes_per_s"] == [1e12]
    assert rows["operational_intensity_flops_per_byte"] == [2]
    assert rows["bound_by"] == ["Compute"]
    assert rows["device_self_fraction"] == [1]


def test_pies_have_ten_slices_and_the_rest() -> None:
    events = [DrawnEvent(f"op{i}:Type{i}", i * 100 * PS, (i + 1) * PS) for i in range(13)]
    payload = TOOL.run(
        session_of(build([DrawnPlane("/host:CPU", {"main": events})])), None, {"idle": "false"}
    )
    pie = ops(payload, "host_by_type")
    assert pie["name"][:2] == ["Type12", "Type11"]
    assert pie["name"][-1] == "Other"
    assert len(pie["name"]) == 11
    assert np.sum(pie["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]
    assert payload.tables["host_by_type"].note == "3 more in Other"


def test_hosts_are_summed() -> None:
    both_hosts = ops(TOOL.run(session_of(host_trace(), host_trace()), None, {"idle": True}))
    assert both_hosts["n_occurrences"] == [4, 2, 0]
    one_host = ops(TOOL.run(session_of(host_trace(), host_trace()), ["worker-1"], {"idle": True}))
    assert one_host["n_occurrences"] == [2, 1, 0]


def test_a_trace_without_operations_says_so() -> None:
    payload = TOOL.run(session_of(drawing("main [x ]")), None, {})
    assert payload.tables["ops"].n_rows == 0
    assert payload.verdict is None
    assert "no framework operations" in payload.diagnostics[0].message


@pytest.mark.parametrize(
    ("group", "message", "remedy"),
    [
        ("op", "", ""),
        ("shape", "does not record the sizes of inputs", "record_shapes=True"),
        ("stack", "records no Python functions around operations", "with_stack=True"),
    ],
)
def test_a_grouping_that_the_trace_does_not_allow_is_a_warning(group: str, message: str, remedy: str) -> None:
    """The page shows only warnings and errors at its top, and the choice changed nothing."""
    payload = TOOL.run(session_of(host_trace()), None, {"group": group})
    warnings = [one for one in payload.diagnostics if one.severity == "warning"]
    assert len(warnings) == bool(message)
    for one in warnings:
        assert message in one.message
        assert remedy in one.remedy


@pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set")
def test_kernels_launched_before_the_capture_are_no_type(tmp_path: Path) -> None:
    """As a plain script counts them: kernels whose operation is not in the file."""
    file = "tracelens_torch/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    path = Path(os.environ["TPUPROF_CORPUS"]) / file
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    ops = {one["args"].get("External id") for one in events if one.get("cat") == "cpu_op"}
    lost_us = sum(
        one["dur"]
        for one in events
        if one.get("cat") == "kernel" and one["args"].get("External id") not in ops
    )
    (tmp_path / "rank0.pt.trace.json.gz").symlink_to(path)
    payload = TOOL.run(Session(str(tmp_path), cache=False), None, {})
    assert payload.verdict
    text = payload.verdict.details[-1]
    assert text.startswith(f"{format_time(lost_us * 1e6)} (")
    assert "kernels without an operation: their launches were not traced" in text
    assert not any("most expensive type" in detail for detail in payload.verdict.details)


@pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set")
def test_operations_without_a_type_are_not_called_a_type() -> None:
    session = Session(
        str(Path(os.environ["TPUPROF_CORPUS"]) / "xprof_tpu_inference_2_old/plugins/profile/run"), cache=False
    )
    payload = TOOL.run(session, None, {})
    assert payload.verdict
    assert payload.verdict.details == (
        (
            "12 operations (5.07 min, 96.5%) have no type: the trace does not name the framework operations"
            " that they come from."
        ),
    )


def test_waiting_comes_before_the_operation_that_waits_longest() -> None:
    stats = {
        name: {"program_id": 1, "symbol_id": i, "hlo_category": category}
        for i, (name, category) in enumerate(
            [("copy-done.1", "copy-done"), ("copy-done.2", "copy-done"), ("add.3", "loop fusion")], 1
        )
    }
    events = [
        DrawnEvent("copy-done.1", 0, 5 * PS),
        DrawnEvent("copy-done.2", 6 * PS, 3 * PS),
        DrawnEvent("add.3", 10 * PS, 2 * PS),
    ]
    plane = DrawnPlane("/device:TPU:0", {"XLA Ops": events}, {}, stats)
    verdict = TOOL.run(session_of(build([plane])), None, {}).verdict
    assert verdict is not None
    assert (
        verdict.text
        == "80.0% of the operations' time on the TPU is waiting for asynchronous copies (`copy-done`): 8.00"
        " µs. "
        "`copy-done.1` takes the most time on the device: 5.00 µs, 50.0% of the time of all operations."
    )
    assert verdict.details == (
        (
            "3 operations (10.0 µs, 100%) have no type: the trace does not name the framework operations that"
            " they come from."
        ),
    )


def test_idle_time_is_unknown_where_operations_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations that fill their line more than once leave no rest that would be idle time; those that fill
    two thirds of it leave a third.
    """
    session = session_of(host_trace())
    known = TOOL.run(session, None, {}).scalars["host_idle_ps"]
    busy_ps = op_stats(host_trace()).host.busy_ps
    for span_ps, idle_ps in ((busy_ps - 1, None), (busy_ps, 0), (busy_ps * 3 // 2, busy_ps // 2)):
        stats = op_stats(host_trace())
        changed = replace(stats, host=replace(stats.host, span_ps=span_ps))
        monkeypatch.setattr(view, "op_stats", lambda _trace, changed=changed: changed)
        scalar = TOOL.run(session, None, {}).scalars["host_idle_ps"]
        assert scalar.value == idle_ps
        assert ("overlap in time" in scalar.note) == (idle_ps is None)
    assert known.value is not None
