"""What a step's own thread did from moment to moment, and whom it waited for where nothing traced ran.

    thread    ├ train (step) ─────────────────────────────┤
              │ next ─────────────────┤ ├ PjitFunction ─┤ │
              │   batches (gen.py:15) ┤                   │
              │     sleep ───────┤                        │
    charged   ..iiiiiiiiiiiiiiiiiiiiiii..ccccccccccccccccc..     the innermost thing that says something wins

A call of the runtime or an operation computes, whatever Python it calls. A frame or annotation that hands
over data makes what lies inside it input; a frame that sleeps, locks, polls or reads waits; other frames, and
annotations that nothing traced covers, are Python. What encloses whole steps says nothing of any of them.
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
SAID_BY_PYTHON = (TimeClass.HOST_PYTHON, TimeClass.HOST_WAIT, TimeClass.HOST_WAIT_LOADER)
_MARKS, _HOLDS, _COMPILES = (
    128,
    256,
    512,
)  # a step's marker, what one lies in, what compiles in: beside the class of the event
_AT_ONCE = 200
_CONTEXT_STATS = ("_p", "_c", "correlation_id")  # of the runtime's events, never of a user's annotation


@dataclass(frozen=True)
class StepWait:
    """One thing that steps wait for, or Python that they run. `time_ps`: in each step, where nothing traced
    computed meanwhile.

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
        """Of all steps."""
        return int(self.time_ps.sum())


@dataclass(frozen=True)
class Told:
    """What a line's contexts say of their own time: `klass` of TimeClass (UNKNOWN: nothing), `named`: the
    metadata row that says so.
    """

    line: LineContexts
    klass: npt.NDArray[np.uint8]
    named: Int64s


@dataclass(frozen=True)
class Segments:
    """Stretches of a line, in order: `klass` of TimeClass (never UNKNOWN), `named`: the metadata row that
    says so.

    `event`: the innermost event that is on.
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
    """Kind of each metadata row of the host's planes by its name; operations of XLA and contexts of the
    runtime are none.
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
    """Metadata rows of events that are calls of a tf.function, under the function's name: what directly holds
    their execution.
    """
    above = parents(trace)
    around = above[events_named(trace, ("TFE_Py_ExecuteCancelable",))]
    kinds = _frames(trace)
    while (around >= 0).any():
        around = np.unique(around[around >= 0])
        inside_frame = kinds[trace.events["metadata"][around]]
        if not inside_frame.any():
            break
        around = np.concatenate((around[~inside_frame], above[around[inside_frame]]))
    return np.unique(trace.events["metadata"][around[around >= 0]])


