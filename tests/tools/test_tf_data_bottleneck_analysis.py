from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.tf_data.advice import user_call
from tb_tpuprof.analysis.tf_data.changes import NOTHING_KNOWN, Evidence, stage_advice
from tb_tpuprof.analysis.tf_data.pipeline import Stage, Times
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.tf_data_bottleneck_analysis.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.analysis.tf_data.test_tf_data import ROOT, event, plane, prefetched
from tests.builders import PS, DrawnEvent, build, drawing
from tests.payload_columns import table
from tests.tools.drawn_session import session_of

DATA = Path(__file__).parents[1] / "data" / "tf_data"


def captured(name: str) -> Trace:
    return open_trace(str(DATA / f"{name}.xplane.pb.gz"))


def run(*traces: Trace, **params: object) -> Payload:
    return TOOL.run(session_of(*traces), None, params)


def calls_in_steps(latency: int, step: int) -> Trace:
    """Ten steps, each with a call at its start, µs."""
    main: list[DrawnEvent] = []
    for i in range(10):
        start = i * (step + 2)
        main.append(DrawnEvent("train", start * PS, step * PS, {"_r": 1, "step_num": i}))
        main.append(event("IteratorGetNextOp::DoCompute", start, latency))
        main.append(event(ROOT, start, latency, id=1))
        main.append(event("Iterator::Root::Map", start, latency, id=2, parent_id=1))
        main.append(event("MatMul:MatMul", start + latency, step - latency))
    return build([plane(main=main)])


def test_a_slow_pipeline_is_called_so_with_what_to_change_and_what_that_gains() -> None:
    payload = run(captured("parallel_flat_map"))
    verdict = payload.verdict
    assert verdict is not None
    assert (verdict.level, verdict.category) == ("bad", "input")
    assert verdict.text.startswith("Highly input-bound: ")
    assert "pipeline Host:0 on worker-0" in verdict.text
    assert "its bottleneck is `Map`" in verdict.text
    assert verdict.next[0].text.startswith("See how to fix it (expected gain if fully fixed: ")
    assert verdict.details[0].startswith("Set `num_parallel_calls=tf.data.AUTOTUNE` on that `map`")
    # The condition comes first.
    assert verdict.details[1].startswith("If its Python function waits")
    assert (
        "computing, num_parallel_calls=2 alone would shorten each step from 17.1 ms to" in verdict.details[1]
    )
    assert verdict.next[1].tool == "trace_viewer"
    assert verdict.next[1].params["hosts"] == "worker-0"


def test_the_verdict_weighs_the_wait_against_the_step_not_against_50_us() -> None:
    healthy, slow = calls_in_steps(60, 10_000), calls_in_steps(40, 60)
    good, bad = run(healthy).verdict, run(slow).verdict
    assert good is not None
    assert bad is not None
    assert good.level == "good"
    assert "10 of 10 calls took over 50 µs, but they overlap with compute" in good.text
    assert bad.level == "bad"
    assert table(run(slow), "pipelines")["n_slow_calls"] == [0]


def test_calls_outside_of_any_step_are_weighed_against_the_time_between_them() -> None:
    verdict = run(prefetched()).verdict
    assert verdict is not None
    assert verdict.level == "bad"
    assert "of the time between calls is spent inside them" in verdict.text


def test_one_call_without_steps_tells_nothing() -> None:
    verdict = run(build([plane(main=[event(ROOT, 0, 100, id=1)])])).verdict
    assert verdict is not None
    assert (verdict.level, verdict.details[0].split(".")[0]) == ("unknown", "Its slowest stage is `Root`")
    assert "a rate needs at least two calls" in verdict.text


def test_nodes_and_edges_are_a_graph_of_the_call_shown() -> None:
    payload = run(prefetched())
    nodes, edges, chosen = table(payload, "nodes"), table(payload, "edges"), table(payload, "chosen")
    assert nodes["name"] == ["Root", "Prefetch", "Map", "Range"]
    assert nodes["parent"] == [-1, 0, 1, 2]
    assert nodes["is_bottleneck"] == [False, False, True, False]
    assert nodes["is_async"] == [False, True, False, False]
    assert list(zip(edges["from"], edges["to"], edges["is_critical"], strict=True)) == [
        (0, 1, True),
        (1, 2, True),
        (2, 3, True),
    ]
    assert (chosen["pipeline"], chosen["rank"], chosen["node"]) == (["Host:0"], [1], [2])


