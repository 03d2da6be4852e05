"""Parents, overlaps and functions of tf.data's iterator events on random numbers, compared with
plain loops.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.tf_data.forest import (
    _covered,
    _executed,
    _first_later,
    count_unplaced,
    forest,
    has_iterators,
)
from tb_tpuprof.analysis.tf_data.pipeline import pipelines
from tb_tpuprof.analysis.tf_data.source import _within, source_of
from tb_tpuprof.trace.trace import Trace
from tests.analysis.tf_data.test_tf_data import MAP, PREFETCH, RANGE, ROOT, event, plane
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing

RUN = "InstantiatedCapturedFunction::Run"


@pytest.mark.parametrize("seed", range(20))
def test_the_first_entry_of_a_key_that_is_not_earlier(seed: int) -> None:
    rng = random.Random(f"first later {seed}")
    table = [(rng.randint(-2, 2), rng.randint(0, 9)) for _ in range(rng.randint(0, 9))]
    asked = [(rng.randint(-2, 3), rng.randint(0, 10)) for _ in range(rng.randint(0, 9))]
    expected = []
    for key, time in asked:
        later = [(at, i) for i, (other, at) in enumerate(table) if other == key and at >= time]
        expected.append(min(later)[1] if later else -1)
    columns = (np.array(column, np.int64) for column in ([k for k, _ in asked], [t for _, t in asked]))
    entries = (np.array(column, np.int64) for column in ([k for k, _ in table], [t for _, t in table]))
    assert _first_later(*columns, *entries).tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_time_that_any_child_covers(seed: int) -> None:
    """Parents from 0 on, children before, in and after them."""
    rng = random.Random(f"covered {seed}")
    n = rng.randint(1, 12)
    start = [rng.randint(0, 20) for _ in range(n)]
    duration = [rng.randint(0, 12) for _ in range(n)]
    parent = [rng.choice([-1, *(i for i in range(n) if i != k)]) for k in range(n)]
    overlap, expected = [], [0] * n
    moments: list[set[int]] = [set() for _ in range(n)]
    for k, above in enumerate(parent):
        shared: set[int] = set()
        if above >= 0:
            shared = set(range(start[k], start[k] + duration[k])) & set(
                range(start[above], start[above] + duration[above])
            )
            moments[above] |= shared
        overlap.append(len(shared))
    expected = [len(one) for one in moments]
    base: Any = SimpleNamespace(row=np.arange(n), start=np.array(start), duration=np.array(duration))
    assert _covered(base, np.array(parent), np.array(overlap)).tolist() == expected


def test_elements_that_are_taken_out_of_order() -> None:
    """Two elements were made before the first call, which takes the second one; another range has
    no taker.
    """
    consumer = [
        event(ROOT, 100, 50, id=1),
        event(PREFETCH, 101, 40, id=2, parent_id=1),
        event("PrefetchConsume", 120, 0.5, element_id=8),
        event(ROOT, 200, 50, id=1),
        event(PREFETCH, 201, 40, id=2, parent_id=1),
        event("PrefetchConsume", 220, 0.5, element_id=7),
    ]
    producer = [
        event("PrefetchProduce", 4, 30, element_id=7),
        event(MAP, 5, 20, id=3, parent_id=2),
        event("PrefetchProduce", 44, 40, element_id=8),
        event(MAP, 45, 30, id=3, parent_id=2),
        event(RANGE, 46, 5, id=4, parent_id=3),
        event("PrefetchProduce", 90, 9, element_id=9),
        event(MAP, 91, 3, id=3, parent_id=2),
    ]
    found = forest(build([plane(consumer=consumer, producer=producer)]))
    calls = {
        (found.stages[found.node[i]], int(found.duration_ps[i]) // PS): (
            int(found.start_ps[found.call[i]]) // PS
        )
        for i in range(len(found))
        if found.call[i] >= 0
    }
    assert calls == {
        (ROOT, 50): 200,
        (PREFETCH, 40): 200,
        (MAP, 20): 200,
        (MAP, 30): 100,
        (RANGE, 5): 100,
    }
    assert not found.is_blocking[found.node == found.stages.index(MAP)].any()
    assert (found.after_ps[found.node == found.stages.index(PREFETCH)] / PS).tolist() == [21, 21]


def test_what_has_no_place_is_counted() -> None:
    """A map whose range and taker are not in the trace, an event without an id, and a pair that feed each
    other.
    """
    lonely = [event(MAP, 0, 5, id=9, parent_id=77), event(RANGE, 1, 2)]
    found = count_unplaced(build([plane(main=lonely)]))
    assert (found.n_events, found.n_orphans, found.n_in_cycles, found.n_without_id) == (2, 2, 0, 1)
    assert has_iterators(build([plane(main=lonely)]))
    assert not has_iterators(drawing("main  [MakeIterator::Root ][a ]"))
    device = DrawnPlane("/device:GPU:0", {"s": [DrawnEvent(ROOT, 0, 5)]})
    assert not has_iterators(build([device]))


def test_time_of_executors_by_id() -> None:
    """A run's executor works in two pieces; a run without an id, and one whose executor was not captured."""
    events = [
        DrawnEvent(RUN, 100, 50, {"id": 5}),
        DrawnEvent(RUN, 200, 50, {"id": 6}),
        DrawnEvent(RUN, 300, 50),
    ]
    pool = [
        DrawnEvent(EXECUTOR, 130, 10, {"id": 5}),
        DrawnEvent(EXECUTOR, 120, 7, {"id": 5}),
        DrawnEvent(EXECUTOR, 310, 9),
    ]
    trace = build(
        [DrawnPlane("/host:CPU", {"main": events, "pool": sorted(pool, key=lambda one: one.start_ps)})]
    )
    took, began = _executed(trace, np.array([0, 1, 2]))
    assert (took.tolist(), began.tolist()) == ([17, 0, 0], [120, 200, 300])


