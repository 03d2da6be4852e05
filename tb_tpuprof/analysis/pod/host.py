"""One host's cores: where each one sits, what each of its steps went into, and what it exchanged with others.

    trace ──▶ PodHost: cores × steps × parts, cores × steps × transfers

Small enough to be kept for hundreds of hosts; `join.py` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.charging import charge
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
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.tpu import step_markers
from tb_tpuprof.analysis.steps.windows import overlapping
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
WHOLE = "capture"
# What a host does while none of its GPUs works, the most telling first.
_OF_HOST = (
    TimeClass.HOST_WAIT_LOADER,
    TimeClass.HOST_COMPILE,
    TimeClass.HOST_PREPARE,
    TimeClass.HOST_COMPUTE,
    TimeClass.HOST_PYTHON,
)


@dataclass(frozen=True)
class PodCore:
    """A core (TPU), GPU, or where there is neither the host.

    `chip`: within the host; `chip_id`, `core_id`: of the pod; `rank`: of the process in its job (PyTorch); -1
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
    """What cores did in transfers, by core and operation; `time_ps` also by step.

    `begin_ps`, `end_ps`: mean begin and end since the step's start; `count`: occurrences. `last_ps`: when an
    operation ended last in a step, from the trace's 0, 0 where it did not run; kept only where some
    operation's HLO is not known, else of no operations.
    """

    ops: tuple[TransferOp, ...]
    time_ps: Int64s
    begin_ps: npt.NDArray[np.float64]
    end_ps: npt.NDArray[np.float64]
    count: Int64s
    last_ps: Int64s


