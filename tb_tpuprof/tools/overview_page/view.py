"""overview_page: where the time went, what limits the job, and where to look next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.input.stage import slow_stage
from tb_tpuprof.analysis.ops.category_sentence import sum_categories, verdict_by_category
from tb_tpuprof.analysis.ops.framework_calls import sum_calls
from tb_tpuprof.analysis.ops.recommend import Finding, apart_finding, finding, on_worst_host
from tb_tpuprof.analysis.ops.roof_excess import excess_notices
from tb_tpuprof.analysis.ops.roofline import first_roofs
from tb_tpuprof.analysis.ops.stats import sum_op_stats
from tb_tpuprof.analysis.ops.utilization import sum_utilization
from tb_tpuprof.analysis.overview.facts import run_facts
from tb_tpuprof.analysis.overview.framework_advice import framework_advice
from tb_tpuprof.analysis.overview.hosts import are_alike, host_steps, slowest_host
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.steps.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.findings_tables import cause_color, causes_table, findings_table
from tb_tpuprof.tools.overview_page.scalars import SCALARS, TILES, Run, environment, scalars
from tb_tpuprof.tools.overview_page.tables import (
    COLORS,
    RECOMMENDATIONS,
    TABLES,
    breakdown_table,
    hosts_table,
    steps_table,
    top_ops_table,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Table, Verdict
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.why import against_median, diagnosis, place_of

INPUT_TOOL, TF_DATA_TOOL = "input_pipeline_analyzer", "tf_data_bottleneck_analysis"
_STANDS_OUT = 1.5  # times the median step
_MAY_BE_INPUT = ("input", "other")  # idle time may be untraced waiting for data


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
        sum_utilization([part.use for part in parts]),
        host_steps(parts, facts.common),
    )
    job_finding = _with_details(_job_finding(run), run, hosts)
    stage = _slow_stage(session, run, job_finding)
    kind = facts.kind
    is_diagnosed = (not facts.common.is_disjoint or bool(step)) and why.is_detailed
    # The findings list the other costs by cause; by kind of time their shares would differ.
    verdict = _verdict(
        replace(job_finding, costs=()) if is_diagnosed else job_finding,
        run,
        stage,
        _steps_to_look_at(run, hosts, step, why.is_detailed),
    )
    if is_diagnosed:
        verdict = _diagnosed(why, verdict, stage, bool(step))
        verdict = replace(verdict, category=cause_color(why.top.cause if why.top else Cause.COMPUTE, kind))
    tables = {
        "steps": steps_table(run.steps, kind),
        "breakdown": breakdown_table(run.steps, kind),
        "top_ops": top_ops_table(run.ops, facts),
        "environment": environment(run),
        "recommendations": _recommendations(job_finding, run, verdict),
    }
    if why.is_detailed:
        tables |= {
            "findings": findings_table(why, kind, len(hosts)),
            "causes": causes_table(why, kind, len(hosts)),
        }
    if len(run.hosts) > 1:
        tables["hosts"] = hosts_table(run.hosts, facts.common.is_disjoint)
    notes = (Diagnostic("info", why.note),) if why.note and why.is_detailed else ()
    diagnostics = (*clocks.diagnostics, *_diagnostics(run), *_excesses(run), *notes)
    return Payload("overview_page", session.run, hosts, tables, scalars(run), verdict, diagnostics)


def _job_finding(run: Run) -> Finding:
    """The verdict on all hosts; on the one that waits for input where the mean hides it; on each host if
    they share no steps.
    """
    framework = run.facts.software.framework
    if run.facts.common.is_disjoint:
        return apart_finding(
            [(part.host, finding(part.steps, part.ops, part.hardware.kind, framework)) for part in run.parts]
        )
    overall = finding(run.steps, run.ops, run.facts.kind, framework)
    if len(run.parts) < 2:
        return overall
    worst = max(run.parts, key=lambda part: part.steps.fraction("input"))
    return on_worst_host(overall, worst.host, worst.steps)


def _with_details(job_finding: Finding, run: Run, hosts: tuple[str, ...]) -> Finding:
    """Adds the verdict by category if there are no steps, and the time of PyTorch's loader if the job
    waits.
    """
    categories = sum_categories([part.categories for part in run.parts])
    if not run.facts.common.is_disjoint:
        job_finding = verdict_by_category(job_finding, len(run.steps), categories, run.ops.compiled.busy_ps)
    loader = loader_sentence([part.loader for part in run.parts], hosts)
    return (
        replace(job_finding, details=(loader, *job_finding.details))
        if loader and job_finding.category in ("input", "other")
        else job_finding
    )


def _slow_stage(session: Session, run: Run, job_finding: Finding) -> tuple[str, ...]:
    """Sentences about the tf.data stage that an input-bound job waits for, on the host that waits most."""
    if (
        job_finding.category != "input"
        or job_finding.level not in ("warn", "bad")
        or not run.facts.software.uses_tf_data
    ):
        return ()
    worst = max(run.parts, key=lambda part: part.steps.fraction("input"))
    stage = session.map(slow_stage, [worst.host])[0]
    where = f"`{worst.host}`: " if len(run.parts) > 1 else ""
    return tuple(where + text for text in stage.sentences) if stage else ()


def _recommendations(job_finding: Finding, run: Run, verdict: Verdict) -> Table:
    """Advice for the verdict's category, and pages that the verdict does not link to."""
    calls = sum_calls([part.calls for part in run.parts])
    rows = [("advice", text, "") for text in framework_advice(job_finding.category, run.facts, calls)]
    linked = {step.tool for step in verdict.next}
    if job_finding.category in _MAY_BE_INPUT and run.steps.fraction("input") > 0 and INPUT_TOOL not in linked:
        rows.append(
            ("tool", "See how long each step waits for input and what the host does meanwhile.", INPUT_TOOL)
        )
    kinds, texts, tools = zip(*rows, strict=True)
    return RECOMMENDATIONS.fill({"kind": kinds, "text": texts, "tool": tools})


