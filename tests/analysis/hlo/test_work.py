"""Bytes, FLOPs and stated work on modules and traces written by hand; every expected number is
added up here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.hlo.cost import HloCosts, computation_order, module_costs
from tb_tpuprof.analysis.hlo.flops import (
    cholesky_flops,
    convolution_flops,
    dim_size,
    dot_flops,
    fft_flops,
    first_array,
    sort_flops,
    triangular_solve_flops,
    valid_positions,
)
from tb_tpuprof.analysis.hlo.work import ProgramCosts, Work, join_work, no_work, stated_work, summed_work
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import Attributes, ConvolutionDims, DotDims, WindowDim
from tb_tpuprof.trace.hlo_shape import Shape
from tests.builders import DrawnEvent, DrawnPlane, Stats, build
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import memory_accesses

F32, TUPLE = 11, 13


def module_of(instructions: list[Any], *others: Any) -> HloModule:
    return decode_hlo(proto([computation(1, "main", instructions, instructions[-1][35]), *others]), "f", 7)


def costs_of(instructions: list[Any], *others: Any) -> tuple[HloModule, HloCosts]:
    module = module_of(instructions, *others)
    return module, module_costs(module)


def pair(*shapes: Any) -> dict[int, Any]:
    return {2: TUPLE, 4: list(shapes)}


# Operands of 1000, 30, 7 and 2 elements: 4000, 120, 28 and 8 bytes.
OPERANDS = [instruction(i, "parameter", array(n), f9=i - 1) for i, n in enumerate((1000, 30, 7, 2), 1)]


@pytest.mark.parametrize(
    ("opcode", "shape", "operands", "n_bytes"),
    [
        ("negate", array(1000), [1], 4000 + 4000),
        ("slice", array(11), [1], 2 * 44),
        ("dynamic-slice", array(11), [1, 4, 3], 2 * 44 + 8),
        ("gather", array(11), [1, 3, 2], 2 * 44 + 28),
        ("dynamic-slice", array(11), [1], 2 * 44),
        ("dynamic-update-slice", array(1000), [1, 2, 4, 3], 2 * 120 + 8),
        ("tuple", pair(array(1000), array(30)), [1, 2], 16),
        ("copy-start", pair(array(30), array(7), array(code=4)), [2], 120 + 28 + 4),
        ("send", pair(array(30), array(code=4)), [2, 4], 124),
        ("all-gather-start", pair(array(30), array(7)), [2], 148),
        ("triangular-solve", array(7), [1, 2], 28 + 2000 + 120),
        ("cholesky", array(7), [1], 14 + 2000),
        ("scatter", array(1000), [1, 3, 2], 3 * 120 + 28),
        ("scatter", pair(array(1000), array(1000)), [1, 1, 3, 2, 4], 3 * (120 + 8) + 28),
        ("get-tuple-element", array(1000), [1], 0),
        ("all-reduce-done", array(1000), [1], 0),
        ("add", array(1000), [1, 99], 8000),
    ],
)
def test_bytes_of_instructions_that_touch_a_part(
    opcode: str, shape: Any, operands: list[int], n_bytes: int
) -> None:
    module, costs = costs_of([*OPERANDS, instruction(9, opcode, shape, operands)])
    assert costs.bytes_accessed[module.find(f"{opcode}.9")] == n_bytes


def fused(body: list[Any], shape: Any, n_parameters: int, *more: Any, root: int = 0) -> float:
    """Bytes of a fusion whose body reads parameters 11, 12 … of 1000, 30 and 7 elements."""
    inner = [
        instruction(11 + i, "parameter", array(n), f9=i) for i, n in enumerate((1000, 30, 7)[:n_parameters])
    ]
    called = computation(2, "body", [*inner, *body], root or (body or inner)[-1][35])
    operands = list(range(1, n_parameters + 1))
    module, costs = costs_of([*OPERANDS, instruction(9, "fusion", shape, operands, f38=(2,))], called, *more)
    return float(costs.bytes_accessed[module.find("fusion.9")])


def test_a_fusion_reads_what_its_body_uses_of_each_parameter() -> None:
    add = instruction(21, "add", array(30), [12, 12])
    assert fused([add], array(30), 2) == 120 + 120, "the first parameter is not read"
    cut = instruction(20, "slice", array(10), [11])
    assert fused([cut], array(10), 1) == 40 + 40
    both = [cut, instruction(21, "slice", array(20), [11]), instruction(22, "add", array(10), [20, 20])]
    assert fused(both, array(10), 1) == 40 + 40 + 80
    whole_too = [
        cut,
        instruction(21, "negate", array(1000), [11]),
        instruction(22, "add", array(10), [20, 21]),
    ]
    assert fused(whole_too, array(10), 1) == 40 + 40 + 4000
    picked = instruction(20, "dynamic-slice", array(10), [11, 13])
    assert fused([picked], array(10), 3) == 40 + 40 + 28, "the position is read whole"
    by_itself = instruction(20, "dynamic-slice", array(10), [13, 11])
    assert fused([by_itself], array(10), 3) == 40 + 40 + 4000
    gathered = instruction(20, "gather", array(10), [11, 12])
    assert fused([gathered], array(10), 2) == 40 + 40 + 120
    assert fused([], array(1000), 1) == 8000, "a parameter that is the root is read"


def test_a_fusion_that_updates_in_place_writes_only_the_update() -> None:
    update = instruction(20, "dynamic-update-slice", array(1000), [11, 12, 13])
    assert fused([update], array(1000), 3) == 120 + 120 + 28
    plain = instruction(21, "negate", array(7), [13])
    two = [update, plain, instruction(22, "tuple", pair(array(1000), array(7)), [20, 21])]
    assert fused(two, pair(array(1000), array(7)), 3) == (120 + 28) + 120 + 28
    reordered = [plain, update, instruction(22, "tuple", pair(array(7), array(1000)), [21, 20])]
    assert fused(reordered, pair(array(7), array(1000)), 3) == (120 + 28) + 120 + 28
    unknown = [update, instruction(22, "tuple", pair(array(1000), array(7)), [20, 99])]
    assert fused(unknown, pair(array(1000), array(7)), 3) == (120 + 28) + 120 + 28
    opaque = instruction(22, "custom-call", pair(array(1000), array(7)), [13])
    assert fused([opaque], pair(array(1000), array(7)), 3) == 4028 + 28
    updated = instruction(20, "dynamic-update-slice", array(30), [12, 11, 13])
    assert fused([updated], array(30), 3) == 4000 + 4000 + 28, "what is updated is not read, the update is"


def test_a_body_that_stands_first_in_the_file() -> None:
    """Its update in place is the module's row 0."""
    shape = pair(array(1000), array(7))
    body = [
        instruction(20, "dynamic-update-slice", array(1000), [11, 12, 13]),
        *(instruction(11 + i, "parameter", array(n), f9=i) for i, n in enumerate((1000, 30, 7))),
        instruction(21, "negate", array(7), [13]),
        instruction(22, "tuple", shape, [20, 21]),
    ]
    entry = [*OPERANDS, instruction(9, "fusion", shape, [1, 2, 3], f38=(2,))]
    module = decode_hlo(proto([computation(2, "body", body, 22), computation(1, "main", entry, 9)]), "f", 7)
    assert module.find("dynamic-update-slice.20") == 0
    assert module_costs(module).bytes_accessed[module.find("fusion.9")] == (120 + 28) + 120 + 28


