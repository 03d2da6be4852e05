"""Bytes, and FLOPs where they are agreed on, of operators that compute little for each element they move.

Bytes are the least that the operator can move: every input is read once, every output is written once. A
device with the inputs in a cache moves fewer through its memory; a kernel that reads an input twice, more.
FLOPs are those that PyTorch's `with_flops` counts: one per element of an addition, a subtraction, a
multiplication or a division. Other functions of elements have no agreed number, so their FLOPs are unknown.
"""

from __future__ import annotations

import math

from tb_tpuprof.analysis.pytorch.inputs import Inputs
from tb_tpuprof.analysis.pytorch.products import NAN, UNKNOWN, Formula, Work, broadcast


def elementwise(n_tensors: int, flops_per_element: float = NAN, out_bytes: int = 0) -> Formula:
    """A function of the elements of the first `n_tensors` inputs. The result has their common shape and the
    widest of their types, or `out_bytes` per element.
    """

    def formula(inputs: Inputs) -> Work:
        shapes = [shape for i in range(n_tensors) if (shape := inputs.shape(i)) is not None]
        common = broadcast(*shapes) if len(shapes) == n_tensors else None
        if common is None:
            return UNKNOWN
        n = math.prod(common)
        # The number in `tensor + 1.5` is a double without dimensions; it does not widen the result.
        widths = [inputs.width(i) for i in range(n_tensors) if inputs.shape(i) or not any(shapes)]
        width = out_bytes or max(widths, default=0)
        moved = inputs.n_bytes(*range(n_tensors)) + (width * n if width else NAN)
        return Work(flops_per_element * n, moved)

    return formula


def passes(n_like_first: int, *read: int) -> Formula:
    """An operator that moves `n_like_first` tensors of the size of input 0, and reads the inputs `read`
    besides: a normalization, softmax.
    """

    def formula(inputs: Inputs) -> Work:
        if not inputs.shape(0):
            return UNKNOWN
        return Work(n_bytes=n_like_first * inputs.n_bytes(0) + inputs.n_bytes(*read))

    return formula


def written(inputs: Inputs) -> Work:
    """`fill_` and `zero_`: input 0 is written."""
    return Work(0.0, inputs.n_bytes(0)) if inputs.shape(0) is not None else UNKNOWN


def copied(inputs: Inputs) -> Work:
    """`copy_`: input 1 is read, input 0 is written."""
    shapes = inputs.shape(0), inputs.shape(1)
    return Work(0.0, inputs.n_bytes(0, 1)) if None not in shapes else UNKNOWN


def reduced(inputs: Inputs) -> Work:
    """`sum`, `mean` and their like over the dimensions in value 1, or over all."""
    shape = inputs.shape(0)
    if not shape:
        return UNKNOWN
    dims = inputs.numbers(1) if len(inputs) > 2 else ()
    if dims is None or any(not -len(shape) <= dim < len(shape) for dim in dims):
        return UNKNOWN
    gone = {dim % len(shape) for dim in dims} or set(range(len(shape)))
    n_left = math.prod(size for dim, size in enumerate(shape) if dim not in gone)
    return Work(n_bytes=inputs.n_bytes(0) + (inputs.width(0) or NAN) * n_left)


def selected(inputs: Inputs) -> Work:
    """`index_select`: the rows of input 0 along the dimension in value 1 that input 2 names."""
    shape, index, dims = inputs.shape(0), inputs.shape(2), inputs.numbers(1)
    if not shape or index is None or dims is None or len(dims) != 1:
        return UNKNOWN
    if not -len(shape) <= dims[0] < len(shape):
        return UNKNOWN
    row = math.prod(shape) // max(shape[dims[0]], 1)
    return Work(0.0, inputs.n_bytes(2) + 2 * (inputs.width(0) or NAN) * row * math.prod(index))


def embedded(inputs: Inputs) -> Work:
    """`embedding`: the rows of input 0, a matrix, that input 1 names."""
    table, index = inputs.matrix(0, 2), inputs.shape(1)
    if table is None or index is None:
        return UNKNOWN
    return Work(0.0, inputs.n_bytes(1) + 2 * (inputs.width(0) or NAN) * table[1] * math.prod(index))


def embedding_gradient(inputs: Inputs) -> Work:
    """`embedding_dense_backward`: the gradient (input 0) and the indices (1) are read, a table with as many
    rows as value 2 is written.
    """
    gradient, rows = inputs.shape(0), inputs.numbers(2)
    if not gradient or rows is None or len(rows) != 1:
        return UNKNOWN
    return Work(n_bytes=inputs.n_bytes(0, 1) + (inputs.width(0) or NAN) * rows[0] * gradient[-1])
