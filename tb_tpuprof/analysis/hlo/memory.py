"""A module's buffer assignment → memory use of one memory space over program order, its peak, and the
lifetime of each buffer.

Memory held throughout (parameters, results, constants) is *permanent*. Thread-local memory (stacks) is in no
sum. The compiler packs the rest into temporary allocations; the order of their buffers' allocations and frees
is a heap simulator's trace (see `heap.py`), whose event i is step i.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import compress

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.heap import Heap, simulate
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_buffers import BufferAssignment
from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape

Ints = npt.NDArray[np.int64]
CATEGORIES = ("Parameter", "Output", "Thread-local", "Constant", "Temporary")
THREAD_LOCAL, TEMPORARY = CATEGORIES.index("Thread-local"), CATEGORIES.index("Temporary")
_SCOPED = re.compile(rb'"used_scoped_memory_configs":(\[[^\]]{2,4096}\])')


@dataclass(frozen=True, eq=False)
class SpaceMemory:
    """One memory space of one module. `size`, `unpadded`, `category`, `allocation`, `offset` have a row per
    logical buffer.

        heap                 temporaries over program order; permanent memory is added to it
        live                 buffers at the peak: permanent ones (the largest of each allocation), then
                             temporaries in allocation order
        by_category          bytes of permanent allocations for each of CATEGORIES
        allocated_bytes      all allocations: what the program requests from the device
        n_heap_traces        traces of this space; the trace of its largest allocation is replayed
        allocation, offset   position of a buffer, -1 if the file does not state it; category likewise
    """

    color: int
    heap: Heap
    live: Ints
    n_permanent: int
    by_category: tuple[int, ...]
    allocated_bytes: int
    n_heap_traces: int
    size: Ints
    unpadded: Ints
    category: Ints
    allocation: Ints
    offset: Ints

    @property
    def permanent_bytes(self) -> int:
        """Bytes of parameters, results and constants."""
        return sum(self.by_category)

    @property
    def permanent_padding_bytes(self) -> int:
        """Padding in permanent memory: of the largest buffer of each allocation."""
        rows = self.live[: self.n_permanent]
        return int(np.maximum(self.size[rows] - self.unpadded[rows], 0).sum())

    @property
    def peak_bytes(self) -> int:
        """Bytes held at the peak."""
        return self.permanent_bytes + int(self.heap.held[self.heap.peak + 1])

    @property
    def peak_unpadded_bytes(self) -> int:
        """Bytes held at the peak, without the padding that layouts cause."""
        return (
            self.permanent_bytes
            - self.permanent_padding_bytes
            + int(self.heap.held_unpadded[self.heap.peak + 1])
        )


def colors_of(buffers: BufferAssignment) -> list[int]:
    """Memory spaces with allocations, ascending; always includes main memory (0)."""
    return sorted({0, *np.unique(buffers.allocations["color"]).tolist()})


def space_memory(module: HloModule, color: int) -> SpaceMemory | None:
    """One memory space; None if the file has no buffer assignment."""
    buffers = module.buffers
    if buffers is None:
        return None
    size, bytes_of = (
        _summable(buffers.logical_buffers["size_bytes"]),
        _summable(buffers.allocations["size_bytes"]),
    )
    unpadded = _summable(unpadded_sizes(module, buffers))
    kind = allocation_kinds(buffers)
    is_here = (buffers.allocations["color"] == color) & (kind != THREAD_LOCAL)
    permanent = np.flatnonzero(is_here & (kind != TEMPORARY))
    allocation, offset = _places(buffers)
    traces = _traces_of(buffers, color, allocation, kind)
    heap = simulate(
        buffers.heap_events, buffers.events_of(traces[0]) if traces else slice(0, 0), size, unpadded
    )
    permanent_buffers = _largest_in(buffers, permanent, size)
    by_category = tuple(int(bytes_of[permanent[kind[permanent] == k]].sum()) for k in range(len(CATEGORIES)))
    category = np.full(len(size), -1, np.int64)
    category[allocation >= 0] = kind[allocation[allocation >= 0]]
    return SpaceMemory(
        color,
        heap,
        np.concatenate((permanent_buffers, heap.live)),
        len(permanent_buffers),
        by_category,
        int(bytes_of[is_here].sum()),
        len(traces),
        size,
        unpadded,
        category,
        allocation,
        offset,
    )


def allocation_kinds(buffers: BufferAssignment) -> Ints:
    """For each allocation an index into CATEGORIES: the first that applies."""
    table = buffers.allocations
    conditions = [
        table[name] for name in ("is_entry_parameter", "is_live_out", "is_thread_local", "is_constant")
    ]
    kinds: Ints = np.select(conditions, range(4), TEMPORARY).astype(np.int64)
    return kinds


def unpadded_sizes(module: HloModule, buffers: BufferAssignment) -> Ints:
    """Bytes of each logical buffer's shape without padding; the buffer's size if its shape is unknown."""
    table = buffers.logical_buffers
    rows = table["instruction"].astype(np.int64)
    shape = np.where(rows >= 0, module.instructions["shape"][rows] if module.n_instructions else -1, -1)
    shape_bytes = np.array([s.size_bytes for s in module.shapes] or [0], np.int64)
    result: Ints = np.where(shape >= 0, shape_bytes[shape], table["size_bytes"]).astype(np.int64)
    part_bytes: dict[tuple[int, tuple[int, ...]], int] = {}
    for row in compress(range(len(shape)), buffers.shape_index):  # only those with an index; most have none
        if shape[row] >= 0:
            key = (int(shape[row]), index := buffers.shape_index[row])
            if key not in part_bytes:
                part_bytes[key] = part_of(module.shapes[key[0]], index).size_bytes
            result[row] = part_bytes[key]
    return result


def part_of(shape: Shape, index: tuple[int, ...]) -> Shape:
    """The part of a tuple that an index names; NO_SHAPE if there is none."""
    for i in index:
        if not 0 <= i < len(shape.elements):
            return NO_SHAPE
        shape = shape.elements[i]
    return shape


def scoped_vmem(module: HloModule) -> tuple[int, int]:
    """The most VMEM that one instruction uses for itself while it runs (TPU), and its row; (0, -1) if none
    states it.
    """
    best, row = 0, -1
    starts = module.instructions["position"]
    for match in _SCOPED.finditer(module.data.data):
        try:
            used = sum(
                int(part["size"])
                for part in json.loads(match.group(1))
                if int(part.get("memory_space", 0)) == 1
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if best < used < 2**62:
            index = np.searchsorted(starts, match.start(), "right") - 1
            best, row = used, int(index)
    return best, row


def _summable(sizes: npt.NDArray[np.int64]) -> Ints:
    """Sizes limited so that no sum of them overflows; those of a real program are far below the limit."""
    return np.minimum(sizes.astype(np.int64), min(2**50, 2**62 // max(1, len(sizes))))


def _places(buffers: BufferAssignment) -> tuple[Ints, Ints]:
    """Allocation and offset of each logical buffer, -1 if it has none."""
    n = len(buffers.logical_buffers)
    allocation, offset = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    is_known = buffers.assigned["buffer"] >= 0
    rows = buffers.assigned["buffer"][is_known]
    allocation[rows] = buffers.assigned["allocation"][is_known]
    offset[rows] = buffers.assigned["offset"][is_known]
    return allocation, offset


def _traces_of(buffers: BufferAssignment, color: int, allocation: Ints, kind: Ints) -> list[int]:
    """Heap traces of a memory space, the trace of its largest temporary allocation first.

    A trace belongs to the allocation of its first buffer. If none belongs to a temporary allocation, returns
    the trace with most events of the space.
    """
    traces, events = buffers.heap_traces, buffers.heap_events
    if not len(traces):
        return []
    first = traces["first_event"].astype(np.int64)
    has_events = traces["n_events"] > 0
    buffer = np.where(has_events, events["buffer"][np.where(has_events, first, 0)] if len(events) else -1, -1)
    trace_allocation = np.where(buffer >= 0, allocation[buffer] if len(allocation) else -1, -1)
    colors, sizes = buffers.allocations["color"], buffers.allocations["size_bytes"]
    temporary = [
        t
        for t in np.flatnonzero(trace_allocation >= 0).tolist()
        if colors[trace_allocation[t]] == color and kind[trace_allocation[t]] == TEMPORARY
    ]
    if temporary:
        return sorted(temporary, key=lambda t: (-int(sizes[trace_allocation[t]]), int(trace_allocation[t])))
    of_color = buffers.logical_buffers["color"] == color
    counts = [_count(buffers, t, of_color) for t in range(len(traces))]
    best = int(np.argmax(counts))
    return [best] if counts[best] else []


def _count(buffers: BufferAssignment, trace: int, of_color: npt.NDArray[np.bool_]) -> int:
    rows = buffers.heap_events["buffer"][buffers.events_of(trace)]
    return int(of_color[rows[rows >= 0]].sum())


def _largest_in(buffers: BufferAssignment, allocations: Ints, size: Ints) -> Ints:
    """The largest buffer of each allocation, the first of equals. Allocations without buffers are
    left out.
    """
    table = buffers.assigned
    keep = np.flatnonzero((table["buffer"] >= 0) & np.isin(table["allocation"], allocations))
    buffer, owner = table["buffer"][keep].astype(np.int64), table["allocation"][keep]
    order = np.lexsort((-size[buffer], owner))
    _, first = np.unique(owner[order], return_index=True)
    return buffer[order[first]]