def test_nested_fusions_read_what_their_bodies_read() -> None:
    inner = computation(
        3,
        "inner",
        [instruction(31, "parameter", array(1000), f9=0), instruction(32, "slice", array(5), [31])],
        32,
    )
    outermost = [instruction(20, "fusion", array(5), [11], f38=(3,))]
    assert fused(outermost, array(5), 1, inner) == 20 + 20
    middle = computation(
        4,
        "middle",
        [
            instruction(41, "parameter", array(1000), f9=0),
            instruction(42, "fusion", array(5), [41], f38=(3,)),
        ],
        42,
    )
    assert fused([instruction(20, "fusion", array(5), [11], f38=(4,))], array(5), 1, middle, inner) == 40
    swapped = computation(
        5,
        "swapped",
        [
            instruction(51, "parameter", array(30), f9=1),
            instruction(52, "parameter", array(1000), f9=0),
            instruction(53, "slice", array(5), [51]),
            instruction(54, "slice", array(6), [52]),
            instruction(55, "add", array(5), [53, 54]),
        ],
        55,
    )
    both = [instruction(20, "fusion", array(5), [11, 12], f38=(5,))]
    assert fused(both, array(5), 2, swapped) == 20 + 20 + 24
    missing = [instruction(20, "fusion", array(5), [11, 99], f38=(5,))]
    assert fused(missing, array(5), 1, swapped) == 20 + 24


