"""Operations whose counted FLOPs or bytes exceed what the device can do in their time: a notice that names
them, and the likely reason.

No operation can exceed its device's peak, so one of the terms is wrong: the peak, the work or the time. The
work of such an operation is unknown on all pages (`analysis/device/attainable.py` has the rule).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import RESOURCES, Roofs
from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time, format_value

_TOO_SHORT_PS = 1_000_000
_N_NAMED = 3


@dataclass(frozen=True)
class Excess:
    """An operation of which more was counted than the peak of `resource` allows: the mean time of an
    occurrence in ps, and the least time in ps that the counted amount takes at the peak.
    """

    op: str
    program: str
    resource: str
    time_ps: float
    least_ps: float

    @property
    def is_short(self) -> bool:
        """Whether it is too short to be measured accurately."""
        return self.time_ps < _TOO_SHORT_PS

    @property
    def factor(self) -> float:
        """The least time ÷ the time that it took."""
        return self.least_ps / self.time_ps if self.time_ps else 0.0


@once
def roof_excesses(trace: Trace) -> tuple[Excess, ...]:
    """Such operations of one host, the largest factor first. Empty if no operation's work is known."""
    return excesses(device_ops(trace))


def excesses(ops: HloOps) -> tuple[Excess, ...]:
    """The same for the given operations. Empty on CPUs, whose peaks are unknown. Operations that only run
    others are left out: what they count is counted by those.
    """
    if not ops.work.excess.size:
        return ()
    factor = ops.work.excess.max(axis=0)
    resource = ops.work.excess.argmax(axis=0)
    exceeding = np.flatnonzero(~ops.is_container & (factor > 0))
    exceeding = exceeding[np.argsort(-factor[exceeding], kind="stable")]
    mean_ps = np.divide(ops.work_ps, np.maximum(ops.n_occurrences, 1))
    return tuple(
        Excess(
            ops.name[i],
            ops.programs.get(int(ops.program[i]), ""),
            RESOURCES[resource[i]],
            float(mean_ps[i]),
            float(mean_ps[i] * factor[i]),
        )
        for i in exceeding.tolist()
    )


def excess_notices(excesses: Sequence[Excess], peaks: Roofs) -> tuple[Notice, ...]:
    """A notice about such operations of one host or several: the worst of them by name (those too short to be
    measured last), how long the counted work takes at least, and the likely reason.
    """
    worst: dict[tuple[str, str], Excess] = {}
    for excess in sorted(excesses, key=lambda one: (one.is_short, -one.factor)):
        worst.setdefault((excess.program, excess.op), excess)
    exceeding = list(worst.values())
    if not exceeding:
        return ()
    named = "; ".join(_named(excess, peaks) for excess in exceeding[:_N_NAMED])
    more = f"; and {len(exceeding) - _N_NAMED:,} more" if len(exceeding) > _N_NAMED else ""
    count = (
        "For 1 operation more work was counted than the device can do in its time"
        if len(exceeding) == 1
        else f"For {len(exceeding):,} operations more work was counted than the device can do in their time"
    )
    whose = "Its" if len(exceeding) == 1 else "Their"
    text = (
        f"{count}: {named}{more}. {whose} utilization is unknown and is not included in sums. "
        f"{_reason(exceeding, peaks)}"
    )
    return (
        Notice(
            "warning",
            text,
            "If the peaks are wrong, set them in your own file (TPUPROF_PEAKS).",
        ),
    )


def _named(excess: Excess, peaks: Roofs) -> str:
    amount = "FLOPs" if excess.resource == RESOURCES[0] else f"{excess.resource} bytes"
    return (
        f"`{excess.op}` runs for {format_time(excess.time_ps)}, but its counted {amount} take at least "
        f"{format_time(excess.least_ps)} at {_peak(excess.resource, peaks)}"
    )


def _peak(resource: str, peaks: Roofs) -> str:
    resource_index = RESOURCES.index(resource)
    value = (
        format_value(peaks.flops_per_s, "flops_per_s")
        if not resource_index
        else format_value(peaks.bytes_per_s[resource_index - 1], "bytes_per_s")
    )
    return f"{'peak compute' if not resource_index else f'peak {resource} bandwidth'} ({value})"


def _reason(exceeding: Sequence[Excess], peaks: Roofs) -> str:
    """The likely reason of most of them, by what they exceed; that they are too short if all are."""
    long = [excess.resource for excess in exceeding if not excess.is_short]
    if not long:
        are = "it is" if len(exceeding) == 1 else "they are"
        return f"Likely reason: {are} too short to be measured accurately."
    is_compute = max(dict.fromkeys(long), key=long.count) == RESOURCES[0]
    source = f" (source: {peaks.short_sources[0 if is_compute else 1]})"
    if is_compute:
        return (
            "Likely reason: fewer FLOPs ran than were counted (Winograd convolutions, masked attention), or "
            f"the peak is too low{source}."
        )
    return f"Likely reason: a cache served part of the bytes, or the peak is too low{source}."
