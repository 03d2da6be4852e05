"""The requests of one host as one row each, and of several hosts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import union_ps
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct, distinct_codes, first_ints, marked, values_at
from tb_tpuprof.analysis.inference.executions import executions, owners
from tb_tpuprof.analysis.inference.latency import Percentile, percentiles, tail_rows
from tb_tpuprof.analysis.inference.names import UNKNOWN, Phase, annotation_of, pass_of, predicting_function
from tb_tpuprof.analysis.inference.parts import request_parts
from tb_tpuprof.analysis.inference.requests import Unit, requests
from tb_tpuprof.analysis.inference.work import Part, work
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
_MOST_SIZE = 2**40
_SHAPES_SHOWN = 4
_PASSES = "forward passes"  # engines do not name their model


@dataclass(frozen=True)
class Batches:
    """One row per batch of a model server; times in ps. Sizes are -1 if unknown. `number`: by start, from 1.

    `delay_ps`: from the first request's arrival in the queue to the batch's start. `n_requests`: traced
    requests in it. `size`: examples in it; `padded_size`: with padding. `device_ps`: time in which a device
    worked for it. `model`, `pattern`, `host`: as of requests.
    """

    number: Int64s
    start_ps: Int64s
    duration_ps: Int64s
    delay_ps: Int64s
    n_requests: Int64s
    size: Int64s
    padded_size: Int64s
    device_ps: Int64s
    model: Int64s
    pattern: Int64s
    host: Int64s

    def __len__(self) -> int:
        return len(self.start_ps)

    def take(self, rows: npt.NDArray[np.integer]) -> Batches:
        """The given rows."""
        return Batches(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class HostInference:
    """One row per request (or pass); times in ps. `number`: by start, from 1. `part_ps[i]` sums to
    `latency_ps[i]`.

    `model`, `pattern`: indexes into `models`, `patterns` (-1 none). `batch`: index into `batches`, -1 none.
    `size`: examples of a request, sequences of a pass; -1 unknown. `phase`: of Phase. `n_prefill`,
    `n_decode`, `prefill_tokens`, `decode_tokens`: of a pass, -1 unknown. `host`: index into `hosts`.

    `busy_ps`: union of the device's work over `span_ps`, from the first request's start to the last one's
    end, summed over hosts; `unassigned_ps`: device work in it that belongs to no request for certain or by
    time. `device_kind`: CPU, GPU or TPU. `counts_others`: see RequestParts.
    """

    hosts: tuple[str, ...]
    source: str
    unit: Unit
    number: Int64s
    start_ps: Int64s
    latency_ps: Int64s
    part_ps: Int64s
    model: Int64s
    pattern: Int64s
    batch: Int64s
    size: Int64s
    phase: npt.NDArray[np.uint8]
    n_prefill: Int64s
    n_decode: Int64s
    prefill_tokens: Int64s
    decode_tokens: Int64s
    host: Int64s
    models: tuple[str, ...]
    patterns: tuple[str, ...]
    batches: Batches
    busy_ps: int
    unassigned_ps: int
    span_ps: int
    device_kind: str
    counts_others: bool

    def __len__(self) -> int:
        return len(self.start_ps)

    @cached_property
    def percentiles(self) -> tuple[Percentile, ...]:
        """The percentiles of latency."""
        return percentiles(self.latency_ps)

    @cached_property
    def slowest(self) -> Rows:
        """The slowest tenth, slowest first."""
        return tail_rows(self.latency_ps)

    def of_model(self, model: str) -> HostInference:
        """The requests and batches of one model; all for an empty or unknown name."""
        if not model or model not in self.models:
            return self
        number = self.models.index(model)
        kept = np.flatnonzero(self.model == number)
        kept_batches = np.flatnonzero(self.batches.model == number)
        place = np.full(len(self.batches) + 1, -1, np.int64)
        place[kept_batches] = np.arange(len(kept_batches))
        part = self.take(kept)
        return replace(part, batch=place[part.batch], batches=self.batches.take(kept_batches))

    def take(self, rows: npt.NDArray[np.integer]) -> HostInference:
        """The given requests, with all batches."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return replace(self, **columns)


_COLUMNS = (
    "number",
    "start_ps",
    "latency_ps",
    "part_ps",
    "model",
    "pattern",
    "batch",
    "size",
    "phase",
    "n_prefill",
    "n_decode",
    "prefill_tokens",
    "decode_tokens",
    "host",
)


