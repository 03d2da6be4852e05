"""Charging a span's time to the most important thing that happens in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


def charge(
    start: Int64s, end: Int64s, klass: npt.NDArray[np.uint8], step: npt.NDArray[np.int64], windows: tuple[Int64s, Int64s], n_classes: int
) -> Int64s:
    """Time of each class in each step, in ps, as an array [n_steps, n_classes]; class 0 gets what nothing covers.

    Each event lies in the step `step[i]` and is clipped to that step's window (starts, ends). At any moment only the active
    class with the highest number is charged, however many events are active; so the classes of a step sum up to its window.

        window      ├──────────────────────┤
        class 2           ■■■■■
        class 1       ▪▪▪▪▪▪▪▪▪▪▪  ▪▪
        charged     00112222211110011000000
    """
    first, last = windows
    length = np.maximum(last - first, 0)
    begin = np.maximum(start, first[step]) - first[step]
    stop = np.minimum(end, last[step]) - first[step]
    inside = stop > begin
    begin, stop, klass, step = begin[inside], stop[inside], klass[inside], step[inside]
    # Steps may overlap in time: lay them end to end, a little apart, so that one sweep serves all.
    base = np.append(0, np.cumsum(length + 1))[:-1]
    begin, stop = begin + base[step], stop + base[step]
    order = np.argsort(begin, kind="stable")
    begin, stop, klass, step = begin[order], stop[order], klass[order], step[order]
    result = np.zeros((len(first), n_classes), np.int64)
    above = np.zeros(len(first), np.int64)
    for number in range(n_classes - 1, 0, -1):
        if not (klass == number).any():
            continue
        active = klass >= number
        covered = _covered(begin[active], stop[active], step[active], len(first))
        result[:, number] = covered - above
        above = covered
    result[:, 0] = length - above
    return result


def _covered(begin: Int64s, stop: Int64s, step: npt.NDArray[np.int64], n_steps: int) -> Int64s:
    """Length of the union of a step's intervals, which are sorted by begin."""
    reached = np.append(0, np.maximum.accumulate(stop)[:-1])
    new = np.maximum(stop - np.maximum(begin, reached), 0)
    total = np.zeros(n_steps, np.int64)
    np.add.at(total, step, new)
    return total


def union_ps(start: Int64s, end: Int64s) -> int:
    """Length of the union of intervals."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return 0
    reached = np.maximum.accumulate(end)
    begin = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - begin, 0).sum())
