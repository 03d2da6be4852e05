"""tf_data_bottleneck_analysis: the stage of a tf.data pipeline that holds up the job, and the estimated
gain of changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.advice import place
from tb_tpuprof.analysis.tf_data.finding import PipelineVerdict, pipeline_verdict, sentence
from tb_tpuprof.analysis.tf_data.forest import has_iterators
from tb_tpuprof.analysis.tf_data.host import HostPipelines, host_pipelines
from tb_tpuprof.analysis.tf_data.pipeline import Call, Pipeline, call
from tb_tpuprof.analysis.tf_data.what_if import Estimate
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Param, Params
from tb_tpuprof.tools.input_verdict import input_share
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tf_data_bottleneck_analysis.tables import (
    ADVICE,
    CHOSEN,
    EDGES,
    EXECUTIONS,
    NODES,
    PIPELINES,
    SCALARS,
    TABLES,
    TILES,
    WHAT_IF,
)
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import JobLimits, limits_of, with_limits
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import counted

_MOST_EXECUTIONS = 1000
_HOSTS_TO_CHECK = 4
_REASON = "no tf.data iterators were traced."
_REMEDY = (
    "If the job reads its input with tf.data, capture while it trains, for longer than one step, with "
    "host_tracer_level=2. Other loaders (PyTorch, Grain, plain Python) are not traced by tf.data: see the "
    "input pipeline page."
)


@dataclass(frozen=True)
class Chosen:
    """The call that the page shows, and its pipeline."""

    host: str
    pipeline: Pipeline
    rank: int
    call: Call
    verdict: PipelineVerdict
    steps: Steps


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The pipelines of one, several or all hosts, and one call of one of them in full."""
    parts = session.map(host_pipelines, hosts)
    ranked = sorted(
        (
            (host, part.steps, pipeline)
            for host, part in zip(hosts, parts, strict=True)
            for pipeline in part.pipelines
        ),
        # Pipelines that feed no step, such as validation, come after those that do.
        key=lambda row: (place(row[1], row[2]) == "outside", -row[2].max_ps),
    )
    listed = [(host, pipeline) for host, _steps, pipeline in ranked]
    if not listed:
        raise ToolUnavailable(TOOL.name, _REASON, _REMEDY)
    host, pipeline = _pick(listed, str(params.get("pipeline", "")))
    limits = limits_of(session, hosts)
    chosen = _chosen(session.trace(host), host, pipeline, params.get("rank"))
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        {
            "pipelines": _pipelines_table(listed),
            "chosen": _chosen_table(chosen),
            "executions": _executions_table(pipeline),
            "nodes": _nodes_table(chosen.call),
            "edges": _edges_table(chosen.call),
            "what_if": _what_if_table(chosen.verdict.estimates),
            "advice": ADVICE.fill(
                {
                    "text": _advice(chosen, limits),
                }
            ),
        },
        _scalars(chosen, listed),
        _in_light_of(_verdict(chosen, limits is not None), limits),
        _diagnostics(hosts, parts, chosen),
    )


def _advice(chosen: Chosen, limits: JobLimits | None) -> tuple[str, ...]:
    """Advice on the shown pipeline; none on one that nothing waits for in a job with other limits."""
    if limits is None or not limits.are_elsewhere(TOOL.name) or limits.time_ps(Cause.INPUT):
        return chosen.verdict.advice
    return ("No change is needed here: the steps do not wait for data, and something else limits the job.",)


def _pick(listed: list[tuple[str, Pipeline]], name: str) -> tuple[str, Pipeline]:
    """The requested pipeline; else the slowest of a host, or of a device if no host has any."""
    if not name:
        return next((pair for pair in listed if pair[1].kind == "Host"), listed[0])
    for host, pipeline in listed:
        if name in (pipeline.name, f"{host}/{pipeline.name}"):
            return host, pipeline
    known_names = [pipeline.name for _, pipeline in listed]
    allowed = [
        known if known_names.count(known) == 1 else f"{host}/{known}"
        for (host, _), known in zip(listed, known_names, strict=True)
    ]
    raise BadParameter("pipeline", name, "one of " + ", ".join(allowed[:50]))


def _chosen(trace: Trace, host: str, pipeline: Pipeline, rank: object) -> Chosen:
    shown_rank = min(int(rank), len(pipeline.calls)) if isinstance(rank, int) else pipeline.typical_rank
    return Chosen(
        host,
        pipeline,
        shown_rank,
        call(trace, pipeline, shown_rank),
        pipeline_verdict(trace, pipeline),
        steps(trace),
    )


