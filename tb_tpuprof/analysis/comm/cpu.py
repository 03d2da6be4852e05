"""Devices of XLA:CPU: when each runs collectives, and when it computes.

Several devices of one process are made of its threads; the runs of operations name the device. A collective
is exposed unless the same device runs another operation at the same time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import Activity, CommOp, Traffic, activity
from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.ops.hlo_times import CONTAINERS
from tb_tpuprof.analysis.pod.transfers import kind_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_COMPUTES, _RUNS_OTHERS = -1, -2


def cpu_activities(trace: Trace) -> tuple[tuple[int, ...], tuple[Activity, ...], tuple[CommOp, ...]]:
    """The ordinals of the devices, the activity of each, and the collectives; nothing without collectives."""
    runs = cpu_runs(trace)
    n_texts = len(trace.strings) + 1
    keys, position = distinct_codes((runs.op + 1) * n_texts + runs.text + 1)
    ops: dict[CommOp, int] = {}
    codes = []
    for linked, text in zip((keys // n_texts - 1).tolist(), (keys % n_texts - 1).tolist(), strict=True):
        name, opcode = _instruction(trace, linked, text)
        kind = kind_of(opcode)
        made = CommOp(name, kind, Traffic.DEVICES)
        code = ops.setdefault(made, len(ops)) if kind else _COMPUTES
        codes.append(_RUNS_OTHERS if opcode in CONTAINERS else code)
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


def _instruction(trace: Trace, linked: int, text: int) -> tuple[str, str]:
    """The name and opcode of an operation: from its program, as names may be the user's own (`psum.3`), else
    from its name.
    """
    links = hlo_links(trace)
    if linked < 0:
        name = trace.strings.get(text).rpartition("::")[2].removeprefix("%")
        return name, name.partition(".")[0]
    op = links.ops[linked]
    module = trace.programs.module(op.program_id) if op.instruction >= 0 else None
    return op.name, op.name.partition(".")[0] if module is None else module.opcode(op.instruction)
