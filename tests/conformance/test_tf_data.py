"""tf.data's calls against those of TensorFlow 2.18.1, the last profiler that analysed them, on every trace of
the corpus.

Deliberate differences, each tested below:

* An iterator's id is unsigned. The peer reads ids above 2^63 as 0 and merges all such iterators of a call
into one node. Merged
  the same way, our nodes are the peer's.
* So the peer blames its node 0, called "Prefetch" after the first of the merged ones, for what `Map` took.
* Two files of the GPU run hold the same host name: the peer puts their calls into one pipeline, so that each
counts twice. We show
  the hosts apart. Device pipelines never enter its summary, which then denies any activity of tf.data.
* Calls that the capture cut come last; the peer ranks all by duration. Its calls are looked up by duration
here.
* Starts are since another zero (one shift for the whole run).
"""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, call, pipelines
from tb_tpuprof.tools.tf_data_bottleneck_analysis.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.conformance.peer import NAMES, corpus, open_session, rows

VERSION = "tf-2.18.1"
WITH_PIPELINES = ["own_tf_cpu__keras_callback", "own_tf_cpu__remote_capture"]
GPU = "xprof_gpu_multi_worker__GPU-multi-worker"
PS_PER_US = 1_000_000
_SIGNED = 1 << 63
_NODE = re.compile(
    r"<b>(\w+)</b>.*Start Time: (\d+) us<br/>Total Duration: (\d+) us<br/>Self Duration: (-?\d+) us<br/># "
    r"Calls: (\d+)",
    re.DOTALL,
)


def recorded(name: str) -> tuple[list[Any], list[Any], Any]:
    """The peer's graph (with its markup), pipelines and summary."""
    path = corpus().parent / "oracle" / VERSION / name / "tf_data_bottleneck_analysis.json.gz"
    if not path.is_file():
        pytest.skip(f"no recorded answer for {name}")
    with gzip.open(path) as file:
        graph, table, summary = json.load(file)
    return graph["rows"], rows(table), summary


def nodes_of(graph: list[Any], pipeline: str) -> dict[int, dict[str, tuple[str, int, int, int, int, int]]]:
    """By rank and iterator: name, start, total, self, calls, kind (0 not blocking, 1 blocking, 2 bottleneck);
    times in µs.
    """
    found: dict[int, dict[str, tuple[str, int, int, int, int, int]]] = {}
    for row in graph:
        _host, name, rank, node, _parent, kind = row["c"]
        if name["v"] == pipeline:
            parsed = _NODE.search(node["f"])
            assert parsed
            start, total, self_time, n_calls = (int(parsed[i]) for i in range(2, 6))
            found.setdefault(rank["v"], {})[node["v"]] = (
                parsed[1],
                start,
                total,
                self_time,
                n_calls,
                kind["v"],
            )
    return found


def by_duration(pipeline: Pipeline, rank: int) -> int:
    """Our rank of the peer's call of a rank, both from 1."""
    index = np.argsort(-pipeline.duration_ps, kind="stable")[rank - 1]
    return int(np.flatnonzero(pipeline.order == index)[0]) + 1


