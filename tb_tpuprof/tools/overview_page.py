"""overview_page: how the job spent its time, what holds it up, and where to look next."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.combine import CommonSteps, common_steps, sum_hardware
from tb_tpuprof.analysis.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.hardware import Hardware
from tb_tpuprof.analysis.op_metrics import OpMetrics
from tb_tpuprof.analysis.op_stats import OpStats, sum_op_stats
from tb_tpuprof.analysis.recommend import Finding, advice, finding, precision
from tb_tpuprof.analysis.step_classes import CATEGORIES
from tb_tpuprof.analysis.steps import Steps
from tb_tpuprof.analysis.summary import Summary, summary
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Column, Diagnostic, NextStep, Params, Payload, Scalar, Table, Tool, Unit, Verdict
from tb_tpuprof.tools.columns import pairs_table, text_column
from tb_tpuprof.units import format_bytes, format_time, format_value

N_TOP_OPS = 10
_COLORS = {
    "compilation": "compile", "input": "input", "output": "output", "kernel_launch": "launch", "host_compute": "host",
    "device_collectives": "collective", "device_to_device": "d2d", "device_compute": "compute", "other": "idle",
}  # fmt: skip
TITLES = {
    "compilation": "Compilation", "input": "Input", "output": "Output", "kernel_launch": "Kernel launch", "host_compute": "Host compute",
    "device_collectives": "Device collectives", "device_to_device": "Device to device", "device_compute": "Device compute",
    "other": "Other",
}  # fmt: skip
_MEANINGS = {
    "compilation": "compiling on the host",
    "input": "waiting for input: the input pipeline's next element, copies from host to device, infeed",
    "output": "copies from device to host, outfeed",
    "kernel_launch": "preparing and launching kernels on the host",
    "host_compute": "operations and other traced work on the host",
    "device_collectives": "collective communication between devices, such as all-reduce",
    "device_to_device": "copies between devices",
    "device_compute": "computing on the device",
    "other": "the rest, in which nothing traced ran: Python, other host work, or waiting",
}


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """The overview of one, several or all hosts together."""
    parts = session.map(summary, hosts)
    common = common_steps([part.steps for part in parts], [part.start_ns for part in parts])
    ops = sum_op_stats([part.ops for part in parts])
    hardware = sum_hardware([part.hardware for part in parts])
    found = finding(common.steps, ops, hardware.kind)
    return Payload(
        "overview_page",
        session.run,
        hosts,
        {
            "steps": steps_table(common.steps),
            "breakdown": breakdown_table(common.steps),
            "top_ops": top_ops_table(ops),
            "environment": _environment(parts, hardware),
            "recommendations": _recommendations(found, len(common.steps), hardware.kind),
        },
        _scalars(common.steps, ops, hardware.kind),
        _verdict(found, common.steps, len(hosts)),
        _diagnostics(common, parts),
    )


def _number(name: str, title: str, values: npt.NDArray[Any], unit: Unit, description: str = "") -> Column:
    return Column(name, title, values, unit, description=description)


def steps_table(steps: Steps) -> Table:
    """A row per step, a column per category; the categories of a row sum up to its step time."""
    columns = [
        text_column("step", "Step", steps.name),
        _number("step_time_ps", "Step time", steps.duration_ps, "ps", "From the step's start to its end"),
        _number("start_ps", "Start", steps.start_ps, "ps", "Since the trace's start"),
    ]
    for category, title in TITLES.items():
        columns.append(_number(f"{category}_ps", title, steps.category_ps(category), "ps", f"Time spent {_MEANINGS[category]}"))
    return Table("Steps", tuple(columns))


def breakdown_table(steps: Steps) -> Table:
    """Mean, standard deviation and share of each category. The share is the ratio of the sums over all steps."""
    times = [steps.category_ps(category) for category in CATEGORIES]
    return Table(
        "Step time by category",
        (
            text_column("category", "Category", [TITLES[category] for category in CATEGORIES]),
            text_column("color", "Colour", [_COLORS[category] for category in CATEGORIES]),
            _number("avg_ps", "Average", np.array([_mean(time) for time in times]), "ps", "Mean time per step"),
            _number("sd_ps", "Standard deviation", np.array([_deviation(time) for time in times]), "ps", "Of the sample (n - 1)"),
            _number("fraction", "Share", np.array([steps.fraction(category) for category in CATEGORIES]), "fraction", "Of all steps"),
        ),
    )


def top_ops_table(ops: OpStats) -> Table:
    """The operations with most self time: on the device if it ran any, else on the host."""
    side, metrics = ("Device", ops.device) if len(ops.device) else ("Host", ops.host)
    order = order_by_self_time(metrics)[:N_TOP_OPS]
    busy = metrics.busy_ps or 1
    self_ps = metrics.self_ps[order]
    share = self_ps / busy
    time_s = metrics.time_ps[order] / 1e12
    flops = metrics.flops[order] if len(metrics.flops) else np.zeros(len(order))
    rate = np.divide(flops, time_s, out=np.full(len(order), np.nan), where=(time_s > 0) & (flops > 0))
    return Table(
        f"Top {N_TOP_OPS} operations on the {side.lower()}",
        (
            _number("rank", "Rank", np.arange(1, len(order) + 1), "count"),
            text_column("operation", "Operation", [metrics.name[i] for i in order.tolist()]),
            text_column("type", "Type", [metrics.type[i] for i in order.tolist()]),
            text_column("host_or_device", "Host/device", [side] * len(order)),
            _number("self_time_ps", "Self time", self_ps, "ps", "Without operations nested inside"),
            _number("self_fraction", "Share", share, "fraction", "Of the self time of all operations, idle left out"),
            _number("cumulative_fraction", "Cumulative", np.cumsum(share), "fraction", "Share of this and all operations above"),
            _number("flop_rate_flops_per_s", "FLOP rate", rate, "flops_per_s", "Floating-point operations per second of total time"),
        ),
    )


def order_by_self_time(metrics: OpMetrics) -> npt.NDArray[np.intp]:
    """Rows by self time, largest first, then by name."""
    rank = np.argsort(np.array(metrics.name, np.str_), kind="stable") if len(metrics) else np.empty(0, np.intp)
    return rank[np.argsort(-metrics.self_ps[rank], kind="stable")]


def _mean(values: npt.NDArray[np.int64]) -> float:
    return float(values.mean()) if len(values) else np.nan


def _deviation(values: npt.NDArray[np.int64]) -> float:
    """Standard deviation of a sample; of a single step it is 0."""
    if len(values) > 1:
        return float(values.std(ddof=1))
    return 0.0 if len(values) else np.nan


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _scalars(steps: Steps, ops: OpStats, kind: str) -> dict[str, Scalar]:
    time, n = steps.duration_ps, len(steps)
    result = {
        "step_time_avg_ps": Scalar(_known(_mean(time)), "ps", "Average step time"),
        "step_time_sd_ps": Scalar(_known(_deviation(time)), "ps", "Standard deviation"),
        "step_time_min_ps": Scalar(int(time.min()) if n else None, "ps", "Fastest step"),
        "step_time_max_ps": Scalar(int(time.max()) if n else None, "ps", "Slowest step"),
        "n_steps": Scalar(n, "count", "Steps", f"{steps.n_trimmed} more left out" if steps.n_trimmed else ""),
        "input_fraction": Scalar(steps.fraction("input") if n else None, "fraction", "Waiting for input"),
    }
    if kind != "CPU":
        note = "within steps" if n else "of the profiled time"
        result["device_idle_fraction"] = Scalar(_device_idle(steps, ops), "fraction", "Device idle", note)
        result["device_compute_fraction"] = Scalar(steps.fraction("device_compute") if n else None, "fraction", "Device compute")
    else:
        result["host_compute_fraction"] = Scalar(steps.fraction("host_compute") if n else None, "fraction", "Host compute")
    result["other_fraction"] = Scalar(steps.fraction("other") if n else None, "fraction", "Other", "nothing traced ran")
    shares = precision(steps) if kind == "GPU" else None
    if shares:
        result["device_compute_16bit_fraction"] = Scalar(shares[0], "fraction", "16-bit compute", "of the device compute")
        result["device_compute_32bit_fraction"] = Scalar(shares[1], "fraction", "32-bit compute", "of the device compute")
    for side, metrics in (("host", ops.host), ("device", ops.device)):
        if metrics.busy_ps:
            eager = int(metrics.self_ps[metrics.is_eager].sum()) / metrics.busy_ps
            result[f"{side}_eager_fraction"] = Scalar(eager, "fraction", f"Eager on the {side}", "of the operations' time")
    return result


def _device_idle(steps: Steps, ops: OpStats) -> float | None:
    """Share of the steps in which no device class is charged; without steps what the operations leave of their span."""
    if len(steps):
        busy = sum(steps.fraction(c) for c in ("device_compute", "device_collectives", "device_to_device", "output", "input"))
        return min(1.0, max(0.0, 1.0 - busy))
    return ops.compiled.idle_ps / ops.compiled.span_ps if ops.compiled.span_ps else None


def _environment(parts: list[Summary], hardware: Hardware) -> Table:
    per_device = "core" if hardware.kind == "TPU" else "device"
    pairs = [
        ("Hosts", str(len(parts)) if len(parts) > 1 else parts[0].host),
        ("Hardware", hardware.device if hardware.n_devices else "CPU (no accelerator in the trace)"),
        ("TPU cores" if hardware.kind == "TPU" else "Devices", str(hardware.n_devices)),
        ("Profiled time", format_time(max(part.duration_ps for part in parts))),
        ("Events", f"{sum(part.n_events for part in parts):,}"),
    ]
    if hardware.peak_flops_per_s:
        pairs.append((f"Peak compute per {per_device}", format_value(hardware.peak_flops_per_s, "flops_per_s")))
    if hardware.peak_hbm_bytes_per_s:
        pairs.append((f"Peak memory bandwidth per {per_device}", format_value(hardware.peak_hbm_bytes_per_s, "bytes_per_s")))
    if hardware.memory_bytes:
        pairs.append((f"Memory per {per_device}", format_bytes(hardware.memory_bytes)))
    versions = dict(pair for part in parts for pair in part.versions)
    return pairs_table("Run environment", pairs + [(f"{name} version", value) for name, value in versions.items()])


def _recommendations(found: Finding, n_steps: int, kind: str) -> Table:
    rows = [("advice", text, "") for text in advice(found, n_steps)]
    where = "host" if kind == "CPU" else "device"
    rows.append(("tool", f"See which operations take the time on the {where}.", "framework_op_stats"))
    rows.append(("tool", "See what happens when, on every thread and device.", "trace_viewer"))
    kinds, texts, tools = zip(*rows, strict=True)
    columns = (text_column("kind", "Kind", kinds), text_column("text", "What to do", texts), text_column("tool", "Tool", tools))
    return Table("Recommendations", columns)


def _verdict(found: Finding, steps: Steps, n_hosts: int) -> Verdict:
    """The finding, and the way on: the slowest step in the trace viewer, or the operations."""
    steps_to: list[NextStep] = []
    if len(steps) and n_hosts == 1:
        slowest = int(steps.duration_ps.argmax())
        start, end = int(steps.start_ps[slowest]), int(steps.start_ps[slowest] + steps.duration_ps[slowest])
        window = {"start_ps": str(start), "end_ps": str(end)}
        steps_to.append(NextStep(f"Look at the slowest step ({steps.name[slowest]}) in the trace viewer", "trace_viewer", window))
    else:
        steps_to.append(NextStep("Look at the timeline in the trace viewer", "trace_viewer"))
    steps_to.append(NextStep("See which operations take the time", "framework_op_stats"))
    return Verdict(found.level, found.text, _COLORS.get(found.category, ""), found.details, tuple(steps_to))


def _diagnostics(common: CommonSteps, parts: list[Summary]) -> tuple[Diagnostic, ...]:
    notices: list[Notice] = [notice for part in parts for notice in part.notices]
    notices += step_notices(common, len(parts), any(part.has_loop_ops for part in parts))
    order = ("error", "warning", "info")
    return tuple(Diagnostic(n.severity, n.message, n.remedy) for n in sorted(notices, key=lambda notice: order.index(notice.severity)))


TOOL = Tool(
    name="overview_page",
    title="Overview",
    group="Start here",
    summary="How the job spent its time, what holds it up and where to look next",
    view=view,
)
