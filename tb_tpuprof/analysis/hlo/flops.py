"""Floating point operations of single HLO instructions that need more than one per element: dot, convolution,
FFT, solvers.

A multiply-add counts as two. The formulas are those of XLA's cost analysis (HloCostAnalysis), so that numbers
are comparable.
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


def dim_size(dims: Sequence[int], index: int) -> int:
    """The size of a dimension, 1 if there is no such dimension; never negative."""
    return max(int(dims[index]), 0) if 0 <= index < len(dims) else 1


def first_array(shape: Shape) -> Shape:
    """The array itself, or the first array of a tuple."""
    return shape.leaves[0] if shape.is_tuple and shape.leaves else shape


def dot_flops(lhs: Shape, result: Shape, dims: DotDims) -> float:
    """2 × elements of the result × Π contracted dimensions. The same for a ragged dot, which uses one group
    for each row.
    """
    width = math.prod(dim_size(lhs.dims, dim) for dim in dims.lhs_contracting)
    return float(FMA * first_array(result).n_elements) * width


def convolution_flops(lhs: Shape, out: Shape, attributes: Attributes) -> float:
    """2 × input features per group × output features × batch per group × Π valid positions. `lhs`: the input;
    the kernel's size is in the window.

    A position is valid if the kernel's element meets an element of the input, not padding or a hole of
    dilation.
    """
    dims = attributes.convolution or ConvolutionDims()
    window = attributes.window or ()
    positions = 1
    for i, dim in enumerate(window):
        n_in = dim_size(lhs.dims, dims.input_spatial[i]) if i < len(dims.input_spatial) else 1
        n_out = dim_size(out.dims, dims.output_spatial[i]) if i < len(dims.output_spatial) else 1
        positions *= valid_positions(dim, n_in, n_out)
    features = dim_size(lhs.dims, dims.input_feature) // max(attributes.feature_group_count, 1)
    batch = dim_size(lhs.dims, dims.input_batch) // max(attributes.batch_group_count, 1)
    return float(FMA * features * dim_size(out.dims, dims.output_feature) * batch) * positions


def valid_positions(dim: WindowDim, n_in: int, n_out: int) -> int:
    """Number of pairs (kernel element, output element) in one dimension that meet an element of the input."""
    size, stride = max(dim.size, 0), dim.stride
    base, low = max(dim.base_dilation, 1), dim.padding_low
    limit = (n_in - 1) * base + 1 if n_in > 0 else 0
    if limit <= 0 or not size or n_out <= 0:
        return 0
    outer, inner = (size, n_out) if size <= n_out else (n_out, size)
    step_outer, step_inner = (dim.window_dilation, stride) if size <= n_out else (stride, dim.window_dilation)
    if outer > _MAX_POSITIONS:
        return size * n_out
    # Iterate over the smaller side (for example kernel elements). For each, the positions of the other side
    # are an arithmetic sequence: count those inside the input that are divisible by the base dilation.
    first = np.arange(outer, dtype=np.int64) * step_outer - low
    return int(_count_inside(first, step_inner, inner, limit, base).sum())


def _count_inside(
    first: npt.NDArray[np.int64], step: int, n: int, limit: int, base: int
) -> npt.NDArray[np.int64]:
    """Count how many of first + step × k, 0 ≤ k < n, are in [0, limit) and multiples of base."""
    if step == 0:
        return np.where((first >= 0) & (first < limit) & (first % base == 0), n, 0)
    if step < 0:
        first, step = first + step * (n - 1), -step
    low = np.maximum(-(first // step), 0)  # the first k with a non-negative position
    high = np.minimum((limit - 1 - first) // step, n - 1)
    if base == 1:
        return np.asarray(np.maximum(high - low + 1, 0), np.int64)
    # Solutions of first + step × k ≡ 0 (mod base): k ≡ k0 (mod period), if there are any.
    gcd = math.gcd(step, base)
    period = base // gcd
    inverse = pow(step // gcd, -1, period)
    k0 = (-(first // gcd) * inverse) % period
    start = low + (k0 - low) % period
    count: npt.NDArray[np.int64] = np.where(
        (first % gcd == 0) & (start <= high), (high - start) // period + 1, 0
    )
    return count


def fft_flops(operand: Shape, lengths: Sequence[int]) -> float:
    """2 × 4 × Π floor(log2 length) × elements of the operand."""
    factors = math.prod(max(int(n).bit_length() - 1, 0) for n in lengths)
    return float(FMA * 4 * factors * first_array(operand).n_elements)


def triangular_solve_flops(a: Shape, b: Shape) -> float:
    """2 × elements of the right side × size of the matrix."""
    return float(FMA * first_array(b).n_elements) * dim_size(a.dims, len(a.dims) - 1)


def cholesky_flops(a: Shape) -> float:
    """Elements × size ÷ 3."""
    return float(a.n_elements * dim_size(a.dims, len(a.dims) - 1) // 3)


def sort_flops(keys: Shape) -> float:
    """Comparisons: n × ceil(log2 n), n all elements."""
    n = keys.n_elements
    return float(n) * max(n - 1, 0).bit_length()
