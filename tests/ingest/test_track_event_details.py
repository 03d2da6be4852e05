"""Perfetto traces: counters, flows, names and limits, with several unlike parts of each."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.perfetto import annotations, decoder, packets
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace
from tests.ingest.track_events import (
    BEGIN,
    CLEARED,
    COUNTER,
    END,
    INSTANT,
    US,
    Writer,
    arguments,
    instant,
    rows,
    samples,
)


@pytest.fixture
def writer() -> Writer:
    return Writer()


def arrows(trace: Trace) -> list[tuple[str, str]]:
    names = [name for _, _, name, _, _ in rows(trace)]
    pairs = zip(trace.flows["from_event"].tolist(), trace.flows["to_event"].tolist(), strict=True)
    return sorted((names[a], names[b]) for a, b in pairs)


# Counters


def test_increments_are_added_up_per_track_and_sequence(writer: Writer, tmp_path: Path) -> None:
    """Three counters of increments and one of values; two sequences add to the first one, each from 0."""
    for uuid, name in ((1, "read"), (2, "sent"), (3, "lost"), (4, "queue")):
        counter = writer.track(uuid, name).counter
        counter.is_incremental = uuid < 4
        counter.unit_multiplier = {1: 1, 2: 1000, 3: 0, 4: 2}[uuid]
    writer.trace.packet[0].track_descriptor.counter.unit = pb.CounterDescriptor.UNIT_SIZE_BYTES
    writer.trace.packet[1].track_descriptor.counter.unit = pb.CounterDescriptor.UNIT_TIME_NS
    writer.slice(0, 5000, "work", 9)
    for i, (read, sent, lost, queue) in enumerate(((10, 7, 1, 5), (20, -2, 0, 6), (5, 4, 2, 8))):
        for track, value in ((1, read), (2, sent), (3, lost), (4, queue)):
            writer.event(1000 * i + 100 * track, COUNTER, "", track, counter_value=value)
    for time, value in ((500, 100), (1500, 1)):
        writer.event(time, COUNTER, "", 1, sequence=2, counter_value=value)
    assert samples(writer.opened(tmp_path)) == {
        "read (bytes)": ([100, 500, 1100, 1500, 2100], [10, 100, 30, 101, 35]),
        "sent (ns)": ([200, 1200, 2200], [7000, 5000, 9000]),
        "lost": ([300, 1300, 2300], [1, 1, 3]),
        "queue": ([400, 1400, 2400], [10, 12, 16]),
    }


def test_a_counter_s_own_name_and_unit_come_first(writer: Writer, tmp_path: Path) -> None:
    counter = writer.track(1, "track").counter
    counter.unit, counter.unit_name = pb.CounterDescriptor.UNIT_COUNT, "tokens"
    writer.slice(0, 900, "work", 9)
    writer.event(100, COUNTER, "named", 1, counter_value=3)
    writer.event(200, COUNTER, "", 1, counter_value=4)
    writer.event(300, COUNTER, "", 1)  # no value
    assert samples(writer.opened(tmp_path)) == {"named": ([100], [3]), "track (tokens)": ([200], [4])}


# Flows


def test_flows_in_both_encodings_and_of_one_moment(writer: Writer, tmp_path: Path) -> None:
    """Flow 5 as varints a → b → c, flow 300 as fixed numbers a → c; flow 7 of one moment: the end is last."""
    for i, (name, old, old_ends, new, new_ends) in enumerate(
        (
            ("a", [5], [], [300], []),
            ("b", [5], [], [], []),
            ("c", [], [5], [], [300]),
        )
    ):
        event = writer.slice(100 * i, 100 * i + 50, name, 1 + i)
        event.flow_ids_old.extend(old)
        event.terminating_flow_ids_old.extend(old_ends)
        event.flow_ids.extend(new)
        event.terminating_flow_ids.extend(new_ends)
    writer.slice(900, 950, "end", 1).terminating_flow_ids.append(7)
    writer.slice(900, 950, "begin", 2).flow_ids.append(7)
    assert arrows(writer.opened(tmp_path)) == [("a", "b"), ("a", "c"), ("b", "c"), ("begin", "end")]


@pytest.mark.parametrize(("n", "kept"), [(64, range(64)), (66, range(2, 66))])
def test_the_last_64_flows_of_an_event_count(writer: Writer, tmp_path: Path, n: int, kept: range) -> None:
    writer.slice(0, 50, "from", 1).flow_ids.extend(range(1000, 1000 + n))
    for i in range(n):
        writer.slice(100 + i, 150 + i, f"to {i}", 10 + i).terminating_flow_ids.append(1000 + i)
    assert arrows(writer.opened(tmp_path)) == sorted(("from", f"to {i}") for i in kept)


def test_bound_events_of_converted_traces(writer: Writer, tmp_path: Path) -> None:
    """Number 9 leads out of a, through b and into c; d has no direction; a number of another is not
    theirs.
    """
    kinds = (("a", 2, 9), ("b", 3, 9), ("c", 1, 9), ("d", 0, 9), ("e", 2, 8), ("f", 1, 8))
    for i, (name, direction, number) in enumerate(kinds):
        event = writer.slice(100 * i, 100 * i + 50, name, 1 + i)
        fields = {"bind_id": number, **({"flow_direction": direction} if direction else {})}
        event.legacy_event.MergeFrom(pb.TrackEvent.LegacyEvent(**fields))
    assert arrows(writer.opened(tmp_path)) == [("a", "b"), ("b", "c"), ("e", "f")]


# Events converted from Chrome's JSON


def legacy(writer: Writer, time: int, phase: str, name: str = "", track: int = 1, **fields: int) -> None:
    event = writer.event(time, 0, name, track)
    event.legacy_event.phase = ord(phase)
    for key, value in fields.items():
        setattr(event.legacy_event, key, value)


def lengths(trace: Trace) -> dict[str, int]:
    return {name: length // 1000 for _, _, name, _, length in rows(trace)}


def test_async_events_are_paired_by_category(writer: Writer, tmp_path: Path) -> None:
    """x lasts from 0 to 2,000 and y from 1,000 to 4,000 and z to 7,000, all with the number 7."""
    interned = writer.packet(1, sequence_flags=CLEARED).interned_data.event_categories
    interned.add(iid=1, name="net")
    interned.add(iid=2, name="disk")
    for time, phase, category in (
        (0, "b", 1),
        (1_000, "b", 2),
        (1_500, "b", "own"),
        (2_000, "e", 1),
        (4_000, "e", 2),
        (7_000, "e", "own"),
    ):
        legacy(writer, time, phase, str(category), unscoped_id=7)
        event = writer.trace.packet[-1].track_event
        if isinstance(category, int):
            event.category_iids.append(category)
        else:
            event.category_iids.append(1)
            event.categories.append(category)
    assert lengths(writer.opened(tmp_path)) == {"1": 2_000, "2": 3_000, "own": 5_500}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("local_id", {"first": 3_000, "second": 5_000}),  # each process has its own number 7
        ("global_id", {"first": 6_000, "second": 2_000}),  # they nest
        ("unscoped_id", {"first": 6_000, "second": 2_000}),
    ],
)
def test_local_numbers_are_those_of_their_process(
    writer: Writer, tmp_path: Path, kind: str, expected: dict[str, int]
) -> None:
    for uuid, pid in ((1, 7), (2, 8)):
        writer.thread(uuid, pid, 70, "main")
    for time, phase, track in ((0, "b", 1), (1_000, "b", 2), (3_000, "e", 1), (6_000, "e", 2)):
        legacy(
            writer, time, phase, {1: "first", 2: "second"}[track] if phase == "b" else "", track, **{kind: 7}
        )
    assert lengths(writer.opened(tmp_path)) == expected


def test_processes_and_threads_of_single_events(writer: Writer, tmp_path: Path) -> None:
    """One has a process and a thread of its own, one a process, one a thread; numbers of 0 and −1 are none. A
    thread without events has no line.
    """
    writer.thread(5, 8, 82, "without events")
    writer.process(3, 7, "trainer")
    writer.thread(1, 7, 71, "main")
    writer.thread(2, 8, 81, "other")
    writer.process(4, 8, "loader")
    for i, (pid, tid) in enumerate(((8, 81), (8, 0), (0, 72), (0, 0), (-1, -1))):
        fields = {"pid_override": pid, "tid_override": tid}
        legacy(writer, 1000 * i, "X", f"e{i}", 1, duration_us=1, **{k: v for k, v in fields.items() if v})
    trace = writer.opened(tmp_path)
    assert sorted(trace.line_names) == ["main", "other", "thread 71", "thread 72"]
    assert sorted((name, plane, line) for plane, line, name, _, _ in rows(trace)) == [
        ("e0", "loader", "other"),
        ("e1", "loader", "thread 71"),
        ("e2", "trainer", "thread 72"),
        ("e3", "trainer", "main"),
        ("e4", "trainer", "main"),
    ]


def test_names_phases_and_durations_of_converted_events(writer: Writer, tmp_path: Path) -> None:
    """An interned name of the legacy event comes after one of the event; a phase beyond ASCII is none."""
    names = writer.packet(1, sequence_flags=CLEARED).interned_data.event_names
    for number, name in enumerate(("legacy", "interned"), 1):
        names.add(iid=number, name=name)
    for i, (own, number) in enumerate((("", 0), ("", 2), ("written", 0))):
        legacy(writer, 1000 * i, "X", own, name_iid=1, duration_us=3 + i)
        if number:
            writer.trace.packet[-1].track_event.MergeFrom(pb.TrackEvent(name_iid=number))
    legacy(writer, 9_000, "\x80", "beyond", duration_us=4)
    legacy(writer, 9_500, "X", "endless", duration_us=2**50)
    legacy(writer, 9_600, "X", "backward", duration_us=-5)
    assert lengths(writer.opened(tmp_path)) == {
        "legacy": 3_000,
        "interned": 4_000,
        "written": 5_000,
        "beyond": 0,
        "endless": 2**40 * 1000,
        "backward": 0,
    }


# Tracks


def test_names_of_tracks(writer: Writer, tmp_path: Path) -> None:
    """A track's name, else its static name, else the thread's; else that of the nearest one above."""
    writer.process(10, 7, "trainer")
    thread = writer.packet().track_descriptor
    thread.uuid, thread.parent_uuid, thread.name = 11, 10, "name"
    thread.thread.pid, thread.thread.tid, thread.thread.thread_name = 7, 71, "thread name"
    static = pb.TrackDescriptor(uuid=12, parent_uuid=10, static_name="static")
    writer.packet().track_descriptor.MergeFrom(static)
    for uuid, parent in ((13, 12), (14, 13), (15, 10)):
        below = writer.packet().track_descriptor
        below.uuid, below.parent_uuid = uuid, parent
    nameless = writer.packet().track_descriptor
    nameless.uuid, nameless.parent_uuid = 16, 10
    nameless.thread.pid, nameless.thread.tid = 7, 72
    for uuid in range(11, 17):
        writer.slice(uuid, uuid + 5, f"e{uuid}", uuid)
    assert {name: (plane, line) for plane, line, name, _, _ in rows(writer.opened(tmp_path))} == {
        "e11": ("trainer", "name"),
        "e12": ("trainer", "static"),
        "e13": ("trainer", "static"),
        "e14": ("trainer", "static"),
        "e15": ("trainer", "trainer"),
        "e16": ("trainer", "thread 72"),
    }


def test_the_last_description_of_a_track_counts(writer: Writer, tmp_path: Path) -> None:
    for name in ("first", "second", "last"):
        writer.track(1, name)
        writer.track(2, f"other {name}")
    writer.slice(0, 5, "a", 1)
    writer.slice(0, 5, "b", 2)
    assert sorted((line, name) for _, line, name, _, _ in rows(writer.opened(tmp_path))) == [
        ("last", "a"),
        ("other last", "b"),
    ]


@pytest.mark.parametrize(("n_between", "process"), [(63, "trainer"), (64, "process 0")])
def test_a_process_is_looked_for_64_tracks_up(
    writer: Writer, tmp_path: Path, n_between: int, process: str
) -> None:
    writer.process(1, 7, "trainer")
    for uuid in range(2, n_between + 3):
        writer.track(uuid, f"track {uuid}", uuid - 1)
    writer.slice(0, 5, "a", n_between + 2)
    assert [plane for plane, _, _, _, _ in rows(writer.opened(tmp_path))] == [process]


# Packets


def test_several_compressed_packets_and_others_keep_their_order(writer: Writer, tmp_path: Path) -> None:
    """Each clears the state and gives number 1 another name; the events between use it."""

    def named(name: str, n_events: int) -> bytes:
        inner = Writer()
        inner.packet(1, sequence_flags=CLEARED).interned_data.event_names.add(iid=1, name=name)
        for i in range(n_events):
            inner.event(1_000 + i, INSTANT, f"in {name} {i}", 1)
        return zlib.compress(inner.trace.SerializeToString())

    for i, (name, n_events) in enumerate((("a", 2), ("b", 0), ("c", 1))):
        writer.trace.packet.add(compressed_packets=named(name, n_events))
        writer.event(10 + i, INSTANT, "", 1, name_iid=1)
    names = [name for _, _, name, _, _ in rows(writer.opened(tmp_path))]
    assert names == ["a", "b", "c", "in a 0", "in c 0", "in a 1"]


def test_compressed_packets_are_bounded(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Writer()
    inner.event(10, INSTANT, "packed", 1)
    content = inner.trace.SerializeToString()
    for _ in range(2):
        writer.trace.packet.add(compressed_packets=zlib.compress(content))
    size = len(writer.trace.SerializeToString()) + 2 * len(content)
    monkeypatch.setattr(packets, "_MOST_UNPACKED_BYTES", size)
    assert len(rows(writer.opened(tmp_path))) == 2
    monkeypatch.setattr(packets, "_MOST_UNPACKED_BYTES", size - 1)
    with pytest.raises(TraceFormatError, match=r"host\.pftrace contains more than 4 GiB of compressed"):
        writer.opened(tmp_path)


# Arguments


def test_arguments_of_arguments(writer: Writer, tmp_path: Path) -> None:
    """Lists of two events, one in a list; of the levels below an argument, eight are read."""
    for number, name in ((1, "e"), (2, "f")):
        event = writer.event(10 * number, INSTANT, name, 1)
        for key in ("x", "y"):
            annotation = event.debug_annotations.add(name=key)
            for value in range(number + 1):
                annotation.array_values.add(int_value=10 * number + value)
    row = event.debug_annotations.add(name="rows").array_values.add()
    row.array_values.add(string_value="p")
    row.array_values.add(string_value="q")
    deep = writer.event(30, INSTANT, "deep", 1).debug_annotations.add(name="d")
    for level in range(10):
        deep.dict_entries.add(name=f"v{level}", int_value=level)
        deep = deep.dict_entries.add(name="d")
    found = arguments(writer.opened(tmp_path))
    assert found["e"] == {"x[0]": 10, "x[1]": 11, "y[0]": 10, "y[1]": 11}
    assert found["f"] == {
        **{f"{key}[{i}]": 20 + i for key in "xy" for i in range(3)},
        "rows[0][0]": "p",
        "rows[0][1]": "q",
    }
    assert found["deep"] == {f"{'d.' * (level + 1)}v{level}": level for level in range(8)}


def test_values_of_every_kind_by_number_and_by_text(writer: Writer, tmp_path: Path) -> None:
    """An unknown number is no text; a text may be the file's first one, and equal to a name."""
    interned = writer.packet(1, sequence_flags=CLEARED).interned_data
    interned.event_names.add(iid=1, name="first")
    interned.debug_annotation_names.add(iid=2, name="by number")
    interned.debug_annotation_string_values.add(iid=2, str=b"value")
    interned.event_categories.add(iid=2, name="category")
    event = writer.event(10, INSTANT, "", 1, name_iid=1)
    for fields in (
        {"name": "own", "string_value": "first"},
        {"name_iid": 2, "string_value_iid": 2},
        {"name": "unknown value", "string_value_iid": 9},
        {"name_iid": 9, "int_value": 4},
        {"name": "zero", "int_value": 0},
        {"name": "most", "uint_value": 2**63},
        {"name": "least", "int_value": -(2**63)},
        {"name": "nothing"},
        {"name": "empty", "string_value": ""},
    ):
        event.debug_annotations.add(**fields)
    assert arguments(writer.opened(tmp_path))["first"] == {
        "own": "first",
        "by number": "value",
        "zero": 0,
        "most": 2**63,
        "least": -(2**63),
    }


