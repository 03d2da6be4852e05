"""Where each request's time goes: every moment of it is charged to the most important thing that happens.

    request      ├─────────────────────────────────────────────────────────────┤
    its thread    ▪▪decode▪▪ ▪call▪                                  ▪▪encode▪▪
    transfer                   ══
    device                          (busy with others)  ■■■■■■■■■■
    charged      bbbbbbbbbbbrrrrrrtt··qqqqqqqqqqqqqqqqqqdddddddddd··aaaaaaaaaaa
                 before      runtime  queue             device    wait  after

The parts of a request add up to its latency, to the picosecond. A request in a batch: its own thread until it
is queued, the queue until the batch begins, the batch's work while it runs, its own thread after that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.line_contexts import innermost, nearest, parents_within
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.python_frames import Kind
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.inference.executions import enclosing, executions
from tb_tpuprof.analysis.inference.work import N_PARTS, Part, extents, work
from tb_tpuprof.analysis.steps.waits import name_kinds
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_WAITS = re.compile(
    r"np\.asarray\(jax\.Array\)|.*[Bb]lock_?[Uu]ntil_?[Rr]eady.*|.*BlockHostUntilReady.*|"
    r"(?:cuda|hip|cu)(?:(?:Stream|Device|Event|Ctx)Synchronize|Memcpy)\w*|"
    r".*\(wait for completion\)|.*::Await\b.*|"
    r"(?:\w+::)*WaitForAll\w*"
)
_MOST_PAIRS = 1 << 24  # of executions and stretches in which devices are busy
_ROOM = 2**62


@dataclass(frozen=True)
class _Pieces:
    """Stretches of executions: `part` of Part; times in ps."""

    execution: Int64s
    start: Int64s
    end: Int64s
    part: npt.NDArray[np.uint8]

    def clipped(self, low: Int64s, high: Int64s) -> _Pieces:
        """Cut at two moments of each piece's execution; without those that vanish."""
        start, end = (
            np.maximum(self.start, low[self.execution]),
            np.minimum(self.end, high[self.execution]),
        )
        return _Pieces(self.execution, start, end, self.part).chosen(end > start)

    def chosen(self, rows: npt.NDArray[np.bool_]) -> _Pieces:
        """Some of the stretches."""
        return _Pieces(self.execution[rows], self.start[rows], self.end[rows], self.part[rows])

    def as_part(self, part: Part) -> _Pieces:
        """The same stretches, of another part."""
        return _Pieces(self.execution, self.start, self.end, np.full(len(self.start), part, np.uint8))


def _joined(pieces: list[_Pieces]) -> _Pieces:
    return _Pieces(
        np.concatenate([piece.execution for piece in pieces]),
        np.concatenate([piece.start for piece in pieces]),
        np.concatenate([piece.end for piece in pieces]),
        np.concatenate([piece.part for piece in pieces]),
    )


@dataclass(frozen=True)
class RequestParts:
    """Time of each request by Part: int64[n, N_PARTS], in ps; `end`: when each ends. `batch_device_ps`: time
    in which a device worked for each batch.

    `counts_others`: whether waiting for devices that work for others is separate from other waiting.
    """

    time_ps: Int64s
    end: Int64s
    batch_device_ps: Int64s
    counts_others: bool


@once
def request_parts(trace: Trace) -> RequestParts:
    """The parts of all requests of one host, in the order of `executions`."""
    marks, extent = executions(trace), extents(trace)
    done = work(trace)
    owned = done.owner >= 0
    own_work = _Pieces(done.owner[owned], done.start[owned], done.end[owned], done.part[owned])
    n = marks.n_requests
    batches = np.arange(n, len(marks)), marks.start[n:], extent.end[n:]
    execution, start, end = (np.concatenate(pair) for pair in zip(_spans(trace), batches, strict=True))
    is_own = np.ones(len(start), np.bool_)
    is_own[n : 2 * n] = False  # the work of a request's batch is in the batch's own span
    others, counts_others = _busy_with_others(trace, execution[is_own], start[is_own], end[is_own])
    pieces = _joined([own_work, *_host_pieces(trace), others]).clipped(marks.start, extent.end)
    # Most requests wait for the whole of their batch, whose time is charged once.
    is_whole = (start == marks.start[execution]) & (end == extent.end[execution]) & (execution >= n)
    place = np.where(is_whole, execution + 2 * n, np.arange(len(start)))
    charged = np.flatnonzero((end > start) & (place == np.arange(len(start))))
    time = _charged(pieces, marks.start, extent.end, execution[charged], start[charged], end[charged])
    column = np.full(len(start), len(charged), np.int64)  # the last column is that of empty spans
    column[charged] = np.arange(len(charged))
    device = time[Part.DEVICE, column[3 * n :]]
    return RequestParts(
        _of_requests(trace, time, column[place[: 3 * n]]), extent.end[:n], device, counts_others
    )


