"""The export as Chrome trace JSON: the file follows the format's rules, and a second reading gives the same
trace.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.timeline import file_layer
from tb_tpuprof.errors import EventNotFound, TooLarge
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.trace_viewer import export
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import opened, rows, written

US = 10**6
DEMO = Path(__file__).resolve().parents[3] / "demo_logs"
CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none"))
OF_CORPUS = (
    "kineto_samples/resnet50_num_workers_0/d3fb40_worker0.pt.trace.json.gz",
    "catapult/nestable_async.json",
    "catapult/flow.json",
    "catapult/instance_counters.json",
    "catapult/fuchsia_trace.json.gz",
    "catapult/main_thread_has_unclosed_slices.json",
    "catapult/big_trace.json",
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "tpu_inference_480b/plugins/profile/2026_01_11_21_26_41",
    "tracelens_mi300_jax/plugins/profile/jax08_attention",
    "xprof_tpu_inference_2_old/plugins/profile",
    "reactant/plugins/profile/2025_02_05_11_07_48",
)


def zipped(session: Session, hosts: Any = (), **params: object) -> bytes:
    """The file as it is sent."""
    name, parts = get_tool("trace_viewer").file(session, hosts, params, "trace")
    assert name.endswith(".trace.json.gz")
    return b"".join(parts)


def exported(session: Session, hosts: Any = (), **params: object) -> dict[str, Any]:
    """The file, after a check of the format's rules."""
    data = gzip.decompress(zipped(session, hosts, **params))
    check_rules(json.loads(data, parse_float=Decimal)["traceEvents"])
    content: dict[str, Any] = json.loads(data)
    return content


