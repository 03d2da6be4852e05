"""Activity of threads while a device waits for them: pieces of steps for which the class only shows that
nothing ran on the device.

step's thread      ├ train ──────────────────────────────────┤
                   ├aten::mm┤ ├item: waits ───┤ ├ Python ──┤
autograd's thread             ├MmBackward0┤
device                   ■■■■■■■■■■■■■■■■■■■■■
pieces             dddddd                      pppppppppp        dispatch, Python: the rest of the time
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import innermost, nearest, parents_within
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_of, first_ints
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.launches import kernel_launches
from tb_tpuprof.analysis.steps.pieces import Pieces, no_pieces
from tb_tpuprof.analysis.steps.waits import Segments
from tb_tpuprof.analysis.steps.windows import Spans, clipped
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_COPIES = re.compile(
    r"[HD]2[HD] Dispatch|(?:TransferTo|TransferFrom|CopyTo|CopyFrom)\w*|Linearize\w*|Transpose::Execute"
)
_LAUNCHES = tuple(f"{api}{call}" for api in ("cuda", "hip", "cu") for call in ("Launch", "GraphLaunch"))


def own_thread_pieces(segments: Segments, is_chosen: npt.NDArray[np.bool_], windows: Spans) -> Pieces:
    """The chosen stretches of a step's own thread, for the time in which devices are idle."""
    interval, window, begin, end = clipped(segments.start[is_chosen], segments.end[is_chosen], windows)
    klass = np.full(len(interval), TimeClass.UNKNOWN, np.uint8)
    return Pieces(
        begin,
        end,
        klass,
        window,
        segments.named[is_chosen][interval],
        segments.event[is_chosen][interval],
        segments.klass[is_chosen][interval],
    )


def copy_waits(trace: Trace, own_pieces: Pieces) -> Pieces:
    """The parts of a step's own calls during which another thread prepares a copy to or from the device: the
    calls wait for it.
    """
    names = metadata_names(trace)
    is_copy = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    is_copy[rows] = [_COPIES.fullmatch(names[row]) is not None for row in rows.tolist()]
    copy_events = events_of(trace, is_copy)
    copy_events = (
        copy_events[~np.isin(trace.event_line[copy_events], np.unique(trace.event_line[own_pieces.event]))]
        if len(own_pieces)
        else copy_events[:0]
    )
    copy_events = copy_events[trace.events["duration_ps"][copy_events] > 0]
    if not len(copy_events):
        return no_pieces()
    begin = trace.events["start_ps"][copy_events].astype(np.int64)
    order = np.argsort(begin, kind="stable")
    begin, end = (
        begin[order],
        np.maximum.accumulate((begin + trace.events["duration_ps"][copy_events])[order]),
    )
    opens = np.append(True, begin[1:] > end[:-1])
    spans = _Spans(begin[opens], end[np.append(np.flatnonzero(opens)[1:] - 1, len(end) - 1)])
    calls = np.flatnonzero(own_pieces.thread_class == TimeClass.HOST_COMPUTE)
    call, _span, start, stop = clipped(own_pieces.start[calls], own_pieces.end[calls], spans)
    piece = calls[call]
    thread_class = np.full(len(piece), TimeClass.HOST_TO_DEVICE, np.uint8)
    return Pieces(
        start,
        stop,
        own_pieces.klass[piece],
        own_pieces.step[piece],
        own_pieces.named[piece],
        own_pieces.event[piece],
        thread_class,
    )


@dataclass(frozen=True)
class _Spans:
    start: Int64s
    end: Int64s


def launching_thread_pieces(
    trace: Trace, windows: Spans, own_lines: npt.NDArray[np.integer]
) -> Iterator[Pieces]:
    """Activity of other threads of the host in calls that launch work (autograd's, an executor's).
    `own_lines`: lines of the steps' own threads.
    """
    launches = launch_events(trace)
    for line in np.setdiff1d(np.unique(trace.event_line[launches]), own_lines).tolist():
        rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        parent = parents_within(trace, rows)
        root = nearest(parent, parent < 0)
        launches_work = np.zeros(len(parent), np.bool_)
        launches_work[root[launches[(launches >= rows.start) & (launches < rows.stop)] - rows.start]] = True
        start, end, owner = innermost(trace, rows, parent)
        is_launching = launches_work[root[owner]]
        interval, window, begin, stop = clipped(start[is_launching], end[is_launching], windows)
        event = owner[is_launching][interval].astype(np.int64) + rows.start
        klass, thread_class = (
            np.full(len(interval), class_, np.uint8) for class_ in (TimeClass.UNKNOWN, TimeClass.HOST_COMPUTE)
        )
        yield Pieces(begin, stop, klass, window, np.full(len(interval), -1, np.int64), event, thread_class)


@once
def launch_events(trace: Trace) -> Rows:
    """The host's calls that launch kernels, graphs of them or copies: identified by their names, or because a
    device event has the same correlation id.
    """
    names = metadata_names(trace)
    is_launch_name = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    is_launch_name[rows] = [names[row].startswith(_LAUNCHES) for row in rows.tolist()]
    on_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    owner, value = first_ints(trace, "correlation_id")
    with_id = owner[(value > 0) & on_host[trace.lines_at(owner)]] if len(owner) else owner
    result: Rows = np.union1d(events_of(trace, is_launch_name), with_id).astype(np.intp)
    return result


def with_launching_calls(trace: Trace, device: Pieces) -> Pieces:
    """Work of devices, in which the event of each copy is replaced by the host's call that requested it, if
    the trace shows it: the caller is responsible for the copy.
    """
    is_copy = np.isin(device.klass, (TimeClass.HOST_TO_DEVICE, TimeClass.DEVICE_TO_HOST))
    if not is_copy.any():
        return device
    launches = kernel_launches(trace)
    order = np.argsort(launches.kernel, kind="stable")
    kernel, launch = launches.kernel[order], launches.launch[order]
    position = np.minimum(np.searchsorted(kernel, device.event), max(len(kernel) - 1, 0))
    has_launch = (
        is_copy & (kernel[position] == device.event) if len(kernel) else np.zeros(len(is_copy), np.bool_)
    )
    event = device.event.copy()
    event[has_launch] = launch[position[has_launch]]
    return replace(device, event=event)
