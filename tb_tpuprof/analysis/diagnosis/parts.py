"""Each moment of each step: its one cause, and the culprit by name.

A refinement of the steps' own classes (`steps/pieces.py`): the times of one class add up to that class's
time, so the page's breakdown and the diagnosis cannot contradict each other. On a step's own thread the
innermost event's ancestors decide:

    train (step)
      train.py update          user       its own time: Python, culprit `update`
        PjitFunction(g)        runtime    its own time: dispatch, by `update`
          backend_compile      a claim    all inside of it: compilation of `g`, by `update`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.names import CAUSES, Origin, names
from tb_tpuprof.analysis.diagnosis.records import Part
from tb_tpuprof.analysis.events.handed_over import handed_over
from tb_tpuprof.analysis.events.line_contexts import (
    LineContexts,
    contexts_of,
    innermost,
    nearest,
    parents_within,
)
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.nesting import are_inside, parents
from tb_tpuprof.analysis.events.python_frames import frame_of
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.pieces import Pieces, joined
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.windows import Windows, clipped, windows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_NUMBER = {cause: number for number, cause in enumerate(CAUSES) if cause}
# What a class of time is, where nothing around the event claims otherwise.
BY_CLASS = {
    TimeClass.UNKNOWN: Cause.UNRECORDED,
    TimeClass.HOST_PYTHON: Cause.PYTHON,
    TimeClass.HOST_WAIT: Cause.PYTHON,
    TimeClass.HOST_WAIT_LOADER: Cause.INPUT,
    TimeClass.HOST_COMPUTE: Cause.COMPUTE,
    TimeClass.HOST_COMPILE: Cause.COMPILATION,
    TimeClass.HOST_TO_HOST: Cause.UNRECORDED,
    TimeClass.HOST_TO_DEVICE: Cause.TRANSFERS,
    TimeClass.HOST_PREPARE: Cause.DISPATCH,
    TimeClass.DEVICE_COLLECTIVES: Cause.COMMUNICATION,
    TimeClass.HOST_WAIT_INPUT: Cause.INPUT,
    TimeClass.DEVICE_TO_DEVICE: Cause.COMPUTE,
    TimeClass.DEVICE_TO_HOST: Cause.TRANSFERS,
    TimeClass.DEVICE_COMPUTE_32: Cause.COMPUTE,
    TimeClass.DEVICE_COMPUTE_16: Cause.COMPUTE,
}
_OPEN_TO_CLAIMS = (TimeClass.UNKNOWN, TimeClass.HOST_PYTHON, TimeClass.HOST_WAIT, TimeClass.HOST_COMPUTE)
# Within a class, what counts where several threads do different things.
_ORDER = (
    Cause.PYTHON,
    Cause.DISPATCH,
    Cause.SYNCHRONIZATION,
    Cause.COMPILATION,
    Cause.TRANSFERS,
    Cause.COMPUTE,
    Cause.CALLBACKS,
)
_MOST = 200
_OF_A_PROGRAM = -2
_OPENS_FUNCTION = re.compile(r"tf\.function-graph_building$|\$polymorphic_function\.py:\d+ _call$")


@once
def parts(trace: Trace) -> tuple[Part, ...]:
    """The parts of a host's steps, longest first; those of a step add up to its duration."""
    steps, pieces = step_pieces(trace)
    if not len(steps):
        return ()
    return _by_event(trace, steps, pieces) if pieces is not None else _by_class(waiting(trace).steps)


def _by_class(steps: Steps) -> tuple[Part, ...]:
    """Steps of which only the classes are known: devices' own."""
    found = [
        Part(BY_CLASS[klass], klass, Culprit(), Culprit(), "", steps.class_ps[:, klass])
        for klass in TimeClass if steps.class_ps[:, klass].any()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda part: -part.mean_ps))


@dataclass(frozen=True)
class Told:
    """By piece: its cause's place in CAUSES, and the metadata rows of its culprit, of the user's function
    that calls it and of the call.
    """

    cause: npt.NDArray[np.uint8]
    culprit: Int64s
    caller: Int64s
    call: Int64s


