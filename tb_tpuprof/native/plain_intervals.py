"""Plain Python twins of `intervals.py`: the same names, arguments and results, for where no extension is built and for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


def nest(start: Int64s, end: Int64s, line_offsets: Int64s, take: npt.NDArray[np.uint8] | None = None) -> tuple[Int32s, Int64s]:
    """Parent of each event by containment, and its self time.

    Events of line i are line_offsets[i] … line_offsets[i + 1], sorted by (start, -duration). The parent is the innermost
    earlier event that contains the event whole (start <= start and end >= end), -1 if there is none. Self time is the
    duration minus those of the direct children, never negative. Events with take == 0 take no part: parent -1, self 0.

        a ─────────────────      parent -1, self = a - b - d
          b ────  d ───          parent a
           c ─                   parent b
    """
    parents = [-1] * len(start)
    selfs = [0] * len(start)
    starts, ends, bounds = start.tolist(), end.tolist(), line_offsets.tolist()
    taken = None if take is None else take.tolist()
    for first, last in zip(bounds, bounds[1:], strict=False):
        stack: list[int] = []
        for i in range(first, last):
            if taken is not None and not taken[i]:
                continue
            while stack and not (starts[stack[-1]] <= starts[i] and ends[stack[-1]] >= ends[i]):
                stack.pop()
            selfs[i] = ends[i] - starts[i]
            if stack:
                parents[i] = stack[-1]
                selfs[stack[-1]] -= ends[i] - starts[i]
            stack.append(i)
    return np.array(parents, np.int32), np.maximum(np.array(selfs, np.int64), 0)


def flood(parent: Int32s, entry_group: Int32s) -> Int32s:
    """Group of each event: `entry_group` of itself where that is not negative, else its parent's group, else -1.

    Parents come before their children.
    """
    groups = [-1] * len(parent)
    entries = entry_group.tolist()
    for i, above in enumerate(parent.tolist()):
        if entries[i] >= 0:
            groups[i] = entries[i]
        elif 0 <= above < i:
            groups[i] = groups[above]
    return np.array(groups, np.int32)
