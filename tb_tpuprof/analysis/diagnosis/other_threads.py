"""Python threads other than those of the steps: how much each runs, in which function, and whether it
produces what the steps wait for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import Origin, names
from tb_tpuprof.analysis.diagnosis.parts import origins, own_lines
from tb_tpuprof.analysis.diagnosis.records import ThreadActivity
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
def other_threads(trace: Trace) -> tuple[ThreadActivity, ...]:
    """Threads with Python frames that run no steps, the busiest first."""
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    step_lines = set(own_lines(trace, pieces).tolist())
    is_frame = np.array([frame_of(name) is not None for name in metadata_names(trace)], np.bool_)
    with_frames = marked(
        trace.event_line[rows_of(trace.events["metadata"], is_frame.view(np.uint8))], len(trace.lines)
    )
    on_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    lines = [
        line
        for line in with_frames.tolist()
        if line not in step_lines and on_host[line] and not _is_pool(trace, line)
    ]
    activities = [
        _activity(trace, line, steps.start_ps, steps.start_ps + steps.duration_ps) for line in lines
    ]
    return tuple(sorted((one for one in activities if one), key=lambda one: -one.running))


@once
def ahead_of_device(trace: Trace) -> ThreadActivity | None:
    """The steps' own thread if it only dispatches: the user's Python runs while XLA:CPU computes, on a
    processor that the computation needs.

    `running` is a fraction of the compute time. None if steps wait for what they dispatch, or without Python
    frames.
    """
    steps, pieces = step_pieces(trace)
    runs = cpu_runs(trace)
    if steps.how != "dispatched" or pieces is None or not len(runs.event):
        return None
    lines = own_lines(trace, pieces).tolist()
    candidates = [one for line in lines if (one := _users_python(trace, line, runs.start_ps, runs.end_ps))]
    return max(candidates, key=lambda one: one.running, default=None)


class _Line:
    """A thread as stretches of its innermost events (`begin`, `stop`, `owner`). Per event: whether it is
    inside a wait, whether it is the user's, and the user's event around it.
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
    """The metadata row with the most time: its function (empty if it is none) and that time."""
    total = np.bincount(metadata, weights=time)
    frame = frame_of(trace.strings.get(int(trace.metadata["name"][int(total.argmax())])))
    return Culprit("function", frame.function, frame.file, frame.line) if frame else Culprit(), int(
        total.max()
    )


def _users_python(trace: Trace, line: int, start: Int64s, end: Int64s) -> ThreadActivity | None:
    """The user's function that runs longest during some spans, and its share. Leaves out functions that call
    programs: they may wait in the call.
    """
    thread = _Line(trace, line)
    is_call = np.array([name.startswith("PjitFunction(") for name in metadata_names(trace)], np.bool_)[
        thread.metadata
    ]
    callers = np.unique(thread.metadata[thread.user[is_call & (thread.user >= 0)]])
    is_counted = (
        thread.is_users[thread.owner]
        & ~thread.waits[thread.owner]
        & ~np.isin(thread.metadata[thread.owner], callers)
    )
    if not is_counted.any():
        return None
    computed = union_cover(start, end)
    culprit, time_ps = _longest(
        trace,
        thread.metadata[thread.owner[is_counted]],
        (computed(thread.stop) - computed(thread.begin))[is_counted],
    )
    total_ps = int(computed(end.max(keepdims=True))[0])
    return (
        ThreadActivity(thread.name, culprit, time_ps / total_ps, 0.0, False)
        if culprit.name and total_ps
        else None
    )


def _is_pool(trace: Trace, line: int) -> bool:
    return trace.strings.get(int(trace.lines["name"][line])).startswith("tf_")


def _activity(trace: Trace, line: int, start: Int64s, end: Int64s) -> ThreadActivity | None:
    thread = _Line(trace, line)
    order = np.argsort(start, kind="stable")
    first, last = start[order], end[order]
    covered = union_cover(first, last)
    inside = covered(thread.stop) - covered(thread.begin)
    total_ps = int(covered(last.max(keepdims=True))[0])
    is_running = ~thread.waits[thread.owner]
    running, waiting = int(inside[is_running].sum()), int(inside[~is_running].sum())
    if not running + waiting or not total_ps:
        return None
    function_event = thread.user[thread.owner]
    # Sleeping and reading count as the function's time, waiting for space in a queue does not.
    is_put = _puts(trace, thread)
    counted = (function_event >= 0) & ~(is_put[thread.owner] & ~is_running)
    culprit = (
        _longest(trace, thread.metadata[function_event[counted]], inside[counted])[0]
        if counted.any()
        else Culprit()
    )
    return ThreadActivity(thread.name, culprit, running / total_ps, waiting / total_ps, bool(is_put.any()))


def _puts(trace: Trace, thread: _Line) -> npt.NDArray[np.bool_]:
    """Whether each event is inside a call that hands over results."""
    hands = np.zeros(len(trace.metadata), np.bool_)
    for row in np.unique(thread.metadata).tolist():
        frame = frame_of(trace.strings.get(int(trace.metadata["name"][row])))
        hands[row] = frame is not None and frame.function in _HANDS_OVER
    is_inside: npt.NDArray[np.bool_] = nearest(thread.parent, hands[thread.metadata] & ~thread.is_users) >= 0
    return is_inside
