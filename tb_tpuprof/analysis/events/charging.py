"""Charging a span's time to the most important thing that happens in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import charged

Int64s = npt.NDArray[np.int64]


def charge(
    start: Int64s,
    end: Int64s,
    klass: npt.NDArray[np.uint8],
    step: npt.NDArray[np.int64],
    windows: tuple[Int64s, Int64s],
    n_classes: int,
) -> Int64s:
    """Time of each class in each step, in ps, as an array [n_steps, n_classes]; class 0 gets what nothing
    covers.

    Each event lies in the step `step[i]` and is clipped to that step's window (starts, ends). At any moment
    only the active class with the highest number is charged, however many events are active; so the classes
    of a step sum up to its window.

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
    """Length of the union of intervals."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if not len(start):
        return 0
    reached = np.maximum.accumulate(end)
    begin = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - begin, 0).sum())


def union_cover(start: Int64s, end: Int64s) -> Callable[[Int64s], Int64s]:
    """How much of the time before a moment a union of intervals covers, as a function of moments."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order]) if len(end) else end
    if not len(start):
        return np.zeros_like
    new = np.append(True, start[1:] > end[:-1])
    first = start[new]
    last = end[np.append(np.flatnonzero(new)[1:] - 1, len(end) - 1)]
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(last - first)))

    def covered(moment: Int64s) -> Int64s:
        at = np.searchsorted(first, moment, side="right")
        inside = np.maximum(at - 1, 0)
        result: Int64s = before[inside] + np.clip(moment - first[inside], 0, last[inside] - first[inside])
        return np.where(at > 0, result, 0)

    return covered
