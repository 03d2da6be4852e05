"""Tables of a diagnosis: its findings, and the step's time by cause."""

from __future__ import annotations

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis, Evidence, Finding
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import TableSpec, number, text

_NAN = float("nan")
_COLORS = {
    Cause.COMPILATION: "compile",
    Cause.INPUT: "input",
    Cause.PYTHON: "python",
    Cause.SYNCHRONIZATION: "wait",
    Cause.CALLBACKS: "callback",
    Cause.DISPATCH: "launch",
    Cause.PERIODIC: "periodic",
    Cause.COMMUNICATION: "collective",
    Cause.TRANSFERS: "output",
    Cause.CONTENTION: "contention",
    Cause.WARM_UP: "warm_up",
    Cause.UNRECORDED: "other",
}
# As in docs/causes/README.md.
_MEANINGS = {
    Cause.COMPILATION: "Steps trace or compile a program again instead of running it.",
    Cause.INPUT: "Steps wait for their next batch.",
    Cause.PYTHON: "The program's own Python runs on the thread of the steps while the device idles.",
    Cause.SYNCHRONIZATION: "The host waits for a result, and the device runs dry after it.",
    Cause.CALLBACKS: "The device or the training loop calls back into Python and waits.",
    Cause.DISPATCH: "Many small programs or kernels: launching takes longer than running.",
    Cause.PERIODIC: "Checkpoints, evaluation, logging or garbage collection every n-th step.",
    Cause.COMPUTE: "The device works all the time: its operations are the limit.",
    Cause.COMMUNICATION: "Devices exchange data, or wait for the slowest of them.",
    Cause.TRANSFERS: "The device waits for copies, offloaded arrays or free memory.",
    Cause.CONTENTION: "Threads compete for the GIL, for processors or for a pool.",
    Cause.WARM_UP: "The first steps compile, fill buffers or try out kernels.",
    Cause.UNRECORDED: "The trace does not show it; another capture option would.",
}


FINDINGS = TableSpec(
    "findings",
    "Findings",
    (
        text("cause", "Cause", "Identifier of the cause, the name of its page below docs/causes/"),
        text("color", "Color", "Name of the color of the cause's bar"),
        text("finding", "Finding", "What costs time, in one sentence"),
        text("reason", "Why it costs time", "How this cause makes steps longer"),
        text("culprit", "Culprit", "The function, operation or stage to change"),
        text("host", "Host", "The host that has this finding; empty if all hosts have it"),
        number(
            "time_ps",
            "Time per step",
            "ps",
            "Mean time per step that is charged to this cause",
            formula="Σ time of the cause ÷ number of steps",
        ),
        number(
            "share",
            "Share of the step",
            "fraction",
            "Time per step as a share of the mean step",
            formula="time per step ÷ mean step time",
        ),
        number(
            "gain_low_ps",
            "Gain, at least",
            "ps",
            "Lower bound on how much shorter a step would be without this cause",
            unknown="no model estimates the gain of this change",
        ),
        number(
            "gain_high_ps",
            "Gain, at most",
            "ps",
            "Upper bound on how much shorter a step would be without this cause",
            unknown="no model estimates the gain of this change",
        ),
        text("fix", "What to do", "What to change to recover the time"),
        text("snippet", "Example", "Code to copy, for the framework of this run"),
        text(
            "confidence",
            "Confidence",
            "High: events in the trace name the cause. Medium: events fit it, and the lost part of its "
            "time is estimated. Low: only the gap is known",
        ),
        text(
            "capture_option",
            "Capture with",
            "The capture option that would show the culprit, if this trace cannot",
        ),
        text("docs", "More", "Page about the cause, below docs/"),
        text("meaning", "What the cause is", "What is charged to this cause"),
        text("evidence", "Evidence", "The events or numbers that the finding is based on"),
        text("evidence_host", "Host of the evidence", "Host whose timeline shows the evidence"),
        number(
            "evidence_start_ps",
            "Evidence from",
            "ps",
            "Start of the interval on the timeline that shows the evidence",
            unknown="no single interval of the timeline shows this finding",
        ),
        number(
            "evidence_end_ps",
            "Evidence to",
            "ps",
            "End of the interval on the timeline that shows the evidence",
            unknown="no single interval of the timeline shows this finding",
        ),
    ),
    "A row per finding, by gain. `confidence` is high, medium or low; `docs` is the cause's page below "
    "docs/; no `host`: all have it; an unknown gain is null",
    is_optional=True,
    sentence="What costs the steps time, ordered by the time that a fix would recover",
)
CAUSES = TableSpec(
    "causes",
    "Causes",
    (
        text("cause", "Cause", "Identifier of the cause"),
        text("color", "Color", "Name of the cause's color in the bar"),
        text("meaning", "What the cause is", "What is charged to this cause"),
        number(
            "time_ps",
            "Time per step",
            "ps",
            "Mean time per step that is charged to this cause; the causes add up to the step",
            formula="Σ time of the cause ÷ number of steps",
        ),
        number(
            "share",
            "Share of the step",
            "fraction",
            "Time per step as a share of the mean step",
            formula="time per step ÷ mean step time",
        ),
    ),
    "Mean time per step by cause; the times add up to the step",
    is_optional=True,
)


