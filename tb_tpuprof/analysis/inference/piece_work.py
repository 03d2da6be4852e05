"""FLOPs and bytes of each stretch of device work, from the operations that run in it.

GPU    a kernel is a stretch; the first kernel of an operation's run has the work of the run
TPU    a run of a program is a stretch; operations belong to the run that they start in, on their core
CPU    a run of an operation is a stretch
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.inference.work import Part, Work, work
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.hlo_steps import occurrences
from tb_tpuprof.analysis.ops.hlo_tpu import tpu_occurrences
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PieceWork:
    """One row per row of `work`; all zero but for work on a device. `device`: its plane, 0 on a CPU.

    `worked_ps`: time of operations in it, of which those with known FLOPs take `flops_ps`, those with known
    bytes `bytes_ps`; an operation that only waits or runs others is known to do nothing itself. `flops`,
    `hbm_bytes`, `roof_flops`: see Work.
    """

    device: Int64s
    worked_ps: Floats
    flops_ps: Floats
    bytes_ps: Floats
    flops: Floats
    roof_flops: Floats
    hbm_bytes: Floats

    @property
    def amounts(self) -> tuple[Floats, ...]:
        """All columns except the device."""
        return (
            self.worked_ps, self.flops_ps, self.bytes_ps, self.flops, self.roof_flops, self.hbm_bytes
        )  # fmt: skip


@dataclass(frozen=True)
class _Runs:
    """Runs of operations: the row of `work` that each is in (-1 none), its row of `device_ops` (-1 none), its
    time in ps without that of operations that it runs.
    """

    piece: Int64s
    op: Int64s
    self_ps: Int64s


@once
def piece_work(trace: Trace) -> PieceWork:
    """The work of all stretches of one host."""
    done, ops = work(trace), device_ops(trace)
    n = len(done)
    is_device = done.part == Part.DEVICE
    length = np.where(is_device, done.end - done.start, 0).astype(np.float64)
    kind = planes(trace).hardware
    device = np.zeros(n, np.int64)
    if kind != "CPU":
        device = trace.lines["plane"][trace.lines_at(done.event)].astype(np.int64)
    runs = {"TPU": _on_tpus, "GPU": _on_gpus}.get(kind, _on_cpus)(trace, done, ops)
    inside = np.flatnonzero(runs.piece >= 0)
    piece, op, self_ps = runs.piece[inside], runs.op[inside], runs.self_ps[inside].astype(np.float64)
    worked = length
    if kind != "GPU":  # a core without a line of operations shows only that its program runs
        worked = np.where(np.bincount(piece, minlength=n) > 0, np.bincount(piece, self_ps, n), length)
    is_op = np.flatnonzero(op >= 0)
    piece, op, self_ps = piece[is_op], op[is_op], self_ps[is_op]
    per_run = ops.work.times(1 / np.maximum(ops.n_occurrences, 1))
    does_nothing, counts = ops.is_container | ops.is_waiting, ~ops.is_container

    def total(amount: Floats, is_counted: npt.NDArray[np.bool_]) -> Floats:
        result: Floats = np.bincount(piece, np.where(is_counted[op], amount[op], 0), n).astype(np.float64)
        return result

    def time_of(is_counted: npt.NDArray[np.bool_]) -> Floats:
        result: Floats = np.bincount(piece, np.where(is_counted[op], self_ps, 0), n).astype(np.float64)
        return result

    knows_flops, knows_bytes = ops.work.knows_flops, ops.work.knows_bytes
    return PieceWork(
        device,
        worked,
        time_of(knows_flops | does_nothing),
        time_of(knows_bytes | does_nothing),
        total(per_run.flops, knows_flops & counts),
        total(per_run.roof_flops, knows_flops & counts),
        total(per_run.space_bytes[0], knows_bytes & counts),
    )


def _piece_of(done: Work, events: npt.NDArray[np.integer]) -> Int64s:
    """The row of `work` of each event on a device, -1 for none."""
    rows = np.flatnonzero(done.part == Part.DEVICE)
    if not len(rows):
        return np.full(len(events), -1, np.int64)
    rows = rows[np.argsort(done.event[rows], kind="stable")]
    place = np.minimum(np.searchsorted(done.event[rows], events), len(rows) - 1)
    return np.where(done.event[rows[place]] == events, rows[place], -1).astype(np.int64)


def _on_gpus(trace: Trace, done: Work, ops: HloOps) -> _Runs:
    events, op, time_ps = occurrences(trace, ops)
    return _Runs(_piece_of(done, events), op, time_ps)


def _on_cpus(trace: Trace, done: Work, ops: HloOps) -> _Runs:
    runs = cpu_runs(trace)
    names, codes, programs = ops.name.strings, ops.name.codes.tolist(), ops.program.tolist()
    row_of = {(programs[i], names[codes[i]]): i for i in range(len(ops))}
    rows = [row_of.get((one.program_id, one.name), -1) for one in hlo_links(trace).ops]
    op = np.array([*rows, -1], np.int64)[runs.op] if len(runs) else np.empty(0, np.int64)
    return _Runs(_piece_of(done, runs.event), op, runs.self_ps)


def _on_tpus(trace: Trace, done: Work, ops: HloOps) -> _Runs:
    """All events of the cores' lines of operations, by the run of a program that they start in."""
    occurrences, op_of_occurrence = tpu_occurrences(trace)
    order = np.argsort(occurrences, kind="stable")
    occurrences, op_of_occurrence = occurrences[order], op_of_occurrence[order]
    none = np.empty(0, np.int64)
    pieces, found_ops, times = [none], [none], [none]
    on_device = np.flatnonzero(done.part == Part.DEVICE)
    plane_of = trace.lines["plane"][trace.lines_at(done.event[on_device])]
    for plane in planes(trace).tensor_cores:
        of_core = on_device[plane_of == plane]
        of_core = of_core[np.argsort(done.start[of_core], kind="stable")]
        for line in lines_named(trace, plane, (OP_LINE,)) if len(of_core) else ():
            spans = device_spans(trace, line)
            start = trace.events["start_ps"][spans.rows]
            place = np.searchsorted(done.start[of_core], start, side="right") - 1
            run = of_core[np.maximum(place, 0)]
            pieces.append(np.where((place >= 0) & (start < done.end[run]), run, -1))
            nearest = np.minimum(np.searchsorted(occurrences, spans.rows), max(len(occurrences) - 1, 0))
            is_known = (
                occurrences[nearest] == spans.rows if len(occurrences) else np.zeros(len(start), np.bool_)
            )
            found_ops.append(
                np.where(is_known, op_of_occurrence[nearest], -1) if len(occurrences) else nearest - 1
            )
            times.append(spans.self_ps)
    return _Runs(*(np.concatenate(column).astype(np.int64) for column in (pieces, found_ops, times)))
