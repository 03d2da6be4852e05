"""Operations on GPUs: kernels summed by the compiler or framework operation that launched them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import instruction_name
from tb_tpuprof.analysis.events.hlo_names import Instruction, Instructions
from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.kernel_names import short_name, uses_tensor_cores
from tb_tpuprof.analysis.events.names import UNKNOWN, is_graph_launch, parse_op
from tb_tpuprof.analysis.events.planes import DERIVED_OPS, line_events, planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.kernels.rows import is_transfer, kernel_mask
from tb_tpuprof.analysis.ops.details import Details
from tb_tpuprof.analysis.ops.metrics import (
    IDLE,
    NO_OPERATION,
    Occurrences,
    OpMetrics,
    add_up,
    no_ops,
    sum_by,
    sum_occurrences,
)
from tb_tpuprof.analysis.pytorch.kernels import kernel_work, records_inputs
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import eager_ops, groups
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.intp]
Int64s = npt.NDArray[np.int64]


def gpu_ops(trace: Trace) -> OpMetrics:
    """Occurrences and times in ps of the operations of all GPUs.

    A kernel belongs to the HLO instruction that its stats `hlo_op` (see `hlo_op_texts`) and `program_id`
    name; successive kernels of one instruction in one step are one occurrence. Without HLO the stat `tf_op`
    names the operation, and each kernel is one occurrence; for a CUDA or HIP graph each launch is one.
    Without either, the line of operations that the file's writer derived, if there is one, names it.
    Remaining kernels have no known operation: each kernel name is a row of type `(no operation)`, so that the
    rows contain the time of all kernels. Copies count under the operation that they name, if any. The span of
    a GPU is the time from its first event's start to its last one's end.
    """
    return gpu_ops_by(trace, None)


def gpu_ops_by(trace: Trace, details: Details | None) -> OpMetrics:
    """The same, with a row for each of the details that calls of a framework operation have."""
    programs: dict[int, Instructions] = {}
    return add_up([_ops_of(trace, plane, programs, details) for plane in planes(trace).gpus])


def _ops_of(
    trace: Trace, plane: int, programs: dict[int, Instructions], details: Details | None
) -> OpMetrics:
    rows = stream_events(trace, plane)
    if not len(rows):
        return no_ops()
    start, duration = trace.events["start_ps"][rows], trace.events["duration_ps"][rows]
    span_ps = int((start + duration).max() - start.min())
    hlo_op, framework_op = hlo_op_texts(trace).at(rows), _framework_names(trace, rows)
    hlo_op[hlo_op == trace.strings.find("")] = -1
    program = values_at(rows, *first_ints(trace, "program_id"), -1)
    with_hlo, with_name = hlo_op >= 0, (hlo_op < 0) & (framework_op >= 0)
    parts = [_hlo_ops(trace, rows[with_hlo], hlo_op[with_hlo], program[with_hlo], programs)]
    parts.append(_framework_ops(trace, rows[with_name], framework_op[with_name], details))
    without = rows[~with_hlo & ~with_name]
    derived, unattributed = _derived_ops(trace, plane, without[kernel_mask(trace)[without]])
    parts += [derived, _unattributed_ops(trace, unattributed)]
    return replace(add_up(parts), span_ps=span_ps)


def transfer_ps(ops: OpMetrics) -> int:
    """Time in ps of the copies and fills among GPU operations (rows of operation and kernel), which are not
    kernels.
    """
    names = (name.rpartition("/")[2] for name in ops.name)
    return sum(time for name, time in zip(names, ops.self_ps.tolist(), strict=True) if is_transfer(name))


def _framework_names(trace: Trace, rows: Rows) -> Int64s:
    """String id of each row's `tf_op`, -1 where it is missing or empty."""
    sparse = trace.event_stats.texts("tf_op")
    owner, first = np.unique(sparse.owner, return_index=True)
    ids = values_at(rows, owner, sparse.value[first].astype(np.int64), -1)
    empty = trace.strings.find("")
    ids[ids == empty] = -1
    return ids


