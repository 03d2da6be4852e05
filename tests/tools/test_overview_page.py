import numpy as np
import pytest

from tb_tpuprof.tools.base import Column, Payload
from tb_tpuprof.tools.overview_page import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, drawing
from tests.tools.drawn_session import session_of


def input_bound() -> Trace:
    return drawing(
        """
        main   [train                                ]  [train                                ]
        main     [IteratorGetNext] [MatMul:MatMul]         [IteratorGetNext]  [Mul:Mul]
        """,
        {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
    )


def cells(column: Column) -> list[object]:
    return [column.strings[i] for i in column.values.tolist()] if column.strings else column.values.tolist()


def table(payload: Payload, name: str) -> dict[str, list[object]]:
    return {column.name: cells(column) for column in payload.tables[name].columns}


def test_an_input_bound_job_is_told_so() -> None:
    payload = TOOL.run(session_of(input_bound()), None, {})
    assert payload.verdict is not None
    assert payload.verdict.text == "Highly input-bound: each step waits 17 µs (43.6 %) for data."
    assert (payload.verdict.level, payload.verdict.category) == ("bad", "input")
    assert [step.tool for step in payload.verdict.next] == ["input_pipeline_analyzer", "trace_viewer", "framework_op_stats"]
    assert payload.verdict.next[1].params == {"start_ps": str(7 * PS), "end_ps": str(46 * PS)}
    assert payload.scalars["step_time_avg_ps"].value == 39 * PS
    assert payload.scalars["step_time_sd_ps"].value == 0
    assert payload.scalars["n_steps"].value == 2


def test_categories_of_a_step_sum_up_to_its_time() -> None:
    steps = table(TOOL.run(session_of(input_bound()), None, {}), "steps")
    assert steps["step"] == ["train 4", "train 5"]
    parts = [steps[name] for name in steps if name.endswith("_ps") and name not in ("step_time_ps", "start_ps")]
    assert np.sum(parts, axis=0).tolist() == steps["step_time_ps"]


def test_breakdown_shares_sum_up_to_one() -> None:
    breakdown = table(TOOL.run(session_of(input_bound()), None, {}), "breakdown")
    assert sum(breakdown["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]
    assert set(breakdown["color"]) == {"compile", "input", "output", "launch", "host", "collective", "d2d", "compute", "idle"}


def test_top_operations_and_environment() -> None:
    payload = TOOL.run(session_of(input_bound()), None, {})
    assert table(payload, "top_ops")["operation"] == ["MatMul", "Mul"]
    assert table(payload, "top_ops")["cumulative_fraction"] == pytest.approx([15 / 24, 1])
    assert "Hardware" in table(payload, "environment")["name"]
    assert set(table(payload, "recommendations")["tool"]) <= {"", "input_pipeline_analyzer", "framework_op_stats", "trace_viewer"}


def test_two_hosts_are_one_job() -> None:
    payload = TOOL.run(session_of(input_bound(), input_bound()), None, {})
    assert payload.hosts == ("worker-0", "worker-1")
    assert payload.scalars["step_time_avg_ps"].value == 39 * PS
    assert table(payload, "top_ops")["self_time_ps"] == [30 * PS, 18 * PS]
    assert payload.verdict is not None
    assert not any("start_ps" in step.params for step in payload.verdict.next)
    assert payload.scalars["step_time_avg_ps"].note == "mean over 2 hosts"
    assert payload.verdict.details[-1].startswith("All 2 hosts are equally fast")


def test_without_steps_nothing_is_made_up() -> None:
    payload = TOOL.run(session_of(drawing("main  [Add:Add  ]")), None, {})
    assert payload.scalars["step_time_avg_ps"].value is None
    assert payload.scalars["input_fraction"].value is None
    assert payload.tables["steps"].n_rows == 0
    assert payload.diagnostics[0].severity == "warning"
    assert "StepTraceAnnotation" in payload.diagnostics[0].remedy


def test_an_empty_trace_has_an_overview() -> None:
    payload = TOOL.run(session_of(drawing("")), None, {})
    assert payload.verdict is not None
    assert payload.verdict.level == "unknown"
    assert all(len(column.values) == made.n_rows for made in payload.tables.values() for column in made.columns)
