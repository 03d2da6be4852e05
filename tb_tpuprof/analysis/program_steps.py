"""Steps of a JAX program that annotates none: from one call of its main program to the next.

    thread   │update│ … Python … │mean││update│ … Python … │mean││update│
    step     ├─────────────────────────┤├────────────────────────┤

The main program is the one after whose calls most time passes until the next program is called, if it is called three times or more:
waiting for its result is in that time, as is whatever else the loop does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.metadata_names import metadata_names
from tb_tpuprof.analysis.nesting import parents
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.trace.trace import Trace

_CALL = "PjitFunction("
_FEW = 3


@once
def main_calls(trace: Trace) -> npt.NDArray[np.intp]:
    """The calls of the main program on the thread that calls most, by start; none where no program is called three times."""
    none = np.empty(0, np.intp)
    is_call = np.array([name.startswith(_CALL) for name in metadata_names(trace)], np.bool_)
    is_call &= np.isin(trace.metadata["plane"], planes(trace).hosts)
    if not is_call.any():
        return none
    rows = np.flatnonzero(is_call[trace.events["metadata"]])
    above = parents(trace)[rows]
    rows = rows[~_inside_call(trace, above, is_call)]
    if not len(rows):
        return none
    line = trace.event_line[rows]
    rows = rows[line == np.bincount(line).argmax()]
    start = trace.events["start_ps"][rows].astype(np.int64)
    until = np.append(start[1:], start[-1:] + trace.events["duration_ps"][rows[-1:]])
    name = trace.metadata["name"][trace.events["metadata"][rows]]
    found, which, count = np.unique(name, return_inverse=True, return_counts=True)
    passed = np.bincount(which, weights=until - start, minlength=len(found))
    passed[count < _FEW] = -1
    if passed.max() < 0:
        return none
    chosen: npt.NDArray[np.intp] = rows[which == passed.argmax()]
    return chosen


def _inside_call(trace: Trace, above: npt.NDArray[np.int32], is_call: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether a call is around each event, given what directly contains it."""
    parent, at = parents(trace), above.copy()
    found = np.zeros(len(above), np.bool_)
    while (at >= 0).any():
        open_ = at >= 0
        found[open_] |= is_call[trace.events["metadata"][at[open_]]]
        at[open_] = parent[at[open_]]
    return found
