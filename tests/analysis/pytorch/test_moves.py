"""Bytes of operators that mostly move data, worked out by hand for unlike sizes and types."""

from __future__ import annotations

import math

import pytest

from tb_tpuprof.analysis.pytorch.work import (
    ATTENTION,
    CONVOLUTION,
    ELEMENTWISE,
    EMBEDDING,
    LOSS,
    MOVEMENT,
    NORMALIZATION,
    OPTIMIZER,
    OTHER,
    POOLING,
    PRODUCT,
    REDUCTION,
    category_of,
    shapes_text,
    work_of,
)
from tests.analysis.pytorch.torch_inputs import BF16, FLOAT, LONG, inputs_text

A, ROW = ((4, 6), FLOAT), ((6,), FLOAT)
MOVES = [
    # name, inputs, FLOPs (None: unknown), bytes
    ("add", [A, ROW, 1], 24, 4 * (24 + 6 + 24)),
    ("add_", [((4, 6), BF16), ((4, 6), FLOAT), 1], 24, 24 * (2 + 4 + 4)),
    ("mul", [A, ((), "double")], 24, 4 * 48 + 8),  # the number in `a * 1.5`
    ("div", [A, 2], 24, 4 * 48),
    ("add", [((), LONG), ((), LONG), 1], 1, 24),
    ("relu", [A], None, 4 * 48),
    ("clamp_min", [A, 0, A], None, 4 * 48),  # with `out`
    ("threshold_backward", [A, A, 0], None, 4 * 72),
    ("where", [((4, 6), "bool"), A, ((), FLOAT)], None, 24 + 96 + 4 + 96),
    ("eq", [((4, 6), LONG), 1], None, 24 * (8 + 1)),
    ("logical_not", [A], None, 24 * (4 + 1)),
    ("fill_", [A, 0], 0, 4 * 24),
    ("copy_", [((4, 6), BF16), A, False], 0, 24 * (2 + 4)),
    ("sum", [A, [0], True, None], None, 4 * (24 + 6)),
    ("mean", [A, [-1], True, None], None, 4 * (24 + 4)),
    ("amax", [A, [-2], False], None, 4 * (24 + 6)),
    ("sum", [A, None], None, 4 * (24 + 1)),
    ("_softmax", [A, -1, False], None, 4 * 48),
    ("_log_softmax_backward_data", [A, A, -1, 6], None, 4 * 72),
    ("native_layer_norm", [A, [6], ROW, ROW, 1e-5], None, 4 * (48 + 12)),
    (
        "native_layer_norm_backward",
        [A, A, [6], ((4, 1), FLOAT), ((4, 1), FLOAT), ROW, ROW],
        None,
        4 * (72 + 6),
    ),
    ("cudnn_batch_norm", [((2, 3, 5, 5), FLOAT), ((3,), FLOAT), ((3,), FLOAT)], None, 4 * (300 + 6)),
    ("index_select", [((100, 8), BF16), 0, ((7,), LONG)], 0, 7 * 8 + 2 * 2 * 7 * 8),
    ("index_select", [((4, 100), BF16), 1, ((7,), LONG)], 0, 7 * 8 + 2 * 2 * 7 * 4),
    ("embedding", [((100, 8), FLOAT), ((2, 7), LONG), -1, False, False], 0, 14 * 8 + 2 * 4 * 14 * 8),
    ("embedding_dense_backward", [((14, 8), FLOAT), ((14,), LONG), 100, -1, False], None, 448 + 112 + 3200),
]


@pytest.mark.parametrize(("name", "inputs", "flops", "n_bytes"), MOVES)
def test_moves(name: str, inputs: list[object], flops: float | None, n_bytes: float) -> None:
    result = work_of(f"aten::{name}", inputs_text(*inputs))
    assert result.n_bytes == n_bytes
    assert math.isnan(result.flops) if flops is None else result.flops == flops


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("add", [A, ((5,), FLOAT)]),  # no common shape
        ("add", [A]),
        ("sum", [A, [2], True, None]),  # no such dimension
        ("sum", [A, [-3], True, None]),
        ("index_select", [A, 2, ROW]),
        ("index_select", [A, -3, ROW]),
        ("embedding", [((100,), FLOAT), ((2,), LONG)]),
        ("relu", [((4, 6), "nobody's")]),
        ("copy_", [A]),
        ("_softmax", [((), FLOAT)]),
    ],
)
def test_what_the_inputs_do_not_determine_is_unknown(name: str, inputs: list[object]) -> None:
    result = work_of(f"aten::{name}", inputs_text(*inputs))
    assert math.isnan(result.n_bytes)


def test_a_reduction_needs_its_dimensions() -> None:
    recorded = inputs_text(A, [0], True, None)
    assert work_of("aten::sum", recorded).n_bytes == 4 * 30
    assert math.isnan(work_of("aten::sum", inputs_text(A, [0], True, None, values=False)).n_bytes)


def test_lists_of_tensors_have_no_known_bytes() -> None:
    text = '[[[4, 6], [4, 6]], [4, 6]]\n["TensorList", "float"]\n["", ""]'
    assert math.isnan(work_of("aten::add", text).n_bytes)
    assert math.isnan(work_of("aten::cat", text).n_bytes)
    assert math.isnan(work_of("aten::zero_", text).flops)


CATEGORIES = {
    "aten::addmm": PRODUCT,
    "my::fused_gemm_gelu": PRODUCT,
    "aten::convolution_backward": CONVOLUTION,
    "aten::conv2d": CONVOLUTION,
    "flash_attn::varlen_attention": ATTENTION,
    "aten::mul_": ELEMENTWISE,
    "aten::rms_norm": NORMALIZATION,
    "aten::_softmax": NORMALIZATION,
    "aten::max_pool2d_with_indices": POOLING,
    "aten::nll_loss_forward": LOSS,
    "aten::sum": REDUCTION,
    "aten::argmax": REDUCTION,
    "aten::cat": MOVEMENT,
    "aten::_foreach_add_": ELEMENTWISE,
    "aten::_fused_adamw_": OPTIMIZER,
    "fbgemm::split_embedding_codegen_lookup": EMBEDDING,
    "my::thing": OTHER,
}


def test_categories() -> None:
    assert {name: category_of(name) for name in CATEGORIES} == CATEGORIES


def test_sizes_as_text() -> None:
    assert shapes_text(inputs_text(A, ((2, 1, 3), BF16), 4, None)) == "4×6, 2×1×3"
    assert shapes_text(inputs_text(4, ((), FLOAT))) == ""
    assert shapes_text("") == ""
