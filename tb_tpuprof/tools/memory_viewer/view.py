"""memory_viewer: a compiled program's memory at its peak, how it got there, and what would lower it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.device.memory_capacity import capacity_bytes, space_name
from tb_tpuprof.analysis.hlo.memories import HloMemories, hlo_memories
from tb_tpuprof.analysis.hlo.memory import CATEGORIES, TEMPORARY, SpaceMemory, scoped_vmem
from tb_tpuprof.analysis.hlo.memory_advice import Advice, advice
from tb_tpuprof.analysis.hlo.program_kind import kind_of_programs, program_kind
from tb_tpuprof.analysis.ops.ran_programs import ran_programs
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.memory_viewer import declared
from tb_tpuprof.tools.memory_viewer.tables import (
    Steps,
    advice_table,
    allocations_table,
    blocks_table,
    chosen_table,
    live_table,
    programs_table,
    spaces_table,
    timeline_table,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Verdict
from tb_tpuprof.tools.program_choice import has_programs, program_named, without_programs
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.working import difference
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_bytes, format_fraction

Numbers = dict[str, Number | float | None]
_FULL, _NEARLY = 0.95, 0.8
_MUCH_PADDING = 0.1
_VMEM = 1
_MOST_DETAILS = 3
_CHIP = "of one device; the part that programs can use is the allocator's pool on the memory profile"
QUICK_BYTES = 64 * 2**20  # events of larger files are not read to find which programs ran


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One program's memory space in full, and the list of programs and spaces."""
    host = hosts[0]
    trace = session.outline(host)
    memories = hlo_memories(trace)
    title = str(params.get("program", ""))
    program = (
        program_named(memories.programs, title) if title else memories.largest(_ran(session, host, trace))
    )
    if program is None:
        raise without_programs(TOOL.name, session)
    colors = memories.colors(program)
    color = int(params["space"])
    memory = memories.space(program, color) if colors else None
    if memory is None:
        reason = f"the HLO of {program.title} has no buffer assignments."
        raise ToolUnavailable(
            TOOL.name,
            reason,
            "Choose another program, or capture with a profiler that stores buffer assignments.",
        )
    if color not in colors:
        raise BadParameter("space", color, f"one of {', '.join(map(str, colors))} for {program.title}")
    module, machine = memories.module(program), _machine(trace, memories, program)
    steps = _steps(memory, params)
    live, n_small = live_table(module, memory)
    blocks, n_hidden = blocks_table(module, memory, steps)
    savings = advice(module, memory)
    tables = {
        "live": live,
        "timeline": timeline_table(module, memory, steps),
        "blocks": blocks,
        "allocations": allocations_table(module, memory),
        "advice": advice_table(savings),
        "spaces": spaces_table(memories, program, colors, machine),
        "programs": programs_table(memories),
        "chosen": chosen_table(module, program, memory, machine),
    }
    left_out = {"n_live_left_out": n_small, "n_blocks_left_out": n_hidden}
    scalars = fill_scalars(declared.SCALARS, {**_numbers(module, memory, machine, steps), **left_out})
    verdict = _verdict(module, program, memory, machine, savings)
    return Payload(TOOL.name, session.run, hosts, tables, scalars, verdict, _diagnostics(module, memory))


def _ran(session: Session, host: str, trace: Trace) -> frozenset[str]:
    """Titles of the programs that ran in the capture; none if there is only HLO or reading the events takes
    long.
    """
    is_quick = session.file(host).size_bytes <= QUICK_BYTES
    return session.get(ran_programs, host) if len(trace.plane_names) and is_quick else frozenset()


def _machine(trace: Trace, memories: HloMemories, program: Program) -> Hardware:
    """The device; if there is only HLO, the kind that this program, or another one of the run, was compiled
    for.
    """
    if len(trace.plane_names):
        return hardware(trace)
    modules = (
        memories.module(other)
        for other in sorted(memories.programs, key=lambda program: program.size_bytes, reverse=True)
    )
    kind = program_kind(memories.module(program)) or kind_of_programs(modules)
    return Hardware(kind, f"{kind} of unknown model" if kind else "unknown", 0)


def _space_in_words(machine: Hardware, color: int) -> str:
    """A memory space's name within a sentence; says if the device is unknown."""
    name = _in_words(space_name(machine.kind, color))
    return name if machine.n_devices or machine.device == "CPU" or color else f"{name} (device unknown)"


def _steps(memory: SpaceMemory, params: Params) -> Steps:
    end = max(0, len(memory.heap.instruction) - 1)
    first, last = min(int(params.get("first_step", 0)), end), min(int(params.get("last_step", end)), end)
    if last < first:
        raise BadParameter("last_step", last, f"a step from {first} on")
    return Steps(first, last, int(params["width_px"]))


