"""The verdict of the input pages by the diagnosis: how much of each step input takes, and how bad that is."""

from __future__ import annotations

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.input.pipeline import copy_fraction
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS, Finding, Level
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.tools.verdicts import JobLimits
from tb_tpuprof.units import format_fraction, format_time

PAGE = "input_pipeline_analyzer"
_APART = 0.01  # smallest difference between two shares of the step that is reported


def input_share(limits: JobLimits) -> tuple[Level, str]:
    """How much of each step waits for data, in the words of the finding about input, if any."""
    if limits.top and limits.top.cause == Cause.INPUT:
        return limits.diagnosis.level, limits.diagnosis.text
    on_input = next((finding for finding in limits.diagnosis.findings if finding.cause == Cause.INPUT), None)
    if on_input:
        return ("bad" if on_input.share >= THRESHOLDS["input"][1] else "warn"), on_input.sentence
    time = limits.time_ps(Cause.INPUT)
    if not time:
        return "good", "No waiting for data was traced."
    return (
        "good",
        f"Input takes {format_time(time)} ({format_fraction(limits.share(Cause.INPUT))}) of each step.",
    )


def by_causes(by_kinds: Finding, steps: Steps, limits: JobLimits) -> Finding:
    """The verdict on the input by the diagnosis; replaces `by_kinds`, which goes by kinds of step time."""
    level, text = input_share(limits)
    details = (*_by_kind(steps, limits), *by_kinds.details)
    if limits.top and limits.top.cause == Cause.UNRECORDED and by_kinds.category in ("other", "host_wait"):
        unseen = (
            f"{format_time(limits.top.time_ps)} ({format_fraction(limits.top.share)}) {limits.top.base} was "
            "not recorded"
        )
        recorded = text[0].lower() + text[1:].removesuffix(".")
        possible = (
            f"Possibly input-bound: {recorded}, but {unseen}, which may also be time spent waiting for data."
        )
        return Finding("warn", by_kinds.category, possible, details)
    if level == "good" and not limits.are_elsewhere(PAGE):
        reason = f"{text[0].lower()}{text[1:]}" if limits.time_ps(Cause.INPUT) else "no step waits for data."
        text = f"Not input-bound: {reason}"
    return Finding(level, "input", text, details)


def _by_kind(steps: Steps, limits: JobLimits) -> tuple[str, ...]:
    """What the page's numbers count as input, if it differs from the diagnosis."""
    share = steps.fraction("input")
    if abs(share - limits.share(Cause.INPUT)) < _APART:
        return ()
    copies = (
        ", including copies to the device"
        if share > limits.share(Cause.INPUT) and copy_fraction(steps)
        else ""
    )
    return (
        f"The numbers below group time by kind: there, {format_fraction(share)} of the steps is "
        f"input{copies}.",
    )
