"""Classifies the time of a step's own thread, and names what it waited for while nothing traced ran.

    thread    ├ train (step) ─────────────────────────────┤
              │ next ─────────────────┤ ├ PjitFunction ─┤ │
              │   batches (gen.py:15) ┤                   │
              │     sleep ───────┤                        │
    charged   ..iiiiiiiiiiiiiiiiiiiiiii..ccccccccccccccccc..     the innermost classified event wins

A call of the runtime or an operation computes, whatever Python it calls. A frame or annotation that hands
over data makes everything inside it input; a frame that sleeps, locks, polls or reads waits; other frames,
and annotations not covered by anything traced, are Python. Events that enclose whole steps are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import (
    LineContexts,
    innermost,
    line_contexts,
    nearest,
    parents_within,
)
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import Kind, frame_of, kind_of
from tb_tpuprof.analysis.events.stat_rows import events_named, marked
from tb_tpuprof.analysis.steps.classes import N_CLASSES, NOT_COUNTED, STEP_MARKER, TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.native import classes_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
PYTHON_CLASSES = (TimeClass.HOST_PYTHON, TimeClass.HOST_WAIT, TimeClass.HOST_WAIT_LOADER)
# Bits above an event's class: it marks a step, encloses a marker, encloses a compilation.
_IS_MARKER, _HOLDS_MARKER, _HOLDS_COMPILATION = (128, 256, 512)
_CODES_AT_ONCE = 200
_CONTEXT_STATS = ("_p", "_c", "correlation_id")  # stats of runtime events, never of a user's annotation


@dataclass(frozen=True)
class StepWait:
    """One thing that steps wait for, or Python that they run. `time_ps`: in each step, while nothing traced
    computed.

    `kind`: HOST_WAIT_LOADER (data), HOST_WAIT or HOST_PYTHON. `name`: a function or annotation; `file` and
    `line` of the function's definition, empty and 0 for annotations.
    """

    kind: TimeClass
    name: str
    file: str
    line: int
    time_ps: Int64s

    @property
    def title(self) -> str:
        """`batches` (gen.py:15)."""
        return f"`{self.name}` ({self.file}:{self.line})" if self.file else f"`{self.name}`"

    @property
    def total_ps(self) -> int:
        """Time in all steps together."""
        return int(self.time_ps.sum())


@dataclass(frozen=True)
class LineClasses:
    """Classes of the own time of a line's contexts: `klass` of TimeClass (UNKNOWN: unclassified), `named`:
    the metadata row that determines it.
    """

    line: LineContexts
    klass: npt.NDArray[np.uint8]
    named: Int64s


@dataclass(frozen=True)
class Segments:
    """Stretches of a line, in order: `klass` of TimeClass (never UNKNOWN), `named`: the metadata row that
    determines it.

    `event`: the innermost event that is running.
    """

    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]
    named: npt.NDArray[np.int64]
    event: Int64s

    def __len__(self) -> int:
        return len(self.start)


@once
def name_kinds(trace: Trace) -> npt.NDArray[np.uint8]:
    """Kind of each metadata row of the host's planes by its name; NONE for operations of XLA and contexts of
    the runtime.
    """
    result = np.zeros(len(trace.metadata), np.uint8)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    names = metadata_names(trace)
    result[rows] = [kind_of(names[row]) for row in rows.tolist()]
    result[_calls_of_functions(trace)] = Kind.NONE
    owners = [
        *(trace.event_stats.texts(key).owner for key in ("hlo_op", "_ipl_stage_name")),
        *(trace.event_stats.ints(key).owner for key in _CONTEXT_STATS),
    ]
    traced = marked(trace.events["metadata"][np.concatenate(owners)], len(result))
    traced = traced[(result[traced] == Kind.ANNOTATION) | (result[traced] == Kind.LOADER)]
    result[[row for row in traced.tolist() if frame_of(names[row]) is None]] = Kind.NONE
    return result


def _calls_of_functions(trace: Trace) -> npt.NDArray[np.integer]:
    """Metadata rows of events that are calls of a tf.function, under the function's name: the events that
    directly enclose their execution.
    """
    parent = parents(trace)
    enclosing = parent[events_named(trace, ("TFE_Py_ExecuteCancelable",))]
    is_frame = _frames(trace)
    while (enclosing >= 0).any():
        enclosing = np.unique(enclosing[enclosing >= 0])
        inside_frame = is_frame[trace.events["metadata"][enclosing]]
        if not inside_frame.any():
            break
        enclosing = np.concatenate((enclosing[~inside_frame], parent[enclosing[inside_frame]]))
    return np.unique(trace.events["metadata"][enclosing[enclosing >= 0]])


def _frames(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a frame of the Python tracer."""
    return np.array([frame_of(name) is not None for name in metadata_names(trace)], np.bool_)


