"""Other Python threads that hold the interpreter's lock while the steps need it."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, busy_thread
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, gain, time_and_share
from tb_tpuprof.units import format_fraction

FIXES = {
    "": Fix(
        "Move the thread's work into another process: Python runs one thread at a time.",
        "multiprocessing.Process(target=work, daemon=True).start()",
    )
}
_CHEAPER = Fix(
    "All processors are in use: make the thread's work cheaper, do it less often or elsewhere, or take a "
    "host with more processors."
)
_HELD = "the step's thread waits for the interpreter: up to {} of each step."
_SLOWED = "takes processor time from the steps: about {} of each step."
_WHY_HELD = (
    "Python runs one thread at a time: each call of the step waits until the other thread hands over the "
    "interpreter."
)
_WHY_SLOWED = (
    "The {} threads of the pool that computes have a processor each; another busy thread takes its share of "
    "them."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """A thread that runs Python for much of the time and hands nothing over."""
    worst = busy_thread(evidence.beside)
    if worst is None:
        return
    held = sum(evidence.time_ps(cause) for cause in (Cause.PYTHON, Cause.DISPATCH, Cause.UNRECORDED))
    slowed = evidence.time_ps(Cause.CONTENTION)
    time = max(held, slowed)
    fix = _CHEAPER if slowed > held else fix_for(FIXES, evidence)
    yield Finding(
        Cause.CONTENTION,
        f"Another thread runs {worst.culprit.title} for {format_fraction(worst.running)} of the time, and "
        + (_SLOWED if slowed > held else _HELD).format(time_and_share(evidence, time)),
        time,
        evidence.share(time),
        _WHY_SLOWED.format(evidence.pools.n) if slowed > held else _WHY_HELD,
        worst.culprit,
        gain_ps=gain(evidence, time, 0.6, 1.8) if slowed > held else (0.0, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(
            Evidence(
                f"{worst.culprit.title} runs on another thread for {format_fraction(worst.running)} of the "
                "steps' time."
            ),
        ),
        confidence="medium",
    )


RULE = Rule(Cause.CONTENTION, find)
