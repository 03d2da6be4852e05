"""The history of a PyTorch allocator → memory over time, its peak, contents at a moment, blocks that stay.

    in use                ┌──┐     the blocks between `alloc` and `free_completed`, as requested
    since the start    ┌──┘  └──┐
    ───────────────────┘        └──    level at the start = level when the snapshot was saved − all changes

The history is a ring: of a long run its start is missing. So levels are anchored at the end, where the
snapshot lists all blocks in use, and blocks from before the history are known if they are still in use then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import extremes, tie
from tb_tpuprof.trace.heap_history import (
    ALLOC,
    COMPLETED,
    GROW,
    OOM,
    REQUESTED,
    SHRINK,
    DeviceHistory,
)

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
N_QUARTERS = 4
LEAST_STEADY = 8  # blocks that stay, from which a place can grow steadily
_EVEN_SHARE = 0.25  # of an even share that each quarter must add at least


@dataclass(frozen=True)
class Levels:
    """Of each event, the level after it, in bytes: requested by blocks in use, the part of them that the
    program has freed and a stream still uses, and held by the allocator.

    `partner`: of an allocation, the event that ends it, n if none does; of such an end, its allocation, −1 if
    it was before the history; of other events −1. `is_anchored`: whether levels agree with the blocks that
    the snapshot lists; if not, they are lower bounds.
    """

    used_bytes: Int64s
    pending_bytes: Int64s
    reserved_bytes: Int64s
    partner: Int64s
    is_anchored: bool

    @cached_property
    def peak(self) -> int:
        """The event after which most was in use, the last of equals."""
        return int(extremes(self.used_bytes, np.array([0, len(self.used_bytes)]))[1][0])


@dataclass(frozen=True)
class Contents:
    """Blocks in use after one event: stack, bytes requested and the event that allocated each, −1 for blocks
    from before the history. `unknown_bytes`: blocks from before it that were freed in it; nothing but their
    sum is known.
    """

    stack: Int64s
    size_bytes: Int64s
    event: Int64s
    unknown_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of them: the level after the event, or more if the snapshot's blocks contradict the level."""
        return int(self.size_bytes.sum()) + self.unknown_bytes


@dataclass(frozen=True)
class Kept:
    """By place of the program: blocks allocated in the history, and those of them in use at its end. `first`
    and `last`: the events that allocated the first and the last of these, −1 if none is in use.
    `is_steady`: whether blocks that stay were allocated in each quarter of the history's time.
    """

    frame: Int64s
    n_allocated: Int64s
    allocated_bytes: Int64s
    n_kept: Int64s
    kept_bytes: Int64s
    first: Int64s
    last: Int64s
    is_steady: Bools

    def __len__(self) -> int:
        return len(self.frame)


def levels(history: DeviceHistory) -> Levels:
    """The levels after each event. Blocks end with `free_completed`, or with `free_requested` if the history
    has none of the former (`skip_actions`).
    """
    action, size = history.action, history.size_bytes
    has_completed, has_requested = bool((action == COMPLETED).any()), bool((action == REQUESTED).any())
    end = COMPLETED if has_completed else REQUESTED
    used, used_fits = _anchored(
        size * (action == ALLOC) - size * (action == end), int(history.survivors.size_bytes.sum())
    )
    pending = np.zeros(len(history), np.int64)
    if has_completed and has_requested:
        delta = size * (action == REQUESTED) - size * (action == COMPLETED)
        pending, _ = _anchored(delta, history.end_pending_bytes)
    reserved, reserved_fits = _anchored(
        size * (action == GROW) - size * (action == SHRINK), history.end_reserved_bytes
    )
    fits = used_fits and reserved_fits and bool((used <= reserved).all())
    return Levels(used, pending, reserved, _partners(history, end), fits)


def _anchored(delta: Int64s, at_end: int) -> tuple[Int64s, bool]:
    """Levels after each change so that the last one is as given; if this makes others negative, levels whose
    minimum, the start included, is 0.
    """
    sums = np.cumsum(delta)
    start = at_end - int(sums[-1])
    least = min(0, int(sums.min()))
    return sums + max(start, -least), start >= -least


def _partners(history: DeviceHistory, end: int) -> Int64s:
    """As in Levels."""
    rows = np.flatnonzero((history.action == ALLOC) | (history.action == end))
    is_allocation = (history.action[rows] == ALLOC).astype(np.uint8)
    tied = tie(np.array([0, len(rows)]), is_allocation, np.ascontiguousarray(history.address[rows]))
    partner = np.full(len(history), -1, np.int64)
    partner[rows] = np.append(rows, [len(history), -1])[tied]
    return partner