def test_fusions_without_a_known_body_count_operands_and_result() -> None:
    module, costs = costs_of([*OPERANDS, instruction(9, "fusion", array(7), [2, 3], f38=(77,))])
    assert costs.bytes_accessed[module.find("fusion.9")] == 28 + 120 + 28


def test_random_numbers_and_reductions_over_devices_count_each_array() -> None:
    entry = [
        *OPERANDS,
        instruction(5, "rng-bit-generator", pair(array(3), array(40)), [4]),
        instruction(6, "all-reduce", pair(array(3), array(50)), [4]),
        instruction(7, "all-reduce-start", array(60), [1]),
        instruction(8, "rng", array(5), [4]),
        instruction(9, "topk", pair(array(5), array(5)), [2]),
        instruction(10, "topk", pair(array(5), array(5)), []),
        instruction(11, "sort", array(7), [3]),
    ]
    module, costs = costs_of(entry)
    rows = [module.find(name) for name in ("rng-bit-generator.5", "rng.8")]
    assert costs.transcendentals[rows].tolist() == [43, 5]
    names = ("all-reduce.6", "all-reduce-start.7", "topk.9", "topk.10", "sort.11")
    assert [costs.flops[module.find(name)] for name in names] == [53, 60, 30, 0, 7 * 3]
    assert costs.total_flops == 53 + 60 + 30 + 21
    assert not costs.flops.flags.writeable


def test_what_runs_something_unknown_is_unknown_itself() -> None:
    opaque = computation(
        2,
        "opaque",
        [instruction(5, "custom-call", array(4), f28="x"), instruction(6, "add", array(4), [5])],
        6,
    )
    known = computation(3, "known", [instruction(7, "add", array(4))], 7)
    entry = [
        instruction(i, opcode, array(4), f38=called)
        for i, (opcode, called) in enumerate(
            (("call", (2,)), ("call", (3,)), ("conditional", (3, 2)), ("fusion", (3,))), 1
        )
    ]
    module, costs = costs_of(entry, opaque, known)
    assert {module.name(row) for row in np.flatnonzero(~costs.is_known)} == {
        "custom-call.5",
        "call.1",
        "conditional.3",
    }


def test_missing_computations() -> None:
    entry = [instruction(1, "call", array(4), (), f38=(9, 2)), instruction(2, "map", array(6), [1], f38=(9,))]
    called = computation(2, "body", [instruction(5, "add", array(4))], 5)
    assert costs_of(entry, called)[1].total_flops == 4


@pytest.mark.parametrize("seed", range(20))
def test_callees_come_first_in_random_call_graphs(seed: int) -> None:
    """A call is recursive if it leads to a computation that is still open in a depth-first walk."""
    draw, n = np.random.default_rng(seed), 9
    calls = {
        key: [
            tuple(draw.integers(1, n + 2, draw.integers(1, 3)).tolist()) for _ in range(draw.integers(0, 3))
        ]
        for key in range(1, n + 1)
    }
    bodies = [
        computation(
            key,
            f"c{key}",
            [instruction(100 * key, "add", array(1))]
            + [
                instruction(100 * key + i, "call", array(1), (), f38=called)
                for i, called in enumerate(calls[key], 1)
            ],
            100 * key,
        )
        for key in calls
    ]
    module = decode_hlo(proto(bodies), "graph", 7)
    order, cyclic = [], set()
    state: dict[int, str] = {}

    def visit(key: int) -> None:
        state[key] = "open"
        for i, called in enumerate(calls[key], 1):
            for callee in called:
                if callee > n:
                    continue
                if state.get(callee) == "open":
                    cyclic.add(f"call.{100 * key + i}")
                elif callee not in state:
                    visit(callee)
        state[key] = "done"
        order.append(key - 1)

    for key in calls:
        if key not in state:
            visit(key)
    found, recursive = computation_order(module)
    assert found == order
    assert {module.name(row) for row in recursive} == cyclic


