"""Tables of the memory viewer: spaces, the timeline, buffers at the peak, the allocation map, permanent
allocations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.device.memory_capacity import space_name
from tb_tpuprof.analysis.hlo.memories import HloMemories
from tb_tpuprof.analysis.hlo.memory import CATEGORIES, TEMPORARY, THREAD_LOCAL, SpaceMemory, allocation_kinds
from tb_tpuprof.analysis.hlo.memory_advice import Advice, buffer_shape, padded_dimensions
from tb_tpuprof.tools.memory_viewer.declared import (
    ADVICE,
    ALLOCATIONS,
    BLOCKS,
    CHOSEN,
    LIVE,
    PROGRAMS,
    SPACES,
    TIMELINE,
)
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.program_choice import program_values
from tb_tpuprof.tools.spec import Values
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program

Ints = npt.NDArray[np.int64]
MOST_LIVE, MOST_BLOCKS = 5000, 3000
_MOST_FRAMES = 12


@dataclass(frozen=True)
class Steps:
    """The part of the program's order that is shown: steps `first` to `last`, on `width_px` pixels."""

    first: int
    last: int
    width_px: int


def timeline_table(module: HloModule, memory: SpaceMemory, steps: Steps) -> Table:
    """Bytes held after each step; if there are more steps than pixels, the step of each pixel with the most
    bytes held.
    """
    held_bytes = memory.heap.held[1:][steps.first : steps.last + 1]
    n_steps = len(held_bytes)
    position = np.arange(n_steps)
    if n_steps > steps.width_px:
        edges = np.arange(steps.width_px) * n_steps // steps.width_px
        largest = np.maximum.reduceat(held_bytes, edges)
        owner = np.repeat(np.arange(len(edges)), np.diff(np.append(edges, n_steps)))
        _, position = np.unique(np.where(held_bytes == largest[owner], owner, -1), return_index=True)
        position = np.sort(position[held_bytes[position] == largest[owner[position]]])
    step = position + steps.first
    instructions = memory.heap.instruction[step]
    unpadded = memory.heap.held_unpadded[step + 1] + memory.permanent_bytes - memory.permanent_padding_bytes
    return TIMELINE.fill(
        {
            "step": step,
            "held_bytes": memory.heap.held[step + 1] + memory.permanent_bytes,
            "unpadded_bytes": unpadded,
            "instruction": [_name(module, row) for row in instructions.tolist()],
        },
        f"of {len(memory.heap.instruction):,} steps, {len(step):,} are shown" if n_steps > len(step) else "",
    )


def _name(module: HloModule, row: int) -> str:
    return module.name(row) if row >= 0 else ""


def live_table(module: HloModule, memory: SpaceMemory) -> tuple[Table, int]:
    """Buffers at the peak in program order; if very many, the largest. Also the number left out."""
    rows = memory.live
    order = np.arange(len(rows))
    if len(rows) > MOST_LIVE:
        order = np.sort(np.argsort(-memory.size[rows], kind="stable")[:MOST_LIVE])
    left_out = len(rows) - len(order)
    permanent = order < memory.n_permanent
    note = f"the {MOST_LIVE:,} largest of {len(rows):,}" if left_out else ""
    return LIVE.fill(_buffer_values(module, memory, rows[order], permanent), note), left_out


def blocks_table(module: HloModule, memory: SpaceMemory, steps: Steps) -> tuple[Table, int]:
    """Temporary buffers with their offsets and lifetimes; if very many, those that cover the largest area.
    Also the number left out.
    """
    start, end = memory.heap.start, memory.heap.end
    rows = np.flatnonzero(
        (start >= 0)
        & (end >= steps.first)
        & (start <= steps.last)
        & (memory.category == TEMPORARY)
        & (memory.size > 0)
    )
    span = np.minimum(end[rows], steps.last) - np.maximum(start[rows], steps.first) + 1
    area = span.astype(np.float64) * memory.size[rows]
    chosen = np.sort(np.argsort(-area, kind="stable")[:MOST_BLOCKS])
    left_out = len(rows) - len(chosen)
    note = f"the {MOST_BLOCKS:,} largest by area of {len(rows):,}" if left_out else ""
    rows = rows[chosen]
    return BLOCKS.fill(_buffer_values(module, memory, rows, np.zeros(len(rows), np.bool_)), note), left_out


def _buffer_values(
    module: HloModule, memory: SpaceMemory, rows: Ints, permanent: npt.NDArray[np.bool_]
) -> dict[str, Values]:
    assert module.buffers is not None
    buffers = module.buffers.logical_buffers
    instruction = buffers["instruction"][rows].astype(np.int64)
    instruction_rows = [int(i) for i in instruction]
    shapes = [buffer_shape(module, int(row)) for row in rows]
    category = memory.category[rows]
    size, unpadded = memory.size[rows], memory.unpadded[rows]
    last = len(memory.heap.instruction) - 1
    start = np.where(permanent, 0, memory.heap.start[rows])
    end = np.where(permanent, max(last, 0), memory.heap.end[rows])
    return {
        "buffer_id": buffers["id"][rows],
        "instruction": [_name(module, i) for i in instruction_rows],
        "opcode": [module.opcode(i) if i >= 0 else "" for i in instruction_rows],
        "category": [CATEGORIES[k] if k >= 0 else "" for k in category.tolist()],
        "size_bytes": size,
        "unpadded_bytes": unpadded,
        "expansion": size / np.maximum(unpadded, 1),
        "padding_bytes": np.maximum(size - unpadded, 0),
        "shape": [shape.text() if shape else "" for shape in shapes],
        "padded_dimensions": [padded_dimensions(shape) if shape else "" for shape in shapes],
        "op_name": [module.text("op_name", i) if i >= 0 else "" for i in instruction_rows],
        "first_step": start,
        "last_step": end,
        "allocation": _allocation_index(module, memory, rows),
        "offset_bytes": _offsets(module, memory, rows),
        "is_at_peak": np.isin(rows, memory.live),
        "source": [_source(module, i) for i in instruction_rows],
        "stack": _stacks(module, instruction_rows),
    }


