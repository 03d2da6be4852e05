"""GPUs that wait for their host: it prepares and launches kernels more slowly than they run, or does
something else instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part, Sync
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.rules import dispatch, synchronization
from tb_tpuprof.analysis.diagnosis.step_calls import LAUNCH, MANY
from tb_tpuprof.analysis.diagnosis.wording import fix_for, python_option, shown, time_and_share, total
from tb_tpuprof.units import format_time

_SLOW_PS = 200_000_000  # per launch: a launch itself takes microseconds
_PER_STEP = 0.8
_LOOK = (
    "Look at the call on the timeline: a first call loads or compiles kernels, memory is allocated once; if "
    "it recurs in every step, take it out of the step."
)
_UPDATES = (
    "XLA updates its command buffer where arrays lie at other addresses than in the step before: donate the "
    "arguments that a step replaces (`jax.jit(step, donate_argnums=0)`), and do not wait for each step, so "
    "that updating is hidden behind computing."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all time in which a GPU is idle while the host is in the framework's or the runtime's
    calls.
    """
    mine = [part for part in evidence.parts if part.cause == Cause.DISPATCH]
    time = total(mine)
    if evidence.kind == "CPU" or not time:
        return
    kernels = evidence.device.n_kernels if evidence.device else 0.0
    launches = evidence.calls.per_step(LAUNCH) or kernels
    culprit = _culprit(mine)
    call = _call(mine, culprit)
    innermost = evidence.device.runtime_calls if evidence.device else ()
    if innermost and innermost[0][1] * 2 > time:
        call = f"`{innermost[0][0]}`"
    where = f", in {culprit.title}" if culprit.kind == "function" else ""
    amount = time_and_share(evidence, time)
    many = launches >= MANY and time < _SLOW_PS * launches
    wait = _wait(evidence, time)
    if many:
        one_by_one = "" if kernels > 2 * launches else ", one by one"
        text = (
            f"The {evidence.kind} is idle for {amount} of each step while the host launches "
            f"{launches:,.0f} kernels{one_by_one}{where}."
        )
        if kernels > 2 * launches:
            text = (
                f"The {evidence.kind} is idle for {amount} of each step while the host makes "
                f"{launches:,.0f} launches{where}."
            )
    else:
        doing = f"is in {call}" if call else "prepares its work"
        text = f"The {evidence.kind} is idle for {amount} of each step while the host {doing}{where}."
    fix = fix_for(synchronization.FIXES if wait else dispatch.FIXES, evidence)
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
            *shown(evidence, mine, "The longest call"),
            *((Evidence(f"Most of it: {call}."),) if call and many else ()),
        ),
        capture_option="" if culprit.kind == "function" else python_option(evidence),
    )


def _wait(evidence: HostEvidence, time: float) -> Sync | None:
    """The wait in each step without which launching would be hidden: the device computes for longer than the
    host needs to launch.
    """
    sync = evidence.syncs[0] if evidence.syncs else None
    if sync is None or not len(sync.per_step) or sync.per_step.mean() < _PER_STEP:
        return None
    return sync if float(sync.computed_ps.mean()) >= time else None


def _reason(evidence: HostEvidence, time: float, launches: float, many: bool, wait: Sync | None) -> str:
    computes = format_time(evidence.time_ps(Cause.COMPUTE))
    if wait:
        return (
            f"`{wait.call}` waits for the {evidence.kind} in each step, so the host cannot launch ahead of "
            f"it: else launching would be hidden behind {computes} of computing."
        )
    if many:
        return (
            f"A launch costs the host {format_time(time / launches)}, and the kernels of a step together "
            f"run for {computes}."
        )
    return (
        f"Launching takes microseconds, and the kernels of a step together run for {computes}: the host "
        "does something else there."
    )


def _culprit(mine: list[Part]) -> Culprit:
    """The user's function in which most of the time is."""
    by_who: dict[Culprit, float] = {}
    for part in mine:
        who = part.caller if part.caller.name else part.culprit
        if who.kind == "function":
            by_who[who] = by_who.get(who, 0.0) + part.mean_ps
    best = max(by_who, key=lambda one: by_who[one], default=Culprit())
    return best if by_who.get(best, 0.0) * 2 > total(mine) else Culprit()


def _call(mine: list[Part], culprit: Culprit) -> str:
    """The calls that take most, in words."""
    by_call: dict[str, float] = {}
    for part in mine:
        name = part.call or (part.culprit.name if part.culprit.kind != "function" else "")
        if name and name != culprit.name:
            by_call[name] = by_call.get(name, 0.0) + part.mean_ps
    ranked = sorted(by_call, key=lambda name: -by_call[name])
    if not ranked:
        return ""
    if by_call[ranked[0]] * 2 > total(mine):
        return f"`{ranked[0]}`"
    return " and ".join(f"`{name}`" for name in ranked[:2]) + (" and other calls" if len(ranked) > 2 else "")


RULE = Rule(Cause.DISPATCH, find)
