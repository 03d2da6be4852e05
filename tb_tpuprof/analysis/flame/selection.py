"""A choice of steps → windows on the host's clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps as trace_steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
ALL, MEDIAN, SLOWEST, TRACE = "all", "median", "slowest", "trace"


@dataclass(frozen=True)
class Selection:
    """Chosen steps of a host. `rows`: those of its steps, empty for the whole trace; `opens`, `closes`: their
    windows in ps, ascending and disjoint.
    """

    rows: npt.NDArray[np.intp]
    opens: Int64s
    closes: Int64s

    @property
    def windows(self) -> tuple[Int64s, Int64s]:
        """Starts and ends, as native loops take them."""
        return self.opens, self.closes

    @property
    def duration_ps(self) -> int:
        """Time in the windows."""
        return int((self.closes - self.opens).sum())


def selection(trace: Trace, text: str) -> Selection | None:
    """The windows of `all`, `median`, `slowest`, `trace` (also what is outside of steps) or the name or
    number of a step; None if there is no such step. A trace without steps has only itself.

    Where steps overlap, each begins when the one before it ends, so that no moment counts twice.
    """
    steps = trace_steps(trace)
    if text == TRACE or (not len(steps) and text in (ALL, MEDIAN, SLOWEST)):
        return Selection(np.empty(0, np.intp), np.array([0]), np.array([max(trace.duration_ps, 1)]))
    rows = _rows(steps, text)
    if not len(rows):
        return None
    rows = rows[np.argsort(steps.start_ps[rows], kind="stable")]
    opens = steps.start_ps[rows].astype(np.int64)
    ends = np.maximum.accumulate(opens + steps.duration_ps[rows])
    opens[1:] = np.maximum(opens[1:], ends[:-1])
    return Selection(rows, opens, ends)


def _rows(steps: Steps, text: str) -> npt.NDArray[np.intp]:
    if text == ALL:
        return np.arange(len(steps))
    if text in (MEDIAN, SLOWEST):
        order = np.argsort(steps.duration_ps, kind="stable")
        return order[[(len(order) - 1) // 2]] if text == MEDIAN else order[-1:]
    named = [i for i, name in enumerate(steps.name) if name == text]
    named = named or [i for i, name in enumerate(steps.name) if name.rpartition(" ")[2] == text]
    return np.array(named[:1], np.intp)
