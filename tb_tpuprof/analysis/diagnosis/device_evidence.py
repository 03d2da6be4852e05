"""What a host's accelerators show of their own work: how near operations come to the peaks, what only moves
data or waits, and who talks.

Operations are summed over all devices and the whole trace; a step's part is their share of the devices' busy
time in it, so that no operation takes more of a step than the devices were busy in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.diagnosis.records import DeviceEvidence, DeviceOp, Exchange, Group, KernelUse
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.kernel_names import is_half_precision, short_name
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.hlo.padding import products, unit_side
from tb_tpuprof.analysis.input.tpu import core_steps, waiting
from tb_tpuprof.analysis.kernels.kernels import Kernels, kernels
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import rates, roofs
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.analysis.steps.classes import CATEGORIES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import step_pieces
from tb_tpuprof.analysis.steps.tpu import category_class
from tb_tpuprof.trace.collectives import UNKNOWN_KIND, is_collective_kernel
from tb_tpuprof.trace.trace import Trace

Bools = npt.NDArray[np.bool_]
_N_OPS = 12
_LONG_PS = 20_000_000  # an operation that is shorter waits for its launch more than for any resource
_FORMATTING = ("data formatting", "copy", "transpose", "reshape", "copy fusion")
_MOVES = ("aten::copy_", "aten::contiguous", "aten::clone", "aten::cat", "aten::_to_copy", "aten::stack")
_BARRIER = re.compile(r"barrier-cores")
_COMPUTES = (TimeClass.DEVICE_COMPUTE_16, TimeClass.DEVICE_COMPUTE_32)
_DEBUG = re.compile(r"debug[-_ ]?print|debug[-_]callback", re.IGNORECASE)
_RUNTIME = re.compile(r"(?:cuda|hip|cu)[A-Z]")
_REMAT = re.compile(r"\.remat\d*\b")
_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
)


@once
def device_evidence(trace: Trace) -> DeviceEvidence | None:
    """Of a host with accelerators and steps; None of any other."""
    steps = waiting(trace).steps
    kind = planes(trace).hardware
    if kind not in ("GPU", "TPU") or not len(steps):
        return None
    idle = (
        TimeClass.UNKNOWN,
        *CATEGORIES["host_python"],
        *CATEGORIES["host_wait"],
        *CATEGORIES["input"],
        *CATEGORIES["compilation"],
    )
    busy = float(steps.duration_ps.mean()) - float(steps.class_ps[:, list(idle)].sum(axis=1).mean())
    compute = float(steps.class_ps[:, [*CATEGORIES["device_compute"]]].sum(axis=1).mean())
    compiled = hlo_ops(trace)
    return (
        _of_tpu(trace, compiled, busy, compute)
        if kind == "TPU"
        else _of_gpu(trace, compiled, steps, busy, compute)
    )


def _of_tpu(trace: Trace, ops: HloOps, busy: float, compute: float) -> DeviceEvidence:
    whole = max(ops.busy_ps, 1)
    scale = busy / whole
    flops, hbm, sources = _fractions(trace, ops)
    cores = core_steps(trace)
    sparse = float(cores.parts["sparse_wait"].mean()) if cores else 0.0
    category = ops.category
    counted = ~ops.is_sparse

    def group(mask: Bools) -> Group:
        return _group(ops, mask & counted, scale)

    return DeviceEvidence(
        trace.plane_names[planes(trace).tensor_cores[0]] if planes(trace).tensor_cores else "",
        busy,
        compute,
        0.0,
        flops,
        hbm,
        sources,
        0,
        _ops(trace, ops, scale),
        (),
        group(category.is_in(_FORMATTING)),
        group(_matching(ops, _REMAT)),
        group(ops.is_waiting & ~category.is_in(("infeed", "outfeed"))),
        group(_matching(ops, _BARRIER)),
        group(_matching(ops, _DEBUG)),
        Group(sparse, 1 if sparse else 0, "", sparse),
        group(category.is_in([text for text in category.strings if text.startswith(_COLLECTIVES)])),
    )


def _of_gpu(trace: Trace, ops: HloOps, steps: Steps, busy: float, compute: float) -> DeviceEvidence:
    found = kernels(trace)
    is_collective = np.array([is_collective_kernel(name) for name in found.name], np.bool_)
    whole = max(int(found.total_ps[~is_collective].sum()), 1)
    named = bool(len(ops)) and ops.busy_ps > 0
    flops, hbm, sources = _fractions(trace, ops) if named else (math.nan, math.nan, ("", ""))
    scale = compute / max(whole, ops.busy_ps if named else 0)
    moves = _group(ops, ops.category.is_in(_FORMATTING), scale) if named else _moves(trace, compute)
    is_half = np.array([is_half_precision(name) for name in found.name], np.bool_)
    wide = found.is_eligible & ~found.uses_tensor_cores & ~is_half
    return DeviceEvidence(
        hardware(trace).device,
        busy,
        compute,
        _kernels_per_step(found, steps, trace),
        flops,
        hbm,
        sources,
        _multiprocessors(trace),
        _ops(trace, ops, scale) if named else (),
        _kernel_uses(found, scale),
        moves,
        _group(ops, _matching(ops, _REMAT), scale) if named else Group(),
        collectives=_of_kernels(found, is_collective, float(steps.category_ps("device_collectives").mean())),
        exchanges=_exchanges(trace, steps),
        runtime_calls=_runtime_calls(trace),
        wide=_of_kernels(found, wide, float(found.total_ps[wide].sum()) * scale),
    )


def _fractions(trace: Trace, ops: HloOps) -> tuple[float, float, tuple[str, str]]:
    """Shares of the peaks of compute and HBM that all operations together reach, and where the peaks come
    from.
    """
    peaks = roofs(trace)
    seconds = ops.busy_ps / 1e12
    counted = ~ops.is_container & ~ops.is_sparse
    flops = float(ops.work.flops[counted & ops.work.knows_flops].sum())
    moved = float(ops.work.space_bytes[0][counted & ops.work.knows_bytes].sum())
    top = peaks.bytes_per_s[0]
    return (
        min(flops / seconds / peaks.flops_per_s, 1.0)
        if seconds and peaks.flops_per_s and flops
        else math.nan,
        min(moved / seconds / top, 1.0) if seconds and top and moved else math.nan,
        peaks.short_sources,
    )


def _ops(trace: Trace, ops: HloOps, scale: float) -> tuple[DeviceOp, ...]:
    """The longest operations that compute, with what they reach."""
    speed = rates(ops.work, ops.work_ps, roofs(trace))
    exchanges = ops.category.is_in(
        [text for text in ops.category.strings if category_class(text) not in _COMPUTES]
    )
    counted = ~ops.is_container & ~ops.is_sparse & ~ops.is_waiting & ~exchanges
    rows = [row for row in ops.by_self_time.tolist() if counted[row] and ops.self_ps[row]][:_N_OPS]
    side = unit_side(hardware(trace).device, planes(trace).hardware or "")
    result = []
    for row in rows:
        each = float(ops.time_ps[row]) / max(int(ops.n_occurrences[row]), 1)
        text, fill = _padding(trace, ops, row, side) if side else ("", math.nan)
        long = each >= _LONG_PS
        efficiency = (
            float(speed.efficiency[row])
            if long and ops.work.knows_flops[row] and ops.work.knows_bytes[row]
            else math.nan
        )
        result.append(
            DeviceOp(
                ops.name[row],
                ops.category[row],
                float(ops.self_ps[row]) * scale,
                each,
                float(speed.flops_fraction[row]),
                float(speed.space_fraction[0][row]),
                min(efficiency, 1.0),
                text,
                fill,
            )
        )
    return tuple(result)


def _padding(trace: Trace, ops: HloOps, row: int, side: int) -> tuple[str, float]:
    """The worst filled product of matrices of an operation, and how much of the matrix unit it fills."""
    module = trace.programs.module(int(ops.program[row])) if ops.instruction[row] >= 0 else None
    found = products(module, int(ops.instruction[row]), side) if module is not None else []
    worst = min(found, key=lambda one: one.fill, default=None)
    return (f"`{worst.name}`: {worst.text}", worst.fill) if worst else ("", math.nan)


def _matching(ops: HloOps, pattern: re.Pattern[str]) -> Bools:
    names, categories = (
        np.array([bool(pattern.search(text)) for text in column.strings], np.bool_)[column.codes]
        if len(column)
        else np.zeros(0, np.bool_)
        for column in (ops.name, ops.category)
    )
    return names | categories


def _group(ops: HloOps, mask: Bools, scale: float) -> Group:
    rows = np.flatnonzero(mask & (ops.self_ps > 0) & ~ops.is_container)
    if not len(rows):
        return Group()
    top = int(rows[ops.self_ps[rows].argmax()])
    return Group(
        float(ops.self_ps[rows].sum()) * scale, len(rows), ops.name[top], float(ops.self_ps[top]) * scale
    )


def _moves(trace: Trace, compute: float) -> Group:
    """Copies within a GPU's memory by operations of PyTorch."""
    metrics = op_stats(trace).device
    rows = [row for row, name in enumerate(metrics.name) if name in _MOVES]
    if not rows or not metrics.busy_ps:
        return Group()
    top = max(rows, key=lambda row: int(metrics.self_ps[row]))
    share = compute / metrics.busy_ps
    return Group(
        float(metrics.self_ps[rows].sum()) * share,
        len(rows),
        metrics.name[top],
        float(metrics.self_ps[top]) * share,
    )


