"""Whether kernels compute in 16 bits or fewer, from the HLO instruction that they ran."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_shape import Shape
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.integer]
UNKNOWN, FULL, HALF = -1, 0, 1
_NARROW = re.compile(
    r"(bf16|f16|[sfu][148]\w*)$"
)  # element types; includes integers that matrix units support
_PRODUCTS = ("dot", "convolution", "ragged-dot", "scaled-dot")


def hlo_precision(trace: Trace, rows: Rows) -> npt.NDArray[np.int8]:
    """HALF or FULL for each kernel (event rows) that ran a known HLO instruction, else UNKNOWN: int8[rows].

    Matrix products count by their operands (a product of bfloat16 runs on 16-bit units whatever type it
    accumulates in), everything else by its result.
    """
    links = hlo_links(trace)
    precision_of_op = np.full(len(links) + 1, UNKNOWN, np.int8)
    for program in np.unique(links.program[links.instruction >= 0]).tolist():
        module = trace.programs.module(program)
        if module is not None:
            ops = np.flatnonzero((links.program == program) & (links.instruction >= 0))
            precision_of_op[ops] = [
                _instruction_precision(module, row) for row in links.instruction[ops].tolist()
            ]
    position = np.searchsorted(links.events, rows)
    position[position == len(links.events)] = 0
    is_linked = links.events[position] == rows if len(links.events) else np.zeros(len(rows), np.bool_)
    result: npt.NDArray[np.int8] = np.where(
        is_linked, precision_of_op[links.op[position]] if len(links.events) else UNKNOWN, UNKNOWN
    ).astype(np.int8)
    return result


def _instruction_precision(module: HloModule, row: int) -> int:
    """Precision of one instruction; a fusion counts by the products in it."""
    products = [row] if _multiplies(module, row) else []
    if module.opcode(row) == "fusion":
        products = [
            inner for body in module.calls[row].tolist() if body >= 0 for inner in _products_in(module, body)
        ]
    if products:
        shapes = [
            module.shape(int(i)) for product in products for i in module.operands[product][:2] if i >= 0
        ]
        return HALF if shapes and any(_is_narrow(shape) for shape in shapes) else FULL
    return HALF if _is_narrow(module.shape(row)) else FULL


def _multiplies(module: HloModule, row: int) -> bool:
    """Whether an instruction is a product or a library call; most library calls are products."""
    return module.opcode(row) in (*_PRODUCTS, "custom-call")


def _products_in(module: HloModule, body: int) -> list[int]:
    """Products in a computation and in its fusions (one level, as in Triton's)."""
    products = []
    for row in module.rows_of(body):
        if module.opcode(row) in _PRODUCTS:
            products.append(row)
        elif module.opcode(row) == "fusion":
            bodies = [int(i) for i in module.calls[row] if i >= 0]
            products += [
                i
                for computation in bodies
                for i in module.rows_of(computation)
                if module.opcode(i) in _PRODUCTS
            ]
    return products


def _is_narrow(shape: Shape) -> bool:
    """Whether the elements of a shape have at most 16 bits; for a tuple, those of its first element, which is
    the result (others are workspace).
    """
    first = shape.elements[0] if shape.is_tuple and shape.elements else shape
    return _NARROW.fullmatch(first.type_name) is not None
