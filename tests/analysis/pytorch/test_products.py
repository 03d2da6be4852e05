"""FLOPs and bytes of products, convolutions and attention, against numbers worked out by hand or counted by
plain loops.
"""

from __future__ import annotations

import math

import pytest

from tb_tpuprof.analysis.pytorch.inputs import Inputs, read_inputs
from tb_tpuprof.analysis.pytorch.work import work_of
from tests.analysis.pytorch.torch_inputs import BF16, FLOAT, FP8, HALF, LONG, inputs_text


def work(name: str, *inputs: object, values: bool = True) -> tuple[float, float]:
    """FLOPs and bytes of one call."""
    result = work_of(f"aten::{name}", inputs_text(*inputs, values=values))
    return result.flops, result.n_bytes


PRODUCTS = [
    # name, inputs, FLOPs = 2·b·m·k·n, bytes
    ("mm", [((3, 5), FLOAT), ((5, 7), FLOAT)], 2 * 3 * 5 * 7, 4 * (15 + 35 + 21)),
    ("mm", [((3, 5), BF16), ((5, 7), BF16)], 210, 2 * (15 + 35 + 21)),
    ("addmm", [((7,), HALF), ((3, 5), HALF), ((5, 7), HALF), 1, 1], 210, 2 * (7 + 15 + 35 + 21)),
    ("bmm", [((2, 3, 5), FLOAT), ((2, 5, 7), FLOAT)], 420, 4 * 2 * (15 + 35 + 21)),
    (
        "baddbmm",
        [((2, 3, 7), FLOAT), ((2, 3, 5), FLOAT), ((2, 5, 7), FLOAT)],
        420,
        4 * 2 * (21 + 15 + 35 + 21),
    ),
    ("mv", [((3, 5), FLOAT), ((5,), FLOAT)], 30, 4 * (15 + 5 + 3)),
    ("dot", [((5,), FLOAT), ((5,), FLOAT)], 10, 4 * (5 + 5 + 1)),
    ("addmv", [((3,), FLOAT), ((3, 5), FLOAT), ((5,), FLOAT)], 30, 4 * (3 + 15 + 5 + 3)),
    ("linear", [((2, 3, 5), FLOAT), ((7, 5), FLOAT), ((7,), FLOAT)], 420, 4 * (30 + 35 + 7 + 42)),
    ("linear", [((2, 3, 5), FLOAT), ((7, 5), FLOAT), None], 420, 4 * (30 + 35 + 42)),
    ("matmul", [((2, 1, 3, 5), FLOAT), ((4, 5, 7), FLOAT)], 8 * 210, 4 * (30 + 140 + 8 * 21)),
    ("matmul", [((5,), FLOAT), ((5, 7), FLOAT)], 70, 4 * (5 + 35 + 7)),
    ("_scaled_mm", [((3, 5), FP8), ((5, 7), FP8)], 210, 15 + 35 + 2 * 21),
    ("_int_mm", [((3, 5), "signed char"), ((5, 7), "signed char")], 210, 15 + 35 + 4 * 21),
]


@pytest.mark.parametrize(("name", "inputs", "flops", "n_bytes"), PRODUCTS)
def test_products(name: str, inputs: list[object], flops: float, n_bytes: float) -> None:
    assert work(name, *inputs) == (flops, n_bytes)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("mm", [((3, 5), FLOAT), ((6, 7), FLOAT)]),  # inner sizes differ
        ("mm", [((3, 5), FLOAT)]),
        ("mm", [((2, 3, 5), FLOAT), ((5, 7), FLOAT)]),
        ("bmm", [((2, 3, 5), FLOAT), ((3, 5, 7), FLOAT)]),  # batches differ
        ("linear", [((2, 5), FLOAT), ((5, 7), FLOAT)]),  # the weight is not transposed
        ("matmul", [((2, 3, 5), FLOAT), ((4, 5, 7), FLOAT)]),
        ("mv", [((3, 5), FLOAT), ((3,), FLOAT)]),
    ],
)
def test_sizes_that_do_not_fit_are_unknown(name: str, inputs: list[object]) -> None:
    assert all(map(math.isnan, work(name, *inputs)))


def test_bytes_of_unknown_types_are_unknown() -> None:
    flops, n_bytes = work("mm", ((3, 5), "nobody's"), ((5, 7), "nobody's"))
    assert flops == 210
    assert math.isnan(n_bytes)


