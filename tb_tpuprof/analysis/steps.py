"""Steps: when each ran, how long it took, and what its time went into.

markers        ├── train 7 ──────┤├── train 8 ────┤        a step's time is that of its longest marker
its events       ░░input░░▒compute▒                        each moment is charged to the highest class that is active
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.charging import charge
from tb_tpuprof.analysis.grouping import IMPLICIT_ROOTS, groups
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.nesting import event_ends, nest_rows, parents
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.analysis.stat_rows import events_with, metadata_named
from tb_tpuprof.analysis.step_classes import CATEGORIES, N_CLASSES, NOT_COUNTED, STEP_MARKER, TimeClass, host_classes
from tb_tpuprof.native import classes_of, outermost
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_TRIM_ABOVE = 5


@dataclass(frozen=True)
class Steps:
    """One row per step, in order. `class_ps[i, c]`: time of step i charged to TimeClass c; a row sums up to `duration_ps[i]`.

    `source`: what marked the steps: `annotation` (train, test, a user's own), `function` (from one run of a tf.function to
    the next, where nothing else marks steps), `device` (the accelerator's own steps), or empty (none found).
    `n_incomplete`: steps left out because nothing was computed in them; `n_trimmed`: first and last steps left out because
    the capture may have cut them. `n_unmarked_runs`: runs of programs on a TPU core that marks no steps, where none were found.
    """

    number: Int64s
    name: tuple[str, ...]
    start_ps: Int64s
    duration_ps: Int64s
    class_ps: Int64s
    source: str = ""
    n_incomplete: int = 0
    n_trimmed: int = 0
    n_unmarked_runs: int = 0

    def __len__(self) -> int:
        return len(self.number)

    def category_ps(self, category: str) -> Int64s:
        """Time of each step in one of CATEGORIES."""
        total: Int64s = self.class_ps[:, list(CATEGORIES[category])].sum(axis=1)
        return total

    def fraction(self, category: str) -> float:
        """Share of a category in the time of all steps (the ratio of the sums); 0 without steps."""
        whole = int(self.duration_ps.sum())
        return float(self.category_ps(category).sum()) / whole if whole else 0.0


def no_steps(n_incomplete: int = 0, n_unmarked_runs: int = 0) -> Steps:
    """The result where no steps are found."""
    none = np.empty(0, np.int64)
    return Steps(none, (), none, none, np.empty((0, N_CLASSES), np.int64), "", n_incomplete, 0, n_unmarked_runs)


@dataclass(frozen=True)
class StepParts:
    """Markers and events of steps, before they are put together: `group` is the step's group."""

    marker_group: Int64s
    marker_start: Int64s
    marker_end: Int64s
    group: Int64s
    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]


@once
def steps(trace: Trace) -> Steps:
    """The steps of a trace: of its devices if it has any, else of its host.

    A step is kept if it has a marker of some length and if something was computed in it: on the device, or on the host
    where there is no device. Source of the rules: OpenXLA's profiler (`xplane_to_step_events`, `step_events_to_steps_db`).
    """
    roles = planes(trace)
    if roles.tensor_cores or roles.sparse_cores:
        from tb_tpuprof.analysis.tpu_steps import tpu_steps

        return tpu_steps(trace)
    if roles.gpus:
        from tb_tpuprof.analysis.gpu_steps import gpu_parts
        from tb_tpuprof.analysis.pytorch_steps import window_parts, windows

        computes = (TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16)
        if len(windows(trace).row):
            return assemble(trace, window_parts(trace), computes, "annotation")
        return assemble(trace, gpu_parts(trace), computes, "device")
    found = assemble(trace, host_parts(trace, "annotation"), (TimeClass.HOST_COMPUTE,), "annotation")
    if len(found):
        return found
    by_function = assemble(trace, host_parts(trace, "function"), (TimeClass.HOST_COMPUTE,), "function")
    return by_function if len(by_function) else found


def assemble(trace: Trace, parts: StepParts, computes: tuple[TimeClass, ...], source: str) -> Steps:
    """Steps of markers and events: the longest marker is the step, its events are charged to it."""
    number, first, last = _longest(parts)
    if not len(number):
        return no_steps()
    at = np.minimum(np.searchsorted(number, parts.group), len(number) - 1)
    mine: npt.NDArray[np.bool_] | slice = number[at] == parts.group
    if mine.all():  # type: ignore[union-attr]
        mine = slice(None)
    at, klass = at[mine], parts.klass[mine]
    class_ps = charge(parts.start[mine], parts.end[mine], klass, at, (first, last), N_CLASSES)
    has_compute = np.zeros(len(number), np.bool_)
    has_compute[at[np.isin(klass, computes)]] = True
    kept = np.flatnonzero(has_compute & (last > first))
    if not len(kept):
        return no_steps(len(number))
    names = groups(trace).names
    name = tuple(names.get(i, str(i)) for i in number[kept].tolist())
    n_left_out = len(number) - len(kept)
    return trimmed(Steps(number[kept], name, first[kept], (last - first)[kept], class_ps[kept], source, n_left_out))


