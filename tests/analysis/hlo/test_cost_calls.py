"""How often the work of called computations counts: for each kind of caller, with three unlike
computations.
"""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.analysis.hlo.cost import HloCosts, computation_order, module_costs
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tests.ingest.hlo_protos import array, computation, instruction, proto

SIZES = (3, 50, 700)  # elements of an addition in each called computation
CALLED = (2, 3, 4)


def bodies() -> list[dict[int, Any]]:
    """Computations 2, 3 and 4: an addition and an exponential of 3, 50 and 700 elements."""
    return [
        computation(
            key,
            f"body{key}",
            [
                instruction(10 * key, "parameter", array(size)),
                instruction(10 * key + 1, "add", array(size), [10 * key, 10 * key]),
                instruction(10 * key + 2, "exponential", array(size), [10 * key + 1]),
            ],
            10 * key + 2,
        )
        for key, size in zip(CALLED, SIZES, strict=True)
    ]


def costs(*entry: dict[int, Any], loops: str = "trips") -> HloCosts:
    data = proto([*bodies(), computation(1, "main", list(entry), entry[-1][35])])
    return module_costs(decode_hlo(data, "calls"), loops)


def caller(opcode: str, called: tuple[int, ...] = CALLED, **more: Any) -> dict[int, Any]:
    return instruction(1, opcode, array(8), (), f38=called, **more)


@pytest.mark.parametrize(
    ("opcode", "flops"),
    [
        ("conditional", 700),  # the most expensive branch
        ("while", 753),  # condition and body, once if the number of trips is unknown
        ("call", 3),  # the computation that is called
        ("fusion", 3),
        ("async-start", 3),
        ("unheard-of", 753),  # an unknown caller applies each computation once
        ("custom-call", 0),
        ("sort", 0),
        ("topk", 0),
        ("reduce-scatter", 0),
    ],
)
def test_the_work_of_called_computations_counts_by_the_kind_of_caller(opcode: str, flops: float) -> None:
    found = costs(caller(opcode))
    assert found.total_flops == flops
    assert found.total_transcendentals == flops


def test_a_loop_counts_condition_and_body_once_per_trip() -> None:
    config = b'{"known_trip_count":{"n":"11"}}'
    found = costs(caller("while", f43=config))
    assert found.total_flops == 11 * 753
    assert found.is_known.all()
    assert set(found.trips.values()) == {11}
    assert costs(caller("while", f43=config), loops="once").total_flops == 753
    unknown = costs(caller("while"))
    assert not unknown.is_known.all()
    assert costs(caller("while"), loops="once").is_known.all()


def test_an_asynchronous_computation_counts_once_even_if_all_three_instructions_name_it() -> None:
    """Programs of older versions of XLA repeat the called computation in async-update and async-done."""
    for repeated in (False, True):
        chains = []
        for key, called in zip((100, 200, 300), CALLED, strict=True):
            more: dict[str, Any] = {"f38": (called,)} if repeated else {}
            chains += [
                instruction(key, "async-start", array(8), (), f38=(called,)),
                instruction(key + 1, "async-update", array(8), [key], **more),
                instruction(key + 2, "async-done", array(8), [key + 1], **more),
            ]
        found = costs(*chains)
        assert found.total_flops == sum(SIZES)
        assert found.is_known.all()


def test_applications_follow_from_shapes() -> None:
    """One computation of 3 additions: map applies it per element, reduce per element beyond the first of each
    result.
    """
    operand = instruction(5, "parameter", array(40, 25))
    for opcode, shape, expected in (
        ("map", array(40), 40),
        ("reduce", array(40), 40 * 25 - 40),
        ("scatter", array(40), 0),
    ):
        found = costs(operand, instruction(6, opcode, shape, [5], f38=(2,)))
        assert found.total_flops == 3 * expected
    # Operands of a scatter: n inputs, indices, n updates. It applies its computation to each update.
    updates = [instruction(7, "parameter", array(60)), instruction(8, "parameter", array(9, 7))]
    found = costs(operand, *updates, instruction(9, "scatter", array(40, 25), [5, 7, 8], f38=(2,)))
    assert found.total_flops == 3 * 63
    more = [instruction(6, "parameter", array(40, 25)), instruction(10, "parameter", array(9, 7))]
    two = costs(
        operand, *updates, *more, instruction(9, "scatter", array(40, 25), [5, 6, 7, 8, 10], f38=(2,))
    )
    assert two.total_flops == 3 * 63


@pytest.mark.parametrize(("dims", "size"), [((2,), 2), ((2, 5), 10), ((3, 1, 4), 12), ((0, 5), 0)])
def test_windows_apply_their_computation_once_less_than_they_have_elements(
    dims: tuple[int, ...], size: int
) -> None:
    window = {1: [{1: dim, 2: 1, 5: 1, 6: 1} for dim in dims]}
    operand = instruction(5, "parameter", array(40))
    found = costs(operand, instruction(6, "reduce-window", array(13), [5], f38=(2,), f15=window))
    assert found.total_flops == 3 * 13 * max(size - 1, 0)
    source = instruction(7, "parameter", array(17))
    scattered = costs(
        operand, source, instruction(8, "select-and-scatter", array(40), [5, 7], f38=(2, 3), f15=window)
    )
    # The first computation selects within each window, the second adds each element of the source.
    assert scattered.total_flops == 17 * max(size - 1, 0) * 3 + 17 * 50


def test_computations_come_before_their_callers() -> None:
    """Three levels, called in both orders; a computation that is called twice comes once."""
    shape = array(4)
    levels = [
        computation(
            1,
            "main",
            [instruction(1, "call", shape, (), f38=(2,)), instruction(2, "call", shape, (), f38=(4,))],
            2,
        ),
        computation(2, "upper", [instruction(3, "conditional", shape, (), f38=(3, 4))], 3),
        computation(3, "middle", [instruction(4, "call", shape, (), f38=(4,))], 4),
        computation(4, "lowest", [instruction(5, "add", shape)], 5),
    ]
    module = decode_hlo(proto(levels), "levels")
    order, cyclic = computation_order(module)
    assert order == [3, 2, 1, 0]
    assert not cyclic
    assert module_costs(module).total_flops == 2 * 4
