"""Devices of XLA:CPU: when each runs collectives, and when it computes.

Several devices of one process are made of its threads; the runs of operations name the device. A collective
is exposed unless the same device runs another operation at the same time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import Activity, CommOp, Traffic, activity
from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.ops.hlo_times import CONTAINERS
from tb_tpuprof.analysis.pod.transfers import kind_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_COMPUTES, _RUNS_OTHERS = -1, -2


def cpu_activities(trace: Trace) -> tuple[tuple[int, ...], tuple[Activity, ...], tuple[CommOp, ...]]:
    """The ordinals of the devices, the activity of each, and the collectives; nothing without collectives."""
    runs = cpu_runs(trace)
    text, position = distinct_codes(runs.text)
    ops: list[CommOp] = []
    codes = []
    for name in (trace.strings.get(int(i)).removeprefix("%") for i in text.tolist()):
        kind = kind_of(name.partition(".")[0])
        opcode = name.partition(".")[0]
        codes.append(len(ops) if kind else _RUNS_OTHERS if opcode in CONTAINERS else _COMPUTES)
        ops += [CommOp(name, kind, Traffic.DEVICES)] if kind else []
    if not ops:
        return (), (), ()
    op = np.array(codes, np.int64)[position]
    devices, device = distinct_codes(runs.device)
    result = []
    for number in range(len(devices)):
        moving, computing = (np.flatnonzero((device == number) & mask) for mask in (op >= 0, op == _COMPUTES))
        events = runs.event[moving].astype(np.int64)
        result.append(
            activity(
                (runs.start_ps[moving], runs.end_ps[moving], op[moving], events),
                (runs.start_ps[computing], runs.end_ps[computing]),
            )
        )
    return tuple(int(i) for i in devices.tolist()), tuple(result), tuple(ops)
