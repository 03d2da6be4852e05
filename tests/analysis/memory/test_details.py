"""Columns, windows and floors of memories at both sides of their limits, on events written one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.events import MemoryEvents, dtype_name, has_memory_events, memory_events
from tb_tpuprof.analysis.memory.floor import _is_rising, _median_slope, floor_of
from tb_tpuprof.analysis.memory.host import host_memory
from tb_tpuprof.analysis.memory.peak import active_allocations, event_at, excess_bytes, memory_peak
from tb_tpuprof.analysis.memory.window import window_events
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build

NS = 1000
LARGEST = 2**53


def event(time: int, address: int = 0, frees: bool = False, **stats: Any) -> DrawnEvent:
    name = "MemoryDeallocation" if frees else "MemoryAllocation"
    return DrawnEvent(name, time * NS, 0, {"allocator_name": "m", "addr": address, **stats})


def trace_of(*lines: list[DrawnEvent]) -> Trace:
    return build([DrawnPlane("/host:CPU", {f"t{i}": events for i, events in enumerate(lines)})])


def events_of(*events: DrawnEvent) -> MemoryEvents:
    return memory_events(trace_of(list(events)))


def test_missing_and_damaged_numbers() -> None:
    keys = (
        "bytes_reserved",
        "bytes_allocated",
        "bytes_available",
        "bytes_held",
        "peak_bytes_in_use",
        "requested_bytes",
        "allocation_bytes",
    )
    values = (0, 7, LARGEST, LARGEST + 1, -1, 2**62)
    found = events_of(
        *(event(i, i, **dict.fromkeys(keys, value)) for i, value in enumerate(values)), event(9, 9)
    )
    kept = [0, 7, LARGEST]
    rows = slice(0, 7)
    for name, missing in (
        ("stack", 0),
        ("heap", 0),
        ("free", -1),
        ("held", -1),
        ("lifetime_peak", -1),
        ("requested", -1),
        ("allocation", 0),
    ):
        assert getattr(found, f"{name}_bytes")[rows].tolist() == [*kept, *[missing] * 4], name
    assert found.used_bytes.tolist() == [0, 14, 2 * LARGEST, 0, 0, 0, 0]
    assert found.dtype[rows].tolist() == [0] * 7
    only_heap = events_of(event(0, bytes_allocated=5), event(1, bytes_allocated=6))
    assert only_heap.used_bytes.tolist() == [5, 6]


def test_columns_are_looked_up_by_number_slice_or_rows() -> None:
    found = events_of(*(event(i, i, allocation_bytes=10 * i + 10) for i in range(4)))
    assert found.allocation_bytes[2] == 30
    assert found.allocation_bytes[1:3].tolist() == [20, 30]
    assert found.allocation_bytes[np.array([3, 0])].tolist() == [40, 10]
    assert found.allocation_bytes[-2:].tolist() == [30, 40]


def test_a_deallocation_takes_what_it_does_not_state_from_its_allocation() -> None:
    made = {
        "allocation_bytes": 64,
        "requested_bytes": 60,
        "data_type": 3,
        "tf_op": "conv",
        "region_type": "output",
        "shape": "[2]",
    }
    found = events_of(
        event(0, 5, **made),
        event(1, 6, allocation_bytes=8, allocated_for="gather"),
        event(2, 5, True, allocation_bytes=0, tf_op="", shape="(null)"),
        event(3, 6, True, allocation_bytes=1, tf_op="own"),
        event(4, 77, True),
        event(5, 5, tf_op="(null)", allocated_for="later"),
        event(6, 5, True, requested_bytes=0),
    )
    texts = [
        [found.strings[i] if i >= 0 else None for i in column[0:7].tolist()]
        for column in (found.op, found.region, found.shape)
    ]
    assert texts == [
        ["conv", "gather", "conv", "own", None, None, None],
        ["output", None, "output", None, None, None, None],
        ["[2]", None, "[2]", None, None, None, None],
    ]
    assert found.allocation_bytes[0:7].tolist() == [64, 8, 64, 1, 0, 0, 0]
    assert found.requested_bytes[0:7].tolist() == [60, -1, 60, -1, -1, -1, -1]
    assert [dtype_name(number) for number in found.dtype[0:7].tolist()] == [
        "int32",
        "",
        "int32",
        "",
        "",
        "",
        "",
    ]
    assert [column[0:7].min() for column in (found.op, found.region, found.shape)] == [-1, -1, -1]
    n = 7
    assert found.partner.tolist() == [2, 3, 0, 1, -1, 6, 5]
    assert events_of(event(0, 1), event(1, 1), event(2, 2)).partner.tolist() == [1, 3, 3]
    assert len(found.event) == n


DTYPES = {
    0: "",
    1: "float32",
    2: "float64",
    3: "int32",
    7: "string",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    19: "float16",
    20: "resource",
    21: "variant",
    23: "uint64",
    24: "float8_e5m2",
    32: "uint2",
    33: "33",
    -1: "-1",
    101: "101",
}


def test_names_of_data_types() -> None:
    assert {number: dtype_name(number) for number in DTYPES} == DTYPES


def test_fragmentation_is_reported_or_follows_from_what_is_held() -> None:
    found = events_of(
        event(0, fragmentation=0.25, bytes_held=100, bytes_allocated=10),
        event(1, bytes_held=100, bytes_allocated=40),
        event(2, bytes_held=0, bytes_allocated=4),
        event(3, bytes_allocated=4),
        event(4, fragmentation=float("nan"), bytes_held=8, bytes_allocated=2),
        event(5, fragmentation=1.5),
        event(6, fragmentation=-0.5),
        event(7, bytes_held=1, bytes_allocated=4),
        event(8, fragmentation=float("inf"), bytes_held=1, bytes_allocated=0),
    )
    expected = [0.25, 0.6, None, None, 0.75, 1, 0, 0, 1]
    assert [
        None if np.isnan(value) else value for value in found.fragmentation[0:9].tolist()
    ] == pytest.approx(expected)


def test_memories_are_named_after_allocators_or_devices() -> None:
    lines = [
        DrawnEvent("MemoryAllocation", 10 * i * NS, 0, stats)
        for i, stats in enumerate(
            (
                {"allocator_name": "GPU_10_bfc"},
                {"allocator_name": "GPU_2_bfc"},
                {"index_on_host": 3},
                {"device_ordinal": 0, "index_on_host": 9},
                {},
                {"allocator_name": "GPU_2_bfc", "device_ordinal": 5},
                {"device_ordinal": 11},
            )
        )
    ]
    found = memory_events(trace_of(lines))
    assert found.memories == ("GPU_2_bfc", "GPU_10_bfc", "device 0", "device 3", "device 11", "memory")
    assert found.first.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert (found.start_ps // (10 * NS)).tolist() == [1, 5, 0, 3, 2, 6, 4]
    assert memory_events(trace_of(lines[:1])).memories == ("GPU_10_bfc",)
    assert memory_events(trace_of(lines[4:5])).memories == ("memory",)
    plane = DrawnPlane("GPU_0_bfc", {"t": [event(0, allocator_name="GPU_0_bfc")]})
    assert memory_events(build([plane])).memories == ("GPU_0_bfc",), "the trace's first string"
    assert has_memory_events(trace_of(lines))
    assert has_memory_events(trace_of([event(0, frees=True)]))
    assert not has_memory_events(trace_of([DrawnEvent("x", 0, 1)]))


def test_a_peak_states_what_was_true_at_it() -> None:
    """The last of the equal peaks; the allocator's own peak counts from 0 on."""
    stats = {"bytes_reserved": 5, "bytes_available": 20}
    found = events_of(
        event(0, 1, bytes_allocated=10, peak_bytes_in_use=0, **stats),
        event(1, 2, bytes_allocated=30, **stats),
        event(2, 3, True, bytes_allocated=30, fragmentation=0.5, bytes_held=44, **stats),
        event(3, 4, bytes_allocated=8, **stats),
    )
    peak = memory_peak(found, 0)
    assert (peak.at, peak.start_ps, peak.name, peak.memory) == (2, 2 * NS, "m", 0)
    assert (peak.stack_bytes, peak.heap_bytes, peak.free_bytes, peak.held_bytes, peak.fragmentation) == (
        5,
        30,
        20,
        44,
        0.5,
    )
    assert (peak.n_allocations, peak.n_deallocations, peak.used_bytes, peak.capacity_bytes) == (3, 1, 35, 55)
    assert peak.used_fraction == pytest.approx(35 / 55)
    assert peak.lifetime_peak_bytes == 35
    unknown = memory_peak(events_of(event(0, bytes_allocated=10)), 0)
    assert (
        unknown.lifetime_peak_bytes,
        unknown.capacity_bytes,
        unknown.used_fraction,
        unknown.free_bytes,
    ) == (-1, 0, 0, -1)
    full = memory_peak(events_of(event(0, bytes_allocated=10, bytes_available=0, peak_bytes_in_use=90)), 0)
    assert (full.lifetime_peak_bytes, full.capacity_bytes, full.used_fraction) == (90, 10, 1)


