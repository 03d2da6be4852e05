"""Tables of the overview: steps, their breakdown, the largest operations, the hosts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.overview.facts import RunFacts
from tb_tpuprof.analysis.overview.hosts import HostSteps
from tb_tpuprof.analysis.steps.classes import CATEGORIES
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.tools.facts import common_steps_note, summed_over
from tb_tpuprof.tools.findings_tables import CAUSES, FINDINGS
from tb_tpuprof.tools.part_times import PART_TIMES
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.reasons import NO_FLOPS
from tb_tpuprof.tools.spec import TableSpec, Values, number, text

N_TOP_OPS = 10
COLORS = {
    "compilation": "compile",
    "input": "input",
    "output": "output",
    "kernel_launch": "launch",
    "host_compute": "host",
    "host_python": "python",
    "host_wait": "wait",
    "device_collectives": "collective",
    "device_to_device": "d2d",
    "device_compute": "compute",
    "other": "idle",
}
TITLES = {
    "compilation": "Compilation",
    "input": "Input",
    "output": "Output",
    "kernel_launch": "Kernel launch",
    "host_compute": "Host compute",
    "host_python": "Python",
    "host_wait": "Waiting",
    "device_collectives": "Device collectives",
    "device_to_device": "Device to device",
    "device_compute": "Device compute",
    "other": "Other",
}
_MEANINGS = {
    "compilation": "compiling on the host",
    "input": "waiting for input: the input pipeline's next element, copies from host to device, infeed",
    "output": "copying from device to host, including outfeed",
    "kernel_launch": "preparing and launching kernels on the host",
    "host_compute": "in operations and other traced work on the host",
    "host_python": "in Python and in the program's own annotations, where nothing traced ran",
    "host_wait": "waiting in Python, with no trace of what for",
    "device_collectives": "in collective communication between devices, such as all-reduce",
    "device_to_device": "copying between devices",
    "device_compute": "computing on the device",
    "other": "the rest, in which nothing traced ran: Python, other host work, or waiting",
}
# Names of these times on TPUs.
_TPU_TITLES = {
    "input": "Infeed",
    "output": "Outfeed",
    "device_compute": "Compute",
    "device_collectives": "Collectives",
    "other": "Idle",
}
_TPU_MEANINGS = {
    "other": "idle: the TensorCore ran no operation",
    "device_collectives": "in collective communication between devices, such as all-reduce, mean over the "
    "cores; waiting there for the core with the longest infeed counts as infeed",
}


_NOT_ON_TPUS = ("host_python", "host_wait")  # a TPU's steps do not record these


_CATEGORIES = tuple(
    number(f"{category}_ps", TITLES[category], "ps", f"Time spent {_MEANINGS[category]}", is_optional=True)
    for category in TITLES
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        text("step", "Step", "Name of the step, or its number"),
        number("step_time_ps", "Step time", "ps", "From the step's start to its end"),
        number("start_ps", "Start", "ps", "Since the trace's start"),
        *_CATEGORIES,
    ),
    "A row per step; the categories of a row add up to its step time. On TPUs, some have other titles: "
    "Infeed, Outfeed, Compute, Collectives, Idle",
    sentence="The duration of each step, split into categories that add up to it",
)
BREAKDOWN = TableSpec(
    "breakdown",
    "Step time by category",
    (
        text("category", "Category", "The part of the step"),
        text("color", "Color", "Name of the part's color"),
        *PART_TIMES,
    ),
    "Mean, standard deviation and share of each category",
)
TOP_OPS = TableSpec(
    "top_ops",
    f"Top {N_TOP_OPS} operations",
    (
        number("rank", "Rank", "count", "Position by self time"),
        text("operation", "Operation", "The framework's name of the operation"),
        text("type", "Type", "The operation's kind, such as MatMul, without the scope in its name"),
        text(
            "host_or_device",
            "Host/device",
            "Whether the operation ran on the host's processors or on a device",
        ),
        number(
            "self_time_ps",
            "Self time",
            "ps",
            "Without operations nested inside",
            formula="total time − time of operations nested inside",
        ),
        number(
            "self_fraction",
            "Share",
            "fraction",
            "Of the self time of all operations, without idle time",
            formula="self time ÷ Σ self time",
        ),
        number(
            "cumulative_fraction",
            "Cumulative",
            "fraction",
            "Share of this row and all rows above",
            formula="Σ share up to this row",
        ),
        number(
            "flop_rate_flops_per_s",
            "FLOP rate",
            "flops_per_s",
            "Floating-point operations per second of total time",
            formula="FLOPs ÷ total time",
            unknown=NO_FLOPS,
        ),
        number(
            "tensor_core_fraction",
            "On tensor cores",
            "fraction",
            "Share of the operation's time in kernels that run on tensor cores (AMD: matrix cores)",
            is_optional=True,
            formula="time of kernels on tensor cores ÷ self time",
            unknown="its kernels took no time",
        ),
    ),
    "The operations with the most self time: on the device if it ran any, else on the host",
)
HOSTS = TableSpec(
    "hosts",
    "Hosts",
    (
        text("host", "Host", "Name of the host"),
        number(
            "step_time_avg_ps",
            "Average step time",
            "ps",
            "Mean step time of the host, in the steps that all hosts have",
            formula="Σ step time ÷ number of steps",
        ),
        number(
            "of_slowest_fraction",
            "Of the slowest",
            "fraction",
            "The host's step time compared with that of the slowest host",
            formula="step time ÷ longest step time",
        ),
        number(
            "input_fraction",
            "Waiting for input",
            "fraction",
            "Share of the host's steps spent waiting for input",
            formula="Σ input ÷ Σ step time",
        ),
        number(
            "other_fraction",
            "Idle or other",
            "fraction",
            "Share of the host's steps in which its device is idle or nothing traced runs",
        ),
        number(
            "duty_cycle_fraction",
            "Duty cycle",
            "fraction",
            "Share of its profiled time in which a TPU chip of the host is on duty",
            formula="time on duty ÷ profiled time",
            unknown="only TPUs have a duty cycle",
        ),
    ),
    "A row per host, slowest first; only for several hosts",
    is_optional=True,
    sentence="Step time and waiting of each host, slowest first",
)
RECOMMENDATIONS = TableSpec(
    "recommendations",
    "Recommendations",
    (
        text("kind", "Kind", "`advice`, or `tool`: another page"),
        text("text", "What to do", "What to change, or which page to open"),
        text("tool", "Tool", "The page to open; empty for advice"),
    ),
    sentence="What to change, and which pages to open next",
)
ENVIRONMENT = TableSpec(
    "environment",
    "Run environment",
    (text("name", "Name", "What the value is"), text("value", "Value", "The value, as the trace states it")),
    "The job's hardware and framework",
)
TABLES = (FINDINGS, CAUSES, STEPS, BREAKDOWN, TOP_OPS, RECOMMENDATIONS, ENVIRONMENT, HOSTS)


def titles(kind: str) -> dict[str, str]:
    """Titles of the categories that steps have on hardware of a kind (CPU, GPU, TPU)."""
    named = {**TITLES, **(_TPU_TITLES if kind == "TPU" else {})}
    return {
        category: title for category, title in named.items() if kind != "TPU" or category not in _NOT_ON_TPUS
    }


def steps_table(steps: Steps, kind: str) -> Table:
    """A row per step, a column per category; the categories of a row add up to its step time."""
    meanings = {**_MEANINGS, **(_TPU_MEANINGS if kind == "TPU" else {})}
    shown = titles(kind)
    columns: dict[str, Values] = {
        "step": steps.name,
        "step_time_ps": steps.duration_ps,
        "start_ps": steps.start_ps,
        **{f"{category}_ps": steps.category_ps(category) for category in shown},
    }
    return STEPS.fill(
        columns,
        titles={f"{category}_ps": title for category, title in shown.items()},
        descriptions={f"{category}_ps": f"Time spent {meanings[category]}" for category in shown},
    )


def breakdown_table(steps: Steps, kind: str, n_hosts: int = 1) -> Table:
    """Mean, standard deviation and share of each category. The share is the ratio of the sums
    over all steps, of several hosts over those that all have.
    """
    shown = [category for category in CATEGORIES if category in titles(kind)]
    times = [steps.category_ps(category) for category in shown]
    return BREAKDOWN.fill(
        {
            "category": [titles(kind)[category] for category in shown],
            "color": [COLORS[category] for category in shown],
            "avg_ps": np.array([mean(time) for time in times]),
            "sd_ps": np.array([deviation(time) for time in times]),
            "fraction": np.array([steps.fraction(category) for category in shown]),
        },
        common_steps_note(steps, n_hosts),
    )


def top_ops_table(ops: OpStats, facts: RunFacts) -> Table:
    """The operations with the most self time: on the device if it ran any, else on the host."""
    summed = summed_over(facts) if len(ops.device) else ""
    side, metrics = ("Device", ops.device) if len(ops.device) else ("Host", ops.host)
    order = order_by_self_time(metrics)[:N_TOP_OPS]
    busy = metrics.busy_ps or 1
    self_ps = metrics.self_ps[order]
    share = self_ps / busy
    time_s = metrics.time_ps[order] / 1e12
    flops = metrics.flops[order] if len(metrics.flops) else np.zeros(len(order))
    rate = np.divide(flops, time_s, out=np.full(len(order), np.nan), where=(time_s > 0) & (flops > 0))
    return TOP_OPS.fill(
        {
            "rank": np.arange(1, len(order) + 1),
            "operation": [metrics.name[i] for i in order.tolist()],
            "type": [metrics.type[i] for i in order.tolist()],
            "host_or_device": [side] * len(order),
            "self_time_ps": self_ps,
            "self_fraction": share,
            "cumulative_fraction": np.cumsum(share),
            "flop_rate_flops_per_s": rate,
            **_on_tensor_cores(metrics, order),
        },
        f"by self time, {summed}" if summed else "",
        title=f"Top {N_TOP_OPS} operations on the {side.lower()}",
        descriptions={"self_time_ps": f"Without operations nested inside, {summed}"} if summed else None,
    )


def _on_tensor_cores(metrics: OpMetrics, order: npt.NDArray[np.intp]) -> dict[str, Values]:
    """The column of the share on tensor cores, of operations on GPUs only."""
    fraction = metrics.tensor_core_fraction[order]
    return {} if np.isnan(fraction).all() else {"tensor_core_fraction": fraction}


def order_by_self_time(metrics: OpMetrics) -> npt.NDArray[np.intp]:
    """Rows by self time, largest first, then by name."""
    rank = (
        np.argsort(np.array(metrics.name, np.str_), kind="stable") if len(metrics) else np.empty(0, np.intp)
    )
    return rank[np.argsort(-metrics.self_ps[rank], kind="stable")]


def mean(values: npt.NDArray[np.int64]) -> float:
    """Mean; NaN if empty."""
    return float(values.mean()) if len(values) else np.nan


def deviation(values: npt.NDArray[np.int64]) -> float:
    """Standard deviation of a sample; 0 for a single step."""
    if len(values) > 1:
        return float(values.std(ddof=1))
    return 0.0 if len(values) else np.nan


def hosts_table(hosts: Sequence[HostSteps], is_apart: bool = False) -> Table:
    """A row per host, slowest first: its step time, and its share of waiting and idle time."""
    longest = max(host.step_ps for host in hosts) or 1.0
    duty = [np.nan if host.duty_cycle is None else host.duty_cycle for host in hosts]
    return HOSTS.fill(
        {
            "host": [host.host for host in hosts],
            "step_time_avg_ps": np.array([host.step_ps for host in hosts]),
            "of_slowest_fraction": np.array([host.step_ps / longest for host in hosts]),
            "input_fraction": np.array([host.input_fraction for host in hosts]),
            "other_fraction": np.array([host.idle_fraction for host in hosts]),
            "duty_cycle_fraction": np.array(duty),
        },
        "slowest first, each by its own steps" if is_apart else "slowest first",
        descriptions={"step_time_avg_ps": "In its own steps"} if is_apart else None,
    )
