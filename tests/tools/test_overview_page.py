import re
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import CauseTime, Diagnosis
from tb_tpuprof.session import Session
from tb_tpuprof.tools.input_pipeline_analyzer import view as input_pipeline_analyzer
from tb_tpuprof.tools.overview_page.scalars import with_dispatch
from tb_tpuprof.tools.overview_page.view import TOOL
from tb_tpuprof.tools.payload import Payload, Scalar
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time
from tests.builders import PS, drawing
from tests.golden_files import demo_runs
from tests.ingest.xspaces import native
from tests.payload_columns import table
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_hosts, tpu_xspace
from tests.tools.drawn_session import DrawnSession, session_of


def input_bound() -> Trace:
    return drawing(
        """
        main   [train                                ]  [train                                ]
        main     [IteratorGetNext] [MatMul:MatMul]         [IteratorGetNext]  [Mul:Mul]
        """,
        {"train": [{"_r": 1, "step_num": 4}, {"_r": 1, "step_num": 5}]},
    )


def test_an_input_bound_job_is_told_so() -> None:
    payload = TOOL.run(session_of(input_bound()), None, {})
    assert payload.verdict is not None
    assert payload.verdict.text == "Highly input-bound: each step waits 17.0 µs (43.6%) for data."
    assert (payload.verdict.level, payload.verdict.category) == ("bad", "input")
    assert [step.tool for step in payload.verdict.next] == [
        "input_pipeline_analyzer",
        "trace_viewer",
        "framework_op_stats",
    ]
    assert payload.verdict.next[1].params == {
        "hosts": "worker-0",
        "start_ps": str(7 * PS),
        "end_ps": str(46 * PS),
    }
    assert payload.scalars["step_time_avg_ps"].value == 39 * PS
    assert payload.scalars["step_time_sd_ps"].value == 0
    assert payload.scalars["n_steps"].value == 2


def test_categories_of_a_step_sum_up_to_its_time() -> None:
    steps = table(TOOL.run(session_of(input_bound()), None, {}), "steps")
    assert steps["step"] == ["train 4", "train 5"]
    parts = [
        steps[name] for name in steps if name.endswith("_ps") and name not in ("step_time_ps", "start_ps")
    ]
    assert np.sum(parts, axis=0).tolist() == steps["step_time_ps"]


