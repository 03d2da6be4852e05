"""input_pipeline_analyzer: whether the job waits for its input, where the host's time goes, and what to
change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.input.advice import Advice, input_advice, largest, short
from tb_tpuprof.analysis.input.host import HOST_CATEGORIES
from tb_tpuprof.analysis.input.pipeline import InputPart, InputPipeline, input_part, input_pipeline
from tb_tpuprof.analysis.input.torch_loader import loader_use
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS, Finding, apart_finding, input_finding, on_worst_host
from tb_tpuprof.analysis.overview.facts import host_facts, run_facts
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.analysis.steps.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence, loader_wait
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.facts import framework_of, step_share, step_time_base
from tb_tpuprof.tools.input_pipeline_analyzer.declared import (
    ADVICE,
    HOST_PARTS,
    PARTS,
    SCALARS,
    TABLES,
    TILES,
)
from tb_tpuprof.tools.input_pipeline_analyzer.tables import (
    breakdown_table,
    deviation,
    host_categories_table,
    hosts_table,
    input_ops_table,
    mean,
    steps_table,
)
from tb_tpuprof.tools.input_pipeline_analyzer.torch_loader import loader_tables
from tb_tpuprof.tools.input_verdict import by_causes
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import JobLimits, limits_of, with_limits
from tb_tpuprof.units import all_of, format_fraction, format_time

_FAR_APART = 0.05  # smallest difference between two shares of waiting that is reported
_LONGER = 1.5  # smallest ratio of two hosts' waits that is reported

_LEAST_BADGE = 0.005  # smallest share of waiting that the menu shows
# Numbers that need no steps.
_WITHOUT_STEPS = ("n_steps", "host_input_ps", "host_enqueue_fraction")
_NO_INPUT_OPS = "no input operations were traced"
_ONLY_WAITS = "the traced stages only wait for others; no work on input was traced"
_NO_STAGES = "the steps wait in Python; no pipeline stages were traced"


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """The input of one, several or all hosts together."""
    parts = session.map(input_part, hosts, loader_wait, loader_use)
    clocks = clocks_of(session, hosts)
    parts = [
        replace(part, start_ns=part.start_ns + add)
        for part, add in zip(parts, clocks.correction_ns, strict=True)
    ]
    pipeline = input_pipeline(parts)
    kind = sum_hardware(session.map(hardware, hosts)).kind
    limits = None if pipeline.common.is_disjoint else limits_of(session, hosts)
    judged = (
        apart_finding([_alone(session, part) for part in parts])
        if pipeline.common.is_disjoint
        else _judged(parts, pipeline, kind, limits)
    )
    loader = loader_sentence(session.map(loader_wait, hosts), hosts, judged.text)
    advice = input_advice(pipeline, judged.level, framework_of(session, hosts))
    return Payload(
        "input_pipeline_analyzer",
        session.run,
        hosts,
        {
            "steps": steps_table(pipeline),
            "breakdown": breakdown_table(pipeline),
            "host_categories": host_categories_table(pipeline.host_time, _no_host_time(pipeline)),
            "input_ops": input_ops_table(pipeline),
            "advice": _advice_table(advice),
            **loader_tables(session.map(loader_use, hosts)),
            "hosts": hosts_table(pipeline),
        },
        _scalars(pipeline),
        _verdict(judged, (pipeline, limits), advice, loader),
        (*clocks.diagnostics, *_diagnostics(pipeline, parts, framework_of(session, hosts))),
    )


def _judged(parts: list[InputPart], pipeline: InputPipeline, kind: str, limits: JobLimits | None) -> Finding:
    """The verdict on all hosts; on the waiting one where the mean hides it. Uses the job's diagnosis if there
    is one.
    """
    alone = input_finding(pipeline.steps, kind)
    if limits:
        return by_causes(alone, pipeline.steps, limits)
    return on_worst_host(alone, pipeline.hosts[0].host, pipeline.hosts[0].steps) if len(parts) > 1 else alone


def _alone(session: Session, part: InputPart) -> tuple[str, Finding]:
    """A host whose capture overlaps no other, with the verdict that its own page shows."""
    by_kinds, limits = input_finding(part.steps, part.kind), limits_of(session, (part.host,))
    return part.host, by_causes(by_kinds, part.steps, limits) if limits else by_kinds


def _advice_table(advice: tuple[Advice, ...]) -> Table:
    titles = {name: part[0] for name, part in (*PARTS.items(), *HOST_PARTS.items())}
    return ADVICE.fill(
        {
            "category": [titles[item.category] for item in advice],
            "text": [item.text for item in advice],
            "tool": [item.tool for item in advice],
        }
    )


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def _scalars(pipeline: InputPipeline) -> dict[str, Scalar]:
    steps, share = pipeline.steps, pipeline.input_fraction
    time, n_steps = steps.duration_ps, len(steps)
    host = pipeline.host_time
    result: dict[str, Number | float | None] = {
        "step_time_avg_ps": Number(_or_none(mean(time)), step_time_base(pipeline.common)),
        "step_time_sd_ps": _or_none(deviation(time)),
        "step_time_min_ps": int(time.min()) if n_steps else None,
        "step_time_max_ps": int(time.max()) if n_steps else None,
        "n_steps": Number(n_steps, f"{steps.n_trimmed} more left out" if steps.n_trimmed else ""),
        "input_fraction": step_share(steps, "input"),
        "input_fraction_sd": Number(_or_none(deviation(share)), "over steps" if n_steps else ""),
        "input_fraction_min": float(share.min()) if n_steps else None,
        "input_fraction_max": float(share.max()) if n_steps else None,
        "waiting_avg_ps": _or_none(mean(steps.category_ps("input"))),
        "output_fraction": step_share(steps, "output"),
        "other_fraction": step_share(steps, "other", "Idle" if pipeline.cores else "Other"),
        "host_input_ps": Number(
            host.total_ps if host.total_ps else None,
            "all threads" if host.total_ps else _no_host_time(pipeline),
        ),
        "host_enqueue_fraction": Number(
            host.enqueue_fraction if host.enqueue_fraction >= 0 else None,
            "of the host's time for input" if host.enqueue_fraction >= 0 else "",
        ),
    }
    if pipeline.cores:
        most = float(pipeline.cores.most.mean())
        result["input_fraction_worst_core"] = Number(most, "mean over steps")
    if not n_steps:
        why = Number(None, step_time_base(pipeline.common))
        result |= {name: why for name in result if name not in _WITHOUT_STEPS}
    return fill_scalars(SCALARS, result)


def _no_host_time(pipeline: InputPipeline) -> str:
    """Why no host spends time on input, if none does."""
    if len(pipeline.host_input.ops):
        return _ONLY_WAITS
    return _NO_STAGES if pipeline.judged_steps.waits else _NO_INPUT_OPS


def _verdict(
    judged: Finding, measured: tuple[InputPipeline, JobLimits | None], advice: tuple[Advice, ...], loader: str
) -> Verdict | None:
    """The finding and its parts: the host, the core and the host work that cost most; links from the
    advice.
    """
    pipeline, limits = measured
    on_host = [loader] if loader else _on_host(pipeline, judged.level)
    compared = [] if pipeline.common.is_disjoint else _worst_host(pipeline, limits is None)
    details = [*compared, *_worst_core(pipeline), *on_host, *judged.more]
    if pipeline.common.is_disjoint:  # the hosts' verdicts come before their loaders
        details = [*judged.more, *on_host]
    next_steps = []
    if judged.level in ("warn", "bad") and len(pipeline.hosts) == 1:
        worst = int(pipeline.steps.category_ps(judged.category).argmax())
        start, end = (
            int(pipeline.steps.start_ps[worst]),
            int(pipeline.steps.start_ps[worst] + pipeline.steps.duration_ps[worst]),
        )
        waits = "idles" if judged.category == "other" else "waits"
        text = f"Look at the step that {waits} longest ({pipeline.steps.name[worst]}) in the trace viewer"
        next_steps.append(NextStep(text, "trace_viewer", {"start_ps": str(start), "end_ps": str(end)}))
    tools = {item.tool for item in advice}
    if judged.level != "good" and "tf_data_bottleneck_analysis" in tools:
        next_steps.append(
            NextStep("See which tf.data stage is the bottleneck", "tf_data_bottleneck_analysis")
        )
    if judged.level == "good":
        next_steps.append(NextStep("See how the steps spend their time", "overview_page"))
    if judged.level == "unknown":
        next_steps.append(NextStep("See what takes the time", "overview_page"))
    color = {"other": "idle", "host_wait": "wait"}.get(judged.category, judged.category)
    verdict = Verdict(judged.level, judged.text, color, tuple(details), tuple(next_steps))
    return with_limits("input_pipeline_analyzer", verdict, limits, is_named=judged.category != "input")


def _worst_host(pipeline: InputPipeline, judges: bool) -> list[str]:
    """Names the host that waits most, or says that the hosts wait equally. `judges`: also says how bad it
    is.
    """
    with_steps = [part for part in pipeline.hosts if len(part.steps)]
    if len(with_steps) < 2 or not with_steps[0].fraction:
        return []
    most, least = with_steps[0], with_steps[-1]
    times = sorted((most.waiting_ps, least.waiting_ps))
    if most.fraction - least.fraction < _FAR_APART and times[1] < _LONGER * times[0]:
        return [
            f"{all_of(len(with_steps))} hosts wait about equally, {most.host} most: "
            f"{format_fraction(most.fraction)} of its steps."
        ]
    alone = " and is highly input-bound" if judges and most.fraction >= THRESHOLDS["input"][1] else ""
    text = (
        f"{most.host} waits most{alone}: {format_time(most.waiting_ps)} "
        f"({format_fraction(most.fraction)}) of each of its steps"
    )
    return [
        f"{text}; {least.host} waits least, {format_time(least.waiting_ps)} "
        f"({format_fraction(least.fraction)})."
    ]


def _worst_core(pipeline: InputPipeline) -> list[str]:
    """Names the core that waits most, if the cores differ."""
    if not pipeline.cores or not pipeline.cores.most.any():
        return []
    most, least = float(pipeline.cores.most.mean()), float(pipeline.cores.least.mean())
    if most - least < _FAR_APART:
        return []
    names = [name for name in pipeline.cores.worst if name]
    name = max(sorted(set(names)), key=names.count)
    text = f"Cores wait unequally: {format_fraction(least)} to {format_fraction(most)} of a step"
    return [
        f"{text}; core {name} waits longest in {names.count(name)} of {len(pipeline.steps)} steps, and the "
        "others wait for it."
    ]


def _on_host(pipeline: InputPipeline, level: str) -> list[str]:
    """The host's largest category of time for input."""
    time = pipeline.host_time
    if not time.largest and pipeline.judged_steps.category_ps("input").any():
        return []
    if not time.largest:
        return (
            []
            if level == "good"
            else [
                "The host's trace names no input pipeline operations, so it is unknown what its time for "
                "input is spent on."
            ]
        )
    if time.largest == "other":
        unnamed = format_fraction(time.time_ps[-1] / time.total_ps)
        return [
            f"On the host {unnamed} of the time for input is not attributed to any traced input operation."
        ]
    share = time.time_ps[HOST_CATEGORIES.index(time.largest)] / time.total_ps
    category = HOST_PARTS[time.largest][0].lower()
    text = f"On the host {format_fraction(share)} of the time for input is {category}"
    name, self_ps = largest(pipeline.host_input, time.largest)
    category_ps = pipeline.host_input.time_ps(time.largest)
    if not name or not category_ps:
        return [f"{text}."]
    return [f"{text}; `{short(name)}` is the largest part of that, {format_fraction(self_ps / category_ps)}."]


