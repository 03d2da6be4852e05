"""Steps and their breakdown beside the peer's, field by field. Each deliberate difference stands here with
its reason.
"""

import itertools

import numpy as np
import pytest

from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.classes import TimeClass, host_classes
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.waits import PYTHON_CLASSES
from tb_tpuprof.tools.overview_page.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.conformance.peer import NAMES, STEP_COLUMNS, answer, open_session, rows, without_regions

PS_PER_MS = 1_000_000_000

# Runs in whose steps the peer shows too much host compute. It counts frames of the Python tracer as
# computing, whatever they do. And an event without duration, such as a mark, leaves its class active in the
# peer's sweep (which handles an end before a start at the same time) until the next event of that class ends.
# `swept_with_instants` does both, and arrives at the peer's times.
PEER_COUNTS_INSTANTS = {"own_jax_cpu__mlp"}

# Runs in which the peer finds no steps and we do, and why.
MORE_STEPS = {
    "own_tf_cpu__keras_callback": "Keras writes no step annotations since version 3; runs of its tf.function "
    "mark the steps instead",
}


# Runs whose GPUs ran kernels in a step that another step had launched, or none. The peer calls the GPU idle
# meanwhile.
OTHERS_KERNELS = {"xprof_gpu_multi_worker__GPU-multi-worker"}


def busy_ps(trace: Trace, first: int, last: int) -> int:
    """How long any stream of a GPU runs anything between two moments, counted in the events alone."""
    spans = []
    for line in range(len(trace.lines)):
        if (
            trace.plane_names[trace.lines["plane"][line]].startswith("/device:GPU")
            and "Stream" in trace.line_names[line]
        ):
            rows_of_line = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
            start, duration = (
                trace.events["start_ps"][rows_of_line].tolist(),
                trace.events["duration_ps"][rows_of_line].tolist(),
            )
            spans += [
                (max(a, first), min(a + b, last))
                for a, b in zip(start, duration, strict=True)
                if a < last and a + b > first
            ]
    total, reached = 0, first
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def found_steps(name: str, as_peer_groups: bool) -> Steps:
    session = open_session(name)
    traces = [session.trace(host) for host in session.hosts]
    if as_peer_groups:
        traces = [without_regions(trace) for trace in traces]
    return common_steps([steps(trace) for trace in traces], [trace.info.start_ns for trace in traces]).steps


def swept_with_instants(trace: Trace, found: Steps, i: int) -> int:
    """Host compute of a step of a CPU run in ps, as the peer's sweep over boundaries counts it."""
    of_names = host_classes(trace, planes(trace).hosts)
    of_names[[trace.strings[name].startswith("$") for name in trace.metadata["name"].tolist()]] = (
        TimeClass.HOST_COMPUTE
    )
    classes = of_names[trace.events["metadata"]]
    rows_of_step = np.flatnonzero(
        (groups(trace).group == found.number[i]) & (classes == TimeClass.HOST_COMPUTE)
    )
    start = trace.events["start_ps"][rows_of_step]
    end = start + trace.events["duration_ps"][rows_of_step]
    boundaries = sorted([(time, 0) for time in end.tolist()] + [(time, 1) for time in start.tolist()])
    first, last = int(found.start_ps[i]), int(found.start_ps[i] + found.duration_ps[i])
    n_open, is_active, total = 0, False, 0
    for (time, is_start), (following, _) in itertools.pairwise(boundaries):
        n_open += 1 if is_start else -1
        is_active = True if is_start else is_active and n_open != 0
        if is_active:
            total += max(0, min(following, last) - max(time, first))
    return total


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MORE_STEPS])
def test_steps_and_their_times_are_the_peers(name: str) -> None:
    theirs = rows(answer(name, "overview_page")[1])
    ours = found_steps(name, as_peer_groups=False)
    assert list(ours.name) == [row["stepnum"] for row in theirs]
    assert (ours.duration_ps / PS_PER_MS).tolist() == pytest.approx([row["stepTimeMs"] for row in theirs])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MORE_STEPS])
def test_every_part_of_every_step_is_the_peers_where_events_are_grouped_alike(name: str) -> None:
    theirs = rows(answer(name, "overview_page")[1])
    ours = found_steps(name, as_peer_groups=True)
    for row, step in zip(theirs, ours.name, strict=True):
        i = ours.name.index(step)
        mine = {category: int(ours.category_ps(category)[i]) / PS_PER_MS for category in STEP_COLUMNS}
        if name in PEER_COUNTS_INSTANTS:
            swept = swept_with_instants(without_regions(open_session(name).trace("vm")), ours, i) / PS_PER_MS
            assert swept >= mine["host_compute"]
            mine["host_compute"], mine["input"] = (
                swept,
                int(ours.class_ps[i, TimeClass.HOST_WAIT_INPUT]) / PS_PER_MS,
            )
            rest = sum(time for category, time in mine.items() if category != "other")
            mine["other"] = int(ours.duration_ps[i]) / PS_PER_MS - rest
        peer = {category: row[column] for category, column in STEP_COLUMNS.items()}
        if name in OTHERS_KERNELS:
            session = open_session(name)
            first, last = int(ours.start_ps[i]), int(ours.start_ps[i] + ours.duration_ps[i])
            more = busy_ps(session.trace(session.hosts[0]), first, last) / PS_PER_MS - peer["device_compute"]
            assert more > 0
            peer["device_compute"], peer["other"] = peer["device_compute"] + more, peer["other"] - more
        assert mine == pytest.approx(peer, abs=1e-6), step