def check_rules(events: list[dict[str, Any]]) -> None:
    """The format's requirements for each event, as Perfetto and chrome://tracing read it."""
    open_ids: dict[Any, list[str]] = defaultdict(list)
    points: dict[Any, list[tuple[str, Decimal]]] = defaultdict(list)
    slices: dict[Any, list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for event in events:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert 0 <= event["tid"] < 2**32
        assert isinstance(event.get("args", {}), dict)
        phase = event["ph"]
        assert phase in "MXibenCsf"
        if phase == "M":
            key = "sort_index" if event["name"].endswith("sort_index") else "name"
            assert list(event["args"]) == [key]
            continue
        assert isinstance(event["ts"], (int, Decimal))
        assert ("dur" in event) == (phase == "X")
        if phase == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        if phase == "i":
            assert event["s"] == "p"
        if phase == "C":
            assert all(isinstance(value, (int, Decimal)) for value in event["args"].values())
        if phase in "ben":
            stack = open_ids[event["cat"], event["id"]]
            if phase == "b":
                stack.append(event["name"])
            elif phase == "e":
                assert stack.pop() == event["name"]
        if phase in "sf":
            points[event["cat"], event["name"], event["id"]].append((phase, event["ts"]))
            on_thread = slices[event["pid"], event["tid"]]
            assert on_thread
            assert len(on_thread) > 3_000 or any(a <= event["ts"] <= b for a, b in on_thread)
    assert not any(open_ids.values())
    assert all([phase for phase, _ in pair] == ["s", "f"] for pair in points.values())


def again(folder: Path, session: Session, hosts: Any = (), **params: object) -> Trace:
    """The exported file, opened."""
    path = folder / "again.trace.json"
    path.write_text(json.dumps(exported(session, hosts, **params)))
    return Session(str(path), cache=False).trace("again")


def comparable(trace: Trace) -> Counter[Any]:
    """Events as (plane, line, name, start, duration, depth), async ones without line and depth, which may
    differ.
    """
    depths = file_layer(trace).depth.tolist()
    is_async = (trace.kind_of_line == schema.ASYNC) | np.array(
        [name == "Async XLA Ops" for name in trace.line_names], np.bool_
    )
    counted: Counter[Any] = Counter()
    for (plane, line, *event), depth, crosses in zip(
        rows(trace), depths, is_async[trace.event_line].tolist(), strict=True
    ):
        counted[(plane, *event) if crosses else (plane, line.strip(), *event, depth)] += 1
    return counted


def hot_rows(trace: Trace) -> Counter[Any]:
    table = trace.event_stats.table
    key = [trace.strings.get(int(i)) for i in table["key"]]
    start = trace.events["start_ps"][table["owner"]].tolist()
    values = [trace.event_stats.text_at(row) for row in range(len(table))]
    return Counter(
        row for row in zip(start, key, values, strict=True) if row[1] in schema.HOT_STATS and row[1] != "_a"
    )


def sources() -> list[str]:
    demo = [str(path) for path in sorted(DEMO.glob("*/plugins/profile/*"))]
    return demo + [str(CORPUS / name) for name in OF_CORPUS if CORPUS.is_dir()]


@pytest.fixture(params=sources(), ids=lambda path: "/".join(Path(path).parts[-4:]))
def session(request: pytest.FixtureRequest) -> Session:
    path = Path(request.param)
    if path.name == "profile":
        path = next(path.iterdir())
    return Session(str(path), cache=False)


@pytest.mark.slow
def test_opened_again_it_is_what_it_was(session: Session, tmp_path: Path) -> None:
    host = session.hosts[0]
    trace = session.trace(host)
    path = tmp_path / "again.trace.json"
    path.write_bytes(gzip.decompress(zipped(session, (host,))))
    check_rules(json.loads(path.read_bytes(), parse_float=Decimal)["traceEvents"])
    back = Session(str(path), cache=False).trace("again")
    assert back.info.n_damaged == 0, back.info.damage
    assert back.n_events == trace.n_events > 0
    assert comparable(back) == comparable(trace)
    assert back.info.start_ns == trace.info.start_ns
    assert len(back.samples) == len(trace.samples)
    assert np.array_equal(np.sort(back.samples["value"]), np.sort(trace.samples["value"]))
    if any(name.startswith(("/host:", "/device:")) for name in trace.plane_names):
        assert hot_rows(back) >= hot_rows(trace)


def test_arguments_are_those_of_the_file(session: Session, tmp_path: Path) -> None:
    host = session.hosts[0]
    trace = session.trace(host)
    end_ps = min(trace.duration_ps, 2**53)
    while int((trace.events["start_ps"] < end_ps).sum()) > 9_000:
        end_ps = end_ps * 3 // 4
    back = again(tmp_path, session, (host,), **({"end_ps": end_ps} if end_ps < trace.duration_ps else {}))
    assert back.n_events > 0
    theirs: dict[Any, list[int]] = defaultdict(list)
    for event, key in enumerate(keys_of(back)):
        theirs[key].append(event)
    for event, key in list(enumerate(keys_of(trace)))[:: max(1, trace.n_events // 40)]:
        if trace.events["start_ps"][event] >= end_ps:
            continue
        expected = arguments_of(trace, event)
        candidates = [arguments_of(back, other) for other in theirs[key][:200]]
        assert any(expected.items() <= other.items() for other in candidates), (key, expected, candidates)


def keys_of(trace: Trace) -> list[Any]:
    names = [trace.strings.get(int(i)) for i in trace.event_names]
    columns = (trace.events[name].tolist() for name in ("metadata", "start_ps", "duration_ps"))
    return [(names[row], start, duration) for row, start, duration in zip(*columns, strict=True)]


# Fields of a Chrome event that are no arguments, and that the export writes in its own way.
NO_ARGUMENTS = {
    "id", "id2", "scope", "s", "bp", "cat", "tts", "tdur", "tidelta", "stack", "stack at the end",
    "esstack", "bind_id", "icn", "v", "cname",
}  # fmt: skip


def arguments_of(trace: Trace, event: int) -> dict[str, str]:
    return {
        name: str(value) for name, value in trace.source.event_stats(trace, event) if name not in NO_ARGUMENTS
    }


def x(name: str, ts: float, dur: float, tid: int = 1, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 7, "tid": tid, **more}


def of_file(folder: Path, events: list[dict[str, Any]], name: str = "h.trace.json") -> Session:
    return Session(str(written(folder, {"traceEvents": events}, name)), cache=False)


def names_of(content: dict[str, Any], phase: str = "X") -> list[str]:
    return [event["name"] for event in content["traceEvents"] if event["ph"] == phase]


def test_what_reaches_into_the_window_is_written_whole(tmp_path: Path) -> None:
    session = of_file(
        tmp_path,
        [x("before", 0, 10), x("into", 5, 10, 2), x("in", 12, 1), x("at the end", 20, 5), x("after", 30, 1)],
    )
    content = exported(session, start_ps=10 * US, end_ps=20 * US)
    assert sorted(names_of(content)) == ["in", "into"]
    (into,) = [event for event in content["traceEvents"] if event["name"] == "into"]
    assert (into["ts"], into["dur"]) == (5, 10)
    assert content["otherData"]["end_ps"] == 20 * US


def test_only_chosen_tracks_with_their_names_and_order(tmp_path: Path) -> None:
    meta = [
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": tid, "args": {"name": text}}
        for tid, text in ((2, "b 2"), (3, "c 3"))
    ]
    session = of_file(tmp_path, [*meta, x("a", 0, 10), x("b", 0, 10, 2), x("c", 0, 10, 3)])
    tracks = get_tool("trace_viewer").run(session, [], {}).tables["tracks"].columns[0].values.tolist()
    content = exported(session, tracks=f"{tracks[0]},{tracks[1]}")
    assert sorted(names_of(content)) == ["b", "c"]
    named = [
        (event["name"], event["args"])
        for event in content["traceEvents"]
        if event["ph"] == "M" and event["tid"]
    ]
    assert named == [
        ("thread_name", {"name": "b 2"}),
        ("thread_sort_index", {"sort_index": 1}),
        ("thread_name", {"name": "c 3"}),
        ("thread_sort_index", {"sort_index": 2}),
    ]
    with pytest.raises(EventNotFound):
        exported(session, tracks="99")


def test_more_than_a_file_may_hold_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = of_file(tmp_path, [x("a", i, 1) for i in range(50)])
    monkeypatch.setattr(export, "MAX_EVENTS", 40)
    with pytest.raises(TooLarge, match=r"50 events and samples; .* at most 40") as caught:
        exported(session)
    assert "Narrow the window" in caught.value.remedy
    assert len(names_of(exported(session, end_ps=40 * US))) == 40


def test_several_hosts_stand_side_by_side_on_one_clock(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "r"
    folder.mkdir(parents=True)
    for host, base in (("w0", 1_000_000), ("w1", 1_000_007)):
        events = [
            {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "job"}},
            x(host, base, 5),
        ]
        written(folder, {"traceEvents": events}, f"{host}.trace.json")
    content = exported(Session(str(folder), cache=False), ("w0", "w1"))
    assert {
        event["name"]: (event["pid"], event["ts"]) for event in content["traceEvents"] if event["ph"] == "X"
    } == {
        "w0": (1, 0),
        "w1": (2, 7),
    }
    names = [event["args"]["name"] for event in content["traceEvents"] if event["name"] == "process_name"]
    assert names == ["w0: job", "w1: job"]
    assert content["baseTimeNanoseconds"] == 1_000_000_000


def test_hosts_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "r"
    folder.mkdir(parents=True)
    for host, content in (("w0", b"not a profile"), ("w1", [x("a", 0, 1)]), ("w2", [x("b", 0, 1)])):
        written(folder, content, f"{host}.trace.json")
    exported_trace = exported(Session(str(folder), cache=False))
    assert exported_trace["otherData"]["hosts"] == ["w1", "w2"]
    assert names_of(exported_trace) == ["a", "b"]


def test_arguments_that_are_no_json_or_too_large_are_left_out_and_counted(tmp_path: Path) -> None:
    good = '{"ph":"X","name":"good","ts":0,"dur":1,"pid":1,"tid":1,"cat":"c","args":{"a":[1,{"b":null}],"t":"\\u00e9\\n"}}'
    bad = '{"ph":"X","name":"bad","ts":1,"dur":1,"pid":1,"tid":1,"args":{"path":"C:\\data"}}'
    nan = '{"ph":"X","name":"nan","ts":2,"dur":1,"pid":1,"tid":1,"args":{"x":NaN}}'
    deep = f'{{"ph":"X","name":"deep","ts":3,"dur":1,"pid":1,"tid":1,"args":{{"x":{"[" * 80 + "]" * 80}}}}}'
    large = json.dumps(x("large", 4, 1, args={"x": "y" * 70_000}))
    session = Session(str(written(tmp_path, f"[{good},{bad},{nan},{deep},{large}]")), cache=False)
    content = exported(session)
    events = {event["name"]: event for event in content["traceEvents"] if event["ph"] == "X"}
    assert content["leftOut"] == {"arguments": 4}
    assert events["good"]["args"] == {"a": [1, {"b": None}], "t": "é\n"}
    assert events["good"]["cat"] == "c"
    assert all("args" not in events[name] for name in ("bad", "nan", "deep", "large"))
    assert not any(
        "args" in event for event in exported(session, args="0")["traceEvents"] if event["ph"] == "X"
    )


def test_arrows_and_counters(tmp_path: Path) -> None:
    events = [
        x("from", 0, 5),
        x("to", 8, 5, 2),
        {"ph": "s", "name": "go", "cat": "k", "id": 4, "ts": 3, "pid": 7, "tid": 1},
        {"ph": "f", "bp": "e", "name": "go", "cat": "k", "id": 4, "ts": 8, "pid": 7, "tid": 2},
        *(
            {"ph": "C", "name": "mem", "pid": 7, "ts": ts, "args": {"used": ts / 3, "free": 1}}
            for ts in (1, 4, 9)
        ),
    ]
    session = of_file(tmp_path, events)
    back = again(tmp_path, session)
    names = [row[2] for row in rows(back)]
    ends = zip(*(back.flows[name].tolist() for name in ("from_event", "to_event", "kind")), strict=True)
    arrows = [(names[a], names[b], back.strings.get(kind)) for a, b, kind in ends]
    assert arrows == [("from", "to", "k")]
    assert back.samples["value"].tolist() == session.trace("h").samples["value"].tolist()
    part = exported(session, start_ps=5 * US, end_ps=9 * US)
    counted = [event for event in part["traceEvents"] if event["ph"] == "C"]
    assert [(event["ts"], event["args"]) for event in counted] == [(4, {"used": 4 / 3}), (4, {"free": 1})]


def test_async_events_that_cross_keep_their_times(tmp_path: Path) -> None:
    def mark(phase: str, name: str, ts: float, id_: int = 1) -> dict[str, Any]:
        return {"ph": phase, "name": name, "ts": ts, "pid": 1, "tid": 1, "cat": "net", "id": id_}

    crossing = [
        mark("b", "all", 0),
        mark("b", "a", 1),
        mark("b", "b", 3),
        mark("e", "a", 5),
        mark("n", "at", 5),
        mark("e", "b", 8),
        mark("e", "all", 9),
    ]
    nested = [
        mark("b", "all", 20, 2),
        mark("b", "in", 20, 2),
        mark("e", "in", 24, 2),
        mark("n", "last", 25, 2),
        mark("e", "all", 25, 2),
    ]
    session = of_file(tmp_path, [*crossing, *nested])
    back = again(tmp_path, session)
    assert comparable(back) == comparable(session.trace("h"))
    assert ("process 1", "all", "in", 20 * US, 4 * US) in rows(back)
    assert ("process 1", "all", "last", 25 * US, 0) in rows(back)


def test_texts_of_files_are_escaped(tmp_path: Path) -> None:
    name = 'a"b\\c\n</script>\u2028é\x00'
    trace = opened(tmp_path, [x(name, 0, 1)])
    back = again(tmp_path, Session(str(tmp_path / "h.trace.json"), cache=False))
    assert [row[2] for row in rows(back)] == [row[2] for row in rows(trace)] == [name]