def _numbers(module: HloModule, memory: SpaceMemory, machine: Hardware, steps: Steps) -> Numbers:
    peak, allocated, temporary = memory.peak_bytes, memory.allocated_bytes, _temporary_bytes(memory)
    padding = peak - memory.peak_unpadded_bytes
    n_steps, capacity = len(memory.heap.instruction), capacity_bytes(machine, memory.color)
    share = f"{format_fraction(padding / peak)} of the peak" if padding * 10_000 > peak else ""
    device = f"{format_fraction(peak / capacity)} of the chip's {format_bytes(capacity)}" if capacity else ""
    peak_step = memory.heap.peak if memory.heap.peak >= 0 else None
    numbers: Numbers = {
        "peak_bytes": Number(peak, device),
        "padding_bytes": Number(padding, share, "", difference((peak, memory.peak_unpadded_bytes), "bytes")),
        "temporary_bytes": peak - memory.permanent_bytes,
        "parameter_bytes": Number(memory.by_category[0], "held throughout"),
        "output_bytes": Number(memory.by_category[1], "in separate memory"),
        "allocated_bytes": Number(allocated, f"{format_bytes(allocated - peak)} unused at the peak"),
        "constant_bytes": Number(memory.by_category[CATEGORIES.index("Constant")], "held throughout"),
        "permanent_bytes": memory.permanent_bytes,
        "peak_unpadded_bytes": memory.peak_unpadded_bytes,
        "peak_step": Number(peak_step, "" if n_steps else "no temporaries"),
        "n_steps": n_steps,
        "first_step": steps.first,
        "last_step": steps.last,
        "space": memory.color,
        "capacity_bytes": Number(capacity or None, _CHIP if capacity else ""),
        "temporary_allocated_bytes": temporary,
    }
    if memory.color == _VMEM:
        used, row = scoped_vmem(module)
        numbers["scoped_vmem_bytes"] = Number(used, module.name(row) if row >= 0 else "")
    return numbers


def _temporary_bytes(memory: SpaceMemory) -> int:
    return memory.allocated_bytes - memory.permanent_bytes


def _verdict(
    module: HloModule, program: Program, memory: SpaceMemory, machine: Hardware, savings: Sequence[Advice]
) -> Verdict:
    name, peak = _space_in_words(machine, memory.color), memory.peak_bytes
    capacity = capacity_bytes(machine, memory.color)
    if not peak:
        used, row = scoped_vmem(module) if memory.color == _VMEM else (0, -1)
        scoped = (
            (
                f"Single instructions use up to {format_bytes(used)} of it while they run; "
                f"`{module.name(row)}` uses the most.",
            )
            if row >= 0
            else ()
        )
        return Verdict("good", f"`{program.title}` keeps no buffers in {name}.", "", scoped)
    fraction = peak / capacity if capacity else 0.0
    of_capacity = (
        f", {format_fraction(fraction)} of the {format_bytes(capacity)} of chip memory ({machine.title})"
        if capacity
        else ""
    )
    where = ""
    if memory.heap.peak >= 0 and (row := int(memory.heap.instruction[memory.heap.peak])) >= 0:
        where = (
            f" The peak is at `{module.name(row)}`, step {memory.heap.peak:,} of "
            f"{len(memory.heap.instruction):,}."
        )
    text = f"`{program.title}` needs {format_bytes(peak)} of {name} at its peak{of_capacity}."
    level: Literal["good", "warn", "bad", "unknown"] = (
        "unknown" if not capacity else "bad" if fraction > _FULL else "warn" if fraction > _NEARLY else "good"
    )
    padding = peak - memory.peak_unpadded_bytes
    parts = [(memory.by_category[k], CATEGORIES[k].lower() + "s") for k in range(TEMPORARY)] + [
        (peak - memory.permanent_bytes, "temporaries")
    ]
    composition = ", ".join(
        f"{title} {format_bytes(size)}" for size, title in sorted(parts, reverse=True) if size
    )
    much = f" {format_fraction(padding / peak)} is padding." if padding > _MUCH_PADDING * peak else ""
    details = [f"{composition[:1].upper()}{composition[1:]}.{where}{much}"]
    details += [
        f"{item.text} Saves up to {format_bytes(item.saves_bytes)}."
        for item in savings[: _MOST_DETAILS if fraction > _NEARLY else 1]
    ]
    steps = [
        NextStep("See the program", "graph_viewer", {"program": program.title} | _at_peak(module, memory))
    ]
    return Verdict(level, text, "", tuple(details), tuple(steps))


def _in_words(name: str) -> str:
    return name if name[:2].isupper() else name[:1].lower() + name[1:]


def _at_peak(module: HloModule, memory: SpaceMemory) -> dict[str, str]:
    row = int(memory.heap.instruction[memory.heap.peak]) if memory.heap.peak >= 0 else -1
    return {"op": module.name(row)} if row >= 0 else {}


def _diagnostics(module: HloModule, memory: SpaceMemory) -> tuple[Diagnostic, ...]:
    diagnostics = []
    damaged = (
        module.info.n_damaged + memory.heap.n_damaged + (module.buffers.n_damaged if module.buffers else 0)
    )
    if damaged:
        text = f"{damaged:,} parts of the HLO are unreadable or have dangling references; they are left out."
        diagnostics.append(Diagnostic("warning", text, "; ".join(module.info.damage[:3])))
    if memory.n_heap_traces > 1:
        text = (
            f"This space has {memory.n_heap_traces} heaps of temporaries; the timeline and the peak show "
            "the largest."
        )
        diagnostics.append(Diagnostic("info", text))
    if not len(memory.heap.instruction) and _temporary_bytes(memory):
        text = (
            f"{format_bytes(_temporary_bytes(memory))} of temporaries have no allocation order, so they "
            "are not included in the peak."
        )
        diagnostics.append(
            Diagnostic(
                "info",
                text,
                "The compiler stores this order only for some programs; the map and the timeline stay empty.",
            )
        )
    return tuple(diagnostics)


TOOL = Tool(
    name="memory_viewer",
    title="Memory viewer",
    group="Compiler",
    summary="The memory of a compiled program at its peak",
    view=view,
    available=has_programs,
    needs_trace=False,
    hosts="one",
    params=declared.PARAMS,
    tables=declared.TABLES,
    scalars=declared.SCALARS,
    tiles=declared.TILES,
)
