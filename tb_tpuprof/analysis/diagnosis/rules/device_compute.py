"""Operations that stay far below every peak of their device. Computing by itself is no fault."""

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
    """One finding for the operation that loses the most time compared with its nearest peak."""
    device = evidence.device
    slow = (
        [op for op in device.ops if _is_slow(op) and op.time_ps >= _LEAST * evidence.step_ps]
        if device
        else []
    )
    if not device or not slow:
        return
    slowest = max(slow, key=lambda op: op.lost_ps)
    yield Finding(
        Cause.COMPUTE,
        f"{operation(slowest)} takes {time_and_share(evidence, slowest.time_ps)} of each step but reaches "
        f"only {format_fraction(slowest.flops_fraction)} of the {evidence.kind}'s peak compute rate and "
        f"{format_fraction(slowest.hbm_fraction)} of its memory bandwidth.",
        slowest.lost_ps,
        evidence.share(slowest.lost_ps),
        "Neither arithmetic nor memory bandwidth limits it: its shape is too small or narrow for the device, "
        "or its layout does not fit.",
        Culprit("operation", slowest.name),
        gain_ps=(0.0, slowest.lost_ps),
        fix="Give it more work per call (a larger batch, dimensions that are multiples of the matrix unit's "
        "size), or rewrite it so that the compiler can fuse it with its neighbors.",
        evidence=peak_evidence(device),
        confidence="medium",
    )


def _is_slow(op: DeviceOp) -> bool:
    """Whether its work is known and it stays far below every peak."""
    return op.efficiency < NEAR_A_LIMIT


RULE = Rule(Cause.COMPUTE, find)
