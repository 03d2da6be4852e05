"""Work of library calls, each worked out by hand, and configurations that are cut off, too long or
strange.
"""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.analysis.hlo.custom_calls import (
    CallCost,
    _batch,
    _config,
    _number,
    _numbers,
    _part,
    custom_call_cost,
)
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tests.ingest.hlo_protos import array, computation, instruction, proto

UNKNOWN = CallCost(is_known=False)


def cost(target: str, shapes: list[Any], result: Any, config: str = "", **more: Any) -> CallCost:
    entry = [instruction(i, "parameter", shape, f9=i - 1) for i, shape in enumerate(shapes, 1)]
    entry.append(
        instruction(99, "custom-call", result, range(1, len(shapes) + 1), f28=target, f43=config, **more)
    )
    module = decode_hlo(proto([computation(1, "main", entry, 99)]), "call")
    return custom_call_cost(module, module.find("custom-call.99"))


def dims(left: str, right: str, left_batch: str = "", right_batch: str = "") -> str:
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    lists = ",".join(
        f'"{name}_dimensions":[{values}]'
        for name, values in zip(names, (left, right, left_batch, right_batch), strict=True)
    )
    return f'"dot_dimension_numbers":{{{lists}}}'


A, B, C = array(3, 8, 32), array(3, 32, 16), array(3, 8, 16)


@pytest.mark.parametrize(
    ("target", "config", "flops"),
    [
        (
            "__cublas$gemm",
            '{"gemm_backend_config":{' + dims('"2"', '"1"', '"0"', '"0"') + "}}",
            2 * 3 * 8 * 16 * 32,
        ),
        ("__rocblas$gemm", "{" + dims("2", "1", "0", "0") + "}", 2 * 3 * 8 * 16 * 32),
        ("__cutlass$x", "{" + dims("1,2", "1") + "}", 2 * 3 * 8 * 16 * 32 * 8),
        ("__cublaslt$matmul", "", 2 * 3 * 8 * 16 * 32),
        ("my_gemm", "", 2 * 3 * 8 * 16 * 32),
        ("__triton_gemm_fusion", '{"gemm_backend_config":{"other":1}}', 2 * 3 * 8 * 16 * 32),
        ("MatMul", "", 2 * 3 * 8 * 16 * 32),
        ("eigen_something_matmul", "", 2 * 3 * 8 * 16 * 32),
    ],
)
def test_matrix_products(target: str, config: str, flops: float) -> None:
    found = cost(target, [A, B], C, config)
    assert (found.flops, found.transcendentals, found.bytes_accessed, found.is_known) == (
        pytest.approx(flops),
        0,
        -1,
        True,
    )


def test_products_of_unknown_sizes_are_unknown() -> None:
    for shapes, result in (
        ([array(0, 3), B], C),
        ([A, array(0)], C),
        ([A, B], array(0, 2)),
        ([A], C),
        ([], C),
    ):
        assert cost("MatMul", shapes, result) == UNKNOWN


@pytest.mark.parametrize(
    ("shapes", "batch"),
    [
        ([(2, 3, 4, 5), (2, 3, 5, 6), (2, 3, 4, 6)], 6),
        ([(2, 3, 4, 5), (2, 7, 5, 6), (2, 3, 4, 6)], 2),
        ([(9, 3, 4, 5), (2, 3, 5, 6), (2, 3, 4, 6)], 1),
        ([(4, 5), (5, 6), (4, 6)], 1),
        ([(2, 4, 5), (5, 6), (2, 4, 6)], 1),
        ([(0, 3, 4, 5), (0, 3, 5, 6), (0, 3, 4, 6)], 3),
    ],
)
def test_the_batch_is_what_all_three_share(shapes: list[tuple[int, ...]], batch: int) -> None:
    class Shaped:
        def __init__(self, sizes: list[tuple[int, ...]]) -> None:
            module = decode_hlo(
                proto(
                    [
                        computation(
                            1, "m", [instruction(i, "add", array(*size)) for i, size in enumerate(sizes)], 0
                        )
                    ]
                ),
                "f",
            )
            self.operands = [module.shape(i) for i in range(3)]
            self.result = self.operands[2]

        def operand(self, index: int) -> Any:
            return self.operands[index]

    call: Any = Shaped(shapes)
    assert _batch(call) == batch


N = 2 * 30 * 20  # elements of an array [2, 30, 20]


