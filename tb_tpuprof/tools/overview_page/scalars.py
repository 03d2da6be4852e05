"""The overview's tiles and its table of the run's environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tb_tpuprof.analysis.device.attainable import MISCOUNTED
from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.events.frameworks import UNKNOWN
from tb_tpuprof.analysis.inference.record import HostInference, summed
from tb_tpuprof.analysis.ops.recommend import precision
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.ops.utilization import Utilization, idle_fraction
from tb_tpuprof.analysis.overview.facts import RunFacts
from tb_tpuprof.analysis.overview.hosts import HostSteps
from tb_tpuprof.analysis.overview.summary import Summary
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.settings import PEAKS_VARIABLE
from tb_tpuprof.tools.comm_costs import EXPOSED_SHARE
from tb_tpuprof.tools.facts import (
    device_word,
    devices_text,
    fact_scalars,
    fact_specs,
    step_share,
    summed_text,
)
from tb_tpuprof.tools.overview_page.recording import recording_pairs
from tb_tpuprof.tools.overview_page.tables import ENVIRONMENT
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.reasons import NO_STEPS
from tb_tpuprof.tools.requests import REQUEST_SCALARS, request_scalars
from tb_tpuprof.tools.spec import ScalarSpec
from tb_tpuprof.tools.tiles import Tile, tiles
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import format_bytes, format_fraction, format_time, format_value, three_digits

_SAME = 0.0005  # shares that differ by less are shown once
_WORTH_A_TILE = 0.005  # share of the steps from which time in Python or waiting gets a tile
_BY_PRECISION = "of the peak at each operator's precision, idle time included"
_APART = 0.005  # of the step: smaller differences to the findings need no words


@dataclass(frozen=True)
class Run:
    """The data of the page: hosts separately and combined. `between_slices`: whether a host has transfers
    between slices.
    """

    parts: Sequence[Summary]
    facts: RunFacts
    ops: OpStats
    use: Utilization
    hosts: tuple[HostSteps, ...]
    between_slices: bool = False

    @property
    def steps(self) -> Steps:
        """The steps that all hosts have."""
        return self.facts.steps

    @cached_property
    def requests(self) -> HostInference | None:
        """The requests of all hosts; None without any."""
        parts = [part.requests for part in self.parts if part.requests is not None]
        return summed(parts) if parts else None

    @cached_property
    def hardware(self) -> Hardware:
        """The devices of all hosts."""
        return sum_hardware([part.hardware for part in self.parts])


_PAGE_SCALARS = {
    spec.name: spec
    for spec in (
        ScalarSpec(
            "duty_cycle_fraction",
            "Duty cycle",
            "fraction",
            "Share of its profiled time in which a TPU chip is on duty: one of its cores runs an operation "
            "other than moving data to or from the host",
            is_optional=True,
            formula="time on duty ÷ profiled time",
            unknown="the trace does not show when the chips are on duty",
        ),
        ScalarSpec(
            "flops_fraction",
            "FLOPS utilization",
            "fraction",
            "Floating-point work per second compared with the device's peak, idle time included",
            is_optional=True,
            formula="FLOPs ÷ (profiled time × peak FLOP rate)",
        ),
        ScalarSpec(
            "hbm_bandwidth_fraction",
            "Memory bandwidth utilization",
            "fraction",
            "Bytes moved to and from device memory per second compared with its peak, idle time included",
            is_optional=True,
            formula="HBM bytes ÷ (profiled time × peak bandwidth)",
        ),
        ScalarSpec(
            "host_idle_fraction",
            "Host idle",
            "fraction",
            "Share of the host threads' profiled time in which no operation runs",
            is_optional=True,
            formula="1 − self time of host operations ÷ profiled time of their threads",
            unknown="no operations of the host were traced",
        ),
        ScalarSpec(
            "roofline_fraction",
            "Roofline efficiency",
            "fraction",
            "FLOP rate compared with the highest rate that these operations could reach on this device",
            is_optional=True,
            formula="FLOP rate ÷ min(peak FLOP rate, FLOPs per byte × peak bandwidth)",
        ),
        ScalarSpec(
            "host_compute_fraction",
            "Host compute",
            "fraction",
            "Share of the steps in which operations or other traced work run on the processors",
            is_optional=True,
            formula="Σ host compute ÷ Σ step time",
            unknown=NO_STEPS,
        ),
        ScalarSpec(
            "device_compute_fraction",
            "Device compute",
            "fraction",
            "Share of the steps in which operations compute on the device",
            is_optional=True,
            formula="Σ device compute ÷ Σ step time",
            unknown=NO_STEPS,
        ),
        ScalarSpec(
            "host_python_fraction",
            "Python",
            "fraction",
            "Share of the steps in which the step's own thread runs Python while no operation runs; shown "
            "from 0.5% upward",
            is_optional=True,
            formula="Σ Python ÷ Σ step time",
        ),
        ScalarSpec(
            "host_wait_fraction",
            "Waiting",
            "fraction",
            "Share of the steps in which the step's own thread sleeps, locks or polls while no operation "
            "runs; shown from 0.5% upward",
            is_optional=True,
            formula="Σ waiting ÷ Σ step time",
        ),
        ScalarSpec(
            "other_fraction",
            "Other",
            "fraction",
            "Share of the steps with no recorded activity",
            is_optional=True,
            formula="Σ other ÷ Σ step time",
            unknown=NO_STEPS,
        ),
        ScalarSpec(
            "device_compute_16bit_fraction",
            "16-bit compute",
            "fraction",
            "Share of the device's compute time in kernels that compute in 16 bits or fewer",
            is_optional=True,
            formula="16-bit compute ÷ device compute",
        ),
        ScalarSpec(
            "device_compute_32bit_fraction",
            "32-bit compute",
            "fraction",
            "Share of the device's compute time in kernels that compute in 32 bits",
            is_optional=True,
            formula="32-bit compute ÷ device compute",
        ),
        ScalarSpec(
            "host_eager_fraction",
            "Eager on the host",
            "fraction",
            "Share of the host operations' time in operations that ran by themselves, not inside a function",
            is_optional=True,
            formula="self time of eager operations ÷ Σ self time on the host",
        ),
        ScalarSpec(
            "device_eager_fraction",
            "Eager on the device",
            "fraction",
            "Share of the device operations' time in operations that ran by themselves, not inside a "
            "function",
            is_optional=True,
            formula="self time of eager operations ÷ Σ self time on the device",
        ),
    )
}
SCALARS = (
    *fact_specs(
        "step_time_avg_ps",
        "step_time_sd_ps",
        "step_time_min_ps",
        "step_time_max_ps",
        "n_steps",
        "input_fraction",
    ),
    *fact_specs("device_busy_ps", "device_time_ps", "device_idle_fraction", is_optional=True),
    *REQUEST_SCALARS,
    *_PAGE_SCALARS.values(),
    EXPOSED_SHARE,
)
TILES = tiles(
    "step_time_avg_ps",
    Tile("n_steps", least=1),
    Tile("n_requests", unless="step_time_avg_ps"),
    "latency_p50_ps",
    "latency_p99_ps",
    "device_busy_ps",
    "device_idle_fraction",
    EXPOSED_SHARE.name,
    "input_fraction",
    Tile("device_compute_fraction", unless=EXPOSED_SHARE.name),
    "host_compute_fraction",
    "host_python_fraction",
    "host_wait_fraction",
    "flops_fraction",
    "hbm_bandwidth_fraction",
    Tile("roofline_fraction", unlike="hbm_bandwidth_fraction flops_fraction"),
    Tile("other_fraction", _WORTH_A_TILE, "device_idle_fraction"),
    Tile("device_eager_fraction", _WORTH_A_TILE),
    Tile("host_eager_fraction", _WORTH_A_TILE),
    "device_compute_16bit_fraction",
)


def _share(name: str, value: float | None, note: str = "", working: str = "") -> Scalar:
    return _PAGE_SCALARS[name].of(value, note, "", working)


def scalars(run: Run) -> dict[str, Scalar]:
    """Scalars in display order: step time, use of accelerators, breakdown of the steps."""
    kind, facts = run.hardware.kind, run.facts
    result = fact_scalars(
        facts, "step_time_avg_ps", "step_time_sd_ps", "step_time_min_ps", "step_time_max_ps"
    )
    if run.requests is not None:
        result |= request_scalars(run.requests)
    if not len(run.steps) and facts.n_active:
        result |= fact_scalars(facts, "device_busy_ps", "device_time_ps")
    if kind == "TPU":
        result |= _use_scalars(run)
    result |= fact_scalars(facts, "n_steps", "input_fraction")
    result |= _step_shares(run, kind)
    if kind == "GPU":
        result |= {
            name: scalar
            for name, scalar in _use_scalars(run).items()
            if (scalar.value is not None or scalar.note == MISCOUNTED) and name not in result
        }
    shares = precision(run.steps) if kind == "GPU" else None
    if shares:
        result["device_compute_16bit_fraction"] = _share(
            "device_compute_16bit_fraction", shares[0], "of the device compute"
        )
        result["device_compute_32bit_fraction"] = _share(
            "device_compute_32bit_fraction", shares[1], "of the device compute"
        )
    for side, metrics in (("host", run.ops.host), ("device", run.ops.device)):
        eager = int(metrics.self_ps[metrics.is_eager].sum())
        if eager:
            name = f"{side}_eager_fraction"
            result[name] = _share(name, eager / metrics.busy_ps, "of the operations' time")
    return result


def _step_shares(run: Run, kind: str) -> dict[str, Scalar]:
    """The other shares of the steps. Time without a device at work is left out if it equals the idle time."""
    steps, n_steps, result = run.steps, len(run.steps), {}
    why = "" if n_steps else "there are no steps"
    if kind == "CPU":
        result["host_compute_fraction"] = _of_steps(steps, "host_compute", why)
    else:
        result |= fact_scalars(run.facts, "device_idle_fraction")
        result["device_compute_fraction"] = _of_steps(steps, "device_compute", why)
    for category in ("host_python", "host_wait"):
        if steps.fraction(category) >= _WORTH_A_TILE:
            name = f"{category}_fraction"
            result[name] = _of_steps(steps, category, "no operation ran meanwhile")
    idle = run.facts.idle_fraction
    if kind == "CPU" or (
        kind == "GPU" and n_steps and idle is not None and abs(steps.fraction("other") - idle) >= _SAME
    ):
        result["other_fraction"] = _of_steps(steps, "other", why or _other_note(kind))
    return result


def with_dispatch(shown: dict[str, Scalar], why: Diagnosis) -> dict[str, Scalar]:
    """Says how much of the host's compute the findings count as dispatch or transfers, if that is the whole
    difference between the two.
    """
    compute = shown.get("host_compute_fraction")
    if compute is None or compute.value is None or not why.is_detailed:
        return shown
    share = {one.cause: one.share for one in why.causes}
    moved = {cause: share.get(cause, 0.0) for cause in (Cause.DISPATCH, Cause.TRANSFERS)}
    rest = float(compute.value) - share.get(Cause.COMPUTE, 0.0)
    named = [f"{format_fraction(part)} {cause.value}" for cause, part in moved.items() if part >= _APART]
    if not named or abs(rest - sum(moved.values())) > _APART:
        return shown
    return {**shown, "host_compute_fraction": replace(compute, note=f"including {' and '.join(named)}")}


def _of_steps(steps: Steps, category: str, note: str) -> Scalar:
    return _PAGE_SCALARS[f"{category}_fraction"].of(*step_share(steps, category, note=note))


def _other_note(kind: str) -> str:
    return "no recorded activity" if kind == "CPU" else f"the {kind} idled for no traced reason"


def _use_scalars(run: Run) -> dict[str, Scalar]:
    """How well accelerators and host are used; notes say why a number is unknown."""
    use, machine = run.use, run.hardware
    seconds = use.device_ps / 1e12
    result = fact_scalars(run.facts, "device_idle_fraction")
    result["duty_cycle_fraction"] = _share(
        "duty_cycle_fraction",
        use.duty_cycle,
        "of the chips' profiled time" if use.duty_cycle is not None else "",
    )
    max_flops, max_bytes = (most / seconds if seconds else 0.0 for most in (use.max_flops, use.max_bytes))
    flops = ("flops_per_s", use.flops, max_flops, use.flops_fraction)
    moved = ("bytes_per_s", use.hbm_bytes, max_bytes, use.bandwidth_fraction)
    rates = (
        ("flops_fraction", flops),
        ("hbm_bandwidth_fraction", moved),
    )
    for name, (unit, amount, peak, share) in rates:
        if not amount:
            is_miscounted = any(part.excesses for part in run.parts)
            note = MISCOUNTED if is_miscounted else "the trace has no FLOP or byte counts"
        elif not peak:
            rate = (
                f"{format_value(amount / seconds, unit)} per {device_word(run.facts, 1)}; " if seconds else ""
            )
            note = f"{rate}the peak of {machine.title} is unknown; set it with {PEAKS_VARIABLE}"
        else:
            note = (
                f"{format_value(amount / seconds, unit)} of {format_value(peak, unit)} per "
                f"{device_word(run.facts, 1)}, idle time included"
                if share is not None
                else MISCOUNTED
            )
        working = quotient((amount / seconds, peak), unit) if share is not None and seconds else ""
        if name == "flops_fraction" and share is not None and use.roof_flops != use.flops:
            note, working = f"{format_value(amount / seconds, unit)}; {_BY_PRECISION}", ""
        result[name] = _share(name, share, note, working)
    host_idle = idle_fraction(run.ops.host)
    result["host_idle_fraction"] = _share(
        "host_idle_fraction",
        host_idle,
        "of its threads' profiled time" if host_idle is not None else "",
    )
    if use.roofline_fraction is not None:
        note = f"of the maximum these operations could reach, bound by {use.bound_by}"
        result["roofline_fraction"] = _share("roofline_fraction", use.roofline_fraction, note)
    return result


def hardware_text(machine: Hardware) -> str:
    """`MI300X (AMD GPU gfx942)`, or the name alone if both are the same."""
    return machine.device if machine.title == machine.device else f"{machine.title} ({machine.device})"


def environment(run: Run) -> Table:
    """The job's hardware and framework."""
    parts, hardware, facts = run.parts, run.hardware, run.facts
    per_device = "core" if hardware.kind == "TPU" else "device"
    pairs = [
        ("Hosts", str(len(parts)) if len(parts) > 1 else parts[0].host),
        ("Framework", _framework(facts)),
        ("Hardware", hardware_text(hardware) if hardware.n_devices else "CPU (no accelerator in the trace)"),
    ]
    if hardware.n_devices:
        pairs.append(("TPU cores" if hardware.kind == "TPU" else "Devices", devices_text(facts)))
    pairs.append(
        ("Captured time" if len(parts) == 1 else "Captured time, longest host", format_time(facts.capture_ps))
    )
    if facts.n_active:
        pairs.append(
            ("Device time", _with_base(facts, facts.device_time_ps, "from the first operation to the last"))
        )
        pairs.append(("Device busy", _with_base(facts, facts.device_busy_ps, "")))
    pairs.append(("Events", f"{sum(part.n_events for part in parts):,}"))
    if hardware.n_replicas:
        each = f" of {hardware.n_partitions} {per_device}s each" if hardware.n_partitions > 1 else ""
        pairs.append(("Replicas", f"{hardware.n_replicas}{each}"))
    pairs.append(("Batch size (derived)", _batch(parts, run.requests)))
    if hardware.peak_flops_per_s:
        pairs.append(
            (f"Peak compute per {per_device}", format_value(hardware.peak_flops_per_s, "flops_per_s"))
        )
    if hardware.peak_hbm_bytes_per_s:
        pairs.append(
            (
                f"Peak memory bandwidth per {per_device}",
                format_value(hardware.peak_hbm_bytes_per_s, "bytes_per_s"),
            )
        )
    if hardware.peak_source:
        pairs.append(("Source of peak rates", hardware.peak_source))
    if hardware.memory_bytes:
        pairs.append((f"Memory per {per_device}", format_bytes(hardware.memory_bytes)))
    versions = dict(pair for part in parts for pair in part.versions)
    pairs += [(f"{name} version", value) for name, value in versions.items()]
    pairs += recording_pairs([part.recording for part in parts])
    return ENVIRONMENT.fill({"name": [name for name, _ in pairs], "value": [value for _, value in pairs]})


