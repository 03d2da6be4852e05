"""Kernels that leave most of a GPU empty: fewer blocks than it has multiprocessors."""

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
    """The longest such kernel."""
    device = evidence.device
    if device is None or not device.n_multiprocessors:
        return
    few = [
        kernel for kernel in device.kernels
        if 0 < kernel.n_blocks <= _FEW * device.n_multiprocessors and kernel.each_ps >= _LONG_PS
    ]  # fmt: skip
    worst = max(few, key=lambda kernel: kernel.time_ps, default=None)
    if worst is None or worst.time_ps < _LEAST * evidence.step_ps:
        return
    filled = worst.n_blocks / device.n_multiprocessors
    lost = worst.time_ps * (1 - filled)
    by_op = f" of `{worst.op}`" if worst.op and worst.op != worst.name else ""
    blocks = f"{worst.n_blocks:,} block{'s' * (worst.n_blocks > 1)}"
    yield Finding(
        Cause.COMPUTE,
        f"The kernel `{worst.name}`{by_op} takes {time_and_share(evidence, worst.time_ps)} of each step on "
        f"{blocks}: at least {device.n_multiprocessors - worst.n_blocks:,} of the GPU's "
        f"{device.n_multiprocessors:,} multiprocessors have nothing to do.",
        lost,
        evidence.share(lost),
        "A block runs on one multiprocessor: with fewer blocks than these the rest of the GPU is empty.",
        Culprit("operation", worst.op or worst.name),
        gain_ps=(0.0, lost),
        fix="Give the operation more to do at once (a larger batch, several of them as one), or use an "
        "implementation that splits it further.",
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
