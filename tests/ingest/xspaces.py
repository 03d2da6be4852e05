"""XSpaces for tests: random ones for properties, a small one to damage, and what makes two decoded traces the
same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tb_tpuprof.ingest.storage.files import FileBytes
from tb_tpuprof.ingest.storage.source import FileSource
from tb_tpuprof.ingest.xspace.counter_lines import COUNTER_LINE
from tb_tpuprof.ingest.xspace.decoder import decode
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.ingest.xspace.protobuf import decode_protobuf
from tb_tpuprof.trace.schema import DEVICE_STATS, HOT_STATS, TEXT
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.trace import Trace

INT64 = st.one_of(st.integers(-5, 300), st.integers(-(2**63), 2**63 - 1))
STAT_NAMES = [name.encode() for name in (*HOT_STATS, *sum(DEVICE_STATS.values(), ()))]
TEXTS = st.one_of(st.sampled_from([b"", b"train", b"\xff\xfe bad", "µs".encode()]), st.binary(max_size=12))


@st.composite
def xspaces(draw: st.DrawFn) -> bytes:
    """A random XSpace: any ids and times, unsorted events, equal line ids, dangling references, all kinds of
    stats.
    """
    space = xspace_class()()
    for _ in range(draw(st.integers(0, 3))):
        _fill_plane(draw, space.planes.add())
    space.hostnames.extend(draw(st.lists(TEXTS, min_size=0 if space.planes else 1, max_size=2)))
    space.errors.extend(draw(st.lists(TEXTS, max_size=1)))
    data: bytes = space.SerializeToString()
    return data


def _fill_plane(draw: st.DrawFn, plane: Any) -> None:
    plane.id, plane.name = (
        draw(INT64),
        draw(st.one_of(TEXTS, st.sampled_from([b"/device:GPU:0", b"/device:TPU:1"]))),
    )
    ids = draw(st.lists(INT64, max_size=4))
    names = draw(st.lists(st.one_of(TEXTS, st.sampled_from(STAT_NAMES)), max_size=6))
    for key, name in enumerate(names):
        plane.stat_metadata.add(
            key=draw(st.sampled_from([key, key * 2**40])), value={"id": key, "name": name}
        )
    stat_ids = [entry.key for entry in plane.stat_metadata] + [77]
    for key in ids:
        entry = plane.event_metadata.add(key=key)
        entry.value.name, entry.value.display_name = draw(TEXTS), draw(TEXTS)
        _fill_stats(draw, entry.value.stats, stat_ids)
    _fill_stats(draw, plane.stats, stat_ids)
    for _ in range(draw(st.integers(0, 3))):
        line = plane.lines.add(id=draw(st.integers(0, 2)), timestamp_ns=draw(INT64), display_id=draw(INT64))
        line.name, line.display_name = draw(st.one_of(TEXTS, st.just(COUNTER_LINE.encode()))), draw(TEXTS)
        for _ in range(draw(st.integers(0, 6))):
            event = line.events.add(metadata_id=draw(st.sampled_from([*ids, 5])), duration_ps=draw(INT64))
            if draw(st.integers(0, 5)):
                event.offset_ps = draw(INT64)
            else:
                event.num_occurrences = draw(INT64)
            _fill_stats(draw, event.stats, stat_ids)


def _fill_stats(draw: st.DrawFn, stats: Any, ids: list[int]) -> None:
    for _ in range(draw(st.integers(0, 3))):
        stat = stats.add(metadata_id=draw(st.sampled_from(ids)))
        kind = draw(
            st.sampled_from(
                ["double_value", "uint64_value", "int64_value", "str_value", "bytes_value", "ref_value", ""]
            )
        )
        if kind == "double_value":
            stat.double_value = draw(st.floats(allow_nan=False))
        elif kind in ("str_value", "bytes_value"):
            setattr(stat, kind, draw(TEXTS))
        elif kind == "ref_value":
            stat.ref_value = draw(st.sampled_from([abs(i) for i in ids]))
        elif kind:
            setattr(stat, kind, draw(INT64) if kind == "int64_value" else draw(st.integers(0, 2**64 - 1)))


def small_xspace() -> bytes:
    """A host plane of two threads with nested events and stats, as bytes to be damaged."""
    space = xspace_class()()
    plane = space.planes.add(id=1, name=b"/host:CPU")
    for key, name in enumerate([b"_r", b"step_num", b"note"], 1):
        plane.stat_metadata.add(key=key, value={"id": key, "name": name})
    for key, name in enumerate([b"train", b"MatMul:MatMul"], 1):
        plane.event_metadata.add(key=key, value={"id": key, "name": name})
    for thread in range(2):
        line = plane.lines.add(id=thread, name=b"thread %d" % thread, timestamp_ns=1000)
        for step in range(20):
            event = line.events.add(metadata_id=1, offset_ps=step * 1000, duration_ps=900)
            event.stats.add(metadata_id=1, int64_value=1)
            event.stats.add(metadata_id=2, int64_value=step)
            event.stats.add(metadata_id=3, str_value=b"text %d" % step)
            line.events.add(metadata_id=2, offset_ps=step * 1000 + 100, duration_ps=500)
    data: bytes = space.SerializeToString()
    return data


def native(data: bytes, source: Any = None) -> Trace:
    """Decode by the native decoder."""
    return decode(FileBytes(np.frombuffer(data, np.uint8)), "file", "host", source or BytesSource(data))


def plain(data: bytes) -> Trace:
    """Decode by the protobuf runtime."""
    return decode_protobuf(np.frombuffer(data, np.uint8), "file", "host")


class BytesSource(FileSource):
    """A source over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def block(self, position: int, size: int) -> np.ndarray:
        return np.frombuffer(self.data[position : position + size], np.uint8)


