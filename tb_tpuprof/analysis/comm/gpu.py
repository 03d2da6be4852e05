"""GPUs: when each moves data, and when it computes.

    stream 7    ■■ kernel ■■  ■ kernel ■            computes
    stream 20     ├ ncclDevKernel_AllReduce ┤       moves data; hidden while any other stream computes
    stream 13        ├ MemcpyH2D ┤

Kernels of NCCL, RCCL and MSCCL exchange data between devices; copies move it between devices, to and from the
host's memory, or within the device's. All other kernels, and filling memory, compute.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import COPY, Activity, CommOp, Traffic, activity
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, first_ints
from tb_tpuprof.analysis.pod.comms import exchanges
from tb_tpuprof.analysis.pod.host import PodHost, step_rows
from tb_tpuprof.analysis.pod.transfers import kind_of
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.trace.collectives import UNKNOWN_KIND, is_collective_kernel
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
# By the beginning of a copy's name: `MemcpyH2D`, `MemcpyHToD`, `Memcpy HtoD (Pinned -> Device)`.
_COPY = re.compile(r"memcpy ?([hda])(?:2|to)([hda])", re.IGNORECASE)


def gpu_activities(trace: Trace, host: PodHost) -> tuple[tuple[Activity, ...], tuple[CommOp, ...]]:
    """The activity of each GPU of `host` in its order, and the operations that move data."""
    codes: dict[str, int] = {}
    ops: list[CommOp] = []
    events = [gpu_events(trace, plane) for plane in host.planes]
    steps = [step_rows(host.steps, groups(trace).group[moving].astype(np.int64)) for moving, _ in events]
    in_steps = [(moving[step >= 0], step[step >= 0]) for (moving, _), step in zip(events, steps, strict=True)]
    transfers, transfer_of = exchanges(trace, in_steps)
    code_of_transfer = np.array(
        [
            _code(codes, ops, CommOp(one.name, one.kind, Traffic.DEVICES, False, (one.name,)))
            for one in transfers
        ]
        + [-1],
        np.int64,
    )
    result = []
    for (moving, computing), step, transfer in zip(events, steps, transfer_of, strict=True):
        number = np.full(len(moving), -1, np.int64)
        number[step >= 0] = transfer
        metadata, position = distinct_codes(trace.events["metadata"][moving])
        names = [trace.strings.get(int(i)) for i in trace.metadata["name"][metadata].tolist()]
        by_name = np.array([_code(codes, ops, op_named(name)) for name in names], np.int64)[position]
        op = np.where(number >= 0, code_of_transfer[number], by_name)
        result.append(activity((*spans_of_rows(trace, moving), op, moving), spans_of_rows(trace, computing)))
    return tuple(result), tuple(ops)


def _code(codes: dict[str, int], ops: list[CommOp], op: CommOp) -> int:
    if op.name not in codes:
        codes[op.name] = len(ops)
        ops.append(op)
    return codes[op.name]


def op_named(name: str) -> CommOp:
    """The operation of a copy or collective kernel by its name alone."""
    if is_collective_kernel(name):
        return CommOp(name, kind_of(name) or UNKNOWN_KIND, Traffic.DEVICES)
    ends = _COPY.match(name)
    if ends is None:
        return CommOp(name, COPY, Traffic.DEVICES)
    return CommOp(name, COPY, Traffic.HOST if "h" in (ends[1] + ends[2]).lower() else Traffic.LOCAL)


def spans_of_rows(trace: Trace, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Starts and ends of events in ps."""
    start = trace.events["start_ps"][rows].astype(np.int64)
    return start, start + trace.events["duration_ps"][rows]


@once
def moves_data(trace: Trace) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """For each row of `metadata`, whether events of that name on a GPU are collectives, and whether they move
    data at all.
    """
    collective, moving = np.zeros(len(trace.metadata), np.bool_), np.zeros(len(trace.metadata), np.bool_)
    rows = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).gpus))
    names = [trace.strings.get(int(i)) for i in trace.metadata["name"][rows].tolist()]
    collective[rows] = [is_collective_kernel(name) for name in names]
    moving[rows] = [name[:6].lower() == "memcpy" for name in names]
    return collective, collective | moving


def gpu_events(trace: Trace, plane: int) -> tuple[Int64s, Int64s]:
    """Events of a GPU's streams that move data, and those that compute. Events that the host did not launch,
    such as ranges of annotations, are neither, where launches are recorded.
    """
    rows = stream_events(trace, plane)
    owner, value = first_ints(trace, "correlation_id")
    if len(owner):
        has_launch = np.zeros(trace.n_events, np.bool_)
        has_launch[owner[value >= 0]] = True
        rows = rows[has_launch[rows]]
    is_moving = moves_data(trace)[1][trace.events["metadata"][rows]]
    return rows[is_moving].astype(np.int64), rows[~is_moving].astype(np.int64)
