"""Recorded runs of this project's programs (tests/data/corpus): every event compared with a plain count of
the file, and the numbers of pages with the programs' own measurements.

The checks are those of the live tests, here on files that every clone has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.pipeline import pipelines
from tb_tpuprof.tools import get_tool
from tb_tpuprof.trace.trace import Trace
from tests.conformance.live_devices import table
from tests.truth import test_input, test_jax_cpu, test_memory_facts, test_ops_tf
from tests.truth.plain_kineto import events_of, is_operator, step_facts
from tests.truth.plain_xplane import Event, Line, lines_of, union_ps
from tests.truth.runner import CORPUS, Truth, corpus, recorded, recorded_as

XPLANES = sorted(path.name.partition(".")[0] for path in CORPUS.glob("*.xplane.pb.gz"))
ANNOTATED = [
    name for name in XPLANES if name.startswith(("jax_", "tf_slow", "tf_ready")) and name != "jax_memory"
]
MOST_BYTES = 3_000_000

Check = tuple[Callable[..., None], tuple[Any, ...]]
CHECKS: list[Check] = [
    *((test_jax_cpu.test_operations_that_run_one_after_another_add_up_to_the_wall_time, (name, traced))
      for name, traced in (("matmul", "0"), ("conv", "0"), ("scan", "0"), ("loop", "1"), ("cholesky", "1"))),
    *((test_jax_cpu.test_flops_are_those_of_the_cost_analysis_for_each_trip, (name,)) for name in ("matmul", "conv", "scan")),
    *((test_jax_cpu.test_bytes_are_those_of_the_cost_analysis, (name,)) for name in ("matmul", "conv")),
    *((test_jax_cpu.test_memory_is_that_of_the_memory_analysis, (name,)) for name in ("matmul", "conv", "scan")),
    *((test_jax_cpu.test_an_operation_of_the_entry_runs_once_per_execution, (name, traced))
      for name, traced in (("matmul", "0"), ("conv", "0"), ("scan", "0"), ("loop", "1"), ("cholesky", "1"))),
    *((test_jax_cpu.test_steps_take_what_the_program_s_clock_says, case)
      for case in (("matmul", "0", 1), ("cholesky", "1", 1), ("psum", "0", 4), ("psum", "1", 4))),
    *((test_jax_cpu.test_what_operations_cover_is_not_untraced, case)
      for case in (("cholesky", "1", 1), ("psum", "0", 4), ("psum", "1", 4))),
    *((test_jax_cpu.test_all_pages_read_the_same_times, case) for case in (("conv", 1), ("psum", 4))),
    *((test_memory_facts.test_kinds_of_memory_are_those_that_xla_states, (name,)) for name in ("plain", "donating", "busy")),
    (test_memory_facts.test_a_result_in_a_donated_parameter_s_memory_is_no_second_buffer, ()),
    *((test_ops_tf.test_operations_ran_as_often_and_as_long_as_their_loops, case)
      for case in (("function", "Function"), ("eager", "Eager"))),
    (test_ops_tf.test_types_are_those_of_the_operations, ()),
    (test_input.test_a_jax_loop_that_waits_for_its_loader_says_so_and_where, ("generator",)),
    (test_input.test_steps_that_only_dispatch_last_until_their_work_is_done, (1,)),
    (test_input.test_a_custom_loop_without_annotations_waits_between_its_functions, ()),
    *((test_input.test_annotated_steps_win_over_loops_inside, (data,)) for data in ("slow", "ready")),
    (test_input.test_a_loop_over_a_dataset_inside_of_a_function_has_steps, ()),
    (test_input.test_keras_waits_or_does_not, ("slow",)),
    (test_input.test_a_first_step_that_fills_a_buffer_is_reported, ()),
]  # fmt: skip


def _name(check: Check) -> str:
    function, arguments = check
    return "-".join((function.__name__.removeprefix("test_"), *map(str, arguments)))


@pytest.mark.parametrize("check", CHECKS, ids=_name)
def test_recorded_runs_are_what_their_programs_measured(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (test_input, test_jax_cpu, test_memory_facts, test_ops_tf):
        monkeypatch.setattr(module, "profiled", recorded_as)
    function, arguments = check
    function(*arguments)


@pytest.mark.parametrize("name", ["jax_four_devices", "jax_four_devices_python"])
def test_four_devices_are_four_devices(name: str) -> None:
    truth = recorded(name)
    test_jax_cpu.test_cpu_devices_are_devices(truth)
    test_jax_cpu.test_flops_of_four_devices_are_four_times_those_of_one(truth)


def trace_of(truth: Truth) -> Trace:
    session = truth.session()
    return session.trace(session.hosts[0])


def plain(name: str) -> list[Line]:
    (path,) = CORPUS.glob(f"{name}.xplane.pb.gz")
    return lines_of(path)


@pytest.mark.parametrize("name", XPLANES)
def test_every_event_is_read_with_its_name_time_and_line(name: str) -> None:
    trace = trace_of(recorded(name))
    expected = Counter(
        (line.plane, line.name, event.name, event.duration_ps)
        for line in plain(name)
        for event in line.events
    )
    planes = [trace.plane_names[plane] for plane in trace.lines["plane"].tolist()]
    line_of, names = trace.event_line, trace.metadata["name"][trace.events["metadata"]]
    found = Counter(
        (planes[line], trace.line_names[line], trace.strings.get(text), duration)
        for line, text, duration in zip(
            line_of.tolist(), names.tolist(), trace.events["duration_ps"].tolist(), strict=True
        )
    )
    assert found == expected
    starts = sorted(event.start_ps for line in plain(name) for event in line.events)
    assert (trace.events["start_ps"] - trace.events["start_ps"].min()).sum() == sum(starts) - starts[0] * len(
        starts
    )


def marks(name: str) -> list[Event]:
    """The program's step annotations, in order."""
    found = [
        event
        for line in plain(name)
        for event in line.events
        if event.name == "train" and "step_num" in event.stats
    ]
    return sorted(found, key=lambda event: event.start_ps)