def _pipelines_table(listed: list[tuple[str, Pipeline]]) -> Table:
    rows = [pipeline for _, pipeline in listed]
    stages = [pipeline.bottleneck_stage for pipeline in rows]
    n_slow = sum(pipeline.n_slow > 0 for pipeline in rows)
    return PIPELINES.fill(
        {
            "host": [host for host, _ in listed],
            "pipeline": [pipeline.name for pipeline in rows],
            "kind": [pipeline.kind for pipeline in rows],
            "bottleneck": [stage.name if stage else "" for stage in stages],
            "bottleneck_long_name": [stage.long_name if stage else "" for stage in stages],
            "n_calls": np.array([len(pipeline.calls) for pipeline in rows]),
            "n_slow_calls": np.array([pipeline.n_slow for pipeline in rows]),
            "min_latency_ps": np.array([int(pipeline.duration_ps.min()) for pipeline in rows]),
            "avg_latency_ps": np.array([float(pipeline.duration_ps.mean()) for pipeline in rows]),
            "max_latency_ps": np.array([pipeline.max_ps for pipeline in rows]),
            "wait_fraction": np.array([np.nan if p.wait_fraction is None else p.wait_fraction for p in rows]),
        },
        f"{len(rows):,} on {counted(len({host for host, _ in listed}), 'host')}, "
        f"{n_slow:,} with calls over 50 µs",
    )


def _chosen_table(chosen: Chosen) -> Table:
    node = chosen.call.nodes[chosen.call.bottleneck] if chosen.call.bottleneck >= 0 else None
    return CHOSEN.fill(
        {
            "host": [chosen.host],
            "pipeline": [chosen.pipeline.name],
            "rank": np.array([chosen.rank]),
            "start_ps": np.array([chosen.call.start_ps]),
            "duration_ps": np.array([chosen.call.duration_ps]),
            "bottleneck": [node.name if node else ""],
            "bottleneck_long_name": [node.long_name if node else ""],
            "node": np.array([chosen.call.bottleneck]),
        }
    )


def _executions_table(pipeline: Pipeline) -> Table:
    order = pipeline.order[:_MOST_EXECUTIONS]
    n_calls = len(pipeline.calls)
    return EXECUTIONS.fill(
        {
            "rank": np.arange(1, len(order) + 1),
            "start_ps": pipeline.start_ps[order],
            "duration_ps": pipeline.duration_ps[order],
            "is_complete": pipeline.is_complete[order],
        },
        f"the {len(order):,} slowest of {n_calls:,}" if n_calls > len(order) else "",
    )


def _nodes_table(shown: Call) -> Table:
    nodes = shown.nodes
    return NODES.fill(
        {
            "node": np.arange(len(nodes)),
            "iterator_id": [node.iterator for node in nodes],
            "name": [node.name for node in nodes],
            "long_name": [node.long_name for node in nodes],
            "start_ps": np.array([node.start_ps for node in nodes]),
            "duration_ps": np.array([node.duration_ps for node in nodes]),
            "self_time_ps": np.array([node.self_ps for node in nodes]),
            "n_calls": np.array([node.n_calls for node in nodes]),
            "n_iterators": np.array([node.n_iterators for node in nodes]),
            "is_blocking": np.array([node.is_blocking for node in nodes], np.bool_),
            "is_bottleneck": np.arange(len(nodes)) == shown.bottleneck,
            "is_async": np.array([node.is_async for node in nodes], np.bool_),
            "parent": np.array([node.parent for node in nodes]),
            "parameters": [_joined(node.parameters) for node in nodes],
        }
    )


def _joined(parameters: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name}={value.replace(',', ' ')}" for name, value in parameters)


def _edges_table(shown: Call) -> Table:
    ends = [(node.parent, i) for i, node in enumerate(shown.nodes) if node.parent >= 0]
    consumer, producer = np.array(ends, np.int64).reshape(-1, 2).T
    critical = [shown.nodes[a].is_blocking and shown.nodes[b].is_blocking for a, b in ends]
    return EDGES.fill(
        {
            "from": consumer,
            "to": producer,
            "is_critical": np.array(critical, np.bool_),
        }
    )


def _what_if_table(estimates: tuple[Estimate, ...]) -> Table:
    latency = [estimate.latency_ps or (np.nan, np.nan) for estimate in estimates]
    step = [estimate.step_ps or (np.nan, np.nan) for estimate in estimates]
    return WHAT_IF.fill(
        {
            "change": [estimate.change for estimate in estimates],
            "latency_low_ps": np.array([low for low, _ in latency]),
            "latency_high_ps": np.array([high for _, high in latency]),
            "step_low_ps": np.array([low for low, _ in step]),
            "step_high_ps": np.array([high for _, high in step]),
            "limited_by": [estimate.limited_by for estimate in estimates],
            "note": [estimate.note for estimate in estimates],
        }
    )


def _scalars(chosen: Chosen, listed: list[tuple[str, Pipeline]]) -> dict[str, Scalar]:
    job_steps, pipeline = chosen.steps, chosen.pipeline
    stage = pipeline.bottleneck_stage
    n_steps, rate = len(job_steps), pipeline.wait_fraction
    of_host = f"of {chosen.host}" if n_steps else "no steps were found"
    one_call = "a rate needs at least two calls"
    values = {
        "max_latency_ps": pipeline.max_ps,
        "avg_latency_ps": float(pipeline.duration_ps.mean()),
        "bottleneck_self_ps": pipeline.work_ps(stage) if stage else None,
        "wait_fraction": Number(rate, one_call if rate is None else "between the first and the last call"),
        "host_step_time_avg_ps": Number(float(job_steps.duration_ps.mean()) if n_steps else None, of_host),
        "host_input_fraction": Number(_input_fraction(chosen), of_host),
        "n_pipelines": len(listed),
        "n_slow_pipelines": sum(p.n_slow > 0 for _, p in listed),
        "rank": chosen.rank,
        "typical_rank": pipeline.typical_rank,
        "n_executions": len(pipeline.calls),
    }
    return fill_scalars(SCALARS, values)


