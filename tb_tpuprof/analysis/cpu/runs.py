"""The runs of XLA:CPU's operations: from when to when each ran, what of that was its own, and how long
threads worked on it.

The one source of times of XLA:CPU's operations. XLA splits a dot, a convolution or a fusion over its thread
pool; the event of the operation covers only the share of the thread that launched it, and the mark of its end
is set when somebody notices, which can be after the whole rest of the program:

    launcher   ├─dot──┤  ├───────── waits ─────────┤          event too short
    pool         ├─task──┬─tanh──┬─dot.1────┬──┤              mark too late (▲)
                         │                      ▲ end: dot
                         └ real end: the task of dot is over, and tanh, which reads it, starts

So the end of a run is
    the end of its last task, where all tasks are traced; of its children, where it runs other operations
    (while, call); else its event's end where nothing else is known of it, but never after its mark, the start
    of an operation that reads its result, its next launch, or the end of the program's run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.bounds import Structure, latest_end, structure
from tb_tpuprof.analysis.cpu.events import NEVER, CpuEvents, cpu_events
from tb_tpuprof.analysis.cpu.tasks import PoolWork, pool_work
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, marked
from tb_tpuprof.native import charged
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_DEEPEST = 64  # loops in loops


@dataclass(frozen=True)
class CpuRuns:
    """One row per run of an operation, in order of launch events. Times in ps.

    `event`: its (first) launch; `text`, `op`, `device`: as in CpuEvents. `elapsed_ps`: from launch to end;
    `self_ps`: without the time in which operations that it runs were running; `thread_ps`: time that all
    threads together worked on it, -1 where not all is traced. `span_ps`: from the first launch to the last
    end, summed over devices; `n_devices` of them.
    """

    event: Rows
    text: Int64s
    op: Int64s
    device: Int64s
    start_ps: Int64s
    end_ps: Int64s
    elapsed_ps: Int64s
    self_ps: Int64s
    thread_ps: Int64s
    span_ps: int
    n_devices: int

    def __len__(self) -> int:
        return len(self.event)


@once
def cpu_runs(trace: Trace) -> CpuRuns:
    """All runs of XLA:CPU's operations; none where the trace has an accelerator."""
    if planes(trace).has_device or not trace.event_stats.has("hlo_op"):
        none = np.empty(0, np.int64)
        return CpuRuns(none.astype(np.intp), none, none, none, none, none, none, none, none, 0, 0)
    ops = cpu_events(trace)
    links = hlo_links(trace)
    found = structure(trace, links, marked(ops.op[ops.op >= 0], len(links)))
    work = pool_work(trace, ops)
    parent = _parents(trace, ops, found, len(links))
    end = _ends(ops, work, latest_end(trace, ops, found, max(len(links), 1)), parent)
    elapsed = end - ops.start_ps
    self_ps = elapsed - _covered(ops.start_ps, end, parent)
    thread = work.thread_ps if _tells_threads(ops, work) else np.full(len(ops), -1, np.int64)
    return _merged(ops, (end, elapsed, self_ps, thread), _run_numbers(ops, found, max(len(links), 1)))


def _tells_threads(ops: CpuEvents, work: PoolWork) -> bool:
    """Whether the trace says which threads took part: an XLA that marks ends records tasks too, and some of
    these were seen to run.
    """
    n_tasks = int(work.n_tasks.sum())
    return bool((ops.marked_ps < NEVER).any()) and (n_tasks == 0 or int(work.n_lost.sum()) < n_tasks)


def _parents(trace: Trace, ops: CpuEvents, found: Structure, n_ops: int) -> Int64s:
    """The launch of the operation that runs each one's computation (while, call), -1 for none.

    By the HLO, the latest such launch in the same execution; where no HLO tells, the launch around it on its
    thread.
    """
    parent = np.full(len(ops), -1, np.int64)
    unknown = (
        (ops.op < 0) | (found.computation[ops.op] < 0)
        if len(found.computation)
        else np.ones(len(ops), np.bool_)
    )
    if unknown.any():
        parent[unknown] = nest_rows(trace, ops.event)[0][unknown]
    asks = np.flatnonzero(~unknown & (ops.execution >= 0))
    asks = asks[found.container[ops.op[asks]] >= 0]
    inner = found.container[ops.op[asks]]
    launched = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    launched = launched[np.isin(ops.op[launched], np.unique(inner))] if len(asks) else launched[:0]
    own, wanted = ops.execution[launched] * n_ops + ops.op[launched], ops.execution[asks] * n_ops + inner
    own_codes, place = np.unique(own, return_inverse=True)
    at = np.searchsorted(own_codes, wanted)
    found_one = at < len(own_codes)
    found_one[found_one] = own_codes[at[found_one]] == wanted[found_one]
    asks, at = asks[found_one], at[found_one]
    # Most containers ran once in an execution; of several launches the last one before the operation counts.
    first = np.full(len(own_codes), -1, np.int64)
    first[place] = launched
    parent[asks] = first[at]
    several = np.flatnonzero((np.bincount(place, minlength=len(own_codes)) > 1)[at])
    if len(several):
        parent[asks[several]] = _latest_before(ops, launched, place, asks[several], at[several])
    parent[(parent >= 0) & (ops.start_ps[parent] > ops.start_ps)] = -1
    return parent


