"""Work that XLA:CPU's operations hand to the thread pool: which operation each task belongs to, when it
ended, how long threads worked.

launcher   ├─dot──┬─────┤              an operation records tasks (`ThreadpoolListener::Record`, id `_p`),
pool                └▶├─task──┬──┤     threads run them as regions (`StartRegion`, `_c`), and these record
further tasks
pool                          └▶├─task─┬─ next operation ─ … ┤
                                       ▲ a task ends where the continuation of the program begins inside it:
                                       whoever
                                         finishes an operation last goes on with the next one on the same
                                         thread
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
_MOST_HOPS = 64  # of doublings: chains of 2^64 tasks


@dataclass(frozen=True)
class PoolWork:
    """Per launch. `end_ps`: when the last of its tasks ended, 0 without tasks. `thread_ps`: time that threads
    worked on it.

    `n_tasks`: tasks that it handed to the pool; `n_lost`: those that no thread was seen to start. (All
    threads were busy until the operation had ended, or the capture.)
    """

    end_ps: Int64s
    thread_ps: Int64s
    n_tasks: Int64s
    n_lost: Int64s


@dataclass(frozen=True)
class _Nested:
    """Events that matter, nested: launches, regions, records, what goes on after an operation, waits."""

    rows: Rows
    kind: npt.NDArray[np.uint8]
    start: Int64s
    end: Int64s
    parent: Int64s
    self_ps: Int64s

    def at(self, rows: Rows) -> Int64s:
        """Places of events that are among them."""
        return values_at(rows, self.rows.astype(np.int32), np.arange(len(self.rows)), len(self.rows))


def pool_work(trace: Trace, ops: CpuEvents) -> PoolWork:
    """The tasks of each launch (see the picture). A thread that waits (`Await`, `Wait…`) does not work."""
    nested = _nested(trace, ops)
    n = len(nested.rows)
    task_rows = regions(trace).event
    tasks = nested.at(task_rows)
    own_end = nested.end.copy()
    goes_on = np.flatnonzero((nested.kind == _GOES_ON) | (nested.kind == _OP))
    inside = nested.parent[goes_on]
    in_task = inside >= 0
    in_task[in_task] = nested.kind[inside[in_task]] == _TASK
    np.minimum.at(own_end, inside[in_task], nested.start[goes_on[in_task]])
    op_of = np.full(n, -1, np.int64)
    op_of[nested.at(ops.event)] = np.arange(len(ops))
    record_rows = nested.rows[nested.kind == _RECORDED]
    owner, parent_task = _recorders(nested, nested.at(record_rows), op_of, own_end)
    record_of_task, lost = _started(trace, record_rows, task_rows)
    task_of = np.full(n, -1, np.int64)
    task_of[tasks] = np.arange(len(tasks))
    known = record_of_task >= 0
    task_owner, above = np.full(len(tasks), -1, np.int64), np.full(len(tasks), -1, np.int64)
    task_owner[known] = owner[record_of_task[known]]
    mother = parent_task[record_of_task[known]]
    above[known] = np.where(mother >= 0, task_of[mother], -1)
    task_owner = _resolved(task_owner, above)
    through = parent_task >= 0
    owner[through] = task_owner[task_of[parent_task[through]]]
    return _summed(ops, nested, tasks, own_end, (task_owner, owner, lost))


def _nested(trace: Trace, ops: CpuEvents) -> _Nested:
    task = regions(trace)
    kinds = [(ops.event, _OP), (task.event, _TASK), (events_named(trace, (_RECORD,)), _RECORDED)]
    for prefixes, number in (((*_EXECUTORS, END_MARK), _GOES_ON), (_WAITS, _WAIT)):
        wanted = named_like(trace, *prefixes).view(np.uint8)
        kinds.append((rows_of(trace.events["metadata"], wanted).astype(np.intp), number))
    kind_of = np.full(trace.n_events, _NO_KIND, np.uint8)
    for found, number in reversed(kinds):
        kind_of[found] = number
    rows = np.flatnonzero(kind_of != _NO_KIND)
    kind = kind_of[rows]
    start = trace.events["start_ps"][rows]
    end = start + trace.events["duration_ps"][rows]
    end[np.searchsorted(rows, task.event)] = np.maximum(task.end_ps, trace.events["start_ps"][task.event])
    offsets = np.searchsorted(rows, trace.line_offsets).astype(np.int64)
    parent, self_ps = nest(start, end, offsets)
    parent = parent.astype(np.int64)
    is_wait = kind == _WAIT
    kind[is_wait & (parent >= 0) & is_wait[parent]] = _INNER_WAIT
    for _ in range(_MOST_HOPS):  # what lies inside a wait belongs to who waits
        waits = parent >= 0
        waits[waits] = is_wait[parent[waits]]
        if not waits.any():
            break
        parent[waits] = parent[parent[waits]]
    return _Nested(rows, kind, start, end, parent, self_ps)


def _recorders(nested: _Nested, records: Int64s, op_of: Int64s, own_end: Int64s) -> tuple[Int64s, Int64s]:
    """The launch around each record, and the task (place) in whose own part it lies; -1 for none."""
    around = nested.parent[records]
    inside = around >= 0
    owner = np.where(inside, op_of[around], -1)
    in_task = inside & (nested.kind[around] == _TASK) & (nested.start[records] <= own_end[around])
    return owner, np.where(in_task, around, -1)


def _started(trace: Trace, records: Rows, tasks: Rows) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Which record (index) each task comes from, -1 unknown, and which records no traced task comes from."""
    made = values_at(records, *events_with(trace, "_pt", "_p"), 0)
    used = values_at(tasks, *events_with(trace, "_ct", "_c"), -1)
    order = np.argsort(made, kind="stable")
    at = np.searchsorted(made[order], used)
    found = at < len(order)
    found[found] = made[order][at[found]] == used[found]
    result = np.full(len(tasks), -1, np.int64)
    result[found] = order[at[found]]
    lost = np.ones(len(records), np.bool_)
    lost[result[found]] = False
    return result, lost


