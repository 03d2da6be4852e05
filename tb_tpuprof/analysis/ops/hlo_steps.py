"""Work of the compiled operations in each step: the points that steps have in a roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.hlo.work import Work, join_work, summed_work
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.gpu import first_of_runs
from tb_tpuprof.analysis.ops.hlo_record import TRANSFERS, HloOps
from tb_tpuprof.analysis.ops.hlo_tpu import tpu_occurrences
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.ops.torch_ops import torch_ops
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.steps import steps as trace_steps
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class StepWork:
    """One row per step of a host: its time in ps summed over all devices, the infeed and outfeed time in it,
    and its work except that of infeed and outfeed.
    """

    name: tuple[str, ...]
    time_ps: Int64s
    transfer_ps: Int64s
    work: Work

    def __len__(self) -> int:
        return len(self.name)

    def taken(self, rows: slice) -> StepWork:
        """A selection of the steps."""
        return StepWork(
            self.name[rows],
            self.time_ps[rows],
            self.transfer_ps[rows],
            self.work.taken(np.arange(len(self))[rows]),
        )


@once
def step_work(trace: Trace) -> StepWork:
    """Work of each step of one host: the occurrences of its operations times the work of one occurrence.
    Containers do no work themselves.
    """
    steps, ops = trace_steps(trace), device_ops(trace)
    if not len(steps):
        return StepWork((), _NONE, _NONE, ops.work.taken(np.empty(0, np.intp)))
    rows, op, time_ps = occurrences(trace, ops)
    group = groups(trace).group[rows].astype(np.int64)
    order = np.argsort(steps.number, kind="stable")
    ordered = steps.number[order]
    position = np.searchsorted(ordered, group)
    is_in_step = position < len(ordered)
    is_in_step[is_in_step] = ordered[position[is_in_step]] == group[is_in_step]
    step, op, time_ps = order[position[is_in_step]], op[is_in_step], time_ps[is_in_step]
    n = len(steps)
    per_run = ops.work.times(1 / np.maximum(ops.n_occurrences, 1))
    work = summed_work(per_run.taken(op.astype(np.intp)), step, n, ~ops.is_container[op])
    is_transfer = ops.category.is_in(TRANSFERS)[op] if len(ops) else np.zeros(0, np.bool_)
    transfer = sum_by(step[is_transfer], time_ps[is_transfer], n)
    return StepWork(tuple(steps.name), steps.duration_ps * max(ops.n_devices, 1), transfer, work)


def sum_step_work(parts: Sequence[StepWork], rows: Sequence[slice]) -> StepWork:
    """Sum the steps that hosts have in common over hosts; `rows` selects these steps of each host."""
    shared = [part.taken(host_rows) for part, host_rows in zip(parts, rows, strict=True)]
    shared = [part for part in shared if len(part)]
    if not shared:
        return parts[0].taken(slice(0, 0))
    if len(shared) == 1:
        return shared[0]
    n = len(shared[0])
    total = summed_work(join_work([part.work for part in shared]), np.tile(np.arange(n), len(shared)), n)
    times = [np.sum([getattr(part, key) for part in shared], axis=0) for key in ("time_ps", "transfer_ps")]
    return StepWork(shared[0].name, times[0], times[1], total)


def occurrences(trace: Trace, ops: HloOps) -> tuple[npt.NDArray[np.intp], Int64s, Int64s]:
    """First event, operation and time in ps of each occurrence, as `device_ops` counts them."""
    if not ops.has_hlo:
        calls = torch_ops(trace)
        return calls.event.astype(np.intp), calls.op, calls.time_ps
    if ops.kind == "TPU":
        tpu_events, op = tpu_occurrences(trace)
        return tpu_events, op, trace.events["duration_ps"][tpu_events]
    links = hlo_links(trace)
    op_rows = np.flatnonzero(~ops.is_sparse).tolist()
    texts, codes, programs = ops.name.strings, ops.name.codes.tolist(), ops.program.tolist()
    row_of = {(programs[i], texts[codes[i]]): i for i in op_rows}
    rows = np.array([row_of.get((op.program_id, op.name), -1) for op in links.ops], np.int64)
    selected = (
        np.flatnonzero(_is_counted(trace, ops.kind, links.events))
        if len(links.events)
        else np.empty(0, np.intp)
    )
    selected = selected[rows[links.op[selected]] >= 0]
    events, op = links.events[selected].astype(np.intp), links.op[selected]
    duration = trace.events["duration_ps"][events]
    if ops.kind == "GPU" and len(events):
        first = first_of_runs(trace, events, op)
        events, op, duration = events[first], op[first], np.add.reduceat(duration, first)
    return events, rows[op], duration


def _is_counted(trace: Trace, kind: str, events: Int64s) -> npt.NDArray[np.bool_]:
    """Mark events on the lines whose operations are counted."""
    line = trace.event_line[events]
    plane = trace.lines["plane"][line]
    roles = planes(trace)
    if kind == "GPU":
        streams = [stream_events(trace, gpu) for gpu in roles.gpus]
        return np.isin(events, np.concatenate(streams)) if streams else np.zeros(len(events), np.bool_)
    return np.isin(plane, roles.hosts)
