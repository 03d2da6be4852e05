"""TensorCores that wait for SparseCores."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share

_LEAST = 0.10  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    waits = evidence.device.sparse if evidence.device else None
    if waits is None or waits.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"In each step the TensorCores wait {time_and_share(evidence, waits.time_ps)} for the "
        f"SparseCores{most(waits)}.",
        waits.time_ps,
        evidence.share(waits.time_ps),
        "Embedding lookups take longer than the compute that overlaps with them.",
        Culprit("operation", waits.top) if waits.top else Culprit(),
        gain_ps=(0.0, waits.time_ps),
        fix="Pipeline the lookups of the next step with this step (`pipeline_execution_with_tensor_core`), "
        "or make the embedding tables smaller.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
