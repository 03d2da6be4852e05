"""What limits the devices while they work for requests, by phase: the table and the sentence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.inference.loads import HostLoads, Load
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import TableSpec, known_texts, number, text
from tb_tpuprof.units import PS_PER_S, format_fraction

_NO_SHARE = (
    "the peak is unknown, the work in more than half of the operations' time is unknown, or the work exceeds "
    "the peak"
)
_NO_AMOUNT = "the work in more than half of the operations' time is unknown"
LOADS = TableSpec(
    "loads",
    "What limits the device",
    (
        text("phase", "Phase", "All requests, or one phase of them: prefill (prompts), decode (next tokens)"),
        number("n", "Number", "count", "Requests, or passes or annotations of the phase"),
        number(
            "device_ps",
            "Device time",
            "ps",
            "Time in which a device works for them, summed over devices; concurrent work on one counts once",
        ),
        text(
            "bound_by",
            "Limited by",
            "The peak that the device certainly comes nearest to while it works, from 30% of it on",
            unknown="see the reason",
        ),
        number(
            "flops_fraction",
            "Of peak FLOP rate",
            "fraction",
            "Known FLOPs, each at the precision of its operands, as a share of those that the peak allows in "
            "the device time",
            formula="Σ FLOPs ÷ (device time × peak FLOP rate)",
            unknown=_NO_SHARE,
        ),
        number(
            "hbm_fraction",
            "Of peak HBM bandwidth",
            "fraction",
            "Known bytes to and from HBM as a share of those that the peak allows in the device time",
            formula="Σ bytes ÷ (device time × peak HBM bandwidth)",
            unknown=_NO_SHARE,
        ),
        number(
            "flops_per_s",
            "FLOP rate",
            "flops_per_s",
            "Known FLOPs per second of device time",
            formula="Σ FLOPs ÷ device time",
            unknown=_NO_AMOUNT,
        ),
        number(
            "bytes_per_s",
            "Bandwidth",
            "bytes_per_s",
            "Known bytes to and from HBM (on a CPU: main memory) per second of device time",
            formula="Σ bytes ÷ device time",
            unknown=_NO_AMOUNT,
        ),
        number(
            "known_fraction",
            "Known",
            "fraction",
            "Share of the operations' time in operations with known FLOPs and bytes; the shares of peaks are "
            "lower bounds where it is below 100%",
            formula="time of operations with known FLOPs and bytes ÷ time of all",
        ),
        text("reason", "Reason", "Why the limit is unknown", unknown="the limit is known"),
    ),
    "Shares of peaks while devices work, of all requests and by phase",
    is_optional=True,
)
_BOUNDS = {"compute": "Compute", "memory": "HBM", "neither": "Below every limit", "unknown": ""}
_ALL_KNOWN = 0.99
_MOST_KNOWN = 0.5  # of the time: rates of less say nothing about the whole
_NO_PEAKS = "the device's peak rates are unknown; set them in your own file"


def load_table(loads: HostLoads, model: str, unit: str) -> dict[str, Table]:
    """A row for all requests of a model (empty: of all) and for each phase; none if no device works for
    them. `unit`: the plural of what requests are.
    """
    phases = loads.phases(model)
    rows = [loads.of(model), *(loads.of(model, phase) for phase in phases)]
    if not rows[0].device_ps:
        return {}
    seconds = np.array([row.device_ps for row in rows]) / PS_PER_S
    says = np.array([_known(row) >= _MOST_KNOWN or row.bound != "unknown" for row in rows])
    flops, n_bytes = (np.array([getattr(row, name) for row in rows]) for name in ("flops", "hbm_bytes"))
    some = np.where(seconds > 0, seconds, np.nan)
    reasons = [reason(row, loads) for row in rows]
    is_same = bool(reasons[0]) and len(set(reasons)) == 1
    table = LOADS.fill(
        {
            "phase": [f"All {unit}", *(phase.label for phase in phases)],
            "n": np.array([row.n for row in rows]),
            "device_ps": np.array([row.device_ps for row in rows]),
            "bound_by": known_texts([_BOUNDS[row.bound] for row in rows]),
            "flops_fraction": np.where(says, _floats(rows, "flops_fraction"), np.nan),
            "hbm_fraction": np.where(says, _floats(rows, "hbm_fraction"), np.nan),
            "flops_per_s": np.where(says, flops / some, np.nan),
            "bytes_per_s": np.where(says, n_bytes / some, np.nan),
            "known_fraction": np.array([_known(row) for row in rows]),
            "reason": known_texts(reasons),
        },
        f"unknown: {reasons[0]}" if is_same else "",
    )
    return {"loads": table}


def _floats(rows: list[Load], name: str) -> npt.NDArray[np.float64]:
    return np.array([getattr(row, name) for row in rows], np.float64)  # None becomes NaN


def _known(load: Load) -> float:
    return 1 - max(load.unknown_flops, load.unknown_bytes)


def reason(load: Load, loads: HostLoads) -> str:
    """Why the limit of a load is unknown; empty if it is known."""
    if load.bound != "unknown":
        return ""
    if not load.device_ps:
        return "no device works for them"
    if not load.flops and not load.hbm_bytes:
        return (
            "the trace states neither the HLO nor the input shapes of their operations, so no FLOPs and bytes"
        )
    reasons = []
    if not loads.knows_peaks:
        is_cpu = loads.kind == "CPU"
        reasons.append("the peak rates of CPUs are unknown" if is_cpu else f"{_NO_PEAKS} (TPUPROF_PEAKS)")
    if load.is_above_a_peak:
        reasons.append("their work exceeds a peak of the device, which is impossible; see the roofline page")
    elif _known(load) < _ALL_KNOWN:
        left = format_fraction(1 - _known(load))
        reasons.append(f"the FLOPs or bytes of {left} of the operations' time are unknown")
    return "; ".join(reasons)


def load_sentence(loads: HostLoads, model: str, unit: str) -> str:
    """What limits the device, by phase if the trace has several; empty on a CPU, whose peaks are unknown."""
    if loads.kind == "CPU" or not loads.of(model).device_ps:
        return ""
    phases = [phase for phase in loads.phases(model) if loads.of(model, phase).device_ps]
    rows = [(phase.label.lower(), loads.of(model, phase)) for phase in phases]
    rows = rows or [(unit, loads.of(model))]
    device = f"the {loads.kind}"
    judged = [(name, load) for name, load in rows if load.bound != "unknown"]
    if not judged:
        return f"What limits {device} while it works is unknown: {reason(rows[0][1], loads)}."
    limits = "; ".join(f"{name}: {_limit(load)}" for name, load in judged)
    missing = [name for name, load in rows if load.bound == "unknown"]
    rest = f"; {' and '.join(missing)}: unknown" if missing else ""
    return f"While {device} works, {limits}{rest}."


def _limit(load: Load) -> str:
    flops, hbm = load.flops_fraction or 0.0, load.hbm_fraction or 0.0
    least = "" if _known(load) >= _ALL_KNOWN else "at least "
    compute = f"FLOP rate {format_fraction(flops)}"
    memory = f"HBM bandwidth {format_fraction(hbm)}"
    if load.bound == "neither":
        return f"below both limits ({least}{memory} of peak, {compute})"
    if load.bound == "memory":
        return f"limited by HBM bandwidth ({least}{format_fraction(hbm)} of peak; {compute})"
    return f"limited by FLOP rate ({least}{format_fraction(flops)} of peak; {memory})"
