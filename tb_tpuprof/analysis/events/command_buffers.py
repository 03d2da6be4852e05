"""Kernels that XLA launched in a command buffer (a CUDA or HIP graph) → the HLO instructions that they ran.

XLA:GPU records runs of successive instructions into one graph. The profiler then names only the graph
(`hlo_op` is `command_buffer_1`), not the instruction. But the graph runs the program's schedule in order, and
XLA names kernels after instructions:

    schedule   custom-call.1          gemm_fusion_dot.11   copy.3       wrapped_subtract.2
    kernels    Memset, nvjet_…        gemm_fusion_dot_11   MemcpyD2D    wrapped_subtract_3

A fusion's kernel has the fusion's name except for the number, since equal fusions share a kernel. A library's
kernels, and the memset before them, belong to the custom call that is next in the schedule. Kernels that do
not fit the schedule in exactly one way stay with the graph as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, first_ints, mix, values_at
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import ascends
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int64]
GRAPH_PREFIX = "command_buffer"
_FUSION, _CALL, _COPY = "fusion", "custom-call", "copy"
_NUMBER = re.compile(r"([._]\d+)+$")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
# Kernels of a graph × instructions of a program: above this, only the schedule's start is tried
_MAX_TRIES = 4_000_000


@dataclass(frozen=True)
class GraphKernels:
    """`events` (ascending) ran in command buffers; `instruction`: row in the module of program `program`, -1
    if unknown.
    """

    events: Rows
    program: Rows
    instruction: Rows


def named_events(trace: Trace) -> tuple[Rows, Rows]:
    """Events with the stat `hlo_op` (ascending, each once), and the string id of its text."""
    texts = trace.event_stats.texts("hlo_op")
    owner, value = texts.owner, texts.value.astype(np.int64, copy=False)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    return owner.astype(np.int64, copy=False), value


@once
def graph_kernels(trace: Trace) -> GraphKernels:
    """Kernels, copies and memsets of all command buffers of a trace."""
    events, program, string, launch = _in_graphs(trace)
    instruction = np.full(len(events), -1, np.int64)
    for program_id in np.unique(program).tolist():
        module = _module(trace, program_id)
        slots = _schedule(module) if module else []
        if slots:
            in_program = np.flatnonzero(program == program_id)
            instruction[in_program] = _instructions_of(
                trace, events[in_program], mix(launch[in_program], string[in_program]), slots
            )
    return GraphKernels(events, program, instruction)


def _in_graphs(trace: Trace) -> tuple[Rows, Rows, Rows, Rows]:
    """Events of command buffers (ascending): (event, program id, string id of the graph's name, a number for
    each launch of the graph).
    """
    rows, string = (
        named_events(trace) if planes(trace).gpus else (np.empty(0, np.intp), np.empty(0, np.int64))
    )
    used_ids = np.flatnonzero(np.bincount(string)) if len(string) else string
    graph_names = [i for i in used_ids.tolist() if trace.strings[i].startswith(GRAPH_PREFIX)]
    in_graph = np.flatnonzero(np.isin(string, graph_names)) if graph_names else np.empty(0, np.intp)
    rows, string = rows[in_graph], string[in_graph]
    program, launch = (
        values_at(rows, *first_ints(trace, key), -1) for key in ("program_id", "correlation_id")
    )
    has_ids = (program >= 0) & (launch >= 0)
    rows, string, program, launch = rows[has_ids], string[has_ids], program[has_ids], launch[has_ids]
    return rows, program, string, mix(launch, trace.lines["plane"][trace.event_line[rows]].astype(np.int64))


def _module(trace: Trace, program: int) -> HloModule | None:
    try:
        return trace.programs.module(program)
    except ProfilerError:  # hlo_links reports it
        return None


def _base(name: str) -> str:
    """The name of a kernel or a fusion without its number."""
    return _NUMBER.sub("", _NOT_A_NAME.sub("_", name))


@dataclass(frozen=True)
class _Slot:
    """An instruction of the schedule that launches kernels or copies: a fusion (with the `base` of its name),
    a library call or a copy.
    """

    row: int
    kind: str
    base: str


def _schedule(module: HloModule) -> list[_Slot]:
    """The instructions of the entry computation that launch kernels or copies, in order."""
    order = module.schedule.get(module.info.entry, np.empty(0, np.int32))
    kinds = (_FUSION, _CALL, _COPY)
    rows = order[module.has_opcode(kinds)[order]] if len(order) else order
    slots = []
    for row in rows.tolist():
        kind = module.opcode(row)
        slots.append(_Slot(row, kind, _base(module.name(row)) if kind == _FUSION else ""))
    return slots


def _instructions_of(trace: Trace, events: Rows, launch: Rows, slots: list[_Slot]) -> Rows:
    """The instruction of each event, -1 if unknown. Launches with equal sequences of kernels are matched
    once.
    """
    start = trace.events["start_ps"][events]
    order = np.lexsort((events, start, launch))
    first = np.flatnonzero(np.append(True, launch[order][1:] != launch[order][:-1]))
    bounds = np.append(first, len(order))
    name = trace.metadata["name"][trace.events["metadata"][events[order]]].astype(np.int64)
    instruction = np.full(len(events), -1, np.int64)
    for positions in _launches_by_names(name, bounds):
        rows = match([trace.strings[i] for i in name[positions[0]].tolist()], slots)
        if rows:
            instruction[order[positions]] = rows
    return instruction


def _launches_by_names(name: Rows, bounds: Rows) -> list[Rows]:
    """Groups the launches that have the same sequence of names: for each sequence the positions of its events
    in `name`, int64[launches, length].
    """
    sizes = np.diff(bounds)
    position = np.arange(len(name)) - np.repeat(bounds[:-1], sizes)
    # A polynomial of the names, by launch: equal sequences have equal sums (unequal ones with a probability
    # of 1 in 2^64).
    with np.errstate(over="ignore"):
        terms = mix(mix(name, position), name * np.int64(0x9E3779B1) + position)
        total = np.add.reduceat(terms * (terms | 1), bounds[:-1])
    _, code = distinct_codes(mix(total, sizes))
    groups = []
    for i in range(int(code.max()) + 1):
        launches = np.flatnonzero(code == i)
        groups.append(bounds[launches][:, None] + np.arange(int(sizes[launches[0]])))
    return groups


def match(kernels: list[str], slots: list[_Slot]) -> list[int]:
    """The instruction row of each kernel of one launch, in order; empty if the kernels fit nowhere into the
    schedule, or in several ways.

    A graph is a contiguous part of the schedule and may begin anywhere in it.
    """
    bases = {slot.base for slot in slots if slot.kind == _FUSION}
    names = [base if (base := _base(kernel)) in bases else kernel for kernel in kernels]
    solutions: list[list[int]] = []
    fits = False
    for begin in range(len(slots) if len(slots) * len(names) <= _MAX_TRIES else 1):
        if fits and slots[begin].kind == slots[begin - 1].kind == _CALL:
            continue  # in a run of calls only the first position that fits counts
        rows = _match_from(names, slots, begin, bases)
        fits = rows is None or bool(rows)
        if fits and rows not in solutions:
            solutions.append(rows or [])
    return solutions[0] if len(solutions) == 1 else []


def _match_from(names: list[str], slots: list[_Slot], begin: int, bases: set[str]) -> list[int] | None:
    """As `match`, from slot `begin` of the schedule on; empty if the kernels do not fit there, None if they
    fit in several ways.
    """
    matched: list[int] = []
    slot, i = begin, 0
    while i < len(names):
        end = i
        while end < len(names) and names[end] not in bases:
            end += 1
        fusion = slot
        while fusion < len(slots) and slots[fusion].kind != _FUSION:
            fusion += 1
        is_last = end == len(names)
        if not is_last and (fusion == len(slots) or slots[fusion].base != names[end]):
            return []
        part = _between(names[i:end], slots[slot:fusion], is_last)
        if not part and end > i:
            return part
        matched += part or []
        if not is_last:
            matched.append(slots[fusion].row)
        slot, i = fusion + 1, end + 1
    return _with_memsets(matched)


def _between(names: list[str], slots: list[_Slot], is_last: bool) -> list[int] | None:
    """Rows of the kernels between two fusions, -1 for memsets and for copies without a slot; empty and None
    as in `_match_from`.

    One call may launch several kernels; if there are several calls, each must have launched exactly one. A
    graph may end before the last calls.
    """
    calls = [slot.row for slot in slots if slot.kind == _CALL]
    copies = [slot.row for slot in slots if slot.kind == _COPY]
    copy_kernels = [i for i, name in enumerate(names) if name.lower().startswith("memcpy")]
    library_kernels = [i for i, name in enumerate(names) if not name.lower().startswith(("memset", "memcpy"))]
    if is_last:
        calls = calls[: max(len(library_kernels), 1)]
    if len(library_kernels) < len(calls):
        return []
    if len(calls) == 1:
        calls *= len(library_kernels)
    if len(calls) != len(library_kernels):
        return None if calls else []
    rows = [-1] * len(names)
    pairs = zip(library_kernels, calls, strict=True)
    for i, row in (
        *pairs,
        *(zip(copy_kernels, copies, strict=True) if len(copy_kernels) == len(copies) else ()),
    ):
        rows[i] = row
    return rows


def _with_memsets(rows: list[int]) -> list[int]:
    """Assign each memset to the instruction that it prepares: the next one; at the end, the previous one."""
    next_row = -1
    for i in range(len(rows) - 1, -1, -1):
        next_row = rows[i] if rows[i] >= 0 else next_row
        rows[i] = next_row
    for i, row in enumerate(rows):
        if row < 0 and i:
            rows[i] = rows[i - 1]
    return rows if rows and rows[0] >= 0 else []
