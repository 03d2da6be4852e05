"""Operations that ran on the host: TensorFlow and JAX operations by their traced names, tf.data stages, and
XLA:CPU operations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, events_of, metadata_named
from tb_tpuprof.analysis.memory.events import ALLOCATION, DEALLOCATION
from tb_tpuprof.analysis.ops.details import Details
from tb_tpuprof.analysis.ops.metrics import Occurrences, OpMetrics, no_ops, sum_occurrences
from tb_tpuprof.analysis.pytorch.kernels import call_work, operator_calls, records_inputs
from tb_tpuprof.analysis.steps.grouping import eager_ops
from tb_tpuprof.trace.trace import Trace

BY_NAME, BY_DISPATCH, BY_STAT = range(3)


@dataclass(frozen=True)
class _Executions:
    """Events that execute operations, ascending, the operation of each, and how it was identified: BY_NAME,
    BY_DISPATCH or BY_STAT.
    """

    rows: npt.NDArray[np.intp]
    op: npt.NDArray[np.int64]
    how: npt.NDArray[np.int8]

    def __getitem__(self, mask: npt.NDArray[np.bool_]) -> _Executions:
        return _Executions(self.rows[mask], self.op[mask], self.how[mask])


class Names:
    """Numbers for operation names, each with the first type seen for it."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.types: list[str] = []
        self.can_be_eager: list[bool] = []

    def add(self, name: str, type_: str, can_be_eager: bool = False) -> int:
        """Return the row of an operation, adding it if it is new."""
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

    def of_eager_runs(self, executions: _Executions) -> list[tuple[str, str]]:
        """(name, type) of each operation in eager mode: an operation that a dispatch names has its name as
        its type, whatever kernel a function has for it.
        """
        dispatched = set(executions.op[executions.how == BY_DISPATCH].tolist())
        return [
            (name, name if row in dispatched else type_)
            for row, (name, type_) in enumerate(self.of_functions())
        ]


@once
def host_ops(trace: Trace) -> OpMetrics:
    """Occurrences, total and self time in ps of the operations on the host's threads.

    Counted are events called `name:Type` (TensorFlow, JAX), `Iterator::…` (tf.data), copies, stages of input
    pipelines (stats `_ipl_stage_id`, `_ipl_stage_cat`), TensorFlow's eager executions (see `eager_runs`),
    events that take time and name their operation in the stat `tf_op`, such as launches, and, where there is
    no accelerator, XLA:CPU operations (stat `hlo_op`; `cpu_runs` gives each run from its launch to its end).
    A memory allocation for an operation is not an execution of it. Nested events of the same execution count
    once. An operation that runs both eagerly and in functions under one name has two rows.

    Self time is the duration minus the operations nested inside it on the same line. The span is the sum over
    lines of the time from the first operation's start to the last one's end; XLA:CPU operations run on shared
    threads, so theirs is the sum over devices.
    """
    return host_ops_by(trace, None)


def host_ops_by(trace: Trace, details: Details | None) -> OpMetrics:
    """The same, with a row for each of the details that calls of an operation have."""
    names = Names()
    executions = _executions(trace, names)
    if not len(executions.rows):
        return no_ops()
    parent, self_ps = nest_rows(trace, executions.rows)
    deduplicated, had_repeats = _without_repeats(executions, parent)
    if had_repeats:
        executions = deduplicated
        _parent, self_ps = nest_rows(trace, executions.rows)
    rows = executions.rows
    duration = trace.events["duration_ps"][rows]
    runs = cpu_runs(trace)
    is_run = np.isin(rows, runs.event)
    duration[is_run], self_ps[is_run] = runs.elapsed_ps, runs.self_ps
    is_eager = (eager_ops(trace)[rows] | (executions.how == BY_DISPATCH)) & np.array(
        names.can_be_eager, np.bool_
    )[executions.op]
    # An operation of a function and an eager one that have the same name are two rows.
    op = executions.op + len(names.rows) * is_eager
    titles = names.of_functions() + names.of_eager_runs(executions)
    span_ps = _span_ps(trace, rows[~is_run]) + runs.span_ps
    n_codes = 1 + len(details.texts) if details else 1
    keys, row = distinct_codes(op * n_codes + (details.code[rows] + 1 if details else 0))
    op_of_row, code_of_row = np.divmod(keys, n_codes)
    ops = sum_occurrences(
        [titles[i] for i in op_of_row.tolist()], Occurrences(row, duration, self_ps, is_eager), span_ps
    )
    ops = replace(ops, details=details.of(code_of_row - 1) if details else ())
    return _with_inputs_work(trace, ops, rows, row) if _computes_on_host(trace) else ops


def _computes_on_host(trace: Trace) -> bool:
    """Whether PyTorch's operators ran on the host, and the file has their inputs."""
    return not planes(trace).gpus and records_inputs(trace)


def _with_inputs_work(
    trace: Trace, ops: OpMetrics, rows: npt.NDArray[np.intp], op: npt.NDArray[np.int64]
) -> OpMetrics:
    """`ops` with the work that the inputs of PyTorch's operators determine; unknown for an operation if that
    of any of its calls (events; `op`: their rows of `ops`) is.
    """
    calls, kind = operator_calls(trace, rows.astype(np.int64))
    flops, n_bytes = (
        np.bincount(op, values, len(ops)).astype(np.float64)
        for values in call_work(trace, rows.astype(np.int64), calls, kind)
    )
    return replace(ops, flops=flops, model_flops=flops, n_bytes=n_bytes)


