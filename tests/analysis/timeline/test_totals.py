"""Neighbors, ancestors, totals and histograms of the timeline on random lines, compared with plain loops."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tb_tpuprof.analysis.timeline.timeline import Timeline, timeline
from tb_tpuprof.analysis.timeline.totals import (
    N_BINS,
    Stretch,
    ancestors,
    bin_edges,
    busy_fractions,
    first_within,
    name_totals,
    neighbour,
    same_name,
    self_time,
    totals,
)
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build

NAMES = ("load", "step", "save", "get")


def random_trace(rng: random.Random) -> Trace:
    """Three lines of nested events of a few units, with instants and gaps."""
    return build(
        [
            DrawnPlane("/host:CPU", {"a": line(rng), "b": line(rng)}),
            DrawnPlane("/host:other", {"c": line(rng)}),
        ]
    )


def line(rng: random.Random) -> list[DrawnEvent]:
    events: list[DrawnEvent] = []

    def fill(first: int, last: int, depth: int) -> None:
        at = first + rng.randint(0, 3)
        while at < last and depth:
            end = min(last, at + rng.randint(0, 14))
            events.append(DrawnEvent(rng.choice(NAMES), at, end - at))
            fill(at, end, depth - 1)
            at = end + rng.randint(0, 4)

    fill(0, 60, 3)
    return sorted(events or [DrawnEvent("load", 3, 4)], key=lambda one: (one.start_ps, -one.duration_ps))


class Plain:
    """Events of a trace as lists; depths as the timeline has drawn them."""

    def __init__(self, trace: Trace, drawn: Timeline) -> None:
        self.start = trace.events["start_ps"].tolist()
        self.end = (trace.events["start_ps"] + trace.events["duration_ps"]).tolist()
        self.line = trace.event_line.tolist()
        self.depth = drawn.file.depth.tolist()
        self.name = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]

    def __len__(self) -> int:
        return len(self.start)

    def above(self, event: int) -> list[int]:
        """Events that contain it, by line and depth, the innermost first."""
        return [
            other
            for other in range(event - 1, -1, -1)
            if self.line[other] == self.line[event]
            and self.depth[other] < self.depth[event]
            and self.start[other] <= self.start[event]
            and self.end[other] >= self.end[event]
        ]


@pytest.fixture(params=range(6))
def drawn_trace(request: pytest.FixtureRequest) -> tuple[Trace, Timeline, Plain]:
    trace = random_trace(random.Random(f"totals {request.param}"))
    return trace, timeline(trace), Plain(trace, timeline(trace))


Drawn = tuple[Trace, Timeline, Plain]


def test_no_two_events_of_a_row_overlap_and_containers_are_above(drawn_trace: Drawn) -> None:
    _, _, plain = drawn_trace
    for a in range(len(plain)):
        for b in range(a):
            if plain.line[a] != plain.line[b]:
                continue
            if plain.depth[a] == plain.depth[b]:
                assert plain.end[b] <= plain.start[a] or plain.start[a] == plain.start[b] == plain.end[b]
            if (
                plain.start[b] <= plain.start[a]
                and plain.end[a] <= plain.end[b]
                and plain.start[a] < plain.end[b]
            ):
                assert plain.depth[b] < plain.depth[a]


def test_ancestors_are_the_events_around_innermost_first(drawn_trace: Drawn) -> None:
    _, drawn, plain = drawn_trace
    for event in range(len(plain)):
        if plain.end[event] == plain.start[event]:
            continue
        expected = plain.above(event)
        assert ancestors(drawn, event, 99) == expected
        assert ancestors(drawn, event, 1) == expected[:1]


def test_neighbours_on_the_row_else_on_the_line(drawn_trace: Drawn) -> None:
    _, drawn, plain = drawn_trace
    for event in range(len(plain)):
        for is_next, step in ((True, 1), (False, -1)):
            of_line = [e for e in range(len(plain)) if plain.line[e] == plain.line[event]]
            of_row = [e for e in of_line if plain.depth[e] == plain.depth[event]]
            beside = of_row.index(event) + step
            expected = of_row[beside] if 0 <= beside < len(of_row) else -1
            if expected < 0:
                beside = of_line.index(event) + step
                expected = of_line[beside] if 0 <= beside < len(of_line) else -1
            assert neighbour(drawn, event, is_next) == expected


def test_the_first_event_within(drawn_trace: Drawn) -> None:
    _, drawn, plain = drawn_trace
    for event in range(len(plain)):
        inside = [
            e
            for e in range(len(plain))
            if plain.line[e] == plain.line[event]
            and plain.depth[e] == plain.depth[event] + 1
            and plain.start[event] <= plain.start[e] < max(plain.end[event], plain.start[event] + 1)
        ]
        assert first_within(drawn, event) == (inside[0] if inside else -1)


def test_totals_of_a_range_by_name(drawn_trace: Drawn) -> None:
    """Clipped durations of two of the lines and of some depths."""
    trace, drawn, plain = drawn_trace
    for first, last, lines, depths in (
        (10, 40, (0, 2), (0, 9)),
        (0, 99, (1,), (1, 1)),
        (30, 31, (0, 1, 2), (0, 1)),
    ):
        found = totals(trace, drawn, drawn.file, np.array(lines), Stretch(first, last, *depths))
        expected: dict[str, list[int]] = {}
        for e in range(len(plain)):
            is_in = plain.start[e] < last and plain.end[e] > first and plain.end[e] > plain.start[e]
            if plain.line[e] in lines and is_in and depths[0] <= plain.depth[e] <= depths[1]:
                expected.setdefault(plain.name[e], []).append(
                    min(plain.end[e], last) - max(plain.start[e], first)
                )
        with_time = {
            trace.strings[name]: (n, total, low, high)
            for name, n, total, low, high in zip(
                found.name.tolist(),
                found.n.tolist(),
                found.total_ps.tolist(),
                found.min_ps.tolist(),
                found.max_ps.tolist(),
                strict=True,
            )
            if total
        }
        for name, parts in expected.items():
            n, total, low, high = with_time[name]
            assert (total, high) == (sum(parts), max(parts))
            # Events without duration count, too.
            assert n >= len(parts)
            assert low <= min(parts)
        assert set(with_time) == set(expected)


def test_ranges_of_events_that_contain_a_window(drawn_trace: Drawn) -> None:
    """From the first event that ends in or behind it to the last one that begins before its end."""
    _, drawn, plain = drawn_trace
    for first, last in ((0, 1), (10, 30), (25, 26), (40, 99), (70, 80)):
        for line, (begin, end) in zip(
            (2, 0, 1), drawn.file.spans_within(np.array([2, 0, 1]), first, last), strict=True
        ):
            events = [e for e in range(len(plain)) if plain.line[e] == line]
            behind = [e for e in events if max(plain.end[e], plain.start[e] + 1) > first]
            assert begin == (behind[0] if behind else events[-1] + 1)
            assert end == max(begin, events[0] + sum(plain.start[e] < last for e in events))


def test_statistics_of_one_name(drawn_trace: Drawn) -> None:
    trace, drawn, plain = drawn_trace
    for event in range(0, len(plain), 3):
        durations = [
            plain.end[e] - plain.start[e] for e in range(len(plain)) if plain.name[e] == plain.name[event]
        ]
        found = same_name(trace, drawn, event)
        assert (found.n, found.total_ps) == (len(durations), sum(durations))
        assert (found.min_ps, found.max_ps) == (min(durations), max(durations))
        edges = found.edges.tolist()
        counts = [
            sum(low <= one < high or (one == high == edges[-1]) for one in durations)
            for low, high in itertools.pairwise(edges)
        ]
        assert found.counts.tolist() == counts
        assert sum(counts) == len(durations)


def test_totals_of_each_name(drawn_trace: Drawn) -> None:
    trace, _, plain = drawn_trace
    table = name_totals(trace)
    for row in range(len(trace.metadata)):
        events = [e for e in range(len(plain)) if trace.events["metadata"][e] == row]
        durations = [plain.end[e] - plain.start[e] for e in events]
        assert table[:, row].tolist() == [len(durations), sum(durations), min(durations), max(durations)]


def test_self_time_is_without_the_events_directly_inside() -> None:
    inner = [DrawnEvent("a", 10, 50), DrawnEvent("b", 10, 20), DrawnEvent("c", 12, 5), DrawnEvent("d", 40, 3)]
    trace = build(
        [DrawnPlane("/host:CPU", {"x": [DrawnEvent("z", 0, 100)], "y": [*inner, DrawnEvent("e", 60, 7)]})]
    )
    drawn = timeline(trace)
    assert [self_time(drawn, event) for event in range(6)] == [100, 27, 15, 5, 3, 7]


def test_shares_of_pixels_are_means_over_the_lines() -> None:
    lines = {
        "a": [DrawnEvent("x", 0, 30), DrawnEvent("y", 5, 10), DrawnEvent("x", 45, 5)],
        "b": [DrawnEvent("x", 20, 20)],
        "c": [DrawnEvent("x", 0, 60)],
    }
    drawn = timeline(build([DrawnPlane("/host:CPU", lines)]))
    assert busy_fractions(drawn, np.array([0]), 20, 3, 0).tolist() == [1.0, 0.5, 0.25]
    assert busy_fractions(drawn, np.array([0, 1, 2]), 20, 3, 0).tolist() == pytest.approx(
        [2 / 3, 2.5 / 3, 1.25 / 3]
    )
    assert busy_fractions(drawn, np.array([], np.int64), 20, 3, 0).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 5), (1, 30), (7, 8), (10**3, 10**9), (0, 10**12), (5, 24), (2, 60)]
)
def test_edges_of_bins(low: int, high: int) -> None:
    edges = bin_edges(low, high).tolist()
    assert edges[0] == low
    assert edges[-1] == high
    assert 2 <= len(edges) <= N_BINS + 1
    assert edges == sorted(set(edges))
    if high - low > 10**6:
        assert len(edges) == N_BINS + 1
    if low and high / low > 10**4:  # bins of equal ratio
        ratios = [b / a for a, b in itertools.pairwise(edges)]
        assert max(ratios) == pytest.approx(min(ratios), rel=0.01)


def test_one_bin_for_equal_durations() -> None:
    assert bin_edges(7, 7).tolist() == [7, 8]
    assert bin_edges(0, 0).tolist() == [0, 1]
