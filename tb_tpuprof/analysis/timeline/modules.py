"""An event of a device → the program that ran on the device at that time, by its line of programs."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.events.planes import MODULE_LINES, line_events, lines_named
from tb_tpuprof.trace.trace import Trace


def module_around(trace: Trace, event: int) -> str:
    """Name of the program, such as `jit_step(56)`, that was running on the event's plane when it began; empty
    if none was.
    """
    start_ps = int(trace.events["start_ps"][event])
    plane = int(trace.lines["plane"][trace.event_line[event]])
    for line in lines_named(trace, plane, MODULE_LINES):
        span = line_events(trace, line)
        module = span.start + int(np.searchsorted(trace.events["start_ps"][span], start_ps, side="right")) - 1
        if module >= span.start and start_ps < int(
            trace.events["start_ps"][module] + max(trace.events["duration_ps"][module], 1)
        ):
            return trace.strings.get(int(trace.event_names[trace.events["metadata"][module]]))
    return ""
