"""Arguments that were not decoded on opening: read in bulk they are those that an event's panel shows."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.arguments import all_arguments, argument, names_of
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.trace.trace import Trace
from tests.golden_files import demo_runs
from tests.synthetic import PlaneWriter

Found = dict[int, dict[str, set[str]]]
STATS = (
    {"weight": 12, "ratio": 0.25, "note": "first [8, 128]", "shape": "[1]"},
    {"weight": -3, "step_num": 7},
    {"note": "größer", "blob": b"1234"},
    {"weight": 2**62},
    {},
)


def write_xspace(path: Path) -> None:
    """An event for each of STATS, on three unlike lines; one name has stats, too."""
    space = xspace_class()()
    writer = PlaneWriter(space, "/host:CPU")
    for number, rows in enumerate(((0, 1), (2,), (3, 4))):
        line = writer.plane.lines.add(id=number, name=b"line", timestamp_ns=1000)
        for row in rows:
            event = line.events.add(
                metadata_id=writer.metadata(f"e{row}", {"flops": row}), offset_ps=10 * row, duration_ps=5
            )
            writer.stats(event, STATS[row])
    path.write_bytes(space.SerializeToString())


def found(trace: Trace) -> Found:
    """The texts of all arguments by event and name."""
    result: Found = defaultdict(lambda: defaultdict(set))
    for table in all_arguments(trace):
        for name in table.names():
            owner, kind, value, size = table.columns(name)
            for i, event in enumerate(owner.tolist()):
                result[event][name].add(table.value_text(value[i], int(kind[i]), int(size[i])))
    return result


def shown(trace: Trace) -> Found:
    """The same, event by event."""
    return {
        event: {name: {str(value)} for name, value in trace.source.event_stats(trace, event)}
        for event in range(trace.n_events)
        if trace.source.event_stats(trace, event)
    }


@pytest.mark.parametrize("is_packed", [False, True])
def test_stats_of_an_xspace_are_all_there(tmp_path: Path, is_packed: bool) -> None:
    path = tmp_path / "w.xplane.pb"
    write_xspace(path)
    if is_packed:
        path = tmp_path / "w.xplane.pb.gz"
        path.write_bytes(gzip.compress((tmp_path / "w.xplane.pb").read_bytes()))
    trace = open_trace(str(path))
    expected = shown(trace)
    assert found(trace) == expected
    assert sum("weight" in stats for stats in expected.values()) == 3
    assert not trace.event_stats.has("weight")  # it was not decoded on opening
    assert sorted(argument(trace, "weight").ints("weight").value.tolist()) == [-3, 12, 2**62]
    assert {"weight", "ratio", "note", "shape"} <= set(names_of(trace))
    assert not len(argument(trace, "nowhere").columns("nowhere").owner)


@pytest.mark.parametrize("log", ["jax_train", "keras_slow_input"])
def test_stats_of_real_runs_are_those_of_each_event(log: str) -> None:
    (path, *_) = sorted(demo_runs()[log].glob("*.xplane.pb"))
    trace = open_trace(str(path))
    everything = found(trace)
    for event in range(0, trace.n_events, 97):
        one_by_one: dict[str, set[str]] = defaultdict(set)
        for name, value in trace.source.event_stats(trace, event):
            one_by_one[name].add(str(value))
        assert everything.get(event, {}) == one_by_one


EVENTS = [
    {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "name": "k", "cat": "kernel",
     "args": {"grid": [17888, 1, 1], "dims": [[1, 2], []], "n": 5, "x": 1e-3, "t": 'a"b\\n', "deep": {"a": [1]}, "yes": True, "none": None}},
    {"ph": "B", "pid": 1, "tid": 2, "ts": 2, "name": "both", "args": {"start": "yes", "n": 1}},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 6, "args": {"end": "[1,2]", "n": 2}},
    {"ph": "X", "pid": 1, "tid": 1, "ts": 20, "dur": 1, "name": "none"},
    {"ph": "X", "pid": 1, "tid": 1, "ts": 30, "dur": 1, "name": "long", "args": {"list": list(range(500))}},
]  # fmt: skip


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_arguments_of_a_chrome_trace_are_all_there(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"w.trace{ending}"
    data = json.dumps({"traceEvents": EVENTS}).encode()
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    trace = open_trace(str(path))
    everything = found(trace)
    for event, stats in shown(trace).items():
        for name, values in stats.items():
            assert values <= everything[event][name], name
    (kernel,) = [event for event, stats in everything.items() if "grid" in stats]
    assert everything[kernel]["grid"] == {"[17888, 1, 1]"}
    assert everything[kernel]["cat"] == {"kernel"}
    assert argument(trace, "n").ints("n").value.tolist().count(5) == 1
    assert set(argument(trace, "n").names()) == {"n"}
    assert {"grid", "dims", "start", "end", "list", "cat"} <= set(names_of(trace))


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.xplane.pb"
    write_xspace(path)
    trace = open_trace(str(path))
    os.utime(path, ns=(1, 1))
    with pytest.raises(StorageError, match="has changed"):
        argument(trace, "weight")
