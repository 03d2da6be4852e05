"""Tables of the memory profile: all memories beside one another, the history of one, what lay in it at a
moment, its floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.memory.events import MemoryEvents, dtype_name
from tb_tpuprof.analysis.memory.floor import Floor
from tb_tpuprof.analysis.memory.host import MemoryShape
from tb_tpuprof.analysis.memory.peak import Active, MemoryPeak
from tb_tpuprof.analysis.steps.grouping import Groups
from tb_tpuprof.native import split
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table

N_SMALL = 64
OLDER = "allocated before the capture"
STACK = "stack"
HELD_IDLE = "the share of what its allocator holds that is not in use"
_GIVEN, _ASKED = "What the allocator gave", "What was asked for"
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Memory:
    """A memory of a host."""

    host: str
    shape: MemoryShape

    @property
    def peak(self) -> MemoryPeak:
        """Its peak."""
        return self.shape.peak

    @property
    def floor(self) -> Floor:
        """Its floor over the steps."""
        return self.shape.floor

    @property
    def full_name(self) -> str:
        """How a link names it."""
        return f"{self.host}/{self.peak.name}"


def known(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers of which those below 0 are not told: NaN."""
    return np.where(values < 0, np.nan, values.astype(np.float64)) if (values < 0).any() else values


def memories_table(memories: Sequence[Memory]) -> Table:
    """A row per memory, the largest peak first."""
    peaks = [memory.peak for memory in memories]

    def numbers(name: str, dtype: type = np.int64) -> npt.NDArray[np.generic]:
        return np.array([getattr(peak, name) for peak in peaks], dtype)

    capacity = known(np.array([peak.capacity_bytes or -1 for peak in peaks], np.int64))
    rise = np.array(
        [memory.floor.rise_bytes_per_step if memory.floor.n_steps else np.nan for memory in memories],
        np.float64,
    )
    return Table(
        "Memories",
        (
            text_column("host", "Host", [memory.host for memory in memories]),
            text_column("memory", "Memory", [peak.name for peak in peaks], "The allocator, or the device"),
            Column(
                "peak_bytes",
                "Peak",
                numbers("used_bytes"),
                "bytes",
                description="Stack and heap together, in the capture",
            ),
            Column(
                "used_fraction",
                "Of capacity",
                numbers("used_bytes") / capacity,
                "fraction",
                description="At the peak",
            ),
            Column("peak_ps", "Peak at", numbers("start_ps"), "ps", description="Since the trace's start"),
            Column(
                "capacity_bytes",
                "Capacity",
                capacity,
                "bytes",
                description="The allocator's pool; PyTorch: the chip's memory",
            ),
            Column(
                "lifetime_peak_bytes",
                "Lifetime peak",
                known(numbers("lifetime_peak_bytes")),
                "bytes",
                description="Since the process began",
            ),
            Column(
                "stack_bytes",
                "Stack",
                numbers("stack_bytes"),
                "bytes",
                description="Reserved by programs, at the peak",
            ),
            Column(
                "heap_bytes", "Heap", numbers("heap_bytes"), "bytes", description="Allocated, at the peak"
            ),
            Column("free_bytes", "Free", known(numbers("free_bytes")), "bytes", description="At the peak"),
            Column(
                "fragmentation_fraction",
                "Fragmentation",
                numbers("fragmentation", np.float64),
                "fraction",
                description="At the peak: the share of the free memory that is not in its largest piece; "
                "PyTorch: " + HELD_IDLE,
            ),
            Column("n_allocations", "Allocations", numbers("n_allocations"), "count"),
            Column("n_deallocations", "Deallocations", numbers("n_deallocations"), "count"),
            Column(
                "floor_rise_bytes", "Floor rises by", rise, "bytes", description="Per step; 0: not steadily"
            ),
        ),
    )


def small_table(memories: Sequence[Memory]) -> Table:
    """Histories of the first memories in few pixels, for drawing them side by side: `memory` is the row of
    `memories`.
    """
    shapes = [memory.shape for memory in memories[:N_SMALL]]
    which = np.repeat(np.arange(len(shapes)), [len(shape.history_ps) for shape in shapes])
    none = np.empty(0, np.int64)
    return Table(
        "History of each memory",
        (
            Column("row", "Row", which, "id"),
            Column("start_ps", "Time", np.concatenate([none, *(shape.history_ps for shape in shapes)]), "ps"),
            Column(
                "used_bytes",
                "In use",
                np.concatenate([none, *(shape.history_bytes for shape in shapes)]),
                "bytes",
            ),
        ),
        f"the first {N_SMALL} of {len(memories):,}" if len(memories) > N_SMALL else "",
    )


def _texts(name: str, title: str, events: MemoryEvents, codes: Int64s, description: str = "") -> Column:
    kept, place = distinct_codes(codes)
    shift = 1 if len(kept) and kept[0] < 0 else 0
    strings = events.strings.take(kept[shift:])
    return Column(name, title, (place - shift).astype(np.int32), strings=strings, description=description)


def _dtypes(events: MemoryEvents, rows: Int64s) -> Column:
    return _each("dtype", "Data type", events.dtype[rows], dtype_name)


def _steps(events: MemoryEvents, grouped: Groups, rows: Int64s) -> Column:
    return _each("step", "Step", grouped.group[events.event[rows]].astype(np.int64), grouped.step_name)


