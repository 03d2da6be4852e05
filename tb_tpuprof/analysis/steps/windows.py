"""Starts and ends of the steps of a host without accelerators, given the events that mark them.

annotated      ├ train 7 ──┤├ train 8 ──┤           as annotated, if steps follow each other closely
loop           ├ train 7 ┤ next ├ train 8 ┤ next    from one start to the next, if much of the loop is between
                                                    the annotations, even if only at every n-th step
dispatched     ├7┤├8┤                               from the end of one step's work to that of the next, if
      pool       ├ work of 7 ─┤├ work of 8 ─┤       steps only dispatch work that ends after later steps begin
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
_MUCH_BETWEEN = 0.05  # fraction of the time from start to start, median over steps
_ALMOST_ALL = 0.9  # of the steps
_FEW = 3


@dataclass(frozen=True)
class Windows:
    """Steps by start: their groups, starts and ends in ps. `how`: annotated, loop or dispatched.

    `n_open`: steps excluded because they have no end: no other step begins after the last one. `is_ahead`:
    the host had finished almost every step, its data included, before the previous step's work ended.
    """

    group: Int64s
    start: Int64s
    end: Int64s
    how: str
    n_open: int = 0
    is_ahead: bool = False

    def take(self, rows: npt.NDArray[np.intp]) -> Windows:
        """The given rows."""
        return replace(self, group=self.group[rows], start=self.start[rows], end=self.end[rows])


def step_windows(group: Int64s, start: Int64s, end: Int64s, work_end: Int64s, are_alike: bool) -> Windows:
    """The windows of annotated steps. `work_end`: when the work of each ended, on all threads; `are_alike`:
    all have the same name and thread.

    Steps of several names or threads, or fewer than three, last as long as their annotations. Times in ps.
    """
    order = np.argsort(start, kind="stable")
    group, start, end, work_end = group[order], start[order], end[order], work_end[order]
    if len(group) < _FEW or not are_alike or (start[1:] < end[:-1]).any():
        return Windows(group, start, end, "annotated")
    period = float(np.median(np.diff(start)))
    work_end = np.maximum.accumulate(np.maximum(work_end, end))
    # If the work of all steps seems to end at the same time, it cannot be assigned to steps.
    if float((work_end[:-1] > start[1:]).mean()) > 0.5 and float((np.diff(work_end) > 0).mean()) > 0.5:
        is_ahead = float((end[1:] <= work_end[:-1]).mean()) >= _ALMOST_ALL
        start = np.append(start[:1], work_end[:-1])
        return Windows(group, start, work_end, "dispatched", is_ahead=is_ahead)
    gap = start[1:] - end[:-1]
    if float(np.median(gap)) > _MUCH_BETWEEN * period or _is_periodic(gap, _MUCH_BETWEEN * period):
        return Windows(group[:-1], start[:-1], start[1:], "loop", 1)
    return Windows(group, start, end, "annotated")


def _is_periodic(gap: Int64s, much: float) -> bool:
    """Whether the gaps longer than `much` recur at equal distances: work of every n-th step."""
    long_gaps = np.flatnonzero(gap > much)
    return len(long_gaps) > 1 and len(np.unique(np.diff(long_gaps))) == 1


class Spans(Protocol):
    """Windows by start, which may overlap."""

    @property
    def start(self) -> Int64s:
        """Ascending."""

    @property
    def end(self) -> Int64s:
        """In the same order."""


def step_at(windows: Spans, moment: Int64s) -> Int64s:
    """The window that contains each moment, -1 for none; of several the one that begins last."""
    order = np.argsort(windows.start, kind="stable")
    position = np.searchsorted(windows.start[order], moment, side="right") - 1
    step = order[np.maximum(position, 0)].astype(np.int64)
    return np.where((position >= 0) & (moment < windows.end[step]), step, -1)


def windows_of(start: Int64s, duration: Int64s) -> Windows:
    """Windows of steps with known starts and durations."""
    return Windows(np.arange(len(start), dtype=np.int64), start, start + duration, "")


def overlapping(
    start: Int64s, end: Int64s, windows: Spans
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """(interval, window) of each pair that overlaps; intervals without duration are in none."""
    first = np.searchsorted(np.maximum.accumulate(windows.end), start, side="right")
    beyond = np.searchsorted(windows.start, end, side="left")
    n = np.where(end > start, np.maximum(beyond - first, 0), 0)
    interval = np.repeat(np.arange(len(start)), n)
    window = np.arange(len(interval)) - np.repeat(np.cumsum(n) - n, n) + np.repeat(first, n)
    overlaps = np.minimum(end[interval], windows.end[window]) > np.maximum(
        start[interval], windows.start[window]
    )
    return interval[overlaps], window[overlaps]


def clipped(
    start: Int64s, end: Int64s, windows: Spans
) -> tuple[npt.NDArray[np.intp], Int64s, Int64s, Int64s]:
    """Intervals cut at the windows' starts and ends: (interval, window, start, end) of each piece.

    If windows overlap, as steps of several threads do, an interval has a piece in each.
    """
    interval, window = overlapping(start, end, windows)
    return (
        interval,
        window.astype(np.int64),
        np.maximum(start[interval], windows.start[window]),
        np.minimum(end[interval], windows.end[window]),
    )