def counted(
    x: tuple[int, ...], weight: tuple[int, ...], stride: int, padding: int, dilation: int, groups: int
) -> int:
    """Multiplications and additions of a convolution, output by output."""
    n, _, *sizes = x
    total = 0
    spots = [
        (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        for size, k in zip(sizes, weight[2:], strict=True)
    ]
    for _image in range(n):
        for _out in range(weight[0]):
            for _spot in range(math.prod(spots)):
                total += 2 * (x[1] // groups) * math.prod(weight[2:])
    return total


@pytest.mark.parametrize(
    ("x", "weight", "stride", "padding", "dilation", "groups"),
    [
        ((2, 3, 9, 9), (4, 3, 3, 3), 1, 1, 1, 1),
        ((2, 6, 9, 8), (4, 3, 3, 2), 2, 0, 1, 2),
        ((1, 4, 11, 11), (4, 1, 3, 3), 1, 2, 2, 4),
        ((3, 2, 17), (5, 2, 4), 3, 1, 1, 1),
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), 2, 1, 1, 1),
    ],
)
def test_convolutions(
    x: tuple[int, ...], weight: tuple[int, ...], stride: int, padding: int, dilation: int, groups: int
) -> None:
    tensors = (x, FLOAT), (weight, FLOAT)
    each = [[number] * (len(x) - 2) for number in (padding, stride, dilation)]
    expected = counted(x, weight, stride, padding, dilation, groups)
    flops, n_bytes = work("cudnn_convolution", *tensors, *each, groups, False, False, True)
    assert flops == expected
    out = expected // (2 * (x[1] // groups) * math.prod(weight[2:]))
    assert n_bytes == 4 * (math.prod(x) + math.prod(weight) + out)
    assert work("miopen_convolution", *tensors, None, *each, groups, False, False)[0] == expected
    # convolution: stride before padding; a flag; one number stands for all dimensions
    general = (*tensors, None, [stride], [padding], [dilation], False, [0], groups)
    assert work("convolution", *general) == (expected, n_bytes)


def test_a_convolution_without_dilation() -> None:
    tensors = ((2, 3, 9, 9), FLOAT), ((4, 3, 3, 3), FLOAT)
    flops, _ = work("_slow_conv2d_forward", *tensors, [3, 3], None, [2, 2], [1, 1])
    assert flops == counted((2, 3, 9, 9), (4, 3, 3, 3), 2, 1, 1, 1)


def test_convolutions_need_their_settings() -> None:
    tensors = ((2, 3, 9, 9), FLOAT), ((4, 3, 3, 3), FLOAT)
    rest = ([1, 1], [1, 1], [1, 1], 1, False, False, True)
    assert work("cudnn_convolution", *tensors, *rest)[0] > 0
    assert math.isnan(work("cudnn_convolution", *tensors, *rest, values=False)[0])
    for bad in ([0, 0], [1, 1, 1], [-1, 1]):
        assert math.isnan(work("cudnn_convolution", *tensors, [1, 1], bad, [1, 1], 1, False, False, True)[0])
    # a kernel larger than its padded input
    assert math.isnan(work("cudnn_convolution", ((2, 3, 2, 2), FLOAT), tensors[1], [0, 0], *rest[1:])[0])
    # without the flag it is unknown whether the convolution is transposed
    assert math.isnan(work("convolution", *tensors, None, [1], [1], [1], None, [0], 1)[0])


def test_transposed_convolutions_use_each_input_once_per_weight() -> None:
    tensors = ((2, 4, 5, 6), FLOAT), ((4, 3, 2, 2), FLOAT)
    expected = 2 * 2 * (5 * 6) * (4 * 3 * 2 * 2)
    assert work("cudnn_convolution_transpose", *tensors, [0, 0], [0, 0], [2, 2])[0] == expected
    assert work("convolution", *tensors, None, [2], [0], [1], True, [0], 1)[0] == expected
    assert math.isnan(work("cudnn_convolution_transpose", tensors[0], ((3, 4, 2, 2), FLOAT))[0])


