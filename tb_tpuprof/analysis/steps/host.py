"""Steps of a host without accelerators: the activity of its threads in each step, and what the steps' own
thread waited for.

Sources, the first that finds steps: the user's annotations; iterations of a loop that fetches its own data
inside one run of a function (Keras with `steps_per_execution`, `for batch in dataset` in a tf.function); runs
of functions; calls of a loop's main program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import are_inside, event_ends, parents, regions
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.program_runs import run_ends
from tb_tpuprof.analysis.events.stat_rows import metadata_named
from tb_tpuprof.analysis.steps.classes import NOT_COUNTED, STEP_MARKER, TimeClass, host_classes
from tb_tpuprof.analysis.steps.grouping import IMPLICIT_ROOTS, fetching_loops, groups
from tb_tpuprof.analysis.steps.pieces import OwnThread, Pieces, no_pieces
from tb_tpuprof.analysis.steps.program import main_calls, main_function_calls
from tb_tpuprof.analysis.steps.record import (
    Steps,
    annotated_events,
    longest_markers,
    mark_input_stages,
    no_steps,
    trimmed,
)
from tb_tpuprof.analysis.steps.waits import classes_and_waits, classify_line, has_user_events, waits_in_steps
from tb_tpuprof.analysis.steps.windows import Windows, clipped, step_windows
from tb_tpuprof.analysis.steps.worked import executed_until, worked_until
from tb_tpuprof.native import classes_of, outermost
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Classes = npt.NDArray[np.uint8]
_COMPUTES = [TimeClass.HOST_COMPUTE, TimeClass.HOST_COMPILE, TimeClass.HOST_PYTHON]
StepsOfHost = tuple[Steps, Pieces]


@dataclass(frozen=True)
class _StepMarkers:
    """The events that mark steps, their windows, and the kind of marker."""

    rows: Rows
    windows: Windows
    source: str
    loop_kind: str = ""


@once
def steps_of_host(trace: Trace) -> StepsOfHost:
    """The steps of a host's threads, and the pieces that their times consist of."""
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    mark_input_stages(trace, event_class)
    annotated = _steps_of_markers(trace, _annotation_markers(trace, event_class), event_class)
    if len(annotated[0]) or annotated[0].n_incomplete:
        return annotated
    for find_markers in (_loop_markers, _function_markers, _program_markers):
        unannotated = _steps_of_markers(trace, find_markers(trace, event_class), event_class)
        if len(unannotated[0]):
            return unannotated
    return annotated


def _counted(trace: Trace, event_class: Classes, markers: Rows, of_groups: bool = True) -> Rows:
    """Events that have a class (`of_groups`: and belong to a step), without those inside another event of
    their class.
    """
    class_or_marker = event_class.copy()
    class_or_marker[markers] = STEP_MARKER
    group = groups(trace).group if of_groups else np.zeros(trace.n_events, np.int32)
    result: Rows = outermost(class_or_marker, group, parents(trace), NOT_COUNTED).astype(np.intp)
    return result


def _annotation_markers(trace: Trace, event_class: Classes) -> _StepMarkers:
    rows = annotated_events(trace, event_class)
    group = groups(trace).group
    rows = rows[group[rows] >= 0]
    start = trace.events["start_ps"][rows]
    number, begin, end, longest = longest_markers(
        group[rows].astype(np.int64), start, start + trace.events["duration_ps"][rows]
    )
    rows = rows[longest]
    has_length = end > begin
    number, begin, end, rows = number[has_length], begin[has_length], end[has_length], rows[has_length]
    call, run_end = run_ends(trace)
    if not len(call):
        # Several devices: their operations belong to the step that called them; a region of the pool can
        # extend into the next step.
        runs = cpu_runs(trace)
        call, run_end = runs.event, runs.end_ps
    is_counted = not len(call)
    if is_counted:
        call = _counted(trace, event_class, rows)
        run_end = event_ends(trace, call)
    names = trace.metadata["name"][trace.events["metadata"][rows]]
    are_alike = len(np.unique(names)) == 1 and len(np.unique(trace.event_line[rows])) == 1
    work_end = _work_ends(number, group[call], run_end, end)
    windows = step_windows(number, begin, end, work_end, are_alike)
    if is_counted and windows.how == "dispatched":
        # Or do these steps wait for their work, and only the pool's threads were late to leave it?
        work_end = _work_ends(number, group[call], executed_until(trace, call), end)
        windows = step_windows(number, begin, end, work_end, are_alike)
    return _StepMarkers(rows, windows, "annotation")


def _work_ends(number: Int64s, group: npt.NDArray[np.int32], end: Int64s, least: Int64s) -> Int64s:
    """End of the last event of each group in ps, at least `least`."""
    result: Int64s = least.copy()
    if len(number) and len(group):
        order = np.argsort(number, kind="stable")
        position = np.minimum(np.searchsorted(number[order], group), len(number) - 1)
        in_group = number[order][position] == group
        np.maximum.at(result, order[position[in_group]], end[in_group])
    return result


