"""GPUs that wait for their host, which launches kernels more slowly than they run or does something else."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part, Sync
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.rules import dispatch, synchronization
from tb_tpuprof.analysis.diagnosis.step_calls import LAUNCH, MANY
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    fix_for,
    listed,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.units import format_time

_SLOW_PS = 200_000_000  # per launch: a launch itself takes microseconds
_PER_STEP = 0.8
_LOOK = (
    "Inspect the call on the timeline. A first call loads or compiles kernels, and memory is allocated "
    "once; if the call recurs in every step, move it out of the step."
)
_COMPILED_GRAPH = Fix(
    "The step already runs as a graph. Compile it with XLA (`jit_compile=True`, also in Keras's `compile`), "
    "which fuses its operations into fewer kernels, or make each kernel larger with a larger batch.",
    "@tf.function(jit_compile=True)\ndef step(x, y):\n    ...",
)
_UPDATES = (
    "XLA updates its command buffer when arrays have other addresses than in the previous step. Donate the "
    "arguments that a step replaces (`jax.jit(step, donate_argnums=0)`), and do not wait for each step, so "
    "that updates overlap with compute."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for the time a GPU is idle while the host is in calls of the framework or the runtime."""
    dispatches = [part for part in evidence.parts if part.cause == Cause.DISPATCH]
    time = total(dispatches)
    if evidence.kind == "CPU" or not time:
        return
    kernels = evidence.device.n_kernels if evidence.device else 0.0
    launches = evidence.calls.per_step(LAUNCH) or kernels
    culprit = _culprit(dispatches)
    call = _call(dispatches, culprit)
    innermost = evidence.device.runtime_calls if evidence.device else ()
    if innermost and innermost[0][1] * 2 > time:
        call = f"`{innermost[0][0]}`"
    where = f" in {culprit.title}" if culprit.kind == "function" else ""
    amount = time_and_share(evidence, time)
    many = launches >= MANY and time < _SLOW_PS * launches
    wait = _wait(evidence, time)
    if many:
        one_by_one = "" if kernels > 2 * launches else " one by one"
        text = (
            f"The {evidence.kind} is idle for {amount} of each step while the host launches "
            f"{launches:,.0f} kernels{one_by_one}{where}."
        )
        if kernels > 2 * launches:
            text = (
                f"The {evidence.kind} is idle for {amount} of each step while the host issues "
                f"{launches:,.0f} launches{where}."
            )
    else:
        doing = f"is in {call}" if call else "prepares its work"
        text = f"The {evidence.kind} is idle for {amount} of each step while the host {doing}{where}."
    fix = synchronization.fix_of(wait.call, evidence) if wait else _launching_fix(evidence, dispatches)
    yield Finding(
        Cause.DISPATCH,
        text,
        time,
        evidence.share(time),
        _reason(evidence, time, launches, many, wait),
        culprit if culprit.name or call.count("`") != 2 else Culprit("call", call.strip("`")),
        gain_ps=(0.6 * time, time) if many or wait else (0.0, time),
        fix=fix.text if many or wait else _UPDATES if "command_buffer::update" in call else _LOOK,
        snippet=fix.snippet if many or wait else "",
        evidence=(
            *shown(evidence, dispatches, "The longest call"),
            *((Evidence(f"Most of it: {call}."),) if call and many else ()),
        ),
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


def _launching_fix(evidence: HostEvidence, dispatches: list[Part]) -> Fix:
    """How to launch less: a step that TensorFlow's graph executor launches is in a `tf.function` already."""
    by_executor = total([part for part in dispatches if EXECUTOR in (part.call, part.culprit.name)])
    return _COMPILED_GRAPH if 2 * by_executor > total(dispatches) else fix_for(dispatch.FIXES, evidence)


def _wait(evidence: HostEvidence, time: float) -> Sync | None:
    """The wait in each step without which compute would hide the launches: the device computes for longer
    than the host needs to launch.
    """
    sync = evidence.syncs[0] if evidence.syncs else None
    if sync is None or not len(sync.per_step) or sync.per_step.mean() < _PER_STEP:
        return None
    return sync if float(sync.computed_ps.mean()) >= time else None


def _reason(evidence: HostEvidence, time: float, launches: float, many: bool, wait: Sync | None) -> str:
    computes = format_time(evidence.time_ps(Cause.COMPUTE))
    if wait:
        return (
            f"`{wait.call}` waits for the {evidence.kind} in each step, so the host cannot launch ahead: "
            f"otherwise {computes} of compute would hide the launches."
        )
    if many:
        return (
            f"Each launch costs the host {format_time(time / launches)}; the kernels of a step run for "
            f"{computes} in total."
        )
    return (
        f"A launch takes microseconds, and the kernels of a step run for {computes} in total: the host "
        "spends this time on something else."
    )


def _culprit(parts: list[Part]) -> Culprit:
    """The user's function that accounts for most of the time; empty if none does."""
    by_function: dict[Culprit, float] = {}
    for part in parts:
        function = part.caller if part.caller.name else part.culprit
        if function.kind == "function":
            by_function[function] = by_function.get(function, 0.0) + part.mean_ps
    longest = max(by_function, key=lambda one: by_function[one], default=Culprit())
    return longest if by_function.get(longest, 0.0) * 2 > total(parts) else Culprit()


def _call(parts: list[Part], culprit: Culprit) -> str:
    """The calls that take the most time, as text."""
    by_call: dict[str, float] = {}
    for part in parts:
        name = part.call or (part.culprit.name if part.culprit.kind != "function" else "")
        if name and name != culprit.name:
            by_call[name] = by_call.get(name, 0.0) + part.mean_ps
    ranked = sorted(by_call, key=lambda name: -by_call[name])
    if not ranked:
        return ""
    if by_call[ranked[0]] * 2 > total(parts):
        return f"`{ranked[0]}`"
    if len(ranked) > 2:
        return f"`{ranked[0]}`, `{ranked[1]}` and other calls"
    return listed(ranked)


RULE = Rule(Cause.DISPATCH, find)
