"""TensorCores that wait for SparseCores."""

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
        evidence.device.sparse if evidence.device else None,
        _LEAST,
        "In each step the TensorCores wait {} for the SparseCores",
        "Embedding lookups take longer than the compute that overlaps with them.",
        "Pipeline the lookups of the next step with this step (`pipeline_execution_with_tensor_core`), "
        "or make the embedding tables smaller.",
    )


RULE = Rule(Cause.COMPUTE, find)
