"""The overview's verdict: what limits the job, why, and the links from it, most useful first.

steps explained      the diagnosis' first finding; its reason and fix, or the tf.data stage; the page that
                     shows it, with the expected gain
steps, unexplained   the category of time that costs most
no steps             idle devices, else the category of operations that takes the most time
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Diagnosis
from tb_tpuprof.analysis.diagnosis.finding import Finding as Cost
from tb_tpuprof.analysis.input.stage import SlowStage
from tb_tpuprof.analysis.ops.recommend import Finding, spread_sentence
from tb_tpuprof.analysis.overview.hosts import are_alike, slowest_host
from tb_tpuprof.analysis.overview.summary import Summary
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.tools.findings_tables import cause_color, place
from tb_tpuprof.tools.overview_page.scalars import Run
from tb_tpuprof.tools.overview_page.tables import COLORS
from tb_tpuprof.tools.payload import NextStep, Verdict
from tb_tpuprof.tools.verdicts import gain_text, next_step
from tb_tpuprof.tools.why import against_median, place_of
from tb_tpuprof.units import format_time

INPUT_TOOL, TF_DATA_TOOL = "input_pipeline_analyzer", "tf_data_bottleneck_analysis"
_STANDS_OUT = 1.5  # times the median step
_LONG_IDLE = 0.1  # of the devices' span
_MAX_LINKS = 4


def verdict_of(
    job_finding: Finding, run: Run, stage: SlowStage | None, hosts: tuple[str, ...], why: Diagnosis, step: str
) -> Verdict:
    """The verdict on all steps, or on the one called `step`. `stage`: the slow stage of the host that waits
    most.
    """
    is_diagnosed = why.is_detailed and (not run.facts.common.is_disjoint or bool(step))
    slow_steps = _steps_to_look_at(run, hosts, step, why.is_detailed)
    if not len(run.steps) and job_finding.category == "other":
        slow_steps = (*_idle_stretch(run), *slow_steps)[:1]
    if not is_diagnosed:
        links = [*_stage_links(job_finding, stage), *_host_links(run), *slow_steps, *_ops_links(run)]
        if not len(run.steps) and job_finding.category != "other":  # what idles shows on the timeline
            links = [*_ops_links(run), *links]
        links = [*_request_links(run), *_slice_links(run), *links]
        return Verdict(
            job_finding.level,
            job_finding.text,
            COLORS.get(job_finding.category, ""),
            (*_stage_texts(stage, run), *job_finding.more, *_about_steps(run, why.is_detailed)),
            _distinct(links),
        )
    top = why.top
    main = [_main_link(top, stage, run)] if top else []
    requests = [] if step else _request_links(run)
    hosts_and_slices = [] if step else [*_slice_links(run), *_host_links(run)]
    links = [*main, *requests, *hosts_and_slices, *slow_steps, *_ops_links(run)]
    if not top and not step:
        links = [*_ops_links(run), *links]
    reasons = _reasons(top, stage, run) if top else job_finding.why
    more = () if step else (*job_finding.details, *_about_steps(run, is_explained=True))
    color = cause_color(top.cause if top else Cause.COMPUTE, run.facts.kind)
    return Verdict(why.level, why.text, color, (*reasons, *more), _distinct(links))


def _reasons(top: Cost, stage: SlowStage | None, run: Run) -> tuple[str, ...]:
    """Why the first finding costs time and what to change; of input, the stage and the gain of a change."""
    if stage and top.cause == Cause.INPUT and top.culprit.kind != "host":
        return _stage_texts(stage, run)
    return tuple(text for text in (top.reason, top.fix) if text)


def _stage_texts(stage: SlowStage | None, run: Run) -> tuple[str, ...]:
    """Sentences about the slow stage; of several hosts, with the name of the one that waits most."""
    if stage is None:
        return ()
    if len(run.parts) < 2:
        return stage.sentences
    where = f"On `{most_waiting(run).host}`"
    return tuple(f"{where}, {text[0].lower()}{text[1:]}" for text in stage.sentences)


def counted_hosts(run: Run) -> list[Summary]:
    """The hosts that the step time is a mean over; all hosts if they share no steps."""
    pairs = zip(run.parts, run.facts.common.rows, strict=True)
    return [part for part, rows in pairs if rows.stop > rows.start] or list(run.parts)


def most_waiting(run: Run) -> Summary:
    """The host whose steps wait most for input."""
    return max(counted_hosts(run), key=lambda part: part.steps.fraction("input"))


def _about_steps(run: Run, is_explained: bool) -> tuple[str, ...]:
    """Which host is slow; that steps vary, where no link explains the longest one."""
    spread = "" if is_explained else spread_sentence(run.steps)
    is_compared = not run.facts.common.is_disjoint and not are_alike(run.hosts)
    return tuple(text for text in (spread, slowest_host(run.hosts) if is_compared else "") if text)


def _main_link(top: Cost, stage: SlowStage | None, run: Run) -> NextStep:
    """The page or the interval that shows the first finding, and what changing it is expected to gain."""
    if top.culprit.kind == "host":
        return next_step(f"See what {top.culprit.title} does differently", "pod_viewer", top.gain_ps)
    if top.cause == Cause.INPUT and stage:
        return _stage_link(stage, top.gain_ps)
    if top.cause == Cause.INPUT:
        return next_step("See how the input pipeline spends its time", INPUT_TOOL, top.gain_ps)
    if top.cause == Cause.COMMUNICATION:
        return next_step("See what is exposed, and what hiding it could save", "communication", top.gain_ps)
    seen = place(top)
    if top.cause == Cause.COMPUTE or seen is None:
        return next_step("See the operations", _ops_tool(run), top.gain_ps)
    interval = {"start_ps": str(seen.start_ps), "end_ps": str(seen.end_ps)}
    params = {"hosts": seen.host, **interval} if seen.host else interval
    what = seen.text[0].lower() + seen.text[1:]
    return next_step(f"See {what} on the timeline", "trace_viewer", top.gain_ps, params)


def _stage_link(stage: SlowStage, gain_ps: tuple[float, float] | None) -> NextStep:
    """The tf.data page, with the gain of the stage's change alone beside `gain_ps`, that of
    steps which do not wait at all.
    """
    text, one_change, full = (
        "See the slow stage of the tf.data pipeline",
        gain_text(stage.gain_ps),
        gain_text(gain_ps),
    )
    if not one_change:
        return next_step(text, TF_DATA_TOOL, gain_ps)
    # The two estimates come from different models: contradictory ones are not shown side by side.
    is_more = stage.gain_ps and gain_ps and all(np.greater_equal(gain_ps, stage.gain_ps))
    at_most = f"; if the steps did not wait at all: {full}" if is_more else ""
    return NextStep(f"{text} (expected gain of {stage.change} alone: {one_change}{at_most})", TF_DATA_TOOL)


def _stage_links(job_finding: Finding, stage: SlowStage | None) -> Iterable[NextStep]:
    if stage:
        yield _stage_link(stage, None)
    if job_finding.category == "input":
        yield NextStep("See how the input pipeline spends its time", INPUT_TOOL)


def _host_links(run: Run) -> Iterable[NextStep]:
    if not are_alike(run.hosts) and not run.facts.common.is_disjoint:
        yield NextStep("See what the slowest host does differently", "pod_viewer")


def _request_links(run: Run) -> Iterable[NextStep]:
    if run.requests is not None:
        yield NextStep(f"See where a {run.requests.unit}'s time goes", "inference_profile")


def _slice_links(run: Run) -> Iterable[NextStep]:
    if run.between_slices:
        yield NextStep("See how transfers between slices stall the TPUs", "megascale_stats")


def _ops_links(run: Run) -> Iterable[NextStep]:
    if len(run.ops.device) or len(run.ops.host):
        yield NextStep("See which operations take the time", _ops_tool(run))


def _ops_tool(run: Run) -> str:
    """The operation page to link to: a TPU runs only compiled programs, whose operations have few framework
    names.
    """
    return "op_profile" if run.facts.kind == "TPU" else "framework_op_stats"


def _distinct(links: Iterable[NextStep]) -> tuple[NextStep, ...]:
    """The first links, each page or interval once."""
    by_target: dict[tuple[str, tuple[tuple[str, str], ...]], NextStep] = {}
    for link in links:
        by_target.setdefault((link.tool, tuple(sorted(link.params.items()))), link)
    return tuple(by_target.values())[:_MAX_LINKS]


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


def _idle_stretch(run: Run) -> Iterable[NextStep]:
    """A link to the longest time in which no device of a host works, if it is long."""
    longest = max(run.facts.hosts, key=lambda host: _length(host.devices.longest_idle_ps))
    start, end = longest.devices.longest_idle_ps
    if end - start < _LONG_IDLE * longest.devices.union_span_ps or end == start:
        return
    where = f" of {longest.host}" if len(run.parts) > 1 else ""
    yield NextStep(
        f"Look at the longest idle stretch{where} ({format_time(end - start)}) in the trace viewer",
        "trace_viewer",
        {"hosts": longest.host, "start_ps": str(start), "end_ps": str(end)},
    )


def _length(stretch: tuple[int, int]) -> int:
    return stretch[1] - stretch[0]


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
    counted = [id(part) for part in (run.parts if step else counted_hosts(run))]
    each = [
        (host, part.steps)
        for host, part in zip(hosts, run.parts, strict=True)
        if len(part.steps) and id(part) in counted
    ]
    rows = [
        (host, steps, place_of(steps.name, step) if step else int(steps.duration_ps.argmax()))
        for host, steps in each
    ]
    return [(host, steps, row) for host, steps, row in rows if row is not None]
