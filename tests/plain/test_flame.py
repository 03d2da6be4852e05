"""Merged stacks of random threads, compared with plain loops over every unit of time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tb_tpuprof.analysis.flame.frames import frames
from tb_tpuprof.analysis.flame.function import N_CALLS, function_sides
from tb_tpuprof.analysis.flame.nodes import Node, functions, shown_nodes
from tb_tpuprof.analysis.flame.stacks import Stacks, stacks
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.plain.plain_flame import Event, Path, plain_flame, plain_function

NAMES = ("$train.py:1 main", "$train.py:9 load", "$queue.py:4 get", "f", "op/x:MatMul", "$time sleep")
Windows = list[tuple[int, int]]


def random_line(rng: random.Random, start: int, end: int, depth: int = 0) -> list[Event]:
    """Events side by side and inside one another."""
    events: list[Event] = []
    now = start + rng.randint(0, 3)
    while now < end and depth < 5 and len(events) < 30:
        length = rng.randint(1, max(end - now, 1))
        if now + length > end:
            break
        events.append((now, now + length, rng.choice(NAMES)))
        if rng.random() < 0.7:
            events += random_line(rng, now, now + length, depth + 1)
        now += length + rng.randint(0, 4)
    return events


def random_windows(rng: random.Random) -> Windows:
    edges = sorted(rng.sample(range(70), 2 * rng.randint(1, 4)))
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]


def trace_of(lines: list[list[Event]]) -> Trace:
    drawn = {
        f"thread {i}": [DrawnEvent(name, start, end - start) for start, end, name in events]
        for i, events in enumerate(lines)
    }
    return build([DrawnPlane("/host:CPU", drawn)])


def ordered(events: list[Event]) -> list[Event]:
    """As a trace has them: by start, longer ones first, those that are equal as they were nested."""
    return [events[i] for i in sorted(range(len(events)), key=lambda i: (events[i][0], -events[i][1], i))]


def paths_of(trace: Trace, tree: Stacks) -> list[Path]:
    paths: list[Path] = []
    for above, name in zip(tree.above.tolist(), tree.name.tolist(), strict=True):
        paths.append((*(paths[above] if above >= 0 else ()), trace.strings[name]))
    return paths


@pytest.mark.parametrize("seed", range(150))
def test_trees_of_random_threads(seed: int) -> None:
    rng = random.Random(seed)
    lines = [ordered(random_line(rng, 0, 60)) for _ in range(4)]
    trace = trace_of(lines)
    sets = [random_windows(rng) for _ in range(2)]
    windows = [tuple(np.array(column, np.int64) for column in zip(*one, strict=True)) for one in sets]
    tree = stacks(trace, [[0, 1], [2], [3]], windows)  # type: ignore[arg-type]
    paths = paths_of(trace, tree)
    for k, one in enumerate(sets):
        for group, members in enumerate(([0, 1], [2], [3])):
            expected = plain_flame([lines[line] for line in members], one)
            rows = np.flatnonzero(tree.group == group).tolist()
            found = {
                paths[row]: (
                    int(tree.own_ps[k, row]), int(tree.total_ps[k, row]), int(tree.calls[k, row])
                )
                for row in rows
            }  # fmt: skip
            assert len(found) == len(rows)  # a path is one node
            assert {path: times for path, times in found.items() if any(times)} == expected
    covered = sum(sum(end - start for start, end in merged(line, sets[0])) for line in lines)
    assert int(tree.own_ps[0].sum()) == covered


def merged(events: list[Event], windows: Windows) -> list[tuple[int, int]]:
    """The time that any event covers within windows, unit by unit."""
    return [
        (moment, moment + 1)
        for opens, closes in windows
        for moment in range(opens, closes)
        if any(start <= moment < end for start, end, _ in events)
    ]


@pytest.mark.parametrize("seed", range(80))
def test_functions_and_their_sides(seed: int) -> None:
    rng = random.Random(1000 + seed)
    lines = [ordered(random_line(rng, 0, 60)) for _ in range(3)]
    trace = trace_of(lines)
    one = random_windows(rng)
    window = tuple(np.array(column, np.int64) for column in zip(*one, strict=True))
    tree = stacks(trace, [[0, 1, 2]], [window])  # type: ignore[list-item]
    found = frames(trace, tree)
    flame = plain_flame(lines, one)
    by_name = {one.name: one for one in functions(tree, found, trace.strings, [0])}
    for name in NAMES:
        own, total, calls, callers, callees = plain_function(flame, name)
        sides = function_sides(trace, tree, found, name, (window, window))  # type: ignore[arg-type]
        if sides is None:
            assert not any(path[-1] == name for path in flame)
            continue
        assert (sides.own_ps, sides.total_ps, sides.n_calls) == (own, total, calls)
        if own:
            assert (by_name[name].own_ps, by_name[name].total_ps) == ([own], [total])
        assert by_level(sides.callers) == {k: time for k, time in callers.items() if time}
        assert by_level(sides.callees) == {k: time for k, time in callees.items() if time}
        assert int(sides.step_own_ps.sum()) == own
        assert int(sides.step_total_ps.sum()) == total


def whole(nodes: list[Node]) -> dict[Path, tuple[int, int]]:
    """(total time, calls) of the nodes that take time, by the names on the way from the root."""
    paths: list[Path] = []
    for node in nodes:
        paths.append((*(paths[node.parent] if node.parent >= 0 else ()), node.name))
    assert len(set(paths)) == len(paths)
    return {
        path: (node.total_ps[0], node.calls[0])
        for path, node in zip(paths, nodes, strict=True)
        if node.total_ps[0]
    }


@pytest.mark.parametrize("seed", range(40))
def test_whole_trees_of_callers_and_callees(seed: int) -> None:
    """Summed over all call paths of a function, outermost calls only; its time in each window; its longest
    calls.
    """
    rng = random.Random(2000 + seed)
    lines = [ordered(random_line(rng, 0, 60)) for _ in range(3)]
    trace, one = trace_of(lines), random_windows(rng)
    window = tuple(np.array(column, np.int64) for column in zip(*one, strict=True))
    tree = stacks(trace, [[0], [1, 2]], [window])  # type: ignore[list-item]
    found, flame = frames(trace, tree), plain_flame(lines, one)
    for name in NAMES:
        sides = function_sides(trace, tree, found, name, (window, window))  # type: ignore[arg-type]
        if sides is None:
            continue
        callers: dict[Path, tuple[int, int]] = {}
        callees: dict[Path, tuple[int, int]] = {}
        for path, (_, total, calls) in flame.items():
            if name not in path or not total:
                continue
            first = path.index(name)
            below = path[first:]
            time, n = callees.get(below, (0, 0))
            callees[below] = time + total, n + calls
            if first == len(path) - 1:
                for k in range(1, len(path) + 1):
                    above = path[::-1][:k]
                    time, n = callers.get(above, (0, 0))
                    callers[above] = time + total, n + calls
        assert whole(sides.callers) == callers
        assert whole(sides.callees) == callees
        each = [plain_function(plain_flame(lines, [bounds]), name)[:2] for bounds in one]
        assert list(zip(sides.step_own_ps.tolist(), sides.step_total_ps.tolist(), strict=True)) == each
        in_window = sorted(
            (start - end, start)
            for line in lines
            for start, end, called in line
            if called == name and any(opens < end and start < closes for opens, closes in one)
        )
        longest = list(
            zip((-sides.longest.duration_ps).tolist(), sides.longest.start_ps.tolist(), strict=True)
        )
        assert [length for length, _ in longest] == [length for length, _ in in_window[:N_CALLS]]
        assert set(longest) <= set(in_window)
        assert trace.events["start_ps"][sides.longest.event].tolist() == sides.longest.start_ps.tolist()


def by_level(nodes: list[Node]) -> dict[str, int]:
    """Time of the nodes next to the root, by name."""
    result: dict[str, int] = {}
    for node in nodes:
        if node.parent >= 0 and nodes[node.parent].parent < 0 and node.total_ps[0]:
            result[node.name] = result.get(node.name, 0) + node.total_ps[0]
    return result


@pytest.mark.parametrize(("seed", "limit"), [(1, 3), (2, 5), (3, 9), (4, 1), (5, 10_000)])
def test_a_cut_tree_keeps_all_time(seed: int, limit: int) -> None:
    rng = random.Random(seed)
    lines = [ordered(random_line(rng, 0, 60)) for _ in range(3)]
    trace = trace_of(lines)
    window = np.array([0]), np.array([70])
    tree = stacks(trace, [[0], [1], [2]], [window])
    nodes = shown_nodes(tree, frames(trace, tree), trace.strings, [2, 0], limit)
    assert sum(not node.n_smaller for node in nodes) <= limit
    is_shown = tree.group != 1
    assert sum(node.own_ps[0] for node in nodes) == int(tree.own_ps[0, is_shown].sum())
    assert sum(node.calls[0] for node in nodes if node.total_ps[0]) <= int(tree.calls[0, is_shown].sum())
    for i, node in enumerate(nodes):
        below = [one for one in nodes if one.parent == i]
        assert node.total_ps[0] == node.own_ps[0] + sum(one.total_ps[0] for one in below)
        assert node.parent < i
