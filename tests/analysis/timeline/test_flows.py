"""Arrows, chains, windows of counters and boxes of the timeline, on small drawn traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.boxes import _parts, box_columns
from tb_tpuprof.analysis.timeline.chain import ENCLOSES, chain
from tb_tpuprof.analysis.timeline.counters import (
    counter_name,
    counter_ranges,
    counter_samples,
    counter_unit,
    unit_of,
)
from tb_tpuprof.analysis.timeline.flows import arrow_ends, flows
from tb_tpuprof.analysis.timeline.layers import layer
from tb_tpuprof.analysis.timeline.names import Family
from tb_tpuprof.analysis.timeline.timeline import timeline
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table, table_from_rows
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, drawing


def names_of(trace: Trace) -> list[str]:
    return [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]


def arrowed() -> Trace:
    """`a` schedules `b` and `c` (contexts), which begins before a second producer `z`; `c` launches a kernel;
    the file itself draws an arrow from `b` to the kernel, and from `a` to itself.
    """
    trace = drawing(
        """
        main    [a     ]        [z ]
        main      [x ]
        worker      [b    ]
        other               [c  ]
        other                [d]
        /device:GPU:0:
        stream                      [kernel ]
        """,
        {
            "a": {"_pt": 5, "_p": 1},
            "z": {"_pt": 5, "_p": 1},
            "b": {"_ct": 5, "_c": 1},
            "c": {"_ct": 5, "_c": 1},
            "d": {"correlation_id": 7},
            "kernel": {"correlation_id": 7},
        },
    )
    at = names_of(trace).index
    rows = [(at("b"), at("kernel"), -1, -1), (at("a"), at("a"), -1, -1)]
    return replace(trace, flows=table_from_rows(schema.FLOWS, rows))


def test_arrows_of_all_kinds() -> None:
    trace = arrowed()
    found, names = flows(trace), names_of(trace)
    arrows = [
        (names[source], names[target], found.kinds[kind])
        for source, target, kind in zip(found.source, found.target, found.kind, strict=True)
    ]
    assert sorted(arrows) == [
        ("a", "b", "PjRt"),
        ("a", "c", "PjRt"),
        ("b", "kernel", "flow"),
        ("d", "kernel", "kernel launch"),
    ]
    assert found.target.tolist() == sorted(found.target.tolist())
    assert [arrows[i][:2] for i in found.out_of(names.index("a"))] == [("a", "b"), ("a", "c")]
    assert {arrows[i][0] for i in found.into(names.index("kernel"))} == {"b", "d"}
    assert len(found.into(names.index("a"))) == len(found.out_of(names.index("kernel"))) == 0


def test_ends_of_arrows_are_at_the_consumer_s_start_or_the_producer_s_end() -> None:
    trace = arrowed()
    found, names = flows(trace), names_of(trace)
    from_ps, to_ps = arrow_ends(trace, found, np.arange(len(found.source)))
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    for i, (source, target) in enumerate(zip(found.source.tolist(), found.target.tolist(), strict=True)):
        assert to_ps[i] == start[target]
        assert from_ps[i] == min(max(start[target], start[source]), start[source] + duration[source])
    into_b = int(found.into(names.index("b"))[0])
    assert start[names.index("a")] < from_ps[into_b] == to_ps[into_b]


def test_producers_that_begin_later_count_where_there_is_no_other() -> None:
    trace = drawing(
        "one      [p][q]\ntwo  [c]         [d]\n",
        {
            "p": {"_pt": 5, "_p": 1},
            "q": {"_pt": 5, "_p": 1},
            "c": {"_ct": 5, "_c": 1},
            "d": {"_ct": 5, "_c": 1},
        },
    )
    names, found = names_of(trace), flows(trace)
    pairs = {(names[a], names[b]) for a, b in zip(found.source, found.target, strict=True)}
    assert pairs == {("p", "c"), ("q", "d")}


def linked(
    trace: Trace, name: str, limit: int = 99
) -> tuple[list[tuple[str, str, str, int]], list[tuple[str, str, str, int]], bool]:
    names = names_of(trace)
    found = chain(trace, timeline(trace), names.index(name), limit)
    causes, effects = (
        [(names[link.event], names[link.towards], link.kind, link.distance) for link in links]
        for links in (found.causes, found.effects)
    )
    return causes, effects, found.is_cut


def test_causes_and_effects_of_an_event() -> None:
    trace = arrowed()
    causes, effects, is_cut = linked(trace, "kernel")
    assert sorted(causes, key=lambda link: (link[3], link[0])) == [
        ("b", "kernel", "flow", 1),
        ("d", "kernel", "kernel launch", 1),
        ("a", "b", "PjRt", 2),
        ("c", "d", ENCLOSES, 2),
    ]
    assert [link[3] for link in causes] == [1, 1, 2, 2]
    assert (effects, is_cut) == ([], False)
    causes, effects, _ = linked(trace, "a")
    assert causes == []
    assert sorted(effects, key=lambda link: (link[3], link[0])) == [
        ("b", "a", "PjRt", 1),
        ("c", "a", "PjRt", 1),
        ("d", "c", ENCLOSES, 2),
        ("kernel", "b", "flow", 2),
    ]
    assert linked(trace, "x") == ([("a", "x", ENCLOSES, 1)], [], False)


def test_chains_are_cut_at_the_limit() -> None:
    trace = arrowed()
    causes, effects, is_cut = linked(trace, "kernel", 4)
    assert (len(causes), len(effects), is_cut) == (4, 0, False)
    causes, _, is_cut = linked(trace, "kernel", 3)
    assert ([link[3] for link in causes], is_cut) == ([1, 1, 2], True)
    _, effects, is_cut = linked(trace, "a", 1)
    assert (len(effects), is_cut) == (1, True)


def counted(values: dict[str, list[tuple[int, float]]]) -> Trace:
    """Counters by name (`name: series` with a series)."""
    words = [word for name in values for word in name.split(": ")]
    trace = drawing("\n".join(f"{word}  [e]" for word in dict.fromkeys(words)))
    rows, samples = [], []
    for name, points in values.items():
        text, _, series = name.partition(": ")
        rows.append(
            (
                0,
                trace.strings.find(text),
                trace.strings.find(series) if series else -1,
                len(samples),
                len(points),
            )
        )
        samples += points
    columns = {
        "time_ps": np.array([t for t, _ in samples], np.int64),
        "value": np.array([v for _, v in samples]),
    }
    return replace(
        trace, counters=table_from_rows(schema.COUNTERS, rows), samples=Table(schema.SAMPLES, columns)
    )


COUNTED = counted(
    {
        "power: watts": [(10, 5.0), (20, -3.0), (30, 8.0)],
        "empty": [],
        "Memory (GiB)": [(0, 1.0), (7, 2.0), (9, 1.5), (50, 0.5)],
    }
)


def test_ranges_and_names_of_counters() -> None:
    ranges = counter_ranges(COUNTED)
    assert np.array_equal(ranges.lowest, [-3, np.nan, 0.5], equal_nan=True)
    assert np.array_equal(ranges.highest, [8, np.nan, 2], equal_nan=True)
    single = counter_ranges(counted({"a": [(3, 4.0)], "b": [(1, 7.0), (2, 6.0)]}))
    assert (single.lowest.tolist(), single.highest.tolist()) == ([4, 6], [4, 7])
    assert [counter_name(COUNTED, i) for i in range(3)] == ["power: watts", "empty", "Memory (GiB)"]
    assert [unit_of(COUNTED, i) for i in range(3)] == ["W", "", "GiB"]


@pytest.mark.parametrize(
    ("start", "end", "pixel", "times"),
    [
        (0, 100, 1, [10, 20, 30]),
        (10, 30, 1, [10, 20]),  # the end is not included
        (15, 25, 1, [10, 20]),  # the sample that holds at the start
        (30, 90, 1, [30]),
        (31, 90, 1, [30]),
        (0, 10, 1, []),
        (11, 12, 1, [10]),
    ],
)
def test_samples_of_a_window(start: int, end: int, pixel: int, times: list[int]) -> None:
    assert counter_samples(COUNTED, 0, start, end, pixel)[0].tolist() == times
    assert len(counter_samples(COUNTED, 1, start, end, pixel)[0]) == 0


@pytest.mark.parametrize("seed", range(8))
def test_of_two_pixels_the_lowest_the_highest_and_the_last_are_kept(seed: int) -> None:
    """And the first of all, which holds at the window's start. Of equal values the first one counts."""
    draw = np.random.default_rng(seed)
    times = np.sort(draw.choice(200, 90, replace=False)).tolist()
    values = draw.integers(0, 5, 90).tolist()
    trace = counted({"c": list(zip(times, map(float, values), strict=True))})
    start, pixel = 23, 10
    found = counter_samples(trace, 0, start, 190, pixel)
    first = max((i for i, time in enumerate(times) if time <= start), default=0)
    inside = [i for i, time in enumerate(times) if i >= first and time < 190]
    kept = {inside[0]}
    buckets: dict[int, list[int]] = {}
    for i in inside:
        buckets.setdefault((times[i] - start) // (2 * pixel), []).append(i)
    for rows in buckets.values():
        kept |= {min(rows, key=lambda i: (values[i], i)), min(rows, key=lambda i: (-values[i], i)), rows[-1]}
    assert found[0].tolist() == [times[i] for i in sorted(kept)]
    assert found[1].tolist() == [values[i] for i in sorted(kept)]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("GPU util (%)", "%"),
        ("gpu_pct", "%"),
        ("Percent busy", "%"),
        ("bytes per second", "bytes_per_s"),
        ("read_bytes_per_second", "bytes_per_s"),
        ("bytes", "bytes"),
        ("watts", "W"),
        ("kilowatts", ""),
        ("x_energy_j", "J"),
        ("joule", "J"),
        ("clock [MHz]", "MHz"),
        ("a (b)", "bytes"),
        ("a (widgets)", ""),
        ("bytes (GB)", "GB"),
        ("pct_bytes", "%"),
        ("apct", ""),
        ("", ""),
    ],
)
def test_units_in_names(name: str, unit: str) -> None:
    assert counter_unit(name) == unit


