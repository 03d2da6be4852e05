"""roofline_model: operations, the whole program and its steps against the roofs that the device sets: compute
and each memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work, join_work
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, op_categories
from tb_tpuprof.analysis.ops.hlo_record import TRANSFERS, HloOps
from tb_tpuprof.analysis.ops.hlo_steps import StepWork, step_work, sum_step_work
from tb_tpuprof.analysis.ops.roofline import (
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
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.hlo_session import Found, available, diagnostics_of, find_ops
from tb_tpuprof.tools.payload import NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.roofline_model.tables import HBM_BASE, OPS, PROGRAMS, ROOFS, SCALARS, TABLES
from tb_tpuprof.tools.spec import Number, Values, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, told
from tb_tpuprof.units import format_fraction, format_value

N_ROWS = 10_000
_NEAR = 0.6
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
    found = find_ops(session, hosts, TOOL.name, steps, step_work)
    with_transfers = bool(params["transfers"])
    ops = found.ops.kept(~found.ops.is_sparse)
    moves = ops.category.is_in(TRANSFERS)
    whole_ps = ops.total_ps - (0 if with_transfers else int(ops.time_ps[moves].sum()))
    if not with_transfers:
        ops = ops.kept(~moves)
    clocks = clocks_of(session, hosts)
    common = common_steps(session.map(steps, hosts), _starts(session, hosts, clocks))
    each = sum_step_work(session.map(step_work, hosts), common.rows)
    whole = _whole(ops, whole_ps, each, with_transfers)
    tables = {
        "ops": ops_table(ops, whole_ps, found.roofs),
        "programs": programs_table(whole, found),
        "roofs": roofs_table(found.roofs),
    }
    scalars = _scalars(whole, found)
    diagnostics = (*clocks.diagnostics, *diagnostics_of(session, found))
    verdict = told(TOOL.name, _verdict(ops, whole, found), limits_of(session, hosts))
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, diagnostics)


def _starts(session: Session, hosts: tuple[str, ...], clocks: Clocks) -> list[int]:
    """When each host's trace begins, in nanoseconds; a single host has none to be compared with."""
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
    """A row per operation, the longest self time first."""
    order = ops.by_self_time
    order = order[ops.self_ps[order] > 0]
    one = ops.taken(order[:N_ROWS])
    share, of_span = one.self_ps / (ops.busy_ps or 1), one.self_ps / (whole_ps or 1)
    columns = {
        "rank": np.arange(1, len(one) + 1),
        "program": [one.programs[p] for p in one.program.tolist()],
        "category": [one.category[i] for i in range(len(one))],
        "op": [one.name[i] for i in range(len(one))],
        "n_occurrences": one.n_occurrences,
        "total_time_ps": one.time_ps,
        "avg_time_ps": ratio(one.time_ps.astype(np.float64), one.n_occurrences),
        "total_self_time_ps": one.self_ps,
        "avg_self_time_ps": ratio(one.self_ps.astype(np.float64), one.n_occurrences),
        "self_fraction": share,
        "cumulative_fraction": np.cumsum(share),
        **({} if ops.kind == "CPU" else {"device_time_fraction": of_span}),
        "time_fraction": one.time_ps / (whole_ps or 1),
        "time_per_device_ps": one.time_ps / max(one.n_devices, 1),
        **_measures(one.work, one.work_ps, peaks, (ops.kind, one.is_waiting)),
        "source": [one.source[i] for i in range(len(one))],
    }
    return OPS.fill(columns, "" if len(order) <= N_ROWS else f"the first {N_ROWS:,} of {len(order):,}")


def programs_table(whole: Whole, found: Found) -> Table:
    """The program in all, the mean of its steps, and each step."""
    n_devices = max(found.ops.n_devices, 1)
    columns = {
        "step": whole.name,
        "total_time_ps": whole.time_ps,
        "time_per_device_ps": whole.time_ps / n_devices,
        **_measures(
            whole.work, whole.time_ps, found.roofs, (found.ops.kind, np.zeros(len(whole.name), np.bool_))
        ),
    }
    return PROGRAMS.fill(columns)


def _measures(
    work: Work, time_ps: Int64s, peaks: Roofs, what: tuple[str, npt.NDArray[np.bool_]]
) -> dict[str, Values]:
    """Work, rates, intensities and how near they are to their roofs. `what`: the kind of device, and which
    rows only wait.
    """
    kind, is_waiting = what
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
    """A row per memory whose peak is known, with the intensity at which compute begins to bind."""
    known = [
        (name, title, peak)
        for name, title, peak in zip(SPACES, TITLES, peaks.bytes_per_s, strict=True)
        if peak > 0
    ]
    if peaks.shared_bytes_per_s > 0:
        known.append(("shared", "Shared memory / L1", peaks.shared_bytes_per_s))
    bandwidth = np.array([peak for _, _, peak in known], np.float64)
    ridge = peaks.flops_per_s / bandwidth if peaks.flops_per_s else np.full(len(known), np.nan)
    return ROOFS.fill(
        {
            "name": [name for name, _, _ in known],
            "title": [title for _, title, _ in known],
            "bytes_per_s": bandwidth,
            "ridge_flops_per_byte": ridge,
        },
        f"peaks of one device; compute from {peaks.sources[0] or 'nowhere'}; memory from "
        f"{peaks.sources[1] or 'nowhere'}"
        if any(peaks.sources)
        else "",
    )


