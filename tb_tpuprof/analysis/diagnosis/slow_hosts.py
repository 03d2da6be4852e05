"""Hosts that the others wait for: what each host's step takes of its own, without exchanging data with the
others.

worker-0   ■■■■■■■■■■■■■■■■□□□□□□□□   own work, then waiting in the all-reduce
worker-1   ■■■■■■■■■■■■■■■■□□□□□□□□
worker-2   ■■■■■■■■■■■■■■■■■■■■■■■□   the slowest: it waits for nobody
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Evidence, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.pod.stragglers import LEAST_EXCESS, MIN_STEPS, slow_units
from tb_tpuprof.units import format_fraction, format_time

Floats = npt.NDArray[np.float64]
_FEW_HOSTS = 3
_FAR = 3.5  # the modified z-score beyond which a value is an outlier (Iglewicz and Hoaglin, 1993; XProf)
_LEAST_MAD = 0.01  # of the median
_LEAST_GAIN = 0.01  # of the step: with a second host that is as slow nothing is gained
_LONGER = {
    Cause.COMPUTE: "computing",
    Cause.INPUT: "waiting for data",
    Cause.PYTHON: "Python",
    Cause.UNRECORDED: "idling",
    Cause.DISPATCH: "dispatching",
    Cause.COMPILATION: "compiling",
    Cause.TRANSFERS: "copying between host and device",
    Cause.SYNCHRONIZATION: "waiting for its devices",
    Cause.CALLBACKS: "callbacks",
    Cause.PERIODIC: "work of every n-th step",
}


def slow_hosts(hosts: Sequence[HostEvidence], found: Sequence[Sequence[Finding]]) -> list[Finding]:
    """A finding for each host that is slower than the others. `found`: what each host's own rules say."""
    everywhere = set(hosts[0].names).intersection(*(host.names for host in hosts))
    common = [name for name in hosts[0].names if name in everywhere] if len(hosts) > 1 else []
    if not common:
        return []
    own = np.array([_own(host, common) for host in hosts])
    lasting = {slow.unit: (slow.excess_ps, own[slow.unit, slow.since :].mean()) for slow in slow_units(own)}
    if len(common) < MIN_STEPS:
        lasting = _outliers(own.mean(axis=1))
    slow = [_finding(hosts, found, unit, excess, common) for unit, (excess, _) in lasting.items()]
    return [one for one in slow if one.gain_ps and one.gain_ps[1] >= _LEAST_GAIN * hosts[0].step_ps]


def _own(host: HostEvidence, names: Sequence[str]) -> Floats:
    """Time of each of the named steps without collectives, in which hosts wait for one another."""
    exchanged: Floats = np.zeros(host.n_steps)
    for part in host.parts:
        if part.cause == Cause.COMMUNICATION:
            exchanged = exchanged + part.time_ps
    rows = {
        name: row for row, name in reversed(list(enumerate(host.names)))
    }  # of several steps of a name the first
    at = [rows[name] for name in names]
    result: Floats = (host.duration_ps - exchanged)[at]
    return result


def _outliers(own: Floats) -> dict[int, tuple[float, float]]:
    """Of few steps: hosts whose mean lies far from the others', by the modified z-score."""
    if len(own) < _FEW_HOSTS:
        return {}
    middle = float(np.median(own))
    spread = max(float(np.median(np.abs(own - middle))), _LEAST_MAD * middle, 1.0)
    far = np.flatnonzero((0.6745 * (own - middle) / spread > _FAR) & (own > (1 + LEAST_EXCESS) * middle))
    return {int(unit): (float(own[unit] - middle), float(own[unit])) for unit in far.tolist()}


def _finding(
    hosts: Sequence[HostEvidence],
    found: Sequence[Sequence[Finding]],
    unit: int,
    excess: float,
    common: Sequence[str],
) -> Finding:
    host, others = hosts[unit], [one for i, one in enumerate(hosts) if i != unit]
    more = {
        cause: host.time_ps(cause) - float(np.median([one.time_ps(cause) for one in others]))
        for cause in Cause if cause not in (Cause.COMMUNICATION, Cause.WARM_UP, Cause.CONTENTION)
    }  # fmt: skip
    cause = max(more, key=lambda one: more[one])
    excess = min(excess, host.step_ps)
    own = next((one for one in sorted(found[unit], key=lambda one: -one.rank) if one.cause == cause), None)
    slowest_other = max(float(_own(one, common).mean()) for one in others)
    saved = min(max(float(_own(host, common).mean()) - slowest_other, 0.0), excess)
    what = f", most of it in {_LONGER.get(cause, cause.label.lower())}" if more[cause] * 2 > excess else ""
    exchanges = any(one.time_ps(Cause.COMMUNICATION) for one in hosts)
    is_slow = "holds the other hosts up" if exchanges else "is slower than the other hosts"
    return Finding(
        cause,
        f"`{host.host}` {is_slow}: its own work takes {format_time(excess)} "
        f"({format_fraction(host.share(excess))}) longer per step than theirs{what}.",
        excess,
        host.share(excess),
        f"On `{host.host}`: {own.sentence}"
        if own
        else "Hosts that train together wait for the slowest one in each exchange of data.",
        Culprit("host", host.host),
        host.host,
        base=f"of {host.host}'s mean step",
        gain_ps=(0.0, saved),
        fix=own.fix
        if own and own.fix
        else "Compare this host with another: its data, its share of the work, its clocks, other jobs on it.",
        snippet=own.snippet if own else "",
        evidence=(
            Evidence(
                f"Compared over {len(common):,} steps that all hosts have, without time in collectives.",
                host.host,
            ),
        ),
        confidence="medium",
    )
