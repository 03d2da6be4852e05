"""Parts of a buffer assignment, with bytes added up by hand, and advice at both sides of its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.heap import Heap, _roots
from tb_tpuprof.analysis.hlo.memories import HloMemories
from tb_tpuprof.analysis.hlo.memory import SpaceMemory, colors_of, part_of, scoped_vmem, space_memory
from tb_tpuprof.analysis.hlo.memory_accesses import Access, _blocks, accesses_of
from tb_tpuprof.analysis.hlo.memory_advice import Advice, advice, buffer_name, buffer_shape
from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program, Programs, program_of
from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.ingest.hlo_protos import array, computation, instruction, message, proto

A, F = 0, 1
F32, BF16, TUPLE = 11, 16, 13
KIB = 1024


def module_of(
    buffers: Sequence[tuple[int, int, Any]],
    allocations: Sequence[Any] = (),
    traces: Sequence[Sequence[tuple[int, int]]] = (),
    name: str = "jit_f",
    **fields: Any,
) -> HloModule:
    """Buffers (size, color, shape) 1, 2, 3 … of instructions add.1, add.2, …; traces of (kind, buffer)."""
    instructions = [
        instruction(i, "add", shape, **fields) for i, (_, _, shape) in enumerate(buffers, 1) if shape
    ]
    logical = [
        {1: i, 2: size, 3: {2: f"add.{i}", 4: i}, 4: color} for i, (size, color, _) in enumerate(buffers, 1)
    ]
    heaps = [{1: [{1: kind, 2: buffer, 4: f"add.{buffer}"} for kind, buffer in trace]} for trace in traces]
    data = proto(
        [computation(1, "main", instructions, 1)],
        buffers={1: logical, 3: list(allocations), 4: heaps},
        **({"f1": name} if name != "jit_f" else {}),
    )
    return decode_hlo(data, name, 7)


def allocation(index: int, size: int, *held: int, color: int = 0, **flags: int) -> dict[int, Any]:
    numbers = {"thread_local": 3, "parameter": 5, "number": 6, "live_out": 7, "is_tuple": 11, "constant": 12}
    return {
        1: index,
        2: size,
        8: color,
        9: [{1: buffer, 2: 16 * i, 3: 1} for i, buffer in enumerate(held)],
        **{numbers[name]: value for name, value in flags.items()},
    }


def space(module: HloModule, color: int = 0) -> SpaceMemory:
    memory = space_memory(module, color)
    assert memory is not None
    return memory


def test_parts_of_nested_tuples() -> None:
    a, b, c = (Shape(F32, (n,)) for n in (2, 3, 4))
    inner = Shape(TUPLE, elements=(b, c))
    whole = Shape(TUPLE, elements=(a, inner))
    parts = {(): whole, (0,): a, (1,): inner, (1, 0): b, (1, 1): c}
    assert {index: part_of(whole, index) for index in parts} == parts
    for index in ((2,), (-1,), (1, 2), (0, 0), (1, -1)):
        assert part_of(whole, index) is NO_SHAPE


def test_an_allocation_is_of_the_first_kind_that_applies() -> None:
    flags: list[dict[str, int]] = [
        {"parameter": 1, "live_out": 1, "thread_local": 1, "constant": 1},
        {"live_out": 1, "thread_local": 1, "constant": 1},
        {"thread_local": 1, "constant": 1},
        {"constant": 1},
        {},
    ]
    sizes = (1, 20, 300, 4000, 50_000)
    buffers = [(size, 0, array(size // 4 or 1)) for size in (*sizes, 7)]
    allocations = [
        allocation(i, size, i + 1, **one) for i, (size, one) in enumerate(zip(sizes, flags, strict=True))
    ]
    memory = space(module_of(buffers, allocations))
    assert memory.category.tolist() == [0, 1, 2, 3, 4, -1]
    assert memory.by_category == (1, 20, 0, 4000, 0)
    assert (memory.permanent_bytes, memory.allocated_bytes) == (4021, 54_021)
    assert memory.allocation.tolist() == [0, 1, 2, 3, 4, -1]
    assert memory.offset.tolist() == [0, 0, 0, 0, 0, -1]
    assert (memory.n_permanent, memory.live.tolist()) == (3, [0, 1, 3])


def test_the_largest_buffer_stands_for_a_permanent_allocation() -> None:
    """Of the equals 2 and 3 the first; sizes without padding are those of the shapes."""
    sizes = (40, 90, 90, 500, 60)
    buffers = [(size, 0, array(10)) for size in sizes]
    memory = space(
        module_of(
            buffers,
            [
                allocation(0, 100, 1, 2, 3, parameter=1),
                allocation(1, 500, 4, live_out=1),
                allocation(2, 9, constant=1),
            ],
        )
    )
    assert memory.live.tolist() == [1, 3]
    assert memory.unpadded.tolist() == [40] * 5
    assert memory.offset.tolist() == [0, 16, 32, 0, -1]
    assert memory.permanent_padding_bytes == (90 - 40) + (500 - 40)
    assert memory.peak_bytes == 609
    assert memory.peak_unpadded_bytes == 609 - 510


def test_sizes_without_a_shape_are_taken_as_they_are_and_parts_of_tuples_by_index() -> None:
    shape = {2: TUPLE, 4: [array(5), array(2, 3)]}
    entry = [instruction(1, "add", shape), instruction(2, "add", array(6))]
    logical = [
        {1: 1, 2: 64, 3: {2: "add.1", 4: 1}, 4: 0},
        {1: 2, 2: 64, 3: {2: "add.1", 4: 1, 3: (0,)}, 4: 0},
        {1: 3, 2: 64, 3: {2: "add.1", 4: 1, 3: (1,)}, 4: 0},
        {1: 4, 2: 64, 3: {2: "add.1", 4: 1, 3: (2,)}, 4: 0},
        {1: 5, 2: 64, 3: {2: "add.2", 4: 2}, 4: 0},
        {1: 6, 2: 64, 3: {2: "gone", 4: 99}, 4: 0},
    ]
    module = decode_hlo(proto([computation(1, "main", entry, 2)], buffers={1: logical, 3: []}), "f", 7)
    assert space(module).unpadded.tolist() == [16, 20, 24, 0, 24, 64]
    assert [buffer_name(module, row) for row in (0, 4, 5)] == ["add.1", "add.2", "?"]
    shapes = [buffer_shape(module, row) for row in range(6)]
    assert [shape and shape.dims for shape in shapes] == [(), (5,), (2, 3), (), (6,), None]
    assert buffer_shape(decode_hlo(proto([computation(1, "m", entry, 2)]), "f", 7), 0) is None


def test_traces_belong_to_the_space_of_their_first_buffer() -> None:
    """Two temporary allocations of main memory (300, 700), one of space 1 (500), and a parameter."""
    buffers = [(size, color, array(1)) for size, color in ((100, 0), (200, 0), (400, 1), (50, 0))]
    allocations = [
        allocation(0, 300, 1),
        allocation(1, 700, 2),
        allocation(2, 500, 3, color=1),
        allocation(3, 50, 4, parameter=1),
    ]
    traces = [[(A, 4), (F, 4)], [(A, 1), (F, 1)], [(A, 3), (F, 3)], [(A, 2), (F, 2)], []]
    module = module_of(buffers, allocations, traces)
    assert module.buffers is not None
    assert colors_of(module.buffers) == [0, 1]
    found = [space(module, color) for color in (0, 1, 2)]
    assert [memory.n_heap_traces for memory in found] == [2, 1, 0]
    assert [int(memory.heap.held.max()) for memory in found] == [200, 400, 0]
    assert [memory.peak_bytes for memory in found] == [250, 400, 0]
    equal = [allocation(0, 700, 1), allocation(1, 700, 2)]
    first = space(module_of(buffers[:2], equal, [[(A, 2), (F, 2)], [(A, 1), (F, 1)]]))
    assert int(first.heap.held.max()) == 100  # of equally large allocations the first


def test_without_temporary_allocations_the_trace_with_most_events_of_the_space_is_replayed() -> None:
    buffers = [(size, color, array(1)) for size, color in ((100, 0), (200, 1), (400, 1))]
    traces = [[(A, 1), (F, 1)], [(A, 2), (A, 3), (F, 3), (F, 2)], [(A, 3)]]
    module = module_of(buffers, [], traces)
    assert [int(space(module, color).heap.held.max()) for color in (0, 1, 2)] == [100, 600, 0]
    assert [space(module, color).n_heap_traces for color in (0, 1, 2)] == [1, 1, 0]


def scoped(*parts: tuple[int, int]) -> bytes:
    items = ",".join(f'{{"memory_space":"{where}","offset":"0","size":"{size}"}}' for where, size in parts)
    return f'{{"used_scoped_memory_configs":[{items}]}}'.encode()


def test_the_instruction_that_uses_most_vmem() -> None:
    configs = [
        scoped((1, 10)),
        scoped((1, 70), (2, 999), (1, 30)),
        scoped((1, 100)),
        scoped((1, 2**62)),
        b'{"used_scoped_memory_configs":[{"memory_space":"x"}]}',
        scoped((1, 99)),
        b'{"used_scoped_memory_configs":[5]}',
    ]
    instructions = [instruction(i, "add", array(1), f43=config) for i, config in enumerate(configs, 1)]
    module = decode_hlo(proto([computation(1, "main", instructions, 1)]), "f", 7)
    assert scoped_vmem(module) == (100, 1)  # of equals the first
    alone = decode_hlo(proto([computation(1, "main", [instructions[3]], 4)]), "f", 7)
    assert scoped_vmem(alone) == (0, -1)


def heap(start: Sequence[int], end: Sequence[int], n_events: int, held: int) -> Heap:
    levels = np.array([0, held], np.int64)
    begin, stop = (np.array(values, np.int64) for values in (start, end))
    return Heap(levels, levels, np.zeros(n_events, np.int64), 0, begin, stop, np.empty(0, np.int64), 0)


def memory_with(
    sizes: Sequence[int],
    unpadded: Sequence[int] | None = None,
    live: Sequence[int] = (),
    n_permanent: int = 0,
    by_category: tuple[int, ...] = (0, 0, 0, 0, 0),
    allocated: int = 0,
    temporaries: Heap | None = None,
) -> SpaceMemory:
    size = np.array(sizes, np.int64)
    none = np.full(len(sizes), -1, np.int64)
    return SpaceMemory(
        0,
        temporaries or heap(none.tolist(), none.tolist(), 0, 0),
        np.array(live, np.int64),
        n_permanent,
        by_category,
        allocated,
        1,
        size,
        size if unpadded is None else np.array(unpadded, np.int64),
        none,
        none,
        none,
    )


def texts(items: Sequence[Advice], word: str) -> list[Advice]:
    return [item for item in items if word in item.text]


def test_savings_below_two_percent_of_the_peak_are_not_worth_a_change() -> None:
    module = module_of([(1, 0, array(1))])
    for gap, n in ((199, 0), (200, 1), (201, 1)):
        found = advice(module, memory_with([], by_category=(0, 10_000, 0, 0, 0), allocated=10_000 + gap))
        assert [item.saves_bytes for item in found] == [gap] * n
    assert advice(module, memory_with([], allocated=500)) == ()
    assert (
        advice(
            module, replace(memory_with([], by_category=(0, 100, 0, 0, 0), allocated=500), n_heap_traces=2)
        )
        == ()
    )
    assert advice(module, memory_with([], by_category=(0, 500, 0, 0, 0), allocated=500)) == ()
    (gaps,) = advice(module, memory_with([], by_category=(0, KIB, 0, 0, 0), allocated=3 * KIB))
    assert gaps.text.startswith("2.00 KiB of the 3.00 KiB allocated are unused at the peak")


@pytest.mark.parametrize(
    ("held", "n", "share"), [(499, 0, ""), (500, 1, "50.0%"), (501, 1, "50.1%"), (1000, 1, "100%")]
)
def test_parameters_matter_from_half_of_the_peak_on(held: int, n: int, share: str) -> None:
    memory = memory_with([], by_category=(held, 1000 - held, 0, 0, 0), allocated=1000)
    found = advice(module_of([(1, 0, array(1))]), memory)
    assert [item.saves_bytes for item in found] == [held // 2] * n
    assert [item.text.split(":")[0] for item in found] == [f"Parameters are {share} of the peak"] * n


def test_the_three_most_padded_buffers_are_named() -> None:
    padded = {2: F32, 3: (3, 100), 5: {1: (1, 0), 6: [{1: (8, 128)}]}}
    sizes, unpadded = (4096, 900, 1000, 800, 100), (1200, 500, 700, 700, 100)
    module = module_of([(size, 0, padded if not i else array(1)) for i, size in enumerate(sizes)])
    memory = memory_with(sizes, unpadded, [4, 3, 2, 1, 0], 5, (0, 6896, 0, 0, 0), 6896)
    found = texts(advice(module, memory), "of data")
    assert [item.saves_bytes for item in found] == [2896, 400, 300]
    assert (
        found[0].text
        == "`add.1`, `f32[3,100]`, takes 4.00 KiB for 1.17 KiB of data (3.41×): the layout pads 3 to 8, 100"
        " to 128. Use a multiple of the tile size or make a longer dimension innermost."
    )
    assert found[1].text == "`add.2`, `f32[1]`, takes 900 B for 500 B of data (1.8×)."
    unshaped = memory_with((100,), (40,), [0], 1, (0, 100, 0, 0, 0), 100)
    assert advice(module_of([(100, 0, None), (100, 0, array(1))]), unshaped) == ()
    full = memory_with((100,), (100,), [0], 1, (0, 100, 0, 0, 0), 100)
    assert advice(module, full) == ()


def test_parameters_are_donated_to_results_of_their_size() -> None:
    """Ten parameters of 100 for nine results of it; those of another size, space or role are not counted."""
    parameters = [allocation(i, 100, parameter=1, number=20 - i) for i in range(10)]
    results = [allocation(10 + i, 100, live_out=1) for i in range(9)]
    others = [
        allocation(20, 700, parameter=1, number=31),
        allocation(21, 800, live_out=1),
        allocation(22, 300, parameter=1, live_out=1, number=32),
        allocation(23, 300, live_out=1),
        allocation(24, 400, parameter=1, number=33),
        allocation(25, 400, live_out=1, is_tuple=1),
        allocation(26, 500, parameter=1, number=34, color=1),
        allocation(27, 500, live_out=1, color=1),
        allocation(28, 0, parameter=1, number=35),
        allocation(29, 0, live_out=1),
        allocation(30, 600, number=36),
        allocation(31, 600, live_out=1),
    ]
    module = module_of([(1, 0, array(1))], [*parameters, *results, *others])
    memory = memory_with([], by_category=(0, 1000, 0, 0, 0), allocated=1000)
    (donation,) = advice(module, memory)
    assert donation.saves_bytes == 900
    assert (
        donation.text
        == "Donate inputs that the caller no longer needs (`jax.jit(…, donate_argnums=…)`): 9 of the"
        " program's "
        "parameters (12, 13, 14, 15, 16, 17, 18, 19 …) have the size of results, which can then reuse their "
        "memory."
    )
    few = module_of([(1, 0, array(1))], [*parameters[:8], *results], name="cluster_1")
    (donation,) = advice(few, memory)
    assert "no longer needs: 8 of" in donation.text
    assert "(13, 14, 15, 16, 17, 18, 19, 20) have" in donation.text


@pytest.mark.parametrize(
    ("n_events", "lives", "stored"),
    [
        (16, (8, 3, 2), 1000),
        (16, (7, 3, 2), 0),
        (15, (15, 15, 15), 0),
        (17, (9, 9, 2), 1400),
        (17, (8, 9, 2), 400),
        (100, (50, 49, 100), 1200),
    ],
)
def test_temporaries_that_live_for_half_of_the_program_can_be_recomputed(
    n_events: int, lives: tuple[int, ...], stored: int
) -> None:
    sizes = (1000, 400, 200)
    module = module_of(
        [(size, 0, array(1, code=code)) for size, code in zip(sizes, (BF16, F32, F32), strict=True)],
        f7={2: "jit(f)/grad"},
    )
    temporaries = heap([0, 1, 2], [life - 1 + i for i, life in enumerate(lives)], n_events, 1600)
    memory = memory_with(sizes, live=[0, 1, 2], temporaries=temporaries, allocated=1600)
    found = advice(module, memory)
    recompute = texts(found, "Recompute")
    assert [item.saves_bytes for item in recompute] == ([stored] if stored else [])
    largest = next((i for i, life in enumerate(lives) if life * 2 >= n_events and stored), None)
    if largest is not None:
        kind, size = ("bf16", "1,000 B") if not largest else ("f32", "400 B")
        n = sum(life * 2 >= n_events for life in lives)
        many = "1 temporary is" if n == 1 else f"{n} temporaries are"
        assert recompute[0].text.startswith(
            f"Recompute instead of storing: {many} live for half of the program or longer, the largest "
            f"`add.{largest + 1}`, `{kind}[1]`, {size}, of `jit(f)/grad`. Wrap"
        )
    (narrow,) = texts(found, "bfloat16")
    assert narrow.saves_bytes == 300
    assert (
        "temporaries in f32 take 600 B at the peak, the largest `add.2`, `f32[1]`, 400 B, of" in narrow.text
    )
    assert [item.saves_bytes for item in found] == sorted((item.saves_bytes for item in found), reverse=True)


def test_permanent_buffers_are_no_temporaries() -> None:
    module = module_of([(size, 0, array(1)) for size in (900, 100)])
    memory = memory_with(
        (900, 100), live=[0, 1], n_permanent=2, by_category=(0, 1000, 0, 0, 0), allocated=1000
    )
    assert advice(module, memory) == ()
    half = memory_with(
        (900, 100),
        live=[0, 1],
        n_permanent=1,
        by_category=(0, 900, 0, 0, 0),
        allocated=1000,
        temporaries=heap([0, 0], [1, 1], 2, 100),
    )
    assert [item.saves_bytes for item in advice(module, half)] == [50]
    bf16 = module_of([(900, 0, array(1, code=BF16))])
    alone = memory_with((900,), live=[0], allocated=900, temporaries=heap([0], [1], 2, 900))
    assert advice(bf16, alone) == ()


def program(number: int, size: int, title: str = "") -> Program:
    return program_of(title or f"jit_{number}({number})", number, size)


def memories_of(peaks: dict[Program, int | None]) -> HloMemories:
    """The memories of programs whose result has that many bytes; None: without a buffer assignment, -1:
    unreadable.
    """

    def read(one: Program) -> HloModule:
        peak = peaks[one]
        if peak is None:
            entry = [instruction(1, "add", array(1))]
            return decode_hlo(proto([computation(1, "main", entry, 1)]), one.title, 7)
        if peak < 0:
            raise TraceFormatError(one.title, 0, "is damaged")
        return module_of([(1, 0, array(1))], [allocation(0, peak, live_out=1), allocation(1, 3, color=5)])

    return HloMemories(cast(Trace, SimpleNamespace(programs=Programs(list(peaks), read))))


def test_the_program_with_the_highest_peak_is_the_largest() -> None:
    small, large, unknown = program(1, 900), program(2, 10), program(3, 5000)
    damaged = program(4, 9000)
    memories = memories_of({small: 100, large: 700, unknown: None, damaged: -1})
    assert [item.peak_bytes for item in memories.peaks()] == [100, 700, None, None]
    assert memories.peaks() is memories.peaks()
    assert memories.largest() == large
    assert memories.largest(frozenset({small.title, unknown.title})) == small
    assert memories.largest(frozenset({unknown.title, "other"})) == large
    assert memories.colors(large) == [0, 5]
    assert memories.colors(unknown) == []
    assert memories.space(unknown, 0) is None
    assert memories_of({}).largest() is None
    without = memories_of({unknown: None, damaged: None, small: None})
    assert without.largest() == damaged
    assert without.largest(frozenset({unknown.title, small.title})) == unknown
    held = memories_of({program(1, 50): 0, program(2, 10): 1})
    assert held.largest() == program(2, 10)
    equal = memories_of({program(1, 10): 0, program(2, 20): 0, program(3, 15): 0})
    assert equal.largest() == program(2, 20)


def test_eight_memories_are_kept_the_least_recently_used_goes_first() -> None:
    programs = [program(i, 10) for i in range(10)]
    memories = memories_of(dict.fromkeys(programs, 100))
    kept = [memories.space(one, 0) for one in programs[:8]]
    assert [memories.space(one, 0) for one in programs[:8]] == kept
    assert memories.space(programs[0], 0) is kept[0]
    memories.space(programs[8], 0)
    assert memories.space(programs[0], 0) is kept[0]
    assert memories.space(programs[2], 0) is kept[2]
    assert memories.space(programs[1], 0) is not kept[1]
    assert memories.space(programs[0], 5) is not memories.space(programs[0], 0)


@pytest.mark.parametrize(
    ("sizes", "is_small"),
    [
        ([1] * 200, True),
        ([1] * 201, False),
        ([24 * 2**20 - 1, 1], True),
        ([24 * 2**20, 1], False),
        ([10 * 2**20, 20 * 2**20], False),
    ],
)
def test_of_too_many_or_too_large_programs_no_peak_is_computed(sizes: list[int], is_small: bool) -> None:
    memories = memories_of({program(i, size): 100 for i, size in enumerate(sizes)})
    assert {item.peak_bytes for item in memories.peaks()} == {100 if is_small else None}


def blocks_of(position: Sequence[int], size: Sequence[int]) -> list[tuple[int, int]]:
    found = _blocks(np.array(position, np.int64), np.array(size, np.int64))
    return [(part.start, part.stop) for part in found]


def test_messages_are_read_together_if_they_are_close() -> None:
    gap, most = 1 << 16, 1 << 24
    assert blocks_of([], []) == []
    assert blocks_of([5], [9]) == [(0, 1)]
    assert blocks_of([0, 10 + gap, 20 + 2 * gap], [10, 10, 5]) == [(0, 3)]
    assert blocks_of([0, 11 + gap, 21 + 2 * gap], [10, 10, 5]) == [(0, 1), (1, 3)]
    n = 2 * most // gap
    near = blocks_of([i * gap for i in range(n + 1)], [1] * (n + 1))
    assert near == [(0, n // 2), (n // 2, n), (n, n + 1)]


def breakdown(*entries: tuple[int, int, int]) -> bytes:
    return message({1: [{1: kind, 2: memory, 3: amount} for kind, memory, amount in entries]})


def test_accesses_of_one_operation_by_memory_and_direction() -> None:
    data = breakdown(
        (1, 1, 100), (2, 1, 7), (1, 1, 30), (2, 3, 5), (1, 2, 2**62), (3, 9, 4), (1, 2, 0), (2, 2, 2**62 - 1)
    )
    trace = build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 1, {"m": data})]})])
    assert accesses_of(trace, 0, len(data)) == [
        Access("HBM", "read", 130),
        Access("HBM", "written", 7),
        Access("VMEM", "written", 5),
        Access("memory 9", "accessed", 4),
        Access("CMEM", "written", 2**62 - 1),
    ]
    assert accesses_of(trace, 0, 0) == []


@pytest.mark.parametrize(("size", "n"), [(4095, 1), (4096, 1), (4097, 0)])
def test_messages_of_more_than_4096_bytes_are_ignored(size: int, n: int) -> None:
    entry = breakdown((1, 1, 3))
    data = entry + message({15: b"x" * (size - len(entry) - 3)})
    assert len(data) == size
    trace = build([DrawnPlane("/host:CPU", {"main": [DrawnEvent("x", 0, 1, {"m": data})]})])
    assert accesses_of(trace, 0, size) == [Access("HBM", "read", 3)] * n


def test_roots_of_chains_beside_a_circle() -> None:
    """0 → 1 → 2 → 0 is a circle, into which 6 leads; 3 → 4 → 5 is a chain, and 7 shares with none."""
    shares = {0: 1, 1: 2, 2: 0, 3: 4, 4: 5, 6: 0}
    found = _roots(np.array(list(shares), np.int32), np.array(list(shares.values()), np.int32), 8)
    assert found.tolist() == [0, 1, 2, 5, 5, 5, 6, 7]
    chain = np.arange(100, dtype=np.int32)
    assert set(_roots(chain, chain + np.int32(1), 101).tolist()) == {100}
