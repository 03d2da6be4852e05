"""Floating point operations of single HLO instructions that are more than one per element: dot, convolution,
FFT, solvers.

A multiply-add counts as two. The formulas are those of XLA's cost analysis, so that numbers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo_attributes import Attributes, ConvolutionDims, DotDims, WindowDim
from tb_tpuprof.trace.hlo_shape import Shape

FMA = 2
_MAX_POSITIONS = 1 << 22


def at(dims: Sequence[int], index: int) -> int:
    """A dimension, 1 where there is none such, never negative."""
    return max(int(dims[index]), 0) if 0 <= index < len(dims) else 1


def array(shape: Shape) -> Shape:
    """The array itself, or a tuple's first."""
    return shape.leaves[0] if shape.is_tuple and shape.leaves else shape


def dot_flops(lhs: Shape, result: Shape, dims: DotDims) -> float:
    """2 × elements of the result × Π contracted dimensions. Of a ragged dot (one row of groups is used for
    each row) the same.
    """
    width = math.prod(at(lhs.dims, dim) for dim in dims.lhs_contracting)
    return float(FMA * array(result).n_elements) * width


def convolution_flops(operands: tuple[Shape, Shape, Shape], attributes: Attributes) -> float:
    """2 × input features per group × output features × batch per group × Π valid positions; operands are
    input, kernel, output.

    A position is valid where the kernel's element meets an element of the input rather than padding or a hole
    of dilation.
    """
    lhs, _, out = operands
    dims = attributes.convolution or ConvolutionDims()
    window = attributes.window or ()
    positions = 1
    for i, dim in enumerate(window):
        n_in = at(lhs.dims, dims.input_spatial[i]) if i < len(dims.input_spatial) else 1
        n_out = at(out.dims, dims.output_spatial[i]) if i < len(dims.output_spatial) else 1
        positions *= valid_positions(dim, n_in, n_out)
    features = at(lhs.dims, dims.input_feature) // max(attributes.feature_group_count, 1)
    batch = at(lhs.dims, dims.input_batch) // max(attributes.batch_group_count, 1)
    return float(FMA * features * at(out.dims, dims.output_feature) * batch) * positions


def valid_positions(dim: WindowDim, n_in: int, n_out: int) -> int:
    """Pairs (kernel element, output element) of one dimension that meet an element of the input."""
    size, stride = max(dim.size, 0), dim.stride
    base, low = max(dim.base_dilation, 1), dim.padding_low
    limit = (n_in - 1) * base + 1 if n_in > 0 else 0
    if limit <= 0 or not size or n_out <= 0:
        return 0
    outer, inner = (size, n_out) if size <= n_out else (n_out, size)
    step_outer, step_inner = (dim.window_dilation, stride) if size <= n_out else (stride, dim.window_dilation)
    if outer > _MAX_POSITIONS:
        return size * n_out
    # For each of the fewer (kernel elements, say) the places of all others are an arithmetic sequence: count
    # those that are inside and divisible by the dilation of the base.
    first = np.arange(outer, dtype=np.int64) * step_outer - low
    return int(_inside(first, step_inner, inner, limit, base).sum())


def _inside(first: npt.NDArray[np.int64], step: int, n: int, limit: int, base: int) -> npt.NDArray[np.int64]:
    """How many of first + step × k, 0 ≤ k < n, lie in [0, limit) and are multiples of base."""
    if step == 0:
        return np.where((first >= 0) & (first < limit) & (first % base == 0), n, 0)
    if step < 0:
        first, step = first + step * (n - 1), -step
    low = np.maximum(-(first // step), 0)  # the first k with a place that is not negative
    high = np.minimum((limit - 1 - first) // step, n - 1)
    if base == 1:
        return np.asarray(np.maximum(high - low + 1, 0), np.int64)
    # Solutions of first + step × k ≡ 0 (mod base): k ≡ k0 (mod period), if there are any.
    gcd = math.gcd(step, base)
    period = base // gcd
    inverse = pow(step // gcd, -1, period) if period > 1 else 0
    k0 = (-(first // gcd) * inverse) % period
    start = low + (k0 - low) % period
    found: npt.NDArray[np.int64] = np.where(
        (first % gcd == 0) & (start <= high), (high - start) // period + 1, 0
    )
    return found


def fft_flops(operand: Shape, lengths: Sequence[int]) -> float:
    """2 × 4 × Π floor(log2 length) × elements of the operand."""
    factors = math.prod(max(int(n).bit_length() - 1, 0) for n in lengths)
    return float(FMA * 4 * factors * array(operand).n_elements)


def triangular_solve_flops(a: Shape, b: Shape) -> float:
    """2 × elements of the right side × size of the matrix."""
    return float(FMA * array(b).n_elements) * at(a.dims, len(a.dims) - 1)


def cholesky_flops(a: Shape) -> float:
    """Elements × size ÷ 3."""
    return float(a.n_elements * at(a.dims, len(a.dims) - 1) // 3)


def sort_flops(keys: Shape) -> float:
    """Comparisons: n × ceil(log2 n), n all elements."""
    n = keys.n_elements
    return float(n) * max(n - 1, 0).bit_length()
