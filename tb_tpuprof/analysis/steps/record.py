"""What a step is: its time, and what that went into; and how steps are put together from markers
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
    """A first step that was left out. `class_ps`: as in Steps; `usual_ps`: the median of the other steps."""

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
        """Whether it took more than three times the median of the others and mostly waited for data."""
        return self.duration_ps > _LONG_FIRST * self.usual_ps and self.input_ps * 2 > self.duration_ps


@dataclass(frozen=True)
class Steps:
    """One row per step, in order. `class_ps[i, c]`: time of step i charged to TimeClass c; a row sums up to
    `duration_ps[i]`.

    `source`: what marked the steps: `annotation` (train, test, a user's own), `function` (from one run of a
    tf.function to the next, where nothing else marks steps), `iteration` (of a loop that fetches its data
    inside of one run), `program` (from one call of a loop's main program to the next), `device` (the
    accelerator's own steps), or empty (none found). `how`: from when to when a step lasts (see `windows.py`).
    `n_incomplete`: steps left out because nothing was computed in them; `n_trimmed`: first and last steps
    left out because the capture may have cut them; `first` describes the first of these. `n_unmarked_runs`:
    runs of programs on a TPU core that marks no steps, where none were found. `waits`: what the steps' own
    threads waited for or ran in Python, longest first.
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
    return Steps(
        none, (), none, none, np.empty((0, N_CLASSES), np.int64), "", n_incomplete, 0, n_unmarked_runs
    )


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


def assemble(trace: Trace, parts: StepParts, computes: tuple[TimeClass, ...], source: str) -> Steps:
    """Steps of markers and events: the longest marker is the step, its events are charged to it."""
    number, first, last, _chosen = longest_markers(parts.marker_group, parts.marker_start, parts.marker_end)
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
    return trimmed(
        Steps(number[kept], name, first[kept], (last - first)[kept], class_ps[kept], source, n_left_out)
    )


def trimmed(found: Steps) -> Steps:
    """Leave out the first and the last step of more than five: the capture's start and end fall into them.

    (The first is often the slowest by far: it holds compilation, or the profiler's own start.) A last step
    that was left out already, because no other begins after it, is not left out twice.
    """
    if len(found) <= _TRIM_ABOVE:
        return found
    kept = slice(1, None if found.n_trimmed else -1)
    waits = tuple(replace(wait, time_ps=wait.time_ps[kept]) for wait in found.waits)
    return replace(
        found,
        number=found.number[kept],
        name=found.name[kept],
        start_ps=found.start_ps[kept],
        duration_ps=found.duration_ps[kept],
        class_ps=found.class_ps[kept],
        n_trimmed=2,
        waits=waits,
        first=_first_step(found),
    )


def _first_step(found: Steps) -> FirstStep:
    usual = int(np.median(found.duration_ps[1:]))
    return FirstStep(
        found.name[0], int(found.start_ps[0]), int(found.duration_ps[0]), usual, found.class_ps[0]
    )


def longest_markers(group: Int64s, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s, Rows]:
    """Group, start and end of the longest marker of each group (the first of equals), by group; and which
    markers these are.
    """
    order = np.lexsort((-(end - start), group))
    ordered = group[order]
    chosen = order[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return group[chosen], start[chosen], end[chosen], chosen


def annotated_events(trace: Trace, event_class: npt.NDArray[np.uint8]) -> Rows:
    """Events that mark steps: by name (train, test, TraceContext), and roots that users named."""
    return np.union1d(np.flatnonzero(event_class == STEP_MARKER), groups(trace).named_roots).astype(np.intp)


def mark_input_stages(trace: Trace, event_class: npt.NDArray[np.uint8]) -> None:
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