def test_active_allocations_are_merged_and_sorted() -> None:
    """By total bytes, then by size, then by time; what the heap holds beyond them is older."""
    sizes = [(1, 8, "a"), (2, 16, "b"), (3, 8, "a"), (4, 30, "c"), (5, 16, "d"), (6, 15, "e"), (7, 15, "e")]
    found = events_of(
        *(
            event(i, address, allocation_bytes=size, tf_op=op, bytes_allocated=200)
            for i, (address, size, op) in enumerate(sizes)
        )
    )
    active = active_allocations(found, 0, 6)
    assert active.total_bytes.tolist() == [30, 30, 16, 16, 16]
    assert active.example.tolist() == [3, 5, 1, 4, 0]
    assert active.n_occurrences.tolist() == [1, 2, 1, 1, 2]
    assert (active.older_bytes, active.stack_bytes, excess_bytes(found, 0, 6)) == (200 - 108, 0, 0)
    first = active_allocations(found, 0, 0)
    assert (first.total_bytes.tolist(), first.older_bytes) == ([8], 192)
    less = events_of(
        event(0, 1, allocation_bytes=50, bytes_allocated=20), event(1, 2, True, bytes_allocated=20)
    )
    assert (active_allocations(less, 0, 0).older_bytes, excess_bytes(less, 0, 0)) == (0, 30)
    freed = events_of(event(0, 1, allocation_bytes=50), event(1, 1, True))
    assert active_allocations(freed, 0, 1).example.tolist() == []
    assert active_allocations(freed, 0, 1).total_bytes.tolist() == []


