"""overview_page: where the time went, what limits the job, and where to look next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.input.stage import SlowStage, slow_stage
from tb_tpuprof.analysis.ops.category_sentence import DeviceIdle, sum_categories, verdict_by_category
from tb_tpuprof.analysis.ops.device_ops import device_ops
from tb_tpuprof.analysis.ops.framework_calls import sum_calls
from tb_tpuprof.analysis.ops.hlo import merge_hlo_ops
from tb_tpuprof.analysis.ops.recommend import Finding, apart_finding, finding, on_worst_host
from tb_tpuprof.analysis.ops.roof_excess import excess_notices
from tb_tpuprof.analysis.ops.roofline import first_roofs
from tb_tpuprof.analysis.ops.stats import sum_op_stats
from tb_tpuprof.analysis.ops.utilization import Utilization, sum_utilization, with_work_of
from tb_tpuprof.analysis.overview.facts import RunFacts, run_facts
from tb_tpuprof.analysis.overview.framework_advice import framework_advice
from tb_tpuprof.analysis.overview.hosts import host_steps
from tb_tpuprof.analysis.overview.summary import Summary, summary
from tb_tpuprof.analysis.steps.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.comm_costs import exposed_scalars
from tb_tpuprof.tools.findings_tables import causes_table, findings_table
from tb_tpuprof.tools.inference_profile.sentences import limit_level, limit_sentence
from tb_tpuprof.tools.overview_page.scalars import SCALARS, TILES, Run, environment, scalars, with_dispatch
from tb_tpuprof.tools.overview_page.tables import (
    RECOMMENDATIONS,
    TABLES,
    breakdown_table,
    hosts_table,
    steps_table,
    top_ops_table,
)
from tb_tpuprof.tools.overview_page.verdict import INPUT_TOOL, most_waiting, verdict_of
from tb_tpuprof.tools.payload import Diagnostic, Payload, Table, Verdict
from tb_tpuprof.tools.requests import latency_sentence
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.why import diagnoses_apart, diagnosis
from tb_tpuprof.units import format_fraction, format_time

_SMALL_PART = 0.5  # of the capture
_MAY_BE_INPUT = ("input", "other")  # idle time may be untraced waiting for data
# Causes on which the framework's advice says more than the finding's own fix.
_ADVISED = {
    Cause.INPUT: "input",
    Cause.COMPILATION: "compilation",
    Cause.SYNCHRONIZATION: "synchronization",
    Cause.UNRECORDED: "other",
}


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The overview of one, several or all hosts together."""
    step = str(params["step"])
    why = diagnosis(session, hosts, step)
    parts = session.map(summary, hosts)
    clocks = clocks_of(session, hosts)
    facts = run_facts([part.facts for part in parts], clocks.correction_ns)
    run = Run(
        parts,
        facts,
        sum_op_stats([part.ops for part in parts]),
        _use(session, hosts, parts),
        host_steps(parts, facts.common),
        any(part.has_slices for part in parts),
    )
    is_apart = facts.common.is_disjoint and not step
    job_finding = _with_details(
        _job_finding(run, diagnoses_apart(session, hosts) if is_apart else {}), run, hosts
    )
    stage = _slow_stage(session, run, job_finding)
    if stage and not step:
        stage = stage.saving_at_most(_waiting_ps(run, why))
    kind = facts.kind
    verdict = verdict_of(job_finding, run, stage, hosts, why, step)
    tables = {
        "steps": steps_table(run.steps, kind),
        "breakdown": breakdown_table(run.steps, kind, len(hosts)),
        "top_ops": top_ops_table(run.ops, facts),
        "environment": environment(run),
        "recommendations": _recommendations(job_finding, run, why, verdict, stage is not None),
    }
    if why.is_detailed and not is_apart:
        tables |= {
            "findings": findings_table(why, kind, len(hosts)),
            "causes": causes_table(why, kind, len(hosts)),
        }
    if len(run.hosts) > 1:
        tables["hosts"] = hosts_table(run.hosts, facts.common.is_disjoint)
    notes = (Diagnostic("info", why.note),) if why.note and why.is_detailed else ()
    diagnostics = (*clocks.diagnostics, *_diagnostics(run), *_excesses(run), *notes)
    shown = {**with_dispatch(scalars(run), why), **exposed_scalars(session, hosts, clocks)}
    return Payload("overview_page", session.run, hosts, tables, shown, verdict, diagnostics)


