"""Cores that wait for one another at a barrier."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import group_finding
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule

_LEAST = 0.10  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    return group_finding(
        evidence,
        evidence.device.barrier if evidence.device else None,
        _LEAST,
        "In each step the cores wait {} for one another at a barrier",
        "The cores of a chip reach the barrier at different times: one has more work than the others.",
        "Give all cores the same amount of work: even shards, no work on a single core.",
    )


RULE = Rule(Cause.COMPUTE, find)
