"""The facts of a run as scalars: one name, title, unit and base on every page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_tpuprof.analysis.events.frameworks import software, sum_software
from tb_tpuprof.analysis.overview.facts import RunFacts, host_facts, run_facts
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.payload import Scalar
from tb_tpuprof.tools.spec import Number, ScalarSpec, fill_scalars
from tb_tpuprof.units import format_time

# Numbers that mean the same on every page; `tests/consistency` compares the pages.
FACTS = (
    ScalarSpec("n_hosts", "Hosts", "count"),
    ScalarSpec("n_devices", "Devices", "count", "TPU cores and GPUs that ran something"),
    ScalarSpec("capture_ps", "Capture", "ps", "Of the longest host"),
    ScalarSpec(
        "device_time_ps",
        "Device time",
        "ps",
        "The devices' spans from the first operation to the last, summed",
    ),
    ScalarSpec("device_busy_ps", "Device busy", "ps", "While an operation runs, summed over the devices"),
    ScalarSpec("step_time_avg_ps", "Average step time", "ps", "Mean over hosts and the steps they share"),
    ScalarSpec("step_time_sd_ps", "Standard deviation", "ps", "Of the steps' times (n - 1)"),
    ScalarSpec("step_time_min_ps", "Fastest step", "ps"),
    ScalarSpec("step_time_max_ps", "Slowest step", "ps"),
    ScalarSpec("n_steps", "Steps", "count", "Steps that all hosts have"),
    ScalarSpec("input_fraction", "Waiting for input", "fraction", "Of the steps' time"),
    ScalarSpec(
        "device_idle_fraction", "Device idle", "fraction", "Of the devices' time; the note names the base"
    ),
)


def fact_specs(*names: str, is_optional: bool = False) -> tuple[ScalarSpec, ...]:
    """The declarations of some of FACTS."""
    by_name = {spec.name: spec for spec in FACTS}
    return tuple(replace(by_name[name], is_optional=is_optional) for name in names)


def facts_of(session: Session, hosts: Sequence[str], clocks: Clocks | None = None) -> RunFacts:
    """The facts of the chosen hosts as one run. Raises HostsUnreadable."""
    parts = session.map(host_facts, hosts)
    return run_facts(parts, (clocks or clocks_of(session, hosts)).correction_ns)


def fact_scalars(facts: RunFacts, *names: str) -> dict[str, Scalar]:
    """Some of FACTS, in the requested order."""
    numbers = {**_sizes(facts), **_step_times(facts)}
    return fill_scalars(FACTS, {name: numbers[name] for name in names})


def framework_of(session: Session, hosts: Sequence[str]) -> str:
    """The framework of the job (`analysis/frameworks`), `unknown` if the trace does not show it. Raises
    HostsUnreadable.
    """
    return sum_software(session.map(software, hosts)).framework


def device_word(facts: RunFacts, n_devices: int) -> str:
    """The word for the run's devices: cores of TPUs, GPUs."""
    word = "core" if facts.kind == "TPU" else "GPU" if facts.kind == "GPU" else "device"
    return word if n_devices == 1 else f"{word}s"


def devices_text(facts: RunFacts) -> str:
    """Number of devices that ran something; number in the trace, if larger; number of chips."""
    n_chips = facts.hardware.n_chips
    more = [f"{facts.n_present:,} present"] if facts.n_present > facts.n_active else []
    more += [f"{n_chips:,} chip{'s' * (n_chips != 1)}"] if n_chips else []
    return f"{facts.n_active:,} ({', '.join(more)})" if more else f"{facts.n_active:,}"


def summed_over(facts: RunFacts) -> str:
    """The devices that times are summed over; empty for one or none."""
    n_devices = facts.n_active
    return f"summed over {n_devices:,} {device_word(facts, n_devices)}" if n_devices > 1 else ""


def summed_text(facts: RunFacts, total_ps: int) -> str:
    """A sum over devices as time per device."""
    n_devices = facts.n_active
    return f"{summed_over(facts)}; {format_time(total_ps / n_devices)} each" if n_devices > 1 else ""


def idle_text(facts: RunFacts) -> str:
    """The base of the headline's idle share."""
    n_devices = facts.n_active
    if facts.common.is_disjoint:
        return "the captures do not overlap"
    if facts.kind == "GPU" and len(facts.steps):
        return "of the steps" if n_devices < 2 else f"of the steps: none of the {n_devices:,} GPUs works"
    each = format_time(facts.device_time_ps / n_devices) if n_devices else ""
    span = f"{each} from the first operation to the last"
    return (
        ""
        if not n_devices
        else f"of {span}"
        if n_devices < 2
        else f"mean of {n_devices:,} {device_word(facts, n_devices)}, of {span}"
    )


def step_time_base(common: CommonSteps) -> str:
    """The hosts that the step time is a mean over, or why there is none; empty for one host's steps."""
    if not len(common.steps):
        return "the captures do not overlap" if common.is_disjoint else "no steps were found"
    n_hosts = sum(rows.stop > rows.start for rows in common.rows)
    return f"mean over {n_hosts:,} hosts" if n_hosts > 1 else ""


def _sizes(facts: RunFacts) -> dict[str, Number]:
    n_devices, busy_ps, total_ps = facts.n_active, facts.device_busy_ps, facts.device_time_ps
    present = f"{facts.n_present:,} present" if facts.n_present > n_devices else ""
    return {
        "n_hosts": Number(len(facts.hosts)),
        "n_devices": Number(n_devices, present, "TPU cores" if facts.kind == "TPU" else "Devices"),
        "capture_ps": Number(facts.capture_ps, "of the longest host" if len(facts.hosts) > 1 else ""),
        "device_time_ps": Number(total_ps if n_devices else None, summed_text(facts, total_ps)),
        "device_busy_ps": Number(busy_ps if n_devices else None, summed_text(facts, busy_ps)),
        "device_idle_fraction": Number(facts.idle_fraction, idle_text(facts), f"{facts.kind} idle"),
    }


def _step_times(facts: RunFacts) -> dict[str, Number]:
    steps, time = facts.steps, facts.steps.duration_ps
    n_steps = len(steps)
    why = "" if n_steps else step_time_base(facts.common)
    left_out = f"{steps.n_trimmed:,} more left out" if steps.n_trimmed else ""
    spread = float(time.std(ddof=1)) if n_steps > 1 else 0.0
    return {
        "step_time_avg_ps": Number(facts.step_time_ps, step_time_base(facts.common)),
        "step_time_sd_ps": Number(spread if n_steps else None, why),
        "step_time_min_ps": Number(int(time.min()) if n_steps else None, why),
        "step_time_max_ps": Number(int(time.max()) if n_steps else None, why),
        "n_steps": Number(n_steps, "none in common" if facts.common.is_disjoint else left_out),
        "input_fraction": Number(steps.fraction("input") if n_steps else None, why),
    }
