"""When the steps of a host without accelerators begin and end, given the events that mark them.

annotated      ├ train 7 ──┤├ train 8 ──┤           as the program says, where its steps follow one another
closely loop           ├ train 7 ┤ next ├ train 8 ┤ next    from one start to the next, where much of the loop
lies between the annotations,
                                                   be it of every n-th step
dispatched     ├7┤├8┤                               from the end of one step's work to the end of the next
one's, where steps only
      pool       ├ work of 7 ─┤├ work of 8 ─┤       dispatch it and the work ends when later steps have begun
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
_MUCH_BETWEEN = 0.05  # share of the time from start to start, the median over steps
_FEW = 3


@dataclass(frozen=True)
class Windows:
    """Steps by start: their groups, and from when to when they last. `how`: annotated, loop or dispatched.

    `n_open`: steps left out because they have no end: after the last one no other begins.
    """

    group: Int64s
    start: Int64s
    end: Int64s
    how: str
    n_open: int = 0

    def take(self, rows: npt.NDArray[np.intp]) -> Windows:
        """Some of the windows."""
        return Windows(self.group[rows], self.start[rows], self.end[rows], self.how, self.n_open)


def step_windows(group: Int64s, start: Int64s, end: Int64s, done: Int64s, are_alike: bool) -> Windows:
    """The windows of annotated steps. `done`: when the work of each ended, on all threads; `are_alike`: all
    have one name, on one thread.

    Steps of several names or threads, or fewer than three, last as long as their annotations. Durations in
    ps.
    """
    order = np.argsort(start, kind="stable")
    group, start, end, done = group[order], start[order], end[order], done[order]
    if len(group) < _FEW or not are_alike or (start[1:] < end[:-1]).any():
        return Windows(group, start, end, "annotated")
    period = float(np.median(np.diff(start)))
    done = np.maximum.accumulate(np.maximum(done, end))
    # Where the work of all steps seems to end at once, it is not known which step's it is.
    if float((done[:-1] > start[1:]).mean()) > 0.5 and float((np.diff(done) > 0).mean()) > 0.5:
        return Windows(group, np.append(start[:1], done[:-1]), done, "dispatched")
    between = start[1:] - end[:-1]
    if float(np.median(between)) > _MUCH_BETWEEN * period or _is_periodic(between, _MUCH_BETWEEN * period):
        return Windows(group[:-1], start[:-1], start[1:], "loop", 1)
    return Windows(group, start, end, "annotated")


def _is_periodic(between: Int64s, much: float) -> bool:
    """Whether much of the loop lies between some of its steps, again and again: work of every n-th step."""
    at = np.flatnonzero(between > much)
    return len(at) > 1 and len(np.unique(np.diff(at))) == 1


class Spans(Protocol):
    """Windows by start, which may overlap."""

    @property
    def start(self) -> Int64s:
        """Ascending."""

    @property
    def end(self) -> Int64s:
        """In the same order."""


def step_at(windows: Spans, moment: Int64s) -> Int64s:
    """The window that each moment lies in, -1 for none; of several the one that begins last."""
    order = np.argsort(windows.start, kind="stable")
    at = np.searchsorted(windows.start[order], moment, side="right") - 1
    step = order[np.maximum(at, 0)].astype(np.int64)
    return np.where((at >= 0) & (moment < windows.end[step]), step, -1)


def windows_of(start: Int64s, duration: Int64s) -> Windows:
    """Windows of steps that are found already."""
    return Windows(np.arange(len(start), dtype=np.int64), start, start + duration, "")


def overlapping(
    start: Int64s, end: Int64s, windows: Spans
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """(interval, window) of each pair that overlaps; what lasts no time is in none."""
    first = np.searchsorted(np.maximum.accumulate(windows.end), start, side="right")
    beyond = np.searchsorted(windows.start, end, side="left")
    n = np.where(end > start, np.maximum(beyond - first, 0), 0)
    which = np.repeat(np.arange(len(start)), n)
    at = np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n) + np.repeat(first, n)
    kept = np.minimum(end[which], windows.end[at]) > np.maximum(start[which], windows.start[at])
    return which[kept], at[kept]


def clipped(
    start: Int64s, end: Int64s, windows: Spans
) -> tuple[npt.NDArray[np.intp], Int64s, Int64s, Int64s]:
    """Intervals cut where windows begin and end: (which interval, which window, start, end) of each piece.

    Where windows overlap, as steps of several threads do, an interval has a piece in each.
    """
    which, at = overlapping(start, end, windows)
    return (
        which,
        at.astype(np.int64),
        np.maximum(start[which], windows.start[at]),
        np.minimum(end[which], windows.end[at]),
    )
