"""Kernels and operations → lines that the file lacks: their steps, programs, scopes and operations.

    GPU stream    ▪k1▪ ▪k2▪ ▪k3▪    ▪k1▪ ▪k2▪
    XLA Modules   ├──── jit_f ────┤ ├─ jit_f ─┤       successive kernels of one program or operation are one
    XLA Ops       ├dot.1─┤ ├ add ─┤ ├─ dot.1 ─┤       box, within a step or without a long gap between them

GPU planes get them from the stats of their kernels, TPU cores from the metadata of their operations, host
planes from the events of XLA:CPU. A plane whose file already contains such lines is left as it is. Shapes and
names follow OpenXLA's profiler.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import OP_LINE, line_events, lines_named, planes
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.ops import labels as op_labels
from tb_tpuprof.analysis.steps.gpu import step_spans, stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.native import ascends, by_start, in_order, n_runs, number, runs, sequence
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer]

SCOPE_LINE, FRAMEWORK_LINE, SOURCE_LINE = "Framework Name Scope", "Framework Ops", "Source code"
_MAX_LEVELS = 32
_SMALL_GAP_PS = 10_000_000
_NO_GROUPS = np.empty(0, np.int32)


@dataclass(frozen=True)
class DerivedLine:
    """A derived line: its plane, its name, and its kind in the viewer."""

    plane: int
    name: str
    kind: str


@dataclass(frozen=True)
class Derived:
    """Derived lines and their events, sorted like those of a trace. `name` is a code into `texts`.

    `source` is the first of the file's events in each derived event: it has the arguments.
    """

    lines: tuple[DerivedLine, ...]
    line_offsets: Int64s
    start_ps: Int64s
    duration_ps: Int64s
    name: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class _Columns:
    """Columns of the boxes of one line, filled or to be filled; the first of boxes with equal spans encloses
    the others.
    """

    start_ps: Int64s
    duration_ps: Int64s
    name: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]


class _Builder:
    """Collects lines: the number of boxes of each, and the function that fills them once all columns are
    allocated.
    """

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.lines: list[tuple[DerivedLine, int, Callable[[_Columns], None]]] = []

    def codes(self, numbers: Int64s, texts: op_labels.Texts) -> npt.NDArray[np.int32]:
        """The codes of names in this builder; -1 stays -1."""
        distinct, position = number(numbers.reshape(-1))
        text_codes = [
            self.texts.setdefault(texts(code), len(self.texts)) if code >= 0 else -1
            for code in distinct.tolist()
        ]
        codes: npt.NDArray[np.int32] = np.array(text_codes, np.int32)[position].reshape(numbers.shape)
        return codes

    def add(self, line: DerivedLine, n_boxes: int, fill: Callable[[_Columns], None]) -> None:
        """Add a line, unless it is empty."""
        if n_boxes:
            self.lines.append((line, n_boxes, fill))

    def result(self) -> Derived:
        """All lines, each sorted by (start, -duration)."""
        offsets = np.cumsum([0, *(n_boxes for _, n_boxes, _ in self.lines)]).astype(np.int64)
        # One allocation for all columns: larger allocations get larger memory pages.
        memory = np.empty((3, offsets[-1]), np.int64)
        start, duration, (name, source) = memory[0], memory[1], memory[2].view(np.int32).reshape(2, -1)
        columns = _Columns(start, duration, name, source)
        spans = itertools.pairwise(offsets.tolist())
        fills = [
            partial(_fill, fill, columns, span) for (_, _, fill), span in zip(self.lines, spans, strict=True)
        ]
        call_in_parallel(fills, is_worthwhile=int(offsets[-1]) >= POLICY.min_parallel_events)
        return Derived(
            tuple(line for line, _, _ in self.lines),
            offsets,
            start,
            duration,
            name,
            source,
            tuple(self.texts),
        )


def _fill(fill: Callable[[_Columns], None], columns: _Columns, span: tuple[int, int]) -> None:
    """Fill a line's part of the columns, and sort its boxes if necessary."""
    rows_of_line = slice(*span)
    line = _Columns(
        columns.start_ps[rows_of_line],
        columns.duration_ps[rows_of_line],
        columns.name[rows_of_line],
        columns.source[rows_of_line],
    )
    fill(line)
    if not in_order(line.start_ps, line.duration_ps):
        rows = _to_sort(line.start_ps)
        order = rows[np.lexsort((-line.duration_ps[rows], line.start_ps[rows]))]
        for column in (line.start_ps, line.duration_ps, line.name, line.source):
            column[rows] = column[order]


def _to_sort(start_ps: Int64s) -> Rows:
    """The only rows that may be out of order: if starts ascend, those with the same start as another."""
    step = np.diff(start_ps)
    if (step < 0).any():
        return np.arange(len(start_ps))
    return np.flatnonzero(np.append(step == 0, False) | np.append(False, step == 0))


@once
def derived(trace: Trace) -> Derived:
    """The derived lines of all planes."""
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
    spans = step_spans(trace, plane, rows)
    names = groups(trace).names
    if spans.shape[1]:
        step, start, end = spans
        first = rows[
            np.clip(np.searchsorted(np.sort(trace.events["start_ps"][rows]), start), 0, len(rows) - 1)
        ]
        label = np.array(
            [builder.texts.setdefault(names.get(i, str(i)), len(builder.texts)) for i in step.tolist()],
            np.int32,
        )

        def fill(room: _Columns) -> None:
            room.start_ps[:], room.duration_ps[:], room.name[:], room.source[:] = (
                start,
                end - start,
                label,
                first,
            )

        builder.add(DerivedLine(plane, "Steps", "steps"), len(start), fill)
    if not any(trace.event_stats.has(key) for key in op_labels.STATS):
        return
    labels = op_labels.of_rows(trace, rows)
    line = trace.event_line[rows]
    busy = np.unique(line[labels.is_known]).tolist()
    busy.sort(
        key=lambda stream: ("Compute" not in trace.line_names[stream], -int(trace.lines["n_events"][stream]))
    )
    for stream in busy:
        selected = np.flatnonzero(line == stream)
        suffix = f" - from {trace.line_names[stream].partition('(')[0]}" if len(busy) > 1 else ""
        _op_lines(trace, plane, rows[selected], labels.taken(selected), suffix, builder)


