"""The runs of XLA:CPU's operations: start, end, self time and thread time of each.

The only source of times of XLA:CPU's operations. XLA splits a dot, a convolution or a fusion over its thread
pool. The operation's event covers only the share of the thread that launched it, and its end mark is set when
some thread notices, possibly after the whole rest of the program:

    launcher   ├─dot──┤  ├───────── waits ─────────┤          event too short
    pool         ├─task──┬─tanh──┬─dot.1────┬──┤              mark too late (▲)
                         │                      ▲ end: dot
                         └ real end: the task of dot is over, and tanh, which reads it, starts

So a run ends with its last task, if all tasks are traced; with its last child, if it runs other operations
(while, call); else with its event. But it ends no later than its mark, the start of an operation that reads
its result, its next launch, or the end of the program's run.
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
from tb_tpuprof.analysis.events.stat_rows import distinct, distinct_codes, marked
from tb_tpuprof.native import charged
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_DEEPEST = 64  # loops in loops


@dataclass(frozen=True)
class CpuRuns:
    """One row per run of an operation, in order of launch events. Times in ps.

    `event`: its (first) launch; `text`, `op`, `device`: as in CpuEvents. `elapsed_ps`: from launch to end;
    `self_ps`: without the time of operations that it runs; `thread_ps`: time that all threads together worked
    on it, -1 if not all are traced. `span_ps`: from the first launch to the last end, summed over the
    `n_devices` devices.
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
    """All runs of XLA:CPU's operations; none if the trace has an accelerator."""
    if planes(trace).has_device or not trace.event_stats.has("hlo_op"):
        empty = np.empty(0, np.int64)
        return CpuRuns(empty.astype(np.intp), empty, empty, empty, empty, empty, empty, empty, empty, 0, 0)
    ops = cpu_events(trace)
    links = hlo_links(trace)
    hlo = structure(trace, links, marked(ops.op[ops.op >= 0], len(links)))
    work = pool_work(trace, ops)
    parent = _parents(trace, ops, hlo, len(links))
    end = _ends(ops, work, latest_end(trace, ops, hlo, max(len(links), 1)), parent)
    elapsed = end - ops.start_ps
    self_ps = elapsed - _covered(ops.start_ps, end, parent)
    thread = work.thread_ps if _has_thread_times(ops, work) else np.full(len(ops), -1, np.int64)
    return _merged(ops, (end, elapsed, self_ps, thread), _run_numbers(ops, hlo, max(len(links), 1)))


def _has_thread_times(ops: CpuEvents, work: PoolWork) -> bool:
    """Whether the trace shows which threads took part: an XLA that marks ends also records tasks, and some of
    these must have a traced run.
    """
    n_tasks = int(work.n_tasks.sum())
    return bool((ops.marked_ps < NEVER).any()) and (n_tasks == 0 or int(work.n_lost.sum()) < n_tasks)


def _parents(trace: Trace, ops: CpuEvents, hlo: Structure, n_ops: int) -> Int64s:
    """For each launch, the launch of the operation that runs its computation (while, call), -1 for none.

    By the HLO: the latest such launch in the same execution. Without HLO: the enclosing launch on its thread.
    """
    parent = np.full(len(ops), -1, np.int64)
    unknown = (
        (ops.op < 0) | (hlo.computation[ops.op] < 0) if len(hlo.computation) else np.ones(len(ops), np.bool_)
    )
    if unknown.any():
        parent[unknown] = nest_rows(trace, ops.event)[0][unknown]
    contained = np.flatnonzero(~unknown & (ops.execution >= 0))
    contained = contained[hlo.container[ops.op[contained]] >= 0]
    container = hlo.container[ops.op[contained]]
    launched = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    launched = launched[np.isin(ops.op[launched], np.unique(container))] if len(contained) else launched[:0]
    launched_key, container_key = (
        ops.execution[launched] * n_ops + ops.op[launched],
        ops.execution[contained] * n_ops + container,
    )
    distinct_keys, key_of_launched = np.unique(launched_key, return_inverse=True)
    position = np.searchsorted(distinct_keys, container_key)
    is_launched = position < len(distinct_keys)
    is_launched[is_launched] = distinct_keys[position[is_launched]] == container_key[is_launched]
    contained, position = contained[is_launched], position[is_launched]
    # Most containers ran once per execution; of several launches the last one before the operation is the
    # parent.
    last_launch = np.full(len(distinct_keys), -1, np.int64)
    last_launch[key_of_launched] = launched
    parent[contained] = last_launch[position]
    several = np.flatnonzero((np.bincount(key_of_launched, minlength=len(distinct_keys)) > 1)[position])
    if len(several):
        parent[contained[several]] = _latest_before(
            ops, launched, key_of_launched, contained[several], position[several]
        )
    parent[(parent >= 0) & (ops.start_ps[parent] > ops.start_ps)] = -1
    return parent


def _latest_before(
    ops: CpuEvents, launched: Int64s, key_of_launched: Int64s, contained: Int64s, container_key: Int64s
) -> Int64s:
    """For each contained launch , the last launch of its container that starts before it, -1 for
    none. Both keys number the containers.
    """
    keys = np.concatenate((key_of_launched, container_key))
    is_query = np.repeat([0, 1], [len(launched), len(contained)])
    order = np.lexsort((is_query, np.concatenate((ops.start_ps[launched], ops.start_ps[contained])), keys))
    before = np.maximum.accumulate(np.where(is_query[order] == 0, np.arange(len(order)), -1))
    answered = np.flatnonzero((is_query[order] == 1) & (before >= 0))
    answered = answered[keys[order[before[answered]]] == keys[order[answered]]]
    result = np.full(len(contained), -1, np.int64)
    result[order[answered] - len(launched)] = launched[order[before[answered]]]
    return result


