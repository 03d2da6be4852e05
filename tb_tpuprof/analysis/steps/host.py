"""Steps of a host without accelerators: what its threads did in each, and whom the steps' own thread waited
for.

Sources, the first that finds any: the user's annotations; iterations of a loop that fetches its own data
inside of one run of a function (Keras with `steps_per_execution`, `for batch in dataset` in a tf.function);
runs of functions; calls of a loop's main program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import cpu_events
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
from tb_tpuprof.analysis.steps.waits import classes_and_waits, of_steps, says_more, told_of
from tb_tpuprof.analysis.steps.windows import Windows, clipped, step_windows
from tb_tpuprof.native import classes_of, outermost
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Classes = npt.NDArray[np.uint8]
_COMPUTES = [TimeClass.HOST_COMPUTE, TimeClass.HOST_COMPILE, TimeClass.HOST_PYTHON]
StepsOfHost = tuple[Steps, Pieces]


@dataclass(frozen=True)
class _Marked:
    """The events that mark steps, their windows, and what makes them steps."""

    rows: Rows
    windows: Windows
    source: str
    how_found: str = ""


@once
def steps_of_host(trace: Trace) -> StepsOfHost:
    """The steps of a host's threads, and the pieces that their times are made of."""
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    mark_input_stages(trace, event_class)
    found = _of(trace, _annotated(trace, event_class), event_class)
    if len(found[0]) or found[0].n_incomplete:
        return found
    for marks in (_loops, _functions, _programs):
        by_function = _of(trace, marks(trace, event_class), event_class)
        if len(by_function[0]):
            return by_function
    return found


def _counted(trace: Trace, event_class: Classes, markers: Rows, of_groups: bool = True) -> Rows:
    """Events (`of_groups`: of steps) that say what kind of time theirs is, without those inside another of
    their class.
    """
    marked = event_class.copy()
    marked[markers] = STEP_MARKER
    group = groups(trace).group if of_groups else np.zeros(trace.n_events, np.int32)
    found: Rows = outermost(marked, group, parents(trace), NOT_COUNTED).astype(np.intp)
    return found


def _annotated(trace: Trace, event_class: Classes) -> _Marked:
    rows = annotated_events(trace, event_class)
    group = groups(trace).group
    rows = rows[group[rows] >= 0]
    start = trace.events["start_ps"][rows]
    number, begin, end, chosen = longest_markers(
        group[rows].astype(np.int64), start, start + trace.events["duration_ps"][rows]
    )
    rows = rows[chosen]
    lasting = end > begin
    number, begin, end, rows = number[lasting], begin[lasting], end[lasting], rows[lasting]
    call, until = run_ends(trace)
    if not len(call):
        # Several devices: their operations are in the step that called them; a region of the pool can last
        # into the next.
        runs = cpu_runs(trace)
        call, until = runs.event, runs.end_ps
    if not len(call):
        call = _counted(trace, event_class, rows)
        until = event_ends(trace, call)
    done = _done(number, group[call], until, end)
    names = trace.metadata["name"][trace.events["metadata"][rows]]
    are_alike = len(np.unique(names)) == 1 and len(np.unique(trace.event_line[rows])) == 1
    return _Marked(rows, step_windows(number, begin, end, done, are_alike), "annotation")


def _done(number: Int64s, group: npt.NDArray[np.int32], end: Int64s, least: Int64s) -> Int64s:
    """When the last of each group's events ended."""
    result: Int64s = least.copy()
    if len(number) and len(group):
        order = np.argsort(number, kind="stable")
        at = np.minimum(np.searchsorted(number[order], group), len(number) - 1)
        mine = number[order][at] == group
        np.maximum.at(result, order[at[mine]], end[mine])
    return result


def _tiled(trace: Trace, rows: Rows, number: Int64s, last_end: int) -> Windows:
    """Windows from one start to the next, in time; the last one ends as given."""
    start: Int64s = trace.events["start_ps"][rows]
    end = np.append(start[1:], max(last_end, int(start[-1]))) if len(rows) else start
    return Windows(number, start, end, "loop")


def _by_start(trace: Trace, rows: Rows) -> Rows:
    ordered: Rows = rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]
    return ordered


