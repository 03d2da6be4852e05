"""Arrows between slices (flows) and counters of a Chrome trace → tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents, object_at
from tb_tpuprof.ingest.chrome.kineto import dense
from tb_tpuprof.ingest.chrome.lines import Layout
from tb_tpuprof.ingest.chrome.slices import hash_rows
from tb_tpuprof.native import nest
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table

Int64s = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
_BINDS_ENCLOSING, _LOCAL_ID, _FLOW_IN, _FLOW_OUT, _HAS_ID = 4, 8, 16, 32, 64
_BIND = 9
_START, _STEP, _END = 0, 1, 2
_MAX_NAMED = 100_000
_MAX_DEPTH = 4096


@dataclass(frozen=True)
class Unbound:
    """How many arrows have an end on no event, and how many ends have no start. (Starts without an end are
    normal: what they started may have been too late for the trace.)
    """

    n_off_events: int
    n_without_start: int


def flows_of(
    raw: RawEvents, laid_out: Layout, events: dict[str, Array], lines: Table, row_of_raw: Array
) -> tuple[Table, Unbound]:
    """(arrows between events, what has no arrow).

    A point is attached to the innermost event that contains its time, an `f` without `bp: "e"` to the next
    event that starts. Points of equal category, name and id are joined in time order: s → t → t → f. Events
    with `bind_id` are points themselves.
    """
    points = [_points(raw, laid_out, events, lines), _bound(raw, row_of_raw)]
    key, time, rank, event, source = (np.concatenate(column) for column in zip(*points, strict=True))
    order = np.lexsort((rank, time, key))
    key, rank, event, source = key[order], rank[order], event[order], source[order]
    same_key = key[1:] == key[:-1]
    follows = same_key & (rank[1:] > _START) & (rank[:-1] < _END)
    # Device clocks may lag: if a key has only two points and the end comes before the start, swap them.
    padded = np.concatenate(([False], same_key, [False]))
    reversed_ends = same_key & ~padded[:-2] & ~padded[2:] & (rank[:-1] == _END) & (rank[1:] == _START)
    arrows = np.flatnonzero(follows | reversed_ends)
    begin, end = arrows + reversed_ends[arrows], arrows + ~reversed_ends[arrows]
    has_start = np.zeros(len(key), np.bool_)
    has_start[end] = True
    n_without_start = int((~has_start & (rank > _START)).sum())
    is_bound = (event[begin] >= 0) & (event[end] >= 0)
    begin, end = begin[is_bound & (event[begin] != event[end])], end[is_bound & (event[begin] != event[end])]
    named = source[begin]
    order = np.lexsort((event[end], event[begin]))
    columns = {
        "from_event": event[begin][order].astype(np.int32),
        "to_event": event[end][order].astype(np.int32),
        "name": raw["name"][named][order].astype(np.int32),
        "kind": raw["cat"][named][order].astype(np.int32),
    }
    columns["name"][columns["name"] < 0] = raw.texts.add("")
    return Table(schema.FLOWS, columns), Unbound(int((~is_bound).sum()), n_without_start)


def _points(raw: RawEvents, laid_out: Layout, events: dict[str, Array], lines: Table) -> tuple[Array, ...]:
    rows = raw.rows("stf")
    threads = hash_rows(raw["pid"][rows], raw["tid"][rows])
    known_threads = np.array(list(laid_out.thread_lines), np.int32).reshape(-1, 2)
    line = _values_of_keys(
        hash_rows(known_threads[:, 0], known_threads[:, 1]),
        np.array(list(laid_out.thread_lines.values()), np.int64),
        threads,
    )
    time = raw.start_ps[rows]
    rank = np.select([raw["phase"][rows] == ord("s"), raw["phase"][rows] == ord("t")], [_START, _STEP], _END)
    binds_next = (rank == _END) & ((raw["flags"][rows] & _BINDS_ENCLOSING) == 0)
    event = _event_at(events, lines, line, time, binds_next)
    process = np.where(raw["flags"][rows] & _LOCAL_ID, raw["pid"][rows], -1)
    return hash_rows(raw["cat"][rows], raw["name"][rows], raw["id"][rows], process), time, rank, event, rows


def _bound(raw: RawEvents, row_of_raw: Array) -> tuple[Array, ...]:
    """Flow points of the events that have a `bind_id`."""
    is_bind = raw.values["kind"] == _BIND
    rows, bind = raw.values["event"][is_bind].astype(np.intp), raw.values["value"][is_bind]
    flags = raw["flags"][rows]
    is_point = ((flags & (_FLOW_IN | _FLOW_OUT)) > 0) & (row_of_raw[rows] >= 0)
    rows, bind, flags = rows[is_point], bind[is_point], flags[is_point]
    rank = np.select([(flags & _FLOW_IN) == 0, (flags & _FLOW_OUT) > 0], [_START, _STEP], _END)
    return (
        hash_rows(bind, np.full(len(bind), -7)),
        raw.start_ps[rows],
        rank,
        row_of_raw[rows].astype(np.int64),
        rows,
    )


def _values_of_keys(keys: Int64s, values: Int64s, sought: Int64s) -> Int64s:
    """The value of each sought key, -1 if there is none."""
    if not len(keys):
        return np.full(len(sought), -1, np.int64)
    order = np.argsort(keys)
    index = np.minimum(np.searchsorted(keys[order], sought), len(keys) - 1)
    matched: Int64s = np.where(keys[order][index] == sought, values[order][index], -1)
    return matched


def _event_at(events: dict[str, Array], lines: Table, line: Int64s, time: Int64s, next_one: Array) -> Int64s:
    """The innermost event on the line that contains each time, or the next one to start where `next_one` is
    set; -1 for none.
    """
    spans = np.flatnonzero(events["duration_ps"] > 0)
    event_line = np.repeat(np.arange(len(lines), dtype=np.int64), lines["n_events"])[spans]
    start, end = events["start_ps"][spans], (events["start_ps"] + events["duration_ps"])[spans]
    offsets = np.searchsorted(event_line, np.arange(len(lines) + 1))
    n = len(spans)
    if not n or not len(line):
        return np.full(len(line), -1, np.int64)
    order = np.lexsort(
        (
            np.concatenate((np.ones(n), np.where(next_one, 0, 2))),
            np.append(start, time),
            np.append(event_line, line),
        )
    )
    n_started = np.empty(len(order), np.int64)
    n_started[order] = np.cumsum(order < n)
    before = n_started[n:]  # events of lines before, and of this one up to the time
    candidate = np.where(next_one, before, before - 1)
    on_line = (candidate >= 0) & (candidate < n) & (line >= 0)
    on_line[on_line] = event_line[candidate[on_line]] == line[on_line]
    candidate = np.where(on_line, candidate, -1)
    parent, _ = nest(start, end, offsets)
    has_ended = (candidate >= 0) & ~next_one
    has_ended[has_ended] = end[candidate[has_ended]] < time[has_ended]
    for _ in range(_MAX_DEPTH):
        if not has_ended.any():
            break
        candidate[has_ended] = parent[candidate[has_ended]]
        has_ended &= candidate >= 0
        has_ended[has_ended] = end[candidate[has_ended]] < time[has_ended]
    return np.where((candidate >= 0) & ~has_ended, spans[np.maximum(candidate, 0)], -1)


def counters_of(
    raw: RawEvents, laid_out: Layout, data: npt.NDArray[np.uint8], is_kineto: bool
) -> tuple[Table, Table, int]:
    """(counters, their samples, number of values that are not numbers). Each argument of a counter event is a
    series.
    """
    (event, pid, name, id_, series, real), n_bad = _counter_values(raw, is_kineto)
    key = hash_rows(pid, name, id_, series)
    time = raw.start_ps[event]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    # Counters are ordered by plane, then as in the file.
    planes = np.array([laid_out.plane_of_pid.get(i, 0) for i in pid[first].tolist()], np.int32)
    order = np.lexsort((first, planes))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    group = rank[group.reshape(-1)]
    by_time = np.lexsort((time, group))
    counts = np.bincount(group, minlength=len(first)) if len(first) else np.empty(0, np.int64)
    first = first[order]
    names = [
        _counter_name(raw, data, int(event[i]), int(name[i]), number < _MAX_NAMED)
        for number, i in enumerate(first.tolist())
    ]
    siblings = hash_rows(pid, name, id_)[first]
    sibling_counts = np.unique(siblings, return_inverse=True, return_counts=True)
    is_single = sibling_counts[2][sibling_counts[1].reshape(-1)] == 1 if len(first) else np.empty(0, np.bool_)
    counters: dict[str, Array] = {
        "plane": planes[order],
        "name": np.array(names, np.int32),
        "series": np.where(is_single, -1, series[first]).astype(np.int32),
        "first_sample": (np.cumsum(counts) - counts).astype(np.int64),
        "n_samples": counts.astype(np.int64),
    }
    return (
        Table(schema.COUNTERS, counters),
        Table(schema.SAMPLES, {"time_ps": time[by_time], "value": real[by_time]}),
        n_bad,
    )


def _counter_values(raw: RawEvents, is_kineto: bool) -> tuple[list[Array], int]:
    """(columns event, pid, name, id, series, value of all samples, number of values that are not numbers)."""
    values = raw.values
    rows = np.flatnonzero((raw["phase"] == ord("C"))[values["event"]] & raw.usable[values["event"]])
    is_number = values["kind"][rows] < schema.TEXT
    n_bad, rows = int((~is_number).sum()), rows[is_number]
    event, kind, number = (values[name][rows] for name in ("event", "kind", "value"))
    real = np.where(
        kind == schema.DOUBLE,
        number.view(np.float64),
        np.where(kind == schema.UINT, number.view(np.uint64), number),
    )
    columns: list[tuple[Array, ...]] = [
        (event, raw["pid"][event], raw["name"][event], raw["id"][event], values["key"][rows], real)
    ]
    columns += [_memory_counters(raw)] if is_kineto else []
    return [np.concatenate(part) for part in zip(*columns, strict=True)], n_bad


def _counter_name(raw: RawEvents, data: npt.NDArray[np.uint8], event: int, name: int, may_read: bool) -> int:
    """A counter's name, with its id if it has one."""
    if raw["phase"][event] != ord("C") or not raw["flags"][event] & _HAS_ID or not may_read:
        return name if name >= 0 else raw.texts.add("(no name)")
    fields = object_at(data, int(raw["position"][event]))
    id_ = fields.get("id", fields.get("id2", ""))
    return raw.texts.add(
        f"{raw.texts.get(name)}[{next(iter(id_.values()), '') if isinstance(id_, dict) else id_}]"
    )


