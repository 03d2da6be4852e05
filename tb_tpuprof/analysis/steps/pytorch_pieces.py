"""The pieces that PyTorch's steps are made of: what streams run, the loader, and what the host does while no
kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import nearest, parents_within
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import Kind, frame_of
from tb_tpuprof.analysis.steps.classes import TimeClass, host_classes
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.idle_pieces import (
    by_their_calls,
    launch_events,
    of_launching_threads,
    of_own_thread,
)
from tb_tpuprof.analysis.steps.pieces import Pieces, joined
from tb_tpuprof.analysis.steps.pytorch import Windows, loader_events, windows
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import Segments, name_kinds, segments, told_of
from tb_tpuprof.analysis.steps.windows import clipped
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


def pytorch_pieces(trace: Trace, steps: Steps) -> Pieces:
    """Those of the given steps: their times by class add up to the steps' own."""
    marked = windows(trace)
    chosen = np.array(
        [int(np.flatnonzero((marked.group == n) & (marked.start == s))[0]) for n, s in _keys(steps)], np.intp
    )
    found = Windows(marked.row[chosen], marked.group[chosen], marked.start[chosen], marked.end[chosen])
    order = np.argsort(found.start, kind="stable")
    ordered = Windows(found.row[order], found.group[order], found.start[order], found.end[order])
    rows = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    start = trace.events["start_ps"][rows]
    which, at, *span = clipped(start, start + trace.events["duration_ps"][rows], ordered)
    unnamed = np.full(len(which), -1, np.int64)
    device = Pieces(
        span[0], span[1], gpu_classes(trace, rows)[which], at, unnamed, rows[which].astype(np.int64)
    )
    every = joined([by_their_calls(trace, device), *_of_host(trace, ordered)])
    return every.of_steps(ordered.group, steps.number)


def _keys(steps: Steps) -> Iterator[tuple[int, int]]:
    yield from zip(steps.number.tolist(), steps.start_ps.tolist(), strict=True)


def _of_host(trace: Trace, found: Windows) -> Iterator[Pieces]:
    """The loader, whatever runs beside it; and what else the steps' threads and those that launch
    kernels do.
    """
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    own = np.unique(trace.event_line[found.row])
    for line in own.tolist():
        told = segments(trace, told_of(trace, line, event_class, found.row, are_steps=True, has_device=True))
        told = _without_steps_as_loaders(trace, line, told)
        loader = _loader_of(trace, line)[told.event - int(trace.line_offsets[line])]
        yield of_own_thread(told, loader < 0, found)
        yield _loading(trace, told, loader, found)
    yield from of_launching_threads(trace, found, own)


def _loader_of(trace: Trace, line: int) -> npt.NDArray[np.integer]:
    """The outermost fetch of a batch around each event of a line; -1 for none."""
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents_within(trace, rows)
    fetches = loader_events(trace)
    is_fetch = np.zeros(len(parent), np.bool_)
    is_fetch[fetches[(fetches >= rows.start) & (fetches < rows.stop)] - rows.start] = True
    found = nearest(parent, is_fetch)
    while True:
        above = np.where((found >= 0) & (parent[np.maximum(found, 0)] >= 0), parent[np.maximum(found, 0)], -1)
        higher = np.where(above >= 0, nearest(parent, is_fetch)[np.maximum(above, 0)], -1)
        if not (higher >= 0).any():
            break
        found = np.where(higher >= 0, higher, found)
    return np.where(found >= 0, found + rows.start, -1)


def _loading(trace: Trace, told: Segments, loader: npt.NDArray[np.integer], found: Windows) -> Pieces:
    """Stretches inside of fetches, each by the user's function in it, else by the fetch."""
    inside = loader >= 0
    which, at, begin, end = clipped(told.start[inside], told.end[inside], found)
    fetch = trace.events["metadata"][loader[inside][which]].astype(np.int64)
    named = np.where(_is_users(trace)[told.named[inside][which]], told.named[inside][which], fetch)
    klass = np.full(len(which), TimeClass.HOST_WAIT_INPUT, np.uint8)
    return Pieces(begin, end, klass, at, named, told.event[inside][which])


def _is_users(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a frame of Python with a file."""
    frames = [frame_of(name) for name in metadata_names(trace)]
    return np.array([frame is not None and frame.is_users for frame in frames], np.bool_)


def _without_steps_as_loaders(trace: Trace, line: int, told: Segments) -> Segments:
    """What launches kernels is the model, though its name may speak of data (`forward_batch_generation`)."""
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents_within(trace, rows)
    names = metadata_names(trace)
    kernels = [
        row
        for row in launch_events(trace).tolist()
        if rows.start <= row < rows.stop and "Launch" in names[_name(trace, row)]
    ]
    holds = np.zeros(len(parent), np.bool_)
    at = np.array(kernels, np.intp) - rows.start
    while len(at):
        at = np.unique(parent[at])
        at = at[(at >= 0)]
        at = at[~holds[at]]
        holds[at] = True
    kind = name_kinds(trace)[trace.events["metadata"][rows]]
    loader = nearest(parent, (kind == Kind.LOADER) | (kind == Kind.NEXT))
    wrong = (loader >= 0) & holds[loader]
    mine = told.event - rows.start
    is_frame = np.array([frame_of(name) is not None for name in names], np.bool_)[
        trace.events["metadata"][told.event]
    ]
    klass = told.klass.copy()
    klass[wrong[mine] & (klass == TimeClass.HOST_WAIT_LOADER)] = TimeClass.HOST_COMPUTE
    klass[wrong[mine] & is_frame & (told.klass == TimeClass.HOST_WAIT_LOADER)] = TimeClass.HOST_PYTHON
    return replace(told, klass=klass)


def _name(trace: Trace, row: int) -> int:
    return int(trace.events["metadata"][row])
