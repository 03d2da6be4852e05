"""Waiting for the device's result in mid-step, before host work that could overlap with its compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, HostEvidence, Part
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    fix_for,
    gain,
    often,
    python_option,
    shown,
    time_and_share,
    total,
    usual,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    JAX: Fix(
        "Dispatch is asynchronous until a value is read: keep losses on the device, and read them every n-th "
        "step or one step later.",
        "losses.append(loss)                  # stays on the device\n"
        "if step % 100 == 0:\n    print(jnp.stack(losses).mean())\n    losses.clear()",
    ),
    TENSORFLOW: Fix(
        "Do not call `.numpy()`, `float()` or `print` on a tensor in each step: collect values in a "
        "`tf.keras.metrics.Mean` and read them every n-th step.",
        "mean.update_state(loss)\nif step % 100 == 0:\n    print(float(mean.result())); mean.reset_state()",
    ),
    PYTORCH: Fix(
        "Do not call `.item()`, `.cpu()` or `print` on a tensor in each step: accumulate on the device.",
        "total += loss.detach()\nif step % 100 == 0:\n    print(total.item() / 100); total.zero_()",
    ),
    "": Fix("Read results every n-th step, or one step later."),
}

# Calls that wait for all of a GPU's work; reading a tensor waits for its stream only.
_WHOLE_DEVICE = ("cudaDeviceSynchronize", "hipDeviceSynchronize")
_WITHOUT_WAITING = Fix(
    "Do not call `torch.cuda.synchronize()` in each step: it waits for all of the GPU's work. Time steps "
    "with CUDA events or the profiler, and read results every n-th step.",
    "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
    "start.record(); step(batch); end.record()   # read start.elapsed_time(end) some steps later",
)

_BEHIND, _TURNS, _IDLE = "behind", "turns", "idle"
_LEAST_USUAL = 0.02


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """Host work after a wait, devices that take turns because of a wait, and waits while nothing computes."""
    waits = [part for part in evidence.parts if part.cause == Cause.SYNCHRONIZATION]
    takes_turns = bool(evidence.turns_ps.any())
    kinds = {
        _BEHIND: [part for part in waits if part.klass not in COMPUTES],
        _TURNS if takes_turns else _IDLE: [part for part in waits if part.klass in COMPUTES],
    }
    for kind, parts in kinds.items():
        is_usual = (
            kind != _IDLE or usual(parts) >= _LEAST_USUAL * evidence.step_ps
        )  # excludes the scheduler's, in occasional steps
        if (
            total(parts) and is_usual and (evidence.kind == "CPU" or kind == _TURNS)
        ):  # otherwise device_waits.py reports it
            yield _finding(evidence, parts, kind)


def fix_of(call: str, evidence: HostEvidence) -> Fix:
    """What to do about a wait in `call`, in the terms of the run's framework."""
    if evidence.software.framework == PYTORCH and call in _WHOLE_DEVICE:
        return _WITHOUT_WAITING
    return fix_for(FIXES, evidence)


def _finding(evidence: HostEvidence, parts: Sequence[Part], kind: str) -> Finding:
    lost = total(parts)
    first = parts[0]
    culprit = first.culprit if first.culprit.name else first.caller
    sync = next(
        (one for one in evidence.syncs if one.culprit == culprit),
        evidence.syncs[0] if evidence.syncs else None,
    )
    where = f" in {culprit.title}" if culprit.kind == "function" else ""
    called = first.call or (sync.call if sync else "")
    call = f"`{called}`{where}" if called and called != culprit.name else culprit.title if called else ""
    amount = time_and_share(evidence, lost)
    if kind == _TURNS:
        waits = f": {call} waits for one before the next starts" if call else ""
        text = f"The devices take turns{waits}. {amount} of each step could run on several devices at once."
        reason = (
            "Only one device computes at a time. Devices that do not need each other's results can run in "
            "parallel."
        )
    elif kind == _IDLE:
        where = f"in {call}" if call else "waiting for results"
        text = f"Each step spends {amount} {where} while nothing computes."
        reason = "The call returns when the result is on the host; until then its thread does nothing else."
    else:
        work = next((part.caller.title for part in parts if part.caller.name), "")
        where = f", in {work}," if work else ""
        could = f"{amount} of host work after it{where} could run while the device computes"
        text = f"{call or 'The host'} waits for the device in each step: {could}."
        reason = (
            "The host waits for the device, then the device waits for the host; without the wait both "
            "would work at the same time."
        )
    fix = fix_of(called, evidence)
    return Finding(
        Cause.SYNCHRONIZATION,
        text,
        lost,
        evidence.share(lost),
        reason,
        culprit,
        gain_ps=gain(evidence, lost, 0.85, 1.4),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=shown(evidence, (), f"{call} is called {often(sync.per_step)} per step.") if sync else (),
        confidence="medium",
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


RULE = Rule(
    Cause.SYNCHRONIZATION,
    find,
    (
        Claim(r"np\.asarray\(jax\.Array\)|TFE_TensorHandleResolve|\$\S+ block_until_ready", 2),
        Claim(
            r"\$array\.py:\d+ "
            r"(?:__float__|__int__|__bool__|__index__|__array__|item|tolist|_value|block_until_ready)",
            2,
        ),
        Claim(
            r"\$api\.py:\d+ (?:block_until_ready|device_get)|\$ops\.py:\d+ "
            r"(?:numpy|_numpy|__float__|__int__|__bool__|__array__)",
            2,
        ),
        Claim(r"\$context\.py:\d+ (?:async_wait|sync_executors)", 2),
        Claim(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|aten::(?:item|_local_scalar_dense)", 2),
    ),
)
