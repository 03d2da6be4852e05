"""One host's cores: where each one is, the parts of each of its steps, and its exchanges with others.

    trace ──▶ PodHost: cores × steps × parts, cores × steps × transfers

Small enough to keep for hundreds of hosts; `join.py` combines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.charging import charge
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.events.proto_fields import number_field
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.pod.comms import exchanges
from tb_tpuprof.analysis.pod.parts import N_PARTS, Part, part_of_class, part_of_op, parts_of_classes
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.analysis.steps.classes import N_CLASSES, ON_GPU, TimeClass
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans, device_spans
from tb_tpuprof.analysis.steps.gpu import gpu_classes, stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.pytorch import loader_events, windows
from tb_tpuprof.analysis.steps.record import Steps, no_steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.tpu import step_markers
from tb_tpuprof.analysis.steps.windows import overlapping
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
WHOLE = "capture"
# The host's work while none of its GPUs is busy, the most specific first.
_OF_HOST = (
    TimeClass.HOST_WAIT_LOADER,
    TimeClass.HOST_COMPILE,
    TimeClass.HOST_PREPARE,
    TimeClass.HOST_COMPUTE,
    TimeClass.HOST_PYTHON,
)


@dataclass(frozen=True)
class PodCore:
    """A core (TPU), a GPU, or, if there is neither, the host.

    `chip`: within the host; `chip_id`, `core_id`: in the pod; `rank`: of the process in its job (PyTorch); -1
    unknown.
    """

    name: str
    ordinal: int
    chip: int
    chip_id: int = -1
    core_id: int = -1
    rank: int = -1


@dataclass(frozen=True)
class Transfers:
    """The cores' transfers, by core and operation; `time_ps` also by step.

    `begin_ps`, `end_ps`: mean begin and end relative to the step's start; `count`: occurrences. `last_ps`:
    when an operation last ended in a step, from the trace's 0, or 0 where it did not run; empty unless some
    operation's HLO is unknown.
    """

    ops: tuple[TransferOp, ...]
    time_ps: Int64s
    begin_ps: npt.NDArray[np.float64]
    end_ps: npt.NDArray[np.float64]
    count: Int64s
    last_ps: Int64s


@dataclass(frozen=True)
class PodHost:
    """`part_ps[core, step, part]` sums to `total_ps[core, step]`; collectives still include waiting for
    others.

    `n_devices`: accelerators of the host; `cores` are those that ran something in these steps. `all_idle_ps`:
    by step, the time in which none of them ran anything. `planes`: of the cores in the trace; `begin_ps`:
    when each core's step begins, like `total_ps`.
    """

    host: str
    kind: str
    device: str
    n_devices: int
    start_ns: int
    steps: Steps
    cores: tuple[PodCore, ...]
    part_ps: Int64s
    total_ps: Int64s
    all_idle_ps: Int64s
    transfers: Transfers
    planes: tuple[int, ...] = ()
    begin_ps: Int64s = field(default_factory=lambda: np.empty((0, 0), np.int64))


class Busy(NamedTuple):
    """The work of a core in its steps: rows of events, their steps, begins and ends in the trace."""

    rows: Int64s
    step: Int64s
    start_ps: Int64s
    end_ps: Int64s


@dataclass(frozen=True)
class _Core:
    """Events of one core that belong to a step: step, row, times relative to the step's start, time counted;
    and when it was busy.
    """

    total_ps: Int64s
    part_ps: Int64s
    step: Int64s
    rows: Int64s
    begin_ps: Int64s
    duration_ps: Int64s
    step_start_ps: Int64s
    busy: Busy


class HostCores(NamedTuple):
    """The cores of a host with their events: its steps, devices, and the planes of the cores that ran
    something.
    """

    steps: Steps
    devices: tuple[int, ...]
    planes: tuple[int, ...]
    cores: list[_Core]


def host_cores(trace: Trace) -> HostCores:
    """The work of each core in each step. Accelerators without steps have one: the whole capture."""
    host_steps, roles = steps(trace), planes(trace)
    kind = roles.hardware
    if not len(host_steps) and kind in ("TPU", "GPU"):
        host_steps = _whole_capture(trace, kind)
    devices: tuple[int, ...] = ()
    if kind == "TPU" and roles.tensor_cores:
        device_planes = devices = roles.tensor_cores
        core_data = [_tpu_core(trace, plane, host_steps) for plane in device_planes]
    elif kind == "GPU":
        pairs = [
            (plane, core) for plane in roles.gpus if (core := _gpu_core(trace, plane, host_steps)) is not None
        ]
        devices, device_planes, core_data = (
            roles.gpus,
            tuple(plane for plane, _ in pairs),
            _with_host([core for _, core in pairs], host_steps),
        )
    else:
        device_planes, core_data = (), [_cpu_core(host_steps)] if len(host_steps) else []
    return HostCores(host_steps, devices, device_planes, core_data)


@once
def pod_host(trace: Trace) -> PodHost:
    """Cores and steps of one host."""
    host_steps, devices, device_planes, core_data = host_cores(trace)
    kind = planes(trace).hardware
    cores = (
        _located_cores(trace, device_planes)
        if device_planes
        else tuple(PodCore(trace.info.host, 0, 0) for _ in core_data)
    )
    n = len(host_steps)
    part_ps = np.array([core.part_ps for core in core_data], np.int64).reshape(len(core_data), n, N_PARTS)
    total_ps = np.array([core.total_ps for core in core_data], np.int64).reshape(len(core_data), n)
    return PodHost(
        trace.info.host,
        kind,
        hardware(trace).device,
        len(devices),
        trace.info.start_ns,
        host_steps,
        cores,
        part_ps,
        total_ps,
        _all_idle(trace, core_data, host_steps),
        _transfers(trace, core_data, n),
        device_planes,
        np.array([core.step_start_ps for core in core_data], np.int64).reshape(len(core_data), n),
    )


def steps_to_share(parts: Sequence[PodHost]) -> list[Steps]:
    """The steps of hosts as `common_steps` takes them: beside hosts with steps, one without has none, however
    long it was captured.
    """
    is_whole = [part.steps.name == (WHOLE,) for part in parts]
    have_steps = any(len(part.steps) and not whole for part, whole in zip(parts, is_whole, strict=True))
    return [
        no_steps() if whole and have_steps else part.steps
        for part, whole in zip(parts, is_whole, strict=True)
    ]


def _whole_capture(trace: Trace, kind: str) -> Steps:
    """The time from the first to the last operation as one step."""
    roles = planes(trace)
    if kind == "TPU":
        spans = [
            device_spans(trace, line)
            for plane in roles.tensor_cores
            for line in lines_named(trace, plane, (OP_LINE,))
        ]
        times = [
            (int(span.start_ps[0]), int((span.start_ps + span.duration_ps).max()))
            for span in spans
            if len(span.rows)
        ]
    else:
        events = [rows for plane in roles.gpus if len(rows := _launched(trace, plane))]
        starts = trace.events["start_ps"]
        times = [
            (int(starts[rows].min()), int((starts[rows] + trace.events["duration_ps"][rows]).max()))
            for rows in events
        ]
    start, end = min((first for first, _ in times), default=0), max((last for _, last in times), default=0)
    class_ps = np.zeros((1, N_CLASSES), np.int64)
    class_ps[0, TimeClass.UNKNOWN] = end - start
    duration = np.array([end - start], np.int64)
    rows_kept, names = (slice(0, 1), (WHOLE,)) if end > start else (slice(0, 0), ())
    return Steps(
        np.array([-1], np.int64)[rows_kept],
        names,
        np.array([start], np.int64)[rows_kept],
        duration[rows_kept],
        class_ps[rows_kept],
        "device",
    )


def _with_host(cores: list[_Core], host_steps: Steps) -> list[_Core]:
    """GPUs, with the host's work in their idle time. A single GPU's parts are those of the host's steps, as
    on other pages.
    """
    if host_steps.name == (WHOLE,) or not len(host_steps):
        return cores
    if len(cores) == 1:
        return [replace(cores[0], part_ps=parts_of_classes(host_steps.class_ps))]
    for core in cores:
        for klass in _OF_HOST:
            taken_ps = np.minimum(core.part_ps[:, Part.IDLE], host_steps.class_ps[:, klass])
            core.part_ps[:, Part.IDLE] -= taken_ps
            core.part_ps[:, part_of_class(klass)] += taken_ps
    return cores


def _all_idle(trace: Trace, core_data: list[_Core], host_steps: Steps) -> Int64s:
    """Time in ps by step in which no core of the host runs anything."""
    if not core_data:
        return np.zeros(len(host_steps), np.int64)
    if planes(trace).hardware == "GPU" and host_steps.name != (WHOLE,):
        # This includes GPUs that ran nothing in the steps, as on other pages.
        idle: Int64s = parts_of_classes(host_steps.class_ps)[:, Part.IDLE]
        return idle
    least: Int64s = np.array([core.part_ps[:, Part.IDLE] for core in core_data], np.int64).min(axis=0)
    if len(core_data) == 1 or not sum(len(core.busy.step) for core in core_data):
        return least
    all_busy = Busy(
        *(np.concatenate(columns) for columns in zip(*(core.busy for core in core_data), strict=True))
    )
    windows_ps = host_steps.start_ps, host_steps.start_ps + host_steps.duration_ps
    any_ps = charge(
        all_busy.start_ps,
        all_busy.end_ps,
        np.ones(len(all_busy.step), np.uint8),
        all_busy.step,
        windows_ps,
        2,
    )
    # The minimum leaves out the host's work for all of them meanwhile, such as loading.
    result: Int64s = np.minimum(any_ps[:, 0], least)
    return result


def step_rows(host_steps: Steps, group: Int64s) -> Int64s:
    """The step of each event by its group, -1 if it is in none."""
    if not len(host_steps):
        return np.full(len(group), -1, np.int64)
    if host_steps.name == (WHOLE,):
        return np.zeros(len(group), np.int64)
    row = np.minimum(np.searchsorted(host_steps.number, group), len(host_steps) - 1)
    return np.where(host_steps.number[row] == group, row, -1)


def _tpu_core(trace: Trace, plane: int, host_steps: Steps) -> _Core:
    spans = [device_spans(trace, line) for line in lines_named(trace, plane, (OP_LINE,))]
    rows, start, duration, self_ps = (
        np.concatenate([np.empty(0, np.int64), *(getattr(span, name) for span in spans)]).astype(np.int64)
        for name in DeviceSpans.__dataclass_fields__
    )
    total, begin = host_steps.duration_ps.copy(), host_steps.start_ps.copy()
    number, core_begin, core_duration = step_markers(trace, plane)
    if len(number):
        row = step_rows(host_steps, number)
        total[row[row >= 0]], begin[row[row >= 0]] = core_duration[row >= 0], core_begin[row >= 0]
    step = step_rows(host_steps, groups(trace).group[rows].astype(np.int64))
    is_in_step = step >= 0
    rows, start, duration, self_ps, step = (
        values[is_in_step] for values in (rows, start, duration, self_ps, step)
    )
    part = _parts_of_ops(trace, trace.events["metadata"][rows].astype(np.int64))
    part_ps = (
        np.bincount(step * N_PARTS + part, self_ps, len(host_steps) * N_PARTS)
        .astype(np.int64)
        .reshape(-1, N_PARTS)
    )
    total = np.maximum(total, part_ps.sum(axis=1))
    part_ps[:, Part.IDLE] = total - part_ps.sum(axis=1)
    return _Core(
        total,
        part_ps,
        step,
        rows,
        start - begin[step],
        duration,
        begin,
        Busy(rows, step, start, start + duration),
    )


def _parts_of_ops(trace: Trace, metadata: Int64s) -> Int64s:
    """The part of each TPU operation, by rows of `metadata`."""
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    used, inverse = np.unique(metadata, return_inverse=True)
    names = [trace.strings.get(i).removeprefix("%") for i in trace.event_names[used].tolist()]
    texts = [trace.strings.get(i) for i in category[used].tolist()]
    result: Int64s = np.array([part_of_op(*pair) for pair in zip(texts, names, strict=True)], np.int64)[
        inverse
    ]
    return result


def _launched(trace: Trace, plane: int) -> Int64s:
    """The events on a GPU's streams that the host launched."""
    owner, value = first_ints(trace, "correlation_id")
    rows = stream_events(trace, plane)
    result: Int64s = rows[np.isin(rows, owner[value >= 0])].astype(np.int64)
    return result


