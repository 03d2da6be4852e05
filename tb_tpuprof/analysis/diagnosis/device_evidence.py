"""Evidence of a host's accelerators: how close operations come to the peaks, which ones only move data or
wait, and what the devices exchange.

Operations are summed over all devices and the whole trace. Their time per step is their share of the devices'
busy time in the step, so it never exceeds the time the devices are busy.
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
_LONG_PS = 20_000_000  # shorter operations are limited by their launch, not by a resource
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
    """Evidence of the devices of a host with accelerators and steps; None for any other host."""
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
    total_busy = max(ops.busy_ps, 1)
    scale = busy / total_busy
    flops, hbm, sources = _fractions(trace, ops)
    cores = core_steps(trace)
    sparse = float(cores.parts["sparse_wait"].mean()) if cores else 0.0
    category = ops.category
    is_counted = ~ops.is_sparse

    def group(mask: Bools) -> Group:
        return _group(ops, mask & is_counted, scale)

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
        group(_matching(ops, _REMAT) & _are_of_compute(ops)),
        group(ops.is_waiting & _are_of_compute(ops)),
        group(_matching(ops, _BARRIER)),
        group(_matching(ops, _DEBUG)),
        Group(sparse, 1 if sparse else 0, "", sparse),
        group(category.is_in([text for text in category.strings if text.startswith(_COLLECTIVES)])),
    )


def _of_gpu(trace: Trace, ops: HloOps, steps: Steps, busy: float, compute: float) -> DeviceEvidence:
    used_kernels = kernels(trace)
    is_collective = np.array([is_collective_kernel(name) for name in used_kernels.name], np.bool_)
    total_ps = max(int(used_kernels.total_ps[~is_collective].sum()), 1)
    has_ops = bool(len(ops)) and ops.busy_ps > 0
    flops, hbm, sources = _fractions(trace, ops) if has_ops else (math.nan, math.nan, ("", ""))
    scale = compute / max(total_ps, ops.busy_ps if has_ops else 0)
    moves = _group(ops, ops.category.is_in(_FORMATTING), scale) if has_ops else _moves(trace, compute)
    is_half = np.array([is_half_precision(name) for name in used_kernels.name], np.bool_)
    wide = used_kernels.is_eligible & ~used_kernels.uses_tensor_cores & ~is_half
    return DeviceEvidence(
        hardware(trace).device,
        busy,
        compute,
        _kernels_per_step(used_kernels, steps, trace),
        flops,
        hbm,
        sources,
        _multiprocessors(trace),
        _ops(trace, ops, scale) if has_ops else (),
        _kernel_uses(used_kernels, scale),
        moves,
        _group(ops, _matching(ops, _REMAT) & _are_of_compute(ops), scale) if has_ops else Group(),
        collectives=_of_kernels(
            used_kernels, is_collective, float(steps.category_ps("device_collectives").mean())
        ),
        exchanges=_exchanges(trace, steps),
        runtime_calls=_runtime_calls(trace),
        wide=_of_kernels(used_kernels, wide, float(used_kernels.total_ps[wide].sum()) * scale),
    )


def _fractions(trace: Trace, ops: HloOps) -> tuple[float, float, tuple[str, str]]:
    """Fractions of the peak compute rate and HBM bandwidth that all operations together reach, and the
    sources of the peaks.
    """
    peaks = roofs(trace)
    seconds = ops.busy_ps / 1e12
    is_counted = ~ops.is_container & ~ops.is_sparse
    flops = float(ops.work.flops[is_counted & ops.work.knows_flops].sum())
    moved = float(ops.work.space_bytes[0][is_counted & ops.work.knows_bytes].sum())
    hbm_bytes_per_s = peaks.bytes_per_s[0]
    return (
        min(flops / seconds / peaks.flops_per_s, 1.0)
        if seconds and peaks.flops_per_s and flops
        else math.nan,
        min(moved / seconds / hbm_bytes_per_s, 1.0) if seconds and hbm_bytes_per_s and moved else math.nan,
        peaks.short_sources,
    )


def _ops(trace: Trace, ops: HloOps, scale: float) -> tuple[DeviceOp, ...]:
    """The longest operations that compute, with the fractions of the peaks that they reach."""
    speed = rates(ops.work, ops.work_ps, roofs(trace))
    is_counted = ~ops.is_container & ~ops.is_sparse & ~ops.is_waiting & _are_of_compute(ops)
    rows = [row for row in ops.by_self_time.tolist() if is_counted[row] and ops.self_ps[row]][:_N_OPS]
    unit_width = unit_side(hardware(trace).device, planes(trace).hardware or "")
    result = []
    for row in rows:
        mean_ps = float(ops.time_ps[row]) / max(int(ops.n_occurrences[row]), 1)
        product, fill = _padding(trace, ops, row, unit_width) if unit_width else ("", math.nan)
        is_long = mean_ps >= _LONG_PS
        efficiency = (
            float(speed.efficiency[row])
            if is_long and ops.work.knows_flops[row] and ops.work.knows_bytes[row]
            else math.nan
        )
        result.append(
            DeviceOp(
                ops.name[row],
                ops.category[row],
                float(ops.self_ps[row]) * scale,
                mean_ps,
                float(speed.flops_fraction[row]),
                float(speed.space_fraction[0][row]),
                min(efficiency, 1.0),
                product,
                fill,
            )
        )
    return tuple(result)


def _are_of_compute(ops: HloOps) -> Bools:
    """Operations whose time the steps count as computing: collectives and transfers have other causes."""
    others = [text for text in ops.category.strings if category_class(text) not in _COMPUTES]
    return ~ops.category.is_in(others)


def _padding(trace: Trace, ops: HloOps, row: int, side: int) -> tuple[str, float]:
    """An operation's matrix product that fills the matrix unit least, and the fraction that it fills."""
    module = trace.programs.module(int(ops.program[row])) if ops.instruction[row] >= 0 else None
    matrix_products = products(module, int(ops.instruction[row]), side) if module is not None else []
    worst = min(matrix_products, key=lambda one: one.fill, default=None)
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
    """PyTorch operations that copy within a GPU's memory."""
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


