"""Operations of TensorCores and SparseCores → HloOps, from the metadata that the TPU compiler wrote into the
trace.
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
from tb_tpuprof.analysis.ops.tpu_work import forget, tpu_work, use_event_work, working_ps
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans, device_spans
from tb_tpuprof.trace.stats import Sparse
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_LARGEST_SCALE, _LONGEST_PS = 1e6, 2.0**60  # others come from damaged files, and would overflow sums
_SPARSE_OPS = "Sparse Core Ops"


class _Sums:
    """Sums of the events of each metadata row, accumulated core by core."""

    def __init__(self, n: int) -> None:
        self.n_occurrences, self.time_ps, self.self_ps, self.normalized_ps, self.stall_ps = (
            np.zeros(n, np.int64) for _ in range(5)
        )
        self.is_sparse = np.zeros(n, np.bool_)
        self.span_ps = 0
        self.n_cores = 0


@dataclass(frozen=True, eq=False)
class _Counted:
    """The metadata rows in use (`used`), the operation of each (`op`), and the first of these rows of each
    operation (`first`).
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
    # One operation on one kind of core is one row, even if the metadata of several cores name it.
    key = mix(
        mix(program[used], trace.event_names[used].astype(np.int64)), sums.is_sparse[used].astype(np.int64)
    )
    distinct_keys, op = distinct_codes(key)
    first = np.empty(len(distinct_keys), np.intp)
    first[op[::-1]] = np.arange(len(op))[::-1]
    return _Counted(sums, used, first, op)


def op_of_metadata(trace: Trace) -> Int64s:
    """For each row of `metadata`, the row of `tpu_hlo_ops` that its events count in; -1 for none."""
    counted = _counted(trace)
    result = np.full(len(trace.metadata), -1, np.int64)
    result[counted.used] = counted.op
    return result


def tpu_occurrences(trace: Trace) -> tuple[Rows, Int64s]:
    """Events of the TensorCores' operations, and the row of `tpu_hlo_ops` that each counts in."""
    lines = [line for plane in planes(trace).tensor_cores for line in lines_named(trace, plane, (OP_LINE,))]
    events = np.concatenate(
        [np.empty(0, np.intp), *(device_spans(trace, line).rows for line in lines)]
    ).astype(np.intp)
    op = op_of_metadata(trace)[trace.events["metadata"][events]]
    return events[op >= 0], op[op >= 0]


def tpu_hlo_ops(trace: Trace) -> HloOps:
    """Operations by (program, name); metadata without a program or a symbol are left out, as in XProf.

    FLOPs and bytes are stated per occurrence; custom calls may state their own in each event. The cost model
    gives the work of programs whose operations state none. An asynchronous operation's work counts once,
    where it ends, over the time from its start. Operations of SparseCores have `core` SparseCore; they run
    concurrently with the TensorCores', so no share and no span includes their time.
    """
    counted = _counted(trace)
    sums, used, first, op = counted.sums, counted.used, counted.first, counted.op
    n, n_ops = len(trace.metadata), len(first)
    program = trace.metadata_stats.dense_ints("program_id", n)
    names = trace.event_names[used].astype(np.int64)
    rows = used[first]
    columns: dict[str, Any] = {
        column: words_by_id(trace.metadata_stats.dense_texts(key, n)[rows].astype(np.int64), trace.strings)
        for column, key in _TEXTS.items()
    }
    name = columns["name"] = words_by_id(names[first], trace.strings)
    columns |= {column: sum_by(op, getattr(sums, column)[used], n_ops) for column in _SUMS}
    costs = ProgramCosts(trace)
    is_silent = ~np.isin(program[rows], program[_states_work(trace)])
    instruction = _instructions(costs, program[rows], name, is_silent)
    work = _work(trace, costs, rows, (program[rows], instruction), columns["n_occurrences"])
    use_event_work(trace, work, used, op, columns["category"].is_in((CUSTOM_CALL,)))
    work_ps = working_ps(trace, used, op, columns["n_occurrences"], columns["time_ps"])
    # No occurrence has both halves: no rate.
    forget(work, (work_ps == 0) & (async_ops(trace).start_of[rows] >= 0))
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
        position = np.minimum(np.searchsorted(scale.owner, spans.rows), len(scale.owner) - 1)
        factor = scale.value[position].astype(np.float64)
        is_sound = (scale.owner[position] == spans.rows) & (factor > 0) & (factor <= _LARGEST_SCALE)
        scaled_ps = spans.duration_ps * np.where(is_sound, factor, 1.0)
        normalized = np.minimum(scaled_ps, _LONGEST_PS).astype(np.int64)
    sums.normalized_ps += sum_by(metadata, normalized, n)
    if len(stall[0]):
        sums.stall_ps += sum_by(metadata, values_at(spans.rows, *stall, 0), n)


def _states_work(trace: Trace) -> npt.NDArray[np.bool_]:
    """Mark the metadata rows that state work."""
    states = np.zeros(len(trace.metadata), np.bool_)
    for key in ("flops", "model_flops", "bytes_accessed"):
        states[trace.metadata_stats.ints(key).owner] = True
    return states


def _instructions(costs: ProgramCosts, program: Int64s, name: Words, mask: npt.NDArray[np.bool_]) -> Int64s:
    """Row of each operation in its program's module, -1 if the trace has no HLO of the program. Operations
    outside `mask` also get -1.

    They are looked up only when the user inspects one, so that a table needs no reading of whole modules.
    """
    result = np.full(len(program), -1, np.int64)
    for number in np.unique(program[mask]).tolist():
        module = costs.module(number)
        if module is not None:
            ops = np.flatnonzero(program == number)
            by_name = module.by_name
            result[ops] = [by_name.get(name[i], -1) for i in ops.tolist()]
    return result


def _work(
    trace: Trace, costs: ProgramCosts, rows: Rows, location: tuple[Int64s, Int64s], n_occurrences: Int64s
) -> Work:
    """Work of all occurrences."""
    program, instruction = location
    per_run = tpu_work(trace).taken(rows)
    is_silent = ~np.isin(program, program[per_run.is_known]) & (instruction >= 0)
    work = per_run.times(n_occurrences)
    if is_silent.any():
        silent_rows = np.flatnonzero(is_silent)
        modeled = costs.work(program[silent_rows], instruction[silent_rows]).times(n_occurrences[silent_rows])
        for key in COLUMNS:
            getattr(work, key)[..., silent_rows] = getattr(modeled, key)
    return work