def trimmed(found: Steps) -> Steps:
    """Leave out the first and the last step of more than five: the capture's start and end fall into them.

    (The first is often the slowest by far: it holds compilation, or the profiler's own start.)
    """
    if len(found) <= _TRIM_ABOVE:
        return found
    return Steps(
        found.number[1:-1], found.name[1:-1], found.start_ps[1:-1], found.duration_ps[1:-1], found.class_ps[1:-1], found.source,
        found.n_incomplete, 2,
    )  # fmt: skip


def _longest(parts: StepParts) -> tuple[Int64s, Int64s, Int64s]:
    """Group, start and end of the longest marker of each group (the first of equals), by group."""
    order = np.lexsort((-(parts.marker_end - parts.marker_start), parts.marker_group))
    group = parts.marker_group[order]
    chosen = order[np.append(True, group[1:] != group[:-1])[: len(group)]]
    return parts.marker_group[chosen], parts.marker_start[chosen], parts.marker_end[chosen]


def _annotations(trace: Trace, event_class: npt.NDArray[np.uint8]) -> Rows:
    """Events that mark steps: by name (train, test, TraceContext), and roots that users named."""
    return np.union1d(np.flatnonzero(event_class == STEP_MARKER), groups(trace).named_roots).astype(np.intp)


def _functions(trace: Trace) -> Rows:
    """Runs of tf.function and sessions that head a group: the nearest thing to steps where nobody annotated any."""
    owner = trace.event_stats.ints("_r").owner
    implicit = metadata_named(trace, IMPLICIT_ROOTS)[trace.events["metadata"][owner]]
    rows = owner[implicit].astype(np.intp)
    return rows[np.argsort(trace.events["start_ps"][rows], kind="stable")]


def host_parts(trace: Trace, source: str) -> StepParts:
    """Markers and counted events of the host's threads. Events inside another of their class add nothing and are left out."""
    group = groups(trace).group
    none = np.empty(0, np.int64)
    if not (group >= 0).any():
        return StepParts(none, none, none, none, none, none, np.empty(0, np.uint8))
    classes = host_classes(trace, planes(trace).hosts)
    event_class = classes_of(trace.events["metadata"], classes)
    markers = _annotations(trace, event_class) if source == "annotation" else _functions(trace)
    markers = markers[group[markers] >= 0]
    event_class[markers] = STEP_MARKER
    _mark_input_stages(trace, event_class)
    counted = outermost(event_class, group, parents(trace), NOT_COUNTED)
    start, end = trace.events["start_ps"], event_ends(trace, counted)
    begin = start[markers]
    stop = begin + trace.events["duration_ps"][markers]
    if source == "function" and len(markers):
        # A run of a function only starts the work: the step lasts until the next run, the last one until its work is done.
        last = end[group[counted] == group[markers[-1]]]
        stop = np.append(begin[1:], max(stop[-1], int(last.max()) if len(last) else 0))
    step_of_marker, step_of_event = (group[rows].astype(np.int64) for rows in (markers, counted))
    return StepParts(step_of_marker, begin, stop, step_of_event, start[counted], end, event_class[counted])


def _mark_input_stages(trace: Trace, event_class: npt.NDArray[np.uint8]) -> None:
    """The outermost stage of an input pipeline (stat `_ipl_stage_name`) is what the step waits for."""
    stages = trace.event_stats.texts("_ipl_stage_name").owner
    if not len(stages):
        return
    rows = np.unique(stages).astype(np.intp)
    parent, _self_ps = nest_rows(trace, rows)
    made = events_with(trace, "_pt", "_p")[1]
    consumer, used = events_with(trace, "_ct", "_c")
    fed = consumer[np.isin(used, made)]
    outermost = rows[(parent < 0) & ~np.isin(rows, fed)]
    outermost = outermost[event_class[outermost] < NOT_COUNTED]
    event_class[outermost] = TimeClass.HOST_WAIT_INPUT
