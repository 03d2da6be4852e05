"""Calls in which the host waits for a GPU, after which the GPU waits for the host."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.rules.synchronization import fix_of
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    often,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.frameworks import PYTORCH

_PINNED = Fix(
    "A copy from pageable memory blocks until it is done. Pin the memory, then copy asynchronously.",
    "loader = DataLoader(dataset, pin_memory=True)\nbatch = batch.to('cuda', non_blocking=True)",
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such calls; the most expensive one is the culprit."""
    waits = [
        part for part in evidence.parts if part.cause == Cause.SYNCHRONIZATION and part.klass not in COMPUTES
    ]
    time = total(waits)
    if evidence.kind == "CPU" or not time:
        return
    longest = max(waits, key=lambda part: part.mean_ps)
    sync = evidence.syncs[0] if evidence.syncs else None
    call = sync.call if sync else longest.call or longest.culprit.name
    culprit = sync.culprit if sync else longest.culprit
    where = f" in {culprit.title}" if culprit.kind == "function" else ""
    copies = (
        call.endswith("StreamSynchronize")
        and evidence.time_ps(Cause.TRANSFERS) > 0
        and evidence.software.framework == PYTORCH
    )
    fix = _PINNED if copies else fix_of(call, evidence)
    times = often(sync.per_step) if sync else "once"
    yield Finding(
        Cause.SYNCHRONIZATION,
        f"The {evidence.kind} is idle for {time_and_share(evidence, time)} of each step because the host "
        f"waits in `{call}`{where} and launches nothing until that returns.",
        time,
        evidence.share(time),
        f"The host waits for the {evidence.kind}, then the {evidence.kind} waits for the host; without the "
        "wait both would work at the same time.",
        culprit if culprit.kind == "function" else Culprit("call", call),
        gain_ps=(0.5 * time, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(
            *shown(evidence, waits, "The longest wait"),
            Evidence(f"`{call}` is called {times} per step."),
        ),
        confidence="medium",
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


RULE = Rule(Cause.SYNCHRONIZATION, find)
