"""Python that the framework calls back, from inside a program or after each batch."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Claim, Rule
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    fix_for,
    gain,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW

FIXES = {
    JAX: Fix(
        "Rewrite it with `jax.numpy` so that it compiles with the program, or call it less often: "
        "`jax.debug.print` and `io_callback` only every n-th step.",
        "def body(x):\n    return jnp.where(x > 0, x, 0.0)      # instead of jax.pure_callback(fn, shape, x)",
    ),
    TENSORFLOW: Fix(
        "Replace `tf.py_function` with TensorFlow operations. In Keras, move the work from "
        "`on_train_batch_end` to `on_epoch_end`, or do it every n-th batch.",
        "def on_train_batch_end(self, batch, logs=None):\n    if batch % 100 == 0:\n        "
        "self.report(logs)",
    ),
    PYTORCH: Fix("Remove the hook from the training step, or run it every n-th step."),
    "": Fix("Move it out of the step, or run it every n-th step."),
}


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all callbacks; unnamed ones count toward the function that takes the most time."""
    callbacks = [part for part in evidence.parts if part.cause == Cause.CALLBACKS]
    if not callbacks:
        return
    named = [part for part in callbacks if part.culprit.kind == "function"]
    functions: dict[Culprit, float] = {}
    for part in named:
        functions[part.culprit] = functions.get(part.culprit, 0.0) + part.mean_ps
    operations = list(
        dict.fromkeys(
            part.culprit.name for part in callbacks if part.culprit.kind != "function" and part.culprit.name
        )
    )
    culprit = (
        max(functions, key=lambda one: functions[one])
        if functions
        else Culprit("operation", operations[0])
        if operations
        else Culprit()
    )
    time = total(callbacks)
    where = f"the callback {culprit.title}" if culprit.name else "a Python callback"
    by = (
        f" (operation {', '.join(f'`{name}`' for name in operations[:2])})"
        if functions and operations
        else ""
    )
    fix = fix_for(FIXES, evidence)
    yield Finding(
        Cause.CALLBACKS,
        f"Each step spends {time_and_share(evidence, time)} in {where}{by}.",
        time,
        evidence.share(time),
        "The program blocks until the callback returns. Callbacks run on the host and hold the GIL.",
        culprit,
        gain_ps=gain(evidence, time, 0.8, 1.3),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=shown(evidence, callbacks, "The longest call"),
        capture_option="" if functions else python_option(evidence),
    )


RULE = Rule(
    Cause.CALLBACKS,
    find,
    (
        Claim(
            r"(?:pure|io|debug)_callback[.\w]*|debug_print[.\w]*|xla_(?:ffi_)?(?:partitioned_)?python_\w*callback[.\w]*",
            4,
        ),
        Claim(r"(?:\S+:)?(?:Eager)?PyFunc(?:Stateless)?(?::\w+)?", 4),
        Claim(r"\$callback\.py:\d+ _(?:wrapped_)?callback|\$script_ops\.py:\d+ (?:__call__|_call|call)", 4),
        Claim(r"\$callback_list\.py:\d+ \w+", 4),
        # Match Keras's hooks by name: an annotation that begins inside one breaks the nesting.
        Claim(r"\$\S+\.py:\d+ on_(?:train|test|predict)_batch_(?:begin|end)", 4),
        Claim(r"\$\S+\.py:\d+ on_(?:epoch|train|test|predict)_(?:begin|end)", 4),
    ),
)
