"""Arguments of events → input of the writer of Chrome traces: shared texts, decoded stats, pieces of the
file's own JSON. Arguments from a JSON file are copied unchanged. From an XSpace, a window of few events has
all of them, a larger one those decoded on opening; both include those of an event's metadata.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.storage.json_source import END_POSITION, JsonSource
from tb_tpuprof.ingest.storage.source import PackedSource
from tb_tpuprof.ingest.storage.table_source import TableSource
from tb_tpuprof.tools.trace_viewer.export_rows import Rows, Texts
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace

Array = npt.NDArray[Any]
MAX_READ_ONE_BY_ONE = 10_000
_MAX_COMMON_TEXT = 500
_DERIVED_KEYS = ("_a", END_POSITION)


@dataclass
class Arguments:
    """Input of `EventWriter` (native/plain/trace_json.py), and the number of events whose arguments were
    too large or not JSON.
    """

    common: npt.NDArray[np.int32]
    stats: tuple[Array, Array, Array, Array]
    data: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]
    n_left_out: int = 0


def arguments_of(trace: Trace, rows: Rows, texts: Texts, with_args: bool) -> Arguments:
    """Arguments of all rows: the value of counters; all arguments of events if `with_args`."""
    event_or_end = rows.columns["event"]
    event = np.where(
        rows.columns["phase"] == ord("e"), -1, event_or_end
    )  # an end has only its begin's category
    n_rows = len(event)
    arguments = Arguments(
        np.full(n_rows, -1, np.int32),
        (),  # type: ignore[arg-type]
        np.zeros(1, np.uint8),
        np.zeros((0, 6), np.int64),
    )
    samples = np.flatnonzero(rows.columns["key"] >= 0)
    stats = [
        (
            samples,
            rows.columns["key"][samples],
            np.full(len(samples), schema.DOUBLE),
            rows.columns["value"][samples],
        )
    ]
    if with_args and (event >= 0).any():
        if isinstance(trace.source, JsonSource):
            arguments.spans = np.zeros((n_rows, 6), np.int64)
            arguments.data, arguments.spans[event_or_end >= 0] = trace.source.arguments(
                trace, event_or_end[event_or_end >= 0]
            )
            arguments.spans[event < 0, :4] = 0
            arguments.n_left_out = int((arguments.spans[:, :4] < 0).any(axis=1).sum())
            np.maximum(arguments.spans, 0, out=arguments.spans)
            stats.append(_decoded(trace, event, texts, _in_file(trace, event, arguments)))
        else:
            arguments.common = _common(trace, event, texts)
            n_events = int((event >= 0).sum())
            if n_events <= MAX_READ_ONE_BY_ONE and not isinstance(trace.source, (PackedSource, TableSource)):
                arguments.data, arguments.spans = _one_by_one(trace, event)
            else:
                stats.append(_decoded(trace, event, texts, set()))
    arguments.stats = _by_row(stats, n_rows)
    return arguments


def _by_row(parts: list[tuple[Array, Array, Array, Array]], n_rows: int) -> tuple[Array, Array, Array, Array]:
    """(first stat of each row, key, kind, value)."""
    row, key, kind, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], np.arange(n_rows + 1))
    return (
        first.astype(np.int64),
        key[order].astype(np.int32),
        kind[order].astype(np.uint8),
        value[order].astype(np.int64),
    )


def _decoded(
    trace: Trace, event: Array, texts: Texts, without: set[int]
) -> tuple[Array, Array, Array, Array]:
    """(row, key, kind, value) of the stats that were decoded on opening, without some keys."""
    row_of = np.full(trace.n_events, -1, np.int64)
    row_of[event[event >= 0]] = np.flatnonzero(event >= 0)
    table = trace.event_stats.table
    left_out = [
        *without,
        *(trace.strings.find(name) for name in _DERIVED_KEYS if isinstance(trace.source, JsonSource)),
    ]
    chosen = np.flatnonzero(
        (row_of[table["owner"]] >= 0) & (table["kind"] != schema.BYTES) & ~np.isin(table["key"], left_out)
    )
    key, kind, value = (table[name][chosen] for name in ("key", "kind", "value"))
    distinct, position = np.unique(key, return_inverse=True)
    keys = np.array([texts.add(trace.strings.get(int(i))) for i in distinct.tolist()], np.int32)
    value = value.copy()
    is_text = kind == schema.TEXT
    value[is_text] = texts.of_strings(value[is_text])
    return (
        row_of[table["owner"][chosen]],
        keys[position.reshape(-1)] if len(distinct) else position,
        kind,
        value,
    )


def _in_file(trace: Trace, event: Array, arguments: Arguments) -> set[int]:
    """Keys of decoded stats that are already in the file's own arguments, judged by one event of each."""
    row_of = np.full(trace.n_events, -1, np.int64)
    row_of[event[event >= 0]] = np.flatnonzero(event >= 0)
    table = trace.event_stats.table
    rows = row_of[table["owner"]]
    stat_rows = np.flatnonzero(rows >= 0)
    keys, first = np.unique(table["key"][stat_rows], return_index=True)
    present = set()
    for key, row in zip(keys.tolist(), rows[stat_rows[first]].tolist(), strict=True):
        pieces = [
            arguments.data[arguments.spans[row, k] : arguments.spans[row, k + 1]].tobytes() for k in (0, 2)
        ]
        if any(json.dumps(trace.strings.get(key)).encode() in piece for piece in pieces):
            present.add(int(key))
    return present


def _common(trace: Trace, event: Array, texts: Texts) -> npt.NDArray[np.int32]:
    """For each row, the arguments shared by all events of its metadata: its long name and its stats."""
    metadata = np.where(event >= 0, trace.events["metadata"][np.maximum(event, 0)], -1)
    distinct, position = np.unique(metadata, return_inverse=True)
    members: dict[int, dict[str, object]] = {int(row): {} for row in distinct.tolist() if row >= 0}
    for row, arguments in members.items():
        if trace.metadata["display_name"][row] >= 0:
            arguments["long_name"] = trace.strings.get(int(trace.metadata["name"][row]))[:_MAX_COMMON_TEXT]
    table = trace.metadata_stats.table
    chosen = np.flatnonzero(np.isin(table["owner"], distinct) & (table["kind"] != schema.BYTES))
    for stat, row, key in zip(
        chosen.tolist(), table["owner"][chosen].tolist(), table["key"][chosen].tolist(), strict=True
    ):
        members[row].setdefault(trace.strings.get(key), _value(trace, stat))
    codes = [texts.raw(_inner(members[row])) if members.get(row) else -1 for row in distinct.tolist()]
    return np.array(codes, np.int32)[position.reshape(-1)]


def _value(trace: Trace, stat: int) -> object:
    """A stat of metadata as a JSON value."""
    table = trace.metadata_stats.table
    kind, value = int(table["kind"][stat]), table["value"][stat]
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
    """All stats of a few events, as (JSON members end to end, span of each row)."""
    parts: list[bytes] = []
    offset = 1
    spans = np.zeros((len(event), 6), np.int64)
    for row in np.flatnonzero(event >= 0).tolist():
        stats = {
            name: _number(v) if isinstance(v, float) else v
            for name, v in trace.source.event_stats(trace, int(event[row]))
        }
        parts.append(_inner(stats).encode("utf-8", "replace") if stats else b"")
        spans[row, :2] = offset, offset + len(parts[-1])
        offset += len(parts[-1])
    return np.frombuffer(b" " + b"".join(parts), np.uint8), spans


def _inner(members: dict[str, Any]) -> str:
    """A JSON object without its braces."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))[1:-1]
