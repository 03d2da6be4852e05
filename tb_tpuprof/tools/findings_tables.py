"""Tables of a diagnosis: its findings, and what the step's time goes into."""

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
# As docs/causes/README.md says it.
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
        text("cause", "Cause"),
        text("color", "Color"),
        text("finding", "Finding"),
        text("reason", "Why it costs time"),
        text("culprit", "Culprit", "What to change"),
        text("host", "Host", "Where not all hosts have it"),
        number("time_ps", "Time per step", "ps", "Mean over the steps"),
        number("share", "Share of the step", "fraction"),
        number("gain_low_ps", "Gain, at least", "ps", "Per step"),
        number("gain_high_ps", "Gain, at most", "ps", "Per step"),
        text("fix", "What to do"),
        text("snippet", "Example"),
        text("confidence", "Confidence"),
        text("capture_option", "Capture with", "Where this trace cannot show the culprit"),
        text("docs", "More"),
        text("meaning", "What the cause is"),
        text("evidence", "Evidence"),
        text("evidence_host", "Host of the evidence"),
        number("evidence_start_ps", "Evidence from", "ps"),
        number("evidence_end_ps", "Evidence to", "ps"),
    ),
    "A row per finding, by gain. `confidence` is high, medium or low; `docs` is the page of the cause below "
    "docs/; no `host`: all have it; a gain that is not known is null",
    is_optional=True,
)
CAUSES = TableSpec(
    "causes",
    "Causes",
    (
        text("cause", "Cause"),
        text("color", "Color"),
        text("meaning", "What the cause is"),
        number("time_ps", "Time per step", "ps"),
        number("share", "Share of the step", "fraction"),
    ),
    "Mean time per step by cause; the times add up to the step",
    is_optional=True,
)


def cause_color(cause: Cause, kind: str) -> str:
    """The color of a cause's time: that of the steps' category where it is the same time. `kind`: what
    computes (CPU, GPU, TPU).
    """
    return _COLORS.get(cause, "host" if kind == "CPU" else "compute")


def findings_table(found: Diagnosis, kind: str, n_hosts: int = 1) -> Table:
    """One row per finding, by gain."""
    rows = found.findings
    places = [_place(one) for one in rows]
    return FINDINGS.fill(
        {
            "cause": [one.cause.label for one in rows],
            "color": [cause_color(one.cause, kind) for one in rows],
            "finding": [one.sentence for one in rows],
            "reason": [one.reason for one in rows],
            "culprit": [one.culprit.title.replace("`", "") for one in rows],
            "host": [one.host for one in rows],
            "time_ps": [one.time_ps for one in rows],
            "share": [one.share for one in rows],
            "gain_low_ps": [one.gain_ps[0] if one.gain_ps else _NAN for one in rows],
            "gain_high_ps": [one.gain_ps[1] if one.gain_ps else _NAN for one in rows],
            "fix": [one.fix for one in rows],
            "snippet": [one.snippet for one in rows],
            "confidence": [one.confidence for one in rows],
            "capture_option": [one.capture_option for one in rows],
            "docs": [one.docs for one in rows],
            "meaning": [_MEANINGS[one.cause] for one in rows],
            "evidence": ["; ".join(part.text for part in one.evidence) for one in rows],
            "evidence_host": [place.host if place else "" for place in places],
            "evidence_start_ps": [place.start_ps if place else _NAN for place in places],
            "evidence_end_ps": [place.end_ps if place else _NAN for place in places],
        },
        f"by gain; {_base(found, n_hosts)}",
    )


def causes_table(found: Diagnosis, kind: str, n_hosts: int = 1) -> Table:
    """Mean time per step of each cause; the times add up to the step."""
    return CAUSES.fill(
        {
            "cause": [one.cause.label for one in found.causes],
            "color": [cause_color(one.cause, kind) for one in found.causes],
            "meaning": [_MEANINGS[one.cause] for one in found.causes],
            "time_ps": [one.time_ps for one in found.causes],
            "share": [one.share for one in found.causes],
        },
        f"every moment has one cause; {_base(found, n_hosts)}",
    )


def _base(found: Diagnosis, n_hosts: int) -> str:
    if found.n_steps == 1:
        return "of one step"
    return (
        f"mean over {found.n_steps} steps"
        if n_hosts == 1
        else f"mean over the steps of {n_hosts} hosts, each with all of its own"
    )


def _place(finding: Finding) -> Evidence | None:
    """The first piece of evidence that is somewhere on the timeline."""
    return next((one for one in finding.evidence if one.start_ps >= 0), None)
