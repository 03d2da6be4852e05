"""Columns of events of both layers, and their parts within windows, compared with loops over single
events.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.analysis.query.facts import Codes
from tb_tpuprof.analysis.query.hits import covered_pixels
from tb_tpuprof.analysis.query.spans import MOST_DEPTH, Window, busy_ps, overlapping, parts_within
from tb_tpuprof.analysis.timeline.timeline import Timeline, timeline
from tb_tpuprof.analysis.timeline.totals import self_time
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build
from tests.tools.trace_viewer.questions import gpu

Int64s = npt.NDArray[np.int64]
SEEDS = range(6)


def nested(seed: int) -> Trace:
    """Three lines of properly nested events, and GPUs whose lines of steps and scopes are derived."""
    rng = np.random.default_rng(seed)
    lines: dict[str, list[DrawnEvent]] = {}
    for line in ("python", "worker", "tail"):
        events, at = [], int(rng.integers(0, 5)) * PS
        for _ in range(int(rng.integers(0, 9))):
            length = int(rng.integers(2, 30)) * PS
            events.append(DrawnEvent(str(rng.choice(["a", "b", "c"])), at, length))
            inner = at
            while rng.random() < 0.7 and inner + 2 * PS <= at + length:
                size = int(rng.integers(0, (at + length - inner) // PS)) * PS // 2
                events.append(DrawnEvent("inner", inner, size))
                if size >= 2 * PS:
                    events.append(DrawnEvent("leaf", inner + PS // 2, PS))
                inner += size + int(rng.integers(0, 3)) * PS
            at += length + int(rng.integers(0, 4)) * PS
        lines[line] = sorted(events, key=lambda event: (event.start_ps, -event.duration_ps))
    return build([DrawnPlane("/host:CPU", lines)])


def cases() -> Iterator[tuple[Trace, Timeline, list[Int64s]]]:
    """Traces with chosen events: none, one of each, all, every second one, those of one layer."""
    for trace in (gpu(), *map(nested, SEEDS)):
        drawn = timeline(trace)
        every = np.arange(drawn.n_events, dtype=np.int64)
        first = drawn.derived.first_event
        chosen = [every[:0], every, every[::2], every[:first], every[first:], every[-1:], every[:1]]
        yield trace, drawn, chosen


def test_columns_are_those_of_each_event() -> None:
    for trace, drawn, chosen in cases():
        codes = Codes(np.arange(trace.n_events, dtype=np.int32) % 5, tuple("abcde"))
        source = drawn.derived_events.source.tolist()
        for events in chosen:
            each = events.tolist()
            first = drawn.derived.first_event
            files = [event if event < first else source[event - first] for event in each]
            assert columns.are_recorded(drawn, events) == all(event < first for event in each)
            assert columns.lines(drawn, events).tolist() == [drawn.line_of(event) for event in each]
            assert columns.file_rows(drawn, events).tolist() == files
            assert columns.codes(drawn, events, codes).tolist() == [row % 5 for row in files]
            layers = [(drawn.layer_of(event), event) for event in each]
            local = [(layer, event - layer.first_event) for layer, event in layers]
            assert columns.starts(drawn, events).tolist() == [layer.start_ps[i] for layer, i in local]
            assert columns.durations(drawn, events).tolist() == [layer.duration_ps[i] for layer, i in local]
            assert columns.depths(drawn, events).tolist() == [layer.depth[i] for layer, i in local]
            names = [drawn.names.text(name) for name in columns.names(trace, drawn, events).tolist()]
            assert len(names) == len(each)
            for event, name in zip(each, names, strict=True):
                made = drawn.derived_events
                if event >= first:
                    assert name == made.texts[made.name[event - first]]
                else:
                    row = int(trace.event_names[trace.events["metadata"][event]])
                    assert name.startswith(trace.strings[row])


def brute_self(drawn: Timeline, event: int) -> int:
    """The duration without the events of the next row that begin within it."""
    layer = drawn.layer_of(event)
    i = event - layer.first_event
    line, start = drawn.line_of(event) - layer.first_line, int(layer.start_ps[i])
    end = start + int(layer.duration_ps[i])
    of_line = range(int(layer.line_offsets[line]), int(layer.line_offsets[line + 1]))
    inner = [
        int(layer.duration_ps[j])
        for j in of_line
        if j > i and layer.depth[j] == layer.depth[i] + 1 and start <= layer.start_ps[j] < end
    ]
    return end - start - sum(inner)


def test_self_times_are_the_same_of_few_events_and_of_all() -> None:
    for trace, drawn, chosen in cases():
        expected = [brute_self(drawn, event) for event in range(drawn.n_events)]
        for events in chosen:
            assert columns.self_times(trace, drawn, events).tolist() == [expected[i] for i in events.tolist()]
        for event in range(drawn.n_events):
            alone = np.array([event], np.int64)
            assert columns.self_times(trace, drawn, alone).tolist() == [expected[event]]
            assert self_time(drawn, event) == expected[event]


def test_the_number_of_events_within_others() -> None:
    """For each of the events, those of its line from itself on that begin before its end."""
    for _trace, drawn, chosen in cases():
        for events in chosen:
            n = 0
            for event in events.tolist():
                layer = drawn.layer_of(event)
                i = event - layer.first_event
                line = drawn.line_of(event) - layer.first_line
                end = layer.start_ps[i] + layer.duration_ps[i]
                n += sum(layer.start_ps[j] < end for j in range(i, int(layer.line_offsets[line + 1])))
            assert columns._n_within(drawn, events) == n


@pytest.mark.parametrize("many", [False, True])
def test_parts_within_windows(monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    """`many`: those of many events are first narrowed line by line."""
    if many:
        monkeypatch.setattr("tb_tpuprof.analysis.query.spans._MANY", 1)
    rng = np.random.default_rng(5)
    for trace, drawn, chosen in cases():
        for events in chosen:
            for _ in range(4):
                low = int(rng.integers(0, 60)) * PS // 2
                window = Window(low, low + int(rng.integers(1, 60)) * PS // 2)
                check_parts(trace, drawn, events, window)


def check_parts(trace: Trace, drawn: Timeline, events: Int64s, window: Window) -> None:
    start, duration = (column(drawn, events).tolist() for column in (columns.starts, columns.durations))
    expected = []
    for event, at, took in zip(events.tolist(), start, duration, strict=True):
        if at < window.end_ps and at + max(took, 1) > window.start_ps:
            part = max(min(at + took, window.end_ps) - max(at, window.start_ps), 0)
            expected.append((event, part, part - inner_part(drawn, event, window)))
    parts = parts_within(trace, drawn, events, window)
    columns_of = (parts.events, parts.part_ps, parts.self_ps)
    assert list(zip(*(column.tolist() for column in columns_of), strict=True)) == expected
    assert overlapping(drawn, events, window).tolist() == [event for event, *_ in expected]


def inner_part(drawn: Timeline, event: int, window: Window) -> int:
    """The parts within a window of the events directly inside an event."""
    layer = drawn.layer_of(event)
    i = event - layer.first_event
    line, start = drawn.line_of(event) - layer.first_line, int(layer.start_ps[i])
    end = start + int(layer.duration_ps[i])
    total = 0
    for j in range(i + 1, int(layer.line_offsets[line + 1])):
        at = int(layer.start_ps[j])
        if layer.depth[j] == layer.depth[i] + 1 and start <= at < end:
            until = min(at + int(layer.duration_ps[j]), window.end_ps)
            total += max(until - max(at, window.start_ps), 0)
    return total


def test_without_a_window_parts_are_whole() -> None:
    for trace, drawn, chosen in cases():
        for events in chosen:
            parts = parts_within(trace, drawn, events, None)
            assert parts.events is events
            assert parts.part_ps.tolist() == columns.durations(drawn, events).tolist()
            assert parts.self_ps.tolist() == columns.self_times(trace, drawn, events).tolist()


@pytest.mark.parametrize(
    ("depths", "rows"),
    [((0, MOST_DEPTH), [0, 1, 2]), ((0, 0), [0]), ((1, 1), [1]), ((1, MOST_DEPTH), [1, 2]), ((0, 1), [0, 1])],
)
def test_a_window_can_be_of_some_rows(depths: tuple[int, int], rows: list[int]) -> None:
    events = [DrawnEvent("a", 0, 9 * PS), DrawnEvent("b", PS, 7 * PS), DrawnEvent("c", 2 * PS, 3 * PS)]
    drawn = timeline(build([DrawnPlane("/host:CPU", {"main": events})]))
    assert overlapping(drawn, np.arange(3), Window(0, 9 * PS, *depths)).tolist() == rows


def test_events_without_duration_count_as_a_picosecond() -> None:
    drawn = timeline(build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 10, 0)]})]))
    for window, n in ((Window(10, 11), 1), (Window(0, 10), 0), (Window(11, 20), 0), (Window(0, 11), 1)):
        assert len(overlapping(drawn, np.arange(1), window)) == n


def test_time_that_the_events_of_a_line_cover() -> None:
    rng = np.random.default_rng(9)
    for _trace, drawn, _chosen in cases():
        for layer in drawn.layers:
            for line in range(layer.n_lines):
                low = int(rng.integers(0, 40)) * PS // 2
                window = Window(low, low + int(rng.integers(1, 60)) * PS // 2)
                covered = set()
                for j in range(int(layer.line_offsets[line]), int(layer.line_offsets[line + 1])):
                    at = max(int(layer.start_ps[j]), window.start_ps) * 2 // PS
                    until = min(int(layer.start_ps[j] + layer.duration_ps[j]), window.end_ps) * 2 // PS
                    covered.update(range(at, until))
                for may_cross in (False, True):
                    if layer.n_depths[line]:
                        assert busy_ps(layer, line, window, may_cross) == len(covered) * PS // 2


def test_events_that_cross_are_covered_once() -> None:
    events = [DrawnEvent("a", 0, 6), DrawnEvent("b", 4, 6), DrawnEvent("c", 5, 3), DrawnEvent("d", 20, 5)]
    layer = timeline(build([DrawnPlane("/host:CPU", {"main": events})])).file
    assert busy_ps(layer, 0, Window(0, 100), True) == 15
    assert busy_ps(layer, 0, Window(2, 22), True) == 10
    assert busy_ps(layer, 0, Window(11, 20), True) == 0
    assert busy_ps(layer, 0, Window(30, 40), True) == 0


@pytest.mark.parametrize("n_pixels", [1, 7, 40])
def test_pixels_that_events_touch(n_pixels: int) -> None:
    rng = np.random.default_rng(n_pixels)
    for _trace, drawn, chosen in cases():
        for events in chosen:
            low, pixel = int(rng.integers(0, 30)) * PS // 2, int(rng.integers(1, 6)) * PS // 2 + 1
            high = low + pixel * n_pixels - int(rng.integers(0, pixel))
            touched = [0] * n_pixels
            starts, durations = columns.starts(drawn, events), columns.durations(drawn, events)
            for at, took in zip(starts.tolist(), durations.tolist(), strict=True):
                end = at + max(took, 1)
                for number in range(n_pixels):
                    begin = low + number * pixel
                    touched[number] += at < min(begin + pixel, high) and end > begin and at < high
            assert covered_pixels(drawn, events, (low, high, pixel), n_pixels).tolist() == touched


def test_pixels_of_a_picosecond() -> None:
    """An event without duration touches one pixel; one that begins before or ends behind the window all
    within.
    """
    spans = ((0, 7), (6, 0), (8, 1), (9, 2), (13, 50), (20, 3))
    events = [DrawnEvent("a", start, length) for start, length in spans]
    drawn = timeline(build([DrawnPlane("/host:CPU", {"main": events})]))
    every = np.arange(len(events), dtype=np.int64)
    assert covered_pixels(drawn, every, (5, 15, 1), 10).tolist() == [1, 2, 0, 1, 1, 1, 0, 0, 1, 1]
