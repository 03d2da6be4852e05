"""input_pipeline_analyzer: does the job wait for its input, where on the host does the time go, and what to
change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.input.advice import Advice, input_advice, largest, short
from tb_tpuprof.analysis.input.host import HOST_CATEGORIES
from tb_tpuprof.analysis.input.pipeline import InputPart, InputPipeline, input_part, input_pipeline
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS, Finding, apart_finding, input_finding, on_worst_host
from tb_tpuprof.analysis.ops.stats import sum_op_stats
from tb_tpuprof.analysis.steps.combine import sum_hardware
from tb_tpuprof.analysis.steps.diagnostics import Notice, step_notices
from tb_tpuprof.analysis.steps.pytorch_loader import loader_sentence, loader_wait
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.facts import framework_of, step_time_base
from tb_tpuprof.tools.input_pipeline_analyzer.tables import (
    ADVICE,
    HOST_PARTS,
    PARTS,
    SCALARS,
    TABLES,
    breakdown_table,
    deviation,
    host_categories_table,
    hosts_table,
    input_ops_table,
    mean,
    steps_table,
)
from tb_tpuprof.tools.input_verdict import by_causes
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import JobLimits, limits_of, told
from tb_tpuprof.units import format_fraction, format_time

_FAR_APART = 0.05  # difference between two shares of waiting that is worth a sentence
_LONGER = 1.5  # times as long that a host waits that is worth one, too

_NO_INPUT_OPS = "no input operations were traced"
_NO_STAGES = "the steps wait in Python, and no stages of a pipeline were traced"


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """The input of one, several or all hosts together."""
    parts = session.map(input_part, hosts, loader_wait)
    clocks = clocks_of(session, hosts)
    parts = [
        replace(part, start_ns=part.start_ns + add)
        for part, add in zip(parts, clocks.correction_ns, strict=True)
    ]
    found = input_pipeline(parts)
    kind = sum_hardware(session.map(hardware, hosts)).kind
    limits = None if found.common.is_disjoint else limits_of(session, hosts)
    judged = _judged(parts, found, kind, limits)
    loader = loader_sentence(session.map(loader_wait, hosts), hosts)
    advice = input_advice(found, judged.level, framework_of(session, hosts))
    return Payload(
        "input_pipeline_analyzer",
        session.run,
        hosts,
        {
            "steps": steps_table(found),
            "breakdown": breakdown_table(found),
            "host_categories": host_categories_table(found.host_time),
            "input_ops": input_ops_table(found),
            "advice": _advice_table(advice),
            "hosts": hosts_table(found),
        },
        _scalars(found),
        _verdict(judged, (found, limits), advice, loader),
        (*clocks.diagnostics, *_diagnostics(found, parts, framework_of(session, hosts))),
    )


def _judged(parts: list[InputPart], found: InputPipeline, kind: str, limits: JobLimits | None) -> Finding:
    """The verdict on all hosts, or on the one that waits where their mean hides it; on each where they share
    no steps.

    By the job's diagnosis, where there is one.
    """
    if found.common.is_disjoint:
        return apart_finding([(part.host, input_finding(part.steps, part.ops, part.kind)) for part in parts])
    alone = input_finding(found.steps, sum_op_stats([part.ops for part in parts]), kind)
    if limits:
        return by_causes(alone, found.steps, limits)
    return on_worst_host(alone, found.hosts[0].host, found.hosts[0].steps) if len(parts) > 1 else alone


def _advice_table(advice: tuple[Advice, ...]) -> Table:
    titles = {name: told[0] for name, told in (*PARTS.items(), *HOST_PARTS.items())}
    return ADVICE.fill(
        {
            "category": [titles[one.category] for one in advice],
            "text": [one.text for one in advice],
            "tool": [one.tool for one in advice],
        }
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _scalars(found: InputPipeline) -> dict[str, Scalar]:
    steps, share = found.steps, found.input_fraction
    time, n = steps.duration_ps, len(steps)
    host = found.host_time
    result: dict[str, Number | float | None] = {
        "step_time_avg_ps": Number(_known(mean(time)), step_time_base(found.common)),
        "step_time_sd_ps": _known(deviation(time)),
        "step_time_min_ps": int(time.min()) if n else None,
        "step_time_max_ps": int(time.max()) if n else None,
        "n_steps": Number(n, f"{steps.n_trimmed} more left out" if steps.n_trimmed else ""),
        "input_fraction": steps.fraction("input") if n else None,
        "input_fraction_sd": Number(_known(deviation(share)), "over steps"),
        "input_fraction_min": float(share.min()) if n else None,
        "input_fraction_max": float(share.max()) if n else None,
        "waiting_avg_ps": _known(mean(steps.category_ps("input"))),
        "output_fraction": steps.fraction("output") if n else None,
        "other_fraction": Number(
            steps.fraction("other") if n else None, "", "Idle" if found.cores else "Other"
        ),
        "host_input_ps": Number(
            host.total_ps if host.total_ps else None,
            "all threads" if host.total_ps else _NO_STAGES if steps.waits else _NO_INPUT_OPS,
        ),
        "host_enqueue_fraction": Number(
            host.enqueue_fraction if host.enqueue_fraction >= 0 else None, "of the host's time"
        ),
    }
    if found.cores:
        most = float(found.cores.most.mean())
        result["input_fraction_worst_core"] = Number(most, "the mean over steps")
    return fill_scalars(SCALARS, result)


def _verdict(
    judged: Finding, known: tuple[InputPipeline, JobLimits | None], advice: tuple[Advice, ...], loader: str
) -> Verdict | None:
    """The finding, then what it is made of: the host, the core and the work on the host that cost most; links
    of the advice.
    """
    found, limits = known
    on_host = [loader] if loader else _on_host(found, judged.level)
    details = [*_worst_host(found, limits is None), *_worst_core(found), *on_host, *judged.more]
    next_steps = []
    if judged.level in ("warn", "bad") and len(found.hosts) == 1:
        worst = int(found.steps.category_ps(judged.category).argmax())
        start, end = (
            int(found.steps.start_ps[worst]),
            int(found.steps.start_ps[worst] + found.steps.duration_ps[worst]),
        )
        waits = "idles" if judged.category == "other" else "waits"
        text = f"Look at the step that {waits} longest ({found.steps.name[worst]}) in the trace viewer"
        next_steps.append(NextStep(text, "trace_viewer", {"start_ps": str(start), "end_ps": str(end)}))
    tools = {one.tool for one in advice}
    if judged.level != "good" and "tf_data_bottleneck_analysis" in tools:
        next_steps.append(
            NextStep("See which tf.data stage is the bottleneck", "tf_data_bottleneck_analysis")
        )
    if judged.level == "good":
        next_steps.append(NextStep("See what the steps spend their time on", "overview_page"))
    color = {"other": "idle", "host_wait": "wait"}.get(judged.category, judged.category)
    verdict = Verdict(judged.level, judged.text, color, tuple(details), tuple(next_steps))
    return told("input_pipeline_analyzer", verdict, limits, is_named=judged.category != "input")


def _worst_host(found: InputPipeline, judges: bool) -> list[str]:
    """Names the host that waits most, where hosts differ; and that they do not, where they do not. `judges`:
    and how bad that is.
    """
    known = [part for part in found.hosts if len(part.steps)]
    if len(known) < 2 or not known[0].fraction:
        return []
    most, least = known[0], known[-1]
    times = sorted((most.waiting_ps, least.waiting_ps))
    if most.fraction - least.fraction < _FAR_APART and times[1] < _LONGER * times[0]:
        return [
            f"All {len(known)} hosts wait alike, {most.host} most: {format_fraction(most.fraction)} of its "
            "steps."
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


def _worst_core(found: InputPipeline) -> list[str]:
    """Names the core that waits most, where the cores differ."""
    if not found.cores or not found.cores.most.any():
        return []
    most, least = float(found.cores.most.mean()), float(found.cores.least.mean())
    if most - least < _FAR_APART:
        return []
    names = [name for name in found.cores.worst if name]
    name = max(sorted(set(names)), key=names.count)
    text = f"Cores wait unequally: {format_fraction(least)} to {format_fraction(most)} of a step"
    return [
        f"{text}; core {name} waits longest in {names.count(name)} of {len(found.steps)} steps, and the "
        "others wait for it."
    ]


def _on_host(found: InputPipeline, level: str) -> list[str]:
    """Where on the host the time for input goes."""
    time = found.host_time
    if not time.largest and found.steps.category_ps("input").any():
        return []
    if not time.largest:
        return (
            []
            if level == "good"
            else [
                "The host's trace names no operations of an input pipeline, so where its time for input goes "
                "is unknown."
            ]
        )
    if time.largest == "other":
        unnamed = format_fraction(time.time_ps[-1] / time.total_ps)
        return [
            f"On the host {unnamed} of the time for input is not attributed to any traced input operation."
        ]
    share = time.time_ps[HOST_CATEGORIES.index(time.largest)] / time.total_ps
    what = HOST_PARTS[time.largest][0].lower()
    text = f"On the host {format_fraction(share)} of the time for input is {what}"
    name, self_ps = largest(found.host_input, time.largest)
    whole = found.host_input.time_ps(time.largest)
    if not name or not whole:
        return [f"{text}."]
    return [f"{text}; `{short(name)}` is the largest part of that, {format_fraction(self_ps / whole)}."]


def _diagnostics(found: InputPipeline, parts: list[InputPart], framework: str) -> tuple[Diagnostic, ...]:
    notices: list[Notice] = [notice for part in parts for notice in part.notices]
    notices += step_notices(found.common, len(parts), any(part.has_loop_ops for part in parts), framework)
    if found.moved_ps:
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


TOOL = Tool(
    name="input_pipeline_analyzer",
    title="Input pipeline",
    group="Input",
    summary="Whether the job waits for its input, where on the host the time goes and what to change",
    view=view,
    tables=TABLES,
    scalars=SCALARS,
)
