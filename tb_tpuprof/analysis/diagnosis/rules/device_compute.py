"""Computing, which is what steps are for: said where it is nearly all that a step does, and never a fault by itself."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import HostEvidence
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.rule import Rule


def find(_evidence: HostEvidence) -> Iterable[Finding]:
    """None: a healthy step computes."""
    return ()


RULE = Rule(Cause.COMPUTE, find)
