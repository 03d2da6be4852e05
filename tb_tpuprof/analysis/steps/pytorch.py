"""Steps that PyTorch's profiler marks on the host (`ProfilerStep#n`): the activity of devices, and the time
that the host waited for its data loader.

    host     ├ ProfilerStep#3 ──────────────┤├ ProfilerStep#4 ─────────── …
              ├ DataLoader ──┤ ├launch┤
    streams  ▒▒▒▒ (step 2's)       ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ (step 3's)
    charged  ccccciiiiiiiiiiii.....cccccccccc|cccccccccc …

A marker lasts from one `prof.step()` to the next, so the markers add up to the loop's time. A window's time
is charged to what runs in it: kernels launched by an earlier step are busy time of the window in which they
run, so no window is busier than it is long. Waiting for the loader counts only while no kernel runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.names import is_fetch
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_named, events_of
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import StepParts
from tb_tpuprof.analysis.steps.waits import StepWait
from tb_tpuprof.analysis.steps.windows import overlapping
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
MARKER = "ProfilerStep"
_LATE = 0.1  # fraction of the steps' time that justifies a notice
_COMPUTES = (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)
_SINGLE = "_SingleProcessDataLoaderIter"


@dataclass(frozen=True)
class LoaderWait:
    """Time spent fetching batches in a host's steps: the name that accounts for most of it, the number of
    steps, and the duration.

    `total_ps`: in all windows; `hidden_ps`: the part while kernels ran, which costs nothing. `steps_ps`:
    length of all windows.
    """

    name: str
    n_steps: int
    total_ps: int
    hidden_ps: int
    steps_ps: int

    @property
    def fraction(self) -> float:
        """Fraction of the steps' time."""
        return self.total_ps / self.steps_ps if self.steps_ps else 0.0

    @property
    def is_in_process(self) -> bool:
        """Whether the training process itself loads the batches (`num_workers=0`)."""
        return _SINGLE in self.name


@dataclass(frozen=True)
class Windows:
    """The markers in time order: rows of events, groups, starts and ends in ps."""

    row: Rows
    group: Int64s
    start: Int64s
    end: Int64s


@once
def windows(trace: Trace) -> Windows:
    """The host's step markers with a duration, by start; none if the profiler marked no steps."""
    rows = events_named(trace, (MARKER,))
    on_host = (
        np.isin(trace.lines["plane"][trace.lines_at(rows)], planes(trace).hosts)
        if len(rows)
        else np.empty(0, np.bool_)
    )
    rows = rows[on_host & ~planes(trace).is_derived_line[trace.lines_at(rows)]] if len(rows) else rows
    group = groups(trace).group[rows].astype(np.int64)
    rows, group = rows[group >= 0], group[group >= 0]
    start = trace.events["start_ps"][rows].astype(np.int64)
    end = start + trace.events["duration_ps"][rows]
    order = np.argsort(start, kind="stable")
    order = order[(end > start)[order]]
    return Windows(rows[order], group[order], start[order], end[order])


def window_parts(trace: Trace) -> StepParts:
    """The markers, and the activity of device streams and of the data loader in each, whichever step it
    belongs to.
    """
    markers = windows(trace)
    rows = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    loader = loader_events(trace)
    start = np.concatenate((trace.events["start_ps"][rows], trace.events["start_ps"][loader]))
    end = start + np.concatenate((trace.events["duration_ps"][rows], trace.events["duration_ps"][loader]))
    klass = np.concatenate(
        (gpu_classes(trace, rows), np.full(len(loader), TimeClass.HOST_WAIT_INPUT, np.uint8))
    )
    event, window = overlapping(start, end, markers)
    launched = _launching_windows(trace, rows[np.isin(klass[: len(rows)], _COMPUTES)], markers)
    no_time = np.zeros(len(launched), np.int64)
    return StepParts(
        markers.group, markers.start, markers.end,
        np.concatenate((markers.group[window], markers.group[launched])),
        np.concatenate((start[event], no_time)), np.concatenate((end[event], no_time)),
        np.concatenate((klass[event], np.full(len(launched), TimeClass.DEVICE_COMPUTE_32, np.uint8))),
    )  # fmt: skip


