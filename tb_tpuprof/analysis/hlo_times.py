"""Events linked to HLO instructions → how often and how long each instruction of a program ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo_links import hlo_links
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.planes import ASYNC_OP_LINE
from tb_tpuprof.analysis.stat_rows import first_ints, values_at
from tb_tpuprof.trace.trace import Trace

# Their time is that of the instructions that they run.
CONTAINERS = frozenset(("while", "conditional", "call"))


@dataclass(frozen=True, eq=False)
class ProgramTimes:
    """`rows` of instructions, ascending; the time and the number of their events, of all devices together."""

    rows: npt.NDArray[np.int64]
    time_ps: npt.NDArray[np.int64]
    n: npt.NDArray[np.int64]

    def at(self, row: int) -> tuple[int, int]:
        """Time and number of an instruction's events; (0, 0) where none was traced."""
        i = int(np.searchsorted(self.rows, row))
        return (int(self.time_ps[i]), int(self.n[i])) if i < len(self.rows) and self.rows[i] == row else (0, 0)


_NONE = ProgramTimes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@once
def hlo_times(trace: Trace) -> dict[int, ProgramTimes]:
    """Times by program id. Nested events count for themselves and for those around them.

    The device's own clock counts where it is told. A TPU's line of asynchronous operations tells again, and for longer, of
    operations on its line of operations: it is left out.
    """
    links = hlo_links(trace)
    n_ops = len(links.ops)
    is_async_line = np.array([name == ASYNC_OP_LINE for name in trace.line_names], np.bool_)
    counts = ~is_async_line[trace.event_line[links.events]]
    op, events = links.op[counts], links.events[counts]
    on_device = values_at(events, *first_ints(trace, "device_duration_ps"), -1)
    duration = np.where(on_device >= 0, on_device, trace.events["duration_ps"][events])
    time = np.zeros(n_ops, np.int64)
    np.add.at(time, op, duration)
    n = np.bincount(op, minlength=n_ops)
    by_program: dict[int, dict[int, list[int]]] = {}
    for i, named in enumerate(links.ops):
        if named.instruction >= 0 and n[i]:
            entry = by_program.setdefault(named.program_id, {}).setdefault(named.instruction, [0, 0])
            entry[0] += int(time[i])
            entry[1] += int(n[i])
    return {program: _times(rows) for program, rows in by_program.items()}


def times_of(trace: Trace, program_id: int) -> ProgramTimes:
    """Times of one program's instructions."""
    return hlo_times(trace).get(program_id, _NONE)


def _times(found: dict[int, list[int]]) -> ProgramTimes:
    rows = np.array(sorted(found), np.int64)
    return ProgramTimes(rows, np.array([found[row][0] for row in rows.tolist()]), np.array([found[row][1] for row in rows.tolist()]))
