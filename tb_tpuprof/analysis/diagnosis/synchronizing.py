"""Calls that wait for the device in the middle of a step, and the host's work after them that could run
beside the device.

    thread   │dispatch│ float(loss): waits ──────────┤ Python ─────────┤
    device    ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■   (nothing to do)

A wait that no event is written for (`block_until_ready` of JAX) shows as Python that does nothing while the
device computes, and goes on when it is done. Without the wait the Python would run while the device computes:
up to the shorter of the two is lost. Whose work follows in the same function call or step annotation; a wait
at the end of a step loses nothing that the step itself shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import CAUSES, Origin
from tb_tpuprof.analysis.diagnosis.names import names as names_of
from tb_tpuprof.analysis.diagnosis.parts import origins, own_lines
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, Sync
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.line_contexts import LineContexts, line_contexts, nearest
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import frame_of
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import non_overlapping
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.windows import Windows, step_at, windows_of
from tb_tpuprof.native import stretches
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Covered = Callable[[Int64s], Int64s]
_SHORT = 0.005  # of the step: whoever has the result after so little did not wait for it
_NEAR = 0.02
_LONG = 0.05
_COVERED = 0.8


@once
def synchronizing(trace: Trace) -> tuple[Sync, ...]:
    """The waits for the device of a host's steps, those first behind which most time is lost."""
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    known = names_of(trace)
    is_sync = known.claim == CAUSES.index(Cause.SYNCHRONIZATION)
    outline = pieces.outline()
    computing = np.isin(outline.klass, COMPUTES) & (outline.named < 0)
    own_ops = (
        (outline.klass == TimeClass.HOST_COMPUTE)
        & (outline.named >= 0)
        & known.is_op[trace.events["metadata"][outline.event]]
    )
    computed_by = pieces.spread(np.where(computing | own_ops, 0, -1))
    busy = union_cover(computed_by.start, computed_by.end)
    found: dict[tuple[str, Culprit], list[tuple[int, int, int, int, int]]] = {}
    windows = windows_of(steps.start_ps, steps.duration_ps)
    for line in own_lines(trace, pieces).tolist():
        for step, key, begin, end, until, goes_on in _on_line(trace, int(line), windows, is_sync, busy):
            free = max(until - end - int((busy(np.array([until])) - busy(np.array([end])))[0]), 0)
            found.setdefault(key, []).append((step, begin, end, free, free if goes_on else 0))
    computed = busy(steps.start_ps + steps.duration_ps) - busy(steps.start_ps)
    result = [_sync(key, table, len(steps), computed) for key, table in found.items()]
    return tuple(sorted(result, key=lambda sync: (-int(sync.after_ps.sum()), -int(sync.per_step.sum()))))


def _sync(
    key: tuple[str, Culprit], table: list[tuple[int, int, int, int, int]], n: int, computed: Int64s
) -> Sync:
    step, begin, end, free, followed = (np.array(column, np.int64) for column in zip(*table, strict=True))
    after, before = (
        np.bincount(step, weights=times, minlength=n).astype(np.int64) for times in (free, followed)
    )
    longest = int((end - begin).argmax())
    return Sync(
        *key,
        np.bincount(step, minlength=n).astype(np.int64),
        after,
        before,
        computed,
        int(begin[longest]),
        int(end[longest]),
    )