def test_gradients_of_convolutions() -> None:
    gradient, x, weight = (2, 4, 5, 6), (2, 3, 9, 11), (4, 3, 3, 3)
    one = 2 * 2 * (5 * 6) * math.prod(weight)
    sizes = math.prod(gradient) + math.prod(x) + math.prod(weight)
    tensors = (gradient, HALF), (x, HALF), (weight, HALF)

    def backward(mask: object, transposed: object = False) -> tuple[float, float]:
        settings = ([4], [2, 2], [0, 0], [1, 1], transposed, [0, 0], 1, mask)
        return work("convolution_backward", *tensors, *settings)

    assert backward([True, True, False]) == (2 * one, 2 * 2 * sizes)
    assert backward([True, False, True]) == (one, 2 * sizes)
    assert backward([False, True, True]) == (one, 2 * sizes)
    assert backward([False, False, True]) == (0, 0)
    assert backward([True, True, False], True)[0] == 2 * (2 * 2 * (9 * 11) * math.prod(weight))
    assert math.isnan(backward(None)[0])
    assert math.isnan(backward([True, True])[0])
    assert work("cudnn_convolution_backward_input", list(x), tensors[0], tensors[2]) == (one, 2 * sizes)
    assert work("cudnn_convolution_backward_weight", list(weight), tensors[0], tensors[1]) == (one, 2 * sizes)
    mixed = work("cudnn_convolution_backward_weight", list(weight), tensors[0], (x, FLOAT))
    assert mixed[1] == 2 * math.prod(gradient) + 4 * math.prod(x) + 2 * math.prod(weight)
    for flat in ([4, 3], [4, 3, 3]):  # of no convolution; of one with another number of dimensions
        assert math.isnan(work("cudnn_convolution_backward_weight", flat, tensors[0], tensors[1])[0])
    line = ((2, 4, 5), HALF)
    assert work("cudnn_convolution_backward_weight", [4, 3, 3], line, line)[0] == 2 * 2 * 5 * 36
    assert math.isnan(work("cudnn_convolution_backward_weight", [4, 3], ((2, 4), HALF), line)[0])
    # old files record no values: the weight's size is unknown, the input's is not needed
    assert work("cudnn_convolution_backward_input", None, tensors[0], tensors[2], values=False)[0] == one
    assert math.isnan(
        work("cudnn_convolution_backward_weight", None, tensors[0], tensors[1], values=False)[0]
    )


def pairs(n_queries: int, n_keys: int, mask: int) -> int:
    """Pairs of query and key, one by one."""
    shift = n_keys - n_queries if mask == 2 else 0
    return sum(not mask or key <= query + shift for query in range(n_queries) for key in range(n_keys))


@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (3, 7), (7, 3), (1, 4), (4, 1)])
@pytest.mark.parametrize("mask", [0, 1, 2])
def test_masks_of_attention(n_queries: int, n_keys: int, mask: int) -> None:
    q, k, v = ((2, n_queries, 3, 8), BF16), ((2, n_keys, 3, 8), BF16), ((2, n_keys, 3, 4), BF16)
    expected = 2 * 2 * 3 * pairs(n_queries, n_keys, mask) * (8 + 4)
    settings = (None, None, None, None, None, 0.0, mask, True, None, None, None)
    flops, n_bytes = work("_efficient_attention_forward", q, k, v, *settings)
    assert flops == expected
    assert n_bytes == 2 * 2 * 3 * (n_queries * 8 + n_keys * 8 + n_keys * 4 + n_queries * 4)


N = 5
Q, K, V = ((2, N, 6, 8), HALF), ((2, N, 2, 8), HALF), ((2, N, 2, 8), HALF)  # 6 heads share 2 of keys


def test_flash_attention_forward_and_backward() -> None:
    """Keys of a group are shared by several heads of the query."""
    full = 2 * 6 * N * N
    half = 2 * 6 * N * (N + 1) // 2

    def forward(causal: object, window: object = None) -> float:
        settings = (None, None, N, N, 0.0, causal, False, 0.125, window, window, None, None)
        return work("_flash_attention_forward", Q, K, V, *settings)[0]

    assert forward(False) == 2 * full * 16
    assert forward(True) == 2 * half * 16
    assert forward(True, -1) == 2 * half * 16
    assert math.isnan(forward(True, 4))  # a window leaves pairs out
    assert math.isnan(forward(None))
    backward = (Q, Q, K, V, Q, ((2, 6, N), FLOAT), None, None, N, N, 0.0, True)
    flops, n_bytes = work("_flash_attention_backward", *backward)
    assert flops == 2 * half * (3 * 8 + 2 * 8)
    assert n_bytes == 2 * 2 * (2 * 2 * N * 6 * 8 + 2 * 2 * N * 2 * 8)