def _spans(trace: Trace) -> tuple[Int64s, Int64s, Int64s]:
    """(execution, start, end) of the stretches that requests consist of: for each request its own thread up
    to the queue; the batch; its own thread after it. For requests without a batch the last two are empty.
    """
    marks, end = executions(trace), extents(trace).end
    n = marks.n_requests
    request = np.arange(n)
    batch = marks.batch_of
    has_batch = batch >= 0
    begin, stop = marks.start[:n], end[:n]
    batch_start = np.where(has_batch, np.clip(marks.start[batch], marks.queued_ps, stop), stop)
    batch_end = np.where(has_batch, np.clip(end[batch], batch_start, stop), stop)
    until = np.where(has_batch, np.clip(marks.queued_ps, begin, batch_start), stop)
    execution = np.concatenate((request, np.where(has_batch, batch, request), request))
    return (
        execution.astype(np.int64),
        np.concatenate((begin, batch_start, batch_end)),
        np.concatenate((until, batch_end, stop)),
    )


def _of_requests(trace: Trace, time: Int64s, column: Int64s) -> Int64s:
    """Times of requests from those of their three stretches, which are columns of `time`; the time between
    the first two is the queue.
    """
    marks, end = executions(trace), extents(trace).end
    n = marks.n_requests
    total: Int64s = time[:, column[:n]]
    for first in (n, 2 * n):
        total += time[:, column[first : first + n]]
    total[Part.QUEUE] += end[:n] - marks.start[:n] - total.sum(axis=0)
    result: Int64s = total.T
    return result


def _charged(
    pieces: _Pieces, first: Int64s, last: Int64s, execution: Int64s, start: Int64s, end: Int64s
) -> Int64s:
    """Time of each span (of an execution, from start to end) by part: int64[N_PARTS, n + 1], in ps, the last
    column zero.

    Executions are laid end to end on one axis, as many at once as fit into 64 bits; then what parts of at
    least a given priority cover is a union of stretches on it.
    """
    length = last - first
    shelf = np.floor(np.cumsum(length.astype(np.float64)) / _ROOM).astype(np.int64)
    result = np.zeros((N_PARTS, len(execution) + 1), np.int64)
    for number in range(int(shelf[-1]) + 1 if len(shelf) else 0):
        chosen = np.flatnonzero(shelf == number)
        offset = np.zeros(len(first), np.int64)
        offset[chosen] = np.cumsum(length[chosen]) - length[chosen]
        span = np.flatnonzero(shelf[execution] == number)
        piece = np.flatnonzero(shelf[pieces.execution] == number)
        shift = (offset - first)[pieces.execution[piece]]
        begins, ends, part = pieces.start[piece] + shift, pieces.end[piece] + shift, pieces.part[piece]
        order = np.argsort(begins, kind="stable")  # once: parts of sorted stretches are sorted
        begins, ends, part = begins[order], ends[order], part[order]
        span_shift = (offset - first)[execution[span]]
        low, high = start[span] + span_shift, end[span] + span_shift
        covered = np.zeros(len(span), np.int64)
        for klass in np.flatnonzero(np.bincount(part))[::-1].tolist():
            counted = part >= klass
            cover = union_cover(begins[counted], ends[counted])
            at_least = cover(high) - cover(low)
            result[klass, span] = at_least - covered
            covered = at_least
        result[Part.WAIT, span] = high - low - covered
    return result


def _host_pieces(trace: Trace) -> list[_Pieces]:
    """What the executions' own threads do: everything that is not a known wait before the first launch and
    after the last work on a device; traced events between the two, where a thread without one may just wait.
    """
    marks, extent = executions(trace), extents(trace)
    n = marks.n_requests
    is_alone = np.ones(len(marks), np.bool_)
    is_alone[:n] = marks.batch_of < 0
    active, is_traced = _own_threads(trace)
    traced = active.chosen(is_traced)
    active = active.chosen(~_may_only_wait(trace)[active.execution])
    low, high = extent.launched.copy(), extent.worked_until.copy()
    # What a batched request's own thread does between is waiting for the batch.
    batch = marks.batch_of[~is_alone[:n]]
    low[:n][~is_alone[:n]] = marks.queued_ps[~is_alone[:n]]
    high[:n][~is_alone[:n]] = np.maximum(extent.end[batch], marks.queued_ps[~is_alone[:n]])
    return [
        active.clipped(marks.start, low).as_part(Part.HOST_BEFORE),
        traced.clipped(low, high).as_part(Part.HOST_RUNTIME),
        active.clipped(high, extent.end).as_part(Part.HOST_AFTER),
    ]


