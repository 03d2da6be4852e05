"""Chains of events, two windows compared, and a selection as a file: each against what was drawn, and on real
files against a plain reading of their JSON.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict, deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.errors import BadParameter, EventNotFound
from tb_tpuprof.session import Session
from tb_tpuprof.tools.trace_viewer import chain, export_csv
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing
from tests.ingest.chrome_files import loaded, ps
from tests.tools.drawn_session import session_of
from tests.tools.trace_viewer.questions import (
    CORPUS,
    IN,
    LINES_PER_HOST,
    OUT,
    ask,
    brute_events,
    flow,
    needs_corpus,
    rows,
    traces,
)
from tests.tools.trace_viewer.test_export import exported

# --- chains ---

KINETO = "tracelens_torch/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz"


def three_links() -> Trace:
    """A context (its producer inside a call), a correlation id, and the stat `flow`, one after another."""
    return drawing(
        """
        /host:CPU:
        python  [step                    ]  [later ]
        python    [call       ]
        python        [post]
        worker                  [take       ]
        worker                    [launch]
        done                                                   [seen]
        /device:GPU:0:
        Stream #7(Compute)                     [kernel ]
        """,
        {
            "post": {"_pt": 15, "_p": 4},
            "take": {"_ct": 15, "_c": 4},
            "launch": {"correlation_id": 3},
            "kernel": {"correlation_id": 3, "flow": flow(6, OUT, 5)},
            "seen": {"flow": flow(6, IN, 5)},
        },
    )


def chain_of(trace: Trace, name: str) -> list[dict[str, Any]]:
    event = next(e["event"] for e in brute_events(trace) if e["name"] == name)
    return rows(ask(trace, question="chain", event=event), "chain")


def test_a_chain_leads_from_the_call_to_the_last_effect_over_three_unlike_links() -> None:
    trace = three_links()
    drawn = {e["name"]: e for e in brute_events(trace)}
    found = chain_of(trace, "kernel")
    gap = {(a, b): drawn[b]["start"] - drawn[a]["start"] - drawn[a]["duration"] for a in drawn for b in drawn}
    unknown = pytest.approx(float("nan"), nan_ok=True)
    names = {e["event"]: name for name, e in drawn.items()}
    columns = ("side", "name", "kind", "distance", "gap_ps")
    assert [(*(row[name] for name in columns), names.get(row["neighbor"])) for row in found] == [
        ("cause", "step", "encloses", 5, unknown, "call"),
        ("cause", "call", "encloses", 4, unknown, "post"),
        ("cause", "post", "thread pool", 3, gap["post", "take"], "take"),
        ("cause", "take", "encloses", 2, unknown, "launch"),
        ("cause", "launch", "kernel launch", 1, gap["launch", "kernel"], "kernel"),
        ("event", "kernel", "", 0, unknown, None),
        ("effect", "seen", "PjRt", 1, gap["kernel", "seen"], "kernel"),
    ]
    assert len({gap[pair] for pair in (("post", "take"), ("launch", "kernel"), ("kernel", "seen"))}) == 3
    for row in found:
        event = drawn[row["name"]]
        assert (row["start_ps"], row["duration_ps"], row["track"]) == (
            event["start"],
            event["duration"],
            event["track"],
        )


def test_effects_of_a_call_begin_at_the_arrows_of_the_events_within_it() -> None:
    found = chain_of(three_links(), "step")
    assert [(row["side"], row["name"], row["kind"], row["distance"]) for row in found] == [
        ("event", "step", "", 0),
        ("effect", "post", "encloses", 1),
        ("effect", "take", "thread pool", 2),
        ("effect", "launch", "encloses", 3),
        ("effect", "kernel", "kernel launch", 4),
        ("effect", "seen", "PjRt", 5),
    ]
    assert [row["name"] for row in chain_of(three_links(), "later")] == ["later"]


def test_a_very_large_chain_is_cut_and_says_so() -> None:
    n = chain.MAX_LINKS + 50
    name = "a" * (3 * n)
    trace = drawing(
        f"main    [{name}]\nworker   " + "[b]" * n,
        {name: {"flow": flow(6, OUT, 5)}, "b": [{"flow": flow(6, IN, 5)}] * n},
    )
    payload = ask(trace, question="chain", event=0)
    scalars = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert scalars == {"n_causes": 0, "n_effects": chain.MAX_LINKS, "is_cut": 1}
    assert payload.tables["chain"].note == f"The nearest {chain.MAX_LINKS} each way."
    with pytest.raises(EventNotFound):
        ask(trace, question="chain", event=trace.n_events + 5)


class PlainChains:
    """A Chrome trace's slices, arrows and nesting, from its JSON by loops."""

    def __init__(self, path: Path) -> None:
        events, _ = loaded(path)
        zero = min(ps(e["ts"]) for e in events if e.get("ph") in ("X", "i", "s", "f", "C") and "ts" in e)
        self.slices = [
            (e["pid"], e["tid"], ps(e["ts"]) - zero, ps(e["dur"]), e["name"])
            for e in events
            if e.get("ph") == "X" and e.get("cat") != "gpu_user_annotation"  # these get a line of their own
        ]
        self.on: dict[Any, list[int]] = defaultdict(list)
        for i, (pid, tid, *_) in enumerate(self.slices):
            self.on[pid, tid].append(i)
        ends: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: {"s": [], "f": []})
        for e in events:
            if e.get("ph") in ("s", "f"):
                ends[e["cat"], e["name"], e["id"]][e["ph"]].append((e["pid"], e["tid"], ps(e["ts"]) - zero))
        self.into: dict[int, set[int]] = defaultdict(set)
        for points in ends.values():
            for start in points["s"]:
                for end in points["f"]:
                    source, target = self.at(*start), self.at(*end)
                    if source is not None and target is not None and source != target:
                        self.into[target].add(source)

    def at(self, pid: Any, tid: Any, time: int) -> int | None:
        """The innermost slice at a time."""
        around = [
            i for i in self.on[pid, tid] if self.slices[i][2] <= time <= self.slices[i][2] + self.slices[i][3]
        ]
        return max(around, key=lambda i: (self.slices[i][2], -self.slices[i][3]), default=None)

    def around(self, slice_id: int) -> int | None:
        pid, tid, start, duration, _ = self.slices[slice_id]
        outer = [
            i
            for i in self.on[pid, tid]
            if self.slices[i][2] <= start
            and self.slices[i][2] + self.slices[i][3] >= start + duration
            and (self.slices[i][2], -self.slices[i][3]) < (start, -duration)
        ]
        return max(outer, key=lambda i: (self.slices[i][2], -self.slices[i][3]), default=None)

    def causes(self, slice_id: int) -> Counter[Any]:
        seen, waiting = {slice_id}, deque([slice_id])
        while waiting:
            of = waiting.popleft()
            outer = self.around(of)
            for other in (*self.into[of], *(() if outer is None else (outer,))):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return Counter(self.slices[i][2:4] for i in seen - {slice_id})


