"""How much of a memory was in use at most, when, and what lay in it then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.native import extremes, split

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemoryPeak:
    """One memory in the whole trace. `at`: the event after which stack and heap together were largest (the
    last of several).

    `lifetime_peak_bytes`: since the process began, as the allocator says, and at least what the trace shows;
    -1 if it does not say. `capacity_bytes`: stack, heap and free at the peak, 0 if what is free is not told
    (`free_bytes` -1). `fragmentation`, `held_bytes`: as in MemoryEvents, at the peak.
    """

    memory: int
    name: str
    at: int
    start_ps: int
    n_allocations: int
    n_deallocations: int
    stack_bytes: int
    heap_bytes: int
    free_bytes: int
    held_bytes: int
    fragmentation: float
    lifetime_peak_bytes: int

    @property
    def used_bytes(self) -> int:
        """Stack and heap at the peak."""
        return self.stack_bytes + self.heap_bytes

    @property
    def capacity_bytes(self) -> int:
        """All of the memory."""
        return self.used_bytes + self.free_bytes if self.free_bytes >= 0 else 0

    @property
    def used_fraction(self) -> float:
        """Share of the capacity in use at the peak, 0 where the capacity is not told."""
        return self.used_bytes / self.capacity_bytes if self.capacity_bytes else 0.0


@dataclass(frozen=True)
class Active:
    """Allocations that a moment finds in a memory, equal ones together, those that take most first.

    `example`: the first event of each. `older_bytes`: heap that was allocated before the trace began (or
    whose allocation was not recorded).
    """

    example: Int64s
    n_occurrences: Int64s
    total_bytes: Int64s
    stack_bytes: int
    older_bytes: int


def memory_peak(events: MemoryEvents, memory: int) -> MemoryPeak:
    """Peak and counts of one memory; it has at least one event."""
    rows = events.of(memory)
    at = int(extremes(events.used_bytes, np.array([rows.start, rows.stop]))[1][0])
    n_allocations = int(np.count_nonzero(events.is_allocation[rows]))
    lifetime = int(events.lifetime_peak_bytes[rows].max())
    return MemoryPeak(
        memory=memory,
        name=events.memories[memory],
        at=at,
        start_ps=int(events.start_ps[at]),
        n_allocations=n_allocations,
        n_deallocations=rows.stop - rows.start - n_allocations,
        stack_bytes=int(events.stack_bytes[at]),
        heap_bytes=int(events.heap_bytes[at]),
        free_bytes=int(events.free_bytes[at]),
        held_bytes=int(events.held_bytes[at]),
        fragmentation=float(events.fragmentation[at]),
        lifetime_peak_bytes=max(lifetime, int(events.used_bytes[at])) if lifetime >= 0 else -1,
    )


def active_allocations(events: MemoryEvents, memory: int, at: int) -> Active:
    """What is allocated right after event `at`: allocations up to it whose address nothing has freed or used
    anew by then.

    Equal: same operation, region, data type, shape and sizes. Order: by the bytes of all equal ones, then as
    they came.
    """
    alive = _alive(events, memory, at)
    code, first = np.zeros(len(alive), np.int32), np.zeros(min(1, len(alive)), np.int64)
    for column in (
        events.op,
        events.region,
        events.dtype,
        events.shape,
        events.allocation_bytes,
        events.requested_bytes,
    ):
        code, first = split(code, column[alive])
    count, example = np.bincount(code, minlength=len(first)), alive[first]
    total = events.allocation_bytes[example] * count
    order = np.lexsort((example, -events.allocation_bytes[example], -total))
    stack, older = int(events.stack_bytes[at]), max(0, int(events.heap_bytes[at]) - int(total.sum()))
    return Active(example[order].astype(np.int64), count[order].astype(np.int64), total[order], stack, older)


def excess_bytes(events: MemoryEvents, memory: int, at: int) -> int:
    """What known allocations hold right after an event beyond the heap: their deallocations were not
    recorded.
    """
    known = int(events.allocation_bytes[_alive(events, memory, at)].sum())
    return max(0, known - int(events.heap_bytes[at]))


def _alive(events: MemoryEvents, memory: int, at: int) -> Int64s:
    """Allocations up to event `at` whose address nothing has freed or used anew by then."""
    rows = events.of(memory)
    until = slice(rows.start, at + 1)
    found: Int64s = (
        np.flatnonzero(events.is_allocation[until] & (events.partner[until] > at)).astype(np.int64)
        + rows.start
    )
    return found


def event_at(events: MemoryEvents, memory: int, time_ps: int) -> int:
    """The last event of a memory at or before a time; the first if all are later."""
    rows = events.of(memory)
    at = int(np.searchsorted(events.start_ps[rows], time_ps, side="right")) - 1
    return int(rows.start) + max(0, at)
