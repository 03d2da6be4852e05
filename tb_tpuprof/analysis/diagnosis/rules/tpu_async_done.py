"""Waiting for asynchronous operations to finish: exposed copies, sends and collectives."""

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
    waits = evidence.device.waits if evidence.device else None
    if waits is None or waits.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"In each step the {evidence.kind} waits {time_and_share(evidence, waits.time_ps)} for asynchronous "
        f"operations{most(waits)}.",
        waits.time_ps,
        evidence.share(waits.time_ps),
        "A `-done` operation takes time only if its data has not arrived yet: too little compute runs "
        "between start and done.",
        Culprit("operation", waits.top) if waits.top else Culprit(),
        gain_ps=(0.0, waits.time_ps),
        fix="Start transfers earlier (prefetch weights and offloaded activations one layer ahead), or keep "
        "them on the device.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