def test_functions_of_stages_and_their_waits_for_a_thread() -> None:
    """On the caller's thread a map runs for 100 µs, of which its function waits 50 for a thread and works 30;
    more than 20 µs of waiting are not the stage's work.
    """
    consumer = [
        event(ROOT, 0, 200, id=1),
        event(MAP.replace("::Prefetch", ""), 10, 100, id=3, parent_id=1),
        event(RUN, 15, 90, id=44),
    ]
    trace = build([plane(consumer=consumer, pool=[event(EXECUTOR, 65, 30, id=44)])])
    found = forest(trace)
    assert (found.function_ps / PS).tolist() == [0, 30]
    assert (found.self_ps / PS).tolist() == [100, 100]
    assert (found.work_ps / PS).tolist() == [100, 70]
    assert (found.runs.took_ps[0] / PS, found.runs.late_ps[0] / PS, found.runs.event.tolist()) == (
        30,
        50,
        [1],
    )
    assert trace.events["start_ps"][found.runs.row[0]] == 15 * PS


@pytest.mark.parametrize("seed", range(10))
def test_events_within_others_of_their_line(seed: int) -> None:
    rng = random.Random(f"within {seed}")
    lines: dict[str, list[DrawnEvent]] = {}
    for name in ("a", "b", "c"):
        at, events = rng.randint(0, 3), []
        while at < 40:
            length = rng.randint(2, 9)
            events.append(DrawnEvent("outer", at, length))
            for _ in range(rng.randint(0, 2)):
                first = rng.randint(at, at + length - 1)
                events.append(DrawnEvent("inner", first, rng.randint(0, at + length + 1 - first)))
            at += length + rng.randint(0, 3)
        lines[name] = sorted(events, key=lambda one: (one.start_ps, -one.duration_ps, one.name != "outer"))
    trace = build([DrawnPlane("/host:CPU", lines)])
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    outer = [i for i, name in enumerate(names) if name == "outer" and rng.random() < 0.7]
    inner = [i for i, name in enumerate(names) if name == "inner"]
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    expected = [
        any(
            trace.event_line[o] == trace.event_line[i] and o < i and start[o] <= start[i] and end[i] <= end[o]
            for o in outer
        )
        for i in inner
    ]
    assert _within(trace, np.array(inner, np.intp), np.array(outer, np.intp)).tolist() == expected
    assert _within(trace, np.array(inner, np.intp), np.empty(0, np.intp)).tolist() == [False] * len(inner)


def traced(frames: list[DrawnEvent]) -> Trace:
    """A map of 90 µs whose function runs on the pool, with frames of Python there."""
    stage = MAP.replace("::Prefetch", "")
    consumer = [event(ROOT, 0, 100, id=1), event(stage, 5, 90, id=3, parent_id=1), event(RUN, 6, 88, id=44)]
    return build([plane(consumer=consumer, pool=[event(EXECUTOR, 10, 80, id=44), *frames])])


def test_the_user_s_function_is_the_longest_frame_outside_of_the_framework() -> None:
    frames = [
        event("$script_ops.py:140 __call__", 11, 78),
        event("$/x/train.py:31 augment", 12, 40),
        event("$/x/data.py:7 decode", 53, 20),
        event("$/x/data.py:7 decode", 74, 14),
        event("$/x/late.py:7 after", 95, 60),
    ]
    trace = traced(frames)
    assert source_of(trace, pipelines(trace)[0]) == "`augment` (train.py:31)"
    trace = traced([*frames[:1], event("$/x/train.py:31 augment", 12, 30), *frames[2:]])
    assert source_of(trace, pipelines(trace)[0]) == "`decode` (data.py:7)"
    trace = traced(frames[:1])
    assert source_of(trace, pipelines(trace)[0]) == ""
