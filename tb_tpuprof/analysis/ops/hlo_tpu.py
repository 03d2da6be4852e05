"""Operations of TensorCores and SparseCores → HloOps, from the metadata that the TPU's compiler wrote into
the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, STEP_LINES, lines_named, planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, first_ints, mix, values_at
from tb_tpuprof.analysis.hlo.work import COLUMNS, CUSTOM_CALL, ProgramCosts, Work
from tb_tpuprof.analysis.ops.async_ops import async_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, program_titles, words_by_id
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.ops.tpu_work import add_events_own, forget, tpu_work, working_ps
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans, device_spans
from tb_tpuprof.trace.stats import Sparse
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_SPARSE_OPS = "Sparse Core Ops"


class _Sums:
    """Per row of metadata what its events add up to, as the cores are gone through."""

    def __init__(self, n: int) -> None:
        self.n_occurrences, self.time_ps, self.self_ps, self.normalized_ps, self.stall_ps = (
            np.zeros(n, np.int64) for _ in range(5)
        )
        self.is_sparse = np.zeros(n, np.bool_)
        self.span_ps = 0
        self.n_cores = 0


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows of metadata that are `used`, the operation that each is of, and for each operation the `first` of
    them.
    """

    sums: _Sums
    used: Rows
    first: Rows
    op: Int64s


@once
def _counted(trace: Trace) -> _Counted:
    sums = _all_cores(trace)
    n = len(trace.metadata)
    program, symbol = (
        trace.metadata_stats.dense_ints(key, n, missing)
        for key, missing in (("program_id", -1), ("symbol_id", 0))
    )
    used = np.flatnonzero((sums.n_occurrences > 0) & (program != -1) & (symbol != 0))
    # One operation on one kind of core is a row, whichever core's metadata names it.
    key = mix(
        mix(program[used], trace.event_names[used].astype(np.int64)), sums.is_sparse[used].astype(np.int64)
    )
    found, at = distinct_codes(key)
    first = np.empty(len(found), np.intp)
    first[at[::-1]] = np.arange(len(at))[::-1]
    return _Counted(sums, used, first, at)


def tpu_occurrences(trace: Trace) -> tuple[Rows, Int64s]:
    """Events of the TensorCores' operations, and the row of `tpu_hlo_ops` that counts each."""
    counted = _counted(trace)
    of_metadata = np.full(len(trace.metadata), -1, np.int64)
    of_metadata[counted.used] = counted.op
    lines = [line for plane in planes(trace).tensor_cores for line in lines_named(trace, plane, (OP_LINE,))]
    events = np.concatenate(
        [np.empty(0, np.intp), *(device_spans(trace, line).rows for line in lines)]
    ).astype(np.intp)
    op = of_metadata[trace.events["metadata"][events]]
    return events[op >= 0], op[op >= 0]


def tpu_hlo_ops(trace: Trace) -> HloOps:
    """Operations by (program, name); metadata without a program or a symbol is left out, as the peer does.

    FLOPs and bytes are stated per occurrence; custom calls may state their own in each event. Programs none
    of whose operations states any are asked of the cost model. An asynchronous operation's work counts once,
    where it ends, over the time from its start. Operations of SparseCores have `core` SparseCore; their time
    runs beside the TensorCores', so it is in no share and no span.
    """
    counted = _counted(trace)
    sums, used, first, at = counted.sums, counted.used, counted.first, counted.op
    n, n_ops = len(trace.metadata), len(first)
    program = trace.metadata_stats.dense_ints("program_id", n)
    names = trace.event_names[used].astype(np.int64)
    rows = used[first]
    columns: dict[str, Any] = {
        ours: words_by_id(trace.metadata_stats.dense_texts(key, n)[rows].astype(np.int64), trace.strings)
        for ours, key in _TEXTS.items()
    }
    name = columns["name"] = words_by_id(names[first], trace.strings)
    columns |= {ours: sum_by(at, getattr(sums, ours)[used], n_ops) for ours in _SUMS}
    costs = ProgramCosts(trace)
    silent = ~np.isin(program[rows], program[_stating(trace)])
    instruction = _instructions(costs, program[rows], name, silent)
    work = _work(trace, costs, rows, (program[rows], instruction), columns["n_occurrences"])
    add_events_own(trace, work, rows, columns["category"].is_in((CUSTOM_CALL,)))
    work_ps = working_ps(trace, used, at, columns["n_occurrences"], columns["time_ps"])
    forget(
        work, (work_ps == 0) & (async_ops(trace).start_of[rows] >= 0)
    )  # neither half of any occurrence was matched: no rate
    return HloOps(
        **columns,
        program=program[rows],
        thread_ps=np.full(n_ops, -1, np.int64),
        core=Words(sums.is_sparse[rows].astype(np.int64), ("TensorCore", "SparseCore")),
        energy_j=np.zeros(n_ops),
        work=work,
        work_ps=work_ps,
        instruction=instruction,
        metadata=rows.astype(np.int64),
        host=np.zeros(n_ops, np.int64),
        span_ps=sums.span_ps,
        n_devices=sums.n_cores,
        kind="TPU",
        programs=program_titles(trace, costs, np.unique(program[rows]).tolist()),
        unreadable=costs.unreadable,
    )


