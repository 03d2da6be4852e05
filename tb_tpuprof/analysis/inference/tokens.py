"""Time to the first token, and between tokens, of language models.

    generate       ├───────────────────────────────────────────────────────┤
    its phases      ├─ prefill ───────────┤├ decode ─┤ ├ decode ─┤├ decode ─┤
                   ◀── first token ──────▶◀── gap ──▶◀── gap ──▶◀── gap ──▶

The first token comes at the end of a request's prefill, each further one at the end of a decode. Marks belong
to a request by its id (the stat `request_id`), else by the request's event around them. Where the marks of a
host show neither, its numbers are by step:

    an engine     ├ 2 prompts ───┤├ 9 sequences ┤├ 9 sequences ┤├ 1 prompt ┤├ 10 sequences ┤
                  ◀─ first token ▶               ◀──── gap ────▶◀─ first ──▶
                                                               ◀────── gap ────────────────▶

A step's first token takes the time of the pass: how long its prompts waited before is unknown. A gap goes
from the end of the pass before that made tokens to the end of this one; from the end of a prefill between
the two, if all sequences may be new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.inference.executions import executions
from tb_tpuprof.analysis.inference.names import UNKNOWN, Phase
from tb_tpuprof.analysis.inference.phases import PhaseMarks, phase_marks
from tb_tpuprof.analysis.inference.record import host_inference
from tb_tpuprof.analysis.inference.requests import requests
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
By = Literal["request", "pass", "step", ""]
_ID = "request_id"
_NO_INT = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Generations:
    """One row per request that makes tokens, by start; times in ps, -1 unknown. `label`: its id as the trace
    states it, else its number by start. `first_ps`: from its start to its first token; `n_tokens`: tokens
    that the trace shows; `token_ps`: mean time of each token after the first one; `longest_ps`: the longest
    time between two. `end_ps`: of its last mark. `model`: index into the models of the host, -1 none.
    """

    label: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s
    first_ps: Int64s
    n_tokens: Int64s
    token_ps: npt.NDArray[np.float64]
    longest_ps: Int64s
    model: Int64s
    host: Int64s

    def __len__(self) -> int:
        return len(self.start_ps)

    def take(self, rows: Rows) -> Generations:
        """The given rows."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[rows] for name in self.__dataclass_fields__ if name != "label"
        }
        return Generations(label=tuple(self.label[row] for row in rows.tolist()), **columns)


@dataclass(frozen=True)
class Tokens:
    """Times of tokens in ps. `by`: what the numbers are of: requests, an engine's passes, or steps that the
    user annotated; empty if there are none. `first_ps`: to each first token; `gap_ps`: between tokens;
    `first_model`, `gap_model`: index of the model of each, -1 none. `generations`: empty unless by request.
    """

    by: By
    first_ps: Int64s
    gap_ps: Int64s
    first_model: Int64s
    gap_model: Int64s
    generations: Generations
    models: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.first_ps) + len(self.gap_ps)

    def of_model(self, model: str) -> Tokens:
        """The times of one model; all for an empty or unknown name."""
        if not model or model not in self.models:
            return self
        number = self.models.index(model)
        return replace(
            self,
            first_ps=self.first_ps[self.first_model == number],
            gap_ps=self.gap_ps[self.gap_model == number],
            first_model=self.first_model[self.first_model == number],
            gap_model=self.gap_model[self.gap_model == number],
            generations=self.generations.take(np.flatnonzero(self.generations.model == number)),
        )


@once
def host_tokens(trace: Trace) -> Tokens:
    """The times of tokens of one host."""
    marks, inference = phase_marks(trace), host_inference(trace)
    model = np.append(inference.model, -1)[marks.request]
    if requests(trace).unit == "pass":
        return _by_step(trace, marks, model, "pass", inference.models)
    # A loop may decode its data; one that has a prefill decodes tokens.
    if not (marks.phase == Phase.PREFILL).any():
        return _no_tokens(inference.models)
    grouped = _by_id(trace, marks) or _by_event_around(trace, marks)
    if grouped:
        return _by_request(marks, model, grouped, inference.models)
    return _by_step(trace, marks, model, "step", inference.models)


