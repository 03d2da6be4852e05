"""Rematerialization: values that are computed again instead of stored."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import group_finding
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule

_LEAST = 0.10  # of the step


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    return group_finding(
        evidence,
        evidence.device.remat if evidence.device else None,
        _LEAST,
        "Each step spends {} on rematerialization, computing values again",
        "The compiler or `jax.checkpoint` trades time for memory: values are recomputed, not stored.",
        "Keep more values where memory allows: a more permissive `jax.checkpoint` policy, a smaller "
        "batch, or parameters sharded over more devices.",
    )


RULE = Rule(Cause.COMPUTE, find)
