"""roofline_model: operations, the whole program and its steps against the device's roofs: compute and each
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import MISCOUNTED
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work, join_work
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, op_categories
from tb_tpuprof.analysis.ops.hlo_record import TRANSFERS, HloOps
from tb_tpuprof.analysis.ops.hlo_steps import StepWork, step_work, sum_step_work
from tb_tpuprof.analysis.ops.roofline import (
    ABOVE_PEAK,
    LIMITS,
    NEAR_A_LIMIT,
    NO_LIMIT,
    TITLES,
    UNKNOWN,
    WAITING,
    Rates,
    Roofs,
    in_words,
    rates,
    ratio,
    total_work,
)
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.steps.tpu import category_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.hlo_session import (
    CompiledOps,
    device_ops_available,
    diagnostics_of,
    every_op_tool,
    find_device_ops,
    title_of,
)
from tb_tpuprof.tools.payload import NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.roofline_model.tables import (
    HBM_BASE,
    MAIN_MEMORY_BASE,
    OPS,
    PROGRAMS,
    ROOFS,
    SCALARS,
    TABLES,
    TILES,
)
from tb_tpuprof.tools.spec import Number, Values, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import format_fraction, format_value

N_ROWS = 10_000
_NEAR = 0.6
_STANDS_OUT = 0.1  # of the operations' time
_WITH_IDLE = "of one device, idle time included"
# CPUs have no HBM: titles of the same quantities there.
_ON_CPUS = {
    "hbm_bytes": "Bytes moved",
    "hbm_bytes_per_s": "Main memory",
    "hbm_flops_per_byte": "Main memory intensity",
}
_NO_WORK = "the trace has no FLOP or byte counts"
Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Whole:
    """The program as a whole, the mean of its steps, and each step: names, time on all devices together,
    work.
    """

    name: tuple[str, ...]
    time_ps: Int64s
    work: Work


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """Points of one, several or all hosts together."""
    compiled = find_device_ops(session, hosts, TOOL.name, steps, step_work)
    with_transfers = bool(params["transfers"])
    ops = compiled.ops.kept(~compiled.ops.is_sparse)
    moves = ops.category.is_in(TRANSFERS)
    whole_ps = ops.total_ps - (0 if with_transfers else int(ops.time_ps[moves].sum()))
    if not with_transfers:
        ops = ops.kept(~moves)
    clocks = clocks_of(session, hosts)
    common = common_steps(session.map(steps, hosts), _starts(session, hosts, clocks))
    each = sum_step_work(session.map(step_work, hosts), common.rows)
    # Kernels of several streams overlap: their times together may be longer than the program.
    program_ps = compiled.ops.span_ps if ops.kind == "GPU" and with_transfers else whole_ps
    whole = _whole(ops, program_ps, each, with_transfers)
    tables = {
        "ops": ops_table(ops, whole_ps, compiled.roofs),
        "programs": programs_table(whole, compiled),
        "roofs": roofs_table(compiled.roofs),
    }
    scalars = _scalars(whole, compiled)
    diagnostics = (*clocks.diagnostics, *diagnostics_of(session, compiled))
    verdict = with_limits(TOOL.name, _verdict(ops, whole, compiled), limits_of(session, hosts))
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, diagnostics)


def _starts(session: Session, hosts: tuple[str, ...], clocks: Clocks) -> list[int]:
    """Start of each host's trace in nanoseconds; 0 for a single host, which needs no alignment."""
    if len(hosts) < 2:
        return [0] * len(hosts)
    return [
        marks.start_ns + add
        for marks, add in zip(session.map(clock_marks, hosts), clocks.correction_ns, strict=True)
    ]


def _whole(ops: HloOps, whole_ps: int, each: StepWork, with_transfers: bool) -> Whole:
    """Total, average of the steps, steps."""
    total = total_work(ops.work, ~ops.is_container)
    time = each.time_ps if with_transfers else each.time_ps - each.transfer_ps
    if not len(each):
        return Whole(("Total",), np.array([whole_ps]), total)
    mean = total_work(each.work, np.ones(len(each), np.bool_)).times(1 / len(each))
    names = ("Total", "Average", *each.name)
    return Whole(
        names,
        np.concatenate([[whole_ps], [int(time.mean())], time]).astype(np.int64),
        join_work([total, mean, each.work]),
    )


