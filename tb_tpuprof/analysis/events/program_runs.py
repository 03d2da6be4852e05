"""XLA:CPU on one device: the call that dispatches a program → when the program's run on the thread pool
ended.

    thread   │call 1│call 2│call 3│
    pool        ├ run 71 ──────┤├ run 72 ──────┤├ run 73 ──────┤

Calls and runs share no number there, and each program numbers its runs from a base of its own, but runs start
in the order of their calls.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, events_named, first_ints
from tb_tpuprof.trace.trace import Trace

_CALLS = tuple(
    f"{name}::ExecuteHelperOnSingleDevice"
    for name in ("CommonPjRtLoadedExecutable", "PjRtCpuLoadedExecutable")
)


def run_ends(trace: Trace) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Calls and when the run of each ended, in ps; none where calls name their run (several devices), or
    where no call was traced.

    Of more runs than calls the last count: the others were called before the capture began. Of more calls the
    first: the runs of the others began after it.
    """
    none = np.empty(0, np.intp), np.empty(0, np.int64)
    calls = events_named(trace, _CALLS)
    rows, run = first_ints(trace, "run_id")
    if not len(calls) or not len(rows) or planes(trace).has_device or np.isin(calls, rows).any():
        return none
    numbers, which = distinct_codes(run)
    start, end = trace.events["start_ps"][rows], np.zeros(len(numbers), np.int64)
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    np.maximum.at(end, which, start + trace.events["duration_ps"][rows])
    np.minimum.at(first, which, start)
    end = end[np.argsort(first, kind="stable")]
    calls = calls[np.argsort(trace.events["start_ps"][calls], kind="stable")]
    n = min(len(calls), len(numbers))
    return calls[:n].astype(np.intp), end[-n:] if len(numbers) > len(calls) else end[:n]