def _known(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _scalars(whole: Whole, found: Found) -> dict[str, Scalar]:
    peaks = found.roofs
    speed = rates(whole.work, whole.time_ps, peaks)
    hbm = peaks.bytes_per_s[0]
    ridge = peaks.flops_per_s / hbm if hbm and peaks.flops_per_s else None
    nearest = (
        f"of peak {in_words(speed.nearest_text(0))}"
        if speed.nearest[0] >= 0
        else "no peak is known"
        if not peaks.is_known
        else _NO_WORK
    )
    rate, intensity = _known(speed.flops_per_s[0]), _known(speed.space_intensity[0][0])
    compute_note, memory_note = (
        f"of one device, from {text}" if text else "not known" for text in peaks.short_sources
    )
    values = {
        "efficiency_fraction": Number(_known(speed.efficiency[0]), nearest),
        "flop_rate_flops_per_s": Number(
            rate, _NO_WORK if rate is None else "of one device, idle time included"
        ),
        "intensity_flops_per_byte": Number(intensity, _NO_WORK if intensity is None else HBM_BASE),
        "peak_flops_per_s": Number(peaks.flops_per_s or None, compute_note),
        "peak_hbm_bytes_per_s": Number(hbm or None, memory_note),
        "ridge_flops_per_byte": Number(ridge, "compute-bound to the right of it" if ridge else "not known"),
    }
    return fill_scalars(SCALARS, values)


def _verdict(ops: HloOps, whole: Whole, found: Found) -> Verdict | None:
    """What limits most of the time, and which operation has most to gain."""
    if not ops.busy_ps:
        return None
    if not found.roofs.is_known:
        return _verdict_without_roofs(ops, found)
    speed = rates(ops.work, ops.work_ps, found.roofs)
    total = rates(whole.work, whole.time_ps, found.roofs)
    efficiency = _known(total.efficiency[0])
    details = []
    if efficiency is not None:
        details.append(
            f"The program as a whole runs at {format_fraction(efficiency)} of its roofline, idle time "
            "included."
        )
    known = np.isfinite(speed.efficiency) & ~ops.is_waiting
    lost = np.where(known, ops.self_ps * (1 - np.minimum(np.nan_to_num(speed.efficiency), 1)), 0.0)
    first = int(lost.argmax()) if lost.any() else int(ops.self_ps.argmax())
    if lost[first] > 0:
        near, gain = (
            format_fraction(float(speed.efficiency[first])),
            format_fraction(float(lost[first]) / ops.busy_ps),
        )
        details.append(
            f"`{ops.name[first]}` has the largest headroom: it runs at {near} of its roofline; at the "
            f"roofline it would save {gain} of the operations' time."
        )
    level: Literal["good", "warn", "unknown"] = (
        "unknown" if efficiency is None else "good" if efficiency >= _NEAR else "warn"
    )
    where = {"program": ops.programs[int(ops.program[first])], "op": ops.name[first]}
    steps_on = (
        NextStep(f"See `{ops.name[first]}`", "op_profile", where),
        NextStep("See every operation", "hlo_stats"),
    )
    return Verdict(level, _limit_sentence(ops, speed, found), "compute", tuple(details), steps_on)


def _limit_sentence(ops: HloOps, speed: Rates, found: Found) -> str:
    """What most of the operations' time is limited by, or that it is waiting."""
    times = np.bincount(speed.limits(ops.is_waiting), ops.self_ps, len(LIMITS))
    most = int(times.argmax())
    share = format_fraction(float(times[most]) / ops.busy_ps)
    if LIMITS[most] == WAITING:
        return category_sentence(op_categories(ops, found.offload_ps))
    if LIMITS[most] == UNKNOWN:
        return f"{share} of the operations' time goes into operations whose FLOPs and bytes are unknown."
    if LIMITS[most] == NO_LIMIT:
        least = format_fraction(NEAR_A_LIMIT)
        return (
            f"{share} of the operations' time is below every limit: its operations reach less than "
            f"{least} of each peak."
        )
    return f"{share} of the operations' time is limited by {in_words(LIMITS[most])}."


def _verdict_without_roofs(ops: HloOps, found: Found) -> Verdict:
    """Where no peak is known: what takes most time, at which rate, and which is the fastest."""
    speed = rates(ops.work, ops.work_ps, found.roofs).flops_per_s
    top, fastest = int(ops.self_ps.argmax()), int(np.nan_to_num(speed).argmax())
    share = format_fraction(float(ops.self_ps[top]) / ops.busy_ps)
    text = (
        f"Peak rates are unknown, so no roofline is drawn. `{ops.name[top]}` takes the most of the "
        f"operations' time, {share}"
    )
    text += f", at {format_value(float(speed[top]), 'flops_per_s')}." if np.isfinite(speed[top]) else "."
    details = (
        f"The highest rate is that of `{ops.name[fastest]}`: "
        f"{format_value(float(speed[fastest]), 'flops_per_s')}.",
    )
    where = {"program": ops.programs[int(ops.program[top])], "op": ops.name[top]}
    steps_on = (
        NextStep(f"See `{ops.name[top]}`", "op_profile", where),
        NextStep("See every operation", "hlo_stats"),
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
    available=available,
    tables=TABLES,
    scalars=SCALARS,
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
