"""An HLO module → the precision of the operands that its instructions multiply, where these have 8 bits.

dot.3      s32[8,8] dot(s8[8,16], s8[16,8])                      8-bit integers
fusion.4   all products in its body multiply f8e4m3fn or f8e5m2  8-bit
gemm.5     custom call `__cublas$lt$matmul$f8` of f8e4m3fn       8-bit
fusion.6   its body converts s8 to bf16, then multiplies         none of these: 16 bits
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.precisions import FP8, INT8
from tb_tpuprof.analysis.hlo.classes import MATRIX_CALLS
from tb_tpuprof.trace.hlo import HloModule

PRECISIONS = ("", FP8, INT8)
_PRODUCTS = ("dot", "convolution", "ragged-dot", "scaled-dot")


def product_precisions(module: HloModule) -> npt.NDArray[np.uint8]:
    """For each instruction its row of PRECISIONS: that of all products in it; 0 if they differ, if one has
    other operands, and without products.
    """
    result = np.zeros(module.n_instructions, np.uint8)
    products = np.flatnonzero(module.has_opcode(_PRODUCTS))
    calls = [
        row
        for row in np.flatnonzero(module.has_opcode(("custom-call",))).tolist()
        if MATRIX_CALLS.search(module.text("custom_call_target", row))
    ]
    for row in (*products.tolist(), *calls):
        result[row] = _of_product(module, row)
    computation = module.instructions["computation"][products]
    n = len(module.computations)
    least, most = np.full(n, 255, np.uint8), np.zeros(n, np.uint8)
    np.minimum.at(least, computation, result[products])
    np.maximum.at(most, computation, result[products])
    body_of = module.calls
    is_body = module.has_opcode(("fusion",))[body_of.owner] & (body_of.values >= 0)
    body = body_of.values[is_body]
    result[body_of.owner[is_body]] = np.where(least[body] == most[body], most[body], 0)
    return result


def _of_product(module: HloModule, row: int) -> int:
    operands = [int(i) for i in module.operands[row][:2]]
    kinds = {_kind(module.shape(i).type_name) if i >= 0 else 0 for i in operands}
    return kinds.pop() if len(kinds) == 1 else 0


def _kind(element_type: str) -> int:
    if element_type.startswith("f8"):
        return PRECISIONS.index(FP8)
    return PRECISIONS.index(INT8) if element_type in ("s8", "u8") else 0
