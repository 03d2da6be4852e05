"""Plain twin of `compiled/tallies.py`: the same names, arguments and results."""

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
    """Count, total, shortest and longest duration (rows 0 … 3, ps) of the events of each metadata row; 0 if
    it has none.
    """
    result = np.zeros((4, n_metadata), np.int64)
    is_valid = (metadata >= 0) & (metadata < n_metadata)
    rows, lengths = metadata[is_valid], duration[is_valid]
    result[2] = _FAR
    np.add.at(result[0], rows, 1)
    np.add.at(result[1], rows, lengths)
    np.minimum.at(result[2], rows, lengths)
    np.maximum.at(result[3], rows, lengths)
    result[2][result[0] == 0] = 0
    return result


def histogram(metadata: Rows, duration: Ints, wanted: Flags, edges: Ints) -> Ints:
    """Number of events of wanted metadata rows with a duration from edges[k] up to edges[k + 1]; the last bin
    includes its end.
    """
    if len(edges) < 2:
        return np.zeros(0, np.int64)
    counted = duration[_is_wanted(metadata, wanted)]
    counted = counted[(counted >= edges[0]) & (counted <= edges[-1])]
    bins = np.clip(np.searchsorted(edges, counted, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(bins, minlength=len(edges) - 1).astype(np.int64)


def range_totals(
    columns: Columns,
    lines: Ints,
    window_start: int,
    window_end: int,
    depth_from: int,
    depth_to: int,
    n_metadata: int,
) -> Ints:
    """Count, total, self time, shortest and longest (rows 0 … 4) by metadata row of the events within a
    window.

    `columns` are start, duration, metadata and depth; `lines` the [first, last) of each line to sum up.
    Durations are clipped to the window, and so are the direct children that self time excludes. Events of
    other depths than depth_from … depth_to are not counted, but still subtracted from the self time of their
    parents.

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
    is_valid = (metadata >= 0) & (metadata < len(wanted))
    is_wanted: npt.NDArray[np.bool_] = is_valid & (wanted[np.where(is_valid, metadata, 0)] != 0)
    return is_wanted


def sums(code: Rows, n_groups: int, rows: Rows | Ints, duration: Ints) -> Ints:
    """Per group of rows: count, total, smallest, largest, the last row with the largest, the first row.

    Rows 0 … 5 of the result; 0 for empty groups. `duration` is by row of another table; `rows` are ascending
    rows of it.
    """
    result = np.zeros((6, n_groups), np.int64)
    table_rows = np.asarray(rows).astype(np.int64)
    order = np.lexsort((duration[table_rows], code))
    groups, first = np.unique(code[order], return_index=True)
    if len(groups):
        length, last = duration[table_rows[order]], order[np.append(first[1:], len(order)) - 1]
        result[0, groups] = np.diff(np.append(first, len(order)))
        result[1, groups] = np.add.reduceat(length, first)
        result[2:5, groups] = length[first], duration[table_rows[last]], table_rows[last]
        result[5, groups] = np.minimum.reduceat(table_rows[order], first)
    return result


def extremes(values: Ints, cuts: Ints) -> tuple[Ints, Ints]:
    """For each stretch cuts[k] … cuts[k + 1], the first of the smallest values and the last of the largest;
    the cut itself for an empty one.

        values   5 3 3 9 | 2 2      →  1 4 and 3 5
    """
    bounds = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    least = [a + int(values[a:b].argmin()) if b > a else a for a, b in bounds]
    most = [b - 1 - int(values[a:b][::-1].argmax()) if b > a else a for a, b in bounds]
    return np.array(least, np.int64), np.array(most, np.int64)


def last_end(start: Ints, duration: Ints) -> int:
    """The end of the last event, 0 if none ends after 0; an event without duration takes 1."""
    return int((start + np.maximum(duration, 1)).max(initial=0))
