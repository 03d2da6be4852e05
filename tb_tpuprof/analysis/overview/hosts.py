"""A comparison of the hosts of a run: the time of each for the steps that all have, and which is slowest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.overview.summary import Summary
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.units import all_of, format_fraction, format_time, three_digits

_ALIKE = 0.01  # hosts whose mean step times differ by less count as equally fast


@dataclass(frozen=True)
class HostSteps:
    """One host in the steps that all hosts have. Time (ps) and shares are of these steps on this host; None:
    unknown.
    """

    host: str
    step_ps: float
    input_fraction: float
    idle_fraction: float
    duty_cycle: float | None


def host_steps(parts: Sequence[Summary], common: CommonSteps) -> tuple[HostSteps, ...]:
    """The hosts that have the common steps, slowest first; if no steps are common, each host with all its
    steps.
    """
    host_rows = []
    for part, common_rows in zip(parts, common.rows, strict=True):
        rows = slice(None) if common.is_disjoint else common_rows
        duration = part.steps.duration_ps[rows]
        if len(duration):
            total_ps = int(duration.sum()) or 1
            shares = [
                int(part.steps.category_ps(category)[rows].sum()) / total_ps
                for category in ("input", "other")
            ]
            host_rows.append(
                HostSteps(part.host, float(duration.mean()), shares[0], shares[1], part.use.duty_cycle)
            )
    return tuple(sorted(host_rows, key=lambda host: -host.step_ps))


def are_alike(hosts: Sequence[HostSteps]) -> bool:
    """Whether all hosts (sorted) take about the same time for a step, or there is only one."""
    return _excess(hosts) < _ALIKE


def _excess(hosts: Sequence[HostSteps]) -> float:
    """By which fraction the slowest host's steps are longer than the fastest one's."""
    return hosts[0].step_ps / hosts[-1].step_ps - 1 if hosts and hosts[-1].step_ps else 0.0


def slowest_host(hosts: Sequence[HostSteps]) -> str:
    """A sentence that names the slowest of several hosts (sorted), empty for one."""
    if len(hosts) < 2:
        return ""
    slowest, fastest = hosts[0], hosts[-1]
    if are_alike(hosts):
        return (
            f"{all_of(len(hosts))} hosts are equally fast: their average step times differ by less than "
            f"{_ALIKE * 100:g}%."
        )
    return (
        f"`{slowest.host}` is the slowest of {len(hosts)} hosts: its steps take "
        f"{format_time(slowest.step_ps)} on average, {_compared(hosts)} the fastest, `{fastest.host}`."
    )


def _compared(hosts: Sequence[HostSteps]) -> str:
    """`12.0% longer than on`, or from twice as long `3.45 times as long as on`."""
    excess = _excess(hosts)
    return (
        f"{format_fraction(excess)} longer than on"
        if excess < 1
        else f"{three_digits(1 + excess)} times as long as on"
    )
