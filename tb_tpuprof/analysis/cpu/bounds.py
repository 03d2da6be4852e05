"""When an operation of XLA:CPU has ended at the latest: before the first operation starts that needs its
result, and before its run ends.

XLA starts an operation once all that it reads is there. So the end of `dot` is at most the start of
`tanh(dot)`; of an operation in a loop, at most the start of its next iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import NEVER, WAITS_FOR_THE_END, CpuEvents
from tb_tpuprof.analysis.events.hlo_links import HloLinks
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, events_named, first_ints, mix, values_at
from tb_tpuprof.trace.hlo import HloModule, Ragged
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_MOST_STEPS = 32  # instructions without events between two that have some (bitcast, get-tuple-element)


@dataclass(frozen=True)
class Structure:
    """What the HLO says of the operations that were traced (rows of `hlo_links`).

    `producer` → `consumer`: the latter reads the former's value, directly or through instructions that run
    nothing. `container`: the operation that runs an operation's computation, -1: the entry computation, or
    unknown. `computation`: a number of the operation's computation (-1 unknown), `is_entry` whether that is a
    program's entry. `runs_once_at_a_time`: no two runs of it can overlap in one execution, as one place alone
    calls it.
    """

    producer: Int64s
    consumer: Int64s
    container: Int64s
    computation: Int64s
    is_entry: npt.NDArray[np.bool_]
    runs_once_at_a_time: npt.NDArray[np.bool_]


def structure(trace: Trace, links: HloLinks, used: Int64s) -> Structure:
    """Of the operations `used`, program by program. Programs whose HLO is not there add nothing."""
    n = len(links)
    container, computation = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    is_entry, single = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    producers, consumers, n_computations = [], [], 0
    used = used[links.instruction[used] >= 0]
    for program in np.unique(links.program[used]).tolist():
        mine = used[links.program[used] == program]
        module = trace.programs.module(program)
        if module is None:
            continue
        rows = links.instruction[mine]
        op_at = np.full(module.n_instructions, -1, np.int64)
        op_at[rows] = mine
        own = _computation_of(module)[rows]
        computation[mine] = own + n_computations
        n_computations += len(module.computations)
        is_entry[mine] = own == module.info.entry
        around, alone = _around(module, op_at >= 0)
        single[mine] = alone[own]
        callers = around[own]
        container[mine] = np.where(callers >= 0, op_at[callers], -1)
        made, read = _reads(module.operands, rows, op_at >= 0)
        producers.append(op_at[made])
        consumers.append(op_at[read])
    none = np.empty(0, np.int64)
    return Structure(
        np.concatenate([none, *producers]),
        np.concatenate([none, *consumers]),
        container,
        computation,
        is_entry,
        single,
    )


def _computation_of(module: HloModule) -> Int64s:
    """The computation of each instruction."""
    first = module.computations["first_instruction"].astype(np.int64)
    order = np.argsort(first, kind="stable")
    found: Int64s = order[np.searchsorted(first[order], np.arange(module.n_instructions), "right") - 1]
    return found


def _around(module: HloModule, is_traced: npt.NDArray[np.bool_]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """For each computation the innermost traced instruction that runs it (-1: none, or several could), and
    whether one place alone does.
    """
    n = len(module.computations)
    callers, of = module.callers, _computation_of(module)
    alone = callers.counts <= 1
    caller = np.full(n, -1, np.int64)
    once = callers.counts == 1
    caller[once] = callers.values[callers.offsets[:-1][once]]
    for _ in range(_MOST_STEPS):
        open_ = np.flatnonzero(caller >= 0)
        open_ = open_[~is_traced[caller[open_]]]
        if not len(open_):
            break
        alone[open_] &= callers.counts[of[caller[open_]]] <= 1
        caller[open_] = caller[of[caller[open_]]]
    for _ in range(_MOST_STEPS):  # what runs it must itself be run from one place
        inner = np.flatnonzero(alone & (caller >= 0))
        worse = inner[~alone[of[caller[inner]]]]
        if not len(worse):
            break
        alone[worse] = False
    return caller, alone


def _reads(operands: Ragged, rows: Int64s, is_traced: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Pairs (producer, consumer) of traced instructions. Instructions without events that read one value hand
    it on; tuples do not.
    """
    consumer = np.repeat(rows, operands.counts[rows])
    first = operands.offsets[rows]
    count = operands.counts[rows]
    at = np.repeat(first - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(int(count.sum()))
    producer = operands.values[at].astype(np.int64)
    kept = producer >= 0
    producer, consumer = producer[kept], consumer[kept]
    for _ in range(_MOST_STEPS):
        passes = np.flatnonzero(~is_traced[producer] & (operands.counts[producer] == 1))
        if not len(passes):
            break
        producer[passes] = operands.values[operands.offsets[producer[passes]]]
        kept = producer >= 0
        producer, consumer = producer[kept], consumer[kept]
    done = is_traced[producer]
    return producer[done], consumer[done]


def latest_end(trace: Trace, ops: CpuEvents, found: Structure, n_ops: int) -> Int64s:
    """By when each launch's operation has ended, NEVER where nothing says so."""
    latest: Int64s = ops.marked_ps.copy()
    # What was marked before its launching thread was through with it had no work elsewhere.
    open_ = (ops.marked_ps > ops.stop_ps) & (ops.op >= 0) & (ops.execution >= 0)
    if open_.any():
        rows = _concerned(ops, found, open_, n_ops)
        key = ops.execution[rows] * n_ops + ops.op[rows]
        order = np.lexsort((ops.start_ps[rows], key))
        rows, key = rows[order], key[order]
        start = ops.start_ps[rows]
        # The next launch of the same operation in the same execution: the next iteration, or the second thunk
        # of one instruction.
        again = np.flatnonzero((key[1:] == key[:-1]) & found.runs_once_at_a_time[ops.op[rows[1:]]])
        np.minimum.at(latest, rows[again], start[again + 1])
        _bound_by_readers(ops, found, n_ops, (rows, key, start), latest)
    np.minimum(latest, _end_of_runs(trace, ops), out=latest)
    return latest


def _concerned(ops: CpuEvents, found: Structure, open_: npt.NDArray[np.bool_], n_ops: int) -> Int64s:
    """Launches of the operations that are asked about and of those that read them, in executions with any
    such.
    """
    executions, wanted = np.zeros(ops.n_executions, np.bool_), np.zeros(n_ops, np.bool_)
    executions[ops.execution[open_]] = True
    wanted[ops.op[open_]] = True
    wanted[found.consumer[wanted[found.producer]]] = True
    known = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    rows: Int64s = known[executions[ops.execution[known]] & wanted[ops.op[known]]]
    return rows


def _bound_by_readers(
    ops: CpuEvents, found: Structure, n_ops: int, launches: tuple[Int64s, Int64s, Int64s], latest: Int64s
) -> None:
    """Lower `latest` to the start of the first reader that starts after the launch. `launches`: rows, keys,
    starts by (key, start).
    """
    rows, key, start = launches
    pairs = np.flatnonzero(found.runs_once_at_a_time[found.producer])
    producer, consumer = found.producer[pairs], found.consumer[pairs]
    by_producer = np.argsort(producer, kind="stable")
    producer, consumer = producer[by_producer], consumer[by_producer]
    first, last = (np.searchsorted(producer, ops.op[rows], side) for side in ("left", "right"))
    count = last - first
    at = np.repeat(first - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(int(count.sum()))
    of = np.repeat(np.arange(len(rows)), count)
    wanted = ops.execution[rows[of]] * n_ops + consumer[at]
    # The place behind (wanted, start of the producer) among the launches by (key, start): ranks of both in
    # one sort.
    keys = np.concatenate((key, wanted))
    times = np.concatenate((start, start[of]))
    is_question = np.repeat([0, 1], [len(key), len(wanted)])
    order = np.lexsort((is_question, times, keys))
    n_launches = np.cumsum(is_question[order] == 0)
    asked = order[is_question[order] == 1] - len(key)
    behind = n_launches[is_question[order] == 1]
    found_one = behind < len(key)
    found_one[found_one] = key[behind[found_one]] == wanted[asked[found_one]]
    asked, behind = asked[found_one], behind[found_one]
    np.minimum.at(latest, rows[of[asked]], start[behind])


def _end_of_runs(trace: Trace, ops: CpuEvents) -> Int64s:
    """When whoever waited for an execution to complete went on; NEVER where nobody had to wait."""
    waits = events_named(trace, (WAITS_FOR_THE_END,))
    waits = waits[trace.events["duration_ps"][waits] > 0]
    result = np.full(len(ops), NEVER, np.int64)
    if not len(waits) or not len(ops):
        return result
    none = np.iinfo(np.int64).min
    runs, devices = first_ints(trace, "run_id"), first_ints(trace, "device_ordinal")
    sample = np.zeros(ops.n_executions, np.int64)  # a launch of each execution
    sample[ops.execution[ops.execution >= 0]] = np.flatnonzero(ops.execution >= 0)
    own, theirs = (
        mix(values_at(rows, *runs, none), values_at(rows, *devices, 0)) for rows in (ops.event[sample], waits)
    )
    distinct, code = distinct_codes(np.concatenate((own, theirs)))
    end = np.full(len(distinct), NEVER, np.int64)
    stop = trace.events["start_ps"][waits] + trace.events["duration_ps"][waits]
    latest = np.zeros(len(distinct), np.int64)
    np.maximum.at(latest, code[len(own) :], stop)
    end[latest > 0] = latest[latest > 0]
    known = ops.execution >= 0
    result[known] = end[code[: len(own)]][ops.execution[known]]
    return result
