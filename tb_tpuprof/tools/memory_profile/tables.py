"""Tables of the memory profile: all memories, the history of one, its contents at a moment, its floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from tb_tpuprof.tools.memory_profile.declared import ACTIVE, FLOOR, HISTORY, MEMORIES, TIMELINE
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Texts, Values, known_texts
from tb_tpuprof.units import counted

N_SMALL = 64
OLDER = "allocated before the capture"
STACK = "stack"
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
        """Its name in links."""
        return f"{self.host}/{self.peak.name}"


def nan_if_negative(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers, with NaN for negative ones, which are unknown."""
    return np.where(values < 0, np.nan, values.astype(np.float64)) if (values < 0).any() else values


def memories_table(memories: Sequence[Memory]) -> Table:
    """A row per memory, the largest peak first."""
    peaks = [memory.peak for memory in memories]

    def numbers(name: str, dtype: type = np.int64) -> npt.NDArray[Any]:
        return np.array([getattr(peak, name) for peak in peaks], dtype)

    capacity = nan_if_negative(np.array([peak.capacity_bytes or -1 for peak in peaks], np.int64))
    rises = [memory.floor.rise_bytes_per_step if memory.floor.n_steps else np.nan for memory in memories]
    return MEMORIES.fill(
        {
            "host": [memory.host for memory in memories],
            "memory": [peak.name for peak in peaks],
            "peak_bytes": numbers("used_bytes"),
            "used_fraction": numbers("used_bytes") / capacity,
            "peak_ps": numbers("start_ps"),
            "capacity_bytes": capacity,
            "lifetime_peak_bytes": nan_if_negative(numbers("lifetime_peak_bytes")),
            "stack_bytes": numbers("stack_bytes"),
            "heap_bytes": numbers("heap_bytes"),
            "free_bytes": nan_if_negative(numbers("free_bytes")),
            "fragmentation_fraction": numbers("fragmentation", np.float64),
            "n_allocations": numbers("n_allocations"),
            "n_deallocations": numbers("n_deallocations"),
            "floor_rise_bytes": np.array(rises, np.float64),
        }
    )


def small_table(memories: Sequence[Memory]) -> Table:
    """Histories of the first memories in few pixels, for drawing them side by side."""
    shapes = [memory.shape for memory in memories[:N_SMALL]]
    none = np.empty(0, np.int64)
    return HISTORY.fill(
        {
            "row": np.repeat(np.arange(len(shapes)), [len(shape.history_ps) for shape in shapes]),
            "start_ps": np.concatenate([none, *(shape.history_ps for shape in shapes)]),
            "used_bytes": np.concatenate([none, *(shape.history_bytes for shape in shapes)]),
        },
        f"the first {N_SMALL} of {len(memories):,}" if len(memories) > N_SMALL else "",
    )


def _texts(events: MemoryEvents, codes: Int64s) -> Texts:
    distinct, position = distinct_codes(codes)
    shift = 1 if len(distinct) and distinct[0] < 0 else 0
    return Texts((position - shift).astype(np.int32), events.strings.take(distinct[shift:]))


def _dtypes(events: MemoryEvents, rows: Int64s) -> Texts:
    return _each(events.dtype[rows], dtype_name)


def _steps(events: MemoryEvents, grouped: Groups, rows: Int64s) -> Texts:
    return _each(grouped.group[events.event[rows]].astype(np.int64), grouped.step_name)


def _each(values: Int64s, text_of: Callable[[int], str]) -> Texts:
    """Texts of numbers; `text_of` is called once per distinct number; empty is unknown."""
    code, first = split(np.empty(0, np.int32), values)
    codes, strings = known_texts([text_of(value) for value in values[first].tolist()])
    return Texts(codes[code], strings)


def timeline_table(events: MemoryEvents, grouped: Groups, rows: Int64s, n_inside: int) -> Table:
    """The history of a window: the level after each event, and what the event was."""
    held_bytes = events.held_bytes[rows]
    columns: dict[str, Values] = {
        "start_ps": events.start_ps[rows],
        "stack_bytes": events.stack_bytes[rows],
        "heap_bytes": events.heap_bytes[rows],
        "free_bytes": nan_if_negative(events.free_bytes[rows]),
        **({"held_bytes": nan_if_negative(held_bytes)} if (held_bytes >= 0).any() else {}),
        "fragmentation_fraction": events.fragmentation[rows],
        "activity": [
            "Allocation" if is_new else "Deallocation" for is_new in events.is_allocation[rows].tolist()
        ],
        "allocation_bytes": events.allocation_bytes[rows],
        "requested_bytes": nan_if_negative(events.requested_bytes[rows]),
        "op": _texts(events, events.op[rows]),
        "step": _steps(events, grouped, rows),
        "region": _texts(events, events.region[rows]),
        "dtype": _dtypes(events, rows),
        "shape": _texts(events, events.shape[rows]),
        "event": events.event[rows],
    }
    thinned = f"the lowest, highest and last of each pixel, of {n_inside:,} events in the window"
    return TIMELINE.fill(columns, thinned if len(rows) < n_inside else counted(n_inside, "event"))


def active_table(events: MemoryEvents, grouped: Groups, active: Active, moment: str) -> Table:
    """The memory's contents at a moment, most bytes first; stack and older allocations are separate rows."""
    rows = active.example
    special = [
        (name, size) for name, size in ((STACK, active.stack_bytes), (OLDER, active.older_bytes)) if size > 0
    ]
    n_special = len(special)
    sizes = np.array([size for _, size in special], np.int64)
    total = np.concatenate((sizes, active.total_bytes))
    order = np.argsort(-total, kind="stable")

    def numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.concatenate((np.full(n_special, np.nan), values))[order]

    def texts(column: Texts, first: Sequence[str] = ("",) * n_special) -> Texts:
        all_texts = [*first, *(column.strings[i] if i >= 0 else "" for i in column.codes.tolist())]
        return known_texts([all_texts[i] for i in order.tolist()])

    return ACTIVE.fill(
        {
            "op": texts(_texts(events, events.op[rows]), [f"({name})" for name, _ in special]),
            "total_bytes": total[order],
            "fraction": total[order] / (int(total.sum()) or 1),
            "n_occurrences": numbers(active.n_occurrences),
            "allocation_bytes": numbers(events.allocation_bytes[rows]),
            "requested_bytes": numbers(nan_if_negative(events.requested_bytes[rows])),
            "region": texts(_texts(events, events.region[rows])),
            "dtype": texts(_dtypes(events, rows)),
            "shape": texts(_texts(events, events.shape[rows])),
            "step": texts(_steps(events, grouped, rows)),
            "start_ps": numbers(events.start_ps[rows]),
            "event": numbers(events.event[rows]),
        },
        title="In use " + moment,
    )


def floor_table(memory: Memory, names: Sequence[str], starts_ps: Int64s) -> Table:
    """The floor of each step, and whether the step counts as warm-up."""
    floor = memory.floor
    n_steps = len(floor.floor_bytes)
    return FLOOR.fill(
        {
            "step": names[:n_steps],
            "start_ps": starts_ps[:n_steps],
            "floor_bytes": floor.floor_bytes,
            "is_warm_up": np.arange(n_steps) < floor.first,
        }
    )
