"""What a Triton GEMM fusion reads: the operands reach the dot through nested fusions whose bodies only hand
their parameter on.
"""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.hlo.cost import module_costs
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tests.ingest.hlo_protos import array, computation, instruction, proto

F32 = 4


def gemm(m: int, k: int, n: int, left: str = "handed on") -> bytes:
    """fusion(a[m,k], b[k,n]) = dot(nested(a), nested(b)), as `__triton_nested_gemm_fusion` has it.

    `left`: the body of the nested fusion of a: its parameter alone ("handed on"), its negation ("negated"),
    or the first row ("sliced").
    """
    a, b, out = array(m, k), array(k, n), array(m, n)
    parameter = instruction(31, "parameter", a, f9=0)
    bodies = {
        "handed on": ([parameter], 31, a),
        "negated": ([parameter, instruction(32, "negate", a, [31])], 32, a),
        "sliced": (
            [
                parameter,
                instruction(33, "slice", array(1, k), [31], f17=[{1: 0, 2: 1, 3: 1}, {1: 0, 2: k, 3: 1}]),
            ],
            33,
            array(1, k),
        ),
    }
    body, root, made = bodies[left]
    inner = [
        instruction(11, "parameter", a, f9=0),
        instruction(12, "parameter", b, f9=1),
        instruction(13, "fusion", made, [11], f11="kCustom", f38=(30,)),
        instruction(14, "fusion", b, [12], f11="kCustom", f38=(40,)),
        instruction(15, "dot", out, [13, 14], f30={1: (1,), 2: (0,)}),
    ]
    main = [
        instruction(1, "parameter", a, f9=0),
        instruction(2, "parameter", b, f9=1),
        instruction(
            3, "fusion", out, [1, 2], f11="kCustom", f38=(10,), f43=b'{"kind":"__triton_nested_gemm_fusion"}'
        ),
    ]
    return proto([
        computation(30, "left", body, root),
        computation(40, "right", [instruction(41, "parameter", b, f9=0)], 41),
        computation(10, "gemm", inner, 15),
        computation(1, "main", main, 3),
    ])  # fmt: skip


def bytes_of(data: bytes) -> float:
    module = decode_hlo(data, "gemm")
    return float(module_costs(module).bytes_accessed[module.by_name["fusion.3"]])


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        (4096, 4096, 16),
        (1, 4096, 4096),
        (96, 32, 64),
    ],  # a decode step's product has a small result and large operands
)
def test_operands_that_are_only_handed_on_are_read_whole(m: int, k: int, n: int) -> None:
    by_hand = F32 * (m * k + k * n + m * n)
    assert bytes_of(gemm(m, k, n)) == by_hand
    assert bytes_of(gemm(m, k, n, "negated")) == by_hand


def test_an_operand_that_is_only_sliced_is_read_in_part() -> None:
    assert bytes_of(gemm(8, 32, 16, "sliced")) == F32 * (1 * 32 + 32 * 16 + 8 * 16)
