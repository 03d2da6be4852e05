"""framework_op_stats: every framework operation on host and device with its occurrences, times, rates and
shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import share_of_peak
from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.events.frameworks import TENSORFLOW, UNKNOWN, software
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, host_categories, sum_categories
from tb_tpuprof.analysis.ops.gpu import transfer_ps
from tb_tpuprof.analysis.ops.metrics import IDLE, NO_OPERATION, OpMetrics
from tb_tpuprof.analysis.ops.roof_excess import excess_notices, roof_excesses
from tb_tpuprof.analysis.ops.roofline import ABOVE_PEAK, first_roofs, limit_text, roofs
from tb_tpuprof.analysis.ops.stats import (
    OpStats,
    op_stats,
    op_stats_by_shape,
    op_stats_by_stack,
    sum_op_stats,
)
from tb_tpuprof.analysis.overview.facts import host_facts
from tb_tpuprof.analysis.overview.summary import precompute
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.facts import facts_of, framework_of, summed_over
from tb_tpuprof.tools.framework_op_stats.tables import (
    DEVICE_BY_OP,
    DEVICE_BY_TYPE,
    HOST_BY_OP,
    HOST_BY_TYPE,
    OPS,
    SCALARS,
    TABLES,
    TILES,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.shares import N_SLICES
from tb_tpuprof.tools.spec import Filled, Number, TableSpec, fill_scalars, known_texts
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.units import format_fraction, format_time

_OVERLAP = "operations overlap in time, so what is left of the span is not idle time"
_STANDS_OUT = 0.1
BY_OP, BY_SHAPE, BY_STACK = GROUPS = ("op", "shape", "stack")
_ANALYSES = {BY_OP: op_stats, BY_SHAPE: op_stats_by_shape, BY_STACK: op_stats_by_stack}
_DETAILS = {BY_SHAPE: "input_shapes", BY_STACK: "call_stack"}
_NOT_RECORDED = {
    BY_SHAPE: (
        "The trace does not record the sizes of inputs, so operations are not grouped by them.",
        "PyTorch: torch.profiler.profile(record_shapes=True). JAX: capture with the programs' HLO.",
    ),
    BY_STACK: (
        "The trace records no Python functions around operations, so operations are not grouped by them.",
        "PyTorch: torch.profiler.profile(with_stack=True). Other frameworks do not record them there.",
    ),
}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Host or device: its operations sorted by self time, with idle time as a row if it is to be shown."""

    title: str
    name: tuple[str, ...]
    type: tuple[str, ...]
    n_occurrences: npt.NDArray[np.int64]
    time_ps: npt.NDArray[np.int64]
    self_ps: npt.NDArray[np.int64]
    flops: Floats
    n_bytes: Floats
    roof_flops: Floats
    tensor_core_fraction: Floats
    is_eager: npt.NDArray[np.bool_]
    is_miscounted: npt.NDArray[np.bool_]
    details: tuple[str, ...]

    @property
    def share(self) -> Floats:
        """Self time as a share of the self time of all rows; 0 if nothing took time."""
        total_ps = int(self.self_ps.sum())
        return self.self_ps / total_ps if total_ps else np.zeros(len(self.name))


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """Operations of one, several or all hosts together."""
    group = str(params["group"])
    analysis = _ANALYSES[group]
    shared = (host_facts, roof_excesses, roofs, software, host_categories)
    session.map(precompute, hosts, analysis, op_stats, *shared)
    rows, ops = (sum_op_stats(session.map(function, hosts)) for function in (analysis, op_stats))
    machine = sum_hardware(session.map(hardware, hosts))
    notices = [notice for of_host in session.map(trace_notices, hosts) for notice in of_host]
    notices += excess_notices(
        [excess for of_host in session.map(roof_excesses, hosts) for excess in of_host],
        first_roofs(session.map(roofs, hosts)),
    )
    with_idle = bool(params["idle"])
    device, host = side("Device", rows.device, with_idle), side("Host", rows.host, with_idle)
    return Payload(
        "framework_op_stats",
        session.run,
        hosts,
        {
            "ops": ops_table(device, host, machine, group),
            "device_by_type": _shares(DEVICE_BY_TYPE, device, device.type),
            "device_by_op": _shares(DEVICE_BY_OP, device, device.name),
            "host_by_type": _shares(HOST_BY_TYPE, host, host.type),
            "host_by_op": _shares(HOST_BY_OP, host, host.name),
        },
        _scalars(ops, _summed(session, hosts)),
        with_limits(
            TOOL.name,
            _verdict(ops.device, ops.host, _summed(session, hosts), _waits(session, hosts)),
            limits_of(session, hosts),
        ),
        tuple(Diagnostic(n.severity, n.message, n.remedy) for n in notices)
        + _ungrouped(rows, group)
        + _empty(ops.device, ops.host, framework_of(session, hosts)),
    )


