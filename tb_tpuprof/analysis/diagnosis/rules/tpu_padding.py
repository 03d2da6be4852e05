"""Matrix products whose dimensions do not fill the matrix unit."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import operation
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share
from tb_tpuprof.analysis.ops.roofline import NEAR_A_LIMIT
from tb_tpuprof.units import format_fraction

_LEAST = 0.10  # of the step
_FULL = 0.60  # of the unit's multiplications are useful


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for the product that wastes the most time. Padding is free where memory is the limit."""
    padded = (
        [op for op in evidence.device.ops if op.fill < _FULL and not op.hbm_fraction > NEAR_A_LIMIT]
        if evidence.device
        else []
    )
    worst = max(padded, key=lambda op: op.time_ps * (1 - op.fill), default=None)
    if worst is None or worst.time_ps < _LEAST * evidence.step_ps:
        return
    wasted = worst.time_ps * (1 - worst.fill)
    yield Finding(
        Cause.COMPUTE,
        f"{operation(worst)} takes {time_and_share(evidence, worst.time_ps)} of each step but uses only "
        f"{format_fraction(worst.fill)} of the matrix unit: the rest is padding ({worst.product}).",
        wasted,
        evidence.share(wasted),
        "The matrix unit multiplies whole tiles; the part that a matrix does not fill is padded with zeros.",
        Culprit("operation", worst.name),
        gain_ps=(0.0, wasted),
        fix="Make these dimensions multiples of the tile size: a larger or rounder batch size, hidden "
        "size or number of heads.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
