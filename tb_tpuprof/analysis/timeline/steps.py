"""Steps as the timeline draws them across all tracks: where each begins and ends on its host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.steps import marked_windows
from tb_tpuprof.analysis.timeline.timeline import event_names, timeline
from tb_tpuprof.analysis.timeline.tracks import tracks
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class StepMarks:
    """Steps in time order. `number` is -1 if the step has none."""

    number: npt.NDArray[np.int64]
    start_ps: npt.NDArray[np.int64]
    duration_ps: npt.NDArray[np.int64]
    name: tuple[str, ...]


@once
def step_marks(trace: Trace) -> StepMarks:
    """On GPUs the steps that the host marks, from start to end as in the overview, which leaves out the first
    and last of many; else those on the first device's line of steps, the file's own or a derived one; on a
    host without devices, the annotated step events.

    Annotated step events are root events (stat `_r`) with a step number, or, if there are none, all events
    with one.
    """
    marked = marked_windows(trace) if planes(trace).gpus else None
    if marked is not None and len(marked.group):
        names = tuple(groups(trace).step_name(group) for group in marked.group.tolist())
        return StepMarks(_numbers(names), marked.start, marked.end - marked.start, names)
    drawn = timeline(trace)
    line = next((track.line for track in tracks(trace) if track.kind == "steps"), -1)
    if line >= 0:
        layer = drawn.derived if line >= drawn.derived.first_line else drawn.file
        local = line - layer.first_line
        events = np.arange(layer.line_offsets[local], layer.line_offsets[local + 1])
        codes = event_names(trace, drawn, layer, events)
        names = tuple(drawn.names.text(code) for code in codes.tolist())
        return StepMarks(_numbers(names), layer.start_ps[events], layer.duration_ps[events], names)
    owner, value = first_ints(trace, "step_num")
    is_root = values_at(owner, *first_ints(trace, "_r"), 0) > 0
    if is_root.any():
        owner, value = owner[is_root], value[is_root]
    start = trace.events["start_ps"][owner]
    order = np.argsort(start, kind="stable")
    events = owner[order].astype(np.intp)
    codes = event_names(trace, drawn, drawn.file, events)
    return StepMarks(
        value[order],
        start[order],
        trace.events["duration_ps"][events],
        tuple(drawn.names.text(code) for code in codes.tolist()),
    )


def _numbers(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    return np.array([number_in_name(name) for name in names], np.int64)


def number_in_name(name: str) -> int:
    """The step number in a step's name: `train 131`, `17`; -1 if there is none."""
    last = name.rpartition(" ")[2]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 16 else -1
