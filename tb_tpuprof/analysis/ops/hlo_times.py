"""Events linked to HLO instructions → number and total time of the runs of each instruction of a program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import HloLinks, hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import ASYNC_OP_LINE, planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, first_ints, values_at
from tb_tpuprof.analysis.ops.hlo_linked import linked_runs
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.trace.trace import Trace

# Their time is that of the instructions they run.
CONTAINERS = frozenset(("while", "conditional", "call"))


@dataclass(frozen=True, eq=False)
class ProgramTimes:
    """`rows` of instructions, ascending; the total time in ps and the number of their events, over all
    devices.
    """

    rows: npt.NDArray[np.int64]
    time_ps: npt.NDArray[np.int64]
    n: npt.NDArray[np.int64]

    def at(self, row: int) -> tuple[int, int]:
        """Time in ps and number of an instruction's events; (0, 0) if none was traced."""
        i = int(np.searchsorted(self.rows, row))
        return (
            (int(self.time_ps[i]), int(self.n[i])) if i < len(self.rows) and self.rows[i] == row else (0, 0)
        )


NO_TIMES = ProgramTimes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


@once
def hlo_times(trace: Trace) -> dict[int, ProgramTimes]:
    """Times by program id, of the same occurrences as on the operations pages. Nested events count both for
    themselves and for the events around them.
    """
    links = hlo_links(trace)
    kind = planes(trace).hardware
    op, duration = _on_tpus(trace, links) if kind == "TPU" else linked_runs(trace, links, kind)[:2]
    time, n = sum_by(op, duration, len(links)), np.bincount(op, minlength=len(links)).astype(np.int64)
    linked = np.flatnonzero((links.instruction >= 0) & (n > 0))
    result = {}
    for program in np.unique(links.program[linked]).tolist():
        selected = linked[links.program[linked] == program]
        rows, code = distinct_codes(links.instruction[selected])
        result[program] = ProgramTimes(
            rows, sum_by(code, time[selected], len(rows)), sum_by(code, n[selected], len(rows))
        )
    return result


def _on_tpus(trace: Trace, links: HloLinks) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Operation and time in ps of each occurrence, by the device's own clock where the trace has it.

    The line of asynchronous operations repeats, with longer times, operations of the line of operations, so
    it is left out.
    """
    is_async_line = np.array([name == ASYNC_OP_LINE for name in trace.line_names], np.bool_)
    counts = ~is_async_line[trace.event_line[links.events]]
    events = links.events[counts]
    on_device = values_at(events, *first_ints(trace, "device_duration_ps"), -1)
    return links.op[counts], np.where(on_device >= 0, on_device, trace.events["duration_ps"][events])
