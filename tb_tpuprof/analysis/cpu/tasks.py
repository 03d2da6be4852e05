"""Tasks that XLA:CPU's operations hand to the thread pool: the operation of each task, when it ended, how
long threads worked.

launcher   ├─dot──┬─────┤              an operation records tasks (`ThreadpoolListener::Record`, id `_p`),
pool                └▶├─task──┬──┤     threads run them as regions (`StartRegion`, `_c`) that record more
pool                          └▶├─task─┬─ next operation ─ … ┤
                                       ▲ a task ends where the program continues inside it: the thread that
                                         finishes an operation last goes on with the next one
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import END_MARK, CpuEvents, named_like
from tb_tpuprof.analysis.events.nesting import regions
from tb_tpuprof.analysis.events.stat_rows import events_named, events_with, values_at
from tb_tpuprof.native import nest, rows_of
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_RECORD = "ThreadpoolListener::Record"
_EXECUTORS = ("ThunkExecutor::",)
_WAITS = ("SlinkyThreadPool::Await", "Wait")
_OP, _TASK, _RECORDED, _GOES_ON, _WAIT, _INNER_WAIT = range(6)
_NO_KIND = 255
_MOST_HOPS = 64  # each doubles the distance: chains of 2^64 tasks


@dataclass(frozen=True)
class PoolWork:
    """Per launch. `end_ps`: when its last task ended, 0 without tasks. `thread_ps`: time that threads worked
    on it.

    `n_tasks`: tasks that it handed to the pool; `n_lost`: those without a traced start, because all threads
    were busy until the operation or the capture had ended.
    """

    end_ps: Int64s
    thread_ps: Int64s
    n_tasks: Int64s
    n_lost: Int64s


@dataclass(frozen=True)
class _Nested:
    """The relevant events, nested: launches, regions, records, continuations after an operation, waits."""

    rows: Rows
    kind: npt.NDArray[np.uint8]
    start: Int64s
    end: Int64s
    parent: Int64s
    self_ps: Int64s

    def at(self, rows: Rows) -> Int64s:
        """Index of each event among them."""
        return values_at(rows, self.rows.astype(np.int32), np.arange(len(self.rows)), len(self.rows))


def pool_work(trace: Trace, ops: CpuEvents) -> PoolWork:
    """The tasks of each launch (see the drawing). A thread that waits (`Await`, `Wait…`) does not work."""
    nested = _nested(trace, ops)
    n = len(nested.rows)
    task_rows = regions(trace).event
    tasks = nested.at(task_rows)
    task_end = nested.end.copy()
    continuations = np.flatnonzero((nested.kind == _GOES_ON) | (nested.kind == _OP))
    enclosing = nested.parent[continuations]
    in_task = enclosing >= 0
    in_task[in_task] = nested.kind[enclosing[in_task]] == _TASK
    np.minimum.at(task_end, enclosing[in_task], nested.start[continuations[in_task]])
    launches = nested.at(ops.event)
    op_of = np.full(n, -1, np.int64)
    op_of[launches] = np.arange(len(ops))
    record_rows = nested.rows[nested.kind == _RECORDED]
    owner, parent_task = _recorders(nested, nested.at(record_rows), op_of, task_end)
    record_of_task, lost = _started(trace, record_rows, task_rows)
    task_of = np.full(n, -1, np.int64)
    task_of[tasks] = np.arange(len(tasks))
    has_record = record_of_task >= 0
    task_owner, parent_of_task = np.full(len(tasks), -1, np.int64), np.full(len(tasks), -1, np.int64)
    task_owner[has_record] = owner[record_of_task[has_record]]
    recording_task = parent_task[record_of_task[has_record]]
    parent_of_task[has_record] = np.where(recording_task >= 0, task_of[recording_task], -1)
    task_owner = _resolved(task_owner, parent_of_task)
    recorded_in_task = parent_task >= 0
    owner[recorded_in_task] = task_owner[task_of[parent_task[recorded_in_task]]]
    return _summed(nested, (launches, tasks), task_end, (task_owner, owner, lost))


def _nested(trace: Trace, ops: CpuEvents) -> _Nested:
    pool_regions = regions(trace)
    kinds = [(ops.event, _OP), (pool_regions.event, _TASK), (events_named(trace, (_RECORD,)), _RECORDED)]
    for prefixes, kind_code in (((*_EXECUTORS, END_MARK), _GOES_ON), (_WAITS, _WAIT)):
        has_prefix = named_like(trace, *prefixes).view(np.uint8)
        kinds.append((rows_of(trace.events["metadata"], has_prefix).astype(np.intp), kind_code))
    kind_of = np.full(trace.n_events, _NO_KIND, np.uint8)
    for events, kind_code in reversed(kinds):
        kind_of[events] = kind_code
    rows = np.flatnonzero(kind_of != _NO_KIND)
    kind = kind_of[rows]
    start = trace.events["start_ps"][rows]
    end = start + trace.events["duration_ps"][rows]
    end[np.searchsorted(rows, pool_regions.event)] = np.maximum(
        pool_regions.end_ps, trace.events["start_ps"][pool_regions.event]
    )
    offsets = np.searchsorted(rows, trace.line_offsets).astype(np.int64)
    parent, self_ps = nest(start, end, offsets)
    parent = parent.astype(np.int64)
    is_wait = kind == _WAIT
    kind[is_wait & (parent >= 0) & is_wait[parent]] = _INNER_WAIT
    for _ in range(_MOST_HOPS):  # events inside a wait belong to the event that waits
        in_wait = parent >= 0
        in_wait[in_wait] = is_wait[parent[in_wait]]
        if not in_wait.any():
            break
        parent[in_wait] = parent[parent[in_wait]]
    return _Nested(rows, kind, start, end, parent, self_ps)


def _recorders(nested: _Nested, records: Int64s, op_of: Int64s, task_end: Int64s) -> tuple[Int64s, Int64s]:
    """The launch around each record, and the task (index) that recorded it before the task's end; -1 for
    none.
    """
    enclosing = nested.parent[records]
    is_enclosed = enclosing >= 0
    owner = np.where(is_enclosed, op_of[enclosing], -1)
    in_task = is_enclosed & (nested.kind[enclosing] == _TASK) & (nested.start[records] <= task_end[enclosing])
    return owner, np.where(in_task, enclosing, -1)


def _started(trace: Trace, records: Rows, tasks: Rows) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """The record (index) that each task comes from, -1 if unknown; and for each record, whether no traced
    task comes from it.
    """
    produced_key = values_at(records, *events_with(trace, "_pt", "_p"), 0)
    consumed_key = values_at(tasks, *events_with(trace, "_ct", "_c"), -1)
    order = np.argsort(produced_key, kind="stable")
    position = np.searchsorted(produced_key[order], consumed_key)
    is_match = position < len(order)
    is_match[is_match] = produced_key[order][position[is_match]] == consumed_key[is_match]
    result = np.full(len(tasks), -1, np.int64)
    result[is_match] = order[position[is_match]]
    lost = np.ones(len(records), np.bool_)
    lost[result[is_match]] = False
    return result, lost


def _resolved(owner: Int64s, parent: Int64s) -> Int64s:
    """The launch of each task, followed through the tasks that recorded it (pointer doubling)."""
    for _ in range(_MOST_HOPS):
        unresolved = np.flatnonzero((owner < 0) & (parent >= 0))
        if not len(unresolved):
            break
        owner[unresolved], parent[unresolved] = owner[parent[unresolved]], parent[parent[unresolved]]
    return owner


def _summed(
    nested: _Nested,
    launches_and_tasks: tuple[Int64s, Int64s],
    task_end: Int64s,
    owners: tuple[Int64s, Int64s, npt.NDArray[np.bool_]],
) -> PoolWork:
    """Sum the tasks of each launch. `launches_and_tasks`: indexes of both among the nested events."""
    launches, tasks = launches_and_tasks
    task_owner, record_owner, lost = owners
    n = len(launches)
    waits = np.flatnonzero(nested.kind == _WAIT)
    enclosing = nested.parent[waits]
    counts = enclosing >= 0
    counts[counts] = nested.start[waits[counts]] < task_end[enclosing[counts]]
    waited = np.zeros(len(nested.rows), np.int64)
    np.add.at(waited, enclosing[counts], (nested.end - nested.start)[waits[counts]])
    owned = np.flatnonzero(task_owner >= 0)
    end, thread = np.zeros(n, np.int64), nested.self_ps[launches]
    np.maximum.at(end, task_owner[owned], task_end[tasks[owned]])
    worked = task_end[tasks[owned]] - nested.start[tasks[owned]] - waited[tasks[owned]]
    np.add.at(thread, task_owner[owned], np.maximum(worked, 0))
    has_owner = record_owner >= 0
    n_tasks = np.bincount(record_owner[has_owner], minlength=n).astype(np.int64)
    n_lost = np.bincount(record_owner[has_owner & lost], minlength=n).astype(np.int64)
    return PoolWork(end, thread, n_tasks, n_lost)