@pytest.mark.parametrize("name", ANNOTATED)
def test_annotated_steps_are_those_of_the_file(name: str) -> None:
    """The first and the last are excluded. If work ends after the next step begins, steps last from the end
    of one step's work to the end of the next one's; in total they still take as long as the annotations.
    """
    found, every = steps(trace_of(recorded(name))), marks(name)
    expected = every[1:-1]
    assert list(found.name) == [f"train {event.stats['step_num']}" for event in expected]
    assert (found.class_ps.sum(axis=1) == found.duration_ps).all()
    if found.how == "annotated":
        assert found.start_ps.tolist() == [event.start_ps - _zero_ps(name) for event in expected]
        assert found.duration_ps.tolist() == [event.duration_ps for event in expected]
        return
    assert found.how == "dispatched"
    begins, ends = found.start_ps + _zero_ps(name), found.start_ps + found.duration_ps + _zero_ps(name)
    assert begins[1:].tolist() == ends[:-1].tolist()
    assert all(end >= event.end_ps for end, event in zip(ends.tolist(), expected, strict=True))
    if name != "jax_async":
        assert found.duration_ps.sum() == pytest.approx(every[-1].start_ps - every[1].start_ps, rel=0.1)


def _zero_ps(name: str) -> int:
    """Start of the file's first event, which is time 0 of the trace."""
    return min(event.start_ps for line in plain(name) for event in line.events)


