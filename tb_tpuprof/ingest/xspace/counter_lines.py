"""Lines of samples in an XSpace → counters. Their events leave the table of events.

    line _counters_    ▪ SM Active {sm_active: 40}   ▪ DRAM {dram: 7}   ▪ SM Active {sm_active: 55}
    counters           SM Active  40 ──────────────────────────────── 55 ────
                       DRAM                          7 ──────────────────────

An event of such a line has its counter's name, the time of the sample and the value as its only number. If it
has several numbers, each is a series named after its stat. Lines named `counters_…` contain performance
counters instead (value: the stat `counter_value`), most of them read only once: a value that was read at
several times becomes a counter, the rest is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace

COUNTER_LINE = "_counters_"
READINGS_PREFIX = "counters_"
_READING = "counter_value"
_NOT_VALUES = ("group_id", "flow", "step_num", "run_id", "correlation_id")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Values:
    """Samples by (event row, string id of the stat, value)."""

    event: Array
    key: Array
    value: npt.NDArray[np.float64]


def with_counters(trace: Trace) -> Trace:
    """The trace with its lines of samples turned into counters; the trace itself if it has none. All stats of
    their events must be decoded.
    """
    if not any(map(is_counter_line, trace.line_names)):
        return trace
    is_sample, is_reading = _events_on(trace, is_counter_line), _events_on(trace, _has_readings)
    if not is_sample.any():
        return trace
    values = _values(trace, is_sample, is_reading)
    n_without = int(is_sample.sum()) - len(np.unique(values.event))
    counters, samples, n_once = _tables(trace, values, is_reading)
    info = trace.info
    if n_without:
        info = replace(
            info, notes=(*info.notes, f"{n_without} counter samples have no number and are not shown.")
        )
    if n_once:
        info = replace(
            info,
            notes=(
                *info.notes,
                f"{n_once} performance counters were read only once and are not drawn over time.",
            ),
        )
    return replace(_without(trace, is_sample), info=info, counters=counters, samples=samples)


def is_counter_line(name: str) -> bool:
    """Whether the events of lines with that name are samples of counters."""
    return name == COUNTER_LINE or _has_readings(name)


def _has_readings(name: str) -> bool:
    return name.startswith(READINGS_PREFIX)


def _events_on(trace: Trace, matches: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """For each event, whether the name of its line satisfies `matches`."""
    is_on_line = np.zeros(trace.n_events, np.bool_)
    for line, name in enumerate(trace.line_names):
        if matches(name):
            is_on_line[trace.line_offsets[line] : trace.line_offsets[line + 1]] = True
    return is_on_line


def _values(trace: Trace, is_sample: npt.NDArray[np.bool_], is_reading: npt.NDArray[np.bool_]) -> _Values:
    """Numbers of the samples. A reading with a `counter_value` has no other number."""
    table = trace.event_stats.table
    excluded_keys = [trace.strings.find(name) for name in _NOT_VALUES]
    rows = np.flatnonzero(
        is_sample[table["owner"]] & (table["kind"] < schema.TEXT) & ~np.isin(table["key"], excluded_keys)
    )
    is_value = table["key"][rows] == trace.strings.find(_READING)
    has_value = np.zeros(trace.n_events, np.bool_)
    has_value[table["owner"][rows[is_value]]] = True
    rows = rows[is_value | ~(is_reading & has_value)[table["owner"][rows]]]
    kind, bits = table["kind"][rows], table["value"][rows]
    value = bits.astype(np.float64)
    value[kind == schema.UINT] = bits[kind == schema.UINT].view(np.uint64)
    value[kind == schema.DOUBLE] = bits[kind == schema.DOUBLE].view(np.float64)
    finite = np.isfinite(value)
    return _Values(
        table["owner"][rows][finite].astype(np.int64),
        table["key"][rows][finite].astype(np.int64),
        value[finite],
    )


def _tables(trace: Trace, values: _Values, is_reading: npt.NDArray[np.bool_]) -> tuple[Table, Table, int]:
    """COUNTERS in the order of plane, name and stat; SAMPLES by counter and time; the number of counters that
    were read once and left out.
    """
    plane = trace.lines["plane"][trace.event_line[values.event]].astype(np.int64)
    name = trace.event_names[trace.events["metadata"][values.event]].astype(np.int64)
    time = trace.events["start_ps"][values.event]
    order = np.lexsort((values.event, time, values.key, name, plane))
    plane, name, key, time = plane[order], name[order], values.key[order], time[order]
    begins = np.flatnonzero(_changes(plane, name, key))
    ends = np.append(begins, len(plane))[1:] - 1
    is_once = is_reading[values.event[order]][begins] & (time[ends] == time[begins])
    is_kept = ~np.repeat(is_once, ends - begins + 1)
    order, plane, name, key, time = order[is_kept], plane[is_kept], name[is_kept], key[is_kept], time[is_kept]
    samples = {"time_ps": time.astype(np.int64), "value": values.value[order]}
    begins = np.flatnonzero(_changes(plane, name, key))
    n_samples = np.diff(np.append(begins, len(plane)))
    name_group = np.cumsum(_changes(plane[begins], name[begins])) - 1
    is_single = np.bincount(name_group)[name_group] == 1 if len(begins) else np.empty(0, np.bool_)
    counters: dict[str, Array] = {
        "plane": plane[begins].astype(np.int32),
        "name": name[begins].astype(np.int32),
        "series": np.where(is_single, -1, key[begins]).astype(np.int32),
        "first_sample": begins.astype(np.int64),
        "n_samples": n_samples.astype(np.int64),
    }
    return Table(schema.COUNTERS, counters), Table(schema.SAMPLES, samples), int(is_once.sum())


def _changes(*columns: Array) -> npt.NDArray[np.bool_]:
    """Rows in which any column differs from the row before; the first row counts as different."""
    new = np.zeros(len(columns[0]), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def _without(trace: Trace, is_sample: npt.NDArray[np.bool_]) -> Trace:
    """The trace without these events and their stats; their lines stay, but empty."""
    kept_rows = np.flatnonzero(~is_sample)
    new_row = np.cumsum(~is_sample, dtype=np.int64) - 1
    counts = np.bincount(trace.event_line[kept_rows], minlength=len(trace.lines)).astype(np.int64)
    lines = {**trace.lines.columns, "n_events": counts, "first_event": np.cumsum(counts) - counts}
    table = trace.event_stats.table
    is_kept = ~is_sample[table["owner"]]
    stats = {name: values[is_kept] for name, values in table.columns.items()}
    stats["owner"] = new_row[stats["owner"]].astype(np.int32)
    return replace(
        trace,
        lines=Table(schema.LINES, {spec.name: lines[spec.name] for spec in schema.LINES}),
        events=Table(
            schema.EVENTS, {name: values[kept_rows] for name, values in trace.events.columns.items()}
        ),
        event_stats=StatTable(Table(schema.STATS, stats), trace.strings),
    )