def _each(name: str, title: str, values: Int64s, text_of: Callable[[int], str]) -> Column:
    """A text column of numbers, each distinct one of which has a text; empty is unknown."""
    code, first = split(np.empty(0, np.int32), values)
    column = _named(name, title, [text_of(value) for value in values[first].tolist()])
    return replace(column, values=column.values[code])


def _named(name: str, title: str, texts: Sequence[str]) -> Column:
    """A text column in which empty is unknown."""
    column = text_column(name, title, texts)
    empty = [i for i, text in enumerate(column.strings or ()) if not text]
    return Column(
        name,
        title,
        np.where(np.isin(column.values, empty), -1, column.values).astype(np.int32),
        strings=column.strings,
    )


def _held_column(held: Int64s) -> tuple[Column, ...]:
    """What the allocator holds, where it is told."""
    if not (held >= 0).any():
        return ()
    return (
        Column(
            "held_bytes",
            "Held",
            known(held),
            "bytes",
            description="What the allocator has taken from the device, in use or not",
        ),
    )


def timeline_table(events: MemoryEvents, grouped: Groups, rows: Int64s, n_inside: int) -> Table:
    """The history of a window: the level after each event, and what the event was."""
    thinned = len(rows) < n_inside
    activity = ["Allocation" if is_new else "Deallocation" for is_new in events.is_allocation[rows].tolist()]
    return Table(
        "History",
        (
            Column("start_ps", "Time", events.start_ps[rows], "ps", delta=True),
            Column("stack_bytes", "Stack", events.stack_bytes[rows], "bytes"),
            Column("heap_bytes", "Heap", events.heap_bytes[rows], "bytes"),
            Column("free_bytes", "Free", known(events.free_bytes[rows]), "bytes"),
            *_held_column(events.held_bytes[rows]),
            Column("fragmentation_fraction", "Fragmentation", events.fragmentation[rows], "fraction"),
            text_column("activity", "Event", activity),
            Column("allocation_bytes", "Size", events.allocation_bytes[rows], "bytes", description=_GIVEN),
            Column(
                "requested_bytes",
                "Requested",
                known(events.requested_bytes[rows]),
                "bytes",
                description=_ASKED,
            ),
            _texts(
                "op",
                "Operation",
                events,
                events.op[rows],
                "A deallocation has that of the allocation it ends",
            ),
            _steps(events, grouped, rows),
            _texts("region", "Region", events, events.region[rows]),
            _dtypes(events, rows),
            _texts("shape", "Shape", events, events.shape[rows]),
            Column("event", "Event id", events.event[rows], "id"),
        ),
        f"of {n_inside:,} events in the window the least, the most and the last of each pixel"
        if thinned
        else f"{n_inside:,} events",
    )


def active_table(events: MemoryEvents, grouped: Groups, found: Active, moment: str) -> Table:
    """What lay in the memory at a moment, the most bytes first; stack and what is older than the capture as
    rows of their own.
    """
    rows = found.example
    special = [
        (name, size) for name, size in ((STACK, found.stack_bytes), (OLDER, found.older_bytes)) if size > 0
    ]
    n = len(special)
    sizes = np.array([size for _, size in special], np.int64)
    nothing = np.full(n, np.nan)
    total = np.concatenate((sizes, found.total_bytes))
    order = np.argsort(-total, kind="stable")
    whole = int(total.sum()) or 1

    def numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.concatenate((nothing, values))[order]

    def texts(column: Column, first: Sequence[str]) -> Column:
        known = [(column.strings or ())[i] if i >= 0 else "" for i in column.values.astype(int).tolist()]
        every = [*first, *known]
        return _named(column.name, column.title, [every[i] for i in order.tolist()])

    blank = [""] * n
    return Table(
        "In use " + moment,
        (
            texts(_texts("op", "Operation", events, events.op[rows]), [f"({name})" for name, _ in special]),
            Column("total_bytes", "In all", total[order], "bytes"),
            Column("fraction", "Share", total[order] / whole, "fraction", description="Of stack and heap"),
            Column(
                "n_occurrences",
                "Allocations",
                numbers(found.n_occurrences),
                "count",
                description="Equal ones, together",
            ),
            Column(
                "allocation_bytes",
                "Size of one",
                numbers(events.allocation_bytes[rows]),
                "bytes",
                description=_GIVEN,
            ),
            Column(
                "requested_bytes",
                "Requested",
                numbers(known(events.requested_bytes[rows])),
                "bytes",
                description=_ASKED,
            ),
            texts(_texts("region", "Region", events, events.region[rows]), blank),
            texts(_dtypes(events, rows), blank),
            texts(_texts("shape", "Shape", events, events.shape[rows]), blank),
            texts(_steps(events, grouped, rows), blank),
            Column(
                "start_ps",
                "Allocated at",
                numbers(events.start_ps[rows]),
                "ps",
                description="The first of them",
            ),
            Column("event", "Event id", numbers(events.event[rows]), "id"),
        ),
    )


def floor_table(memory: Memory, names: Sequence[str], starts_ps: Int64s) -> Table:
    """The floor of each step, and whether the step counts as warm-up."""
    floor = memory.floor
    n = len(floor.floor_bytes)
    return Table(
        "Minimum in use per step",
        (
            text_column("step", "Step", list(names[:n])),
            Column("start_ps", "Start", starts_ps[:n], "ps"),
            Column("floor_bytes", "Floor", floor.floor_bytes, "bytes"),
            Column("is_warm_up", "Warm-up", np.arange(n) < floor.first),
        ),
    )