def _hlo_ops(
    trace: Trace, rows: Rows, hlo_op: Int64s, program: Int64s, programs: dict[int, Instructions]
) -> OpMetrics:
    """Kernels of HLO instructions. An instruction that no HLO describes has only its name, and no type."""
    pairs, op = distinct_rows(program, hlo_op)
    if not len(pairs):
        return no_ops()
    strings = hlo_op_texts(trace).strings
    first_named: dict[tuple[int, str], int] = {}  # pairs name one instruction by several paths of calls
    same: list[int] = []
    names: list[str] = []
    instructions: list[Instruction | None] = []
    for number, text in pairs.tolist():
        if number not in programs:
            programs[number] = Instructions(trace, number)
        name = instruction_name(strings[text])
        same.append(first_named.setdefault((number, name), len(names)))
        names.append(name)
        instructions.append(programs[number].get(name))
    first = first_of_runs(trace, rows, op)
    duration = np.add.reduceat(trace.events["duration_ps"][rows], first)
    occurrences = Occurrences(
        np.array(same, np.int64)[op[first]], duration, duration, eager_ops(trace)[rows[first]]
    )
    ops = sum_occurrences([(str(i), "") for i in range(len(names))], occurrences, 0)
    pair_rows = [int(i) for i in ops.name]
    details = [instructions[i] or Instruction("", "") for i in pair_rows]
    return replace(
        ops,
        name=tuple(names[i] for i in pair_rows),
        type=tuple(detail.opcode for detail in details),
        program=tuple(max(0, int(pairs[i][0])) for i in pair_rows),
        provenance=tuple(_with_colon(detail.op_name) for detail in details),
        tensor_core_ps=_tensor_core_ps(trace, rows, op, len(pairs)),
    )


def first_of_runs(trace: Trace, rows: Rows, op: Int64s) -> Rows:
    """Return the positions where occurrences begin: successive kernels (ascending event rows) of one
    operation in one step and stream are one occurrence.

    Without a step, successive kernels may be successive runs, so each counts.
    """
    group, line = groups(trace).group[rows], trace.event_line[rows]
    is_new = np.append(
        True, (op[1:] != op[:-1]) | (group[1:] != group[:-1]) | (line[1:] != line[:-1]) | (group[1:] < 0)
    )
    return np.flatnonzero(is_new)


def _with_colon(op_name: str) -> str:
    """Add the colon that parse_op() expects and that HLO metadata omits."""
    return op_name if not op_name or ":" in op_name else f"{op_name}:"


def _framework_ops(trace: Trace, rows: Rows, text: Int64s, details: Details | None) -> OpMetrics:
    """Kernels that name a framework operation: one row per operation and kernel; all kernels of graph
    launches share one row.
    """
    if not len(rows):
        return no_ops()
    name_id = trace.metadata["name"][trace.events["metadata"][rows]].astype(np.int64)
    graphs = [i for i in np.unique(text).tolist() if is_graph_launch(trace.strings[i])]
    of_graph = np.isin(text, graphs) & kernel_mask(trace)[rows]
    name_id[of_graph] = -1
    detail = details.code[rows].astype(np.int64) if details else np.full(len(rows), -1, np.int64)
    keys, op = distinct_rows(text, name_id, detail)
    full = [trace.strings[key[0]] for key in keys.tolist()]
    parsed = [parse_op(name) for name in full]
    names = [
        (op.name if kernel < 0 else f"{op.name}/{trace.strings[kernel]}", op.type)
        for op, kernel in zip(parsed, keys[:, 1].tolist(), strict=True)
    ]
    # An occurrence is one kernel; for a graph, one launch, identified by its correlation id.
    launch = np.where(
        of_graph, values_at(rows, *first_ints(trace, "correlation_id"), -1), -2 - np.arange(len(rows))
    )
    pairs, occurrence = distinct_rows(op, launch)
    first = np.empty(len(pairs), np.int64)
    first[occurrence[::-1]] = np.arange(len(rows) - 1, -1, -1)
    duration = sum_by(occurrence, trace.events["duration_ps"][rows], len(first))
    ops = sum_occurrences(names, Occurrences(op[first], duration, duration, eager_ops(trace)[rows[first]]), 0)
    ops = replace(
        ops,
        provenance=tuple(full),
        tensor_core_ps=_tensor_core_ps(trace, rows, op, len(keys)),
        details=details.of(keys[:, 2]) if details else (),
    )
    return _with_inputs_work(trace, ops, rows, op) if records_inputs(trace) else ops