def _of_kernels(found: Kernels, mask: Bools, time: float) -> Group:
    """Kernels of one purpose, whose time in a step is known."""
    rows = np.flatnonzero(mask)
    whole = int(found.total_ps[rows].sum())
    if not whole:
        return Group()
    top = int(rows[found.total_ps[rows].argmax()])
    label = {row: found.op[row] or short_name(found.name[row]) for row in rows.tolist()}
    mine = [row for row in rows.tolist() if label[row] == label[top]]
    return Group(time, len(set(label.values())), label[top], time * float(found.total_ps[mine].sum()) / whole)


def _kernel_uses(found: Kernels, scale: float) -> tuple[KernelUse, ...]:
    result = []
    for row in range(min(len(found), _N_OPS)):
        launch = found.launch[row]
        each = float(found.total_ps[row]) / max(int(found.n_occurrences[row]), 1)
        if not is_collective_kernel(found.name[row]):
            result.append(
                KernelUse(
                    short_name(found.name[row]),
                    found.op[row],
                    float(found.total_ps[row]) * scale,
                    each,
                    launch.occupancy,
                    _n_blocks(launch.grid),
                )
            )
    return tuple(result)


def _n_blocks(grid: str) -> int:
    sizes: Sequence[str] = grid.split(",") if grid else ()
    return math.prod(int(size) for size in sizes) if sizes else 0


