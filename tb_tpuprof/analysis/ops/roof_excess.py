"""Operations that seem to exceed the hardware: rates above a peak, and the likely reason.

No operation can exceed its device's peak, so such a rate means that one of its terms is wrong: the peak, the
work or the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import RESOURCES, Roofs, rates, roofs
from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time, format_value

LIMIT = 1.05  # of a peak: clocks run slightly above their rating
_TOO_SHORT_PS = 1_000_000
_N_NAMED = 3


@dataclass(frozen=True)
class Excess:
    """An operation above a peak: the `fraction` of the peak, the resource, and the mean time of an occurrence
    in ps.
    """

    op: str
    resource: str
    fraction: float
    time_ps: float


@once
def roof_excesses(trace: Trace) -> tuple[Excess, ...]:
    """Operations of one host above LIMIT of a peak, the largest excess first. Empty if no
    operation's work is known.
    """
    return excesses(device_ops(trace), roofs(trace))


def excesses(ops: HloOps, peaks: Roofs) -> tuple[Excess, ...]:
    """The same for the given operations. Empty on CPUs, whose peaks are unknown."""
    if not len(ops) or not (peaks.flops_per_s or any(peaks.bytes_per_s)):
        return ()
    speed = rates(ops.work, ops.work_ps, peaks)
    exceeding = np.flatnonzero(~ops.is_container & (np.nan_to_num(speed.efficiency) > LIMIT))
    exceeding = exceeding[np.argsort(-speed.efficiency[exceeding], kind="stable")]
    mean_ps = np.divide(ops.work_ps, np.maximum(ops.n_occurrences, 1))
    return tuple(
        Excess(ops.name[i], RESOURCES[speed.nearest[i]], float(speed.efficiency[i]), float(mean_ps[i]))
        for i in exceeding.tolist()
    )


def excess_notices(exceeding: Sequence[Excess], peaks: Roofs) -> tuple[Notice, ...]:
    """Notices about operations above a peak: their names, how far they exceed it, and the likely reason."""
    if not exceeding:
        return ()
    named = ", ".join(
        f"`{excess.op}` at {format_fraction(excess.fraction)} of {_peak(excess.resource, peaks)}"
        for excess in exceeding[:_N_NAMED]
    )
    more = f", and {len(exceeding) - _N_NAMED:,} more" if len(exceeding) > _N_NAMED else ""
    count = "1 operation exceeds" if len(exceeding) == 1 else f"{len(exceeding):,} operations exceed"
    text = f"{count} a peak of the device, which is impossible: {named}{more}. {_reason(exceeding[0], peaks)}"
    return (
        Notice(
            "warning",
            text,
            "If the peaks are wrong, set them in your own file (TPUPROF_PEAKS).",
        ),
    )


def _peak(resource: str, peaks: Roofs) -> str:
    resource_index = RESOURCES.index(resource)
    value = (
        format_value(peaks.flops_per_s, "flops_per_s")
        if not resource_index
        else format_value(peaks.bytes_per_s[resource_index - 1], "bytes_per_s")
    )
    return f"{'peak compute' if not resource_index else f'peak {resource} bandwidth'} ({value})"


def _reason(worst: Excess, peaks: Roofs) -> str:
    """The likely reason of the largest excess."""
    if worst.time_ps < _TOO_SHORT_PS:
        return f"Likely reason: it takes {format_time(worst.time_ps)}, too short to be measured accurately."
    is_compute = worst.resource == "Compute"
    source = f" (source: {peaks.short_sources[0 if is_compute else 1]})"
    if is_compute:
        return (
            "Likely reason: the device ran above its rated clock, its FLOPs are fewer than counted (those of "
            f"Winograd convolutions are), or the peak is too low{source}."
        )
    return f"Likely reason: a cache served part of the bytes, or the peak is too low{source}."
