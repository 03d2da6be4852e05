"""What limits the job, and what a page makes of it: its verdict opens with the diagnosis' first finding where
that is its subject.

first finding is the page's subject     the finding, word for word; then what the page alone knows
… is another cause, and large           the page's own fact; then, in a sentence, what does limit the job,
with a way to the overview
no diagnosis, or nothing to find        the page's own verdict
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.steps.classes import N_CLASSES
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import common_steps
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.errors import HostsUnreadable, ProfilerError
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.findings_tables import cause_color
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.tools.why import chosen_hosts
from tb_tpuprof.units import format_fraction, format_time

# Reading the evidence takes as long as a page of operations: a page waits for it where that is milliseconds.
# Else its first answer goes without, marked as such, and the browser requests the whole one next
# (`await_limits`).
QUICK_BYTES = 4 * 2**20
_COMPRESSED = 8  # bytes that one of a compressed file becomes
_OPERATIONS = (Cause.COMPUTE, Cause.DISPATCH)
# Which causes each page is about. Of a CPU, dispatch is no subject of pages of operations: the host's calls
# are none of them.
SUBJECTS: dict[str, tuple[Cause, ...]] = {
    "input_pipeline_analyzer": (Cause.INPUT,),
    "tf_data_bottleneck_analysis": (Cause.INPUT,),
    "framework_op_stats": _OPERATIONS,
    "kernel_stats": _OPERATIONS,
    "op_profile": _OPERATIONS,
    "hlo_stats": _OPERATIONS,
    "roofline_model": _OPERATIONS,
    "pod_viewer": (Cause.COMMUNICATION,),
    "memory_profile": (Cause.TRANSFERS,),
}
_OWN_REASON = ("tf_data_bottleneck_analysis",)  # the slow stage is why
_WORDS = {
    Cause.COMPILATION: "compilation",
    Cause.INPUT: "waiting for data",
    Cause.PYTHON: "Python",
    Cause.SYNCHRONIZATION: "synchronization",
    Cause.CALLBACKS: "callbacks",
    Cause.DISPATCH: "dispatch",
    Cause.PERIODIC: "periodic work",
    Cause.COMPUTE: "compute",
    Cause.COMMUNICATION: "communication",
    Cause.TRANSFERS: "transfers",
    Cause.CONTENTION: "contention",
    Cause.UNRECORDED: "time that was not recorded",
}
_KNOWN: WeakKeyDictionary[Session, tuple[list[HostEvidence], JobLimits | None]] = WeakKeyDictionary()
_LOCK = Lock()


@dataclass(frozen=True)
class JobLimits:
    """The diagnosis of the hosts that a page shows. `kind`: what computes (CPU, GPU, TPU)."""

    found: Diagnosis
    kind: str

    @property
    def top(self) -> Finding | None:
        """What the diagnosis says first; None of a healthy job."""
        return self.found.top

    def is_about(self, tool: str) -> bool:
        """Whether the first finding is the subject of that page."""
        top = self.top
        if top is None:
            return False
        if tool == "pod_viewer" and top.culprit.kind == "host":
            return True
        return top.cause in SUBJECTS[tool] and not (top.cause == Cause.DISPATCH and self.kind == "CPU")

    def are_elsewhere(self, tool: str) -> bool:
        """Whether something else than that page's subject is a high cost."""
        return self.top is not None and self.found.level == "bad" and not self.is_about(tool)

    def time_ps(self, cause: Cause) -> float:
        """Mean time per step of a cause, as the overview's table of causes has it."""
        return next((one.time_ps for one in self.found.causes if one.cause == cause), 0.0)

    def share(self, cause: Cause) -> float:
        """Its share of the mean step."""
        return next((one.share for one in self.found.causes if one.cause == cause), 0.0)


def is_diagnosed(tool: str, session: Session, hosts: Sequence[str]) -> bool:
    """Whether the page's verdict considers what limits the job: not where the evidence is yet to be read,
    unless it is of no use here.
    """
    if tool not in SUBJECTS:
        return True
    failures = session.known_failures(hosts)
    readable = [host for host in hosts if host not in failures]
    try:
        return _is_quick(session, readable) or _known(session, readable) is not None
    except ProfilerError:
        return True  # the page reports it; waiting helps nobody


def await_limits(tool: str, session: Session, hosts: Sequence[str]) -> None:
    """Read the evidence that the page's verdict considers, so that it is the same whatever was
    opened before.
    """
    left = () if is_diagnosed(tool, session, hosts) else tuple(hosts)
    while left:
        try:
            is_many = len(left) > POLICY.max_hosts_in_memory
            session.map(host_evidence, chosen_hosts(left, session.map(summary, left)) if is_many else left)
        except HostsUnreadable as error:  # the page reports them
            left = tuple(host for host in left if host not in error.failures)
        else:
            return


