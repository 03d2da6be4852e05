"""Starts of steps on the host's clock, for values that are compared from step to step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class StepMarks:
    """Names and starts of the steps, ascending; each lasts until the next, the last until `end_ps`."""

    name: tuple[str, ...]
    start_ps: npt.NDArray[np.int64]
    end_ps: int


@once
def step_marks(trace: Trace) -> StepMarks:
    """The trace's steps; if it has none (devices that ran nothing for them), the user's own annotations on
    the host.
    """
    traced_steps = steps(trace)
    if len(traced_steps):
        order = np.argsort(traced_steps.start_ps, kind="stable")
        end = int((traced_steps.start_ps + traced_steps.duration_ps).max())
        return StepMarks(
            tuple(traced_steps.name[i] for i in order.tolist()), traced_steps.start_ps[order], end
        )
    grouped = groups(trace)
    rows = grouped.named_roots[np.argsort(trace.events["start_ps"][grouped.named_roots], kind="stable")]
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = int((start + trace.events["duration_ps"][rows]).max()) if len(rows) else 0
    return StepMarks(tuple(grouped.step_name(g) for g in grouped.group[rows].tolist()), start, end)
