"""Steps on TPUs: the device's own step (or module) events are grouped by the host's launches, or numbered
alike on all cores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import MODULE_LINES, STEP_LINES, line_events, lines_named, planes
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


def grouping_lines(trace: Trace) -> dict[int, int]:
    """For each TPU plane the line that divides it into steps: `Steps` if it has events, else `XLA
    Modules`.
    """
    result = {}
    roles = planes(trace)
    for plane in (*roles.tensor_cores, *roles.sparse_cores):
        for names in (STEP_LINES, MODULE_LINES):
            lines = [line for line in lines_named(trace, plane, names) if trace.lines["n_events"][line]]
            if lines:
                result[plane] = lines[-1]
                break
    return result


def representatives(trace: Trace, events: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The event that represents each event in the graph: on TPU planes the step that contains it (-1: none),
    else itself.
    """
    lines = grouping_lines(trace)
    if not lines or not len(events):
        return events
    plane = trace.lines["plane"][trace.event_line[events]]
    result: npt.NDArray[np.int32] = events.copy()
    for device in {*planes(trace).tensor_cores, *planes(trace).sparse_cores}:
        on_device = plane == device
        if not on_device.any():
            continue
        if device not in lines:
            result[on_device] = -1
            continue
        first = int(trace.line_offsets[lines[device]])
        rows = events[on_device]
        is_step = trace.event_line[rows] == lines[device]
        step, is_inside = _containing(trace, lines[device], rows)
        result[on_device] = np.where(is_step, rows, np.where(is_inside, first + step, -1))
    return result


def group_devices(
    trace: Trace, lines: dict[int, int], group: npt.NDArray[np.int32], n_groups: int
) -> npt.NDArray[np.int32]:
    """Number steps 0, 1, 2 … equally on every core if the host's roots reached none; then give each step's
    group to all events that it overlaps.
    """
    group = group.copy()
    cores = [plane for plane in planes(trace).tensor_cores if plane in lines]
    if all((group[line_events(trace, lines[plane])] < 0).all() for plane in cores):
        for plane in cores:
            steps = line_events(trace, lines[plane])
            group[steps] = n_groups + np.arange(steps.stop - steps.start)
    for plane, line in lines.items():
        steps = line_events(trace, line)
        for other in trace.lines_of([plane]).tolist():
            if other == line or trace.line_names[other] in STEP_LINES:
                continue
            rows = np.arange(*line_events(trace, other).indices(trace.n_events)[:2])
            step, overlaps = _overlapping(trace, line, rows)
            group[rows] = np.where(overlaps, group[steps][step], -1)
    return group


def _first_ending_after(trace: Trace, line: int, rows: npt.NDArray[np.intp] | Int64s) -> tuple[slice, Int64s]:
    """The events of `line`, and for each of `rows` the first of them that ends after it begins (else the
    last).
    """
    steps = line_events(trace, line)
    ends = np.maximum.accumulate(trace.events["start_ps"][steps] + trace.events["duration_ps"][steps])
    index = np.searchsorted(ends, trace.events["start_ps"][rows], side="right")
    return steps, np.minimum(index, len(ends) - 1).astype(np.int64)


def _containing(trace: Trace, line: int, rows: Int64s) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    steps, index = _first_ending_after(trace, line, rows)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    begin, end = start[steps][index], (start[steps] + duration[steps])[index]
    return index, (begin <= start[rows]) & (end >= start[rows] + duration[rows])


def _overlapping(trace: Trace, line: int, rows: npt.NDArray[np.intp]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    steps, index = _first_ending_after(trace, line, rows)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    begin, end = start[steps][index], (start[steps] + duration[steps])[index]
    return index, (begin <= start[rows] + duration[rows]) & (end >= start[rows])
