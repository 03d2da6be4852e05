"""Calls that wait for the device in mid-step, and the host work after them that could overlap with the
device's.

    thread   │dispatch│ float(loss): waits ──────────┤ Python ─────────┤
    device    ■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■   (nothing to do)

A wait without an event (JAX's `block_until_ready`) shows as Python that does nothing while the device
computes and continues when it is done. Without the wait, Python would run while the device computes: up to
the shorter of the two is lost. Only work in the same function call or step annotation counts; a wait at the
end of a step loses nothing within the step.
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
_SHORT = 0.005  # of the step: a call that returns sooner did not wait
_NEAR = 0.02
_LONG = 0.05
_COVERED = 0.8


@once
def synchronizing(trace: Trace) -> tuple[Sync, ...]:
    """The waits for the device in a host's steps, those first after which most time is lost."""
    steps, pieces = step_pieces(trace)
    if not len(steps) or pieces is None:
        return ()
    name_table = names_of(trace)
    is_sync = name_table.claim == CAUSES.index(Cause.SYNCHRONIZATION)
    outline = pieces.outline()
    computing = np.isin(outline.klass, COMPUTES) & (outline.named < 0)
    own_ops = (
        (outline.klass == TimeClass.HOST_COMPUTE)
        & (outline.named >= 0)
        & name_table.is_op[trace.events["metadata"][outline.event]]
    )
    computed_by = pieces.spread(np.where(computing | own_ops, 0, -1))
    busy = union_cover(computed_by.start, computed_by.end)
    waits_by_key: dict[tuple[str, Culprit], list[tuple[int, int, int, int, int]]] = {}
    windows = windows_of(steps.start_ps, steps.duration_ps)
    for line in own_lines(trace, pieces).tolist():
        for step, key, begin, end, until, goes_on in _on_line(trace, int(line), windows, is_sync, busy):
            free = max(until - end - int((busy(np.array([until])) - busy(np.array([end])))[0]), 0)
            waits_by_key.setdefault(key, []).append((step, begin, end, free, free if goes_on else 0))
    computed = busy(steps.start_ps + steps.duration_ps) - busy(steps.start_ps)
    syncs = [_sync(key, table, len(steps), computed) for key, table in waits_by_key.items()]
    return tuple(sorted(syncs, key=lambda sync: (-int(sync.after_ps.sum()), -int(sync.per_step.sum()))))


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


