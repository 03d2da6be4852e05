"""Plain twins of `tallies.py`: the same names, arguments and results, for where no extension is built and for
tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
Columns = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
_FAR = 1 << 62


def tally(metadata: Rows, duration: Ints, n_metadata: int) -> Ints:
    """Count, total, shortest and longest duration (rows 0 … 3, ps) of the events of each metadata row; 0
    where it has none.
    """
    result = np.zeros((4, n_metadata), np.int64)
    known = (metadata >= 0) & (metadata < n_metadata)
    rows, lengths = metadata[known], duration[known]
    result[2] = _FAR
    np.add.at(result[0], rows, 1)
    np.add.at(result[1], rows, lengths)
    np.minimum.at(result[2], rows, lengths)
    np.maximum.at(result[3], rows, lengths)
    result[2][result[0] == 0] = 0
    return result


def histogram(metadata: Rows, duration: Ints, wanted: Flags, edges: Ints) -> Ints:
    """How many events of wanted metadata rows have a duration from edges[k] up to edges[k + 1]; the last bin
    includes its end.
    """
    if len(edges) < 2:
        return np.zeros(0, np.int64)
    counted = duration[_is_wanted(metadata, wanted)]
    counted = counted[(counted >= edges[0]) & (counted <= edges[-1])]
    at = np.clip(np.searchsorted(edges, counted, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(at, minlength=len(edges) - 1).astype(np.int64)


def matches(metadata: Rows, wanted: Flags, extra: Flags, bounds: Ints, limit: int, backward: bool) -> Ints:
    """Events whose metadata row is wanted (or that are marked in `extra`, if that is not empty) within each
    [first, last) of `bounds`.

    At most `limit` of each range: its first ones in ascending order, or with `backward` its last ones in
    descending order.
    """
    chosen = _is_wanted(metadata, wanted)
    if len(extra):
        chosen |= extra != 0
    parts = [np.empty(0, np.int64)]
    for first, last in bounds.tolist():
        found = np.flatnonzero(chosen[first:last]) + first
        parts.append((found[::-1] if backward else found)[:limit].astype(np.int64))
    return np.concatenate(parts)


def range_totals(
    columns: Columns,
    lines: Ints,
    window_start: int,
    window_end: int,
    depth_from: int,
    depth_to: int,
    n_metadata: int,
) -> Ints:
    """Count, total, self time, shortest and longest (rows 0 … 4) by metadata row of what lies within a
    window.

    `columns` are start, duration, metadata and depth; `lines` the [first, last) of each line to look at.
    Durations are clipped to the window, and so is what the self time leaves out: the events directly inside.
    Events of other depths than asked for are not counted, but taken from the self time of what is around
    them.

        window          |              |
        a          ├─────────────┤           total 8, self 5
        b                 ├──┤               total 3, self 3
    """
    start, duration, metadata, depth = columns
    result = np.zeros((5, n_metadata), np.int64)
    result[3] = _FAR
    for first, last in lines.tolist():
        stack: list[list[int]] = []
        for i in range(first, last):
            begin, length, row = int(start[i]), int(duration[i]), int(metadata[i])
            if begin >= window_end:
                break
            if begin + max(length, 1) <= window_start or not 0 <= row < n_metadata:
                continue
            low, high = max(begin, window_start), min(begin + length, window_end)
            high = max(low, high)
            while stack and stack[-1][0] < high:
                _close(result, stack.pop())
            if stack:
                stack[-1][1] -= high - low
            is_counted = depth_from <= int(depth[i]) <= depth_to
            stack.append([high, high - low, row, int(is_counted)])
            if is_counted:
                result[0, row] += 1
                result[1, row] += high - low
                result[3, row] = min(int(result[3, row]), high - low)
                result[4, row] = max(int(result[4, row]), high - low)
        for item in stack:
            _close(result, item)
    result[3][result[0] == 0] = 0
    return result


def _close(result: Ints, item: list[int]) -> None:
    if item[3] and item[1] > 0:
        result[2, item[2]] += item[1]


def _is_wanted(metadata: Rows, wanted: Flags) -> npt.NDArray[np.bool_]:
    if not len(wanted):
        return np.zeros(len(metadata), np.bool_)
    known = (metadata >= 0) & (metadata < len(wanted))
    chosen: npt.NDArray[np.bool_] = known & (wanted[np.where(known, metadata, 0)] != 0)
    return chosen


def sums(code: Rows, n_groups: int, rows: Rows | Ints, duration: Ints) -> Ints:
    """By group, of its rows: how many, their sum, the least, the most, which last had it, the first row.

    Rows 0 … 5 of the result; 0 where there are none. `duration` is by row of another table, which `rows` are
    ascending rows of.
    """
    result = np.zeros((6, n_groups), np.int64)
    at = np.asarray(rows).astype(np.int64)
    order = np.lexsort((duration[at], code))
    known, first = np.unique(code[order], return_index=True)
    if len(known):
        length, last = duration[at[order]], order[np.append(first[1:], len(order)) - 1]
        result[0, known] = np.diff(np.append(first, len(order)))
        result[1, known] = np.add.reduceat(length, first)
        result[2:5, known] = length[first], duration[at[last]], at[last]
        result[5, known] = np.minimum.reduceat(at[order], first)
    return result


def extremes(values: Ints, cuts: Ints) -> tuple[Ints, Ints]:
    """Of each stretch cuts[k] … cuts[k + 1] the first of the least values, and the last of the greatest; of
    an empty one its cut.

    values   5 3 3 9 | 2 2      →  1 4 and 3 5
    """
    bounds = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    least = [a + int(values[a:b].argmin()) if b > a else a for a, b in bounds]
    most = [b - 1 - int(values[a:b][::-1].argmax()) if b > a else a for a, b in bounds]
    return np.array(least, np.int64), np.array(most, np.int64)


def last_end(start: Ints, duration: Ints) -> int:
    """When the last of all events ends, 0 if none does after that; what has no length takes 1."""
    return int((start + np.maximum(duration, 1)).max(initial=0))
