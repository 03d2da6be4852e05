"""How many processors the thread pools of a host's program use while it computes: what a busy thread beside
them takes away.

A pool that computes has a thread for each processor: XLA's and TensorFlow's are made so. The trace does not
say how many processors there are otherwise.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.diagnosis.records import NO_POOLS, Pools
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import event_ends, regions
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace

_COMPUTING = ("tf_XLAEigen/", "tf_numa_", "tf_Compute/")


@once
def pools(trace: Trace) -> Pools:
    """The pools of a host's steps."""
    found = steps(trace)
    on_host = np.flatnonzero(np.isin(trace.lines["plane"], planes(trace).hosts))
    names = {line: trace.strings.get(int(trace.lines["name"][line])) for line in on_host.tolist()}
    n = max((sum(name.startswith(prefix) for name in names.values()) for prefix in _COMPUTING), default=0)
    begin, end = found.start_ps, found.start_ps + found.duration_ps
    if not len(found) or not n:
        return NO_POOLS
    task = regions(trace)
    line = trace.event_line[task.event]
    start, stop = trace.events["start_ps"][task.event], event_ends(trace, task.event)
    busy = 0
    for one in np.unique(line).tolist():
        covered = union_cover(start[line == one], stop[line == one])
        busy += int((covered(end) - covered(begin)).sum())
    return Pools(n, busy / max(int(found.duration_ps.sum()), 1))
