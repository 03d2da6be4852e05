"""The job's main limit in the verdict of every page.

first finding is the page's subject     the finding, word for word; then the page's own facts
… is another cause, and large           the page's own facts; then a sentence that names the limit, with
                                        a link to the overview
no diagnosis, or no finding             the page's own verdict
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.errors import HostsUnreadable, ProfilerError
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.findings_tables import cause_color
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.tools.why import chosen_hosts, of_all_steps
from tb_tpuprof.units import format_fraction, format_time

# Reading the evidence takes as long as a page of operations. A page waits for it if that takes milliseconds.
# Otherwise its first response omits the diagnosis and says so; the browser then requests the whole page
# (`await_limits`).
QUICK_BYTES = 4 * 2**20
_COMPRESSED = 8  # uncompressed bytes per byte of a compressed file
_OPERATIONS = (Cause.COMPUTE, Cause.DISPATCH)
# The causes that each page is about. On a CPU, pages of operations are not about dispatch: the host's calls
# are no operations.
SUBJECTS: dict[str, tuple[Cause, ...]] = {
    "flame_graph": (
        Cause.INPUT,
        Cause.PYTHON,
        Cause.SYNCHRONIZATION,
        Cause.CALLBACKS,
        Cause.PERIODIC,
        Cause.COMPILATION,
        Cause.CONTENTION,
    ),
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
# A finding's gain, as opposed to the estimated gain of a single change.
FULL_GAIN = "Expected gain if fully fixed"
_OWN_REASON = ("tf_data_bottleneck_analysis",)  # the slow stage is the reason
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
    Cause.UNRECORDED: "unrecorded time",
}


@dataclass(frozen=True)
class JobLimits:
    """The diagnosis of the hosts that a page shows. `kind`: the hardware that computes (CPU, GPU, TPU)."""

    diagnosis: Diagnosis
    kind: str

    @property
    def top(self) -> Finding | None:
        """The first finding; None for a healthy job."""
        return self.diagnosis.top

    def is_about(self, tool: str) -> bool:
        """Whether the page is about the first finding."""
        top = self.top
        if top is None:
            return False
        if tool == "pod_viewer" and top.culprit.kind == "host":
            return True
        return top.cause in SUBJECTS[tool] and not (top.cause == Cause.DISPATCH and self.kind == "CPU")

    def are_elsewhere(self, tool: str) -> bool:
        """Whether the job has a large cost that the page is not about."""
        return self.top is not None and self.diagnosis.level == "bad" and not self.is_about(tool)

    def time_ps(self, cause: Cause) -> float:
        """Mean time per step of a cause in ps, as in the overview's table of causes."""
        return next((one.time_ps for one in self.diagnosis.causes if one.cause == cause), 0.0)

    def share(self, cause: Cause) -> float:
        """Share of a cause in the mean step."""
        return next((one.share for one in self.diagnosis.causes if one.cause == cause), 0.0)


def is_diagnosed(tool: str, session: Session, hosts: Sequence[str]) -> bool:
    """Whether the page's verdict already considers the job's limits, or the page has no use for them."""
    if tool not in SUBJECTS:
        return True
    failures = session.known_failures(hosts)
    readable = [host for host in hosts if host not in failures]
    try:
        return _is_quick(session, readable) or _known(session, readable) is not None
    except ProfilerError:
        return True  # the page reports the error; waiting would not help


def await_limits(tool: str, session: Session, hosts: Sequence[str]) -> None:
    """Read the evidence for the page's verdict, so that it does not depend on the pages opened before."""
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
    """The job's limits, if the overview would report them and the page need not wait for them.

    None without steps, if only classes of time are known, or if the hosts' captures do not overlap. Kept for
    the last choice of hosts, because pages request it again whenever a slider moves. Raises HostsUnreadable.
    """
    parts = _known(session, hosts)
    if parts is None and _is_quick(session, hosts):
        parts = session.map(host_evidence, hosts)
    if parts is None:
        return None
    return session.joined.get("limits", parts, partial(_limits, session, hosts, parts))


def _limits(session: Session, hosts: Sequence[str], parts: Sequence[HostEvidence]) -> JobLimits | None:
    summaries = session.known(summary, hosts) if len(parts) < len(hosts) else None
    read_hosts = chosen_hosts(hosts, summaries) if summaries else hosts
    diagnosed, common = of_all_steps(session, hosts, read_hosts, parts)
    if not diagnosed.is_detailed or common.is_disjoint:
        return None
    return JobLimits(diagnosed, next((part.kind for part in parts if part.kind != "CPU"), "CPU"))


