"""Time of which the trace says nothing: where it lies, and what to capture with to see it."""

from __future__ import annotations

from collections.abc import Iterable

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import python_option, time_and_share


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all of it."""
    time = evidence.time_ps(Cause.UNRECORDED)
    if not time:
        return
    option = python_option(evidence)
    longest = evidence.gaps[0] if evidence.gaps else None
    where = f", most of it {longest.where}" if longest and float(longest.time_ps.mean()) * 2 > time else ""
    what = (
        "Python ran there, or the thread waited, perhaps for data"
        if option
        else "It is other host work, or waiting outside of Python"
    )
    fix = (
        f"Capture with `{option}` to see which function it is."
        if option
        else "Annotate the parts of the step to see which it is."
    )
    yield Finding(
        Cause.UNRECORDED,
        f"{time_and_share(evidence, time)} of each step was not recorded{where}."
        if evidence.kind == "CPU"
        else f"The {evidence.kind} had nothing to do for {time_and_share(evidence, time)} of each "
        f"step{where}: it waited for host work that was not recorded, possibly for data.",
        time,
        evidence.share(time),
        f"{what}: nothing was computed and no call was traced."
        if evidence.kind == "CPU"
        else "Nothing was traced there on the thread that runs the steps: Python, waiting, or calls that are "
        "not recorded.",
        fix=fix,
        evidence=(Evidence("The longest", evidence.host, longest.first_ps, longest.last_ps),)
        if longest
        else (),
        confidence="low",
        capture_option=option,
    )


RULE = Rule(Cause.UNRECORDED, find)