def ops_table(ops: HloOps, whole_ps: int, peaks: Roofs) -> Table:
    """A row per operation, longest self time first."""
    order = ops.by_self_time
    order = order[ops.self_ps[order] > 0]
    shown = ops.taken(order[:N_ROWS])
    share, of_span = shown.self_ps / (ops.busy_ps or 1), shown.self_ps / (whole_ps or 1)
    columns = {
        "rank": np.arange(1, len(shown) + 1),
        "program": [shown.programs[p] for p in shown.program.tolist()],
        "category": [shown.category[i] for i in range(len(shown))],
        "op": [shown.name[i] for i in range(len(shown))],
        "n_occurrences": shown.n_occurrences,
        "total_time_ps": shown.time_ps,
        "avg_time_ps": ratio(shown.time_ps.astype(np.float64), shown.n_occurrences),
        "total_self_time_ps": shown.self_ps,
        "avg_self_time_ps": ratio(shown.self_ps.astype(np.float64), shown.n_occurrences),
        "self_fraction": share,
        "cumulative_fraction": np.cumsum(share),
        **({} if ops.kind == "CPU" else {"device_time_fraction": of_span}),
        "time_fraction": shown.time_ps / (whole_ps or 1),
        "time_per_device_ps": shown.time_ps / max(shown.n_devices, 1),
        **_measures(shown.work, shown.work_ps, peaks, (ops.kind, shown.is_waiting)),
        "source": [shown.source[i] for i in range(len(shown))],
    }
    note = "" if len(order) <= N_ROWS else f"the first {N_ROWS:,} of {len(order):,}"
    return OPS.fill(columns, note, titles=_ON_CPUS if ops.kind == "CPU" else {})


def programs_table(whole: Whole, compiled: CompiledOps) -> Table:
    """The whole program, the mean of its steps, and each step."""
    n_devices = max(compiled.ops.n_devices, 1)
    columns = {
        "step": whole.name,
        "total_time_ps": whole.time_ps,
        "time_per_device_ps": whole.time_ps / n_devices,
        **_measures(
            whole.work,
            whole.time_ps,
            compiled.roofs,
            (compiled.ops.kind, np.zeros(len(whole.name), np.bool_)),
        ),
    }
    if compiled.ops.kind == "CPU":  # no device's span is known: the total is that of the operations
        note = "total: over the time that operations run; steps: over the step time; click to show only one"
        return PROGRAMS.fill(columns, note, titles=_ON_CPUS)
    return PROGRAMS.fill(
        columns, "all operations over the devices' time, idle included; click to show only one"
    )


def _measures(
    work: Work, time_ps: Int64s, peaks: Roofs, device_and_waits: tuple[str, npt.NDArray[np.bool_]]
) -> dict[str, Values]:
    """Work, rates, intensities and how close they are to their roofs. `device_and_waits`: the kind of
    device, and a mask of rows that only wait.
    """
    kind, is_waiting = device_and_waits
    speed = rates(work, time_ps, peaks)
    memories = range(len(SPACES) if kind == "TPU" else 1)
    return {
        "flops": np.where(work.knows_flops, work.flops, np.nan),
        "hbm_bytes": np.where(work.knows_bytes, work.space_bytes[0], np.nan),
        "flop_rate_flops_per_s": speed.flops_per_s,
        "model_flops_per_s": speed.model_flops_per_s,
        "memory_bandwidth_bytes_per_s": speed.bytes_per_s,
        **{f"{SPACES[i]}_bytes_per_s": speed.space_bytes_per_s[i] for i in memories},
        "operational_intensity_flops_per_byte": speed.space_intensity[0],
        "all_memories_flops_per_byte": speed.intensity,
        **{f"{SPACES[i]}_flops_per_byte": speed.space_intensity[i] for i in memories},
        "bound_flops_per_byte": speed.bound_intensity,
        "bound_by": [LIMITS[i] for i in speed.limits(is_waiting).tolist()],
        "nearest_limit": [speed.nearest_text(i) for i in range(len(speed.nearest))],
        "optimal_flops_per_s": speed.optimal_flops_per_s,
        "efficiency_fraction": speed.efficiency,
        "compute_fraction": speed.flops_fraction,
        "memory_fraction": speed.memory_fraction,
    }


