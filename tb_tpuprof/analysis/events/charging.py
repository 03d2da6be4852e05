"""Charges each moment of a span to the most important class of events that is active in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import charged

Int64s = npt.NDArray[np.int64]
_ROOM = 2**62


def charge(
    start: Int64s,
    end: Int64s,
    klass: npt.NDArray[np.uint8],
    step: npt.NDArray[np.int64],
    windows: tuple[Int64s, Int64s],
    n_classes: int,
) -> Int64s:
    """Time of each class in each step: int64[n_steps, n_classes], in ps. Class 0 gets the time that no event
    covers.

    Event i belongs to the step `step[i]` and is clipped to that step's window (`windows`: starts, ends). At
    any moment only the active class with the highest number is charged, however many events are active, so
    the classes of a step sum to its window.

        window      ├──────────────────────┤
        class 2           ■■■■■
        class 1       ▪▪▪▪▪▪▪▪▪▪▪  ▪▪
        charged     00112222211110011000000
    """
    first, last = windows
    result: Int64s = np.empty((len(first), n_classes), np.int64)
    charged((start, end, klass, step), np.argsort(start, kind="stable"), windows, result)
    result[:, 0] = np.maximum(last - first, 0) - result.sum(axis=1)
    return result


def union_ps(start: Int64s, end: Int64s) -> int:
    """Length of the union of intervals, in ps."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return 0
    latest_end = np.maximum.accumulate(end)
    new_start = np.maximum(start[1:], latest_end[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - new_start, 0).sum())


def unions_ps(key: Int64s, start: Int64s, end: Int64s, n: int) -> Int64s:
    """Length of the union of the intervals of each key (0 ≤ key < n): int64[n], in ps."""
    result = np.zeros(n, np.int64)
    if not len(start):
        return result
    order = np.lexsort((start, key))
    key, start, end = key[order], start[order], end[order]
    opens = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    number = np.zeros(len(key), np.int64)
    number[opens[1:]] = 1
    number = np.cumsum(number)
    earliest = int(start.min())
    room = max(int(end.max()) - earliest, 0) + 1
    if room * len(opens) >= _ROOM:  # only damaged times
        bounds = np.append(opens, len(key)).tolist()
        for first, last in itertools.pairwise(bounds):
            result[key[first]] = union_ps(start[first:last], end[first:last])
        return result
    # Keys follow one another, so the latest end of one never exceeds the start of the next.
    latest = np.maximum.accumulate(end - earliest + number * room) - number * room + earliest
    before = np.append(earliest, latest[:-1])
    before[opens] = start[opens]
    np.add.at(result, key, np.maximum(end - np.maximum(start, before), 0))
    return result


def union(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Starts and ends of the disjoint intervals that some intervals cover, ascending. Intervals that touch
    are one.
    """
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    opens = np.append(True, start[1:] > end[:-1])
    return start[opens], end[np.append(np.flatnonzero(opens)[1:] - 1, len(end) - 1)]


def union_cover(start: Int64s, end: Int64s) -> Callable[[Int64s], Int64s]:
    """Return a function of moments: how much of the time before each moment the union of the intervals
    covers, in ps.
    """
    union_start, union_end = union(start, end)
    if not len(union_start):
        return np.zeros_like
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(union_end - union_start)))

    def covered(moment: Int64s) -> Int64s:
        n_begun = np.searchsorted(union_start, moment, side="right")
        latest = np.maximum(n_begun - 1, 0)
        result: Int64s = before[latest] + np.clip(
            moment - union_start[latest], 0, union_end[latest] - union_start[latest]
        )
        return np.where(n_begun > 0, result, 0)

    return covered
