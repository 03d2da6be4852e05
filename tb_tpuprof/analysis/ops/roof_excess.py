"""Operations that seem to do more than the hardware can: rates above a peak, and why that may be.

No operation is faster than its device, so such a rate means that a number it is made of is wrong: the peak,
the work or the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import RESOURCES, Roofs, rates, roofs
from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time, format_value

LIMIT = 1.05  # of a peak: clocks run a little above the rated one
_TOO_SHORT_PS = 1_000_000
_N_NAMED = 3


@dataclass(frozen=True)
class Excess:
    """An operation above a peak: its `fraction` of it, the resource, and the mean time of an occurrence in
    ps.
    """

    op: str
    resource: str
    fraction: float
    time_ps: float


@once
def roof_excesses(trace: Trace) -> tuple[Excess, ...]:
    """Operations of one host above LIMIT of a peak, those furthest above it first. Empty where nothing names
    an HLO operation.
    """
    return excesses(hlo_ops(trace), roofs(trace))


def excesses(ops: HloOps, peaks: Roofs) -> tuple[Excess, ...]:
    """The same of given operations. On CPUs no peak is known."""
    if not len(ops) or not (peaks.flops_per_s or any(peaks.bytes_per_s)):
        return ()
    speed = rates(ops.work, ops.work_ps, peaks)
    above = np.flatnonzero(~ops.is_container & (np.nan_to_num(speed.efficiency) > LIMIT))
    above = above[np.argsort(-speed.efficiency[above], kind="stable")]
    each = np.divide(ops.work_ps, np.maximum(ops.n_occurrences, 1))
    return tuple(
        Excess(ops.name[i], RESOURCES[speed.nearest[i]], float(speed.efficiency[i]), float(each[i]))
        for i in above.tolist()
    )


def excess_notices(found: Sequence[Excess], peaks: Roofs) -> tuple[Notice, ...]:
    """What to report of operations above a peak: which, by how much, and the likely reason."""
    if not found:
        return ()
    named = ", ".join(
        f"`{one.op}` at {format_fraction(one.fraction)} of {_peak(one.resource, peaks)}"
        for one in found[:_N_NAMED]
    )
    more = f", and {len(found) - _N_NAMED:,} more" if len(found) > _N_NAMED else ""
    count = "1 operation is" if len(found) == 1 else f"{len(found):,} operations are"
    text = (
        f"{count} above a peak of the device, which is not possible: {named}{more}. "
        f"{_reason(found[0], peaks)}"
    )
    return (
        Notice(
            "warning",
            text,
            "State the device's peaks in a file of your own (TPUPROF_PEAKS) if these are wrong.",
        ),
    )


def _peak(resource: str, peaks: Roofs) -> str:
    at = RESOURCES.index(resource)
    value = (
        format_value(peaks.flops_per_s, "flops_per_s")
        if not at
        else format_value(peaks.bytes_per_s[at - 1], "bytes_per_s")
    )
    return f"{'peak compute' if not at else f'peak {resource} bandwidth'} ({value})"


def _reason(worst: Excess, peaks: Roofs) -> str:
    """The likely reason of the largest excess."""
    if worst.time_ps < _TOO_SHORT_PS:
        return (
            f"Likely reason: it takes {format_time(worst.time_ps)}, too short a time to be measured exactly."
        )
    is_compute = worst.resource == "Compute"
    source = f" (source: {peaks.short_sources[0 if is_compute else 1]})"
    if is_compute:
        return (
            "Likely reason: the device ran above its rated clock, its FLOPs are fewer than counted, or "
            f"the peak is too low{source}."
        )
    return f"Likely reason: a cache served part of the bytes, or the peak is too low{source}."