def _memory_counters(raw: RawEvents) -> tuple[Array, ...]:
    """PyTorch's `[memory]` marks as one counter per device: bytes in use and bytes reserved after
    each mark.
    """
    rows = raw.rows("i")
    rows = rows[raw["name"][rows] == raw.texts.find("[memory]")]
    parts = []
    device = [dense(raw, name, (schema.INT,))[rows] for name in ("Device Type", "Device Id")]
    kinds, first, inverse = np.unique(hash_rows(*device), return_index=True, return_inverse=True)
    titles = [
        f"Memory of GPU {device[1][i]}" if device[0][i] == 1 else "Memory of the host" for i in first.tolist()
    ]
    names = (
        np.array([raw.texts.add(title) for title in titles], np.int64)[inverse.reshape(-1)]
        if len(kinds)
        else np.empty(0, np.int64)
    )
    for argument, title in (("Total Allocated", "in use"), ("Total Reserved", "reserved")):
        value = dense(raw, argument, (schema.INT,), -1)[rows]
        has_value = value >= 0
        series = np.full(int(has_value.sum()), raw.texts.add(title), np.int64)
        parts.append(
            (
                rows[has_value],
                raw["pid"][rows][has_value],
                names[has_value],
                np.zeros_like(series),
                series,
                value[has_value].astype(np.float64),
            )
        )
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
