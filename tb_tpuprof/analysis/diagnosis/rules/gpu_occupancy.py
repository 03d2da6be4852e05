"""Kernels with fewer blocks than the GPU has multiprocessors."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share

_LEAST = 0.10  # of the step
_FEW = 0.5  # of the multiprocessors
_LONG_PS = 20_000_000


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for the longest such kernel."""
    device = evidence.device
    if device is None or not device.n_multiprocessors:
        return
    underfilled = [
        kernel for kernel in device.kernels
        if 0 < kernel.n_blocks <= _FEW * device.n_multiprocessors and kernel.each_ps >= _LONG_PS
    ]  # fmt: skip
    longest = max(underfilled, key=lambda kernel: kernel.time_ps, default=None)
    if longest is None or longest.time_ps < _LEAST * evidence.step_ps:
        return
    filled = longest.n_blocks / device.n_multiprocessors
    lost = longest.time_ps * (1 - filled)
    by_op = f" of `{longest.op}`" if longest.op and longest.op != longest.name else ""
    blocks = f"{longest.n_blocks:,} block{'s' * (longest.n_blocks > 1)}"
    yield Finding(
        Cause.COMPUTE,
        f"The kernel `{longest.name}`{by_op} takes {time_and_share(evidence, longest.time_ps)} of each step "
        f"with only {blocks}: at least {device.n_multiprocessors - longest.n_blocks:,} of the GPU's "
        f"{device.n_multiprocessors:,} multiprocessors are idle.",
        lost,
        evidence.share(lost),
        "A block runs on one multiprocessor: with fewer blocks, the other multiprocessors have no work.",
        Culprit("operation", longest.op or longest.name),
        gain_ps=(0.0, lost),
        fix="Give the operation more parallel work (a larger batch, several operations merged into one), or "
        "use an implementation that splits it into more blocks.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
