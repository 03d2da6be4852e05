"""Operators of a PyTorch profile as device operations: one row per operator and sizes of its inputs, with the
work of their calls and the time of the kernels that these launched.

    aten::mm (788×768, 768×768)     matrix multiplication
    all_reduce (record_param_comms) all-reduce             collectives: their kind, as HLO names it
    cudaGraphLaunch in Compiled     graph launch           all kernels of the graph's launches
    vectorized_add                  kernel without an operator  by name

Kernels only: copies and fills by the driver are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.kernel_names import short_name
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.names import is_graph_launch
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.kernels.rows import kernel_mask
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, words_of
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.pytorch.kernels import KernelWork, kernel_work, records_inputs
from tb_tpuprof.analysis.pytorch.work import category_of, shapes_text
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
PROGRAM, TITLE = 0, "PyTorch"
GRAPH, NO_OPERATOR = "graph launch", "kernel without an operator"
_LONGEST_SHAPES = 200


@dataclass(frozen=True)
class TorchOps:
    """`ops`: one row per operator and sizes. For each occurrence, a call: its first kernel (event), its row
    of `ops`, the time of its kernels in ps.
    """

    ops: HloOps
    event: Int64s
    op: Int64s
    time_ps: Int64s


@dataclass(frozen=True)
class _Label:
    """Name, category and operator of a row."""

    name: str
    category: str
    operator: str


def has_torch_ops(trace: Trace) -> bool:
    """Whether the file states the inputs of the operators that launched its kernels."""
    return records_inputs(trace) and trace.event_stats.has("launched_by") and bool(planes(trace).gpus)


@once
def torch_ops(trace: Trace) -> TorchOps:
    """Operators of one host by their kernels. Work is unknown for a row if it is for any of its calls."""
    kernels = np.flatnonzero(kernel_mask(trace))
    collective = trace.event_stats.texts_at("comm_kind", kernels)
    work = kernel_work(trace).kept(~np.isin(kernel_work(trace).rows, kernels[collective >= 0]))
    rest = np.setdiff1d(kernels, work.rows, assume_unique=True)
    labels = _of_calls(trace, work)
    rest_labels, rest_label, rest_occurrence = _of_others(trace, rest)
    listed = labels + rest_labels
    rows, label = np.append(work.rows, rest), np.append(work.kind, rest_label + len(labels))
    occurrence = np.append(work.call, -1 - rest_occurrence)
    used, label = np.unique(label, return_inverse=True)
    names: dict[str, int] = {}
    op_of_label = np.array([names.setdefault(listed[i].name, len(names)) for i in used.tolist()], np.int64)
    op = op_of_label[label.reshape(-1)] if len(label) else np.empty(0, np.int64)
    first_label = used[np.unique(op_of_label, return_index=True)[1]].tolist()
    _, first, code = np.unique(occurrence, return_index=True, return_inverse=True)
    code = code.reshape(-1)
    time_ps = sum_by(code, trace.events["duration_ps"][rows], len(first))
    event = np.full(len(first), trace.n_events, np.int64)
    np.minimum.at(event, code, rows)
    ops = _record(trace, [listed[i] for i in first_label], op[first], time_ps, _work(work, op, len(names)))
    return TorchOps(ops, event, op[first], time_ps)


def _of_calls(trace: Trace, work: KernelWork) -> list[_Label]:
    """The labels of the rows of `work.calls`."""
    labels = []
    for name_id, inputs_id in zip(work.calls.name.tolist(), work.calls.inputs.tolist(), strict=True):
        name = trace.strings.get(name_id)
        shapes = shapes_text(trace.strings.get(inputs_id)) if inputs_id >= 0 else ""
        cut = shapes if len(shapes) <= _LONGEST_SHAPES else f"{shapes[:_LONGEST_SHAPES]}…"
        labels.append(_Label(f"{name} ({cut})" if cut else name, category_of(name), name))
    return labels


def _of_others(trace: Trace, rows: Rows) -> tuple[list[_Label], Int64s, Int64s]:
    """The labels of all other kernels, the label and the occurrence of each: all kernels of a launch of a
    graph are one.
    """
    columns = (
        trace.event_stats.texts_at("tf_op", rows),
        trace.event_stats.texts_at("comm_kind", rows),
        trace.metadata["name"][trace.events["metadata"][rows]].astype(np.int64),
    )
    keys, label = distinct_rows(*columns)
    labels = [_label(*(trace.strings.get(i) if i >= 0 else "" for i in key)) for key in keys.tolist()]
    is_graph = np.array([one.category == GRAPH for one in labels], np.bool_)[label]
    launch = values_at(rows, *first_ints(trace, "correlation_id"), -1)
    own = np.arange(len(rows), dtype=np.int64)
    _, occurrence = distinct_rows(is_graph, np.where(is_graph, launch, own))
    return labels, label, occurrence


def _label(operation: str, collective: str, kernel: str) -> _Label:
    """The label of a kernel of a graph, of a collective, or of a kernel without an operator. A kernel of a
    graph may have the operator that put it there.
    """
    if is_graph_launch(operation):
        return _Label(operation, GRAPH, operation)
    if collective:
        return _Label(operation or short_name(kernel), collective, operation)
    if operation:
        return _Label(operation, category_of(operation), operation)
    return _Label(short_name(kernel), NO_OPERATOR, "")


def _work(work: KernelWork, op: Int64s, n: int) -> Work:
    """The work of n operations; `op`: the operation of each kernel, those of `work.rows` first."""
    missing = np.full(len(op) - len(work), np.nan)
    flops, n_bytes, roof_flops = (
        np.bincount(op, np.append(values, missing), n).astype(np.float64)
        for values in (work.flops, work.n_bytes, work.roof_flops)
    )
    space = np.zeros((len(SPACES), n))
    space[0] = np.nan_to_num(n_bytes)
    knows_flops, knows_bytes = np.isfinite(flops), np.isfinite(n_bytes)
    known = np.nan_to_num(flops)
    excess = np.zeros((1 + len(SPACES), n))
    for largest, values in zip(excess, (work.flops_excess, work.bytes_excess), strict=False):
        np.maximum.at(largest, op[: len(work)], values)
    return Work(
        known,
        known,
        space[0].copy(),
        space,
        knows_flops,
        knows_bytes,
        np.nan_to_num(roof_flops),
        excess if excess.any() else excess[:, :0],
    )


def _record(trace: Trace, labels: list[_Label], op: Int64s, time_ps: Int64s, work: Work) -> HloOps:
    """The record of operations: their labels, the operation and time of each occurrence."""
    n = len(labels)
    none, total_ps = np.zeros(n, np.int64), sum_by(op, time_ps, n)
    span_ps, n_devices = _spans(trace)
    empty = Words(none, ("",))
    columns: dict[str, Any] = {
        "name": words_of([label.name for label in labels]),
        "category": words_of([label.category for label in labels]),
        "provenance": words_of([f"{label.operator}:" if label.operator else "" for label in labels]),
        **dict.fromkeys(("source", "twin", "core"), empty),
        **dict.fromkeys(("time_ps", "self_ps", "normalized_ps", "work_ps"), total_ps),
        **dict.fromkeys(("thread_ps", "instruction", "metadata"), none - 1),
        **dict.fromkeys(("program", "stall_ps", "host"), none),
    }
    return HloOps(
        **columns,
        n_occurrences=np.bincount(op, minlength=n).astype(np.int64),
        energy_j=np.zeros(n),
        work=work,
        span_ps=span_ps,
        n_devices=n_devices,
        kind="GPU",
        programs={PROGRAM: TITLE} if n else {},
        has_hlo=False,
    )


def _spans(trace: Trace) -> tuple[int, int]:
    """Time in ps from the first event to the last, summed over the GPUs that have any; their number."""
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    spans = [
        int((start[rows] + duration[rows]).max() - start[rows].min())
        for rows in (stream_events(trace, plane) for plane in planes(trace).gpus)
        if len(rows)
    ]
    return sum(spans), len(spans)
