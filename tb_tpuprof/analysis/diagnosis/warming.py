"""First steps that take longer than the others, and what they do that later steps do not."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.parts import BY_CLASS
from tb_tpuprof.analysis.diagnosis.records import Warming
from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import is_compilation
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace

_LONG = 2.0  # times the median step


@once
def warming(trace: Trace) -> Warming | None:
    """The first step of a host if it took twice as long as usual, or long compilation before it; None
    without.
    """
    all_steps = steps(trace)
    first = all_steps.first
    if not len(all_steps):
        return None
    usual_ps = int(np.median(all_steps.duration_ps))
    begin = first.start_ps if first else int(all_steps.start_ps.min())
    compiled_ps, since = _compiled_before(trace, begin)
    if compiled_ps >= _LONG * usual_ps:
        return Warming("", compiled_ps, usual_ps, Cause.COMPILATION, compiled_ps, since)
    if first is None or first.duration_ps + compiled_ps < _LONG * usual_ps:
        return None
    if (
        first.duration_ps < _LONG * usual_ps
    ):  # a step found by its program begins when that runs, after compilation
        longer = max(0, first.duration_ps - usual_ps)
        return Warming(
            first.name,
            first.duration_ps + compiled_ps,
            usual_ps,
            Cause.COMPILATION,
            compiled_ps + longer,
            since,
        )
    excess_by_cause: dict[Cause, int] = {}
    mean_ps = all_steps.class_ps.mean(axis=0)
    for klass in TimeClass:
        cause = BY_CLASS[klass]
        excess_by_cause[cause] = excess_by_cause.get(cause, 0) + int(first.class_ps[klass] - mean_ps[klass])
    cause = max(excess_by_cause, key=lambda one: excess_by_cause[one])
    return Warming(first.name, first.duration_ps, usual_ps, cause, excess_by_cause[cause], first.start_ps)


def _compiled_before(trace: Trace, begin: int) -> tuple[int, int]:
    """(duration, start) of compilation on the host before a moment, in ps."""
    of_host = np.isin(trace.metadata["plane"], planes(trace).hosts)
    is_compile = np.array([is_compilation(name) for name in metadata_names(trace)], np.bool_) & of_host
    rows = events_of(trace, is_compile)
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = np.minimum(start + trace.events["duration_ps"][rows], begin)
    early = start < begin
    return (union_ps(start[early], end[early]), int(start[early].min())) if early.any() else (0, -1)