def cause_color(cause: Cause, kind: str) -> str:
    """The color of a cause's time: that of the steps' category if it is the same time. `kind`: what
    computes (CPU, GPU, TPU).
    """
    return _COLORS.get(cause, "host" if kind == "CPU" else "compute")


def findings_table(diagnosis: Diagnosis, kind: str, n_hosts: int = 1) -> Table:
    """One row per finding, by gain."""
    rows = diagnosis.findings
    places = [place(finding) for finding in rows]
    return FINDINGS.fill(
        {
            "cause": [finding.cause.label for finding in rows],
            "color": [cause_color(finding.cause, kind) for finding in rows],
            "finding": [finding.sentence for finding in rows],
            "reason": [finding.reason for finding in rows],
            "culprit": [finding.culprit.title.replace("`", "") for finding in rows],
            "host": [finding.host for finding in rows],
            "time_ps": [finding.time_ps for finding in rows],
            "share": [finding.share for finding in rows],
            "gain_low_ps": [finding.gain_ps[0] if finding.gain_ps else _NAN for finding in rows],
            "gain_high_ps": [finding.gain_ps[1] if finding.gain_ps else _NAN for finding in rows],
            "fix": [finding.fix for finding in rows],
            "snippet": [finding.snippet for finding in rows],
            "confidence": [finding.confidence for finding in rows],
            "capture_option": [finding.capture_option for finding in rows],
            "docs": [finding.docs for finding in rows],
            "meaning": [_MEANINGS[finding.cause] for finding in rows],
            "evidence": ["; ".join(part.text for part in finding.evidence) for finding in rows],
            "evidence_host": [one.host if one else "" for one in places],
            "evidence_start_ps": [one.start_ps if one else _NAN for one in places],
            "evidence_end_ps": [one.end_ps if one else _NAN for one in places],
        },
        f"by gain; {_base(diagnosis, n_hosts)}",
    )


def causes_table(diagnosis: Diagnosis, kind: str, n_hosts: int = 1) -> Table:
    """Mean time per step of each cause; the times add up to the step."""
    return CAUSES.fill(
        {
            "cause": [part.cause.label for part in diagnosis.causes],
            "color": [cause_color(part.cause, kind) for part in diagnosis.causes],
            "meaning": [_MEANINGS[part.cause] for part in diagnosis.causes],
            "time_ps": [part.time_ps for part in diagnosis.causes],
            "share": [part.share for part in diagnosis.causes],
        },
        f"every moment has one cause; {_base(diagnosis, n_hosts)}",
    )


def _base(diagnosis: Diagnosis, n_hosts: int) -> str:
    if diagnosis.n_steps == 1:
        return "of one step"
    return (
        f"mean over {diagnosis.n_steps:,} steps"
        if n_hosts == 1
        else f"mean over all steps of {n_hosts:,} hosts"
    )


def place(finding: Finding) -> Evidence | None:
    """The first piece of evidence with a place on the timeline."""
    return next((piece for piece in finding.evidence if piece.start_ps >= 0), None)