def test_boxes_of_a_window() -> None:
    """Of the second line, shifted as those of a second host."""
    trace = drawing("""
        one  [a ][b ]
        two  [$x.py:1 f   ]   [memcpy ]
        two    [Iterator::Root]
        """)
    drawn = timeline(trace)
    boxes = box_columns(trace, drawn.file, np.array([1]), (0, 100 * PS, 1), (10, 1000, 500))
    names = [drawn.names.text(int(name)) for name in boxes.ints[1]]
    start = trace.events["start_ps"]
    events = {name: i for i, name in enumerate(names_of(trace))}
    assert boxes.longs[0].tolist() == [11] * len(names)
    assert boxes.longs[1].tolist() == [start[events[name]] + 1000 for name in names]
    assert boxes.longs[2].tolist() == [trace.events["duration_ps"][events[name]] for name in names]
    assert boxes.longs[4].tolist() == [events[name] + 500 for name in names]
    assert set(names) == {"$x.py:1 f", "memcpy", "Iterator::Root"}
    assert {name: Family(int(family)) for name, family in zip(names, boxes.family, strict=True)} == {
        "$x.py:1 f": Family.PYTHON,
        "memcpy": Family.MEMCPY,
        "Iterator::Root": Family.INPUT,
    }
    assert {drawn.names.text(i) for i in np.flatnonzero(boxes.seen).tolist()} == set(names)
    early = box_columns(trace, drawn.file, np.array([0, 1]), (0, int(start[1]), 1), (0, 0, 0))
    assert {drawn.names.text(int(name)) for name in early.ints[1]} == {"a", "$x.py:1 f", "Iterator::Root"}


