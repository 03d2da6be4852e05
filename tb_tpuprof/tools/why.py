"""Why a run's steps are slow: the diagnosis of its hosts, or of one of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tb_tpuprof.analysis.diagnosis.diagnose import diagnose
from tb_tpuprof.analysis.diagnosis.evidence import HostEvidence, host_evidence
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session


def diagnosis(session: Session, hosts: Sequence[str] = (), step: str = "") -> Diagnosis:
    """The diagnosis of some hosts of a run, or of all, in the mean over the steps or of one step.

    `step`: a step's name (`train 41`), or its number. Raises BadParameter where no host has it; HostsUnreadable as `Session.map` does.
    """
    parts = session.map(host_evidence, list(hosts or session.hosts))
    return diagnose(_of_step(parts, step) if step else parts)


def _of_step(parts: Sequence[HostEvidence], step: str) -> list[HostEvidence]:
    found = [part.of_step(at) for part in parts for at, name in enumerate(part.names) if step in (name, name.rpartition(" ")[2])]
    if not found:
        known = next((part.names for part in parts if part.names), ())
        raise BadParameter("step", step, f"one of {known[0]} … {known[-1]}" if known else "nothing, since the run has no steps")
    return found


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
    result["causes"] = [{**one, "cause": cause.cause.value} for one, cause in zip(result["causes"], found.causes, strict=True)]
    return result


def explain(run_dir: str) -> dict[str, Any]:
    """The diagnosis of a run's folder or file, as JSON can hold it."""
    return plain(diagnosis(Session(run_dir)))
