"""Debug output from inside a compiled program."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share

_LEAST = 0.05  # of the step (XProf, smart suggestion)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such operations."""
    debug = evidence.device.debug if evidence.device else None
    if debug is None or debug.time_ps < _LEAST * evidence.step_ps:
        return
    yield Finding(
        Cause.COMPUTE,
        f"Each step spends {time_and_share(evidence, debug.time_ps)} on debug output{most(debug)}.",
        debug.time_ps,
        evidence.share(debug.time_ps),
        "The device sends values to the host and waits until they arrive.",
        Culprit("operation", debug.top) if debug.top else Culprit(),
        gain_ps=(0.0, debug.time_ps),
        fix="Remove `jax.debug.print` and `jax.debug.callback` from the compiled step, or call them every "
        "n-th step.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
