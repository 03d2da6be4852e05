"""Why a run's steps are slow: the diagnosis of its hosts, or of one of their steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.diagnosis.records import HostEvidence
from tb_tpuprof.analysis.overview.summary import Summary, summary
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.units import format_fraction, format_time

ALIKE = 0.05  # of the median: a step that is off by less is as long as the others
_SLOWEST = 4
_TIMES_FROM = 2.0  # times the median: from here on told as a multiple


def diagnosis(session: Session, hosts: Sequence[str] = (), step: str = "") -> Diagnosis:
    """The diagnosis of some hosts of a run, or of all, in the mean over the steps or of one step.

    `step`: a step's name (`train 41`), or its number. Raises BadParameter where no host has it;
    HostsUnreadable as `Session.map` does.
    """
    every = list(hosts or session.hosts)
    chosen = explained_hosts(session, every)
    parts = session.map(host_evidence, chosen)
    found = _of_step(parts, step) if step else diagnose(parts)
    if len(chosen) == len(every):
        return found
    others = "others at equal distances in the list of hosts"
    text = f"Causes are those of {len(chosen)} of {len(every)} hosts: the {_SLOWEST} slowest, and {others}."
    return replace(found, note=text)


def explained_hosts(session: Session, hosts: Sequence[str]) -> list[str]:
    """The hosts whose evidence is read: all, or of many some at equal distances and the slowest. Reads the
    summaries of all.

    The slowest are those whose steps take longest without collectives, in which hosts wait for each other.
    Raises HostsUnreadable.
    """
    if len(hosts) <= POLICY.max_hosts_in_memory:
        session.map(host_evidence, hosts, summary)
        return list(hosts)
    session.map(host_evidence, _spread(hosts), summary)
    return chosen_hosts(hosts, session.map(summary, hosts))


def chosen_hosts(hosts: Sequence[str], parts: Sequence[Summary]) -> list[str]:
    """As `explained_hosts`, of summaries that are there."""
    if len(hosts) <= POLICY.max_hosts_in_memory:
        return list(hosts)
    slowest = sorted(range(len(hosts)), key=lambda place: (-_own_ps(parts[place].steps), place))[:_SLOWEST]
    chosen = {*_spread(hosts), *(hosts[place] for place in slowest)}
    return [host for host in hosts if host in chosen]


def _spread(hosts: Sequence[str]) -> list[str]:
    """Hosts at equal distances, the first and the last among them."""
    places = np.linspace(0, len(hosts) - 1, POLICY.max_hosts_in_memory - _SLOWEST)
    return [hosts[place] for place in places.round().astype(int).tolist()]


def _own_ps(steps: Steps) -> float:
    """The mean step without collectives."""
    own = steps.duration_ps - steps.class_ps[:, TimeClass.DEVICE_COLLECTIVES]
    return float(own.mean()) if len(steps) else 0.0


def _of_step(parts: Sequence[HostEvidence], step: str) -> Diagnosis:
    """One step alone on the hosts that have it, told as one."""
    places = [(part, at) for part in parts if (at := place_of(part.names, step)) is not None]
    if not places:
        known = next((part.names for part in parts if part.names), ())
        raise BadParameter(
            "step",
            step,
            f"one of {known[0]} … {known[-1]}" if known else "nothing, since the run has no steps",
        )
    found = diagnose([part.of_step(at) for part, at in places])
    part, at = places[0]
    text = re.sub("^Each step ", "It ", found.text)
    length = _length(places, found.top.cause if found.top else None)
    findings = tuple(replace(one, sentence=_one_step(one.sentence)) for one in found.findings)
    where = (
        ""
        if len(places) == sum(1 for one in parts if one.n_steps)
        else f" on {' and '.join(f'`{one.host}`' for one, _ in places)}"
    )
    return replace(
        found, text=f"{title_of(part.names[at])}{where} {length}. {_one_step(text)}", findings=findings
    )


def place_of(names: Sequence[str], step: str) -> int | None:
    """The row of the step with that name, else of the first with that number."""
    for known in (names, [name.rpartition(" ")[2] for name in names]):
        if step in known:
            return known.index(step)
    return None


def title_of(name: str) -> str:
    """`Step train 41`."""
    return name if name.lower().startswith("step") else f"Step {name}"


def against_median(time_ps: float, median_ps: float) -> str:
    """`3.1 times the median of 19.4 ms`, `24.0 % longer than …`."""
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


def _length(places: Sequence[tuple[HostEvidence, int]], told: Cause | None) -> str:
    """How long the step took, against the median; and which cause makes the difference, where the verdict
    does not speak of it.
    """
    time = float(np.mean([part.duration_ps[at] for part, at in places]))
    took = f"took {format_time(time)}"
    if max(part.n_steps for part, _ in places) < 2:
        return f"{took} and is the only one"
    median = float(np.mean([np.median(part.duration_ps) for part, _ in places]))
    excess = time - median
    compared = f"{took}, {against_median(time, median)}"
    if excess < 2 * ALIKE * median:
        return compared
    more = {cause: float(np.mean([_above_usual(part, at, cause) for part, at in places])) for cause in Cause}
    most = max(more, key=lambda cause: more[cause])
    if most == told or more[most] < excess / 2:
        return compared
    return f"{compared}; {format_time(min(more[most], excess))} of the difference is {_in_sentence(most)}"


def _above_usual(part: HostEvidence, at: int, cause: Cause) -> float:
    """How much more time the cause takes in a step than in the median one."""
    times: list[npt.NDArray[np.int64]] = [one.time_ps for one in part.parts if one.cause == cause]
    total = np.sum(times, axis=0) if times else np.zeros(part.n_steps)
    return float(total[at] - np.median(total))


def _in_sentence(cause: Cause) -> str:
    return cause.label if cause == Cause.PYTHON else cause.label.lower()


def _one_step(sentence: str) -> str:
    """What is said of each step, said of one."""
    return re.sub(
        r"\b([Ee])ach step\b", lambda match: "The step" if match[1] == "E" else "the step", sentence
    )


def plain(found: Diagnosis) -> dict[str, Any]:
    """A diagnosis as JSON can hold it."""
    result = asdict(found)
    result["findings"] = [
        {
            **one,
            "cause": finding.cause.value,
            "docs": finding.docs,
            "evidence": list(one["evidence"]),
            "gain_ps": list(finding.gain_ps or ()) or None,
        }
        for one, finding in zip(result["findings"], found.findings, strict=True)
    ]
    result["causes"] = [
        {**one, "cause": cause.cause.value} for one, cause in zip(result["causes"], found.causes, strict=True)
    ]
    return result


def explain(run_dir: str) -> dict[str, Any]:
    """The diagnosis of a run's folder or file, as JSON can hold it."""
    return plain(diagnosis(Session(run_dir)))
