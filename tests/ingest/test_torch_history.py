"""The history in PyTorch's snapshots: columns in the order of the file, also from odd and damaged files."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.heap import torch_history
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.trace.heap_history import ALLOC, COMPLETED, GROW, OOM, REQUESTED, SHRINK, Recording
from tests.ingest.heap_files import LOAD, MAIN, STEP, torch_frames

PS = 1_000_000
START = 1_700_000_000_000_000


def entry(action: Any, after_us: Any, **more: Any) -> dict[str, Any]:
    time = START + after_us if type(after_us) is int else after_us
    return {"action": action, "time_us": time, "stream": 0, "frames": [], **more}


def read(*traces: Any, segments: list[Any] | None = None) -> Recording | None:
    snapshot = {"segments": segments or [], "device_traces": [*traces]}
    found = [read_torch_snapshot(pickle.dumps(snapshot, protocol), "p").recording for protocol in (2, 4, 5)]
    assert len({str(one) for one in found}) == 1
    return found[0]


STACK = torch_frames(STEP, MAIN)
ENTRIES = [
    entry("segment_alloc", 5, addr=1000, size=2048, frames=STACK),
    entry("alloc", 7, addr=1000, size=500, frames=STACK),
    entry("snapshot", 8, addr=0, size=0),
    entry("segment_map", 9, addr=5000, size=4096),
    entry("alloc", 11, addr=5000, size=700, frames=torch_frames(LOAD, MAIN)),
    entry("annotate", 12, addr=5000, size=0, user_metadata="x"),
    entry("free_requested", 13, addr=1000, size=500),
    entry("free_completed", 15, addr=1000, size=500),
    entry("oom", 20, size=10**9, device_free=123, frames=STACK),
    entry("segment_free", 21, addr=1000, size=2048),
    entry("segment_unmap", 22, addr=5000, size=512),
]


def test_columns_are_the_entries_in_the_order_of_the_file() -> None:
    segment = {
        "device": 1,
        "address": 5000,
        "total_size": 3584,
        "blocks": [
            {"size": 1024, "requested_size": 700, "state": "active_allocated", "frames": STACK},
            {"size": 512, "requested_size": 0, "state": "inactive"},
            {"size": 512, "requested_size": 300, "state": "active_pending_free", "frames": STACK},
            {"address": 9000, "size": 1536, "state": "active_awaiting_free"},
        ],
    }
    block = {"size": 10**6, "state": "active_allocated", "frames": torch_frames(LOAD)}
    other = {"device": 0, "total_size": 10**6, "blocks": [block]}
    recording = read([], ENTRIES, segments=[segment, other])
    assert recording is not None
    assert recording.n_skipped == 0
    (history,) = recording.devices
    assert history.device == "GPU 1"
    assert history.action.tolist() == [
        GROW,
        ALLOC,
        GROW,
        ALLOC,
        REQUESTED,
        COMPLETED,
        OOM,
        SHRINK,
        SHRINK,
    ]
    assert (history.time_ps // PS).tolist() == [0, 2, 4, 6, 8, 10, 15, 16, 17]
    assert history.size_bytes.tolist() == [2048, 500, 4096, 700, 500, 500, 10**9, 2048, 512]
    assert history.address.tolist() == [1000, 1000, 5000, 5000, 1000, 1000, 123, 1000, 5000]
    stacks = recording.stacks
    names = [
        [stacks.function[frame] for frame in stacks.frames[stacks.first[i] : stacks.first[i + 1]].tolist()]
        for i in history.stack.tolist()
    ]
    step, load = ["train_step", "main"], ["load", "main"]
    assert names == [step, step, [], load, [], [], step, [], []]
    assert len(stacks) == 3  # none of the device without a history
    assert (history.end_reserved_bytes, history.end_pending_bytes) == (3584, 300 + 1536)
    survivors = history.survivors
    assert survivors.address.tolist() == [5000, 6536, 9000]
    assert survivors.size_bytes.tolist() == [700, 300, 1536]


def test_none_left_on_the_device_is_not_unknown() -> None:
    recording = read([entry("oom", 1, size=9, device_free=free) for free in (0, 1, -1, None, 2**62)])
    assert recording is not None
    assert recording.devices[0].address.tolist() == [0, 1, -1, -1, -1]


def test_devices_share_the_first_time() -> None:
    recording = read(
        [entry("alloc", 100, addr=1, size=1)],
        [],
        [entry("alloc", 40, addr=1, size=2), entry("alloc", 30, addr=2, size=3)],
    )
    assert recording is not None
    assert [one.device for one in recording.devices] == ["GPU 0", "GPU 2"]
    assert [(one.end_reserved_bytes, one.end_pending_bytes) for one in recording.devices] == [(0, 0)] * 2
    # The clock went back: times never fall.
    assert [(one.time_ps // PS).tolist() for one in recording.devices] == [[60], [0, 0]]


def test_times_far_apart_fit_into_64_bits() -> None:
    """Microseconds since 1970, 285 years apart: cut at what picoseconds can say."""
    recording = read(
        [entry("alloc", 0 - START, addr=1, size=1), entry("alloc", 2**53 - 1 - START, addr=2, size=1)]
    )
    assert recording is not None
    longest = 2**62 // PS * PS
    assert recording.devices[0].time_ps.tolist() == [0, longest]
    most = longest // PS
    for after in (most - 1, most, most + 1):
        made = read(
            [entry("alloc", 5 - START, addr=1, size=1), entry("alloc", 5 + after - START, addr=2, size=1)]
        )
        assert made is not None
        assert made.devices[0].time_ps.tolist() == [0, min(after, most) * PS]


@pytest.mark.parametrize(
    "odd",
    [
        entry("a new action", 1, addr=1, size=1),
        entry(5, 1),
        entry(["alloc"], 1),
        entry("alloc", None),
        entry("alloc", -START - 1),
        entry("alloc", 2**53),
        entry("alloc", 2**53 - START),
        entry("alloc", 2.0**53),
        entry("alloc", -1.0),
        entry("alloc", float("nan")),
        entry("alloc", True),
        entry("alloc", "1"),
    ],
)
def test_entries_of_no_known_form_are_counted(odd: dict[str, Any]) -> None:
    good = entry("alloc", 3, addr=1, size=1)
    recording = read([odd, None, 5, good])
    assert recording is not None
    assert (recording.n_skipped, len(recording.devices[0])) == (1, 1)
    alone = read([odd])
    assert alone is not None
    assert (alone.n_skipped, alone.devices) == (1, ())


def test_odd_values_are_nothing() -> None:
    odd = [
        entry("alloc", 1, addr=-5, size=-1, frames=5),
        entry("alloc", 2, addr="x", size=2.5, frames=[None, {"name": 5}]),
        entry("alloc", 3, addr=2**62, size=2**60),
        {"action": "oom", "time_us": float(START + 4)},
    ]
    recording = read(odd)
    assert recording is not None
    (history,) = recording.devices
    far = read([entry("alloc", 1, addr=2**62 - 1, size=2**59)], [{"action": "oom", "time_us": 0.0}])
    assert far is not None
    assert [one.address.tolist() for one in far.devices] == [[2**62 - 1], [-1]]
    assert [one.size_bytes.tolist() for one in far.devices] == [[2**59], [0]]
    assert history.address.tolist() == [0, 0, 0, -1]  # what the device had left is unknown
    assert history.size_bytes.tolist() == [0, 0, 0, 0]
    assert (history.time_ps // PS).tolist() == [0, 1, 2, 3]


def test_snapshots_without_a_history() -> None:
    assert read() is None
    assert read([], []) is None
    assert read([entry("snapshot", 1)]) is None
    for traces in (5, None, {"a": 1}):
        assert (
            read_torch_snapshot(pickle.dumps({"segments": [], "device_traces": traces}), "p").recording
            is None
        )
    assert read_torch_snapshot(pickle.dumps({"segments": []}), "p").recording is None


def test_histories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a short file refers to one list many times."""
    monkeypatch.setattr(torch_history, "MAX_ENTRIES", 10_000)
    whole = [[entry("alloc", 1, addr=1, size=1)] * 100] * 100
    assert len(pickle.dumps(whole)) < 2000
    recording = read(*whole)
    assert recording is not None
    assert sum(len(one) for one in recording.devices) == 10_000
    with pytest.raises(TraceFormatError, match="p has a history of more than 10,000 entries") as error:
        read(*whole, [entry("alloc", 1, addr=1, size=1)])
    assert "max_entries" in error.value.remedy
    assert error.value.offset == -1
    monkeypatch.setattr(torch_history, "MAX_DEVICES", 3)
    recording = read(*whole)
    assert recording is not None
    assert len(recording.devices) == 3


