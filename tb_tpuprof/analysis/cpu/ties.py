"""XLA:CPU on several devices: the call that executes a program → the operations that its devices ran on the
pool's threads.

The call on the step's thread (`CommonPjRtLoadedExecutable::Execute`) and each operation name the same
`run_id`. The tasks between them are not all traced, and those that are can mislead: a run waits for the one
before it, so that a task of one step begins the next step's work.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, marked, values_at
from tb_tpuprof.trace.trace import Trace


def run_ties(trace: Trace) -> npt.NDArray[np.int64]:
    """Pairs (call, what ran): events of one `run_id`; the call is the one of them that lies in no other and
    starts first.

    None where there is an accelerator, whose launches are tied otherwise. What lies inside another event of
    its run is left out: it belongs to whom that one belongs.
    """
    rows, run = first_ints(trace, "run_id")
    if planes(trace).has_device or not len(rows):
        return np.empty((0, 2), np.int64)
    above = parents(trace)
    around = above[rows]
    is_outer = values_at(np.maximum(around, 0), rows, run, np.iinfo(np.int64).min) != run
    is_outer |= around < 0
    rows, run = rows[is_outer], run[is_outer]
    order = np.lexsort((trace.events["start_ps"][rows], run))
    rows, run = rows[order].astype(np.int64), run[order]
    is_first = np.append(True, run[1:] != run[:-1])[: len(run)]
    call = rows[is_first][np.cumsum(is_first) - 1]
    names_op = np.zeros(trace.n_events, np.bool_)
    names_op[marked(trace.event_stats.texts("hlo_op").owner, trace.n_events)] = True
    kept = (
        ~is_first & ~names_op[call]
    )  # where the call itself was not traced, operations do not cause one another
    pairs: npt.NDArray[np.int64] = np.column_stack((call, rows))[kept]
    return pairs
