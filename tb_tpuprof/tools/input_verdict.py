"""What the pages of the input say of it by the diagnosis: how much of each step it takes, and how bad that
is.
"""

from __future__ import annotations

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.input.pipeline import copy_fraction
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS, Finding, Level
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.tools.verdicts import JobLimits
from tb_tpuprof.units import format_fraction, format_time

PAGE = "input_pipeline_analyzer"
_APART = 0.01  # of the step: between two shares that are worth a sentence


def input_share(limits: JobLimits) -> tuple[Level, str]:
    """How much of each step waits for data, in the words of the finding about it where there is one."""
    if limits.top and limits.top.cause == Cause.INPUT:
        return limits.found.level, limits.found.text
    own = next((one for one in limits.found.findings if one.cause == Cause.INPUT), None)
    if own:
        return ("bad" if own.share >= THRESHOLDS["input"][1] else "warn"), own.sentence
    time = limits.time_ps(Cause.INPUT)
    if not time:
        return "good", "No waiting for data was traced."
    return (
        "good",
        f"Input takes {format_time(time)} ({format_fraction(limits.share(Cause.INPUT))}) of each step.",
    )


def by_causes(told: Finding, steps: Steps, limits: JobLimits) -> Finding:
    """The verdict on the input by the diagnosis, in place of `told`, which goes by the kinds of the steps'
    time.
    """
    level, text = input_share(limits)
    details = (*_by_kind(steps, limits), *told.details)
    if limits.top and limits.top.cause == Cause.UNRECORDED and told.category in ("other", "host_wait"):
        unseen = (
            f"{format_time(limits.top.time_ps)} ({format_fraction(limits.top.share)}) {limits.top.base} was "
            "not recorded"
        )
        seen = text[0].lower() + text[1:].removesuffix(".")
        possible = (
            f"Possibly input-bound: {seen}, but {unseen}, which may also be time spent waiting for data."
        )
        return Finding("warn", told.category, possible, details)
    if level == "good" and not limits.are_elsewhere(PAGE):
        said = f"{text[0].lower()}{text[1:]}" if limits.time_ps(Cause.INPUT) else "no step waits for data."
        text = f"Not input-bound: {said}"
    return Finding(level, "input", text, details)


def _by_kind(steps: Steps, limits: JobLimits) -> tuple[str, ...]:
    """What the page's numbers count as input, where the diagnosis counts something else."""
    share = steps.fraction("input")
    if abs(share - limits.share(Cause.INPUT)) < _APART:
        return ()
    copies = (
        ", copies to the device included"
        if share > limits.share(Cause.INPUT) and copy_fraction(steps)
        else ""
    )
    return (
        f"The numbers below go by kind of time: {format_fraction(share)} of the steps is input "
        f"there{copies}.",
    )
