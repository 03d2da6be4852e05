"""Upper bounds for the ends of XLA:CPU's operations: an operation ends before the first operation that needs
its result starts, and before its run ends.

XLA starts an operation once all its inputs are ready. So `dot` ends at the latest when `tanh(dot)` starts,
and an operation in a loop at the latest when its next iteration starts.
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
    """How the traced operations (rows of `hlo_links`) depend on each other, according to the HLO.

    `producer` → `consumer`: the consumer reads the producer's value, directly or through instructions that
    run nothing. `container`: the operation that runs an operation's computation; -1 for the entry
    computation, or if unknown. `computation`: a number for the operation's computation (-1 unknown);
    `is_entry`: whether that is a program's entry. `runs_once_at_a_time`: two runs of it cannot overlap in one
    execution, because it is called from a single place.
    """

    producer: Int64s
    consumer: Int64s
    container: Int64s
    computation: Int64s
    is_entry: npt.NDArray[np.bool_]
    runs_once_at_a_time: npt.NDArray[np.bool_]


def structure(trace: Trace, links: HloLinks, used: Int64s) -> Structure:
    """The structure of the operations `used`, program by program. Programs without HLO add nothing."""
    n = len(links)
    container, computation = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    is_entry, has_one_caller = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    producers, consumers, n_computations = [], [], 0
    used = used[links.instruction[used] >= 0]
    for program in np.unique(links.program[used]).tolist():
        ops = used[links.program[used] == program]
        module = trace.programs.module(program)
        if module is None:
            continue
        rows = links.instruction[ops]
        op_at = np.full(module.n_instructions, -1, np.int64)
        op_at[rows] = ops
        computation_of_op = _computation_of(module)[rows]
        computation[ops] = computation_of_op + n_computations
        n_computations += len(module.computations)
        is_entry[ops] = computation_of_op == module.info.entry
        caller, is_single = _callers(module, op_at >= 0)
        has_one_caller[ops] = is_single[computation_of_op]
        callers = caller[computation_of_op]
        container[ops] = np.where(callers >= 0, op_at[callers], -1)
        produced, consumed = _reads(module.operands, rows, op_at >= 0)
        producers.append(op_at[produced])
        consumers.append(op_at[consumed])
    empty = np.empty(0, np.int64)
    return Structure(
        np.concatenate([empty, *producers]),
        np.concatenate([empty, *consumers]),
        container,
        computation,
        is_entry,
        has_one_caller,
    )


def _computation_of(module: HloModule) -> Int64s:
    """The computation of each instruction."""
    first = module.computations["first_instruction"].astype(np.int64)
    order = np.argsort(first, kind="stable")
    result: Int64s = order[np.searchsorted(first[order], np.arange(module.n_instructions), "right") - 1]
    return result


def _callers(module: HloModule, is_traced: npt.NDArray[np.bool_]) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """For each computation: the innermost traced instruction that runs it (-1: none, or several could), and
    whether it is called from a single place.
    """
    n = len(module.computations)
    callers, computation_of = module.callers, _computation_of(module)
    is_single = callers.counts <= 1
    caller = np.full(n, -1, np.int64)
    is_called_once = callers.counts == 1
    caller[is_called_once] = callers.values[callers.offsets[:-1][is_called_once]]
    for _ in range(_MOST_STEPS):
        untraced = np.flatnonzero(caller >= 0)
        untraced = untraced[~is_traced[caller[untraced]]]
        if not len(untraced):
            break
        is_single[untraced] &= callers.counts[computation_of[caller[untraced]]] <= 1
        caller[untraced] = caller[computation_of[caller[untraced]]]
    for _ in range(_MOST_STEPS):  # its caller must itself be called from a single place
        called = np.flatnonzero(is_single & (caller >= 0))
        not_single = called[~is_single[computation_of[caller[called]]]]
        if not len(not_single):
            break
        is_single[not_single] = False
    return caller, is_single


def _reads(operands: Ragged, rows: Int64s, is_traced: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Pairs (producer, consumer) of traced instructions. Untraced instructions that read one value pass it
    on; tuples do not.
    """
    consumer = np.repeat(rows, operands.counts[rows])
    first = operands.offsets[rows]
    count = operands.counts[rows]
    operand = np.repeat(first - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(int(count.sum()))
    producer = operands.values[operand].astype(np.int64)
    is_valid = producer >= 0
    producer, consumer = producer[is_valid], consumer[is_valid]
    for _ in range(_MOST_STEPS):
        passes_on = np.flatnonzero(~is_traced[producer] & (operands.counts[producer] == 1))
        if not len(passes_on):
            break
        producer[passes_on] = operands.values[operands.offsets[producer[passes_on]]]
        is_valid = producer >= 0
        producer, consumer = producer[is_valid], consumer[is_valid]
    traced = is_traced[producer]
    return producer[traced], consumer[traced]


def latest_end(trace: Trace, ops: CpuEvents, hlo: Structure, n_ops: int) -> Int64s:
    """The latest time at which each launch's operation can have ended, in ps; NEVER if nothing bounds it."""
    latest: Int64s = ops.marked_ps.copy()
    # An operation whose end was marked before its launching thread finished had no work elsewhere.
    is_open = (ops.marked_ps > ops.stop_ps) & (ops.op >= 0) & (ops.execution >= 0)
    if is_open.any():
        rows = _launches_to_compare(ops, hlo, is_open, n_ops)
        key = ops.execution[rows] * n_ops + ops.op[rows]
        order = np.lexsort((ops.start_ps[rows], key))
        rows, key = rows[order], key[order]
        start = ops.start_ps[rows]
        # The next launch of the same operation in the same execution: the next iteration, or the second thunk
        # of one instruction.
        relaunched = np.flatnonzero((key[1:] == key[:-1]) & hlo.runs_once_at_a_time[ops.op[rows[1:]]])
        np.minimum.at(latest, rows[relaunched], start[relaunched + 1])
        _bound_by_readers(ops, hlo, n_ops, (rows, key, start), latest)
    np.minimum(latest, _ends_of_executions(trace, ops), out=latest)
    return latest


def _launches_to_compare(
    ops: CpuEvents, hlo: Structure, is_open: npt.NDArray[np.bool_], n_ops: int
) -> Int64s:
    """Launches of the unbounded operations (`is_open`: by launch) and of the operations that read them, in
    the executions that have any.
    """
    has_open, is_relevant = np.zeros(ops.n_executions, np.bool_), np.zeros(n_ops, np.bool_)
    has_open[ops.execution[is_open]] = True
    is_relevant[ops.op[is_open]] = True
    is_relevant[hlo.consumer[is_relevant[hlo.producer]]] = True
    linked = np.flatnonzero((ops.op >= 0) & (ops.execution >= 0))
    rows: Int64s = linked[has_open[ops.execution[linked]] & is_relevant[ops.op[linked]]]
    return rows


def _bound_by_readers(
    ops: CpuEvents, hlo: Structure, n_ops: int, launches: tuple[Int64s, Int64s, Int64s], latest: Int64s
) -> None:
    """Lower `latest` to the start of the first reader that starts after the launch. `launches`: rows, keys
    and starts, ordered by (key, start).
    """
    rows, key, start = launches
    pairs = np.flatnonzero(hlo.runs_once_at_a_time[hlo.producer])
    producer, consumer = hlo.producer[pairs], hlo.consumer[pairs]
    by_producer = np.argsort(producer, kind="stable")
    producer, consumer = producer[by_producer], consumer[by_producer]
    first, last = (np.searchsorted(producer, ops.op[rows], side) for side in ("left", "right"))
    count = last - first
    pair = np.repeat(first - np.append(0, np.cumsum(count)[:-1]), count) + np.arange(int(count.sum()))
    launch_of = np.repeat(np.arange(len(rows)), count)
    reader_key = ops.execution[rows[launch_of]] * n_ops + consumer[pair]
    # The position after (reader's key, producer's start) among the launches by (key, start): one sort ranks
    # both.
    keys = np.concatenate((key, reader_key))
    times = np.concatenate((start, start[launch_of]))
    is_query = np.repeat([0, 1], [len(key), len(reader_key)])
    order = np.lexsort((is_query, times, keys))
    n_launches = np.cumsum(is_query[order] == 0)
    query = order[is_query[order] == 1] - len(key)
    position = n_launches[is_query[order] == 1]
    has_reader = position < len(key)
    has_reader[has_reader] = key[position[has_reader]] == reader_key[query[has_reader]]
    query, position = query[has_reader], position[has_reader]
    np.minimum.at(latest, rows[launch_of[query]], start[position])


def _ends_of_executions(trace: Trace, ops: CpuEvents) -> Int64s:
    """When the thread that waited for each launch's execution continued, in ps; NEVER if none had to wait."""
    waits = events_named(trace, (WAITS_FOR_THE_END,))
    waits = waits[trace.events["duration_ps"][waits] > 0]
    result = np.full(len(ops), NEVER, np.int64)
    if not len(waits) or not len(ops):
        return result
    missing = np.iinfo(np.int64).min
    runs, devices = first_ints(trace, "run_id"), first_ints(trace, "device_ordinal")
    sample = np.zeros(ops.n_executions, np.int64)  # a launch of each execution
    sample[ops.execution[ops.execution >= 0]] = np.flatnonzero(ops.execution >= 0)
    execution_key, wait_key = (
        mix(values_at(rows, *runs, missing), values_at(rows, *devices, 0))
        for rows in (ops.event[sample], waits)
    )
    distinct, code = distinct_codes(np.concatenate((execution_key, wait_key)))
    end = np.full(len(distinct), NEVER, np.int64)
    stop = trace.events["start_ps"][waits] + trace.events["duration_ps"][waits]
    latest = np.zeros(len(distinct), np.int64)
    np.maximum.at(latest, code[len(execution_key) :], stop)
    end[latest > 0] = latest[latest > 0]
    in_execution = ops.execution >= 0
    result[in_execution] = end[code[: len(execution_key)]][ops.execution[in_execution]]
    return result
