"""Operations that ran on the host: TensorFlow's and JAX's by their traced names, tf.data's stages, XLA's on
the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.eager import DISPATCH, eager_runs
from tb_tpuprof.analysis.cpu.events import host_texts
from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.names import TENSORFLOW, UNKNOWN, hlo_op_type, parse_op
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import metadata_named
from tb_tpuprof.analysis.memory.events import ALLOCATION, DEALLOCATION
from tb_tpuprof.analysis.ops.metrics import Occurrences, OpMetrics, no_ops, sum_occurrences
from tb_tpuprof.analysis.steps.grouping import eager_ops
from tb_tpuprof.trace.trace import Trace

BY_NAME, BY_DISPATCH, BY_STAT = range(3)


@dataclass(frozen=True)
class _Found:
    """Events that execute operations, ascending, the operation of each, and how it is known: BY_NAME,
    BY_DISPATCH or BY_STAT.
    """

    rows: npt.NDArray[np.intp]
    op: npt.NDArray[np.int64]
    how: npt.NDArray[np.int8]

    def __getitem__(self, kept: npt.NDArray[np.bool_]) -> _Found:
        return _Found(self.rows[kept], self.op[kept], self.how[kept])


class Names:
    """Operations by name, each with the first type that is known of it."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.types: list[str] = []
        self.can_be_eager: list[bool] = []

    def add(self, name: str, type_: str, can_be_eager: bool = False) -> int:
        """Row of an operation, new or known."""
        row = self.rows.setdefault(name, len(self.rows))
        if row == len(self.types):
            self.types.append(type_)
            self.can_be_eager.append(can_be_eager)
        elif not self.types[row]:
            self.types[row] = type_
            self.can_be_eager[row] = can_be_eager
        return row

    def of_functions(self) -> list[tuple[str, str]]:
        """(name, type) of each operation."""
        return list(zip(self.rows, self.types, strict=True))

    def run_eagerly(self, found: _Found) -> list[tuple[str, str]]:
        """The same where an operation runs eagerly: what a dispatch names is of that type, whatever kernel a
        function has for it.
        """
        dispatched = set(found.op[found.how == BY_DISPATCH].tolist())
        return [
            (name, name if row in dispatched else type_)
            for row, (name, type_) in enumerate(self.of_functions())
        ]


@once
def host_ops(trace: Trace) -> OpMetrics:
    """Occurrences, total and self time of the operations on the host's threads.

    Counted: events called `name:Type` (TensorFlow, JAX), `Iterator::…` (tf.data), copies, stages of input
    pipelines (stats `_ipl_stage_id`, `_ipl_stage_cat`), TensorFlow's eager executions (see `eager_runs`),
    events that take time and name their operation in the stat `tf_op`, such as launches, and, where there is
    no accelerator, XLA's operations on the CPU (stat `hlo_op`; each run as `cpu_runs` has it, from its launch
    to its end). An allocation of memory for an operation is no execution of it, and an execution that several
    of these nested events tell of is one. What runs eagerly and in functions under one name is two rows.

    Self time is the duration minus the operations nested inside it on the same line. The span is the sum over
    lines of the time from the first operation's start to the last one's end; of XLA's operations on the CPU,
    which threads share, it is the sum over devices.
    """
    names = Names()
    found = _executions(trace, names)
    if not len(found.rows):
        return no_ops()
    parent, self_ps = nest_rows(trace, found.rows)
    once_each, repeated = _told_once(found, parent)
    if repeated:
        found = once_each
        _parent, self_ps = nest_rows(trace, found.rows)
    rows = found.rows
    duration = trace.events["duration_ps"][rows]
    runs = cpu_runs(trace)
    is_run = np.isin(rows, runs.event)
    duration[is_run], self_ps[is_run] = runs.elapsed_ps, runs.self_ps
    is_eager = (eager_ops(trace)[rows] | (found.how == BY_DISPATCH)) & np.array(names.can_be_eager, np.bool_)[
        found.op
    ]
    # An operation of a function and an eager one that have the same name are two rows.
    counted = Occurrences(found.op + len(names.rows) * is_eager, duration, self_ps, is_eager)
    return sum_occurrences(
        names.of_functions() + names.run_eagerly(found),
        counted,
        _span_ps(trace, rows[~is_run]) + runs.span_ps,
    )


def _executions(trace: Trace, names: Names) -> _Found:
    """All that may execute an operation, each event once: what its own name says of it goes first."""
    parts = [
        (*_rows_by_name(trace, _op_by_name(trace, names)), BY_NAME),
        (*_rows_by_stage(trace, names), BY_NAME),
        (*_rows_by_dispatch(trace, names), BY_DISPATCH),
        (*_rows_by_tf_op(trace, names), BY_STAT),
        (*_rows_by_hlo_op(trace, names), BY_NAME),
    ]
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return _Found(np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0, np.int8))
    hows = [np.full(len(rows), how, np.int8) for rows, _op, how in parts]
    if len(parts) == 1:
        return _Found(parts[0][0], parts[0][1], hows[0])
    rows = np.concatenate([part[0] for part in parts])
    order = np.argsort(rows, kind="stable")
    found = _Found(rows, np.concatenate([part[1] for part in parts]), np.concatenate(hows))
    found = _Found(found.rows[order], found.op[order], found.how[order])
    return found[np.append(True, found.rows[1:] != found.rows[:-1])]


