"""The cause and the culprit of every moment of every step.

Parts refine the classes of the steps' time (`steps/pieces.py`): those of one class add up to its time, so the
page's breakdown and the diagnosis cannot contradict each other. On a step's own thread, the ancestors of the
innermost event decide:

    train (step)
      train.py update          user       its own time: Python, culprit `update`
        PjitFunction(g)        runtime    its own time: dispatch, by `update`
          backend_compile      a claim    everything inside: compilation of `g`, by `update`
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
from tb_tpuprof.analysis.events.stat_rows import events_of, marked
from tb_tpuprof.analysis.input.tpu import waiting
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.pieces import Pieces, joined
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.windows import Windows, clipped, windows_of
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_NUMBER = {cause: number for number, cause in enumerate(CAUSES) if cause}
# The cause of each class of time, unless a claim overrides it.
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
# The cause that counts within a class if several threads do different things.
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
    """The parts of a host's steps, longest first. In each step they add up to its duration."""
    steps, pieces = step_pieces(trace)
    if not len(steps):
        return ()
    return _by_event(trace, steps, pieces) if pieces is not None else _by_class(waiting(trace).steps)


def _by_class(steps: Steps) -> tuple[Part, ...]:
    """Parts of steps with classes only, such as those that devices mark themselves."""
    result = [
        Part(BY_CLASS[klass], klass, Culprit(), Culprit(), "", steps.class_ps[:, klass])
        for klass in TimeClass if steps.class_ps[:, klass].any()
    ]  # fmt: skip
    return tuple(sorted(result, key=lambda part: -part.mean_ps))


@dataclass(frozen=True)
class Attribution:
    """Per piece: index of its cause in CAUSES, and metadata rows of its culprit, of the user's function that
    calls it, and of the call; -1 for none.
    """

    cause: npt.NDArray[np.uint8]
    culprit: Int64s
    caller: Int64s
    call: Int64s


def _by_event(trace: Trace, steps: Steps, pieces: Pieces) -> tuple[Part, ...]:
    pieces = _copies_apart(trace, pieces)
    pieces = joined([pieces, *_callbacks_elsewhere(trace, steps, pieces)])
    outline = pieces.outline()
    attribution = attribution_of(trace, outline)
    order = {cause: place for place, cause in enumerate(_ORDER)}
    rank = np.array([order.get(cause, len(_ORDER)) if cause else 0 for cause in CAUSES], np.int64)
    keys: Int64s = np.column_stack(
        (
            outline.klass.astype(np.int64),
            rank[attribution.cause],
            attribution.cause,
            attribution.culprit,
            attribution.caller,
            attribution.call,
        )
    )
    unique, part_number = distinct_rows(*keys.T)
    spans = steps.start_ps, steps.start_ps + steps.duration_ps
    if len(unique) > _MOST:
        unique, part_number = _fewer(unique, part_number, pieces, spans)
    time, longest = pieces.charged(part_number + 1, spans, len(unique) + 1)
    uncharged = Part(Cause.UNRECORDED, TimeClass.UNKNOWN, Culprit(), Culprit(), "", time[:, 0])
    result = [uncharged] if uncharged.time_ps.any() else []
    for column, (klass, _rank, cause, culprit, caller, call) in enumerate(unique.tolist(), 1):
        time_ps = time[:, column]
        if time_ps.any():
            count, first, last = longest[:, column].tolist()
            result.append(
                Part(
                    CAUSES[cause] or Cause.UNRECORDED,
                    TimeClass(klass),
                    _culprit(trace, culprit),
                    _culprit(trace, caller),
                    _call(trace, call),
                    time_ps,
                    count,
                    first,
                    last,
                )
            )
    return tuple(sorted(result, key=lambda part: -part.mean_ps))


