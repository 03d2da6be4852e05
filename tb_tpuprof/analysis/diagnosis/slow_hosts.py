"""Hosts that the others wait for, by each host's own step time: without waiting for the others.

worker-0   ■■■■■■■■■■■■■■■■□□□□□□□▪   own work, waiting in the all-reduce, and its transfer
worker-1   ■■■■■■■■■■■■■■■■□□□□□□□▪
worker-2   ■■■■■■■■■■■■■■■■■■■■■■■▪   the slowest: it does not wait

Where the pod separates waiting from transferring, its own times count, so that both pages say the same.
Elsewhere a host's own time is its step without collectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.exchange import OwnTimes
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.pod.stragglers import LEAST_EXCESS, MIN_STEPS, slow_units
from tb_tpuprof.units import format_fraction, format_time

Floats = npt.NDArray[np.float64]
_FEW_HOSTS = 3
_FAR = 3.5  # the modified z-score beyond which a value is an outlier (Iglewicz and Hoaglin, 1993; XProf)
_LEAST_MAD = 0.01  # of the median
_LEAST_GAIN = 0.01  # of the step: with a second host as slow, fixing one gains nothing
_LONGER = {
    Cause.COMPUTE: "compute",
    Cause.INPUT: "waits for data",
    Cause.PYTHON: "Python",
    Cause.UNRECORDED: "idle time",
    Cause.DISPATCH: "dispatch",
    Cause.COMPILATION: "compilation",
    Cause.TRANSFERS: "copies between host and device",
    Cause.SYNCHRONIZATION: "waits for its devices",
    Cause.CALLBACKS: "callbacks",
    Cause.PERIODIC: "periodic work",
    Cause.COMMUNICATION: "moving data",
}


def slow_hosts(
    hosts: Sequence[HostEvidence],
    findings_by_host: Sequence[Sequence[Finding]],
    common_rows: Sequence[slice],
    own: OwnTimes | None = None,
) -> list[Finding]:
    """A finding per host that is slower than the others. `findings_by_host`: those of each host's rules;
    `common_rows`: which of each host's steps all hosts ran, as in `CommonSteps.rows`; `own`: the pod's own
    times, if known.
    """
    compared = [i for i, rows in enumerate(common_rows) if rows.stop > rows.start]
    if len(compared) < 2:
        return []
    hosts = [hosts[i] for i in compared]
    findings_by_host = [findings_by_host[i] for i in compared]
    if own is not None and {host.host for host in hosts} <= set(own.hosts):
        slow, n_common, without = _slow_in_pod(hosts, own), own.own_ps.shape[1], "waiting for others"
    else:
        own_ps = np.array([_own_ps(host)[common_rows[i]] for host, i in zip(hosts, compared, strict=True)])
        slow, n_common, without = _slow_by_evidence(own_ps), own_ps.shape[1], "time in collectives"
    basis = f"Compared over {n_common:,} steps common to all hosts, without {without}."
    findings = [_finding(hosts, findings_by_host, one, basis) for one in slow]
    return [one for one in findings if one.gain_ps and one.gain_ps[1] >= _LEAST_GAIN * hosts[0].step_ps]


@dataclass(frozen=True)
class _SlowHost:
    """A row of the hosts compared: by how much its own time exceeds the others', and what the job would save
    at the others' speed, in ps per step. `network_ps`: the part of the excess in which it moves data.
    """

    row: int
    excess_ps: float
    saved_ps: float
    network_ps: float = 0.0


def _slow_in_pod(hosts: Sequence[HostEvidence], own: OwnTimes) -> list[_SlowHost]:
    """The slow hosts of the pod viewer; with few steps, those whose means differ clearly."""
    row_of = {host.host: row for row, host in enumerate(hosts)}
    if own.own_ps.shape[1] < MIN_STEPS:
        mean_ps = own.own_ps.mean(axis=1)
        named = [
            (own.hosts[unit], excess, _lead(mean_ps, unit), 0.0)
            for unit, excess in _outliers(mean_ps).items()
        ]
    else:
        named = [
            (one.host, one.slow.excess_ps, max(one.gain_ps, 0.0), one.slow.causes.get("network", 0.0))
            for one in own.slow
        ]
    return [_SlowHost(row_of[host], *times) for host, *times in named if host in row_of]


def _slow_by_evidence(own_ps: Floats) -> list[_SlowHost]:
    """Slow hosts by their own times: float64[hosts, steps]."""
    mean_ps = own_ps.mean(axis=1)
    if own_ps.shape[1] < MIN_STEPS:
        excess_by_unit = _outliers(mean_ps)
    else:
        excess_by_unit = {slow.unit: slow.excess_ps for slow in slow_units(own_ps)}
    return [_SlowHost(unit, excess, _lead(mean_ps, unit)) for unit, excess in excess_by_unit.items()]


def _lead(mean_ps: Floats, unit: int) -> float:
    """By how much a host takes longer than the slowest of the others; 0 if another takes as long."""
    return max(float(mean_ps[unit] - np.delete(mean_ps, unit).max()), 0.0)


def _own_ps(host: HostEvidence) -> Floats:
    """Time in ps of each step without collectives, in which hosts wait for one another."""
    exchanged: Floats = np.zeros(host.n_steps)
    for part in host.parts:
        if part.cause == Cause.COMMUNICATION:
            exchanged = exchanged + part.time_ps
    return host.duration_ps - exchanged


def _outliers(own_ps: Floats) -> dict[int, float]:
    """Slow hosts of runs with few steps, by the modified z-score of their means: by host, the excess over
    the median in ps.
    """
    if len(own_ps) < _FEW_HOSTS:
        return {}
    middle = float(np.median(own_ps))
    spread = max(float(np.median(np.abs(own_ps - middle))), _LEAST_MAD * middle, 1.0)
    outliers = np.flatnonzero(
        (0.6745 * (own_ps - middle) / spread > _FAR) & (own_ps > (1 + LEAST_EXCESS) * middle)
    )
    return {unit: float(own_ps[unit] - middle) for unit in outliers.tolist()}


def _finding(
    hosts: Sequence[HostEvidence],
    findings_by_host: Sequence[Sequence[Finding]],
    slow: _SlowHost,
    basis: str,
) -> Finding:
    unit = slow.row
    host, others = hosts[unit], [one for i, one in enumerate(hosts) if i != unit]
    excess_by_cause: dict[Cause, float] = {
        cause: host.time_ps(cause) - float(np.median([one.time_ps(cause) for one in others]))
        for cause in Cause if cause not in (Cause.COMMUNICATION, Cause.WARM_UP, Cause.CONTENTION)
    }  # fmt: skip
    if slow.network_ps > 0:
        excess_by_cause[Cause.COMMUNICATION] = slow.network_ps
    cause = max(excess_by_cause, key=lambda one: excess_by_cause[one])
    excess = min(slow.excess_ps, host.step_ps)
    ranked = sorted(findings_by_host[unit], key=lambda one: -one.rank) if excess_by_cause[cause] > 0 else []
    own_finding = next((one for one in ranked if one.cause == cause), None)
    mostly = (
        f", most of it in {_LONGER.get(cause, cause.label.lower())}"
        if excess_by_cause[cause] * 2 > excess
        else ""
    )
    exchanges = any(one.time_ps(Cause.COMMUNICATION) for one in hosts)
    is_slow = "holds up the other hosts" if exchanges else "is slower than the other hosts"
    return Finding(
        cause,
        f"`{host.host}` {is_slow}: its own work takes {format_time(excess)} "
        f"({format_fraction(host.share(excess))}) longer per step than theirs{mostly}.",
        excess,
        host.share(excess),
        f"On `{host.host}`: {own_finding.sentence}"
        if own_finding
        else "Hosts that train together wait for the slowest one whenever they exchange data.",
        Culprit("host", host.host),
        host.host,
        base=f"of {host.host}'s mean step",
        gain_ps=(0.0, min(slow.saved_ps, excess)),
        fix=own_finding.fix
        if own_finding and own_finding.fix
        else "Compare this host with another: data, share of the work, clock speed, other jobs on it.",
        snippet=own_finding.snippet if own_finding else "",
        evidence=(Evidence(basis, host.host),),
        confidence="medium",
    )
