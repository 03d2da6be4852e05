"""Devices of one host that work one after the other, though each step uses several.

device 0   ■■■■■■■■■■            ■■■■■■■■■■
device 1              ■■■■■■■■■■            ■■■■■■■■■■
turns      what all devices together are busy, less what the busiest one is
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_ALONE = 1.2  # busy times of all devices by that of their union
_LEAST = 0.15  # of the union, for a device to take part


@once
def device_turns(trace: Trace) -> Int64s:
    """Time of each step in which devices work that could work while another does, if neither needs the
    other's result; else zeros.
    """
    found = steps(trace)
    none = np.zeros(len(found), np.int64)
    spans = _spans(trace)
    if len(spans) < 2 or not len(found):
        return none
    begin, end = found.start_ps, found.start_ps + found.duration_ps
    busy = []
    for start, stop in spans:
        covered = union_cover(start, stop)
        busy.append(covered(end) - covered(begin))
    covered = union_cover(
        np.concatenate([start for start, _ in spans]), np.concatenate([stop for _, stop in spans])
    )
    union: Int64s = covered(end) - covered(begin)
    whole = int(union.sum())
    taking_part = [mine for mine in busy if int(mine.sum()) > _LEAST * whole]
    if len(taking_part) < 2 or sum(int(mine.sum()) for mine in taking_part) > _ALONE * whole:
        return none
    turns: Int64s = np.maximum(union - np.max(busy, axis=0), 0)
    return turns


def _spans(trace: Trace) -> list[tuple[Int64s, Int64s]]:
    """Starts and ends of what each device ran."""
    runs = cpu_runs(trace)
    if len(runs):
        return [
            (runs.start_ps[runs.device == one], runs.end_ps[runs.device == one])
            for one in np.unique(runs.device).tolist()
        ]
    found = []
    for plane in planes(trace).gpus:
        rows = stream_events(trace, plane)
        start = trace.events["start_ps"][rows].astype(np.int64)
        found.append((start, start + trace.events["duration_ps"][rows]))
    return [span for span in found if len(span[0])]
