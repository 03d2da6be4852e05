"""Kernels and operations → lines that the file lacks: the steps, programs, scopes and operations that they belong to.

    GPU stream    ▪k1▪ ▪k2▪ ▪k3▪    ▪k1▪ ▪k2▪
    XLA Modules   ├──── jit_f ────┤ ├─ jit_f ─┤       successive kernels of the same are one box,
    XLA Ops       ├dot.1─┤ ├ add ─┤ ├─ dot.1 ─┤       within a step, or where no long gap lies between

GPU planes get them from the stats of their kernels, TPU cores from the metadata of their operations, host planes from the
events of XLA:CPU. A plane whose file brings such lines along is left as it is. Shapes and names follow OpenXLA's profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis import op_labels
from tb_tpuprof.analysis.gpu_steps import step_spans, stream_events
from tb_tpuprof.analysis.grouping import groups
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.planes import OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.stat_rows import marked
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

SCOPE_LINE, FRAMEWORK_LINE, SOURCE_LINE = "Framework Name Scope", "Framework Ops", "Source code"
_MAX_LEVELS = 32
_SMALL_GAP_PS = 10_000_000
_MANY_ROWS = 50_000  # below this a thread costs more than it saves


@dataclass(frozen=True)
class DerivedLine:
    """A line that was derived: the plane it stands in, its name, and its kind as the viewer knows it."""

    plane: int
    name: str
    kind: str


@dataclass(frozen=True)
class Derived:
    """Derived lines and their events, sorted as those of a trace are. `name` is a code into `texts`.

    `source` is the event of the file that each began with: it has the arguments.
    """

    lines: tuple[DerivedLine, ...]
    line_offsets: Int64s
    start_ps: Int64s
    duration_ps: Int64s
    name: npt.NDArray[np.int32]
    source: npt.NDArray[np.int64]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class _Spans:
    """Boxes of one line; `level` orders those of equal span."""

    start_ps: Int64s
    end_ps: Int64s
    name: Int64s
    source: Int64s
    level: Int64s


class _Builder:
    """Lines as they are made, with their texts numbered."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.lines: list[tuple[DerivedLine, _Spans]] = []

    def codes(self, texts: list[str]) -> Int64s:
        """Numbers of texts."""
        return np.array([self.texts.setdefault(text, len(self.texts)) for text in texts], np.int64)

    def add(self, line: DerivedLine, spans: list[_Spans]) -> None:
        """A line, unless it would be empty. `name` of its spans is the builder's number."""
        found = _sorted(spans)
        if len(found.start_ps):
            self.lines.append((line, found))

    def add_all(
        self, plane: int, made: Sequence[tuple[str, str, Callable[[], tuple[list[_Spans], op_labels.Texts]]]], is_large: bool
    ) -> None:
        """Lines of a plane by (name, kind, what makes the spans and tells the texts of their keys), side by side where they are large."""

        def put_together(make: Callable[[], tuple[list[_Spans], op_labels.Texts]]) -> tuple[_Spans, tuple[Int64s, Rows], op_labels.Texts]:
            spans, texts = make()
            found = _sorted(spans)
            return found, op_labels.distinct_codes(found.name), texts

        makers = [make for _, _, make in made]
        if is_large:
            with ThreadPoolExecutor(2) as pool:
                parts = list(pool.map(put_together, makers))
        else:
            parts = [put_together(make) for make in makers]
        for (name, kind, _), (found, (keys, place), texts) in zip(made, parts, strict=True):
            if len(found.start_ps):
                codes = self.codes([texts(key) for key in keys.tolist()])[place]
                self.lines.append((DerivedLine(plane, name, kind), replace(found, name=codes)))

    def result(self) -> Derived:
        """All lines put together."""
        parts = [spans for _, spans in self.lines]
        start, end, name, source = (
            np.concatenate([np.empty(0, np.int64), *(getattr(part, field) for part in parts)])
            for field in ("start_ps", "end_ps", "name", "source")
        )
        offsets = np.cumsum([0, *(len(part.start_ps) for part in parts)]).astype(np.int64)
        return Derived(tuple(line for line, _ in self.lines), offsets, start, end - start, name.astype(np.int32), source, tuple(self.texts))


