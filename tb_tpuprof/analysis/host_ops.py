"""Operations that ran on the host: TensorFlow's and JAX's by their traced names, tf.data's stages, XLA's on the CPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu_events import host_texts
from tb_tpuprof.analysis.cpu_runs import cpu_runs
from tb_tpuprof.analysis.event_names import TENSORFLOW, UNKNOWN, hlo_op_type, parse_op
from tb_tpuprof.analysis.grouping import eager_ops
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.nesting import nest_rows
from tb_tpuprof.analysis.op_metrics import Occurrences, OpMetrics, no_ops, sum_occurrences
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.trace.trace import Trace


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


@once
def host_ops(trace: Trace) -> OpMetrics:
    """Occurrences, total and self time of the operations on the host's threads.

    Counted: events called `name:Type` (TensorFlow, JAX), `Iterator::…` (tf.data), copies, stages of input pipelines (stats
    `_ipl_stage_id`, `_ipl_stage_cat`), events that name their operation in the stat `tf_op`, and, where there is no
    accelerator, XLA's operations on the CPU (stat `hlo_op`; each run as `cpu_runs` has it, from its
    launch to its end). What names its operation only in `tf_op` may be no more than a memory allocation for it; it counts as an
    occurrence all the same, as in other profilers. Self time is the duration minus
    the operations nested inside it on the same line. The span is the sum over lines of the time from the first operation's
    start to the last one's end; of XLA's operations on the CPU, which threads share, it is the sum over devices.
    """
    names = Names()
    op = _op_by_name(trace, names)
    rows, op_of_row = _rows_by_name(trace, op)
    for found_rows, found_op in (_rows_by_stage(trace, names), _rows_by_tf_op(trace, names), _rows_by_hlo_op(trace, names)):
        if not len(rows):
            rows, op_of_row = found_rows, found_op
        elif len(found_rows):
            order = np.argsort(np.concatenate((rows, found_rows)), kind="stable")
            rows, op_of_row = np.concatenate((rows, found_rows))[order], np.concatenate((op_of_row, found_op))[order]
            # An event that its own name makes an operation is not counted a second time by a stat.
            fresh = np.append(True, rows[1:] != rows[:-1])
            rows, op_of_row = rows[fresh], op_of_row[fresh]
    if not len(rows):
        return no_ops()
    _parent, self_ps = nest_rows(trace, rows)
    duration = trace.events["duration_ps"][rows]
    runs = cpu_runs(trace)
    is_run = np.isin(rows, runs.event)
    duration[is_run], self_ps[is_run] = runs.elapsed_ps, runs.self_ps
    is_eager = eager_ops(trace)[rows] & np.array(names.can_be_eager, np.bool_)[op_of_row]
    found = Occurrences(op_of_row, duration, self_ps, is_eager)
    return sum_occurrences(list(zip(names.rows, names.types, strict=True)), found, _span_ps(trace, rows[~is_run]) + runs.span_ps)


def _op_by_name(trace: Trace, names: Names) -> npt.NDArray[np.int64]:
    """Operation that each metadata row of the host's plane names, -1 for none."""
    result = np.full(len(trace.metadata), -1, np.int64)
    strings = trace.strings
    for row in np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist():
        text = strings[trace.metadata["name"][row]]
        if ":" in text or text[:6].lower() == "memcpy":
            op = parse_op(text)
            if op.category != UNKNOWN:
                result[row] = names.add(op.name, op.type, op.category == TENSORFLOW)
    return result


def _rows_by_name(trace: Trace, op: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
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
    pairs = zip(trace.metadata["name"][trace.events["metadata"][rows]].tolist(), category.tolist(), strict=True)
    known: dict[tuple[int, int], int] = {}
    ops = []
    for pair in pairs:
        if pair not in known:
            known[pair] = names.add(trace.strings[pair[0]], trace.strings[pair[1]])
        ops.append(known[pair])
    return rows, np.array(ops, np.int64)


def _rows_by_tf_op(trace: Trace, names: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Events that work for an operation, such as launches, and say so."""
    rows, text = host_texts(trace, "tf_op")
    ops = {}
    for value in np.flatnonzero(np.bincount(text)).tolist():
        op = parse_op(trace.strings[value])
        if op.name and op.name != "(null)":
            ops[value] = names.add(op.name, op.type)
    numbers = _numbered(text, {**dict.fromkeys(np.flatnonzero(np.bincount(text)).tolist(), -1), **ops}) if len(text) else text
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