@once
def host_inference(trace: Trace) -> HostInference:
    """The requests of one host."""
    found, marks = requests(trace), executions(trace)
    n = marks.n_requests
    parts = request_parts(trace)
    labels = _Labels(trace)
    names = metadata_names(trace)
    metadata, code = distinct_codes(trace.events["metadata"][marks.row[:n]])
    passes = [pass_of(names[row]) for row in metadata.tolist()]
    phase = np.array(
        [
            int(one.phase if one else _phase_of(names[row]))
            for one, row in zip(passes, metadata.tolist(), strict=True)
        ],
        np.uint8,
    )
    counts = np.array([(*one[1:],) if one else (UNKNOWN,) * 4 for one in passes], np.int64).reshape(-1, 4)[
        code
    ]
    batch = np.where(marks.batch_of >= 0, marks.batch_of - n, -1)
    batches = _batches(labels, batch)
    # Devices work for the batch of a request, not for the request itself.
    of_batch = np.append(batches.pattern, -1)[batch]
    pattern = np.where(labels.pattern[:n] >= 0, labels.pattern[:n], of_batch)
    in_pass = np.where((counts[:, :2] >= 0).all(axis=1), counts[:, :2].sum(axis=1), UNKNOWN)
    span, busy, unassigned = _device_use(trace, parts.end)
    return HostInference(
        (trace.info.host,),
        found.source,
        found.unit,
        numbers(marks.start[:n]),
        marks.start[:n],
        parts.end - marks.start[:n],
        parts.time_ps,
        labels.model[:n],
        pattern,
        batch,
        np.where(in_pass >= 0, in_pass, labels.size[:n]),
        phase[code],
        counts[:, 0],
        counts[:, 1],
        counts[:, 2],
        counts[:, 3],
        np.zeros(n, np.int64),
        labels.models,
        labels.patterns,
        batches,
        busy,
        unassigned,
        span,
        planes(trace).hardware,
        parts.counts_others,
    )


def numbers(start_ps: Int64s) -> Int64s:
    """The number of each row by its start, from 1."""
    result = np.empty(len(start_ps), np.int64)
    result[np.argsort(start_ps, kind="stable")] = np.arange(1, len(start_ps) + 1)
    return result


def _phase_of(name: str) -> Phase:
    annotation = annotation_of(name)
    return annotation.phase if annotation else Phase.NONE


def _device_use(trace: Trace, request_end: Int64s) -> tuple[int, int, int]:
    """(span of all requests, union of the device's work in it, unassigned work in it), in ps."""
    marks, done = executions(trace), work(trace)
    if not len(request_end):
        return 0, 0, 0
    first, last = int(marks.start[: marks.n_requests].min()), int(request_end.max())
    on_device = done.part == Part.DEVICE
    start, end = np.clip(done.start[on_device], first, last), np.clip(done.end[on_device], first, last)
    is_unassigned = done.owner[on_device] < 0
    return last - first, union_ps(start, end), union_ps(start[is_unassigned], end[is_unassigned])


def _batches(labels: _Labels, batch: Int64s) -> Batches:
    """The batches, in the order of their executions."""
    trace, marks = labels.trace, executions(labels.trace)
    n, n_batches = marks.n_requests, len(marks) - marks.n_requests
    start, end = marks.start[n:], marks.end[n:]
    member = np.flatnonzero(batch >= 0)
    first_queued = np.full(n_batches, np.iinfo(np.int64).max)
    np.minimum.at(first_queued, batch[member], marks.queued_ps[member])
    has_member = first_queued < np.iinfo(np.int64).max
    size = labels.padded[n:] - labels.padding[n:]
    size[(labels.padded[n:] < 0) | (labels.padding[n:] < 0)] = UNKNOWN
    total, is_known = np.zeros(n_batches, np.int64), has_member.copy()
    np.add.at(total, batch[member], labels.size[:n][member])
    is_known[batch[member[labels.size[:n][member] < 0]]] = False
    return Batches(
        numbers(start),
        start,
        end - start,
        np.where(has_member, np.maximum(start - first_queued, 0), 0),
        np.bincount(batch[member], minlength=n_batches),
        np.where(size >= 0, size, np.where(is_known, total, UNKNOWN)),
        labels.padded[n:].copy(),
        request_parts(trace).batch_device_ps,
        labels.batch_model(batch),
        labels.pattern[n:].copy(),
        np.zeros(n_batches, np.int64),
    )