def _latest_before(ops: CpuEvents, launched: Int64s, place: Int64s, asks: Int64s, wanted: Int64s) -> Int64s:
    """Of the launches with the wanted place the last one that starts before each asking launch,
    -1 for none.
    """
    keys = np.concatenate((place, wanted))
    is_question = np.repeat([0, 1], [len(launched), len(asks)])
    order = np.lexsort((is_question, np.concatenate((ops.start_ps[launched], ops.start_ps[asks])), keys))
    before = np.maximum.accumulate(np.where(is_question[order] == 0, np.arange(len(order)), -1))
    at = np.flatnonzero((is_question[order] == 1) & (before >= 0))
    at = at[keys[order[before[at]]] == keys[order[at]]]
    result = np.full(len(asks), -1, np.int64)
    result[order[at] - len(launched)] = launched[order[before[at]]]
    return result


def _ends(ops: CpuEvents, work: PoolWork, latest: Int64s, parent: Int64s) -> Int64s:
    """When each run ended (see the module's picture)."""
    has_children = np.zeros(len(ops), np.bool_)
    has_children[parent[parent >= 0]] = True
    at_least = np.maximum(ops.stop_ps, work.end_ps)
    unclear = (work.n_tasks > 0) & (work.n_lost == work.n_tasks) & (latest < NEVER)
    end = np.where(unclear, latest, np.minimum(at_least, latest))
    end = np.where(_ends_elsewhere(ops, work, has_children), np.where(latest < NEVER, latest, end), end)
    depth = _depths(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        mine = np.flatnonzero(depth == level)
        np.maximum.at(end, parent[mine], end[mine])
        np.minimum(end, np.maximum(latest, ops.start_ps), out=end)
    return np.maximum(end, ops.start_ps)


def _ends_elsewhere(
    ops: CpuEvents, work: PoolWork, has_children: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Operations that run others have no tasks of their own, nor have those that wait for another device."""
    is_marked = (ops.marked_ps < NEVER) & (ops.marked_ps > ops.stop_ps)
    found: npt.NDArray[np.bool_] = (work.n_tasks == 0) & ~has_children & is_marked
    return found


def _depths(parent: Int64s) -> Int64s:
    """How many launches are around each."""
    depth = np.zeros(len(parent), np.int64)
    above = parent.copy()
    for _ in range(_DEEPEST):
        open_ = np.flatnonzero(above >= 0)
        if not len(open_):
            break
        depth[open_] += 1
        above[open_] = parent[above[open_]]
    return depth


def _covered(start: Int64s, end: Int64s, parent: Int64s) -> Int64s:
    """Time of each run in which any of those directly inside it ran."""
    inner = np.flatnonzero(parent >= 0)
    covered = np.zeros((len(start), 2), np.int64)
    if len(inner):
        events = start[inner], end[inner], np.ones(len(inner), np.uint8), parent[inner]
        charged(events, np.argsort(start[inner], kind="stable").astype(np.int64), (start, end), covered)
    total: Int64s = covered[:, 1]
    return total


def _run_numbers(ops: CpuEvents, found: Structure, n_ops: int) -> Int64s:
    """Number of the run that each launch belongs to: XLA can make several thunks of one instruction (a sort:
    a copy and a sort).

    An instruction of the entry computation runs once per execution. Others run as often as their computation;
    an operation that was launched k times as often as the rarest one of its computation has k thunks.
    """
    number = np.arange(len(ops))
    known = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    if len(known):
        known = known[found.computation[ops.op[known]] >= 0]
    if not len(known):
        return number
    op = ops.op[known]
    key = ops.execution[known] * n_ops + op
    codes, at = distinct_codes(key)
    count = np.bincount(at, minlength=len(codes))
    if int(count.max()) == 1:
        return number
    execution, of_code = np.divmod(codes, n_ops)
    place, of_place = np.unique(
        execution * (int(found.computation.max()) + 1) + found.computation[of_code], return_inverse=True
    )
    rarest = np.full(len(place), NEVER, np.int64)
    np.minimum.at(rarest, of_place, count)
    runs = np.where(found.is_entry[of_code], 1, rarest[of_place])
    n_thunks = np.maximum(np.rint(count / runs).astype(np.int64), 1)
    doubled = np.flatnonzero((n_thunks > 1)[at])
    if not len(doubled):
        return number
    rows, at = known[doubled], at[doubled]
    order = np.lexsort((ops.start_ps[rows], at))
    rows, at = rows[order], at[order]
    begins = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    head = rank % n_thunks[at] == 0
    number[rows] = rows[head][np.cumsum(head) - 1]
    return number


def _merged(ops: CpuEvents, times: tuple[Int64s, ...], number: Int64s) -> CpuRuns:
    """Launches of one run put together: their times add up."""
    end, elapsed, self_ps, thread = times
    heads = np.flatnonzero(number == np.arange(len(number)))
    n = len(heads)
    if n < len(number):
        at = np.searchsorted(heads, number)
        sums = [np.zeros(n, np.int64) for _ in range(3)]
        for total, values in zip(sums, (elapsed, self_ps, np.maximum(thread, 0)), strict=True):
            np.add.at(total, at, values)
        is_known = np.ones(n, np.bool_)
        is_known[at[thread < 0]] = False
        last = np.zeros(n, np.int64)
        np.maximum.at(last, at, end)
        end, elapsed, self_ps, thread = last, sums[0], sums[1], np.where(is_known, sums[2], -1)
    start, device = ops.start_ps[heads], ops.device[heads]
    _, of = distinct_codes(device)
    n_devices = int(of.max(initial=-1)) + 1
    first, final = np.full(n_devices, NEVER, np.int64), np.zeros(n_devices, np.int64)
    np.minimum.at(first, of, start)
    np.maximum.at(final, of, end)
    return CpuRuns(
        ops.event[heads], ops.text[heads], ops.op[heads], device, start, end, elapsed, self_ps, thread,
        int((final - first).sum()), n_devices,
    )  # fmt: skip