def _loops(trace: Trace, _event_class: Classes) -> _Marked:
    """Iterations that fetch their own data, each from its fetch to the next."""
    rows = _by_start(trace, fetching_loops(trace))
    if not len(rows):
        return _Marked(rows, _tiled(trace, rows, np.empty(0, np.int64), 0), "function")
    of_line = groups(trace).group
    last = of_line[rows[-1]]
    ends = event_ends(trace, np.flatnonzero(of_line == last)) if last >= 0 else np.empty(0, np.int64)
    end = trace.events["start_ps"][rows[-1]] + trace.events["duration_ps"][rows[-1]]
    is_body = int(trace.events["duration_ps"][rows[0]]) > 0 and trace.strings[
        _name(trace, int(rows[0]))
    ].startswith("ReduceIterator::")
    windows = _tiled(trace, rows, np.arange(len(rows), dtype=np.int64), int(max(ends.max(initial=0), end)))
    return _Marked(rows, windows, "iteration", "body" if is_body else "fetch")


def _name(trace: Trace, event: int) -> int:
    return int(trace.metadata["name"][trace.events["metadata"][event]])


def _functions(trace: Trace, event_class: Classes) -> _Marked:
    """Runs of tf.function and sessions that head a group: the nearest thing to steps where nobody annotated
    any.
    """
    owner = trace.event_stats.ints("_r").owner
    implicit = metadata_named(trace, IMPLICIT_ROOTS)[trace.events["metadata"][owner]]
    rows = owner[implicit].astype(np.intp)
    group = groups(trace).group
    rows = _of_main_function(trace, _by_start(trace, rows[group[rows] >= 0]))
    counted = _counted(trace, event_class, rows)
    last = (
        event_ends(trace, counted)[group[counted] == group[rows[-1]]] if len(rows) else np.empty(0, np.int64)
    )
    end = int(trace.events["start_ps"][rows[-1]] + trace.events["duration_ps"][rows[-1]]) if len(rows) else 0
    return _Marked(
        rows,
        _tiled(trace, rows, group[rows].astype(np.int64), max(end, int(last.max(initial=0)))),
        "function",
    )


def _of_main_function(trace: Trace, rows: Rows) -> Rows:
    """Where a loop runs several functions, such as one that evaluates now and then, the runs of
    its main one.
    """
    mains = np.zeros(len(trace.metadata), np.bool_)
    mains[trace.events["metadata"][main_function_calls(trace)]] = True
    chosen: Rows = rows[are_inside(trace, rows, mains)] if mains.any() else rows[:0]
    return chosen if len(chosen) > 2 else rows


def _programs(trace: Trace, _event_class: Classes) -> _Marked:
    """Calls of the main program of a loop that nobody annotated, each until the next, or as long as its work
    where that lags behind.
    """
    rows = main_calls(trace)
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = start + trace.events["duration_ps"][rows]
    number = np.arange(len(rows), dtype=np.int64)
    call, until = run_ends(trace)
    at = np.searchsorted(start, trace.events["start_ps"][call], side="right") - 1
    done = end.copy()
    np.maximum.at(done, at[at >= 0], until[at >= 0])
    windows = (
        step_windows(number, start, end, done, are_alike=True)
        if len(rows)
        else Windows(number, start, end, "loop")
    )
    if windows.how == "annotated":  # calls that follow one another closely
        windows = Windows(number[:-1], start[:-1], start[1:], "loop", 1)
    return _Marked(rows, windows, "program")


def _of(trace: Trace, marked: _Marked, event_class: Classes) -> StepsOfHost:
    """Steps of markers: their own threads by what lies innermost, other threads by what they did for any of
    the steps.
    """
    windows = marked.windows
    if not len(windows.group):
        return no_steps(), no_pieces()
    lines = np.unique(trace.event_line[marked.rows])
    by_group = windows.how == "annotated" and not says_more(trace, lines, marked.rows)
    if marked.source == "iteration":
        lines = lines[:0]
    elsewhere = (
        _in_bodies(trace, marked)
        if marked.how_found == "body"
        else _elsewhere(trace, marked, event_class, lines, by_group)
    )
    pieces = replace(
        elsewhere, own=tuple(_own_thread(trace, line, marked, event_class) for line in lines.tolist())
    )
    class_ps, waits = classes_and_waits(trace, pieces, (windows.start, windows.end))
    computed = np.array(class_ps[:, _COMPUTES].any(axis=1))
    computed[pieces.step[np.isin(pieces.klass, _COMPUTES)]] = True
    kept = np.flatnonzero(computed & (windows.end > windows.start))
    if not len(kept):
        return no_steps(len(windows.group)), no_pieces()
    found = Steps(
        windows.group[kept],
        _names(trace, marked, kept),
        windows.start[kept],
        (windows.end - windows.start)[kept],
        class_ps[kept],
        marked.source,
        len(windows.group) - len(kept),
        windows.n_open,
        how=windows.how,
        waits=of_steps(waits, kept),
    )
    found = trimmed(found)
    return found, pieces.of_steps(windows.group, found.number)


