"""Allocations of a PyTorch job → bytes that each module allocated, kept, and needed at most.

    nn.Module: Net        ├──────────────────────────────┤
      nn.Module: Linear       ├──────────────┤               allocated 8, net 5, peak 8
    [memory]                   +5    +3   −3        −2       Net itself: allocated 0, net −2, peak 8

An allocation belongs to the innermost module around it, one of a backward operation to the module that the
operation is tied to, as kernels do. If a device's allocations are recorded, those of the host's memory are
left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.events import MemoryEvents, memory_events
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
HOST_MEMORY = "cpu"
MAX_LOOKED_AT = 100_000_000  # levels of memory in all calls of modules together


@dataclass(frozen=True)
class Bytes:
    """Of one module in one phase: bytes allocated, those less the bytes freed, and how far the memory in use
    rose above its level at the start of a call, at most; None if no call of it has an event of memory.
    """

    allocated: float
    net: float
    peak: float | None


def memory_by_key(
    trace: Trace,
    calls: npt.NDArray[np.intp],
    key_of: Callable[[Int64s], Int64s],
    is_in: Callable[[Int64s], npt.NDArray[np.bool_]],
) -> dict[int, Bytes]:
    """Bytes by key of a phase and a module's path. `calls`: events that are calls of modules; `key_of`: the
    keys of some events; `is_in`: whether times are in the steps shown.
    """
    events = memory_events(trace)
    rows = _rows(events)
    size = np.where(events.is_allocation[rows], 1, -1) * events.allocation_bytes[rows]
    shown = is_in(events.start_ps[rows])
    keys, which = np.unique(key_of(events.event[rows[shown]].astype(np.int64)), return_inverse=True)
    allocated, net = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    np.add.at(allocated, which, np.maximum(size[shown], 0))
    np.add.at(net, which, size[shown])
    peaks = _peaks(trace, events, calls[is_in(trace.events["start_ps"][calls])], key_of)
    place = {key: i for i, key in enumerate(keys.tolist())}
    return {
        key: Bytes(
            float(allocated[place[key]]) if key in place else 0.0,
            float(net[place[key]]) if key in place else 0.0,
            peaks.get(key),
        )
        for key in sorted({*place, *peaks})
    }


def _memories(events: MemoryEvents) -> list[int]:
    """The memories of devices, else all."""
    devices = [i for i, name in enumerate(events.memories) if name.partition(":")[0] != HOST_MEMORY]
    return devices or list(range(len(events.memories)))


def _rows(events: MemoryEvents) -> Int64s:
    spans = (events.of(memory) for memory in _memories(events))
    return np.concatenate([np.empty(0, np.int64), *(np.arange(span.start, span.stop) for span in spans)])


def _peaks(
    trace: Trace, events: MemoryEvents, calls: npt.NDArray[np.intp], key_of: Callable[[Int64s], Int64s]
) -> dict[int, float]:
    """The largest rise within a call, by key; of several memories that of the one that rises most."""
    start = trace.events["start_ps"][calls]
    end = start + trace.events["duration_ps"][calls]
    keys, which = np.unique(key_of(calls.astype(np.int64)), return_inverse=True)
    rise = np.full(len(keys), -1, np.int64)
    for memory in _memories(events):
        span = events.of(memory)
        times, level = events.start_ps[span], events.used_bytes[span]
        first, stop = np.searchsorted(times, start), np.searchsorted(times, end, side="right")
        has_any = np.flatnonzero(stop > first)
        if not len(has_any) or int((stop - first).sum()) > MAX_LOOKED_AT:
            continue
        first, stop = first[has_any], stop[has_any]
        size = np.where(events.is_allocation[span], 1, -1) * events.allocation_bytes[span]
        before = level[first] - size[first]
        # Each pair of bounds makes two results: within the call, and from its end to the next one's start.
        bounds = np.column_stack((first, np.minimum(stop, len(level) - 1))).ravel()
        highest = np.maximum.reduceat(level, bounds)[::2]
        highest = np.where(stop == len(level), np.maximum(highest, level[-1]), highest)
        np.maximum.at(rise, which[has_any], np.maximum(highest - before, 0))
    return {key: float(value) for key, value in zip(keys.tolist(), rise.tolist(), strict=True) if value >= 0}