def _ends(ops: CpuEvents, work: PoolWork, latest: Int64s, parent: Int64s) -> Int64s:
    """When each run ended, in ps (see the module's drawing)."""
    has_children = np.zeros(len(ops), np.bool_)
    has_children[parent[parent >= 0]] = True
    at_least = np.maximum(ops.stop_ps, work.end_ps)
    is_lost = (work.n_tasks > 0) & (work.n_lost == work.n_tasks) & (latest < NEVER)
    end = np.where(is_lost, latest, np.minimum(at_least, latest))
    end = np.where(_ends_elsewhere(ops, work, has_children), np.where(latest < NEVER, latest, end), end)
    depth = _depths(parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        at_level = np.flatnonzero(depth == level)
        np.maximum.at(end, parent[at_level], end[at_level])
        np.minimum(end, np.maximum(latest, ops.start_ps), out=end)
    return np.maximum(end, ops.start_ps)


def _ends_elsewhere(
    ops: CpuEvents, work: PoolWork, has_children: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Operations that ended elsewhere than in their event and tasks: those without tasks and children whose
    end was marked later, such as waits for another device.
    """
    is_marked = (ops.marked_ps < NEVER) & (ops.marked_ps > ops.stop_ps)
    result: npt.NDArray[np.bool_] = (work.n_tasks == 0) & ~has_children & is_marked
    return result


def _depths(parent: Int64s) -> Int64s:
    """Number of launches that enclose each launch."""
    depth = np.zeros(len(parent), np.int64)
    ancestor = parent.copy()
    for _ in range(_DEEPEST):
        has_ancestor = np.flatnonzero(ancestor >= 0)
        if not len(has_ancestor):
            break
        depth[has_ancestor] += 1
        ancestor[has_ancestor] = parent[ancestor[has_ancestor]]
    return depth


def _covered(start: Int64s, end: Int64s, parent: Int64s) -> Int64s:
    """Time of each run in which any run directly inside it was running, in ps."""
    children = np.flatnonzero(parent >= 0)
    covered = np.zeros((len(start), 2), np.int64)
    if len(children):
        events = start[children], end[children], np.ones(len(children), np.uint8), parent[children]
        charged(events, np.argsort(start[children], kind="stable").astype(np.int64), (start, end), covered)
    total: Int64s = covered[:, 1]
    return total


def _run_numbers(ops: CpuEvents, hlo: Structure, n_ops: int) -> Int64s:
    """The first launch of the run that each launch belongs to: XLA can make several thunks of one instruction
    (a sort: a copy and a sort).

    An instruction of the entry computation runs once per execution. Others run as often as their computation:
    an operation that was launched k times as often as the rarest one of its computation has k thunks.
    """
    head_of = np.arange(len(ops))
    linked = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    if len(linked):
        linked = linked[hlo.computation[ops.op[linked]] >= 0]
    if not len(linked):
        return head_of
    op = ops.op[linked]
    key = ops.execution[linked] * n_ops + op
    if len(distinct(key)) == len(key):
        return head_of
    codes, code = distinct_codes(key)
    count = np.bincount(code, minlength=len(codes))
    execution, of_code = np.divmod(codes, n_ops)
    computations, computation_of = np.unique(
        execution * (int(hlo.computation.max()) + 1) + hlo.computation[of_code], return_inverse=True
    )
    rarest = np.full(len(computations), NEVER, np.int64)
    np.minimum.at(rarest, computation_of, count)
    runs = np.where(hlo.is_entry[of_code], 1, rarest[computation_of])
    n_thunks = np.maximum(np.rint(count / runs).astype(np.int64), 1)
    multiple = np.flatnonzero((n_thunks > 1)[code])
    if not len(multiple):
        return head_of
    rows, code = linked[multiple], code[multiple]
    order = np.lexsort((ops.start_ps[rows], code))
    rows, code = rows[order], code[order]
    begins = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    head = rank % n_thunks[code] == 0
    head_of[rows] = rows[head][np.cumsum(head) - 1]
    return head_of


def _merged(ops: CpuEvents, times: tuple[Int64s, ...], head_of: Int64s) -> CpuRuns:
    """Merge the launches of each run: their times add up."""
    end, elapsed, self_ps, thread = times
    heads = np.flatnonzero(head_of == np.arange(len(head_of)))
    n = len(heads)
    if n < len(head_of):
        run_of = np.searchsorted(heads, head_of)
        sums = [np.zeros(n, np.int64) for _ in range(3)]
        for total, values in zip(sums, (elapsed, self_ps, np.maximum(thread, 0)), strict=True):
            np.add.at(total, run_of, values)
        is_known = np.ones(n, np.bool_)
        is_known[run_of[thread < 0]] = False
        run_end = np.zeros(n, np.int64)
        np.maximum.at(run_end, run_of, end)
        end, elapsed, self_ps, thread = run_end, sums[0], sums[1], np.where(is_known, sums[2], -1)
    start, device = ops.start_ps[heads], ops.device[heads]
    _, device_code = distinct_codes(device)
    n_devices = int(device_code.max(initial=-1)) + 1
    first_start, last_end = np.full(n_devices, NEVER, np.int64), np.zeros(n_devices, np.int64)
    np.minimum.at(first_start, device_code, start)
    np.maximum.at(last_end, device_code, end)
    return CpuRuns(
        ops.event[heads], ops.text[heads], ops.op[heads], device, start, end, elapsed, self_ps, thread,
        int((last_end - first_start).sum()), n_devices,
    )  # fmt: skip