def _by_event(trace: Trace, steps: Steps, pieces: Pieces) -> tuple[Part, ...]:
    pieces = _copies_apart(trace, pieces)
    pieces = joined([pieces, *_callbacks_elsewhere(trace, steps, pieces)])
    outline = pieces.outline()
    told = told_of(trace, outline)
    order = {cause: place for place, cause in enumerate(_ORDER)}
    rank = np.array([order.get(cause, len(_ORDER)) if cause else 0 for cause in CAUSES], np.int64)
    keys: Int64s = np.column_stack(
        (outline.klass.astype(np.int64), rank[told.cause], told.cause, told.culprit, told.caller, told.call)
    )
    unique, number = _distinct(keys)
    spans = steps.start_ps, steps.start_ps + steps.duration_ps
    if len(unique) > _MOST:
        unique, number = _fewer(unique, number, pieces, spans)
    time, longest = pieces.charged(number + 1, spans, len(unique) + 1)
    rest = Part(Cause.UNRECORDED, TimeClass.UNKNOWN, Culprit(), Culprit(), "", time[:, 0])
    found = [rest] if rest.time_ps.any() else []
    for at, (klass, _rank, cause, culprit, caller, call) in enumerate(unique.tolist(), 1):
        mine = time[:, at]
        if mine.any():
            count, first, last = longest[:, at].tolist()
            found.append(
                Part(
                    CAUSES[cause] or Cause.UNRECORDED,
                    TimeClass(klass),
                    _culprit(trace, culprit),
                    _culprit(trace, caller),
                    _call(trace, call),
                    mine,
                    count,
                    first,
                    last,
                )
            )
    return tuple(sorted(found, key=lambda part: -part.mean_ps))


def _copies_apart(trace: Trace, pieces: Pieces) -> Pieces:
    """Work of other threads cut where copies between host and device begin and end in it, which then have
    pieces of their own.
    """
    is_copy = names(trace).claim == _NUMBER[Cause.TRANSFERS]
    rows = np.flatnonzero(is_copy[trace.events["metadata"]])
    rows = rows[
        ~np.isin(trace.event_line[rows], own_lines(trace, pieces)) & (trace.events["duration_ps"][rows] > 0)
    ]
    rows = rows[~are_inside(trace, rows, is_copy)]
    found = [pieces]
    for line in np.unique(trace.event_line[rows]).tolist():
        copies = rows[trace.event_line[rows] == line]
        start = trace.events["start_ps"][copies].astype(np.int64)
        end = start + trace.events["duration_ps"][copies]
        rest = np.append(0, end), np.append(start, np.iinfo(np.int64).max)
        every = found.pop()
        mine = (
            (every.named < 0)
            & (trace.event_line[every.event] == line)
            & ~is_copy[trace.events["metadata"][every.event]]
        )
        cut = every.take(np.flatnonzero(mine))
        found.append(replace(every.take(np.flatnonzero(~mine)), own=every.own))
        for spans, event in (((start, end), copies), (rest, None)):
            which, at, begin, stop = clipped(cut.start, cut.end, windows_of(spans[0], spans[1] - spans[0]))
            part = cut.take(which)
            events = part.event if event is None else event[at].astype(np.int64)
            found.append(replace(part, start=begin, end=stop, event=events, last=events))
        found = [joined(found)]
    return found[0]


def _callbacks_elsewhere(trace: Trace, steps: Steps, pieces: Pieces) -> Iterator[Pieces]:
    """Python that programs call back on a pool's threads, where the steps count only that
    something computed.
    """
    is_callback = names(trace).claim == _NUMBER[Cause.CALLBACKS]
    if not is_callback.any():
        return
    of_steps = groups(trace).group >= 0  # those of input pipelines are no callbacks of a step
    rows = np.flatnonzero(is_callback[trace.events["metadata"]] & (of_steps | ~of_steps.any()))
    own = own_lines(trace, pieces)
    outline = pieces.outline()
    windows = windows_of(steps.start_ps, steps.duration_ps)
    for line in np.setdiff1d(np.unique(trace.event_line[rows]), own).tolist():
        of_line = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        parent = parents_within(trace, of_line)
        start, end, owner = innermost(trace, of_line, parent)
        chosen = np.zeros(len(parent), np.bool_)
        chosen[rows[(rows >= of_line.start) & (rows < of_line.stop)] - of_line.start] = True
        inside = (nearest(parent, chosen) >= 0)[owner]
        # Each moment keeps the class that the steps give it, so that the times of a class still add up to the
        # class's.
        for klass in _OPEN_TO_CLAIMS:
            mine = (outline.klass == klass) & (
                (outline.named >= 0) | (trace.event_line[outline.event] == line)
            )
            some = pieces.spread(np.where(mine, 0, -1))
            some = some.take(np.argsort(some.start, kind="stable"))
            counted = Windows(some.step, some.start, some.end, steps.how) if klass else windows
            which, at, begin, stop = clipped(start[inside], end[inside], counted)
            event = owner[inside][which].astype(np.int64) + of_line.start
            yield Pieces(
                begin,
                stop,
                np.full(len(which), klass, np.uint8),
                counted.group[at],
                np.full(len(which), -1, np.int64),
                event,
            )