def _executions(trace: Trace, names: Names) -> _Executions:
    """All events that may execute an operation, each once. An event's own name takes precedence over its
    stats.
    """
    parts = [
        (*_rows_by_name(trace, _op_by_name(trace, names)), BY_NAME),
        (*_rows_by_stage(trace, names), BY_NAME),
        (*_rows_by_dispatch(trace, names), BY_DISPATCH),
        (*_rows_by_tf_op(trace, names), BY_STAT),
        (*_rows_by_hlo_op(trace, names), BY_NAME),
    ]
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return _Executions(np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0, np.int8))
    hows = [np.full(len(rows), how, np.int8) for rows, _op, how in parts]
    if len(parts) == 1:
        return _Executions(parts[0][0], parts[0][1], hows[0])
    rows = np.concatenate([part[0] for part in parts])
    order = np.argsort(rows, kind="stable")
    executions = _Executions(rows, np.concatenate([part[1] for part in parts]), np.concatenate(hows))
    executions = _Executions(executions.rows[order], executions.op[order], executions.how[order])
    return executions[np.append(True, executions.rows[1:] != executions.rows[:-1])]


def _without_repeats(executions: _Executions, parent: npt.NDArray[np.int32]) -> tuple[_Executions, bool]:
    """Return each execution once, and whether any was recorded more than once.

    An event `MatMul:MatMul` directly inside the eager execution of MatMul (GPUs) is that execution without
    its overhead. A launch directly inside the operation that it works for is part of it.
    """
    if not (executions.how != BY_NAME).any():
        return executions, False
    nested = np.flatnonzero(parent >= 0)
    nested = nested[executions.op[nested] == executions.op[parent[nested]]]
    outer = parent[nested]
    is_kernel = (executions.how[nested] == BY_NAME) & (executions.how[outer] == BY_DISPATCH)
    how, keep = executions.how.copy(), np.ones(len(executions.rows), np.bool_)
    how[nested[is_kernel]] = BY_DISPATCH
    keep[outer[is_kernel]] = False
    keep[nested[executions.how[nested] == BY_STAT]] = False
    return _Executions(executions.rows, executions.op, how)[keep], not keep.all()


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
    rows = events_of(trace, op >= 0)
    rows = rows[~planes(trace).is_derived_line[trace.event_line[rows]]]
    return rows, op[trace.events["metadata"][rows]]


def _line_bounds(trace: Trace, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """Bounds of the (ascending) rows by line: line i has rows[bounds[i]:bounds[i + 1]]."""
    return np.searchsorted(rows, trace.line_offsets.astype(rows.dtype))


def _numbered(texts: npt.NDArray[np.int64], ops: dict[int, int]) -> npt.NDArray[np.int64]:
    """Map each text to its operation, -1 for none."""
    table = np.full(max(ops, default=-1) + 1, -1, np.int64)
    table[list(ops)] = list(ops.values())
    return table[texts]


def _rows_by_stage(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Stages of an input pipeline: named by the event, typed by the stage's category."""
    rows, category = host_texts(trace, "_ipl_stage_cat")
    rows_with_id = trace.event_stats.ints("_ipl_stage_id").owner
    is_stage = np.isin(rows, rows_with_id)
    rows, category = rows[is_stage], category[is_stage]
    pairs = zip(
        trace.metadata["name"][trace.events["metadata"][rows]].tolist(), category.tolist(), strict=True
    )
    op_of_pair: dict[tuple[int, int], int] = {}
    ops = []
    for pair in pairs:
        if pair not in op_of_pair:
            op_of_pair[pair] = names.add(trace.strings[pair[0]], trace.strings[pair[1]])
        ops.append(op_of_pair[pair])
    return rows, np.array(ops, np.int64)


def _rows_by_dispatch(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """TensorFlow's eager executions, where the operation's type is also its name."""
    rows, dispatch = eager_runs(trace)
    ops = {}
    for row in np.flatnonzero(np.bincount(dispatch)).tolist():
        type_ = trace.strings[trace.metadata["name"][row]].removeprefix(DISPATCH)
        ops[row] = names.add(type_, type_, can_be_eager=True)
    return rows, _numbered(dispatch, ops)


def _rows_by_tf_op(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Events that name the operation they work for, such as launches, except allocator marks and other
    instants.
    """
    rows, text = host_texts(trace, "tf_op")
    works = trace.events["duration_ps"][rows] > 0
    works &= ~metadata_named(trace, (ALLOCATION, DEALLOCATION))[trace.events["metadata"][rows]]
    rows, text = rows[works], text[works]
    ops = {}
    for value in np.flatnonzero(np.bincount(text)).tolist():
        op = parse_op(trace.strings[value])
        has_name = op.name and op.name != "(null)"
        ops[value] = names.add(op.name, op.type) if has_name else -1
    numbers = _numbered(text, ops)
    return rows[numbers >= 0], numbers[numbers >= 0]


def _rows_by_hlo_op(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """XLA:CPU operations, each at the (first) launch of its run."""
    runs = cpu_runs(trace)
    ops = {}
    for value in np.flatnonzero(np.bincount(runs.text)).tolist() if len(runs) else []:
        name = trace.strings[value]
        ops[value] = names.add(name, hlo_op_type(name))
    return runs.event, _numbered(runs.text, ops)


def _span_ps(trace: Trace, rows: npt.NDArray[np.intp]) -> int:
    """Sum over lines of the time from the first event's start to the last one's end."""
    if not len(rows):
        return 0
    bounds = _line_bounds(trace, rows)
    first = bounds[:-1][np.diff(bounds) > 0]
    start, end = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    end += start
    return int((np.maximum.reduceat(end, first) - start[first]).sum())