@pytest.mark.parametrize(
    ("window", "least", "processors", "n_parts"),
    [
        ((0, 10), 3, 2, 4),  # all of the 3 events: two parts for each of two threads
        ((0, 10), 4, 2, 1),
        ((0, 10), 3, 1, 1),
        ((0, 5), 2, 2, 1),  # about half of them
        ((0, 5), 1, 2, 4),
    ],
)
def test_boxes_of_many_events_are_made_in_parts(
    window: tuple[int, int], least: int, processors: int, n_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, duration = np.array([0, 5, 10]), np.full(3, 2)
    made = layer(start, duration, np.array([0, 1, 2, 3]))
    monkeypatch.setattr(POLICY, "min_parallel_drawn_events", least)
    monkeypatch.setattr(POLICY, "n_processors", lambda: processors)
    rows = made.rows_of(np.arange(3))
    parts = _parts(made, rows, *window)
    assert np.concatenate(parts).tolist() == rows.tolist()
    assert (len(parts) > 1) == (n_parts > 1)


def test_a_layer_without_events_is_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)
    none = np.empty(0, np.int64)
    made = layer(none, none, np.zeros(1, np.int64))
    assert len(_parts(made, made.rows_of(np.arange(0)), 0, 10)) == 1


def test_depths_of_lines_do_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three lines, one of them nested, each read by a thread of its own."""
    start = np.array([0, 1, 2, 0, 4, 0, 1])
    duration = np.array([9, 5, 1, 3, 3, 8, 2])
    offsets = np.array([0, 3, 5, 7])
    whole = layer(start, duration, offsets)
    monkeypatch.setattr(POLICY, "min_parallel_events", 1)
    monkeypatch.setattr(POLICY, "n_processors", lambda: 3)
    parts = layer(start, duration, offsets)
    for name in ("row_line", "row_depth", "row_offsets", "order"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
    assert whole.row_line.tolist() == [0, 0, 0, 1, 2, 2]
    assert whole.row_depth.tolist() == [0, 1, 2, 0, 0, 1]