def _copies_apart(trace: Trace, pieces: Pieces) -> Pieces:
    """Pieces of other threads, split so that copies between host and device have pieces of their own."""
    is_copy = names(trace).claim == _NUMBER[Cause.TRANSFERS]
    rows = events_of(trace, is_copy)
    rows = rows[
        ~np.isin(trace.event_line[rows], own_lines(trace, pieces)) & (trace.events["duration_ps"][rows] > 0)
    ]
    rows = rows[~are_inside(trace, rows, is_copy)]
    result = [pieces]
    for line in np.unique(trace.event_line[rows]).tolist():
        copies = rows[trace.event_line[rows] == line]
        start = trace.events["start_ps"][copies].astype(np.int64)
        end = start + trace.events["duration_ps"][copies]
        rest = np.append(0, end), np.append(start, np.iinfo(np.int64).max)
        remaining = result.pop()
        is_cut = (
            (remaining.named < 0)
            & (trace.event_line[remaining.event] == line)
            & ~is_copy[trace.events["metadata"][remaining.event]]
        )
        cut = remaining.take(np.flatnonzero(is_cut))
        result.append(replace(remaining.take(np.flatnonzero(~is_cut)), own=remaining.own))
        for spans, event in (((start, end), copies), (rest, None)):
            which, window, begin, stop = clipped(
                cut.start, cut.end, windows_of(spans[0], spans[1] - spans[0])
            )
            part = cut.take(which)
            events = part.event if event is None else event[window].astype(np.int64)
            result.append(replace(part, start=begin, end=stop, event=events, last=events))
        result = [joined(result)]
    return result[0]


def _callbacks_elsewhere(trace: Trace, steps: Steps, pieces: Pieces) -> Iterator[Pieces]:
    """Pieces of Python callbacks on a pool's threads, where the steps only know that something computed."""
    is_callback = names(trace).claim == _NUMBER[Cause.CALLBACKS]
    if not is_callback.any():
        return
    of_steps = groups(trace).group >= 0  # callbacks of input pipelines do not belong to a step
    rows = np.flatnonzero(is_callback[trace.events["metadata"]] & (of_steps | ~of_steps.any()))
    step_lines = own_lines(trace, pieces)
    outline = pieces.outline()
    windows = windows_of(steps.start_ps, steps.duration_ps)
    for line in np.setdiff1d(np.unique(trace.event_line[rows]), step_lines).tolist():
        of_line = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        parent = parents_within(trace, of_line)
        start, end, owner = innermost(trace, of_line, parent)
        is_callback_row = np.zeros(len(parent), np.bool_)
        is_callback_row[rows[(rows >= of_line.start) & (rows < of_line.stop)] - of_line.start] = True
        inside = (nearest(parent, is_callback_row) >= 0)[owner]
        # Each moment keeps its class, so that the parts of a class still add up to its time.
        for klass in _OPEN_TO_CLAIMS:
            is_open = (outline.klass == klass) & (
                (outline.named >= 0) | (trace.event_line[outline.event] == line)
            )
            open_pieces = pieces.spread(np.where(is_open, 0, -1))
            open_pieces = open_pieces.take(np.argsort(open_pieces.start, kind="stable"))
            counted = (
                Windows(open_pieces.step, open_pieces.start, open_pieces.end, steps.how) if klass else windows
            )
            which, window, begin, stop = clipped(start[inside], end[inside], counted)
            event = owner[inside][which].astype(np.int64) + of_line.start
            yield Pieces(
                begin,
                stop,
                np.full(len(which), klass, np.uint8),
                counted.group[window],
                np.full(len(which), -1, np.int64),
                event,
            )


def own_lines(trace: Trace, pieces: Pieces) -> Int64s:
    """The lines of the steps' own threads."""
    outline = pieces.outline()
    lines: Int64s = np.unique(trace.event_line[outline.event[outline.named >= 0]]).astype(np.int64)
    return lines


