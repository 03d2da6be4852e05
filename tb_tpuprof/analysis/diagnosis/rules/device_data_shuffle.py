"""Operations that only move data into another layout: copies, transposes, reshapes."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import group_finding
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule

_LEAST = 0.30  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    return group_finding(
        evidence,
        evidence.device.moves if evidence.device else None,
        _LEAST,
        "Each step spends {} rearranging data into other layouts",
        "Copies, transposes and reshapes compute nothing.",
        "Keep one layout throughout the step: avoid transposes and `reshape` between operations, donate "
        "buffers that are updated, and do not copy slices.",
    )


RULE = Rule(Cause.COMPUTE, find)