def _diagnostics(pipeline: InputPipeline, parts: list[InputPart], framework: str) -> tuple[Diagnostic, ...]:
    notices: list[Notice] = [notice for part in parts for notice in part.notices]
    notices += step_notices(pipeline.common, len(parts), any(part.has_loop_ops for part in parts), framework)
    if pipeline.moved_ps:
        text = (
            "The cores ran no infeed: their idle time counts as waiting for input while the host waited "
            "for it in the same step."
        )
        notices.append(Notice("info", text))
    order = ("error", "warning", "info")
    return tuple(
        Diagnostic(n.severity, n.message, n.remedy)
        for n in sorted(notices, key=lambda notice: order.index(notice.severity))
    )


def badge(session: Session) -> str:
    """The share of the steps that waits for input, where the overview or this page is known."""
    overview = session.known(summary, session.hosts)
    parts = [part.facts for part in overview] if overview else session.known(host_facts, session.hosts)
    if not parts or (len(parts) > 1 and not session.known(clock_marks, session.hosts)):
        return ""
    steps = run_facts(parts, clocks_of(session, session.hosts).correction_ns).steps
    share = steps.fraction("input") if len(steps) else 0.0
    return f"{share * 100:.0f}%" if share >= _LEAST_BADGE else ""


TOOL = Tool(
    name="input_pipeline_analyzer",
    title="Input pipeline",
    group="Input",
    summary="Whether the job waits for its input, where the host's time goes and what to change",
    view=view,
    badge=badge,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
)