def _gpu_core(trace: Trace, plane: int, host_steps: Steps) -> _Core | None:
    """All streams of a GPU; None if it ran nothing in any step."""
    launched = _launched(trace, plane)
    step = step_rows(host_steps, groups(trace).group[launched].astype(np.int64))
    launched, step = launched[step >= 0], step[step >= 0]
    busy = _busy(trace, plane, host_steps, (launched, step))
    if not len(busy.step):
        return None
    start, duration = trace.events["start_ps"][launched], trace.events["duration_ps"][launched]
    fetches = _busy_rows(trace, host_steps, loader_events(trace).astype(np.int64))
    all_events = Busy(*(np.concatenate(pair) for pair in zip(busy, fetches, strict=True)))
    classes = np.concatenate(
        (
            gpu_classes(trace, busy.rows.astype(np.intp)),
            np.full(len(fetches.rows), TimeClass.HOST_WAIT_INPUT, np.uint8),
        )
    )
    first, total = _own_windows(host_steps, (all_events.start_ps, all_events.end_ps, all_events.step))
    class_ps = charge(
        all_events.start_ps, all_events.end_ps, classes, all_events.step, (first, first + total), N_CLASSES
    )
    if not class_ps[:, list(ON_GPU)].any():
        return None
    return _Core(
        total, parts_of_classes(class_ps), step, launched, start - first[step], duration, first, busy
    )