def window(*dims: tuple[int, ...]) -> tuple[WindowDim, ...]:
    return tuple(WindowDim(size, 1, low, 0, 1, 1, False) for size, low in dims)


def test_convolutions_count_valid_positions_of_every_dimension() -> None:
    """Input [batch 6, features 4, 5, 7], kernel 3 × 2, output 16 features; 2 groups of features, 3 of the
    batch.
    """
    dims = ConvolutionDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    lhs, out = Shape(F32, (6, 4, 5, 7)), Shape(F32, (2, 16, 3, 6))
    base = Attributes(
        window=window((3, 0), (2, 0)), convolution=dims, feature_group_count=1, batch_group_count=1
    )
    assert convolution_flops(lhs, out, base) == 2 * 4 * 16 * 6 * (3 * 3) * (2 * 6)
    grouped = Attributes(window=base.window, convolution=dims, feature_group_count=2, batch_group_count=3)
    assert convolution_flops(lhs, out, grouped) == 2 * 2 * 16 * 2 * (3 * 3) * (2 * 6)
    none = Attributes(convolution=dims, feature_group_count=0, batch_group_count=0)
    assert convolution_flops(lhs, out, none) == 2 * 4 * 16 * 6
    more = Attributes(window=window((3, 0), (2, 0), (2, 0)), convolution=dims)
    assert convolution_flops(lhs, out, more) == 2 * 4 * 16 * 6 * (3 * 3) * (2 * 6) * 1
    assert convolution_flops(lhs, out, Attributes()) == 2 * 6 * 2 * 6


def test_positions_of_a_long_kernel_are_counted_one_by_one() -> None:
    """Kernel element i and output element k meet the input, of 5,000 elements, where i + k < 5,000."""
    (dim,) = window((5000, 0))
    assert valid_positions(dim, 5000, 5000) == sum(range(1, 5001))


def test_windows_without_positions() -> None:
    dim = WindowDim(3, 1, 0, 0, 1, 1, False)
    assert [valid_positions(dim, n_in, 4) for n_in in (-1, 0, 1, 2)] == [0, 0, 1, 3]
    assert [valid_positions(dim, 4, n_out) for n_out in (-1, 0, 1)] == [0, 0, 3]
    assert valid_positions(WindowDim(0, 1, 0, 0, 1, 1, False), 4, 4) == 0
    assert valid_positions(WindowDim(-3, 1, 0, 0, 1, 1, False), 4, 4) == 0


