"""Events of one line of an accelerator on the device's own clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import line_events
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.native import nest
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DeviceSpans:
    """Events of one line on the device's own clock, sorted by (start, -duration), and their self
    times in ps.
    """

    rows: npt.NDArray[np.intp]
    start_ps: Int64s
    duration_ps: Int64s
    self_ps: Int64s


def device_times(trace: Trace, line: int) -> tuple[npt.NDArray[np.intp], Int64s, Int64s]:
    """Rows, starts and durations of the line's events, sorted by (start, -duration): by the stats
    `device_offset_ps` and `device_duration_ps` if they have them, else by their traced times.
    """
    rows = np.arange(*line_events(trace, line).indices(trace.n_events)[:2])
    offset = values_at(rows, *first_ints(trace, "device_offset_ps"), -1)
    length = values_at(rows, *first_ints(trace, "device_duration_ps"), -1)
    has_device_time = (offset >= 0) & (length >= 0)
    start = np.where(has_device_time, offset, trace.events["start_ps"][rows])
    duration = np.where(has_device_time, length, trace.events["duration_ps"][rows])
    order = np.lexsort((-duration, start))
    return rows[order], start[order], duration[order]


def device_spans(trace: Trace, line: int) -> DeviceSpans:
    """The line's events on the device's own clock, with their self times."""
    rows, start, duration = device_times(trace, line)
    _parent, self_ps = nest(start, start + duration, np.array([0, len(rows)], np.int64))
    return DeviceSpans(rows, start, duration, self_ps)
