"""JAX on the CPU: operations' times, work, memory, steps and devices against what each program measured of
itself.

Tolerances are those of a loaded machine with two processors: upper bounds are strict (operations that run one
after another cannot take longer than the wall clock), lower bounds leave room for threads that the operating
system wakes late.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.tools import get_tool
from tb_tpuprof.trace.trace import Trace
from tests.truth.runner import Truth, profiled

PS_PER_S = 1e12
FOUR_DEVICES = "--xla_force_host_platform_device_count=4"
# Programs whose operations run one after another, with or without Python frames in the trace.
ALONE = [
    ("dot", "0"),
    ("matmul", "0"),
    ("matmul", "1"),
    ("conv", "0"),
    ("cholesky", "1"),
    ("scan", "0"),
    ("loop", "0"),
    ("loop", "1"),
    ("sort", "0"),
    ("gather", "0"),
    ("elementwise", "1"),
]
# Work of ours by that of `cost_analysis()`, which counts a loop's body once: trips of the loop.
TRIPS = {"dot": 1, "matmul": 1, "conv": 1, "scan": 17, "loop": 23, "sort": 1, "elementwise": 1}

pytestmark = pytest.mark.slow


def run(program: str, python_tracing: str = "0", devices: int = 1) -> Truth:
    return profiled("jax_cpu.py", program, python_tracing, xla_flags=FOUR_DEVICES if devices == 4 else "")


def trace_of(truth: Truth) -> Trace:
    session = truth.session()
    return session.trace(session.hosts[0])


def numbers(found: Steps) -> list[int]:
    """Which of the program's steps were kept: the first and the last of many are trimmed."""
    return [int(name.removeprefix("train ")) for name in found.name]


def by_step(trace: Trace, found: Steps) -> np.ndarray:
    """Time of the operations that were launched in each step."""
    runs = cpu_runs(trace)
    step = np.searchsorted(found.start_ps, runs.start_ps, "right") - 1
    inside = (step >= 0) & (runs.start_ps < (found.start_ps + found.duration_ps)[step])
    return np.bincount(step[inside], runs.self_ps[inside], len(found)) / PS_PER_S


@pytest.mark.parametrize(("program", "python_tracing"), ALONE)
def test_operations_that_run_one_after_another_add_up_to_the_wall_time(
    program: str, python_tracing: str
) -> None:
    truth = run(program, python_tracing)
    trace = trace_of(truth)
    found = steps(trace)
    share = by_step(trace, found) / np.array(truth.facts["wall_s"])[numbers(found)]
    assert share.max() <= 1.01, share
    assert share.max() >= 0.85, share
    assert median(share) >= 0.6, share


def test_a_dot_in_a_program_takes_what_the_same_dot_takes_alone() -> None:
    truth = run("mixed")
    found = hlo_ops(trace_of(truth))
    dots = np.array([found.name[i].startswith("dot_general") for i in range(len(found))])
    alone = median(truth.facts["dot_wall_s"])
    average = found.time_ps[dots] / found.n_occurrences[dots] / PS_PER_S
    assert len(average) == 3  # two in the program, and the one alone
    assert (average >= 0.6 * alone).all(), (average, alone)
    assert (average <= 1.6 * alone).all(), (average, alone)


def test_threads_work_at_least_as_long_as_a_dot_takes_and_at_most_as_long_as_all_of_them_can() -> None:
    """Eigen's launching thread leaves a large dot to the pool at once: its own share is a fraction."""
    trace = trace_of(run("dot"))
    runs = cpu_runs(trace)
    launched = trace.events["duration_ps"][runs.event].sum()
    assert (runs.thread_ps >= 0).all()
    assert runs.thread_ps.sum() >= 0.9 * runs.elapsed_ps.sum()
    assert launched < 0.8 * runs.elapsed_ps.sum()


@pytest.mark.parametrize("program", TRIPS)
def test_flops_are_those_of_the_cost_analysis_for_each_trip(program: str) -> None:
    truth = run(program)
    found = hlo_ops(trace_of(truth))
    own = ~found.is_container
    flops = found.work.flops[own].sum() / truth.facts["n_steps"]
    assert flops == pytest.approx(TRIPS[program] * truth.facts["flops"], rel=0.001)


@pytest.mark.parametrize("program", ["dot", "matmul", "conv", "sort", "elementwise"])
def test_bytes_are_those_of_the_cost_analysis(program: str) -> None:
    truth = run(program)
    n_bytes = hlo_ops(trace_of(truth)).work.n_bytes.sum() / truth.facts["n_steps"]
    assert n_bytes == pytest.approx(truth.facts["n_bytes"], rel=0.001)


@pytest.mark.parametrize(("program", "python_tracing"), ALONE)
def test_an_operation_of_the_entry_runs_once_per_execution(program: str, python_tracing: str) -> None:
    truth = run(program, python_tracing)
    found = hlo_ops(trace_of(truth))
    n_steps = truth.facts["n_steps"]
    counts = dict(zip([found.name[i] for i in range(len(found))], found.n_occurrences.tolist(), strict=True))
    assert set(counts.values()) <= {n_steps, n_steps * TRIPS.get(program, 1)}, counts
    assert n_steps in counts.values()


@pytest.mark.parametrize("program", ["matmul", "conv", "scan", "sort"])
def test_memory_is_that_of_the_memory_analysis(program: str) -> None:
    truth = run(program)
    scalars = (
        get_tool("memory_viewer").run(truth.session(), None, {"program": f"jit_{_function(truth)}"}).scalars
    )
    found = {key: scalars[name].value for key, name in MEMORY.items()}
    assert found == {key: truth.facts[key] for key in MEMORY}


