"""Steps of GPUs: the span of the kernels that a step launched, and the activity of the streams in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import line_events, planes, step_line_of_gpu
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.steps.classes import TimeClass, gpu_class
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.kernel_precision import FULL, HALF, hlo_precision
from tb_tpuprof.analysis.steps.record import StepParts
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


def stream_lines(trace: Trace, plane: int) -> list[int]:
    """A GPU's streams: its lines except derived ones."""
    derived = planes(trace).is_derived_line
    return [line for line in trace.lines_of([plane]).tolist() if not derived[line]]


def stream_events(trace: Trace, plane: int) -> npt.NDArray[np.intp]:
    """Events of a GPU's streams."""
    parts = [
        np.arange(*line_events(trace, line).indices(trace.n_events)[:2])
        for line in stream_lines(trace, plane)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.intp)


def _has_groups(trace: Trace, plane: int) -> bool:
    """Whether any event of a GPU's streams belongs to a step."""
    group = groups(trace).group
    return any(bool((group[line_events(trace, line)] >= 0).any()) for line in stream_lines(trace, plane))


def gpu_parts(trace: Trace) -> StepParts:
    """Markers and events of all GPUs together. Events of a GPU count in a step only if that GPU has a marker
    of the step.
    """
    grouped = [plane for plane in planes(trace).gpus if _has_groups(trace, plane)]
    launched = np.zeros(trace.n_events if grouped else 0, np.bool_)
    if grouped:
        owner, value = first_ints(trace, "correlation_id")
        launched[owner[value >= 0]] = True
    markers, counted = [], []
    for plane in grouped:
        rows = stream_events(trace, plane)
        spans = step_spans(trace, plane, rows)
        rows = rows[launched[rows] & (groups(trace).group[rows] >= 0)]
        rows = rows[np.isin(groups(trace).group[rows], spans[0])]
        if len(rows):
            markers.append(spans[:, np.isin(spans[0], groups(trace).group[rows])])
            counted.append(rows)
    marker = np.concatenate(markers, axis=1) if markers else np.empty((3, 0), np.int64)
    rows = np.concatenate(counted) if counted else np.empty(0, np.intp)
    start = trace.events["start_ps"][rows]
    group = groups(trace).group[rows].astype(np.int64)
    return StepParts(
        marker[0],
        marker[1],
        marker[2],
        group,
        start,
        start + trace.events["duration_ps"][rows],
        gpu_classes(trace, rows),
    )


def step_spans(trace: Trace, plane: int, rows: npt.NDArray[np.intp]) -> Int64s:
    """(group, start, end) of a GPU's step markers, int64[3, n]: from the file's derived `Steps` line, else
    runs of consecutive events of one group in time order.
    """
    line = step_line_of_gpu(trace, plane)
    if line >= 0:
        rows = np.arange(*line_events(trace, line).indices(trace.n_events)[:2])
    group = groups(trace).group[rows]
    if not (group >= 0).any():
        return np.empty((3, 0), np.int64)
    start, duration = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    order = np.lexsort((duration, start))
    group, start, end = group[order].astype(np.int64), start[order], (start + duration)[order]
    grouped = np.flatnonzero(group >= 0)
    if line < 0 and len(grouped):
        # Ungrouped events between grouped ones belong to the latest group.
        latest = np.maximum.accumulate(np.where(group >= 0, np.arange(len(group)), -1))
        group, start, end = group[latest][latest >= 0], start[latest >= 0], end[latest >= 0]
    else:
        group, start, end = group[grouped], start[grouped], end[grouped]
    if not len(group):
        return np.empty((3, 0), np.int64)
    if line >= 0:
        return np.stack((group, start, end))
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    return np.stack((group[first], start[first], np.maximum.reduceat(end, first)))


def gpu_classes(trace: Trace, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    """Class of each event of GPU streams: by its name and shape (parsed once per distinct pair), and by the
    types in its HLO if it has one.
    """
    metadata = trace.events["metadata"][rows].astype(np.int64)
    texts = trace.event_stats.texts("shape")
    shape = np.full(len(rows), -1, np.int64)
    if len(texts.owner) and len(rows):
        dense = np.full(trace.n_events, -1, np.int32)
        dense[texts.owner] = texts.value
        shape = dense[rows].astype(np.int64)
    n_shapes = len(trace.strings) + 1
    pairs, inverse = np.unique(metadata * n_shapes + shape + 1, return_inverse=True)
    names = trace.metadata["name"][pairs // n_shapes].tolist()
    shapes = (pairs % n_shapes - 1).tolist()
    classes = [
        gpu_class(trace.strings[name], trace.strings.get(text))
        for name, text in zip(names, shapes, strict=True)
    ]
    if not len(pairs):
        return np.empty(0, np.uint8)
    result: npt.NDArray[np.uint8] = np.array(classes, np.uint8)[inverse.reshape(-1)]
    precision = hlo_precision(trace, rows)
    computes = (result == TimeClass.DEVICE_COMPUTE_32) | (result == TimeClass.DEVICE_COMPUTE_16)
    result[computes & (precision == FULL)] = TimeClass.DEVICE_COMPUTE_32
    result[computes & (precision == HALF)] = TimeClass.DEVICE_COMPUTE_16
    return result
