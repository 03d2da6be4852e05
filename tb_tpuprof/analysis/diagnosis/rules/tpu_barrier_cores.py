"""Cores that wait for one another at a barrier."""

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
    barrier = evidence.device.barrier if evidence.device else None
    if barrier is None or barrier.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"In each step the cores wait {time_and_share(evidence, barrier.time_ps)} for one another at a "
        f"barrier{most(barrier)}.",
        barrier.time_ps,
        evidence.share(barrier.time_ps),
        "The cores of a chip reach the barrier at different times: one has more work than the others.",
        Culprit("operation", barrier.top) if barrier.top else Culprit(),
        gain_ps=(0.0, barrier.time_ps),
        fix="Give all cores the same amount of work: even shards, no work on a single core.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
