"""Sentence parts about accelerators."""

from __future__ import annotations

from tb_tpuprof.analysis.diagnosis.finding import Evidence
from tb_tpuprof.analysis.diagnosis.records import DeviceEvidence, DeviceOp, Group
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


def peak_evidence(device: DeviceEvidence) -> tuple[Evidence, ...]:
    """The sources of the peaks."""
    sources = [
        f"{what}: {source}"
        for what, source in zip(("compute", "memory"), device.sources, strict=True)
        if source
    ]
    return (Evidence(f"Peaks of {device.device or 'the device'}: {'; '.join(sources)}."),) if sources else ()