def _no_generations() -> Generations:
    none = np.empty(0, np.int64)
    return Generations((), none, none, none, none, np.empty(0), none, none, none)


def _no_tokens(models: tuple[str, ...]) -> Tokens:
    none = np.empty(0, np.int64)
    return Tokens("", none, none, none, none, _no_generations(), models)


@dataclass(frozen=True)
class _Grouped:
    """The request of each mark (-1 none); the label and the start in ps of each request."""

    request: Int64s
    label: tuple[str, ...]
    start_ps: Int64s


def _by_id(trace: Trace, marks: PhaseMarks) -> _Grouped | None:
    """Requests by the ids that marks state; each begins with the first event of a request or mark that has
    its id.
    """
    own = executions(trace).row[: executions(trace).n_requests]
    rows = np.union1d(own, marks.row)
    texts = trace.event_stats.texts_at(_ID, rows)
    numbers = trace.event_stats.ints_at(_ID, rows, _NO_INT)
    values, code = distinct_codes(numbers)
    n_strings = len(trace.strings)
    key = np.where(texts >= 0, texts, np.where(numbers != _NO_INT, n_strings + code, UNKNOWN))
    of_mark = key[np.searchsorted(rows, marks.row)]
    keys, request = distinct_codes(of_mark[of_mark >= 0])
    if not len(keys):
        return None
    result = np.full(len(marks), UNKNOWN, np.int64)
    result[of_mark >= 0] = request
    label = tuple(
        trace.strings.get(one) if one < n_strings else f"{values[one - n_strings]}" for one in keys.tolist()
    )
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    is_of_one = keys[place] == key
    start = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(start, place[is_of_one], trace.events["start_ps"][rows[is_of_one]])
    return _Grouped(result, label, start)


def _by_event_around(trace: Trace, marks: PhaseMarks) -> _Grouped | None:
    """Requests by the event that encloses marks."""
    own, numbers = executions(trace), host_inference(trace).number
    is_inside = marks.request >= 0
    is_inside[is_inside] = own.row[marks.request[is_inside]] != marks.row[is_inside]
    request, code = distinct_codes(marks.request[is_inside])
    if not len(request):
        return None
    result = np.full(len(marks), UNKNOWN, np.int64)
    result[is_inside] = code
    return _Grouped(result, tuple(map(str, numbers[request].tolist())), own.start[request])


def _by_request(marks: PhaseMarks, model: Int64s, grouped: _Grouped, models: tuple[str, ...]) -> Tokens:
    """Times of tokens where each mark's request is known."""
    kept = np.flatnonzero(grouped.request >= 0)
    kept = kept[np.lexsort((marks.end_ps[kept], grouped.request[kept]))]
    request, start, end = grouped.request[kept], marks.start_ps[kept], marks.end_ps[kept]
    n = len(grouped.label)
    is_decode = marks.phase[kept] == Phase.DECODE
    first_decode = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(first_decode, request[is_decode], start[is_decode])
    is_first = ~is_decode & (start <= first_decode[request])
    first_token = np.full(n, _NO_INT)
    np.maximum.at(first_token, request[is_first], end[is_first])
    has_first = first_token != _NO_INT
    of, token = request[is_decode], end[is_decode]
    opens = np.append(True, of[1:] != of[:-1])[: len(of)]
    before = np.where(opens, first_token[of], np.append(_NO_INT, token)[:-1])
    has_gap = (before != _NO_INT) & (token >= before)
    gap, of_gap = (token - before)[has_gap], of[has_gap]
    last, of_model = np.full(n, _NO_INT), np.full(n, UNKNOWN, np.int64)
    np.maximum.at(last, request, end)
    of_model[request[::-1]] = model[kept][::-1]
    n_gaps = np.bincount(of_gap, minlength=n)
    longest = np.full(n, UNKNOWN, np.int64)
    np.maximum.at(longest, of_gap, gap)
    first = np.where(has_first, first_token - grouped.start_ps, UNKNOWN)
    generations = Generations(
        grouped.label,
        grouped.start_ps,
        last,
        first,
        np.bincount(of, minlength=n) + has_first,
        np.where(n_gaps > 0, np.bincount(of_gap, gap, n) / np.maximum(n_gaps, 1), np.nan),
        longest,
        of_model,
        np.zeros(n, np.int64),
    ).take(np.argsort(grouped.start_ps, kind="stable"))
    return Tokens(
        "request", first[has_first], gap, of_model[has_first], of_model[of_gap], generations, models
    )


