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
    found = evidence.device.barrier if evidence.device else None
    if found is None or found.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"In each step the cores wait {time_and_share(evidence, found.time_ps)} for one another at a "
        f"barrier{most(found)}.",
        found.time_ps,
        evidence.share(found.time_ps),
        "The cores of a chip reach the barrier at different times: one has more to do.",
        Culprit("operation", found.top) if found.top else Culprit(),
        gain_ps=(0.0, found.time_ps),
        fix="Give all cores the same work: even shards, no work on one core alone.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
