"""Arguments of events → what the writer of Chrome traces puts behind them: texts in common, decoded stats,
pieces of the file's own JSON.

A file that is JSON gives its arguments as they stand there. Of an XSpace a window of few events has all, a
larger one those that were decoded on opening; those of an event's metadata always.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.storage.json_source import END_POSITION, JsonSource
from tb_tpuprof.ingest.storage.source import PackedSource
from tb_tpuprof.tools.trace_viewer.export_rows import Rows, Texts
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace

Array = npt.NDArray[Any]
MAX_READ_ONE_BY_ONE = 10_000
_MAX_COMMON_TEXT = 500
_MADE_HERE = ("_a", END_POSITION)


@dataclass
class Arguments:
    """What `EventWriter` is given (native/plain/trace_json.py), and how many events' arguments were too large
    or no JSON.
    """

    common: npt.NDArray[np.int32]
    stats: tuple[Array, Array, Array, Array]
    data: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]
    n_left_out: int = 0


def arguments_of(trace: Trace, rows: Rows, texts: Texts, with_args: bool) -> Arguments:
    """Arguments of all rows: of counters their value; of events, where asked, all that is known."""
    told = rows.columns["event"]
    event = np.where(rows.columns["phase"] == ord("e"), -1, told)  # an end has only the category of its begin
    n = len(event)
    found = Arguments(np.full(n, -1, np.int32), (), np.zeros(1, np.uint8), np.zeros((0, 6), np.int64))  # type: ignore[arg-type]
    own = np.flatnonzero(rows.columns["key"] >= 0)
    stats = [(own, rows.columns["key"][own], np.full(len(own), schema.DOUBLE), rows.columns["value"][own])]
    if with_args and (event >= 0).any():
        if isinstance(trace.source, JsonSource):
            found.spans = np.zeros((n, 6), np.int64)
            found.data, found.spans[told >= 0] = trace.source.arguments(trace, told[told >= 0])
            found.spans[event < 0, :4] = 0
            found.n_left_out = int((found.spans[:, :4] < 0).any(axis=1).sum())
            np.maximum(found.spans, 0, out=found.spans)
            stats.append(_decoded(trace, event, texts, _in_file(trace, event, found)))
        else:
            found.common = _common(trace, event, texts)
            if int((event >= 0).sum()) <= MAX_READ_ONE_BY_ONE and not isinstance(trace.source, PackedSource):
                found.data, found.spans = _one_by_one(trace, event)
            else:
                stats.append(_decoded(trace, event, texts, set()))
    found.stats = _by_row(stats, n)
    return found


def _by_row(parts: list[tuple[Array, Array, Array, Array]], n: int) -> tuple[Array, Array, Array, Array]:
    """(first stat of each row, key, kind, value)."""
    row, key, kind, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(n + 1))
    return (
        first.astype(np.int64),
        key[order].astype(np.int32),
        kind[order].astype(np.uint8),
        value[order].astype(np.int64),
    )


def _decoded(
    trace: Trace, event: Array, texts: Texts, without: set[int]
) -> tuple[Array, Array, Array, Array]:
    """(row, key, kind, value) of the stats that were decoded on opening, but for some keys."""
    row_of = np.full(trace.n_events, -1, np.int64)
    row_of[event[event >= 0]] = np.flatnonzero(event >= 0)
    table = trace.event_stats.table
    left_out = [
        *without,
        *(trace.strings.find(name) for name in _MADE_HERE if isinstance(trace.source, JsonSource)),
    ]
    chosen = np.flatnonzero(
        (row_of[table["owner"]] >= 0) & (table["kind"] != schema.BYTES) & ~np.isin(table["key"], left_out)
    )
    key, kind, value = (table[name][chosen] for name in ("key", "kind", "value"))
    used, place = np.unique(key, return_inverse=True)
    keys = np.array([texts.add(trace.strings.get(int(i))) for i in used.tolist()], np.int32)
    value = value.copy()
    is_text = kind == schema.TEXT
    value[is_text] = texts.of_strings(value[is_text])
    return row_of[table["owner"][chosen]], keys[place.reshape(-1)] if len(used) else place, kind, value


def _in_file(trace: Trace, event: Array, found: Arguments) -> set[int]:
    """Keys of decoded stats that the file's own arguments have already: one event of each tells."""
    row_of = np.full(trace.n_events, -1, np.int64)
    row_of[event[event >= 0]] = np.flatnonzero(event >= 0)
    table = trace.event_stats.table
    rows = row_of[table["owner"]]
    known = np.flatnonzero(rows >= 0)
    keys, first = np.unique(table["key"][known], return_index=True)
    present = set()
    for key, row in zip(keys.tolist(), rows[known[first]].tolist(), strict=True):
        pieces = [found.data[found.spans[row, k] : found.spans[row, k + 1]].tobytes() for k in (0, 2)]
        if any(json.dumps(trace.strings.get(key)).encode() in piece for piece in pieces):
            present.add(int(key))
    return present


def _common(trace: Trace, event: Array, texts: Texts) -> npt.NDArray[np.int32]:
    """For each row the arguments that all events of its metadata have: its long name and its stats."""
    metadata = np.where(event >= 0, trace.events["metadata"][np.maximum(event, 0)], -1)
    used, place = np.unique(metadata, return_inverse=True)
    members: dict[int, dict[str, object]] = {int(row): {} for row in used.tolist() if row >= 0}
    for row, found in members.items():
        if trace.metadata["display_name"][row] >= 0:
            found["long_name"] = trace.strings.get(int(trace.metadata["name"][row]))[:_MAX_COMMON_TEXT]
    table = trace.metadata_stats.table
    chosen = np.flatnonzero(np.isin(table["owner"], used) & (table["kind"] != schema.BYTES))
    for at, row, key in zip(
        chosen.tolist(), table["owner"][chosen].tolist(), table["key"][chosen].tolist(), strict=True
    ):
        members[row].setdefault(trace.strings.get(key), _value(trace, at))
    codes = [texts.raw(_inner(members[row])) if members.get(row) else -1 for row in used.tolist()]
    return np.array(codes, np.int32)[place.reshape(-1)]


def _value(trace: Trace, at: int) -> object:
    """A stat of metadata as a JSON value."""
    table = trace.metadata_stats.table
    kind, value = int(table["kind"][at]), table["value"][at]
    if kind == schema.TEXT:
        return trace.strings.get(int(value))[:_MAX_COMMON_TEXT]
    return (
        _number(float(value.view(np.float64)))
        if kind == schema.DOUBLE
        else int(value) % 2**64
        if kind == schema.UINT
        else int(value)
    )


def _number(value: float) -> float | None:
    return value if abs(value) < 1e308 else None


def _one_by_one(trace: Trace, event: Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """All stats of a few events, as (JSON members end to end, where each row's stand)."""
    parts: list[bytes] = []
    at = 1
    spans = np.zeros((len(event), 6), np.int64)
    for row in np.flatnonzero(event >= 0).tolist():
        stats = {
            name: _number(v) if isinstance(v, float) else v
            for name, v in trace.source.event_stats(trace, int(event[row]))
        }
        parts.append(_inner(stats).encode("utf-8", "replace") if stats else b"")
        spans[row, :2] = at, at + len(parts[-1])
        at += len(parts[-1])
    return np.frombuffer(b" " + b"".join(parts), np.uint8), spans


def _inner(members: dict[str, Any]) -> str:
    """A JSON object without its braces."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))[1:-1]
