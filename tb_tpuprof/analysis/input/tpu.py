"""Time of the TensorCores of one host in each step, in more detail than Steps: transfers, collectives, and
each core separately.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import charge
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, lines_named, planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, mix, values_at
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.device_spans import DeviceSpans, device_spans
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import host_parts, steps
from tb_tpuprof.analysis.steps.tpu import category_class, step_markers
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# The parts of a TPU's step, in stacking order. They sum to the step.
TC_PARTS = (
    "tc_compute",
    "collective_compute",
    "collective_sync",
    "device_to_device",
    "sparse_wait",
    "tc_infeed",
    "host_transfer",
    "tc_outfeed",
    "tc_idle",
)
SC_PARTS = ("sc_compute", "sc_infeed", "sc_outfeed", "sc_idle")
_OPS = (OP_LINE, "Sparse Core Ops")
_INFEED, _HOST_RECV, _HOST_SEND, _SPARSE_WAIT, _COLLECTIVE, _OTHER = range(6)
_OF_CLASS = {
    TimeClass.HOST_WAIT_INPUT: _INFEED,
    TimeClass.HOST_TO_DEVICE: _HOST_RECV,
    TimeClass.DEVICE_COLLECTIVES: _COLLECTIVE,
}


@dataclass(frozen=True)
class CoreSteps:
    """Steps of one host's cores. `parts[name][i]`: time in ps of step i in one of TC_PARTS, the mean over
    cores except for `tc_infeed`, which is that of the core that waits longest (see `waiting`). `sparse`:
    times in SC_PARTS, if there are SparseCores.

    `input_fraction[c, i]`: share of step i on core c that this core waited for input. `cores`: their numbers.
    """

    cores: tuple[str, ...]
    input_fraction: Floats
    parts: dict[str, Int64s]
    sparse: dict[str, Int64s] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """Steps in which waiting for input is separated from idling. `moved_ps[i]`: idle time of step i that
    counts as waiting.
    """

    steps: Steps
    moved_ps: Int64s


@once
def waiting(trace: Trace) -> Waiting:
    """The steps of a trace with all their waiting for input. On TPUs that is more than in `steps`, which has
    the mean over cores.

    With infeed: a step waits as long as the core that waits longest, since the others wait for that core in
    the next collective or after the step. The excess over the mean is taken from idle time, then from
    collectives, then from computing. Source: XProf, `ComputeTpuPerStepDataAcrossCores`.

    Without infeed: JAX and newer TensorFlow copy the input to the device before the program starts, and the
    cores are just idle. If the host waited for input or copied it for the time w within the same step, w of
    the step's idle time, or all of it if it was idle for less, is waiting for input. Source: XProf,
    `MayFixTpuStepAnalysis`; XProf adds up overlapping events on the host, this function takes their union.
    """
    host_steps = steps(trace)
    none = np.zeros(len(host_steps), np.int64)
    if planes(trace).hardware != "TPU" or not len(host_steps):
        return Waiting(host_steps, none)
    class_ps = host_steps.class_ps.copy()
    if class_ps[:, TimeClass.HOST_WAIT_INPUT].any():
        longest = np.max([core.bucket_ps[:, _INFEED] for core in _cores(trace)], axis=0, initial=0)
        excess = np.maximum(longest - class_ps[:, TimeClass.HOST_WAIT_INPUT], 0)
        for source in (TimeClass.UNKNOWN, TimeClass.DEVICE_COLLECTIVES, TimeClass.DEVICE_COMPUTE_32):
            taken_ps = np.minimum(excess, class_ps[:, source])
            class_ps[:, source] -= taken_ps
            class_ps[:, TimeClass.HOST_WAIT_INPUT] += taken_ps
            excess = excess - taken_ps
        return Waiting(replace(host_steps, class_ps=class_ps), none)
    moved_ps = np.minimum(_host_input_ps(trace, host_steps), class_ps[:, TimeClass.UNKNOWN])
    class_ps[:, TimeClass.UNKNOWN] -= moved_ps
    class_ps[:, TimeClass.HOST_WAIT_INPUT] += moved_ps
    return Waiting(replace(host_steps, class_ps=class_ps), moved_ps)


def _host_input_ps(trace: Trace, host_steps: Steps) -> Int64s:
    """Time in ps that the host waited for input or copied it, by step: the union of such events in the step's
    group.
    """
    parts = host_parts(trace)
    step = np.minimum(np.searchsorted(host_steps.number, parts.group), len(host_steps) - 1)
    is_input = (host_steps.number[step] == parts.group) & np.isin(
        parts.klass, (TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_TO_DEVICE)
    )
    if not is_input.any():
        return np.zeros(len(host_steps), np.int64)
    step, start, end = step[is_input].astype(np.int64), parts.start[is_input], parts.end[is_input]
    windows = (
        np.full(len(host_steps), int(start.min()), np.int64),
        np.full(len(host_steps), int(end.max()), np.int64),
    )
    return charge(start, end, np.ones(len(step), np.uint8), step, windows, 2)[:, 1]


@once
def core_steps(trace: Trace) -> CoreSteps | None:
    """The cores in each step; None without TensorCores or without steps."""
    waits = waiting(trace)
    cores = _cores(trace)
    if not cores or not len(waits.steps):
        return None
    class_ps = waits.steps.class_ps
    send, sparse = (
        np.mean([core.bucket_ps[:, b] for core in cores], axis=0).astype(np.int64)
        for b in (_HOST_SEND, _SPARSE_WAIT)
    )
    compute = class_ps[:, TimeClass.DEVICE_COMPUTE_32] + class_ps[:, TimeClass.DEVICE_COMPUTE_16]
    collective, output = class_ps[:, TimeClass.DEVICE_COLLECTIVES], class_ps[:, TimeClass.DEVICE_TO_HOST]
    send, sparse = np.minimum(send, output), np.minimum(sparse, compute)
    sync = np.minimum(_sync_ps(cores, len(waits.steps)), collective)
    parts = {
        "tc_compute": compute - sparse,
        "collective_compute": collective - sync,
        "collective_sync": sync,
        "device_to_device": class_ps[:, TimeClass.DEVICE_TO_DEVICE],
        "sparse_wait": sparse,
        "tc_infeed": class_ps[:, TimeClass.HOST_WAIT_INPUT],
        "host_transfer": class_ps[:, TimeClass.HOST_TO_DEVICE] + send,
        "tc_outfeed": output - send,
        "tc_idle": class_ps[:, TimeClass.UNKNOWN],
    }
    idle_before = class_ps[:, TimeClass.UNKNOWN] + waits.moved_ps
    moved_share = np.divide(
        waits.moved_ps, idle_before, out=np.zeros(len(idle_before)), where=idle_before > 0
    )
    names = tuple(trace.plane_names[core.plane].rpartition(":")[2] for core in cores)
    return CoreSteps(
        names,
        np.array([_input_fraction(core, moved_share) for core in cores]),
        parts,
        _sparse(trace, waits.steps),
    )


@dataclass(frozen=True)
class _Core:
    """One core's part: step times, self times by step and bucket, and its collectives (key columns, step,
    duration). Times in ps.
    """

    plane: int
    duration_ps: Int64s
    bucket_ps: Int64s
    collective: Int64s


@once
def _cores(trace: Trace) -> list[_Core]:
    """The TensorCores that have steps."""
    number = steps(trace).number
    return [
        _core(trace, plane, number)
        for plane in planes(trace).tensor_cores
        if len(step_markers(trace, plane)[0])
    ]


def _input_fraction(core: _Core, moved_share: Floats) -> Floats:
    idle = np.maximum(core.duration_ps - core.bucket_ps.sum(axis=1), 0)
    waited = core.bucket_ps[:, _INFEED] + core.bucket_ps[:, _HOST_RECV] + idle * moved_share
    share: Floats = np.divide(waited, core.duration_ps, out=np.zeros(len(waited)), where=core.duration_ps > 0)
    return share


def _bucket(category: str) -> int:
    if category.startswith("host send"):
        return _HOST_SEND
    if category.startswith("sparse-core-v0 infeed"):
        return _SPARSE_WAIT
    return _OF_CLASS.get(category_class(category), _OTHER)


def _core(trace: Trace, plane: int, number: Int64s) -> _Core:
    """Self times of a core's operations by step and bucket; `number`: the steps' groups."""
    marked_number, _start, duration = step_markers(trace, plane)
    bucket_ps = np.zeros((len(number), _OTHER + 1), np.int64)
    collective = [np.empty((0, 5), np.int64)]
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for line in lines_named(trace, plane, _OPS):
        spans = device_spans(trace, line)
        metadata = trace.events["metadata"][spans.rows]
        ids, inverse = np.unique(category[metadata], return_inverse=True)
        bucket = np.array([_bucket(trace.strings.get(i)) for i in ids.tolist()], np.int64)[inverse]
        step = _step_of(trace, spans, number)
        is_in_step = step >= 0
        np.add.at(bucket_ps, (step[is_in_step], bucket[is_in_step]), spans.self_ps[is_in_step])
        collective.append(_collectives(trace, spans, step, is_in_step & (bucket == _COLLECTIVE)))
    position = np.minimum(np.searchsorted(marked_number, number), len(marked_number) - 1)
    return _Core(
        plane,
        np.where(marked_number[position] == number, duration[position], 0),
        bucket_ps,
        np.concatenate(collective),
    )


def _step_of(trace: Trace, spans: DeviceSpans, number: Int64s) -> Int64s:
    """The step that contains each event, -1 for none."""
    group = groups(trace).group[spans.rows].astype(np.int64)
    if not len(number):
        return np.full(len(group), -1, np.int64)
    step = np.minimum(np.searchsorted(number, group), len(number) - 1).astype(np.int64)
    return np.where(number[step] == group, step, -1)


def _collectives(trace: Trace, spans: DeviceSpans, step: Int64s, mask: npt.NDArray[np.bool_]) -> Int64s:
    """Rows of (has an id, id or name, occurrence in the step, step, duration in ps): the columns that
    identify a collective on all cores.

    Cores that run one collective share its `all_reduce_unique_id`. Without ids, the k-th runs of an operation
    in a step count as the same collective on all cores, since all cores run the same program.
    """
    rows = spans.rows[mask]
    unique = values_at(rows, *first_ints(trace, "all_reduce_unique_id"), -1)
    name = trace.metadata["name"][trace.events["metadata"][rows]].astype(np.int64)
    has_id = unique >= 0
    key = np.where(has_id, unique, name)
    order = np.lexsort((spans.start_ps[mask], key, has_id, step[mask]))
    key, has_id, step_of_row, length = (
        key[order],
        has_id[order],
        step[mask][order],
        spans.duration_ps[mask][order],
    )
    is_first = np.append(
        True, (key[1:] != key[:-1]) | (step_of_row[1:] != step_of_row[:-1]) | (has_id[1:] != has_id[:-1])
    )[: len(key)]
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(key)), 0))
    nth = np.where(has_id, 0, np.arange(len(key)) - first)
    return np.column_stack((has_id.astype(np.int64), key, nth, step_of_row, length))


def _sync_ps(cores: list[_Core], n_steps: int) -> Int64s:
    """Time in ps that a core waits for others in collectives, by step, the mean over cores.

    The core that comes last runs a collective in the shortest time: that much is communication, and the
    excess on other cores is waiting. A collective recorded on only one core is all communication.
    """
    collectives = np.concatenate([core.collective for core in cores])
    if not len(collectives):
        return np.zeros(n_steps, np.int64)
    key = mix(mix(mix(collectives[:, 0], collectives[:, 1]), collectives[:, 2]), collectives[:, 3])
    _keys, inverse = np.unique(key, return_inverse=True)
    shortest = np.full(int(inverse.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, inverse, collectives[:, 4])
    total = np.zeros(n_steps, np.int64)
    np.add.at(total, collectives[:, 3], collectives[:, 4] - shortest[inverse])
    return total // len(cores)


def _sparse(trace: Trace, host_steps: Steps) -> dict[str, Int64s]:
    """Times of the SparseCores in ps by step, the mean over all; empty without SparseCores."""
    cores = [_sparse_core(trace, plane, host_steps) for plane in planes(trace).sparse_cores]
    if not cores:
        return {}
    infeed, outfeed, busy = (np.sum([core[i] for core in cores], axis=0) // len(cores) for i in range(3))
    busy = np.minimum(busy, host_steps.duration_ps)
    compute = np.maximum(busy - infeed - outfeed, 0)
    return dict(zip(SC_PARTS, (compute, infeed, outfeed, host_steps.duration_ps - busy), strict=True))


def _sparse_core(trace: Trace, plane: int, host_steps: Steps) -> tuple[Int64s, Int64s, Int64s]:
    """Infeed, outfeed and busy time in ps of one SparseCore by step."""
    infeed, outfeed, busy = (np.zeros(len(host_steps), np.int64) for _ in range(3))
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for line in lines_named(trace, plane, _OPS):
        spans = device_spans(trace, line)
        step = _sparse_step_of(trace, spans, host_steps)
        text = category[trace.events["metadata"][spans.rows]]
        np.add.at(busy, step[step >= 0], spans.self_ps[step >= 0])
        for total, name in ((infeed, "infeed"), (outfeed, "outfeed")):
            is_transfer = (step >= 0) & (text >= 0) & (text == trace.strings.find(name))
            np.add.at(total, step[is_transfer], spans.self_ps[is_transfer])
    return infeed, outfeed, busy


def _sparse_step_of(trace: Trace, spans: DeviceSpans, host_steps: Steps) -> Int64s:
    """The step of each event; an event without one gets the TensorCores' step that contains its middle, -1
    for none.
    """
    step = _step_of(trace, spans, host_steps.number)
    middle = spans.start_ps + spans.duration_ps // 2
    order = np.argsort(host_steps.start_ps, kind="stable")
    position = np.maximum(np.searchsorted(host_steps.start_ps[order], middle, side="right") - 1, 0)
    nearest = order[position]
    is_inside = (middle >= host_steps.start_ps[nearest]) & (
        middle < (host_steps.start_ps + host_steps.duration_ps)[nearest]
    )
    is_ungrouped = groups(trace).group[spans.rows] < 0
    return np.where(is_ungrouped & is_inside, nearest, step).astype(np.int64)
