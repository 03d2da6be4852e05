"""Why a run's steps are slow: the diagnosis of its hosts, or of a single step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.host import comm_between
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import counted, diagnose
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.exchange import JobExchange, job_exchange
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.overview.summary import Summary, summary
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import CommonSteps, common_steps
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.parallel.executors import one_request
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.comm_costs import comm_of
from tb_tpuprof.units import format_fraction, format_time

ALIKE = 0.05  # of the median: a step that differs by less is as long as the others
_SLOWEST = 4
_TIMES_FROM = 2.0  # times the median: longer steps are described by a multiple


def diagnosis(session: Session, hosts: Sequence[str] = (), step: str = "") -> Diagnosis:
    """The diagnosis of some or all hosts of a run: the mean over the steps, or one step.

    `step`: a step's name (`train 41`) or number. Raises BadParameter if no host has it, and HostsUnreadable
    like `Session.map`.
    """
    all_hosts = list(hosts or session.hosts)
    read_hosts = explained_hosts(session, all_hosts)
    parts = session.map(host_evidence, read_hosts)
    if step:
        result = _of_step(parts, step, exchange_of(session, all_hosts, parts))
    else:
        result = of_all_steps(session, all_hosts, read_hosts, parts)[0]
    if len(read_hosts) == len(all_hosts):
        return result
    text = (
        f"Causes are those of {len(read_hosts):,} of {len(all_hosts):,} hosts: the {_SLOWEST} slowest, and "
        "others evenly spaced in the host list."
    )
    return replace(result, note=text)


def of_all_steps(
    session: Session, hosts: Sequence[str], read_hosts: Sequence[str], parts: Sequence[HostEvidence]
) -> tuple[Diagnosis, CommonSteps]:
    """The diagnosis of hosts, and the steps that `read_hosts` have in common: all of them, or those whose
    evidence, `parts`, is read. Raises HostsUnreadable.
    """
    common = common_evidence(session, read_hosts, parts)
    return diagnose(parts, common.rows, exchange_of(session, hosts, parts)), common


def exchange_of(session: Session, hosts: Sequence[str], parts: Sequence[HostEvidence]) -> JobExchange | None:
    """The communication of all hosts, if it matters to their diagnosis: some exchange data, or the devices of
    several may wait for one another. Raises HostsUnreadable.
    """
    compares_devices = len(parts) > 1 and any(part.kind != "CPU" for part in parts)
    if not compares_devices and not any(part.time_ps(Cause.COMMUNICATION) for part in parts):
        return None
    comm = comm_of(session, hosts, clocks_of(session, hosts))
    if comm is None:
        return None
    return session.joined.get("exchange", [comm], partial(job_exchange, comm))


def diagnoses_apart(session: Session, hosts: Sequence[str]) -> dict[str, Diagnosis]:
    """The diagnosis of each host by itself, for captures that do not overlap in time; of many hosts, of those
    whose evidence is read. Raises HostsUnreadable.
    """
    read_hosts = explained_hosts(session, hosts)
    parts = session.map(host_evidence, read_hosts)
    return {
        host: diagnose([part], (), exchange_of(session, [host], [part]))
        for host, part in zip(read_hosts, parts, strict=True)
    }


def explained_hosts(session: Session, hosts: Sequence[str]) -> list[str]:
    """The hosts whose evidence is read: all of few hosts; of many, the slowest and some evenly spaced ones.
    Reads the summaries of all.

    The slowest are those whose steps take longest without collectives, in which hosts wait for each other.
    Raises HostsUnreadable.
    """
    if len(hosts) <= POLICY.max_hosts_in_memory:
        session.map(host_evidence, hosts, summary, comm_between)
        return list(hosts)
    summaries = session.map(summary, hosts, comm_between, of_some={host_evidence: _spread(hosts)})
    return chosen_hosts(hosts, summaries)


def chosen_hosts(hosts: Sequence[str], parts: Sequence[Summary]) -> list[str]:
    """Like `explained_hosts`, from summaries that are already read."""
    if len(hosts) <= POLICY.max_hosts_in_memory:
        return list(hosts)
    slowest = sorted(range(len(hosts)), key=lambda place: (-_own_ps(parts[place].steps), place))[:_SLOWEST]
    chosen = {*_spread(hosts), *(hosts[place] for place in slowest)}
    return [host for host in hosts if host in chosen]


def common_evidence(session: Session, hosts: Sequence[str], parts: Sequence[HostEvidence]) -> CommonSteps:
    """The steps that all hosts ran at the same time. `parts`: the hosts' evidence. Raises HostsUnreadable."""
    steps = [
        Steps(
            np.arange(part.n_steps),
            part.names,
            part.start_ps,
            part.duration_ps,
            np.zeros((part.n_steps, N_CLASSES), np.int64),
            part.source,
            is_on_devices=part.kind != "CPU",
        )
        for part in parts
    ]
    corrections = clocks_of(session, hosts).correction_ns
    starts = [
        marks.start_ns + correction_ns
        for marks, correction_ns in zip(session.map(clock_marks, hosts), corrections, strict=True)
    ]
    return common_steps(steps, starts)


def _spread(hosts: Sequence[str]) -> list[str]:
    """Evenly spaced hosts, including the first and the last."""
    places = np.linspace(0, len(hosts) - 1, POLICY.max_hosts_in_memory - _SLOWEST)
    return [hosts[place] for place in places.round().astype(int).tolist()]


