"""Hosts' findings about communication → that of the job: all take part, so its numbers are their means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.exchange import JobExchange
from tb_tpuprof.analysis.diagnosis.finding import Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.diagnosis.rules.communication import sentence, where_most
from tb_tpuprof.units import format_fraction, format_time

_ALIKE = 1.1  # times the mean over hosts: a host that spends more is named


def job_communication(
    each: Sequence[tuple[HostEvidence, Sequence[Finding]]], exchange: JobExchange | None
) -> list[Finding]:
    """One finding for the exposed collectives of all hosts, or none. Its time and share are means over the
    hosts; it also names the host that spends most in them. The saving of hiding is the communication page's,
    if known; hiding is one of several remedies, so the finding ranks by the time of that host, as findings of
    the worst host do. `each`: hosts with their findings.
    """
    pairs = [(host, one) for host, findings in each for one in findings if one.cause == Cause.COMMUNICATION]
    if not pairs:
        return []
    host, worst = max(pairs, key=lambda pair: pair[1].share)
    time_ps = sum(one.time_ps for _, one in pairs) / len(each)
    step_ps = sum(one.step_ps for one, _ in each) / len(each)
    share = time_ps / step_ps
    amount = f"{format_time(time_ps)} ({format_fraction(share)})"
    saved_ps = time_ps if exchange is None else min(time_ps, exchange.mean_gain_ps)
    return [
        replace(
            worst,
            sentence=sentence(amount, _where(host, worst, time_ps, [one for one, _ in each])),
            time_ps=time_ps,
            share=share,
            gain_ps=(0.0, saved_ps),
            host="",
            rank_ps=worst.rank,
        )
    ]


def _where(host: HostEvidence, worst: Finding, mean_ps: float, hosts: Sequence[HostEvidence]) -> str:
    """What takes most of the time, as the end of the sentence: on the host that spends most, which is named
    where it differs from the mean; else on all hosts if they agree.
    """
    place = where_most(host)
    if worst.time_ps > _ALIKE * mean_ps:
        return (
            f"; most on `{host.host}`: {format_time(worst.time_ps)} ({format_fraction(worst.share)}){place}"
        )
    return place if all(where_most(one) == place for one in hosts) else ""