def _sorted(spans: list[_Spans]) -> _Spans:
    """Boxes in one piece, by (start, -end, level)."""
    parts = [part for part in spans if len(part.start_ps)]
    if len(parts) == 1:
        columns = [getattr(parts[0], field) for field in _Spans.__dataclass_fields__]
    else:
        columns = [
            np.concatenate([np.empty(0, np.int64), *(getattr(part, field) for part in parts)]) for field in _Spans.__dataclass_fields__
        ]
    if not _in_order(columns[0], columns[1]):
        order = np.lexsort((columns[4], -columns[1], columns[0]))
        columns = [column[order] for column in columns]
    return _Spans(*columns)


def _in_order(start: Int64s, end: Int64s) -> bool:
    """Whether boxes are sorted by (start, -end)."""
    return bool(((start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] <= end[:-1]))).all())


@once
def derived(trace: Trace) -> Derived:
    """Derive the lines of all planes."""
    builder = _Builder()
    has_derived = {int(plane) for plane in trace.lines["plane"][planes(trace).is_derived_line]}
    for plane in planes(trace).gpus:
        if plane not in has_derived:
            _gpu_lines(trace, plane, builder)
    for plane in planes(trace).tensor_cores:
        if plane not in has_derived and not lines_named(trace, plane, (SCOPE_LINE, FRAMEWORK_LINE)):
            _tpu_lines(trace, plane, builder)
    for plane in planes(trace).hosts:
        if plane not in has_derived:
            _host_lines(trace, plane, builder)
    return builder.result()


def _gpu_lines(trace: Trace, plane: int, builder: _Builder) -> None:
    rows = stream_events(trace, plane)
    if not len(rows):
        return
    found = step_spans(trace, plane, rows)
    names = groups(trace).names
    if found.shape[1]:
        number, start, end = found
        first = rows[np.clip(np.searchsorted(np.sort(trace.events["start_ps"][rows]), start), 0, len(rows) - 1)]
        labels = builder.codes([names.get(i, str(i)) for i in number.tolist()])
        builder.add(
            DerivedLine(plane, "Steps", "steps"), [_Spans(start, end, labels, first.astype(np.int64), np.zeros(len(start), np.int64))]
        )
    labelled = op_labels.of_rows(trace, rows)
    line = trace.event_line[rows]
    busy = [stream for stream in np.unique(line).tolist() if labelled.has_any(line == stream)]
    busy.sort(key=lambda stream: ("Compute" not in trace.line_names[stream], -int(trace.lines["n_events"][stream])))
    for stream in busy:
        mine = np.flatnonzero(line == stream)
        suffix = f" - from {trace.line_names[stream].partition('(')[0]}" if len(busy) > 1 else ""
        _op_lines(trace, plane, rows[mine], labelled.taken(mine), suffix, builder)


def _tpu_lines(trace: Trace, plane: int, builder: _Builder) -> None:
    for line in lines_named(trace, plane, (OP_LINE,)):
        span = line_events(trace, line)
        rows = np.arange(span.start, span.stop)
        labels = op_labels.of_metadata(trace, rows)
        events = _sequence(trace, rows, np.full(len(rows), -1, np.int64))  # an idle gap parts runs, whatever step they are in
        _scope_lines(plane, events, labels, "", builder)
        _source_line(plane, events, labels, "", builder)


def _host_lines(trace: Trace, plane: int, builder: _Builder) -> None:
    """XLA:CPU: operations of all threads on one line, and the programs that they belong to."""
    owners = trace.event_stats.texts("hlo_op").owner
    if not len(owners):
        return
    rows = marked(owners, trace.n_events)
    bounds = np.searchsorted(rows, trace.line_offsets)
    in_plane = np.repeat(trace.lines["plane"] == plane, np.diff(bounds))
    rows = rows[in_plane]
    if not len(rows):
        return
    order = np.argsort(trace.events["start_ps"][rows], kind="stable")
    labels = op_labels.of_rows(trace, rows).taken(order)
    rows = rows[order]
    events = _sequence(trace, rows, np.full(len(rows), -1, np.int64))
    known = np.flatnonzero(labels.hlo_op >= 0)

    def scopes() -> tuple[list[_Spans], op_labels.Texts]:
        prefixes, names = op_labels.levels(labels.framework_op, labels.texts, op_labels.scope_parts, _MAX_LEVELS)
        return _runs(events, prefixes), names

    def operations() -> tuple[list[_Spans], op_labels.Texts]:
        none = np.zeros(len(known), np.int64)
        spans = _Spans(events.start_ps[known], events.end_ps[known], labels.hlo_op[known], rows[known].astype(np.int64), none)
        return [spans], labels.texts

    made = (
        ("XLA Modules", "modules", lambda: (_runs(events, labels.module[None, :]), labels.texts)),
        (SCOPE_LINE, "scope", scopes),
        (FRAMEWORK_LINE, "ops", lambda: (_runs(events, labels.framework_op[None, :]), labels.texts)),
        ("XLA Ops", "hlo_ops", operations),
    )
    builder.add_all(plane, made, is_large=len(rows) >= _MANY_ROWS)


