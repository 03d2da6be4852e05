"""Turns the evidence of hosts into the diagnosis of a run, or of one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.exchange import JobExchange
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Diagnosis, Finding, Level, shares
from tb_tpuprof.analysis.diagnosis.job_communication import job_communication
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, HostEvidence
from tb_tpuprof.analysis.diagnosis.rules import claim_of, rules
from tb_tpuprof.analysis.diagnosis.slow_hosts import slow_hosts
from tb_tpuprof.analysis.events.library_files import library_files
from tb_tpuprof.units import format_fraction, format_time

_LEAST = 0.03  # of the step: smaller costs are no finding
# A run whose largest finding is smaller is healthy: the finding is listed but does not set the verdict
_TELLING = 0.05
_BAD = 0.20
_COMPUTES = 0.6  # of the step: a step that computes for less is not compute-bound
_ALIKE = 1.1  # times the mean over hosts
_LEADS = {
    Cause.COMPILATION: "compilation-bound",
    Cause.INPUT: "input-bound",
    Cause.PYTHON: "Python-bound",
    Cause.CALLBACKS: "callback-bound",
    Cause.DISPATCH: "dispatch-bound",
    Cause.TRANSFERS: "transfer-bound",
    Cause.COMMUNICATION: "communication-bound",
}
_RULES = rules()
# Compile patterns and read files at import, not during the first request.
claim_of("")
library_files()


def diagnose(
    hosts: Sequence[HostEvidence],
    common_rows: Sequence[slice] = (),
    exchange: JobExchange | None = None,
) -> Diagnosis:
    """The diagnosis of a run. Causes are means over the hosts with steps, if any has accelerators over those
    that do; a finding that only some hosts have names the worst of them.

    `common_rows`: which of each host's steps all hosts ran at the same time, as in `CommonSteps.rows`. Hosts
    are compared over these steps only; without them, they are not compared. `exchange`: the communication of
    all hosts, if known.
    """
    rows = counted(hosts)
    hosts_with_steps = without_waits_for_others([hosts[i] for i in rows])
    if not hosts_with_steps:
        return Diagnosis("unknown", "No steps were found, so there is nothing to diagnose.", 0.0, 0)
    step_ps = sum(host.step_ps for host in hosts_with_steps) / len(hosts_with_steps)
    findings_by_host = [findings(host) for host in hosts_with_steps]
    each = list(zip(hosts_with_steps, findings_by_host, strict=True))
    all_findings = [
        *_merged(each),
        *job_communication(each, exchange),
        *slow_hosts(
            hosts_with_steps,
            findings_by_host,
            [common_rows[i] for i in rows if i < len(common_rows)],
            exchange.own if exchange else None,
        ),
    ]
    ranked = tuple(
        sorted(
            (one for one in all_findings if one.share >= _LEAST or one.cause == Cause.WARM_UP),
            key=lambda one: -one.rank,
        )
    )
    times = [
        (cause, sum(host.time_ps(cause) for host in hosts_with_steps) / len(hosts_with_steps))
        for cause in Cause
    ]
    text, level = _verdict(ranked, hosts_with_steps)
    is_detailed = all(part.is_detailed for part in hosts_with_steps)
    result = Diagnosis(
        level, text, step_ps, hosts_with_steps[0].n_steps, ranked, shares(times, step_ps), is_detailed
    )
    return replace(result, is_detailed=is_detailed or bool(result.top and result.top.culprit.name))


def counted(hosts: Sequence[HostEvidence]) -> list[int]:
    """The places of the hosts with steps; coordinators and data workers do not count beside hosts with
    accelerators, as in `common_steps`.
    """
    with_steps = [i for i, host in enumerate(hosts) if host.n_steps]
    on_devices = [i for i in with_steps if hosts[i].kind != "CPU"]
    return on_devices or with_steps


def without_waits_for_others(hosts: Sequence[HostEvidence]) -> list[HostEvidence]:
    """Hosts without the periods in which they only compute longer because another host has periodic work of
    its own: they wait for that host.
    """
    own_periods = {
        (host.host, period.every) for host in hosts for period in host.periods if period.was != Cause.COMPUTE
    }
    result = []
    for host in hosts:
        periods_of_others = {every for name, every in own_periods if name != host.host}
        kept = tuple(
            period
            for period in host.periods
            if period.was != Cause.COMPUTE or period.programs or period.every not in periods_of_others
        )
        only_waits = len(kept) < len(host.periods) and not any(period.was == Cause.COMPUTE for period in kept)
        computing = tuple(
            replace(part, cause=Cause.COMPUTE)
            if only_waits and part.cause == Cause.PERIODIC and part.klass in COMPUTES
            else part
            for part in host.parts
        )
        result.append(replace(host, periods=kept, parts=computing))
    return result


def findings(host: HostEvidence) -> list[Finding]:
    """Findings of all rules on one host."""
    return [_promised(replace(one, host=host.host)) for rule in _RULES for one in rule.find(host)]


def _promised(finding: Finding) -> Finding:
    """A finding that promises at most the time that it measures. Removing a cause often saves more (cold
    caches and sleeping processors go with it): that ranks findings, but no event of the trace shows it.
    """
    if finding.gain_ps is None:
        return finding
    least, most = (min(gain, finding.time_ps) for gain in finding.gain_ps)
    return replace(finding, gain_ps=(least, most), rank_ps=finding.rank)


def _merged(each: Sequence[tuple[HostEvidence, list[Finding]]]) -> list[Finding]:
    """One finding per cause and culprit, without communication: that of the worst host. It names the host if
    other hosts are not affected as much.
    """
    each = [(host, [one for one in found if one.cause != Cause.COMMUNICATION]) for host, found in each]
    if len(each) == 1:
        return [replace(one, host="") for one in each[0][1]]
    groups: dict[tuple[Cause, Culprit, int], list[Finding]] = {}
    for _, host_findings in each:
        n_seen: Counter[tuple[Cause, Culprit]] = (
            Counter()
        )  # a host can have several findings with one culprit, such as two periods
        for one in host_findings:
            groups.setdefault((one.cause, one.culprit, n_seen[one.cause, one.culprit]), []).append(one)
            n_seen[one.cause, one.culprit] += 1
    result = []
    for similar in groups.values():
        worst = max(similar, key=lambda one: one.share)
        least_share = min((one.share for one in similar), default=0.0) if len(similar) == len(each) else 0.0
        is_alone = worst.share >= 2 * least_share + _LEAST
        # The numbers are the worst host's: where they differ from the others', the sentence names the host.
        mean_ps = sum(one.time_ps for one in similar) / len(each)
        sentence = _on_host(worst) if is_alone or worst.time_ps > _ALIKE * mean_ps else worst.sentence
        base = f"of {worst.host}'s mean step"
        result.append(replace(worst, sentence=sentence, base=base, host=worst.host if is_alone else ""))
    return result


def _on_host(finding: Finding) -> str:
    """On `worker-1`, each step waits …"""
    text = finding.sentence
    return f"On `{finding.host}`, {text[0].lower()}{text[1:]}"


def _verdict(ranked: Sequence[Finding], hosts: Sequence[HostEvidence]) -> tuple[str, Level]:
    top = next((one for one in ranked if one.cause != Cause.WARM_UP), None)
    if top and top.share >= _TELLING:
        level: Level = "bad" if top.share >= _BAD else "warn"
        is_answer = level == "bad" or top.cause != Cause.UNRECORDED
    host = max(hosts, key=lambda one: one.step_ps)
    computing = host.share(host.time_ps(Cause.COMPUTE))
    if top and top.share >= _TELLING and (is_answer or computing < _COMPUTES):
        return _led(top, level), level
    where = "on the host" if host.kind == "CPU" else f"on the {host.kind}"
    share = f"{format_fraction(computing)} of it computing {where}"
    text = (
        f"Compute-bound: each step takes {format_time(host.step_ps)}, {share}; no other cost is significant."
    )
    if top and top.share >= _TELLING:
        # What was not recorded is no answer while most of the step is known to compute.
        rest = f"{format_time(top.time_ps)} ({format_fraction(top.share)}) was not recorded"
        return text.replace("no other cost is significant", rest), "warn"
    if computing < _COMPUTES:
        text = (
            f"No single cause dominates the step of {format_time(host.step_ps)}: "
            f"{format_fraction(computing)} of it is computing."
        )
    return text, "good"


def _led(top: Finding, level: Level) -> str:
    """A finding's sentence, introduced by the bound that it implies (`Highly input-bound: …`)."""
    lead = _LEADS.get(top.cause, "")
    # Time in an annotation without operations need not be Python.
    if not lead or (top.cause == Cause.PYTHON and top.culprit.kind == "annotation"):
        return top.sentence
    how = "Highly " if level == "bad" else "Moderately "
    sentence = top.sentence if top.sentence.startswith("`") else top.sentence[0].lower() + top.sentence[1:]
    return f"{how}{lead}: {sentence}"