def _own_ps(steps: Steps) -> float:
    """Mean step time without collectives, in ps."""
    own_ps = steps.duration_ps - steps.class_ps[:, TimeClass.DEVICE_COLLECTIVES]
    return float(own_ps.mean()) if len(steps) else 0.0


def _of_step(parts: Sequence[HostEvidence], step: str, exchange: JobExchange | None) -> Diagnosis:
    """The diagnosis of one step on the hosts that have it, of those that count if any does. `exchange`: of
    all steps.
    """
    of_counted = [parts[i] for i in counted(parts)]
    if any(place_of(part.names, step) is not None for part in of_counted):
        parts = of_counted
    steps_by_host = [(part, row) for part in parts if (row := place_of(part.names, step)) is not None]
    if not steps_by_host:
        known_names = next((part.names for part in parts if part.names), ())
        raise BadParameter(
            "step",
            step,
            f"one of {known_names[0]} … {known_names[-1]}"
            if known_names
            else "nothing, since the run has no steps",
        )
    place = place_of(exchange.step_names, step) if exchange else None
    of_step = exchange.of_step(place) if exchange and place is not None else None
    result = diagnose([part.of_step(row) for part, row in steps_by_host], (), of_step)
    part, row = steps_by_host[0]
    text = re.sub("^Each step ", "It ", result.text)
    comparison = _length(steps_by_host, result.top.cause if result.top else None)
    findings = tuple(replace(one, sentence=_one_step(one.sentence)) for one in result.findings)
    where = (
        ""
        if len(steps_by_host) == sum(1 for one in parts if one.n_steps)
        else f" on {' and '.join(f'`{one.host}`' for one, _ in steps_by_host)}"
    )
    return replace(
        result, text=f"{title_of(part.names[row])}{where} {comparison}. {_one_step(text)}", findings=findings
    )


def place_of(names: Sequence[str], step: str) -> int | None:
    """The row of the step with that name, else of the first one with that number; None without either."""
    for candidates in (names, [name.rpartition(" ")[2] for name in names]):
        if step in candidates:
            return candidates.index(step)
    return None


def title_of(name: str) -> str:
    """`Step train 41`."""
    return name if name.lower().startswith("step") else f"Step {name}"


def against_median(time_ps: float, median_ps: float) -> str:
    """`3.1 times the median of 19.4 ms`, `24.0% longer than …`."""
    ratio = time_ps / median_ps if median_ps else 1.0
    if abs(ratio - 1) < ALIKE:
        return f"about as long as the median of {format_time(median_ps)}"
    if ratio >= _TIMES_FROM:
        return (
            f"{f'{ratio:.2g}' if ratio < 10 else f'{ratio:,.0f}'} times the median of "
            f"{format_time(median_ps)}"
        )
    return (
        f"{format_fraction(abs(ratio - 1))} {'longer' if ratio > 1 else 'shorter'} than the median of "
        f"{format_time(median_ps)}"
    )


def _length(steps_by_host: Sequence[tuple[HostEvidence, int]], named_cause: Cause | None) -> str:
    """The step's duration compared with the median, and the cause of the difference unless the verdict names
    it.
    """
    time = float(np.mean([part.duration_ps[row] for part, row in steps_by_host]))
    duration = f"took {format_time(time)}"
    if max(part.n_steps for part, _ in steps_by_host) < 2:
        return f"{duration} and is the only step"
    median = float(np.mean([np.median(part.duration_ps) for part, _ in steps_by_host]))
    excess = time - median
    compared = f"{duration}, {against_median(time, median)}"
    if excess < 2 * ALIKE * median:
        return compared
    excesses = {
        cause: float(np.mean([_above_usual(part, row, cause) for part, row in steps_by_host]))
        for cause in Cause
    }
    most = max(excesses, key=lambda cause: excesses[cause])
    if most == named_cause or excesses[most] < excess / 2:
        return compared
    return f"{compared}; {format_time(min(excesses[most], excess))} of the difference is {_in_sentence(most)}"


def _above_usual(part: HostEvidence, row: int, cause: Cause) -> float:
    """Time in ps of the cause in a step in excess of the median step."""
    times: list[npt.NDArray[np.int64]] = [one.time_ps for one in part.parts if one.cause == cause]
    total = np.sum(times, axis=0) if times else np.zeros(part.n_steps)
    return float(total[row] - np.median(total))


def _in_sentence(cause: Cause) -> str:
    return cause.label if cause == Cause.PYTHON else cause.label.lower()


def _one_step(sentence: str) -> str:
    """A sentence about each step, rewritten for one step."""
    return re.sub(
        r"\b([Ee])ach step\b", lambda match: "The step" if match[1] == "E" else "the step", sentence
    )


def plain(diagnosed: Diagnosis) -> dict[str, Any]:
    """A diagnosis as JSON-compatible values."""
    result = asdict(diagnosed)
    for one in result["findings"]:
        del one["rank_ps"]
    result["findings"] = [
        {
            **one,
            "cause": finding.cause.value,
            "docs": finding.docs,
            "evidence": list(one["evidence"]),
            "gain_ps": list(finding.gain_ps or ()) or None,
        }
        for one, finding in zip(result["findings"], diagnosed.findings, strict=True)
    ]
    result["causes"] = [
        {**one, "cause": cause.cause.value}
        for one, cause in zip(result["causes"], diagnosed.causes, strict=True)
    ]
    return result


def explain(run_dir: str) -> dict[str, Any]:
    """The diagnosis of a run's folder or file as JSON-compatible values."""
    session = Session(run_dir)
    with one_request(len(session.hosts)):
        return plain(diagnosis(session))