def _told_once(found: _Found, parent: npt.NDArray[np.int32]) -> tuple[_Found, bool]:
    """Each execution once, and whether any was there more often.

    An event `MatMul:MatMul` right inside of the eager execution of MatMul (GPUs) is that execution, without
    the overhead around it. A launch right inside of the operation that it works for is part of it.
    """
    if not (found.how != BY_NAME).any():
        return found, False
    inside = np.flatnonzero(parent >= 0)
    inside = inside[found.op[inside] == found.op[parent[inside]]]
    around = parent[inside]
    is_kernel = (found.how[inside] == BY_NAME) & (found.how[around] == BY_DISPATCH)
    how, kept = found.how.copy(), np.ones(len(found.rows), np.bool_)
    how[inside[is_kernel]] = BY_DISPATCH
    kept[around[is_kernel]] = False
    kept[inside[found.how[inside] == BY_STAT]] = False
    return _Found(found.rows, found.op, how)[kept], not kept.all()


def _op_by_name(trace: Trace, names: Names) -> npt.NDArray[np.int64]:
    """Operation that each metadata row of the host's plane names, -1 for none."""
    result = np.full(len(trace.metadata), -1, np.int64)
    texts = metadata_names(trace)
    for row in np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist():
        text = texts[row]
        if ":" in text or text[:6].lower() == "memcpy":
            op = parse_op(text)
            if op.category != UNKNOWN:
                result[row] = names.add(op.name, op.type, op.category == TENSORFLOW)
    return result


def _rows_by_name(
    trace: Trace, op: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    if not (op >= 0).any():
        return np.empty(0, np.intp), np.empty(0, np.int64)
    rows = np.flatnonzero((op >= 0)[trace.events["metadata"]])
    rows = rows[~planes(trace).is_derived_line[trace.event_line[rows]]]
    return rows, op[trace.events["metadata"][rows]]


def _line_bounds(trace: Trace, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """Those of the rows (ascending) that are in line i are bounds[i] … bounds[i + 1]."""
    return np.searchsorted(rows, trace.line_offsets.astype(rows.dtype))


def _numbered(texts: npt.NDArray[np.int64], ops: dict[int, int]) -> npt.NDArray[np.int64]:
    """Each text's operation, -1 for none."""
    table = np.full(max(ops, default=-1) + 1, -1, np.int64)
    table[list(ops)] = list(ops.values())
    return table[texts]


def _rows_by_stage(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Stages of an input pipeline: the event's name, with the stage's category as its type."""
    rows, category = host_texts(trace, "_ipl_stage_cat")
    rows_with_id = trace.event_stats.ints("_ipl_stage_id").owner
    staged = np.isin(rows, rows_with_id)
    rows, category = rows[staged], category[staged]
    pairs = zip(
        trace.metadata["name"][trace.events["metadata"][rows]].tolist(), category.tolist(), strict=True
    )
    known: dict[tuple[int, int], int] = {}
    ops = []
    for pair in pairs:
        if pair not in known:
            known[pair] = names.add(trace.strings[pair[0]], trace.strings[pair[1]])
        ops.append(known[pair])
    return rows, np.array(ops, np.int64)


def _rows_by_dispatch(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """TensorFlow's eager executions: the operation's type is its name as well."""
    rows, dispatch = eager_runs(trace)
    ops = {}
    for row in np.flatnonzero(np.bincount(dispatch)).tolist():
        type_ = trace.strings[trace.metadata["name"][row]].removeprefix(DISPATCH)
        ops[row] = names.add(type_, type_, can_be_eager=True)
    return rows, _numbered(dispatch, ops)


def _rows_by_tf_op(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Events that work for an operation, such as launches, and say so: not the marks of allocators, nor other
    instants.
    """
    rows, text = host_texts(trace, "tf_op")
    works = trace.events["duration_ps"][rows] > 0
    works &= ~metadata_named(trace, (ALLOCATION, DEALLOCATION))[trace.events["metadata"][rows]]
    rows, text = rows[works], text[works]
    ops = {}
    for value in np.flatnonzero(np.bincount(text)).tolist():
        op = parse_op(trace.strings[value])
        named = op.name and op.name != "(null)"
        ops[value] = names.add(op.name, op.type) if named else -1
    numbers = _numbered(text, ops)
    return rows[numbers >= 0], numbers[numbers >= 0]


def _rows_by_hlo_op(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """XLA's operations on the CPU: the (first) launch of each run."""
    runs = cpu_runs(trace)
    ops = {}
    for value in np.flatnonzero(np.bincount(runs.text)).tolist() if len(runs) else []:
        name = trace.strings[value]
        ops[value] = names.add(name, hlo_op_type(name))
    return runs.event, _numbered(runs.text, ops)


def _span_ps(trace: Trace, rows: npt.NDArray[np.intp]) -> int:
    """Sum over lines of the time from the first of the events to the end of the last."""
    if not len(rows):
        return 0
    bounds = _line_bounds(trace, rows)
    first = bounds[:-1][np.diff(bounds) > 0]
    start, end = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    end += start
    return int((np.maximum.reduceat(end, first) - start[first]).sum())
