"""32-bit matrix products on a GPU whose tensor cores accept 16 bits."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most as longest
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, time_and_share
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    PYTORCH: Fix(
        "Compute in bfloat16 (in float16 on GPUs before Ampere).",
        "with torch.autocast('cuda', dtype=torch.bfloat16):\n    loss = loss_of(model(x), y)",
    ),
    TENSORFLOW: Fix(
        "Compute in bfloat16 or float16.", "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')"
    ),
    JAX: Fix(
        "Compute in bfloat16, or allow TF32.", "jax.config.update('jax_default_matmul_precision', 'bfloat16')"
    ),
    "": Fix("Compute in bfloat16 or TF32."),
}
_LEAST = 0.15  # of the step
_FASTER = (0.1, 0.5)  # of the time, saved by 16 bits on tensor cores: less where memory is the limit


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all such kernels."""
    wide = evidence.device.wide if evidence.device else None
    if wide is None or wide.time_ps < _LEAST * evidence.step_ps:
        return
    time = wide.time_ps
    fix = fix_for(FIXES, evidence)
    max_gain = _FASTER[1] * time
    yield Finding(
        Cause.COMPUTE,
        "32-bit matrix products and convolutions, which do not use tensor cores, take "
        f"{time_and_share(evidence, time)} of each step{longest(wide)}.",
        max_gain,
        evidence.share(max_gain),
        "Tensor cores multiply 16-bit matrices at many times the rate of 32-bit arithmetic.",
        Culprit("operation", wide.top),
        gain_ps=(_FASTER[0] * time, max_gain),
        fix=fix.text,
        snippet=fix.snippet,
        confidence="medium",
    )


RULE = Rule(Cause.COMPUTE, find)
