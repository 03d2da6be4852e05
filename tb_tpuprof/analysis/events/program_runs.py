"""XLA:CPU on one device: the call that dispatches a program → the end of the program's run on the thread
pool.

    thread   │call 1│call 2│call 3│
    pool        ├ run 71 ──────┤├ run 72 ──────┤├ run 73 ──────┤

Calls and runs share no id there, and each program counts its runs from a different base, but runs start in
the order of their calls.
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
    """Calls (rows) and the end of each call's run in ps; empty if calls name their run (several devices) or
    no call was traced.

    With more runs than calls the last runs count: the others were called before the capture began. With more
    calls than runs the first calls count: the others' runs began after the capture.
    """
    empty = np.empty(0, np.intp), np.empty(0, np.int64)
    calls = events_named(trace, _CALLS)
    rows, run = first_ints(trace, "run_id")
    if not len(calls) or not len(rows) or planes(trace).has_device or np.isin(calls, rows).any():
        return empty
    run_ids, run_of_row = distinct_codes(run)
    start, end = trace.events["start_ps"][rows], np.zeros(len(run_ids), np.int64)
    first = np.full(len(run_ids), np.iinfo(np.int64).max)
    np.maximum.at(end, run_of_row, start + trace.events["duration_ps"][rows])
    np.minimum.at(first, run_of_row, start)
    end = end[np.argsort(first, kind="stable")]
    calls = calls[np.argsort(trace.events["start_ps"][calls], kind="stable")]
    n = min(len(calls), len(run_ids))
    return calls[:n].astype(np.intp), end[-n:] if len(run_ids) > len(calls) else end[:n]
