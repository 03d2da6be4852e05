"""Python threads beside the one that runs the steps: how much each runs, where, and whether it makes what the
steps wait for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import Origin, names
from tb_tpuprof.analysis.diagnosis.parts import origins, own_lines
from tb_tpuprof.analysis.diagnosis.records import Beside
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.line_contexts import innermost, nearest, parents_within
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import Kind, frame_of
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.waits import name_kinds
from tb_tpuprof.native import rows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_HANDS_OVER = (
    "put",
    "put_nowait",
    "_put",
    "send",
    "send_bytes",
    "notify",
    "notify_all",
    "set",
    "set_result",
    "append",
)


@once
def threads_beside(trace: Trace) -> tuple[Beside, ...]:
    """Threads with Python frames on which no step is, those that run longest first."""
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    own = set(own_lines(trace, pieces).tolist())
    is_frame = np.array([frame_of(name) is not None for name in metadata_names(trace)], np.bool_)
    with_frames = marked(
        trace.event_line[rows_of(trace.events["metadata"], is_frame.view(np.uint8))], len(trace.lines)
    )
    on_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    lines = [
        line
        for line in with_frames.tolist()
        if line not in own and on_host[line] and not _is_pool(trace, line)
    ]
    found = [_beside(trace, line, steps.start_ps, steps.start_ps + steps.duration_ps) for line in lines]
    return tuple(sorted((one for one in found if one), key=lambda one: -one.running))


@once
def ahead_of_device(trace: Trace) -> Beside | None:
    """The steps' own thread where it only dispatches: its user's Python runs while XLA:CPU computes, on a
    processor that this needs.

    `running` is a share of the computing time. None where steps wait for what they dispatch, and without
    Python frames.
    """
    steps, pieces = step_pieces(trace)
    runs = cpu_runs(trace)
    if steps.how != "dispatched" or pieces is None or not len(runs.event):
        return None
    lines = own_lines(trace, pieces).tolist()
    found = [one for line in lines if (one := _users_python(trace, line, runs.start_ps, runs.end_ps))]
    return max(found, key=lambda one: one.running, default=None)


class _Line:
    """A thread as stretches of its innermost events (`begin`, `stop`, `owner`), with what its events are: in
    waits, the user's own.
    """

    def __init__(self, trace: Trace, line: int) -> None:
        rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        self.name = trace.strings.get(int(trace.lines["name"][line]))
        self.parent = parents_within(trace, rows)
        self.begin, self.stop, self.owner = innermost(trace, rows, self.parent)
        self.metadata = trace.events["metadata"][rows]
        self.waits = nearest(self.parent, name_kinds(trace)[self.metadata] == Kind.WAIT) >= 0
        self.is_users = origins(names(trace).origin[self.metadata], self.parent) == Origin.USER
        self.user = nearest(self.parent, self.is_users)


def _longest(trace: Trace, metadata: npt.NDArray[np.integer], time: Int64s) -> tuple[Culprit, int]:
    """The function that takes most of some times, and how much; none where what takes most is no function."""
    total = np.bincount(metadata, weights=time)
    frame = frame_of(trace.strings.get(int(trace.metadata["name"][int(total.argmax())])))
    return Culprit("function", frame.function, frame.file, frame.line) if frame else Culprit(), int(
        total.max()
    )


def _users_python(trace: Trace, line: int, start: Int64s, end: Int64s) -> Beside | None:
    """The user's function that itself runs longest in some time, and its share, not one that calls programs:
    it may wait in the call.
    """
    of = _Line(trace, line)
    is_call = np.array([name.startswith("PjitFunction(") for name in metadata_names(trace)], np.bool_)[
        of.metadata
    ]
    callers = np.unique(of.metadata[of.user[is_call & (of.user >= 0)]])
    runs = of.is_users[of.owner] & ~of.waits[of.owner] & ~np.isin(of.metadata[of.owner], callers)
    if not runs.any():
        return None
    computed = union_cover(start, end)
    culprit, time_ps = _longest(
        trace, of.metadata[of.owner[runs]], (computed(of.stop) - computed(of.begin))[runs]
    )
    whole = int(computed(end.max(keepdims=True))[0])
    return Beside(of.name, culprit, time_ps / whole, 0.0, False) if culprit.name and whole else None


def _is_pool(trace: Trace, line: int) -> bool:
    return trace.strings.get(int(trace.lines["name"][line])).startswith("tf_")


def _beside(trace: Trace, line: int, start: Int64s, end: Int64s) -> Beside | None:
    of = _Line(trace, line)
    order = np.argsort(start, kind="stable")
    first, last = start[order], end[order]
    covered = union_cover(first, last)
    inside = covered(of.stop) - covered(of.begin)
    whole = int(covered(last.max(keepdims=True))[0])
    runs = ~of.waits[of.owner]
    running, waiting = int(inside[runs].sum()), int(inside[~runs].sum())
    if not running + waiting or not whole:
        return None
    by = of.user[of.owner]
    # What the thread sleeps or reads in is what takes its time, too, but not waiting for room in the queue.
    puts = _puts(trace, of)
    counted = (by >= 0) & ~(puts[of.owner] & ~runs)
    culprit = _longest(trace, of.metadata[by[counted]], inside[counted])[0] if counted.any() else Culprit()
    return Beside(of.name, culprit, running / whole, waiting / whole, bool(puts.any()))


def _puts(trace: Trace, of: _Line) -> npt.NDArray[np.bool_]:
    """Whether each event is inside of a call that hands something over."""
    hands = np.zeros(len(trace.metadata), np.bool_)
    for row in np.unique(of.metadata).tolist():
        frame = frame_of(trace.strings.get(int(trace.metadata["name"][row])))
        hands[row] = frame is not None and frame.function in _HANDS_OVER
    found: npt.NDArray[np.bool_] = nearest(of.parent, hands[of.metadata] & ~of.is_users) >= 0
    return found
