"""Programs that recompile, or functions that are traced again, in many steps."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.step_calls import COMPILE
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, gain, shown, time_and_share, total
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW

_LAMBDA = "<lambda>"
FIXES = {
    JAX: Fix(
        "Keep shapes, dtypes and static arguments the same in every step, and create the jitted function "
        "once, outside the loop. "
        "`jax.config.update('jax_explain_cache_misses', True)` logs why each call missed the cache.",
        "step = jax.jit(step_fn)              # once, before the loop\nfor batch in batches:\n    state = "
        "step(state, pad_to(batch, SIZE))",
    ),
    TENSORFLOW: Fix(
        "Create the `tf.function` once, pass tensors instead of Python numbers, and fix shapes with "
        "`input_signature` (or `reduce_retracing=True`).",
        "@tf.function(reduce_retracing=True)\ndef step(x, rate):                   # rate: a tensor, not a "
        "Python number\n    ...\n"
        "step(x, tf.constant(rate))",
    ),
    PYTORCH: Fix(
        "Mark varying sizes as dynamic, or pad them. `TORCH_LOGS=recompiles` logs the reason for each "
        "recompilation.",
        "step = torch.compile(step, dynamic=True)",
    ),
    "": Fix(
        "Keep shapes, dtypes and constants the same in every step, so that compiled programs are reused."
    ),
}


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding per program that the steps compile."""
    compiling = [part for part in evidence.parts if part.cause == Cause.COMPILATION]
    by_name: dict[str, list[int]] = {}
    for i, part in enumerate(compiling):
        by_name.setdefault(part.culprit.name, []).append(i)
    counts = {call.name: call for call in evidence.calls.of(COMPILE)}
    for name, rows in by_name.items():
        parts = [compiling[i] for i in rows]
        time = total(parts)
        caller = max(parts, key=lambda part: part.mean_ps).caller
        call = counts.get(name)
        n_steps = int((call.per_step > 0).sum()) if call else 0
        what = f"`{name}`" + (f", called by {caller.title}," if caller.name else "") if name else "a program"
        often = (
            f"; it compiles in {n_steps} of {evidence.n_steps} steps"
            if n_steps and evidence.n_steps > 1
            else ""
        )
        if name == _LAMBDA and caller.name:
            what = f"a lambda in {caller.title}"
        fix = fix_for(FIXES, evidence)
        yield Finding(
            Cause.COMPILATION,
            f"Compiling {what} takes {time_and_share(evidence, time)} of each step{often}.",
            time,
            evidence.share(time),
            _reason(evidence),
            Culprit("program", name, caller.file, caller.line)
            if name == _LAMBDA and caller.name
            else Culprit("program" if name else "", name),
            gain_ps=gain(evidence, time, 0.9, 2.15 if evidence.software.framework == TENSORFLOW else 1.75),
            fix=fix.text,
            snippet=fix.snippet,
            evidence=(
                *shown(evidence, parts, "The longest compilation"),
                *([Evidence(f"Called by {caller.title}")] if caller.name else []),
            ),
        )


def _reason(evidence: HostEvidence) -> str:
    if evidence.software.framework == TENSORFLOW:
        return (
            "TensorFlow retraces a tf.function when an argument has a new Python value, shape or dtype, or "
            "when the function object itself is new."
        )
    return (
        "A call recompiles when its shapes, dtypes, static arguments or function object differ from those "
        "of all earlier calls."
    )


RULE = Rule(
    Cause.COMPILATION,
    find,
    (
        Claim(r"\$(?:compiler|mlir|partial_eval)\.py:\d+ \w+", 3),
        Claim(
            r"\$pjit\.py:\d+ "
            r"(?:_infer_params\w*|_create_pjit_jaxpr|_pjit_lower\w*|_resolve_and_lower|trace_\w+)",
            3,
        ),
        Claim(
            r"\$(?:tracing_compilation|func_graph|concrete_function)\.py:\d+ "
            # `trace_function` and `_maybe_define_*` also look up functions that are already traced.
            r"(?:_create_\w+|func_graph_\w+)",
            3,
        ),
    ),
)
