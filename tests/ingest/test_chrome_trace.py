"""The Chrome trace format by example: one test a rule of docs/trace_format.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tb_tpuprof.trace import schema
from tests.ingest.chrome_files import US, meta, opened, rows, x


def test_slices_lie_on_the_lines_of_their_threads_under_the_names_given(tmp_path: Path) -> None:
    names = [
        meta("process_name", name="job"),
        meta("process_labels", labels="main"),
        meta("thread_name", 1, name="loop"),
    ]
    trace = opened(
        tmp_path,
        {
            "traceEvents": [
                *names,
                x("b", 12.5, 1),
                x("a", 10, 5),
                x("c", 11, 1, "2"),
                meta("thread_sort_index", 2, sort_index=-4),
            ]
        },
    )
    assert rows(trace) == [
        ("job (main)", "thread 2", "c", 1 * US, US),
        ("job (main)", "loop", "a", 0, 5 * US),
        ("job (main)", "loop", "b", 2_500_000, US),
    ]
    assert trace.lines["display_id"].tolist() == [-4, 0]
    assert trace.info.start_ns == 10_000


def test_times_are_exact_far_beyond_what_a_double_holds(tmp_path: Path) -> None:
    base = 2**53 * 64
    one = f'{{"ph":"X","name":"a","ts":{base}.000001,"dur":0.000001,"pid":1,"tid":1}}'
    text = f'[{one},{{"ph":"X","name":"b","ts":{base + 1}.123456,"dur":"1.5","pid":1,"tid":1}}]'
    trace = opened(tmp_path, text)
    assert rows(trace) == [
        ("process 1", "thread 1", "a", 1, 1),
        ("process 1", "thread 1", "b", 1_123_456, 1_500_000),
    ]
    assert opened(tmp_path, [x("e", "1.5e1", 1e-6), x("f", 15, 0)]).events["duration_ps"].tolist() == [1, 0]
    assert [row[3] for row in rows(opened(tmp_path, [x("n", -3.25, 1), x("z", 0, 1)]))] == [0, 3_250_000]


def test_events_weeks_from_all_others_are_kept_beside_them_and_that_is_said(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000
    events = [x("early", 0, 1), *(x("kept", base + 3 * i, 1) for i in range(3)), x("late", 3 * base, 2)]
    trace = opened(tmp_path, events)
    assert sorted(row[2:] for row in rows(trace)) == [
        ("early", 0, US),
        ("kept", 0, US),
        ("kept", 3 * US, US),
        ("kept", 6 * US, US),
        ("late", 6 * US, 2 * US),
    ]
    assert trace.info.n_damaged == 0
    assert trace.info.notes == (
        "2 events have times more than 13 days from most others (a ts of 0, for example): drawn at the "
        "nearest end of these.",
    )
    (note,) = opened(tmp_path, events[:4]).info.notes
    assert note.startswith("1 event has a time more than 13 days from most others")


def test_begins_and_ends_nest_whatever_the_ends_are_called(tmp_path: Path) -> None:
    def mark(phase: str, name: str, ts: int, **more: Any) -> dict[str, Any]:
        return {"ph": phase, "name": name, "ts": ts, "pid": 1, "tid": "t", **more}

    events = [
        mark("B", "outer", 0, args={"a": 1}),
        mark("B", "inner", 2),
        mark("E", "other", 5),
        mark("E", "", 9, args={"b": "two"}),
        mark("E", "lost", 10),
        mark("B", "open", 11),
        x("late", 12, 3, "t") | {"pid": 1},
    ]
    trace = opened(tmp_path, events)
    assert [(row[2], row[3] // US, row[4] // US) for row in rows(trace)] == [
        ("outer", 0, 9),
        ("inner", 2, 3),
        ("open", 11, 4),
        ("late", 12, 3),
    ]
    assert trace.event_stats.ints("did_not_finish").owner.tolist() == [2]
    assert trace.info.damage == "ends without a begin: 1"
    assert trace.source.event_stats(trace, 0) == [("a", 1), ("b", "two")]


def test_async_events_nest_by_id_on_a_line_of_their_outermost(tmp_path: Path) -> None:
    def mark(phase: str, name: str, ts: int, id_: Any = "0x1", **more: Any) -> dict[str, Any]:
        return {"ph": phase, "name": name, "ts": ts, "pid": 1, "tid": ts, "cat": "net", "id": id_, **more}

    events = [
        mark("b", "request", 0),
        mark("b", "connect", 1),
        mark("n", "sent", 2),
        mark("e", "connect", 4),
        mark("b", "request", 3, 2),
        mark("e", "request", 8, "2"),
        mark("e", "request", 9),
        mark("S", "old", 1, 5),
        mark("T", "old", 2, 5),
        mark("F", "old", 3, 5),
        mark("e", "never begun", 4, 9),
    ]
    trace = opened(tmp_path, events)
    assert [(row[1], row[2], row[3] // US, row[4] // US) for row in rows(trace)] == [
        ("old", "old", 1, 2),
        ("old", "old", 2, 1),
        ("request", "request", 0, 9),
        ("request", "connect", 1, 3),
        ("request", "sent", 2, 0),
        ("request", "request", 3, 5),
    ]
    assert trace.kind_of_line.tolist() == [schema.ASYNC, schema.ASYNC]
    assert len(trace.event_stats.ints("_a").owner) == 6
    assert "ends without a begin: 1" in trace.info.damage


def test_steps_of_the_older_async_phases_are_slices_within(tmp_path: Path) -> None:
    def mark(phase: str, ts: int, step: str = "") -> dict[str, Any]:
        return {
            "ph": phase,
            "name": "job",
            "ts": ts,
            "pid": 1,
            "tid": 1,
            "cat": "c",
            "id": 1,
            "args": {"step": step} if step else {},
        }

    events = [
        mark("S", 0),
        mark("T", 2, "load"),
        mark("T", 5, "run"),
        mark("F", 9),
        mark("S", 20),
        mark("p", 24, "wait"),
        mark("F", 30),
    ]
    trace = opened(tmp_path, events)
    assert [(row[1], row[2], row[3] // US, row[4] // US) for row in rows(trace)] == [
        ("job", "job", 0, 9),
        ("job", "job: load", 2, 3),
        ("job", "job: run", 5, 4),
        ("job", "job", 20, 10),
        ("job", "job: wait", 20, 4),
    ]
    assert trace.source.event_stats(trace, 1)[0] == ("step", "load")


def test_ids_are_of_a_process_where_they_say_so(tmp_path: Path) -> None:
    def mark(phase: str, ts: int, pid: int, id2: dict[str, str]) -> dict[str, Any]:
        return {"ph": phase, "name": "a", "ts": ts, "pid": pid, "cat": "c", "id2": id2}

    local = [
        mark("b", 0, 1, {"local": "7"}),
        mark("b", 1, 2, {"local": "7"}),
        mark("e", 5, 1, {"local": "7"}),
        mark("e", 9, 2, {"local": "7"}),
    ]
    assert sorted(row[4] // US for row in rows(opened(tmp_path, local))) == [5, 8]
    everywhere = [mark("b", 0, 1, {"global": "7"}), mark("e", 9, 2, {"global": "7"})]
    assert [row[4] // US for row in rows(opened(tmp_path, everywhere))] == [9]


def test_marks_lie_on_their_thread_or_apart(tmp_path: Path) -> None:
    def mark(name: str, **more: Any) -> dict[str, Any]:
        return {"ph": "i", "name": name, "ts": 3, "pid": 1, "tid": 4, **more}

    trace = opened(
        tmp_path,
        [
            mark("t", s="t"),
            mark("p", s="p"),
            mark("g", s="g"),
            mark("old") | {"ph": "I"},
            mark("sample") | {"ph": "P"},
        ],
    )
    assert [(row[1], row[2]) for row in rows(trace)] == [
        ("Marks of the process", "p"),
        ("Marks of the process", "g"),
        ("thread 4", "t"),
        ("thread 4", "old"),
        ("thread 4", "sample"),
    ]
    assert trace.kind_of_line.tolist() == [schema.INSTANTS, schema.STACK]


def test_objects_last_from_creation_to_deletion(tmp_path: Path) -> None:
    def mark(phase: str, ts: int, id_: str) -> dict[str, Any]:
        return {"ph": phase, "name": "Layer", "ts": ts, "pid": 1, "tid": 4, "id": id_}

    trace = opened(
        tmp_path,
        [
            mark("N", 0, "a"),
            mark("O", 2, "a"),
            mark("D", 5, "a"),
            mark("D", 7, "b"),
            mark("N", 8, "c"),
            x("end", 8, 2) | {"pid": 1},
        ],
    )
    assert [(row[3] // US, row[4] // US) for row in rows(trace) if row[2] == "Layer"] == [
        (0, 5),
        (2, 0),
        (7, 0),
        (8, 2),
    ]


def test_counters_are_series_of_samples(tmp_path: Path) -> None:
    def count(name: str, ts: int, args: Any, **more: Any) -> dict[str, Any]:
        return {"ph": "C", "name": name, "ts": ts, "pid": 1, "args": args, **more}

    events = [
        count("mem", 5, {"used": 2, "free": 8}),
        count("mem", 1, {"used": 1.5, "free": 9}),
        count("n", 2, {"v": -3}, id="q"),
        count("n", 9, {"v": "x"}, id="q"),
    ]
    trace = opened(tmp_path, events)
    texts = trace.strings
    found = {}
    for name, series, first, n in zip(
        *(trace.counters[c].tolist() for c in ("name", "series", "first_sample", "n_samples")), strict=True
    ):
        found[texts.get(name), texts.get(series)] = list(
            zip(
                trace.samples["time_ps"][first : first + n] // US,
                trace.samples["value"][first : first + n],
                strict=True,
            )
        )
    assert found == {
        ("mem", "used"): [(0, 1.5), (4, 2.0)],
        ("mem", "free"): [(0, 9.0), (4, 8.0)],
        ("n[q]", ""): [(1, -3.0)],
    }
    assert trace.info.damage == "counter values that are not numbers: 1"
    assert trace.duration_ps == 4 * US + 1


def test_arrows_bind_to_the_event_around_them_or_to_the_next(tmp_path: Path) -> None:
    def point(phase: str, ts: int, tid: int, id_: Any = 1, **more: Any) -> dict[str, Any]:
        return {"ph": phase, "name": "go", "cat": "f", "ts": ts, "pid": 7, "tid": tid, "id": id_, **more}

    events = [
        x("outer", 0, 10),
        x("inner", 2, 2),
        x("done", 2, 1),
        x("worker", 6, 5, 2),
        x("next", 20, 1, 3),
        x("bound", 30, 1, 3),
        point("s", 5, 1),
        point("t", 6, 2),
        point("f", 15, 3),
        point("f", 30, 3, 2, bp="e"),
        point("s", 3.5, 1, 2),
        point("s", 50, 1, 9),
        point("f", 51, 1, 9),
        x("a", 40, 1, 4, bind_id="0x9", flow_out=True),
        x("b", 42, 1, 4, bind_id="0x9", flow_in=True),
    ]
    trace = opened(tmp_path, events)
    names = [row[2] for row in rows(trace)]
    arrows = {
        (names[a], names[b])
        for a, b in zip(trace.flows["from_event"].tolist(), trace.flows["to_event"].tolist(), strict=True)
    }
    assert arrows == {("outer", "worker"), ("worker", "next"), ("inner", "bound"), ("a", "b")}
    assert trace.info.notes == ("Arrows not shown because one of their ends is not on an event: 1.",)


def test_ends_of_arrows_without_a_start_are_counted(tmp_path: Path) -> None:
    def point(phase: str, id_: int) -> dict[str, Any]:
        more = {"bp": "e"} if phase == "f" else {}
        return {"ph": phase, "name": "go", "cat": "f", "ts": 1, "pid": 7, "tid": 1, "id": id_, **more}

    ids = {"s": (1, 2), "f": (3, 4, 5, 6)}
    events = [x("a", 0, 9), *(point(phase, id_) for phase, several in ids.items() for id_ in several)]
    assert opened(tmp_path, events).info.notes == (
        "Arrows not shown because the file has no start for their end: 4.",
    )


def test_an_end_before_its_beginning_is_turned(tmp_path: Path) -> None:
    base = {"pid": 7, "id": 1, "name": "launch", "cat": "c"}
    trace = opened(
        tmp_path,
        [
            x("kernel", 5, 1, 2),
            x("call", 9, 2),
            base | {"ph": "f", "bp": "e", "ts": 5, "tid": 2},
            base | {"ph": "s", "ts": 9, "tid": 1},
        ],
    )
    names = [row[2] for row in rows(trace)]
    assert [(names[trace.flows["from_event"][0]], names[trace.flows["to_event"][0]])] == [("call", "kernel")]


def test_arguments_and_stacks_are_read_when_an_event_is_looked_at(tmp_path: Path) -> None:
    frames = {"1": {"category": "m", "name": "main"}, "7": {"name": "f", "parent": "1"}}
    event = x(
        "a",
        0,
        1,
        cat="c",
        sf=7,
        tts=5,
        args={"n": 1, "real": 1.5, "list": [1, {"x": None}], "yes": True, "none": None},
    )
    for name in ("h.trace.json", "h.trace.json.gz"):
        trace = opened(tmp_path, {"stackFrames": frames, "traceEvents": [event]}, name)
        assert trace.source.event_stats(trace, 0) == [
            ("n", 1),
            ("real", 1.5),
            ("list", '[1, {"x": null}]'),
            ("yes", "true"),
            ("none", "null"),
            ("cat", "c"),
            ("tts", 5),
            ("stack", "f\nmain (m)"),
        ]


def test_stack_samples_beside_the_events_are_marks_of_their_thread(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        {
            "traceEvents": [x("a", 0, 9)],
            "samples": [{"cpu": 0, "tid": 1, "ts": 4, "name": "cycles", "sf": 1, "weight": 1}],
        },
    )
    assert [(row[1], row[2]) for row in rows(trace)] == [("thread 1", "a"), ("thread 1", "cycles")]