def _tpu_lines(trace: Trace, plane: int, builder: _Builder) -> None:
    for line in lines_named(trace, plane, (OP_LINE,)):
        span = line_events(trace, line)
        rows = np.arange(span.start, span.stop)
        labels = op_labels.of_metadata(trace, rows)
        events = _sequence(trace, rows)  # an idle gap separates runs, whatever their step
        _scope_lines(plane, events, labels, "", builder)
        _source_line(plane, events, labels, "", builder)


def _host_lines(trace: Trace, plane: int, builder: _Builder) -> None:
    """XLA:CPU: operations of all threads on one line, their programs, and their source lines."""
    owners = trace.event_stats.texts("hlo_op").owner
    if not len(owners):
        return
    rows = owners if ascends(owners) else marked(owners, trace.n_events).astype(np.int32)
    counts = np.diff(np.searchsorted(rows, trace.line_offsets.astype(np.int32)))
    in_plane = trace.lines["plane"] == plane
    if counts[~in_plane].any():
        rows = rows[np.repeat(in_plane, counts)]
        counts = counts[in_plane]
    if not len(rows):
        return
    labels = op_labels.of_rows(trace, rows)
    if np.count_nonzero(counts) > 1:
        order = by_start(trace.events["start_ps"], rows, np.append(0, np.cumsum(counts)))
        rows, labels = rows[order], labels.taken(order)
    events = _sequence(trace, rows)
    _add_runs(
        DerivedLine(plane, "XLA Modules", "modules"),
        events,
        labels.of,
        builder.codes(labels.module, labels.texts),
        builder,
    )
    _scope_lines(plane, events, labels, "", builder)
    separate = replace(events, is_new=np.ones(len(rows), np.uint8))
    _add_runs(
        DerivedLine(plane, "XLA Ops", "hlo_ops"),
        separate,
        labels.of,
        builder.codes(labels.hlo_op, labels.texts),
        builder,
    )
    _source_line(plane, events, labels, "", builder)


def _op_lines(
    trace: Trace, plane: int, rows: Rows, labels: op_labels.Labels, suffix: str, builder: _Builder
) -> None:
    """Modules, scopes, framework operations and HLO operations of the kernels of one stream."""
    events = _sequence(trace, rows, groups(trace).group[rows])
    modules = builder.codes(labels.module, labels.texts)
    _add_runs(DerivedLine(plane, "XLA Modules" + suffix, "modules"), events, labels.of, modules, builder)
    _scope_lines(plane, events, labels, suffix, builder)
    ops = builder.codes(*op_labels.levels(labels.hlo_op, labels.texts, op_labels.hlo_parts, _MAX_LEVELS))
    _add_runs(DerivedLine(plane, "XLA Ops" + suffix, "hlo_ops"), events, labels.of, ops, builder)
    _source_line(plane, events, labels, suffix, builder)


def _scope_lines(
    plane: int, events: _Sequence, labels: op_labels.Labels, suffix: str, builder: _Builder
) -> None:
    scopes = builder.codes(
        *op_labels.levels(labels.framework_op, labels.texts, op_labels.scope_parts, _MAX_LEVELS)
    )
    _add_runs(DerivedLine(plane, SCOPE_LINE + suffix, "scope"), events, labels.of, scopes, builder)
    ops = builder.codes(labels.framework_op, labels.texts)
    _add_runs(DerivedLine(plane, FRAMEWORK_LINE + suffix, "ops"), events, labels.of, ops, builder)


def _source_line(
    plane: int, events: _Sequence, labels: op_labels.Labels, suffix: str, builder: _Builder
) -> None:
    sources = builder.codes(labels.source, labels.texts)
    _add_runs(DerivedLine(plane, SOURCE_LINE + suffix, "source"), events, labels.of, sources, builder)


@dataclass(frozen=True)
class _Sequence:
    """Events in time order, and the events before which a run ends in any case (`is_new`)."""

    rows: npt.NDArray[np.int32]
    start_ps: Int64s
    end_ps: Int64s
    is_new: npt.NDArray[np.uint8]


def _sequence(trace: Trace, rows: Rows, group: npt.NDArray[np.int32] = _NO_GROUPS) -> _Sequence:
    """Events whose runs end where the step changes, and, outside steps, at a long gap."""
    event_rows = rows.astype(np.int32, copy=False)
    return _Sequence(
        event_rows,
        *sequence(trace.events["start_ps"], trace.events["duration_ps"], event_rows, group, _SMALL_GAP_PS),
    )


def _add_runs(
    line: DerivedLine,
    events: _Sequence,
    label: npt.NDArray[np.int32],
    names: npt.NDArray[np.int32],
    builder: _Builder,
) -> None:
    """Spans of successive events of one name, level by level. `names` are the codes of each label: [labels]
    or [labels, levels].

    One code may mean the same word under two scopes: their spans are separate because the scopes differ.
    """
    keys = np.ascontiguousarray(names[:, None] if names.ndim == 1 else names)

    def fill(room: _Columns) -> None:
        out = room.start_ps, room.duration_ps, room.name, room.source
        runs((events.start_ps, events.end_ps, events.is_new, events.rows), label, keys, out)

    builder.add(line, n_runs(events.is_new, label, keys), fill)
