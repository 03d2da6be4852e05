"""Tables of the memory viewer: spaces, the timeline, buffers at the peak, the allocation map, permanent
allocations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.memory import CATEGORIES, TEMPORARY, THREAD_LOCAL, SpaceMemory, allocation_kinds
from tb_tpuprof.analysis.hlo.memory_advice import buffer_shape, padded_dimensions
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table
from tb_tpuprof.trace.hlo import HloModule

Ints = npt.NDArray[np.int64]
MOST_LIVE, MOST_BLOCKS = 5000, 3000
_MOST_FRAMES = 12


@dataclass(frozen=True)
class Steps:
    """The part of the program's order that is shown: steps first … last, on so many pixels."""

    first: int
    last: int
    width_px: int


def timeline_table(module: HloModule, memory: SpaceMemory, steps: Steps) -> Table:
    """Bytes held after each step; where there are more steps than pixels, the step of each pixel after which
    most is held.
    """
    held = memory.heap.held[1:][steps.first : steps.last + 1]
    n = len(held)
    at = np.arange(n)
    if n > steps.width_px:
        edges = np.arange(steps.width_px) * n // steps.width_px
        largest = np.maximum.reduceat(held, edges)
        owner = np.repeat(np.arange(len(edges)), np.diff(np.append(edges, n)))
        _, at = np.unique(np.where(held == largest[owner], owner, -1), return_index=True)
        at = np.sort(at[held[at] == largest[owner[at]]])
    step = at + steps.first
    instructions = memory.heap.instruction[step]
    unpadded = memory.heap.held_unpadded[step + 1] + memory.permanent_bytes - memory.permanent_padding_bytes
    return Table(
        "Memory over program order",
        (
            Column(
                "step",
                "Step",
                step,
                "id",
                description="Position in the program's order of allocations and releases",
            ),
            Column(
                "held_bytes",
                "Held",
                memory.heap.held[step + 1] + memory.permanent_bytes,
                "bytes",
                description="After the step",
            ),
            Column("unpadded_bytes", "Without padding", unpadded, "bytes"),
            text_column(
                "instruction",
                "Instruction",
                [module.name(row) if row >= 0 else "" for row in instructions.tolist()],
            ),
        ),
        f"of {len(memory.heap.instruction):,} steps, {len(step):,} are sent" if n > len(step) else "",
    )


def live_table(module: HloModule, memory: SpaceMemory) -> tuple[Table, int]:
    """Buffers at the peak in program order; of very many the largest. Also how many are left out."""
    rows = memory.live
    order = np.arange(len(rows))
    if len(rows) > MOST_LIVE:
        order = np.sort(np.argsort(-memory.size[rows], kind="stable")[:MOST_LIVE])
    left_out = len(rows) - len(order)
    permanent = order < memory.n_permanent
    note = f"the {MOST_LIVE:,} largest of {len(rows):,}" if left_out else ""
    return Table(
        "Buffers at the peak", _buffer_columns(module, memory, rows[order], permanent), note
    ), left_out


