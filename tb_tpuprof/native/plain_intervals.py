"""Plain Python twins of `intervals.py`: the same names, arguments and results, for where no extension is built and for tests."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
MAX_DEPTH = 4096


def nest(start: Int64s, end: Int64s, line_offsets: Int64s) -> tuple[Int32s, Int64s]:
    """Parent of each event by containment, and its self time.

    Events of line i are line_offsets[i] … line_offsets[i + 1], sorted by (start, -duration). The parent is the innermost
    earlier event that contains the event whole (start <= start and end >= end), -1 if there is none. Self time is the
    duration minus those of the direct children, never negative.

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
    """Write the parent of each event of some lines, as `nest` has it, into `parent`; other events' entries stay.

    Lines are given by consecutive `line_offsets`, so that several threads can each do some. Events with take == 0 take no
    part: parent -1. `longer`: events (ascending) that last until another end than their own, and those ends.
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
    """Group of each event: `entry_group` of itself where that is not negative, else its parent's group, else -1.

    Parents come before their children. The result may be written over the entries (`groups` is what is written to).
    """
    found = [-1] * len(parent)
    entries = entry_group.tolist()
    for i, above in enumerate(parent.tolist()):
        if entries[i] >= 0:
            found[i] = entries[i]
        elif 0 <= above < i:
            found[i] = found[above]
    result = np.empty(len(parent), np.int32) if groups is None else groups
    result[:] = found
    return result


def lanes(start: Int64s, duration: Int64s, line_offsets: Int64s) -> tuple[npt.NDArray[np.uint16], Int32s]:
    """Drawing depth of each event: the first row of its line that is free at its start, below all events that contain it.

    Returns (depth of each event, number of rows of each line). An event without length takes 1 ps. Events that would lie
    deeper than 4,096 rows share the last.

        depth 0  ────a───────────────
        depth 1   ─b──          ──e──     b overlaps c; d lies below c, which contains it,
        depth 2     ──c───────            though row 1 is free by then
        depth 3         ─d─
    """
    depths = np.zeros(len(start), np.uint16)
    n_depths = np.zeros(len(line_offsets) - 1, np.int32)
    starts, durations, bounds = start.tolist(), duration.tolist(), line_offsets.tolist()
    for line, (first, last) in enumerate(itertools.pairwise(bounds)):
        ends: list[int] = []
        for i in range(first, last):
            end = starts[i] + max(durations[i], 1)
            below = max((d + 1 for d, other in enumerate(ends) if other > starts[i] and other >= end), default=0)
            depth = next((d for d in range(below, len(ends)) if ends[d] <= starts[i]), len(ends))
            if depth == len(ends) and depth < MAX_DEPTH:
                ends.append(0)
            depth = min(depth, MAX_DEPTH - 1)
            ends[depth] = end
            depths[i] = depth
        n_depths[line] = len(ends)
    return depths, n_depths


def rows_by_depth(depth: npt.NDArray[np.uint16], line_offsets: Int64s, n_depths: Int32s) -> tuple[Int32s, Int64s]:
    """Events ordered by (line, depth, start), and where each (line, depth) row begins in that order, with the end appended."""
    line = np.repeat(np.arange(len(n_depths)), np.diff(line_offsets))
    first_row = np.cumsum(n_depths) - n_depths
    row = first_row[line] + depth
    counts = np.bincount(row, minlength=int(n_depths.sum()))
    return np.argsort(row, kind="stable").astype(np.int32), np.append(0, np.cumsum(counts)).astype(np.int64)
