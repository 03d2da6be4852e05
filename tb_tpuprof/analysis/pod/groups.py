"""Cores whose collectives have no HLO → groups of cores that run a collective together, inferred from common
end times in every step.

    core 0  ▫▫▫▫all-reduce▏        ▫all-reduce▏
    core 1     ▫▫all-reduce▏     ▫▫▫▫all-reduce▏
    core 2  ▫▫all-reduce▏             ▫▫all-reduce▏

A collective ends on all of its participants at once. Clocks may differ and drift evenly: then the ends of two
cores of a group differ by a straight line over the steps, and those of two groups by the variation of their
work.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_FEWEST_STEPS = 5
_LEAST_PS = 3_000_000.0  # by which the ends of cores of a group may differ in nine of ten steps
_OF_DURATION = 0.002
_APART = 3.0  # groups must differ from one another by at least this many times that tolerance


def groups_by_ends(last_ps: Int64s, spent_ps: Int64s) -> tuple[tuple[int, ...], ...]:
    """Rows of cores that end a collective together; empty if all do, or if the ends do not show groups.

    `last_ps`: when each core's last one ended in each step, by any clock that runs evenly; `spent_ps`: its
    time, 0 where it did not run. SPMD programs divide all cores into groups of one size: other results are
    rejected.
    """
    took_part = np.flatnonzero((spent_ps > 0).all(axis=1))
    n_steps = last_ps.shape[1]
    if len(took_part) < 4 or n_steps < _FEWEST_STEPS:
        return ()
    ends = last_ps[took_part].astype(np.float64)
    residual = _detrended(ends - np.median(ends, axis=0))
    tolerance = max(_LEAST_PS, _OF_DURATION * float(np.median(spent_ps[took_part])))
    groups = _clusters(residual, tolerance)
    size = len(groups[0])
    if len(groups) < 2 or size < 2 or any(len(group) != size for group in groups):
        return ()
    middle = np.array([np.median(residual[group], axis=0) for group in groups])
    order = np.argsort(middle[:, _widest(middle)])
    if _distance(middle[order][1:], middle[order][:-1]).min() < _APART * tolerance:
        return ()
    return tuple(sorted(tuple(took_part[group].tolist()) for group in groups))


def _detrended(difference: Floats) -> Floats:
    """Differences of ends without their linear trend over the steps: each clock's offset and drift."""
    half = difference.shape[1] // 2
    slope = np.median(difference[:, half : 2 * half] - difference[:, :half], axis=1, keepdims=True) / half
    level = difference - slope * np.arange(difference.shape[1])
    result: Floats = level - np.median(level, axis=1, keepdims=True)
    return result


def _distance(a: Floats, b: Floats) -> Floats:
    """Distance of rows in nine of ten steps, so that an outlier in a single step does not count."""
    result: Floats = np.quantile(np.abs(_detrended(a - b)), 0.9, axis=-1)
    return result


def _widest(rows: Floats) -> int:
    """The step in which rows differ most, apart from single outliers."""
    low, high = np.quantile(rows, (0.1, 0.9), axis=0)
    return int((high - low).argmax())


def _clusters(residual: Floats, tolerance: float) -> list[Int64s]:
    """Groups of rows that are near one another. Candidates are near in the step with the widest spread."""
    column = residual[:, _widest(residual)]
    order = np.argsort(column, kind="stable")
    is_left = np.ones(len(order), np.bool_)
    groups = []
    for position, row in enumerate(order.tolist()):
        if not is_left[position]:
            continue
        candidates = np.arange(
            position, int(np.searchsorted(column[order], column[row] + 8 * tolerance, side="right"))
        )
        candidates = candidates[is_left[candidates]]
        members = candidates[_distance(residual[order[candidates]], residual[row]) <= tolerance]
        is_left[members] = False
        groups.append(np.sort(order[members]).astype(np.int64))
    return groups
