"""What is computed again because it was not kept: rematerialization."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share

_LEAST = 0.10  # of the step


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    found = evidence.device.remat if evidence.device else None
    if found is None or found.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"Each step computes {time_and_share(evidence, found.time_ps)} again that it had computed "
        f"before{most(found)}.",
        found.time_ps,
        evidence.share(found.time_ps),
        "The compiler, or `jax.checkpoint`, trades time for memory.",
        Culprit("operation", found.top) if found.top else Culprit(),
        gain_ps=(0.0, found.time_ps),
        fix="Keep more where memory allows: a laxer `jax.checkpoint` policy, a smaller batch, or parameters "
        "spread over more devices.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
