"""Programs and the operations that ran in them → the stretches in which a device was in a program but ran no
operation.

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
    """Stretches without an operation in time order, and the index of the program that each lies in."""

    start_ps: Int64s
    end_ps: Int64s
    program: Int64s


def gaps_within(trace: Trace, programs: tuple[Int64s, Int64s], operations: npt.NDArray[np.integer]) -> Gaps:
    """Gaps of at least MIN_GAP_PS between `operations` (rows of `events` by start), inside `programs` (starts
    and ends in ps, by start).
    """
    starts, ends = programs
    op_start = trace.events["start_ps"][operations]
    op_end = np.maximum.accumulate(op_start + trace.events["duration_ps"][operations])
    if not len(starts) or not len(op_start):
        empty = np.empty(0, np.int64)
        return Gaps(empty, empty, empty)
    first, last = min(int(starts[0]), int(op_start[0])), max(int(ends.max()), int(op_end[-1]))
    idle_from, idle_to = np.append(first, op_end), np.append(op_start, last)
    wide = np.flatnonzero(idle_to - idle_from >= MIN_GAP_PS)
    idle_from, idle_to = idle_from[wide], idle_to[wide]
    low, high = np.searchsorted(idle_to, starts, side="right"), np.searchsorted(idle_from, ends)
    n_gaps = np.maximum(high - low, 0)
    program = np.repeat(np.arange(len(starts)), n_gaps)
    gap = np.repeat(low - np.cumsum(n_gaps) + n_gaps, n_gaps) + np.arange(int(n_gaps.sum()))
    begin, end = np.maximum(idle_from[gap], starts[program]), np.minimum(idle_to[gap], ends[program])
    long_enough = np.flatnonzero(end - begin >= MIN_GAP_PS)
    return Gaps(begin[long_enough], end[long_enough], program[long_enough])
