"""Other Python threads that hold the interpreter's lock while the steps need it."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import HostEvidence
from tb_tpuprof.analysis.diagnosis.finding import Evidence, Finding
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, time_and_share

FIXES = {
    "": Fix(
        "Move the thread's work into another process: Python runs one thread at a time.",
        "multiprocessing.Process(target=work, daemon=True).start()",
    )
}
_RUNS = 0.3


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """A thread that runs Python for much of the time and hands nothing over."""
    busy = [one for one in evidence.beside if one.running >= _RUNS and not one.hands_over and one.culprit.name]
    if not busy:
        return
    worst = busy[0]
    held = (Cause.PYTHON, Cause.DISPATCH, Cause.UNRECORDED)
    time = sum(evidence.time_ps(cause) for cause in held)
    fix = fix_for(FIXES, evidence)
    yield Finding(
        Cause.CONTENTION,
        f"Another thread runs {worst.culprit.title} for {worst.running:.0%} of the time, and the step's thread waits for "
        f"the interpreter: up to {time_and_share(evidence, time)} of each step.",
        time,
        evidence.share(time),
        "Python runs one thread at a time: each call of the step waits until the other thread hands over the interpreter.",
        worst.culprit,
        gain_ps=(0.0, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(Evidence(f"{worst.culprit.title} runs on another thread for {worst.running:.0%} of the steps' time."),),
        confidence="medium",
    )


RULE = Rule(Cause.CONTENTION, find)
