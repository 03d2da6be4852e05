"""Tables of streaming trace viewers: the same trace as from a trace.json with the same events, whatever the
table's blocks, and no harm from damaged ones.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.errors import NotATrace, StorageError, TraceFormatError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.arguments import all_arguments, argument, names_of
from tb_tpuprof.ingest.storage import column_cache, leveldb
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.trace.trace import Trace
from tests.ingest.messages import Fixed, written
from tests.ingest.tables import Entry, block_of, finished, masked, plain_crc32c, plain_table, stored, table_of
from tests.ingest.test_other_files import CORPUS, needs_corpus, placed, rows
from tests.plain_protobuf import plain_fields

US = 10**6  # ps
NAMES = {77: "fusion.3", 2**63 + 5: "kind:HtoD size:9"}
DEVICES = {
    2: ("h0 /device:TPU:0", {1: "XLA Ops", 5: "XLA Modules"}),
    3: ("h0 /device:GPU:1", {7: "Stream #7"}),
    701: ("h0 /host:CPU", {2**32 + 9: "python"}),
}


def described(n_events: int = 0) -> bytes:
    """The Trace message."""
    devices = []
    for key, (name, lines) in DEVICES.items():
        listed = [
            (3, written((1, line), (2, written((1, title), (2, line))))) for line, title in lines.items()
        ]
        devices.append((1, written((1, key), (2, written((1, name), (2, key), *listed)))))
    names = [(8, written((1, Fixed(key)), (2, name))) for key, name in NAMES.items()]
    return written(*devices, (4, 0), (5, 10**9), *names, *([(7, n_events)] if n_events else []))


def arguments(**values: Any) -> bytes:
    """Raw data with arguments: whole numbers as int64 (negative) or uint64, texts, doubles, references."""
    listed = []
    for name, value in values.items():
        number = 6 if isinstance(value, Fixed) else 4 if isinstance(value, float) else 2
        if isinstance(value, int) and not isinstance(value, Fixed):
            number = 5 if value < 0 else 3
        listed.append((1, written((1, name), (number, value))))
    return written((2, written(*listed)))


def key_of(level: str, time_ps: int, serial: int = 0) -> bytes:
    return level.encode() + struct.pack(">QB", time_ps, serial)


EVENTS: list[Entry] = [
    (
        key_of("1", 5 * US),
        written((1, 701), (2, 2**32 + 9), (3, "train"), (5, 4), (7, 90 * US), (8, arguments(step_num=4))),
    ),
    (
        key_of("1", 9 * US),
        written((1, 2), (2, 5), (3, "jit_step(7)"), (5, -1), (7, 40 * US), (8, arguments(run_id=2**60))),
    ),
    (
        key_of("2", 10 * US),
        written(
            (1, 2),
            (2, 1),
            (7, 30 * US),
            (8, arguments(hlo_category="fusion", flops=2**40, tf_op="", bytes_accessed=11)),
            (9, 66),
            (10, 3),
            (12, Fixed(77)),
        ),
    ),
    (
        key_of("2", 10 * US, 1),
        written(
            (1, 3),
            (2, 7),
            (3, "memcpy"),
            (7, 2 * US + 1),
            (
                8,
                arguments(
                    memcpy_details=Fixed(2**63 + 5),
                    correlation_id=9,
                    theoretical_occupancy_pct=62.5,
                    offset=-3,
                ),
            ),
        ),
    ),
    (key_of("3", 11 * US + 3), written((1, 701), (2, 2**32 + 9), (3, "launch"), (7, 500), (9, 66), (10, 1))),
    (key_of("4", 12 * US), written((1, 701), (3, "queue"), (8, arguments(depth=3, bytes=2.5)))),
    (key_of("4", 14 * US), written((1, 701), (3, "queue"), (8, arguments(depth=8, bytes=1.25)))),
    (key_of("5", 20 * US), written((1, 701), (3, "request"), (7, 6 * US), (9, 5), (10, 2))),
    (key_of("5", 21 * US), written((1, 701), (3, "other"), (9, 6), (10, 1))),
    (key_of("D", 29 * US), written((1, 701), (3, "other"), (9, 6), (10, 3))),
    (key_of("D", 30 * US), written((1, 701), (2, 2**32 + 9), (3, "mark"))),
]
TABLE = table_of([(b"/trace", described()), *EVENTS])


def as_json() -> bytes:
    """The same events as the viewer writes them."""
    events: list[dict[str, Any]] = []
    for device, (name, lines) in DEVICES.items():
        title = {"name": name.removeprefix("h0 ")}
        events.append({"ph": "M", "pid": device, "name": "process_name", "args": title})
        events += [
            {"ph": "M", "pid": device, "tid": line, "name": "thread_name", "args": {"name": title}}
            for line, title in lines.items()
        ]
    python = {"pid": 701, "tid": 2**32 + 9}
    events += [
        {"ph": "X", **python, "name": "train", "ts": 5, "dur": 90, "args": {"group_id": 4, "step_num": 4}},
        {
            "ph": "X",
            "pid": 2,
            "tid": 5,
            "name": "jit_step(7)",
            "ts": 9,
            "dur": 40,
            "args": {"group_id": -1, "run_id": 2**60},
        },
        {
            "ph": "X",
            "pid": 2,
            "tid": 1,
            "name": "fusion.3",
            "ts": 10,
            "dur": 30,
            "bind_id": 66,
            "flow_in": True,
            "args": {"hlo_category": "fusion", "flops": 2**40, "tf_op": "", "bytes_accessed": 11},
        },
        {
            "ph": "X",
            "pid": 3,
            "tid": 7,
            "name": "memcpy",
            "ts": 10,
            "dur": 2.000001,
            "args": {
                "memcpy_details": "kind:HtoD size:9",
                "correlation_id": 9,
                "theoretical_occupancy_pct": 62.5,
                "offset": -3,
            },
        },
        {
            "ph": "X",
            **python,
            "name": "launch",
            "ts": 11.000003,
            "dur": 0.0005,
            "bind_id": 66,
            "flow_out": True,
        },
        {"ph": "C", "pid": 701, "name": "queue", "ts": 12, "args": {"depth": 3, "bytes": 2.5}},
        {"ph": "C", "pid": 701, "name": "queue", "ts": 14, "args": {"depth": 8, "bytes": 1.25}},
        {"ph": "b", "pid": 701, "name": "request", "ts": 20, "id": 5},
        {"ph": "e", "pid": 701, "name": "request", "ts": 26, "id": 5},
        {"ph": "b", "pid": 701, "name": "other", "ts": 21, "id": 6},
        {"ph": "e", "pid": 701, "name": "other", "ts": 29, "id": 6},
        {"ph": "X", **python, "name": "mark", "ts": 30, "dur": 0},
    ]
    return json.dumps({"traceEvents": events}).encode()


def facts_of(trace: Trace) -> dict[str, Any]:
    """Everything of a trace except file positions and the numbers of its rows."""
    text = trace.strings.get
    all_rows = rows(trace)
    stats = trace.event_stats.table
    own_keys = ("(end)",)
    found_stats = {
        (all_rows[owner][2], text(key), kind, text(value) if kind == 5 else value)
        for owner, key, kind, value in zip(
            *(stats[name].tolist() for name in ("owner", "key", "kind", "value")), strict=True
        )
        if text(key) not in own_keys
    }
    named = trace.metadata_stats.table
    metadata = [text(int(i)) for i in trace.metadata["name"]]
    found_named = {
        (metadata[owner], text(key), kind, text(value) if kind == 5 else value)
        for owner, key, kind, value in zip(
            *(named[name].tolist() for name in ("owner", "key", "kind", "value")), strict=True
        )
        if text(key) != "symbol_id"
    }
    counters = {
        (text(name), text(series)): [
            (trace.samples["time_ps"][i], trace.samples["value"][i]) for i in range(first, first + n)
        ]
        for name, series, first, n in zip(
            *(trace.counters[name].tolist() for name in ("name", "series", "first_sample", "n_samples")),
            strict=True,
        )
    }
    flows = {
        (all_rows[a][2], all_rows[b][2])
        for a, b in zip(trace.flows["from_event"].tolist(), trace.flows["to_event"].tolist(), strict=True)
    }
    lines = {
        (text(int(trace.planes["name"][plane])), text(name), n)
        for plane, name, n in zip(
            *(trace.lines[name].tolist() for name in ("plane", "name", "n_events")), strict=True
        )
    }
    return {
        "rows": sorted(all_rows),
        "stats": found_stats,
        "named": found_named,
        "counters": counters,
        "flows": flows,
        "lines": lines,
    }


@pytest.mark.parametrize("name", ["h0.SSTABLE", "h0.tracetable", "called_otherwise.xplane.pb"])
@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("per_block", [1, 4, 100])
def test_a_table_equals_a_trace_json(tmp_path: Path, name: str, is_packed: bool, per_block: int) -> None:
    data = table_of([(b"/trace", described()), *EVENTS], is_packed, per_block)
    trace = open_trace(placed(tmp_path, name, data))
    expected = open_trace(placed(tmp_path, "same.trace.json", as_json()))
    assert facts_of(trace) == facts_of(expected)
    assert trace.info.n_damaged == expected.info.n_damaged == 0
    assert not trace.info.notes
    assert len(rows(trace)) == 8
    assert ("/device:GPU:1", "Stream #7", "memcpy", "", 5 * US, 2 * US + 1) in rows(trace)
    assert facts_of(trace)["flows"] == {("launch", "fusion.3")}


def test_all_arguments_of_an_event_are_read_from_the_file(tmp_path: Path) -> None:
    trace = open_trace(placed(tmp_path, "h0.SSTABLE", TABLE))
    found = {row[2]: trace.source.event_stats(trace, i) for i, row in enumerate(rows(trace))}
    assert found["memcpy"] == [
        ("memcpy_details", "kind:HtoD size:9"),
        ("correlation_id", 9),
        ("theoretical_occupancy_pct", 62.5),
        ("offset", -3),
    ]
    assert found["train"] == [("group_id", 4), ("step_num", 4)]
    assert found["jit_step(7)"] == [("group_id", -1), ("run_id", 2**60)]
    assert found["mark"] == []
    placed(tmp_path, "h0.SSTABLE", TABLE + b"x")
    with pytest.raises(StorageError, match="changed"):
        trace.source.event_stats(trace, 0)


def test_a_search_finds_the_arguments_of_all_events(tmp_path: Path) -> None:
    path = placed(tmp_path, "h0.SSTABLE", TABLE)
    trace = open_trace(path)
    names = [row[2] for row in rows(trace)]
    (table,) = all_arguments(trace)
    found = {(names[owner], name) for name in table.names() for owner in table.ints(name).owner.tolist()}
    assert {("memcpy", "offset"), ("train", "group_id"), ("fusion.3", "flops")} <= found
    offsets = argument(trace, "offset").ints("offset")
    assert [
        (names[i], value) for i, value in zip(offsets.owner.tolist(), offsets.value.tolist(), strict=True)
    ] == [("memcpy", -3)]
    assert {"memcpy_details", "offset", "run_id", "depth", "tf_op"} - {"depth"} <= set(names_of(trace))


def test_arguments_may_be_in_a_second_table(tmp_path: Path) -> None:
    """As newer viewers write them: counters keep their own, and an event may have none."""

    def fields_of(value: bytes, is_wanted: Any) -> bytes:
        from tb_tpuprof.trace.wire import read_fields

        kept = [
            (n, v if w != 1 else Fixed(int.from_bytes(v, "little")))  # type: ignore[arg-type]
            for n, w, v in read_fields(value)
        ]
        return written(*(pair for pair in kept if is_wanted(pair[0])))

    def is_counter(value: bytes) -> bool:
        return not {2, 9} & {n for n, _ in plain_fields(value)}

    own = [(key, value if is_counter(value) else fields_of(value, lambda n: n != 8)) for key, value in EVENTS]
    others = [(key, fields_of(value, lambda n: n == 8)) for key, value in EVENTS if not is_counter(value)]
    trace_entry = (b"/trace", described())
    path = placed(tmp_path, "h0.SSTABLE", table_of([trace_entry, *own]))
    whole = open_trace(placed(tmp_path / "whole", "h0.SSTABLE", TABLE))
    assert facts_of(open_trace(path))["stats"] != facts_of(whole)["stats"]
    placed(tmp_path, "h0.metadata.SSTABLE", table_of([trace_entry, *others], per_block=2))
    trace = open_trace(path)
    assert facts_of(trace) == facts_of(whole)
    for event in range(trace.n_events):
        assert trace.source.event_stats(trace, event) == whole.source.event_stats(whole, event)
    (found,), (expected,) = all_arguments(trace), all_arguments(whole)
    assert sorted(found.names()) == sorted(expected.names())
    placed(tmp_path, "h0.metadata.SSTABLE", b"damaged")
    assert facts_of(open_trace(path))["rows"] == facts_of(whole)["rows"]


def test_a_table_that_lacks_events_says_so(tmp_path: Path) -> None:
    """It names the number of the profile's events; at one time it holds 256."""
    n = len(EVENTS)
    for stated, note in ((n, ()), (n + 1, ("lacks 1 events",)), (n + 1200, ("lacks 1,200 events",))):
        trace = open_trace(placed(tmp_path, "h.SSTABLE", table_of([(b"/trace", described(stated)), *EVENTS])))
        assert len(trace.info.notes) == len(note)
        assert all(words in text for words, text in zip(note, trace.info.notes, strict=True))
        assert not trace.info.n_damaged


