"""Steps: when each ran, how long it took, and how its time was spent.

markers        ├── train 7 ──────┤├── train 8 ────┤        a step's time is that of its longest marker
its events       ░░input░░▒compute▒                        each moment is charged to the highest active class
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import event_ends, parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.classes import NOT_COUNTED, STEP_MARKER, TimeClass, host_classes
from tb_tpuprof.analysis.steps.gpu import gpu_parts
from tb_tpuprof.analysis.steps.gpu_host import annotated_windows, steps_of_gpu
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.host import steps_of_host
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.analysis.steps.pytorch import named_waits, window_parts, windows
from tb_tpuprof.analysis.steps.pytorch_pieces import pytorch_pieces
from tb_tpuprof.analysis.steps.record import (
    StepParts,
    Steps,
    annotated_events,
    assemble,
    mark_input_stages,
)
from tb_tpuprof.analysis.steps.tpu import tpu_steps
from tb_tpuprof.analysis.steps.windows import Windows
from tb_tpuprof.native import classes_of, outermost
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]


@once
def steps(trace: Trace) -> Steps:
    """The steps of a trace: of its devices if it has any, else of its host.

    A step is kept if it has a marker with a duration and if something was computed in it: on the device, or
    on the host if there is no device. Source of the rules: OpenXLA's profiler (`xplane_to_step_events`,
    `step_events_to_steps_db`).
    """
    return step_pieces(trace)[0]


@once
def step_pieces(trace: Trace) -> tuple[Steps, Pieces | None]:
    """The steps, and the pieces that their times consist of; None if only their classes are known."""
    roles = planes(trace)
    if roles.tensor_cores or roles.sparse_cores:
        return tpu_steps(trace), None
    if roles.gpus:
        computes = (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)
        if len(windows(trace).row):
            pytorch_steps = assemble(trace, window_parts(trace), computes, "annotation")
            return replace(pytorch_steps, waits=named_waits(trace, pytorch_steps.class_ps)), pytorch_pieces(
                trace, pytorch_steps
            )
        marked_steps, pieces = steps_of_gpu(trace)
        if len(marked_steps) or marked_steps.n_incomplete:
            return marked_steps, pieces
        return assemble(trace, gpu_parts(trace), computes, "device"), None
    return steps_of_host(trace)


def marked_windows(trace: Trace) -> Windows:
    """The steps of GPUs that the host marks, by start, the first and last ones too: from PyTorch's profiler,
    else the user's annotations. Empty if only the kernels tell steps apart.
    """
    marked = windows(trace)
    if len(marked.row):
        return Windows(marked.group, marked.start, marked.end, "annotated")
    return annotated_windows(trace)


def host_parts(trace: Trace) -> StepParts:
    """Annotations and classified events of the host's threads. Events inside another of their class add
    nothing and are left out.
    """
    group = groups(trace).group
    empty = np.empty(0, np.int64)
    if not (group >= 0).any():
        return StepParts(empty, empty, empty, empty, empty, empty, np.empty(0, np.uint8))
    classes = host_classes(trace, planes(trace).hosts)
    event_class = classes_of(trace.events["metadata"], classes)
    markers = annotated_events(trace, event_class)
    markers = markers[group[markers] >= 0]
    event_class[markers] = STEP_MARKER
    mark_input_stages(trace, event_class)
    counted = outermost(event_class, group, parents(trace), NOT_COUNTED)
    start, end = trace.events["start_ps"], event_ends(trace, counted)
    begin = start[markers]
    stop = begin + trace.events["duration_ps"][markers]
    step_of_marker, step_of_event = (group[rows].astype(np.int64) for rows in (markers, counted))
    return StepParts(step_of_marker, begin, stop, step_of_event, start[counted], end, event_class[counted])