def test_attention_with_heads_first() -> None:
    q, k = ((2, 6, 3, 8), FLOAT), ((2, 6, 4, 8), FLOAT)
    expected = 2 * 2 * 6 * 3 * 4 * (8 + 8)
    assert work("_scaled_dot_product_efficient_attention", q, k, k, None, True, 0.0, False)[0] == expected
    assert work("_scaled_dot_product_flash_attention", q, k, k, 0.0, False, False)[0] == expected
    assert work("_scaled_dot_product_cudnn_attention", q, k, k, None, True, 0.0, False, False)[0] == expected


@pytest.mark.parametrize(
    ("k", "v"),
    [
        ((3, 6, 4, 8), (3, 6, 4, 8)),  # another batch
        ((2, 6, 4, 7), (2, 6, 4, 8)),  # keys and queries of different width
        ((2, 6, 4, 8), (2, 6, 5, 8)),  # fewer keys than values
    ],
)
def test_attention_of_sizes_that_do_not_fit(k: tuple[int, ...], v: tuple[int, ...]) -> None:
    q = ((2, 6, 3, 8), FLOAT)
    name = "_scaled_dot_product_flash_attention"
    assert work(name, q, ((2, 6, 4, 8), FLOAT), ((2, 6, 4, 5), FLOAT), 0.0, False)[0] == 2 * 2 * 6 * 12 * 13
    assert math.isnan(work(name, q, (k, FLOAT), (v, FLOAT), 0.0, False)[0])


def test_packed_sequences_are_unknown() -> None:
    packed = ((10, 6, 8), HALF)
    lengths = ((3,), "int")
    settings = (lengths, lengths, 5, 5, 0.0, True, False)
    assert math.isnan(work("_flash_attention_forward", packed, packed, packed, *settings)[0])
    assert math.isnan(work("_flash_attention_forward", Q, K, V, *settings)[0])


def test_the_other_corner_of_the_flash_attention_package() -> None:
    q, k = ((1, 3, 2, 8), HALF), ((1, 7, 2, 8), HALF)
    result = work_of("flash_attn::_flash_attn_forward", inputs_text(q, k, k, 0.0, 0.125, True, -1, -1))
    assert result.flops == 2 * 2 * pairs(3, 7, 2) * 16
    assert pairs(3, 7, 2) != pairs(3, 7, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "[[3, 5], [5, 7]",
        '{"a": 1}',
        "[" * 100_000,
        "[[-3, 5], [5, 7]]",
        "[[3.5, 5], [5, 7]]",
        f"[[{2**62}, 5], [5, 7]]",
        "[[" + ",".join(["2"] * 100) + "], [5, 7]]",
        "[" + ",".join(["[3, 5]"] * 300) + "]",
        '[["3", 5], [5, 7]]',
        "[[[3, 5]], [[5, 7]]]",
    ],
)
def test_hostile_inputs_are_unknown(text: str) -> None:
    assert math.isnan(work_of("aten::mm", text).flops)


def test_reading_inputs() -> None:
    read = read_inputs(
        '[[2, 3], [], [[2], [3]], []]\n["float", "Scalar", "TensorList", ""]\n["", "4", "", ""]'
    )
    assert read == Inputs(((2, 3), (), None, ()), ("float", "Scalar", "TensorList", ""), ("", "4", "", ""))
    assert read.numbers(1) == (4,)
    assert read.numbers(0) is None
    assert read.n_bytes(0, 1, 3) == 24
    assert math.isnan(read.n_bytes(2))
    assert read.n_bytes(4) == 0  # there are four
    # types and values of another length than the shapes belong to no input
    assert read_inputs('[[2, 3]]\n["float", "int"]\n[]') == Inputs(((2, 3),))


def test_unknown_operators_have_no_work() -> None:
    assert math.isnan(work_of("my::mm", inputs_text(((3, 5), FLOAT), ((5, 7), FLOAT))).flops)
    assert math.isnan(work_of("aten::sort", inputs_text(((3, 5), LONG))).n_bytes)