def _batch(parts: Sequence[Summary], requests: HostInference | None) -> str:
    """The batch size of the hosts that reveal one; unknown if they disagree. Where shapes reveal none, the
    sizes of a server's batches, requests or passes.
    """
    found = list(dict.fromkeys(part.batch for part in parts if part.batch.value))
    if not found:
        sizes = "" if requests is None else _request_sizes(requests)
        return sizes or f"unknown: {_plain(parts[0].batch.how)}"
    if len({(one.value, one.per) for one in found}) > 1:
        return f"unknown: it differs between hosts: {', '.join(f'{one.value:,}' for one in found[:4])}"
    per = f" per {found[0].per}" if found[0].per else ""
    return f"{found[0].value:,}{per}: {_plain(found[0].how)}"


def _request_sizes(found: HostInference) -> str:
    """The smallest, largest and mean size that a server states; empty if it states none."""
    known = found.batches.size[found.batches.size >= 0]
    what = "examples per batch"
    if not len(known):
        known = found.size[found.size >= 0]
        what = "sequences per pass" if found.unit == "pass" else f"examples per {found.unit}"
    if not len(known):
        return ""
    least, most = int(known.min()), int(known.max())
    return (
        f"{least:,} {what}"
        if least == most
        else f"{least:,} to {most:,} {what}, mean {three_digits(known.mean())}"
    )


def _plain(text: str) -> str:
    """Without the quotes of code, which facts do not have."""
    return text.replace("`", "")


def _framework(facts: RunFacts) -> str:
    software = facts.software
    name = "unknown: not named in the trace" if software.framework == UNKNOWN else software.framework
    return f"{name}, with tf.data" if software.uses_tf_data and software.framework != UNKNOWN else name


def _with_base(facts: RunFacts, time_ps: int, base: str) -> str:
    notes = [text for text in (summed_text(facts, time_ps), base) if text]
    return f"{format_time(time_ps)} ({', '.join(notes)})" if notes else format_time(time_ps)