def _tiled(trace: Trace, rows: Rows, number: Int64s, last_end: int) -> Windows:
    """Windows from each start to the next, in time order; the last one ends at `last_end`."""
    start: Int64s = trace.events["start_ps"][rows]
    end = np.append(start[1:], max(last_end, int(start[-1]))) if len(rows) else start
    return Windows(number, start, end, "loop")


def _by_start(trace: Trace, rows: Rows) -> Rows:
    ordered: Rows = rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]
    return ordered


def _loop_markers(trace: Trace, _event_class: Classes) -> _StepMarkers:
    """Iterations that fetch their own data, each from its fetch to the next one."""
    rows = _by_start(trace, fetching_loops(trace))
    if not len(rows):
        return _StepMarkers(rows, _tiled(trace, rows, np.empty(0, np.int64), 0), "function")
    group = groups(trace).group
    last = group[rows[-1]]
    ends = event_ends(trace, np.flatnonzero(group == last)) if last >= 0 else np.empty(0, np.int64)
    end = trace.events["start_ps"][rows[-1]] + trace.events["duration_ps"][rows[-1]]
    is_body = int(trace.events["duration_ps"][rows[0]]) > 0 and trace.strings[
        _name(trace, int(rows[0]))
    ].startswith("ReduceIterator::")
    windows = _tiled(trace, rows, np.arange(len(rows), dtype=np.int64), int(max(ends.max(initial=0), end)))
    return _StepMarkers(rows, windows, "iteration", "body" if is_body else "fetch")


def _name(trace: Trace, event: int) -> int:
    return int(trace.metadata["name"][trace.events["metadata"][event]])


def _function_markers(trace: Trace, event_class: Classes) -> _StepMarkers:
    """Runs of tf.function and sessions that head a group: the closest to steps if the user annotated none."""
    owner = trace.event_stats.ints("_r").owner
    implicit = metadata_named(trace, IMPLICIT_ROOTS)[trace.events["metadata"][owner]]
    rows = owner[implicit].astype(np.intp)
    group = groups(trace).group
    rows = _main_function_runs(trace, _by_start(trace, rows[group[rows] >= 0]))
    counted = _counted(trace, event_class, rows)
    ends = (
        event_ends(trace, counted)[group[counted] == group[rows[-1]]] if len(rows) else np.empty(0, np.int64)
    )
    end = int(trace.events["start_ps"][rows[-1]] + trace.events["duration_ps"][rows[-1]]) if len(rows) else 0
    return _StepMarkers(
        rows,
        _tiled(trace, rows, group[rows].astype(np.int64), max(end, int(ends.max(initial=0)))),
        "function",
    )


def _main_function_runs(trace: Trace, rows: Rows) -> Rows:
    """The runs of the main function, if a loop runs several functions (for example one that evaluates now and
    then).
    """
    is_main = np.zeros(len(trace.metadata), np.bool_)
    is_main[trace.events["metadata"][main_function_calls(trace)]] = True
    main_runs: Rows = rows[are_inside(trace, rows, is_main)] if is_main.any() else rows[:0]
    return main_runs if len(main_runs) > 2 else rows


def _program_markers(trace: Trace, _event_class: Classes) -> _StepMarkers:
    """Calls of the main program of a loop without annotations: each lasts until the next, or as long as its
    work if that lags behind.
    """
    rows = main_calls(trace)
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = start + trace.events["duration_ps"][rows]
    number = np.arange(len(rows), dtype=np.int64)
    call, run_end = run_ends(trace)
    index = np.searchsorted(start, trace.events["start_ps"][call], side="right") - 1
    work_end = end.copy()
    np.maximum.at(work_end, index[index >= 0], run_end[index >= 0])
    windows = (
        step_windows(number, start, end, work_end, are_alike=True)
        if len(rows)
        else Windows(number, start, end, "loop")
    )
    if windows.how == "annotated":  # consecutive calls without gaps
        windows = Windows(number[:-1], start[:-1], start[1:], "loop", 1)
    return _StepMarkers(rows, windows, "program")


def _steps_of_markers(trace: Trace, markers: _StepMarkers, event_class: Classes) -> StepsOfHost:
    """Steps from markers: the steps' own threads are classified by their innermost events, other threads by
    what they did for any step.
    """
    windows = markers.windows
    if not len(windows.group):
        return no_steps(), no_pieces()
    lines = np.unique(trace.event_line[markers.rows])
    by_group = windows.how == "annotated" and not has_user_events(trace, lines, markers.rows)
    if markers.source == "iteration":
        lines = lines[:0]
    elsewhere = (
        _in_bodies(trace, markers)
        if markers.loop_kind == "body"
        else _other_threads(trace, markers, event_class, lines, by_group)
    )
    pieces = replace(
        elsewhere, own=tuple(_own_thread(trace, line, markers, event_class) for line in lines.tolist())
    )
    class_ps, waits = classes_and_waits(trace, pieces, (windows.start, windows.end))
    computed = np.array(class_ps[:, _COMPUTES].any(axis=1))
    computed[pieces.step[np.isin(pieces.klass, _COMPUTES)]] = True
    kept_steps = np.flatnonzero(computed & (windows.end > windows.start))
    if not len(kept_steps):
        return no_steps(len(windows.group)), no_pieces()
    result = Steps(
        windows.group[kept_steps],
        _names(trace, markers, kept_steps),
        windows.start[kept_steps],
        (windows.end - windows.start)[kept_steps],
        class_ps[kept_steps],
        markers.source,
        len(windows.group) - len(kept_steps),
        windows.n_open,
        how=windows.how,
        is_ahead=windows.is_ahead,
        waits=waits_in_steps(waits, kept_steps),
    )
    result = trimmed(result)
    return result, pieces.of_steps(windows.group, result.number)


