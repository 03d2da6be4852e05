"""overview_page: how the job spent its time, what holds it up, and where to look next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.combine import CommonSteps, common_steps, sum_hardware
from tb_tpuprof.analysis.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.hardware import Hardware
from tb_tpuprof.analysis.hosts import HostSteps, are_alike, host_steps, slowest_host
from tb_tpuprof.analysis.op_stats import OpStats, sum_op_stats
from tb_tpuprof.analysis.pytorch_steps import loader_sentence, loader_wait
from tb_tpuprof.analysis.recommend import Finding, advice, finding, on_worst_host, precision
from tb_tpuprof.analysis.steps import Steps
from tb_tpuprof.analysis.summary import Summary, summary
from tb_tpuprof.analysis.utilization import Utilization, device_idle, idle_fraction, sum_utilization
from tb_tpuprof.session import Session
from tb_tpuprof.settings import PEAKS_VARIABLE
from tb_tpuprof.tools.base import Diagnostic, NextStep, Params, Payload, Scalar, Table, Tool, Verdict
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.columns import pairs_table, text_column
from tb_tpuprof.tools.overview_tables import COLORS, breakdown_table, deviation, hosts_table, mean, steps_table, top_ops_table
from tb_tpuprof.units import format_bytes, format_time, format_value

INPUT_TOOL = "input_pipeline_analyzer"
_MAY_BE_INPUT = ("input", "other")  # idle time may be waiting for data that nothing traced


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """The overview of one, several or all hosts together."""
    parts = session.map(summary, hosts, loader_wait)
    clocks = clocks_of(session, hosts)
    parts = [replace(part, start_ns=part.start_ns + add) for part, add in zip(parts, clocks.correction_ns, strict=True)]
    common = common_steps([part.steps for part in parts], [part.start_ns for part in parts])
    run = _Run(
        parts, common.steps, sum_op_stats([part.ops for part in parts]), sum_hardware([part.hardware for part in parts]),
        sum_utilization([part.use for part in parts]), host_steps(parts, common),
    )  # fmt: skip
    found = finding(run.steps, run.ops, run.hardware.kind)
    if len(parts) > 1:
        worst = max(parts, key=lambda part: part.steps.fraction("input"))
        found = on_worst_host(found, worst.host, worst.steps)
    loader = loader_sentence(session.map(loader_wait, hosts), hosts)
    if loader and found.category in ("input", "other"):
        found = replace(found, details=(loader, *found.details))
    tables = {
        "steps": steps_table(run.steps, run.hardware.kind),
        "breakdown": breakdown_table(run.steps, run.hardware.kind),
        "top_ops": top_ops_table(run.ops),
        "environment": _environment(run),
        "recommendations": _recommendations(found, len(run.steps), run.hardware.kind),
    }
    if len(run.hosts) > 1:
        tables["hosts"] = hosts_table(run.hosts)
    return Payload(
        "overview_page",
        session.run,
        hosts,
        tables,
        _scalars(run),
        _verdict(found, run, hosts),
        (*clocks.diagnostics, *_diagnostics(common, parts)),
    )


@dataclass(frozen=True)
class _Run:
    """What the page tells of: hosts by themselves, and put together."""

    parts: list[Summary]
    steps: Steps
    ops: OpStats
    hardware: Hardware
    use: Utilization
    hosts: tuple[HostSteps, ...]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _share(value: float | None, title: str, note: str = "") -> Scalar:
    return Scalar(value, "fraction", title, note)


def _scalars(run: _Run) -> dict[str, Scalar]:
    """In the order in which they are shown: the step time, how well accelerators are used, what steps go into."""
    steps, kind = run.steps, run.hardware.kind
    time, n = steps.duration_ps, len(steps)
    note = f"mean over {len(run.hosts)} hosts" if len(run.hosts) > 1 else ""
    result = {
        "step_time_avg_ps": Scalar(_known(mean(time)), "ps", "Average step time", note),
        "step_time_sd_ps": Scalar(_known(deviation(time)), "ps", "Standard deviation"),
        "step_time_min_ps": Scalar(int(time.min()) if n else None, "ps", "Fastest step"),
        "step_time_max_ps": Scalar(int(time.max()) if n else None, "ps", "Slowest step"),
    }
    if kind == "TPU":
        result |= _use_scalars(run)
    result["n_steps"] = Scalar(n, "count", "Steps", f"{steps.n_trimmed} more left out" if steps.n_trimmed else "")
    result["input_fraction"] = _share(steps.fraction("input") if n else None, "Waiting for input")
    if kind == "CPU":
        result["host_compute_fraction"] = _share(steps.fraction("host_compute") if n else None, "Host compute")
        for category, title in (("host_python", "Python"), ("host_wait", "Waiting")):
            if steps.fraction(category):
                result[f"{category}_fraction"] = _share(steps.fraction(category), title, "nothing traced ran")
    else:
        result.setdefault("device_idle_fraction", _idle(run))
        result["device_compute_fraction"] = _share(steps.fraction("device_compute") if n else None, "Device compute")
    if kind != "TPU":
        result["other_fraction"] = _share(steps.fraction("other") if n else None, "Other", "nothing traced ran" if n else "")
    if kind == "GPU":
        result |= {name: scalar for name, scalar in _use_scalars(run).items() if scalar.value is not None and name not in result}
    shares = precision(steps) if kind == "GPU" else None
    if shares:
        result["device_compute_16bit_fraction"] = _share(shares[0], "16-bit compute", "of the device compute")
        result["device_compute_32bit_fraction"] = _share(shares[1], "32-bit compute", "of the device compute")
    for side, metrics in (("host", run.ops.host), ("device", run.ops.device)):
        if metrics.busy_ps:
            eager = int(metrics.self_ps[metrics.is_eager].sum()) / metrics.busy_ps
            result[f"{side}_eager_fraction"] = _share(eager, f"Eager on the {side}", "of the operations' time")
    return result


def _use_scalars(run: _Run) -> dict[str, Scalar]:
    """How well accelerators and host are used. What is not known says why."""
    use, machine = run.use, run.hardware
    seconds = use.device_ps / 1e12
    per = "a core" if machine.kind == "TPU" else "a device"
    result = {"device_idle_fraction": _idle(run)}
    result["duty_cycle_fraction"] = _share(
        use.duty_cycle, "Duty cycle", "of the chips' profiled time" if use.duty_cycle is not None else "not traced"
    )
    flops = ("flops_per_s", use.flops, machine.peak_flops_per_s, use.flops_fraction)
    moved = ("bytes_per_s", use.hbm_bytes, machine.peak_hbm_bytes_per_s, use.bandwidth_fraction)
    rates = (("flops_fraction", "FLOPS utilisation", flops), ("hbm_bandwidth_fraction", "Memory bandwidth utilisation", moved))
    for name, title, (unit, amount, peak, share) in rates:
        if not amount:
            note = "the trace does not tell the work of operations"
        elif not peak:
            note = f"the peak of {machine.device} is not known: name it in a file ({PEAKS_VARIABLE})"
        else:
            note = f"{format_value(amount / seconds, unit)} of {format_value(peak, unit)} {per}"
        result[name] = _share(share, title, note)
    result["host_idle_fraction"] = _share(idle_fraction(run.ops.host), "Host idle", "of its threads' profiled time")
    if use.roofline_fraction is not None:
        note = f"of what these operations could reach, bound by {use.bound_by}"
        result["roofline_fraction"] = _share(use.roofline_fraction, "Of the roofline's optimum", note)
    return result


def _idle(run: _Run) -> Scalar:
    """Share of the time in which the accelerators idle, and of which time."""
    kind = run.hardware.kind
    note = "of the cores' profiled time" if kind == "TPU" else "within steps" if len(run.steps) else "from the first operation to the last"
    return _share(device_idle(kind, run.steps, run.ops.compiled), f"{kind} idle", note)


def _environment(run: _Run) -> Table:
    parts, hardware = run.parts, run.hardware
    per_device = "core" if hardware.kind == "TPU" else "device"
    n_devices = f"{hardware.n_devices} ({hardware.n_chips} chips)" if hardware.n_chips else str(hardware.n_devices)
    pairs = [
        ("Hosts", str(len(parts)) if len(parts) > 1 else parts[0].host),
        ("Hardware", hardware.device if hardware.n_devices else "CPU (no accelerator in the trace)"),
        ("TPU cores" if hardware.kind == "TPU" else "Devices", n_devices),
        ("Profiled time", format_time(max(part.duration_ps for part in parts))),
        ("Events", f"{sum(part.n_events for part in parts):,}"),
    ]
    if hardware.n_replicas:
        each = f" of {hardware.n_partitions} {per_device}s each" if hardware.n_partitions > 1 else ""
        pairs.append(("Replicas", f"{hardware.n_replicas}{each}"))
    if hardware.peak_flops_per_s:
        pairs.append((f"Peak compute per {per_device}", format_value(hardware.peak_flops_per_s, "flops_per_s")))
    if hardware.peak_hbm_bytes_per_s:
        pairs.append((f"Peak memory bandwidth per {per_device}", format_value(hardware.peak_hbm_bytes_per_s, "bytes_per_s")))
    if hardware.peak_source:
        pairs.append(("Peaks not in the trace, from", hardware.peak_source))
    if hardware.memory_bytes:
        pairs.append((f"Memory per {per_device}", format_bytes(hardware.memory_bytes)))
    versions = dict(pair for part in parts for pair in part.versions)
    return pairs_table("Run environment", pairs + [(f"{name} version", value) for name, value in versions.items()])


def _recommendations(found: Finding, n_steps: int, kind: str) -> Table:
    rows = [("advice", text, "") for text in advice(found, n_steps)]
    if found.category in _MAY_BE_INPUT:
        rows.append(("tool", "See how long each step waits for input, and what the host does meanwhile.", INPUT_TOOL))
    where = "host" if kind == "CPU" else "device"
    rows.append(("tool", f"See which operations take the time on the {where}.", _ops_tool(kind)))
    rows.append(("tool", "See what happens when, on every thread and device.", "trace_viewer"))
    kinds, texts, tools = zip(*rows, strict=True)
    columns = (text_column("kind", "Kind", kinds), text_column("text", "What to do", texts), text_column("tool", "Tool", tools))
    return Table("Recommendations", columns)


def _verdict(found: Finding, run: _Run, hosts: tuple[str, ...]) -> Verdict:
    """The finding, and the way on: the input pipeline where it waits, hosts that differ, the slowest step, the operations."""
    steps_to: list[NextStep] = []
    if found.category == "input":
        steps_to.append(NextStep("See what the input pipeline spends its time on", INPUT_TOOL))
    if not are_alike(run.hosts):
        steps_to.append(NextStep("See what the slowest host does otherwise", "pod_viewer"))
    steps_to.append(_slowest_step(run, hosts))
    steps_to.append(NextStep("See which operations take the time", _ops_tool(run.hardware.kind)))
    slowest_one = slowest_host(run.hosts)
    details = (*found.details, slowest_one) if slowest_one else found.details
    return Verdict(found.level, found.text, COLORS.get(found.category, ""), details, tuple(steps_to))


def _ops_tool(kind: str) -> str:
    """Where operations are told apart best: a TPU runs compiled programs alone, of whose operations the framework's names say little."""
    return "op_profile" if kind == "TPU" else "framework_op_stats"


def _slowest_step(run: _Run, hosts: tuple[str, ...]) -> NextStep:
    """To the longest step of all hosts, on its host, by that host's own times; to the timeline where there are no steps."""
    with_steps = [(host, part.steps) for host, part in zip(hosts, run.parts, strict=True) if len(part.steps)]
    if not with_steps:
        return NextStep("Look at the timeline in the trace viewer", "trace_viewer")
    host, steps = max(with_steps, key=lambda pair: int(pair[1].duration_ps.max()))
    slowest = int(steps.duration_ps.argmax())
    start, end = int(steps.start_ps[slowest]), int(steps.start_ps[slowest] + steps.duration_ps[slowest])
    name = steps.name[slowest] if len(hosts) == 1 else f"{steps.name[slowest]} of {host}"
    window = {"hosts": host, "start_ps": str(start), "end_ps": str(end)}
    return NextStep(f"Look at the slowest step ({name}) in the trace viewer", "trace_viewer", window)


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
