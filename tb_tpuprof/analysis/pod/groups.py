"""Cores of which no HLO tells who runs a collective with whom → groups, by who leaves it together, step after
step.

core 0  ▫▫▫▫all-reduce▏        ▫all-reduce▏          A collective ends on all of its participants at once.
Clocks may differ, core 1     ▫▫all-reduce▏     ▫▫▫▫all-reduce▏         and drift evenly: the ends of two
cores of a group then differ by a core 2  ▫▫all-reduce▏             ▫▫all-reduce▏      straight line over the
steps, those of two groups by what their work does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_FEWEST_STEPS = 5
_LEAST_PS = 3_000_000.0  # by which cores that leave together may differ in nine of ten steps
_OF_DURATION = 0.002
_APART = 3.0  # times that, by which groups must differ from one another at the least


def groups_by_ends(last_ps: Int64s, spent_ps: Int64s) -> tuple[tuple[int, ...], ...]:
    """Rows of cores that leave a collective together; empty where all do, or where the ends do not tell.

    `last_ps`: when each core's last one ended in each step, by any clock that runs evenly; `spent_ps`: the
    time it took; 0 where it did not run. SPMD programs divide all cores into groups of one size: anything
    else is not believed.
    """
    took_part = np.flatnonzero((spent_ps > 0).all(axis=1))
    n_steps = last_ps.shape[1]
    if len(took_part) < 4 or n_steps < _FEWEST_STEPS:
        return ()
    ends = last_ps[took_part].astype(np.float64)
    rest = _without_lines(ends - np.median(ends, axis=0))
    near = max(_LEAST_PS, _OF_DURATION * float(np.median(spent_ps[took_part])))
    groups = _together(rest, near)
    size = len(groups[0])
    if len(groups) < 2 or size < 2 or any(len(group) != size for group in groups):
        return ()
    middle = np.array([np.median(rest[group], axis=0) for group in groups])
    order = np.argsort(middle[:, _widest(middle)])
    if _distance(middle[order][1:], middle[order][:-1]).min() < _APART * near:
        return ()
    return tuple(sorted(tuple(took_part[group].tolist()) for group in groups))


def _without_lines(beside: Floats) -> Floats:
    """Ends beside other ends, without what grows evenly from step to step: each clock's offset and drift."""
    half = beside.shape[1] // 2
    slope = np.median(beside[:, half : 2 * half] - beside[:, :half], axis=1, keepdims=True) / half
    level = beside - slope * np.arange(beside.shape[1])
    result: Floats = level - np.median(level, axis=1, keepdims=True)
    return result


def _distance(a: Floats, b: Floats) -> Floats:
    """Of rows: how far apart they are in nine of ten steps; a hiccup in one says nothing."""
    result: Floats = np.quantile(np.abs(_without_lines(a - b)), 0.9, axis=-1)
    return result


def _widest(rows: Floats) -> int:
    """The step in which rows differ most, but for single ones."""
    low, high = np.quantile(rows, (0.1, 0.9), axis=0)
    return int((high - low).argmax())


def _together(rest: Floats, near: float) -> list[Int64s]:
    """Rows that lie near one another. Candidates are those that do in the step in which all lie farthest
    apart.
    """
    column = rest[:, _widest(rest)]
    order = np.argsort(column, kind="stable")
    left = np.ones(len(order), np.bool_)
    groups = []
    for at, row in enumerate(order.tolist()):
        if not left[at]:
            continue
        candidates = np.arange(at, int(np.searchsorted(column[order], column[row] + 8 * near, side="right")))
        candidates = candidates[left[candidates]]
        mine = candidates[_distance(rest[order[candidates]], rest[row]) <= near]
        left[mine] = False
        groups.append(np.sort(order[mine]).astype(np.int64))
    return groups