@dataclass(frozen=True)
class PodHost:
    """`part_ps[core, step, part]` sums up to `total_ps[core, step]`; collectives are not yet told from
    waiting for others.

    `n_devices`: accelerators that the host has, of which `cores` ran something in these steps. `all_idle_ps`:
    by step, the time in which none of them ran anything.
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


class Busy(NamedTuple):
    """What a core ran in its steps: rows of events, their steps, begins and ends in the trace."""

    rows: Int64s
    step: Int64s
    start_ps: Int64s
    end_ps: Int64s


@dataclass(frozen=True)
class _Core:
    """Events of one core that are of one of the steps: step, row, times since the step's start, time counted;
    and what it ran when.
    """

    total_ps: Int64s
    part_ps: Int64s
    step: Int64s
    rows: Int64s
    begin_ps: Int64s
    duration_ps: Int64s
    step_start_ps: Int64s
    busy: Busy


def pod_host(trace: Trace) -> PodHost:
    """Cores and steps of one host. Accelerators without steps have one: the whole capture."""
    found, roles = steps(trace), planes(trace)
    kind = roles.hardware
    if not len(found) and kind in ("TPU", "GPU"):
        found = _whole(trace, kind)
    devices: tuple[int, ...] = ()
    if kind == "TPU" and roles.tensor_cores:
        chosen = devices = roles.tensor_cores
        made = [_tpu_core(trace, plane, found) for plane in chosen]
    elif kind == "GPU":
        pairs = [
            (plane, core) for plane in roles.gpus if (core := _gpu_core(trace, plane, found)) is not None
        ]
        devices, chosen, made = (
            roles.gpus,
            tuple(plane for plane, _ in pairs),
            _with_host([core for _, core in pairs], found),
        )
    else:
        chosen, made = (), [_cpu_core(found)] if len(found) else []
    cores = _places(trace, chosen) if chosen else tuple(PodCore(trace.info.host, 0, 0) for _ in made)
    n = len(found)
    part_ps = np.array([core.part_ps for core in made], np.int64).reshape(len(made), n, N_PARTS)
    total_ps = np.array([core.total_ps for core in made], np.int64).reshape(len(made), n)
    return PodHost(
        trace.info.host,
        kind,
        hardware(trace).device,
        len(devices),
        trace.info.start_ns,
        found,
        cores,
        part_ps,
        total_ps,
        _all_idle(trace, made, found),
        _transfers(trace, made, n),
    )


def _whole(trace: Trace, kind: str) -> Steps:
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
    one = np.array([end - start], np.int64)
    kept, names = (slice(0, 1), (WHOLE,)) if end > start else (slice(0, 0), ())
    return Steps(
        np.array([-1], np.int64)[kept],
        names,
        np.array([start], np.int64)[kept],
        one[kept],
        class_ps[kept],
        "device",
    )


def _with_host(cores: list[_Core], found: Steps) -> list[_Core]:
    """GPUs with what their host did while they idled. A single one's parts are those of the host's steps, as
    on other pages.
    """
    if found.name == (WHOLE,) or not len(found):
        return cores
    if len(cores) == 1:
        return [replace(cores[0], part_ps=parts_of_classes(found.class_ps))]
    for core in cores:
        for klass in _OF_HOST:
            taken = np.minimum(core.part_ps[:, Part.IDLE], found.class_ps[:, klass])
            core.part_ps[:, Part.IDLE] -= taken
            core.part_ps[:, part_of_class(klass)] += taken
    return cores


def _all_idle(trace: Trace, made: list[_Core], found: Steps) -> Int64s:
    """By step, the time in which no core of the host runs anything."""
    if not made:
        return np.zeros(len(found), np.int64)
    if planes(trace).hardware == "GPU" and found.name != (WHOLE,):
        idle: Int64s = parts_of_classes(found.class_ps)[
            :, Part.IDLE
        ]  # also of GPUs that ran nothing of the steps, as on other pages
        return idle
    least: Int64s = np.array([core.part_ps[:, Part.IDLE] for core in made], np.int64).min(axis=0)
    if len(made) == 1 or not sum(len(core.busy.step) for core in made):
        return least
    every = Busy(*(np.concatenate(columns) for columns in zip(*(core.busy for core in made), strict=True)))
    windows_ps = found.start_ps, found.start_ps + found.duration_ps
    any_ps = charge(
        every.start_ps, every.end_ps, np.ones(len(every.step), np.uint8), every.step, windows_ps, 2
    )
    result: Int64s = np.minimum(
        any_ps[:, 0], least
    )  # not what the host did for all of them meanwhile, such as loading
    return result


def _at(found: Steps, group: Int64s) -> Int64s:
    """The step of each event by its group, -1 if it is in none."""
    if not len(found):
        return np.full(len(group), -1, np.int64)
    if found.name == (WHOLE,):
        return np.zeros(len(group), np.int64)
    at = np.minimum(np.searchsorted(found.number, group), len(found) - 1)
    return np.where(found.number[at] == group, at, -1)


def _tpu_core(trace: Trace, plane: int, found: Steps) -> _Core:
    spans = [device_spans(trace, line) for line in lines_named(trace, plane, (OP_LINE,))]
    rows, start, duration, self_ps = (
        np.concatenate([np.empty(0, np.int64), *(getattr(span, name) for span in spans)]).astype(np.int64)
        for name in DeviceSpans.__dataclass_fields__
    )
    total, begin = found.duration_ps.copy(), found.start_ps.copy()
    number, own_begin, own_duration = step_markers(trace, plane)
    if len(number):
        at = _at(found, number)
        total[at[at >= 0]], begin[at[at >= 0]] = own_duration[at >= 0], own_begin[at >= 0]
    step = _at(found, groups(trace).group[rows].astype(np.int64))
    inside = step >= 0
    rows, start, duration, self_ps, step = (
        values[inside] for values in (rows, start, duration, self_ps, step)
    )
    part = _parts_of_ops(trace, trace.events["metadata"][rows].astype(np.int64))
    part_ps = (
        np.bincount(step * N_PARTS + part, self_ps, len(found) * N_PARTS)
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
    """The part that each operation of a TPU is of, by rows of `metadata`."""
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    used, inverse = np.unique(metadata, return_inverse=True)
    names = [trace.strings.get(i).removeprefix("%") for i in trace.event_names[used].tolist()]
    texts = [trace.strings.get(i) for i in category[used].tolist()]
    result: Int64s = np.array([part_of_op(*pair) for pair in zip(texts, names, strict=True)], np.int64)[
        inverse
    ]
    return result


def _launched(trace: Trace, plane: int) -> Int64s:
    """What ran on a GPU's streams because the host launched it."""
    owner, value = first_ints(trace, "correlation_id")
    rows = stream_events(trace, plane)
    result: Int64s = rows[np.isin(rows, owner[value >= 0])].astype(np.int64)
    return result


def _gpu_core(trace: Trace, plane: int, found: Steps) -> _Core | None:
    """A GPU's streams together; None where it ran nothing in any step."""
    launched = _launched(trace, plane)
    step = _at(found, groups(trace).group[launched].astype(np.int64))
    launched, step = launched[step >= 0], step[step >= 0]
    busy = _busy(trace, plane, found, (launched, step))
    if not len(busy.step):
        return None
    start, duration = trace.events["start_ps"][launched], trace.events["duration_ps"][launched]
    fetches = _busy_rows(trace, found, loader_events(trace).astype(np.int64))
    both = Busy(*(np.concatenate(pair) for pair in zip(busy, fetches, strict=True)))
    classes = np.concatenate(
        (
            gpu_classes(trace, busy.rows.astype(np.intp)),
            np.full(len(fetches.rows), TimeClass.HOST_WAIT_INPUT, np.uint8),
        )
    )
    first, total = _own_windows(found, (both.start_ps, both.end_ps, both.step))
    class_ps = charge(both.start_ps, both.end_ps, classes, both.step, (first, first + total), N_CLASSES)
    if not class_ps[:, list(ON_GPU)].any():
        return None
    return _Core(
        total, parts_of_classes(class_ps), step, launched, start - first[step], duration, first, busy
    )