def _fewer(
    unique: Int64s, number: Int64s, pieces: Pieces, spans: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
    """Merges small parts by dropping their names, so that all can be charged at once. Returns the distinct
    keys and each row's index into them.
    """
    total = np.zeros(len(unique))
    for first in range(0, len(unique), _MOST):
        is_in_batch = (number >= first) & (number < first + _MOST)
        time, _ = pieces.charged(np.where(is_in_batch, number - first + 1, -1), spans, _MOST + 1)
        total[first : first + _MOST] = time.sum(axis=0)[1 : len(unique) - first + 1]
    small = np.ones(len(unique), np.bool_)
    small[np.argsort(-total, kind="stable")[: _MOST - 50]] = False
    merged = unique.copy()
    merged[small, 3:] = -1
    distinct, again = distinct_rows(*merged.T)
    return distinct, again[number]


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
    """The `step` in `PjitFunction(step)`; empty for any other name."""
    return name[len("PjitFunction(") : -1] if name.startswith("PjitFunction(") and name.endswith(")") else ""


def _call(trace: Trace, row: int) -> str:
    if row < 0:
        return ""
    text = trace.strings.get(int(trace.metadata["name"][row]))
    frame = frame_of(text)
    return frame.function if frame else program_of(text) or text


def attribution_of(trace: Trace, pieces: Pieces) -> Attribution:
    """Attributes each piece by the events around it: all of them on the steps' own threads, elsewhere those
    up to the counted one.
    """
    n = len(pieces)
    result = Attribution(np.zeros(n, np.uint8), *(np.full(n, -1, np.int64) for _ in range(3)))
    by_class = np.array([_NUMBER[BY_CLASS[TimeClass(i)]] for i in range(len(TimeClass))], np.uint8)
    result.cause[:] = by_class[pieces.thread_class]
    line = trace.event_line[pieces.event]
    for number in np.unique(line).tolist():
        rows = np.flatnonzero(line == number)
        _attribute_line(trace, pieces, rows, result)
    elsewhere = (pieces.named < 0) & (pieces.end > pieces.start)
    copies = np.flatnonzero(elsewhere & (result.cause == _NUMBER[Cause.TRANSFERS]) & (result.culprit < 0))
    result.call[copies] = _called_meanwhile(trace, pieces, copies)
    requester = _requested_by(trace, pieces, copies)
    result.culprit[copies[requester >= 0]], result.call[copies[requester >= 0]] = (
        requester[requester >= 0],
        -1,
    )
    compiles = np.flatnonzero(elsewhere & (result.cause == _NUMBER[Cause.COMPILATION]))
    program = _called_meanwhile(trace, pieces, compiles)
    result.culprit[compiles] = np.where(program >= 0, program, result.culprit[compiles])
    result.call[compiles] = np.where(program >= 0, program, result.call[compiles])
    return result


def _called_meanwhile(trace: Trace, pieces: Pieces, rows: Rows) -> Int64s:
    """Metadata row of the last program that the steps' threads called before each piece of other threads, or
    before the piece was handed over: the work is for that program. -1 for none.
    """
    is_call = _is_program(trace, np.arange(len(trace.metadata)))
    calls = events_of(trace, is_call)
    calls = calls[np.isin(trace.event_line[calls], own_lines(trace, pieces))]
    calls = calls[~are_inside(trace, calls, is_call)]
    calls = calls[np.argsort(trace.events["start_ps"][calls], kind="stable")]
    start = trace.events["start_ps"][calls]
    last_call = (
        np.searchsorted(start, handed_over(trace, pieces.event[rows], pieces.start[rows]), side="right") - 1
    )
    result = np.full(len(rows), -1, np.int64)
    result[last_call >= 0] = trace.events["metadata"][calls[last_call[last_call >= 0]]]
    return result


def _requested_by(trace: Trace, pieces: Pieces, rows: Rows) -> Int64s:
    """Metadata row of the user's function that requested the work of each piece, on a step's thread and
    outside programs; -1 for none.
    """
    result = np.full(len(rows), -1, np.int64)
    moment = handed_over(trace, pieces.event[rows], result)
    metadata, parent = trace.events["metadata"], parents(trace)
    is_user, is_call = names(trace).origin == Origin.USER, _is_program(trace, np.arange(len(trace.metadata)))
    for line in own_lines(trace, pieces).tolist() if (moment >= 0).any() else ():
        first, last = int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])
        start = trace.events["start_ps"][first:last]
        event = first + np.searchsorted(start, moment, side="right") - 1
        event[(event < first) | (moment < 0)] = -1
        open_ = np.flatnonzero(event >= 0)
        while len(open_):
            current = event[open_]
            is_on = trace.events["start_ps"][current] + trace.events["duration_ps"][current] >= moment[open_]
            new = open_[is_on & is_user[metadata[current]] & (result[open_] == -1)]
            result[new] = metadata[event[new]]
            result[open_[is_on & is_call[metadata[current]]]] = _OF_A_PROGRAM
            event[open_] = parent[current]
            open_ = open_[event[open_] >= 0]
    return np.maximum(result, -1)