def _own_windows(host_steps: Steps, spans: tuple[Int64s, Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Start and length of each step on one GPU: the step's, or, if the GPU worked at another time, from its
    first event's start to its last one's end. (Clocks of several GPUs may differ, and replicas may run one
    after another.) `spans`: starts, ends, steps of events.
    """
    start, end, step = spans
    first, last = host_steps.start_ps.copy(), host_steps.start_ps + host_steps.duration_ps
    gpu_first, gpu_last = (
        np.full(len(host_steps), np.iinfo(np.int64).max),
        np.zeros(len(host_steps), np.int64),
    )
    np.minimum.at(gpu_first, step, start)
    np.maximum.at(gpu_last, step, end)
    is_elsewhere = (gpu_last > gpu_first) & ((gpu_first >= last) | (gpu_last <= first))
    first[is_elsewhere], last[is_elsewhere] = gpu_first[is_elsewhere], gpu_last[is_elsewhere]
    return first, last - first


def _busy(trace: Trace, plane: int, host_steps: Steps, launched: tuple[Int64s, Int64s]) -> Busy:
    """The work of a GPU in each step: if PyTorch marked steps, the events during the step's marker, else
    those that the step launched.
    """
    if len(windows(trace).row) and host_steps.name != (WHOLE,):
        return _busy_rows(trace, host_steps, stream_events(trace, plane).astype(np.int64))
    rows, step = launched
    start = trace.events["start_ps"][rows]
    return Busy(rows, step, start, start + trace.events["duration_ps"][rows])


def _busy_rows(trace: Trace, host_steps: Steps, rows: Int64s) -> Busy:
    """Events by the step markers that they overlap, for the steps that count."""
    start = trace.events["start_ps"][rows]
    end = start + trace.events["duration_ps"][rows]
    event, window = overlapping(start, end, windows(trace))
    step = step_rows(host_steps, windows(trace).group[window])
    event, step = event[step >= 0], step[step >= 0]
    return Busy(rows[event], step, start[event], end[event])


def _cpu_core(host_steps: Steps) -> _Core:
    none = np.empty(0, np.int64)
    busy = Busy(none, none, none, none)
    return _Core(
        host_steps.duration_ps,
        parts_of_classes(host_steps.class_ps),
        none,
        none,
        none,
        none,
        host_steps.start_ps,
        busy,
    )


def _located_cores(trace: Trace, device_planes: tuple[int, ...]) -> tuple[PodCore, ...]:
    """The positions of cores, by CoreDetails (fields 4 chip in the host, 5 chip and 6 core in the pod), else
    by the plane's number.
    """
    owner, value = trace.plane_stats.ints("comm_rank")
    ranks = dict(zip(owner.tolist(), value.tolist(), strict=True))
    details = {
        plane: trace.source.read(position, size)
        for plane, position, size in trace.plane_stats.spans("core_details")
    }
    cores = []
    for plane in device_planes:
        name = trace.plane_names[plane]
        ordinal = int("0" + name.rsplit(":", 1)[-1][:9])
        if plane in details:
            chip, chip_id, core_id = (_id(number_field(details[plane], field)) for field in (4, 5, 6))
            cores.append(PodCore(name.removeprefix("/device:"), ordinal, chip, chip_id, core_id))
        else:
            cores.append(PodCore(name.removeprefix("/device:"), ordinal, ordinal, rank=ranks.get(plane, -1)))
    return tuple(cores)


def _id(number: int) -> int:
    """A number of CoreDetails, which are uint32; -1 for what is none."""
    return number if number < 2**32 else -1


def _transfers(trace: Trace, core_data: list[_Core], n_steps: int) -> Transfers:
    """Times of the operations by which cores exchange data."""
    ops, op_of = exchanges(trace, [(core.rows, core.step) for core in core_data])
    n_ops = len(ops)
    shape = (len(core_data), n_ops)
    time_ps, count = np.zeros((len(core_data), n_steps, n_ops), np.int64), np.zeros(shape, np.int64)
    begin, end = np.zeros(shape), np.zeros(shape)
    last = np.zeros(
        (len(core_data), n_steps, n_ops if any(not op.states_groups for op in ops) else 0), np.int64
    )
    for i, core in enumerate(core_data if n_ops else []):
        op = op_of[i]
        is_transfer = op >= 0
        op, step, start, length = (
            op[is_transfer],
            core.step[is_transfer],
            core.begin_ps[is_transfer],
            core.duration_ps[is_transfer],
        )
        time_ps[i] = (
            np.bincount(step * n_ops + op, length, n_steps * n_ops).astype(np.int64).reshape(n_steps, n_ops)
        )
        count[i] = np.bincount(op, minlength=n_ops)
        n_occurrences = np.maximum(count[i], 1)
        begin[i] = np.bincount(op, start, n_ops) / n_occurrences
        end[i] = np.bincount(op, start + length, n_ops) / n_occurrences
        if last.size:
            np.maximum.at(last[i], (step, op), start + length + core.step_start_ps[step])
    return Transfers(ops, time_ps, begin, end, count, last)