def contents(history: DeviceHistory, levels_after: Levels, event: int) -> Contents:
    """The blocks in use after an event."""
    action = history.action[: event + 1]
    rows = np.flatnonzero((action == ALLOC) & (levels_after.partner[: event + 1] > event))
    older = _older(history, levels_after)
    survivors = history.survivors
    size = np.concatenate((history.size_bytes[rows], survivors.size_bytes[older]))
    unknown = int(levels_after.used_bytes[event]) - int(size.sum())
    return Contents(
        np.concatenate((history.stack[rows], survivors.stack[older])).astype(np.int64),
        size,
        np.concatenate((rows, np.full(len(older), -1))).astype(np.int64),
        max(0, unknown),
    )


def _older(history: DeviceHistory, levels_after: Levels) -> npt.NDArray[np.intp]:
    """Survivors that were not allocated in the history: they were in use all the time."""
    is_kept = (history.action == ALLOC) & (levels_after.partner == len(history))
    return np.flatnonzero(~np.isin(history.survivors.address, history.address[is_kept]))


def kept(history: DeviceHistory, levels_after: Levels, frame_of_stack: Int64s) -> Kept:
    """Allocations of the history by place (`frame_of_stack`), most bytes kept first. Blocks that the program
    has freed and a stream still uses are not kept.
    """
    rows = np.flatnonzero(history.action == ALLOC)
    frame, group = np.unique(frame_of_stack[history.stack[rows]], return_inverse=True)
    group, n = group.reshape(-1), len(frame)
    stays = levels_after.partner[rows] == len(history)
    if history.end_pending_bytes:  # the program has freed these
        stays &= _partners(history, REQUESTED)[rows] == len(history)
    size = history.size_bytes[rows]

    def summed(values: npt.NDArray[np.integer]) -> Int64s:
        result = np.zeros(n, np.int64)
        np.add.at(result, group, values)
        return result

    first, last = np.full(n, len(history), np.int64), np.full(n, -1, np.int64)
    np.minimum.at(first, group[stays], rows[stays])
    np.maximum.at(last, group[stays], rows[stays])
    n_kept = summed(stays.astype(np.int64))
    is_steady = _steady(history, rows[stays], group[stays], n) & (n_kept >= LEAST_STEADY)
    allocated, kept_bytes = summed(size), summed(size * stays)
    order = np.lexsort((frame, -allocated, -kept_bytes))
    return Kept(
        frame[order].astype(np.int64),
        summed(np.ones(len(rows), np.int64))[order],
        allocated[order],
        n_kept[order],
        kept_bytes[order],
        np.where(last < 0, -1, first)[order],
        last[order],
        is_steady[order],
    )


def _steady(history: DeviceHistory, rows: npt.NDArray[np.intp], group: npt.NDArray[np.intp], n: int) -> Bools:
    """Whether each quarter of the time added at least a quarter of an even share of a group's bytes."""
    time = history.time_ps
    length = int(time[-1] - time[0]) + 1
    quarter = (time[rows] - time[0]) // -(-length // N_QUARTERS)
    sizes = np.zeros((n, N_QUARTERS), np.int64)
    np.add.at(sizes, (group, quarter), history.size_bytes[rows])
    total = sizes.sum(axis=1)
    result: Bools = (total > 0) & (sizes.min(axis=1) >= _EVEN_SHARE * total / N_QUARTERS)
    return result


def ooms(history: DeviceHistory) -> npt.NDArray[np.intp]:
    """The events at which an allocation failed."""
    return np.flatnonzero(history.action == OOM)


def event_at(history: DeviceHistory, time_ps: int) -> int:
    """The last event at or before a time; the first if all are later."""
    return max(0, int(np.searchsorted(history.time_ps, time_ps, side="right")) - 1)


def drawn_events(
    history: DeviceHistory, levels_after: Levels, start_ps: int, end_ps: int, width_px: int
) -> Int64s:
    """Events to draw from start to end on `width_px` pixels: all if they are few, else per pixel the lowest
    and the highest level in use, the highest held, and the last event, besides the first `4 * width_px`
    failed allocations. The last event before the window comes first.
    """
    low, high = np.searchsorted(history.time_ps, [start_ps, end_ps + 1]).tolist()
    before = max(0, low - 1)
    if high - low <= 4 * width_px:
        return np.arange(before, max(high, before + 1), dtype=np.int64)
    pixel_ps = -(-(end_ps - start_ps + 1) // width_px)
    edges = start_ps + pixel_ps * np.arange(1, (end_ps - start_ps) // pixel_ps + 1, dtype=np.int64)
    inner = np.searchsorted(history.time_ps[low:high], edges)
    cuts = low + np.unique(np.concatenate(([0, high - low], inner))).astype(np.int64)
    least, most = extremes(levels_after.used_bytes, cuts)
    failed = ooms(history)
    failed = failed[(failed >= low) & (failed < high)][: 4 * width_px]
    parts = ([before], least, most, extremes(levels_after.reserved_bytes, cuts)[1], cuts[1:] - 1, failed)
    return np.unique(np.concatenate(parts)).astype(np.int64)
