"""The operation that each kernel was launched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_links import instruction_name
from tb_tpuprof.analysis.events.hlo_names import Instruction, Instructions
from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.kernel_names import is_tensor_core_eligible
from tb_tpuprof.analysis.events.names import parse_op
from tb_tpuprof.analysis.events.planes import DERIVED_OPS, line_events, planes
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]
_MODULE = "XlaModule:"  # in place of an operation: a whole program


@dataclass(frozen=True)
class KernelOps:
    """`code[i]`: the operation of kernel i, a row of `names` and `is_eligible`; row 0 is none.
    `is_compiled[i]`: kernel i ran an HLO instruction.
    """

    code: Codes
    names: tuple[str, ...]
    is_eligible: tuple[bool, ...]
    is_compiled: npt.NDArray[np.bool_]


class _OpTable:
    """Numbers distinct operations in order of appearance."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, bool], int] = {("", False): 0}

    def code(self, name: str, eligible: bool) -> int:
        return self.rows.setdefault((name, eligible), len(self.rows))


def op_columns(trace: Trace, rows: Rows) -> list[Codes]:
    """The columns that determine the operations of kernels (ascending event rows): kernels that are equal in
    all of them have the same operation.
    """
    stats = trace.event_stats
    columns = [stats.texts_at("tf_op", rows)] if stats.has("tf_op") else []
    columns += [hlo_op_texts(trace).at(rows)] if stats.has("hlo_op") else []
    if stats.has("program_id"):
        columns.append(stats.ints_at("program_id", rows))
    derived = _derived(trace, rows)
    return columns if derived is None else [*columns, derived]


def kernel_ops(trace: Trace, rows: Rows) -> KernelOps:
    """Operations of kernels (event rows).

    In order of precedence: the framework's name in the stat `tf_op`; the framework's name of the HLO
    instruction (`hlo_op`, `program_id`), else the instruction's own name; the operation shown at that time on
    a line that a profiler back end derived.
    """
    names = _OpTable()
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
        unnamed = np.flatnonzero(code == 0)
        derived_code = np.zeros(len(unnamed), np.int64)
        _by_text(trace, derived[unnamed], derived_code, names)
        code[unnamed] = derived_code
    return KernelOps(
        code, tuple(name for name, _ in names.rows), tuple(eligible for _, eligible in names.rows), has_hlo
    )


def _by_text(trace: Trace, text: Codes, code: Codes, names: _OpTable) -> None:
    """Set the operations that the given strings name."""
    distinct, inverse = np.unique(text, return_inverse=True)
    table = np.zeros(len(distinct), np.int64)
    for i, string in enumerate(distinct.tolist()):
        if string >= 0:
            op = parse_op(trace.strings[string])
            table[i] = names.code(op.name, is_tensor_core_eligible(op.name, op.type))
    code[:] = table[inverse.reshape(-1)]


def _by_instruction(
    trace: Trace, rows: Rows, hlo_op: Codes, program: Codes, code: Codes, names: _OpTable
) -> None:
    """Set the operations of kernels that ran HLO instructions."""
    if not len(rows):
        return
    pairs, inverse = distinct_rows(program[rows], hlo_op[rows])
    programs: dict[int, Instructions] = {}
    table, strings = np.zeros(len(pairs), np.int64), hlo_op_texts(trace).strings
    for i, (program_id, text) in enumerate(pairs.tolist()):
        if program_id not in programs:
            programs[program_id] = Instructions(trace, program_id)
        leaf = instruction_name(strings[text])
        instruction = programs[program_id].get(leaf) or Instruction("", "")
        op = (
            parse_op(instruction.op_name if ":" in instruction.op_name else f"{instruction.op_name}:")
            if instruction.op_name
            else None
        )
        eligible = (
            instruction.opcode in ("dot", "convolution")
            or is_tensor_core_eligible(leaf)
            or bool(op and is_tensor_core_eligible(op.name))
        )
        table[i] = names.code(op.name if op else leaf, eligible)
    code[rows] = table[inverse]


def _derived(trace: Trace, rows: Rows) -> Codes | None:
    """The string that a derived line of the same GPU shows at each kernel's time, -1 for none; None if there
    is no such line.
    """
    lines = np.flatnonzero(((trace.lines["id"] & 0xFFFFFFFF) == DERIVED_OPS) & (trace.lines["n_events"] > 0))
    first_of_plane = {int(trace.lines["plane"][line]): line for line in lines[::-1].tolist()}
    line_of_plane = {plane: line for plane, line in first_of_plane.items() if plane in planes(trace).gpus}
    if not line_of_plane:
        return None
    start, end = trace.events["start_ps"], trace.events["start_ps"] + trace.events["duration_ps"]
    plane_of = trace.lines["plane"][trace.lines_at(rows)]
    names = np.full(len(rows), -1, np.int64)
    for plane, line in line_of_plane.items():
        ops, on_plane = line_events(trace, line), np.flatnonzero(plane_of == plane)
        position = np.searchsorted(start[ops], start[rows[on_plane]], side="right") - 1
        is_inside = (position >= 0) & (end[rows[on_plane]] <= end[ops][position])
        names[on_plane[is_inside]] = trace.metadata["name"][
            trace.events["metadata"][position[is_inside] + ops.start]
        ]
    return names