def own_lines(trace: Trace, pieces: Pieces) -> Int64s:
    """The lines of the steps' own threads."""
    outline = pieces.outline()
    found: Int64s = np.unique(trace.event_line[outline.event[outline.named >= 0]]).astype(np.int64)
    return found


def _distinct(keys: Int64s) -> tuple[Int64s, Int64s]:
    """As np.unique of rows with their inverse, many times faster: rows become one number where they fit into
    63 bits.
    """
    low = keys.min(axis=0) if len(keys) else np.zeros(keys.shape[1], np.int64)
    sizes = (keys.max(axis=0) - low + 1).tolist() if len(keys) else [1] * keys.shape[1]
    code: Int64s = np.zeros(len(keys), np.int64)
    room = 1
    for column, least, size in zip(keys.T, low.tolist(), sizes, strict=True):
        if room * size >= 2**62:
            values, code = np.unique(code, return_inverse=True)
            code, room = code.reshape(-1), len(values)
        code = code * size + (column - least)
        room *= size
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return keys[first], inverse.reshape(-1)


def _fewer(
    unique: Int64s, number: Int64s, pieces: Pieces, spans: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
    """Small parts without their names, so that there are no more than can be charged at once; and which of
    them each row is now.
    """
    total = np.zeros(len(unique))
    for first in range(0, len(unique), _MOST):
        mine = (number >= first) & (number < first + _MOST)
        time, _ = pieces.charged(np.where(mine, number - first + 1, -1), spans, _MOST + 1)
        total[first : first + _MOST] = time.sum(axis=0)[1 : len(unique) - first + 1]
    small = np.ones(len(unique), np.bool_)
    small[np.argsort(-total, kind="stable")[: _MOST - 50]] = False
    merged = unique.copy()
    merged[small, 3:] = -1
    found, again = np.unique(merged, axis=0, return_inverse=True)
    return found, again.reshape(-1)[number]


def _culprit(trace: Trace, row: int) -> Culprit:
    text = trace.strings.get(int(trace.metadata["name"][row])) if row >= 0 else ""
    if not text.strip("$ "):
        return Culprit()
    frame = frame_of(text)
    if frame:
        return Culprit("function", frame.function, frame.file, frame.line)
    if names(trace).is_op[row]:
        return Culprit("operation", text)
    program = program_of(text)
    return (
        Culprit("program", program)
        if program
        else Culprit("annotation" if names(trace).origin[row] == Origin.ANNOTATION else "call", text)
    )


def program_of(name: str) -> str:
    """`step` of `PjitFunction(step)`; empty for any other name."""
    return name[len("PjitFunction(") : -1] if name.startswith("PjitFunction(") and name.endswith(")") else ""


def _call(trace: Trace, row: int) -> str:
    if row < 0:
        return ""
    text = trace.strings.get(int(trace.metadata["name"][row]))
    frame = frame_of(text)
    return frame.function if frame else program_of(text) or text


def told_of(trace: Trace, pieces: Pieces) -> Told:
    """Each row by the events around it: on the steps' own threads by all of them, elsewhere by those up to
    the counted one.
    """
    n = len(pieces)
    found = Told(np.zeros(n, np.uint8), *(np.full(n, -1, np.int64) for _ in range(3)))
    by_class = np.array([_NUMBER[BY_CLASS[TimeClass(i)]] for i in range(len(TimeClass))], np.uint8)
    found.cause[:] = by_class[pieces.thread_class]
    line = trace.event_line[pieces.event]
    for number in np.unique(line).tolist():
        mine = np.flatnonzero(line == number)
        _tell_line(trace, pieces, mine, found)
    elsewhere = (pieces.named < 0) & (pieces.end > pieces.start)
    copies = np.flatnonzero(elsewhere & (found.cause == _NUMBER[Cause.TRANSFERS]) & (found.culprit < 0))
    found.call[copies] = _called_meanwhile(trace, pieces, copies)
    asked = _asked_by(trace, pieces, copies)
    found.culprit[copies[asked >= 0]], found.call[copies[asked >= 0]] = asked[asked >= 0], -1
    compiles = np.flatnonzero(elsewhere & (found.cause == _NUMBER[Cause.COMPILATION]))
    program = _called_meanwhile(trace, pieces, compiles)
    found.culprit[compiles] = np.where(program >= 0, program, found.culprit[compiles])
    found.call[compiles] = np.where(program >= 0, program, found.call[compiles])
    return found


def _called_meanwhile(trace: Trace, pieces: Pieces, rows: Rows) -> Int64s:
    """The steps' threads' last call of a program before each piece of other threads, or before it was handed
    to them: what they do it for.

    -1 for none.
    """
    is_call = _is_program(trace, np.arange(len(trace.metadata)))
    calls = np.flatnonzero(is_call[trace.events["metadata"]])
    calls = calls[np.isin(trace.event_line[calls], own_lines(trace, pieces))]
    calls = calls[~are_inside(trace, calls, is_call)]
    calls = calls[np.argsort(trace.events["start_ps"][calls], kind="stable")]
    start = trace.events["start_ps"][calls]
    at = np.searchsorted(start, handed_over(trace, pieces.event[rows], pieces.start[rows]), side="right") - 1
    result = np.full(len(rows), -1, np.int64)
    result[at >= 0] = trace.events["metadata"][calls[at[at >= 0]]]
    return result


def _asked_by(trace: Trace, pieces: Pieces, rows: Rows) -> Int64s:
    """The user's function that asked for the work of each piece, on a step's thread and outside of programs;
    -1 for none.
    """
    result = np.full(len(rows), -1, np.int64)
    moment = handed_over(trace, pieces.event[rows], result)
    metadata, parent = trace.events["metadata"], parents(trace)
    is_user, is_call = names(trace).origin == Origin.USER, _is_program(trace, np.arange(len(trace.metadata)))
    for line in own_lines(trace, pieces).tolist() if (moment >= 0).any() else ():
        first, last = int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])
        start = trace.events["start_ps"][first:last]
        at = first + np.searchsorted(start, moment, side="right") - 1
        at[(at < first) | (moment < 0)] = -1
        open_ = np.flatnonzero(at >= 0)
        while len(open_):
            here = at[open_]
            is_on = trace.events["start_ps"][here] + trace.events["duration_ps"][here] >= moment[open_]
            mine = open_[is_on & is_user[metadata[here]] & (result[open_] == -1)]
            result[mine] = metadata[at[mine]]
            result[open_[is_on & is_call[metadata[here]]]] = _OF_A_PROGRAM
            at[open_] = parent[here]
            open_ = open_[at[open_] >= 0]
    return np.maximum(result, -1)


