"""Operations that only move data into another layout: copies, transposes, reshapes."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share

_LEAST = 0.30  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    moves = evidence.device.moves if evidence.device else None
    if moves is None or moves.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"Each step spends {time_and_share(evidence, moves.time_ps)} rearranging data into other "
        f"layouts{most(moves)}.",
        moves.time_ps,
        evidence.share(moves.time_ps),
        "Copies, transposes and reshapes compute nothing.",
        Culprit("operation", moves.top) if moves.top else Culprit(),
        gain_ps=(0.0, moves.time_ps),
        fix="Keep one layout throughout the step: avoid transposes and `reshape` between operations, donate "
        "buffers that are updated, and do not copy slices.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