def side(title: str, ops: OpMetrics, with_idle: bool) -> Side:
    """Operations of host or device, largest self time first, then by name."""
    idle = [ops.idle_ps] if with_idle and ops.idle_ps > 0 else []
    names, types = (*ops.name, *[IDLE for _ in idle]), (*ops.type, *[IDLE for _ in idle])
    self_ps = np.append(ops.self_ps, np.array(idle, np.int64))
    by_name = np.argsort(np.array(names, np.str_), kind="stable") if names else np.empty(0, np.intp)
    order = by_name[np.argsort(-self_ps[by_name], kind="stable")]
    none, unknown = np.zeros(len(idle), np.int64), np.full(len(idle), np.nan)
    work = {name: np.append(ops.amounts(name), unknown)[order] for name in ("flops", "n_bytes", "roof_flops")}
    details = (*(ops.details or ("",) * len(ops)), *["" for _ in idle])
    return Side(
        title,
        tuple(names[i] for i in order.tolist()),
        tuple(types[i] for i in order.tolist()),
        np.append(ops.n_occurrences, none)[order],
        np.append(ops.time_ps, np.array(idle, np.int64))[order],
        self_ps[order],
        is_eager=np.append(ops.is_eager, none.astype(np.bool_))[order],
        is_miscounted=np.append(ops.is_miscounted, none.astype(np.bool_))[order],
        details=tuple(details[i] for i in order.tolist()),
        tensor_core_fraction=np.append(ops.tensor_core_fraction, unknown)[order],
        **work,
    )


def _ratio(above: npt.NDArray[Any], below: npt.NDArray[Any]) -> Floats:
    """above / below, NaN (unknown) if either is 0."""
    result = np.full(len(above), np.nan)
    np.divide(above, below, out=result, where=(below > 0) & (above > 0))
    return result


