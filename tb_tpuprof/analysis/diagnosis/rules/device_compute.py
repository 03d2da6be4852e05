"""Computing, which is what steps are for, and never a fault by itself: only operations that stay far below
every peak of their device.
"""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import operation, peak_evidence
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import DeviceOp, HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share
from tb_tpuprof.analysis.ops.roofline import NEAR_A_LIMIT
from tb_tpuprof.units import format_fraction

_LEAST = 0.10  # of the step


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """The operation that loses most beside its nearest peak."""
    device = evidence.device
    slow = (
        [op for op in device.ops if _is_slow(op) and op.time_ps >= _LEAST * evidence.step_ps]
        if device
        else []
    )
    if not device or not slow:
        return
    worst = max(slow, key=lambda op: op.lost_ps)
    yield Finding(
        Cause.COMPUTE,
        f"{operation(worst)} takes {time_and_share(evidence, worst.time_ps)} of each step and is far below "
        f"its peaks: {format_fraction(worst.flops_fraction)} of the {evidence.kind}'s compute, "
        f"{format_fraction(worst.hbm_fraction)} of its memory bandwidth.",
        worst.lost_ps,
        evidence.share(worst.lost_ps),
        "It waits for something else than arithmetic or memory: its shape is too small or narrow for the "
        "device, or its layout is unfit.",
        Culprit("operation", worst.name),
        gain_ps=(0.0, worst.lost_ps),
        fix="Give it more work at once (larger batch, dimensions that are multiples of the matrix unit's "
        "side), or write it so that the compiler can fuse it with its neighbours.",
        evidence=peak_evidence(device),
        confidence="medium",
    )


def _is_slow(op: DeviceOp) -> bool:
    """Whether its work is known and it comes near no peak."""
    return op.efficiency < NEAR_A_LIMIT


RULE = Rule(Cause.COMPUTE, find)