def _launching_windows(trace: Trace, kernels: Rows, markers: Windows) -> Rows:
    """Windows of steps that launched kernels, wherever these ran: such a step computes, though possibly after
    its window.
    """
    return np.flatnonzero(np.isin(markers.group, groups(trace).group[kernels]))


@once
def loader_events(trace: Trace) -> Rows:
    """Fetches of batches on the threads of the step markers."""
    markers = windows(trace)
    if not len(markers.row):
        return np.empty(0, np.intp)
    names = metadata_names(trace)
    is_fetch_name = np.zeros(len(names), np.bool_)
    host_rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    is_fetch_name[host_rows] = [is_fetch(names[row]) for row in host_rows.tolist()]
    rows = events_of(trace, is_fetch_name)
    return rows[np.isin(trace.event_line[rows], trace.event_line[markers.row])]


def loader_wait_in(trace: Trace, markers: Windows) -> LoaderWait | None:
    """As `loader_wait` in `pytorch_loader.py`, but for the given windows."""
    rows = loader_events(trace)
    start = trace.events["start_ps"][rows].astype(np.int64)
    event, window = overlapping(start, start + trace.events["duration_ps"][rows], markers)
    if not len(event):
        return None
    first = np.maximum(start[event], markers.start[window])
    last = np.minimum(start[event] + trace.events["duration_ps"][rows][event], markers.end[window])
    by_name = np.bincount(trace.events["metadata"][rows[event]], weights=last - first)
    kernels = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    kernels = kernels[np.isin(gpu_classes(trace, kernels), _COMPUTES)]
    begin, stop = (
        trace.events["start_ps"][kernels],
        trace.events["start_ps"][kernels] + trace.events["duration_ps"][kernels],
    )
    total, busy = union_ps(first, last), union_ps(begin, stop)
    either = union_ps(np.append(first, begin), np.append(last, stop))
    name = trace.strings.get(int(trace.metadata["name"][int(by_name.argmax())]))
    return LoaderWait(
        name, len(np.unique(window)), total, total + busy - either, int((markers.end - markers.start).sum())
    )


def named_waits(trace: Trace, class_ps: Int64s) -> tuple[StepWait, ...]:
    """What steps (rows of times by class) wait for, by name: the loader, while no kernel runs."""
    loader, time_ps = loader_wait_in(trace, windows(trace)), class_ps[:, TimeClass.HOST_WAIT_INPUT]
    return (
        (StepWait(TimeClass.HOST_WAIT_LOADER, loader.name, "", 0, time_ps),)
        if loader and time_ps.any()
        else ()
    )


def late_notice(trace: Trace) -> tuple[Notice, ...]:
    """A notice if devices still work on the marked steps long after the last one ended on the host."""
    markers = windows(trace)
    if not len(markers.row) or not planes(trace).gpus:
        return ()
    rows = np.concatenate([stream_events(trace, plane) for plane in planes(trace).gpus])
    rows = rows[np.isin(groups(trace).group[rows], markers.group)]
    start = np.maximum(trace.events["start_ps"][rows], markers.end.max())
    end = trace.events["start_ps"][rows] + trace.events["duration_ps"][rows]
    late_ps = union_ps(start[end > start], end[end > start])
    if late_ps < _LATE * int((markers.end - markers.start).sum()):
        return ()
    late = f"which worked on the marked steps for {format_time(late_ps)} after the last one ended"
    text = f"{trace.info.host}: the host ran ahead of its devices, {late}."
    return (
        Notice(
            "info",
            text,
            "Step times are the host's. To see the device's pace, profile more steps, until launches wait "
            "for it.",
        ),
    )
