"""Rematerialization: values that are computed again instead of stored."""

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
    remat = evidence.device.remat if evidence.device else None
    if remat is None or remat.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"Each step spends {time_and_share(evidence, remat.time_ps)} on rematerialization, computing "
        f"values again{most(remat)}.",
        remat.time_ps,
        evidence.share(remat.time_ps),
        "The compiler or `jax.checkpoint` trades time for memory: values are recomputed, not stored.",
        Culprit("operation", remat.top) if remat.top else Culprit(),
        gain_ps=(0.0, remat.time_ps),
        fix="Keep more values where memory allows: a more permissive `jax.checkpoint` policy, a smaller "
        "batch, or parameters sharded over more devices.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