class _Labels:
    """Sizes, models and patterns of all executions, from the stats of the events in them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.marks = executions(trace)
        self.padded = self._ints("batch_size_after_padding")
        self.padding = self._ints("padding_amount")
        tasks = self._ints("batching_input_task_size")
        self.size = np.where(tasks >= 0, tasks, self._ints("batch_size"))
        self.models, self.model = self._models()
        self.patterns, self.pattern = self._patterns()

    def _ints(self, key: str) -> Int64s:
        """The first value of a stat in each execution, -1 if it has none that can be a size."""
        sparse = self.trace.event_stats.ints(key)
        value = sparse.value.astype(np.int64)
        is_size = (value >= 0) & (value <= _MOST_SIZE)
        return self._first(sparse.owner[is_size], value[is_size])

    def _first(self, rows: npt.NDArray[np.integer], value: Int64s) -> Int64s:
        """For each execution the value of the first of the events `rows` (ascending) in it, -1 for none."""
        result = np.full(len(self.marks), -1, np.int64)
        owner = owners(self.trace).of(rows)
        owned = np.flatnonzero(owner >= 0)[::-1]
        result[owner[owned]] = value[owned]
        return result

    def _models(self) -> tuple[tuple[str, ...], Int64s]:
        """What the server calls the model; else the request's own name without its number."""
        strings = self.trace.strings
        texts = self.trace.event_stats.texts("model_id")
        stated = self._first(texts.owner, texts.value.astype(np.int64))
        numbers = self._ints("model_id")
        metadata = self.trace.events["metadata"][self.marks.row].astype(np.int64)
        names = metadata_names(self.trace)
        keys, code = _distinct_rows(stated, numbers, metadata)
        titles = [
            strings.get(text) if text >= 0 else str(number) if number >= 0 else _own_model(names[row])
            for text, number, row in keys
        ]
        code[(np.arange(len(code)) >= self.marks.n_requests) & (stated < 0) & (numbers < 0)] = -1
        return _numbered(titles, code)

    def batch_model(self, batch: Int64s) -> Int64s:
        """The model of each batch: its own, else that of a request in it; -1 for none."""
        n = self.marks.n_requests
        of_request = np.full(len(self.marks) - n, -1, np.int64)
        member = np.flatnonzero(batch >= 0)
        of_request[batch[member]] = self.model[member]
        return np.where(self.model[n:] >= 0, self.model[n:], of_request)

    def _patterns(self) -> tuple[tuple[str, ...], Int64s]:
        """The shapes that are copied to the device for each execution; else the program that works longest
        for it.
        """
        done = work(self.trace)
        is_copy = (done.part == Part.TO_DEVICE) & (done.owner >= 0)
        texts = self.trace.event_stats.texts_at("shape", done.event[is_copy]).astype(np.int64)
        owner = done.owner[is_copy][texts >= 0]
        n_strings = len(self.trace.strings)
        pairs = np.stack(np.divmod(distinct(owner * n_strings + texts[texts >= 0]), max(n_strings, 1)))
        first = np.flatnonzero(np.append(True, pairs[0][1:] != pairs[0][:-1])[: pairs.shape[1]])
        combinations, combination_of = _combinations(pairs, first)
        result = np.full(len(self.marks), -1, np.int64)
        result[pairs[0][first]] = combination_of
        titles = [self._shapes_title(texts) for texts in combinations]
        programs, program = self._programs(done.owner, done.end - done.start, done.part, done.event)
        result = np.where((result < 0) & (program >= 0), program + len(titles), result)
        return _numbered([*titles, *programs], result)

    def _shapes_title(self, texts: tuple[int, ...]) -> str:
        shown = [self.trace.strings.get(text) for text in texts[:_SHAPES_SHOWN]]
        more = len(texts) - _SHAPES_SHOWN
        return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

    def _programs(
        self, owner: Int64s, length: Int64s, part: npt.NDArray[np.uint8], event: Int64s
    ) -> tuple[list[str], Int64s]:
        """The program that works longest for each execution: titles, and the index of each execution's."""
        on_device = np.flatnonzero((part == Part.DEVICE) & (owner >= 0))
        if planes(self.trace).hardware == "TPU":
            key, names = self.trace.events["metadata"][event[on_device]].astype(np.int64), True
        else:
            key, names = values_at(event[on_device], *first_ints(self.trace, "program_id"), -1), False
            on_device, key = on_device[key != -1], key[key != -1]
        result = np.full(len(self.marks), -1, np.int64)
        keys, code = distinct_codes(key)
        if not len(keys):
            return [], result
        pair, pair_of = distinct_codes(owner[on_device] * len(keys) + code)
        total = np.bincount(pair_of, weights=length[on_device].astype(np.float64))
        order = np.lexsort((total, pair // len(keys)))
        result[(pair // len(keys))[order]] = (pair % len(keys))[order]
        titles = metadata_names(self.trace)
        return [titles[row] if names else self._program_title(row) for row in keys.tolist()], result

    def _program_title(self, number: int) -> str:
        program = self.trace.programs.get(number)
        return program.title if program else f"program {number}"


def _own_model(name: str) -> str:
    """What an execution is called without its number."""
    if pass_of(name):
        return _PASSES
    annotation = annotation_of(name)
    return annotation.model if annotation else predicting_function(name) or name


def _distinct_rows(*columns: Int64s) -> tuple[list[tuple[int, ...]], Int64s]:
    """Distinct combinations of the columns' values, and each row's index among them."""
    combined = np.zeros(len(columns[0]), np.int64)
    tables = []
    for column in columns:
        values, code = distinct_codes(column)
        # Renumbered after each column: a code is never larger than the number of rows.
        known, combined = distinct_codes(combined * max(len(values), 1) + code)
        tables.append((known, values))
    keys = np.arange(len(tables[-1][0]))
    decoded: list[list[int]] = []
    for known, values in reversed(tables):
        keys, code = np.divmod(known[keys], max(len(values), 1))
        decoded.append(values[code].tolist())
    return list(zip(*reversed(decoded), strict=True)), combined


def _numbered(titles: list[str], code: npt.NDArray[np.integer]) -> tuple[tuple[str, ...], Int64s]:
    """Distinct titles that occur, sorted, and each row's index among them; -1 stays."""
    used = sorted({titles[i] for i in marked(code[code >= 0], len(titles)).tolist()})
    place = {title: i for i, title in enumerate(used)}
    table = np.array([place.get(title, -1) for title in titles] + [-1], np.int64)
    return tuple(used), table[code]


def _combinations(pairs: Int64s, first: Rows) -> tuple[list[tuple[int, ...]], Int64s]:
    """Distinct sets of values among rows of equal keys: the sets, and the set of each key."""
    bounds = np.append(first, pairs.shape[1])
    n = np.diff(bounds)
    sets: list[tuple[int, ...]] = []
    result = np.empty(len(first), np.int64)
    for size in np.unique(n).tolist():
        rows = np.flatnonzero(n == size)
        values = pairs[1][first[rows][:, None] + np.arange(size)]
        distinct, code = np.unique(values, axis=0, return_inverse=True)
        result[rows] = len(sets) + code.reshape(-1)
        sets += [tuple(row) for row in distinct.tolist()]
    return sets, result


def summed(parts: Sequence[HostInference]) -> HostInference:
    """The requests of several hosts together, those of each host by its own clock."""
    if len(parts) == 1:
        return parts[0]
    models = sorted({model for part in parts for model in part.models})
    patterns = sorted({pattern for part in parts for pattern in part.patterns})
    moved, offset = [], 0
    for number, part in enumerate(parts):
        moved.append(
            replace(
                part,
                model=_renumbered(part.model, part.models, models),
                pattern=_renumbered(part.pattern, part.patterns, patterns),
                batch=np.where(part.batch >= 0, part.batch + offset, -1),
                host=np.full(len(part), number, np.int64),
                batches=replace(
                    part.batches,
                    model=_renumbered(part.batches.model, part.models, models),
                    pattern=_renumbered(part.batches.pattern, part.patterns, patterns),
                    host=np.full(len(part.batches), number, np.int64),
                ),
            )
        )
        offset += len(part.batches)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in moved]) for name in _COLUMNS
    }
    columns["number"] = numbers(columns["start_ps"])
    batches = Batches(
        *(
            np.concatenate([getattr(part.batches, name) for part in moved])
            for name in Batches.__dataclass_fields__
        )
    )
    batches = replace(batches, number=numbers(batches.start_ps))
    main = max(parts, key=len)
    return replace(
        main,
        **columns,
        hosts=tuple(host for part in parts for host in part.hosts),
        source=" and ".join(dict.fromkeys(part.source for part in parts if part.source)),
        models=tuple(models),
        patterns=tuple(patterns),
        batches=batches,
        busy_ps=sum(part.busy_ps for part in parts),
        unassigned_ps=sum(part.unassigned_ps for part in parts),
        span_ps=sum(part.span_ps for part in parts),
        counts_others=all(part.counts_others for part in parts),
    )


def _renumbered(code: Int64s, names: tuple[str, ...], among: list[str]) -> Int64s:
    place = {name: i for i, name in enumerate(among)}
    table = np.array([*(place[name] for name in names), -1], np.int64)
    return table[code]
