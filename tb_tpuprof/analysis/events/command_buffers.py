"""Kernels that XLA launched in a command buffer (a CUDA or HIP graph) → the HLO instructions that they ran.

XLA:GPU records runs of successive instructions into one graph. The profiler then names the graph alone
(`hlo_op` is `command_buffer_1`) and no instruction. But the graph runs the program's schedule in order, and
XLA names kernels after instructions:

    schedule   custom-call.1          gemm_fusion_dot.11   copy.3       wrapped_subtract.2
    kernels    Memset, nvjet_…        gemm_fusion_dot_11   MemcpyD2D    wrapped_subtract_3

A fusion's kernel has its name but for the number, since equal fusions share a kernel; a library's kernels,
and the memset before them, belong to the custom call whose turn it is. What does not fit the schedule in
exactly one way stays with the graph as a whole.
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
# Kernels of a graph x instructions of a program: what is larger is matched from the schedule's start alone
_MAX_TRIES = 4_000_000


@dataclass(frozen=True)
class GraphKernels:
    """`events` (ascending) ran in command buffers; `instruction`: row in the module of program `program`, -1
    where that is not known.
    """

    events: Rows
    program: Rows
    instruction: Rows


def named_events(trace: Trace) -> tuple[Rows, Rows]:
    """Events with the stat `hlo_op`, ascending, each once, and its text."""
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
    for number in np.unique(program).tolist():
        module = _module(trace, number)
        slots = _schedule(module) if module else []
        if slots:
            mine = np.flatnonzero(program == number)
            instruction[mine] = _of_program(trace, events[mine], mix(launch[mine], string[mine]), slots)
    return GraphKernels(events, program, instruction)


def _in_graphs(trace: Trace) -> tuple[Rows, Rows, Rows, Rows]:
    """Events of command buffers (ascending), their program, the text that names the graph, and a number for
    each launch of it.
    """
    rows, string = (
        named_events(trace) if planes(trace).gpus else (np.empty(0, np.intp), np.empty(0, np.int64))
    )
    used = np.flatnonzero(np.bincount(string)) if len(string) else string
    names = [i for i in used.tolist() if trace.strings[i].startswith(GRAPH_PREFIX)]
    mine = np.flatnonzero(np.isin(string, names)) if names else np.empty(0, np.intp)
    rows, string = rows[mine], string[mine]
    program, launch = (
        values_at(rows, *first_ints(trace, key), -1) for key in ("program_id", "correlation_id")
    )
    known = (program >= 0) & (launch >= 0)
    rows, string, program, launch = rows[known], string[known], program[known], launch[known]
    return rows, program, string, mix(launch, trace.lines["plane"][trace.event_line[rows]].astype(np.int64))


def _module(trace: Trace, program: int) -> HloModule | None:
    try:
        return trace.programs.module(program)
    except ProfilerError:  # hlo_links reports it
        return None


def _base(name: str) -> str:
    """A kernel's or a fusion's name without its number."""
    return _NUMBER.sub("", _NOT_A_NAME.sub("_", name))


@dataclass(frozen=True)
class _Slot:
    """An instruction of the schedule that launches kernels or copies: fusions by name, library
    calls, copies.
    """

    row: int
    kind: str
    base: str


def _schedule(module: HloModule) -> list[_Slot]:
    """What the entry computation launches, in order."""
    order = module.schedule.get(module.info.entry, np.empty(0, np.int32))
    kinds = (_FUSION, _CALL, _COPY)
    rows = order[module.has_opcode(kinds)[order]] if len(order) else order
    found = []
    for row in rows.tolist():
        kind = module.opcode(row)
        found.append(_Slot(row, kind, _base(module.name(row)) if kind == _FUSION else ""))
    return found


def _of_program(trace: Trace, events: Rows, launch: Rows, slots: list[_Slot]) -> Rows:
    """The instruction of each event. Launches with equal sequences of kernels are matched once."""
    start = trace.events["start_ps"][events]
    order = np.lexsort((events, start, launch))
    first = np.flatnonzero(np.append(True, launch[order][1:] != launch[order][:-1]))
    bounds = np.append(first, len(order))
    name = trace.metadata["name"][trace.events["metadata"][events[order]]].astype(np.int64)
    found = np.full(len(events), -1, np.int64)
    for places in _alike(name, bounds):
        matched = match([trace.strings[i] for i in name[places[0]].tolist()], slots)
        if matched:
            found[order[places]] = matched
    return found


def _alike(name: Rows, bounds: Rows) -> list[Rows]:
    """Launches with the same sequence of names: for each such sequence the places of its events,
    int64[launches, length].
    """
    sizes = np.diff(bounds)
    at = np.arange(len(name)) - np.repeat(bounds[:-1], sizes)
    # A polynomial of the names, by launch: equal sequences have equal sums (and others only by an accident of
    # 1 in 2^64).
    with np.errstate(over="ignore"):
        terms = mix(mix(name, at), name * np.int64(0x9E3779B1) + at)
        total = np.add.reduceat(terms * (terms | 1), bounds[:-1])
    _, code = distinct_codes(mix(total, sizes))
    found = []
    for i in range(int(code.max()) + 1):
        mine = np.flatnonzero(code == i)
        found.append(bounds[mine][:, None] + np.arange(int(sizes[mine[0]])))
    return found


def match(kernels: list[str], slots: list[_Slot]) -> list[int]:
    """The instruction row of each kernel of one launch, in order; empty where they fit the schedule nowhere,
    or in several ways.

    A graph is a run of the schedule that may begin anywhere in it.
    """
    bases = {slot.base for slot in slots if slot.kind == _FUSION}
    words = [base if (base := _base(kernel)) in bases else kernel for kernel in kernels]
    answers: list[list[int]] = []
    fits = False
    for begin in range(len(slots) if len(slots) * len(words) <= _MAX_TRIES else 1):
        if fits and slots[begin].kind == slots[begin - 1].kind == _CALL:
            continue  # within a run of calls the first place that fits counts
        found = _match_from(words, slots, begin, bases)
        fits = found is None or bool(found)
        if fits and found not in answers:
            answers.append(found or [])
    return answers[0] if len(answers) == 1 else []


def _match_from(words: list[str], slots: list[_Slot], begin: int, bases: set[str]) -> list[int] | None:
    """As `match`, with the schedule from slot `begin` on; empty where that does not fit, None where it fits
    in several ways.
    """
    found: list[int] = []
    at, i = begin, 0
    while i < len(words):
        until = i
        while until < len(words) and words[until] not in bases:
            until += 1
        fusion = at
        while fusion < len(slots) and slots[fusion].kind != _FUSION:
            fusion += 1
        is_last = until == len(words)
        if not is_last and (fusion == len(slots) or slots[fusion].base != words[until]):
            return []
        rows = _between(words[i:until], slots[at:fusion], is_last)
        if not rows and until > i:
            return rows
        found += rows or []
        if not is_last:
            found.append(slots[fusion].row)
        at, i = fusion + 1, until + 1
    return _filled(found)


def _between(words: list[str], slots: list[_Slot], is_last: bool) -> list[int] | None:
    """Rows of the kernels between two fusions, -1 for memsets and for copies of no slot; empty and None as in
    `_match_from`.

    One call may launch several kernels; of several calls each must have launched one. A graph may end before
    the last calls.
    """
    calls = [slot.row for slot in slots if slot.kind == _CALL]
    copies = [slot.row for slot in slots if slot.kind == _COPY]
    copied = [i for i, word in enumerate(words) if word.lower().startswith("memcpy")]
    library = [i for i, word in enumerate(words) if not word.lower().startswith(("memset", "memcpy"))]
    if is_last:
        calls = calls[: max(len(library), 1)]
    if len(library) < len(calls):
        return []
    if len(calls) == 1:
        calls *= len(library)
    if len(calls) != len(library):
        return None if calls else []
    rows = [-1] * len(words)
    known = zip(library, calls, strict=True)
    for i, row in (*known, *(zip(copied, copies, strict=True) if len(copied) == len(copies) else ())):
        rows[i] = row
    return rows


def _filled(rows: list[int]) -> list[int]:
    """Memsets belong to what they prepare: the next instruction, the last ones to the one before."""
    known = -1
    for i in range(len(rows) - 1, -1, -1):
        known = rows[i] if rows[i] >= 0 else known
        rows[i] = known
    for i, row in enumerate(rows):
        if row < 0 and i:
            rows[i] = rows[i - 1]
    return rows if rows and rows[0] >= 0 else []