MEMORY = {
    "arguments": "parameter_bytes",
    "outputs": "output_bytes",
    "temporaries": "temporary_allocated_bytes",
}


def _function(truth: Truth) -> str:
    """The name of the program that ran, without `jit_` and id."""
    found = hlo_ops(trace_of(truth))
    return found.programs[int(found.program[0])].partition("(")[0].removeprefix("jit_")


@pytest.mark.parametrize(
    ("program", "python_tracing", "devices"),
    [("matmul", "0", 1), ("cholesky", "1", 1), ("psum", "0", 4), ("psum", "1", 4)],
)
def test_steps_take_what_the_program_s_clock_says(program: str, python_tracing: str, devices: int) -> None:
    truth = run(program, python_tracing, devices)
    found = steps(trace_of(truth))
    wall = np.array(truth.facts["wall_s"])[numbers(found)]
    assert len(found) >= truth.facts["n_steps"] - 2
    beyond = found.duration_ps / PS_PER_S - wall
    assert beyond.min() >= -1e-5
    assert median(beyond) <= 0.0005 + 0.02 * median(wall)


@pytest.mark.parametrize(
    ("program", "python_tracing", "devices"),
    [("cholesky", "0", 1), ("cholesky", "1", 1), ("psum", "0", 4), ("psum", "1", 4)],
)
def test_what_operations_cover_is_not_untraced(program: str, python_tracing: str, devices: int) -> None:
    """The truth is a union over all threads, counted from the file's bytes: at most what it leaves of the
    steps can be untraced.
    """
    truth = run(program, python_tracing, devices)
    found = steps(trace_of(truth))
    ran = _covered_s(truth, numbers(found))
    whole = found.duration_ps.sum() / PS_PER_S
    assert ran > 0.3 * whole
    assert found.fraction("other") <= 1 - ran / whole + 0.02


def _covered_s(truth: Truth, kept: list[int]) -> float:
    """Time in which any thread had an event of an operation open, inside one of the steps."""
    [path] = truth.run_dir.glob("*.xplane.pb")
    xspace = xspace_class()()
    xspace.ParseFromString(path.read_bytes())
    ops, marks = [], []
    for plane in xspace.planes:
        stats = {entry.key: entry.value.name.decode() for entry in plane.stat_metadata}
        names = {entry.key: entry.value.name.decode() for entry in plane.event_metadata}
        for line in plane.lines:
            for event in line.events:
                begin = line.timestamp_ns * 1000 + event.offset_ps
                if any(stats[stat.metadata_id] == "hlo_op" for stat in event.stats):
                    ops.append((begin, begin + event.duration_ps))
                elif names[event.metadata_id] == "train":
                    marks.append((begin, begin + event.duration_ps))
    total = 0
    for first, last in (sorted(marks)[number] for number in kept):
        until = first
        for begin, end in sorted(ops):
            begin, end = max(begin, until), min(end, last)
            total += max(0, end - begin)
            until = max(until, end)
    return total / PS_PER_S


@pytest.fixture(params=["0", "1"])
def four_devices(request: pytest.FixtureRequest) -> Truth:
    return run("psum", request.param, 4)


def test_cpu_devices_are_devices(four_devices: Truth) -> None:
    trace = trace_of(four_devices)
    found = hlo_ops(trace)
    assert found.n_devices == four_devices.facts["n_devices"] == 4
    assert set(found.n_occurrences.tolist()) == {4 * four_devices.facts["n_steps"]}
    wall = sum(four_devices.facts["wall_s"])
    runs = cpu_runs(trace)
    per_device = np.bincount(runs.device, runs.self_ps) / PS_PER_S
    assert (per_device <= 1.01 * wall).all()
    assert per_device.max() >= 0.5 * wall
    rows = get_tool("roofline_model").run(four_devices.session(), None, {}).tables["ops"].columns
    columns = {column.name: column.values for column in rows}
    assert columns["time_per_device_ps"].sum() / PS_PER_S <= 1.01 * wall
    assert (columns["time_per_device_ps"] * 4).tolist() == pytest.approx(columns["total_time_ps"].tolist())


def test_flops_of_four_devices_are_four_times_those_of_one(four_devices: Truth) -> None:
    flops = hlo_ops(trace_of(four_devices)).work.flops.sum() / four_devices.facts["n_steps"]
    assert flops == pytest.approx(4 * four_devices.facts["flops"], rel=0.001)


@pytest.mark.parametrize(("program", "devices"), [("conv", 1), ("loop", 1), ("psum", 4)])
def test_all_pages_read_the_same_times(program: str, devices: int) -> None:
    truth = run(program, "0", devices)
    trace = trace_of(truth)
    compiled, host = hlo_ops(trace), op_stats(trace).host
    expected = _times(compiled)
    assert {name: int(host.self_ps[i]) for i, name in enumerate(host.name) if name in expected} == expected
    session = truth.session()
    for tool in ("hlo_stats", "roofline_model"):
        columns = {
            column.name: column for column in get_tool(tool).run(session, None, {}).tables["ops"].columns
        }
        names = columns["op"]
        texts = (
            [names.strings[code] for code in names.values.tolist()]
            if names.strings is not None
            else names.values.tolist()
        )
        assert dict(zip(texts, columns["total_self_time_ps"].values.tolist(), strict=True)) == expected
        assert "self time of all operations" in columns["self_fraction"].description
        assert columns["self_fraction"].values.sum() == pytest.approx(1)


def _times(ops: HloOps) -> dict[str, int]:
    return {ops.name[i]: int(ops.self_ps[i]) for i in range(len(ops))}