def _names(trace: Trace, marked: _Marked, kept: Rows) -> tuple[str, ...]:
    if marked.source in ("iteration", "program"):
        return tuple(str(i) for i in marked.windows.group[kept].tolist())
    names = groups(trace).names
    return tuple(names.get(i, str(i)) for i in marked.windows.group[kept].tolist())


def _own_thread(trace: Trace, line: int, marked: _Marked, event_class: Classes) -> OwnThread:
    """A thread that marks steps, cut at their beginnings and ends."""
    windows = marked.windows
    mine = np.arange(len(windows.group))
    if windows.how == "annotated":  # the others are of one thread, or of whichever runs the functions
        mine = np.flatnonzero(
            np.isin(windows.group, groups(trace).group[marked.rows[trace.event_line[marked.rows] == line]])
        )
    told = told_of(trace, line, event_class, marked.rows, marked.source == "annotation")
    of = told.line
    return OwnThread(
        of.rows.start, of.start, of.duration, of.parent, of.context, of.first, told.klass, told.named,
        windows.start[mine], windows.end[mine], mine.astype(np.int64),
    )  # fmt: skip


def _elsewhere(
    trace: Trace, marked: _Marked, event_class: Classes, lines: npt.NDArray[np.integer], by_group: bool
) -> Pieces:
    """What other threads did for the steps: in whichever of them it happened; `by_group`, or where steps
    overlap, in their own.
    """
    windows = marked.windows
    rows = _counted(
        trace,
        event_class,
        marked.rows if marked.source == "annotation" else marked.rows[:0],
        marked.source != "program",
    )
    rows = rows[~np.isin(trace.event_line[rows], lines)]
    start, end = trace.events["start_ps"][rows], _worked_until(trace, rows, event_ends(trace, rows))
    if not by_group and (windows.start[1:] >= windows.end[:-1]).all():
        which, at, start, end = clipped(start, end, windows)
        if windows.how == "annotated":
            # A pool's thread may leave its region long after its work ended, when it gets a processor: that
            # is no work of later steps.
            is_late = np.isin(rows, regions(trace).event)[which] & (
                groups(trace).group[rows[which]] != windows.group[at]
            )
            which, at, start, end = which[~is_late], at[~is_late], start[~is_late], end[~is_late]
    else:
        group = groups(trace).group[rows]
        order = np.argsort(windows.group, kind="stable")
        spot = order[np.minimum(np.searchsorted(windows.group[order], group), len(order) - 1)]
        which = np.flatnonzero(windows.group[spot] == group)
        at, start, end = spot[which].astype(np.int64), start[which], end[which]
    return Pieces(
        start,
        end,
        event_class[rows[which]],
        at,
        np.full(len(which), -1, np.int64),
        rows[which].astype(np.int64),
    )


def _worked_until(trace: Trace, rows: Rows, end: Int64s) -> Int64s:
    """When each event's work ended: a region in which a thread runs operations ends with the last of them.

    The mark of a region's end comes when the thread runs again, which can be long after.
    """
    task, ops = regions(trace), cpu_events(trace)
    at = np.searchsorted(task.event, ops.event) - 1
    at[at >= 0] = np.where(
        trace.event_line[task.event[at[at >= 0]]] == trace.event_line[ops.event[at >= 0]], at[at >= 0], -1
    )
    last = np.zeros(len(task.event), np.int64)
    np.maximum.at(last, at[at >= 0], ops.stop_ps[at >= 0])
    which = np.searchsorted(task.event, rows)
    known = which < len(task.event)
    known[known] = (task.event[which[known]] == rows[known]) & (last[which[known]] > 0)
    result: Int64s = end.copy()
    result[known] = np.minimum(end[known], last[which[known]])
    return result


def _in_bodies(trace: Trace, marked: _Marked) -> Pieces:
    """Loops that an iterator runs (`ReduceIterator::…::Scan`): what feeds it is waited for, the rest of its
    call is the loop's body.
    """
    rows = marked.rows
    parent = parents(trace)
    fed = np.flatnonzero(np.isin(parent, rows))
    names = trace.metadata["name"][trace.events["metadata"][fed]]
    is_feed = np.array([trace.strings[i].startswith("ReduceIterator::") for i in names.tolist()], np.bool_)
    feeds = fed[is_feed]
    both = np.concatenate((rows, feeds))
    start = trace.events["start_ps"][both]
    klass = np.repeat(
        np.array([TimeClass.HOST_COMPUTE, TimeClass.HOST_WAIT_INPUT], np.uint8), [len(rows), len(feeds)]
    )
    which, at, begin, end = clipped(start, start + trace.events["duration_ps"][both], marked.windows)
    return Pieces(
        begin, end, klass[which], at, np.full(len(which), -1, np.int64), both[which].astype(np.int64)
    )
