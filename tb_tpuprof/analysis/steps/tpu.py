"""Steps of TPUs: the device's own `Steps` line, and the self times of its operations by category, averaged
over the cores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import MODULE_LINES, OP_LINE, STEP_LINES, lines_named, planes
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Markers = tuple[Int64s, Int64s, Int64s]

_CLASS_OF_CATEGORY = {
    "infeed": TimeClass.HOST_WAIT_INPUT,
    "outfeed": TimeClass.DEVICE_TO_HOST,
    "host send": TimeClass.DEVICE_TO_HOST,
    "host send-done": TimeClass.DEVICE_TO_HOST,
    "host recv": TimeClass.HOST_TO_DEVICE,
    "host recv-done": TimeClass.HOST_TO_DEVICE,
    "send": TimeClass.DEVICE_TO_DEVICE,
    "send-done": TimeClass.DEVICE_TO_DEVICE,
    "recv": TimeClass.DEVICE_TO_DEVICE,
    "recv-done": TimeClass.DEVICE_TO_DEVICE,
}
_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
)


def category_class(category: str) -> TimeClass:
    """Class of an operation by its HLO category; all but transfers and collectives compute."""
    if category.startswith(_COLLECTIVES):
        return TimeClass.DEVICE_COLLECTIVES
    return _CLASS_OF_CATEGORY.get(category, TimeClass.DEVICE_COMPUTE_32)


def tpu_steps(trace: Trace) -> Steps:
    """Steps that every TensorCore has. A step lasts as long as on its slowest core; the time without
    operations is `other`.
    """
    cores = [markers for markers in _markers(trace).values() if len(markers[0])]
    if not cores:
        return no_steps(n_unmarked_runs=_unmarked_runs(trace))
    number = cores[0][0]
    for other in cores[1:]:
        number = np.intersect1d(number, other[0])
    if not len(number):
        return no_steps()
    row_of_step = [np.searchsorted(core[0], number) for core in cores]
    start = np.min([core[1][i] for core, i in zip(cores, row_of_step, strict=True)], axis=0)
    duration = np.max([core[2][i] for core, i in zip(cores, row_of_step, strict=True)], axis=0)
    class_ps = np.sum(
        [_class_ps(trace, plane, number) for plane in planes(trace).tensor_cores], axis=0
    ) // len(cores)
    busy = class_ps[:, 1:].sum(axis=1)
    excess = np.maximum(busy - duration, 0)
    class_ps[:, TimeClass.DEVICE_COMPUTE_32] -= np.minimum(excess, class_ps[:, TimeClass.DEVICE_COMPUTE_32])
    class_ps[:, 0] = duration - class_ps[:, 1:].sum(axis=1)
    names = groups(trace).names
    kept_steps = np.flatnonzero((duration > 0) & (class_ps[:, 0] >= 0))
    name = tuple(names.get(i, str(i)) for i in number[kept_steps].tolist())
    return Steps(
        number[kept_steps],
        name,
        start[kept_steps],
        duration[kept_steps],
        class_ps[kept_steps],
        "device",
        len(number) - len(kept_steps),
    )


def _unmarked_runs(trace: Trace) -> int:
    """Runs of programs on the busiest core. They are not steps: the trace does not state which of them belong
    together.
    """
    runs = [
        trace.lines["n_events"][lines_named(trace, plane, MODULE_LINES)].sum()
        for plane in planes(trace).tensor_cores
    ]
    return int(max(runs, default=0))


def step_markers(trace: Trace, plane: int) -> Markers:
    """Group, start and duration (ps) of a TensorCore's steps; several step events of one group
    are one step.
    """
    return _markers(trace)[plane]


@once
def _markers(trace: Trace) -> dict[int, Markers]:
    return {plane: _markers_of(trace, plane) for plane in planes(trace).tensor_cores}


def _markers_of(trace: Trace, plane: int) -> Markers:
    empty = np.empty(0, np.int64)
    lines = [line for line in lines_named(trace, plane, STEP_LINES) if trace.lines["n_events"][line]]
    if not lines:
        return empty, empty, empty
    spans = device_spans(trace, lines[0])
    group = groups(trace).group[spans.rows].astype(np.int64)
    has_group = group >= 0
    group, start, end = (
        group[has_group],
        spans.start_ps[has_group],
        (spans.start_ps + spans.duration_ps)[has_group],
    )
    if not len(group):
        return empty, empty, empty
    order = np.argsort(group, kind="stable")
    group, start, end = group[order], start[order], end[order]
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    begin = np.minimum.reduceat(start, first)
    return group[first], begin, np.maximum.reduceat(end, first) - begin


def _class_ps(trace: Trace, plane: int, number: Int64s) -> Int64s:
    """Self time of a core's operations by step and class: int64[n_steps, N_CLASSES], in ps."""
    result = np.zeros((len(number), N_CLASSES), np.int64)
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for line in lines_named(trace, plane, (OP_LINE,)):
        spans = device_spans(trace, line)
        group = groups(trace).group[spans.rows].astype(np.int64)
        step = np.minimum(np.searchsorted(number, group), len(number) - 1)
        in_step = number[step] == group
        text = category[trace.events["metadata"][spans.rows]]
        ids, inverse = np.unique(text, return_inverse=True)
        classes = np.array([category_class(trace.strings.get(i)) for i in ids.tolist()], np.int64)[inverse]
        np.add.at(result, (step[in_step], classes[in_step]), spans.self_ps[in_step])
    return result
