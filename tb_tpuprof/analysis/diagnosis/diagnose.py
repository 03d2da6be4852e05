"""Evidence of hosts → the diagnosis of a run, or of one of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Diagnosis, Finding, Level, shares
from tb_tpuprof.analysis.diagnosis.records import COMPUTES, HostEvidence
from tb_tpuprof.analysis.diagnosis.rules import claim_of, rules
from tb_tpuprof.analysis.diagnosis.slow_hosts import slow_hosts
from tb_tpuprof.analysis.events.library_files import library_files
from tb_tpuprof.units import format_fraction, format_time

_LEAST = 0.03  # of the step: what costs less is no finding
# A run whose largest finding is smaller is healthy: the finding is listed, the first line stays calm
_TELLING = 0.05
_BAD = 0.20
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
# Compiled and read with the plugin, not while the first answer waits.
claim_of("")
library_files()


def diagnose(hosts: Sequence[HostEvidence]) -> Diagnosis:
    """Hosts as one run: causes are means over the hosts with steps; a finding of some hosts alone
    names them.
    """
    parts = without_waits_for_others([host for host in hosts if host.n_steps])
    if not parts:
        return Diagnosis("unknown", "No steps were found, so no step can be slow.", 0.0, 0)
    step = sum(host.step_ps for host in parts) / len(parts)
    each = [findings(host) for host in parts]
    found = [*_merged(list(zip(parts, each, strict=True))), *slow_hosts(parts, each)]
    ranked = tuple(
        sorted(
            (one for one in found if one.share >= _LEAST or one.cause == Cause.WARM_UP),
            key=lambda one: -one.rank,
        )
    )
    times = [(cause, sum(host.time_ps(cause) for host in parts) / len(parts)) for cause in Cause]
    text, level = _verdict(ranked, parts)
    is_detailed = all(part.is_detailed for part in parts)
    result = Diagnosis(level, text, step, parts[0].n_steps, ranked, shares(times, step), is_detailed)
    return replace(result, is_detailed=is_detailed or bool(result.top and result.top.culprit.name))


def without_waits_for_others(hosts: Sequence[HostEvidence]) -> list[HostEvidence]:
    """Hosts without periods in which they compute longer because another one has work of its own in the same
    steps: they wait for it.
    """
    own = {
        (host.host, period.every) for host in hosts for period in host.periods if period.was != Cause.COMPUTE
    }
    result = []
    for host in hosts:
        theirs = {every for name, every in own if name != host.host}
        kept = tuple(
            period
            for period in host.periods
            if period.was != Cause.COMPUTE or period.programs or period.every not in theirs
        )
        waits = len(kept) < len(host.periods) and not any(period.was == Cause.COMPUTE for period in kept)
        computing = tuple(
            replace(part, cause=Cause.COMPUTE)
            if waits and part.cause == Cause.PERIODIC and part.klass in COMPUTES
            else part
            for part in host.parts
        )
        result.append(replace(host, periods=kept, parts=computing))
    return result


def findings(host: HostEvidence) -> list[Finding]:
    """What all rules find on one host."""
    return [replace(one, host=host.host) for rule in _RULES for one in rule.find(host)]


def _merged(each: Sequence[tuple[HostEvidence, list[Finding]]]) -> list[Finding]:
    """Findings of one cause and culprit on all hosts as the worst of them; of some hosts alone under the
    worst host's name.
    """
    if len(each) == 1:
        return [replace(one, host="") for one in each[0][1]]
    groups: dict[tuple[Cause, Culprit, int], list[Finding]] = {}
    for _, found in each:
        seen: Counter[tuple[Cause, Culprit]] = (
            Counter()
        )  # a host can have several findings of one culprit: two periods
        for one in found:
            groups.setdefault((one.cause, one.culprit, seen[one.cause, one.culprit]), []).append(one)
            seen[one.cause, one.culprit] += 1
    result = []
    for same in groups.values():
        worst = max(same, key=lambda one: one.share)
        least = min((one.share for one in same), default=0.0) if len(same) == len(each) else 0.0
        is_alone = worst.share >= 2 * least + _LEAST
        # The numbers are the worst host's: where they are not about everyone's, the sentence says whose.
        usual = sum(one.time_ps for one in same) / len(each)
        sentence = _on_host(worst) if is_alone or worst.time_ps > _ALIKE * usual else worst.sentence
        base = f"of {worst.host}'s mean step"
        result.append(replace(worst, sentence=sentence, base=base, host=worst.host if is_alone else ""))
    return result


def _on_host(found: Finding) -> str:
    """On `worker-1`, each step waits …"""
    text = found.sentence
    return f"On `{found.host}`, {text[0].lower()}{text[1:]}"


def _verdict(ranked: Sequence[Finding], hosts: Sequence[HostEvidence]) -> tuple[str, Level]:
    top = next((one for one in ranked if one.cause != Cause.WARM_UP), None)
    if top and top.share >= _TELLING:
        level: Level = "bad" if top.share >= _BAD else "warn"
        return _led(top, level), level
    host = max(hosts, key=lambda one: one.step_ps)
    computing = host.share(host.time_ps(Cause.COMPUTE))
    where = "on the host" if host.kind == "CPU" else f"on the {host.kind}"
    share = f"{format_fraction(computing)} of it computing {where}"
    text = (
        f"Compute-bound: each step takes {format_time(host.step_ps)}, {share}; no other cost is significant."
    )
    if computing < 1 - 2 * _BAD:
        text = (
            f"No single cause takes much of the step of {format_time(host.step_ps)}: "
            f"{format_fraction(computing)} of it is computing."
        )
    return text, "good"


def _led(top: Finding, level: Level) -> str:
    """A finding's sentence behind what it makes of the run."""
    lead = _LEADS.get(top.cause, "")
    # Of an annotation without operations nobody knows whether it is Python.
    if not lead or (top.cause == Cause.PYTHON and top.culprit.kind == "annotation"):
        return top.sentence
    how = "Highly " if level == "bad" else "Moderately "
    sentence = top.sentence if top.sentence.startswith("`") else top.sentence[0].lower() + top.sentence[1:]
    return f"{how}{lead}: {sentence}"