def _tell_line(trace: Trace, pieces: Pieces, mine: Rows, found: Told) -> None:
    of = contexts_of(trace, pieces.event[mine])
    parent, metadata, at = of.above, of.metadata, of.context
    known = names(trace)
    klass = pieces.thread_class[mine]
    origin = origins(known.origin[metadata], parent)
    claim = _strongest(known.claim[metadata], known.strength[metadata], parent)
    open_ = np.isin(klass, _OPEN_TO_CLAIMS) & (claim[at] >= 0)
    cause = found.cause[mine]
    cause[open_] = known.claim[metadata[claim[at[open_]]]]
    user = nearest(parent, (origin == Origin.USER) & ~_are_nameless(trace, metadata))
    user = np.where(user >= 0, user, nearest(parent, origin == Origin.USER))
    entry = nearest(parent, (origin == Origin.USER) | _is_entry(origin, parent))
    is_call = (entry >= 0) & (origin[entry] != Origin.USER)
    plain = ~open_
    op = nearest(parent, known.is_op[metadata])
    is_own = pieces.named[mine] >= 0
    computing = plain & (klass == TimeClass.HOST_COMPUTE) & is_own
    cause[computing & (op[at] < 0) & ~_is_operation(trace, metadata[at])] = _NUMBER[Cause.DISPATCH]
    library = (
        plain
        & (klass == TimeClass.HOST_PYTHON)
        & is_call[at]
        & (origin[np.maximum(entry[at], 0)] == Origin.FRAMEWORK)
    )
    cause[library] = _NUMBER[Cause.DISPATCH]
    # While a device is idle the host computes nothing of the model: it is on its way to the next launch.
    cause[(pieces.klass[mine] == TimeClass.UNKNOWN) & (cause == _NUMBER[Cause.COMPUTE])] = _NUMBER[
        Cause.DISPATCH
    ]
    found.cause[mine] = cause
    users, calls = user[at], np.where(is_call[at], entry[at], -1)
    row = np.where(users >= 0, metadata[np.maximum(users, 0)], -1)
    named = pieces.named[mine]
    # The user's function is the culprit of its own time and of what it calls in libraries; what a cause has
    # of its own goes first.
    culprit = np.where(row >= 0, row, named)
    by_named = np.isin(klass, (TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_WAIT_INPUT)) & (named >= 0)
    # A framework's function that hands over data is not whose loop it is.
    theirs = np.isin(known.origin[np.maximum(named, 0)], (Origin.FRAMEWORK, Origin.LIBRARY)) & (row >= 0)
    culprit[by_named & ~theirs] = named[by_named & ~theirs]
    annotated = (origin[np.maximum(at, 0)] == Origin.ANNOTATION) & plain
    culprit[annotated] = metadata[at[annotated]]
    program = nearest(parent, _is_program(trace, metadata) | _is_function(trace, of))
    compiles = (cause == _NUMBER[Cause.COMPILATION]) & (program[at] >= 0)
    culprit[compiles] = metadata[program[at[compiles]]]
    # What is compiled may run the user's code to trace it: who calls it is who is around it.
    callers = user[program[at[compiles]]]
    row[compiles] = np.where(callers >= 0, metadata[np.maximum(callers, 0)], -1)
    traces = (cause == _NUMBER[Cause.COMPILATION]) & (program[at] < 0) & (calls >= 0)
    culprit[traces] = metadata[calls[traces]]
    inside = open_ & (cause == _NUMBER[Cause.CALLBACKS])
    below = inside & ~((users >= 0) & (users > claim[at]))
    culprit[below] = metadata[claim[at[below]]]
    computed = cause == _NUMBER[Cause.COMPUTE]
    culprit[computed], row[computed] = -1, -1
    found.culprit[mine] = culprit
    found.caller[mine] = np.where(culprit == row, -1, row)
    found.call[mine] = np.where((calls >= 0) & ~computed, metadata[np.maximum(calls, 0)], -1)