def test_breakdown_shares_sum_up_to_one() -> None:
    breakdown = table(TOOL.run(session_of(input_bound()), None, {}), "breakdown")
    assert sum(breakdown["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]
    assert set(breakdown["color"]) == {
        "compile",
        "input",
        "output",
        "launch",
        "host",
        "python",
        "wait",
        "collective",
        "d2d",
        "compute",
        "idle",
    }


def test_top_operations_and_environment() -> None:
    payload = TOOL.run(session_of(input_bound()), None, {})
    assert table(payload, "top_ops")["operation"] == ["MatMul", "Mul"]
    assert table(payload, "top_ops")["cumulative_fraction"] == pytest.approx([15 / 24, 1])
    assert "Hardware" in table(payload, "environment")["name"]
    assert set(table(payload, "recommendations")["tool"]) <= {
        "",
        "input_pipeline_analyzer",
        "framework_op_stats",
        "trace_viewer",
    }


def test_two_hosts_are_one_job() -> None:
    payload = TOOL.run(session_of(input_bound(), input_bound()), None, {})
    assert payload.hosts == ("worker-0", "worker-1")
    assert payload.scalars["step_time_avg_ps"].value == 39 * PS
    assert table(payload, "top_ops")["self_time_ps"] == [30 * PS, 18 * PS]
    assert payload.verdict is not None
    assert payload.scalars["step_time_avg_ps"].note == "mean over 2 hosts"
    assert not any("hosts" in text for text in payload.verdict.details)  # both are equally fast


def test_the_slowest_step_of_several_hosts_is_shown_on_its_host() -> None:
    text = (
        "main  [train       ][train                                        ]\nmain    <Add:Add >    "
        "<Add:Add                        >"
    )
    slow = drawing(text, {"train": [{"_r": 1, "step_num": i} for i in (4, 5)]})
    payload = TOOL.run(session_of(input_bound(), slow), None, {})
    assert payload.verdict is not None
    step = next(step for step in payload.verdict.next if step.tool == "trace_viewer")
    start = "main  [train       ][train".rindex("[")
    assert step.params == {"hosts": "worker-1", "start_ps": str(start * PS), "end_ps": str((start + 47) * PS)}
    assert "train 5 of worker-1" in step.text


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
    assert all(
        len(column.values) == made.n_rows for made in payload.tables.values() for column in made.columns
    )


def synthetic_tpus(*slowdown: float, **changes: object) -> Payload:
    job = replace(TpuJob(parts=Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05)), **changes)  # type: ignore[arg-type]
    return TOOL.run(session_of(*(native(data) for data in tpu_hosts(job, slowdown).values())), None, {})


def test_a_tpu_is_told_how_well_it_is_used() -> None:
    payload = synthetic_tpus(1.0, replicas=(1, 2))
    names = list(payload.scalars)
    values = {name: payload.scalars[name].value for name in names}
    assert [name for name in names if not name.startswith("step_time_")][:5] == [
        "device_idle_fraction",
        "duty_cycle_fraction",
        "flops_fraction",
        "hbm_bandwidth_fraction",
        "host_idle_fraction",
    ]
    planted = {
        "device_idle_fraction": 0.12,
        "duty_cycle_fraction": 0.65,
        "flops_fraction": 50 / 197,
        "hbm_bandwidth_fraction": 400 / 819,
    }
    assert {name: values[name] for name in planted} == pytest.approx(planted)
    assert values["roofline_fraction"] == pytest.approx(400 / 819)
    assert (
        payload.scalars["flops_fraction"].note == "50.0 TFLOP/s of 197 TFLOP/s per core, idle time included"
    )
    breakdown = table(payload, "breakdown")
    shares = dict(zip(breakdown["category"], breakdown["fraction"], strict=True))
    assert {name: share for name, share in shares.items() if share} == pytest.approx(
        {"Compute": 0.6, "Infeed": 0.2, "Outfeed": 0.03, "Collectives": 0.05, "Idle": 0.12}
    )
    assert payload.verdict is not None
    assert payload.verdict.text == "Highly input-bound: each step waits 200 µs (20.0%) for data."
    assert payload.verdict.next[0].tool == "input_pipeline_analyzer"
    environment = table(payload, "environment")
    facts = dict(zip(environment["name"], environment["value"], strict=True))
    assert (facts["TPU cores"], facts["Replicas"]) == ("2 (2 chips)", "1 of 2 cores each")


def test_what_is_not_known_of_a_tpu_says_why() -> None:
    unknown = synthetic_tpus(1.0, device="TPU of tomorrow", peak_flops_per_s=0, peak_bytes_per_s=0).scalars[
        "flops_fraction"
    ]
    assert unknown.value is None
    assert "TPUPROF_PEAKS" in unknown.note
    idle = synthetic_tpus(1.0, flops=0).scalars["flops_fraction"]
    assert (idle.value, idle.note) == (None, "the trace has no FLOP or byte counts")


def test_the_slowest_host_is_named() -> None:
    payload = synthetic_tpus(1.0, 1.2)
    assert payload.scalars["step_time_avg_ps"].note == "mean over 2 hosts"
    assert payload.verdict is not None
    assert (
        "is the slowest of 2 hosts: its steps take 1.20 ms on average, 20.0% longer"
        in payload.verdict.details[-1]
    )
    assert [step.tool for step in payload.verdict.next].count("pod_viewer") == 1
    alike = synthetic_tpus(1.0, 1.0).verdict
    assert alike is not None
    assert "pod_viewer" not in [step.tool for step in alike.next]
    hosts = table(payload, "hosts")
    assert hosts["step_time_avg_ps"] == pytest.approx([1.2e9, 1.0e9])
    assert hosts["duty_cycle_fraction"] == pytest.approx([0.65, 0.65])


@pytest.mark.parametrize("infeed", [0, 2, 4, 5, 10, 19, 20, 24])
@pytest.mark.parametrize("compute", [30, 60, 75])
def test_the_input_pipeline_analyser_never_says_otherwise(infeed: int, compute: int) -> None:
    traces = [
        native(tpu_xspace(TpuJob(parts=Parts(compute=compute / 100, infeed=infeed / 100), core_delay=0.002)))
    ]
    session = session_of(*traces)
    overview, analyzer = (
        TOOL.run(session, None, {}).verdict,
        input_pipeline_analyzer.TOOL.run(session, None, {}).verdict,
    )
    assert overview is not None
    assert analyzer is not None
    waits = [text for text in (overview.text, *overview.details) if "input-bound" in text]
    if waits:
        assert analyzer.text == waits[0]
    else:
        assert analyzer.text.startswith(("Not input-bound", "Possibly input-bound"))
        assert analyzer.text.startswith("Possibly") == any(
            "TPU is idle" in text for text in (overview.text, *overview.details)
        )


def test_captures_that_do_not_overlap_are_shown_by_themselves() -> None:
    """Three hosts, 148 days apart each: none of their numbers is a mean over all."""
    shares = enumerate((0.3, 0.0, 0.06))
    jobs = [
        GpuJob(
            Parts(0.99 - share, collective=share),
            step_ps=int(1e9 + 1e9 * share),
            start_ns=10**15 + i * 148 * 86_400 * 10**9,
        )
        for i, share in shares
    ]
    payload = TOOL.run(session_of(*(native(gpu_xspace(job)) for job in jobs)), None, {})
    assert payload.verdict is not None
    assert payload.verdict.level == "bad"
    assert payload.verdict.text.startswith(
        "The captures of 3 hosts do not overlap in time, so each host is judged separately"
    )
    assert [detail.partition(": ")[2].split(" ")[0] for detail in payload.verdict.details] == [
        "Highly",
        "Moderately",
        "Compute-bound:",
    ]
    assert not any("slowest of" in detail for detail in payload.verdict.details)
    assert payload.scalars["step_time_avg_ps"].value is None
    assert payload.scalars["device_idle_fraction"].value is None
    assert payload.tables["steps"].n_rows == 0
    assert payload.tables["hosts"].n_rows == 3
    assert payload.tables["hosts"].note == "slowest first, each by its own steps"


def test_captures_that_do_not_overlap_are_judged_as_on_their_own_pages() -> None:
    """Three real jobs hours apart: the overview and the input page repeat each host's own sentence, and show
    no findings of a mean step that none of them ran.
    """
    names = ("jax_predict", "jax_train", "keras_slow_input")
    traces = [Session(str(demo_runs()[name]), cache=False).trace("worker-0") for name in names]
    later = {
        name: replace(trace, info=replace(trace.info, host=name, start_ns=10**15 + i * 7200 * 10**9))
        for i, (name, trace) in enumerate(zip(names, traces, strict=True))
    }
    session = cast(Session, DrawnSession(later))
    for tool in (TOOL, input_pipeline_analyzer.TOOL):
        apart = tool.run(session, None, {})
        assert apart.verdict is not None
        assert apart.verdict.text.startswith("The captures of 3 hosts do not overlap in time")
        own = {host: tool.run(session, (host,), {}).verdict for host in session.hosts}
        assert all(verdict and verdict.text.startswith("Highly input-bound") for verdict in own.values())
        assert len({verdict.text for verdict in own.values() if verdict}) == 3
        expected = {f"`{host}`: {verdict.text}" for host, verdict in own.items() if verdict}
        assert expected <= set(apart.verdict.details)
        assert not {"findings", "causes"} & set(apart.tables)
        assert not any(" waits most" in text for text in apart.verdict.details)
        unknown = [scalar.note for scalar in apart.scalars.values() if scalar.title == "Waiting for input"]
        assert unknown == ["the captures do not overlap"]


def test_an_input_bound_tensorflow_job_names_its_slow_stage_first() -> None:
    payload = TOOL.run(Session(str(demo_runs()["keras_slow_input"]), cache=False), None, {})
    assert payload.verdict is not None
    assert payload.verdict.next[0].tool == "tf_data_bottleneck_analysis"
    assert payload.verdict.details[0].startswith("The slow stage of the tf.data pipeline Host:0 is `Map`")
    average = payload.scalars["step_time_avg_ps"].value
    assert average is not None
    assert "`). Set `num_parallel_calls=" in payload.verdict.details[0]
    assert (
        f"=2 alone would shorten each step from {format_time(average)} to between"
        in payload.verdict.details[1]
    )
    assert payload.tables["recommendations"].n_rows <= 1, "no general advice beside that on the stage"
    assert not {step.tool for step in payload.verdict.next} & set(
        table(payload, "recommendations")["tool"]
    ), "no way on is told twice"
    assert ("Framework", "TensorFlow, with tf.data") in zip(
        *(table(payload, "environment")[key] for key in ("name", "value")), strict=True
    )


def test_two_means_over_hosts_name_their_steps() -> None:
    """The findings count each host's own steps, the breakdown those in common: their shares differ."""
    session = Session(str(demo_runs()["tf_two_workers"]), cache=False)
    for tool in (TOOL, input_pipeline_analyzer.TOOL):
        payload = tool.run(session, None, {})
        assert payload.tables["breakdown"].note == "mean over the 48 steps that all hosts have"
        assert tool.run(session, ("worker-1",), {}).tables["breakdown"].note == ""
    causes = TOOL.run(session, None, {}).tables["causes"].note
    assert causes.endswith("mean over all steps of 2 hosts")


def test_the_gain_of_one_change_is_not_taken_for_that_of_no_wait_at_all() -> None:
    payload = TOOL.run(Session(str(demo_runs()["tf_two_workers"]), cache=False), None, {})
    assert payload.verdict is not None
    link = payload.verdict.next[0].text
    one, _, full = link.partition("; ")
    assert "(expected gain of num_parallel_calls=2 and prefetch alone: " in one
    findings = table(payload, "findings")
    low, high = (format_time(findings[name][0]) for name in ("gain_low_ps", "gain_high_ps"))
    assert full == f"if the steps did not wait at all: {low} to {high} per step)"
    # The step that the sentence promises is the mean step without the gain that the link promises.
    (step,) = re.findall(
        "from ([0-9.]+) ms to between ([0-9.]+) ms and ([0-9.]+) ms", payload.verdict.details[1]
    )
    (gain,) = re.findall("alone: ([0-9.]+) ms to ([0-9.]+) ms per step", one)
    now, least, most = (float(part) for part in step)
    assert [round(now - most, 1), round(now - least, 1)] == [float(part) for part in gain]
    assert payload.verdict.details[1].startswith("On `worker-1`, if its Python function waits")


def test_idle_time_of_a_gpu_is_told_once_and_with_its_base() -> None:
    payload = TOOL.run(session_of(native(gpu_xspace(GpuJob(Parts(compute=0.6), n_gpus=3)))), None, {})
    assert payload.scalars["device_idle_fraction"].note == "of the steps: none of the 3 GPUs works"
    assert "other_fraction" not in payload.scalars
    assert "host_eager_fraction" not in payload.scalars


def test_sums_over_devices_say_so() -> None:
    payload = synthetic_tpus(1.0, n_cores=3, has_steps=False)
    assert payload.scalars["device_busy_ps"].note.startswith("summed over 3 cores; ")
    assert payload.tables["top_ops"].note == "by self time, summed over 3 cores"
    environment = table(payload, "environment")
    facts = dict(zip(environment["name"], environment["value"], strict=True))
    assert "summed over 3 cores" in facts["Device time"]  # type: ignore[operator]
    assert "Captured time" in facts


@pytest.mark.parametrize(
    ("host", "compute", "dispatch", "transfers", "note"),
    [
        (0.80, 0.70, 0.08, 0.02, "including 8.00% dispatch and 2.00% transfers"),
        (0.80, 0.78, 0.02, 0.0, "including 2.00% dispatch"),
        (0.80, 0.797, 0.001, 0.002, "as before"),  # too little to need words
        (0.80, 0.60, 0.08, 0.02, "as before"),  # another base: the rest is unexplained
        (0.80, 0.70, 0.06, 0.044, "including 6.00% dispatch and 4.40% transfers"),  # 0.4% of the step apart
    ],
)
def test_host_compute_names_what_findings_count_apart(
    host: float, compute: float, dispatch: float, transfers: float, note: str
) -> None:
    causes = {Cause.COMPUTE: compute, Cause.DISPATCH: dispatch, Cause.TRANSFERS: transfers, Cause.INPUT: 0.1}
    times = tuple(CauseTime(cause, share * PS, share) for cause, share in causes.items())
    why = Diagnosis("good", "", 1.0 * PS, 9, (), times, is_detailed=True)
    shown = {"host_compute_fraction": Scalar(host, "fraction", "Host compute", "as before")}
    assert with_dispatch(shown, why)["host_compute_fraction"] == replace(
        shown["host_compute_fraction"], note=note
    )
    assert with_dispatch(shown, replace(why, is_detailed=False)) == shown
    assert with_dispatch({}, why) == {}
