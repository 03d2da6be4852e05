"""A text → the instructions of a module whose name, opcode or framework op contains it, case-insensitive."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo import HloModule


def matching_rows(module: HloModule, text: str) -> npt.NDArray[np.int64]:
    """Matching rows: first those whose name begins with the text, each part ascending. All rows if the text
    is empty.
    """
    needle = text.strip().removeprefix("%").lower()
    table = module.instructions
    in_string = np.array([needle in string.lower() for string in module.strings.all] or [False], np.bool_)
    in_opcode = np.array([needle in opcode for opcode in module.opcodes] or [False], np.bool_)
    name, op_name = table["name"], table["op_name"]
    is_match = (
        in_opcode[table["opcode"]] | (in_string[name] & (name >= 0)) | (in_string[op_name] & (op_name >= 0))
    )
    rows = np.flatnonzero(is_match)
    has_prefix = np.array(
        [string.lower().startswith(needle) for string in module.strings.all] or [False], np.bool_
    )
    return np.concatenate((rows[has_prefix[name[rows]]], rows[~has_prefix[name[rows]]])).astype(np.int64)