def _may_only_wait(trace: Trace) -> npt.NDArray[np.bool_]:
    """Executions without events inside and without work, while a device does work of no known execution:
    clients that wait for an answer look like this.
    """
    marks, done = executions(trace), work(trace)
    following = np.minimum(marks.row + 1, max(trace.n_events - 1, 0))
    starts_inside = trace.events["start_ps"][following] < marks.end
    shows = (following > marks.row) & (trace.lines_at(following) == trace.lines_at(marks.row)) & starts_inside
    shows[done.owner[done.owner >= 0]] = True
    is_nobodys = (done.part == Part.DEVICE) & (done.owner < 0)
    cover = union_cover(done.start[is_nobodys], done.end[is_nobodys])
    result: npt.NDArray[np.bool_] = ~shows & (cover(marks.end) > cover(marks.start))
    return result


def _own_threads(trace: Trace) -> tuple[_Pieces, npt.NDArray[np.bool_]]:
    """The stretches of executions' own threads that are not known waits, and whether a traced event other
    than the execution's own runs in each.
    """
    marks = executions(trace)
    waits = _wait_names(trace)
    found: list[tuple[Rows, Int64s, Int64s]] = [(np.empty(0, np.intp), *(np.empty(0, np.int64),) * 2)]
    for line in marked(trace.lines_at(marks.row), len(trace.lines)).tolist():
        rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
        parent = parents_within(trace, rows)
        start, end, event = innermost(trace, rows, parent)
        in_wait = nearest(parent, waits[trace.events["metadata"][rows]]) >= 0
        is_active = ~in_wait[event]
        found.append((event[is_active] + rows.start, start[is_active], end[is_active]))
    event, start, end = (np.concatenate(column) for column in zip(*found, strict=True))
    execution = enclosing(trace, marks.row, event, marks.by_row)
    is_inside = execution >= 0
    event, start, end, execution = event[is_inside], start[is_inside], end[is_inside], execution[is_inside]
    pieces = _Pieces(execution, start, end, np.full(len(event), Part.HOST_BEFORE, np.uint8))
    return pieces, event != marks.row[execution]


def _wait_names(trace: Trace) -> npt.NDArray[np.bool_]:
    """For each metadata row, whether an event of its name only waits."""
    names = metadata_names(trace)
    result: npt.NDArray[np.bool_] = name_kinds(trace) == Kind.WAIT
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts))
    result[rows] |= np.array([_WAITS.fullmatch(names[row]) is not None for row in rows.tolist()], np.bool_)
    return result


def _busy_with_others(trace: Trace, execution: Int64s, low: Int64s, high: Int64s) -> tuple[_Pieces, bool]:
    """Stretches of spans (of an execution, from `low` to `high`) in which a device works for any execution,
    its own included; and whether they could be listed: where thousands of requests overlap, there are too
    many.
    """
    done = work(trace)
    on_device = (done.part == Part.DEVICE) & (done.owner >= 0)
    order = np.argsort(done.start[on_device], kind="stable")
    start, stop = done.start[on_device][order], np.maximum.accumulate(done.end[on_device][order])
    nothing = _Pieces(*(np.empty(0, np.int64),) * 3, np.empty(0, np.uint8))
    if not len(start):
        return nothing, True
    opens = np.append(True, start[1:] > stop[:-1])
    start, stop = start[opens], stop[np.append(np.flatnonzero(opens)[1:] - 1, len(stop) - 1)]
    first = np.searchsorted(stop, low, side="right")
    n = np.where(high > low, np.maximum(np.searchsorted(start, high, side="left") - first, 0), 0)
    if int(n.sum()) > _MOST_PAIRS:
        return nothing, False
    of, low, high = np.repeat(execution, n), np.repeat(low, n), np.repeat(high, n)
    stretch = np.arange(len(of)) - np.repeat(np.cumsum(n) - n, n) + np.repeat(first, n)
    part = np.full(len(of), Part.QUEUE, np.uint8)
    return _Pieces(of, np.maximum(start[stretch], low), np.minimum(stop[stretch], high), part), True
