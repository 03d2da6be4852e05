"""A flame graph in the plainest way: every event looked at in every unit of time, paths as tuples
of names.
"""

from __future__ import annotations

from collections.abc import Sequence

Event = tuple[int, int, str]  # start, end, name; well nested, outer ones first
Path = tuple[str, ...]


def chains(events: Sequence[Event]) -> list[Path]:
    """The names of the events around each, outermost first, its own last."""
    result: list[Path] = []
    for i, (start, end, name) in enumerate(events):
        around = [other[2] for other in events[:i] if other[0] <= start and end <= other[1]]
        result.append((*around, name))
    return result


def plain_flame(
    lines: Sequence[Sequence[Event]], windows: Sequence[tuple[int, int]]
) -> dict[Path, tuple[int, int, int]]:
    """(own time, total time, number of events) of each path of some lines within the windows."""
    own: dict[Path, int] = {}
    total: dict[Path, int] = {}
    count: dict[Path, int] = {}
    for events in lines:
        paths = chains(events)
        for (start, end, _), path in zip(events, paths, strict=True):
            if any(opens < max(end, start + 1) and start < closes for opens, closes in windows):
                count[path] = count.get(path, 0) + 1
        for opens, closes in windows:
            for moment in range(opens, closes):
                on = [i for i, (start, end, _) in enumerate(events) if start <= moment < end]
                if not on:
                    continue
                innermost = paths[max(on, key=lambda i: (len(paths[i]), i))]
                own[innermost] = own.get(innermost, 0) + 1
                for depth in range(1, len(innermost) + 1):
                    total[innermost[:depth]] = total.get(innermost[:depth], 0) + 1
    every = {*own, *total, *count}
    return {path: (own.get(path, 0), total.get(path, 0), count.get(path, 0)) for path in every}


def plain_function(
    flame: dict[Path, tuple[int, int, int]], name: str
) -> tuple[int, int, int, dict[str, int], dict[str, int]]:
    """Own time, total time (recursive calls once) and calls of a function; time by its direct callers and
    callees, of its outermost calls.
    """
    own = sum(times[0] for path, times in flame.items() if path[-1] == name)
    calls = sum(times[2] for path, times in flame.items() if path[-1] == name)
    outermost = {path: times for path, times in flame.items() if path[-1] == name and name not in path[:-1]}
    callers: dict[str, int] = {}
    callees: dict[str, int] = {}
    for path, times in outermost.items():
        if len(path) > 1:
            callers[path[-2]] = callers.get(path[-2], 0) + times[1]
    for path, times in flame.items():
        if path[:-1] in outermost:
            callees[path[-1]] = callees.get(path[-1], 0) + times[1]
    return own, sum(times[1] for times in outermost.values()), calls, callers, callees
