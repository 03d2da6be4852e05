"""Programs and the operations that ran in them → the stretches in which a device had a program to run but ran
no operation.

XLA Modules     ├──────────────── jit_step ────────────────┤
XLA Ops           ├fusion.1┤├add┤          ├all-reduce┤
XLA Overhead    ├┤                ├───────┤             ├──┤       those of at least a microsecond
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
MIN_GAP_PS = 1_000_000


@dataclass(frozen=True)
class Gaps:
    """Stretches without an operation by time, and for each the place of its program among those given."""

    start_ps: Int64s
    end_ps: Int64s
    program: Int64s


def gaps_within(trace: Trace, programs: tuple[Int64s, Int64s], operations: npt.NDArray[np.integer]) -> Gaps:
    """Gaps of MIN_GAP_PS and more between `operations` (rows of `events` by start) within programs (starts
    and ends, by start).
    """
    starts, ends = programs
    op_start = trace.events["start_ps"][operations]
    op_end = np.maximum.accumulate(op_start + trace.events["duration_ps"][operations])
    if not len(starts) or not len(op_start):
        none = np.empty(0, np.int64)
        return Gaps(none, none, none)
    first, last = min(int(starts[0]), int(op_start[0])), max(int(ends.max()), int(op_end[-1]))
    idle_from, idle_to = np.append(first, op_end), np.append(op_start, last)
    wide = np.flatnonzero(idle_to - idle_from >= MIN_GAP_PS)
    idle_from, idle_to = idle_from[wide], idle_to[wide]
    low, high = np.searchsorted(idle_to, starts, side="right"), np.searchsorted(idle_from, ends)
    n = np.maximum(high - low, 0)
    program = np.repeat(np.arange(len(starts)), n)
    at = np.repeat(low - np.cumsum(n) + n, n) + np.arange(int(n.sum()))
    begin, end = np.maximum(idle_from[at], starts[program]), np.minimum(idle_to[at], ends[program])
    kept = np.flatnonzero(end - begin >= MIN_GAP_PS)
    return Gaps(begin[kept], end[kept], program[kept])
