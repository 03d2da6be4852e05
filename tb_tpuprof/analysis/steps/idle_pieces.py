"""What threads do while a device waits for them: pieces of steps whose class says only that nothing ran on
the device.

step's thread      ├ train ──────────────────────────────────┤
                   ├aten::mm┤ ├item: waits ───┤ ├ Python ──┤
autograd's thread             ├MmBackward0┤
device                   ■■■■■■■■■■■■■■■■■■■■■
pieces             dddddd                      pppppppppp        dispatch, Python: of the time that is
nobody's otherwise
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
from tb_tpuprof.analysis.events.stat_rows import first_ints
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


def of_own_thread(found: Segments, chosen: npt.NDArray[np.bool_], windows: Spans) -> Pieces:
    """The chosen stretches of a step's own thread, for the time in which devices are idle."""
    which, at, begin, end = clipped(found.start[chosen], found.end[chosen], windows)
    klass = np.full(len(which), TimeClass.UNKNOWN, np.uint8)
    return Pieces(
        begin,
        end,
        klass,
        at,
        found.named[chosen][which],
        found.event[chosen][which],
        found.klass[chosen][which],
    )


def while_copying(trace: Trace, own: Pieces) -> Pieces:
    """Calls of a step's own thread, as far as another thread prepares a copy to or from the device meanwhile:
    they wait for it.
    """
    names = metadata_names(trace)
    copies = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    copies[rows] = [_COPIES.fullmatch(names[row]) is not None for row in rows.tolist()]
    found = np.flatnonzero(copies[trace.events["metadata"]])
    found = (
        found[~np.isin(trace.event_line[found], np.unique(trace.event_line[own.event]))]
        if len(own)
        else found[:0]
    )
    found = found[trace.events["duration_ps"][found] > 0]
    if not len(found):
        return no_pieces()
    begin = trace.events["start_ps"][found].astype(np.int64)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate((begin + trace.events["duration_ps"][found])[order])
    new = np.append(True, begin[1:] > end[:-1])
    spans = _Spans(begin[new], end[np.append(np.flatnonzero(new)[1:] - 1, len(end) - 1)])
    calls = np.flatnonzero(own.said == TimeClass.HOST_COMPUTE)
    which, _at, start, stop = clipped(own.start[calls], own.end[calls], spans)
    at = calls[which]
    said = np.full(len(at), TimeClass.HOST_TO_DEVICE, np.uint8)
    return Pieces(start, stop, own.klass[at], own.step[at], own.named[at], own.event[at], said)


@dataclass(frozen=True)
class _Spans:
    start: Int64s
    end: Int64s


def of_launching_threads(trace: Trace, windows: Spans, own: npt.NDArray[np.integer]) -> Iterator[Pieces]:
    """What other threads of the host do in calls that launch work: autograd's, an executor's. `own`: lines of
    the steps' threads.
    """
    launches = launch_events(trace)
    for line in np.setdiff1d(np.unique(trace.event_line[launches]), own).tolist():
        rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        parent = parents_within(trace, rows)
        root = nearest(parent, parent < 0)
        holds = np.zeros(len(parent), np.bool_)
        holds[root[launches[(launches >= rows.start) & (launches < rows.stop)] - rows.start]] = True
        start, end, owner = innermost(trace, rows, parent)
        kept = holds[root[owner]]
        which, at, begin, stop = clipped(start[kept], end[kept], windows)
        event = owner[kept][which].astype(np.int64) + rows.start
        klass, said = (
            np.full(len(which), one, np.uint8) for one in (TimeClass.UNKNOWN, TimeClass.HOST_COMPUTE)
        )
        yield Pieces(begin, stop, klass, at, np.full(len(which), -1, np.int64), event, said)


@once
def launch_events(trace: Trace) -> Rows:
    """The host's calls that launch kernels, graphs of them or copies: by their names, or because a device's
    event has their number.
    """
    names = metadata_names(trace)
    by_name = np.zeros(len(names), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    by_name[rows] = [names[row].startswith(_LAUNCHES) for row in rows.tolist()]
    on_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    owner, value = first_ints(trace, "correlation_id")
    numbered = owner[(value > 0) & on_host[trace.lines_at(owner)]] if len(owner) else owner
    found: Rows = np.union1d(np.flatnonzero(by_name[trace.events["metadata"]]), numbered).astype(np.intp)
    return found


def by_their_calls(trace: Trace, device: Pieces) -> Pieces:
    """Work of devices, with each copy's event the host's call that asked for it, where the trace tells: who
    called is who copies.
    """
    copies = np.isin(device.klass, (TimeClass.HOST_TO_DEVICE, TimeClass.DEVICE_TO_HOST))
    if not copies.any():
        return device
    found = kernel_launches(trace)
    order = np.argsort(found.kernel, kind="stable")
    made, launch = found.kernel[order], found.launch[order]
    at = np.minimum(np.searchsorted(made, device.event), max(len(made) - 1, 0))
    known = copies & (made[at] == device.event) if len(made) else np.zeros(len(copies), np.bool_)
    event = device.event.copy()
    event[known] = launch[at[known]]
    return replace(device, event=event)
