"""Executions: the stretches of a thread that work on requests, and which execution each event belongs to.

    thread of a request   ├ BatchingSessionRun ─┬──────────────────────────┤     execution 0
    thread of batches                           └─▶├ ProcessBatch ─────┤         execution 1, of the batch
    device                                              ■■■■■■■                  belongs to execution 1

An event belongs to the execution that encloses it on its thread; else to the one of its group; a kernel to
the one that launched it. What none of these assigns belongs to the execution during which it starts, if
executions follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.stat_rows import events_with, first_ints, marked
from tb_tpuprof.analysis.inference.requests import requests
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.launches import kernel_launches
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
LONGEST_PS = 2**60  # 13 days: what lasts longer is damaged, and sums of it would overflow


@dataclass(frozen=True)
class Executions:
    """One row per request, then one per batch. `row`: the event that marks it; times in ps. `n_requests`: how
    many of them are requests.

    `batch_of`: for each request the execution of its batch, -1 if it has none; `queued_ps`: when it was put
    into the batch's queue.
    """

    row: Rows
    start: Int64s
    end: Int64s
    n_requests: int
    batch_of: Int64s
    queued_ps: Int64s

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def by_row(self) -> Rows:
        """Executions by their events' rows."""
        order: Rows = np.argsort(self.row, kind="stable")
        return order

    @cached_property
    def are_sequential(self) -> bool:
        """Whether no two of them overlap in time."""
        order = np.argsort(self.start, kind="stable")
        return bool((self.start[order][1:] >= self.end[order][:-1]).all())


@once
def executions(trace: Trace) -> Executions:
    """The executions of one host, requests by start."""
    found = requests(trace)
    length = trace.events["duration_ps"]
    request, batch = (usable(trace, rows) for rows in (found.row, found.batch_row))
    request = request[np.argsort(trace.events["start_ps"][request], kind="stable")]
    row = np.concatenate((request, batch)).astype(np.intp)
    start = trace.events["start_ps"][row].astype(np.int64)
    end = start + length[row]
    batch_of, queued = _queued(trace, row, start, end, len(request))
    return Executions(row, start, end, len(request), batch_of, queued)


def usable(trace: Trace, rows: Rows) -> Rows:
    """Without events whose times are damaged."""
    start, length = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    return rows[(length < LONGEST_PS) & (np.abs(start) < LONGEST_PS)]


def _queued(trace: Trace, row: Rows, start: Int64s, end: Int64s, n_requests: int) -> tuple[Int64s, Int64s]:
    """The batch of each request, and when the request was queued for it: the end of the event inside it that
    the batch consumes (`_p` = `_c`). Of several batches, as of a request that was split, the last one.
    """
    batch_of, queued = np.full(n_requests, -1, np.int64), start[:n_requests].copy()
    producer, produced = events_with(trace, "_pt", "_p")
    consumer, consumed = events_with(trace, "_ct", "_c")
    is_batch = np.isin(consumer, row[n_requests:])
    consumer, consumed = consumer[is_batch], consumed[is_batch]
    if not len(consumer) or not len(producer):
        return batch_of, queued
    by_row = n_requests + np.argsort(row[n_requests:], kind="stable")
    execution = by_row[np.searchsorted(row[by_row], consumer)]
    by_key = np.argsort(consumed, kind="stable")
    nearest = np.minimum(np.searchsorted(consumed[by_key], produced), len(consumed) - 1)
    is_match = consumed[by_key][nearest] == produced
    producer, execution = producer[is_match], execution[by_key[nearest[is_match]]]
    request = enclosing(trace, row[:n_requests], producer)
    is_inside = request >= 0
    producer, execution, request = producer[is_inside], execution[is_inside], request[is_inside]
    in_time = (start[execution] < end[request]) & (end[execution] > start[request])
    producer, execution, request = producer[in_time], execution[in_time], request[in_time]
    order = np.lexsort((start[execution], request))
    batch_of[request[order]] = execution[order]
    moment = trace.events["start_ps"][producer] + trace.events["duration_ps"][producer]
    queued[request[order]] = np.minimum(moment[order], end[request[order]])
    return batch_of, queued


