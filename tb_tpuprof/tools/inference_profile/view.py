"""inference_profile: requests of an inference job, their latency, and where their time goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_tpuprof.analysis.inference.latency import throughput
from tb_tpuprof.analysis.inference.limits import padding_of, sides
from tb_tpuprof.analysis.inference.loads import host_loads, summed_loads
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.record import HostInference, host_inference, summed
from tb_tpuprof.analysis.inference.requests import has_requests
from tb_tpuprof.analysis.inference.tokens import Tokens, host_tokens, summed_tokens
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Param, Params
from tb_tpuprof.tools.inference_profile.load_rows import LOADS, load_sentence, load_table
from tb_tpuprof.tools.inference_profile.rows import (
    batch_tables,
    group_table,
    histogram_table,
    percentiles_table,
    phases_table,
    requests_table,
    sizes_table,
)
from tb_tpuprof.tools.inference_profile.sentences import notices, verdict_of
from tb_tpuprof.tools.inference_profile.tables import MODELS, PATTERNS, SCALARS, TABLES, TILES
from tb_tpuprof.tools.inference_profile.token_rows import (
    GENERATIONS,
    TOKENS,
    token_numbers,
    token_sentence,
    token_tables,
)
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar
from tb_tpuprof.tools.requests import (
    mean_working,
    request_scalars,
    summed_over_hosts,
    throughput_by_host,
    throughput_of,
    unit_word,
)
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import PS_PER_S, format_time, three_digits

_HOSTS_TO_CHECK = 4
_MODELS_NAMED = 20  # in an error
_REASON = "no event in the trace marks a request or a forward pass."
_REMEDY = (
    'Mark each request. JAX: `with jax.profiler.StepTraceAnnotation("predict", step_num=i):` around it, '
    "including the wait for its result. TensorFlow: "
    '`tf.profiler.experimental.Trace("predict", step_num=i, _r=1)`. PyTorch: '
    '`torch.profiler.record_function("predict")`. TensorFlow Serving, vLLM and SGLang mark theirs; capture '
    "with host_tracer_level 2."
)


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The requests of one, several or all hosts together, of all models or one."""
    parts = session.map(host_inference, hosts, trace_notices, host_loads, host_tokens)
    everything = summed([replace(part, hosts=(host,)) for part, host in zip(parts, hosts, strict=True)])
    if not len(everything):
        raise ToolUnavailable(TOOL.name, _REASON, _REMEDY)
    model = str(params["model"])
    if model and model not in everything.models:
        some = ", ".join(everything.models[:_MODELS_NAMED])
        more = len(everything.models) - _MODELS_NAMED
        raise BadParameter("model", model, f"{some} and {more:,} more" if more > 0 else some)
    found = everything.of_model(model)
    if not len(found):
        raise BadParameter("model", model, "a model with requests, or empty for all")
    loads = summed_loads(session.map(host_loads, hosts))
    tokens = summed_tokens(session.map(host_tokens, hosts), everything.models).of_model(model)
    of_trace = [notice for of_host in session.map(trace_notices, hosts) for notice in of_host]
    diagnostics = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in of_trace]
    diagnostics += [Diagnostic("info", text, remedy) for text, remedy in notices(found)]
    tables = {
        "percentiles": percentiles_table(found),
        "histogram": histogram_table(found),
        **sizes_table(found),
        **phases_table(found),
        **load_table(loads, model, unit_word(found, 2)),
        **token_tables(tokens, hosts),
        "requests": requests_table(found),
        **batch_tables(found),
        "models": group_table(MODELS, everything, everything.model, everything.models),
        "patterns": group_table(PATTERNS, found, found.pattern, found.patterns),
    }
    sentences = (load_sentence(loads, model, unit_word(found, 2)), token_sentence(tokens))
    verdict = verdict_of(found, tuple(text for text in sentences if text))
    return Payload(TOOL.name, session.run, hosts, tables, scalars(found, tokens), verdict, tuple(diagnostics))


