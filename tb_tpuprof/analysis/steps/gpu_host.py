"""Steps of a GPU that the user marked on the host: from the start of the annotation, or the end of the
previous step, to the end of the step's work.

    synchronous   ├ train 3 ──────────────┤ ├ train 4 ──────────────┤
      GPU             ■■■■■■■                   ■■■■■■■
      step        ├───────────────────────┤ ├───────────────────────┤

    asynchronous  ├3┤├4┤├5┤
      GPU           ■■■■■■■■■■■■■■■■■■■■■
      step        ├───────┤├─────┤├─────┤

The span of a step's kernels alone would miss the time for which the GPU waits before them. While no kernel
runs, the events of the step's own thread determine the class: loading data, waiting, Python, compilation. The
rest is idle time of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.steps.classes import TimeClass, host_classes
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.idle_pieces import (
    copy_waits,
    launching_thread_pieces,
    own_thread_pieces,
    with_launching_calls,
)
from tb_tpuprof.analysis.steps.pieces import Pieces, joined, no_pieces
from tb_tpuprof.analysis.steps.record import Steps, annotated_events, longest_markers, no_steps, trimmed
from tb_tpuprof.analysis.steps.waits import (
    PYTHON_CLASSES,
    classes_and_waits,
    classify_line,
    segments,
    waits_in_steps,
)
from tb_tpuprof.analysis.steps.windows import Windows, clipped
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_HOST_CLASSES = (*PYTHON_CLASSES, TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_COMPILE)
_COMPUTES = (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)


@once
def steps_of_gpu(trace: Trace) -> tuple[Steps, Pieces]:
    """The annotated steps of GPUs, and the pieces that the steps' times consist of."""
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    markers = annotated_events(trace, event_class)
    kernels = _launched(trace, _streams(trace))
    windows, markers = _windows(trace, markers, kernels)
    if not len(windows.group):
        return no_steps(), no_pieces()
    start = trace.events["start_ps"][kernels]
    end = start + trace.events["duration_ps"][kernels]
    interval, window, *span = clipped(start, end, windows)
    unnamed = np.full(len(interval), -1, np.int64)
    device = Pieces(
        span[0],
        span[1],
        gpu_classes(trace, kernels)[interval],
        window,
        unnamed,
        kernels[interval].astype(np.int64),
    )
    pieces = joined(
        [with_launching_calls(trace, device), *_host_pieces(trace, windows, markers, event_class)]
    )
    class_ps, waits = classes_and_waits(trace, pieces, (windows.start, windows.end))
    computing = np.flatnonzero(class_ps[:, list(_COMPUTES)].any(axis=1))
    names = groups(trace).names
    result = Steps(
        windows.group[computing],
        tuple(names.get(i, str(i)) for i in windows.group[computing].tolist()),
        windows.start[computing],
        (windows.end - windows.start)[computing],
        class_ps[computing],
        "annotation",
        len(windows.group) - len(computing),
        how=windows.how,
        waits=waits_in_steps(waits, computing),
        is_on_devices=True,
    )
    result = trimmed(result)
    return result, pieces.of_steps(windows.group, result.number)


def annotated_windows(trace: Trace) -> Windows:
    """All annotated steps that launched kernels, by start: those at the capture's edges, too."""
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    markers = annotated_events(trace, event_class)
    group = groups(trace).group
    in_groups = [rows[group[rows] >= 0] for rows in _streams(trace)] if len(markers) else []
    return _windows(trace, markers, _launched(trace, in_groups))[0]


def _streams(trace: Trace) -> Iterator[Rows]:
    """Events of the streams of each GPU."""
    return (stream_events(trace, plane) for plane in planes(trace).gpus)


def _launched(trace: Trace, parts: Iterable[Rows]) -> Rows:
    """Those of the events that the host launched."""
    rows = np.concatenate([np.empty(0, np.intp), *parts])
    if not len(rows):
        return rows
    owner, value = first_ints(trace, "correlation_id")
    has_launch = np.zeros(trace.n_events, np.bool_)
    has_launch[owner[value >= 0]] = True
    launched: Rows = rows[has_launch[rows]]
    return launched


def _windows(trace: Trace, markers: Rows, kernels: Rows) -> tuple[Windows, Rows]:
    """The windows of the steps that launched kernels, by start, and the events that mark them (see the
    module's drawing).
    """
    group = groups(trace).group
    markers = markers[group[markers] >= 0]
    start = trace.events["start_ps"].astype(np.int64, copy=False)
    stop = start[markers] + trace.events["duration_ps"][markers]
    number, begin, end, longest = longest_markers(group[markers].astype(np.int64), start[markers], stop)
    step = group[kernels]
    in_step = np.isin(step, number)
    kernels, step = kernels[in_step], step[in_step]
    has_kernels = np.isin(number, step)
    number, begin, end, markers = (
        number[has_kernels],
        begin[has_kernels],
        end[has_kernels],
        markers[longest[has_kernels]],
    )
    work_end = end.copy()
    np.maximum.at(
        work_end,
        np.searchsorted(number, step),
        start[kernels] + trace.events["duration_ps"][kernels],
    )
    order = np.argsort(begin, kind="stable")
    number, begin, end, work_end, markers = (
        number[order],
        begin[order],
        end[order],
        work_end[order],
        markers[order],
    )
    runs_ahead = bool(len(work_end) > 1 and float((work_end[:-1] > begin[1:]).mean()) > 0.5)
    work_end = np.maximum.accumulate(work_end)
    begin = np.maximum(begin, np.append(begin[:1], work_end[:-1]))
    has_length = work_end > begin
    how = "dispatched" if runs_ahead else "annotated"
    return Windows(number[has_length], begin[has_length], work_end[has_length], how), markers[has_length]


def _host_pieces(
    trace: Trace, windows: Windows, markers: Rows, event_class: npt.NDArray[np.uint8]
) -> Iterator[Pieces]:
    """What the steps' threads load, wait for, compile or run in Python; and the calls that launch kernels
    while no kernel runs.
    """
    for line in np.unique(trace.event_line[markers]).tolist():
        thread = segments(
            trace, classify_line(trace, line, event_class, markers, are_steps=True, has_device=True)
        )
        is_host_time = np.isin(thread.klass, _HOST_CLASSES)
        idle = own_thread_pieces(thread, ~is_host_time, windows)
        yield idle
        yield copy_waits(trace, idle)
        interval, window, begin, end = clipped(thread.start[is_host_time], thread.end[is_host_time], windows)
        yield Pieces(
            begin,
            end,
            thread.klass[is_host_time][interval],
            window,
            thread.named[is_host_time][interval],
            thread.event[is_host_time][interval],
        )
    yield from launching_thread_pieces(trace, windows, trace.event_line[markers])