def roofs_table(peaks: Roofs) -> Table:
    """A row per memory with a known peak, and the intensity from which compute is the limit."""
    memories = [
        (name, title, peak)
        for name, title, peak in zip(SPACES, TITLES, peaks.bytes_per_s, strict=True)
        if peak > 0
    ]
    if peaks.shared_bytes_per_s > 0:
        memories.append(("shared", "Shared memory / L1", peaks.shared_bytes_per_s))
    bandwidth = np.array([peak for _, _, peak in memories], np.float64)
    ridge = peaks.flops_per_s / bandwidth if peaks.flops_per_s else np.full(len(memories), np.nan)
    return ROOFS.fill(
        {
            "name": [name for name, _, _ in memories],
            "title": [title for _, title, _ in memories],
            "bytes_per_s": bandwidth,
            "ridge_flops_per_byte": ridge,
        },
        f"peaks of one device; compute from {peaks.short_sources[0] or 'unknown source'}; memory from "
        f"{peaks.short_sources[1] or 'unknown source'}"
        if any(peaks.sources)
        else "",
    )


def _or_none(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _scalars(whole: Whole, compiled: CompiledOps) -> dict[str, Scalar]:
    peaks = compiled.roofs
    speed = rates(whole.work, whole.time_ps, peaks)
    hbm, on_cpu = peaks.bytes_per_s[0], compiled.ops.kind == "CPU"
    ridge = peaks.flops_per_s / hbm if hbm and peaks.flops_per_s else None
    nearest = (
        f"of peak {in_words(speed.nearest_text(0))}"
        if speed.nearest[0] >= 0
        else "peaks unknown"
        if not peaks.is_known
        else MISCOUNTED
        if speed.is_above[0]
        else _NO_WORK
    )
    rate, intensity = _or_none(speed.flops_per_s[0]), _or_none(speed.space_intensity[0][0])
    compute_note, memory_note = (
        f"of one device, from {text}" if text else "" for text in peaks.short_sources
    )
    values = {
        "efficiency_fraction": Number(_or_none(speed.efficiency[0]), nearest),
        "flop_rate_flops_per_s": Number(
            rate, _NO_WORK if rate is None else "while operations run" if on_cpu else _WITH_IDLE
        ),
        "intensity_flops_per_byte": Number(
            intensity, _NO_WORK if intensity is None else MAIN_MEMORY_BASE if on_cpu else HBM_BASE
        ),
        "peak_flops_per_s": Number(peaks.flops_per_s or None, compute_note),
        "peak_hbm_bytes_per_s": Number(hbm or None, memory_note),
        "ridge_flops_per_byte": Number(
            ridge,
            "compute-bound to the right of it" if ridge else "",
            "",
            quotient((peaks.flops_per_s, hbm), ("flops_per_s", "bytes_per_s"), ridge, "flops_per_byte")
            if ridge
            else "",
        ),
    }
    return fill_scalars(SCALARS, values)


def _verdict(ops: HloOps, whole: Whole, compiled: CompiledOps) -> Verdict | None:
    """What limits most of the time, and the operation with the largest possible gain."""
    if not ops.busy_ps:
        return None
    if not compiled.roofs.is_known:
        return _verdict_without_roofs(ops, compiled)
    speed = rates(ops.work, ops.work_ps, compiled.roofs)
    total = rates(whole.work, whole.time_ps, compiled.roofs)
    efficiency = _or_none(total.efficiency[0])
    text, details, saving = _limit_sentence(ops, speed, compiled), [], ""
    if efficiency is not None:
        reached = format_fraction(efficiency)
        text += f" The program as a whole runs at {reached} of its roofline, idle time included."
    is_rated = np.isfinite(speed.efficiency) & ~ops.is_waiting & ~_are_collectives(ops)
    lost = np.where(is_rated, ops.self_ps * (1 - np.nan_to_num(speed.efficiency)), 0.0)
    first = int(lost.argmax()) if lost.any() else int(ops.self_ps.argmax())
    if lost[first] > 0:
        near = format_fraction(float(speed.efficiency[first]))
        gain = format_fraction(float(lost[first]) / ops.busy_ps)
        saving = f" (expected gain at its roofline: up to {gain} of the operations' time)"
        details.append(
            f"{title_of(ops, first)} ({ops.category[first]}) has the largest headroom: it runs at {near} of "
            "its roofline."
        )
    level: Literal["good", "warn", "unknown"] = (
        "unknown" if efficiency is None else "good" if efficiency >= _NEAR else "warn"
    )
    where = {"program": ops.programs[int(ops.program[first])], "op": ops.name[first]}
    steps_on = (
        NextStep(f"See {title_of(ops, first)}{saving}", "op_profile", where),
        NextStep("See every operation", every_op_tool(ops)),
    )
    return Verdict(level, text, "compute", tuple(details), steps_on)


def _are_collectives(ops: HloOps) -> npt.NDArray[np.bool_]:
    """Operations that links and other devices limit: no roof says how fast they could be."""
    names = ops.category.strings
    return ops.category.is_in([n for n in names if category_class(n) == TimeClass.DEVICE_COLLECTIVES])


def _limit_sentence(ops: HloOps, speed: Rates, compiled: CompiledOps) -> str:
    """The limit of most of the operations' time, or that they wait."""
    times = np.bincount(speed.limits(ops.is_waiting), ops.self_ps, len(LIMITS))
    most = int(times.argmax())
    share = format_fraction(float(times[most]) / ops.busy_ps)
    if LIMITS[most] == WAITING:
        return category_sentence(op_categories(ops, compiled.offload_ps))
    if LIMITS[most] == UNKNOWN:
        return f"{share} of the operations' time is spent in operations with unknown FLOPs and bytes."
    if LIMITS[most] == ABOVE_PEAK:
        return (
            f"{share} of the operations' time is spent in operations with more work counted than the "
            "device can do, so their limit is unknown."
        )
    if LIMITS[most] == NO_LIMIT:
        least = format_fraction(NEAR_A_LIMIT)
        return (
            f"{share} of the operations' time is limited by neither compute nor memory: these operations "
            f"reach less than {least} of each peak."
        )
    return f"{share} of the operations' time is limited by {in_words(LIMITS[most])}."


def _verdict_without_roofs(ops: HloOps, compiled: CompiledOps) -> Verdict:
    """For unknown peaks: the operation that takes the most time with its rate, and the fastest one."""
    speed = rates(ops.work, ops.work_ps, compiled.roofs).flops_per_s
    top, fastest = int(ops.self_ps.argmax()), int(np.nan_to_num(speed).argmax())
    share = float(ops.self_ps[top]) / ops.busy_ps
    rate = f", at {format_value(float(speed[top]), 'flops_per_s')}" if np.isfinite(speed[top]) else ""
    time = f"{format_fraction(share)} of the operations' time{rate}"
    text = (
        f"{title_of(ops, top)} takes the most time: {time}."
        if share >= _STANDS_OUT
        else f"No single operation stands out: {title_of(ops, top)} comes first with {time}."
    )
    text += " No roofline is drawn, because the peak rates are unknown."
    highest = format_value(float(speed[fastest]), "flops_per_s")
    details = (f"{title_of(ops, fastest)} has the highest rate: {highest}.",)
    where = {"program": ops.programs[int(ops.program[top])], "op": ops.name[top]}
    steps_on = (
        NextStep(f"See {title_of(ops, top)}", "op_profile", where),
        NextStep("See every operation", every_op_tool(ops)),
    )
    subject = Subject("ops", "op", ops.name[top], {"total_self_time_ps": float(ops.self_ps[top])})
    return Verdict(
        "unknown", text, "compute", details if np.nan_to_num(speed[fastest]) > 0 else (), steps_on, (subject,)
    )


TOOL = Tool(
    name="roofline_model",
    title="Roofline model",
    group="Compiler",
    summary="How close operations, steps and the program come to the hardware's limits",
    view=view,
    available=device_ops_available,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    params=(
        Param(
            "transfers",
            "Include infeed and outfeed",
            "bool",
            True,
            "Count operations that only wait for the host",
        ),
    ),
)