def _attribute_line(trace: Trace, pieces: Pieces, rows: Rows, result: Attribution) -> None:
    contexts = contexts_of(trace, pieces.event[rows])
    parent, metadata, context = contexts.above, contexts.metadata, contexts.context
    name_table = names(trace)
    klass = pieces.thread_class[rows]
    origin = origins(name_table.origin[metadata], parent)
    claim = _strongest(name_table.claim[metadata], name_table.strength[metadata], parent)
    is_claimed = np.isin(klass, _OPEN_TO_CLAIMS) & (claim[context] >= 0)
    cause = result.cause[rows]
    cause[is_claimed] = name_table.claim[metadata[claim[context[is_claimed]]]]
    user = nearest(parent, (origin == Origin.USER) & ~are_nameless(trace, metadata))
    user = np.where(user >= 0, user, nearest(parent, origin == Origin.USER))
    entry = nearest(parent, (origin == Origin.USER) | _is_entry(origin, parent))
    is_call = (entry >= 0) & (origin[entry] != Origin.USER)
    plain = ~is_claimed
    op = nearest(parent, name_table.is_op[metadata])
    is_own = pieces.named[rows] >= 0
    computing = plain & (klass == TimeClass.HOST_COMPUTE) & is_own
    cause[computing & (op[context] < 0) & ~_is_operation(trace, metadata[context])] = _NUMBER[Cause.DISPATCH]
    library = (
        plain
        & (klass == TimeClass.HOST_PYTHON)
        & is_call[context]
        & (origin[np.maximum(entry[context], 0)] == Origin.FRAMEWORK)
    )
    cause[library] = _NUMBER[Cause.DISPATCH]
    # While a device is idle, host compute is not the model's: it prepares the next launch.
    cause[(pieces.klass[rows] == TimeClass.UNKNOWN) & (cause == _NUMBER[Cause.COMPUTE])] = _NUMBER[
        Cause.DISPATCH
    ]
    result.cause[rows] = cause
    users, calls = user[context], np.where(is_call[context], entry[context], -1)
    row = np.where(users >= 0, metadata[np.maximum(users, 0)], -1)
    named = pieces.named[rows]
    # The user's function is the culprit of its own time and of its library calls, unless the cause names one.
    culprit = np.where(row >= 0, row, named)
    by_named = np.isin(klass, (TimeClass.HOST_WAIT_LOADER, TimeClass.HOST_WAIT_INPUT)) & (named >= 0)
    # A framework's function that hands over data does not own the loop.
    theirs = np.isin(name_table.origin[np.maximum(named, 0)], (Origin.FRAMEWORK, Origin.LIBRARY)) & (row >= 0)
    culprit[by_named & ~theirs] = named[by_named & ~theirs]
    annotated = (origin[np.maximum(context, 0)] == Origin.ANNOTATION) & plain
    culprit[annotated] = metadata[context[annotated]]
    program = nearest(parent, _is_program(trace, metadata) | _is_function(trace, contexts))
    compiles = (cause == _NUMBER[Cause.COMPILATION]) & (program[context] >= 0)
    culprit[compiles] = metadata[program[context[compiles]]]
    # Compilation may run the user's code to trace it: the caller is the function around the program.
    callers = user[program[context[compiles]]]
    row[compiles] = np.where(callers >= 0, metadata[np.maximum(callers, 0)], -1)
    traces = (cause == _NUMBER[Cause.COMPILATION]) & (program[context] < 0) & (calls >= 0)
    culprit[traces] = metadata[calls[traces]]
    inside = is_claimed & (cause == _NUMBER[Cause.CALLBACKS])
    below = inside & ~((users >= 0) & (users > claim[context]))
    culprit[below] = metadata[claim[context[below]]]
    computed = cause == _NUMBER[Cause.COMPUTE]
    culprit[computed], row[computed] = -1, -1
    result.culprit[rows] = culprit
    result.caller[rows] = np.where(culprit == row, -1, row)
    result.call[rows] = np.where((calls >= 0) & ~computed, metadata[np.maximum(calls, 0)], -1)