def _with_inputs_work(trace: Trace, ops: OpMetrics, rows: Rows, op: Int64s) -> OpMetrics:
    """`ops` with the work that the inputs of PyTorch's operators determine; unknown for an operation if that
    of any of its kernels (event rows; `op`: their rows of `ops`) is. Fills and copies beside the kernels of a
    call add nothing: its work is that of the kernels.
    """
    work = kernel_work(trace)
    beside = np.isin(values_at(rows, *first_ints(trace, "launched_by"), -1), work.call)
    missing = np.where(beside & ~kernel_mask(trace)[rows], 0.0, np.nan)
    place = np.minimum(np.searchsorted(work.rows, rows), max(len(work) - 1, 0))
    is_known = work.rows[place] == rows if len(work) else np.zeros(len(rows), np.bool_)
    flops, n_bytes, roof_flops = (
        np.bincount(op, np.where(is_known, values[place], missing), len(ops)).astype(np.float64)
        if len(work)
        else np.full(len(ops), np.nan)
        for values in (work.flops, work.n_bytes, work.roof_flops)
    )
    if len(work):
        is_miscounted = is_known & ((work.flops_excess > 0) | (work.bytes_excess > 0))[place]
        miscounted = np.where(is_miscounted, trace.events["duration_ps"][rows], 0)
        ops = replace(ops, miscounted_ps=np.bincount(op, miscounted, len(ops)).astype(np.float64))
    return replace(ops, flops=flops, model_flops=flops, n_bytes=n_bytes, roof_flops=roof_flops)


def _tensor_core_ps(trace: Trace, rows: Rows, op: Int64s, n: int) -> npt.NDArray[np.float64]:
    """Time in ps of the kernels (event rows) of each of n operations that run on tensor cores."""
    metadata, code = np.unique(trace.events["metadata"][rows], return_inverse=True)
    names = trace.metadata["name"][metadata].tolist()
    uses = np.array([uses_tensor_cores(trace.strings.get(name)) for name in names], np.bool_)
    duration = np.where(uses[code.reshape(-1)], trace.events["duration_ps"][rows], 0)
    return sum_by(op, duration, n).astype(np.float64)


def _derived_ops(trace: Trace, plane: int, kernels: Rows) -> tuple[OpMetrics, Rows]:
    """Kernels by the operation above them on the line that the file's writer derived (`TensorFlow Ops`), and
    the kernels without one.

    An event of that line is one occurrence, on however many streams its kernels ran.
    """
    ids = trace.lines["id"] & 0xFFFFFFFF
    lines = [
        line
        for line in trace.lines_of([plane]).tolist()
        if ids[line] == DERIVED_OPS and trace.lines["n_events"][line]
    ]
    if not lines or not len(kernels):
        return no_ops(), kernels
    ops = line_events(trace, lines[0])
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    position = np.searchsorted(start[ops], start[kernels], side="right") - 1
    is_inside = (position >= 0) & (
        start[kernels] + duration[kernels] <= (start[ops] + duration[ops])[position]
    )
    rows, op_row = kernels[is_inside], position[is_inside] + ops.start
    if not len(rows):
        return no_ops(), kernels
    event, first, occurrence = np.unique(op_row, return_index=True, return_inverse=True)
    metadata, op = np.unique(trace.events["metadata"][event], return_inverse=True)
    full = [trace.strings[i] for i in trace.metadata["name"][metadata].tolist()]
    names = [
        (name, parsed.type if parsed.category != UNKNOWN else IDLE)
        for name, parsed in ((n, parse_op(n)) for n in full)
    ]
    total = sum_by(occurrence.reshape(-1), duration[rows], len(event))
    derived = sum_occurrences(
        names, Occurrences(op.reshape(-1), total, total, eager_ops(trace)[rows[first]]), 0
    )
    on_tensor_cores = _tensor_core_ps(trace, rows, op.reshape(-1)[occurrence.reshape(-1)], len(names))
    return replace(derived, provenance=derived.name, tensor_core_ps=on_tensor_cores), kernels[~is_inside]


def _unattributed_ops(trace: Trace, kernels: Rows) -> OpMetrics:
    """Kernels without a known operation: a row for each name, without template parameters."""
    if not len(kernels):
        return no_ops()
    name_id, name_code = np.unique(
        trace.metadata["name"][trace.events["metadata"][kernels]], return_inverse=True
    )
    rows: dict[str, int] = {}
    row_of_name = np.array(
        [rows.setdefault(short_name(trace.strings.get(i)), len(rows)) for i in name_id.tolist()], np.int64
    )
    duration, op = trace.events["duration_ps"][kernels], row_of_name[name_code.reshape(-1)]
    occurrences = Occurrences(op, duration, duration, np.zeros(len(kernels), np.bool_))
    ops = sum_occurrences([(name, NO_OPERATION) for name in rows], occurrences, 0)
    return replace(ops, tensor_core_ps=_tensor_core_ps(trace, kernels, op, len(rows)))