def test_tracks_of_large_numbers_have_hexadecimal_names(writer: Writer, tmp_path: Path) -> None:
    for uuid in (0x1F, 2**63 - 1, 2**63, 2**64 - 2):
        writer.slice(10, 20, f"{uuid:x}", uuid)
    assert sorted((line, name) for _, line, name, _, _ in rows(writer.opened(tmp_path))) == [
        (f"Track {uuid}", uuid) for uuid in ("1f", "7fffffffffffffff", "8000000000000000", "fffffffffffffffe")
    ]


def test_long_names_of_arguments_are_cut(writer: Writer, tmp_path: Path) -> None:
    longest = annotations._LONGEST_NAME
    for name, size in (("whole", longest - 2), ("cut", longest - 1)):
        annotation = writer.event(10, INSTANT, name, 1).debug_annotations.add(name="d")
        annotation.dict_entries.add(name="k" * size, int_value=1)
    found = arguments(writer.opened(tmp_path))
    assert found["whole"] == {"d." + "k" * (longest - 2): 1}
    assert found["cut"] == {"d." + "k" * (longest - 2): 1}


# What is refused


def test_too_many_events_or_tracks_are_refused_by_name(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(3):
        writer.event(10 * i, INSTANT, f"e{i}", 1 + i)
    for module, name, words in (
        (decoder, "MAX_EVENTS", "3 events, more than fit"),
        (schema, "MAX_LINES", "3 tracks, more than a profile has"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, 3)
            assert len(rows(writer.opened(tmp_path))) == 3
            patched.setattr(module, name, 2)
            with pytest.raises(TraceFormatError, match=rf"^host\.pftrace contains {words}") as caught:
                writer.opened(tmp_path)
            assert caught.value.remedy == "Record for a shorter time."


def test_damage_before_the_first_event_is_not_a_lack_of_events(writer: Writer, tmp_path: Path) -> None:
    writer.track(1, "t")
    whole = writer.trace.SerializeToString()
    instant(writer, 5, "e")
    path = tmp_path / "cut.pftrace"
    path.write_bytes(writer.trace.SerializeToString()[: len(whole) + 4])
    with pytest.raises(TraceFormatError, match="damaged before its first track event") as caught:
        open_trace(str(path))
    assert caught.value.offset == len(whole)


def test_a_span_of_a_thread_in_two_sequences(writer: Writer, tmp_path: Path) -> None:
    """A begin written by one sequence ends by another's end on the same track."""
    writer.thread(1, 7, 71, "main")
    writer.event(1_000, BEGIN, "whole", 1, 2)
    writer.event(4_000, END, "", 1, 1)
    assert rows(writer.opened(tmp_path)) == [("process 7", "main", "whole", 0, 3 * US // 1000 * 1000)]