def _alone(part: Summary, framework: str, why: Diagnosis | None) -> Finding:
    """The verdict on a host whose capture overlaps no other: that of its own page."""
    by_kinds = finding(part.steps, part.ops, part.hardware.kind, framework)
    return replace(by_kinds, level=why.level, text=why.text) if why and why.is_detailed else by_kinds


def _job_finding(run: Run, why: Mapping[str, Diagnosis]) -> Finding:
    """The verdict on all hosts; on the one that waits for input where the mean hides it; on each host if
    they share no steps. `why`: the diagnosis of single hosts, by name.
    """
    framework = run.facts.software.framework
    if run.facts.common.is_disjoint:
        return apart_finding([(part.host, _alone(part, framework, why.get(part.host))) for part in run.parts])
    overall = finding(run.steps, run.ops, run.facts.kind, framework, run.facts.n_active)
    if len(run.parts) < 2:
        return overall
    worst = most_waiting(run)
    return on_worst_host(overall, worst.host, worst.steps)


def _with_details(job_finding: Finding, run: Run, hosts: tuple[str, ...]) -> Finding:
    """Adds the verdict by category if there are no steps, else sentences on requests; and the time of
    PyTorch's loader if the job waits.
    """
    if not run.facts.common.is_disjoint and not len(run.steps):
        categories = sum_categories([part.categories for part in run.parts])
        job_finding = verdict_by_category(
            job_finding, categories, run.ops.compiled.busy_ps, _device_idle(run.facts)
        )
        job_finding = replace(job_finding, details=(*_short_run(run.facts), *job_finding.details))
        if run.requests is not None and not job_finding.category:
            sentences = (limit_sentence(run.requests), latency_sentence(run.requests))
            job_finding = replace(
                job_finding,
                level=limit_level(run.requests),
                text=" ".join(text for text in sentences if text),
            )
    loader = loader_sentence([part.loader for part in run.parts], hosts, job_finding.text)
    if not loader or job_finding.category not in ("input", "other"):
        return job_finding
    details = (
        (*job_finding.details, loader) if run.facts.common.is_disjoint else (loader, *job_finding.details)
    )
    return replace(job_finding, details=details)


def _short_run(facts: RunFacts) -> tuple[str, ...]:
    """A note that the devices ran for a small part of the capture only, since idle times and rates refer to
    that part.
    """
    spans = [host.devices.union_span_ps for host in facts.hosts]
    longest_ps = max(spans, default=0)
    if not longest_ps or longest_ps > _SMALL_PART * facts.capture_ps:
        return ()
    part = format_fraction(longest_ps / facts.capture_ps)
    return (
        f"The capture is {format_time(facts.capture_ps)} long, but only {format_time(longest_ps)} ({part}) "
        f"are between the {facts.kind}'s first and last operation: idle time and rates refer to these.",
    )


def _device_idle(facts: RunFacts) -> DeviceIdle | None:
    """The idle time of the devices of a run without steps; None if no device ran anything."""
    if not facts.n_active or facts.idle_fraction is None:
        return None
    span_ps = facts.device_time_ps / facts.n_active
    return DeviceIdle(facts.idle_fraction, span_ps, facts.n_active, facts.kind)