def content(trace: Trace) -> dict[str, Any]:
    """Everything a trace holds, strings and blobs resolved, so that traces of different decoders compare
    equal.
    """
    tables: dict[str, Any] = {}
    for name in ("planes", "lines", "metadata", "stat_names"):
        table = getattr(trace, name)
        columns = {key: values.tolist() for key, values in table.columns.items()}
        for key in ("name", "display_name"):
            if key in columns:
                columns[key] = [trace.strings.get(i) for i in columns[key]]
        tables[name] = columns
    tables["events"] = {key: trace.events[key].tolist() for key in ("start_ps", "duration_ps", "metadata")}
    tables["duration"] = trace.duration_ps
    tables["has stats"] = (trace.events["position"] > 0).tolist()
    tables["aggregates"] = sorted(
        zip(*(values.tolist() for values in trace.aggregates.columns.values()), strict=True)
    )
    for name in ("event_stats", "metadata_stats", "plane_stats"):
        tables[name] = _stats(trace, getattr(trace, name))
    tables["arguments"] = [trace.source.event_stats(trace, event) for event in range(trace.n_events)]
    counters = (
        trace.counters[name].tolist() for name in ("plane", "name", "series", "first_sample", "n_samples")
    )
    tables["counters"] = sorted(
        (
            plane,
            trace.strings.get(name),
            trace.strings.get(series),
            [tuple(column[first : first + n].tolist()) for column in trace.samples.columns.values()],
        )
        for plane, name, series, first, n in zip(*counters, strict=True)
    )
    tables["info"] = {key: value for key, value in trace.info.__dict__.items() if key != "damage"}
    return tables


def _stats(trace: Trace, stats: StatTable) -> list[tuple[Any, ...]]:
    rows = []
    columns = (stats.table[name].tolist() for name in ("owner", "key", "kind", "value", "size"))
    for row, (owner, key, kind, value, size) in enumerate(zip(*columns, strict=True)):
        told = stats.text_at(row) if kind == TEXT else trace.source.read(value, size) if size else value
        rows.append((owner, trace.strings.get(key), kind, told if kind != 6 or size else b"", size))
    return sorted(rows, key=lambda row: row[:2])
