"""All memories of a host in few numbers: what the table of memories and their small histories need, small
enough to keep of 256 hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once, precompute
from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.analysis.memory.floor import Floor, floor_of
from tb_tpuprof.analysis.memory.peak import MemoryPeak, excess_bytes, memory_peak
from tb_tpuprof.analysis.memory.window import window_events
from tb_tpuprof.analysis.steps.marks import step_marks
from tb_tpuprof.trace.trace import Trace

SMALL_PX = 48  # width of the small histories beside one another


@dataclass(frozen=True)
class MemoryShape:
    """A memory: its peak, its floor, its history over the whole trace in few pixels, and what its
    deallocations lack.

    `history_ps`, `history_bytes`: stack and heap together after each event that `SMALL_PX` pixels show.
    `excess_bytes`: of known allocations beyond the heap, at the peak.
    """

    peak: MemoryPeak
    floor: Floor
    history_ps: npt.NDArray[np.int64]
    history_bytes: npt.NDArray[np.int64]
    excess_bytes: int


@dataclass(frozen=True)
class HostMemory:
    """The memories of a host that have events, and how long its trace is."""

    memories: tuple[MemoryShape, ...]
    duration_ps: int


def host_memory(trace: Trace) -> HostMemory:
    """What is kept of a host's memories. Their events in full are `memory_events`."""
    precompute(trace, _drawn, step_marks)
    events, marked = memory_events(trace), step_marks(trace)
    found = []
    for peak, rows, excess in _drawn(trace):
        floor = floor_of(events, peak.memory, marked.start_ps, marked.end_ps)
        found.append(MemoryShape(peak, floor, events.start_ps[rows], events.used_bytes[rows], excess))
    return HostMemory(tuple(found), trace.duration_ps)


@once
def _drawn(trace: Trace) -> list[tuple[MemoryPeak, npt.NDArray[np.int64], int]]:
    """What of the memories with events does not depend on steps: peak, the events that the small history
    draws, excess.
    """
    events = memory_events(trace)
    used = np.flatnonzero(np.diff(events.first)).tolist()
    peaks = [memory_peak(events, memory) for memory in used]
    drawn = [window_events(events, memory, 0, trace.duration_ps, SMALL_PX) for memory in used]
    return list(
        zip(peaks, drawn, (excess_bytes(events, peak.memory, peak.at) for peak in peaks), strict=True)
    )