def _of_kernels(used_kernels: Kernels, mask: Bools, time: float) -> Group:
    """Kernels of one purpose; `time`: their time per step in ps."""
    rows = np.flatnonzero(mask)
    total_ps = int(used_kernels.total_ps[rows].sum())
    if not total_ps:
        return Group()
    top = int(rows[used_kernels.total_ps[rows].argmax()])
    label = {row: used_kernels.op[row] or short_name(used_kernels.name[row]) for row in rows.tolist()}
    of_top = [row for row in rows.tolist() if label[row] == label[top]]
    return Group(
        time,
        len(set(label.values())),
        label[top],
        time * float(used_kernels.total_ps[of_top].sum()) / total_ps,
    )


def _kernel_uses(used_kernels: Kernels, scale: float) -> tuple[KernelUse, ...]:
    result = []
    for row in range(min(len(used_kernels), _N_OPS)):
        launch = used_kernels.launch[row]
        mean_ps = float(used_kernels.total_ps[row]) / max(int(used_kernels.n_occurrences[row]), 1)
        if not is_collective_kernel(used_kernels.name[row]):
            result.append(
                KernelUse(
                    short_name(used_kernels.name[row]),
                    used_kernels.op[row],
                    float(used_kernels.total_ps[row]) * scale,
                    mean_ps,
                    launch.occupancy,
                    _n_blocks(launch.grid),
                )
            )
    return tuple(result)


def _n_blocks(grid: str) -> int:
    sizes: Sequence[str] = grid.split(",") if grid else ()
    return math.prod(int(size) for size in sizes) if sizes else 0


def _multiprocessors(trace: Trace) -> int:
    core_counts = trace.plane_stats.floats("core_count")
    values = [
        float(value)
        for owner, value in zip(core_counts.owner, core_counts.value, strict=True)
        if owner in planes(trace).gpus
    ]
    return int(values[0]) if values and np.isfinite(values[0]) else 0


def _kernels_per_step(used_kernels: Kernels, steps: Steps, trace: Trace) -> float:
    """Mean number of kernels that start in a step."""
    from tb_tpuprof.analysis.kernels.rows import kernel_rows

    starts = np.sort(trace.events["start_ps"][kernel_rows(trace)[0]])
    stop = steps.start_ps + steps.duration_ps
    return float((np.searchsorted(starts, stop) - np.searchsorted(starts, steps.start_ps)).mean())


def _exchanges(trace: Trace, steps: Steps) -> tuple[Exchange, ...]:
    """Collectives in the steps by kind and group, as PyTorch's file reports them, longest first."""
    kinds = trace.event_stats.texts("comm_kind")
    start = trace.events["start_ps"][kinds.owner]
    order = np.argsort(steps.start_ps, kind="stable")
    step = np.searchsorted(steps.start_ps[order], start, side="right") - 1
    inside = (step >= 0) & (start < (steps.start_ps + steps.duration_ps)[order][np.maximum(step, 0)])
    groups = trace.event_stats.texts("comm_group")
    group = dict(zip(groups.owner.tolist(), groups.value.tolist(), strict=True))
    sizes = trace.event_stats.ints("comm_size")
    size = dict(zip(sizes.owner.tolist(), sizes.value.tolist(), strict=True))
    times_by_key: dict[tuple[str, str, int], list[int]] = {}
    for row, kind in zip(kinds.owner[inside].tolist(), kinds.value[inside].tolist(), strict=True):
        key = (
            trace.strings.get(int(kind)),
            trace.strings.get(int(group[row])) if row in group else "",
            int(size.get(row, 0)),
        )
        times_by_key.setdefault(key, []).append(int(trace.events["duration_ps"][row]))
    total_ps = max(sum(sum(times) for times in times_by_key.values()), 1)
    result = [
        Exchange(*key, len(times) / len(steps), sum(times) / total_ps)
        for key, times in times_by_key.items()
        if key[0] != UNKNOWN_KIND
    ]
    return tuple(sorted(result, key=lambda one: -one.share))


def _runtime_calls(trace: Trace) -> tuple[tuple[str, float], ...]:
    """(driver or runtime call, ps per step) of innermost calls while all devices are idle, longest first."""
    steps, pieces = step_pieces(trace)
    if pieces is None or not len(steps):
        return ()
    works = pieces.klass != TimeClass.UNKNOWN
    covered = union_cover(pieces.start[works], pieces.end[works])
    rows = np.flatnonzero(~works & (pieces.thread_class == TimeClass.HOST_COMPUTE))
    start, end = pieces.start[rows], pieces.end[rows]
    free = end - start - (covered(end) - covered(start))
    metadata = trace.events["metadata"][pieces.event[rows]]
    time_by_name: dict[str, float] = {}
    for row in np.unique(metadata).tolist():
        name = trace.strings.get(int(trace.metadata["name"][row]))
        if _RUNTIME.match(name):
            time_by_name[name] = time_by_name.get(name, 0.0) + float(free[metadata == row].sum()) / len(steps)
    return tuple(sorted(time_by_name.items(), key=lambda pair: -pair[1])[:3])
