"""One host's devices: by step, how much of their communication is hidden and exposed, and by operation.

trace ──▶ CommHost: devices × steps, and a row for each device, step and operation
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import N_TRAFFIC, Activity, CommOp, Traffic
from tb_tpuprof.analysis.comm.cpu import cpu_activities
from tb_tpuprof.analysis.comm.exposure import EXPOSED_TO, HIDDEN_FROM, Exposure, coverage, exposure
from tb_tpuprof.analysis.comm.gpu import gpu_activities, moves_data
from tb_tpuprof.analysis.comm.tpu import tpu_activity, tpu_ops
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.kernels.copies import copied_bytes
from tb_tpuprof.analysis.pod.host import PodCore, PodHost, pod_host
from tb_tpuprof.analysis.steps.device_spans import device_spans
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Devices:
    """The devices of a host that can communicate: their names, what each does, and when its steps begin and
    how long they last, int64[devices, steps] in ps. `kind`: TPU, GPU or CPU; `ops`: the operations that move
    data.
    """

    kind: str
    cores: tuple[PodCore, ...]
    activities: tuple[Activity, ...]
    ops: tuple[CommOp, ...]
    begin_ps: Int64s
    total_ps: Int64s


@dataclass(frozen=True)
class CommRows:
    """One row per device, step and operation that ran in it; times in ps. `hidden_ps` and `exposed_ps` are
    charged (see `exposure.py`), `elapsed_ps` is the sum from start to end; `n` counts the runs that begin in
    the step, `n_bytes` sums the bytes that their events state, and `n_unsized` counts those that state none.
    """

    core: Int64s
    step: Int64s
    op: Int64s
    hidden_ps: Int64s
    exposed_ps: Int64s
    elapsed_ps: Int64s
    n: Int64s
    n_bytes: Int64s
    n_unsized: Int64s


@dataclass(frozen=True)
class CommHost:
    """The communication of one host. Arrays are int64[devices, steps] in ps, `exposed_ps` and `hidden_ps`
    also by Traffic.

    Steps begin at `begin_ps`. Of `total_ps`, the device computes for `compute_ps`, during which `hidden_ps`
    are hidden; `exposed_ps` are not. `partly_ps`: of `hidden_ps`, that of runs with an exposed part, too.
    `n_runs`: by operation, runs in the whole trace that compute covers for at least 90%, for less, and for at
    most 10%, int64[ops, 3].
    """

    pod: PodHost
    cores: tuple[PodCore, ...]
    ops: tuple[CommOp, ...]
    begin_ps: Int64s
    total_ps: Int64s
    compute_ps: Int64s
    hidden_ps: Int64s
    partly_ps: Int64s
    exposed_ps: Int64s
    rows: CommRows
    n_runs: Int64s


@once
def comm_devices(trace: Trace) -> Devices:
    """The devices of a host in its steps: those of the pod viewer, and of XLA:CPU each by itself."""
    host = pod_host(trace)
    if host.kind == "TPU":
        activities = tuple(tpu_activity(trace, plane, device_spans) for plane in host.planes)
        return Devices(host.kind, host.cores, activities, tpu_ops(trace).ops, host.begin_ps, host.total_ps)
    if host.kind == "GPU":
        activities, ops = gpu_activities(trace, host)
        return Devices(host.kind, host.cores, activities, ops, host.begin_ps, host.total_ps)
    ordinals, activities, ops = cpu_activities(trace)
    shape = (len(ordinals), len(host.steps))
    cores = tuple(PodCore(f"CPU:{number}", number, number) for number in ordinals)
    begin, total = (
        np.broadcast_to(times, shape).astype(np.int64)
        for times in (host.steps.start_ps, host.steps.duration_ps)
    )
    return Devices(host.kind, cores, activities, ops, begin, total)


def comm_between(trace: Trace) -> CommHost | None:
    """The communication of a host whose devices exchange data, or copy it asynchronously; None for any other,
    such as one that only copies to a GPU and back.
    """
    roles = planes(trace)
    if roles.hardware == "TPU":
        communicates = bool(tpu_ops(trace).ops)
    elif roles.hardware == "GPU":
        communicates = bool(moves_data(trace)[0].any())
    else:
        communicates = bool(cpu_activities(trace)[2])
    return comm_host(trace) if communicates else None


@once
def comm_host(trace: Trace) -> CommHost:
    """The communication of one host."""
    devices = comm_devices(trace)
    n_steps = devices.total_ps.shape[1]
    shape = (len(devices.cores), n_steps, N_TRAFFIC)
    compute = np.zeros(shape[:2], np.int64)
    hidden, partly, exposed = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    traffic = np.array([*(op.traffic for op in devices.ops), Traffic.DEVICES], np.int64)
    n_runs = np.zeros((len(devices.ops), 3), np.int64)
    parts: list[CommRows] = []
    for core, device in enumerate(devices.activities):
        times = exposure(device, devices.begin_ps[core], devices.total_ps[core])
        op = device.op[times.run]
        compute[core] = times.compute_ps
        place = times.step, traffic[op]
        np.add.at(hidden[core], place, times.hidden_ps)
        np.add.at(partly[core], place, np.where(times.exposed_ps > 0, times.hidden_ps, 0))
        np.add.at(exposed[core], place, times.exposed_ps)
        stated = np.full(len(op), -1, np.int64)
        if devices.kind == "GPU":
            stated = copied_bytes(trace)[device.event[times.run]]
        parts.append(_rows_of(core, op, times, stated, len(devices.ops)))
        share = coverage(device)
        kind = np.where(share >= HIDDEN_FROM, 0, np.where(share > EXPOSED_TO, 1, 2))
        np.add.at(n_runs, (device.op, kind), 1)
    return CommHost(
        pod_host(trace),
        devices.cores,
        devices.ops,
        devices.begin_ps,
        devices.total_ps,
        compute,
        hidden,
        partly,
        exposed,
        _joined(parts),
        n_runs,
    )


def _rows_of(core: int, op: Int64s, times: Exposure, stated: Int64s, n_ops: int) -> CommRows:
    """The rows of one device: sums over the runs of each operation in each step. `stated`: the bytes that
    each run states, -1 none.
    """
    key, position = np.unique(times.step * max(n_ops, 1) + op, return_inverse=True)
    begins = times.begins.astype(np.int64)
    sizes = (begins * np.maximum(stated, 0), begins * (stated < 0))
    values = (times.hidden_ps, times.exposed_ps, times.elapsed_ps, begins, *sizes)
    sums = np.zeros((len(values), len(key)), np.int64)
    for total, value in zip(sums, values, strict=True):
        np.add.at(total, position.reshape(-1), value)
    step, code = np.divmod(key, max(n_ops, 1))
    return CommRows(np.full(len(key), core, np.int64), step, code, *sums)


def _joined(parts: list[CommRows]) -> CommRows:
    columns = [
        np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])
        for name in CommRows.__dataclass_fields__
    ]
    return CommRows(*columns)
