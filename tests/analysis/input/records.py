"""Records of the input pipeline, made by hand."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.input.host import HostInput
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import StepWait

MS = 10**9


def steps_of(*lengths: int, waits: tuple[StepWait, ...] = (), **classes: tuple[int, ...]) -> Steps:
    duration = np.array(lengths, np.int64)
    class_ps = np.zeros((len(lengths), N_CLASSES), np.int64)
    for name, times in classes.items():
        class_ps[:, TimeClass[name]] = times
    class_ps[:, 0] += duration - class_ps.sum(axis=1)
    start = np.cumsum(duration) - duration
    names = tuple(map(str, range(len(lengths))))
    return Steps(np.arange(len(lengths)), names, start, duration, class_ps, "annotation", waits=waits)


def host_of(*ops: tuple[str, str, int]) -> HostInput:
    """Operations (name, category, self time)."""
    n, times = len(ops), np.array([time for _, _, time in ops], np.int64)
    metrics = OpMetrics(
        tuple(name for name, _, _ in ops),
        ("Dataset",) * n,
        np.ones(n, np.int64),
        times,
        times,
        np.zeros(n, np.bool_),
        0,
    )
    return HostInput(metrics, tuple(category for _, category, _ in ops))