def _multiprocessors(trace: Trace) -> int:
    found = trace.plane_stats.floats("core_count")
    values = [
        float(value)
        for owner, value in zip(found.owner, found.value, strict=True)
        if owner in planes(trace).gpus
    ]
    return int(values[0]) if values and np.isfinite(values[0]) else 0


def _kernels_per_step(found: Kernels, steps: Steps, trace: Trace) -> float:
    """How many kernels begin in a step."""
    from tb_tpuprof.analysis.kernels.rows import kernel_rows

    begin = np.sort(trace.events["start_ps"][kernel_rows(trace)[0]])
    stop = steps.start_ps + steps.duration_ps
    return float((np.searchsorted(begin, stop) - np.searchsorted(begin, steps.start_ps)).mean())


def _exchanges(trace: Trace, steps: Steps) -> tuple[Exchange, ...]:
    """Collectives in the steps by kind and group, as PyTorch's file states them; those that take longest
    first.
    """
    told = trace.event_stats.texts("comm_kind")
    start = trace.events["start_ps"][told.owner]
    order = np.argsort(steps.start_ps, kind="stable")
    at = np.searchsorted(steps.start_ps[order], start, side="right") - 1
    inside = (at >= 0) & (start < (steps.start_ps + steps.duration_ps)[order][np.maximum(at, 0)])
    groups = trace.event_stats.texts("comm_group")
    group = dict(zip(groups.owner.tolist(), groups.value.tolist(), strict=True))
    sizes = trace.event_stats.ints("comm_size")
    size = dict(zip(sizes.owner.tolist(), sizes.value.tolist(), strict=True))
    found: dict[tuple[str, str, int], list[int]] = {}
    for row, kind in zip(told.owner[inside].tolist(), told.value[inside].tolist(), strict=True):
        key = (
            trace.strings.get(int(kind)),
            trace.strings.get(int(group[row])) if row in group else "",
            int(size.get(row, 0)),
        )
        found.setdefault(key, []).append(int(trace.events["duration_ps"][row]))
    whole = max(sum(sum(times) for times in found.values()), 1)
    result = [
        Exchange(*key, len(times) / len(steps), sum(times) / whole)
        for key, times in found.items()
        if key[0] != UNKNOWN_KIND
    ]
    return tuple(sorted(result, key=lambda one: -one.share))


def _runtime_calls(trace: Trace) -> tuple[tuple[str, float], ...]:
    """(call of the driver or runtime, time per step) of the innermost calls while no device works."""
    steps, pieces = step_pieces(trace)
    if pieces is None or not len(steps):
        return ()
    works = pieces.klass != TimeClass.UNKNOWN
    covered = union_cover(pieces.start[works], pieces.end[works])
    rows = np.flatnonzero(~works & (pieces.thread_class == TimeClass.HOST_COMPUTE))
    start, end = pieces.start[rows], pieces.end[rows]
    free = end - start - (covered(end) - covered(start))
    metadata = trace.events["metadata"][pieces.event[rows]]
    found: dict[str, float] = {}
    for row in np.unique(metadata).tolist():
        name = trace.strings.get(int(trace.metadata["name"][row]))
        if _RUNTIME.match(name):
            found[name] = found.get(name, 0.0) + float(free[metadata == row].sum()) / len(steps)
    return tuple(sorted(found.items(), key=lambda pair: -pair[1])[:3])