@pytest.mark.parametrize("name", ["own_jax_cpu__mlp", "own_tf_cpu__remote_capture"])
def test_work_of_thread_pools_turns_other_time_into_host_compute(name: str) -> None:
    """Deliberate difference: work that a step hands to a thread pool belongs to the step.

    The peer makes regions of a thread pool's start and stop marks and then does not tie them to who scheduled
    them.

    XLA on the CPU runs the whole computation there: the peer calls 78% of a JAX step "All others" and
    suspects the input.
    """
    with_regions, without = found_steps(name, as_peer_groups=False), found_steps(name, as_peer_groups=True)
    moved = with_regions.category_ps("host_compute") - without.category_ps("host_compute")
    assert (moved >= 0).all()
    assert moved.any()
    # Where frames of the Python tracer say more, what they said of the time that now is computing goes, too.
    said = [
        found.class_ps[:, [TimeClass.UNKNOWN, *PYTHON_CLASSES]].sum(axis=1)
        for found in (without, with_regions)
    ]
    assert np.array_equal(moved, said[0] - said[1])
    for category in set(STEP_COLUMNS) - {"host_compute", "other", "input"}:
        assert np.array_equal(with_regions.category_ps(category), without.category_ps(category))


@pytest.mark.parametrize("name", MORE_STEPS)
def test_steps_are_found_where_the_peer_finds_none(name: str) -> None:
    assert rows(answer(name, "overview_page")[1]) == []
    assert found_steps(name, as_peer_groups=False).source == "function"


@pytest.mark.parametrize(
    "name", ["own_jax_cpu__mlp", "own_tf_cpu__remote_capture", "xprof_gpu_multi_worker__GPU-multi-worker"]
)
def test_average_step_time_is_the_peers(name: str) -> None:
    properties = answer(name, "overview_page")[1]["p"]
    scalars = TOOL.run(open_session(name), None, {}).scalars
    for ours, theirs in (
        ("avg", "average"),
        ("sd", "standard_deviation"),
        ("min", "minimum"),
        ("max", "maximum"),
    ):
        expected = properties[f"steptime_ms_{theirs}"]
        value = scalars[f"step_time_{ours}_ps"].value
        assert value is not None
        # The peer prints one decimal; of a single step it prints no deviation (not a number), we 0.
        assert f"{value / PS_PER_MS:.1f}" == expected.replace("-nan", "0.0").replace("nan", "0.0")


def test_shares_of_precision_are_the_peers() -> None:
    name = "xprof_gpu_multi_worker__GPU-multi-worker"
    properties = answer(name, "overview_page")[0]["p"]
    scalars = TOOL.run(open_session(name), None, {}).scalars
    for bits in (16, 32):
        value = scalars[f"device_compute_{bits}bit_fraction"].value
        assert f"{100 * (value or 0):.1f}%" == properties[f"device_compute_{bits}bit_percent"]


def test_the_input_bound_run_is_called_so_by_both() -> None:
    name = "own_tf_cpu__remote_capture"
    assert "HIGHLY input-bound because 83.6%" in answer(name, "overview_page")[3]["p"]["statement"]
    verdict = TOOL.run(open_session(name), None, {}).verdict
    assert verdict is not None
    assert (
        verdict.text
        == "Highly input-bound: each step waits 19.7 ms (83.6%) for data, most of it for the tf.data stage "
        "`Map`."
    )


def test_how_well_a_tpu_is_used_is_the_peers() -> None:
    """What the peer can tell of it: it prints 0.0% as FLOPS and memory bandwidth utilisation, which are
    computed here.
    """
    name = "xprof_tpu_inference_2_old__run"
    properties = answer(name, "overview_page")[0]["p"]
    scalars = TOOL.run(open_session(name), None, {}).scalars
    for ours, theirs in (("device_idle", "device_idle_time"), ("duty_cycle", "device_duty_cycle")):
        value = scalars[f"{ours}_fraction"].value
        assert f"{100 * (value or 0):.1f}%" == properties[f"{theirs}_percent"]
    # The host ran no operation: its allocations for one, which the peer takes for operations, make no span in
    # which to be idle.
    assert (scalars["host_idle_fraction"].value, properties["host_idle_time_percent"]) == (None, "100.0%")
    assert (
        properties["flop_rate_utilization_relative_to_roofline"]
        == properties["memory_bw_utilization_relative_to_hw_limit"]
        == "0.0%"
    )
    bandwidth = scalars["hbm_bandwidth_fraction"].value
    assert bandwidth is not None
    assert 0.01 < bandwidth < 1
