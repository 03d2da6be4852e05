"""The cost of layouts and of the matrix unit: padding of each dimension of a value, and the fraction of the
unit that a matrix product fills.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tb_tpuprof.analysis.hlo.flops import dim_size, first_array
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import ConvolutionDims, DotDims
from tb_tpuprof.trace.hlo_shape import Shape

# Side of the systolic array by generation. Source: https://cloud.google.com/tpu/docs (system architecture
# pages).
_LARGE_UNIT = re.compile(r"TPU ?v?(6|7)", re.IGNORECASE)
_SUBLANES = 8
MAX_PRODUCTS = 32
_MAX_DEPTH = 8


@dataclass(frozen=True)
class PaddedDim:
    """A dimension of a value that its layout pads."""

    value: str
    dim: int
    size: int
    padded: int

    @property
    def waste(self) -> float:
        """Fraction of the padded size that is padding."""
        return 1 - self.size / self.padded if self.padded else 0.0


@dataclass(frozen=True)
class Product:
    """A matrix product [rows × contracted] · [contracted × columns], `batch` times, and its sizes padded to
    the matrix unit.
    """

    name: str
    batch: int
    rows: int
    contracted: int
    columns: int
    padded: tuple[int, int, int]

    @property
    def fill(self) -> float:
        """Fraction of the padded product's multiplications that the program needs."""
        needed = self.rows * self.contracted * self.columns
        executed = math.prod(self.padded)
        return needed / executed if executed else 0.0

    @property
    def text(self) -> str:
        """The padded dimensions as text."""
        named = zip(
            ("rows", "contracted", "columns"),
            (self.rows, self.contracted, self.columns),
            self.padded,
            strict=True,
        )
        return (
            ", ".join(f"{name} {size} padded to {to}" for name, size, to in named if to > size)
            or "no padding"
        )


def padded_dims(name: str, shape: Shape) -> list[PaddedDim]:
    """The dimensions of each array of a value that its tiles pad."""
    leaves = shape.leaves
    result = []
    for i, leaf in enumerate(leaves):
        label = name if len(leaves) == 1 else f"{name}[{i}]"
        for dim, (size, padded) in enumerate(zip(leaf.dims, leaf.padded_dims, strict=True)):
            if padded > size:
                result.append(PaddedDim(label, dim, size, padded))
    return result


def unit_side(device: str, kind: str) -> int:
    """Side of a TPU's matrix unit, 0 for other devices: 256 from v6 on, 128 before."""
    if kind != "TPU":
        return 0
    return 256 if _LARGE_UNIT.search(device) else 128


def products(module: HloModule, row: int, side: int) -> list[Product]:
    """Matrix products that an instruction computes, itself or inside the fusion that it is. Convolutions
    count as products of patches.

    A unit of side s holds s × s elements of the second matrix and takes rows of the first matrix eight at a
    time.
    """
    result: list[Product] = []
    todo, seen = [(row, 0)], {row}
    while todo and len(result) < MAX_PRODUCTS:
        current, depth = todo.pop()
        product = _product(module, current, side)
        if product:
            result.append(product)
        if depth < _MAX_DEPTH and module.opcode(current) in ("fusion", "call"):
            for computation in module.calls[current].tolist():
                unseen = [
                    i for i in (module.rows_of(computation) if computation >= 0 else ()) if i not in seen
                ]
                seen.update(unseen)
                todo += [
                    (i, depth + 1)
                    for i in unseen
                    if module.opcode(i) in ("dot", "convolution", "fusion", "call")
                ]
    return result


def _product(module: HloModule, row: int, side: int) -> Product | None:
    opcode = module.opcode(row)
    operands = [int(i) for i in module.operands[row]]
    if opcode not in ("dot", "convolution") or len(operands) < 2 or min(operands[:2]) < 0:
        return None
    attributes = module.attributes(row)
    lhs, rhs, out = (first_array(module.shape(i)) for i in (operands[0], operands[1], row))
    if opcode == "dot":
        dims = attributes.dot or DotDims()
        contracted = math.prod(dim_size(lhs.dims, dim) for dim in dims.lhs_contracting)
        batch = math.prod(dim_size(lhs.dims, dim) for dim in dims.lhs_batch)
        rows, columns = (shape.n_elements // max(contracted * batch, 1) for shape in (lhs, rhs))
    else:
        convolution = attributes.convolution or ConvolutionDims()
        columns = dim_size(out.dims, convolution.output_feature)
        window = math.prod(max(dim.size, 0) for dim in attributes.window or ())
        batch = max(attributes.feature_group_count, 1)
        contracted = dim_size(rhs.dims, convolution.kernel_input_feature) * window
        rows, columns = out.n_elements // max(columns, 1), columns // batch
    sizes = (rows, contracted, columns)
    return Product(module.name(row), batch, *sizes, _padded(sizes, side))


def _padded(sizes: tuple[int, int, int], side: int) -> tuple[int, int, int]:
    if not side:
        return sizes
    rows, contracted, columns = sizes
    return _up(rows, _SUBLANES), _up(contracted, side), _up(columns, side)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def dim_roles(module: HloModule, row: int) -> list[dict[int, str]]:
    """Roles (batch, rows, contracted, columns) of the dimensions of a dot's result, first and second operand,
    by dimension number; empty for other opcodes.
    """
    operands = [int(i) for i in module.operands[row]]
    if module.opcode(row) != "dot" or len(operands) < 2 or min(operands[:2]) < 0:
        return []
    dims = module.attributes(row).dot or DotDims()
    sides = []
    for operand, batch, contracting, free in (
        (operands[0], dims.lhs_batch, dims.lhs_contracting, "rows"),
        (operands[1], dims.rhs_batch, dims.rhs_contracting, "columns"),
    ):
        n = len(first_array(module.shape(operand)).dims)
        sides.append(
            {
                dim: "batch" if dim in batch else "contracted" if dim in contracting else free
                for dim in range(n)
            }
        )
    batches = ["batch"] * len(dims.lhs_batch)
    rows, columns = ([role for role in side.values() if role in ("rows", "columns")] for side in sides)
    return [dict(enumerate([*batches, *rows, *columns])), *sides]
