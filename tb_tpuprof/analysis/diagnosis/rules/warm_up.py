"""A first step that is much longer than the others."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.units import format_time, three_digits

_FIX = (
    "Start the capture after the first steps to see the steady state. A persistent compilation cache "
    "shortens startup."
)


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """The first step, if it took twice as long as usual, or the compilation before it."""
    first = evidence.warming
    if first is None:
        return
    activity = {
        Cause.COMPILATION: "it compiles",
        Cause.INPUT: "it waits for the first data",
        Cause.COMPUTE: "its operations run longer",
        Cause.PYTHON: "it runs more Python",
    }.get(first.cause, "")
    if not first.name:
        yield Finding(
            Cause.WARM_UP,
            f"Before the first step, the job compiled for {format_time(first.duration_ps)}, as long as "
            f"{three_digits(first.duration_ps / first.usual_ps)} steps. All averages exclude this time.",
            0.0,
            0.0,
            "A program is compiled at its first call.",
            fix=_FIX,
            evidence=(
                Evidence(
                    "The first compilation", evidence.host, first.start_ps, first.start_ps + first.duration_ps
                ),
            ),
        )
        return
    excess = first.duration_ps - first.usual_ps
    yield Finding(
        Cause.WARM_UP,
        f"The first step ({first.name}) took {format_time(first.duration_ps)}, "
        f"{three_digits(first.duration_ps / first.usual_ps)} times "
        f"the median{': ' + activity if activity else ''}. All averages exclude it.",
        0.0,
        0.0,
        f"{format_time(max(first.cause_ps, 0))} of the {format_time(excess)} excess is "
        f"{first.cause.label.lower()}.",
        fix=_FIX,
        evidence=(
            Evidence("The first step", evidence.host, first.start_ps, first.start_ps + first.duration_ps),
        ),
    )


RULE = Rule(Cause.WARM_UP, find)