def _verdict(
    job_finding: Finding, run: Run, stage: tuple[str, ...], slow_steps: tuple[NextStep, ...]
) -> Verdict:
    """The finding and next steps: the input pipeline if the job waits for it, hosts that differ, slow
    steps, operations.
    """
    steps_to: list[NextStep] = []
    if stage:
        steps_to.append(NextStep("See the slow stage of the tf.data pipeline", TF_DATA_TOOL))
    if job_finding.category == "input":
        steps_to.append(NextStep("See how the input pipeline spends its time", INPUT_TOOL))
    if not are_alike(run.hosts) and not run.facts.common.is_disjoint:
        steps_to.append(NextStep("See what the slowest host does differently", "pod_viewer"))
    steps_to += slow_steps
    steps_to.append(NextStep("See which operations take the time", _ops_tool(run.facts.kind)))
    slowest = "" if run.facts.common.is_disjoint else slowest_host(run.hosts)
    details = (*stage, *job_finding.more, *([slowest] if slowest else []))
    return Verdict(
        job_finding.level, job_finding.text, COLORS.get(job_finding.category, ""), details, tuple(steps_to)
    )


def _diagnosed(why: Diagnosis, verdict: Verdict, stage: tuple[str, ...], of_step: bool) -> Verdict:
    """The top finding with its reason and fix, or with the stage that is the reason; then the other details
    about all steps.
    """
    main, rest = (
        tuple(text for text in (why.top.reason, why.top.fix) if text) if why.top else (),
        verdict.details,
    )
    if stage and why.top and why.top.cause == Cause.INPUT:
        main, rest = stage, rest[len(stage) :]
    return replace(verdict, level=why.level, text=why.text, details=main if of_step else (*main, *rest))


def _ops_tool(kind: str) -> str:
    """The operation page to link to: a TPU runs only compiled programs, whose operations have few framework
    names.
    """
    return "op_profile" if kind == "TPU" else "framework_op_stats"


def _steps_to_look_at(
    run: Run, hosts: tuple[str, ...], step: str, is_explained: bool
) -> tuple[NextStep, ...]:
    """Links to the requested or the longest step on the timeline; if the longest one stands out, first a
    link to its explanation.
    """
    places = _places(run, hosts, step)
    if not places:
        return (NextStep("Look at the timeline in the trace viewer", "trace_viewer"),)
    host, steps, row = max(places, key=lambda place: int(place[1].duration_ps[place[2]]))
    start, time = int(steps.start_ps[row]), int(steps.duration_ps[row])
    name = steps.name[row] if len(hosts) == 1 else f"{steps.name[row]} of {host}"
    label = f"step {name}" if step else f"the slowest step ({name})"
    look = NextStep(
        f"Look at {label} in the trace viewer",
        "trace_viewer",
        {"hosts": host, "start_ps": str(start), "end_ps": str(start + time)},
    )
    return (look,) if step or not is_explained else (*_why_so_long(run.steps), look)


def _why_so_long(steps: Steps) -> tuple[NextStep, ...]:
    """A link to the explanation of the longest step, if it stands out."""
    if not len(steps):
        return ()
    row, median = int(steps.duration_ps.argmax()), float(np.median(steps.duration_ps))
    time = int(steps.duration_ps[row])
    if time < _STANDS_OUT * median:
        return ()
    return (
        NextStep(
            f"See why step {steps.name[row]} took {against_median(time, median)}",
            "overview_page",
            {"step": steps.name[row]},
        ),
    )


def _places(run: Run, hosts: tuple[str, ...], step: str) -> list[tuple[str, Steps, int]]:
    """The requested step of each host that has it, else each host's longest: the host, its steps and the
    row.
    """
    each = [(host, part.steps) for host, part in zip(hosts, run.parts, strict=True) if len(part.steps)]
    rows = [
        (host, steps, place_of(steps.name, step) if step else int(steps.duration_ps.argmax()))
        for host, steps in each
    ]
    return [(host, steps, row) for host, steps, row in rows if row is not None]


def _excesses(run: Run) -> tuple[Diagnostic, ...]:
    """Operations above a peak of their device."""
    excesses = [excess for part in run.parts for excess in part.excesses]
    notices = excess_notices(excesses, first_roofs([part.roofs for part in run.parts]))
    return tuple(Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices)


def _diagnostics(run: Run) -> tuple[Diagnostic, ...]:
    notices: list[Notice] = [notice for part in run.parts for notice in part.notices]
    notices += step_notices(
        run.facts.common,
        len(run.parts),
        any(part.has_loop_ops for part in run.parts),
        run.facts.software.framework,
    )
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
