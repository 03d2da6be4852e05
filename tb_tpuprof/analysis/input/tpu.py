"""What the TensorCores of one host did in each step, beyond what Steps tells: transfers, collectives, the
cores one by one.
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

# The parts of a TPU's step, in the order in which they are stacked. They sum up to the step.
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
    """Steps of one host's cores. `parts[name][i]`: time of step i in one of TC_PARTS, the mean over cores but
    for `tc_infeed`, which is that of the core that waits longest (see `waiting`). `sparse`: in SC_PARTS, if
    there are SparseCores.

    `input_fraction[c, i]`: share of step i, as long as it was on core c, that core c waited for input.
    `cores`: their numbers.
    """

    cores: tuple[str, ...]
    input_fraction: Floats
    parts: dict[str, Int64s]
    sparse: dict[str, Int64s] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """Steps in which waiting for input is told from idling. `moved_ps[i]`: how much of the idle time of step
    i that was.
    """

    steps: Steps
    moved_ps: Int64s


@once
def waiting(trace: Trace) -> Waiting:
    """The steps of a trace, as far as they wait for input. On TPUs that is more than what `steps` tells, the
    mean over cores.

    With infeed: a step waits as long as the core that waits longest, since the others wait for that core in
    the next collective or after the step. What it waits longer than the mean is taken from idle time, then
    from collectives, then from computing. Source: XProf, `ComputeTpuPerStepDataAcrossCores`.

    Without: JAX and newer TensorFlow copy the input to the device before the program starts, and the cores
    just idle. If the host waited for input or copied it for the time w within the same step, w of the step's
    idle time, or all of it if it idled less, is waiting for input. Source: XProf, `MayFixTpuStepAnalysis`; it
    adds up overlapping events on the host, here their union counts.
    """
    found = steps(trace)
    none = np.zeros(len(found), np.int64)
    if planes(trace).hardware != "TPU" or not len(found):
        return Waiting(found, none)
    class_ps = found.class_ps.copy()
    if class_ps[:, TimeClass.HOST_WAIT_INPUT].any():
        longest = np.max([core.bucket_ps[:, _INFEED] for core in _cores(trace)], axis=0, initial=0)
        more = np.maximum(longest - class_ps[:, TimeClass.HOST_WAIT_INPUT], 0)
        for source in (TimeClass.UNKNOWN, TimeClass.DEVICE_COLLECTIVES, TimeClass.DEVICE_COMPUTE_32):
            taken = np.minimum(more, class_ps[:, source])
            class_ps[:, source] -= taken
            class_ps[:, TimeClass.HOST_WAIT_INPUT] += taken
            more = more - taken
        return Waiting(replace(found, class_ps=class_ps), none)
    moved = np.minimum(_host_waited(trace, found), class_ps[:, TimeClass.UNKNOWN])
    class_ps[:, TimeClass.UNKNOWN] -= moved
    class_ps[:, TimeClass.HOST_WAIT_INPUT] += moved
    return Waiting(replace(found, class_ps=class_ps), moved)


def _host_waited(trace: Trace, found: Steps) -> Int64s:
    """How long the host waited for input or copied it, by step: the union of such events of the
    step's group.
    """
    parts = host_parts(trace)
    at = np.minimum(np.searchsorted(found.number, parts.group), len(found) - 1)
    mine = (found.number[at] == parts.group) & np.isin(
        parts.klass, (TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_TO_DEVICE)
    )
    if not mine.any():
        return np.zeros(len(found), np.int64)
    at, start, end = at[mine].astype(np.int64), parts.start[mine], parts.end[mine]
    windows = np.full(len(found), int(start.min()), np.int64), np.full(len(found), int(end.max()), np.int64)
    return charge(start, end, np.ones(len(at), np.uint8), at, windows, 2)[:, 1]


@once
def core_steps(trace: Trace) -> CoreSteps | None:
    """The cores in each step; None where there are no TensorCores or no steps."""
    found = waiting(trace)
    cores = _cores(trace)
    if not cores or not len(found.steps):
        return None
    class_ps = found.steps.class_ps
    send, sparse = (
        np.mean([core.bucket_ps[:, b] for core in cores], axis=0).astype(np.int64)
        for b in (_HOST_SEND, _SPARSE_WAIT)
    )
    compute = class_ps[:, TimeClass.DEVICE_COMPUTE_32] + class_ps[:, TimeClass.DEVICE_COMPUTE_16]
    collective, output = class_ps[:, TimeClass.DEVICE_COLLECTIVES], class_ps[:, TimeClass.DEVICE_TO_HOST]
    send, sparse = np.minimum(send, output), np.minimum(sparse, compute)
    sync = np.minimum(_sync_ps(cores, len(found.steps)), collective)
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
    idle_before = class_ps[:, TimeClass.UNKNOWN] + found.moved_ps
    moved_share = np.divide(
        found.moved_ps, idle_before, out=np.zeros(len(idle_before)), where=idle_before > 0
    )
    names = tuple(trace.plane_names[core.plane].rpartition(":")[2] for core in cores)
    return CoreSteps(
        names,
        np.array([_input_fraction(core, moved_share) for core in cores]),
        parts,
        _sparse(trace, found.steps),
    )


@dataclass(frozen=True)
class _Core:
    """One core's part: step times, self times by step and bucket, and its collectives (key columns, step,
    duration).
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
    marked, _start, duration = step_markers(trace, plane)
    bucket_ps = np.zeros((len(number), _OTHER + 1), np.int64)
    collective = [np.empty((0, 5), np.int64)]
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for line in lines_named(trace, plane, _OPS):
        spans = device_spans(trace, line)
        metadata = trace.events["metadata"][spans.rows]
        ids, inverse = np.unique(category[metadata], return_inverse=True)
        bucket = np.array([_bucket(trace.strings.get(i)) for i in ids.tolist()], np.int64)[inverse]
        step = _step_of(trace, spans, number)
        mine = step >= 0
        np.add.at(bucket_ps, (step[mine], bucket[mine]), spans.self_ps[mine])
        collective.append(_collectives(trace, spans, step, mine & (bucket == _COLLECTIVE)))
    at = np.minimum(np.searchsorted(marked, number), len(marked) - 1)
    return _Core(
        plane, np.where(marked[at] == number, duration[at], 0), bucket_ps, np.concatenate(collective)
    )