def _names(trace: Trace, markers: _StepMarkers, kept_steps: Rows) -> tuple[str, ...]:
    if markers.source in ("iteration", "program"):
        return tuple(str(i) for i in markers.windows.group[kept_steps].tolist())
    names = groups(trace).names
    return tuple(names.get(i, str(i)) for i in markers.windows.group[kept_steps].tolist())


def _own_thread(trace: Trace, line: int, markers: _StepMarkers, event_class: Classes) -> OwnThread:
    """A thread that marks steps, cut at the steps' starts and ends."""
    windows = markers.windows
    own_steps = np.arange(len(windows.group))
    if windows.how == "annotated":  # otherwise all steps belong to this thread
        own_steps = np.flatnonzero(
            np.isin(windows.group, groups(trace).group[markers.rows[trace.event_line[markers.rows] == line]])
        )
    classes = classify_line(trace, line, event_class, markers.rows, markers.source == "annotation")
    contexts = classes.line
    return OwnThread(
        contexts.rows.start,
        contexts.start,
        contexts.duration,
        contexts.parent,
        contexts.context,
        contexts.first,
        classes.klass,
        classes.named,
        windows.start[own_steps],
        windows.end[own_steps],
        own_steps.astype(np.int64),
    )


def _other_threads(
    trace: Trace, markers: _StepMarkers, event_class: Classes, lines: npt.NDArray[np.integer], by_group: bool
) -> Pieces:
    """Work of other threads for the steps: in whichever step it happened; with `by_group`, or if steps
    overlap, in the step that it belongs to.
    """
    windows = markers.windows
    rows = _counted(
        trace,
        event_class,
        markers.rows if markers.source == "annotation" else markers.rows[:0],
        markers.source != "program",
    )
    rows = rows[~np.isin(trace.event_line[rows], lines)]
    start, end = trace.events["start_ps"][rows], worked_until(trace, rows)
    if not by_group and (windows.start[1:] >= windows.end[:-1]).all():
        interval, window, start, end = clipped(start, end, windows)
        if windows.how == "annotated":
            # A pool's thread may leave its region long after its work ended, when it is scheduled again: that
            # is not work of later steps.
            is_late = np.isin(rows, regions(trace).event)[interval] & (
                groups(trace).group[rows[interval]] != windows.group[window]
            )
            interval, window, start, end = (
                interval[~is_late],
                window[~is_late],
                start[~is_late],
                end[~is_late],
            )
    else:
        group = groups(trace).group[rows]
        order = np.argsort(windows.group, kind="stable")
        nearest = order[np.minimum(np.searchsorted(windows.group[order], group), len(order) - 1)]
        interval = np.flatnonzero(windows.group[nearest] == group)
        window, start, end = nearest[interval].astype(np.int64), start[interval], end[interval]
    return Pieces(
        start,
        end,
        event_class[rows[interval]],
        window,
        np.full(len(interval), -1, np.int64),
        rows[interval].astype(np.int64),
    )


def _in_bodies(trace: Trace, markers: _StepMarkers) -> Pieces:
    """Loops that an iterator runs (`ReduceIterator::…::Scan`): its nested iterators count as waiting for
    input, the rest of its call is the loop's body.
    """
    rows = markers.rows
    parent = parents(trace)
    children = np.flatnonzero(np.isin(parent, rows))
    names = trace.metadata["name"][trace.events["metadata"][children]]
    is_feed = np.array([trace.strings[i].startswith("ReduceIterator::") for i in names.tolist()], np.bool_)
    feeds = children[is_feed]
    events = np.concatenate((rows, feeds))
    start = trace.events["start_ps"][events]
    klass = np.repeat(
        np.array([TimeClass.HOST_COMPUTE, TimeClass.HOST_WAIT_INPUT], np.uint8), [len(rows), len(feeds)]
    )
    interval, window, begin, end = clipped(
        start, start + trace.events["duration_ps"][events], markers.windows
    )
    return Pieces(
        begin,
        end,
        klass[interval],
        window,
        np.full(len(interval), -1, np.int64),
        events[interval].astype(np.int64),
    )
