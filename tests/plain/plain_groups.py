"""The step of each event, found by walking from every root to all that it encloses or feeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tb_tpuprof.trace.trace import Trace
from tests.plain.plain_threads import Event, events_of

Numbers = dict[int, int]  # by row


@dataclass
class PlainGroups:
    """The group of each event, -1 for none; the name of each group; the rows of the roots that made one."""

    group: list[int]
    names: dict[int, str]
    roots: list[int]


def stat(trace: Trace, key: str) -> Numbers:
    """A stat by event."""
    sparse = trace.event_stats.ints(key)
    return {int(row): int(value) for row, value in zip(sparse.owner, sparse.value, strict=True)}


def effects(trace: Trace, events: Sequence[Event]) -> list[list[int]]:
    """What each event causes: the events directly inside it, and those whose context it began."""
    row_of = {id(event): row for row, event in enumerate(events)}
    result: list[list[int]] = [[] for _ in events]
    for row, event in enumerate(events):
        if event.above is not None:
            result[row_of[id(event.above)]].append(row)
    produced, consumed = (
        {row: (kind, numbers[row]) for row, kind in stat(trace, of_type).items() if row in numbers}
        for of_type, numbers in (("_pt", stat(trace, "_p")), ("_ct", stat(trace, "_c")))
    )
    for row, key in produced.items():
        result[row] += [other for other, wanted in consumed.items() if wanted == key]
    return result


def reached(start: Iterable[int], caused: Sequence[Sequence[int]]) -> set[int]:
    """All that some events cause, directly or not; themselves only if something leads back to them."""
    result: set[int] = set()
    waiting = list(start)
    while waiting:
        for row in caused[waiting.pop()]:
            if row not in result:
                result.add(row)
                waiting.append(row)
    return result


def plain_groups(trace: Trace) -> PlainGroups:
    """Roots of a higher level claim events first, then earlier roots. A root that is claimed, or that another
    root of its level leads to, makes no group.
    """
    events = events_of(trace)
    caused = effects(trace, events)
    levels = {row: level for row, level in stat(trace, "_r").items() if level > 0}
    group, roots = [-1] * len(events), []
    for level in sorted(set(levels.values()), reverse=True):
        free = [row for row in levels if levels[row] == level and group[row] < 0]
        led_to = {row for row in free if any(row in reached([one], caused) for one in free if one != row)}
        for root in sorted((row for row in free if row not in led_to), key=lambda row: events[row].start):
            for row in {root, *reached([root], caused)}:
                group[row] = len(roots) if group[row] < 0 else group[row]
            roots.append(root)
    numbers = [stat(trace, "iter_num"), stat(trace, "step_num")]
    row_of = {id(event): row for row, event in enumerate(events)}
    names = {}
    for number, root in enumerate(roots):
        around = [row_of[id(one)] for one in events[root].around()]
        stated = [one[root] for one in numbers if one.get(root, -1) >= 0]
        stated += [one[row] for one in numbers for row in around if row in one]
        names[number] = f"{events[root].name} {stated[0] if stated else number}"
    return PlainGroups(group, names, roots)
