"""The class of work of an HLO instruction, for colors and filters."""

from __future__ import annotations

import re

from tb_tpuprof.trace.hlo import HloModule

_BY_OPCODE = {
    "matrix": ("dot convolution ragged-dot scaled-dot cholesky triangular-solve fft",),
    "reduction": ("reduce reduce-window select-and-scatter sort topk map scan",),
    "data movement": (
        "copy copy-start copy-done transpose reshape dynamic-reshape bitcast slice dynamic-slice "
        "dynamic-update-slice gather scatter pad",
        "concatenate broadcast reverse infeed outfeed",
    ),
    "collective": (
        "all-reduce all-reduce-start all-reduce-done all-gather all-gather-start all-gather-done "
        "reduce-scatter all-to-all",
        "ragged-all-to-all collective-permute collective-permute-start collective-permute-done "
        "collective-broadcast",
        "send send-done recv recv-done",
    ),
    "control": (
        "while conditional call tuple get-tuple-element async-start async-update async-done after-all "
        "add-dependency opt-barrier domain",
    ),
    "input": (
        "parameter constant iota rng rng-bit-generator rng-get-and-update-state partition-id replica-id",
    ),
    "custom call": ("custom-call",),
    "fusion": ("fusion",),
}
_CLASS_OF = {
    opcode: name for name, opcodes in _BY_OPCODE.items() for line in opcodes for opcode in line.split()
}
MATRIX_CALLS = re.compile(r"gemm|matmul|dot|conv|flash|fmha|attention", re.IGNORECASE)
_MOST_INSPECTED = 2000


def class_of(module: HloModule, row: int) -> str:
    """The class of an instruction. A fusion or custom call that contains matrix work is `matrix`."""
    opcode = module.opcode(row)
    if opcode == "custom-call" and MATRIX_CALLS.search(module.text("custom_call_target", row)):
        return "matrix"
    if opcode == "fusion":
        for computation in module.calls[row].tolist():
            rows = module.rows_of(computation)[:_MOST_INSPECTED] if computation >= 0 else ()
            if any(_CLASS_OF.get(module.opcode(inner)) == "matrix" for inner in rows):
                return "matrix"
    return _CLASS_OF.get(opcode, "elementwise")
