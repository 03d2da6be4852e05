"""First steps that are longer than the rest: what they do that later ones need not."""

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
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace

_LONG = 2.0  # times the median step


@once
def warming(trace: Trace) -> Warming | None:
    """The first step of a host if it took twice as long as usual, else what was compiled before it."""
    found = steps(trace)
    first = found.first
    if not len(found):
        return None
    usual = int(np.median(found.duration_ps))
    begin = first.start_ps if first else int(found.start_ps.min())
    compiled, since = _compiled_before(trace, begin)
    if compiled >= _LONG * usual:
        return Warming("", compiled, usual, Cause.COMPILATION, compiled, since)
    if first is None or first.duration_ps + compiled < _LONG * usual:
        return None
    if (
        first.duration_ps < _LONG * usual
    ):  # a step found by its program begins when that runs, compiled by then
        longer = max(0, first.duration_ps - usual)
        return Warming(
            first.name, first.duration_ps + compiled, usual, Cause.COMPILATION, compiled + longer, since
        )
    more: dict[Cause, int] = {}
    mean = found.class_ps.mean(axis=0)
    for klass in TimeClass:
        cause = BY_CLASS[klass]
        more[cause] = more.get(cause, 0) + int(first.class_ps[klass] - mean[klass])
    cause = max(more, key=lambda one: more[one])
    return Warming(first.name, first.duration_ps, usual, cause, more[cause], first.start_ps)


def _compiled_before(trace: Trace, begin: int) -> tuple[int, int]:
    """(time, since when) of compiling on the host before a moment."""
    of_host = np.isin(trace.metadata["plane"], planes(trace).hosts)
    is_compile = np.array([is_compilation(name) for name in metadata_names(trace)], np.bool_) & of_host
    rows = np.flatnonzero(is_compile[trace.events["metadata"]])
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = np.minimum(start + trace.events["duration_ps"][rows], begin)
    early = start < begin
    return (union_ps(start[early], end[early]), int(start[early].min())) if early.any() else (0, -1)
