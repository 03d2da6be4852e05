"""Levels, contents and what stays, against an allocator that counts them itself at each event."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.heap import NO_STACK, frame_text, place_of_stack
from tb_tpuprof.analysis.memory.heap_history import (
    Levels,
    contents,
    drawn_events,
    event_at,
    kept,
    levels,
    ooms,
)
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.trace.heap_history import DeviceHistory, Recording
from tests.ingest.torch_allocator import (
    FORWARD,
    HISTORY,
    LOSS,
    MAIN,
    MIB,
    MODEL,
    Allocator,
    Truth,
    place_of,
    snapshot_of,
    train,
)

LEAK = place_of((HISTORY,))


def recording_of(snapshot: dict[str, Any]) -> Recording:
    recording = read_torch_snapshot(pickle.dumps(snapshot), "p").recording
    assert recording is not None
    return recording


def allocators() -> list[Allocator]:
    """Three unlike devices: a whole history, one with failures, and one of expandable segments."""
    result = [Allocator(0, 2**40), Allocator(2, 16 * MIB), Allocator(3, 2**40, is_expandable=True)]
    for allocator, n_steps in zip(result, (40, 60, 9), strict=True):
        train(allocator, n_steps, allocator.device)
    return result


def truths(allocator: Allocator, history: DeviceHistory) -> list[Truth]:
    """The truth after each event of the history, which lacks the note `snapshot` and what the ring
    dropped.
    """
    kept_truths = [
        truth
        for entry, truth in zip(allocator.entries, allocator.truth, strict=True)
        if entry["action"] != "snapshot"
    ]
    return kept_truths[-len(history) :]


def by_place(recording: Recording, history: DeviceHistory, known: Levels, event: int) -> dict[str, int]:
    frames = place_of_stack(recording.stacks)
    shown = contents(history, known, event)
    sizes = Counter[str]()
    for stack, size in zip(shown.stack.tolist(), shown.size_bytes.tolist(), strict=True):
        sizes[frame_text(recording.stacks, int(frames[stack]))] += size
    if shown.unknown_bytes:
        sizes["unknown"] = shown.unknown_bytes
    return dict(sizes)


def test_levels_and_contents_are_those_that_the_allocator_counts() -> None:
    made = allocators()
    recording = recording_of(snapshot_of(made))
    assert [history.device for history in recording.devices] == ["GPU 0", "GPU 2", "GPU 3"]
    for allocator, history in zip(made, recording.devices, strict=True):
        known, true = levels(history), truths(allocator, history)
        assert known.is_anchored
        assert known.used_bytes.tolist() == [one.used for one in true]
        assert known.pending_bytes.tolist() == [one.pending for one in true]
        assert known.reserved_bytes.tolist() == [one.reserved for one in true]
        assert int(known.used_bytes[known.peak]) == max(one.used for one in true)
        for event in range(0, len(history), 11):
            assert by_place(recording, history, known, event) == true[event].by_place
    assert len(ooms(recording.devices[1])) > 3
    assert not len(ooms(recording.devices[0]))


def test_a_ring_that_has_lost_its_start() -> None:
    """Levels are exact. Blocks from before are known by place if they are still there, else by their sum."""
    made = allocators()
    recording = recording_of(snapshot_of(made, 60))
    n_unknown = 0
    for allocator, history in zip(made, recording.devices, strict=True):
        assert len(history) < len(allocator.entries)
        known, true = levels(history), truths(allocator, history)
        assert known.is_anchored
        assert known.used_bytes.tolist() == [one.used for one in true]
        assert known.reserved_bytes.tolist() == [one.reserved for one in true]
        for event, truth in enumerate(true):
            sizes = by_place(recording, history, known, event)
            n_unknown += sizes.pop("unknown", 0) > 0
            assert sum(sizes.values()) <= truth.used
            assert all(size <= truth.by_place[place] for place, size in sizes.items())
            assert sizes[place_of((MODEL,))] == truth.by_place[place_of((MODEL,))]
            assert sizes[LEAK] == truth.by_place[LEAK]
        last = by_place(recording, history, known, len(history) - 1)
        assert last == true[-1].by_place
    assert n_unknown


def test_what_is_not_freed() -> None:
    made = allocators()
    recording = recording_of(snapshot_of(made))
    frames = place_of_stack(recording.stacks)
    for allocator, history in zip(made, recording.devices, strict=True):
        stays = kept(history, levels(history), frames)
        rows = {frame_text(recording.stacks, int(frame)): i for i, frame in enumerate(stays.frame)}
        allocated, number = Counter[str](), Counter[str]()
        for entry in allocator.entries:
            if entry["action"] == "alloc":
                place = "{name} {filename}:{line}".format(**entry["frames"][1])
                allocated[place] += entry["size"]
                number[place] += 1
        assert set(rows) == set(allocated)
        end = allocator.truth[-1]
        for place, row in rows.items():
            assert int(stays.allocated_bytes[row]) == allocated[place]
            assert int(stays.n_allocated[row]) == number[place]
        for place in (LEAK, place_of((MODEL,))):
            assert int(stays.kept_bytes[rows[place]]) == end.by_place[place]
            assert int(stays.n_kept[rows[place]]) == end.n_by_place[place]
        # The last step's block waits for a stream: the program has freed it.
        assert end.pending > 0
        assert not stays.kept_bytes[rows[place_of((FORWARD,))]]
        assert not stays.n_kept[rows[place_of((LOSS,))]]
        assert stays.first[rows[place_of((LOSS,))]] == -1
        assert bool(stays.is_steady[rows[LEAK]]) == (int(stays.n_kept[rows[LEAK]]) >= 8)
        assert not stays.is_steady[rows[place_of((MODEL,))]]
        assert np.all(np.diff(stays.kept_bytes) <= 0)


@pytest.mark.parametrize(("n_quiet", "is_steady"), [(0, True), (3, False)])
def test_growth_that_ends_is_not_steady(n_quiet: int, is_steady: bool) -> None:
    """Of the same blocks, the history goes on for three quarters without any."""
    allocator = Allocator(0, 2**40)
    for _ in range(16):
        allocator.alloc(1000, (HISTORY, MAIN))
    for _ in range(n_quiet * 6):
        block = allocator.alloc(5, (LOSS, MAIN))
        assert block
        allocator.free(block)
    recording = recording_of(snapshot_of([allocator]))
    (history,) = recording.devices
    stays = kept(history, levels(history), place_of_stack(recording.stacks))
    assert bool(stays.is_steady[0]) is is_steady


@pytest.mark.parametrize(("n", "is_steady"), [(8, True), (7, False)])
def test_few_blocks_are_no_leak(n: int, is_steady: bool) -> None:
    allocator = Allocator(0, 2**40)
    for _ in range(n):
        allocator.alloc(3 * MIB, (HISTORY, MAIN))
    recording = recording_of(snapshot_of([allocator]))
    (history,) = recording.devices
    stays = kept(history, levels(history), place_of_stack(recording.stacks))
    assert stays.is_steady.tolist() == [is_steady]


def test_without_completed_frees() -> None:
    """`skip_actions=["free_completed"]`: blocks end when the program frees them."""
    (allocator,) = allocators()[2:]
    snapshot = snapshot_of([allocator])
    traces = snapshot["device_traces"]
    traces[3] = [entry for entry in traces[3] if entry["action"] != "free_completed"]
    for segment in snapshot["segments"]:
        segment["blocks"] = [one for one in segment["blocks"] if one["state"] != "active_pending_free"]
    (history,) = recording_of(snapshot).devices
    known = levels(history)
    assert not known.pending_bytes.any()
    true = [
        truth.used - truth.pending
        for entry, truth in zip(allocator.entries, allocator.truth, strict=True)
        if entry["action"] not in ("snapshot", "free_completed")
    ]
    assert known.used_bytes.tolist() == true


def test_levels_that_contradict_the_end_are_marked() -> None:
    allocator = Allocator(0, 2**40)
    train(allocator, 3, 1)
    snapshot = snapshot_of([allocator])
    (history,) = recording_of(snapshot).devices
    assert levels(history).is_anchored
    for segment in snapshot["segments"]:
        segment["blocks"] = []  # lists no block in use
    (history,) = recording_of(snapshot).devices
    known = levels(history)
    assert not known.is_anchored
    assert known.used_bytes.tolist() == [truth.used for truth in truths(allocator, history)]


def test_events_that_are_drawn() -> None:
    """Few of a wide window, and of many the extremes of each pixel and every failure."""
    allocator = allocators()[1]
    (history,) = recording_of(snapshot_of([allocator])).devices
    known = levels(history)
    last = int(history.time_ps[-1])
    assert drawn_events(history, known, 0, last, 8000).tolist() == list(range(len(history)))
    for width in (1, 2, 7, 50):
        rows = drawn_events(history, known, 0, last, width)
        assert len(rows) <= 6 * width + len(ooms(history)) + 1
        assert known.used_bytes[rows].max() == known.used_bytes.max()
        assert known.used_bytes[rows].min() == known.used_bytes.min()
        assert known.reserved_bytes[rows].max() == known.reserved_bytes.max()
        assert set(ooms(history)[: 4 * width].tolist()) <= set(rows.tolist())
        assert rows[-1] == len(history) - 1
    middle = int(history.time_ps[100])
    rows = drawn_events(history, known, middle, middle + 50_000_000, 1)
    assert rows[0] == 99
    assert history.time_ps[rows].max() <= middle + 50_000_000
    assert event_at(history, middle) == 100
    assert event_at(history, middle - 1) == 99
    assert event_at(history, -5) == 0
    assert drawn_events(history, known, last + 1, last + 2, 5).tolist() == [len(history) - 1]


def test_blocks_without_a_stack() -> None:
    allocator = Allocator(0, 2**40)
    allocator.alloc(10, ())
    allocator.alloc(20, (LOSS, MAIN))
    snapshot = snapshot_of([allocator])
    for entry in snapshot["device_traces"][0]:
        if entry["size"] == 10:
            entry["frames"] = []
    recording = recording_of(snapshot)
    (history,) = recording.devices
    assert by_place(recording, history, levels(history), len(history) - 1) == {
        NO_STACK: 10,
        place_of((LOSS,)): 20,
    }