def _frames(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each metadata row is a frame of the Python tracer."""
    return np.array([frame_of(name) is not None for name in metadata_names(trace)], np.bool_)


def says_more(trace: Trace, lines: npt.NDArray[np.integer], markers: Rows) -> bool:
    """Whether frames or annotations of the user are on these lines, other than the steps' own."""
    kinds = name_kinds(trace).copy()
    kinds[trace.events["metadata"][markers]] = Kind.NONE
    if not kinds.any():
        return False
    offsets = trace.line_offsets
    return any(
        bool(classes_of(trace.events["metadata"][offsets[i] : offsets[i + 1]], kinds).any())
        for i in lines.tolist()
    )


def told_of(
    trace: Trace,
    line: int,
    event_class: npt.NDArray[np.uint8],
    markers: Rows,
    are_steps: bool,
    has_device: bool = False,
) -> Told:
    """What the innermost event that says something says of a line's time (see the module's picture).

    `event_class`: of all events, by `host_classes`. `markers`: the events (of any line) that mark steps, and
    whether they are the steps (annotations) or only begin them (runs of functions). `has_device`: the model
    computes elsewhere, so that calls of the runtime inside of a loader, such as transfers, are loading, too.
    """
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    here = event_class[rows].astype(np.uint16)
    mine = np.sort(markers[(markers >= rows.start) & (markers < rows.stop)]) - rows.start
    if are_steps:
        here[mine] = STEP_MARKER
    parent = parents_within(trace, rows)
    compiling = _around(parent, np.flatnonzero(here == TimeClass.HOST_COMPILE), here == STEP_MARKER)
    here[mine] |= _MARKS
    here[_around(parent, mine)] |= _HOLDS
    here[compiling] |= _COMPILES
    of = line_contexts(trace, line, here)
    mark = here[of.first]
    kind, own_class = _kinds(trace, of, mark), (mark & (_MARKS - 1)).astype(np.uint8)
    klass, named = _resolved(trace, of, own_class, kind, (mark & _COMPILES) > 0)
    if has_device:
        loader = nearest(of.above, (own_class == STEP_MARKER) | (kind == Kind.LOADER))
        klass[(loader >= 0) & (kind[loader] == Kind.LOADER) & (klass == TimeClass.HOST_COMPUTE)] = (
            TimeClass.HOST_WAIT_LOADER
        )
    return Told(of, klass, named)


def segments(trace: Trace, told: Told) -> Segments:
    """A line's stretches, each of one event."""
    of = told.line
    start, end, owner = innermost(trace, of.rows, of.parent)
    context = of.context[owner]
    said = told.klass[context] != TimeClass.UNKNOWN
    context = context[said]
    return Segments(
        start[said],
        end[said],
        told.klass[context],
        told.named[context],
        owner[said].astype(np.int64) + of.rows.start,
    )


def _around(parent: npt.NDArray[np.int32], events: Rows, beyond: npt.NDArray[np.bool_] | None = None) -> Rows:
    """What the events are inside of, up to those `beyond`."""
    found = np.zeros(len(parent), np.bool_)
    rest = parent[events]
    while len(rest):
        rest = np.unique(rest[rest >= 0])
        rest = rest[~found[rest]] if beyond is None else rest[~found[rest] & ~beyond[rest]]
        found[rest] = True
        rest = parent[rest]
    return np.flatnonzero(found)


def _kinds(trace: Trace, of: LineContexts, mark: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Kind of each context of a line: what `next` calls hands over data; what holds a step's marker is plain
    Python.
    """
    metadata, parent = of.metadata, of.above
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
        called = (parent >= 0) & is_next[parent] & ~by_library[parent] & (kind == Kind.PYTHON)
        kind[called] = Kind.LOADER
    kind[((mark & _HOLDS) > 0) & (kind != Kind.NONE)] = Kind.PYTHON
    kind[(mark & _MARKS) > 0] = Kind.NONE
    result: npt.NDArray[np.uint8] = kind.astype(np.uint8)
    return result


def _resolved(
    trace: Trace,
    of: LineContexts,
    here: npt.NDArray[np.uint8],
    kind: npt.NDArray[np.uint8],
    compiling: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Class of each context's own time, and the metadata row that gives it its name.

    `compiling`: inside of which something is compiled: what else calls of the runtime do themselves is
    tracing and lowering for it.
    """
    metadata, parent = of.metadata, of.above
    are_users = _are_users(trace, metadata)
    is_marker, is_loader, is_wait = here == STEP_MARKER, kind == Kind.LOADER, kind == Kind.WAIT
    computes = (here < NOT_COUNTED) & (here >= TimeClass.HOST_COMPUTE) & (kind == Kind.NONE)
    computing = nearest(parent, is_marker | computes)
    is_annotation = (kind == Kind.ANNOTATION) & ~is_marker & ~((computing >= 0) & computes[computing])
    is_frame = (kind == Kind.PYTHON) | is_wait | is_loader
    above = nearest(parent, computes & (here > TimeClass.HOST_COMPUTE))
    near = nearest(parent, is_marker | is_loader | is_wait | is_annotation | computes)
    loader = nearest(parent, is_marker | is_loader)
    user = nearest(parent, is_marker | (is_frame & are_users) | is_annotation)
    annotation = nearest(parent, is_marker | is_annotation)
    # A step's own time, outside of the frames in it, may be a call that no frame is written for, such as one
    # that waits for a result.
    innermost = nearest(parent, is_frame | is_marker)
    python = (innermost >= 0) & is_frame[innermost]
    result = np.where(python, TimeClass.HOST_PYTHON, TimeClass.UNKNOWN).astype(np.uint8)
    known = near >= 0
    in_loader = (loader >= 0) & is_loader[loader]
    result[known & is_wait[near]] = TimeClass.HOST_WAIT
    result[known & is_annotation[near]] = TimeClass.HOST_PYTHON
    result[in_loader] = TimeClass.HOST_WAIT_LOADER
    result[known & computes[near]] = TimeClass.HOST_COMPUTE
    result[known & (compiling & computes & (here == TimeClass.HOST_COMPUTE))[near]] = TimeClass.HOST_COMPILE
    result[above >= 0] = here[above[above >= 0]]
    at = np.where((user >= 0) & ~is_marker[user], user, np.arange(len(parent)))
    at = np.where(
        (result == TimeClass.HOST_PYTHON) & (annotation >= 0) & is_annotation[annotation], annotation, at
    )
    placed = nearest(parent, is_marker | (is_loader & (are_users | (here < NOT_COUNTED))))
    at = np.where((result == TimeClass.HOST_WAIT_LOADER) & (placed >= 0) & is_loader[placed], placed, at)
    enclosing = nearest(parent, is_frame & are_users)
    at = np.where(
        (at == np.arange(len(parent))) & ~is_frame & ~is_annotation & (enclosing >= 0), enclosing, at
    )
    return result, metadata[at]


def _are_users(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether each is a frame with a place of its own."""
    placed = np.zeros(len(trace.metadata), np.bool_)
    for i in np.unique(metadata).tolist():
        frame = frame_of(trace.strings[trace.metadata["name"][i]])
        placed[i] = frame is not None and frame.is_users
    return placed[metadata]


def classes_and_waits(
    trace: Trace, pieces: Pieces, steps: tuple[Int64s, Int64s]
) -> tuple[Int64s, tuple[StepWait, ...]]:
    """Time of each step (starts, ends) by class, [steps, N_CLASSES]; and what they wait for by name.

    A wait's time is that in which no other thread and no device computes: their classes are higher.
    """
    outline = pieces.outline()
    name = np.where((outline.named >= 0) & np.isin(outline.klass, SAID_BY_PYTHON), outline.named, -1)
    pairs, number = np.unique((outline.klass.astype(np.int64) << 32) + name + 1, return_inverse=True)
    klass, names = pairs >> 32, (pairs & 0xFFFFFFFF) - 1
    if len(pairs) <= _AT_ONCE:
        time, _ = pieces.charged(number + 1, steps, len(pairs) + 1)
    else:
        time = np.zeros((len(steps[0]), len(pairs) + 1), np.int64)
        for first in range(0, len(pairs), _AT_ONCE):
            higher = len(pairs[first : first + _AT_ONCE]) + 1
            code = np.where(number < first, -1, np.minimum(number - first + 1, higher))
            some, _ = pieces.charged(code, steps, higher + 1)
            time[:, first + 1 : first + higher] = some[:, 1:higher]
    class_ps = np.zeros((len(steps[0]), N_CLASSES), np.int64)
    by_name: dict[tuple[int, str], Int64s] = {}
    for at, (kind, row) in enumerate(zip(klass.tolist(), names.tolist(), strict=True)):
        class_ps[:, kind] += time[:, at + 1]
        if row >= 0:
            key = kind, trace.strings[trace.metadata["name"][row]]
            by_name[key] = by_name.get(key, 0) + time[:, at + 1]
    class_ps[:, 0] = np.maximum(steps[1] - steps[0], 0) - class_ps[:, 1:].sum(axis=1)
    return class_ps, tuple(_wait(TimeClass(kind), name, total) for (kind, name), total in by_name.items())


def of_steps(waits: Iterable[StepWait], kept: Rows) -> tuple[StepWait, ...]:
    """Those of some of the steps, longest first."""
    found = [replace(wait, time_ps=wait.time_ps[kept]) for wait in waits if wait.time_ps[kept].any()]
    return tuple(sorted(found, key=lambda wait: (-wait.total_ps, wait.name)))


def _wait(kind: TimeClass, name: str, time_ps: Int64s) -> StepWait:
    frame = frame_of(name)
    return (
        StepWait(kind, frame.function, frame.file, frame.line, time_ps)
        if frame
        else StepWait(kind, name, "", 0, time_ps)
    )
