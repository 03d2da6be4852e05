"""Memory-bound compute: HBM bandwidth is nearly exhausted while the matrix units are not."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import operation, peak_evidence
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import time_and_share
from tb_tpuprof.units import format_fraction

HIGH, LOW = 0.70, 0.50  # of a peak (XProf, smart suggestion: memory bound)
_LEAST = 0.30  # of the step is computing
_HALF = 0.5  # half the bytes take half the time


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all compute. The upper bound of the gain assumes half the bytes, limited by the time
    that the arithmetic takes.
    """
    device = evidence.device
    if device is None or not device.hbm_fraction > HIGH or device.flops_fraction >= LOW:
        return
    if device.compute_ps < _LEAST * evidence.step_ps:
        return
    flops = device.flops_fraction if device.flops_fraction > 0 else 0.0
    max_gain = device.compute_ps * min(1 - flops, _HALF)
    bound_ops = [op for op in device.ops if op.hbm_fraction > HIGH]
    top = f"; its longest memory-bound operation is {operation(bound_ops[0])}" if bound_ops else ""
    arithmetic = f", and its matrix units reach only {format_fraction(flops)} of their peak" if flops else ""
    yield Finding(
        Cause.COMPUTE,
        f"The {evidence.kind} is memory-bound while it computes, "
        f"{time_and_share(evidence, device.compute_ps)} of each step: it uses "
        f"{format_fraction(device.hbm_fraction)} of its HBM bandwidth{arithmetic}{top}.",
        max_gain,
        evidence.share(max_gain),
        "The operations do too little arithmetic per byte: a faster matrix unit would change nothing.",
        Culprit("operation", bound_ops[0].name) if bound_ops else Culprit(),
        gain_ps=(0.0, max_gain),
        fix="Move fewer bytes: bfloat16 or 8-bit weights and activations, a larger batch (each weight "
        "that is read serves more rows), fused operations, no recomputation of what is kept in HBM.",
        evidence=peak_evidence(device),
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
