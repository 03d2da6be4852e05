"""An operator's name and recorded inputs → its work and its category."""

from __future__ import annotations

import re
from functools import lru_cache

from tb_tpuprof.analysis.pytorch import moves, products
from tb_tpuprof.analysis.pytorch.inputs import read_inputs
from tb_tpuprof.analysis.pytorch.products import LOWER_RIGHT, UNKNOWN, Attention, Formula, Places, Work

PRODUCT, CONVOLUTION, ATTENTION = "matrix multiplication", "convolution", "attention"
ELEMENTWISE, NORMALIZATION, REDUCTION, MOVEMENT = "elementwise", "normalization", "reduction", "data movement"
EMBEDDING, OPTIMIZER, POOLING, LOSS, OTHER = "embedding", "optimizer", "pooling", "loss", "other"
_KEPT = 1 << 16

_PRODUCTS: dict[str, Formula] = {
    "aten::mm": products.matrices(0, (0, 1)),
    "aten::_int_mm": products.matrices(0, (0, 1)),
    "aten::_scaled_mm": products.matrices(0, (0, 1)),
    "aten::addmm": products.matrices(1, (0, 1, 2)),
    "aten::addmm_": products.matrices(1, (0, 1, 2)),
    "aten::_addmm_activation": products.matrices(1, (0, 1, 2)),
    "aten::bmm": products.matrices(0, (0, 1), is_batched=True),
    "aten::baddbmm": products.matrices(1, (0, 1, 2), is_batched=True),
    "aten::baddbmm_": products.matrices(1, (0, 1, 2), is_batched=True),
    "aten::mv": products.vectors(0, (0, 1)),
    "aten::dot": products.vectors(0, (0, 1)),
    "aten::addmv": products.vectors(1, (0, 1, 2)),
    "aten::addmv_": products.vectors(1, (0, 1, 2)),
    "aten::matmul": products.matmul,
    "aten::linear": products.linear,
    "aten::mkldnn_linear": products.linear,
}
# Positions of stride, padding and dilation in the signatures of native_functions.yaml.
_CONVOLUTIONS: dict[str, Formula] = {
    "aten::cudnn_convolution": products.convolution(Places(3, 2, 4, read=(0, 1))),
    "aten::cudnn_convolution_relu": products.convolution(Places(3, 4, 5)),
    "aten::cudnn_convolution_add_relu": products.convolution(Places(5, 6, 7, read=(0, 1, 2, 4))),
    "aten::miopen_convolution": products.convolution(Places(4, 3, 5)),
    "aten::miopen_depthwise_convolution": products.convolution(Places(4, 3, 5)),
    "aten::mkldnn_convolution": products.convolution(Places(4, 3, 5)),
    "aten::_conv_depthwise2d": products.convolution(Places(4, 5, 6, read=(0, 1, 3))),
    "aten::_slow_conv2d_forward": products.convolution(Places(4, 5, -1, read=(0, 1, 3))),
    "aten::convolution": products.convolution(Places(3, 4, 5, 6)),
    "aten::_convolution": products.convolution(Places(3, 4, 5, 6)),
    "aten::convolution_overrideable": products.convolution(Places(3, 4, 5, 6)),
    "aten::cudnn_convolution_transpose": products.transposed_convolution,
    "aten::miopen_convolution_transpose": products.transposed_convolution,
    "aten::slow_conv_transpose2d": products.transposed_convolution,
    "aten::slow_conv_transpose3d": products.transposed_convolution,
    "aten::convolution_backward": products.convolution_backward,
    "aten::cudnn_convolution_backward_input": products.convolution_backward_input,
    "aten::cudnn_convolution_backward_weight": products.convolution_backward_weight,
    "aten::miopen_convolution_backward_input": products.convolution_backward_input,
    "aten::miopen_convolution_backward_weight": products.convolution_backward_weight,
}
_FLASH_WINDOWS = (11, 12)
_ATTENTIONS: dict[str, Formula] = {
    "aten::_flash_attention_forward": products.attention(
        Attention(0, 8, heads_first=False, absent=(3, 4, *_FLASH_WINDOWS, 13))
    ),
    "aten::_flash_attention_backward": products.attention(
        Attention(1, 11, heads_first=False, is_backward=True, absent=(6, 7, 15, 16))
    ),
    "aten::_scaled_dot_product_flash_attention": products.attention(Attention(0, 4, heads_first=True)),
    "aten::_scaled_dot_product_flash_attention_backward": products.attention(
        Attention(1, 11, heads_first=True, is_backward=True, absent=(6, 7))
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu": products.attention(
        Attention(0, 4, heads_first=True)
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": products.attention(
        Attention(1, 7, heads_first=True, is_backward=True)
    ),
    "aten::_scaled_dot_product_efficient_attention": products.attention(Attention(0, 6, heads_first=True)),
    "aten::_scaled_dot_product_efficient_attention_backward": products.attention(
        Attention(1, 11, heads_first=True, is_backward=True)
    ),
    "aten::_efficient_attention_forward": products.attention(
        Attention(0, 9, heads_first=False, absent=(4, 5, 12, 13), is_type=True)
    ),
    "aten::_efficient_attention_backward": products.attention(
        Attention(1, 14, heads_first=False, is_backward=True, absent=(6, 7, 18), is_type=True)
    ),
    "aten::_scaled_dot_product_cudnn_attention": products.attention(Attention(0, 6, heads_first=True)),
    "aten::_scaled_dot_product_cudnn_attention_backward": products.attention(
        Attention(1, 14, heads_first=True, is_backward=True, absent=(9, 10))
    ),
    "aten::_cudnn_attention_forward": products.attention(Attention(0, 10, heads_first=True, absent=(4, 5))),
    "flash_attn::_flash_attn_forward": products.attention(
        Attention(0, 5, heads_first=False, absent=(6, 7), corner=LOWER_RIGHT)
    ),
    "flash_attn::_flash_attn_backward": products.attention(
        Attention(1, 11, heads_first=False, is_backward=True, absent=(12, 13), corner=LOWER_RIGHT)
    ),
}
_ARITHMETIC = moves.elementwise(2, 1.0)
_ONE, _TWO, _THREE = (moves.elementwise(n) for n in (1, 2, 3))
_TEST = moves.elementwise(2, out_bytes=1)
_ELEMENTWISE: dict[str, Formula] = {
    **dict.fromkeys(("add", "sub", "rsub", "mul", "div"), _ARITHMETIC),
    **dict.fromkeys(
        (
            *("abs", "neg", "exp", "log", "log1p", "sqrt", "rsqrt", "pow", "sin", "cos", "tanh", "sigmoid"),
            *("relu", "gelu", "silu", "mish", "elu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid"),
            *("softplus", "clamp", "clamp_min", "clamp_max", "reciprocal", "floor", "ceil", "round", "erf"),
            *("nan_to_num", "threshold", "sign"),
        ),
        _ONE,
    ),
    **dict.fromkeys(
        (
            *("threshold_backward", "gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward"),
            *("elu_backward", "leaky_relu_backward", "hardtanh_backward", "hardswish_backward"),
            *("maximum", "minimum", "atan2", "native_dropout_backward"),
        ),
        _TWO,
    ),
    **dict.fromkeys(("where", "addcmul", "addcdiv", "lerp"), _THREE),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"), _TEST),
    "logical_not": moves.elementwise(1, out_bytes=1),
}
_OTHERS: dict[str, tuple[str, Formula]] = {
    **dict.fromkeys(("fill_", "zero_"), (MOVEMENT, moves.written)),
    "copy_": (MOVEMENT, moves.copied),
    "index_select": (EMBEDDING, moves.selected),
    "embedding": (EMBEDDING, moves.embedded),
    "embedding_dense_backward": (EMBEDDING, moves.embedding_gradient),
    **dict.fromkeys(("sum", "mean", "amax", "amin", "prod", "any", "all"), (REDUCTION, moves.reduced)),
    **dict.fromkeys(("_softmax", "_log_softmax"), (NORMALIZATION, moves.passes(2))),
    **dict.fromkeys(
        ("_softmax_backward_data", "_log_softmax_backward_data"), (NORMALIZATION, moves.passes(3))
    ),
    "native_layer_norm": (NORMALIZATION, moves.passes(2, 2, 3)),
    "native_layer_norm_backward": (NORMALIZATION, moves.passes(3, 5)),
    **dict.fromkeys(
        ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), (NORMALIZATION, moves.passes(2, 1, 2))
    ),
    **dict.fromkeys(
        ("native_batch_norm_backward", "cudnn_batch_norm_backward", "miopen_batch_norm_backward"),
        (NORMALIZATION, moves.passes(3, 2)),
    ),
    "native_group_norm": (NORMALIZATION, moves.passes(2, 1, 2)),
}
_FORMULAS: dict[str, tuple[str, Formula]] = {
    **{name: (PRODUCT, formula) for name, formula in _PRODUCTS.items()},
    **{name: (CONVOLUTION, formula) for name, formula in _CONVOLUTIONS.items()},
    **{name: (ATTENTION, formula) for name, formula in _ATTENTIONS.items()},
    **{f"aten::{name}": (ELEMENTWISE, formula) for name, formula in _ELEMENTWISE.items()},
    **{f"aten::{name}_": (ELEMENTWISE, formula) for name, formula in _ELEMENTWISE.items()},
    **{f"aten::{name}": entry for name, entry in _OTHERS.items()},
}
# Categories of operators without a formula, by a part of their name. The first match wins.
_CATEGORIES = (
    (ATTENTION, r"attention|attn|sdpa|fmha"),
    (CONVOLUTION, r"conv(olution)?[123]?d?(_|$)|convolution"),
    (PRODUCT, r"(^|[:_])(mm|gemm|addmm|bmm|matmul|linear|einsum)(_|$)"),
    (OPTIMIZER, r"_fused_(adamw?|sgd|adagrad)|optimizer"),
    (ELEMENTWISE, r"_foreach_|multi_tensor"),
    (EMBEDDING, r"embedding|index_select|permute_pooled|split_lookup"),
    (NORMALIZATION, r"norm|softmax"),
    (POOLING, r"pool"),
    (LOSS, r"loss"),
    (REDUCTION, r"::(sum|mean|amax|amin|arg(max|min)|norm|cumsum|topk|sort|max|min|var|std)\b"),
    (
        MOVEMENT,
        r"copy|cat\b|stack|transpose|contiguous|index|gather|scatter|fill|zero|arange|pad|roll|permute|clone",
    ),
)
_PATTERNS = tuple((category, re.compile(pattern, re.IGNORECASE)) for category, pattern in _CATEGORIES)


@lru_cache(_KEPT)
def work_of(name: str, inputs_text: str) -> Work:
    """The work of one call of an operator with these inputs (the stat `op_inputs`); unknown for operators
    without a formula and for inputs that do not determine it.
    """
    entry = _FORMULAS.get(name)
    inputs = read_inputs(inputs_text) if entry else None
    return entry[1](inputs) if entry and inputs else UNKNOWN


def has_products(name: str) -> bool:
    """Whether an operator's FLOPs are those of products, which an operator around it may state again."""
    return name in _PRODUCTS or name in _CONVOLUTIONS or name in _ATTENTIONS


@lru_cache(_KEPT)
def category_of(name: str) -> str:
    """The category of an operator, by its name."""
    entry = _FORMULAS.get(name)
    if entry:
        return entry[0]
    return next((category for category, pattern in _PATTERNS if pattern.search(name)), OTHER)


def shapes_text(inputs_text: str) -> str:
    """The sizes of an operator's tensors: `8×4, 4×2`; empty if it has none. Lists of tensors are left out."""
    inputs = read_inputs(inputs_text)
    shapes = inputs.shapes if inputs else ()
    return ", ".join("×".join(map(str, shape)) for shape in shapes if shape)
