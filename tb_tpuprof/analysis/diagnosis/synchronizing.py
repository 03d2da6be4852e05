"""Calls that wait for the device in the middle of a step, and the host's work after them that could run beside the device.

    thread   │dispatch│ float(loss): waits ──────────┤ Python ─────────┤
    device    ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■   (nothing to do)

Without the wait the Python would run while the device computes: up to the shorter of the two is lost. Whose work follows in the same
function call or step annotation; a wait at the end of a step loses nothing that the step itself shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.charging import union_cover
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import CAUSES, Origin, names
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.nesting import parents
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.analysis.python_frames import frame_of
from tb_tpuprof.analysis.step_classes import TimeClass
from tb_tpuprof.analysis.step_waits import nearest
from tb_tpuprof.analysis.steps import step_pieces
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Sync:
    """Calls of one kind by one function. `after_ps`: in each step the host's time behind the last of them in which nothing computed;
    `computed_ps`: the time in which something did. `first_ps`, `last_ps`: one call, for the timeline.
    """

    call: str
    culprit: Culprit
    per_step: Int64s
    after_ps: Int64s
    computed_ps: Int64s
    first_ps: int
    last_ps: int

    def of_step(self, number: int) -> Sync:
        """The same of one step."""
        at = slice(number, number + 1)
        return replace(self, per_step=self.per_step[at], after_ps=self.after_ps[at], computed_ps=self.computed_ps[at])


@once
def synchronizing(trace: Trace) -> tuple[Sync, ...]:
    """The waits for the device of a host's steps, those first behind which most time is lost."""
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    known = names(trace)
    is_sync = known.claim == CAUSES.index(Cause.SYNCHRONIZATION)
    computing = np.isin(pieces.klass, (TimeClass.HOST_COMPUTE, TimeClass.DEVICE_COMPUTE_16, TimeClass.DEVICE_COMPUTE_32)) & (
        pieces.named < 0
    )
    own_ops = (pieces.klass == TimeClass.HOST_COMPUTE) & (pieces.named >= 0) & known.is_op[trace.events["metadata"][pieces.event]]
    busy = union_cover(pieces.start[computing | own_ops], pieces.end[computing | own_ops])
    found: dict[tuple[str, Culprit], list[tuple[int, int, int, int, int]]] = {}
    for line in np.unique(trace.event_line[pieces.event[pieces.named >= 0]]).tolist():
        for step, call, culprit, row, until in _on_line(trace, int(line), steps.start_ps, steps.start_ps + steps.duration_ps, is_sync):
            begin = int(trace.events["start_ps"][row])
            end = begin + int(trace.events["duration_ps"][row])
            free = until - end - int((busy(np.array([until])) - busy(np.array([end])))[0])
            found.setdefault((call, culprit), []).append((step, begin, end, max(free, 0), until))
    computed = busy(steps.start_ps + steps.duration_ps) - busy(steps.start_ps)
    result = [_sync(key, table, len(steps), computed) for key, table in found.items()]
    return tuple(sorted(result, key=lambda sync: (-int(sync.after_ps.sum()), -int(sync.per_step.sum()))))


def _sync(key: tuple[str, Culprit], table: list[tuple[int, int, int, int, int]], n: int, computed: Int64s) -> Sync:
    step, begin, end, free, _until = (np.array(column, np.int64) for column in zip(*table, strict=True))
    after = np.zeros(n, np.int64)
    np.maximum.at(after, step, free)
    longest = int((end - begin).argmax())
    return Sync(*key, np.bincount(step, minlength=n).astype(np.int64), after, computed, int(begin[longest]), int(end[longest]))


def _on_line(
    trace: Trace, line: int, start: Int64s, end: Int64s, is_sync: npt.NDArray[np.bool_]
) -> list[tuple[int, str, Culprit, int, int]]:
    """(step, call, who calls it, event, until when its function or step goes on before it dispatches again) of each wait on a thread."""
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents(trace)[rows].astype(np.int32)
    parent[parent >= 0] -= rows.start
    metadata = trace.events["metadata"][rows]
    known = names(trace)
    outer = nearest(parent, is_sync[metadata])
    waits = np.flatnonzero(is_sync[metadata] & ((parent < 0) | (outer[np.maximum(parent, 0)] < 0)))
    begin = trace.events["start_ps"][rows]
    order = np.argsort(start, kind="stable")
    at = np.searchsorted(start[order], begin[waits], side="right") - 1
    waits, at = waits[at >= 0], order[at[at >= 0]]
    inside = begin[waits] < end[at]
    waits, at = waits[inside], at[inside]
    user = nearest(parent, known.origin[metadata] == Origin.USER)
    dispatches = np.flatnonzero(_is_dispatch(trace)[metadata])
    last = begin + trace.events["duration_ps"][rows]
    result = []
    has_gpu = bool(planes(trace).gpus)
    for wait, step in zip(waits.tolist(), at.tolist(), strict=True):
        bound = int(end[step])
        if user[wait] >= 0 and not has_gpu:  # a GPU goes on without its caller, so what the caller does next could be hidden, too
            bound = min(bound, int(last[user[wait]]))
        following = np.searchsorted(begin[dispatches], last[wait])
        if following < len(dispatches):
            bound = min(bound, int(begin[dispatches[following]]))
        call = _text(trace, int(metadata[wait]))
        result.append(
            (step, call, _who(trace, int(metadata[user[wait]])) if user[wait] >= 0 else Culprit("call", call), wait + rows.start, bound)
        )
    return result


def _is_dispatch(trace: Trace) -> npt.NDArray[np.bool_]:
    result = np.zeros(len(trace.metadata), np.bool_)
    for row, name in enumerate(trace.metadata["name"].tolist()):
        text = trace.strings.get(name)
        result[row] = text.startswith(("PjitFunction(", "EagerExecute", "FunctionRun", "cudaLaunch", "hipLaunch"))
    return result


def _text(trace: Trace, row: int) -> str:
    text = trace.strings.get(int(trace.metadata["name"][row]))
    frame = frame_of(text)
    return frame.function if frame else text


def _who(trace: Trace, row: int) -> Culprit:
    frame = frame_of(trace.strings.get(int(trace.metadata["name"][row])))
    return Culprit("function", frame.function, frame.file, frame.line) if frame else Culprit()
