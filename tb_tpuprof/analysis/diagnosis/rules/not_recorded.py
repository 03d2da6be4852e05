"""Time that the trace does not record: where in the step it is, and which capture option would show it."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import python_option, time_and_share


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all unrecorded time."""
    time = evidence.time_ps(Cause.UNRECORDED)
    if not time:
        return
    option = python_option(evidence)
    longest = evidence.gaps[0] if evidence.gaps else None
    where = f", most of it {longest.where}" if longest and float(longest.time_ps.mean()) * 2 > time else ""
    fix = (
        f"Capture with `{option}` to see which functions run there."
        if option
        else "Annotate parts of the step to see which one takes the time."
    )
    yield Finding(
        Cause.UNRECORDED,
        f"{time_and_share(evidence, time)} of each step was not recorded{where}."
        if evidence.kind == "CPU"
        else f"The {evidence.kind} is idle for {time_and_share(evidence, time)} of each step{where}: it "
        "waits for host work that was not recorded, possibly for data.",
        time,
        evidence.share(time),
        _reason(evidence, option)
        if evidence.kind == "CPU"
        else "The thread that runs the steps has no events there: it ran Python, waited, or made calls that "
        "the profiler does not record.",
        fix=fix,
        evidence=(Evidence("The longest gap", evidence.host, longest.first_ps, longest.last_ps),)
        if longest
        else (),
        confidence="low",
        capture_option=option,
    )


def _reason(evidence: HostEvidence, option: str) -> str:
    """What may have happened in the unrecorded time of a host without accelerators."""
    if evidence.is_ahead:
        return (
            "Not waiting for data: each step's work was called before the previous step's work ended. The "
            "threads that run operations waited, for example for a processor, or ran Python."
        )
    reason = (
        "Python ran, or the thread waited, perhaps for data"
        if option
        else "The host did other work, or waited outside Python"
    )
    return f"{reason}: no operation ran and no call was traced."


RULE = Rule(Cause.UNRECORDED, find)
