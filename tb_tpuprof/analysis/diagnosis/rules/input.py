"""Waiting for data from loaders, generators, queues or tf.data."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    by_culprit,
    fix_for,
    gain,
    most_gain,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW, TORCH_WORKERS
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.units import format_fraction

FIXES = {
    JAX: Fix(
        "Prepare batches ahead of the step, in a thread or in processes, and copy them to the device before "
        "they are needed.",
        "def fill(ready, batches):\n    for batch in batches:\n        ready.put(jax.device_put(batch))\n\n"
        "ready = queue.Queue(2)\nthreading.Thread(target=fill, args=(ready, batches), daemon=True).start()\n"
        "batch = ready.get()",
    ),
    TENSORFLOW: Fix(
        "Let tf.data run in parallel and prefetch.",
        "ds = ds.map(fn, num_parallel_calls=tf.data.AUTOTUNE).batch(n).prefetch(tf.data.AUTOTUNE)",
    ),
    PYTORCH: Fix(
        "Load batches in worker processes, ahead of the step.",
        "DataLoader(dataset, batch_size=n, num_workers=8, persistent_workers=True, pin_memory=True)",
    ),
    "": Fix("Prepare data ahead of the step, in other threads or processes."),
}
_MORE_WORKERS = Fix(
    "Use more worker processes, or make loading cheaper (decoding, transforms, storage).",
    "DataLoader(dataset, batch_size=n, num_workers=16, prefetch_factor=4, persistent_workers=True)",
)
_PRODUCES = 0.02
_MOST = 0.5
_REASON = "Batches are prepared only when a step requests them, or more slowly than the steps consume them."
_REASON_SLOWED = (
    "The data arrives in time, but the thread that prepares it takes processors from the computation: all "
    "of them are busy."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all waiting for data; the culprit is what prepares it, if the trace shows that."""
    waits = [part for part in evidence.parts if part.cause == Cause.INPUT]
    if not waits:
        return
    time = total(waits)
    culprit = by_culprit(waits)[0][0]
    producer = next(
        (
            one
            for one in evidence.other_threads
            if one.hands_over and one.culprit.name and one.running + one.waiting > _PRODUCES
        ),
        None,
    )
    waits_for_thread = producer is not None and culprit.name in ("get", "__next__", "wait", "acquire", "")
    where = f" in {culprit.title}" if culprit.name and culprit.kind in ("function", "annotation") else ""
    waits_for_stage = max(waits, key=lambda part: part.mean_ps).klass == TimeClass.HOST_WAIT_INPUT
    if evidence.stage and (waits_for_stage or culprit.kind != "function"):
        culprit = Culprit("stage", evidence.stage)
        where = f", most of it for the tf.data stage `{evidence.stage}`"
    if producer and waits_for_thread:
        culprit, where = (
            producer.culprit,
            f": the thread that prepares it spends its time in {producer.culprit.title}",
        )
    has_workers = TORCH_WORKERS in culprit.name
    fix = _MORE_WORKERS if has_workers else fix_for(FIXES, evidence)
    slowed = total([part for part in waits if part.klass in COMPUTES])
    text, reason = f"Each step waits {time_and_share(evidence, time)} for data{where}.", _REASON
    if producer and slowed > _MOST * time:
        culprit, reason = producer.culprit, _REASON_SLOWED
        text = (
            f"Each step loses {time_and_share(evidence, time)} to {culprit.title}, which prepares data on "
            "another thread."
        )
    yield Finding(
        Cause.INPUT,
        text,
        time,
        evidence.share(time),
        reason,
        culprit
        if culprit.kind in ("function", "annotation", "stage")
        else Culprit("stage", culprit.name)
        if culprit.name
        else Culprit(),
        gain_ps=_gain(evidence, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(*shown(evidence, waits, "The longest wait"), *_producers(evidence)),
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


def _gain(evidence: HostEvidence, time: float) -> tuple[float, float]:
    """Waits for data slow computing on the host as well, not on an accelerator. Python stages that run ahead
    may use processors too: the computation would be faster without them.
    """
    least, most = gain(evidence, time, 0.85, 1.5 if evidence.kind == "CPU" else 1.25)
    slowed = evidence.pools.lost(evidence.stages) * evidence.time_ps(Cause.COMPUTE)
    return least, min(most + slowed, most_gain(evidence, time))


def _producers(evidence: HostEvidence) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            f"Another thread runs {one.culprit.title} for {format_fraction(one.running)} of the time and "
            "hands over its results."
        )
        for one in evidence.other_threads
        if one.hands_over and one.culprit.name
    )[:2]


RULE = Rule(Cause.INPUT, find)
