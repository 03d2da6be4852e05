"""Processors that a host's thread pools use while it computes: the basis for what a busy thread takes away.

XLA and TensorFlow create compute pools with one thread per processor. The trace has no other record of the
number of processors.
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
    """The compute pools of a host, averaged over its steps."""
    all_steps = steps(trace)
    on_host = np.flatnonzero(np.isin(trace.lines["plane"], planes(trace).hosts))
    names = {line: trace.strings.get(int(trace.lines["name"][line])) for line in on_host.tolist()}
    n_threads = max(
        (sum(name.startswith(prefix) for name in names.values()) for prefix in _COMPUTING), default=0
    )
    begin, end = all_steps.start_ps, all_steps.start_ps + all_steps.duration_ps
    if not len(all_steps) or not n_threads:
        return NO_POOLS
    tasks = regions(trace)
    line = trace.event_line[tasks.event]
    start, stop = trace.events["start_ps"][tasks.event], event_ends(trace, tasks.event)
    busy = 0
    for pool_line in np.unique(line).tolist():
        covered = union_cover(start[line == pool_line], stop[line == pool_line])
        busy += int((covered(end) - covered(begin)).sum())
    return Pools(n_threads, busy / max(int(all_steps.duration_ps.sum()), 1))