def scalars(found: HostInference, tokens: Tokens) -> dict[str, Scalar]:
    """The page's numbers, of at least one request."""
    flow = throughput_of(found)
    assert flow is not None
    peak = f"peak {flow.peak_per_s:,} per second" if flow.peak_per_s >= 0 else ""
    latency = found.latency_ps
    total = float(latency.astype(np.float64).sum())
    result: dict[str, Number] = {
        "requests_per_s": Number(
            flow.per_s, peak or f"{unit_word(found, 2)} per second", working=_per_second(found, flow.span_ps)
        ),
        "latency_mean_ps": Number(total / len(latency), working=mean_working(latency)),
        "latency_max_ps": Number(
            int(latency.max()),
            f"{found.unit} {int(found.number[latency.argmax()]):,}",
            f"Slowest {found.unit}",
        ),
        "mean_in_progress": Number(flow.mean_in_progress, f"at most {flow.max_in_progress:,}"),
        "device_busy_fraction": Number(
            found.busy_ps / found.span_ps if found.span_ps else None,
            f"of the {format_time(found.span_ps)} with {unit_word(found, 2)}{summed_over_hosts(found)}",
            "Compute busy" if found.device_kind == "CPU" else f"{found.device_kind} busy",
            quotient((found.busy_ps, found.span_ps), "ps"),
        ),
    }
    for side, time in sides(found.part_ps).items():
        spent = float(time.astype(np.float64).sum())
        result[f"{side}_fraction"] = Number(
            spent / total if total else None, working=quotient((spent, total), "ps")
        )
    batch_flow = throughput_by_host(found.batches.host, found.batches.start_ps, found.batches.duration_ps)
    if batch_flow:
        result["batches_per_s"] = Number(batch_flow.per_s, f"{len(found.batches):,} batches")
    padding = padding_of(found.batches)
    if padding:
        note = f"{padding.n_padding:,} of {padding.n_slots:,} batch slots"
        working = quotient((padding.n_padding, padding.n_slots), "count")
        result["padding_fraction"] = Number(padding.fraction, note, working=working)
    rate = _tokens_per_s(found, tokens)
    if rate is not None:
        result["tokens_per_s"] = Number(rate[0], f"{rate[1]:,} tokens")
    result |= token_numbers(tokens)
    return {**request_scalars(found), **fill_scalars(SCALARS, result)}


def _per_second(found: HostInference, span_ps: int) -> str:
    if len(found.hosts) > 1 or not span_ps:
        return ""
    per_s = len(found) / (span_ps / PS_PER_S)
    return f"{len(found):,} ÷ {format_time(span_ps)} = {three_digits(per_s)} per second"


def _tokens_per_s(found: HostInference, tokens: Tokens) -> tuple[float, int] | None:
    """(rate, number) of the tokens that passes or requests generate; None if a pass does not state its
    own.
    """
    if tokens.by == "request" and len(found.hosts) == 1:
        n = int(tokens.generations.n_tokens.sum())
        flow = throughput(found.start_ps, found.latency_ps)
        return (n / (flow.span_ps / PS_PER_S), n) if flow.span_ps else None
    rows = np.flatnonzero((found.phase == Phase.DECODE) | (found.phase == Phase.MIXED))
    if not len(rows) or (found.decode_tokens[rows] < 0).any() or len(found.hosts) > 1:
        return None
    n = int(found.decode_tokens[rows].sum())
    flow = throughput(found.start_ps, found.latency_ps)
    return (n / (flow.span_ps / PS_PER_S), n) if flow.span_ps else None


def available(session: Session) -> Availability:
    """Whether one of the first hosts marks requests; all hosts of a job run the same program."""
    if any(session.get(has_requests, host) for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability()
    return Availability(_REASON[0].upper() + _REASON[1:], _REMEDY, "none")


def badge(session: Session) -> str:
    """The median latency, if it is known already."""
    parts = session.known(host_inference, session.hosts)
    found = summed(parts) if parts else None
    if found is None or not len(found):
        return ""
    p50 = request_scalars(found)["latency_p50_ps"].value
    return f"p50 {format_time(float(p50))}" if p50 is not None else ""


TOOL = Tool(
    name="inference_profile",
    title="Inference",
    group="Start here",
    summary="How long requests took, and where their time went",
    view=view,
    available=available,
    badge=badge,
    tables=(*TABLES[:4], LOADS, TOKENS, GENERATIONS, *TABLES[4:]),
    scalars=SCALARS,
    tiles=TILES,
    params=(Param("model", "Model", "text", "", "Only requests of this model; empty: all"),),
)