@pytest.mark.parametrize("seed", range(60))
def test_windows_that_move_backwards(seed: int) -> None:
    draw = np.random.default_rng(1000 + seed)
    size, base, n_in = (int(n) for n in draw.integers(1, 5, 3))
    stride, dilation = (int(n) for n in draw.integers(-4, 5, 2))
    low, n_out = int(draw.integers(-9, 9)), int(draw.integers(1, 9))
    places = [o * stride - low + k * dilation for o in range(n_out) for k in range(size)]
    expected = sum(place % base == 0 and 0 <= place // base < n_in for place in places)
    assert valid_positions(WindowDim(size, stride, low, 0, dilation, base, False), n_in, n_out) == expected


def test_small_formulas() -> None:
    assert [dim_size((3, -4, 5), i) for i in (-1, 0, 1, 2, 3)] == [1, 3, 0, 5, 1]
    inner = Shape(F32, (2, 3))
    assert first_array(Shape(TUPLE, elements=(inner, Shape(F32, (9,))))) is inner
    assert first_array(Shape(TUPLE)).is_tuple
    assert first_array(inner) is inner
    dims = DotDims((1, 2), (0, 1))
    assert dot_flops(Shape(F32, (7, 3, 5)), Shape(F32, (7, 11)), dims) == 2 * 77 * 15
    assert dot_flops(Shape(F32, (7, 3)), Shape(TUPLE, elements=(Shape(F32, (4,)),)), DotDims()) == 8
    for lengths in ((8,), (9,), (16, 5), (1, 8), (0,)):
        factors = math.prod(int(math.log2(n)) if n else 0 for n in lengths)
        assert fft_flops(Shape(15, (3, 40)), lengths) == 8 * factors * 120
    assert triangular_solve_flops(Shape(F32, (4, 6, 6)), Shape(F32, (4, 6, 5))) == 2 * 120 * 6
    assert cholesky_flops(Shape(F32, (2, 5, 5))) == 2 * 25 * 5 // 3
    comparisons = [sort_flops(Shape(F32, (n,))) for n in (0, 1, 2, 3, 4, 5, 1000)]
    assert comparisons == [0, 0, 2, 6, 8, 15, 10_000]


def stated(*stats: Stats, first_string: str = "/device:TPU:0") -> Work:
    """The stated work of operations 0, 1, 2 … with these stats on their names; asked for in reverse order."""
    names = [f"op{i}" for i in range(len(stats))]
    plane = DrawnPlane(
        first_string,
        {"XLA Ops": [DrawnEvent(name, i, 1) for i, name in enumerate(names)]},
        metadata_stats=dict(zip(names, stats, strict=True)),
    )
    trace = build([plane])
    work = stated_work(trace, np.arange(len(stats))[::-1])
    return work.taken(np.arange(len(stats))[::-1])


@pytest.mark.parametrize("first_string", ["/device:TPU:0", "custom-call"])
def test_stated_work_of_unlike_operations(first_string: str) -> None:
    call: Stats = {"hlo_category": "custom-call"}
    accesses = memory_accesses((1, 1, 10), (2, 1, 3), (1, 2, 5), (2, 3, 7))
    work = stated(
        {"flops": 100, "model_flops": 90, "bytes_accessed": 50},
        {"flops": 100, "bytes_accessed": 50, "memory_access_breakdown": accesses},
        {"model_flops": 80},
        {"flops": 70, "model_flops": 0},
        {"bytes_accessed": 8},
        {},
        {"flops": 0, "bytes_accessed": 0},
        {**call, "flops": 0, "bytes_accessed": 0},
        {**call, "flops": 5, "bytes_accessed": 6},
        {"hlo_category": "fusion", "flops": 0, "bytes_accessed": 0},
        first_string=first_string,
    )
    assert work.flops.tolist() == [100, 100, 80, 70, 0, 0, 0, 0, 5, 0]
    assert work.model_flops.tolist() == [90, 100, 80, 70, 0, 0, 0, 0, 5, 0]
    assert work.n_bytes.tolist() == [50, 50, 0, 0, 8, 0, 0, 0, 6, 0]
    assert work.space_bytes[0].tolist() == [50, 13, 0, 0, 8, 0, 0, 0, 6, 0]
    assert [work.space_bytes[i].tolist() for i in (1, 2, 3, 4)] == [
        [0, 5, *[0] * 8],
        [0] * 10,
        [0] * 10,
        [0, 7, *[0] * 8],
    ]
    assert np.flatnonzero(work.knows_flops).tolist() == [0, 1, 2, 3, 6, 8, 9]
    assert np.flatnonzero(work.knows_bytes).tolist() == [0, 1, 4, 6, 8, 9]
    unstated = stated({}, {"memory_access_breakdown": accesses}, {})
    assert unstated.space_bytes.T.tolist() == [[0] * 5, [13, 5, 0, 0, 7], [0] * 5]
    assert unstated.knows_bytes.tolist() == [False, True, False]


def test_without_categories_no_operation_is_opaque() -> None:
    work = stated({"flops": 0, "bytes_accessed": 0})
    assert (work.knows_flops.tolist(), work.knows_bytes.tolist()) == ([True], [True])


def test_a_breakdown_of_another_operation_adds_nothing() -> None:
    plane = DrawnPlane(
        "/device:TPU:0",
        {"XLA Ops": [DrawnEvent(name, 0, 1) for name in "abc"]},
        metadata_stats={
            "a": {"memory_access_breakdown": memory_accesses((1, 1, 10))},
            "c": {"memory_access_breakdown": memory_accesses((1, 1, 4))},
        },
    )
    work = stated_work(build([plane]), np.array([2, 1]))
    assert work.space_bytes[0].tolist() == [4, 0]
    assert work.knows_bytes.tolist() == [True, False]


def three() -> Work:
    return Work(
        np.array([1.0, 20, 300]),
        np.array([2.0, 30, 500]),
        np.array([4.0, 50, 600]),
        np.arange(15, dtype=np.float64).reshape(5, 3),
        np.array([True, False, True]),
        np.array([False, True, True]),
    )


def test_work_is_multiplied_taken_joined_and_summed() -> None:
    work = three()
    doubled = work.times(np.array([2, 3, 0]))
    assert doubled.flops.tolist() == [2, 60, 0]
    assert doubled.model_flops.tolist() == [4, 90, 0]
    assert doubled.n_bytes.tolist() == [8, 150, 0]
    assert doubled.space_bytes[4].tolist() == [24, 39, 0]
    assert work.is_known.tolist() == [True, True, True]
    assert Work(
        *(getattr(work, key) for key in ("flops", "model_flops", "n_bytes", "space_bytes")),
        np.zeros(3, bool),
        work.knows_bytes,
    ).is_known.tolist() == [False, True, True]
    kept = work.kept(np.array([True, False, True]))
    assert (kept.flops.tolist(), kept.space_bytes[1].tolist()) == ([1, 300], [3, 5])
    assert work.kept(np.ones(3, bool)) is work
    joined = join_work([work, kept])
    assert joined.n_bytes.tolist() == [4, 50, 600, 4, 600]
    assert joined.space_bytes.shape == (5, 5)
    total = summed_work(work, np.array([1, 1, 0]), 3)
    assert total.flops.tolist() == [300, 1, 0]
    assert total.model_flops.tolist() == [500, 2, 0]
    assert total.n_bytes.tolist() == [600, 50, 0]
    assert total.space_bytes[2].tolist() == [8, 7, 0]
    assert (total.knows_flops.tolist(), total.knows_bytes.tolist()) == (
        [True, True, False],
        [True, True, False],
    )
    counted = summed_work(work, np.array([1, 1, 0]), 2, np.array([False, True, True]))
    assert (counted.flops.tolist(), counted.n_bytes.tolist()) == ([300, 0], [600, 50])
    assert counted.knows_flops.tolist() == [True, False]
    nothing = no_work(2)
    assert (nothing.flops.tolist(), nothing.is_known.tolist(), nothing.space_bytes.shape) == (
        [0, 0],
        [False, False],
        (5, 2),
    )


def test_work_by_the_cost_model() -> None:
    """Two programs of three instructions each, of which one is opaque; a program without HLO; an unlinked
    one.
    """
    planes, titles = {}, ("jit_a(1)", "jit_b(2)", "damaged(3)")
    for key, n in ((0, 10), (1, 70)):
        entry = [
            instruction(1, "add", array(n)),
            instruction(2, "custom-call", array(n), [1], f28="opaque"),
            instruction(3, "negate", array(2 * n), [1]),
        ]
        planes[titles[key]] = proto([computation(1, "main", entry, 3)])
    planes[titles[2]] = b"\xff" * 40
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent(title, 0, 0) for title in planes]},
        metadata_stats={title: {"Hlo Proto": data} for title, data in planes.items()},
    )
    costs = ProgramCosts(build([metadata]))
    program, row = np.array([2, 1, 1, 1, 2, 9, 2, 3]), np.array([0, 2, 0, 1, 2, 0, -1, 0])
    work = costs.work(program, row)
    assert work.flops.tolist() == [70, 20, 10, 0, 140, 0, 0, 0]
    assert work.n_bytes.tolist() == [280, 120, 40, 0, 840, 0, 0, 0]
    assert work.knows_flops.tolist() == [True, True, True, False, True, False, False, False]
    assert work.knows_bytes.tolist() == work.knows_flops.tolist()
    assert work.space_bytes.tolist() == [work.n_bytes.tolist(), *[[0.0] * 8] * 4]
    assert work.model_flops.tolist() == work.flops.tolist()
    named = costs.module(44, "jit_b")
    assert named is not None
    assert named.shape(0).dims == (70,)
    assert costs.module(45, "other") is None
    assert costs.module(46) is None