def origins(origin: npt.NDArray[np.uint8], parent: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """Origin of each event: a frame with a common file name belongs to the library if its caller does, else
    to the user.
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
    """Whether the user's code makes each call itself: the outermost call of a library, the runtime or a
    built-in.
    """
    above = np.where(parent >= 0, origin[np.maximum(parent, 0)], Origin.USER)
    result: npt.NDArray[np.bool_] = (origin != Origin.USER) & (
        (above == Origin.USER) | (above == Origin.ANNOTATION)
    )
    return result


def _strongest(
    claim: npt.NDArray[np.uint8], strength: npt.NDArray[np.uint8], parent: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """The event around each with the strongest claim, the innermost among equals; -1 for none."""
    result = np.full(len(parent), -1, np.int32)
    for level in sorted(set(strength[claim > 0].tolist())):
        claiming = nearest(parent, (claim > 0) & (strength == level))
        result = np.where(claiming >= 0, claiming, result)
    return result


def are_nameless(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether frames have no name of their own (`<genexpr>`, `<listcomp>`, `<lambda>`), so that the function
    around them names them.
    """
    texts, used = metadata_names(trace), marked(metadata, len(trace.metadata))
    frames = [frame_of(texts[row]) for row in used.tolist()]
    result = np.zeros(len(trace.metadata), np.bool_)
    result[used] = [
        frame is not None and frame.function.startswith("<") and frame.function != "<module>"
        for frame in frames
    ]
    return result[metadata]


def _is_function(trace: Trace, contexts: LineContexts) -> npt.NDArray[np.bool_]:
    """Whether contexts are calls of a tf.function: their direct children trace it or look it up."""
    names = metadata_names(trace)
    opens_function = np.array(
        [_OPENS_FUNCTION.match(names[row]) is not None for row in contexts.metadata.tolist()], np.bool_
    )
    result = np.zeros(len(contexts), np.bool_)
    callers = contexts.above[np.flatnonzero(opens_function)]
    callers = callers[callers >= 0]
    result[callers] = [frame_of(names[row]) is None for row in contexts.metadata[callers].tolist()]
    return result


def _is_program(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    used = np.unique(metadata)
    is_program = np.zeros(len(trace.metadata), np.bool_)
    is_program[
        [row for row in used.tolist() if program_of(trace.strings.get(int(trace.metadata["name"][row])))]
    ] = True
    return is_program[metadata]


def _is_operation(trace: Trace, metadata: Int64s) -> npt.NDArray[np.bool_]:
    """Whether events are operations, by name (`dense/MatMul:MatMul`)."""
    from tb_tpuprof.analysis.events.names import UNKNOWN, parse_op

    used = np.unique(metadata)
    is_operation = np.zeros(len(trace.metadata), np.bool_)
    for row in used.tolist():
        text = trace.strings.get(int(trace.metadata["name"][row]))
        is_operation[row] = ":" in text and parse_op(text).category != UNKNOWN
    return is_operation[metadata]