def test_ranks_count_calls_from_the_slowest_on() -> None:
    payload = run(prefetched(), rank=2)
    assert table(payload, "chosen")["duration_ps"] == [4 * PS]
    assert table(payload, "executions")["duration_ps"] == [100 * PS, 4 * PS]
    assert payload.scalars["rank"].value == 2
    assert run(prefetched(), rank=99).scalars["rank"].value == 2
    assert run(prefetched()).scalars["rank"].value == run(prefetched()).scalars["typical_rank"].value == 1


def test_pipelines_of_all_hosts_are_listed_and_chosen_by_name() -> None:
    traces = calls_in_steps(60, 100), prefetched()
    payload = run(*traces)
    assert table(payload, "pipelines")["host"] == ["worker-1", "worker-0"]
    assert table(payload, "chosen")["host"] == ["worker-1"]
    assert table(run(*traces, pipeline="worker-0/Host:0"), "chosen")["host"] == ["worker-0"]
    with pytest.raises(BadParameter, match=r"Host:9") as error:
        run(*traces, pipeline="Host:9")
    assert error.value.remedy == "Allowed: one of worker-1/Host:0, worker-0/Host:0."


def test_parameters_of_stages_are_told() -> None:
    nodes = table(run(captured("parallel_map_sleep")), "nodes")
    parameters = dict(zip(nodes["name"], nodes["parameters"], strict=True))
    assert "parallelism=2" in str(parameters["MapAndBatch"]).split(", ")
    assert all("=" in part for text in parameters.values() for part in str(text).split(", ") if part)


def test_what_cannot_be_estimated_says_why() -> None:
    what_if = table(run(prefetched()), "what_if")
    assert what_if["change"] == ["cannot estimate"]
    assert "complete calls; at least 4 are needed" in str(what_if["note"][0])
    for name, why in (
        ("second_of_maps_arithmetic", "busy: more threads would not help"),
        ("parallel_map_arithmetic", "% of the time from call to call"),
    ):
        payload = run(captured(name))
        what_if = table(payload, "what_if")
        assert what_if["change"] == ["cannot estimate"]
        assert why in str(what_if["note"][0])
        assert np.isnan(what_if["latency_low_ps"]).all()  # type: ignore[arg-type]
        assert payload.verdict is not None
        assert not payload.verdict.details or "cannot be estimated" in payload.verdict.details[-1]


def test_what_is_copied_to_a_device_is_not_estimated() -> None:
    trace = drawing(
        "main  [Iterator::Prefetch                 ]\nmore      [Iterator::Prefetch::Generator]",
        {"Iterator::Prefetch": {"id": 5}, "Iterator::Prefetch::Generator": {"id": 6, "parent_id": 5}},
    )
    payload = run(trace)
    assert table(payload, "pipelines")["kind"] == ["Device"]
    assert "waits for a pipeline on the host" in str(table(payload, "what_if")["note"][0])
    assert "Check the host's pipeline" in str(table(payload, "advice")["text"][0])


def test_a_run_without_iterators_is_not_available() -> None:
    session = session_of(drawing("main  [MatMul:MatMul]"))
    availability = TOOL.available(session)
    assert not availability
    assert "no tf.data iterators" in availability.reason
    assert "host_tracer_level=2" in availability.remedy
    with pytest.raises(ToolUnavailable):
        TOOL.run(session, None, {})
    assert TOOL.available(session_of(prefetched()))


def test_what_was_left_out_is_told() -> None:
    (notice,) = run(prefetched()).diagnostics
    assert notice.severity == "info"
    assert notice.message.startswith("worker-0: 1 of 9 iterator events are left out")


@pytest.mark.parametrize(
    ("stage", "call"),
    [("ParallelMapV2", "map"), ("TFRecord", "TFRecordDataset"), ("Zip", "zip"), ("Odd", "Odd")],
)
def test_stages_have_the_names_that_users_write(stage: str, call: str) -> None:
    assert user_call(stage) == call


def stage_of(long_name: str, parent: int = -1, n_calls: int = 1, is_async: bool = False) -> Stage:
    """A stage that did some work."""
    name = long_name.rpartition("::")[2].partition("[")[0]
    return Stage(name, long_name, Times(1, 1, 1, 0, n_calls), is_async, parent)