def enclosing(trace: Trace, marks: Rows, rows: npt.NDArray[np.integer], order: Rows | None = None) -> Int64s:
    """For each event the index of the mark (events that do not nest) that encloses it on its line, itself
    included; -1 for none. `order`: marks by row, if it is known.
    """
    if not len(marks) or not len(rows):
        return np.full(len(rows), -1, np.int64)
    order = np.argsort(marks, kind="stable") if order is None else order
    ordered = marks[order]
    position = np.searchsorted(ordered, rows, side="right") - 1
    mark = ordered[np.maximum(position, 0)]
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    is_inside = (
        (position >= 0)
        & (trace.lines_at(mark) == trace.lines_at(rows))
        & (start[rows] < start[mark] + duration[mark])
    )
    return np.where(is_inside, order[np.maximum(position, 0)], -1).astype(np.int64)


@dataclass(frozen=True)
class Owners:
    """Assigns events to executions."""

    trace: Trace
    executions: Executions
    of_group: Int64s
    of_kernel: tuple[Int64s, Int64s]

    def of(self, rows: npt.NDArray[np.integer]) -> Int64s:
        """The execution of each event by thread, group or launch; -1 for none."""
        owner = enclosing(self.trace, self.executions.row, rows, self.executions.by_row)
        left = np.flatnonzero(owner < 0)
        group = groups(self.trace).group[rows[left]]
        if len(self.of_group):
            is_known = (group >= 0) & (group < len(self.of_group))
            owner[left] = np.where(is_known, self.of_group[np.where(is_known, group, 0)], -1)
        kernel, by_launch = self.of_kernel
        left = np.flatnonzero(owner < 0)
        if len(kernel) and len(left):
            position = np.minimum(np.searchsorted(kernel, rows[left]), len(kernel) - 1)
            owner[left] = np.where(kernel[position] == rows[left], by_launch[position], -1)
        return owner

    def at(self, owner: Int64s, start: Int64s) -> Int64s:
        """The owners, and for events without one the execution during which they start, if executions follow
        one another.
        """
        marks = self.executions
        if not len(marks) or not marks.are_sequential:
            return owner
        order = np.argsort(marks.start, kind="stable")
        position = np.searchsorted(marks.start[order], start, side="right") - 1
        nearest = order[np.maximum(position, 0)]
        is_during = (owner < 0) & (position >= 0) & (start < marks.end[nearest])
        return np.where(is_during, nearest, owner).astype(np.int64)


@once
def owners(trace: Trace) -> Owners:
    """How events of one host are assigned to executions."""
    return owners_among(trace, executions(trace))


def owners_among(trace: Trace, marks: Executions) -> Owners:
    """How events of one host are assigned to the given executions, which do not nest."""
    launches = kernel_launches(trace)
    launch_owner = enclosing(trace, marks.row, launches.launch, marks.by_row)
    order = np.argsort(launches.kernel, kind="stable")
    kernel, by_launch = launches.kernel[order], launch_owner[order]
    is_owned = by_launch >= 0
    return Owners(trace, marks, _group_owners(trace, marks), (kernel[is_owned], by_launch[is_owned]))


def _group_owners(trace: Trace, marks: Executions) -> Int64s:
    """The execution of each group: the one in which the group begins, -1 for none. Of a user's step around
    it, an execution is only a part.
    """
    group = groups(trace).group
    roots = marked(np.concatenate((marks.row, first_ints(trace, "_r")[0])), trace.n_events)
    execution = enclosing(trace, marks.row, roots, marks.by_row)
    above, own = parents(trace)[roots], group[roots].astype(np.int64)
    begins = (execution >= 0) & (own >= 0) & ((above < 0) | (group[above] != own))
    result = np.full(int(own.max(initial=-1)) + 1, -1, np.int64)
    result[own[begins]] = execution[begins]
    return result