def _op_lines(trace: Trace, plane: int, rows: Rows, labels: op_labels.Labels, suffix: str, builder: _Builder) -> None:
    """Modules, scopes, framework operations and HLO operations of the kernels of one stream."""
    events = _sequence(trace, rows, groups(trace).group[rows].astype(np.int64))
    builder.add(
        DerivedLine(plane, "XLA Modules" + suffix, "modules"),
        _named(_runs(events, labels.module[None, :]), labels.texts, builder),
    )
    _scope_lines(plane, events, labels, suffix, builder)
    prefixes, names = op_labels.levels(labels.hlo_op, labels.texts, op_labels.hlo_parts, _MAX_LEVELS)
    builder.add(DerivedLine(plane, "XLA Ops" + suffix, "hlo_ops"), _named(_runs(events, prefixes), names, builder))
    _source_line(plane, events, labels, suffix, builder)


def _scope_lines(plane: int, events: _Sequence, labels: op_labels.Labels, suffix: str, builder: _Builder) -> None:
    prefixes, names = op_labels.levels(labels.framework_op, labels.texts, op_labels.scope_parts, _MAX_LEVELS)
    builder.add(DerivedLine(plane, SCOPE_LINE + suffix, "scope"), _named(_runs(events, prefixes), names, builder))
    runs = _runs(events, labels.framework_op[None, :])
    builder.add(DerivedLine(plane, FRAMEWORK_LINE + suffix, "ops"), _named(runs, labels.texts, builder))


def _source_line(plane: int, events: _Sequence, labels: op_labels.Labels, suffix: str, builder: _Builder) -> None:
    runs = _runs(events, labels.source[None, :])
    builder.add(DerivedLine(plane, SOURCE_LINE + suffix, "source"), _named(runs, labels.texts, builder))


@dataclass(frozen=True)
class _Sequence:
    """Events in time order, and before which of them a run ends in any case."""

    rows: Rows
    start_ps: Int64s
    end_ps: Int64s
    is_new: npt.NDArray[np.bool_]


def _sequence(trace: Trace, rows: Rows, group: Int64s) -> _Sequence:
    """A run ends where the step changes, and outside of steps where the gap to the next event is more than 10 µs and more than
    twice as long as the event before it.
    """
    start = trace.events["start_ps"][rows]
    duration = trace.events["duration_ps"][rows]
    end = start + duration
    is_new = np.ones(len(rows), np.bool_)
    if len(rows):
        gap = start[1:] - np.maximum.accumulate(end)[:-1]
        is_new[1:] = (group[1:] != group[:-1]) | ((group[1:] < 0) & (gap > np.maximum(2 * duration[:-1], _SMALL_GAP_PS)))
    return _Sequence(rows, start, end, is_new)


def _runs(events: _Sequence, keys: Int64s) -> list[_Spans]:
    """Spans of successive events with one key, level by level; -1 is no key. `name` is the key still.

    Levels end with the level around them.
    """
    is_new = events.is_new.copy()
    spans = []
    for level, key in enumerate(keys if len(events.rows) else ()):
        is_new[1:] |= key[1:] != key[:-1]
        first = np.flatnonzero(is_new)
        end = np.maximum.reduceat(events.end_ps, first)
        named = key[first] >= 0
        first = first[named]
        name, source = key[first].astype(np.int64), events.rows[first].astype(np.int64)
        spans.append(_Spans(events.start_ps[first], end[named], name, source, np.full(len(first), level)))
    return spans


def _named(spans: list[_Spans], texts: op_labels.Texts, builder: _Builder) -> list[_Spans]:
    """The spans with the builder's numbers for their names."""
    return [_Spans(s.start_ps, s.end_ps, _coded(s.name, texts, builder), s.source, s.level) for s in spans]


def _coded(keys: Int64s, texts: op_labels.Texts, builder: _Builder) -> Int64s:
    distinct, inverse = op_labels.distinct_codes(keys)
    codes = builder.codes([texts(key) for key in distinct.tolist()])
    return codes[inverse] if len(distinct) else np.empty(0, np.int64)
