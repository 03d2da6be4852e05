"""Positions of the inputs of PyTorch's operators: each is called as its schema lists them, with an unlike
value for each input.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tb_tpuprof.analysis.pytorch.work import work_of
from tests.analysis.pytorch.torch_inputs import BF16, FLOAT, LONG, inputs_text

# The names of the inputs in the order of the schema (`torch.ops.aten.….default._schema`). Of attention, those
# of the packed sequences' lengths and of windows leave pairs out.
ATTENTIONS = {
    "aten::_flash_attention_forward": (
        "query key value cum_seq_q cum_seq_k max_q max_k dropout_p is_causal return_debug_mask scale "
        "window_size_left window_size_right seqused_k alibi_slopes"
    ),
    "aten::_flash_attention_backward": (
        "grad_out query key value out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p "
        "is_causal rng_state unused scale window_size_left window_size_right"
    ),
    "aten::_scaled_dot_product_flash_attention": (
        "query key value dropout_p is_causal return_debug_mask scale"
    ),
    "aten::_scaled_dot_product_flash_attention_backward": (
        "grad_out query key value out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal "
        "philox_seed philox_offset scale"
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu": (
        "query key value dropout_p is_causal attn_mask scale"
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (
        "grad_out query key value out logsumexp dropout_p is_causal attn_mask scale"
    ),
    "aten::_scaled_dot_product_efficient_attention": (
        "query key value attn_bias compute_log_sumexp dropout_p is_causal scale"
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": (
        "grad_out query key value attn_bias out logsumexp philox_seed philox_offset "
        "dropout_p grad_input_mask is_causal scale"
    ),
    "aten::_efficient_attention_forward": (
        "query key value bias cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k dropout_p custom_mask_type "
        "compute_log_sumexp scale seqlen_k window_size"
    ),
    "aten::_efficient_attention_backward": (
        "grad_out query key value bias out cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k logsumexp "
        "dropout_p philox_seed philox_offset custom_mask_type bias_requires_grad scale num_splits_key "
        "window_size shared_storage_dqdkdv"
    ),
    "aten::_scaled_dot_product_cudnn_attention": (
        "query key value attn_bias compute_log_sumexp dropout_p is_causal return_debug_mask scale"
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": (
        "grad_out query key value out logsumexp philox_seed philox_offset attn_bias "
        "cum_seq_q cum_seq_k max_q max_k dropout_p is_causal scale"
    ),
    "aten::_cudnn_attention_forward": (
        "query key value attn_bias cum_seq_q cum_seq_k max_q max_k compute_log_sumexp dropout_p is_causal "
        "return_debug_mask scale"
    ),
    "flash_attn::_flash_attn_forward": (
        "query key value dropout_p softmax_scale causal window_size_left window_size_right softcap "
        "alibi_slopes return_softmax"
    ),
    "flash_attn::_flash_attn_backward": (
        "dout query key value out softmax_lse dq dk dv dropout_p softmax_scale causal window_size_left "
        "window_size_right softcap alibi_slopes deterministic rng_state"
    ),
}
LEAVE_OUT = ("cum_seq_q", "cum_seq_k", "cu_seqlens_q", "cu_seqlens_k", "seqlen_k", "seqused_k", "window_size")
B, H, S_Q, S_K, D_QK, D_V = 2, 3, 5, 7, 8, 4


def attention_text(schema: str, causal: bool | None, given: str = "") -> str:
    """A call; `given`: an input that leaves pairs out and is passed. Other flags are the opposite of
    `causal`.
    """
    heads_first = "_dot_product_" in schema or "_cudnn_" in schema
    sizes = {"query": (S_Q, D_QK), "key": (S_K, D_QK), "value": (S_K, D_V), "out": (S_Q, D_V)}
    sizes |= dict.fromkeys(("grad_out", "dout"), (S_Q, D_V))
    inputs: list[Any] = []
    for key in schema.split()[1:]:
        if key in sizes:
            s, d = sizes[key]
            inputs.append(((B, H, s, d) if heads_first else (B, s, H, d), BF16))
        elif key in ("is_causal", "causal"):
            inputs.append(causal)
        elif key == "custom_mask_type":
            inputs.append(None if causal is None else int(causal))
        elif key.startswith(("return_", "compute_", "bias_requires", "shared_", "deterministic")):
            inputs.append(not causal)
        elif key == given:
            inputs.append(((3,), "int") if key.startswith(("cu", "seq")) else 3)
        else:
            inputs.append(0.5 if key in ("dropout_p", "scale", "softmax_scale", "softcap") else None)
    return inputs_text(*inputs)


def pairs(is_causal: bool, lower_right: bool) -> int:
    """Pairs of query and key, one by one."""
    shift = S_K - S_Q if lower_right else 0
    return sum(not is_causal or key <= query + shift for query in range(S_Q) for key in range(S_K))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_flops_and_bytes_of_every_attention(name: str) -> None:
    schema = f"{name} {ATTENTIONS[name]}"
    is_backward = "backward" in name
    elements = B * H * (S_Q * D_QK + S_K * D_QK + S_K * D_V + S_Q * D_V)
    for is_causal in (False, True):
        found = work_of(name, attention_text(schema, is_causal))
        width = 3 * D_QK + 2 * D_V if is_backward else D_QK + D_V
        assert found.flops == 2 * B * H * pairs(is_causal, name.startswith("flash_attn")) * width
        assert found.n_bytes == 2 * elements * (2 if is_backward else 1)
        assert found.dtype == BF16
    assert math.isnan(work_of(name, attention_text(schema, None)).flops)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (name, given)
        for name, listed in ATTENTIONS.items()
        for given in listed.split()
        if given.startswith(LEAVE_OUT)
    ],
)
def test_attention_that_leaves_pairs_out_is_unknown(name: str, given: str) -> None:
    schema = f"{name} {ATTENTIONS[name]}"
    assert work_of(name, attention_text(schema, True)).flops > 0
    assert math.isnan(work_of(name, attention_text(schema, True, given)).flops)
    if given.startswith("window"):  # −1 is no window
        text = attention_text(schema, True, given).replace('"3"', '"-1"')
        assert work_of(name, text).flops > 0


CONVOLUTIONS = {
    "cudnn_convolution": "input weight padding stride dilation groups benchmark deterministic allow_tf32",
    "cudnn_convolution_relu": "input weight bias stride padding dilation groups",
    "cudnn_convolution_add_relu": "input weight z alpha bias stride padding dilation groups",
    "miopen_convolution": "input weight bias padding stride dilation groups benchmark deterministic",
    "miopen_depthwise_convolution": (
        "input weight bias padding stride dilation groups benchmark deterministic"
    ),
    "mkldnn_convolution": "input weight bias padding stride dilation groups",
    "_conv_depthwise2d": "input weight kernel_size bias stride padding dilation",
    "_slow_conv2d_forward": "input weight kernel_size bias stride padding",
    "convolution": "input weight bias stride padding dilation transposed output_padding groups",
    "_convolution": (
        "input weight bias stride padding dilation transposed output_padding groups benchmark deterministic "
        "cudnn_enabled allow_tf32"
    ),
    "convolution_overrideable": "input weight bias stride padding dilation transposed output_padding groups",
}
X, WEIGHT = (2, 4, 17, 23), (6, 4, 3, 2)
SETTINGS = {
    "stride": (2, 3),
    "padding": (4, 5),
    "dilation": (1, 6),
    "output_padding": (0, 0),
    "kernel_size": (3, 2),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_flops_and_bytes_of_every_convolution(name: str) -> None:
    dilation = (1, 1) if name == "_slow_conv2d_forward" else SETTINGS["dilation"]
    out = []
    for size, kernel, stride, padding, step in zip(
        X[2:], WEIGHT[2:], SETTINGS["stride"], SETTINGS["padding"], dilation, strict=True
    ):
        last = size + padding - step * (kernel - 1)
        out.append(len(range(-padding, last, stride)))
    n_out = 2 * 6 * math.prod(out)
    inputs: list[Any] = []
    read = math.prod(X) + math.prod(WEIGHT)
    for key in CONVOLUTIONS[name].split():
        if key in ("input", "weight"):
            inputs.append((X if key == "input" else WEIGHT, FLOAT))
        elif key == "bias":
            inputs.append(((6,), FLOAT))
            read += 6
        elif key == "z":
            inputs.append(((2, 6, *out), FLOAT))
            read += n_out
        else:
            inputs.append(
                list(SETTINGS[key]) if key in SETTINGS else 1 if key in ("groups", "alpha") else False
            )
    found = work_of(f"aten::{name}", inputs_text(*inputs))
    assert found.flops == 2 * n_out * 4 * 3 * 2
    assert found.n_bytes == 4 * (read + n_out)
    assert found.dtype == FLOAT


# Name, inputs, and the sizes (b, m, k, n) with all that is read.
PRODUCTS = {
    "mm": ([(3, 5), (5, 7)], (1, 3, 5, 7)),
    "_int_mm": ([(3, 5), (5, 7)], (1, 3, 5, 7)),
    "_scaled_mm": ([(3, 5), (5, 7)], (1, 3, 5, 7)),
    "addmm": ([(7,), (3, 5), (5, 7)], (1, 3, 5, 7)),
    "addmm_": ([(3, 7), (3, 5), (5, 7)], (1, 3, 5, 7)),
    "_addmm_activation": ([(7,), (3, 5), (5, 7)], (1, 3, 5, 7)),
    "bmm": ([(2, 3, 5), (2, 5, 7)], (2, 3, 5, 7)),
    "baddbmm": ([(2, 1, 7), (2, 3, 5), (2, 5, 7)], (2, 3, 5, 7)),
    "baddbmm_": ([(2, 3, 7), (2, 3, 5), (2, 5, 7)], (2, 3, 5, 7)),
    "mv": ([(3, 5), (5,)], (1, 3, 5, 1)),
    "dot": ([(5,), (5,)], (1, 1, 5, 1)),
    "addmv": ([(3,), (3, 5), (5,)], (1, 3, 5, 1)),
    "addmv_": ([(3,), (3, 5), (5,)], (1, 3, 5, 1)),
    "matmul": ([(2, 3, 5), (5, 7)], (2, 3, 5, 7)),
    "linear": ([(2, 3, 5), (7, 5), (7,)], (1, 6, 5, 7)),
    "mkldnn_linear": ([(2, 3, 5), (7, 5), (7,)], (1, 6, 5, 7)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_flops_and_bytes_of_every_product(name: str) -> None:
    shapes, (b, m, k, n) = PRODUCTS[name]
    found = work_of(f"aten::{name}", inputs_text(*((shape, FLOAT) for shape in shapes), 1, 1))
    assert found.flops == 2 * b * m * k * n
    assert found.n_bytes == 4 * (sum(math.prod(shape) for shape in shapes) + b * m * n)


def test_gradients_of_convolutions_of_every_name() -> None:
    gradient, x, weight = (2, 6, 5, 7), (2, 4, 9, 8), (6, 4, 3, 2)
    one = 2 * 2 * 5 * 7 * math.prod(weight)
    for maker in ("cudnn", "miopen"):
        for side, size, other in (("input", x, weight), ("weight", weight, x)):
            text = inputs_text(list(size), (gradient, FLOAT), (other, FLOAT), [0, 0], [1, 1])
            found = work_of(f"aten::{maker}_convolution_backward_{side}", text)
            assert found.flops == one
            assert found.n_bytes == 4 * (math.prod(gradient) + math.prod(x) + math.prod(weight))
    for name in ("cudnn_convolution_transpose", "miopen_convolution_transpose", "slow_conv_transpose2d"):
        found = work_of(f"aten::{name}", inputs_text((gradient, FLOAT), (weight, FLOAT)))
        assert found.flops == one
        assert math.isnan(found.n_bytes)


# The tensors of 24 elements of 4 bytes that are read and written, and smaller ones that are read.
NORMALIZATIONS = {
    "_softmax": (1, 1, ""),
    "_log_softmax": (1, 1, ""),
    "_softmax_backward_data": (2, 1, ""),
    "_log_softmax_backward_data": (2, 1, ""),
    "native_layer_norm": (1, 1, "x normalized_shape WEIGHT BIAS"),
    "native_layer_norm_backward": (2, 1, "grad_out x normalized_shape mean rstd WEIGHT bias"),
    "native_batch_norm": (1, 1, "x WEIGHT BIAS running_mean running_var"),
    "cudnn_batch_norm": (1, 1, "x WEIGHT BIAS running_mean running_var"),
    "miopen_batch_norm": (1, 1, "x WEIGHT BIAS running_mean running_var"),
    "native_batch_norm_backward": (2, 1, "grad_out x WEIGHT running_mean"),
    "cudnn_batch_norm_backward": (2, 1, "x grad_out WEIGHT running_mean"),
    "miopen_batch_norm_backward": (2, 1, "x grad_out WEIGHT running_mean"),
    "native_group_norm": (1, 1, "x WEIGHT BIAS"),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_bytes_of_every_normalization(name: str) -> None:
    n_read, n_written, listed = NORMALIZATIONS[name]
    keys = listed.split() or ["x"] * n_read
    inputs = [
        ((4, 6), FLOAT) if key in ("x", "grad_out") else [6] if key == "normalized_shape" else ((6,), FLOAT)
        for key in keys
    ]
    found = work_of(f"aten::{name}", inputs_text(*inputs, 1e-5))
    n_small = sum(key.isupper() for key in keys)
    assert found.n_bytes == 4 * (24 * (n_read + n_written) + 6 * n_small)
    assert math.isnan(found.flops)
    assert math.isnan(work_of(f"aten::{name}", inputs_text(*([((), FLOAT)] * len(keys)))).n_bytes)


def test_limits_of_recorded_inputs() -> None:
    """64 dimensions, 256 inputs and sizes below 2^62 are read; one more is not."""

    def flops(*shapes: tuple[int, ...], n_more: int = 0) -> float:
        return work_of("aten::matmul", inputs_text(*((s, FLOAT) for s in shapes), *[1] * n_more)).flops

    assert flops((*(1,) * 62, 3, 5), (5, 7)) == 210
    assert math.isnan(flops((*(1,) * 63, 3, 5), (5, 7)))
    assert flops((3, 5), (5, 7), n_more=254) == 210
    assert math.isnan(flops((3, 5), (5, 7), n_more=255))
    assert flops((2**61, 1), (1, 1)) == 2.0**62
    assert math.isnan(flops((2**62, 1), (1, 1)))
    assert math.isnan(flops((2**31, 2**31), (2**31, 1)))
    assert flops((0, 5), (5, 7)) == 0


def test_index_and_embedding_of_unlike_sizes() -> None:
    """Along the first, the last and a middle dimension; an empty dimension has no rows."""
    for dim, expected in ((0, 5 * 7), (1, 3 * 7), (2, 3 * 5), (-1, 3 * 5), (-3, 5 * 7)):
        found = work_of("aten::index_select", inputs_text(((3, 5, 7), BF16), dim, ((4,), LONG)))
        assert (found.flops, found.n_bytes) == (0, 8 * 4 + 2 * 2 * 4 * expected)
    empty = work_of("aten::index_select", inputs_text(((3, 0), BF16), 1, ((0,), LONG)))
    assert empty.n_bytes == 0
    for bad in ([0, 1], None, 3):
        assert math.isnan(
            work_of("aten::index_select", inputs_text(((3, 5, 7), BF16), bad, ((4,), LONG))).n_bytes
        )
