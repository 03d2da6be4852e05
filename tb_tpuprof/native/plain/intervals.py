"""Plain twin of `compiled/intervals.py`: the same names, arguments and results."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
MAX_DEPTH = 4096


def nest(start: Int64s, end: Int64s, line_offsets: Int64s) -> tuple[Int32s, Int64s]:
    """Parent of each event by containment, and its self time.

    Events of line i are line_offsets[i] … line_offsets[i + 1], sorted by (start, -duration). The parent is
    the innermost earlier event that contains the whole event (start <= start and end >= end), -1 if there is
    none. Self time is the duration minus those of the direct children, never negative.

        a ─────────────────      parent -1, self = a - b - d
          b ────  d ───          parent a
           c ─                   parent b
    """
    parents = [-1] * len(start)
    selfs = [0] * len(start)
    starts, ends = start.tolist(), end.tolist()
    for first, last in itertools.pairwise(line_offsets.tolist()):
        stack: list[int] = []
        for i in range(first, last):
            while stack and not (starts[stack[-1]] <= starts[i] and ends[stack[-1]] >= ends[i]):
                stack.pop()
            selfs[i] = ends[i] - starts[i]
            if stack:
                parents[i] = stack[-1]
                selfs[stack[-1]] -= ends[i] - starts[i]
            stack.append(i)
    return np.array(parents, np.int32), np.maximum(np.array(selfs, np.int64), 0)


def enclose(
    start: Int64s,
    duration: Int64s,
    line_offsets: Int64s,
    longer: tuple[Int64s, Int64s],
    parent: Int32s,
    take: npt.NDArray[np.uint8] | None = None,
) -> None:
    """Write the parent of each event of some lines, as in `nest`, into `parent`; entries of other events
    stay.

    Lines are given by consecutive `line_offsets`, so that several threads can share the work. Events with
    take == 0 are ignored: parent -1. `longer`: events (ascending) that last beyond their own end, and those
    later ends.
    """
    ends = dict(zip(*(column.tolist() for column in longer), strict=True))
    for first, last in itertools.pairwise(line_offsets.tolist()):
        stack: list[tuple[int, int]] = []
        for i in range(first, last):
            end = int(start[i] + duration[i])
            end = max(end, ends.get(i, end))
            parent[i] = -1
            if take is not None and not take[i]:
                continue
            while stack and stack[-1][1] < end:
                stack.pop()
            if stack:
                parent[i] = stack[-1][0]
            stack.append((i, end))


def flood(parent: Int32s, entry_group: Int32s, groups: Int32s | None = None) -> Int32s:
    """Group of each event: its own `entry_group` if that is not negative, else its parent's group, else -1.

    Parents come before their children. Writes into `groups` if given, which may be the entries themselves.
    """
    group_of_event = [-1] * len(parent)
    entries = entry_group.tolist()
    for i, above in enumerate(parent.tolist()):
        if entries[i] >= 0:
            group_of_event[i] = entries[i]
        elif 0 <= above < i:
            group_of_event[i] = group_of_event[above]
    result = np.empty(len(parent), np.int32) if groups is None else groups
    result[:] = group_of_event
    return result


def relabel(numbers: Int32s, label: Int32s) -> None:
    """Replace each number by its label, in place; -1 for a number without a label."""
    numbers[:] = [label[number] if 0 <= number < len(label) else -1 for number in numbers.tolist()]


def lanes(
    start: Int64s, duration: Int64s, line_offsets: Int64s, depth: npt.NDArray[np.uint16]
) -> tuple[Int32s, Int64s, int]:
    """Drawing depth of each event: the first row of its line that is free at its start and below all events
    that contain it.

    Writes the depths of the events of some lines, given by consecutive `line_offsets`, into `depth`. Returns
    (number of rows of each line, events of each row, end of the last event: 0 without events). An event
    without duration takes 1 ps. Events deeper than 4,096 rows share the last row.

        depth 0  ────a───────────────
        depth 1   ─b──          ──e──     b overlaps c; d is below c, which contains it,
        depth 2     ──c───────            although row 1 is free by then
        depth 3         ─d─
    """
    n_depths = np.zeros(len(line_offsets) - 1, np.int32)
    sizes = [np.empty(0, np.int64)]
    starts, durations, bounds = start.tolist(), duration.tolist(), line_offsets.tolist()
    latest = 0
    for line, (first, last) in enumerate(itertools.pairwise(bounds)):
        ends: list[int] = []
        for i in range(first, last):
            end = starts[i] + max(durations[i], 1)
            latest = max(latest, end)
            least_row = max(
                (d + 1 for d, other in enumerate(ends) if other > starts[i] and other >= end), default=0
            )
            row = next((d for d in range(least_row, len(ends)) if ends[d] <= starts[i]), len(ends))
            if row == len(ends) and row < MAX_DEPTH:
                ends.append(0)
            row = min(row, MAX_DEPTH - 1)
            ends[row] = end
            depth[i] = row
        n_depths[line] = len(ends)
        sizes.append(np.bincount(depth[first:last], minlength=len(ends)))
    return n_depths, np.concatenate(sizes), latest


def ending_first(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The union of some intervals as disjoint pieces in time order: start, end and owner of each. At any
    moment the owner is the interval that ends first of those that contain it, of several the earlier one.

    Intervals are sorted by start; those without length own nothing.

        a     ├─────────────┤
        b       ├────┤
        c              ├─────────┤
        owner aabbbbbbaaaaaaaacccc       a ends before c does
    """
    starts, ends = start.tolist(), end.tolist()
    rows: list[list[int]] = []
    active: list[tuple[int, int]] = []
    now = starts[0] if starts else 0
    for i, until in enumerate([*starts, 2**63 - 1]):
        while active and now < until:
            last, owner = active[0]
            if last <= now:
                heapq.heappop(active)
                continue
            stop = min(last, until)
            if rows and rows[-1][1] == now and rows[-1][2] == owner:
                rows[-1][1] = stop
            else:
                rows.append([now, stop, owner])
            now = stop
        now = max(now, until)
        if i < len(starts) and ends[i] > until:
            heapq.heappush(active, (ends[i], i))
    table = np.array(rows, np.int64).reshape(-1, 3)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()
