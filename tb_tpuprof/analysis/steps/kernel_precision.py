"""Whether kernels compute in 16 bits or fewer: by the HLO instruction that they ran."""

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
)  # element types; integers that matrix units take count as well
_PRODUCTS = ("dot", "convolution", "ragged-dot", "scaled-dot")


def hlo_precision(trace: Trace, rows: Rows) -> npt.NDArray[np.int8]:
    """HALF or FULL for each kernel (event rows) that ran a known HLO instruction, else UNKNOWN: int8[rows].

    Matrix products count by their operands (a product of bfloat16 runs on 16-bit units whatever it
    accumulates in), everything else by its result.
    """
    links = hlo_links(trace)
    of_op = np.full(len(links) + 1, UNKNOWN, np.int8)
    for program in np.unique(links.program[links.instruction >= 0]).tolist():
        module = trace.programs.module(program)
        if module is not None:
            mine = np.flatnonzero((links.program == program) & (links.instruction >= 0))
            of_op[mine] = [_of_instruction(module, row) for row in links.instruction[mine].tolist()]
    at = np.searchsorted(links.events, rows)
    at[at == len(links.events)] = 0
    found = links.events[at] == rows if len(links.events) else np.zeros(len(rows), np.bool_)
    result: npt.NDArray[np.int8] = np.where(
        found, of_op[links.op[at]] if len(links.events) else UNKNOWN, UNKNOWN
    ).astype(np.int8)
    return result


def _of_instruction(module: HloModule, row: int) -> int:
    """Of one instruction; a fusion counts by the products in it."""
    products = [row] if _multiplies(module, row) else []
    if module.opcode(row) == "fusion":
        products = [
            inner for body in module.calls[row].tolist() if body >= 0 for inner in _inside(module, body)
        ]
    if products:
        shapes = [
            module.shape(int(i)) for product in products for i in module.operands[product][:2] if i >= 0
        ]
        return HALF if shapes and any(_is_narrow(shape) for shape in shapes) else FULL
    return HALF if _is_narrow(module.shape(row)) else FULL


def _multiplies(module: HloModule, row: int) -> bool:
    """Products, and library calls, which are products with few exceptions."""
    return module.opcode(row) in (*_PRODUCTS, "custom-call")


def _inside(module: HloModule, body: int) -> list[int]:
    """Products in a computation, and in the fusions inside of it (one level, as Triton's)."""
    found = []
    for row in module.rows_of(body):
        if module.opcode(row) in _PRODUCTS:
            found.append(row)
        elif module.opcode(row) == "fusion":
            inner = [int(i) for i in module.calls[row] if i >= 0]
            found += [
                i
                for computation in inner
                for i in module.rows_of(computation)
                if module.opcode(i) in _PRODUCTS
            ]
    return found


def _is_narrow(shape: Shape) -> bool:
    """Whether all arrays of a shape have elements of at most 16 bits; of a tuple the first, which is the
    result beside workspace.
    """
    first = shape.elements[0] if shape.is_tuple and shape.elements else shape
    return _NARROW.fullmatch(first.type_name) is not None
