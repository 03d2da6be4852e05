"""Event columns in the file's order → sorted by (line, start, -duration), with lines of equal id merged and
aggregates separated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import repeated
from tb_tpuprof.native.compiled.events import AGGREGATE_START
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatsByKey, all_of
from tb_tpuprof.trace.table import Table

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Ordered:
    """Events in order, and the tables that depend on the order."""

    events: Columns
    lines: Table
    aggregates: Table
    stats: Table | StatsByKey


def ordered(
    events: Columns, lines: Columns, stats: Table | StatsByKey, in_order: bool, n_aggregates: int
) -> Ordered:
    """Sorts, merges and separates. Copies nothing if the file is in order already, as most are."""
    aggregates = Table(schema.AGGREGATES, {c.name: np.empty(0, c.dtype) for c in schema.AGGREGATES})
    merged_into = _merged_lines(lines)
    if in_order and merged_into is None and not n_aggregates:
        return Ordered(events, Table(schema.LINES, lines), aggregates, stats)
    line = repeated(np.arange(len(lines["id"]), dtype=np.int32), lines["n_events"])
    if merged_into is not None:
        line = merged_into[line]
    is_aggregate = events["start_ps"] <= AGGREGATE_START
    if n_aggregates:
        aggregates = _aggregates(events, line, is_aggregate)
    order = np.lexsort((-events["duration_ps"], events["start_ps"], line))
    order = order[~is_aggregate[order]]
    sorted_events = {name: values[order] for name, values in events.items()}
    counts = np.bincount(line[order], minlength=len(lines["id"]))
    if merged_into is not None:
        keep = merged_into == np.arange(len(merged_into))
        renumbered = np.cumsum(keep) - 1
        aggregates = Table(
            schema.AGGREGATES, {**aggregates.columns, "line": renumbered[aggregates["line"]].astype(np.int32)}
        )
        lines = {name: values[keep] for name, values in lines.items()}
        counts = counts[keep]
    lines = {
        **lines,
        "n_events": counts.astype(np.int64),
        "first_event": (np.cumsum(counts) - counts).astype(np.int64),
    }
    return Ordered(
        sorted_events,
        Table(schema.LINES, lines),
        aggregates,
        _moved_stats(all_of(stats), order, len(is_aggregate)),
    )


def shift_to_start(events: Columns) -> int:
    """Moves all events (in place) so that the first starts within the trace's first nanosecond; returns the
    shift in ns.
    """
    starts = events["start_ps"]
    if not len(starts):
        return 0
    shift_ns = int(starts.min()) // 1000
    if shift_ns:
        starts -= shift_ns * 1000
    return shift_ns


def _merged_lines(lines: Columns) -> npt.NDArray[np.int32] | None:
    """For each line, the first line of its plane with the same id; None if all ids differ."""
    if not len(lines["id"]):
        return None
    pairs = np.stack([lines["plane"].astype(np.int64), lines["id"]], axis=1)
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(pairs):
        return None
    return first[inverse.reshape(-1)].astype(np.int32)


def _aggregates(events: Columns, line: npt.NDArray[np.int32], is_aggregate: npt.NDArray[np.bool_]) -> Table:
    columns = {
        "line": line[is_aggregate],
        "metadata": events["metadata"][is_aggregate],
        "n_occurrences": AGGREGATE_START - events["start_ps"][is_aggregate],
        "duration_ps": events["duration_ps"][is_aggregate],
    }
    return Table(schema.AGGREGATES, columns)


def _moved_stats(stats: Table, order: npt.NDArray[np.intp], n_before: int) -> Table:
    """Stats whose owners follow the events to their new rows; those of aggregates are dropped."""
    new_row = np.full(n_before, -1, np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    owner = new_row[stats["owner"]]
    rows = np.lexsort((owner, stats["key"]))
    rows = rows[owner[rows] >= 0]
    columns = {name: values[rows] for name, values in stats.columns.items()}
    return Table(schema.STATS, {**columns, "owner": owner[rows]})
