"""An operation of a compiled program on the timeline → the operations that it reads, and those that read it,
as they ran around it.

    HLO        dot.3 reads copy-done.2 and, through a tuple, fusion.1
    XLA Ops    ▪fusion.1 ─────────────────────────▶ ├ dot.3 ┤ ──▶ ▪add.4
                 ▪copy-start.2 ─▶ ▪copy-done.2 ───▶

The HLO states operands of instructions; a trace has the events of many runs. A producer is the latest event
of its instruction that begins before the operation does, a consumer the earliest one that begins after it: on
the same plane, and in the same run of the program and the same step where the trace states these. An
instruction that XLA never runs by itself (`tuple`, `bitcast` …) is replaced by its own operands or readers.
Operands that come from outside of the computation (parameters) have no arrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import cpu_events
from tb_tpuprof.analysis.events.hlo_links import HloLinks, hlo_links
from tb_tpuprof.analysis.events.planes import ASYNC_OP_LINE, MODULE_LINES, line_events, lines_named, planes
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule, Ragged
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_PASSED_THROUGH = (
    "add-dependency",
    "after-all",
    "async-update",
    "bitcast",
    "domain",
    "get-tuple-element",
    "optimization-barrier",
    "tuple",
)
_MOST_INSTRUCTIONS = 10_000  # visited on the way from one operation to the others


@dataclass(frozen=True)
class Dependencies:
    """Events (rows) that an event reads and that read it, in time order. `n_producers`, `n_consumers`: their
    number before `limit` left some out, the farthest ones in time.
    """

    producers: Int64s
    consumers: Int64s
    n_producers: int
    n_consumers: int


def dependencies(trace: Trace, event: int, limit: int) -> Dependencies:
    """The dependencies of an event; none if it is no operation of a program whose HLO the trace contains."""
    links = hlo_links(trace)
    events, ops, runs = _runs(trace, links)
    place = int(np.searchsorted(events, event))
    none = np.empty(0, np.int64)
    op = int(ops[place]) if place < len(events) and events[place] == event else -1
    instruction = int(links.instruction[op]) if op >= 0 else -1
    module = _module(trace, int(links.program[op])) if instruction >= 0 else None
    if module is None:
        return Dependencies(none, none, 0, 0)
    program = int(links.program[op])
    is_run = np.zeros(module.n_instructions, np.bool_)
    of_program = np.flatnonzero((links.program == program) & (links.instruction >= 0))
    is_run[links.instruction[of_program]] = True
    run = int(runs[place])
    sides = []
    for edges, is_before in ((module.operands, True), (module.users, False)):
        wanted = _neighbors(module, edges, instruction, is_run)
        is_wanted = np.zeros(len(links) + 1, np.bool_)
        is_wanted[of_program[np.isin(links.instruction[of_program], wanted)]] = True
        rows = np.flatnonzero(is_wanted[ops] & ((runs == run) | (runs < 0) | (run < 0)))
        near = _nearest(trace, event, events[rows], links.instruction[ops[rows]], is_before)
        sides.append((near[-limit:] if is_before else near[:limit], len(near)))
    (producers, n_producers), (consumers, n_consumers) = sides
    return Dependencies(producers, consumers, n_producers, n_consumers)


def _module(trace: Trace, program: int) -> HloModule | None:
    try:
        return trace.programs.module(program)
    except ProfilerError:  # reported on the program's own page
        return None


def _runs(trace: Trace, links: HloLinks) -> tuple[Int64s, Int64s, Int64s]:
    """Events that run operations (rows, ascending), the operation of each (row of `links`), and the run of
    its program, -1 if the trace does not state it. Launches on the host are not among them, nor the spans of
    asynchronous operations, whose starts and ends are.
    """
    if planes(trace).has_device:
        is_device = ~np.isin(trace.lines["plane"], planes(trace).hosts)
        is_device &= np.array([name != ASYNC_OP_LINE for name in trace.line_names], np.bool_)
        runs_op = is_device[trace.event_line[links.events]]
        events = links.events[runs_op]
        return events, links.op[runs_op], _device_runs(trace, events)
    launches = cpu_events(trace)
    return launches.event.astype(np.int64), launches.op, launches.execution


def _device_runs(trace: Trace, events: Int64s) -> Int64s:
    """The event on a plane's line of programs in which each event begins, -1 if there is none."""
    runs = np.full(len(events), -1, np.int64)
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    for plane in planes(trace).tensor_cores:
        lines = lines_named(trace, plane, MODULE_LINES)
        if not lines:
            continue
        span = line_events(trace, lines[0])
        bounds = np.searchsorted(events, trace.line_offsets[trace.lines_of([plane])])
        ends = np.searchsorted(events, trace.line_offsets[trace.lines_of([plane]) + 1])
        for first, last in zip(bounds.tolist(), ends.tolist(), strict=True):
            begins = start[events[first:last]]
            module = span.start + np.searchsorted(start[span], begins, side="right") - 1
            within = (module >= span.start) & (begins < start[module] + np.maximum(duration[module], 1))
            runs[first:last] = np.where(within, module, -1)
    return runs


def _neighbors(
    module: HloModule, edges: Ragged, instruction: int, is_run: npt.NDArray[np.bool_]
) -> list[int]:
    """The instructions that ran and that an instruction reads (`edges`: operands) or that read it (users),
    directly or through ones that are never run by themselves.
    """
    passes = module.has_opcode(_PASSED_THROUGH) & ~is_run
    reached: set[int] = set()
    seen = {instruction}
    waiting = [instruction]
    while waiting and len(seen) < _MOST_INSTRUCTIONS:
        for neighbor in edges[waiting.pop()].tolist():
            if neighbor < 0 or neighbor in seen:
                continue
            seen.add(neighbor)
            if is_run[neighbor]:
                reached.add(neighbor)
            elif passes[neighbor]:
                waiting.append(neighbor)
    return sorted(reached)


def _nearest(trace: Trace, event: int, rows: Int64s, instruction: Int64s, is_before: bool) -> Int64s:
    """Of each instruction the event nearest in time, before or after the given one, on its plane and not in
    another step; in time order. Of events that begin together the one on the same line counts.
    """
    start, group = trace.events["start_ps"], groups(trace).group
    line_of = trace.event_line
    line = int(line_of[event])
    plane = trace.lines["plane"]
    is_ordered = start[rows] <= start[event] if is_before else start[rows] >= start[event]
    is_near = (plane[line_of[rows]] == plane[line]) & is_ordered & (rows != event)
    is_near &= (group[rows] == group[event]) | (group[rows] < 0) | (group[event] < 0)
    rows, instruction = rows[is_near], instruction[is_near]
    distance = np.abs(start[rows] - start[event])
    order = np.lexsort((line_of[rows] != line, distance, instruction))
    _, first = np.unique(instruction[order], return_index=True)
    nearest = rows[order[first]]
    return nearest[np.argsort(start[nearest], kind="stable")].astype(np.int64)
