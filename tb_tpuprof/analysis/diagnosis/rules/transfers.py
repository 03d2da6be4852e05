"""Copies between host and device that the step waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    by_culprit,
    fix_for,
    gain,
    most_called,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.units import format_fraction

FIXES = {
    JAX: Fix(
        "Copy arrays to the device once and keep them there; copy the next step's batch while this step "
        "computes.",
        "table = jax.device_put(table)        # once, before the loop",
    ),
    TENSORFLOW: Fix(
        "Create tensors once, outside the loop, and prefetch batches to the device.",
        "ds = ds.apply(tf.data.experimental.prefetch_to_device('/GPU:0'))",
    ),
    PYTORCH: Fix(
        "Pin memory and copy asynchronously.",
        "batch = batch.to('cuda', non_blocking=True)  # DataLoader(pin_memory=True)",
    ),
    "": Fix("Copy data once and keep it on the device."),
}
_SLOWS = 0.03  # of the computing


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding per program for its arguments, and one per function for its other copies."""
    programs = {call.name for call in evidence.calls.of(PROGRAM)}
    copies = [part for part in evidence.parts if part.cause == Cause.TRANSFERS]
    for name in sorted({part.call for part in copies} & programs):
        parts = [part for part in copies if part.call == name]
        callers = [
            title
            for culprit, _ in by_culprit(parts)
            if culprit.kind == "function" and (title := culprit.title)
        ]
        where = f"for the arguments of `{name}`" + (f", which {callers[0]} calls" if callers else "")
        yield _finding(evidence, parts, Culprit("program", name), where)
    for culprit, parts in by_culprit([part for part in copies if part.call not in programs]):
        where = (
            f"in {culprit.title}"
            if culprit.kind == "function"
            else f"(`{culprit.name}`)"
            if culprit.name
            else ""
        )
        longest_call = most_called(parts)
        yield _finding(
            evidence, parts, culprit, where or (f"(most of it in `{longest_call}`)" if longest_call else "")
        )


def _finding(evidence: HostEvidence, parts: Sequence[Part], culprit: Culprit, where: str) -> Finding:
    time = total(parts)
    fix = fix_for(FIXES, evidence)
    amount = f"Each step spends {time_and_share(evidence, time)} on copies between host and device"
    return Finding(
        Cause.TRANSFERS,
        f"{amount} {where}." if where else f"{amount}.",
        time,
        evidence.share(time),
        _reason(evidence),
        culprit
        if culprit.kind in ("function", "program")
        else Culprit("call", culprit.name)
        if culprit.name
        else Culprit(),
        gain_ps=gain(evidence, time, 0.9, 1.4),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=shown(evidence, parts, "The longest copy"),
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


def _reason(evidence: HostEvidence) -> str:
    """Whether the step waits for the copies, or they slow down its compute."""
    if evidence.pools.lost(evidence.copies) < _SLOWS:
        return "Nothing computes during these copies."
    return (
        f"They overlap with {format_fraction(min(evidence.copies, 1.0))} of the compute time and take "
        "processors from the computation: part of their cost is that it takes longer."
    )


RULE = Rule(
    Cause.TRANSFERS,
    find,
    (
        Claim(r"[HD]2[HD] Dispatch|DevicePut(?:WithSharding)?|batched_device_put|TransferToDevice\w*", 3),
        Claim(r"BufferFromHostBuffer\w*|\w*::BufferFromHostBuffer(?:\(.*\))?", 3),
        Claim(r"\$\S+\.py:\d+ (?:device_put|batched_device_put|_batched_device_put_impl)", 2),
    ),
)
