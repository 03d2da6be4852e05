"""Debug output from inside a compiled program."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import group_finding
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule

_LEAST = 0.05  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    return group_finding(
        evidence,
        evidence.device.debug if evidence.device else None,
        _LEAST,
        "Each step spends {} on debug output",
        "The device sends values to the host and waits until they arrive.",
        "Remove `jax.debug.print` and `jax.debug.callback` from the compiled step, or call them every "
        "n-th step.",
    )


RULE = Rule(Cause.COMPUTE, find)
