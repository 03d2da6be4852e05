"""Whether a memory's floor (the minimum in use during a step) rises from step to step: the sign of a leak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.native import extremes

Int64s = npt.NDArray[np.int64]

WARM_UP = 0.2  # fraction of the steps that may still initialize
MIN_STEPS = 6  # after the warm-up; fewer are no evidence
MIN_RISE = 0.005  # fraction of the memory's peak; less is harmless
_STEADY = 0.8  # fraction of the floor's total movement that must be upward
_MAX_PAIRS = 512


@dataclass(frozen=True)
class Floor:
    """The floor of each step (`floor_bytes`), and its rise after the warm-up: 0 if it does not rise, or not
    steadily.

    `first`: the first step after the warm-up. `suspects`: the operations with the most bytes allocated since
    then and not freed by the end of the last step: (operation, bytes, number of allocations), largest first.
    """

    floor_bytes: Int64s
    first: int
    rise_bytes_per_step: float
    suspects: tuple[tuple[str, int, int], ...] = ()

    @property
    def n_steps(self) -> int:
        """Number of steps over which the rise is measured."""
        return max(0, len(self.floor_bytes) - self.first)


def floors(events: MemoryEvents, memory: int, bounds_ps: Int64s) -> Int64s:
    """Minimum bytes in use between successive bounds, including the level at each bound; n + 1 bounds give n
    floors.
    """
    rows = events.of(memory)
    start, used = events.start_ps[rows], events.used_bytes[rows]
    before = np.searchsorted(start, bounds_ps[:-1], side="right") - 1
    level = used[np.maximum(before, 0)]
    cuts = np.searchsorted(start, bounds_ps).astype(np.int64)
    least = used[np.minimum(extremes(used, cuts)[0], len(used) - 1)]
    result: Int64s = np.where(cuts[1:] > cuts[:-1], np.minimum(least, level), level)
    return result


def floor_of(events: MemoryEvents, memory: int, starts_ps: Int64s, end_ps: int) -> Floor:
    """The floor over steps that begin at `starts_ps`; the last one ends at `end_ps`.

    A rise is reported if, after the warm-up, the floor goes up in each third of the steps, at least 80% of
    its movement is upward, and it gains at least 0.5% of the memory's peak. Its size is the median slope
    between all pairs of steps (Theil–Sen), which a single jump does not affect.
    """
    bounds = np.append(np.sort(starts_ps), end_ps)
    levels = floors(events, memory, bounds) if len(starts_ps) else np.empty(0, np.int64)
    first = int(np.ceil(WARM_UP * len(levels)))
    after_warm_up = levels[first:]
    if len(after_warm_up) < MIN_STEPS or not _is_rising(
        after_warm_up, int(events.used_bytes[events.of(memory)].max())
    ):
        return Floor(levels, first, 0.0)
    slope = _median_slope(after_warm_up)
    suspects = _suspects(events, memory, int(bounds[first]), end_ps) if slope > 0 else ()
    return Floor(levels, first, slope, suspects)


def _is_rising(floor: Int64s, peak: int) -> bool:
    moves = np.diff(floor)
    rise = int(floor[-1] - floor[0])
    if rise < MIN_RISE * peak or rise < _STEADY * int(np.abs(moves).sum()):
        return False
    edges = np.linspace(0, len(floor) - 1, 4).round().astype(int)
    thirds = np.diff(floor[edges])
    return bool((thirds >= 0.25 * rise / 3).all())


def _median_slope(floor: Int64s) -> float:
    """Median slope in bytes per step, over at most 512 evenly spaced steps."""
    step = np.unique(np.linspace(0, len(floor) - 1, min(len(floor), _MAX_PAIRS)).astype(np.int64))
    i, j = np.triu_indices(len(step), 1)
    return float(np.median((floor[step[j]] - floor[step[i]]) / (step[j] - step[i])))


def _suspects(
    events: MemoryEvents, memory: int, start_ps: int, end_ps: int
) -> tuple[tuple[str, int, int], ...]:
    rows = events.of(memory)
    low, high = (rows.start + np.searchsorted(events.start_ps[rows], [start_ps, end_ps])).tolist()
    unfreed = low + np.flatnonzero(events.is_allocation[low:high] & (events.partner[low:high] >= high))
    ops, code = distinct_codes(events.op[unfreed])
    total, count = np.zeros(len(ops), np.int64), np.bincount(code, minlength=len(ops))
    np.add.at(total, code, events.allocation_bytes[unfreed])
    order = np.argsort(-total, kind="stable")[:3]
    return tuple(
        (events.strings[ops[i]] if ops[i] >= 0 else "", int(total[i]), int(count[i])) for i in order.tolist()
    )
