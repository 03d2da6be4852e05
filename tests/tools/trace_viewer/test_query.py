"""Answers about queries on random traces of three unlike hosts, each held against plain loops over the
events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import BadParameter, BadQuery
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, drawing
from tests.tools.trace_viewer.questions import ask, gpu, rows

NAMES = ("MatMul", "matmul_grad", "copy", "Iterator::Map", "$a.py:3 f")
SHAPES = ("[8,128]", "[1, 2]", "bf16[4]")
US = 10**6


def host(seed: int, start_ns: int, stride: int) -> Trace:
    """A host of two planes with random, properly nested events; arguments on every `stride`-th."""
    rng = np.random.default_rng(seed)
    planes = []
    for plane, names in (("/host:CPU", ("python", f"worker/{seed}")), ("/device:TPU:0", ("XLA Ops",))):
        lines: dict[str, list[DrawnEvent]] = {}
        for line in names:
            events: list[DrawnEvent] = []
            at = int(rng.integers(0, 5)) * US
            for number in range(int(rng.integers(1, 12))):
                length = int(rng.integers(2, 40)) * US
                events.append(_event(rng, at, length, number % stride == 0))
                inner = at
                while rng.random() < 0.7:
                    size = int(rng.integers(1, 8)) * US // 2
                    if inner + size > at + length:
                        break
                    events.append(_event(rng, inner, size, rng.random() < 0.5))
                    inner += size
                at += length + int(rng.integers(0, 6)) * US
            lines[line] = sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))
        planes.append(
            DrawnPlane(plane, lines, metadata_stats={"copy": {"flops": 7_000, "hlo_category": "copy"}})
        )
    return build(planes, start_ns=start_ns)


def _event(rng: np.random.Generator, start: int, duration: int, has_stats: bool) -> DrawnEvent:
    name = NAMES[rng.integers(len(NAMES))]
    stats: dict[str, int | float | str] = {}
    if has_stats:
        stats = {
            "shape": SHAPES[rng.integers(3)],
            "bytes": int(rng.integers(1, 5000)),
            "load": float(rng.random()),
        }
    return DrawnEvent(name, start, duration, stats)


def three(seed: int) -> list[Trace]:
    return [host(seed, 5_000, 1), host(seed + 1, 5_004, 2), host(seed + 2, 9_000, 3)]


def brute(traces: list[Trace]) -> list[dict[str, Any]]:
    """Every event of the hosts as a dictionary, with times in the view and its own self time."""
    zero = min(trace.info.start_ns for trace in traces)
    found = []
    for index, trace in enumerate(traces):
        offset = (trace.info.start_ns - zero) * 1000
        for line in range(len(trace.lines)):
            open_events: list[dict[str, Any]] = []
            for row in range(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])):
                start, duration = (int(trace.events[key][row]) for key in ("start_ps", "duration_ps"))
                metadata = int(trace.events["metadata"][row])
                event = {
                    "id": index * 2**40 + row,
                    "track": index * 2**24 + line,
                    "line": trace.line_names[line],
                    "host": f"worker-{index}",
                    "name": trace.strings[int(trace.event_names[metadata])],
                    "start": start + offset,
                    "dur": duration,
                    "self": duration,
                    "args": _args(trace, row, metadata),
                    "depth": 0,
                }
                while (
                    open_events
                    and open_events[-1]["start"] + open_events[-1]["dur"] < start + offset + duration
                ):
                    open_events.pop()
                while open_events and open_events[-1]["start"] + open_events[-1]["dur"] <= start + offset:
                    open_events.pop()
                if open_events:
                    open_events[-1]["self"] -= duration
                    event["depth"] = len(open_events)
                open_events.append(event)
                found.append(event)
    return sorted(found, key=lambda event: (event["start"], event["id"]))


def _args(trace: Trace, row: int, metadata: int) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for table, owner in ((trace.metadata_stats, metadata), (trace.event_stats, row)):
        for i in np.flatnonzero(table.table["owner"] == owner).tolist():
            args[trace.strings[int(table.table["key"][i])]] = table.text_at(i)
    return args


def number(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return float("nan")


QUERIES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "": lambda e: True,
    "MAT": lambda e: "mat" in e["name"].lower(),
    "name=copy": lambda e: e["name"] == "copy",
    "-copy -name:map": lambda e: "copy" not in e["name"] and "map" not in e["name"].lower(),
    "name~^[Mm]at": lambda e: e["name"].lower().startswith("mat"),
    "dur>4us": lambda e: e["dur"] > 4 * US,
    "dur:2us..10us track:python": lambda e: 2 * US <= e["dur"] <= 10 * US and e["line"] == "python",
    "self>=3us": lambda e: e["self"] >= 3 * US,
    "start<30us": lambda e: e["start"] < 30 * US,
    "host=worker-1 -track:XLA": lambda e: e["host"] == "worker-1" and e["line"] != "XLA Ops",
    "thread:o": lambda e: e["line"] != "XLA Ops",
    "kind=hlo_ops": lambda e: e["line"] == "XLA Ops",
    "arg.shape=[8, 128]": lambda e: e["args"].get("shape") == "[8,128]",
    "arg.shape:[1,2]": lambda e: e["args"].get("shape") == "[1, 2]",
    "arg.bytes>2KiB": lambda e: number(e["args"].get("bytes")) > 2048,
    "arg.flops=7000": lambda e: e["name"] == "copy",
    "arg.load<0.5": lambda e: number(e["args"].get("load")) < 0.5,
    "-arg.load<0.5": lambda e: not number(e["args"].get("load")) < 0.5,
    "arg:128": lambda e: any("128" in str(value) for value in e["args"].values()) or "128" in e["name"],
    "any:700": lambda e: any("700" in str(value) for value in (*e["args"].values(), e["name"])),
    "name=copy OR dur>15us": lambda e: e["name"] == "copy" or e["dur"] > 15 * US,
    "map | track:python dur<3us | name~^matmul_": lambda e: (
        "map" in e["name"].lower()
        or (e["line"] == "python" and e["dur"] < 3 * US)
        or e["name"] == "matmul_grad"
    ),
    "track:python (name:mat OR arg.bytes>2KiB) self>1us": lambda e: (
        e["line"] == "python"
        and e["self"] > US
        and ("mat" in e["name"].lower() or number(e["args"].get("bytes")) > 2048)
    ),
    "-(track:XLA OR host=worker-1 name:copy)": lambda e: (
        not (e["line"] == "XLA Ops" or (e["host"] == "worker-1" and "copy" in e["name"]))
    ),
    "(arg.shape=[8,128] OR (dur>20us OR -kind:hlo) start>20us) -copy": lambda e: (
        (
            e["args"].get("shape") == "[8,128]"
            or ((e["dur"] > 20 * US or e["line"] != "XLA Ops") and e["start"] > 20 * US)
        )
        and "copy" not in e["name"]
    ),
    "category:cop": lambda e: e["args"].get("hlo_category") == "copy",
}


@pytest.mark.parametrize("query", QUERIES)
@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10_000))
def test_slices_are_those_of_a_plain_loop(query: str, seed: int) -> None:
    traces = three(seed)
    expected = [event for event in brute(traces) if QUERIES[query](event)]
    payload = ask(*traces, question="slices", query=query, of="recorded", arguments="shape,flops")
    found = rows(payload, "slices")
    assert [row["event"] for row in found] == [event["id"] for event in expected]
    for row, event in zip(found, expected, strict=True):
        assert (row["name"], row["track"], row["host"]) == (event["name"], event["track"], event["host"])
        assert (row["start_ps"], row["duration_ps"], row["self_ps"]) == (
            event["start"],
            event["dur"],
            event["self"],
        )
    assert payload.scalars["n_matches"].value == len(expected)
    assert payload.scalars["total_ps"].value == sum(event["dur"] for event in expected)


def test_chosen_arguments_are_columns_with_their_names() -> None:
    payload = ask(*three(3), question="slices", query="arg.shape:[", arguments="shape,flops")
    columns = {column.name: column for column in payload.tables["slices"].columns}
    assert [columns[f"argument_{i}"].title for i in (1, 2)] == ["shape", "flops"]
    by_id = {event["id"]: event["args"] for event in brute(three(3))}
    for row in rows(payload, "slices"):
        assert row["argument_1"] == by_id[row["event"]]["shape"]


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000), st.sampled_from(["start", "dur", "self", "name", "track", "host"]), st.booleans()
)
def test_pages_of_any_order_join_to_the_whole(seed: int, sort: str, descending: bool) -> None:
    traces = three(seed)
    key = {"track": "line"}.get(sort, sort)
    params = {"sort": sort, "descending": descending, "of": "recorded"}
    whole = rows(ask(*traces, question="slices", **params), "slices")
    by_id = {event["id"]: event for event in brute(traces)}
    assert sorted(row["event"] for row in whole) == sorted(by_id)
    if key != "line":
        values = [by_id[row["event"]][key] for row in whole]
        assert values == sorted(values, reverse=descending)
    pages = [
        row["event"]
        for offset in range(0, len(whole), 7)
        for row in rows(ask(*traces, question="slices", limit=7, offset=offset, **params), "slices")
    ]
    assert pages == [row["event"] for row in whole]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 120), st.integers(1, 90))
def test_groups_are_sums_of_the_parts_in_the_window(seed: int, begin: int, length: int) -> None:
    traces = three(seed)
    low, high = begin * US, (begin + length) * US
    totals: dict[str, list[list[int]]] = defaultdict(list)
    events = brute(traces)
    for event in events:
        start, end = event["start"], event["start"] + event["dur"]
        if start < high and max(end, start + 1) > low:
            part = max(0, min(end, high) - max(start, low))
            inner = [
                max(0, min(other["start"] + other["dur"], high) - max(other["start"], low))
                for other in events
                if other["track"] == event["track"]
                and other["depth"] == event["depth"] + 1
                and start <= other["start"] < end
            ]
            totals[event["name"]].append([part, part - sum(inner), event["dur"], event["id"]])
    payload = ask(*traces, question="groups", start_ps=low, end_ps=high, of="recorded")
    found = {row["group"]: row for row in rows(payload, "groups")}
    assert found.keys() == totals.keys()
    for name, parts in totals.items():
        row, durations = found[name], [part for part, *_ in parts]
        assert (row["n"], row["total_ps"]) == (len(parts), sum(durations))
        assert row["self_ps"] == sum(own for _, own, *_ in parts)
        assert (row["min_ps"], row["max_ps"]) == (min(durations), max(durations))
        longest = next(part for part in parts if part[3] == row["longest_event"])
        assert longest[0] == max(durations)
        assert row["longest_duration_ps"] == longest[2]
    assert payload.scalars["n_events"].value == sum(map(len, totals.values()))
    assert payload.scalars["total_ps"].value == sum(part for parts in totals.values() for part, *_ in parts)


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("host", lambda e: e["host"]),
        ("thread", lambda e: e["line"]),
        ("arg.shape", lambda e: e["args"].get("shape", "")),
        ("arg.flops", lambda e: e["args"].get("flops", "")),
        ("category", lambda e: e["args"].get("hlo_category", "")),
        ("kind", lambda e: {"python": "python", "XLA Ops": "hlo_ops"}.get(e["line"], "thread")),
    ],
)
def test_groups_pivot_by_each_key(by: str, key: Callable[[dict[str, Any]], str]) -> None:
    traces = three(11)
    expected: dict[str, int] = defaultdict(int)
    for event in brute(traces):
        expected[key(event)] += event["dur"]
    payload = ask(*traces, question="groups", by=by, of="recorded")
    assert {row["group"]: row["total_ps"] for row in rows(payload, "groups")} == expected
    assert payload.scalars["n_groups"].value == len(expected)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10_000),
    st.integers(0, 100),
    st.integers(1, 200),
    st.integers(1, 40),
    st.sampled_from(list(QUERIES)),
)
def test_hits_are_exact_for_every_box_and_pixel(
    seed: int, begin: int, length: int, width: int, query: str
) -> None:
    traces = three(seed)
    window = {"start_ps": begin * US, "end_ps": (begin + length) * US, "width_px": width}
    low, high = window["start_ps"], window["end_ps"]
    seen = [
        event
        for event in brute(traces)
        if event["start"] < high and event["start"] + max(event["dur"], 1) > low
    ]
    inside = [event for event in seen if QUERIES[query](event)]
    boxes = rows(ask(*traces, **window), "boxes")
    payload = ask(*traces, question="hits", query=query, of="recorded", **window)
    # The boxes of a row contain its events one after another.
    n_of_box: dict[int, int] = defaultdict(int)
    row_events: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in seen:
        row_events[event["track"], event["depth"]].append(event)
    for number_of_box, box in enumerate(boxes):
        row = row_events[box["track"], box["depth"]]
        for event in row[: box["n_merged"]]:
            n_of_box[number_of_box] += QUERIES[query](event)
        del row[: box["n_merged"]]
    n_of_box = {box: n for box, n in n_of_box.items() if n}
    hits = rows(payload, "hits")
    derived = {row["track"] for row in rows(ask(*traces), "tracks") if row["is_derived"]}
    assert {row["box"]: row["n"] for row in hits if row["track"] not in derived} == n_of_box
    assert all(
        (row["track"], row["depth"]) == (boxes[row["box"]]["track"], boxes[row["box"]]["depth"])
        for row in hits
    )
    pixel = -(-(high - low) // width)
    touched: dict[int, int] = defaultdict(int)
    for event in inside:
        first = max(event["start"] - low, 0) // pixel
        last = min((event["start"] + max(event["dur"], 1) - 1 - low) // pixel, width - 1)
        for place in range(first, last + 1):
            touched[place] += 1
    assert {row["pixel"]: row["n"] for row in rows(payload, "ruler")} == touched
    assert payload.scalars["n_in_window"].value == len(inside)
    assert payload.scalars["n_boxes"].value == len(boxes)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["name", "track", "host", "step", "category", "arg.shape"]),
    st.sampled_from(["auto", "derived"]),
)
def test_the_slices_of_a_group_are_those_that_it_counts(seed: int, by: str, of: str) -> None:
    traces = three(seed)
    window: dict[str, Any] = {"query": "dur>1us", "start_ps": 5 * US, "end_ps": 120 * US, "of": of}
    everything = rows(ask(*traces, question="slices", **window), "slices")
    window["by"] = by
    groups = rows(ask(*traces, question="groups", **window), "groups")
    seen: list[int] = []
    for group in groups:
        payload = ask(*traces, question="slices", **window, group=group["group"], sort="dur", descending=True)
        found = rows(payload, "slices")
        assert (payload.scalars["n_matches"].value, payload.scalars["total_ps"].value) == (
            group["n"],
            group["total_ps"],
        )
        assert len(found) == group["n"]
        if by in ("name", "host", "step"):
            assert {row[by] for row in found} == {group["group"]}
        seen += [row["event"] for row in found]
    assert sorted(seen) == sorted(row["event"] for row in everything)
    assert rows(ask(*traces, question="slices", **window, group="no such group"), "slices") == []


def test_utilization_counts_each_instant_once() -> None:
    traces = three(23)
    low, high = 10 * US, 90 * US
    expected: dict[int, int] = defaultdict(int)
    for event in brute(traces):
        if event["depth"] == 0:
            expected[event["track"]] += max(
                0, min(event["start"] + event["dur"], high) - max(event["start"], low)
            )
    payload = ask(*traces, question="utilization", start_ps=low, end_ps=high)
    found = {row["track"]: row for row in rows(payload, "utilization") if not row["is_derived"]}
    assert {track: row["busy_ps"] for track, row in found.items()} == expected
    for row in found.values():
        assert row["busy_fraction"] == row["busy_ps"] / (high - low)


def test_derived_events_never_add_to_recorded_ones() -> None:
    search = ask(gpu(), question="groups", query="name:k")
    assert (search.scalars["n_recorded"].value, search.scalars["n_derived"].value) == (4, 0)
    assert {row["group"]: row["n"] for row in rows(search, "groups")} == {"k1": 2, "k2": 2}
    both = ask(gpu(), question="groups", query="any:MatMul")
    assert {row["group"]: row["n"] for row in rows(both, "groups")} == {"k1": 2, "k2": 1}
    derived = ask(gpu(), question="groups", query="any:MatMul", of="derived")
    assert {row["group"]: row["n"] for row in rows(derived, "groups")}["net/dense/MatMul:MatMul"] == 2
    only = ask(gpu(), question="slices", query="dense/matmul")
    assert (only.scalars["n_recorded"].value, only.scalars["is_derived"].value) == (0, True)
    assert [row["name"] for row in rows(only, "slices")] == ["net/dense/MatMul:MatMul"] * 2
    none = ask(gpu(), question="slices", query="dense/matmul", of="recorded")
    assert rows(none, "slices") == []


def test_steps_select_and_group_on_threads_and_devices() -> None:
    found = rows(ask(gpu(), question="slices", query="step:2"), "slices")
    assert [(row["name"], row["step"]) for row in found] == [
        ("train", "train 2"),
        ("launch", "train 2"),
        ("k1", "train 2"),
    ] or {row["step"] for row in found} == {"train 2"}
    assert sorted(row["name"] for row in found)[:2] == ["k1", "launch"]
    groups = rows(ask(gpu(), question="groups", query="kind:stream", by="step"), "groups")
    assert {row["group"]: row["n"] for row in groups} == {"train 1": 3, "train 2": 1}
    assert rows(ask(gpu(), question="groups", query="kind:stream step:train", by="step"), "groups") == groups


def test_the_program_around_an_operation_is_its_module() -> None:
    trace = drawing("/device:TPU:0:\nXLA Modules  [f   ]  [g ]\nXLA Ops       [a]  [b][c]")
    assert [
        row["name"] for row in rows(ask(trace, question="slices", query="module=f kind:hlo"), "slices")
    ] == ["a"]
    assert [
        row["name"] for row in rows(ask(trace, question="slices", query="module:g kind:hlo"), "slices")
    ] == ["c"]


def test_a_page_can_begin_at_a_time() -> None:
    traces = three(5)
    events = brute(traces)
    time = events[len(events) // 2]["start"]
    payload = ask(*traces, question="slices", from_ps=time, limit=3, of="recorded")
    first = next(i for i, event in enumerate(events) if event["start"] >= time)
    assert payload.scalars["first"].value == first
    assert [row["event"] for row in rows(payload, "slices")] == [
        event["id"] for event in events[first : first + 3]
    ]
    beyond = ask(*traces, question="slices", from_ps=10**15, of="recorded")
    assert [row["event"] for row in rows(beyond, "slices")] == [events[-1]["id"]]


def test_the_fields_list_the_arguments_of_all_hosts() -> None:
    fields = [row["field"] for row in rows(ask(*three(1), question="fields"), "fields")]
    assert {"dur", "track", "arg", "arg.shape", "arg.bytes", "arg.load", "arg.flops"} <= set(fields)


def test_wrong_requests_are_refused() -> None:
    trace = three(1)[0]
    for question in ("slices", "groups", "hits"):
        with pytest.raises(BadQuery, match="no field"):
            ask(trace, question=question, query="nane:x")
    with pytest.raises(BadParameter, match="by"):
        ask(trace, question="groups", by="color")
    with pytest.raises(BadParameter, match="arguments"):
        ask(trace, question="slices", arguments=",".join("abcdefghi"))
    with pytest.raises(BadParameter, match="from_ps"):
        ask(trace, question="slices", from_ps=1, sort="dur")
    with pytest.raises(BadParameter, match="group"):
        ask(trace, question="slices", group="train 1")
    with pytest.raises(BadParameter, match="end_ps"):
        ask(trace, question="groups", start_ps=5, end_ps=5)


def test_an_empty_trace_answers_every_question() -> None:
    empty = drawing("")
    for question in ("slices", "groups", "hits", "utilization", "fields"):
        assert ask(empty, question=question).tables
