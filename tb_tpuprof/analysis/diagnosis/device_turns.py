"""Devices of one host that take turns, although each step uses several.

device 0   ■■■■■■■■■■            ■■■■■■■■■■
device 1              ■■■■■■■■■■            ■■■■■■■■■■
turns      time in which any device is busy, minus that of the busiest device
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
_ALONE = 1.2  # sum of the devices' busy times / busy time of their union
_LEAST = 0.15  # of the union: the least busy time of a device that counts


@once
def device_turns(trace: Trace) -> Int64s:
    """Time per step in ps that devices could save by running at the same time, provided that none needs
    another's result; zeros where devices do not take turns.
    """
    all_steps = steps(trace)
    no_turns = np.zeros(len(all_steps), np.int64)
    spans = _spans(trace)
    if len(spans) < 2 or not len(all_steps):
        return no_turns
    begin, end = all_steps.start_ps, all_steps.start_ps + all_steps.duration_ps
    busy = []
    for start, stop in spans:
        covered = union_cover(start, stop)
        busy.append(covered(end) - covered(begin))
    covered = union_cover(
        np.concatenate([start for start, _ in spans]), np.concatenate([stop for _, stop in spans])
    )
    union: Int64s = covered(end) - covered(begin)
    total_ps = int(union.sum())
    taking_part = [device_busy for device_busy in busy if int(device_busy.sum()) > _LEAST * total_ps]
    if len(taking_part) < 2 or sum(int(device_busy.sum()) for device_busy in taking_part) > _ALONE * total_ps:
        return no_turns
    turns: Int64s = np.maximum(union - np.max(busy, axis=0), 0)
    return turns


def _spans(trace: Trace) -> list[tuple[Int64s, Int64s]]:
    """Starts and ends of the work of each device."""
    runs = cpu_runs(trace)
    if len(runs):
        return [
            (runs.start_ps[runs.device == one], runs.end_ps[runs.device == one])
            for one in np.unique(runs.device).tolist()
        ]
    spans = []
    for plane in planes(trace).gpus:
        rows = stream_events(trace, plane)
        start = trace.events["start_ps"][rows].astype(np.int64)
        spans.append((start, start + trace.events["duration_ps"][rows]))
    return [span for span in spans if len(span[0])]
