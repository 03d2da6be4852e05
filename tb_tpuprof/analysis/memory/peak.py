"""The peak of a memory: how much was in use, when, and by which allocations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.events import MemoryEvents
from tb_tpuprof.native import extremes, split

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemoryPeak:
    """One memory in the whole trace. `at`: the event after which stack plus heap was largest (the last of
    equals).

    `lifetime_peak_bytes`: since the process began, as reported by the allocator, and at least the trace's
    peak; -1 if not reported. `capacity_bytes`: stack, heap and free at the peak, 0 if `free_bytes` is unknown
    (-1). `fragmentation`, `held_bytes`: as in MemoryEvents, at the peak.
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
        """Stack plus heap at the peak."""
        return self.stack_bytes + self.heap_bytes

    @property
    def capacity_bytes(self) -> int:
        """Size of the memory, 0 if unknown."""
        return self.used_bytes + self.free_bytes if self.free_bytes >= 0 else 0

    @property
    def used_fraction(self) -> float:
        """Fraction of the capacity in use at the peak, 0 if the capacity is unknown."""
        return self.used_bytes / self.capacity_bytes if self.capacity_bytes else 0.0


@dataclass(frozen=True)
class Active:
    """Allocations that are live in a memory at one moment, equal ones merged, those with the most bytes
    first.

    `example`: the first event of each. `older_bytes`: heap that was allocated before the trace began (or
    whose allocation was not recorded).
    """

    example: Int64s
    n_occurrences: Int64s
    total_bytes: Int64s
    stack_bytes: int
    older_bytes: int


def memory_peak(events: MemoryEvents, memory: int) -> MemoryPeak:
    """Peak and counts of one memory, which must have at least one event."""
    rows = events.of(memory)
    event = int(extremes(events.used_bytes, np.array([rows.start, rows.stop]))[1][0])
    n_allocations = int(np.count_nonzero(events.is_allocation[rows]))
    lifetime = int(events.lifetime_peak_bytes[rows].max())
    return MemoryPeak(
        memory=memory,
        name=events.memories[memory],
        at=event,
        start_ps=int(events.start_ps[event]),
        n_allocations=n_allocations,
        n_deallocations=rows.stop - rows.start - n_allocations,
        stack_bytes=int(events.stack_bytes[event]),
        heap_bytes=int(events.heap_bytes[event]),
        free_bytes=int(events.free_bytes[event]),
        held_bytes=int(events.held_bytes[event]),
        fragmentation=float(events.fragmentation[event]),
        lifetime_peak_bytes=max(lifetime, int(events.used_bytes[event])) if lifetime >= 0 else -1,
    )


def active_allocations(events: MemoryEvents, memory: int, event: int) -> Active:
    """Allocations live right after an event: those up to it whose address was neither freed nor allocated
    again by then.

    Equal: same operation, region, data type, shape and sizes. Order: by total bytes of equal ones, then by
    size, then by time.
    """
    alive = _live(events, memory, event)
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
    stack, older = int(events.stack_bytes[event]), max(0, int(events.heap_bytes[event]) - int(total.sum()))
    return Active(example[order].astype(np.int64), count[order].astype(np.int64), total[order], stack, older)


def excess_bytes(events: MemoryEvents, memory: int, event: int) -> int:
    """Bytes of known allocations beyond the heap right after an event: their deallocations were
    not recorded.
    """
    known_bytes = int(events.allocation_bytes[_live(events, memory, event)].sum())
    return max(0, known_bytes - int(events.heap_bytes[event]))


def _live(events: MemoryEvents, memory: int, event: int) -> Int64s:
    """Allocations up to an event whose address was neither freed nor allocated again by then."""
    rows = events.of(memory)
    rows_until = slice(rows.start, event + 1)
    live: Int64s = (
        np.flatnonzero(events.is_allocation[rows_until] & (events.partner[rows_until] > event)).astype(
            np.int64
        )
        + rows.start
    )
    return live


def event_at(events: MemoryEvents, memory: int, time_ps: int) -> int:
    """The last event of a memory at or before a time; the first if all are later."""
    rows = events.of(memory)
    last = int(np.searchsorted(events.start_ps[rows], time_ps, side="right")) - 1
    return int(rows.start) + max(0, last)