def test_a_damaged_block_is_left_out_and_counted(tmp_path: Path) -> None:
    data = bytearray(table_of([(b"/trace", described()), *EVENTS], False, 4))
    data[data.index(b"queue")] ^= 1  # in the second of three blocks
    trace = open_trace(placed(tmp_path, "h.SSTABLE", bytes(data)))
    assert trace.info.n_damaged == 1
    assert "damaged blocks, whose events are missing: 1" in trace.info.damage
    assert {row[2] for row in rows(trace)} == {"train", "jit_step(7)", "fusion.3", "request", "other", "mark"}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[: len(data) // 2] + data[-48:], "index is damaged"),
        (lambda data: bytes(40) + data[-8:], "index is damaged"),
        (lambda data: data[:-48] + bytes(40) + data[-8:], "index is damaged"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "not of a trace, or its first block"),
        (lambda _: table_of(EVENTS), "not of a trace"),
        (lambda _: table_of([(b"/trace" * 4, described()), *EVENTS]), "index is damaged|not of a trace"),
        (lambda data: data[:-8], "neither an XSpace"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, damage: Any, words: str) -> None:
    with pytest.raises((TraceFormatError, NotATrace), match=words) as caught:
        open_trace(placed(tmp_path, "h.SSTABLE", damage(TABLE)))
    assert caught.value.remedy
    if "not of a trace" in words:
        assert caught.value.offset == -1


def test_hostile_blocks_cost_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is named often is unpacked once; one that claims more than Snappy can pack, never."""
    first = stored(block_of([(b"/trace", described()), *EVENTS[:2]]), True)
    place = bytes([0]) + written((1, len(first) - 5))[1:]
    index = [(key_of("1", i), place) for i in range(2000)]
    trace = open_trace(placed(tmp_path, "often.SSTABLE", finished(first, index)))
    assert trace.n_events == 2
    assert trace.info.n_damaged == 1999
    bomb = written((1, 2**40))[1:] + b"\x00a"
    content = bomb + b"\x01"
    bomb_block = content + struct.pack("<I", masked(plain_crc32c(content)))
    bombed = finished(
        first + bomb_block,
        [(EVENTS[1][0], place), (EVENTS[2][0], written((1, len(first)))[1:] + bytes([len(bomb)]))],
    )
    trace = open_trace(placed(tmp_path, "bomb.SSTABLE", bombed))
    assert (trace.n_events, trace.info.n_damaged) == (2, 1)
    size = leveldb.Table(np.frombuffer(TABLE, np.uint8), "x").size_bytes
    for memory, is_refused in ((4 * size, False), (4 * size - 4, True)):
        monkeypatch.setattr(leveldb, "machine_memory", lambda memory=memory: memory)
        path = placed(tmp_path, "large.SSTABLE", TABLE)
        if is_refused:
            with pytest.raises(TraceFormatError, match="unpacks to more than"):
                open_trace(path)
        else:
            assert open_trace(path).n_events == 8


def test_events_beyond_int64_are_left_out_and_counted(tmp_path: Path) -> None:
    entries = [
        (key_of("1", 2**61 - 1), written((1, 701), (2, 1), (3, "last"), (7, 5))),
        (key_of("1", 2**61), written((1, 701), (2, 1), (3, "far"), (7, 5))),
        (key_of("1", 2**62), written((1, 701), (2, 1), (3, "farther"), (7, 5))),
        (key_of("2", 2**61 - 9), written((1, 701), (2, 1), (3, "long"), (7, 2**61))),
    ]
    trace = open_trace(placed(tmp_path, "h.SSTABLE", table_of([(b"/trace", described()), *entries])))
    found = {row[2]: row[4:] for row in rows(trace)}
    assert {name: duration for name, (_, duration) in found.items()} == {"last": 5, "long": 0}
    assert found["last"][0] - found["long"][0] == 8
    assert trace.info.n_damaged == 2
    assert "entries that are not events or have no time: 2" in trace.info.damage


def test_names_of_devices_are_cut_and_numbers_that_are_none_count_as_0(tmp_path: Path) -> None:
    """A device whose number is a byte, and names of 1,000 bytes and of one more."""

    def named(key: Any, name: str) -> tuple[int, bytes]:
        return 1, written((1, key), (2, written((1, name), (3, written((1, 1), (2, written((1, "line"))))))))

    devices = written(named(b"x", "/host:CPU"), named(1, "a" * 1000), named(2, "b" * 1001))
    entries = [
        (key_of("1", device), written((1, device), (2, 1), (3, f"e{device}"), (7, 1))) for device in range(3)
    ]
    trace = open_trace(placed(tmp_path, "h.SSTABLE", table_of([(b"/trace", devices), *entries])))
    assert {(row[0], row[2]) for row in rows(trace)} == {
        ("/host:CPU", "e0"),
        ("a" * 1000, "e1"),
        ("b" * 1000, "e2"),
    }


def test_lines_that_the_viewer_derived_stay_derived(tmp_path: Path) -> None:
    """By their numbers, on devices only: a thread of the host may have any number."""
    numbers = (0xDEADBEEE, 0xDEADBEEF, 0xDEADBEEF + 4, 0xDEADBEEF + 499, 0xDEADBEEF + 500)
    entries = [
        (key_of("1", i, plane), written((1, device), (2, number), (3, "e"), (7, 1)))
        for i, number in enumerate(numbers)
        for plane, device in enumerate((3, 701))
    ]
    trace = open_trace(placed(tmp_path, "h.SSTABLE", table_of([(b"/trace", described()), *entries])))
    is_derived = planes(trace).is_derived_line.tolist()
    names = [trace.plane_names[plane] for plane in trace.lines["plane"].tolist()]
    assert sorted(zip(names, is_derived, strict=True)) == [
        ("/device:GPU:1", False),
        ("/device:GPU:1", False),
        *[("/device:GPU:1", True)] * 3,
        *[("/host:CPU", False)] * 5,
    ]


@pytest.mark.skipif(not IS_COMPILED, reason="only natively decoded traces are cached")
def test_the_cache_keeps_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    state = file_state(placed(tmp_path, "h0.SSTABLE", TABLE))
    trace = open_trace(state.path)
    assert column_cache.save(state, trace)
    loaded = column_cache.load(state)
    assert loaded is not None
    assert facts_of(loaded) == facts_of(trace)
    assert loaded.source.event_stats(loaded, 2) == trace.source.event_stats(trace, 2)


def test_a_large_table_is_recognized_by_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.xspace.outline_bytes.LARGE_BYTES", 16)
    assert open_trace(placed(tmp_path, "h0.SSTABLE", TABLE)).n_events == 8
    assert open_trace(placed(tmp_path, "h1.SSTABLE", gzip.compress(TABLE))).n_events == 8


@needs_corpus
def test_tables_of_the_corpus_equal_an_independent_count() -> None:
    """By a plain reader: events of each name and the sum of their durations on each line."""
    files = sorted(CORPUS.rglob("*.SSTABLE"))
    assert files
    for path in files:
        (key, described_by), *entries = plain_table(path.read_bytes())
        assert key == b"/trace"
        names, lines = {}, {}
        for number, value in plain_fields(described_by):
            if number == 8:
                fields = dict(plain_fields(value))
                names[fields[1]] = fields[2].decode()
            elif number == 1:
                fields = dict(plain_fields(value))
                device = list(plain_fields(fields[2]))
                plane = next(value for number, value in device if number == 1).decode().split(" ")[-1]
                for number, value in device:
                    if number == 3:
                        line = dict(plain_fields(value))
                        lines[fields[1], line[1]] = plane, dict(plain_fields(line[2]))[1].decode()
        expected: Counter[Any] = Counter()
        total: Counter[Any] = Counter()
        of_name: Counter[Any] = Counter()
        for _, value in entries:
            fields = dict(plain_fields(value))
            name = names[fields[12]] if 12 in fields else fields[3].decode()
            where = lines[fields[1], fields[2]]
            expected[(*where, name)] += 1
            total[where] += fields.get(7, 0)
            of_name[(*where, name)] += fields.get(7, 0)
        trace = open_trace(str(path))
        found: Counter[Any] = Counter()
        found_total: Counter[Any] = Counter()
        for plane, line, name, display, _, duration in rows(trace):
            found[plane, line, display or name] += 1
            found_total[plane, line] += duration
        assert found == expected, os.path.basename(path)
        assert found_total == total
        kernels = get_tool("kernel_stats").run(Session(str(path), cache=False), None, {})
        on_streams = sum(
            time
            for (_, line, name), time in of_name.items()
            if line.startswith("Stream") and not name.startswith(("Memcpy", "Memset"))
        )
        assert kernels.scalars["kernel_time_ps"].value == on_streams > 0