@pytest.mark.parametrize(
    "name", ["tf_slow_input", "tf_ready_input", "tf_custom_loop", "tf_keras_slow", "tf_shuffle"]
)
def test_calls_of_a_pipeline_are_those_of_the_file(name: str) -> None:
    trace = trace_of(recorded(name))
    events = [event for line in plain(name) for event in line.events if event.name.startswith("Iterator::")]
    # The root has the shortest name.
    root = min((event.name.partition("#")[0] for event in events), key=len)
    called = [event for event in events if event.name.partition("#")[0] == root]
    found = max(pipelines(trace), key=lambda pipeline: len(pipeline.calls))
    assert len(found.calls) == len(called)
    assert sorted(found.duration_ps.tolist()) == sorted(event.duration_ps for event in called)


@pytest.mark.parametrize("name", ["jax_matmul", "jax_conv", "jax_four_devices"])
def test_operations_occur_as_often_as_the_file_says(name: str) -> None:
    """Each launch is an event with the operation's name on the launching thread."""
    listed = {
        row["op"]: row["n_occurrences"]
        for row in table(get_tool("hlo_stats").run(recorded(name).session(), None, {}).tables["ops"])
    }
    launched = Counter(
        str(event.stats["hlo_op"]) for line in plain(name) for event in line.events if "hlo_op" in event.stats
    )
    n_runs = corpus()[name]["measured"]["n_steps"] * corpus()[name]["measured"]["n_devices"]
    assert set(listed) <= set(launched)
    assert set(listed.values()) == {n_runs}
    assert all(launched[op] >= count for op, count in listed.items())


def torch() -> tuple[Truth, list[dict[str, Any]]]:
    (path,) = CORPUS.glob("torch_loader.*")
    return recorded("torch_loader"), events_of(path)


def test_steps_of_pytorch_are_those_of_the_file_and_of_the_program_s_clock() -> None:
    truth, events = torch()
    overview = get_tool("overview_page").run(truth.session(), None, {})
    rows = {row["step"]: row["step_time_ps"] for row in table(overview.tables["steps"])}
    expected = step_facts(events)
    assert len(rows) == truth.facts["n_steps"] - 2
    for step, time_ps in rows.items():
        assert time_ps / 1e6 == pytest.approx(expected[step]["duration"], rel=1e-6)
        begin, end = truth.facts["steps"][int(step.split()[1]) - 2]
        assert time_ps / 1e12 == pytest.approx(end - begin, rel=0.05, abs=3e-4)
    kept = [int(step.split()[1]) - 2 for step in rows]
    waited = sum(truth.facts["wait_s"][i] for i in kept)
    whole = sum(truth.facts["steps"][i][1] - truth.facts["steps"][i][0] for i in kept)
    assert waited > 0.5 * whole
    assert overview.scalars["input_fraction"].value == pytest.approx(waited / whole, abs=0.03)
    assert overview.verdict is not None
    assert overview.verdict.text.startswith("Highly input-bound")


def test_operators_of_pytorch_ran_as_often_as_the_file_and_the_program_say() -> None:
    truth, events = torch()
    rows = table(get_tool("framework_op_stats").run(truth.session(), None, {}).tables["ops"])
    found = {row["operation"]: (row["n_occurrences"], row["total_time_ps"]) for row in rows}
    count = Counter(event["name"] for event in events if is_operator(event))
    for name in ("aten::linear", "aten::relu", "aten::addmm", "aten::mm"):
        times = [float(event["dur"]) for event in events if event["name"] == name and is_operator(event)]
        assert found[name][0] == count[name] > 0
        assert found[name][1] / 1e6 == pytest.approx(sum(times), rel=1e-6)
    assert {name: found[name][0] for name in ("aten::linear", "aten::relu")} == {
        name: n for name, n in truth.facts["calls"].items() if name.startswith("aten::")
    }


def test_the_corpus_is_small_and_says_nothing_of_a_machine() -> None:
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) <= MOST_BYTES
    assert {path.name.partition(".")[0] for path in CORPUS.glob("*.gz")} == set(corpus())
    for name in corpus():
        assert recorded(name).session().hosts == ("worker-0",)


def test_spans_that_overlap_count_once() -> None:
    assert union_ps([(5, 9), (0, 3), (2, 4), (6, 7)]) == 8
