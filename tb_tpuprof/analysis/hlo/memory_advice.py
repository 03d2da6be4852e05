"""Memory use of a space at its peak → changes that would reduce it, with the bytes saved, largest first.

Each piece of advice names buffers of this module. Savings are upper bounds for a single change; they do not
add up.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.hlo.memory import CATEGORIES, SpaceMemory, part_of
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_shape import Shape
from tb_tpuprof.units import format_bytes, format_fraction

_WORTH = 0.02  # fraction of the peak; smaller savings are not worth a change
_LARGE_SHARE = 0.5
_F32 = 11
_OF_JAX = re.compile(r"p?jit[_(]|pmap")  # names that JAX gives programs
_SEVERAL_STEPS = 16  # in a shorter program every buffer lives for half of it
PARAMETER = CATEGORIES.index("Parameter")


@dataclass(frozen=True)
class Advice:
    """A change as text, and the maximum that it saves."""

    text: str
    saves_bytes: int


def buffer_shape(module: HloModule, row: int) -> Shape | None:
    """Shape of a logical buffer, None if its instruction is unknown."""
    buffers = module.buffers
    if buffers is None:
        return None
    instruction = int(buffers.logical_buffers["instruction"][row])
    return None if instruction < 0 else part_of(module.shape(instruction), buffers.shape_index[row])


def buffer_name(module: HloModule, row: int) -> str:
    """Name of the instruction that defines a logical buffer, `?` if unknown."""
    assert module.buffers is not None
    instruction = int(module.buffers.logical_buffers["instruction"][row])
    return module.name(instruction) if instruction >= 0 else "?"


def advice(module: HloModule, memory: SpaceMemory) -> tuple[Advice, ...]:
    """Changes that would lower the peak, largest saving first; empty if nothing is held."""
    if not memory.peak_bytes:
        return ()
    candidates = [
        *_padding(module, memory),
        *_donation(module, memory),
        *_temporaries(module, memory),
        *_parameters(module, memory),
        *_gaps(memory),
    ]
    least = _WORTH * memory.peak_bytes
    return tuple(
        sorted((item for item in candidates if item.saves_bytes >= least), key=lambda item: -item.saves_bytes)
    )


def padded_dimensions(shape: Shape) -> str:
    """The dimensions that a layout pads, such as `16 to 128`; empty if none."""
    pairs = zip(shape.dims, shape.padded_dims, strict=False)
    return ", ".join(f"{n} to {padded}" for n, padded in pairs if padded != n)


def _padding(module: HloModule, memory: SpaceMemory) -> list[Advice]:
    lost = memory.size[memory.live] - memory.unpadded[memory.live]
    items = []
    for i in np.argsort(-lost, kind="stable")[:3].tolist():
        row, padding = int(memory.live[i]), int(lost[i])
        shape = buffer_shape(module, row)
        if padding <= 0 or shape is None:
            continue
        times = memory.size[row] / max(1, int(memory.unpadded[row]))
        dims = padded_dimensions(shape)
        why = (
            f": the layout pads {dims}. Use a multiple of the tile size or make a longer dimension innermost."
            if dims
            else "."
        )
        items.append(
            Advice(
                f"`{buffer_name(module, row)}`, `{shape.text(with_layout=False)}`, takes "
                f"{format_bytes(int(memory.size[row]))} for "
                f"{format_bytes(int(memory.unpadded[row]))} of data ({times:.3g}×){why}",
                padding,
            )
        )
    return items


def _donation(module: HloModule, memory: SpaceMemory) -> list[Advice]:
    """Parameters whose memory results of the same size could reuse."""
    assert module.buffers is not None
    table = module.buffers.allocations
    is_here = table["color"] == memory.color
    donors = is_here & table["is_entry_parameter"] & ~table["is_live_out"] & ~table["is_aliased_with_output"]
    results = is_here & table["is_live_out"] & ~table["is_entry_parameter"] & ~table["is_tuple"]
    sizes = Counter(table["size_bytes"][results].tolist())
    numbers, saved = [], 0
    for row in np.flatnonzero(donors).tolist():
        size = int(table["size_bytes"][row])
        if sizes[size] > 0 and size > 0:
            sizes[size] -= 1
            saved += size
            numbers.append(int(table["parameter_number"][row]))
    if not numbers:
        return []
    shown = ", ".join(map(str, sorted(set(numbers))[:8])) + (" …" if len(set(numbers)) > 8 else "")
    how = " (`jax.jit(…, donate_argnums=…)`)" if _OF_JAX.match(module.info.name) else ""
    which = (
        f"parameter {shown} has the size of a result, which can then reuse its memory"
        if len(numbers) == 1
        else f"{len(numbers)} of the program's parameters ({shown}) have the size of results, which can then "
        "reuse their memory"
    )
    return [Advice(f"Donate inputs that the caller no longer needs{how}: {which}.", saved)]


def _n_temporaries(n: int) -> str:
    return "1 temporary is" if n == 1 else f"{n} temporaries are"


def _temporaries(module: HloModule, memory: SpaceMemory) -> list[Advice]:
    rows = memory.live[memory.n_permanent :]
    size = memory.size[rows]
    total = int(size.sum())
    if not total:
        return []
    items = []
    life = memory.heap.end[rows] - memory.heap.start[rows] + 1
    n_steps = len(memory.heap.instruction)
    is_long_lived = (life * 2 >= n_steps) & (n_steps >= _SEVERAL_STEPS)
    long_lived_bytes = int(size[is_long_lived].sum())
    if is_long_lived.any():
        top = int(rows[is_long_lived][size[is_long_lived].argmax()])
        text = (
            f"Recompute instead of storing: {_n_temporaries(int(is_long_lived.sum()))} live for half of the "
            f"program or longer, the largest {_described(module, memory, top)}. Wrap that part in "
            "`jax.checkpoint` (or `tf.recompute_grad`), or run smaller batches."
        )
        items.append(Advice(text, long_lived_bytes))
    is_f32 = np.array(
        [
            (shape := buffer_shape(module, int(row))) is not None and shape.element_type == _F32
            for row in rows
        ],
        np.bool_,
    )
    if is_f32.any():
        wide = int(size[is_f32].sum())
        top = int(rows[is_f32][size[is_f32].argmax()])
        text = (
            f"Compute in bfloat16 where precision allows: temporaries in f32 take {format_bytes(wide)} at "
            f"the peak, the largest {_described(module, memory, top)}."
        )
        items.append(Advice(text, wide // 2))
    return items


def _described(module: HloModule, memory: SpaceMemory, row: int) -> str:
    assert module.buffers is not None
    shape = buffer_shape(module, row)
    instruction = int(module.buffers.logical_buffers["instruction"][row])
    op_name = module.text("op_name", instruction) if instruction >= 0 else ""
    parts = [
        f"`{buffer_name(module, row)}`",
        f"`{shape.text(with_layout=False)}`" if shape else "",
        format_bytes(int(memory.size[row])),
    ]
    return ", ".join(part for part in parts if part) + (f", of `{op_name[:120]}`" if op_name else "")


def _parameters(module: HloModule, memory: SpaceMemory) -> list[Advice]:
    held = memory.by_category[PARAMETER]
    if held < _LARGE_SHARE * memory.peak_bytes:
        return []
    share = format_fraction(held / memory.peak_bytes)
    text = (
        f"Parameters are {share} of the peak{_largest_parameter(module, memory)}: shard weights and "
        "optimizer state over more devices (`NamedSharding`, FSDP), keep optimizer state in bfloat16, move "
        "rarely used parameters to host memory, or run smaller batches if most of it is the batch."
    )
    return [Advice(text, held // 2)]


def _largest_parameter(module: HloModule, memory: SpaceMemory) -> str:
    """`, the largest …` with name, shape and size; empty if none is among the buffers at the peak."""
    rows = memory.live[memory.category[memory.live] == PARAMETER]
    if not len(rows):
        return ""
    largest = _described(module, memory, int(rows[memory.size[rows].argmax()]))
    return f", the largest {largest.partition(', of `')[0]}"  # a parameter's operation is its own name


def _gaps(memory: SpaceMemory) -> list[Advice]:
    unused = memory.allocated_bytes - memory.peak_bytes
    if unused <= 0 or memory.n_heap_traces > 1:
        return []
    text = (
        f"{format_bytes(unused)} of the {format_bytes(memory.allocated_bytes)} allocated are unused at the "
        "peak: gaps between buffers of different sizes and lifetimes. Fewer large temporaries with similar "
        "lifetimes pack better."
    )
    return [Advice(text, unused)]