def _known(session: Session, hosts: Sequence[str]) -> list[HostEvidence] | None:
    """The evidence that the overview has read already; None if it is missing."""
    if len(hosts) <= POLICY.max_hosts_in_memory:
        return session.known(host_evidence, hosts)
    summaries = session.known(summary, hosts)
    return session.known(host_evidence, chosen_hosts(hosts, summaries)) if summaries else None


def _is_quick(session: Session, hosts: Sequence[str]) -> bool:
    """Whether reading the evidence takes milliseconds: small files, and few enough hosts for the traces that
    the page reads to stay in memory.
    """
    if len(hosts) > POLICY.max_hosts_in_memory:
        return False
    files = [session.file(host) for host in hosts]
    return (
        sum(file.size_bytes * (_COMPRESSED if file.path.endswith(".gz") else 1) for file in files)
        <= QUICK_BYTES
    )


def with_limits(
    tool: str,
    verdict: Verdict | None,
    limits: JobLimits | None,
    is_named: bool = False,
    is_first: bool = False,
) -> Verdict | None:
    """The page's verdict combined with the job's limits (see the module). `is_named`: its text already names
    the limit; `is_first`: the limit comes first, because the page has little to say.
    """
    top = limits.top if limits else None
    if verdict is None or limits is None or top is None:
        return verdict
    others = tuple(step for step in verdict.next if step.tool != "overview_page")
    if limits.is_about(tool):
        text = (
            verdict.text
            if verdict.text.startswith(limits.diagnosis.text)
            else f"{limits.diagnosis.text} {verdict.text}"
        )
        color, steps = (
            cause_color(top.cause, limits.kind),
            (next_step("See how to fix it", "overview_page", top.gain_ps), *others),
        )
        reason = () if tool in _OWN_REASON or not top.reason else (top.reason,)
        details = (*reason, *verdict.details)
        return replace(
            verdict, level=limits.diagnosis.level, text=text, category=color, details=details, next=steps
        )
    if not limits.are_elsewhere(tool):
        return verdict
    text = verdict.text
    if not is_named:
        text = f"{limit_sentence(top)} {text}" if is_first else f"{text} {limit_sentence(top)}"
    return replace(
        verdict,
        text=text,
        next=(next_step("See what limits this job", "overview_page", top.gain_ps), *others),
    )


def next_step(
    text: str,
    tool: str,
    gain_ps: tuple[float, float] | None,
    params: Mapping[str, str] | None = None,
) -> NextStep:
    """A link with the gain to expect without the finding's cost, if a model estimates it."""
    gain = gain_text(gain_ps)
    promise = f"{FULL_GAIN[0].lower()}{FULL_GAIN[1:]}: {gain}"
    return NextStep(f"{text} ({promise})" if gain else text, tool, params or {})


def gain_text(gain_ps: tuple[float, float] | None) -> str:
    """`9.00 ms to 12.0 ms per step`; empty if no model estimates it, or nothing is gained."""
    if not gain_ps or gain_ps[1] <= 0:
        return ""
    low, high = (format_time(gain) for gain in gain_ps)
    if gain_ps[0] <= 0:
        return f"up to {high} per step"
    return f"{low} to {high} per step" if low != high else f"{low} per step"


def limit_sentence(top: Finding) -> str:
    """The cause with its culprit and share: `This job is limited by compilation of …, 63.4% of the mean
    step: see the overview.`
    """
    return f"This job is limited by {_named(top)}, {format_fraction(top.share)} {top.base}: see the overview."


def in_sentence(cause: Cause) -> str:
    """A cause's name within a sentence."""
    return _WORDS.get(cause, cause.label.lower())


def _named(top: Finding) -> str:
    """A finding's cause and culprit within a sentence."""
    culprit, word = top.culprit, in_sentence(top.cause)
    if culprit.kind == "host":
        return f"the slow host {culprit.title}"
    if top.cause == Cause.PYTHON and culprit.kind == "annotation":
        return f"time in {culprit.title}"  # it need not be Python
    if culprit.kind in ("function", "annotation"):
        return f"{word} in {culprit.title}"
    return f"{word} of {culprit.title}" if top.cause == Cause.COMPILATION and culprit.name else word
