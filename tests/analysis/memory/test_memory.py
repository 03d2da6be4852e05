"""Memory on drawn traces: order and ties of events, peak, what is active, windows, and floors that rise or do
not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.analysis.memory.events import MemoryEvents, _order, memory_events
from tb_tpuprof.analysis.memory.floor import Floor, floor_of, floors
from tb_tpuprof.analysis.memory.peak import active_allocations, event_at, excess_bytes, memory_peak
from tb_tpuprof.analysis.memory.window import window_events
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, Value, build

NS = 1_000
CAPACITY = 1_000_000
KIB = 1024


@dataclass
class Heap:
    """A toy allocator: places blocks in the first gap that fits, and writes what TensorFlow's and PJRT's
    allocators trace.
    """

    name: str = "GPU_0_bfc"
    capacity: int = CAPACITY
    stack: int = 0
    blocks: dict[int, tuple[int, str]] = field(default_factory=dict)
    events: list[DrawnEvent] = field(default_factory=list)
    peak: int = 0

    def gaps(self) -> list[tuple[int, int]]:
        """(address, size) of what is free."""
        edges, at = [], 0
        for address in sorted(self.blocks):
            edges.append((at, address - at))
            at = address + self.blocks[address][0]
        return [gap for gap in [*edges, (at, self.capacity - self.stack - at)] if gap[1] > 0]

    @property
    def fragmentation(self) -> float:
        sizes = [size for _, size in self.gaps()]
        return 1 - max(sizes) / sum(sizes) if sizes else 0.0

    @property
    def used(self) -> int:
        return sum(size for size, _ in self.blocks.values())

    def allocate(self, time_ns: int, size: int, op: str = "op", requested: int | None = None) -> int:
        address = next(at for at, room in self.gaps() if room >= size)
        self.blocks[address] = (size, op)
        stats: dict[str, Value] = {"tf_op": op, "region_type": "output", "data_type": 1, "shape": f"[{size}]"}
        self._event("MemoryAllocation", time_ns, address, size, requested or size, stats)
        return address

    def free(self, time_ns: int, address: int) -> None:
        size, _ = self.blocks.pop(address)
        self._event("MemoryDeallocation", time_ns, address, size, size, {"data_type": 0})

    def _event(
        self, kind: str, time_ns: int, address: int, size: int, requested: int, more: dict[str, Value]
    ) -> None:
        self.peak = max(self.peak, self.used)
        stats: dict[str, Value] = {
            "allocator_name": self.name,
            "bytes_reserved": self.stack,
            "bytes_allocated": self.used,
            "bytes_available": self.capacity - self.stack - self.used,
            "fragmentation": self.fragmentation,
            "peak_bytes_in_use": self.peak,
            "requested_bytes": requested,
            "allocation_bytes": size,
            "addr": address + 4096,
            **more,
        }
        self.events.append(DrawnEvent(kind, time_ns * NS, 0, stats))


def trace_of(*heaps: Heap, threads: int = 1) -> Trace:
    """Events dealt to threads in turn, as work moves between them."""
    lines: dict[str, list[DrawnEvent]] = {f"thread {i}": [] for i in range(threads)}
    for i, event in enumerate(event for heap in heaps for event in heap.events):
        lines[f"thread {i % threads}"].append(event)
    for events in lines.values():
        events.sort(key=lambda event: event.start_ps)
    return build([DrawnPlane("/host:CPU", lines)])


def events_of(*heaps: Heap, threads: int = 1) -> MemoryEvents:
    return memory_events(trace_of(*heaps, threads=threads))


def small_heap() -> Heap:
    heap = Heap()
    first = heap.allocate(10, 400, "a")
    second = heap.allocate(20, 300, "b", requested=290)
    heap.free(30, first)
    heap.allocate(40, 600, "c")
    heap.allocate(45, 300, "b", requested=290)
    heap.free(50, second)
    return heap


def test_peak_and_what_is_in_use_then() -> None:
    events = events_of(small_heap())
    peak = memory_peak(events, 0)
    assert (peak.used_bytes, peak.start_ps, peak.capacity_bytes) == (1200, 45 * NS, CAPACITY)
    assert (peak.n_allocations, peak.n_deallocations, peak.lifetime_peak_bytes) == (4, 2, 1200)
    active = active_allocations(events, 0, peak.at)
    assert [events.strings[i] for i in events.op[active.example]] == ["c", "b"]
    assert active.n_occurrences.tolist() == [1, 2]
    assert active.total_bytes.tolist() == [600, 600]
    assert (active.older_bytes, excess_bytes(events, 0, peak.at)) == (0, 0)


def test_equal_allocations_are_one_row() -> None:
    heap = Heap()
    for time in range(3):
        heap.allocate(time, 100, "x")
    heap.allocate(9, 100, "y")
    events = events_of(heap)
    active = active_allocations(events, 0, memory_peak(events, 0).at)
    assert active.n_occurrences.tolist() == [3, 1]
    assert active.total_bytes.tolist() == [300, 100]


def test_a_deallocation_is_of_the_allocation_at_its_address() -> None:
    events = events_of(small_heap())
    freed = np.flatnonzero(~events.is_allocation)
    assert [events.strings[i] for i in events.op[freed]] == ["a", "b"]
    assert events.allocation_bytes[freed].tolist() == [400, 300]
    assert (events.partner[events.partner[freed]] == freed).all()


def test_what_was_allocated_before_the_capture_is_told_apart() -> None:
    heap = Heap()
    old = heap.allocate(1, 5000, "old")
    heap.events.clear()
    heap.allocate(10, 100, "new")
    heap.free(20, old)
    events = events_of(heap)
    peak = memory_peak(events, 0)
    active = active_allocations(events, 0, peak.at)
    assert (active.total_bytes.tolist(), active.older_bytes) == ([100], 5000)
    assert events.partner[-1] == -1


def test_an_address_used_anew_without_a_deallocation_between() -> None:
    heap = small_heap()
    heap.events = [event for event in heap.events if event.name == "MemoryAllocation"][:1] * 2
    heap.events = [DrawnEvent(e.name, e.start_ps + i * NS, 0, e.stats) for i, e in enumerate(heap.events)]
    events = events_of(heap)
    assert active_allocations(events, 0, 1).n_occurrences.tolist() == [1]


def test_threads_interleave_by_absolute_time() -> None:
    one, many = events_of(small_heap()), events_of(small_heap(), threads=3)
    assert one.heap_bytes.tolist() == many.heap_bytes.tolist()
    assert one.partner.tolist() == many.partner.tolist()


def test_memories_are_kept_apart_and_sorted_as_people_count() -> None:
    heaps = [Heap(name=name) for name in ("GPU_10_bfc", "GPU_2_bfc", "gpu_host_bfc")]
    for i, heap in enumerate(heaps):
        heap.allocate(i, 100 * (i + 1))
    events = events_of(*heaps)
    assert events.memories == ("GPU_2_bfc", "GPU_10_bfc", "gpu_host_bfc")
    assert [memory_peak(events, m).used_bytes for m in range(3)] == [200, 100, 300]


def test_a_device_s_number_names_a_memory_without_an_allocator() -> None:
    stats: dict[str, Value] = {
        "index_on_host": 3,
        "bytes_reserved": 70,
        "bytes_allocated": 30,
        "bytes_available": 900,
        "addr": 1,
    }
    trace = build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("MemoryAllocation", 5, 0, stats)]})])
    events = memory_events(trace)
    peak = memory_peak(events, 0)
    assert (peak.name, peak.used_bytes, peak.stack_bytes, peak.capacity_bytes) == ("device 3", 100, 70, 1000)


def test_words_for_nothing_are_nothing() -> None:
    heap = Heap()
    heap.allocate(1, 10, "(null)")
    assert events_of(heap).op[:].tolist() == [-1]


def test_damaged_numbers_do_no_harm() -> None:
    stats: dict[str, Value] = {
        "allocator_name": "x",
        "bytes_allocated": -5,
        "bytes_available": 2**62,
        "fragmentation": float("nan"),
        "addr": -1,
    }
    trace = build(
        [
            DrawnPlane(
                "/host:CPU",
                {
                    "main": [
                        DrawnEvent("MemoryAllocation", 0, 0, stats),
                        DrawnEvent("MemoryDeallocation", 1, 0, {}),
                    ]
                },
            )
        ]
    )
    events = memory_events(trace)
    peak = memory_peak(events, events.memories.index("x"))
    assert (peak.used_bytes, peak.capacity_bytes, peak.used_fraction) == (0, 0, 0.0)
    assert np.isnan(peak.fragmentation)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 3),
)
def test_peak_fragmentation_and_active_allocations_are_those_of_a_direct_replay(
    drawn: list[tuple[int, int, bool]], threads: int
) -> None:
    """The allocator itself tells at each of its moments what is in it: the analysis must say the same of
    every moment.
    """
    heap = Heap()
    levels: list[tuple[int, float, list[tuple[int, str]]]] = []
    for time, (which, units, frees) in enumerate(drawn):
        if frees and heap.blocks:
            heap.free(time, sorted(heap.blocks)[which % len(heap.blocks)])
        else:
            heap.allocate(time, units * 64, "abc"[which])
        levels.append((heap.used, heap.fragmentation, sorted(heap.blocks.values())))
    events = events_of(heap, threads=threads)
    peak = memory_peak(events, 0)
    best = max(range(len(levels)), key=lambda i: (levels[i][0], i))
    assert (peak.used_bytes, peak.at) == (levels[best][0], best)
    assert peak.fragmentation == pytest.approx(levels[best][1])
    for at, (used, _, blocks) in enumerate(levels):
        active = active_allocations(events, 0, at)
        found = [(int(events.allocation_bytes[i]), events.strings[events.op[i]]) for i in active.example]
        every = sorted(
            pair for pair, n in zip(found, active.n_occurrences.tolist(), strict=True) for _ in range(n)
        )
        assert every == blocks
        assert (int(active.total_bytes.sum()), active.older_bytes, excess_bytes(events, 0, at)) == (
            used,
            0,
            0,
        )


def sawtooth(n: int = 20_000) -> Heap:
    heap = Heap()
    for i in range(n // 2):
        heap.free(2 * i + 1, heap.allocate(2 * i, 64 + i % 1000))
    return heap


def test_a_window_keeps_the_peak_and_the_trough_of_every_pixel() -> None:
    events = events_of(sawtooth())
    width, end = 100, 20_000 * NS
    rows = window_events(events, 0, 0, end, width)
    assert len(rows) <= 3 * width + 1
    assert (np.diff(rows) > 0).all()
    pixel_ps = -(-(end + 1) // width)
    all_pixels, kept = events.start_ps // pixel_ps, events.start_ps[rows] // pixel_ps
    for pixel in range(width):
        every, shown = events.used_bytes[all_pixels == pixel], events.used_bytes[rows][kept == pixel]
        assert (shown.max(), shown.min(), shown[-1]) == (every.max(), every.min(), every[-1])


def test_a_narrow_window_shows_every_event_and_the_level_before() -> None:
    events = events_of(sawtooth())
    rows = window_events(events, 0, 1000 * NS, 1100 * NS, 100)
    assert rows.tolist() == list(range(999, 1101))
    assert window_events(events, 0, 10**9 * NS, 2 * 10**9 * NS, 100).tolist() == [19_999]
    assert event_at(events, 0, 1000 * NS + 5) == 1000
    assert event_at(events, 0, -1) == 0


def stepped(kept: list[int], transient: int = 500 * KIB, n_bursts: int = 3) -> tuple[Heap, np.ndarray, int]:
    """Steps of 100 ns: step i keeps kept[i] bytes for ever (gives back, if negative), beside what it
    allocates and frees.
    """
    heap = Heap(capacity=2**30)
    heap.allocate(0, 1000 * KIB, "weights")
    stay: list[int] = []
    for step, size in enumerate(kept):
        at = 100 * (step + 1)
        for burst in range(n_bursts):
            heap.free(at + 20 * burst + 15, heap.allocate(at + 20 * burst + 5, transient, "temporary"))
        if size > 0:
            stay.append(heap.allocate(at + 90, size, "cache/Append"))
        elif size < 0 and stay:
            heap.free(at + 90, stay.pop(0))
    starts = np.arange(1, len(kept) + 1, dtype=np.int64) * 100 * NS
    return heap, starts, (len(kept) + 1) * 100 * NS


def floor_with(kept: list[int], **more: int) -> Floor:
    heap, starts, end = stepped(kept, **more)
    return floor_of(events_of(heap), 0, starts, end)


def test_the_floor_is_the_least_in_use_during_each_step() -> None:
    heap, starts, end = stepped([0, 4 * KIB, 0])
    found = floors(events_of(heap), 0, np.append(starts, end))
    assert found.tolist() == [1000 * KIB, 1000 * KIB, 1004 * KIB]


@pytest.mark.parametrize("per_step", [1 * KIB, 16 * KIB, 300 * KIB])
def test_a_planted_leak_is_found_with_its_size_and_its_operation(per_step: int) -> None:
    found = floor_with([per_step] * 40)
    assert found.rise_bytes_per_step == pytest.approx(per_step, rel=0.01)
    assert found.suspects[0][0] == "cache/Append"
    assert found.suspects[0][2] == found.n_steps


def test_a_leak_every_other_step_is_found() -> None:
    assert floor_with([0, 64 * KIB] * 20).rise_bytes_per_step == pytest.approx(32 * KIB, rel=0.05)


@pytest.mark.parametrize(
    "kept",
    [
        [0] * 40,  # flat
        [200 * KIB] * 6 + [0] * 34,  # warm-up: optimizer slots, caches
        [0] * 20 + [900 * KIB] + [0] * 19,  # one jump
        [64 * KIB] * 20 + [0] * 20,  # grew, and stopped
        [64 * KIB, -1] * 20,  # what comes goes
        [64 * KIB] * 5,  # too few steps to say
        [16] * 40,  # less than half a percent
    ],
    ids=["flat", "warm-up", "jump", "stopped", "ring", "short", "tiny"],
)
def test_no_accusation_without_a_steady_rise(kept: list[int]) -> None:
    found = floor_with(kept)
    assert found.rise_bytes_per_step == 0
    assert found.suspects == ()


@pytest.mark.parametrize("seed", range(30))
def test_no_accusation_on_noise_around_a_level(seed: int) -> None:
    waves = np.random.default_rng(seed).integers(-100, 100, 40).tolist()
    heap = Heap(capacity=2**30)
    address = heap.allocate(0, 1000 * KIB)
    for step, wave in enumerate(waves):
        heap.free(100 * step + 50, address)
        address = heap.allocate(100 * step + 51, (1000 + wave) * KIB)
    heap.events = [
        event for event in heap.events if event.name == "MemoryAllocation"
    ]  # the level itself, without the gaps between
    starts = np.arange(len(waves), dtype=np.int64) * 100 * NS + 60 * NS
    found = floor_of(events_of(heap), 0, starts, int(starts[-1]) + 100 * NS)
    assert len(set(found.floor_bytes.tolist())) > 10
    assert found.rise_bytes_per_step == 0


def test_no_events_no_memories() -> None:
    events = memory_events(build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 5)]})]))
    assert events.memories == ()
    assert len(events.event) == 0


@pytest.mark.parametrize("last", [3, 40, 65_535, 65_536, 70_000])
def test_events_are_sorted_by_memory_whatever_their_number(last: int) -> None:
    memory, start = np.array([last, 1, 0, last, 1], np.int32), np.array([9, 8, 7, 6, 6], np.int64)
    order = _order(memory, start)
    assert order is not None
    assert order.tolist() == sorted(range(5), key=lambda row: (memory[row], start[row], row))