@needs_corpus
def test_causes_of_kernels_are_those_of_a_plain_reading_of_the_file() -> None:
    path = Path(CORPUS) / KINETO
    plain = PlainChains(path)
    session = Session(str(path), cache=False)
    trace = session.trace(session.hosts[0])
    times = zip(*(trace.events[name].tolist() for name in ("start_ps", "duration_ps")), strict=True)
    event_of = {pair: row for row, pair in enumerate(times)}
    kernels = [i for i in plain.into if plain.slices[i][:2] == (0, 7)]
    chosen = kernels[:: max(1, len(kernels) // 25)]
    lengths = set()
    for kernel in chosen:
        payload = TOOL.run(session, None, {"event": event_of[plain.slices[kernel][2:4]]}, "chain")
        found = Counter(
            (int(row["start_ps"]), int(row["duration_ps"]))
            for row in rows(payload, "chain")
            if row["side"] == "cause"
        )
        assert found == plain.causes(kernel)
        lengths.add(sum(found.values()))
    assert len(chosen) >= 25
    assert min(lengths) >= 3
    assert len(lengths) >= 3


# --- two windows ---


def plain_sums(trace: Trace, begin: int, end: int, key: str) -> dict[Any, tuple[int, int, int]]:
    """(events, total, self) of each name or track: an event's part is taken from the innermost open one's."""
    parts: list[tuple[Any, int, list[int]]] = []  # key, length, what is left of it as self time
    for track in range(len(trace.lines)):
        open_parts: list[tuple[int, list[int]]] = []
        for event in (e for e in brute_events(trace) if e["track"] == track):
            if event["end"] <= begin or event["start"] >= end:
                continue
            low = max(event["start"], begin)
            high = max(low, min(event["start"] + event["duration"], end))
            while open_parts and open_parts[-1][0] < high:
                open_parts.pop()
            if open_parts:
                open_parts[-1][1][0] -= high - low
            left = [high - low]
            open_parts.append((high, left))
            parts.append((event[key], high - low, left))
    sums: dict[Any, tuple[int, int, int]] = {}
    for name, length, (left_over,) in parts:
        before = sums.get(name, (0, 0, 0))
        sums[name] = before[0] + 1, before[1] + length, before[2] + max(left_over, 0)
    return sums


@settings(deadline=None, max_examples=100)
@given(
    traces(),
    st.integers(0, 300),
    st.integers(1, 200),
    st.integers(0, 300),
    st.integers(1, 200),
    st.sampled_from(["name", "track"]),
)
def test_two_windows_differ_by_what_a_plain_sum_of_each_finds(
    trace: Trace, a: int, a_length: int, b: int, b_length: int, by: str
) -> None:
    payload = ask(
        trace,
        question="compare",
        a_start_ps=a,
        a_end_ps=a + a_length,
        b_start_ps=b,
        b_end_ps=b + b_length,
        by=by,
    )
    of_a, of_b = plain_sums(trace, a, a + a_length, by), plain_sums(trace, b, b + b_length, by)
    found = rows(payload, "compared")
    assert {row[by] for row in found} == {*of_a, *of_b}
    for row in found:
        values_a, values_b = of_a.get(row[by], (0, 0, 0)), of_b.get(row[by], (0, 0, 0))
        assert (row["n_a"], row["total_a_ps"], row["self_a_ps"]) == values_a
        assert (row["n_b"], row["total_b_ps"], row["self_b_ps"]) == values_b
        assert row["total_difference_ps"] == values_b[1] - values_a[1]
        assert row["self_difference_ps"] == values_b[2] - values_a[2]
    differences = [abs(row["self_difference_ps"]) for row in found]
    assert differences == sorted(differences, reverse=True)
    scalars = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert scalars == {
        "length_a_ps": a_length,
        "length_b_ps": b_length,
        "length_difference_ps": b_length - a_length,
        "n_events_a": sum(row[0] for row in of_a.values()),
        "n_events_b": sum(row[0] for row in of_b.values()),
    }


def test_a_slow_step_next_to_a_fast_one() -> None:
    us = 10**6
    trace = drawing(
        """
        main  [load ][step][load        ][step]
        other [wait    ]                  [wait  ]
        """
    )
    windows = {"a_start_ps": 6 * us, "a_end_ps": 19 * us, "b_start_ps": 19 * us, "b_end_ps": 39 * us}
    drawn = brute_events(trace)
    (fast, slow) = (e["duration"] for e in drawn if e["name"] == "load")
    found = {row["name"]: row for row in rows(ask(trace, question="compare", **windows), "compared")}
    assert next(iter(found)) == "load"
    assert found["load"]["self_difference_ps"] == slow - fast > 0
    only_other = rows(ask(trace, question="compare", **windows, tracks="1", by="track"), "compared")
    assert [(row["track"], row["name"]) for row in only_other] == [(1, "Host threads · other")]
    with pytest.raises(BadParameter, match="b_end_ps"):
        ask(trace, question="compare", **(windows | {"b_end_ps": 19 * us}))


# --- files of a selection ---


def csv_of(*hosts: Trace, **params: object) -> list[dict[str, str]]:
    name, parts = TOOL.file(session_of(*hosts), None, params, "events")
    assert name == "drawn.events.csv"
    return list(csv.DictReader(io.StringIO(b"".join(parts).decode())))


@settings(deadline=None, max_examples=60)
@given(traces(), traces(start_ns=7), st.integers(0, 400), st.integers(1, 300), st.integers(0, 2))
def test_a_csv_file_has_the_events_of_the_window_and_depths(
    first: Trace, second: Trace, begin: int, length: int, depth: int
) -> None:
    wanted = Counter(
        (
            f"worker-{host}",
            event["track"],
            event["depth"],
            event["name"],
            event["start"] + shift,
            event["duration"],
        )
        for host, (trace, shift) in enumerate(((first, 0), (second, 7000)))
        for event in brute_events(trace)
        if event["end"] + shift > begin
        and event["start"] + shift < begin + length
        and event["depth"] <= depth
    )
    tracks = {
        (row["host"], row["section"], row["name"]): row["track"] % LINES_PER_HOST
        for row in rows(ask(first, second), "tracks")
    }
    found = Counter(
        (
            row["host"],
            tracks[row["host"], row["section"], row["track"]],
            int(row["depth"]),
            row["name"],
            int(row["start_ps"]),
            int(row["duration_ps"]),
        )
        for row in csv_of(first, second, start_ps=begin, end_ps=begin + length, depth_to=depth)
    )
    assert found == wanted


def test_a_csv_file_escapes_formulas_and_refuses_too_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = drawing("main [=cmd()][a,b]\nother [c]")
    assert [row["name"] for row in csv_of(trace)] == ["'=cmd()", "a,b", "c"]
    assert [row["name"] for row in csv_of(trace, tracks="1")] == ["c"]
    monkeypatch.setattr(export_csv, "MAX_ROWS", 2)
    with pytest.raises(Exception, match="3 events; a CSV file can have at most 2"):
        csv_of(trace)


def test_an_export_of_a_box_has_only_its_rows() -> None:
    trace = drawing("main [outer      ]\nmain   [inner ]\nmain    [leaf]")
    for form in (
        {row["name"] for row in csv_of(trace, depth_from=1, depth_to=1)},
        {
            event["name"]
            for event in exported(session_of(trace), depth_from=1, depth_to=1)["traceEvents"]
            if event["ph"] == "X"
        },
    ):
        assert form == {"inner"}
