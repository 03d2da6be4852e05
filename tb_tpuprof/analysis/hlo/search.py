"""A text → the instructions of a module whose name, opcode or framework op holds it, in whatever case."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo import HloModule


def matching_rows(module: HloModule, text: str) -> npt.NDArray[np.int64]:
    """Rows ascending; first those whose name begins with the text. All where the text is empty."""
    wanted = text.strip().removeprefix("%").lower()
    table = module.instructions
    in_string = np.array([wanted in string.lower() for string in module.strings.all] or [False], np.bool_)
    in_opcode = np.array([wanted in opcode for opcode in module.opcodes] or [False], np.bool_)
    name, op_name = table["name"], table["op_name"]
    found = (
        in_opcode[table["opcode"]] | (in_string[name] & (name >= 0)) | (in_string[op_name] & (op_name >= 0))
    )
    rows = np.flatnonzero(found)
    begins = np.array(
        [string.lower().startswith(wanted) for string in module.strings.all] or [False], np.bool_
    )
    return np.concatenate((rows[begins[name[rows]]], rows[~begins[name[rows]]])).astype(np.int64)