def blocks_table(module: HloModule, memory: SpaceMemory, steps: Steps) -> tuple[Table, int]:
    """Temporary buffers where and while they lie in memory; of very many those that cover most. Also how many
    are left out.
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
    note = f"the {MOST_BLOCKS:,} that cover most of {len(rows):,}" if left_out else ""
    rows = rows[chosen]
    return Table(
        "Allocation map", _buffer_columns(module, memory, rows, np.zeros(len(rows), np.bool_)), note
    ), left_out


def _buffer_columns(
    module: HloModule, memory: SpaceMemory, rows: Ints, permanent: npt.NDArray[np.bool_]
) -> tuple[Column, ...]:
    assert module.buffers is not None
    buffers = module.buffers.logical_buffers
    instruction = buffers["instruction"][rows].astype(np.int64)
    known = [int(i) for i in instruction]
    shapes = [buffer_shape(module, int(row)) for row in rows]
    category = memory.category[rows]
    size, unpadded = memory.size[rows], memory.unpadded[rows]
    last = len(memory.heap.instruction) - 1
    start = np.where(permanent, 0, memory.heap.start[rows])
    end = np.where(permanent, max(last, 0), memory.heap.end[rows])
    is_live = np.isin(rows, memory.live)
    return (
        Column(
            "buffer_id",
            "Buffer",
            buffers["id"][rows],
            "id",
            description="Number of the logical buffer in the HLO file",
        ),
        text_column("instruction", "Instruction", [module.name(i) if i >= 0 else "" for i in known]),
        text_column("opcode", "Opcode", [module.opcode(i) if i >= 0 else "" for i in known]),
        text_column(
            "category",
            "Allocation",
            [CATEGORIES[k] if k >= 0 else "" for k in category.tolist()],
            "Kind of allocation",
        ),
        Column("size_bytes", "Size", size, "bytes", description="With the padding of its layout"),
        Column("unpadded_bytes", "Unpadded", unpadded, "bytes", description="Without padding"),
        Column(
            "expansion", "Expansion", size / np.maximum(unpadded, 1), "", description="Size by unpadded size"
        ),
        Column(
            "padding_bytes",
            "Extra",
            np.maximum(size - unpadded, 0),
            "bytes",
            description="Memory that padding takes",
        ),
        text_column("shape", "Shape", [shape.text() if shape else "" for shape in shapes]),
        text_column(
            "padded_dimensions",
            "Padded",
            [padded_dimensions(shape) if shape else "" for shape in shapes],
            "By the layout",
        ),
        text_column("op_name", "Framework op", [module.text("op_name", i) if i >= 0 else "" for i in known]),
        Column("first_step", "From step", start, "id"),
        Column("last_step", "To step", end, "id"),
        Column("allocation", "Allocation index", _allocation_index(module, memory, rows), "id"),
        Column(
            "offset_bytes",
            "Offset",
            _offsets(module, memory, rows),
            "bytes",
            description="Among all temporary allocations",
        ),
        Column("is_at_peak", "At the peak", is_live),
        text_column("source", "Source", [_source(module, i) for i in known]),
        text_column("stack", "Source stack", _stacks(module, known)),
    )


def _allocation_index(module: HloModule, memory: SpaceMemory, rows: Ints) -> npt.NDArray[np.float64]:
    assert module.buffers is not None
    allocation = memory.allocation[rows]
    index = np.full(len(rows), np.nan)
    index[allocation >= 0] = module.buffers.allocations["index"][allocation[allocation >= 0]]
    return index


def _offsets(module: HloModule, memory: SpaceMemory, rows: Ints) -> npt.NDArray[np.float64]:
    """Offsets with the space's temporary allocations stacked; unknown for permanent buffers."""
    assert module.buffers is not None
    table = module.buffers.allocations
    is_temporary = (allocation_kinds(module.buffers) == TEMPORARY) & (table["color"] == memory.color)
    base = np.cumsum(np.where(is_temporary, table["size_bytes"], 0)) - table["size_bytes"]
    allocation = memory.allocation[rows]
    offset = np.full(len(rows), np.nan)
    known = np.flatnonzero(allocation >= 0)
    known = known[is_temporary[allocation[known]]]
    offset[known] = base[allocation[known]] + memory.offset[rows[known]]
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
    known = {
        frame: "\n".join(
            f"{place.text} {place.function}".strip() for place in module.frames.stack(frame)[:_MOST_FRAMES]
        )
        for frame in set(frames)
    }
    return [known[frame] for frame in frames]


def allocations_table(module: HloModule, memory: SpaceMemory) -> Table:
    """Every allocation of the space, the largest first: what lies in it and whether it is used again."""
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
    return Table(
        "Allocations",
        (
            Column("index", "Index", table["index"][rows], "id"),
            text_column("category", "Kind", [CATEGORIES[k] for k in kind[rows].tolist()]),
            Column("size_bytes", "Size", table["size_bytes"][rows], "bytes"),
            Column(
                "n_buffers",
                "Buffers",
                counts,
                "count",
                description="Logical buffers that lie in it at one time or another",
            ),
            Column("parameter_number", "Parameter", number, "id"),
            Column("is_live_out", "Holds a result", live_out),
        ),
    )
