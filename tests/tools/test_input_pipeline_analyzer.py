from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.encode import encode_json
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.input_pipeline_analyzer.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, drawing
from tests.payload_columns import scalar, table
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_xspace, write_run
from tests.tools.drawn_session import session_of

TABLES = ["steps", "breakdown", "host_categories", "input_ops", "advice", "hosts"]
PS_PER_MS = 1_000_000_000


def job(wait: int = 17) -> Trace:
    """Two steps that wait `wait` columns each for a pipeline that reads files, and compute in 15."""
    waits = f"[{'IteratorGetNext'.ljust(wait - 2)}][MatMul:MatMul]".ljust(41)
    return drawing(
        f"""
        main   [train                                ]  [train                                ]
        main    {waits}{waits}
        data    [Iterator::Root::Map::TFRecord       ]
        """,
        {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
    )


def computing() -> Trace:
    return drawing("main   [train                ]\nmain   [MatMul:MatMul        ]", {"train": {"_r": 1}})


def test_the_verdict_says_how_much_is_waited_and_where_the_time_goes() -> None:
    payload = TOOL.run(session_of(job()), None, {})
    assert payload.verdict is not None
    assert (payload.verdict.level, payload.verdict.category) == ("bad", "input")
    assert payload.verdict.text.startswith("Highly input-bound: each step waits")
    assert (
        payload.verdict.details[1]
        == "On the host 100% of the time for input is on-demand reads; `…::Map::TFRecord` is the largest "
        "part of that, 100%."
    )
    assert payload.verdict.next[0].text.startswith("See how to fix it (expected gain if fully fixed: ")
    assert [step.tool for step in payload.verdict.next] == [
        "overview_page",
        "trace_viewer",
        "tf_data_bottleneck_analysis",
    ]
    assert set(payload.verdict.next[1].params) == {"start_ps", "end_ps"}


def test_tables_and_their_columns_agree() -> None:
    payload = TOOL.run(session_of(job()), None, {})
    assert list(payload.tables) == TABLES
    steps, breakdown = table(payload, "steps"), table(payload, "breakdown")
    assert steps["step"] == ["train 4", "train 5"]
    assert np.sum([steps[name] for name in breakdown["column"]], axis=0).tolist() == steps["step_time_ps"]
    assert sum(breakdown["fraction"]) == pytest.approx(1)
    waited = steps["input_ps"]
    assert steps["input_fraction"] == pytest.approx(
        [time / whole for time, whole in zip(waited, steps["step_time_ps"], strict=True)]
    )
    assert scalar(payload, "input_fraction") == pytest.approx(sum(waited) / sum(steps["step_time_ps"]))
    assert scalar(payload, "input_fraction_min") == pytest.approx(min(steps["input_fraction"]))
    assert scalar(payload, "waiting_avg_ps") == pytest.approx(sum(waited) / 2)
    host = table(payload, "host_categories")
    assert host["category"] == ["Enqueuing", "Preprocessing", "Prefetched reads", "On-demand reads", "Other"]
    assert host["fraction"] == [0, 0, 0, 1, 0]
    assert table(payload, "input_ops")["category"] == ["On-demand reads"]
    assert table(payload, "advice")["category"] == ["On-demand reads", "Preprocessing"]


def test_colours_are_the_frontends() -> None:
    payload = TOOL.run(session_of(job()), None, {})
    colors = {
        "compute",
        "input",
        "output",
        "collective",
        "d2d",
        "host",
        "python",
        "wait",
        "compile",
        "launch",
        "idle",
    }
    for name in ("breakdown", "host_categories"):
        assert set(table(payload, name)["color"]) <= colors


def test_the_worst_host_is_named() -> None:
    payload = TOOL.run(session_of(job(16), computing(), job(24)), None, {})
    hosts = table(payload, "hosts")
    assert hosts["host"] == ["host", "host", "host"]
    assert hosts["input_fraction"] == sorted(hosts["input_fraction"], reverse=True)
    assert payload.verdict is not None
    assert payload.verdict.details[1].startswith("host waits most: ")
    assert "host waits least, 0 s (0%)" in payload.verdict.details[1]


def test_a_host_that_the_mean_hides_is_not_hidden(tmp_path: Path) -> None:
    """One host of eight waits 30% of its steps: 3.75% in the mean."""
    hosts = {
        f"synthetic-tpu-{i}": tpu_xspace(
            TpuJob(Parts(compute=0.69, infeed=0.3 if i == 5 else 0), n_cores=1, lead_ps=0),
            f"synthetic-tpu-{i}",
        )
        for i in range(8)
    }
    session = Session(str(write_run(tmp_path, hosts)), cache=False)
    payload = TOOL.run(session, None, {})
    overview = get_tool("overview_page").run(session, None, {})
    assert overview.verdict is not None
    assert payload.verdict is not None
    assert (overview.verdict.level, overview.verdict.text) == (payload.verdict.level, payload.verdict.text)
    assert scalar(payload, "input_fraction") < 0.05
    assert payload.verdict is not None
    assert payload.verdict.level == "bad"
    assert payload.verdict.text.startswith(
        "Highly input-bound on synthetic-tpu-5: each of its steps waits 300 µs (30.0%) for data"
    )
    assert table(payload, "advice")["tool"] != ["overview_page"]


def test_hosts_that_wait_alike_are_said_to() -> None:
    payload = TOOL.run(session_of(job(), job()), None, {})
    assert payload.verdict is not None
    assert payload.verdict.details[1].startswith("Both hosts wait about equally")


def test_meanings_are_sentences() -> None:
    payload = TOOL.run(session_of(job()), None, {})
    for name in ("breakdown", "host_categories"):
        assert all(
            text.startswith(("Time spent ", "The rest", "No operation"))
            for text in table(payload, name)["meaning"]
        )
        assert not any("spent the rest" in text for text in table(payload, name)["meaning"])


def test_a_job_that_computes_is_told_to_look_elsewhere() -> None:
    payload = TOOL.run(session_of(computing()), None, {})
    assert payload.verdict is not None
    assert (payload.verdict.level, payload.verdict.text) == (
        "good",
        "Not input-bound: no step waits for data.",
    )
    assert table(payload, "advice")["tool"] == ["overview_page"]


def test_without_steps_only_the_host_is_told_of() -> None:
    payload = TOOL.run(session_of(drawing("main  [Iterator::Root::Map  ]")), None, {})
    assert payload.verdict is not None
    assert payload.verdict.level == "unknown"
    assert payload.scalars["step_time_avg_ps"].value is None
    assert payload.scalars["input_fraction"].value is None
    assert payload.scalars["host_input_ps"].value == 23 * PS
    assert payload.tables["steps"].n_rows == 0
    assert any(found.severity == "warning" for found in payload.diagnostics)


def test_an_empty_trace_has_an_answer() -> None:
    payload = TOOL.run(session_of(drawing("")), None, {})
    assert encode_json(payload)
    assert all(
        len(column.values) == made.n_rows for made in payload.tables.values() for column in made.columns
    )


def test_planted_shares_of_a_tpu_come_back(tmp_path: Path) -> None:
    """Values as XProf 2.24.2 gives them for the same file: infeed 25% (20 to 25% over cores), outfeed 5%,
    idle 5%.
    """
    tpu_job = TpuJob(
        Parts(compute=0.6, infeed=0.2, outfeed=0.05, collective=0.05), n_cores=2, core_delay=0.05
    )
    payload = TOOL.run(
        Session(str(write_run(tmp_path, {"synthetic-tpu": tpu_xspace(tpu_job)})), cache=False), None, {}
    )
    steps = table(payload, "steps")
    assert steps["input_core"] == ["synthetic-tpu:1"] * 6
    assert steps["input_fraction_min"] == pytest.approx([0.2] * 6)
    assert steps["input_fraction_max"] == pytest.approx([0.25] * 6)
    first = {name: values[0] / PS_PER_MS for name, values in steps.items() if name.startswith("tc_")}
    assert first == pytest.approx(
        {"tc_compute_ps": 0.6, "tc_infeed_ps": 0.25, "tc_outfeed_ps": 0.05, "tc_idle_ps": 0.05}
    )
    assert payload.verdict is not None
    assert payload.verdict.text == "Highly input-bound: each step waits 250 µs (25.0%) for data."
    assert "core synthetic-tpu:1 waits longest in 6 of 6 steps" in payload.verdict.details[0]
    host = table(payload, "host_categories")
    assert [time / PS_PER_MS for time in host["time_ps"]] == pytest.approx([1.5, 0, 0, 0, 4.5])


def test_sparse_cores_are_shown_beside_the_steps(tmp_path: Path) -> None:
    tpu_job = TpuJob(Parts(compute=0.6, infeed=0.1), n_cores=1, n_sparse_cores=2)
    payload = TOOL.run(
        Session(str(write_run(tmp_path, {"synthetic-tpu": tpu_xspace(tpu_job)})), cache=False), None, {}
    )
    steps = table(payload, "steps")
    assert steps["sc_compute_ps"][0] / PS_PER_MS == pytest.approx(0.1)
    assert steps["sc_idle_ps"][0] / PS_PER_MS == pytest.approx(0.9)
    assert not [name for name in table(payload, "breakdown")["column"] if name.startswith("sc_")]


def test_planted_shares_of_a_gpu_come_back(tmp_path: Path) -> None:
    gpu_job = GpuJob(Parts(compute=0.5, infeed=0.2, outfeed=0.1, collective=0.1))
    payload = TOOL.run(
        Session(str(write_run(tmp_path, {"synthetic-gpu": gpu_xspace(gpu_job)})), cache=False), None, {}
    )
    assert scalar(payload, "input_fraction") == pytest.approx(0.2)
    assert scalar(payload, "output_fraction") == pytest.approx(0.1)


def test_hosts_of_a_tpu_job_are_aligned_and_the_worst_named(tmp_path: Path) -> None:
    hosts = {
        "synthetic-tpu-0": tpu_xspace(TpuJob(Parts(compute=0.6, infeed=0.02), n_cores=1), "synthetic-tpu-0"),
        "synthetic-tpu-1": tpu_xspace(TpuJob(Parts(compute=0.6, infeed=0.3), n_cores=1), "synthetic-tpu-1"),
    }
    payload = TOOL.run(Session(str(write_run(tmp_path, hosts)), cache=False), None, {})
    assert table(payload, "hosts")["host"] == ["synthetic-tpu-1", "synthetic-tpu-0"]
    assert table(payload, "steps")["input_fraction"] == pytest.approx([0.16] * 6)
    assert table(payload, "steps")["input_core"] == ["synthetic-tpu-1:0"] * 6
    steps = table(payload, "steps")
    assert (
        np.sum([steps[name] for name in table(payload, "breakdown")["column"]], axis=0).tolist()
        == steps["step_time_ps"]
    )
    assert payload.verdict is not None
    assert payload.verdict.details[0].startswith(
        "synthetic-tpu-1 waits most and is highly input-bound: 300 µs (30.0%)"
    )


def test_stages_that_only_wait_are_said_to_and_not_called_untraced() -> None:
    trace = drawing(
        """
        main  [train                                           ] [train                                           ]
        main   [Iterator::Prefetch                  ] [Mul:Mul]   [Iterator::Prefetch                  ] [Mul:Mul]
        main    [Iterator::Prefetch::Generator    ]                [Iterator::Prefetch::Generator    ]
        """,
        {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
    )
    payload = TOOL.run(session_of(trace), None, {})
    assert table(payload, "input_ops")["category"] == ["Waiting", "Waiting"]
    reason = "the traced stages only wait for others; no work on input was traced"
    assert payload.scalars["host_input_ps"].note == reason
    assert payload.tables["host_categories"].note == f"T{reason[1:]}."
    nothing = TOOL.run(session_of(computing()), None, {})
    assert nothing.scalars["host_input_ps"].note == "no input operations were traced"
    assert nothing.tables["host_categories"].note == "No input operations were traced."