def _allocation_index(module: HloModule, memory: SpaceMemory, rows: Ints) -> npt.NDArray[np.float64]:
    assert module.buffers is not None
    allocation = memory.allocation[rows]
    index = np.full(len(rows), np.nan)
    index[allocation >= 0] = module.buffers.allocations["index"][allocation[allocation >= 0]]
    return index


def _offsets(module: HloModule, memory: SpaceMemory, rows: Ints) -> npt.NDArray[np.float64]:
    """Offsets with the space's temporary allocations laid end to end; unknown for permanent buffers."""
    assert module.buffers is not None
    table = module.buffers.allocations
    is_temporary = (allocation_kinds(module.buffers) == TEMPORARY) & (table["color"] == memory.color)
    base = np.cumsum(np.where(is_temporary, table["size_bytes"], 0)) - table["size_bytes"]
    allocation = memory.allocation[rows]
    offset = np.full(len(rows), np.nan)
    temporary = np.flatnonzero(allocation >= 0)
    temporary = temporary[is_temporary[allocation[temporary]]]
    offset[temporary] = base[allocation[temporary]] + memory.offset[rows[temporary]]
    return offset


def _source(module: HloModule, row: int) -> str:
    if row < 0:
        return ""
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    if file:
        return f"{file}:{line}" if line else file
    stack = module.frames.stack(int(module.instructions["stack_frame"][row]))
    return stack[0].text if stack else ""


def _stacks(module: HloModule, rows: list[int]) -> list[str]:
    frames = [int(module.instructions["stack_frame"][row]) if row >= 0 else 0 for row in rows]
    text_of = {
        frame: "\n".join(
            f"{place.text} {place.function}".strip() for place in module.frames.stack(frame)[:_MOST_FRAMES]
        )
        for frame in set(frames)
    }
    return [text_of[frame] for frame in frames]


def allocations_table(module: HloModule, memory: SpaceMemory) -> Table:
    """Every allocation of the space, largest first: its kind, number of buffers and whether it holds a
    result.
    """
    assert module.buffers is not None
    table = module.buffers.allocations
    kind = allocation_kinds(module.buffers)
    rows = np.flatnonzero((table["color"] == memory.color) & (kind != THREAD_LOCAL))
    rows = rows[np.argsort(-table["size_bytes"][rows], kind="stable")][:MOST_LIVE]
    counts = np.diff(module.buffers.assigned_offsets)[rows]
    number = np.where(
        table["is_entry_parameter"][rows], table["parameter_number"][rows].astype(np.float64), np.nan
    )
    live_out = table["is_live_out"][rows] | table["is_aliased_with_output"][rows]
    return ALLOCATIONS.fill(
        {
            "index": table["index"][rows],
            "category": [CATEGORIES[k] for k in kind[rows].tolist()],
            "size_bytes": table["size_bytes"][rows],
            "n_buffers": counts,
            "parameter_number": number,
            "is_live_out": live_out,
        }
    )


def advice_table(advice: Sequence[Advice]) -> Table:
    """Ways to lower the peak, and by how much."""
    savings = np.array([item.saves_bytes for item in advice], np.int64)
    return ADVICE.fill({"text": [item.text for item in advice], "saves_bytes": savings})


def spaces_table(memories: HloMemories, program: Program, colors: Sequence[int], machine: Hardware) -> Table:
    """The program's memory spaces."""
    spaces = [space for color in colors if (space := memories.space(program, color))]
    return SPACES.fill(
        {
            "space": np.array(colors, np.int64),
            "name": [space_name(machine.kind, color) for color in colors],
            "peak_bytes": np.array([space.peak_bytes for space in spaces], np.int64),
            "allocated_bytes": np.array([space.allocated_bytes for space in spaces], np.int64),
        }
    )


def programs_table(memories: HloMemories) -> Table:
    """All programs, in the file's order."""
    peaks = memories.peaks()
    peak_bytes = [np.nan if item.peak_bytes is None else float(item.peak_bytes) for item in peaks]
    values = program_values(item.program for item in peaks)
    return PROGRAMS.fill({**values, "peak_bytes": np.array(peak_bytes, np.float64)})


def chosen_table(module: HloModule, program: Program, memory: SpaceMemory, machine: Hardware) -> Table:
    """The program and memory space of the other tables."""
    peak, entry = memory.heap.peak, module.info.entry
    return CHOSEN.fill(
        {
            "program": [program.title],
            "space_name": [space_name(machine.kind, memory.color)],
            "device": [machine.device],
            "entry": [module.computation_name(entry) if entry >= 0 else ""],
            "peak_instruction": [_name(module, int(memory.heap.instruction[peak]) if peak >= 0 else -1)],
        }
    )
