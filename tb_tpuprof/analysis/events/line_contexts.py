"""The contexts of a line's events. Events have the same context if they and all events around them have the
same names; a line has few contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.native import contexts, flood, stretches
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class LineContexts:
    """`rows`: the line's events. `parent`: the parent of each event, as an index among them; `context`: the
    context of each.

    By context: `first`, one of its events; `above`, the enclosing context (-1 for none), which has a lower
    number; `metadata`, the row of its name.
    """

    rows: slice
    start: Int64s
    duration: Int64s
    parent: Int32s
    context: Int32s
    first: Int32s
    above: Int32s
    metadata: Int64s

    def __len__(self) -> int:
        return len(self.first)


def line_contexts(trace: Trace, line: int, mark: npt.NDArray[np.uint16] | None = None) -> LineContexts:
    """The contexts of a line. `mark`: a number per event of the line; events with different marks are in
    different contexts.
    """
    rows = slice(int(trace.line_offsets[line]), int(trace.line_offsets[line + 1]))
    parent = parents_within(trace, rows)
    metadata = trace.events["metadata"][rows]
    context, first = contexts(parent, metadata, mark)
    return LineContexts(
        rows, trace.events["start_ps"][rows], trace.events["duration_ps"][rows], parent, context, first,
        _above(parent, context, first), metadata[first].astype(np.int64),
    )  # fmt: skip


def contexts_of(trace: Trace, events: Int64s) -> LineContexts:
    """The contexts of some events of a line and of all events around them, as if the line had no others.

    `context` has one entry per given event.
    """
    parent = parents(trace)
    is_around = np.zeros(trace.n_events, np.bool_)
    frontier = np.unique(events)
    while len(frontier):
        is_around[frontier] = True
        frontier = np.unique(parent[frontier])
        frontier = frontier[frontier >= 0]
        frontier = frontier[~is_around[frontier]]
    included = np.flatnonzero(is_around)
    above = parent[included].astype(np.int64)
    within = np.where(above >= 0, np.searchsorted(included, above), -1).astype(np.int32)
    metadata = trace.events["metadata"][included].astype(np.int64)
    context, first = contexts(within, trace.events["metadata"][included])
    rows = slice(int(included[0]), int(included[-1]) + 1) if len(included) else slice(0, 0)
    return LineContexts(
        rows,
        trace.events["start_ps"][included],
        trace.events["duration_ps"][included],
        within,
        context[np.searchsorted(included, events)],
        included[first].astype(np.int32),
        _above(within, context, first),
        metadata[first],
    )


def innermost(trace: Trace, rows: slice, parent: Int32s) -> tuple[Int64s, Int64s, Rows]:
    """The stretches between successive starts and ends of a line's events (`rows`), each with the innermost
    event that is running: (start, end, event as an index into `rows`), times in ps.
    """
    each = np.arange(len(parent), dtype=np.int32)
    everywhere = np.array([0]), np.array([np.iinfo(np.int64).max])
    start, end, _window, event, _last = stretches(
        trace.events["start_ps"][rows], trace.events["duration_ps"][rows], parent, (each, each), everywhere
    )
    return start, end, event.astype(np.intp)


def parents_within(trace: Trace, rows: slice) -> Int32s:
    """Parent of each event of a line, as an index from the line's first event; -1 for none."""
    parent: Int32s = parents(trace)[rows] - np.int32(rows.start)
    np.maximum(parent, np.int32(-1), out=parent)
    return parent


def _above(parent: Int32s, context: Int32s, first: Int32s) -> Int32s:
    parent_of_first = parent[first]
    return (
        np.where(parent_of_first >= 0, context[np.maximum(parent_of_first, 0)], -1).astype(np.int32)
        if len(context)
        else parent_of_first.astype(np.int32)
    )


def nearest(parent: Int32s, is_chosen: npt.NDArray[np.bool_]) -> Int32s:
    """The innermost chosen event around each event, itself included; -1 if there is none."""
    ancestor: Int32s = flood(
        parent, np.where(is_chosen, np.arange(len(parent), dtype=np.int32), np.int32(-1)).astype(np.int32)
    )
    return ancestor
