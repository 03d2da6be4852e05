"""Other Python threads that hold the GIL or a processor while the steps need it."""

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
        "Move the thread's work to another process: the GIL lets only one Python thread run at a time.",
        "multiprocessing.Process(target=work, daemon=True).start()",
    )
}
_CHEAPER = Fix(
    "All processors are busy: make the thread's work cheaper, do it less often or on another machine, or "
    "use a host with more processors."
)
_HELD = "the step's thread waits for the GIL: up to {} of each step."
_SLOWED = "takes processor time from the steps: about {} of each step."
_WHY_HELD = (
    "Only one Python thread runs at a time: each call in the step waits until the other thread releases "
    "the GIL."
)
_WHY_SLOWED = (
    "The compute pool has {} threads, one per processor; another busy thread competes with them for "
    "processors."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for the busiest thread that runs Python and produces nothing the steps wait for."""
    busiest = busy_thread(evidence.other_threads)
    if busiest is None:
        return
    held = sum(evidence.time_ps(cause) for cause in (Cause.PYTHON, Cause.DISPATCH, Cause.UNRECORDED))
    slowed = evidence.time_ps(Cause.CONTENTION)
    time = max(held, slowed)
    fix = _CHEAPER if slowed > held else fix_for(FIXES, evidence)
    yield Finding(
        Cause.CONTENTION,
        f"Another thread runs {busiest.culprit.title} for {format_fraction(busiest.running)} of the time, "
        "and " + (_SLOWED if slowed > held else _HELD).format(time_and_share(evidence, time)),
        time,
        evidence.share(time),
        _WHY_SLOWED.format(evidence.pools.n) if slowed > held else _WHY_HELD,
        busiest.culprit,
        gain_ps=gain(evidence, time, 0.6, 1.8) if slowed > held else (0.0, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=(
            Evidence(
                f"{busiest.culprit.title} runs on another thread for {format_fraction(busiest.running)} of "
                "the step time."
            ),
        ),
        confidence="medium",
    )


RULE = Rule(Cause.CONTENTION, find)
