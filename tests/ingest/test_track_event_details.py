"""Perfetto traces: clocks, counters, flows, names and limits, with several unlike parts of each."""

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
from tests.ingest.test_track_events import (
    BEGIN,
    BOOTTIME,
    CLEARED,
    COUNTER,
    END,
    INSTANT,
    MONOTONIC,
    REALTIME,
    US,
    Writer,
    arguments,
    rows,
)

MONOTONIC_COARSE = 4


@pytest.fixture
def writer() -> Writer:
    return Writer()


def snapshot(writer: Writer, *pairs: tuple[int, int], sequence: int = 1, unit_ns: int = 0) -> None:
    """A clock snapshot of (clock, time); `unit_ns`: of clocks of a sequence, 0: not stated."""
    packet = writer.packet(sequence)
    for clock, time in pairs:
        one = packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=time)
        if unit_ns and clock >= 64:
            one.unit_multiplier_ns = unit_ns


def instant(writer: Writer, time: int, name: str, clock: int = 0, sequence: int = 1) -> None:
    writer.event(time, INSTANT, name, 1, sequence)
    if clock:
        writer.trace.packet[-1].timestamp_clock_id = clock


def starts(trace: Trace) -> dict[str, int]:
    """Nanoseconds from the trace's start by name."""
    return {name: start // 1000 for _, _, name, start, _ in rows(trace)}


def arrows(trace: Trace) -> list[tuple[str, str]]:
    names = [name for _, _, name, _, _ in rows(trace)]
    pairs = zip(trace.flows["from_event"].tolist(), trace.flows["to_event"].tolist(), strict=True)
    return sorted((names[a], names[b]) for a, b in pairs)


# Clocks


def test_the_last_snapshot_with_both_clocks_dates_the_trace(writer: Writer, tmp_path: Path) -> None:
    """The time of day is 9,000,000 ns ahead, then 9,000,500; later snapshots lack one of the two clocks."""
    snapshot(writer, (BOOTTIME, 1_000), (REALTIME, 9_001_000))
    snapshot(writer, (BOOTTIME, 2_000), (REALTIME, 9_002_500))
    snapshot(writer, (BOOTTIME, 3_000), (MONOTONIC, 100))
    snapshot(writer, (REALTIME, 77), (MONOTONIC, 200))
    instant(writer, 7_000, "first")
    instant(writer, 9_000, "second")
    trace = writer.opened(tmp_path)
    assert starts(trace) == {"first": 0, "second": 2_000}
    assert trace.info.start_ns == 7_000 + 9_000_500


def test_without_the_time_since_boot_the_clock_of_most_packets_counts(writer: Writer, tmp_path: Path) -> None:
    """MONOTONIC_COARSE, of three events, is 6,000 ns ahead of MONOTONIC, of two, and 9,000 behind clock 9."""
    snapshot(writer, (MONOTONIC, 1_000), (MONOTONIC_COARSE, 7_000), (9, 16_000))
    for i, time in enumerate((8_000, 8_500, 9_900)):
        instant(writer, time, f"coarse {i}", MONOTONIC_COARSE)
    for i, time in enumerate((2_100, 2_200)):
        instant(writer, time, f"fine {i}", MONOTONIC)
    instant(writer, 17_300, "other", 9)
    assert starts(writer.opened(tmp_path)) == {
        "coarse 0": 0,
        "coarse 1": 500,
        "coarse 2": 1_900,
        "fine 0": 100,
        "fine 1": 200,
        "other": 300,
    }


def test_before_the_first_snapshot_its_difference_counts_and_clocks_it_lacks_stay(
    writer: Writer, tmp_path: Path
) -> None:
    instant(writer, 9_300, "before", MONOTONIC)
    instant(writer, 10_100, "unknown clock", 9)
    snapshot(writer, (BOOTTIME, 10_000), (MONOTONIC, 9_000))
    instant(writer, 10_000, "boot")
    snapshot(writer, (MONOTONIC, 9_600), (REALTIME, 5))
    instant(writer, 10_650, "no pair", MONOTONIC)
    assert starts(writer.opened(tmp_path)) == {"boot": 0, "unknown clock": 100, "before": 300, "no pair": 650}


def test_clocks_64_to_127_belong_to_their_sequence(writer: Writer, tmp_path: Path) -> None:
    """Both clocks of the first sequence are 1,000,000 ns behind; the second sequence knows only clock 128."""
    for clock in (63, 64, 127, 128):
        snapshot(writer, (BOOTTIME, 2_000_000), (clock, 1_000_000))
    instant(writer, 2_000_000, "boot")
    for sequence in (1, 2):
        for clock in (63, 64, 127, 128):
            at = 1_500_000 if sequence == 1 or clock in (63, 128) else 2_500_000
            instant(writer, at, f"{sequence}.{clock}", clock, sequence)
    found = starts(writer.opened(tmp_path))
    assert found.pop("boot") == 0
    assert found == dict.fromkeys((f"{s}.{c}" for s in (1, 2) for c in (63, 64, 127, 128)), 500_000)


def test_only_clocks_of_sequences_count_increments(writer: Writer, tmp_path: Path) -> None:
    packet = writer.packet()
    packet.clock_snapshot.clocks.add(clock_id=BOOTTIME, timestamp=50_000)
    packet.clock_snapshot.clocks.add(clock_id=MONOTONIC, timestamp=20_000, is_incremental=True)
    for time in (20_100, 20_300, 20_600):
        instant(writer, time, str(time), MONOTONIC)
    assert starts(writer.opened(tmp_path)) == {"20100": 0, "20300": 200, "20600": 500}


def test_units_of_clocks_are_bounded(writer: Writer, tmp_path: Path) -> None:
    """A unit of 1 s is believed; of more than that, it is 1 s."""
    for sequence, unit in ((1, 10**9), (2, 3 * 10**9), (3, 500)):
        snapshot(writer, (BOOTTIME, 10**10), (64, 4), sequence=sequence, unit_ns=unit)
        for time in (6, 9):
            instant(writer, time, f"{sequence}.{time}", 64, sequence)
    instant(writer, 10**10, "boot")
    assert starts(writer.opened(tmp_path)) == {
        "boot": 0,
        "1.6": 2 * 10**9,
        "1.9": 5 * 10**9,
        "2.6": 2 * 10**9,
        "2.9": 5 * 10**9,
        "3.6": 1_000,
        "3.9": 2_500,
    }


def test_a_unit_of_nothing_is_a_nanosecond(writer: Writer, tmp_path: Path) -> None:
    clocks = writer.packet().clock_snapshot.clocks
    clocks.add(clock_id=BOOTTIME, timestamp=9_000)
    clocks.add(clock_id=64, timestamp=500, unit_multiplier_ns=0)
    for time in (600, 900):
        instant(writer, time, str(time), 64)
    instant(writer, 9_000, "boot")
    assert starts(writer.opened(tmp_path)) == {"boot": 0, "600": 100, "900": 400}


def test_events_without_a_time_or_with_an_impossible_one_are_left_out_and_counted(
    writer: Writer, tmp_path: Path
) -> None:
    for time in (1_000, 3_000):
        instant(writer, time, str(time))
    for _ in range(2):
        writer.packet().track_event.type = INSTANT
    instant(writer, 2**61, "too late")
    trace = writer.opened(tmp_path)
    assert starts(trace) == {"1000": 0, "3000": 2_000}
    assert "entries that are not events or have no time: 3" in trace.info.damage
    assert trace.info.n_damaged == 3


# Counters


def samples(trace: Trace) -> dict[str, tuple[list[int], list[float]]]:
    """(ns, values) of the samples of each counter."""
    found = {}
    for i, name in enumerate(trace.counters["name"].tolist()):
        first, n = int(trace.counters["first_sample"][i]), int(trace.counters["n_samples"][i])
        found[trace.strings.get(name)] = (
            (trace.samples["time_ps"][first : first + n] // 1000).tolist(),
            trace.samples["value"][first : first + n].tolist(),
        )
    return found


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


def test_defaults_of_three_sequences(writer: Writer, tmp_path: Path) -> None:
    """Tracks and clocks by default; the later of two defaults of a sequence counts from then on."""
    snapshot(writer, (BOOTTIME, 50_000), (MONOTONIC, 20_000), (9, 1_000))
    for uuid in (3, 4, 5):
        writer.track(uuid, f"t{uuid}")
    instant(writer, 50_000, "boot")
    for sequence, track, clock in ((1, 3, MONOTONIC), (2, 4, 9)):
        defaults = writer.packet(sequence).trace_packet_defaults
        defaults.track_event_defaults.track_uuid, defaults.timestamp_clock_id = track, clock
    for sequence, time in ((1, 20_100), (2, 1_200), (3, 50_300)):
        writer.event(time, INSTANT, f"s{sequence}", 0, sequence)
    defaults = writer.packet(2).trace_packet_defaults
    defaults.track_event_defaults.track_uuid, defaults.timestamp_clock_id = 5, MONOTONIC
    writer.event(20_400, INSTANT, "s2 later", 0, 2)
    found = {name: (line, start // 1000) for _, line, name, start, _ in rows(writer.opened(tmp_path))}
    assert found == {
        "boot": ("Track 1", 0),
        "s1": ("t3", 100),
        "s2": ("t4", 200),
        "s3": ("Events without a track", 300),
        "s2 later": ("t5", 400),
    }


def test_a_span_of_a_thread_in_two_sequences(writer: Writer, tmp_path: Path) -> None:
    """A begin written by one sequence ends by another's end on the same track."""
    writer.thread(1, 7, 71, "main")
    writer.event(1_000, BEGIN, "whole", 1, 2)
    writer.event(4_000, END, "", 1, 1)
    assert rows(writer.opened(tmp_path)) == [("process 7", "main", "whole", 0, 3 * US // 1000 * 1000)]
