"""FLOPs and bytes of operators that multiply matrices, convolve or attend.

    product       [b, m, k] × [b, k, n]     2·b·m·k·n
    convolution   output [n, c_out, *out], weight [c_out, c_in / groups, *kernel]
                                            2 · n · Π out · c_out · (c_in / groups) · Π kernel
                  its gradients             the same again, for the input and for the weight
    attention     p pairs of query and key  2 · p · (d_qk + d_v), backward 2 · p · (3·d_qk + 2·d_v)
                                            p = b·h·s_q·s_k, with a causal mask only the pairs below it

A multiplication and an addition are two FLOPs; the conventions are those of `torch.utils.flop_counter`, which
counts all pairs with a causal mask, too. Bias, scaling and softmax are not counted. Bytes: every input is
read once and every output is written once, in the type of the first operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tb_tpuprof.analysis.pytorch.inputs import Inputs, Shape

NAN = math.nan
ALL_PAIRS, UPPER_LEFT, LOWER_RIGHT = range(3)  # as `custom_mask_type` numbers them


@dataclass(frozen=True)
class Work:
    """FLOPs and bytes of one call, NaN where unknown; `dtype`: the type of the multiplied operands, empty if
    unknown.
    """

    flops: float = NAN
    n_bytes: float = NAN
    dtype: str = ""


UNKNOWN = Work()
Formula = Callable[[Inputs], Work]


def _product(inputs: Inputs, first: int, sizes: tuple[int, int, int, int], read: tuple[int, ...]) -> Work:
    """The work of a product of input `first`, with the sizes (b, m, k, n)."""
    b, m, k, n = sizes
    out = _width_of_result(inputs, first) * b * m * n
    return Work(2.0 * b * m * k * n, inputs.n_bytes(*read) + out, inputs.type(first))


def _width_of_result(inputs: Inputs, first: int) -> float:
    """Bytes per element that a product writes: 8-bit operands give wider results."""
    width = inputs.width(first)
    if width == 1:
        return 4.0 if inputs.type(first) in ("signed char", "char") else 2.0
    return float(width) or NAN


def matrices(first: int, read: tuple[int, ...], is_batched: bool = False) -> Formula:
    """A product of the inputs `first` and `first + 1`, which are matrices or batches of them."""

    def formula(inputs: Inputs) -> Work:
        a, b = (inputs.matrix(i, 2 + is_batched) for i in (first, first + 1))
        if a is None or b is None or a[-1] != b[-2] or (is_batched and a[0] != b[0]):
            return UNKNOWN
        return _product(inputs, first, (a[0] if is_batched else 1, a[-2], a[-1], b[-1]), read)

    return formula


def vectors(first: int, read: tuple[int, ...]) -> Formula:
    """A product of a matrix or vector, input `first`, and a vector."""

    def formula(inputs: Inputs) -> Work:
        a, b = inputs.shape(first), inputs.matrix(first + 1, 1)
        if not a or b is None or len(a) > 2 or a[-1] != b[0]:
            return UNKNOWN
        return _product(inputs, first, (1, math.prod(a[:-1]), b[0], 1), read)

    return formula


def matmul(inputs: Inputs) -> Work:
    """`matmul`: batches of either side are broadcast."""
    a, b = inputs.shape(0), inputs.shape(1)
    if not a or not b:
        return UNKNOWN
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    batch = broadcast(left[:-2], right[:-2])
    if batch is None or left[-1] != right[-2]:
        return UNKNOWN
    return _product(inputs, 0, (math.prod(batch), left[-2], left[-1], right[-1]), (0, 1))


def linear(inputs: Inputs) -> Work:
    """`linear`: an input of any number of dimensions times the transposed weight [n, k]."""
    a, weight = inputs.shape(0), inputs.matrix(1, 2)
    if not a or weight is None or a[-1] != weight[1]:
        return UNKNOWN
    return _product(inputs, 0, (1, math.prod(a[:-1]), weight[1], weight[0]), (0, 1, 2))


def broadcast(*shapes: Shape) -> Shape | None:
    """The common shape of tensors by NumPy's rules, None if they have none."""
    result: list[int] = []
    for sizes in zip(*(_padded(shape, max(map(len, shapes))) for shape in shapes), strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def _padded(shape: Shape, n_dims: int) -> Shape:
    return (1,) * (n_dims - len(shape)) + shape


@dataclass(frozen=True)
class Places:
    """Positions of a convolution's inputs; `dilation`: -1 if there is none, `transposed`: that of the flag,
    -1 if there is none.
    """

    stride: int
    padding: int
    dilation: int
    transposed: int = -1
    read: tuple[int, ...] = (0, 1, 2)


def convolution(places: Places) -> Formula:
    """A convolution of input 0 with the weight, input 1."""

    def formula(inputs: Inputs) -> Work:
        x, weight = inputs.shape(0), inputs.shape(1)
        if x is None or weight is None or len(x) != len(weight) or len(x) < 3:
            return UNKNOWN
        if places.transposed >= 0 and inputs.flag(places.transposed) is not False:
            return transposed_convolution(inputs) if inputs.flag(places.transposed) else UNKNOWN
        out = _output_sizes(inputs, places, x[2:], weight[2:])
        if out is None:
            return UNKNOWN
        moved = inputs.n_bytes(*places.read) + _width_of_result(inputs, 0) * x[0] * weight[0] * math.prod(out)
        return Work(_convolved(x[0], out, weight), moved, inputs.type(0))

    return formula


def transposed_convolution(inputs: Inputs) -> Work:
    """A transposed convolution; its weight is [c_in, c_out / groups, *kernel]. The output's size is that of a
    convolution's input, which the inputs do not state.
    """
    x, weight = inputs.shape(0), inputs.shape(1)
    if x is None or weight is None or len(x) != len(weight) or len(x) < 3 or x[1] != weight[0]:
        return UNKNOWN
    return Work(_convolved(x[0], x[2:], weight), NAN, inputs.type(0))


def _convolved(n: int, positions: Shape, weight: Shape) -> float:
    return 2.0 * n * math.prod(positions) * math.prod(weight)


def _output_sizes(inputs: Inputs, places: Places, sizes: Shape, kernel: Shape) -> Shape | None:
    """Positions of the kernel in each dimension; None if stride, padding or dilation are not recorded."""
    settings = [inputs.numbers(places.stride), inputs.numbers(places.padding)]
    settings.append(inputs.numbers(places.dilation) if places.dilation >= 0 else (1,))
    each = [_for_each(numbers, len(sizes)) for numbers in settings]
    if any(numbers is None for numbers in each):
        return None
    stride, padding, dilation = (numbers or () for numbers in each)
    if min(stride) < 1 or min(padding) < 0 or min(dilation) < 1:
        return None
    out = tuple(
        (size + 2 * pad - d * (width - 1) - 1) // step + 1
        for size, width, step, pad, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )
    return out if min(out) > 0 else None


def _for_each(numbers: Shape | None, n_dims: int) -> Shape | None:
    """One number per dimension: a single one stands for all."""
    if not numbers or len(numbers) not in (1, n_dims):
        return None
    return numbers * n_dims if len(numbers) == 1 else numbers


def convolution_backward(inputs: Inputs) -> Work:
    """`convolution_backward`: the gradients of input and weight that its mask asks for."""
    gradient, x, weight = (inputs.shape(i) for i in range(3))
    mask, transposed = inputs.numbers(10), inputs.flag(7)
    if gradient is None or x is None or weight is None or mask is None or transposed is None:
        return UNKNOWN
    if len(gradient) < 3 or len(mask) != 3 or not len(gradient) == len(x) == len(weight):
        return UNKNOWN
    one = _convolved(gradient[0], (x if transposed else gradient)[2:], weight)
    moved = (inputs.n_bytes(0, 1, 2) if wanted else 0.0 for wanted in mask[:2])
    return Work(one * sum(mask[:2]), sum(moved), inputs.type(0))


def convolution_backward_input(inputs: Inputs) -> Work:
    """`cudnn_convolution_backward_input` and its like: the input's size is value 0, the gradient input 1, the
    weight input 2.
    """
    gradient, weight, size = inputs.shape(1), inputs.shape(2), inputs.numbers(0)
    if gradient is None or weight is None or len(gradient) != len(weight) or len(weight) < 3:
        return UNKNOWN
    return _one_gradient(inputs, gradient, weight, size)


def convolution_backward_weight(inputs: Inputs) -> Work:
    """`cudnn_convolution_backward_weight` and its like: the weight's size is value 0, the gradient input 1,
    the convolution's input 2.
    """
    gradient, weight = inputs.shape(1), inputs.numbers(0)
    if gradient is None or weight is None or len(gradient) != len(weight) or len(weight) < 3:
        return UNKNOWN
    return _one_gradient(inputs, gradient, weight, weight)


def _one_gradient(inputs: Inputs, gradient: Shape, weight: Shape, written: Shape | None) -> Work:
    """One gradient of a convolution, of the size `written`."""
    out = math.prod(written) * inputs.width(1) if written else NAN
    return Work(_convolved(gradient[0], gradient[2:], weight), inputs.n_bytes(1, 2) + out, inputs.type(1))


@dataclass(frozen=True)
class Attention:
    """Positions of an attention's inputs: the query (key and value follow), the causal flag or the number of
    a mask's type, and texts that must be empty or −1 (windows, lengths of sequences).

    `heads_first`: the dimensions are [b, h, s, d], else [b, s, h, d]. `corner`: from which one a causal mask
    starts, as in `_pairs`. `is_type`: input `causal` is the number of a mask's type, not a flag.
    """

    query: int
    causal: int
    heads_first: bool
    is_backward: bool = False
    absent: tuple[int, ...] = ()
    corner: int = UPPER_LEFT
    is_type: bool = False


def attention(places: Attention) -> Formula:
    """Attention, or its gradient. Sequences of different lengths packed into one (three dimensions) are
    unknown: the inputs do not state their lengths.
    """

    def formula(inputs: Inputs) -> Work:
        q, k, v = (inputs.matrix(places.query + i, 4) for i in range(3))
        mask = _mask(inputs, places)
        if q is None or k is None or v is None or mask is None:
            return UNKNOWN
        s, h = (2, 1) if places.heads_first else (1, 2)
        if q[0] != k[0] or k[s] != v[s] or q[3] != k[3]:
            return UNKNOWN
        pairs = q[0] * q[h] * _pairs(q[s], k[s], mask)
        wide = (3 * q[3] + 2 * v[3]) if places.is_backward else (q[3] + v[3])
        out = math.prod(q[:3]) * v[3]
        elements = math.prod(q) + math.prod(k) + math.prod(v) + out
        # Backward also reads the output's gradient and writes those of query, key and value.
        written = elements if places.is_backward else 0
        width = inputs.width(places.query) or NAN
        return Work(2.0 * pairs * wide, width * (elements + written), inputs.type(places.query))

    return formula


def _mask(inputs: Inputs, places: Attention) -> int | None:
    """The mask's kind as in `_pairs`; None if it is not recorded or another input leaves pairs out."""
    if any(_is_given(inputs, i) for i in places.absent):
        return None
    flag, numbers = inputs.flag(places.causal), inputs.numbers(places.causal)
    if not places.is_type:
        return None if flag is None else places.corner if flag else ALL_PAIRS
    is_known = flag is None and numbers in ((ALL_PAIRS,), (UPPER_LEFT,), (LOWER_RIGHT,))
    return numbers[0] if is_known and numbers else None


def _is_given(inputs: Inputs, i: int) -> bool:
    return (i < len(inputs.values) and inputs.values[i] not in ("", "-1")) or bool(inputs.shape(i))


def _pairs(n_queries: int, n_keys: int, mask: int) -> int:
    """Pairs of query and key that a mask leaves. From the upper left, query i has the keys up to i; from the
    lower right, the last query has all keys and each one before it one fewer.
    """
    if mask == ALL_PAIRS:
        return n_queries * n_keys
    n_growing = min(n_queries, n_keys)  # queries that each have one key more than the one before
    growing = n_growing * (n_growing + 1) // 2
    if mask == UPPER_LEFT:
        return growing + (n_queries - n_growing) * n_keys
    return growing + n_queries * max(0, n_keys - n_queries)