def _input_fraction(chosen: Chosen) -> float | None:
    """The share in the verdict's sentence if its base is the step; else the steps' share of waiting for
    input.
    """
    waits = chosen.verdict.waiting
    if waits.of == "step" and waits.fraction is not None:
        return waits.fraction
    return chosen.steps.fraction("input") if len(chosen.steps) else None


def _in_light_of(verdict: Verdict, limits: JobLimits | None) -> Verdict | None:
    """The diagnosis of how much the job waits for data, then the pipeline's part in it."""
    if limits is None:
        return verdict
    level, text = input_share(limits)
    if not limits.is_about(TOOL.name):
        verdict = replace(
            verdict, level=level if verdict.level != "unknown" else "unknown", text=f"{text} {verdict.text}"
        )
    return with_limits(TOOL.name, verdict, limits)


def _verdict(chosen: Chosen, is_judged: bool) -> Verdict:
    pipeline = chosen.verdict
    step_ps = float(chosen.steps.duration_ps.mean()) if len(chosen.steps) else None
    text = sentence(chosen.pipeline, pipeline, chosen.host, step_ps, is_judged)
    stage = chosen.pipeline.bottleneck_stage
    named = (
        (Subject("pipelines", "bottleneck_long_name", stage.long_name, {}),)
        if stage and pipeline.stage
        else ()
    )
    step = NextStep("Look at this call in the trace viewer", "trace_viewer", _window(chosen))
    if pipeline.level in ("warn", "bad"):
        details = tuple(detail for detail in (pipeline.advice[0], pipeline.gain) if detail)
        return Verdict(pipeline.level, text, "input", details, (step,), named)
    if pipeline.level == "unknown" and pipeline.stage:
        return Verdict(
            pipeline.level,
            text,
            "",
            (f"Its slowest stage is {pipeline.stage}. {pipeline.advice[0]}",),
            (step,),
        )
    return Verdict(pipeline.level, text, "", (), (step,))


def _window(chosen: Chosen) -> dict[str, str]:
    shown = chosen.call
    first = min([shown.start_ps, *(node.start_ps for node in shown.nodes)])
    return {"hosts": chosen.host, "start_ps": str(first), "end_ps": str(shown.start_ps + shown.duration_ps)}


def _diagnostics(
    hosts: tuple[str, ...], parts: list[HostPipelines], chosen: Chosen
) -> tuple[Diagnostic, ...]:
    result = []
    for host, part in zip(hosts, parts, strict=True):
        unplaced = part.unplaced
        if unplaced.n_in_cycles:
            text = (
                f"{host}: {counted(unplaced.n_in_cycles, 'iterator event')} form cycles or are nested too "
                "deeply; they are left out."
            )
            result.append(Diagnostic("warning", text, "The trace is damaged: capture again."))
        if unplaced.n_orphans:
            text = (
                f"{host}: {unplaced.n_orphans:,} of {counted(unplaced.n_events, 'iterator event')} are left "
                "out"
            )
            result.append(
                Diagnostic(
                    "info",
                    f"{text} because they belong to no complete call: the capture's start or end cut it "
                    "off, or nothing consumed what they produced.",
                )
            )
        if unplaced.n_without_id:
            text = (
                f"{host}: {counted(unplaced.n_without_id, 'iterator event')} have no id; they are "
                "distinguished by name."
            )
            result.append(Diagnostic("info", text))
    if chosen.call.n_reparented:
        text = (
            f"{counted(chosen.call.n_reparented, 'stage')} of this call form a cycle; they are drawn below "
            "the root."
        )
        result.append(Diagnostic("warning", text))
    return tuple(result)


def available(session: Session) -> Availability:
    """Whether one of the first hosts traced a tf.data iterator; all hosts of a job run the
    same program.
    """
    if any(session.get(has_iterators, host) for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability()
    return Availability(_REASON, _REMEDY, "no tf.data")


TOOL = Tool(
    name="tf_data_bottleneck_analysis",
    title="tf.data bottleneck",
    group="Input",
    summary="The critical path through each input pipeline, and the estimated gain of each change",
    view=view,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    available=available,
    params=(
        Param(
            "pipeline",
            "Pipeline",
            "text",
            None,
            "The pipeline to show, such as Host:0 or worker-1/Host:0; absent: the slowest",
        ),
        Param(
            "rank",
            "Rank",
            "int",
            None,
            "The call to show, by duration: 1 is the slowest; absent: one of median length",
            minimum=1,
        ),
    ),
)
