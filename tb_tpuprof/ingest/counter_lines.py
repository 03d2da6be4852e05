"""Lines of samples in an XSpace → counters: their events leave the table of events.

    line _counters_    ▪ SM Active {sm_active: 40}   ▪ DRAM {dram: 7}   ▪ SM Active {sm_active: 55}
    counters           SM Active  40 ──────────────────────────────── 55 ────
                       DRAM                          7 ──────────────────────

An event of such a line has its counter's name, the time of the sample and the value as its only number; where it has several
numbers, each is a series named after its stat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace

COUNTER_LINE = "_counters_"
_NOT_VALUES = ("group_id", "flow", "step_num", "run_id", "correlation_id")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Values:
    """Samples by (event row, string of the stat, value)."""

    event: Array
    key: Array
    value: npt.NDArray[np.float64]


def with_counters(trace: Trace) -> Trace:
    """The trace with its lines of samples made counters; itself where it has none. All stats of their events must be decoded."""
    lines = np.array([i for i, name in enumerate(trace.line_names) if name == COUNTER_LINE], np.int64)
    is_sample = np.zeros(trace.n_events, np.bool_)
    for line in lines.tolist():
        is_sample[trace.line_offsets[line] : trace.line_offsets[line + 1]] = True
    if not is_sample.any():
        return trace
    values = _values(trace, is_sample)
    n_without = int(is_sample.sum()) - len(np.unique(values.event))
    counters, samples = _tables(trace, values)
    info = trace.info
    if n_without:
        info = replace(info, notes=(*info.notes, f"{n_without} samples of counters have no number and are not shown."))
    return replace(_without(trace, is_sample), info=info, counters=counters, samples=samples)


def _values(trace: Trace, is_sample: npt.NDArray[np.bool_]) -> _Values:
    table = trace.event_stats.table
    unwanted = [trace.strings.find(name) for name in _NOT_VALUES]
    rows = np.flatnonzero(is_sample[table["owner"]] & (table["kind"] < schema.TEXT) & ~np.isin(table["key"], unwanted))
    kind, bits = table["kind"][rows], table["value"][rows]
    value = bits.astype(np.float64)
    value[kind == schema.UINT] = bits[kind == schema.UINT].view(np.uint64)
    value[kind == schema.DOUBLE] = bits[kind == schema.DOUBLE].view(np.float64)
    finite = np.isfinite(value)
    return _Values(table["owner"][rows][finite].astype(np.int64), table["key"][rows][finite].astype(np.int64), value[finite])


def _tables(trace: Trace, values: _Values) -> tuple[Table, Table]:
    """COUNTERS in the order of plane, first sample of the name, stat; SAMPLES by counter and time."""
    plane = trace.lines["plane"][trace.event_line[values.event]].astype(np.int64)
    name = trace.event_names[trace.events["metadata"][values.event]].astype(np.int64)
    time = trace.events["start_ps"][values.event]
    order = np.lexsort((values.event, time, values.key, name, plane))
    plane, name, key = plane[order], name[order], values.key[order]
    samples = {"time_ps": time[order].astype(np.int64), "value": values.value[order]}
    begins = np.flatnonzero(_changes(plane, name, key))
    n_samples = np.diff(np.append(begins, len(plane)))
    named = np.cumsum(_changes(plane[begins], name[begins])) - 1
    is_single = np.bincount(named)[named] == 1 if len(begins) else np.empty(0, np.bool_)
    counters: dict[str, Array] = {
        "plane": plane[begins].astype(np.int32),
        "name": name[begins].astype(np.int32),
        "series": np.where(is_single, -1, key[begins]).astype(np.int32),
        "first_sample": begins.astype(np.int64),
        "n_samples": n_samples.astype(np.int64),
    }
    return Table(schema.COUNTERS, counters), Table(schema.SAMPLES, samples)


def _changes(*columns: Array) -> npt.NDArray[np.bool_]:
    """Rows in which any column differs from the row before; the first one does."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _without(trace: Trace, is_sample: npt.NDArray[np.bool_]) -> Trace:
    """The trace without these events and their stats; their lines stay, with no events."""
    kept = np.flatnonzero(~is_sample)
    moved = np.cumsum(~is_sample, dtype=np.int64) - 1
    counts = np.bincount(trace.event_line[kept], minlength=len(trace.lines)).astype(np.int64)
    lines = {**trace.lines.columns, "n_events": counts, "first_event": np.cumsum(counts) - counts}
    table = trace.event_stats.table
    stays = ~is_sample[table["owner"]]
    stats = {name: values[stays] for name, values in table.columns.items()}
    stats["owner"] = moved[stats["owner"]].astype(np.int32)
    return replace(
        trace,
        lines=Table(schema.LINES, {spec.name: lines[spec.name] for spec in schema.LINES}),
        events=Table(schema.EVENTS, {name: values[kept] for name, values in trace.events.columns.items()}),
        event_stats=StatTable(Table(schema.STATS, stats), trace.strings),
    )
