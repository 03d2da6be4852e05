"""The pieces that PyTorch's steps consist of: the activity of streams, the loader, and the activity of the
host while no kernel runs.
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
from tb_tpuprof.analysis.events.stat_rows import distinct
from tb_tpuprof.analysis.steps.classes import TimeClass, host_classes
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.idle_pieces import (
    launch_events,
    launching_thread_pieces,
    own_thread_pieces,
    with_launching_calls,
)
from tb_tpuprof.analysis.steps.pieces import Pieces, joined
from tb_tpuprof.analysis.steps.pytorch import Windows, loader_events, windows
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import Segments, classify_line, name_kinds, segments
from tb_tpuprof.analysis.steps.windows import clipped
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


def pytorch_pieces(trace: Trace, steps: Steps) -> Pieces:
    """The pieces of the given steps; their times by class add up to those of the steps."""
    markers = windows(trace)
    keys = zip(markers.group.tolist(), markers.start.tolist(), strict=True)
    marker_of = {key: marker for marker, key in reversed(list(enumerate(keys)))}  # the first of equals
    step_keys = zip(steps.number.tolist(), steps.start_ps.tolist(), strict=True)
    in_steps = np.array([marker_of[key] for key in step_keys], np.intp)
    selected = Windows(
        markers.row[in_steps], markers.group[in_steps], markers.start[in_steps], markers.end[in_steps]
    )
    order = np.argsort(selected.start, kind="stable")
    ordered = Windows(selected.row[order], selected.group[order], selected.start[order], selected.end[order])
    rows = np.concatenate(
        [np.empty(0, np.intp), *(stream_events(trace, plane) for plane in planes(trace).gpus)]
    )
    start = trace.events["start_ps"][rows]
    interval, window, *span = clipped(start, start + trace.events["duration_ps"][rows], ordered)
    unnamed = np.full(len(interval), -1, np.int64)
    device = Pieces(
        span[0], span[1], gpu_classes(trace, rows)[interval], window, unnamed, rows[interval].astype(np.int64)
    )
    pieces = joined([with_launching_calls(trace, device), *_host_pieces(trace, ordered)])
    return pieces.of_steps(ordered.group, steps.number)


def _host_pieces(trace: Trace, markers: Windows) -> Iterator[Pieces]:
    """The loader, whatever runs at the same time; and the other activity of the steps' threads and of threads
    that launch kernels.
    """
    event_class = classes_of(trace.events["metadata"], host_classes(trace, planes(trace).hosts))
    own_lines = np.unique(trace.event_line[markers.row])
    for line in own_lines.tolist():
        classified = segments(
            trace, classify_line(trace, line, event_class, markers.row, are_steps=True, has_device=True)
        )
        classified = _without_steps_as_loaders(trace, line, classified)
        loader = _loader_of(trace, line)[classified.event - int(trace.line_offsets[line])]
        yield own_thread_pieces(classified, loader < 0, markers)
        yield _loader_pieces(trace, classified, loader, markers)
    yield from launching_thread_pieces(trace, markers, own_lines)


def _loader_of(trace: Trace, line: int) -> npt.NDArray[np.integer]:
    """The outermost fetch of a batch that encloses each event of a line (event row); -1 for none."""
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents_within(trace, rows)
    loader_rows = loader_events(trace)
    is_fetch = np.zeros(len(parent), np.bool_)
    is_fetch[loader_rows[(loader_rows >= rows.start) & (loader_rows < rows.stop)] - rows.start] = True
    around = np.where(parent >= 0, nearest(parent, is_fetch)[np.maximum(parent, 0)], -1)
    fetch = nearest(parent, is_fetch & (around < 0))
    return np.where(fetch >= 0, fetch + rows.start, -1)


def _loader_pieces(
    trace: Trace, classified: Segments, loader: npt.NDArray[np.integer], markers: Windows
) -> Pieces:
    """Stretches inside fetches, named after the user's function in them, else after the fetch."""
    in_fetch = loader >= 0
    interval, window, begin, end = clipped(classified.start[in_fetch], classified.end[in_fetch], markers)
    fetch = trace.events["metadata"][loader[in_fetch][interval]].astype(np.int64)
    named = np.where(
        _is_users(trace)[classified.named[in_fetch][interval]], classified.named[in_fetch][interval], fetch
    )
    klass = np.full(len(interval), TimeClass.HOST_WAIT_INPUT, np.uint8)
    return Pieces(begin, end, klass, window, named, classified.event[in_fetch][interval])


def _is_users(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a Python frame of the user (see `Frame.is_users`)."""
    frames = [frame_of(name) for name in metadata_names(trace)]
    return np.array([frame is not None and frame.is_users for frame in frames], np.bool_)


def _without_steps_as_loaders(trace: Trace, line: int, classified: Segments) -> Segments:
    """Reclassify stretches that seem to load data by their name but launch kernels: they are the model
    (`forward_batch_generation`).
    """
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents_within(trace, rows)
    names = metadata_names(trace)
    launches = launch_events(trace)
    launches = launches[(launches >= rows.start) & (launches < rows.stop)]
    runs_kernels = np.array(["Launch" in name for name in names], np.bool_)
    has_launch = np.zeros(len(parent), np.bool_)
    ancestor = launches[runs_kernels[trace.events["metadata"][launches]]] - rows.start
    while len(ancestor):
        ancestor = distinct(parent[ancestor].astype(np.int64))
        ancestor = ancestor[(ancestor >= 0)]
        ancestor = ancestor[~has_launch[ancestor]]
        has_launch[ancestor] = True
    kind = name_kinds(trace)[trace.events["metadata"][rows]]
    loader = nearest(parent, (kind == Kind.LOADER) | (kind == Kind.NEXT))
    is_model = (loader >= 0) & has_launch[loader]
    position = classified.event - rows.start
    is_frame = np.array([frame_of(name) is not None for name in names], np.bool_)[
        trace.events["metadata"][classified.event]
    ]
    klass = classified.klass.copy()
    klass[is_model[position] & (klass == TimeClass.HOST_WAIT_LOADER)] = TimeClass.HOST_COMPUTE
    klass[is_model[position] & is_frame & (classified.klass == TimeClass.HOST_WAIT_LOADER)] = (
        TimeClass.HOST_PYTHON
    )
    return replace(classified, klass=klass)