def ops_table(device: Side, host: Side, machine: Hardware, group: str = BY_OP) -> Table:
    """One row per operation (and input shape or call stack): the device's first, then the host's; ranks run
    on. Shares of the other side are unknown.
    """
    sides = (device, host)
    n_device, n_host = len(device.name), len(host.name)
    count, time_ps, self_ps = (
        np.concatenate([getattr(s, key) for s in sides]).astype(np.int64)
        for key in ("n_occurrences", "time_ps", "self_ps")
    )
    flops, n_bytes, roof_flops = (
        np.concatenate([getattr(s, key) for s in sides]) for key in ("flops", "n_bytes", "roof_flops")
    )
    rate, bandwidth = _ratio(flops, time_ps / 1e12), _ratio(n_bytes, time_ps / 1e12)
    roof_rate = _ratio(roof_flops, time_ps / 1e12)
    near = [
        machine.nearest_limit(f, b)
        for f, b in zip(np.nan_to_num(roof_rate).tolist(), np.nan_to_num(bandwidth).tolist(), strict=True)
    ]
    is_miscounted = np.concatenate([s.is_miscounted for s in sides]).tolist()
    near = [(ABOVE_PEAK, 0.0) if above else limit for above, limit in zip(is_miscounted, near, strict=True)]
    limits = [limit_text(*limit, name) for limit, name in zip(near, (*device.name, *host.name), strict=True)]
    shares = [
        np.append(device.share, np.full(n_host, np.nan)),
        np.append(np.full(n_device, np.nan), host.share),
    ]
    running = [
        np.append(np.cumsum(device.share), np.full(n_host, np.nan)),
        np.append(np.full(n_device, np.nan), np.cumsum(host.share)),
    ]
    eager = np.concatenate([s.is_eager for s in sides])
    return OPS.fill(
        {
            "rank": np.arange(1, n_device + n_host + 1),
            "host_or_device": ["Device"] * n_device + ["Host"] * n_host,
            "type": [*device.type, *host.type],
            "operation": [*device.name, *host.name],
            "n_occurrences": count,
            "total_time_ps": time_ps,
            "avg_time_ps": _ratio(time_ps, count),
            "total_self_time_ps": self_ps,
            "avg_self_time_ps": _ratio(self_ps, count),
            "device_self_fraction": shares[0],
            "device_cumulative_fraction": running[0],
            "host_self_fraction": shares[1],
            "host_cumulative_fraction": running[1],
            "flop_rate_flops_per_s": rate,
            "compute_fraction": share_of_peak(roof_rate, machine.peak_flops_per_s),
            "memory_bandwidth_bytes_per_s": bandwidth,
            "operational_intensity_flops_per_byte": _ratio(flops, n_bytes),
            "bound_by": limits,
            "nearest_limit": [name for name, _ in near],
            "tensor_core_fraction": np.concatenate([s.tensor_core_fraction for s in sides]),
            "eager": ["Eager" if e else "Function" for e in eager.tolist()],
            **({_DETAILS[group]: known_texts([*device.details, *host.details])} if group in _DETAILS else {}),
        }
    )


def _shares(spec: TableSpec, shown_side: Side, key: tuple[str, ...]) -> Table:
    """A pie: self time by name or type, at most 10 slices and `Other`."""
    names = list(dict.fromkeys(key))
    row = {name: i for i, name in enumerate(names)}
    total = [0] * len(names)
    for name, time in zip(key, shown_side.self_ps.tolist(), strict=True):
        total[row[name]] += time
    order = sorted((i for i in range(len(names)) if total[i] > 0), key=lambda i: (-total[i], names[i]))
    slices = [(names[i] or "(no type)", total[i]) for i in order[:N_SLICES]]
    rest = sum(total[i] for i in order[N_SLICES:])
    if rest:
        slices.append(("Other", rest))
    total_ps = sum(total) or 1
    times = np.array([time for _, time in slices], np.int64)
    note = f"{len(order) - N_SLICES:,} more in Other" if rest else ""
    columns: Filled = {
        "name": [name for name, _ in slices],
        "self_time_ps": times,
        "fraction": times / total_ps,
    }
    return spec.fill(columns, note)


def _scalars(stats: OpStats, summed: str) -> dict[str, Scalar]:
    """`summed`: text that names the devices whose times are summed."""
    values: dict[str, Number] = {}
    for name, ops in (("device", stats.device), ("host", stats.host)):
        if not ops.span_ps:
            continue
        where = f", {summed}" if summed and name == "device" else ""
        values[f"{name}_ops_ps"] = Number(ops.busy_ps, f"self time of all{where}")
        copied = transfer_ps(stats.compiled) if name == "device" else 0
        if copied:
            note = "memory operations, part of the device's operations; the rest are kernels"
            values["device_copies_ps"] = Number(copied, note)
        between = (
            "summed over threads, each from its first operation to its last"
            if name == "host"
            else "between the first and the last operation"
        )
        # Asynchronous operations of a CPU overlap on a line: their self times say nothing of its idle time.
        is_idle_known = ops.busy_ps <= ops.span_ps
        values[f"{name}_idle_ps"] = Number(
            ops.idle_ps if is_idle_known else None, f"{between}{where}" if is_idle_known else _OVERLAP
        )
        values[f"n_{name}_ops"] = Number(len(ops))
    return fill_scalars(SCALARS, values)