def _resolved(owner: Int64s, above: Int64s) -> Int64s:
    """The launch of each task through the tasks that recorded it (pointer doubling)."""
    for _ in range(_MOST_HOPS):
        open_ = np.flatnonzero((owner < 0) & (above >= 0))
        if not len(open_):
            break
        owner[open_], above[open_] = owner[above[open_]], above[above[open_]]
    return owner


def _summed(
    ops: CpuEvents,
    nested: _Nested,
    tasks: Int64s,
    own_end: Int64s,
    owners: tuple[Int64s, Int64s, npt.NDArray[np.bool_]],
) -> PoolWork:
    """Add up the tasks of each launch."""
    task_owner, record_owner, lost = owners
    n = len(ops)
    waits = np.flatnonzero(nested.kind == _WAIT)
    around = nested.parent[waits]
    inside = around >= 0
    inside[inside] = nested.start[waits[inside]] < own_end[around[inside]]
    waited = np.zeros(len(nested.rows), np.int64)
    np.add.at(waited, around[inside], (nested.end - nested.start)[waits[inside]])
    mine = np.flatnonzero(task_owner >= 0)
    end, thread = np.zeros(n, np.int64), nested.self_ps[nested.at(ops.event)].copy()
    np.maximum.at(end, task_owner[mine], own_end[tasks[mine]])
    worked = own_end[tasks[mine]] - nested.start[tasks[mine]] - waited[tasks[mine]]
    np.add.at(thread, task_owner[mine], np.maximum(worked, 0))
    has = record_owner >= 0
    n_tasks = np.bincount(record_owner[has], minlength=n).astype(np.int64)
    n_lost = np.bincount(record_owner[has & lost], minlength=n).astype(np.int64)
    return PoolWork(end, thread, n_tasks, n_lost)
