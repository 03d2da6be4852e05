"""The user's own Python on the thread that runs the steps, while nothing computes."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, ThreadActivity
from tb_tpuprof.analysis.diagnosis.rule import Rule
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
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.units import format_fraction

FIXES = {
    JAX: Fix(
        "Move it out of the step: compute it once before the loop, rewrite it with `jax.numpy` inside the "
        "jitted function, or run it in a thread while the device computes. Dispatch is asynchronous: work "
        "between dispatch and the first use of the result is hidden.",
        "loss = step(state, batch)            # returns at once\n"
        "prepare_next()                       # while the device computes\nreport(loss)",
    ),
    TENSORFLOW: Fix(
        "Move it out of the step: compute it once before the loop, or put it into the `tf.function` or the "
        "`tf.data` pipeline.",
        "ds = ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)",
    ),
    PYTORCH: Fix("Move it out of the step, or into the `Dataset`, so that the loader's workers run it."),
    "": Fix("Move it out of the step, or run it in another thread or process while the device computes."),
}
_CHEAPER = Fix("Make it cheaper, run it less often or on another host, or use a host with more processors.")
_WAITED = 0.5


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding per function or annotation of the user."""
    python = [part for part in evidence.parts if part.cause == Cause.PYTHON]
    for culprit, parts in by_culprit(python):
        time = total(parts)
        waits = sum(part.mean_ps for part in parts if part.klass == TimeClass.HOST_WAIT) > _WAITED * time
        call = most_called(parts)
        inside = f", most of it in `{call}`" if call and call != culprit.name else ""
        amount = time_and_share(evidence, time)
        if culprit.kind == "annotation":
            text = (
                f"{amount} of each step is in the annotation `{culprit.name}`, where no operation was "
                "traced: Python, other host work, or waiting."
            )
        elif waits:
            text = f"Each step waits {amount} in {culprit.title or 'Python'}{inside}."
        else:
            where = f", in {culprit.title}" if culprit.name else ""
            text = f"Each step spends {amount} in Python{where}{inside}."
        ahead = evidence.ahead if evidence.ahead and evidence.ahead.culprit == culprit else None
        option = python_option(evidence)
        fix = _CHEAPER if ahead else fix_for(FIXES, evidence)
        if culprit.kind == "annotation":  # what runs inside is unknown, and it may be the step's own work
            see = (
                f"Capture with `{option}` to see which functions run there"
                if option
                else "Annotate its parts"
            )
            fix = Fix(f"{see}, then move what the step does not need out of it.")
        # Python takes processors from computing on the host, not from an accelerator.
        most = 1.55 if evidence.kind == "CPU" and not waits else 1.15
        yield Finding(
            Cause.PYTHON,
            text,
            time,
            evidence.share(time),
            _reason(ahead),
            culprit,
            gain_ps=gain(evidence, time, 0.9 if waits else 0.75, most),
            fix=fix.text,
            snippet=fix.snippet,
            evidence=shown(evidence, parts, "The longest stretch"),
            capture_option=option if culprit.kind != "function" else "",
        )


def _reason(ahead: ThreadActivity | None) -> str:
    if ahead is None:
        return "Nothing computes meanwhile: the next operation is dispatched only after it returns."
    return (
        f"It runs during {format_fraction(ahead.running)} of the compute time and takes a processor from the "
        "computation: all of them are busy."
    )


RULE = Rule(Cause.PYTHON, find)