@pytest.mark.parametrize(
    ("target", "shapes", "expected"),
    [
        ("__onednn$softmax", [array(2, 30, 20)], CallCost(4 * N, N)),
        ("__onednn$layernorm", [array(2, 30, 20)], CallCost(8 * N)),
        ("__cudnn$norm", [array(2, 30, 20)], CallCost(8 * N)),
        ("topk", [array(2, 30, 20)], CallCost(N)),
        ("lapack_spotrf", [array(2, 30, 20)], CallCost(N * 20 / 3)),
        ("lapack_dgetrf_ffi", [array(2, 20, 30)], CallCost(N * 20 * 2 / 3)),
        ("lapack_sgeqrf", [array(2, 20, 30)], CallCost(N * 20 * 4 / 3)),
        ("lapack_sorgqr", [array(7)], CallCost(7 * 7 * 4 / 3)),
        ("lapack_cungqr", [array()], CallCost(0.0)),
        ("cublas_dtrsm", [array(5, 6, 6), array(5, 6, 9)], CallCost(5 * 6 * 9 * 6)),
        ("blas_TriangularSolve", [array(6, 6)], CallCost(0.0)),
        ("Sharding", [array(9)], CallCost(bytes_accessed=0.0)),
        ("SPMDFullToShardShape", [array(9)], CallCost(bytes_accessed=0.0)),
        ("MoveToHost", [array(9)], CallCost(bytes_accessed=0.0)),
        ("my_Sharding", [array(9)], UNKNOWN),
        ("nothing like it", [array(9)], UNKNOWN),
    ],
)
def test_formulas_by_target(target: str, shapes: list[Any], expected: CallCost) -> None:
    found = cost(target, shapes, array(9))
    assert (found.flops, found.transcendentals) == pytest.approx((expected.flops, expected.transcendentals))
    assert (found.bytes_accessed, found.is_known) == (expected.bytes_accessed, expected.is_known)


@pytest.mark.parametrize(
    ("target", "key", "products"),
    [
        ("__cudnn$fmhaSoftmax", "cudnn_fmha_backend_config", 2),
        ("flash_attn_fwd", "fmha_backend_config", 2),
        ("FusedAttentionBackward", "fmha_backend_config", 5),
    ],
)
def test_attention(target: str, key: str, products: int) -> None:
    config = f'{{"{key}":{{"intermediate_tensor_shape":{{"dimensions":["3","5","16","32"]}}}}}}'
    n = 3 * 5 * 16 * 32
    assert cost(target, [array(3, 5, 16, 64)], array(9), config) == CallCost(2 * products * n * 64, n)
    assert cost(target, [array(3, 5, 16, 64)], array(9)) == UNKNOWN


def test_convolutions_without_dimension_numbers_are_unknown_and_groups_count_from_one() -> None:
    assert cost("__cudnn$convForward", [array(2, 4, 8), array(16, 4, 3)], array(2, 16, 8)) == UNKNOWN
    numbers = {7: 0, 8: 1, 11: (2,), 3: 1, 4: 0, 6: (2,), 9: 0, 10: 1, 12: (2,)}
    window = {1: [{1: 3, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}]}
    for groups, features in ((0, 4), (1, 4), (2, 2)):
        found = cost(
            "__miopen$conv",
            [array(2, 4, 8), array(16, 4, 3)],
            array(2, 16, 8),
            f16=numbers,
            f15=window,
            f50=groups,
        )
        assert found.flops == 2 * features * 16 * 2 * (3 * 8 - 2)


def test_a_kernel_s_own_estimate_comes_first() -> None:
    nested = (
        '{"custom_call_config":{"cost_estimate":{"flops":"7","transcendentals":"2.5","bytes_accessed":9}}}'
    )
    assert cost("MatMul", [A, B], C, nested) == CallCost(7, 2.5, 9)
    assert cost("x", [A], C, '{"cost_estimate":{"flops":-7,"bytes_accessed":null}}') == CallCost(0, 0, 0)
    assert cost("x", [A], C, '{"cost_estimate":{"transcendentals":3}}') == CallCost(0, 3, -1)
    assert cost("x", [A], C, '{"cost_estimate":{}}') == UNKNOWN


def test_configurations() -> None:
    limit = 4 << 20
    text = b'{"a":1}'
    assert _config(text) == {"a": 1}
    assert _config(b"  " + text) == {"a": 1}
    assert _config(text + b" " * (limit - len(text))) == {"a": 1}
    assert _config(text + b" " * (limit - len(text) + 1)) == {}
    assert [_config(data) for data in (b"", b"[1]", b'{"a"', b"x" + text)] == [{}] * 4
    assert _part({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert [_part(value, "a", "b") for value in ({}, {"a": 5}, {"a": {"b": 5}}, None, [1])] == [{}] * 5
    assert [_number(value) for value in (3, "4", -1, None, "x", [], 2.5)] == [3, 4, 0, 0, 0, 0, 2.5]
    assert [_numbers(value) for value in (["1", 2, "x"], "12", None, [])] == [(1, 2, 0), (), (), ()]
