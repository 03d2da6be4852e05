"""Many small programs, kernels or eager operations: each call takes the host longer than the device."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, LAUNCH, MANY, PROGRAM
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, gain, shown, time_and_share
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    JAX: Fix(
        "Put the whole step into one `jax.jit`, so that it is one call with fused operations, or several "
        "steps into a `lax.scan`.",
        "@jax.jit\ndef step(state, batch):\n    ...                              # everything that ran "
        "operation by operation",
    ),
    TENSORFLOW: Fix(
        "Put the step into a `tf.function` (in Keras: `compile(run_eagerly=False)`), optionally with "
        "`jit_compile=True`.",
        "@tf.function(jit_compile=True)\ndef step(x, y):\n    ...",
    ),
    PYTORCH: Fix(
        "Fuse operations with `torch.compile`, and use CUDA graphs where shapes are static.",
        "model = torch.compile(model, mode='reduce-overhead')",
    ),
    "": Fix("Put more work into each call: compile the step as one program."),
}

_COUNTS = 0.1  # of the time
_GAINS = {
    PROGRAM: (0.55, 1.0),
    EAGER: (0.6, 1.1),
    LAUNCH: (0.55, 1.0),
}  # of the time: the operations' own compute remains
_KERAS_GAINS = (0.85, 1.6)  # as a graph, its operations are fused and run in parallel
_KERAS_LOOP = "trainer.py"


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all dispatch, if there are many calls per step."""
    dispatches = [part for part in evidence.parts if part.cause == Cause.DISPATCH]
    time = sum(part.mean_ps for part in dispatches)
    counts = {kind: evidence.calls.per_step(kind) for kind in (PROGRAM, EAGER, LAUNCH)}
    kind = max(counts, key=lambda one: counts[one])
    n_calls = counts[kind]
    if not time or n_calls < MANY or evidence.kind != "CPU":  # launching.py covers accelerators
        return
    names = [call.name for call in evidence.calls.of(kind)]
    callers: dict[Culprit, float] = {}
    for part in dispatches:
        function = (
            part.caller
            if part.caller.name
            else part.culprit
            if part.culprit.kind == "function"
            else Culprit()
        )
        if function.name:
            callers[function] = callers.get(function, 0.0) + part.mean_ps
    culprit = max(callers, key=lambda one: callers[one]) if callers else Culprit("program", names[0])
    is_keras = kind == EAGER and culprit.file == _KERAS_LOOP
    what = {PROGRAM: "compiled programs", EAGER: "eager operations", LAUNCH: "kernels one by one"}[kind]
    where = (
        " in Keras's training step"
        if is_keras
        else f" in {culprit.title}"
        if culprit.kind == "function"
        else ""
    )
    fix = fix_for(FIXES, evidence)
    yield Finding(
        Cause.DISPATCH,
        f"Each step spends {time_and_share(evidence, time)} dispatching {n_calls:,.0f} {what}{where}.",
        time,
        evidence.share(time),
        _reason(evidence, time, n_calls),
        culprit,
        gain_ps=gain(evidence, time, *(_KERAS_GAINS if is_keras else _GAINS[kind])),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(
            *shown(evidence, dispatches, "The longest call"),
            Evidence(f"Most frequent calls: {', '.join(f'`{name}`' for name in names[:3])}"),
        ),
    )


def _reason(evidence: HostEvidence, time: float, n_calls: float) -> str:
    """The host's cost per call, and the compute of tiny programs that counts toward it."""
    each = f"{1e-6 * time / n_calls:,.3g} µs"
    if evidence.tiny_ps < _COUNTS * time:
        return f"Each call costs the host {each} on top of the operation itself."
    return (
        f"Each call takes {each}. The breakdown counts these calls, and the "
        f"{time_and_share(evidence, evidence.tiny_ps)} that their programs compute, as host compute; a "
        "single program would need little of it."
    )


RULE = Rule(Cause.DISPATCH, find)
