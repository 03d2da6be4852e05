"""A trace and names of arguments → those arguments of all its events, also those not decoded on opening.

The file is read once more: an XSpace is decoded with other stats than on opening, a Chrome trace is scanned
for other arguments. That takes about as long as opening the file for the first time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest.chrome.events import Texts, without_escapes
from tb_tpuprof.ingest.chrome.message_reader import Arguments
from tb_tpuprof.ingest.chrome.table_events import table_arguments
from tb_tpuprof.ingest.chrome.trace_events import trace_event_arguments
from tb_tpuprof.ingest.opening import open_trace, trace_of_bytes
from tb_tpuprof.ingest.storage.files import file_state, read_file
from tb_tpuprof.ingest.storage.json_source import END_POSITION, JsonSource, shown
from tb_tpuprof.ingest.storage.riegeli_source import RiegeliSource
from tb_tpuprof.ingest.storage.source import (
    BytesSource,
    FileSource,
    PackedSource,
    TraceEventSource,
)
from tb_tpuprof.ingest.storage.table_source import TableSource
from tb_tpuprof.ingest.xspace.protobuf import MessageSource
from tb_tpuprof.native import scan
from tb_tpuprof.native.plain.json_events import JSON
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table, table_from_rows
from tb_tpuprof.trace.trace import Trace

CATEGORY = "cat"  # a member of a Chrome trace's events that is shown among the arguments
_SAMPLE = (
    2000  # events whose names of arguments stand for all: stat names and texts are one table in the file
)
Int64s = npt.NDArray[np.int64]


def argument(trace: Trace, name: str) -> StatTable:
    """One argument of all events, under its name in the file. Raises StorageError if the file has changed."""
    if isinstance(trace.source, JsonSource):
        return _of_json(trace, name)
    if isinstance(trace.source, TraceEventSource):
        return _of_trace_events(trace)
    if isinstance(trace.source, TableSource):
        return _of_table(trace)
    if name in _decoded_names(trace) or name not in _cold_names(trace):
        return trace.event_stats
    return _of_xspace(trace, frozenset((name,)))


def all_arguments(trace: Trace) -> Iterator[StatTable]:
    """All arguments of all events, in one or two parts."""
    if isinstance(trace.source, JsonSource):
        yield _of_json(trace, "")
        return
    if isinstance(trace.source, TraceEventSource):
        yield _of_trace_events(trace)
        return
    if isinstance(trace.source, TableSource):
        yield _of_table(trace)
        return
    yield trace.event_stats
    names = _cold_names(trace)
    if names:
        yield _of_xspace(trace, frozenset(names))


def names_of(trace: Trace) -> list[str]:
    """Names of the arguments that events of the trace, or their metadata, may have, ascending. A Chrome trace
    is read for them.
    """
    names = {*trace.metadata_stats.names(), *_used_names(trace)}
    if isinstance(trace.source, (JsonSource, TraceEventSource, TableSource)):
        names |= {name for table in all_arguments(trace) for name in table.names()}
    else:
        names |= set(trace.event_stats.names())
    return sorted(name for name in names if name and not name.startswith("("))


def _used_names(trace: Trace) -> set[str]:
    """Names among the stats of an XSpace that some event, found in a sample, has."""
    cold = set(_cold_names(trace))
    if not cold:
        return cold
    if isinstance(trace.source, (PackedSource, RiegeliSource)):  # reading single events would unpack much
        return set(_of_xspace(trace, frozenset(cold)).names())
    with_stats = np.flatnonzero(trace.events["position"] > 0)
    sample = with_stats[:: max(len(with_stats) // _SAMPLE, 1)].tolist()
    return {name for event in sample for name, _ in trace.source.event_stats(trace, event)} & cold


def _decoded_names(trace: Trace) -> frozenset[str]:
    return schema.hot_stats(trace.plane_names)


def _cold_names(trace: Trace) -> list[str]:
    """Stats of an XSpace that were not decoded on opening; also texts, which stats refer to by id."""
    if not isinstance(trace.source, (FileSource, MessageSource)):
        return []
    used = np.unique(trace.stat_names["name"]).tolist()
    return sorted({trace.strings.get(name) for name in used} - _decoded_names(trace) - {""})


def _of_xspace(trace: Trace, names: frozenset[str]) -> StatTable:
    source = trace.source
    if isinstance(source, BytesSource):
        again = trace_of_bytes(source.data, trace.info.host, names)
    else:
        _check(source)
        again = open_trace(trace.info.path, stats=names)
    if again.n_events != trace.n_events:
        raise StorageError(f"{trace.info.path} has changed since it was opened.", "Reload the page.")
    return again.event_stats


def _check(source: object) -> None:
    if isinstance(source, FileSource) and file_state(source.state.path) != source.state:
        raise StorageError(f"{source.state.path} has changed since it was opened.", "Reload the page.")


def _of_json(trace: Trace, name: str) -> StatTable:
    """One argument of a Chrome trace, or all; `cat` is the events' category."""
    assert isinstance(trace.source, JsonSource)
    _check(trace.source)
    data, _ = read_file(trace.source.state.path)
    hot = [_escaped(name)] if name else []
    scanned = scan(data, hot, int.from_bytes(os.urandom(8), "little"), True)
    events, values = scanned["events"], scanned["values"]
    row_of_raw = _rows_of(trace, events["position"])
    items = Strings(scanned["blob"], scanned["offsets"])
    texts = Texts([])
    ids = np.array([texts.add(_unescaped(items.bytes_at(i))) for i in range(len(items))], np.int64)
    is_argument = ((values["kind"] >= schema.DOUBLE) & (values["kind"] <= schema.TEXT)) | (
        values["kind"] == JSON
    )
    owner = row_of_raw[values["event"]]
    chosen = np.flatnonzero(is_argument & (owner >= 0))
    owner, key = owner[chosen], ids[values["key"][chosen]]
    kind, value = values["kind"][chosen].astype(np.int64), values["value"][chosen].astype(np.int64)
    is_text, is_json = kind == schema.TEXT, kind == JSON
    value[is_text] = ids[value[is_text]]
    distinct, position = np.unique(value[is_json], return_inverse=True)
    compact = np.array([texts.add(_compact(items.bytes_at(i))) for i in distinct.tolist()], np.int64)
    value[is_json] = compact[position.reshape(-1)] if len(distinct) else 0
    kind[is_json] = schema.TEXT
    if name in ("", CATEGORY):
        rows = np.flatnonzero((row_of_raw >= 0) & (events["cat"] >= 0))
        owner = np.concatenate((owner, row_of_raw[rows]))
        key = np.concatenate((key, np.full(len(rows), texts.add(CATEGORY), np.int64)))
        kind = np.concatenate((kind, np.full(len(rows), schema.TEXT)))
        value = np.concatenate((value, ids[events["cat"][rows]]))
    if name:
        selected = key == texts.find(name)
        owner, key, kind, value = owner[selected], key[selected], kind[selected], value[selected]
    return _table(texts, owner, key, kind, value)