def _slow_stage(session: Session, run: Run, job_finding: Finding) -> SlowStage | None:
    """The tf.data stage that an input-bound job waits for, on the host that waits most."""
    if (
        job_finding.category != "input"
        or job_finding.level not in ("warn", "bad")
        or not run.facts.software.uses_tf_data
    ):
        return None
    return session.map(slow_stage, [most_waiting(run).host])[0]


def _waiting_ps(run: Run, why: Diagnosis) -> float:
    """How long each step waits for data on the host that waits most: by its finding, else by class."""
    found = [one.time_ps for one in why.findings if one.cause == Cause.INPUT and one.culprit.kind != "host"]
    steps = most_waiting(run).steps
    return max(found) if found else float(steps.category_ps("input").mean())


def _recommendations(
    job_finding: Finding, run: Run, why: Diagnosis, verdict: Verdict, names_stage: bool
) -> Table:
    """Advice on what limits the job, beside that of the verdict; the input page, if idle time may be waiting
    for data and the verdict has no link to it. `names_stage`: the verdict says what to change in the tf.data
    pipeline, so general advice on input is left out.
    """
    calls = sum_calls([part.calls for part in run.parts])
    category = job_finding.category
    is_diagnosed = why.is_detailed and not run.facts.common.is_disjoint
    if is_diagnosed:
        category = _ADVISED.get(why.top.cause, "") if why.top else ""
    texts = framework_advice(category, run.facts, calls) if category or not (is_diagnosed and why.top) else ()
    texts = () if names_stage and category == "input" else texts
    if run.requests is not None and not len(run.steps):
        texts = ()  # requests are measured as they are: there is nothing to annotate
    # Without steps the advice of the verdict is about its main sentence, not about what may help besides.
    advice = (*texts, *job_finding.advice) if len(run.steps) else (*job_finding.advice, *texts)
    rows = [("advice", text, "") for text in advice]
    linked = {step.tool for step in verdict.next}
    may_be_input = category in _MAY_BE_INPUT and run.steps.fraction("input") > 0
    if may_be_input and INPUT_TOOL not in linked:
        rows.append(
            ("tool", "See how long each step waits for input and what the host does meanwhile.", INPUT_TOOL)
        )
    columns = ("kind", "text", "tool")
    return RECOMMENDATIONS.fill({name: [row[i] for row in rows] for i, name in enumerate(columns)})


def _use(session: Session, hosts: tuple[str, ...], parts: list[Summary]) -> Utilization:
    """The utilization of all hosts. Their operations are needed only where one is unknown on some host."""
    use = sum_utilization([part.use for part in parts])
    if len(parts) > 1 and any(part.excesses for part in parts):
        return with_work_of(use, merge_hlo_ops(session.map(device_ops, hosts)))
    return use


def _excesses(run: Run) -> tuple[Diagnostic, ...]:
    """Operations above a peak of their device."""
    excesses = [excess for part in run.parts for excess in part.excesses]
    notices = excess_notices(excesses, first_roofs([part.roofs for part in run.parts]))
    return tuple(Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices)


def _diagnostics(run: Run) -> tuple[Diagnostic, ...]:
    notices: list[Notice] = [notice for part in run.parts for notice in part.notices]
    of_steps = step_notices(
        run.facts.common,
        len(run.parts),
        any(part.has_loop_ops for part in run.parts),
        run.facts.software.framework,
    )
    serves = run.requests is not None and not len(run.steps)  # and so misses nothing without steps
    notices += [replace(notice, severity="info") for notice in of_steps] if serves else of_steps
    order = ("error", "warning", "info")
    return tuple(
        Diagnostic(n.severity, n.message, n.remedy)
        for n in sorted(notices, key=lambda notice: order.index(notice.severity))
    )


TOOL = Tool(
    name="overview_page",
    title="Overview",
    group="Start here",
    summary="Where the time went, what limits the job, and where to look next",
    view=view,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    params=(Param("step", "Step", "text", "", "Explain one step: its name or its number"),),
)
