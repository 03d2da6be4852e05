"""HLO text of compiled operations, on one line: from the program's module, else from the trace's metadata."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.text.printer import TextOptions, instruction_text
from tb_tpuprof.analysis.hlo.work import ProgramCosts
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.trace.trace import Trace

ONE_LINE = TextOptions(
    metadata=False,
    program_shape=False,
    control=False,
    operand_numbers=False,
    operand_shapes=True,
    backend_config=False,
    literal_limit=16,
)


def expressions(trace: Trace, ops: HloOps, rows: npt.NDArray[np.intp]) -> list[str]:
    """The HLO text of each of the rows `rows` of `ops`, which must be of this trace's host. It includes the
    operands' shapes, as a TPU's compiler writes them into the trace.
    """
    programs = ProgramCosts(trace)
    result = []
    for row in rows.tolist():
        metadata = int(ops.metadata[row])
        text = trace.strings.get(int(trace.metadata["name"][metadata])) if metadata >= 0 else ""
        if not text.startswith("%"):
            module = programs.module(int(ops.program[row]), program_name(ops, int(ops.program[row])))
            instruction = int(ops.instruction[row])
            if instruction < 0 and module is not None:
                instruction = module.find(ops.name[row])
            text = (
                instruction_text(module, instruction, ONE_LINE).removeprefix("ROOT ")
                if module and instruction >= 0
                else text
            )
        result.append(text)
    return result


def program_name(ops: HloOps, program: int) -> str:
    """A program's name without its id; empty if only the id is known."""
    title = ops.programs.get(program, "")
    return title.rpartition("(")[0]