def _waits_of(
    trace: Trace, contexts: LineContexts, windows: Windows, is_sync: npt.NDArray[np.bool_], busy: Covered
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """(event, start, end, step) of a thread's waits that are not short: calls known to wait, silent
    stretches, and stretches before reads of results; the step is -1 outside steps.
    """
    begin = contexts.start
    outer_sync = nearest(contexts.above, is_sync[contexts.metadata])
    is_outermost = is_sync[contexts.metadata] & (
        (contexts.above < 0) | (outer_sync[np.maximum(contexts.above, 0)] < 0)
    )
    named = np.flatnonzero(is_outermost[contexts.context])
    table = np.array([named, begin[named], begin[named] + contexts.duration[named]], np.int64)
    named_and_silent = np.concatenate(
        (table, _silent(trace, contexts, outer_sync >= 0, windows, busy)), axis=1
    )
    event, start, end = np.concatenate(
        (named_and_silent, _awaited(trace, contexts, windows, busy, np.sort(named_and_silent[2]))), axis=1
    )
    step = step_at(windows, start)
    waited = end - start >= _SHORT * np.where(
        step >= 0, (windows.end - windows.start)[np.maximum(step, 0)], 0
    )
    return event[waited], start[waited], end[waited], step[waited]


def _on_line(
    trace: Trace, line: int, windows: Windows, is_sync: npt.NDArray[np.bool_], busy: Covered
) -> Iterator[tuple[int, tuple[str, Culprit], int, int, int, bool]]:
    """(step, (call, caller), start, end, until, dispatches again) of a thread's waits. `until`: when the
    function or step around the wait ends or dispatches again; the last value: whether the step dispatches
    again.
    """
    contexts = line_contexts(trace, line)
    event, start, end, step = _waits_of(trace, contexts, windows, is_sync, busy)
    user = nearest(
        contexts.above, origins(names_of(trace).origin[contexts.metadata], contexts.above) == Origin.USER
    )
    dispatches = np.sort(
        np.concatenate(
            (contexts.start[np.flatnonzero(_is_dispatch(trace)[contexts.metadata][contexts.context])], start)
        )
    )
    has_gpu = bool(planes(trace).gpus)
    for wait in np.flatnonzero(step >= 0).tolist():
        row = int(event[wait])
        function_event = _within(contexts, row, user)
        until = int(windows.end[step[wait]])
        if function_event >= 0:
            # A function that does little more than wait does not own the work after the wait.
            rest = max(
                int(end[wait] - start[wait]) // 100, int((windows.end - windows.start)[step[wait]] * _NEAR)
            )
            goes_on_itself = (
                _end(contexts, function_event) - end[wait] > rest or contexts.parent[function_event] < 0
            )
            resuming = (
                function_event
                if goes_on_itself
                else _within(contexts, int(contexts.parent[function_event]), user)
            )
            # A GPU continues without its caller, so it could also hide what the caller does next.
            until = min(until, _end(contexts, resuming)) if resuming >= 0 and not has_gpu else until
        following = np.searchsorted(dispatches, end[wait])
        goes_on = following < len(dispatches) and int(dispatches[following]) < int(windows.end[step[wait]])
        until = min(until, int(dispatches[following])) if following < len(dispatches) else until
        call = _text(trace, int(contexts.metadata[contexts.context[row]]))
        culprit = (
            _function_of(trace, int(contexts.metadata[contexts.context[function_event]]))
            if function_event >= 0
            else Culprit("call", call)
        )
        yield (
            int(step[wait]),
            (call, culprit),
            int(start[wait]),
            int(end[wait]),
            max(until, int(end[wait])),
            goes_on,
        )


def _end(contexts: LineContexts, event: int) -> int:
    return int(contexts.start[event] + contexts.duration[event])


def _within(contexts: LineContexts, event: int, chosen: npt.NDArray[np.int32]) -> int:
    """The event around `event`, or itself, whose context is the `chosen` one of the event's context; -1 for
    none.
    """
    context = int(chosen[contexts.context[event]])
    while context >= 0 and int(contexts.context[event]) != context:
        event = int(contexts.parent[event])
    return event if context >= 0 else -1


def _silent(
    trace: Trace, contexts: LineContexts, in_sync: npt.NDArray[np.bool_], windows: Windows, busy: Covered
) -> Int64s:
    """Rows (innermost event, start, end) of stretches of frames without events inside that end when other
    threads' or devices' compute ends.
    """
    code = np.where(
        (names_of(trace).origin[contexts.metadata] >= Origin.USER) & ~in_sync, np.arange(len(contexts)), -1
    ).astype(np.int32)
    silent = [np.empty((3, 0), np.int64)]
    for rows in non_overlapping(windows.start, windows.end):
        spans = windows.start[rows], windows.end[rows]
        least = int((spans[1] - spans[0]).min() * _LONG) if len(rows) else 0
        start, end, span, event, _last = stretches(
            contexts.start, contexts.duration, contexts.parent, (contexts.context, code), spans, least
        )
        silent.append(
            np.array([event, start, end])[:, _are_silent((start, end), (spans[1] - spans[0])[span], busy)]
        )
    result: Int64s = np.concatenate(silent, axis=1)
    return result


def _awaited(
    trace: Trace, contexts: LineContexts, windows: Windows, busy: Covered, known_ends: Int64s
) -> Int64s:
    """Rows (event, start, end) of stretches without calls that end with a read of the result when other
    compute ends: the same as `_silent` without Python frames.

    A thread that waits for a JAX result records no event until the result is there, then a short one
    (`…Buffer::Await`). `known_ends`: when other waits end, ascending.
    """
    names = metadata_names(trace)
    metadata_rows = contexts.metadata.tolist()
    is_look = np.array([names[row].endswith("Buffer::Await") for row in metadata_rows], np.bool_)
    event = np.flatnonzero(is_look[contexts.context])
    end = contexts.start[event]
    step = step_at(windows, end)
    chosen = np.flatnonzero(step >= 0)
    length = (windows.end - windows.start)[step[chosen]]
    chosen_ends = _ends_computing(end[chosen], length, busy)
    event, end, length = event[chosen[chosen_ends]], end[chosen[chosen_ends]], length[chosen_ends]
    if not len(event):
        return np.empty((3, 0), np.int64)
    calls = names_of(trace).origin[contexts.metadata] == Origin.RUNTIME
    code = np.where(calls & ~is_look, 0, -1).astype(np.int32)
    everywhere = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])
    _start, ended, *_rest = stretches(
        contexts.start, contexts.duration, contexts.parent, (contexts.context, code), everywhere
    )
    last_call = np.searchsorted(ended, end, side="right") - 1
    start = np.where(last_call >= 0, ended[np.maximum(last_call, 0)], end)
    near = _near(length)
    is_wait = _are_silent((start, end), length, busy)
    is_wait &= np.searchsorted(known_ends, end - near) == np.searchsorted(
        known_ends, end + near, side="right"
    )
    return np.array([event, start, end])[:, is_wait]


def _are_silent(span: tuple[Int64s, Int64s], length: Int64s, busy: Covered) -> npt.NDArray[np.bool_]:
    """Whether other compute covers each stretch, if it is long, and stops when it ends. `length`: that of its
    step.
    """
    start, end = span
    chosen: npt.NDArray[np.bool_] = (end - start >= _LONG * length) & (
        busy(end) - busy(start) >= _COVERED * (end - start)
    )
    return chosen & _ends_computing(end, length, busy)


def _ends_computing(end: Int64s, length: Int64s, busy: Covered) -> npt.NDArray[np.bool_]:
    """Whether other compute runs before each time and stops there. `length`: that of its step."""
    near = _near(length)
    result: npt.NDArray[np.bool_] = (busy(end) - busy(end - near) >= 0.3 * near) & (
        busy(end + near) - busy(end) <= 0.3 * near
    )
    return result


def _near(length: Int64s) -> Int64s:
    return (length * _NEAR).astype(np.int64)


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


def _function_of(trace: Trace, row: int) -> Culprit:
    frame = frame_of(trace.strings.get(int(trace.metadata["name"][row])))
    return Culprit("function", frame.function, frame.file, frame.line) if frame else Culprit()