def advised(long_name: str, evidence: Evidence = NOTHING_KNOWN, *other_stages: Stage) -> str:
    """All advice for a stage, as one text."""
    stage = stage_of(long_name, len(other_stages) - 1 if other_stages else -1, 10)
    return "\n".join(stage_advice(stage, (*other_stages, stage), evidence))


@pytest.mark.parametrize(
    ("stage", "word"),
    [
        ("Map", "num_parallel_calls"),
        ("Filter", "no parallel form"),
        ("BatchV2", "batch"),
        ("TFRecord", "tf.data.TFRecordDataset"),
        ("Generator", "Python generator"),
        ("DataServiceDatasetV2", "workers"),
        ("FlatMap", "interleave"),
        ("Shuffle", "buffer"),
        ("Prefetch", "buffer"),
        ("Zip", "zip"),
    ],
)
def test_every_kind_of_bottleneck_has_advice_of_its_own(stage: str, word: str) -> None:
    assert word in advised(f"Iterator::Root::{stage}")


def test_padded_batch_is_not_given_an_argument_that_it_does_not_have() -> None:
    text = advised("Iterator::Root::PaddedBatchV2")
    assert "bucket_by_sequence_length" in text
    assert "set `num_parallel_calls" not in text


def test_a_parallel_batch_is_not_told_to_become_one() -> None:
    text = advised("Iterator::Root::ParallelBatch", Evidence({"parallelism": "2"}, {}))
    assert "already copies its elements on 2 threads" in text
    assert "num_parallel_calls" not in text


def test_a_pool_of_one_thread_is_named_as_what_holds_a_tuned_map() -> None:
    text = advised(
        "Iterator::Root::ParallelMapV2",
        Evidence({"parallelism": "1", "autotune": "true"}, {"threadpool_size": "1"}),
    )
    assert "private_threadpool_size=1" in text
    assert "Set `num_parallel_calls" not in text


def test_a_tiny_map_is_told_to_batch_first() -> None:
    evidence = Evidence({"parallelism": "2", "autotune": "true"}, {"threadpool_size": "8"}, (3_000_000,) * 9)
    assert advised("Iterator::Root::MapAndBatch", evidence).startswith(
        "Batch first: its function takes 3.0 µs per element"
    )


def test_a_filter_that_drops_what_a_map_made_comes_first() -> None:
    above = stage_of("Iterator::Root::Filter", n_calls=1)
    assert advised("Iterator::Root::Filter::Map", NOTHING_KNOWN, above).startswith(
        "`filter` after this `map` keeps 1 of 10.0 elements"
    )
    all_kept = stage_of("Iterator::Root::Filter", n_calls=10)
    assert "filter first" not in advised("Iterator::Root::Filter::Map", NOTHING_KNOWN, all_kept)


def test_stragglers_are_told_of_free_order_unless_it_is_free() -> None:
    runs = (1_000_000_000,) * 15 + (9_000_000_000,) * 3
    ordered, free = ({"parallelism": "4", "deterministic": value} for value in ("true", "false"))
    assert "9.0 times the median" in advised("Iterator::Root::ParallelMapV2", Evidence(ordered, {}, runs))
    assert "`deterministic=False`" in advised("Iterator::Root::ParallelMapV2", Evidence(ordered, {}, runs))
    assert "deterministic" not in advised("Iterator::Root::ParallelMapV2", Evidence(free, {}, runs))


def test_batches_of_windows_are_cut_from_arrays_instead() -> None:
    assert "tf.signal.frame" in advised("Iterator::Root::FlatMap::BatchV2")


def test_python_s_lock_is_named_where_threads_do_not_help() -> None:
    evidence = Evidence({"parallelism": "8"}, {}, (5_000_000_000,) * 9, True)
    assert "holds Python's lock" in advised("Iterator::Root::ParallelMapV2", evidence)


def test_a_prefetch_is_said_to_be_without_its_input_only_where_it_is() -> None:
    assert "were not traced" in advised("Iterator::Root::Prefetch")
    prefetch = stage_of("Iterator::Root::Prefetch", 0)
    fed = (stage_of("Iterator::Root"), prefetch, stage_of("Iterator::Root::Prefetch::Map", 1))
    assert "was not traced" not in "\n".join(stage_advice(prefetch, fed))
