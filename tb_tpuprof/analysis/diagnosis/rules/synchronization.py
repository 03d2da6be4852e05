"""Waiting for the device's result in the middle of a step, before host work that could run meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import HostEvidence
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, python_option, shown, time_and_share, total
from tb_tpuprof.analysis.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    JAX: Fix(
        "Dispatch is asynchronous until a value is read: keep losses on the device, and read them every n-th step or one step late.",
        "losses.append(loss)                  # stays on the device\n"
        "if step % 100 == 0:\n    print(jnp.stack(losses).mean())\n    losses.clear()",
    ),
    TENSORFLOW: Fix(
        "Do not call `.numpy()`, `float()` or `print` on a tensor in each step: collect values in a `tf.keras.metrics.Mean` and read them "
        "every n-th step.",
        "mean.update_state(loss)\nif step % 100 == 0:\n    print(float(mean.result())); mean.reset_state()",
    ),
    PYTORCH: Fix(
        "Do not call `.item()`, `.cpu()` or `print` on a tensor in each step: accumulate on the device.",
        "total += loss.detach()\nif step % 100 == 0:\n    print(total.item() / 100); total.zero_()",
    ),
    "": Fix("Read results every n-th step, or one step late."),
}  # fmt: skip


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """The wait behind which most host time follows that could have been hidden."""
    mine = [part for part in evidence.parts if part.cause == Cause.SYNCHRONIZATION]
    hidden = [part for part in mine if part.call and part.culprit.name]
    for sync in evidence.syncs[:1]:
        lost = total(mine)
        if not hidden or not lost or evidence.kind != "CPU":  # of accelerators: device_waits.py
            continue
        work = next((part.caller.title for part in hidden if part.caller.name), "")
        doing = f" ({work})" if work else ""
        fix = fix_for(FIXES, evidence)
        where = f" in {sync.culprit.title}" if sync.culprit.kind == "function" else ""
        yield Finding(
            Cause.SYNCHRONIZATION,
            f"`{sync.call}`{where} waits for the device in each step: {time_and_share(evidence, lost)} of host work{doing} after it "
            "could run while the device computes.",
            lost,
            evidence.share(lost),
            "The host waits for the device, then the device waits for the host; without the wait both work at the same time.",
            sync.culprit,
            gain_ps=(0.5 * lost, lost),
            fix=fix.text,
            snippet=fix.snippet,
            evidence=shown(evidence, (), f"`{sync.call}` is called {sync.per_step.mean():.3g} times per step."),
            confidence="medium",
            capture_option="" if sync.culprit.kind == "function" else python_option(evidence),
        )


RULE = Rule(
    Cause.SYNCHRONIZATION,
    find,
    (
        Claim(r"np\.asarray\(jax\.Array\)|TFE_TensorHandleResolve|\$\S+ block_until_ready", 2),
        Claim(r"\$array\.py:\d+ (?:__float__|__int__|__bool__|__index__|__array__|item|tolist|_value|block_until_ready)", 2),
        Claim(r"\$api\.py:\d+ (?:block_until_ready|device_get)|\$ops\.py:\d+ (?:numpy|_numpy|__float__|__int__|__bool__|__array__)", 2),
        Claim(r"\$context\.py:\d+ (?:async_wait|sync_executors)", 2),
        Claim(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|aten::(?:item|_local_scalar_dense)", 2),
    ),
)