@pytest.mark.parametrize("seed", range(8))
def test_windows_are_what_plain_pixels_keep(seed: int) -> None:
    draw = np.random.default_rng(seed)
    for _ in range(8):
        n = int(draw.integers(1, 120))
        times = np.sort(draw.integers(0, 90, n)).tolist()
        levels = draw.integers(1, 50, n).tolist()
        other = [event(5, i, allocator_name="a", bytes_allocated=1) for i in range(3)]
        found = events_of(
            *sorted(
                [
                    *other,
                    *(
                        event(time, i, bytes_allocated=level)
                        for i, (time, level) in enumerate(zip(times, levels, strict=True))
                    ),
                ],
                key=lambda one: one.start_ps,
            )
        )
        memory = found.memories.index("m")
        low, width = int(draw.integers(-5, 80)), int(draw.integers(1, 9))
        high = low + int(draw.integers(0, 60))
        inside = [i for i, time in enumerate(times) if low <= time <= high]
        before = [i for i, time in enumerate(times) if time < low][-1:]
        if not inside:
            expected = before or [0]
        elif len(inside) <= 3 * width:
            expected = [*before, *inside]
        else:
            pixel_ps = max(1, -(-((high - low) * NS + 1) // width))
            pixels: dict[int, list[int]] = {}
            for i in inside:
                pixels.setdefault((times[i] - low) * NS // pixel_ps, []).append(i)
            kept = set(before)
            for rows in pixels.values():
                least, most = min(levels[i] for i in rows), max(levels[i] for i in rows)
                kept |= {rows[-1]}
                assert {levels[i] for i in rows} >= {least, most}
            made = window_events(found, memory, low * NS, high * NS, width) - found.first[memory]
            assert kept <= set(made.tolist()) <= {*before, *inside}
            for rows in pixels.values():
                shown = [levels[i] for i in rows if i in set(made.tolist())]
                assert (min(shown), max(shown)) == (
                    min(levels[i] for i in rows),
                    max(levels[i] for i in rows),
                )
                assert len(shown) <= 3
            continue
        made = window_events(found, memory, low * NS, high * NS, width) - found.first[memory]
        assert made.tolist() == expected


def test_the_last_event_at_or_before_a_time() -> None:
    found = events_of(*(event(time, i) for i, time in enumerate((5, 5, 8))))
    assert [event_at(found, 0, time * NS) for time in (0, 4, 5, 7, 8, 99)] == [0, 0, 1, 1, 2, 2]


def rising(levels: list[int], peak: int = 1000) -> bool:
    return _is_rising(np.array(levels, np.int64), peak)


def test_a_rise_of_half_a_percent_counts() -> None:
    assert [rising([0, 1, 2, 3, 4, step], 1000) for step in (4, 5, 6)] == [False, True, True]
    assert not rising([0, 0, 0, 0, 0, 0], 1000)
    assert rising([100, 101, 102, 103, 104, 105], 1000)


def test_four_fifths_of_the_movement_must_be_upward() -> None:
    """Up by 90, down by `back`, in thirds that all rise: (90 - back) / (90 + back)."""

    def zigzag(back: int) -> list[int]:
        return [0, 30, 30 - back, 60, 60, 90 - back]

    assert [rising(zigzag(back), 100) for back in (9, 10, 11)] == [True, True, False]


def test_each_third_must_rise_by_a_quarter_of_its_share() -> None:
    """Of a rise of 120 each third's share is 40, of which a quarter is 10."""
    for least, is_rising in ((9, False), (10, True), (11, True)):
        for thirds in ((least, 60, 60 - least), (60, least, 60 - least), (60, 60 - least, least)):
            levels = np.cumsum([0, *thirds])
            scaled = np.repeat(levels, [1, 2, 2, 1]) * 120 // int(levels[-1])
            assert rising(scaled.tolist(), 1000) == is_rising, (least, thirds)


def test_the_median_slope_of_at_most_512_steps() -> None:
    assert _median_slope(np.arange(6) * 7) == 7
    assert _median_slope(np.array([0, 10, 10, 10, 40])) == np.median([10, 5, 10 / 3, 10, 0, 0, 10, 0, 15, 30])
    assert _median_slope(np.arange(5000) * 3) == 3


def floor_with(levels: list[int]) -> Any:
    """Steps of 100 ns whose floors are these: each step allocates at its start, keeping the level."""
    events = [
        event(
            100 * i,
            i + 1,
            bytes_allocated=level,
            allocation_bytes=max(level - (levels[i - 1] if i else 0), 0),
            tf_op=f"op{i % 3}",
        )
        for i, level in enumerate(levels)
    ]
    found = events_of(*events)
    starts = np.arange(len(levels), dtype=np.int64) * 100 * NS
    return floor_of(found, 0, starts, len(levels) * 100 * NS)


@pytest.mark.parametrize(
    ("n", "first", "is_enough"),
    [(5, 1, False), (6, 2, False), (7, 2, False), (8, 2, True), (10, 2, True), (11, 3, True)],
)
def test_six_steps_after_a_fifth_of_warm_up_are_evidence(n: int, first: int, is_enough: bool) -> None:
    found = floor_with([1000 + 50 * i for i in range(n)])
    assert (found.first, found.n_steps, found.rise_bytes_per_step) == (
        first,
        n - first,
        50 if is_enough else 0,
    )
    assert len(found.suspects) == (3 if is_enough else 0)
    if is_enough:
        counts = [sum(i % 3 == k for i in range(first, n)) for k in range(3)]
        assert sorted(found.suspects) == sorted(
            (f"op{k}", 50 * count, count) for k, count in enumerate(counts)
        )


def test_a_steady_rise_whose_median_is_zero_has_no_suspects() -> None:
    """Two long levels between few jumps: more than half of all pairs of steps are level."""
    flat = [0, *[20] * 119, *[40] * 60, 60]
    found = floor_with([*[0] * 46, *flat])
    assert found.first == 46
    assert rising([1000 + level for level in flat], 60)
    assert (found.rise_bytes_per_step, found.suspects) == (0, ())


def test_no_steps_no_floor() -> None:
    found = floor_of(events_of(event(0, bytes_allocated=5)), 0, np.empty(0, np.int64), 10)
    assert (found.floor_bytes.tolist(), found.n_steps, found.rise_bytes_per_step) == ([], 0, 0)


def test_the_summary_of_a_host_s_memories() -> None:
    """Memory b has the larger peak; its steps are the annotations."""
    main = [DrawnEvent("train", 100 * i * NS, 100 * NS, {"_r": 1, "step_num": i}) for i in range(3)]
    work = [DrawnEvent("w:Op", (100 * i + 5) * NS, 50 * NS) for i in range(3)]
    first = [
        event(10, 1, allocator_name="a", bytes_allocated=4, allocation_bytes=9),
        event(150, 1, True, allocator_name="a", bytes_allocated=0),
    ]
    second = [
        event(20 + i, i, allocator_name="b", bytes_allocated=10 * i, allocation_bytes=10) for i in range(5)
    ]
    marked = sorted([*main, *work], key=lambda one: (one.start_ps, -one.duration_ps))
    found = host_memory(trace_of(marked, first, second))
    assert [memory.peak.name for memory in found.memories] == ["a", "b"]
    assert [memory.peak.used_bytes for memory in found.memories] == [4, 40]
    assert [memory.excess_bytes for memory in found.memories] == [5, 10]
    assert [(memory.history_ps // NS).tolist() for memory in found.memories] == [
        [10, 150],
        [20, 21, 22, 23, 24],
    ]
    assert found.memories[1].history_bytes.tolist() == [0, 10, 20, 30, 40]
    assert found.memories[0].floor.floor_bytes.tolist() == [4, 0, 0]
    assert found.duration_ps == 300 * NS


@pytest.mark.parametrize(("n", "shown"), [(100, 100), (144, 144), (145, 96)])
def test_small_charts_show_up_to_three_events_per_pixel_of_48(n: int, shown: int) -> None:
    """Events 10 apart, ever more in use: beyond 144 each pixel keeps its first and its last one. Events at 0
    count, too.
    """
    events = [event(10 * i if i > 2 else 0, i, bytes_allocated=i + 1) for i in range(n)]
    (memory,) = host_memory(trace_of([*events, DrawnEvent("end", 10 * n * NS, 0)])).memories
    levels = memory.history_bytes.tolist()
    assert (len(levels), levels[0], levels[-1]) == (shown, 1, n)
    assert levels == sorted(set(levels))
