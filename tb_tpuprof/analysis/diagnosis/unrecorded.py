"""Unrecorded time: its place in the step, by the events of the step's thread before and after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.records import DEVICE_WORK, Gap
from tb_tpuprof.analysis.events.kernel_names import short_name
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces, no_pieces
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_MOST = 3
_SHORT_PS = 300 * 10**6
_MOST_CODES = 500


class _Gaps(NamedTuple):
    """One row per stretch of unrecorded time: its span, the pieces before and after it (-1 for none), its
    step.
    """

    begin: Int64s
    end: Int64s
    before: Int64s
    after: Int64s
    step: Int64s


@once
def gaps(trace: Trace) -> tuple[Gap, ...]:
    """Unrecorded time in a host's steps by place, the longest places first."""
    pieces, table = _all_gaps(trace)
    return _by_place(trace, pieces, table, len(step_pieces(trace)[0])) if len(table.begin) else ()


@once
def short_gaps(trace: Trace) -> Int64s:
    """Unrecorded time of each step in short gaps between two events: where calls are many, their cost."""
    _pieces, table = _all_gaps(trace)
    length = table.end - table.begin
    short = (length <= _SHORT_PS) & (table.before >= 0) & (table.after >= 0)
    return np.bincount(table.step[short], weights=length[short], minlength=len(step_pieces(trace)[0])).astype(
        np.int64
    )


@once
def _all_gaps(trace: Trace) -> tuple[Pieces, _Gaps]:
    """All unrecorded time of the steps, and the pieces around it."""
    steps, pieces = step_pieces(trace)
    none = np.empty(0, np.int64)
    no_gaps = no_pieces(), _Gaps(none, none, none, none, none)
    if pieces is None or not len(steps):
        return no_gaps
    pieces = pieces.spread(np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 0, -1))
    if not len(pieces):
        return no_gaps
    order = np.lexsort((pieces.start, pieces.step))
    step, start = pieces.step[order], pieces.start[order]
    # When everything that began earlier has ended, step by step.
    overlap = (steps.start_ps[1:] < (steps.start_ps + steps.duration_ps)[:-1]).any()
    offset = (
        step * (int(steps.duration_ps.max()) + 1) - steps.start_ps[step]
        if overlap
        else np.zeros(len(step), np.int64)
    )
    reached = np.maximum.accumulate(pieces.end[order] + offset) - offset
    until = order[
        np.maximum.accumulate(np.where(pieces.end[order] == reached, np.arange(len(order)), 0))
    ]  # the piece that ends then
    first = np.append(True, step[1:] != step[:-1])
    last = np.append(step[1:] != step[:-1], True)
    gap_start = np.where(first, steps.start_ps[step], np.append(0, reached[:-1]))
    column_parts = [(gap_start, start, np.where(first, -1, np.append(-1, until[:-1])), order, step)]
    column_parts.append(
        (
            reached[last],
            (steps.start_ps + steps.duration_ps)[step[last]],
            until[last],
            np.full(int(last.sum()), -1),
            step[last],
        )
    )
    all_gaps = _Gaps(*(np.concatenate(columns) for columns in zip(*column_parts, strict=True)))
    return pieces, _Gaps(*(column[all_gaps.end > all_gaps.begin] for column in all_gaps))


def _by_place(trace: Trace, pieces: Pieces, table: _Gaps, n_steps: int) -> tuple[Gap, ...]:
    begin, end, before, after, step = table
    size = 2 * (len(trace.metadata) + 1)
    code = _codes(trace, pieces, before, pieces.last) * size + _codes(trace, pieces, after, pieces.event)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    total = np.bincount(place, weights=end - begin, minlength=len(first))
    by_name: dict[tuple[str, str], list[int]] = {}
    for place_number in np.argsort(-total, kind="stable")[:_MOST_CODES].tolist():
        key = (
            _name(trace, pieces, int(before[first[place_number]]), pieces.last),
            _name(trace, pieces, int(after[first[place_number]]), pieces.event),
        )
        by_name.setdefault(key, []).append(place_number)
    longest = sorted(by_name.items(), key=lambda pair: -float(total[pair[1]].sum()))[:_MOST]
    longest_gaps = []
    for key, codes in longest:
        rows = np.flatnonzero(np.isin(place, codes))
        time = np.bincount(step[rows], weights=(end - begin)[rows], minlength=n_steps).astype(np.int64)
        top = int(rows[(end - begin)[rows].argmax()])
        longest_gaps.append(Gap(*key, time, int(begin[top]), int(end[top])))
    return tuple(longest_gaps)


def _codes(trace: Trace, pieces: Pieces, piece: Int64s, event: Int64s) -> Int64s:
    """A code per piece, equal for pieces with one name; 0 for none."""
    row = trace.events["metadata"][event[piece]].astype(np.int64)
    is_device = (pieces.named[piece] < 0) & (pieces.thread_class[piece] > TimeClass.HOST_COMPUTE)
    return np.where(piece < 0, 0, 2 * (row + 1) + is_device)


def _name(trace: Trace, pieces: Pieces, piece: int, event: Int64s) -> str:
    """The name of a piece: a program or operation, without numbers that differ between calls."""
    if piece < 0:
        return ""
    text = trace.strings.get(int(trace.metadata["name"][trace.events["metadata"][event[piece]]]))
    if pieces.named[piece] < 0 and pieces.thread_class[piece] > TimeClass.HOST_COMPUTE:
        return short_name(text)
    return DEVICE_WORK if text.startswith("ThreadpoolListener") else text.removeprefix("$")
