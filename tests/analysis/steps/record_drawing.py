"""Records of steps, made by hand."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.steps.classes import N_CLASSES
from tb_tpuprof.analysis.steps.clocks import Moments
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import StepWait

S = 10**12
NONE = Moments(np.empty(0, np.int64), np.empty(0, np.int64))


def steps_of(
    starts: list[int], length: int = 10, waits: tuple[StepWait, ...] = (), source: str = "annotation"
) -> Steps:
    n = len(starts)
    class_ps = np.zeros((n, N_CLASSES), np.int64)
    class_ps[:, 0] = length
    names = tuple(f"s{i}" for i in range(n))
    return Steps(
        np.arange(n),
        names,
        np.array(starts, np.int64),
        np.full(n, length, np.int64),
        class_ps,
        source,
        waits=waits,
    )
