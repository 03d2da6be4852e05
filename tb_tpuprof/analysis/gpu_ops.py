"""Operations on GPUs: kernels summed by the compiler's or the framework's operation that launched them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.event_names import UNKNOWN, parse_op
from tb_tpuprof.analysis.gpu_steps import stream_events
from tb_tpuprof.analysis.grouping import eager_ops, groups
from tb_tpuprof.analysis.hlo_names import Instruction, Instructions
from tb_tpuprof.analysis.op_metrics import IDLE, Occurrences, OpMetrics, add_up, no_ops, sum_occurrences
from tb_tpuprof.analysis.planes import DERIVED_OPS, line_events, planes
from tb_tpuprof.analysis.stat_rows import first_ints, values_at
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.intp]
Int64s = npt.NDArray[np.int64]


def gpu_ops(trace: Trace) -> OpMetrics:
    """Occurrences and times of the operations of all GPUs.

    A kernel belongs to the HLO instruction named by its stats `hlo_op` (the last of `a::b`) and `program_id`; successive
    kernels of one instruction in one step are one occurrence. Without HLO the stat `tf_op` names the operation, and each
    kernel is one occurrence. Without either, a line of operations derived by the file's writer is asked. The span of a GPU
    is the time from its first event to its last one's end.
    """
    programs: dict[int, Instructions] = {}
    return add_up([_ops_of(trace, plane, programs) for plane in planes(trace).gpus])


def _ops_of(trace: Trace, plane: int, programs: dict[int, Instructions]) -> OpMetrics:
    rows = stream_events(trace, plane)
    if not len(rows):
        return no_ops()
    start, duration = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    span_ps = int((start + duration).max() - start.min())
    texts = {key: _text_ids(trace, key, rows) for key in ("hlo_op", "tf_op")}
    program = values_at(rows, *first_ints(trace, "program_id"), -1)
    parts = [_hlo_ops(trace, rows, texts["hlo_op"], program, programs)]
    without = texts["hlo_op"] < 0
    if (without & (texts["tf_op"] >= 0)).any():
        chosen = without & (texts["tf_op"] >= 0)
        parts.append(_framework_ops(trace, rows[chosen], texts["tf_op"][chosen]))
    ops = add_up(parts)
    if not len(ops):
        ops = _derived_ops(trace, plane, rows)
    return replace(ops, span_ps=span_ps)


def _text_ids(trace: Trace, key: str, rows: Rows) -> Int64s:
    """String id of a text stat of each row, -1 where it is missing or empty."""
    sparse = trace.event_stats.texts(key)
    owner, first = np.unique(sparse.owner, return_index=True)
    ids = values_at(rows, owner, sparse.value[first].astype(np.int64), -1)
    empty = trace.strings.find("")
    ids[ids == empty] = -1
    return ids


def _hlo_ops(trace: Trace, rows: Rows, hlo_op: Int64s, program: Int64s, programs: dict[int, Instructions]) -> OpMetrics:
    """Kernels of HLO instructions. Events of instructions that no HLO describes are left out, as nothing is known of them."""
    mine = np.flatnonzero((hlo_op >= 0) & (program >= 0))
    rows, hlo_op, program = rows[mine], hlo_op[mine], program[mine]
    pairs, op = np.unique(np.column_stack((program, hlo_op)), axis=0, return_inverse=True)
    op = op.reshape(-1)
    names, found = [], []
    for number, text in pairs.tolist():
        if number not in programs:
            programs[number] = Instructions(trace, number)
        name = trace.strings[text].rpartition("::")[2]
        names.append(name)
        found.append(programs[number].get(name))
    known = np.array([instruction is not None for instruction in found], np.bool_)
    if not known.any():
        return no_ops()
    rows, op = rows[known[op]], op[known[op]]
    first = first_of_runs(trace, rows, op)
    duration = np.add.reduceat(trace.events["duration_ps"][rows], first)
    occurrences = Occurrences(op[first], duration, duration, eager_ops(trace)[rows[first]])
    ops = sum_occurrences([(str(i), "") for i in range(len(names))], occurrences, 0)
    chosen = [int(i) for i in ops.name]
    details = [found[i] or Instruction("", "") for i in chosen]
    return replace(
        ops,
        name=tuple(names[i] for i in chosen),
        type=tuple(detail.opcode for detail in details),
        program=tuple(int(pairs[i][0]) for i in chosen),
        provenance=tuple(_with_colon(detail.op_name) for detail in details),
    )


def first_of_runs(trace: Trace, rows: Rows, op: Int64s) -> Rows:
    """Where occurrences begin: successive kernels (ascending event rows) of one operation in one step and stream are one.

    Without a step to hold them together successive kernels may well be successive runs: each counts.
    """
    group, line = groups(trace).group[rows], trace.event_line[rows]
    is_new = np.append(True, (op[1:] != op[:-1]) | (group[1:] != group[:-1]) | (line[1:] != line[:-1]) | (group[1:] < 0))
    return np.flatnonzero(is_new)


def _with_colon(op_name: str) -> str:
    """HLO metadata names operations without the colon that parse_op() goes by."""
    return op_name if not op_name or ":" in op_name else f"{op_name}:"


def _framework_ops(trace: Trace, rows: Rows, text: Int64s) -> OpMetrics:
    """Kernels that name a framework operation: one row per operation and kernel."""
    name_id = trace.metadata["name"][trace.events["metadata"][rows]].astype(np.int64)
    pairs, op = np.unique(np.column_stack((text, name_id)), axis=0, return_inverse=True)
    full = [trace.strings[pair[0]] for pair in pairs.tolist()]
    parsed = [parse_op(name) for name in full]
    names = [(f"{op.name}/{trace.strings[pair[1]]}", op.type) for op, pair in zip(parsed, pairs.tolist(), strict=True)]
    duration = trace.events["duration_ps"][rows]
    ops = sum_occurrences(names, Occurrences(op.reshape(-1), duration, duration, eager_ops(trace)[rows]), 0)
    return replace(ops, provenance=tuple(full))


def _derived_ops(trace: Trace, plane: int, rows: Rows) -> OpMetrics:
    """Kernels by the operation that a line derived by the file's writer shows above them (`TensorFlow Ops`)."""
    ids = trace.lines["id"] & 0xFFFFFFFF
    lines = [line for line in trace.lines_of([plane]).tolist() if ids[line] == DERIVED_OPS and trace.lines["n_events"][line]]
    if not lines:
        return no_ops()
    ops = line_events(trace, lines[0])
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    kernels = np.zeros(trace.n_events, np.bool_)
    kernels[trace.event_stats.texts("kernel_details").owner] = True
    rows = rows[kernels[rows]]
    at = np.searchsorted(start[ops], start[rows], side="right") - 1
    inside = (at >= 0) & (start[rows] + duration[rows] <= (start[ops] + duration[ops])[at])
    rows, at = rows[inside], at[inside] + ops.start
    metadata, op = np.unique(trace.events["metadata"][at], return_inverse=True)
    full = [trace.strings[i] for i in trace.metadata["name"][metadata].tolist()]
    names = [(name, parsed.type if parsed.category != UNKNOWN else IDLE) for name, parsed in ((n, parse_op(n)) for n in full)]
    first = np.flatnonzero(np.append(True, at[1:] != at[:-1])[: len(at)])
    if not len(first):
        return no_ops()
    total = np.add.reduceat(duration[rows], first)
    ops_found = sum_occurrences(names, Occurrences(op.reshape(-1)[first], total, total, eager_ops(trace)[rows[first]]), 0)
    return replace(ops_found, provenance=ops_found.name)
