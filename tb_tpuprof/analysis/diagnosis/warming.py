"""First steps that are longer than the rest: what they do that later ones need not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.parts import BY_CLASS
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.step_classes import TimeClass
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.trace.trace import Trace

_LONG = 2.0  # times the median step


@dataclass(frozen=True)
class Warming:
    """A first step, left out of the shown ones, that took long: how long, the median of the others, and what it did most of that."""

    name: str
    duration_ps: int
    usual_ps: int
    cause: Cause
    cause_ps: int
    start_ps: int


@once
def warming(trace: Trace) -> Warming | None:
    """The first step of a host if it took twice as long as usual."""
    found = steps(trace)
    first = found.first
    if first is None or not len(found):
        return None
    usual = int(np.median(found.duration_ps))
    if first.duration_ps < _LONG * usual:
        return None
    more: dict[Cause, int] = {}
    mean = found.class_ps.mean(axis=0)
    for klass in TimeClass:
        cause = BY_CLASS[klass]
        more[cause] = more.get(cause, 0) + int(first.class_ps[klass] - mean[klass])
    cause = max(more, key=lambda one: more[one])
    return Warming(first.name, first.duration_ps, usual, cause, more[cause], first.start_ps)
