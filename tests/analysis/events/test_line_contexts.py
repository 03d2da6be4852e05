"""Contexts of a line's events on random lines: the names of an event and of all events around it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.events.line_contexts import (
    LineContexts,
    contexts_of,
    innermost,
    line_contexts,
    nearest,
    parents_within,
)
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.plain.random_threads import nested, ordered


def random_trace(rng: random.Random) -> Trace:
    """Three lines of nested events."""
    lines = {
        name: ordered(nested(rng, 0, rng.randint(10, 60), 4)) or [DrawnEvent("alone", 0, 5)] for name in "abc"
    }
    return build([DrawnPlane("/host:CPU", lines)])


def name_of(trace: Trace, event: int) -> str:
    return trace.strings[int(trace.event_names[trace.events["metadata"][event]])]


def around(trace: Trace, event: int) -> list[int]:
    """The event and those that contain it on its line, the outermost first: by comparing all pairs."""
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    line = trace.event_line
    return [
        other
        for other in range(event + 1)
        if line[other] == line[event] and start[other] <= start[event] and end[event] <= end[other]
    ]


def path_of(contexts: LineContexts, trace: Trace, context: int) -> list[str]:
    """Names from the root to a context."""
    path: list[str] = []
    while context >= 0:
        path.insert(0, trace.strings[int(trace.event_names[contexts.metadata[context]])])
        assert contexts.above[context] < context
        context = int(contexts.above[context])
    return path


@pytest.mark.parametrize("seed", range(8))
def test_contexts_of_a_line(seed: int) -> None:
    trace = random_trace(random.Random(f"contexts {seed}"))
    for line in range(3):
        found = line_contexts(trace, line)
        rows = range(found.rows.start, found.rows.stop)
        assert [int(trace.event_line[row]) for row in rows] == [line] * len(rows)
        assert found.start.tolist() == trace.events["start_ps"][found.rows].tolist()
        assert found.duration.tolist() == trace.events["duration_ps"][found.rows].tolist()
        for i, row in enumerate(rows):
            events = around(trace, row)
            assert path_of(found, trace, int(found.context[i])) == [name_of(trace, e) for e in events]
            assert found.parent[i] == (events[-2] - rows.start if len(events) > 1 else -1)
        assert [int(found.context[i]) for i in found.first] == list(range(len(found)))
        paths = {tuple(path_of(found, trace, context)) for context in range(len(found))}
        assert len(paths) == len(found)


@pytest.mark.parametrize("seed", range(8))
def test_contexts_of_some_events(seed: int) -> None:
    rng = random.Random(f"some {seed}")
    trace = random_trace(rng)
    line = int(trace.event_line[rng.randrange(trace.n_events)])
    rows = [row for row in range(trace.n_events) if trace.event_line[row] == line]
    chosen = np.array(rng.choices(rows, k=5))
    found = contexts_of(trace, chosen)
    assert len(found.context) == 5
    for event, context in zip(chosen.tolist(), found.context.tolist(), strict=True):
        assert path_of(found, trace, context) == [name_of(trace, e) for e in around(trace, event)]
    included = sorted({e for event in chosen.tolist() for e in around(trace, event)})
    assert (found.rows.start, found.rows.stop) == (included[0], included[-1] + 1)
    assert found.start.tolist() == trace.events["start_ps"][included].tolist()
    assert found.duration.tolist() == trace.events["duration_ps"][included].tolist()
    for i, event in enumerate(included):
        events = around(trace, event)
        assert found.parent[i] == (included.index(events[-2]) if len(events) > 1 else -1)
    for context, event in enumerate(found.first.tolist()):
        assert path_of(found, trace, context) == [name_of(trace, e) for e in around(trace, event)]


def test_contexts_of_no_events() -> None:
    trace = random_trace(random.Random(3))
    found = contexts_of(trace, np.empty(0, np.int64))
    assert (len(found), found.rows, len(found.context), len(found.parent)) == (0, slice(0, 0), 0, 0)


def test_events_with_other_marks_are_in_other_contexts() -> None:
    events = [DrawnEvent("f", 0, 10), DrawnEvent("g", 1, 2), DrawnEvent("f", 20, 10), DrawnEvent("g", 21, 2)]
    trace = build([DrawnPlane("/host:CPU", {"main": events})])
    assert line_contexts(trace, 0).context.tolist() == [0, 1, 0, 1]
    marked = line_contexts(trace, 0, np.array([4, 4, 7, 4], np.uint16))
    assert len(set(marked.context.tolist())) == 4
    assert marked.above[marked.context].tolist() == [-1, marked.context[0], -1, marked.context[2]]


@pytest.mark.parametrize("seed", range(6))
def test_the_innermost_event_at_each_moment(seed: int) -> None:
    trace = random_trace(random.Random(f"innermost {seed}"))
    rows = slice(int(trace.line_offsets[1]), int(trace.line_offsets[2]))
    start, end, event = innermost(trace, rows, parents_within(trace, rows))
    found = {
        moment: int(e)
        for a, b, e in zip(start, end, event, strict=True)
        for moment in range(int(a), int(b), 250_000)
    }
    begin, length = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    for moment in range(0, int((begin + length).max()) + 1, 250_000):
        running = [i for i in range(len(begin)) if begin[i] <= moment < begin[i] + length[i]]
        if moment in found or running:
            assert found.get(moment) == running[-1]


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_chosen_event(seed: int) -> None:
    rng = random.Random(f"nearest {seed}")
    parent = [rng.randint(max(-1, i - 3), i - 1) for i in range(30)]
    chosen = [rng.random() < 0.3 for _ in parent]
    expected = []
    for node in range(30):
        while node >= 0 and not chosen[node]:
            node = parent[node]
        expected.append(node)
    assert nearest(np.array(parent, np.int32), np.array(chosen)).tolist() == expected