def has_user_events(trace: Trace, lines: npt.NDArray[np.integer], markers: Rows) -> bool:
    """Whether these lines have frames or annotations of the user other than the steps' own."""
    kinds = name_kinds(trace).copy()
    kinds[trace.events["metadata"][markers]] = Kind.NONE
    if not kinds.any():
        return False
    offsets = trace.line_offsets
    return any(
        bool(classes_of(trace.events["metadata"][offsets[i] : offsets[i + 1]], kinds).any())
        for i in lines.tolist()
    )


def classify_line(
    trace: Trace,
    line: int,
    event_class: npt.NDArray[np.uint8],
    markers: Rows,
    are_steps: bool,
    has_device: bool = False,
) -> LineClasses:
    """Classify a line's contexts by the innermost classified event (see the module's drawing).

    `event_class`: of all events, by `host_classes`. `markers`: the events (of any line) that mark steps;
    `are_steps`: they are the steps (annotations), else they only begin them (runs of functions).
    `has_device`: the model computes elsewhere, so calls of the runtime inside a loader, such as transfers,
    are loading, too.
    """
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    event_mark = event_class[rows].astype(np.uint16)
    own_markers = np.sort(markers[(markers >= rows.start) & (markers < rows.stop)]) - rows.start
    if are_steps:
        event_mark[own_markers] = STEP_MARKER
    parent = parents_within(trace, rows)
    compiling = _enclosing(
        parent, np.flatnonzero(event_mark == TimeClass.HOST_COMPILE), event_mark == STEP_MARKER
    )
    event_mark[own_markers] |= _IS_MARKER
    event_mark[_enclosing(parent, own_markers)] |= _HOLDS_MARKER
    event_mark[compiling] |= _HOLDS_COMPILATION
    contexts = line_contexts(trace, line, event_mark)
    mark = event_mark[contexts.first]
    kind, own_class = _kinds(trace, contexts, mark), (mark & (_IS_MARKER - 1)).astype(np.uint8)
    klass, named = _resolved(trace, contexts, own_class, kind, (mark & _HOLDS_COMPILATION) != 0)
    if has_device:
        loader = nearest(contexts.above, (own_class == STEP_MARKER) | (kind == Kind.LOADER))
        klass[(loader >= 0) & (kind[loader] == Kind.LOADER) & (klass == TimeClass.HOST_COMPUTE)] = (
            TimeClass.HOST_WAIT_LOADER
        )
    return LineClasses(contexts, klass, named)


def segments(trace: Trace, classes: LineClasses) -> Segments:
    """A line's classified stretches, each of one event."""
    contexts = classes.line
    start, end, owner = innermost(trace, contexts.rows, contexts.parent)
    context = contexts.context[owner]
    is_classified = classes.klass[context] != TimeClass.UNKNOWN
    context = context[is_classified]
    return Segments(
        start[is_classified],
        end[is_classified],
        classes.klass[context],
        classes.named[context],
        owner[is_classified].astype(np.int64) + contexts.rows.start,
    )