def merged(trace: Trace, pipeline: Pipeline, rank: int) -> dict[str, list[int]]:
    """Our nodes of a call as the peer merges them: total, self, calls, whether blocking; times in ps."""
    result: dict[str, list[int]] = {}
    for node in call(trace, pipeline, by_duration(pipeline, rank)).nodes:
        key = "0" if int(node.iterator) >= _SIGNED else node.iterator
        sums = result.setdefault(key, [0, 0, 0, 0])
        for i, value in enumerate((node.duration_ps, node.self_ps, node.n_calls, node.is_blocking)):
            sums[i] += value
    return result


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (*WITH_PIPELINES, GPU)])
def test_runs_without_iterators_have_no_pipelines(name: str) -> None:
    graph, table, summary = recorded(name)
    assert (graph, table) == ([], [])
    assert summary["p"]["summary_message"].startswith("No tf.data activity captured")
    assert not TOOL.available(open_session(name))


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_latencies_of_pipelines_are_the_peers(name: str) -> None:
    _graph, (theirs,), summary = recorded(name)
    trace = open_session(name).trace("vm")
    (ours,) = pipelines(trace)
    took = ours.duration_ps
    mine = [
        ours.name,
        *(int(x) // PS_PER_US for x in (took.min(), took.mean(), took.max())),
        len(took),
        ours.n_slow,
    ]
    assert mine == [
        theirs[key] for key in ("input_pipeline", "min", "mean", "max", "num_calls", "num_slow_calls")
    ]
    assert summary["rows"][0]["c"][2]["v"] == ours.max_ps // PS_PER_US


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_every_stage_of_every_call_is_the_peers_where_ids_are_merged_alike(name: str) -> None:
    graph, _table, _summary = recorded(name)
    trace = open_session(name).trace("vm")
    (pipeline,) = pipelines(trace)
    theirs = nodes_of(graph, "Host:0")
    assert len(theirs) == len(pipeline.calls)
    shifts = set()
    for rank, nodes in theirs.items():
        mine = merged(trace, pipeline, rank + 1)
        assert set(mine) == set(nodes), rank
        for iterator, (_name, start, total, self_time, n_calls, kind) in nodes.items():
            total_ps, self_ps, calls, blocking = mine[iterator]
            assert (total, self_time, n_calls) == (total_ps // PS_PER_US, self_ps // PS_PER_US, calls), (
                rank,
                iterator,
            )
            assert (kind > 0) == (blocking > 0), (rank, iterator)
            if nodes[iterator][0] == "Root":
                shifts.add(
                    start
                    - int(pipeline.start_ps[pipeline.order[by_duration(pipeline, rank + 1) - 1]]) // PS_PER_US
                )
    assert max(shifts) - min(shifts) <= 1


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_the_peer_blames_the_iterators_that_it_merged_and_we_the_map(name: str) -> None:
    graph, _table, summary = recorded(name)
    slowest = nodes_of(graph, "Host:0")[0]
    assert [node for node, values in slowest.items() if values[5] == 2] == ["0"]
    assert "<b>Prefetch</b>" in summary["rows"][0]["c"][3]["v"]
    trace = open_session(name).trace("vm")
    (pipeline,) = pipelines(trace)
    shown = call(trace, pipeline, 1)
    assert merged(trace, pipeline, 1)["0"][1] // PS_PER_US == slowest["0"][3]
    assert shown.nodes[shown.bottleneck].name == "Map"
    assert shown.nodes[shown.bottleneck].self_ps > 0.9 * merged(trace, pipeline, 1)["0"][1]
    stage = pipeline.bottleneck_stage
    assert stage is not None
    assert stage.name == "Map"


def test_the_gpu_run_s_calls_count_once_for_each_host_and_twice_for_the_peer() -> None:
    graph, table, summary = recorded(GPU)
    session = open_session(GPU)
    assert summary["p"]["summary_message"].startswith("No tf.data activity captured")
    for host in session.hosts:
        trace = session.trace(host)
        ours = pipelines(trace)
        assert [pipeline.name for pipeline in ours] == [row["input_pipeline"] for row in table]
        for pipeline, theirs in zip(ours, table, strict=True):
            assert [pipeline.max_ps // PS_PER_US] * 3 == [theirs[key] for key in ("min", "mean", "max")]
            assert (len(pipeline.calls), theirs["num_calls"]) == (1, len(session.hosts))
            for nodes in nodes_of(graph, pipeline.name).values():
                mine = merged(trace, pipeline, 1)
                assert {k: v[2:5] for k, v in nodes.items()} == {
                    k: (a // PS_PER_US, b // PS_PER_US, n) for k, (a, b, n, _) in mine.items()
                }
    assert np.unique([len(pipelines(session.trace(host))) for host in session.hosts]).tolist() == [2]
