"""Perfetto traces, written with Perfetto's own protobuf classes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tests.ingest.track_events import (
    BEGIN,
    BOOTTIME,
    CLEARED,
    COUNTER,
    END,
    INSTANT,
    MONOTONIC,
    NEEDS_STATE,
    REALTIME,
    US,
    Writer,
    arguments,
    rows,
    samples,
)


@pytest.fixture
def writer() -> Writer:
    return Writer()


def test_slices_of_threads_and_of_tracks_of_their_own(writer: Writer, tmp_path: Path) -> None:
    """Three threads of two processes, a track below a process, and one below that without a name."""
    writer.process(10, 7, "trainer")
    writer.process(20, 8, "loader")
    for uuid, pid, tid, name in ((11, 7, 71, "main"), (12, 7, 72, "worker"), (21, 8, 81, "main")):
        writer.thread(uuid, pid, tid, name)
    writer.track(13, "Requests", 10)
    writer.track(14, "", 13)
    writer.event(1000, BEGIN, "step", 11)
    writer.slice(1500, 3500, "matmul", 11)
    writer.event(9000, END, "", 11)
    writer.slice(2000, 2700, "copy", 12)
    writer.slice(2100, 8000, "read", 21)
    writer.slice(1000, 5000, "request 1", 13)
    writer.slice(6000, 6500, "request 2", 14)
    writer.event(4000, INSTANT, "mark", 12)
    assert sorted(rows(writer.opened(tmp_path))) == sorted(
        [
            ("trainer", "main", "step", 0, 8000 * 1000),
            ("trainer", "main", "matmul", 500_000, 2000 * 1000),
            ("trainer", "worker", "copy", 1_000_000, 700_000),
            ("trainer", "worker", "mark", 3_000_000, 0),
            ("loader", "main", "read", 1_100_000, 5_900_000),
            ("trainer", "Requests", "request 1", 0, 4_000_000),
            ("trainer", "Requests", "request 2", 5_000_000, 500_000),
        ]
    )


def test_tracks_without_a_description_or_with_a_cycle_above_them(writer: Writer, tmp_path: Path) -> None:
    writer.track(5, "cycle", 6)
    writer.track(6, "above", 5)
    writer.track(7, "orphan", 99)
    writer.slice(1, 2, "a", 5)
    writer.slice(1, 3, "b", 0xABC)
    writer.slice(1, 4, "c", 7)
    writer.slice(1, 5, "d", 0)
    assert {(line, name) for _, line, name, _, _ in rows(writer.opened(tmp_path))} == {
        ("cycle", "a"),
        ("Track abc", "b"),
        ("orphan", "c"),
        ("Events without a track", "d"),
    }


def test_names_are_those_of_their_sequence_until_it_clears_its_state(writer: Writer, tmp_path: Path) -> None:
    """Number 1 is `a` in the first sequence, `b` in the second, `c` in the first after it was cleared."""

    def interned(sequence: int, name: str, flags: int = 0) -> None:
        packet = writer.packet(sequence, sequence_flags=flags)
        packet.interned_data.event_names.add(iid=1, name=name)
        packet.interned_data.event_categories.add(iid=4, name=f"category {name}")

    def numbered(sequence: int, start_ns: int) -> None:
        writer.event(start_ns, BEGIN, "", 1, sequence, name_iid=1, category_iids=[4])
        writer.event(start_ns + 10, END, "", 1, sequence)

    interned(1, "a", CLEARED)
    interned(2, "b", CLEARED)
    numbered(1, 100)
    numbered(2, 200)
    interned(1, "c", CLEARED)
    numbered(1, 300)
    numbered(2, 400)
    writer.packet(1, sequence_flags=CLEARED)
    numbered(1, 500)
    names = [(name, start // 1000 + 100) for _, _, name, start, _ in rows(writer.opened(tmp_path))]
    assert names == [("a", 100), ("b", 200), ("c", 300), ("b", 400), ("(no name)", 500)]


def test_defaults_of_a_sequence(writer: Writer, tmp_path: Path) -> None:
    """Track 3 by default, until the state is cleared; an event's own track comes first."""
    writer.track(3, "default")
    writer.track(4, "own")
    writer.packet(1, sequence_flags=CLEARED).trace_packet_defaults.track_event_defaults.track_uuid = 3
    writer.slice(10, 20, "a", 0)
    writer.slice(10, 20, "b", 4)
    writer.slice(10, 20, "other sequence", 0, sequence=2)
    writer.packet(1, sequence_flags=CLEARED)
    writer.slice(30, 40, "c", 0)
    assert {(line, name) for _, line, name, _, _ in rows(writer.opened(tmp_path))} == {
        ("default", "a"),
        ("own", "b"),
        ("Events without a track", "other sequence"),
        ("Events without a track", "c"),
    }


