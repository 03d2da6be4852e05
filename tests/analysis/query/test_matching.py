"""Matching events of both layers, their totals by a key and the boxes that contain them, beside plain loops
over the events of a trace with steps, scopes and operations of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from tb_tpuprof.analysis.query import matching as module
from tb_tpuprof.analysis.query.grammar import parse
from tb_tpuprof.analysis.query.grouping import MOST_GROUPS, _summed, argument_values, grouped, values_of
from tb_tpuprof.analysis.query.hits import box_hits, of_layer
from tb_tpuprof.analysis.query.matching import HostTimeline, Selection, select
from tb_tpuprof.analysis.query.spans import Parts, parts_within
from tb_tpuprof.analysis.timeline.timeline import timeline
from tb_tpuprof.analysis.timeline.tracks import tracks
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.tools.trace_viewer.questions import gpu

OFFSET = 1000


class Source:
    """All arguments of drawn traces are decoded."""

    def argument(self, trace: Trace, _name: str) -> StatTable:
        return trace.event_stats

    def all_arguments(self, trace: Trace) -> Iterator[StatTable]:
        yield trace.event_stats

    def names_of(self, trace: Trace) -> list[str]:
        return trace.event_stats.names()


def host_of(trace: Trace, offset_ps: int = OFFSET) -> HostTimeline:
    return HostTimeline("worker-3", offset_ps, trace, timeline(trace), tracks(trace), Source())


class Event(NamedTuple):
    """An event as the viewer shows it."""

    number: int
    name: str
    track: str
    section: str
    kind: str
    start: int
    dur: int
    step: str
    texts: str  # its arguments and those of its name, in lower case
    is_derived: bool


def events_of(host: HostTimeline) -> list[Event]:
    """Every event of both layers, ascending."""
    drawn, result = host.drawn, []
    by_line = {track.line: track for track in host.tracks}
    steps = module.event_steps(host.trace)
    for number in range(drawn.n_events):
        layer = drawn.layer_of(number)
        i = number - layer.first_event
        track = by_line[drawn.line_of(number)]
        name = module.columns.names(host.trace, drawn, np.array([number]))[0]
        step = int(steps.of[drawn.file_event(number)])
        result.append(
            Event(
                number,
                drawn.names.text(int(name)),
                track.name,
                track.section,
                track.kind,
                int(layer.start_ps[i]) + host.offset_ps,
                int(layer.duration_ps[i]),
                steps.texts[step] if step >= 0 else "",
                arguments_of(host.trace, drawn.file_event(number)),
                track.is_derived,
            )
        )
    return result


def arguments_of(trace: Trace, event: int) -> str:
    """All arguments of an event of the file, and the name that it was recorded with."""
    stats = trace.event_stats.table
    rows = np.flatnonzero(stats["owner"] == event).tolist()
    name = trace.strings[int(trace.metadata["name"][trace.events["metadata"][event]])]
    return " ".join([name, *(str(trace.event_stats.text_at(row)) for row in rows)]).lower()


US = 10**6
QUERIES: dict[str, Callable[[Event], bool]] = {
    "": lambda one: True,
    "k1": lambda one: "k1" in one.name,
    "-k1": lambda one: "k1" not in one.name,
    "name=launch": lambda one: one.name == "launch",
    "matmul": lambda one: "matmul" in one.name.lower(),
    "-matmul": lambda one: "matmul" not in one.name.lower(),
    "track:Stream": lambda one: "Stream" in one.track,
    "-track:Stream": lambda one: "Stream" not in one.track,
    "section=GPU:0": lambda one: one.section == "GPU:0",
    "kind=python": lambda one: one.kind == "python",
    "thread:python": lambda one: one.kind == "python",
    "thread:Stream": lambda one: False,
    "-thread:Stream": lambda one: True,
    "host=worker-3": lambda one: True,
    "host:worker-4": lambda one: False,
    "dur>6us": lambda one: one.dur > 6 * US,
    "-dur>6us": lambda one: one.dur <= 6 * US,
    "dur>=8us track:python": lambda one: one.dur >= 8 * US and one.track == "python",
    "dur<=8us": lambda one: one.dur <= 8 * US,
    "arg:fusion": lambda one: "fusion" in one.texts,
    "-arg:fusion": lambda one: "fusion" not in one.texts,
    "arg.tf_op:relu": lambda one: "relu" in one.texts,
    "any:matmul": lambda one: "matmul" in f"{one.name} {one.texts}".lower(),
    "-any:matmul": lambda one: "matmul" not in f"{one.name} {one.texts}".lower(),
    "any:steps": lambda one: "steps" in f"{one.name} {one.texts}".lower(),
    "start<20us": lambda one: one.start < 20 * US,
    "start>=11001000ps": lambda one: one.start >= 11_001_000,
    "start>11001000ps": lambda one: one.start > 11_001_000,
    "step:2": lambda one: one.step == "train 2",
    "step:1..1": lambda one: one.step == "train 1",
    "-step:1..2": lambda one: one.step == "",
    "step=train": lambda one: False,
    "step:train": lambda one: one.step.startswith("train"),
    "train -name:1": lambda one: "train" in one.name and "1" not in one.name,
    "name~2$": lambda one: one.name.endswith("2"),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("offset_ps", [0, OFFSET])
def test_matches_are_those_of_a_plain_loop(query: str, offset_ps: int) -> None:
    host = host_of(gpu(), offset_ps)
    events = events_of(host)
    found = select(host, parse(query))
    expected = [one for one in events if QUERIES[query](one)]
    assert found.recorded.tolist() == [one.number for one in expected if not one.is_derived]
    assert found.derived.tolist() == [one.number for one in expected if one.is_derived]


def test_matches_of_some_lines() -> None:
    host = host_of(gpu())
    every = select(host, parse(""))
    lines = {track.name: track.line for track in host.tracks}
    python = select(host, parse(""), frozenset([lines["python"]]))
    assert [one.track for one in events_of(host) if one.number in set(python.recorded.tolist())] == (
        ["python"] * len(python.recorded)
    )
    assert (len(python.recorded) > 0, len(python.derived)) == (True, 0)
    steps = select(host, parse(""), frozenset([lines["Steps"]]))
    assert (len(steps.recorded), len(steps.derived) > 0) == (0, True)
    assert len(select(host, parse(""), frozenset()).recorded) == 0
    assert len(every.recorded) + len(every.derived) == host.drawn.n_events


def test_recent_selections_are_kept_and_the_oldest_are_dropped() -> None:
    kept, made = module._Recent(), []

    def ask(key: int) -> Selection:
        def make() -> Selection:
            made.append(key)
            return Selection(np.array([key], np.int32), np.empty(0, np.int64))

        return kept.get(key, make)

    for key in (1, 2, 3, 4, 1):
        assert ask(key).recorded.tolist() == [key]
    assert made == [1, 2, 3, 4]
    ask(5)  # drops 2: 1 was asked for again
    for key in (1, 3, 4, 5):
        ask(key)
    assert made == [1, 2, 3, 4, 5]
    ask(2)
    assert made == [1, 2, 3, 4, 5, 2]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("track", lambda one: f"worker-3 · {one.section} · {one.track}"),
        ("thread", lambda one: one.track),
        ("section", lambda one: one.section),
        ("kind", lambda one: one.kind),
        ("host", lambda one: "worker-3"),
        ("step", lambda one: one.step),
    ],
)
def test_totals_by_a_key_are_those_of_a_plain_loop(key: str, text: Callable[[Event], str]) -> None:
    host = host_of(gpu())
    events = events_of(host)
    for chosen in (events, [one for one in events if not one.is_derived], events[3:4], []):
        numbers = np.array([one.number for one in chosen], np.int64)
        parts = parts_within(host.trace, host.drawn, numbers, None)
        found = grouped(host, parts, key)
        own = dict(zip(parts.events.tolist(), parts.self_ps.tolist(), strict=True))
        groups: dict[str, list[Event]] = {}
        for one in chosen:
            groups.setdefault(text(one), []).append(one)
        assert sorted(found.texts) == sorted(groups)
        for i, name in enumerate(found.texts):
            members = groups[name]
            times = [one.dur for one in members]
            assert (found.n[i], found.total_ps[i]) == (len(members), sum(times))
            assert (found.min_ps[i], found.max_ps[i]) == (min(times), max(times))
            assert found.self_ps[i] == sum(own[one.number] for one in members)
            longest = next(one for one in members if one.number == found.longest[i])
            assert longest.dur == max(times)
        assert found.n_left_out == 0


def test_names_group_without_the_number_of_a_step() -> None:
    """Steps of the host are `train 1` and `train 2` in the list of events, but one name in totals."""
    host = host_of(gpu())
    numbers = np.array([one.number for one in events_of(host) if one.kind == "python"], np.int64)
    found = grouped(host, parts_within(host.trace, host.drawn, numbers, None), "name")
    assert dict(zip(found.texts, found.n.tolist(), strict=True)) == {"train": 2, "launch": 3}
    apart = values_of(host, numbers, "name")
    assert {apart.text(code) for code in apart.of.tolist()} == {"train 1", "train 2", "launch"}
    every = np.arange(host.drawn.n_events, dtype=np.int64)
    both = grouped(host, parts_within(host.trace, host.drawn, every, None), "name")
    counts = dict(zip(both.texts, both.n.tolist(), strict=True))
    assert (counts["train"], counts["k1"], counts["k2"]) == (2, 2, 2)


def test_the_groups_of_most_time_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_GROUPS == 100_000
    monkeypatch.setattr("tb_tpuprof.analysis.query.grouping.MOST_GROUPS", 3)
    lengths = {"a": (1, 4), "b": (4, 5), "c": (1, 1), "d": (0, 7), "e": (2, 1)}
    pairs = [(name, time) for name, times in lengths.items() for time in times]
    events = [DrawnEvent(name, 20 * i, time) for i, (name, time) in enumerate(pairs)]
    host = host_of(build([DrawnPlane("/host:CPU", {"main": events})]))
    found = grouped(host, parts_within(host.trace, host.drawn, np.arange(10), None), "name")
    assert dict(zip(found.texts, found.total_ps.tolist(), strict=True)) == {"a": 5, "b": 9, "d": 7}
    assert found.n_left_out == 2


def test_sums_are_exact_beyond_the_whole_numbers_of_doubles() -> None:
    values = np.array([2**62, 1, 2**53, 1, 2**27 - 1, 3], np.int64)
    code = np.array([0, 0, 1, 1, 2, 2], np.int32)
    assert _summed(code, values, 4).tolist() == [2**62 + 1, 2**53 + 1, 2**27 + 2, 0]


def test_the_argument_of_an_event_is_its_own_else_its_names() -> None:
    """Bytes are shown as their size."""
    events = [
        DrawnEvent("a", 0, 5, {"kind": "own", "raw": b"12345"}),
        DrawnEvent("a", 10, 5),
        DrawnEvent("b", 20, 5, {"load": 0.5}),
        DrawnEvent("b", 30, 5, {"kind": "own", "load": 7}),
    ]
    names = {"a": {"kind": "of name"}}
    trace = build([DrawnPlane("/host:CPU", {"main": events}, metadata_stats=names)])

    def values(name: str, rows: list[int]) -> list[str]:
        code, texts = argument_values(trace, np.array(rows, np.int64), name, Source())
        return ["-" if one < 0 else texts[one] for one in code.tolist()]

    assert values("kind", [0, 1, 2, 3]) == ["own", "of name", "-", "own"]
    assert values("kind", [1, 3]) == ["of name", "own"]
    assert values("load", [0, 2, 3]) == ["-", "0.5", "7"]
    assert values("raw", [0, 1]) == ["(5 bytes)", "-"]
    assert values("full_name", [0, 2]) == ["a", "b"]
    assert values("nothing", [0, 1]) == ["-", "-"]
    assert values("kind", []) == []
    host = host_of(trace)
    parts = parts_within(trace, host.drawn, np.arange(4), None)
    by_kind = grouped(host, parts, "arg.kind")
    assert sorted(zip(by_kind.texts, by_kind.n.tolist(), strict=True)) == [
        ("", 1),
        ("of name", 1),
        ("own", 2),
    ]


def test_no_events_have_no_groups() -> None:
    host = host_of(gpu())
    none = np.empty(0, np.int64)
    for key in ("name", "track", "step", "category", "module", "arg.x"):
        found = grouped(host, Parts(none, none, none), key)
        assert (found.texts, found.n.tolist(), found.longest.tolist()) == ([], [], [])


def test_boxes_that_contain_matches() -> None:
    """Every event of a pixel or more is a box: those of matches have one each."""
    host = host_of(gpu())
    window = (0, 40 * US, US // 10)
    for query in ("", "k1", "launch", "matmul", "track:Stream -k1", "nothing"):
        selection = select(host, parse(query))
        for layer in host.drawn.layers:
            matches = of_layer(host.drawn, layer, selection)
            both = {*selection.recorded.tolist(), *selection.derived.tolist()}
            of_this = [i for i in range(layer.n_events) if i + layer.first_event in both]
            assert matches.tolist() == of_this
            lines = np.arange(layer.n_lines)
            found = box_hits(layer, lines, matches, window)
            line_of = layer.line_of(matches).tolist()
            places = sorted(zip(line_of, layer.depth[matches].tolist(), strict=True))
            assert sorted(zip(found.line.tolist(), found.depth.tolist(), strict=True)) == places
            assert found.n.tolist() == [1] * len(places)
            assert found.n_boxes == layer.n_events
            few = box_hits(layer, lines[:1], matches, window)
            assert len(few.box) == line_of.count(0)


def test_a_box_of_many_short_events_counts_its_matches() -> None:
    """Ten events of a nanosecond in one pixel, some of which match; a window may begin at the fourth."""
    names = ["a" if i % 3 else "b" for i in range(10)]
    events = [DrawnEvent(name, i * 2000, 1000) for i, name in enumerate(names)]
    host = host_of(build([DrawnPlane("/host:CPU", {"main": [*events, DrawnEvent("b", 9 * US, US)]})]), 0)
    layer = host.drawn.file
    for query, first, n in (("name=a", 0, 6), ("name=b", 0, 4), ("name=a", 3, 4), ("name=b", 3, 3)):
        matches = of_layer(host.drawn, layer, select(host, parse(query)))
        found = box_hits(layer, np.arange(1), matches, (first * 2000, 20 * US, US // 2))
        assert found.n.tolist()[0] == n
        assert found.n.tolist()[1:] == ([1] if query == "name=b" else [])


def test_lines_that_match_need_not_be_neighbors() -> None:
    names = ("a1", "b1", "a2", "b2", "b3", "a3")
    lines = {name: [DrawnEvent(f"of {name}", 0, 5), DrawnEvent(f"of {name}", 9, 5)] for name in names}
    host = host_of(build([DrawnPlane("/host:CPU", lines)]))
    events = [(number, one.track) for number, one in enumerate(events_of(host))]
    for letter in "ab":
        expected = [number for number, track in events if track.startswith(letter)]
        assert select(host, parse(f"track:{letter}")).recorded.tolist() == expected
        assert select(host, parse(f"-track:{letter}")).recorded.tolist() == [
            number for number, _ in events if number not in expected
        ]


def test_self_time_is_compared_exactly() -> None:
    events = [DrawnEvent("outer", 0, 9), DrawnEvent("inner", 2, 3)]
    host = host_of(build([DrawnPlane("/host:CPU", {"main": events})]))
    for query, names in (("self<=6ps", [0, 1]), ("self<=5ps", [1]), ("self>3ps", [0]), ("self>=3ps", [0, 1])):
        assert select(host, parse(query)).recorded.tolist() == names


def test_categories_and_programs_of_operations() -> None:
    """Each selects what the other does not."""
    modules = [DrawnEvent("f", 0, 20), DrawnEvent("g", 20, 20)]
    ops = [DrawnEvent("dot", 0, 5), DrawnEvent("add", 10, 5), DrawnEvent("dot", 20, 5)]
    stats = {"dot": {"hlo_category": "g-like"}, "add": {"hlo_category": "loop f"}}
    plane = DrawnPlane("/device:TPU:0", {"XLA Modules": modules, "XLA Ops": ops}, metadata_stats=stats)
    host = host_of(build([plane]))
    for query, found in (
        ("category:g", [2, 4]),
        ("category:f", [3]),
        ("module:g", [1, 4]),
        ("module=f", [0, 2, 3]),
        ("-category:g", [0, 1, 3]),
        ("-module=f", [1, 4]),
    ):
        assert select(host, parse(query)).recorded.tolist() == found