def test_frames_of_histories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [entry("alloc", i, addr=i, size=1, frames=torch_frames(STEP, MAIN)) for i in range(5)]
    monkeypatch.setattr(torch_history, "MAX_FRAMES", 10)
    assert read(entries) is not None
    monkeypatch.setattr(torch_history, "MAX_FRAMES", 9)
    with pytest.raises(TraceFormatError, match="more than 9 stack frames") as error:
        read(entries)
    assert error.value.offset == -1


@pytest.mark.parametrize(("n", "is_refused"), [(2, False), (3, True)])
def test_sizes_that_add_up_beyond_all_memory_are_refused(n: int, is_refused: bool) -> None:
    entries = [entry("alloc", i, addr=i, size=2**59) for i in range(n)]
    if not is_refused:
        assert read(entries) is not None
        return
    with pytest.raises(TraceFormatError, match="add up to more"):
        read(entries)


@pytest.mark.parametrize(("more", "is_refused"), [(0, False), (1024, True)])
def test_events_segments_and_blocks_count_together(more: int, is_refused: bool) -> None:
    """Half of what fits in two events, a quarter in segments, a quarter in two blocks."""
    entries = [entry("alloc", i, addr=i, size=2**58) for i in range(2)]
    blocks = [
        {"size": 8, "requested_size": size, "state": "active_allocated"} for size in (2**57, 2**57 + more)
    ]
    segments = [
        {"device": 0, "total_size": 2**57, "address": 0, "blocks": blocks},
        {"device": 0, "total_size": 2**57, "address": 2**61, "blocks": []},
    ]
    if is_refused:
        with pytest.raises(TraceFormatError, match="add up to more"):
            read(entries, segments=segments)
        return
    recording = read(entries, segments=segments)
    assert recording is not None
    (history,) = recording.devices
    assert history.end_reserved_bytes == 2**58
    assert history.survivors.address.tolist() == [0, 8]
