"""Times to first tokens and between tokens: tables, numbers and the sentence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.inference.latency import percentiles
from tb_tpuprof.analysis.inference.tokens import Tokens
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Number, ScalarSpec, TableSpec, Texts, Values, number, text
from tb_tpuprof.units import format_time

N_ROWS = 10_000
_FEW = "there are too few: p50 needs 2, p90 10 and p99 100"
_NO_PREFILL = "its prefill is not in the trace"
_NO_GAP = "the trace shows fewer than two of its tokens"
TOKENS = TableSpec(
    "tokens",
    "Time to first token and between tokens",
    (
        text("measure", "Time", "To the first token, between tokens, or per token after the first one"),
        number("n", "Number", "count", "How many times were measured"),
        number("mean_ps", "Average", "ps", "Their mean"),
        number("p50_ps", "p50", "ps", "Half of them are at most this long", unknown=_FEW),
        number("p90_ps", "p90", "ps", "9 of 10 are at most this long", unknown=_FEW),
        number("p99_ps", "p99", "ps", "99 of 100 are at most this long", unknown=_FEW),
        number("max_ps", "Longest", "ps", "The longest one"),
    ),
    "How long a language model takes to its first token and between tokens; percentiles are times that "
    "occurred",
    is_optional=True,
)
GENERATIONS = TableSpec(
    "generations",
    "Tokens of requests",
    (
        text("request", "Request", "Its id as the trace states it, else its number by start, from 1"),
        number("start_ps", "Start", "ps", "Start of the request, since the trace's start"),
        number(
            "first_ps",
            "First token",
            "ps",
            "From the request's start to the end of its prefill",
            unknown=_NO_PREFILL,
        ),
        number("n_tokens", "Tokens", "count", "Ends of its prefill and of its decodes in the trace"),
        number(
            "token_ps",
            "Per token",
            "ps",
            "Mean time of each token after the first one",
            formula="(last token − first token) ÷ (tokens − 1)",
            unknown=_NO_GAP,
        ),
        number("longest_ps", "Longest gap", "ps", "Longest time between two tokens", unknown=_NO_GAP),
        number("total_ps", "Total", "ps", "From the request's start to the end of its last phase"),
        text("model", "Model", "The model that answers it", unknown="no request around it names one"),
        text("host", "Host name", "The host that ran it"),
    ),
    f"A row per request that makes tokens, slowest first token first, at most {N_ROWS:,}",
    is_optional=True,
)
TOKEN_SCALARS = (
    ScalarSpec(
        "first_token_p50_ps",
        "First token p50",
        "ps",
        "Half of the first tokens take at most this long: from the request's start to the end of its "
        "prefill; where single requests are not known, from the start of the prefill",
        is_optional=True,
        formula="time to the first token at rank ⌈0.5 × n⌉",
    ),
    ScalarSpec(
        "token_gap_p50_ps",
        "Between tokens p50",
        "ps",
        "Half of the times between two tokens of a request are at most this long; where single requests are "
        "not known, of an engine's sequences",
        is_optional=True,
        formula="time between tokens at rank ⌈0.5 × n⌉",
    ),
)
_BASIS = {
    "request": "by request",
    "pass": "by forward pass, as single requests are not known: time in the queue is unknown",
    "step": "by annotation, as single requests are not known: time in the queue is unknown",
}
_BY = {"request": "", "pass": " · by pass", "step": " · by annotation"}


def token_tables(tokens: Tokens, hosts: tuple[str, ...]) -> dict[str, Table]:
    """Times of tokens, and by request where single requests are known; none if the trace marks no phases."""
    each = _measures(tokens)
    if not each:
        return {}
    marks = [{one.name: one.latency_ps for one in percentiles(values)} for _, values in each]
    columns: dict[str, Values] = {
        "measure": [title for title, _ in each],
        "n": np.array([len(values) for _, values in each]),
        "mean_ps": np.array([values.mean() for _, values in each]),
        **{
            f"{name}_ps": np.array([mark[name] if mark[name] >= 0 else np.nan for mark in marks])
            for name in ("p50", "p90", "p99")
        },
        "max_ps": np.array([values.max() for _, values in each]),
    }
    tables = {"tokens": TOKENS.fill(columns, _BASIS[tokens.by])}
    return {**tables, "generations": _generations(tokens, hosts)} if tokens.by == "request" else tables


def _measures(tokens: Tokens) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Titles and times in ps of the measures that have any."""
    each = tokens.generations.token_ps
    measures = [
        ("To first token", tokens.first_ps),
        ("Between tokens", tokens.gap_ps),
        ("Per token of a request", np.round(each[np.isfinite(each)]).astype(np.int64)),
    ]
    return [(title, values) for title, values in measures if len(values)]


def _generations(tokens: Tokens, hosts: tuple[str, ...]) -> Table:
    every = tokens.generations
    rows = np.argsort(-every.first_ps, kind="stable")[:N_ROWS]
    shown = every.take(rows)
    columns: dict[str, Values] = {
        "request": shown.label,
        "start_ps": shown.start_ps,
        "first_ps": _known(shown.first_ps),
        "n_tokens": shown.n_tokens,
        "token_ps": shown.token_ps,
        "longest_ps": _known(shown.longest_ps),
        "total_ps": shown.end_ps - shown.start_ps,
        "model": Texts(shown.model, tokens.models),
        "host": Texts(shown.host, hosts),
    }
    cut = f"the first {N_ROWS:,} of {len(every):,}; " if len(every) > N_ROWS else ""
    return GENERATIONS.fill(columns, f"{cut}slowest first token first")


def _known(values: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.where(values >= 0, values, np.nan).astype(np.float64)


def token_numbers(tokens: Tokens) -> dict[str, Number]:
    """The page's numbers of tokens; none if there are too few."""
    result = {}
    named = (("first_token_p50_ps", tokens.first_ps), ("token_gap_p50_ps", tokens.gap_ps))
    for name, values in named:
        latency_at = {one.name: one.latency_ps for one in percentiles(values)}
        if latency_at["p50"] >= 0:
            tail = next((mark for mark in ("p99", "p90") if latency_at[mark] >= 0), "")
            note = (
                f"{tail} {format_time(latency_at[tail])}"
                if tail
                else f"longest {format_time(int(values.max()))}"
            )
            result[name] = Number(latency_at["p50"], note + _BY[tokens.by])
    return result


def token_sentence(tokens: Tokens) -> str:
    """How long tokens take at the median; empty where too few are known."""
    first, gap = (percentiles(values)[0].latency_ps for values in (tokens.first_ps, tokens.gap_ps))
    queue = "" if tokens.by == "request" else ", without time in the queue"
    if first >= 0 and gap >= 0:
        return (
            f"The first token takes {format_time(first)} (p50{queue}), each further one {format_time(gap)}."
        )
    if first >= 0:
        return f"The first token takes {format_time(first)} (p50{queue})."
    return f"{format_time(gap)} pass between tokens (p50)." if gap >= 0 else ""