def limits_of(session: Session, hosts: Sequence[str]) -> JobLimits | None:
    """What limits the job, where the overview would say it and no page has to wait for it.

    None without steps, where only classes of time are known, and where the captures of hosts do not overlap.
    Kept for the last choice of hosts: pages ask again for each move of a slider. Raises HostsUnreadable.
    """
    parts = _known(session, hosts)
    if parts is None and _is_quick(session, hosts):
        parts = session.map(host_evidence, hosts)
    if parts is None:
        return None
    with _LOCK:
        known = _KNOWN.get(session)
    if (
        known is None
        or len(known[0]) != len(parts)
        or any(a is not b for a, b in zip(known[0], parts, strict=True))
    ):
        known = parts, _limits(session, hosts, parts)
        with _LOCK:
            _KNOWN[session] = known
    return known[1]


def _limits(session: Session, hosts: Sequence[str], parts: Sequence[HostEvidence]) -> JobLimits | None:
    found = diagnose(parts)
    if not found.is_detailed or _are_apart(session, hosts, parts):
        return None
    return JobLimits(found, next((part.kind for part in parts if part.kind != "CPU"), "CPU"))


def _known(session: Session, hosts: Sequence[str]) -> list[HostEvidence] | None:
    """The evidence that the overview read, where it is there already."""
    if len(hosts) <= POLICY.max_hosts_in_memory:
        return session.known(host_evidence, hosts)
    summaries = session.known(summary, hosts)
    return session.known(host_evidence, chosen_hosts(hosts, summaries)) if summaries else None


def _is_quick(session: Session, hosts: Sequence[str]) -> bool:
    """Whether the evidence is made in milliseconds: of small files, and of traces that the page's own reading
    keeps.
    """
    if len(hosts) > POLICY.max_hosts_in_memory:
        return False
    files = [session.file(host) for host in hosts]
    return (
        sum(file.size_bytes * (_COMPRESSED if file.path.endswith(".gz") else 1) for file in files)
        <= QUICK_BYTES
    )


def _are_apart(session: Session, hosts: Sequence[str], parts: Sequence[HostEvidence]) -> bool:
    """Whether hosts have steps, but none at the same time: then each is judged by itself."""
    if len(hosts) < 2:
        return False
    corrections = clocks_of(session, hosts).correction_ns
    starts = [
        marks.start_ns + add for marks, add in zip(session.map(clock_marks, hosts), corrections, strict=True)
    ]
    steps = [
        Steps(
            np.arange(part.n_steps),
            part.names,
            part.start_ps,
            part.duration_ps,
            np.zeros((part.n_steps, N_CLASSES), np.int64),
            part.source,
        )
        for part in parts
    ]
    return common_steps(steps, starts).is_disjoint


def told(
    tool: str, verdict: Verdict | None, limits: JobLimits | None, is_named: bool = False
) -> Verdict | None:
    """The page's verdict in the light of what limits the job (see the module). `is_named`: its text says what
    that is already.
    """
    top = limits.top if limits else None
    if verdict is None or limits is None or top is None:
        return verdict
    others = tuple(step for step in verdict.next if step.tool != "overview_page")
    if limits.is_about(tool):
        text = (
            verdict.text
            if verdict.text.startswith(limits.found.text)
            else f"{limits.found.text} {verdict.text}"
        )
        color, steps = (
            cause_color(top.cause, limits.kind),
            (*others, NextStep("See what to do about it", "overview_page")),
        )
        details = (*reasons(top, tool not in _OWN_REASON), *verdict.details)
        return replace(
            verdict, level=limits.found.level, text=text, category=color, details=details, next=steps
        )
    if not limits.are_elsewhere(tool):
        return verdict
    text = verdict.text if is_named else f"{verdict.text} {limit_sentence(top)}"
    return replace(verdict, text=text, next=(NextStep("See what limits this job", "overview_page"), *others))


def reasons(top: Finding, with_reason: bool = True) -> tuple[str, ...]:
    """What follows a finding's sentence: why it costs time, and what it would gain."""
    gain = gain_text(top)
    return tuple(
        text
        for text in (top.reason if with_reason else "", f"Expected gain: {gain}." if gain else "")
        if text
    )


def gain_text(finding: Finding) -> str:
    """`9.00 ms to 12.0 ms per step`; empty where no model says."""
    if not finding.gain_ps:
        return ""
    low, high = (format_time(gain) for gain in finding.gain_ps)
    if finding.gain_ps[0] <= 0:
        return f"up to {high} per step"
    return f"{low} to {high} per step" if low != high else f"{low} per step"


def limit_sentence(top: Finding) -> str:
    """The cause with its culprit, and its share: `What limits this job is compilation of …, 63.4 % of the
    mean step: see the overview.`
    """
    return (
        f"What limits this job is {_named(top)}, {format_fraction(top.share)} {top.base}: see the overview."
    )


def in_sentence(cause: Cause) -> str:
    """A cause within a sentence."""
    return _WORDS.get(cause, cause.label.lower())


def _named(top: Finding) -> str:
    """A finding's cause and culprit within a sentence."""
    culprit, word = top.culprit, in_sentence(top.cause)
    if culprit.kind == "host":
        return f"the slow host {culprit.title}"
    if top.cause == Cause.PYTHON and culprit.kind == "annotation":
        return f"time in {culprit.title}"  # nobody knows whether it is Python
    if culprit.kind in ("function", "annotation"):
        return f"{word} in {culprit.title}"
    return f"{word} of {culprit.title}" if top.cause == Cause.COMPILATION and culprit.name else word