def _on_line(
    trace: Trace, line: int, windows: Windows, is_sync: npt.NDArray[np.bool_], busy: Covered
) -> Iterator[tuple[int, tuple[str, Culprit], int, int, int, bool]]:
    """(step, call and who calls it, start, end, until when its function or step goes on before it dispatches
    again, whether the step does so at all) of a thread's waits.
    """
    of = line_contexts(trace, line)
    begin, last = of.start, of.start + of.duration
    outer = nearest(of.above, is_sync[of.metadata])
    is_outermost = is_sync[of.metadata] & ((of.above < 0) | (outer[np.maximum(of.above, 0)] < 0))
    named = np.flatnonzero(is_outermost[of.context])
    table = np.array([named, begin[named], last[named]], np.int64)
    known = np.concatenate((table, _silent(trace, of, outer >= 0, windows, busy)), axis=1)
    event, start, end = np.concatenate((known, _awaited(trace, of, windows, busy, np.sort(known[2]))), axis=1)
    step = step_at(windows, start)
    waited = end - start >= _SHORT * np.where(
        step >= 0, (windows.end - windows.start)[np.maximum(step, 0)], 0
    )
    event, start, end, step = event[waited], start[waited], end[waited], step[waited]
    user = nearest(of.above, origins(names_of(trace).origin[of.metadata], of.above) == Origin.USER)
    dispatches = np.sort(
        np.concatenate((begin[np.flatnonzero(_is_dispatch(trace)[of.metadata][of.context])], start))
    )
    has_gpu = bool(planes(trace).gpus)
    for at in np.flatnonzero(step >= 0).tolist():
        row = int(event[at])
        who = _within(of, row, user)
        bound = int(windows.end[step[at]])
        if who >= 0:
            # A function that does hardly more than wait is not whose work goes on.
            rest = max(int(end[at] - start[at]) // 100, int((windows.end - windows.start)[step[at]] * _NEAR))
            goes_on_itself = last[who] - end[at] > rest or of.parent[who] < 0
            around = who if goes_on_itself else _within(of, int(of.parent[who]), user)
            # A GPU goes on without its caller, so what the caller does next could be hidden, too.
            bound = min(bound, int(last[around])) if around >= 0 and not has_gpu else bound
        following = np.searchsorted(dispatches, end[at])
        goes_on = following < len(dispatches) and int(dispatches[following]) < int(windows.end[step[at]])
        bound = min(bound, int(dispatches[following])) if following < len(dispatches) else bound
        call = _text(trace, int(of.metadata[of.context[row]]))
        culprit = _who(trace, int(of.metadata[of.context[who]])) if who >= 0 else Culprit("call", call)
        yield int(step[at]), (call, culprit), int(start[at]), int(end[at]), max(bound, int(end[at])), goes_on


def _within(of: LineContexts, event: int, chosen: npt.NDArray[np.int32]) -> int:
    """The event around another (itself included) whose context is the `chosen` one of the other's; -1 for
    none.
    """
    context = int(chosen[of.context[event]])
    while context >= 0 and int(of.context[event]) != context:
        event = int(of.parent[event])
    return event if context >= 0 else -1


def _silent(
    trace: Trace, of: LineContexts, in_sync: npt.NDArray[np.bool_], windows: Windows, busy: Covered
) -> Int64s:
    """Stretches of frames without events of their own that end when the computing of others does: [(innermost
    event, start, end), …].
    """
    code = np.where(
        (names_of(trace).origin[of.metadata] >= Origin.USER) & ~in_sync, np.arange(len(of)), -1
    ).astype(np.int32)
    found = [np.empty((3, 0), np.int64)]
    for rows in non_overlapping(windows.start, windows.end):
        spans = windows.start[rows], windows.end[rows]
        least = int((spans[1] - spans[0]).min() * _LONG) if len(rows) else 0
        start, end, at, event, _last = stretches(
            of.start, of.duration, of.parent, (of.context, code), spans, least
        )
        found.append(
            np.array([event, start, end])[:, _are_silent((start, end), (spans[1] - spans[0])[at], busy)]
        )
    result: Int64s = np.concatenate(found, axis=1)
    return result


def _awaited(trace: Trace, of: LineContexts, windows: Windows, busy: Covered, known: Int64s) -> Int64s:
    """Stretches without calls that end, when the computing of others does, with a look at the result: the
    same where no frame is traced.

    A thread that waits for a result of JAX writes no event until it has it; then it writes a short one
    (`…Buffer::Await`). `known`: when other waits end, ascending.
    """
    names = metadata_names(trace)
    contexts = of.metadata.tolist()
    looks = np.array([names[row].endswith("Buffer::Await") for row in contexts], np.bool_)
    calls = names_of(trace).origin[of.metadata] == Origin.RUNTIME
    if not looks.any():
        return np.empty((3, 0), np.int64)
    code = np.where(calls & ~looks, 0, -1).astype(np.int32)
    everywhere = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    _start, ended, *_rest = stretches(of.start, of.duration, of.parent, (of.context, code), everywhere)
    event = np.flatnonzero(looks[of.context])
    end = of.start[event]
    before = np.searchsorted(ended, end, side="right") - 1
    start = np.where(before >= 0, ended[np.maximum(before, 0)], end)
    step = step_at(windows, end)
    length = np.where(step >= 0, (windows.end - windows.start)[np.maximum(step, 0)], np.iinfo(np.int32).max)
    chosen = (step >= 0) & _are_silent((start, end), length, busy)
    near = (length * _NEAR).astype(np.int64)
    chosen &= np.searchsorted(known, end - near) == np.searchsorted(known, end + near, side="right")
    return np.array([event, start, end])[:, chosen]


def _are_silent(span: tuple[Int64s, Int64s], length: Int64s, busy: Covered) -> npt.NDArray[np.bool_]:
    """Whether others compute during a long stretch, and stop when it ends. `length`: of the step that each is
    in.
    """
    start, end = span
    near = (length * _NEAR).astype(np.int64)
    chosen: npt.NDArray[np.bool_] = (end - start >= _LONG * length) & (
        busy(end) - busy(start) >= _COVERED * (end - start)
    )
    chosen &= (busy(end) - busy(end - near) >= 0.3 * near) & (busy(end + near) - busy(end) <= 0.3 * near)
    return chosen


def _is_dispatch(trace: Trace) -> npt.NDArray[np.bool_]:
    result = np.zeros(len(trace.metadata), np.bool_)
    for row, name in enumerate(trace.metadata["name"].tolist()):
        text = trace.strings.get(name)
        result[row] = text.startswith(
            ("PjitFunction(", "EagerExecute", "FunctionRun", "cudaLaunch", "hipLaunch")
        )
    return result


def _text(trace: Trace, row: int) -> str:
    text = trace.strings.get(int(trace.metadata["name"][row]))
    frame = frame_of(text)
    return frame.function if frame else text


def _who(trace: Trace, row: int) -> Culprit:
    frame = frame_of(trace.strings.get(int(trace.metadata["name"][row])))
    return Culprit("function", frame.function, frame.file, frame.line) if frame else Culprit()
