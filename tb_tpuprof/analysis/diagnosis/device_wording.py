"""Sentences about accelerators, and the finding of a group of operations."""

from __future__ import annotations

from collections.abc import Iterator

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import DeviceEvidence, DeviceOp, Group, HostEvidence
from tb_tpuprof.analysis.diagnosis.wording import time_and_share
from tb_tpuprof.analysis.hlo.work import CUSTOM_CALL
from tb_tpuprof.units import format_fraction


def operation(op: DeviceOp) -> str:
    """`fusion.12` (convolution fusion)."""
    return f"`{op.name}`" + (f" ({op.category})" if op.category and op.category != CUSTOM_CALL else "")


def most(group: Group) -> str:
    """The operation that takes most of a group's time, with its share; empty if that is below a tenth."""
    share = group.top_ps / group.time_ps if group.time_ps else 0.0
    if not group.top or share < 0.1:
        return ""
    return f", {format_fraction(share)} of that in `{group.top}`" if group.n > 1 else f" (`{group.top}`)"


def group_finding(
    evidence: HostEvidence, group: Group | None, least: float, sentence: str, reason: str, fix: str
) -> Iterator[Finding]:
    """One finding for all operations of a group that takes at least the fraction `least` of the step.

    `sentence` has `{}` for the time, and no full stop.
    """
    if group is None or group.time_ps < least * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"{sentence.format(time_and_share(evidence, group.time_ps))}{most(group)}.",
        group.time_ps,
        evidence.share(group.time_ps),
        reason,
        Culprit("operation", group.top) if group.top else Culprit(),
        gain_ps=(0.0, group.time_ps),
        fix=fix,
        confidence="medium",
    )


def peak_evidence(device: DeviceEvidence) -> tuple[Evidence, ...]:
    """The sources of the peaks."""
    sources = [
        f"{what}: {source}"
        for what, source in zip(("compute", "memory"), device.sources, strict=True)
        if source
    ]
    return (Evidence(f"Peaks of {device.device or 'the device'}: {'; '.join(sources)}."),) if sources else ()