def _enclosing(
    parent: npt.NDArray[np.int32], events: Rows, beyond: npt.NDArray[np.bool_] | None = None
) -> Rows:
    """Events that enclose any of `events`, up to those in `beyond`."""
    is_enclosing = np.zeros(len(parent), np.bool_)
    frontier = parent[events]
    while len(frontier):
        frontier = np.unique(frontier[frontier >= 0])
        frontier = (
            frontier[~is_enclosing[frontier]]
            if beyond is None
            else frontier[~is_enclosing[frontier] & ~beyond[frontier]]
        )
        is_enclosing[frontier] = True
        frontier = parent[frontier]
    return np.flatnonzero(is_enclosing)


def _kinds(trace: Trace, contexts: LineContexts, mark: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Kind of each context of a line: what `next` calls hands over data; a context that encloses a step's
    marker is plain Python.
    """
    metadata, parent = contexts.metadata, contexts.above
    kind = name_kinds(trace)[metadata]
    is_next = kind == Kind.NEXT
    if is_next.any():
        names = trace.metadata["name"]
        of_library = np.zeros(len(names), np.bool_)
        ids = np.unique(metadata[parent[is_next & (parent >= 0)]])
        of_library[ids] = [trace.strings[names[i]].startswith("$contextlib.py") for i in ids.tolist()]
        by_library = is_next & (parent >= 0) & of_library[metadata[parent]]
        kind[is_next] = Kind.LOADER
        kind[by_library] = Kind.PYTHON
        is_called_by_next = (parent >= 0) & is_next[parent] & ~by_library[parent] & (kind == Kind.PYTHON)
        kind[is_called_by_next] = Kind.LOADER
    kind[((mark & _HOLDS_MARKER) != 0) & (kind != Kind.NONE)] = Kind.PYTHON
    kind[(mark & _IS_MARKER) != 0] = Kind.NONE
    result: npt.NDArray[np.uint8] = kind.astype(np.uint8)
    return result


def _resolved(
    trace: Trace,
    contexts: LineContexts,
    own_class: npt.NDArray[np.uint8],
    kind: npt.NDArray[np.uint8],
    compiling: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Class of each context's own time, and the metadata row that names it.

    `compiling`: contexts that enclose a compilation; the other work of runtime calls in them is tracing and
    lowering for it.
    """
    metadata, parent = contexts.metadata, contexts.above
    are_users = _are_users(trace, metadata)
    is_marker, is_loader, is_wait = own_class == STEP_MARKER, kind == Kind.LOADER, kind == Kind.WAIT
    computes = (own_class < NOT_COUNTED) & (own_class >= TimeClass.HOST_COMPUTE) & (kind == Kind.NONE)
    computing = nearest(parent, is_marker | computes)
    is_annotation = (kind == Kind.ANNOTATION) & ~is_marker & ~((computing >= 0) & computes[computing])
    is_frame = (kind == Kind.PYTHON) | is_wait | is_loader
    higher = nearest(parent, computes & (own_class > TimeClass.HOST_COMPUTE))
    nearest_classified = nearest(parent, is_marker | is_loader | is_wait | is_annotation | computes)
    loader = nearest(parent, is_marker | is_loader)
    user = nearest(parent, is_marker | (is_frame & are_users) | is_annotation)
    annotation = nearest(parent, is_marker | is_annotation)
    # A step's own time, outside of its frames, may be a call without a frame, such as one that waits for a
    # result.
    innermost = nearest(parent, is_frame | is_marker)
    in_python = (innermost >= 0) & is_frame[innermost]
    result = np.where(in_python, TimeClass.HOST_PYTHON, TimeClass.UNKNOWN).astype(np.uint8)
    has_classified = nearest_classified >= 0
    in_loader = (loader >= 0) & is_loader[loader]
    result[has_classified & is_wait[nearest_classified]] = TimeClass.HOST_WAIT
    result[has_classified & is_annotation[nearest_classified]] = TimeClass.HOST_PYTHON
    result[in_loader] = TimeClass.HOST_WAIT_LOADER
    result[has_classified & computes[nearest_classified]] = TimeClass.HOST_COMPUTE
    result[
        has_classified & (compiling & computes & (own_class == TimeClass.HOST_COMPUTE))[nearest_classified]
    ] = TimeClass.HOST_COMPILE
    result[higher >= 0] = own_class[higher[higher >= 0]]
    naming = np.where((user >= 0) & ~is_marker[user], user, np.arange(len(parent)))
    naming = np.where(
        (result == TimeClass.HOST_PYTHON) & (annotation >= 0) & is_annotation[annotation], annotation, naming
    )
    user_loader = nearest(parent, is_marker | (is_loader & (are_users | (own_class < NOT_COUNTED))))
    naming = np.where(
        (result == TimeClass.HOST_WAIT_LOADER) & (user_loader >= 0) & is_loader[user_loader],
        user_loader,
        naming,
    )
    enclosing = nearest(parent, is_frame & are_users)
    naming = np.where(
        (naming == np.arange(len(parent))) & ~is_frame & ~is_annotation & (enclosing >= 0), enclosing, naming
    )
    return result, metadata[naming]


def _are_users(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a frame of the user (see `Frame.is_users`)."""
    placed = np.zeros(len(trace.metadata), np.bool_)
    for i in np.unique(metadata).tolist():
        frame = frame_of(trace.strings[trace.metadata["name"][i]])
        placed[i] = frame is not None and frame.is_users
    return placed[metadata]


def classes_and_waits(
    trace: Trace, pieces: Pieces, steps: tuple[Int64s, Int64s]
) -> tuple[Int64s, tuple[StepWait, ...]]:
    """Time of each step (starts, ends) by class, int64[steps, N_CLASSES], in ps; and what the steps wait for,
    by name.

    A wait's time excludes time in which another thread or a device computes: their classes are higher.
    """
    outline = pieces.outline()
    name = np.where((outline.named >= 0) & np.isin(outline.klass, PYTHON_CLASSES), outline.named, -1)
    pairs, number = np.unique((outline.klass.astype(np.int64) << 32) + name + 1, return_inverse=True)
    klass, names = pairs >> 32, (pairs & 0xFFFFFFFF) - 1
    if len(pairs) <= _CODES_AT_ONCE:
        time, _ = pieces.charged(number + 1, steps, len(pairs) + 1)
    else:
        time = np.zeros((len(steps[0]), len(pairs) + 1), np.int64)
        for first in range(0, len(pairs), _CODES_AT_ONCE):
            higher = len(pairs[first : first + _CODES_AT_ONCE]) + 1
            code = np.where(number < first, -1, np.minimum(number - first + 1, higher))
            batch_time, _ = pieces.charged(code, steps, higher + 1)
            time[:, first + 1 : first + higher] = batch_time[:, 1:higher]
    class_ps = np.zeros((len(steps[0]), N_CLASSES), np.int64)
    by_name: dict[tuple[int, str], Int64s] = {}
    for i, (kind, row) in enumerate(zip(klass.tolist(), names.tolist(), strict=True)):
        class_ps[:, kind] += time[:, i + 1]
        if row >= 0:
            key = kind, trace.strings[trace.metadata["name"][row]]
            by_name[key] = by_name.get(key, 0) + time[:, i + 1]
    class_ps[:, 0] = np.maximum(steps[1] - steps[0], 0) - class_ps[:, 1:].sum(axis=1)
    return class_ps, tuple(_wait(TimeClass(kind), name, total) for (kind, name), total in by_name.items())


def waits_in_steps(waits: Iterable[StepWait], kept_steps: Rows) -> tuple[StepWait, ...]:
    """The waits of the `kept_steps`, longest first."""
    chosen_waits = [
        replace(wait, time_ps=wait.time_ps[kept_steps]) for wait in waits if wait.time_ps[kept_steps].any()
    ]
    return tuple(sorted(chosen_waits, key=lambda wait: (-wait.total_ps, wait.name)))


def _wait(kind: TimeClass, name: str, time_ps: Int64s) -> StepWait:
    frame = frame_of(name)
    return (
        StepWait(kind, frame.function, frame.file, frame.line, time_ps)
        if frame
        else StepWait(kind, name, "", 0, time_ps)
    )