def _escaped(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False)[1:-1].encode("utf-8", "replace")


def _unescaped(text: bytes) -> str:
    return (without_escapes(text) if b"\\" in text else text).decode("utf-8", "replace")


def _compact(text: bytes) -> str:
    """An array or an object as the page shows it."""
    try:
        return str(shown(json.loads(text.decode("utf-8", "replace"), strict=False)))
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")


def _rows_of(trace: Trace, positions: Int64s) -> Int64s:
    """The event of each object of the file, by its position; -1 for those that are none."""
    own = trace.events["position"].astype(np.int64)
    ends = trace.event_stats.ints(END_POSITION)
    known = np.concatenate((own, ends.value.astype(np.int64)))
    row = np.concatenate((np.arange(len(own)), ends.owner)).astype(np.int64)
    order = np.argsort(known, kind="stable")
    known, row = known[order], row[order]
    place = np.minimum(np.searchsorted(known, positions), max(len(known) - 1, 0))
    return np.where(known[place] == positions, row[place], -1) if len(known) else np.full(len(positions), -1)


def _of_trace_events(trace: Trace) -> StatTable:
    """All arguments of TensorFlow's Trace protobuf, which are texts."""
    assert isinstance(trace.source, TraceEventSource)
    _check(trace.source)
    data, _ = read_file(trace.source.state.path)
    return _table_of_raw(trace, *trace_event_arguments(data))


def _of_table(trace: Trace) -> StatTable:
    """All arguments of a streaming trace viewer's table."""
    assert isinstance(trace.source, TableSource)
    _check(trace.source)
    data, _ = read_file(trace.source.state.path)
    return _table_of_raw(trace, *table_arguments(data, trace.source.state.path))


def _table_of_raw(trace: Trace, texts: Texts, arguments: Arguments) -> StatTable:
    """Arguments of a file's events as those of the trace's; ends of async events have none."""
    position = trace.events["position"].astype(np.int64)
    order = np.argsort(position, kind="stable")
    place = np.minimum(np.searchsorted(position[order], arguments.position), max(len(order) - 1, 0))
    is_event = (
        (position[order][place] == arguments.position) & (arguments.position > 0)
        if len(order)
        else np.zeros(len(arguments.position), np.bool_)
    )
    owner = order[place[is_event]].astype(np.int64)
    return _table(texts, owner, arguments.key[is_event], arguments.kind[is_event], arguments.value[is_event])


def _table(texts: Texts, owner: Int64s, key: Int64s, kind: Int64s, value: Int64s) -> StatTable:
    strings = Strings.of(texts.items)
    if not len(owner):
        return StatTable(table_from_rows(schema.STATS, ()), strings)
    order = np.lexsort((owner, key))
    columns = {
        "owner": owner,
        "key": key,
        "kind": kind,
        "value": value,
        "size": np.zeros(len(owner), np.int64),
    }
    return StatTable(
        Table(
            schema.STATS, {spec.name: columns[spec.name][order].astype(spec.dtype) for spec in schema.STATS}
        ),
        strings,
    )
