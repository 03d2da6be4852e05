"""Which operation each kernel was launched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_names import Instruction, Instructions
from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.kernel_names import is_tensor_core_eligible
from tb_tpuprof.analysis.events.names import parse_op
from tb_tpuprof.analysis.events.planes import DERIVED_OPS, line_events, planes
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]
_MODULE = "XlaModule:"  # what stands for an operation where a whole program is one


@dataclass(frozen=True)
class KernelOps:
    """`code[i]`: the operation of kernel i, a row of `names` and `is_eligible`; row 0 is none.
    `is_compiled[i]`: it has an HLO.
    """

    code: Codes
    names: tuple[str, ...]
    is_eligible: tuple[bool, ...]
    is_compiled: npt.NDArray[np.bool_]


class _Names:
    """Operations as they are found, each once."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, bool], int] = {("", False): 0}

    def code(self, name: str, eligible: bool) -> int:
        return self.rows.setdefault((name, eligible), len(self.rows))


def op_columns(trace: Trace, rows: Rows) -> list[Codes]:
    """What tells the operations of kernels (ascending event rows) apart: kernels that are alike in all of it
    have the same one.
    """
    stats = trace.event_stats
    found = [stats.texts_at("tf_op", rows)] if stats.has("tf_op") else []
    found += [hlo_op_texts(trace).at(rows)] if stats.has("hlo_op") else []
    if stats.has("program_id"):
        found.append(stats.ints_at("program_id", rows))
    derived = _derived(trace, rows)
    return found if derived is None else [*found, derived]


def kernel_ops(trace: Trace, rows: Rows) -> KernelOps:
    """Operations of kernels (event rows).

    In this order: the framework's name in the stat `tf_op`; the framework's name of the HLO instruction
    (`hlo_op`, `program_id`), else the instruction's own; the operation that a line derived by the file's
    writer shows above.
    """
    names = _Names()
    code = np.zeros(len(rows), np.int64)
    framework, compiled = trace.event_stats.texts_at("tf_op", rows), hlo_op_texts(trace).at(rows)
    framework = np.where(
        np.isin(framework, [trace.strings.find(text) for text in (_MODULE, "")]), -1, framework
    )
    has_hlo = (compiled >= 0) & (compiled != trace.strings.find(""))
    _by_text(trace, framework, code, names)
    program = trace.event_stats.ints_at("program_id", rows)
    _by_instruction(trace, np.flatnonzero((code == 0) & has_hlo), compiled, program, code, names)
    derived = _derived(trace, rows)
    if derived is not None:
        open_ = np.flatnonzero(code == 0)
        part = np.zeros(len(open_), np.int64)
        _by_text(trace, derived[open_], part, names)
        code[open_] = part
    return KernelOps(
        code, tuple(name for name, _ in names.rows), tuple(eligible for _, eligible in names.rows), has_hlo
    )


def _by_text(trace: Trace, text: Codes, code: Codes, names: _Names) -> None:
    """Operations that the kernels name themselves."""
    distinct, inverse = np.unique(text, return_inverse=True)
    table = np.zeros(len(distinct), np.int64)
    for i, string in enumerate(distinct.tolist()):
        if string >= 0:
            op = parse_op(trace.strings[string])
            table[i] = names.code(op.name, is_tensor_core_eligible(op.name, op.type))
    code[:] = table[inverse.reshape(-1)]


def _by_instruction(
    trace: Trace, mine: Rows, hlo_op: Codes, program: Codes, code: Codes, names: _Names
) -> None:
    """Operations of HLO instructions."""
    if not len(mine):
        return
    pairs, inverse = np.unique(np.column_stack((program[mine], hlo_op[mine])), axis=0, return_inverse=True)
    programs: dict[int, Instructions] = {}
    table, strings = np.zeros(len(pairs), np.int64), hlo_op_texts(trace).strings
    for i, (number, text) in enumerate(pairs.tolist()):
        if number not in programs:
            programs[number] = Instructions(trace, number)
        leaf = strings[text].rpartition("::")[2]
        found = programs[number].get(leaf) or Instruction("", "")
        op = (
            parse_op(found.op_name if ":" in found.op_name else f"{found.op_name}:")
            if found.op_name
            else None
        )
        eligible = (
            found.opcode in ("dot", "convolution")
            or is_tensor_core_eligible(leaf)
            or bool(op and is_tensor_core_eligible(op.name))
        )
        table[i] = names.code(op.name if op else leaf, eligible)
    code[mine] = table[inverse.reshape(-1)]


def _derived(trace: Trace, rows: Rows) -> Codes | None:
    """What a derived line of the same GPU shows at each kernel's time, as a string, -1 nothing; None where
    there is no such line.
    """
    lines = np.flatnonzero(((trace.lines["id"] & 0xFFFFFFFF) == DERIVED_OPS) & (trace.lines["n_events"] > 0))
    first_of_plane = {int(trace.lines["plane"][line]): line for line in lines[::-1].tolist()}
    found = {plane: line for plane, line in first_of_plane.items() if plane in planes(trace).gpus}
    if not found:
        return None
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    plane_of = trace.lines["plane"][trace.lines_at(rows)]
    names = np.full(len(rows), -1, np.int64)
    for plane, line in found.items():
        ops, mine = line_events(trace, line), np.flatnonzero(plane_of == plane)
        at = np.searchsorted(start[ops], start[rows[mine]], side="right") - 1
        inside = (at >= 0) & (end[rows[mine]] <= end[ops][at])
        names[mine[inside]] = trace.metadata["name"][trace.events["metadata"][at[inside] + ops.start]]
    return names
