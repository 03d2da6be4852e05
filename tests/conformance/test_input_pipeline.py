"""The input pipeline analyzer beside the peer's, field by field. Each deliberate difference stands here with
its reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.input.host import HOST_CATEGORIES, WAITING, host_time
from tb_tpuprof.analysis.input.pipeline import InputPipeline, copy_fraction, input_part, input_pipeline
from tb_tpuprof.analysis.ops.recommend import input_finding
from tb_tpuprof.tools.input_pipeline_analyzer.view import TOOL
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.payload import Column, Payload
from tests.conformance.peer import NAMES, STEP_COLUMNS, answer, open_session, rows, without_regions
from tests.conformance.test_steps import OTHERS_KERNELS

PS_PER_MS, PS_PER_US = 1_000_000_000, 1_000_000
STEPS, OPS, DIAGNOSTICS = 1, 2, 4  # the peer's tables
AVERAGES = {
    "device_compute": "device_compute",
    "device_to_device": "device_to_device",
    "device_collectives": "device_collectives",
    "host_compute": "host_compute",
    "kernel_launch": "kernel_launch",
    "input": "infeed",
    "output": "outfeed",
    "compilation": "compile",
    "other": "other",
}
CATEGORIES = {
    "Enqueue": "Enqueuing", "Preprocessing": "Preprocessing", "Advanced file read": "Prefetched reads",
    "Demanded file read": "On-demand reads", "Unknown": "Other",
}  # fmt: skip
TIMES = dict(
    zip(
        HOST_CATEGORIES,
        (
            "enqueue_us",
            "preprocessing_us",
            "advanced_file_read_us",
            "demanded_file_read_us",
            "unclassified_nonequeue_us",
        ),
        strict=True,
    )
)
CONCLUSIONS = {
    "HIGHLY input-bound": "Highly",
    "MODERATELY input-bound": "Moderately",
    "POTENTIALLY input-bound": "Possibly",
    "NOT input-bound": "Not",
    "No step time measured": "Whether",
}

# Runs in which the peer finds no steps and we do, and why.
MORE_STEPS = {
    "own_tf_cpu__keras_callback": "Keras writes no step annotations since version 3; runs of its tf.function "
    "mark the steps instead",
}
# Runs whose breakdown into host compute and other differs, and why. tests/conformance/test_steps.py shows
# where the peer's come from.
OTHER_PARTS = {
    "own_jax_cpu__mlp": "the peer lets events without duration last until the next event of their class "
    "ends: more host compute",
}
# Runs on which we conclude otherwise than the peer, what, and why.
OTHER_CONCLUSION: dict[str, tuple[str | tuple[str, ...], str]] = {
    "own_tf_cpu__keras_callback": ("Highly", MORE_STEPS["own_tf_cpu__keras_callback"]),
    "own_jax_cpu__mlp": (
        "Moderately",
        "its batches come of a generator on the steps' thread, whose frames the peer counts as computing; "
        "what a step hands to a thread "
        "pool is the step's: the peer calls that 'All Others' and suspects the input",
    ),
    "xprof_gpu_multi_worker__GPU-multi-worker": (
        ("No waiting for data was traced", "Possibly"),
        "while its GPUs are idle the hosts launch kernels, as the diagnosis says once the overview was "
        "asked; the peer suspects the input",
    ),
}


def found_in(name: str, as_peer_groups: bool) -> InputPipeline:
    session = open_session(name)
    traces = [session.trace(host) for host in session.hosts]
    return input_pipeline(
        [input_part(without_regions(trace) if as_peer_groups else trace) for trace in traces]
    )


def payload_of(name: str) -> Payload:
    return TOOL.run(open_session(name), None, {})


def cells(column: Column) -> list[Any]:
    return (
        [column.strings[i] for i in column.values.tolist()]
        if column.strings is not None
        else column.values.tolist()
    )


def table(payload: Payload, name: str) -> list[dict[str, Any]]:
    columns = {column.name: cells(column) for column in payload.tables[name].columns}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def printed(value: float, digits: int = 1) -> str:
    return f"{value:.{digits}f}"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MORE_STEPS])
def test_steps_are_the_peers(name: str) -> None:
    theirs = rows(answer(name, "input_pipeline_analyzer")[STEPS])
    found = found_in(name, as_peer_groups=True)
    assert list(found.steps.name) == [row["stepnum"] for row in theirs]
    for i, row in enumerate(theirs):
        assert found.steps.duration_ps[i] / PS_PER_MS == pytest.approx(row["stepTimeMs"])
        for category, column in STEP_COLUMNS.items():
            if name in OTHER_PARTS and category in ("host_compute", "input", "other"):
                continue
            ours = found.steps.category_ps(category)[i] / PS_PER_MS
            if name in OTHERS_KERNELS and category in ("device_compute", "other"):  # how much, see test_steps
                assert abs(ours - row[column]) < 0.03
                continue
            assert ours == pytest.approx(row[column], abs=1e-6), (row["stepnum"], column)
        if name in OTHER_PARTS:
            continue
        assert found.input_fraction[i] == pytest.approx(row["infeedTimeMs"] / row["stepTimeMs"], abs=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MORE_STEPS])
def test_averages_and_deviations_are_the_peers(name: str) -> None:
    properties = answer(name, "input_pipeline_analyzer")[STEPS]["p"]
    found = found_in(name, as_peer_groups=True)
    n = len(found.steps)
    assert properties["hardware_type"].removesuffix("_ONLY") == found.hosts[0].kind
    for category, key in AVERAGES.items():
        if f"{key}_time_ms_avg" not in properties or (
            name in OTHER_PARTS and category in ("host_compute", "input", "other")
        ):
            continue
        times = found.steps.category_ps(category) / PS_PER_MS
        average, deviation = (
            (float(times.mean()), float(times.std(ddof=1)) if n > 1 else 0.0) if n else (0.0, 0.0)
        )
        assert properties[f"{key}_time_ms_avg"] == printed(average), category
        # Of a single step the peer prints no number.
        assert properties[f"{key}_time_ms_sdv"].replace("-nan", "0.0") == printed(deviation), category


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MORE_STEPS])
def test_step_time_statistics_are_the_peers(name: str) -> None:
    properties = answer(name, "input_pipeline_analyzer")[STEPS]["p"]
    scalars = payload_of(name).scalars
    for ours, theirs in (
        ("avg", "average"),
        ("sd", "standard_deviation"),
        ("min", "minimum"),
        ("max", "maximum"),
    ):
        expected = properties[f"steptime_ms_{theirs}"].replace("-nan", "0.0")
        # Without steps the peer prints 0; ours is unknown.
        assert (
            printed((scalars[f"step_time_{ours}_ps"].value or 0) / PS_PER_MS, len(expected.partition(".")[2]))
            == expected
        )


@pytest.mark.parametrize("name", NAMES)
def test_operations_of_the_input_are_the_peers(name: str) -> None:
    theirs = rows(answer(name, "input_pipeline_analyzer")[OPS])
    ours = table(payload_of(name), "input_ops")
    assert [row["operation"] for row in ours] == [row["opName"] for row in theirs]
    for mine, peer in zip(ours, theirs, strict=True):
        assert mine["n_occurrences"] == peer["count"]
        assert mine["total_time_ps"] / PS_PER_MS == pytest.approx(peer["timeInMs"], abs=1e-6)
        assert mine["total_fraction"] == pytest.approx(peer["timeInPercent"])
        assert mine["self_time_ps"] / PS_PER_MS == pytest.approx(peer["selfTimeInMs"], abs=1e-6)
        assert mine["self_fraction"] == pytest.approx(peer["selfTimeInPercent"])
        # The peer calls a consumer that waits inside of a prefetch preprocessing: the same time counts again
        # for the stages below; and so it calls the generator of a device's pipeline, which fetches what the
        # host's made.
        if mine["category"] == "Waiting":
            is_waiter = mine["operation"].rpartition("::")[2] in ("Root", "Prefetch") or mine[
                "operation"
            ].endswith("::Prefetch::Generator")
            assert (is_waiter, peer["category"]) == (True, "Preprocessing")
        else:
            assert mine["category"] == CATEGORIES[peer["category"]]


@pytest.mark.parametrize("name", NAMES)
def test_times_by_category_on_the_host_are_the_peers(name: str) -> None:
    properties = answer(name, "input_pipeline_analyzer")[OPS]["p"]
    found = found_in(name, as_peer_groups=False)
    time = host_time(found.host_input, copy_fraction(found.steps))
    times = dict(zip(HOST_CATEGORIES, time.time_ps, strict=True))
    # Waiting is no preprocessing (see above); with it the times are the peer's.
    times["preprocessing"] += 0 if found.host_input.enqueue_ps else found.host_input.time_ps(WAITING)
    for category, time_ps in times.items():
        assert f"{time_ps / PS_PER_US:.3f}" == properties[TIMES[category]], category


@pytest.mark.parametrize("name", NAMES)
def test_the_conclusion_is_the_peers_or_listed(name: str) -> None:
    conclusion = answer(name, "input_pipeline_analyzer")[STEPS]["p"]["input_conclusion"]
    theirs = next(word for text, word in CONCLUSIONS.items() if text in conclusion)
    verdict = payload_of(name).verdict
    assert verdict is not None
    default: tuple[str | tuple[str, ...], str] = (theirs, "")
    expected, _why = OTHER_CONCLUSION.get(name, default)
    assert verdict.text.startswith(expected)


@pytest.mark.parametrize("name", NAMES)
def test_events_grouped_as_the_peer_groups_them_lead_to_its_conclusion(name: str) -> None:
    if name in MORE_STEPS:
        pytest.skip(MORE_STEPS[name])
    if name in OTHER_PARTS:
        pytest.skip(OTHER_PARTS[name])
    conclusion = answer(name, "input_pipeline_analyzer")[STEPS]["p"]["input_conclusion"]
    theirs = next(word for text, word in CONCLUSIONS.items() if text in conclusion)
    found = found_in(name, as_peer_groups=True)
    told = input_finding(found.steps, found.hosts[0].kind)
    assert told.text.startswith(theirs)


@pytest.mark.parametrize("name", NAMES)
def test_it_warns_of_missing_steps_as_the_peer_does(name: str) -> None:
    theirs = any(
        "No step marker" in row["message"]
        for row in rows(answer(name, "input_pipeline_analyzer")[DIAGNOSTICS])
    )
    payload = payload_of(name)
    warned = any("steps" in d.message for d in payload.diagnostics if d.severity == "warning")
    assert warned == (theirs and name not in MORE_STEPS)


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_is_the_overviews(name: str) -> None:
    session = open_session(name)
    overview, mine = overview_page.TOOL.run(session, None, {}), TOOL.run(session, None, {})
    assert overview.scalars["input_fraction"].value == mine.scalars["input_fraction"].value
    assert overview.verdict is not None
    assert mine.verdict is not None
    if overview.verdict.category == "input":
        assert (mine.verdict.level, mine.verdict.text) == (overview.verdict.level, overview.verdict.text)
    else:
        assert mine.verdict.text.startswith(("Possibly", "Not", "Whether", "No waiting for data was traced"))


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_step_sum_up_to_it(name: str) -> None:
    payload = payload_of(name)
    breakdown = table(payload, "breakdown")
    columns = {column.name: column.values for column in payload.tables["steps"].columns}
    total = np.sum([columns[row["column"]] for row in breakdown], axis=0)
    assert np.array_equal(total, columns["step_time_ps"])
    if len(total):
        assert sum(row["fraction"] for row in breakdown) == pytest.approx(1)