def _own_windows(found: Steps, spans: tuple[Int64s, Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    """Start and length of each step on one GPU: the step's, or where the GPU did its work at another time,
    from its first event to its last one's end. (Clocks of several GPUs may differ, and replicas may run one
    after another.) `spans`: starts, ends, steps of events.
    """
    start, end, step = spans
    first, last = found.start_ps.copy(), found.start_ps + found.duration_ps
    own_first, own_last = np.full(len(found), np.iinfo(np.int64).max), np.zeros(len(found), np.int64)
    np.minimum.at(own_first, step, start)
    np.maximum.at(own_last, step, end)
    apart = (own_last > own_first) & ((own_first >= last) | (own_last <= first))
    first[apart], last[apart] = own_first[apart], own_last[apart]
    return first, last - first


def _busy(trace: Trace, plane: int, found: Steps, launched: tuple[Int64s, Int64s]) -> Busy:
    """What a GPU ran in each step: what ran while the step's marker lasted, where PyTorch marked steps, else
    what the step launched.
    """
    if len(windows(trace).row) and found.name != (WHOLE,):
        return _busy_rows(trace, found, stream_events(trace, plane).astype(np.int64))
    rows, step = launched
    start = trace.events["start_ps"][rows]
    return Busy(rows, step, start, start + trace.events["duration_ps"][rows])


def _busy_rows(trace: Trace, found: Steps, rows: Int64s) -> Busy:
    """Events in the markers that they overlap, of the steps that count."""
    start = trace.events["start_ps"][rows]
    end = start + trace.events["duration_ps"][rows]
    event, window = overlapping(start, end, windows(trace))
    step = _at(found, windows(trace).group[window])
    event, step = event[step >= 0], step[step >= 0]
    return Busy(rows[event], step, start[event], end[event])


def _cpu_core(found: Steps) -> _Core:
    none = np.empty(0, np.int64)
    busy = Busy(none, none, none, none)
    return _Core(
        found.duration_ps, parts_of_classes(found.class_ps), none, none, none, none, found.start_ps, busy
    )


def _places(trace: Trace, chosen: tuple[int, ...]) -> tuple[PodCore, ...]:
    """Where cores sit, by CoreDetails (fields 4 chip in the host, 5 chip and 6 core in the pod), else by the
    plane's number.
    """
    owner, value = trace.plane_stats.ints("comm_rank")
    ranks = dict(zip(owner.tolist(), value.tolist(), strict=True))
    details = {
        plane: trace.source.read(position, size)
        for plane, position, size in trace.plane_stats.spans("core_details")
    }
    cores = []
    for plane in chosen:
        name = trace.plane_names[plane]
        ordinal = int("0" + name.rsplit(":", 1)[-1][:9])
        if plane in details:
            chip, chip_id, core_id = (number_field(details[plane], field) for field in (4, 5, 6))
            cores.append(PodCore(name.removeprefix("/device:"), ordinal, chip, chip_id, core_id))
        else:
            cores.append(PodCore(name.removeprefix("/device:"), ordinal, ordinal, rank=ranks.get(plane, -1)))
    return tuple(cores)


def _transfers(trace: Trace, made: list[_Core], n_steps: int) -> Transfers:
    """Times of the operations by which cores exchange data."""
    ops, op_of = exchanges(trace, [(core.rows, core.step) for core in made])
    n_ops = len(ops)
    shape = (len(made), n_ops)
    time_ps, count = np.zeros((len(made), n_steps, n_ops), np.int64), np.zeros(shape, np.int64)
    begin, end = np.zeros(shape), np.zeros(shape)
    last = np.zeros((len(made), n_steps, n_ops if any(not op.states_groups for op in ops) else 0), np.int64)
    for i, core in enumerate(made if n_ops else []):
        op = op_of[i]
        mine = op >= 0
        op, step, start, length = op[mine], core.step[mine], core.begin_ps[mine], core.duration_ps[mine]
        time_ps[i] = (
            np.bincount(step * n_ops + op, length, n_steps * n_ops).astype(np.int64).reshape(n_steps, n_ops)
        )
        count[i] = np.bincount(op, minlength=n_ops)
        often = np.maximum(count[i], 1)
        begin[i] = np.bincount(op, start, n_ops) / often
        end[i] = np.bincount(op, start + length, n_ops) / often
        if last.size:
            np.maximum.at(last[i], (step, op), start + length + core.step_start_ps[step])
    return Transfers(ops, time_ps, begin, end, count, last)
