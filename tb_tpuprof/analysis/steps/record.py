"""The record of a trace's steps: their times by class; and how steps are assembled from markers
and events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import charge
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.stat_rows import events_with
from tb_tpuprof.analysis.steps.classes import CATEGORIES, N_CLASSES, NOT_COUNTED, STEP_MARKER, TimeClass
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.waits import StepWait
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_TRIM_ABOVE = 5
_LONG_FIRST = 3  # times the median of the others


@dataclass(frozen=True)
class FirstStep:
    """A first step that was excluded. `class_ps`: as in Steps; `usual_ps`: the median of the other steps."""

    name: str
    start_ps: int
    duration_ps: int
    usual_ps: int
    class_ps: Int64s

    @property
    def input_ps(self) -> int:
        """Time that it waited for data."""
        return int(self.class_ps[list(CATEGORIES["input"])].sum())

    @property
    def fills_a_buffer(self) -> bool:
        """Whether it took more than three times the median of the others and waited for data most of the
        time.
        """
        return self.duration_ps > _LONG_FIRST * self.usual_ps and self.input_ps * 2 > self.duration_ps


@dataclass(frozen=True)
class Steps:
    """One row per step, in order. `class_ps[i, c]`: time of step i charged to TimeClass c; a row sums to
    `duration_ps[i]`.

    `source`: the kind of markers: `annotation` (train, test, a user's own), `function` (from one run of a
    tf.function to the next, if nothing else marks steps), `iteration` (of a loop that fetches its data inside
    one run), `program` (from one call of a loop's main program to the next), `device` (the accelerator's own
    steps), or empty (no steps). `how`: the definition of a step's start and end (see `windows.py`).
    `is_on_devices`: accelerators compute in them, although the host marks them.
    `n_incomplete`: steps excluded because nothing was computed in them; `n_trimmed`: first and last steps
    excluded because the capture may have cut them; `first` describes the first of these. `n_unmarked_runs`:
    runs of programs on a TPU core that marks no steps, if there are no steps. `waits`: what the steps' own
    threads waited for or ran in Python, longest first. `is_ahead`: see `Windows`; no step then waits for
    data.
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
    how: str = "annotated"
    waits: tuple[StepWait, ...] = ()
    first: FirstStep | None = None
    is_on_devices: bool = False
    is_ahead: bool = False

    def __len__(self) -> int:
        return len(self.number)

    @property
    def are_of_devices(self) -> bool:
        """Whether accelerators mark them or compute in them."""
        return self.source == "device" or self.is_on_devices

    def category_ps(self, category: str) -> Int64s:
        """Time of each step in one of CATEGORIES."""
        total: Int64s = self.class_ps[:, list(CATEGORIES[category])].sum(axis=1)
        return total

    def fraction(self, category: str) -> float:
        """Fraction of a category in the time of all steps (the ratio of the sums); 0 without steps."""
        total_ps = int(self.duration_ps.sum())
        return float(self.category_ps(category).sum()) / total_ps if total_ps else 0.0


def no_steps(n_incomplete: int = 0, n_unmarked_runs: int = 0) -> Steps:
    """The result if there are no steps."""
    empty = np.empty(0, np.int64)
    return Steps(
        empty, (), empty, empty, np.empty((0, N_CLASSES), np.int64), "", n_incomplete, 0, n_unmarked_runs
    )


@dataclass(frozen=True)
class StepParts:
    """Markers and events of steps before they are assembled: `group` is the step's group; times in ps."""

    marker_group: Int64s
    marker_start: Int64s
    marker_end: Int64s
    group: Int64s
    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]


def assemble(trace: Trace, parts: StepParts, computes: tuple[TimeClass, ...], source: str) -> Steps:
    """Assemble steps from markers and events: the longest marker of a group is the step, its events are
    charged to it.
    """
    number, first, last, _chosen = longest_markers(parts.marker_group, parts.marker_start, parts.marker_end)
    if not len(number):
        return no_steps()
    step = np.minimum(np.searchsorted(number, parts.group), len(number) - 1)
    in_step: npt.NDArray[np.bool_] | slice = number[step] == parts.group
    if in_step.all():  # type: ignore[union-attr]
        in_step = slice(None)
    step, klass = step[in_step], parts.klass[in_step]
    class_ps = charge(parts.start[in_step], parts.end[in_step], klass, step, (first, last), N_CLASSES)
    has_compute = np.zeros(len(number), np.bool_)
    has_compute[step[np.isin(klass, computes)]] = True
    kept_steps = np.flatnonzero(has_compute & (last > first))
    if not len(kept_steps):
        return no_steps(len(number))
    names = groups(trace).names
    name = tuple(names.get(i, str(i)) for i in number[kept_steps].tolist())
    n_left_out = len(number) - len(kept_steps)
    return trimmed(
        Steps(
            number[kept_steps],
            name,
            first[kept_steps],
            (last - first)[kept_steps],
            class_ps[kept_steps],
            source,
            n_left_out,
            is_on_devices=set(computes) <= set(CATEGORIES["device_compute"]),
        )
    )


def trimmed(steps: Steps) -> Steps:
    """Exclude the first and the last of more than five steps: the capture's start and end fall into them.

    (The first is often the slowest by far: it includes compilation, or the profiler's own start.) If the last
    step was already excluded, because no other begins after it, no second one is excluded at the end.
    """
    if len(steps) <= _TRIM_ABOVE:
        return steps
    inner_steps = slice(1, None if steps.n_trimmed else -1)
    waits = tuple(replace(wait, time_ps=wait.time_ps[inner_steps]) for wait in steps.waits)
    return replace(
        steps,
        number=steps.number[inner_steps],
        name=steps.name[inner_steps],
        start_ps=steps.start_ps[inner_steps],
        duration_ps=steps.duration_ps[inner_steps],
        class_ps=steps.class_ps[inner_steps],
        n_trimmed=2,
        waits=waits,
        first=_first_step(steps),
    )


def _first_step(steps: Steps) -> FirstStep:
    usual = int(np.median(steps.duration_ps[1:]))
    return FirstStep(
        steps.name[0], int(steps.start_ps[0]), int(steps.duration_ps[0]), usual, steps.class_ps[0]
    )


def longest_markers(group: Int64s, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s, Rows]:
    """Group, start and end of the longest marker of each group (the first of equals), by group; and the
    indices of these markers.
    """
    order = np.lexsort((-(end - start), group))
    ordered = group[order]
    longest = order[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return group[longest], start[longest], end[longest], longest


def annotated_events(trace: Trace, event_class: npt.NDArray[np.uint8]) -> Rows:
    """Events that mark steps: by name (train, test, TraceContext), and roots named by the user."""
    return np.union1d(np.flatnonzero(event_class == STEP_MARKER), groups(trace).named_roots).astype(np.intp)


def mark_input_stages(trace: Trace, event_class: npt.NDArray[np.uint8]) -> None:
    """Set the class of the outermost stages of input pipelines (stat `_ipl_stage_name`): the step waits for
    them.
    """
    stages = trace.event_stats.texts("_ipl_stage_name").owner
    if not len(stages):
        return
    rows = np.unique(stages).astype(np.intp)
    parent, _self_ps = nest_rows(trace, rows)
    produced_key = events_with(trace, "_pt", "_p")[1]
    consumer, consumed_key = events_with(trace, "_ct", "_c")
    fed_stages = consumer[np.isin(consumed_key, produced_key)]
    outermost = rows[(parent < 0) & ~np.isin(rows, fed_stages)]
    outermost = outermost[event_class[outermost] < NOT_COUNTED]
    event_class[outermost] = TimeClass.HOST_WAIT_INPUT