def origins(origin: npt.NDArray[np.uint8], parent: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Whose each event is: a frame of a common file name is the library's where its caller is one, else the
    user's.
    """
    result: npt.NDArray[np.uint8] = origin.copy()
    common = origin == Origin.COMMON
    if common.any():
        frame = nearest(parent, (origin >= Origin.USER) & (origin != Origin.BUILTIN) & ~common)
        of_library = common & (frame >= 0) & (origin[frame] >= Origin.LIBRARY)
        result[common] = Origin.USER
        result[of_library] = origin[frame[of_library]]
    return result


def _is_entry(origin: npt.NDArray[np.uint8], parent: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Whether each event is a call that the user's code makes itself: the outermost one of a library, of the
    runtime or built in.
    """
    above = np.where(parent >= 0, origin[np.maximum(parent, 0)], Origin.USER)
    result: npt.NDArray[np.bool_] = (origin != Origin.USER) & (
        (above == Origin.USER) | (above == Origin.ANNOTATION)
    )
    return result


def _strongest(
    claim: npt.NDArray[np.uint8], strength: npt.NDArray[np.uint8], parent: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """The event around each that claims it most strongly, of equally strong ones the innermost;
    -1 for none.
    """
    result = np.full(len(parent), -1, np.int32)
    for level in sorted(set(strength[claim > 0].tolist())):
        found = nearest(parent, (claim > 0) & (strength == level))
        result = np.where(found >= 0, found, result)
    return result


def _are_nameless(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether frames have no names of their own (`<genexpr>`, `<listcomp>`, `<lambda>`): whoever is around
    them is called so.
    """
    frames = (frame_of(metadata_names(trace)[row]) for row in metadata.tolist())
    return np.array(
        [
            frame is not None and frame.function.startswith("<") and frame.function != "<module>"
            for frame in frames
        ],
        np.bool_,
    )


def _is_function(trace: Trace, of: LineContexts) -> npt.NDArray[np.bool_]:
    """Whether contexts are calls of a tf.function, under its name: right inside of them it is traced or
    looked up.
    """
    names = metadata_names(trace)
    opens = np.array(
        [_OPENS_FUNCTION.match(names[row]) is not None for row in of.metadata.tolist()], np.bool_
    )
    result = np.zeros(len(of), np.bool_)
    around = of.above[np.flatnonzero(opens)]
    around = around[around >= 0]
    result[around] = [frame_of(names[row]) is None for row in of.metadata[around].tolist()]
    return result


def _is_program(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    used = np.unique(metadata)
    is_program = np.zeros(len(trace.metadata), np.bool_)
    is_program[
        [row for row in used.tolist() if program_of(trace.strings.get(int(trace.metadata["name"][row])))]
    ] = True
    return is_program[metadata]


def _is_operation(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether events are operations by their names (`dense/MatMul:MatMul`)."""
    from tb_tpuprof.analysis.events.names import UNKNOWN, parse_op

    used = np.unique(metadata)
    is_operation = np.zeros(len(trace.metadata), np.bool_)
    for row in used.tolist():
        text = trace.strings.get(int(trace.metadata["name"][row]))
        is_operation[row] = ":" in text and parse_op(text).category != UNKNOWN
    return is_operation[metadata]