def clocks(writer: Writer, sequence: int, **units: int) -> Callable[..., None]:
    def snapshot(*pairs: tuple[int, int], incremental: bool = False) -> None:
        packet = writer.packet(sequence)
        for clock, time in pairs:
            one = packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=time)
            if clock >= 64:
                one.is_incremental = incremental
                one.unit_multiplier_ns = units.get("unit", 1)

    return snapshot


def test_clocks_are_brought_together(writer: Writer, tmp_path: Path) -> None:
    """MONOTONIC is 1,000 ns behind BOOTTIME, later 1,500; REALTIME is 5 s + 2,000 ns ahead."""
    snapshot = clocks(writer, 1)
    writer.track(1, "t")
    snapshot((BOOTTIME, 10_000), (MONOTONIC, 9_000), (REALTIME, 5_000_012_000))
    boot = writer.event(10_500, BEGIN, "boot", 1)
    writer.event(10_600, END, "", 1)
    for time, kind, name in ((10_000, BEGIN, "monotonic"), (10_200, END, "")):
        writer.event(time, kind, name, 1)
        writer.trace.packet[-1].timestamp_clock_id = MONOTONIC
    snapshot((BOOTTIME, 20_000), (MONOTONIC, 18_500))
    for time, kind, name in ((19_000, BEGIN, "later"), (19_300, END, "")):
        writer.event(time, kind, name, 1)
        writer.trace.packet[-1].timestamp_clock_id = MONOTONIC
    assert boot.name == "boot"
    trace = writer.opened(tmp_path)
    assert [(name, start // 1000, length // 1000) for _, _, name, start, length in rows(trace)] == [
        ("boot", 0, 100),
        ("monotonic", 500, 200),
        ("later", 10_000, 300),
    ]
    assert trace.info.start_ns == 5_000_012_500  # 10,500 since boot


def test_a_clock_of_a_sequence_counts_increments(writer: Writer, tmp_path: Path) -> None:
    """In two sequences with units of 1 and of 1,000 ns; the first is set anew in between."""
    for sequence, unit, base in ((1, 1, 5_000), (2, 1000, 7)):
        snapshot = clocks(writer, sequence, unit=unit)
        snapshot((BOOTTIME, 100_000), (64, base), incremental=True)
        writer.packet(sequence, sequence_flags=CLEARED).trace_packet_defaults.timestamp_clock_id = 64
        writer.track(sequence, f"t{sequence}")
        for i, step in enumerate((10, 20, 30)):
            writer.event(step, INSTANT, f"{sequence}.{i}", sequence, sequence)
        if sequence == 1:
            snapshot((BOOTTIME, 300_000), (64, 5_500), incremental=True)
        writer.event(40, INSTANT, f"{sequence}.3", sequence, sequence)
    start = {name: start // 1000 for _, _, name, start, _ in rows(writer.opened(tmp_path))}
    assert start == {
        "1.0": 0,  # 100,010 ns
        "1.1": 20,
        "1.2": 50,
        "1.3": 200_030,  # 300,040 ns
        "2.0": 9_990,
        "2.1": 29_990,
        "2.2": 59_990,
        "2.3": 99_990,
    }


def test_arguments_of_all_kinds(writer: Writer, tmp_path: Path) -> None:
    packet = writer.packet(1, sequence_flags=CLEARED)
    packet.interned_data.debug_annotation_names.add(iid=9, name="numbered")
    packet.interned_data.debug_annotation_string_values.add(iid=3, str=b"a long text")
    event = writer.slice(10, 20, "e", 1)
    for name, field, value in (
        ("yes", "bool_value", True),
        ("no", "bool_value", False),
        ("big", "uint_value", 2**64 - 1),
        ("negative", "int_value", -5),
        ("real", "double_value", 0.125),
        ("text", "string_value", "x"),
        ("pointer", "pointer_value", 255),
        ("json", "legacy_json_value", '{"a":1}'),
    ):
        event.debug_annotations.add(name=name, **{field: value})
    event.debug_annotations.add(name_iid=9, string_value_iid=3)
    nested = event.debug_annotations.add(name="dict")
    nested.dict_entries.add(name="k", int_value=1)
    inner = nested.dict_entries.add(name="list")
    for number in (7, 8):
        inner.array_values.add(int_value=number)
    deep = inner.array_values.add()
    deep.dict_entries.add(name="z", string_value="deep")
    other = writer.slice(30, 40, "f", 1)
    other.debug_annotations.add(name="negative", int_value=6)
    found = arguments(writer.opened(tmp_path))
    assert found["e"] == {
        "yes": "true",
        "no": "false",
        "big": 2**64 - 1,
        "negative": -5,
        "real": 0.125,
        "text": "x",
        "pointer": 255,
        "json": '{"a":1}',
        "numbered": "a long text",
        "dict.k": 1,
        "dict.list[0]": 7,
        "dict.list[1]": 8,
        "dict.list[2].z": "deep",
    }
    assert found["f"] == {"negative": 6}


def test_counters(writer: Writer, tmp_path: Path) -> None:
    """One of whole numbers with a unit, one of real ones, one of increments with a multiplier."""
    for uuid, name in ((1, "queue"), (2, "load"), (3, "read")):
        writer.track(uuid, name)
    writer.trace.packet[0].track_descriptor.counter.unit = pb.CounterDescriptor.UNIT_COUNT
    writer.trace.packet[1].track_descriptor.counter.SetInParent()
    counter = writer.trace.packet[2].track_descriptor.counter
    counter.unit_name, counter.unit_multiplier, counter.is_incremental = "B", 1024, True
    writer.slice(0, 5000, "work", 9)
    for i, (queue, load, read) in enumerate(((3, 0.5, 10), (-1, 0.25, 20), (8, 1.5, 5))):
        writer.event(1000 * i + 100, COUNTER, "", 1, counter_value=queue)
        writer.event(1000 * i + 200, COUNTER, "", 2, double_counter_value=load)
        writer.event(1000 * i + 300, COUNTER, "", 3, counter_value=read)
    assert samples(writer.opened(tmp_path)) == {
        "queue (count)": ([100, 1100, 2100], [3, -1, 8]),
        "load": ([200, 1200, 2200], [0.5, 0.25, 1.5]),
        "read (B)": ([300, 1300, 2300], [10 * 1024, 30 * 1024, 35 * 1024]),
    }


def test_flows_join_events_in_order_of_time(writer: Writer, tmp_path: Path) -> None:
    """a → b → c in one flow that ends at c, a → d in another, e and f in none."""
    for i, (name, flows, ending) in enumerate(
        (
            ("a", [11, 22], []),
            ("b", [11], []),
            ("c", [], [11]),
            ("d", [], [22]),
            ("e", [], []),
            ("f", [33], []),
        )
    ):
        event = writer.slice(100 * i, 100 * i + 50, name, 1 + i % 3)
        event.flow_ids.extend(flows)
        event.terminating_flow_ids.extend(ending)
    trace = writer.opened(tmp_path)
    names = [name for _, _, name, _, _ in rows(trace)]
    arrows = zip(trace.flows["from_event"].tolist(), trace.flows["to_event"].tolist(), strict=True)
    assert sorted((names[a], names[b]) for a, b in arrows) == [("a", "b"), ("a", "d"), ("b", "c")]


def lossy(
    writer: Writer, sequence: int, lost_from: int, cleared_from: int, clears_after_loss: bool = False
) -> None:
    """Six slices `SEQUENCE.0` to `SEQUENCE.5` with interned names; the packets before slice `lost_from` were
    lost, and the state is cleared before slice `cleared_from`. `clears_after_loss`: packets before the one
    that clears it were lost, too.
    """
    for i in range(6):
        if i in (0, cleared_from):
            dropped = int(clears_after_loss)
            state = writer.packet(sequence, sequence_flags=CLEARED, previous_packet_dropped=dropped)
            for j in range(6):
                state.interned_data.event_names.add(iid=j + 1, name=f"{sequence}.{j}")
        for time, kind in ((100 * i, BEGIN), (100 * i + 10 * sequence, END)):
            named = {"name_iid": i + 1} if kind == BEGIN else {}
            writer.packet(
                sequence,
                timestamp=time,
                sequence_flags=NEEDS_STATE,
                previous_packet_dropped=int(i == lost_from and kind == BEGIN),
                track_event={"type": kind, "track_uuid": sequence, **named},
            )


def test_events_whose_state_was_lost_are_left_out(writer: Writer, tmp_path: Path) -> None:
    """Three sequences: one without loss, one that clears its state after it, one that does not."""
    lossy(writer, 1, -1, -1)
    lossy(writer, 2, 1, 4)
    lossy(writer, 3, 3, -1)
    writer.event(900, INSTANT, "needs no state", 3, 3)
    trace = writer.opened(tmp_path)
    assert {name: length // 1000 for _, _, name, _, length in rows(trace)} == {
        **{f"1.{i}": 10 for i in range(6)},
        **{f"2.{i}": 20 for i in (0, 4, 5)},
        **{f"3.{i}": 30 for i in (0, 1, 2)},
        "needs no state": 0,
    }
    assert any("were lost in recording: 12." in note for note in trace.info.notes)


def test_a_packet_that_clears_the_state_makes_good_a_loss(writer: Writer, tmp_path: Path) -> None:
    lossy(writer, 1, -1, 3, clears_after_loss=True)
    trace = writer.opened(tmp_path)
    assert [name for _, _, name, _, _ in rows(trace)] == [f"1.{i}" for i in range(6)]
    assert not any("lost" in note for note in trace.info.notes)


def test_a_trace_whose_state_was_lost_altogether_says_so(writer: Writer, tmp_path: Path) -> None:
    lossy(writer, 1, 0, -1)
    with pytest.raises(TraceFormatError, match="12 track events that mean nothing: packets before them"):
        writer.opened(tmp_path)


def test_events_converted_from_chrome_s_json(writer: Writer, tmp_path: Path) -> None:
    writer.thread(1, 7, 71, "main")
    complete = writer.event(1000, 0, "whole", 1)
    complete.legacy_event.phase, complete.legacy_event.duration_us = ord("X"), 5
    for time, phase in ((2000, "b"), (9000, "e")):
        event = writer.event(time, 0, "request", 1, categories=["net"])
        event.legacy_event.phase, event.legacy_event.global_id = ord(phase), 77
    moved = writer.event(3000, 0, "moved", 1)
    moved.legacy_event.phase, moved.legacy_event.duration_us = ord("X"), 1
    moved.legacy_event.pid_override, moved.legacy_event.tid_override = 8, 88
    assert sorted((name, start, length) for _, _, name, start, length in rows(writer.opened(tmp_path))) == [
        ("moved", 2 * US, US),
        ("request", US, 7 * US),
        ("whole", 0, 5 * US),
    ]


def test_compressed_packets_stand_where_they_were(writer: Writer, tmp_path: Path) -> None:
    inner = Writer()
    inner.packet(1, sequence_flags=CLEARED).interned_data.event_names.add(iid=1, name="packed")
    writer.trace.packet.add(compressed_packets=zlib.compress(inner.trace.SerializeToString()))
    writer.event(10, BEGIN, "", 1, name_iid=1)
    writer.event(30, END, "", 1)
    assert [row[2:] for row in rows(writer.opened(tmp_path))] == [("packed", 0, 20_000)]


def test_damage_is_reported(writer: Writer, tmp_path: Path) -> None:
    for i in range(3):
        writer.slice(100 * i, 100 * i + 50, f"e{i}", 1)
    whole = writer.trace.SerializeToString()
    path = tmp_path / "cut.pftrace"
    path.write_bytes(whole[:-3])
    trace = open_trace(str(path))
    assert [name for _, _, name, _, _ in rows(trace)] == ["e0", "e1", "e2"]
    assert "cut off or damaged" in trace.info.damage
    writer.trace.packet.add(compressed_packets=b"not deflate")
    with pytest.raises(TraceFormatError, match="compressed packets that are damaged"):
        writer.opened(tmp_path)


def test_traces_of_other_sources_say_so(tmp_path: Path) -> None:
    writer = Writer()
    writer.packet(1, timestamp=5).system_info.utsname.sysname = "Linux"
    writer.track(1, "t")
    with pytest.raises(TraceFormatError, match="without track events"):
        writer.opened(tmp_path)


def test_random_bytes_in_packets_do_no_harm(writer: Writer, tmp_path: Path) -> None:
    for i in range(40):
        event = writer.slice(100 * i, 100 * i + 50, f"e{i}", 1 + i % 3, 1 + i % 2)
        event.flow_ids.append(i // 4)
        event.debug_annotations.add(name="n", int_value=i)
    whole = np.frombuffer(writer.trace.SerializeToString(), np.uint8)
    rng = np.random.default_rng(5)
    n_opened = 0
    for seed in range(150):
        damaged = whole.copy()
        damaged[rng.integers(0, len(whole), 1 + seed % 5)] = rng.integers(0, 256, 1 + seed % 5, np.uint8)
        path = tmp_path / f"{seed}.pftrace"
        path.write_bytes(damaged.tobytes())
        try:
            trace = open_trace(str(path))
        except (TraceFormatError, NotATrace):
            continue
        n_opened += 1
        assert (trace.events["duration_ps"] >= 0).all()
    assert n_opened > 30
