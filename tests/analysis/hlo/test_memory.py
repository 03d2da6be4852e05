"""The heap's replay and what it says of a space, on drawn events whose answer is plain, and held against a
replay one by one.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.heap import Heap, simulate
from tb_tpuprof.analysis.hlo.memory import (
    CATEGORIES,
    SpaceMemory,
    colors_of,
    part_of,
    scoped_vmem,
    space_memory,
)
from tb_tpuprof.analysis.hlo.memory_advice import advice, padded_dimensions
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_buffers import HEAP_EVENTS
from tb_tpuprof.trace.hlo_shape import NO_SHAPE
from tb_tpuprof.trace.table import Table
from tests.ingest.hlo_protos import array, computation, instruction, proto

A, F, S = 0, 1, 2
Event = tuple[int, int] | tuple[int, int, int]


def heap_of(events: list[Event], sizes: list[int]) -> Heap:
    rows = np.array(
        [(e[0], e[1], i, e[2] if len(e) > 2 else -1, e[1], -1) for i, e in enumerate(events)], np.int64
    ).reshape(-1, 6)
    columns = {spec.name: rows[:, i].astype(spec.dtype) for i, spec in enumerate(HEAP_EVENTS)}
    size = np.array(sizes, np.int64)
    return simulate(Table(HEAP_EVENTS, columns), slice(0, len(events)), size, size * 4 // 5)


def spans(heap: Heap) -> dict[int, tuple[int, int]]:
    return {
        row: (int(a), int(b)) for row, (a, b) in enumerate(zip(heap.start, heap.end, strict=True)) if a >= 0
    }


def test_bytes_before_each_event_and_the_first_of_equal_peaks() -> None:
    heap = heap_of([(A, 0), (A, 1), (F, 0), (A, 2), (F, 1), (F, 2)], [100, 50, 100])
    assert heap.held.tolist() == [0, 100, 150, 50, 150, 100, 0]
    assert heap.held_unpadded.tolist() == [0, 80, 120, 40, 120, 80, 0]
    assert (heap.peak, heap.live.tolist()) == (1, [0, 1])
    assert spans(heap) == {0: (0, 2), 1: (1, 4), 2: (3, 5)}


def test_shared_memory_counts_once_and_lives_until_its_last_user() -> None:
    heap = heap_of([(A, 0), (S, 2, 0), (F, 0), (A, 1), (F, 2), (F, 1)], [100, 200, 50])
    assert heap.held.tolist() == [0, 100, 100, 100, 300, 200, 0]
    assert (heap.peak, heap.live.tolist()) == (3, [0, 1])
    assert spans(heap)[0] == (0, 4)


def test_memory_that_is_shared_after_it_was_freed_is_taken_again_under_the_new_user_s_name() -> None:
    heap = heap_of([(A, 0), (F, 0), (A, 1), (S, 2, 0), (A, 3), (F, 2), (F, 1), (F, 3)], [100, 200, 50, 30])
    assert heap.held.tolist() == [0, 100, 0, 200, 300, 330, 230, 30, 0]
    assert heap.live.tolist() == [1, 2, 3]
    assert spans(heap) == {0: (0, 1), 1: (2, 6), 2: (3, 5), 3: (4, 7)}


def test_sharing_with_one_that_shares_is_sharing_with_the_first() -> None:
    heap = heap_of([(A, 0), (S, 1, 0), (S, 2, 1), (F, 0), (F, 1), (F, 2)], [100, 1, 1])
    assert heap.held.tolist() == [0, 100, 100, 100, 100, 100, 0]


def test_nothing_is_freed_that_is_not_held() -> None:
    heap = heap_of([(A, 0), (F, 0), (F, 0), (F, 1), (A, 0), (A, -1)], [100, 50])
    assert heap.held.tolist() == [0, 100, 0, 0, 0, 100, 100]
    assert heap.n_damaged == 3


def test_sharing_in_a_circle_ends() -> None:
    heap = heap_of([(S, 0, 1), (S, 1, 0), (F, 0), (F, 1)], [100, 50])
    assert heap.held.tolist() == [0, 100, 150, 50, 0]


def test_no_events() -> None:
    heap = heap_of([], [10])
    assert (heap.held.tolist(), heap.peak, heap.live.tolist(), spans(heap)) == ([0], -1, [], {})


def replayed(events: list[Event], sizes: list[int]) -> tuple[list[int], int, list[int]]:
    """The same by hand: bytes, peak and what stands for the memory that is held there."""
    root: dict[int, int] = {}
    for kind, buffer, *more in events:
        if kind != F:
            root[buffer] = root.get(more[0], more[0]) if kind == S else buffer
    users: dict[int, int] = {}
    held, total, shown, best, peak, live = [0], 0, dict[int, int](), 0, -1, list[int]()
    for i, (kind, buffer, *_) in enumerate(events):
        owner = root[buffer]
        if kind == F:
            users[owner] -= 1
            if not users[owner]:
                total -= sizes[owner]
                del shown[owner]
        else:
            users[owner] = users.get(owner, 0) + 1
            if users[owner] == 1:
                total += sizes[owner]
                shown[owner] = buffer
        held.append(total)
        if total > best:
            best, peak, live = total, i, list(shown.values())
    return held, peak, live


@pytest.mark.parametrize("seed", range(20))
def test_random_traces_are_as_a_replay_one_by_one(seed: int) -> None:
    random.seed(seed)
    sizes = [random.randint(1, 1000) for _ in range(300)]
    events: list[Event] = []
    held: list[int] = []
    roots: list[int] = []
    for buffer in range(300):
        if roots and random.random() < 0.3:
            events.append((S, buffer, random.choice(roots)))
        else:
            events.append((A, buffer))
            roots.append(buffer)
        held.append(buffer)
        while held and random.random() < 0.4:
            events.append((F, held.pop(random.randrange(len(held)))))
    heap = heap_of(events, sizes)
    assert (heap.held.tolist(), heap.peak, heap.live.tolist()) == replayed(events, sizes)


def module_of(
    allocations: list[Any],
    events: list[Any] | None = None,
    sizes: Any = None,
    shapes: Any = None,
    **fields: Any,
) -> HloModule:
    """Buffers 1 … 4 of instructions add.2 … add.5; `sizes` of each with padding."""
    sizes = sizes or {1: 100_000, 2: 200_000, 3: 50_000, 4: 30_000}
    instructions = [
        instruction(i + 1, "add", (shapes or {}).get(i, array(size // 5)), **fields)
        for i, size in sizes.items()
    ]
    buffers = [{1: i, 2: size, 3: {2: f"add.{i + 1}", 4: i + 1}, 4: 0} for i, size in sizes.items()]
    traces = [
        {1: [{1: e[0], 2: e[1], 4: f"add.{e[1] + 1}"} for e in trace], 2: 0, 3: i}
        for i, trace in enumerate(events or [])
    ]
    return decode_hlo(
        proto([computation(1, "main", instructions, 2)], buffers={1: buffers, 3: allocations, 4: traces}),
        "f",
        7,
    )


def space(module: HloModule, color: int = 0) -> SpaceMemory:
    found = space_memory(module, color)
    assert found is not None
    return found


def test_permanent_memory_lies_below_the_temporaries_and_threads_own_in_no_sum() -> None:
    allocations = [
        {1: 0, 2: 500_000, 9: [{1: 1, 2: 0, 3: 100_000}, {1: 2, 2: 100_000, 3: 200_000}]},
        {1: 1, 2: 70_000, 5: 1, 7: 1, 9: [{1: 3, 2: 0, 3: 50_000}, {1: 4, 2: 0, 3: 30_000}]},
        {1: 2, 2: 60_000, 3: 1},
        {1: 3, 2: 8, 12: 1},
    ]
    memory = space(module_of(allocations, [[(A, 1), (A, 2), (F, 1), (F, 2)]]))
    assert memory.by_category == (70_000, 0, 0, 8, 0)
    assert (memory.peak_bytes, memory.allocated_bytes) == (370_008, 570_008)
    assert memory.peak_unpadded_bytes == 70_008 - 10_000 + 240_000
    assert memory.live.tolist() == [2, 0, 1]
    assert [CATEGORIES[k] for k in memory.category.tolist()] == [
        "Temporary",
        "Temporary",
        "Parameter",
        "Parameter",
    ]


def test_of_several_heaps_the_largest_allocation_s_is_replayed() -> None:
    allocations = [
        {1: 0, 2: 100_000, 9: [{1: 1, 2: 0, 3: 100_000}]},
        {1: 1, 2: 300_000, 9: [{1: 2, 2: 0, 3: 200_000}]},
    ]
    memory = space(module_of(allocations, [[(A, 1), (F, 1)], [(A, 2), (F, 2)]]))
    assert (memory.peak_bytes, memory.n_heap_traces) == (200_000, 2)


def test_sizes_beyond_any_memory_do_not_overflow() -> None:
    allocations = [
        {1: 0, 2: 2**63 - 1, 9: [{1: 1, 2: 0, 3: 1}]},
        *({1: i, 2: 2**62, 5: 1} for i in range(1, 9)),
    ]
    memory = space(
        module_of(
            allocations,
            [[(A, 1), (A, 2), (A, 3), (F, 1)]],
            dict.fromkeys(range(1, 5), 2**62),
            {i: array(2**40, 2**40) for i in range(1, 5)},
        )
    )
    assert 0 < memory.permanent_bytes < memory.peak_bytes < 2**62
    assert memory.peak_unpadded_bytes <= memory.peak_bytes


def test_spaces_are_apart() -> None:
    module = module_of(
        [{1: 0, 2: 100, 5: 1, 8: 5, 9: [{1: 1, 2: 0, 3: 100}]}, {1: 1, 2: 40, 5: 1, 9: [{1: 2, 2: 0, 3: 40}]}]
    )
    assert module.buffers
    assert colors_of(module.buffers) == [0, 5]
    assert (space(module).peak_bytes, space(module, 5).peak_bytes, space(module, 3).peak_bytes) == (
        40,
        100,
        0,
    )


def test_a_module_without_an_assignment_has_no_memory() -> None:
    assert (
        space_memory(
            decode_hlo(proto([computation(1, "main", [instruction(1, "parameter", array(2))], 1)]), "f", 7), 0
        )
        is None
    )


def test_scoped_vmem_is_the_largest_sum_of_one_instruction() -> None:
    config = b'{"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"3000"},{"memory_space":"2","size":"9"}]}'
    assert scoped_vmem(module_of([], f43=config))[0] == 3000
    assert scoped_vmem(module_of([], f43=b'{"used_scoped_memory_configs":[{"size":"x"}]}')) == (0, -1)


def test_advice_names_padding_donation_and_types_with_what_they_save() -> None:
    padded = {2: 11, 3: (16, 1000), 5: {1: (0, 1), 6: [{1: (8, 128)}]}}
    allocations = [
        {1: 0, 2: 512_000, 9: [{1: 1, 2: 0, 3: 512_000}]},
        {1: 1, 2: 200_000, 5: 1, 6: 3, 9: [{1: 2, 2: 0, 3: 200_000}]},
        {1: 2, 2: 200_000, 7: 1, 9: [{1: 3, 2: 0, 3: 200_000}]},
    ]
    module = module_of(
        allocations,
        [[(A, 1), (F, 1)]],
        {1: 512_000, 2: 200_000, 3: 200_000},
        {1: padded, 2: array(50_000), 3: array(50_000)},
    )
    found = advice(module, space(module))
    assert [item.saves_bytes for item in found] == [448_000, 256_000, 200_000]
    assert (
        "`add.2`, `f32[16,1000]`, takes 500 KiB for 62.5 KiB of data (8×): the layout pads 16 to 128"
        in found[0].text
    )
    assert "bfloat16" in found[1].text
    assert "parameter 3 has the size of a result, which can then reuse its memory" in found[2].text


def test_padded_dimensions_are_named() -> None:
    module = module_of([], None, {1: 5}, {1: {2: 11, 3: (3, 5), 5: {1: (1, 0), 6: [{1: (8, 128)}]}}})
    assert padded_dimensions(module.shape(0)) == "3 to 8, 5 to 128"
    assert part_of(module.shape(0), (1,)) is NO_SHAPE
