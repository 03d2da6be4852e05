"""Work of every n-th step: checkpoints, evaluation, logging, garbage collection."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Period
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import (
    Fix,
    by_culprit,
    fix_for,
    gain,
    listed,
    python_option,
    shown,
    time_and_share,
    total,
)
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.units import format_time

FIXES = {
    JAX: Fix(
        "Do it in another thread or process (Orbax saves asynchronously), or less often.",
        "checkpointer = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler())\ncheckpointer.save(path, "
        "args=ocp.args.StandardSave(state))",
    ),
    TENSORFLOW: Fix(
        "Do it less often, or asynchronously.",
        "options = tf.train.CheckpointOptions(enable_async=True)\ncheckpoint.write(path, options=options)",
    ),
    PYTORCH: Fix(
        "Do it less often, or asynchronously.",
        "torch.distributed.checkpoint.async_save(state, checkpoint_id=path)",
    ),
    "": Fix("Do it less often, or in another thread or process."),
}


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding per period: all work of the same steps counts as one."""
    groups: dict[int, list[Period]] = {}
    for period in evidence.periods:
        groups.setdefault(period.every, []).append(period)
    if not groups:
        yield from _of_one_step(evidence)
    for every, periods in groups.items():
        time = sum(period.mean_ps for period in periods)
        excess = sum(period.excess_ps for period in periods)
        longest_named = max(
            (one for one in periods if one.culprit.name), key=lambda one: one.mean_ps, default=None
        )
        programs = tuple(dict.fromkeys(name for period in periods for name in period.programs))
        culprit = (
            longest_named.culprit
            if longest_named
            else Culprit("program", programs[0])
            if programs
            else Culprit()
        )
        call = longest_named.call if longest_named else ""
        inside = f", which calls `{call}`" if call and call != culprit.name else ""
        what = f"{culprit.title}{inside}" if culprit.name else _unnamed(periods)
        others = [name for name in programs if name != culprit.name]
        with_it = (
            f", together with the program{'s' * (len(others) > 1)} {listed(others[:2])}" if others else ""
        )
        fix = fix_for(FIXES, evidence)
        longest = max(periods, key=lambda one: one.mean_ps)
        yield Finding(
            Cause.PERIODIC,
            f"Every {_ordinal(every)} step takes {format_time(excess)} longer because of {what}{with_it}: "
            f"{time_and_share(evidence, time)} per step on average.",
            time,
            evidence.share(time),
            f"{longest.n} of {evidence.n_steps} steps, at regular intervals, take longer; the others do not.",
            culprit,
            gain_ps=gain(evidence, excess / every, 0.75, 1.45),
            fix=fix.text,
            snippet=fix.snippet,
            evidence=(Evidence("The longest occurrence", evidence.host, longest.first_ps, longest.last_ps),)
            if longest.first_ps >= 0
            else (),
            capture_option="" if culprit.kind == "function" else python_option(evidence),
        )


def _unnamed(periods: list[Period]) -> str:
    """What is periodic, if neither a function nor a program of its own does it."""
    if all(period.was == Cause.COMPUTE for period in periods):
        return "operations that run longer or more often"
    return "work that the trace does not name"


def _of_one_step(evidence: HostEvidence) -> Iterable[Finding]:
    """The finding for a single step that does what only every n-th step does."""
    parts = [part for part in evidence.parts if part.cause == Cause.PERIODIC]
    if not parts:
        return
    time = total(parts)
    culprit = by_culprit(parts)[0][0]
    what = culprit.title or "work that the trace does not name"
    yield Finding(
        Cause.PERIODIC,
        f"This step spends {time_and_share(evidence, time)} on {what}, which occurs only every n-th step.",
        time,
        evidence.share(time),
        "Only steps at regular intervals do this.",
        culprit,
        fix=fix_for(FIXES, evidence).text,
        evidence=shown(evidence, parts, "The longest stretch"),
    )


def _ordinal(n: int) -> str:
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(n % 10 if n % 100 not in (11, 12, 13) else 0, "th")
    return f"{n}{suffix}"


RULE = Rule(Cause.PERIODIC, find)
