"""Steps of a GPU that the user marked on the host: from the annotation's start, or the end of the step
before, to the end of its work.

    synchronous   ├ train 3 ──────────────┤ ├ train 4 ──────────────┤
      GPU             ■■■■■■■                   ■■■■■■■
      step        ├───────────────────────┤ ├───────────────────────┤

    asynchronous  ├3┤├4┤├5┤
      GPU           ■■■■■■■■■■■■■■■■■■■■■
      step        ├───────┤├─────┤├─────┤

The span of a step's kernels alone would lose what the GPU waits for before them. While no kernel runs, the
step's own thread says what it does: load data, wait, run Python, compile. What it does not say stays idle
time of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.steps.classes import TimeClass, host_classes
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.idle_pieces import (
    by_their_calls,
    of_launching_threads,
    of_own_thread,
    while_copying,
)
from tb_tpuprof.analysis.steps.pieces import Pieces, joined, no_pieces
from tb_tpuprof.analysis.steps.record import Steps, annotated_events, longest_markers, no_steps, trimmed
from tb_tpuprof.analysis.steps.waits import SAID_BY_PYTHON, classes_and_waits, of_steps, segments, told_of
from tb_tpuprof.analysis.steps.windows import Windows, clipped
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_FROM_HOST = (*SAID_BY_PYTHON, TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_COMPILE)
_COMPUTES = (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)


@once
def steps_of_gpu(trace: Trace) -> tuple[Steps, Pieces]:
    """The same, and the pieces that the steps' times are made of."""
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    markers = annotated_events(trace, event_class)
    kernels = _launched(trace)
    windows, markers = _windows(trace, markers, kernels)
    if not len(windows.group):
        return no_steps(), no_pieces()
    start = trace.events["start_ps"][kernels]
    end = start + trace.events["duration_ps"][kernels]
    which, at, *span = clipped(start, end, windows)
    unnamed = np.full(len(which), -1, np.int64)
    device = Pieces(
        span[0], span[1], gpu_classes(trace, kernels)[which], at, unnamed, kernels[which].astype(np.int64)
    )
    every = joined([by_their_calls(trace, device), *_of_host(trace, windows, markers, event_class)])
    class_ps, waits = classes_and_waits(trace, every, (windows.start, windows.end))
    kept = np.flatnonzero(class_ps[:, list(_COMPUTES)].any(axis=1))
    names = groups(trace).names
    found = Steps(
        windows.group[kept],
        tuple(names.get(i, str(i)) for i in windows.group[kept].tolist()),
        windows.start[kept],
        (windows.end - windows.start)[kept],
        class_ps[kept],
        "annotation",
        len(windows.group) - len(kept),
        how=windows.how,
        waits=of_steps(waits, kept),
    )
    found = trimmed(found)
    return found, every.of_steps(windows.group, found.number)


def _launched(trace: Trace) -> Rows:
    """Events of all GPUs' streams that the host launched."""
    rows = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    owner, value = first_ints(trace, "correlation_id")
    has_launch = np.zeros(trace.n_events, np.bool_)
    has_launch[owner[value >= 0]] = True
    launched: Rows = rows[has_launch[rows]]
    return launched


def _windows(trace: Trace, markers: Rows, kernels: Rows) -> tuple[Windows, Rows]:
    """The windows of the steps that launched kernels, by start, and the events that mark them (see the
    module's picture).
    """
    group = groups(trace).group.astype(np.int64)
    markers = markers[group[markers] >= 0]
    start = trace.events["start_ps"].astype(np.int64, copy=False)
    stop = start[markers] + trace.events["duration_ps"][markers]
    number, begin, end, chosen = longest_markers(group[markers], start[markers], stop)
    kernels = kernels[np.isin(group[kernels], number)]
    kept = np.isin(number, group[kernels])
    number, begin, end, markers = number[kept], begin[kept], end[kept], markers[chosen[kept]]
    done = end.copy()
    np.maximum.at(
        done, np.searchsorted(number, group[kernels]), start[kernels] + trace.events["duration_ps"][kernels]
    )
    order = np.argsort(begin, kind="stable")
    number, begin, end, done, markers = number[order], begin[order], end[order], done[order], markers[order]
    runs_ahead = bool(len(done) > 1 and float((done[:-1] > begin[1:]).mean()) > 0.5)
    done = np.maximum.accumulate(done)
    begin = np.maximum(begin, np.append(begin[:1], done[:-1]))
    lasting = done > begin
    how = "dispatched" if runs_ahead else "annotated"
    return Windows(number[lasting], begin[lasting], done[lasting], how), markers[lasting]


def _of_host(
    trace: Trace, windows: Windows, markers: Rows, event_class: npt.NDArray[np.uint8]
) -> Iterator[Pieces]:
    """What the steps' threads load, wait for, compile or run in Python; and what launches kernels while none
    runs.
    """
    for line in np.unique(trace.event_line[markers]).tolist():
        found = segments(trace, told_of(trace, line, event_class, markers, are_steps=True, has_device=True))
        said = np.isin(found.klass, _FROM_HOST)
        own = of_own_thread(found, ~said, windows)
        yield own
        yield while_copying(trace, own)
        which, at, begin, end = clipped(found.start[said], found.end[said], windows)
        yield Pieces(
            begin, end, found.klass[said][which], at, found.named[said][which], found.event[said][which]
        )
    yield from of_launching_threads(trace, windows, trace.event_line[markers])
