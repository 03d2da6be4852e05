"""Copies between host and device that the step waits for."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import HostEvidence
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, by_culprit, fix_for, gain, most_called, python_option, shown, time_and_share, total
from tb_tpuprof.analysis.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    JAX: Fix(
        "Move arrays to the device once and keep them there; send the next step's batch while this step computes.",
        "table = jax.device_put(table)        # once, before the loop",
    ),
    TENSORFLOW: Fix(
        "Make tensors once, outside of the loop, and prefetch batches to the device.",
        "ds = ds.apply(tf.data.experimental.prefetch_to_device('/GPU:0'))",
    ),
    PYTORCH: Fix("Pin memory and copy without waiting.", "batch = batch.to('cuda', non_blocking=True)  # DataLoader(pin_memory=True)"),
    "": Fix("Move data once and keep it on the device."),
}  # fmt: skip


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for the copies of each function."""
    mine = [part for part in evidence.parts if part.cause == Cause.TRANSFERS]
    for culprit, parts in by_culprit(mine):
        time = total(parts)
        where = f" in {culprit.title}" if culprit.kind == "function" else f" (`{culprit.name}`)" if culprit.name else ""
        where = where or (f", most of it in `{most_called(parts)}`" if most_called(parts) else "")
        fix = fix_for(FIXES, evidence)
        yield Finding(
            Cause.TRANSFERS,
            f"Each step spends {time_and_share(evidence, time)} on copies between host and device{where}.",
            time,
            evidence.share(time),
            "Nothing computes during these copies.",
            culprit if culprit.kind == "function" else Culprit("call", culprit.name) if culprit.name else Culprit(),
            gain_ps=gain(evidence, time, 0.75, 1.1),
            fix=fix.text,
            snippet=fix.snippet,
            evidence=shown(evidence, parts, "The longest copy"),
            capture_option="" if culprit.kind == "function" else python_option(evidence),
        )


RULE = Rule(
    Cause.TRANSFERS,
    find,
    (
        Claim(
            r"DevicePut(?:WithSharding)?|BufferFromHostBuffer\w*|\w*::BufferFromHostBuffer(?:\(.*\))?|batched_device_put|TransferToDevice\w*",
            3,
        ),
        Claim(r"\$\S+\.py:\d+ (?:device_put|batched_device_put|_batched_device_put_impl)", 2),
    ),
)