_TEXTS = {"category": "hlo_category", "provenance": "tf_op", "source": "source", "twin": "deduplicated_name"}
_SUMS = ("n_occurrences", "time_ps", "self_ps", "normalized_ps", "stall_ps")


def _all_cores(trace: Trace) -> _Sums:
    sums = _Sums(len(trace.metadata))
    scale = trace.event_stats.floats("Time Scale Multiplier")
    stall = first_ints(trace, "dma_stall_duration_ps")
    roles = planes(trace)
    for plane in (*roles.tensor_cores, *roles.sparse_cores):
        is_sparse = plane in roles.sparse_cores
        lines = lines_named(trace, plane, (_SPARSE_OPS if is_sparse else OP_LINE,))
        ops = [device_spans(trace, line) for line in lines]
        for spans in ops:
            _add(sums, trace, spans, scale, stall)
            sums.is_sparse[trace.events["metadata"][spans.rows]] |= is_sparse
        all_spans = [*ops, *(device_spans(trace, line) for line in lines_named(trace, plane, STEP_LINES))]
        extent = [
            (int(s.start_ps[0]), int((s.start_ps + s.duration_ps).max())) for s in all_spans if len(s.rows)
        ]
        if extent and not is_sparse:
            sums.span_ps += max(last for _, last in extent) - min(first for first, _ in extent)
            sums.n_cores += 1
    return sums


def _add(
    sums: _Sums, trace: Trace, spans: DeviceSpans, scale: Sparse, stall: tuple[npt.NDArray[np.int32], Int64s]
) -> None:
    n = len(trace.metadata)
    metadata = trace.events["metadata"][spans.rows].astype(np.int64)
    sums.n_occurrences += np.bincount(metadata, minlength=n)
    sums.time_ps += sum_by(metadata, spans.duration_ps, n)
    sums.self_ps += sum_by(metadata, spans.self_ps, n)
    normalized = spans.duration_ps
    if len(scale.owner):
        at = np.minimum(np.searchsorted(scale.owner, spans.rows), len(scale.owner) - 1)
        factor = np.where(scale.owner[at] == spans.rows, scale.value[at].astype(np.float64), 1.0)
        normalized = (spans.duration_ps * factor).astype(np.int64)
    sums.normalized_ps += sum_by(metadata, normalized, n)
    if len(stall[0]):
        sums.stall_ps += sum_by(metadata, values_at(spans.rows, *stall, 0), n)


def _stating(trace: Trace) -> npt.NDArray[np.bool_]:
    """Which rows of metadata state work."""
    states = np.zeros(len(trace.metadata), np.bool_)
    for key in ("flops", "model_flops", "bytes_accessed"):
        states[trace.metadata_stats.ints(key).owner] = True
    return states


def _instructions(costs: ProgramCosts, program: Int64s, name: Words, chosen: npt.NDArray[np.bool_]) -> Int64s:
    """Row of the chosen operations in their program's module, -1 where the trace has no HLO of it, and of
    others.

    The others' are looked up when an operation is looked at: that needs no reading of the whole module for a
    table.
    """
    result = np.full(len(program), -1, np.int64)
    for number in np.unique(program[chosen]).tolist():
        module = costs.module(number)
        if module is not None:
            mine = np.flatnonzero(program == number)
            by_name = module.by_name
            result[mine] = [by_name.get(name[i], -1) for i in mine.tolist()]
    return result


def _work(
    trace: Trace, costs: ProgramCosts, rows: Rows, place: tuple[Int64s, Int64s], n_occurrences: Int64s
) -> Work:
    """Work of all occurrences."""
    program, instruction = place
    per_run = tpu_work(trace).taken(rows)
    silent = ~np.isin(program, program[per_run.is_known]) & (instruction >= 0)
    work = per_run.times(n_occurrences)
    if silent.any():
        chosen = np.flatnonzero(silent)
        modelled = costs.work(program[chosen], instruction[chosen]).times(n_occurrences[chosen])
        for key in COLUMNS:
            getattr(work, key)[..., chosen] = getattr(modelled, key)
    return work