def _by_step(trace: Trace, marks: PhaseMarks, model: Int64s, by: By, models: tuple[str, ...]) -> Tokens:
    """Times of tokens by marks, each thread's by themselves (see the module's drawing)."""
    line = trace.lines_at(marks.row)
    order = np.lexsort((marks.end_ps, line))
    line, start, end = line[order], marks.start_ps[order], marks.end_ps[order]
    phase, model = marks.phase[order], model[order]
    makes = (phase == Phase.DECODE) | (phase == Phase.MIXED)
    reads = (phase == Phase.PREFILL) | (phase == Phase.MIXED)
    latest_token, latest_prefill = _latest(makes, line), _latest(~makes, line)
    has_prefill = latest_prefill > latest_token
    n_decode = marks.n_decode[order]
    n_read = np.append(0, np.cumsum(np.where(makes, 0, marks.n_prefill[order])))
    since = np.maximum(latest_token, np.searchsorted(line, line))  # without a token, the thread's first mark
    may_all_be_new = (n_decode < 0) | (n_read[:-1] - n_read[since] >= n_decode)
    before = np.where(has_prefill & may_all_be_new, latest_prefill, latest_token)
    is_gap = makes & (before >= 0)
    gap = end[is_gap] - end[before[is_gap]]
    return Tokens(by, (end - start)[reads], gap, model[reads], model[is_gap], _no_generations(), models)


def _latest(mask: npt.NDArray[np.bool_], line: npt.NDArray[np.integer]) -> Int64s:
    """For each row the last row before it on its line that the mask marks, -1 for none."""
    latest = np.maximum.accumulate(np.append(-1, np.where(mask, np.arange(len(mask)), -1)))[:-1]
    return np.where((latest >= 0) & (line[latest] == line), latest, -1).astype(np.int64)


def summed_tokens(parts: Sequence[Tokens], models: tuple[str, ...]) -> Tokens:
    """The times of several hosts together; `models`: those of all. Only hosts whose numbers are by the same
    thing as those of the host with the most times count.
    """
    by = max(parts, key=len).by
    chosen = [(number, part) for number, part in enumerate(parts) if part.by == by]
    joined = {}
    for name in ("first_ps", "gap_ps"):
        joined[name] = np.concatenate([getattr(part, name) for _, part in chosen])
    for name in ("first_model", "gap_model"):
        joined[name] = np.concatenate(
            [_renumbered(getattr(part, name), part.models, models) for _, part in chosen]
        )
    generations = [
        replace(
            part.generations,
            model=_renumbered(part.generations.model, part.models, models),
            host=np.full(len(part.generations), number, np.int64),
        )
        for number, part in chosen
    ]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in generations])
        for name in Generations.__dataclass_fields__
        if name != "label"
    }
    label = tuple(text for one in generations for text in one.label)
    return Tokens(by=by, generations=Generations(label=label, **columns), models=models, **joined)


def _renumbered(code: Int64s, names: tuple[str, ...], among: tuple[str, ...]) -> Int64s:
    place = {name: i for i, name in enumerate(among)}
    return np.array([*(place[name] for name in names), -1], np.int64)[code]
