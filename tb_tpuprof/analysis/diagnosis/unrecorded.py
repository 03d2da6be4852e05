"""Time that a trace says nothing of: where in the step it lies, by what the step's thread did before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.kernel_names import short_name
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.step_classes import TimeClass
from tb_tpuprof.analysis.step_pieces import Pieces
from tb_tpuprof.analysis.steps import step_pieces
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_MOST = 3


@dataclass(frozen=True)
class Gap:
    """Unrecorded time between two things: names of what ends before and begins after it, empty at the step's own start and end.

    `time_ps`: in each step; `first_ps`, `last_ps`: its longest.
    """

    before: str
    after: str
    time_ps: Int64s
    first_ps: int
    last_ps: int

    @property
    def where(self) -> str:
        """In words."""
        if self.before and self.after:
            return f"between `{self.before}` and `{self.after}`"
        if self.before:
            return f"between `{self.before}` and the end of the step"
        return f"before `{self.after}`" if self.after else "throughout the step"

    def of_step(self, number: int) -> Gap:
        """The same of one step."""
        return replace(self, time_ps=self.time_ps[number : number + 1])


@once
def gaps(trace: Trace) -> tuple[Gap, ...]:
    """The longest kinds of unrecorded time in a host's steps."""
    steps, pieces = step_pieces(trace)
    if pieces is None or not len(steps) or not len(pieces):
        return ()
    told = pieces.said != TimeClass.UNKNOWN
    order = np.flatnonzero(told)[np.lexsort((pieces.start[told], pieces.step[told]))]
    step, start = pieces.step[order], pieces.start[order]
    # When all that began before has ended, step by step.
    offset = step * (int(pieces.end.max()) + 1)
    reached = np.maximum.accumulate(pieces.end[order] + offset) - offset
    until = order[np.maximum.accumulate(np.where(pieces.end[order] == reached, np.arange(len(order)), 0))]  # what ends then
    first = np.append(True, step[1:] != step[:-1])
    last = np.append(step[1:] != step[:-1], True)
    opens = np.where(first, steps.start_ps[step], np.append(0, reached[:-1]))
    found = [(opens, start, np.where(first, -1, np.append(-1, until[:-1])), order, step)]
    found.append((reached[last], (steps.start_ps + steps.duration_ps)[step[last]], until[last], np.full(int(last.sum()), -1), step[last]))
    begin, end, before, after, at = (np.concatenate(columns) for columns in zip(*found, strict=True))
    lasting = end > begin
    return _by_place(trace, pieces, (begin[lasting], end[lasting], before[lasting], after[lasting], at[lasting]), len(steps))


def _by_place(trace: Trace, pieces: Pieces, table: tuple[Int64s, ...], n_steps: int) -> tuple[Gap, ...]:
    begin, end, before, after, at = table
    kept = np.argsort(begin - end, kind="stable")[: 50 * n_steps]
    total: dict[tuple[str, str], tuple[Int64s, int, int]] = {}
    for i in kept.tolist():
        key = _name(trace, pieces, int(before[i])), _name(trace, pieces, int(after[i]))
        time, a, b = total.get(key, (np.zeros(n_steps, np.int64), int(begin[i]), int(end[i])))
        time[at[i]] += int(end[i] - begin[i])
        total[key] = time, a, b
    found = [Gap(*key, time, a, b) for key, (time, a, b) in total.items()]
    return tuple(sorted(found, key=lambda gap: -int(gap.time_ps.sum()))[:_MOST])


def _name(trace: Trace, pieces: Pieces, piece: int) -> str:
    """What a piece is called: a program or operation, without numbers that differ from call to call."""
    if piece < 0:
        return ""
    text = trace.strings.get(int(trace.metadata["name"][trace.events["metadata"][pieces.event[piece]]]))
    if pieces.named[piece] < 0 and pieces.said[piece] > TimeClass.HOST_COMPUTE:
        return short_name(text)
    return "the device's work" if text.startswith("ThreadpoolListener") else text.removeprefix("$")
