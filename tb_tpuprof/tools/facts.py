"""The facts of a run as scalars: one name, title, unit and base on every page that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tb_tpuprof.analysis.events.frameworks import software, sum_software
from tb_tpuprof.analysis.input.pipeline import copy_fraction
from tb_tpuprof.analysis.overview.facts import RunFacts, host_facts, run_facts
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import Clocks, clocks_of
from tb_tpuprof.tools.payload import Scalar
from tb_tpuprof.tools.reasons import NO_DEVICE, NO_STEPS
from tb_tpuprof.tools.spec import Number, ScalarSpec, fill_scalars
from tb_tpuprof.tools.working import quotient, rest
from tb_tpuprof.units import counted, format_time

_WORTH_NOTING = 0.001  # of the steps: smaller shares of copies are not mentioned
_FEW_KINDS = 3
# Where steps do not last as long as their annotations: as `Steps.how`.
_LASTS = {
    "loop": "from each start to the next",
    "dispatched": "from the end of one step's work to the next one's",
}
# Numbers that mean the same on every page; `tests/consistency` compares the pages.
FACTS = (
    ScalarSpec("n_hosts", "Hosts", "count", "Number of hosts whose traces the page combines"),
    ScalarSpec("n_devices", "Devices", "count", "TPU cores and GPUs that ran at least one operation"),
    ScalarSpec(
        "capture_ps",
        "Capture",
        "ps",
        "From the trace's start to the end of its last event, on the host with the longest capture",
    ),
    ScalarSpec(
        "device_time_ps",
        "Device time",
        "ps",
        "Time from a device's first operation to the end of its last one, summed over the devices that ran "
        "something",
        formula="Σ (end of last operation − start of first operation)",
        unknown=NO_DEVICE,
    ),
    ScalarSpec(
        "device_busy_ps",
        "Device busy",
        "ps",
        "Time in which at least one operation runs on a device, summed over the devices",
        unknown=NO_DEVICE,
    ),
    ScalarSpec(
        "step_time_avg_ps",
        "Average step time",
        "ps",
        "Mean duration of the steps that all hosts have; for several hosts the mean over the hosts",
        formula="Σ step time ÷ number of steps",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "step_time_sd_ps",
        "Standard deviation",
        "ps",
        "How much the step time varies from step to step: the standard deviation of the sample",
        formula="√(Σ (step time − mean)² ÷ (steps − 1))",
        unknown=NO_STEPS,
    ),
    ScalarSpec("step_time_min_ps", "Fastest step", "ps", "Duration of the shortest step", unknown=NO_STEPS),
    ScalarSpec("step_time_max_ps", "Slowest step", "ps", "Duration of the longest step", unknown=NO_STEPS),
    ScalarSpec(
        "n_steps",
        "Steps",
        "count",
        "Number of steps that all hosts have, without the first and last ones that the capture may have cut",
    ),
    ScalarSpec(
        "input_fraction",
        "Waiting for input",
        "fraction",
        "Share of the steps in which the program waits for its next batch or copies it to the device, "
        "while nothing of a higher category runs",
        formula="Σ input ÷ Σ step time",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "device_idle_fraction",
        "Device idle",
        "fraction",
        "Share of the time in which no operation runs. GPUs with steps: the share of the steps in which no "
        "GPU of the host works; otherwise each device from its first operation to its last",
        formula="1 − busy time ÷ device time",
        unknown=NO_DEVICE,
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
    if not facts.n_active and facts.n_present:
        return f"{facts.n_present:,} (no operations recorded)"
    more = [f"{facts.n_present:,} present"] if facts.n_present > facts.n_active else []
    more += [counted(n_chips, "chip")] if n_chips else []
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
        if len(facts.hosts) > 1:
            return "of the steps: no GPU of a host works, mean over the hosts"
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
        "device_idle_fraction": Number(
            facts.idle_fraction, idle_text(facts), f"{facts.kind} idle", _idle_working(facts)
        ),
    }


def _idle_working(facts: RunFacts) -> str:
    """The idle share from its own base: the mean step, or the devices' time."""
    idle, step_ps = facts.idle_fraction, facts.step_time_ps
    if idle is None:
        return ""
    if facts.kind == "GPU" and step_ps:
        return rest((1 - idle) * step_ps, step_ps, "step")
    return rest(facts.device_busy_ps, facts.device_time_ps)


def step_share(steps: Steps, category: str, title: str = "", note: str = "") -> Number:
    """The share of a category in the steps, with its mean per step; unknown without steps."""
    if not len(steps):
        return Number(None, note, title)
    means = float(steps.category_ps(category).mean()), float(steps.duration_ps.mean())
    if category == "input" and not note and copy_fraction(steps) >= _WORTH_NOTING:
        note = "including copies to the device"
    return Number(steps.fraction(category), note, title, quotient(means, "ps", words="per step"))


def common_steps_note(steps: Steps, n_hosts: int) -> str:
    """The steps that a mean over several hosts is of; empty for one host.

    Findings are means over all steps of each host.
    """
    is_mean = n_hosts > 1 and len(steps) > 1
    return f"mean over the {len(steps):,} steps that all hosts have" if is_mean else ""


def _kinds(steps: Steps) -> str:
    """`6 train, 2 eval`: how many steps of each name, most first; empty unless there are a few names."""
    kinds = Counter(name.rpartition(" ")[0] for name in steps.name)
    if not 1 < len(kinds) <= _FEW_KINDS or "" in kinds:
        return ""
    return ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common())


def _step_times(facts: RunFacts) -> dict[str, Number]:
    steps, time = facts.steps, facts.steps.duration_ps
    n_steps = len(steps)
    why = "" if n_steps else step_time_base(facts.common)
    left_out = f"{steps.n_trimmed:,} more left out" if steps.n_trimmed else ""
    about_steps = "; ".join(text for text in (_kinds(steps), left_out) if text)
    spread = float(time.std(ddof=1)) if n_steps > 1 else 0.0
    return {
        "step_time_avg_ps": Number(
            facts.step_time_ps,
            "; ".join(text for text in (step_time_base(facts.common), _LASTS.get(steps.how, "")) if text),
            "",
            quotient((int(time.sum()), n_steps), ("ps", "count"), facts.step_time_ps, "ps", "steps")
            if n_steps > 1
            else "",
        ),
        "step_time_sd_ps": Number(spread if n_steps else None, why),
        "step_time_min_ps": Number(int(time.min()) if n_steps else None, why),
        "step_time_max_ps": Number(int(time.max()) if n_steps else None, why),
        "n_steps": Number(n_steps, "none in common" if facts.common.is_disjoint else about_steps),
        "input_fraction": step_share(steps, "input", note=why),
    }
