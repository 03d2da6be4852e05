"""Clocks of Perfetto traces: several unlike clocks in each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.track_events import (
    BOOTTIME,
    INSTANT,
    MONOTONIC,
    REALTIME,
    Writer,
    instant,
    rows,
    snapshot,
    starts,
)

MONOTONIC_COARSE = 4


@pytest.fixture
def writer() -> Writer:
    return Writer()


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