def _step_of(trace: Trace, spans: DeviceSpans, number: Int64s) -> Int64s:
    """The step that each event lies in, -1 for none."""
    group = groups(trace).group[spans.rows].astype(np.int64)
    if not len(number):
        return np.full(len(group), -1, np.int64)
    at = np.minimum(np.searchsorted(number, group), len(number) - 1).astype(np.int64)
    return np.where(number[at] == group, at, -1)


def _collectives(trace: Trace, spans: DeviceSpans, step: Int64s, chosen: npt.NDArray[np.bool_]) -> Int64s:
    """Rows of (has an id, id or name, occurrence in the step, step, duration): what makes a collective the
    same on all cores.

    Cores that run one collective share its `all_reduce_unique_id`. Without ids the k-th run of an operation
    in a step is taken for the same one everywhere: all cores run the same program.
    """
    rows = spans.rows[chosen]
    unique = values_at(rows, *first_ints(trace, "all_reduce_unique_id"), -1)
    name = trace.metadata["name"][trace.events["metadata"][rows]].astype(np.int64)
    has_id = unique >= 0
    key = np.where(has_id, unique, name)
    order = np.lexsort((spans.start_ps[chosen], key, has_id, step[chosen]))
    key, has_id, at, length = key[order], has_id[order], step[chosen][order], spans.duration_ps[chosen][order]
    new = np.append(True, (key[1:] != key[:-1]) | (at[1:] != at[:-1]) | (has_id[1:] != has_id[:-1]))[
        : len(key)
    ]
    first = np.maximum.accumulate(np.where(new, np.arange(len(key)), 0))
    nth = np.where(has_id, 0, np.arange(len(key)) - first)
    return np.column_stack((has_id.astype(np.int64), key, nth, at, length))


def _sync_ps(cores: list[_Core], n_steps: int) -> Int64s:
    """Time that a core waits for others in collectives, by step, the mean over cores.

    The core that comes last runs a collective in the shortest time: that much is communication, what a core
    takes longer is waiting. A collective that only one core was seen to run is all communication.
    """
    every = np.concatenate([core.collective for core in cores])
    if not len(every):
        return np.zeros(n_steps, np.int64)
    key = mix(mix(mix(every[:, 0], every[:, 1]), every[:, 2]), every[:, 3])
    _keys, inverse = np.unique(key, return_inverse=True)
    shortest = np.full(int(inverse.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, inverse, every[:, 4])
    total = np.zeros(n_steps, np.int64)
    np.add.at(total, every[:, 3], every[:, 4] - shortest[inverse])
    return total // len(cores)


def _sparse(trace: Trace, found: Steps) -> dict[str, Int64s]:
    """Times of the SparseCores by step, the mean over all; empty without SparseCores."""
    cores = [_sparse_core(trace, plane, found) for plane in planes(trace).sparse_cores]
    if not cores:
        return {}
    infeed, outfeed, busy = (np.sum([core[i] for core in cores], axis=0) // len(cores) for i in range(3))
    busy = np.minimum(busy, found.duration_ps)
    compute = np.maximum(busy - infeed - outfeed, 0)
    return dict(zip(SC_PARTS, (compute, infeed, outfeed, found.duration_ps - busy), strict=True))


def _sparse_core(trace: Trace, plane: int, found: Steps) -> tuple[Int64s, Int64s, Int64s]:
    """Infeed, outfeed and busy time of one SparseCore by step."""
    infeed, outfeed, busy = (np.zeros(len(found), np.int64) for _ in range(3))
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))
    for line in lines_named(trace, plane, _OPS):
        spans = device_spans(trace, line)
        step = _sparse_step_of(trace, spans, found)
        text = category[trace.events["metadata"][spans.rows]]
        np.add.at(busy, step[step >= 0], spans.self_ps[step >= 0])
        for total, name in ((infeed, "infeed"), (outfeed, "outfeed")):
            mine = (step >= 0) & (text >= 0) & (text == trace.strings.find(name))
            np.add.at(total, step[mine], spans.self_ps[mine])
    return infeed, outfeed, busy


def _sparse_step_of(trace: Trace, spans: DeviceSpans, found: Steps) -> Int64s:
    """The step of each event; where it has none of its own, the TensorCores' step in which its middle lies,
    -1 for none.
    """
    step = _step_of(trace, spans, found.number)
    middle = spans.start_ps + spans.duration_ps // 2
    order = np.argsort(found.start_ps, kind="stable")
    at = np.maximum(np.searchsorted(found.start_ps[order], middle, side="right") - 1, 0)
    at = order[at]
    inside = (middle >= found.start_ps[at]) & (middle < (found.start_ps + found.duration_ps)[at])
    ungrouped = groups(trace).group[spans.rows] < 0
    return np.where(ungrouped & inside, at, step).astype(np.int64)
