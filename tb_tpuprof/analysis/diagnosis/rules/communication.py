"""Exposed collectives: those that no compute hides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_wording import most
from tb_tpuprof.analysis.diagnosis.finding import Culprit, Finding
from tb_tpuprof.analysis.diagnosis.records import HostEvidence, Part
from tb_tpuprof.analysis.diagnosis.rule import Rule
from tb_tpuprof.analysis.diagnosis.wording import Fix, fix_for, shown, time_and_share, total
from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH
from tb_tpuprof.units import format_fraction

FIXES = {
    JAX: Fix(
        "Use a sharding that exchanges less data, increase the batch per device, or let XLA overlap "
        "collectives with compute (`--xla_gpu_enable_latency_hiding_scheduler=true` on GPUs)."
    ),
    PYTORCH: Fix(
        "Overlap the gradients' all-reduce with the backward pass (larger `bucket_cap_mb`, "
        "`gradient_as_bucket_view=True`), or communicate less often."
    ),
    "": Fix("Exchange less data, exchange it less often, or overlap the exchange with compute."),
}


def find(evidence: HostEvidence) -> Iterable[Finding]:
    """One finding for all exposed collectives."""
    exposed = [part for part in evidence.parts if part.cause == Cause.COMMUNICATION]
    if not exposed:
        return
    time = total(exposed)
    where, named = _most_of_it(evidence, exposed)
    fix = fix_for(FIXES, evidence)
    yield Finding(
        Cause.COMMUNICATION,
        sentence(time_and_share(evidence, time), where),
        time,
        evidence.share(time),
        "The devices exchange data, or wait for the slowest of them to join.",
        Culprit("operation", named.name) if named.name else named,
        gain_ps=(0.0, time),
        fix=fix.text,
        snippet=fix.snippet,
        evidence=shown(evidence, exposed, "The longest collective"),
        confidence="medium",
    )


def sentence(amount: str, where: str) -> str:
    """`Each step spends 2.10 ms (17.0%) in collectives while nothing computes …`"""
    return f"Each step spends {amount} in collectives while nothing computes{where}."


def where_most(evidence: HostEvidence) -> str:
    """The collective that takes most of a host's exposed time, as the end of a sentence; empty if unknown."""
    return _most_of_it(evidence, [part for part in evidence.parts if part.cause == Cause.COMMUNICATION])[0]


def _most_of_it(evidence: HostEvidence, exposed: Sequence[Part]) -> tuple[str, Culprit]:
    """The longest collective as the end of a sentence, and as the culprit."""
    exchanges = evidence.device.exchanges if evidence.device else ()
    if exchanges:
        named = Culprit("operation", exchanges[0].kind)
        return f", {format_fraction(exchanges[0].share)} of it in {exchanges[0].title}", named
    named = next((part.culprit for part in exposed if part.culprit.name), Culprit())
    if evidence.device and not named.name and evidence.device.collectives.top:
        named = Culprit("operation", evidence.device.collectives.top)
        return most(evidence.device.collectives), named
    return f" (mostly `{named.name}`)" if named.name else "", named


RULE = Rule(Cause.COMMUNICATION, find)
