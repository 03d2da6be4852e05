"""Summary of all memories of a host for the table of memories and their small charts, small enough to keep
for 256 hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.memo import compute_ahead, once
from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.analysis.memory.floor import Floor, floor_of
from tb_tpuprof.analysis.memory.peak import MemoryPeak, excess_bytes, memory_peak
from tb_tpuprof.analysis.memory.window import window_events
from tb_tpuprof.analysis.steps.marks import step_marks
from tb_tpuprof.trace.trace import Trace

SMALL_PX = 48  # width of the small charts in the table


@dataclass(frozen=True)
class MemoryShape:
    """A memory: its peak, its floor, its downsampled history over the whole trace, and its unmatched
    allocations.

    `history_ps`, `history_bytes`: stack plus heap after each event that a chart of `SMALL_PX` pixels shows.
    `excess_bytes`: known allocations at the peak beyond the heap (their deallocations were not recorded).
    """

    peak: MemoryPeak
    floor: Floor
    history_ps: npt.NDArray[np.int64]
    history_bytes: npt.NDArray[np.int64]
    excess_bytes: int


@dataclass(frozen=True)
class HostMemory:
    """The memories of a host that have events, and the duration of its trace."""

    memories: tuple[MemoryShape, ...]
    duration_ps: int


def host_memory(trace: Trace) -> HostMemory:
    """The summary of a host's memories; `memory_events` has all their events."""
    compute_ahead(trace, _step_independent, step_marks, hardware)  # every page names the hardware
    events, marks = memory_events(trace), step_marks(trace)
    shapes = []
    for peak, rows, excess in _step_independent(trace):
        floor = floor_of(events, peak.memory, marks.start_ps, marks.end_ps)
        shapes.append(MemoryShape(peak, floor, events.start_ps[rows], events.used_bytes[rows], excess))
    return HostMemory(tuple(shapes), trace.duration_ps)


@once
def _step_independent(trace: Trace) -> list[tuple[MemoryPeak, npt.NDArray[np.int64], int]]:
    """The parts of the summary that do not depend on steps, per memory with events: (peak, events that its
    small chart draws, excess bytes).
    """
    events = memory_events(trace)
    used = np.flatnonzero(np.diff(events.first)).tolist()
    peaks = [memory_peak(events, memory) for memory in used]
    drawn = [window_events(events, memory, 0, trace.duration_ps, SMALL_PX) for memory in used]
    return list(
        zip(peaks, drawn, (excess_bytes(events, peak.memory, peak.at) for peak in peaks), strict=True)
    )
