"""One line's events by their contexts: events that have events of the same names around them, of which a line
has few.
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
    """`rows`: the line's events. `parent`: of each among them; `context`: of each.

    By context: `first`, one of its events; `above`, the context around it (-1 for none), which comes before
    it; `metadata`, its name's row.
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
    """The contexts of a line. `mark`: of each of its events; those with other marks are in contexts of their
    own.
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
    """The contexts of some events of a line and of all around them, as if these were the line's only ones.

    `context` is that of each of the given events.
    """
    parent = parents(trace)
    is_around = np.zeros(trace.n_events, np.bool_)
    rest = np.unique(events)
    while len(rest):
        is_around[rest] = True
        rest = np.unique(parent[rest])
        rest = rest[rest >= 0]
        rest = rest[~is_around[rest]]
    kept = np.flatnonzero(is_around)
    above = parent[kept].astype(np.int64)
    within = np.where(above >= 0, np.searchsorted(kept, above), -1).astype(np.int32)
    metadata = trace.events["metadata"][kept].astype(np.int64)
    context, first = contexts(within, trace.events["metadata"][kept])
    rows = slice(int(kept[0]), int(kept[-1]) + 1) if len(kept) else slice(0, 0)
    return LineContexts(
        rows,
        trace.events["start_ps"][kept],
        trace.events["duration_ps"][kept],
        within,
        context[np.searchsorted(kept, events)],
        kept[first].astype(np.int32),
        _above(within, context, first),
        metadata[first],
    )


def innermost(trace: Trace, rows: slice, parent: Int32s) -> tuple[Int64s, Int64s, Rows]:
    """Stretches between any two starts and ends of a line's events, each with the innermost event that is on,
    of those in `rows`.
    """
    each = np.arange(len(parent), dtype=np.int32)
    everywhere = np.array([0]), np.array([np.iinfo(np.int64).max])
    start, end, _window, event, _last = stretches(
        trace.events["start_ps"][rows], trace.events["duration_ps"][rows], parent, (each, each), everywhere
    )
    return start, end, event.astype(np.intp)


def parents_within(trace: Trace, rows: slice) -> Int32s:
    """Parent of each event of a line, counted from the line's first."""
    parent: Int32s = parents(trace)[rows] - np.int32(rows.start)
    np.maximum(parent, np.int32(-1), out=parent)
    return parent


def _above(parent: Int32s, context: Int32s, first: Int32s) -> Int32s:
    around = parent[first]
    return (
        np.where(around >= 0, context[np.maximum(around, 0)], -1).astype(np.int32)
        if len(context)
        else around.astype(np.int32)
    )


def nearest(parent: Int32s, chosen: npt.NDArray[np.bool_]) -> Int32s:
    """The innermost chosen one around each, itself included; -1 where there is none."""
    found: Int32s = flood(
        parent, np.where(chosen, np.arange(len(parent), dtype=np.int32), np.int32(-1)).astype(np.int32)
    )
    return found