def _summed(session: Session, hosts: tuple[str, ...]) -> str:
    facts = facts_of(session, hosts)
    return summed_over(facts)


def _waits(session: Session, hosts: tuple[str, ...]) -> str:
    """The sentence of all pages of compiled operations that the devices mostly wait; empty if they do not."""
    categories = sum_categories(session.map(host_categories, hosts))
    return category_sentence(categories) if categories.waits_most else ""


def _verdict(device: OpMetrics, host: OpMetrics, summed: str, waits: str) -> Verdict | None:
    """A sentence that says whether one operation or one type of them stands out. `waits`: a sentence that
    says for what the devices wait.
    """
    where, ops = ("device", device) if device.busy_ps else ("host", host)
    if not ops.busy_ps:
        return None
    top = int(ops.self_ps.argmax())
    share = float(ops.self_ps[top]) / ops.busy_ps
    time = f"{format_time(float(ops.self_ps[top]))}, {format_fraction(share)} of the time of all operations"
    time += f" ({summed})" if summed and where == "device" else ""
    text = f"`{ops.name[top]}` takes the most time on the {where}: {time}."
    if share < _STANDS_OUT:
        text = f"No single operation stands out on the {where}: `{ops.name[top]}` comes first with {time}."
    if waits and where == "device":
        text = f"{waits} {text}"
    next_steps = (NextStep("See it on the timeline", "trace_viewer"),)
    values = {"total_self_time_ps": float(ops.self_ps[top])}
    subject = Subject("ops", "operation", ops.name[top], values)
    return Verdict(
        "unknown",
        text,
        "compute" if where == "device" else "host",
        _largest_type(ops),
        next_steps,
        (subject,),
    )


def _largest_type(ops: OpMetrics) -> tuple[str, ...]:
    """The type that takes the most time, unless it has a single operation."""
    totals: dict[str, list[int]] = {}
    for name, time in zip(ops.type, ops.self_ps.tolist(), strict=True):
        totals.setdefault(name, []).append(time)
    name, times = max(totals.items(), key=lambda item: sum(item[1]))
    if len(times) < 2 or not name:
        return ()
    share = format_fraction(sum(times) / ops.busy_ps)
    if name == NO_OPERATION:
        kernels = f"{format_time(sum(times))} ({share} of the time) is spent in kernels without an operation"
        return (
            f"{kernels}: their launches were not traced, for example because the capture began after them.",
        )
    if name == "Unknown":
        return (
            f"{len(times):,} operations ({format_time(sum(times))}, {share}) have no type: the trace does "
            "not name the framework operations that they come from.",
        )
    time = format_time(sum(times))
    return (f"The most expensive type is `{name}`: {len(times):,} operations, {time}, {share}.",)


def _ungrouped(ops: OpStats, group: str) -> tuple[Diagnostic, ...]:
    """A notice if the trace lacks what the rows are to be grouped by."""
    if group == BY_OP or any(ops.device.details) or any(ops.host.details):
        return ()
    message, remedy = _NOT_RECORDED[group]
    return (Diagnostic("warning", message, remedy),)


def _empty(device: OpMetrics, host: OpMetrics, framework: str) -> tuple[Diagnostic, ...]:
    if len(device) or len(host):
        return ()
    message = "The trace names no framework operations on the host or on a device."
    tracer = (
        "; TensorFlow needs host_tracer_level 2 to name its operations"
        if framework in (TENSORFLOW, UNKNOWN)
        else ""
    )
    return (Diagnostic("info", message, f"Capture while the job computes{tracer}."),)


TOOL = Tool(
    name="framework_op_stats",
    title="Framework op stats",
    group="Time",
    summary="The framework's operations by time, on host and device",
    view=view,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    params=(
        Param("idle", "Include idle", "bool", False, "Count idle time in the shares"),
        Param("group", "Group by", "choice", BY_OP, "What each row of the table is", GROUPS),
    ),
)
