"""XLA:CPU on several devices: the call that executes a program → the operations that its devices ran on the
pool's threads.

The call on the step's thread (`CommonPjRtLoadedExecutable::Execute`) and each operation name the same
`run_id`. Not all tasks between them are traced, and the traced ones can mislead: a run waits for the previous
one, so a task of one step can begin the work of the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.trace.trace import Trace


def run_ties(trace: Trace) -> npt.NDArray[np.int64]:
    """Pairs (call, event that it ran) of events of one `run_id`, int64[n, 2]. The call is the event of the
    run that starts first and is inside no other of them.

    Empty if there is an accelerator, whose launches are tied otherwise. Events inside another event of their
    run are left out: they belong to that event's call.
    """
    rows, run = first_ints(trace, "run_id")
    if planes(trace).has_device or not len(rows):
        return np.empty((0, 2), np.int64)
    parent = parents(trace)
    enclosing = parent[rows]
    is_outer = values_at(np.maximum(enclosing, 0), rows, run, np.iinfo(np.int64).min) != run
    is_outer |= enclosing < 0
    rows, run = rows[is_outer], run[is_outer]
    order = np.lexsort((trace.events["start_ps"][rows], run))
    rows, run = rows[order].astype(np.int64), run[order]
    is_first = np.append(True, run[1:] != run[:-1])[: len(run)]
    call = rows[is_first][np.cumsum(is_first) - 1]
    names_op = np.zeros(trace.n_events, np.bool_)
    names_op[trace.event_stats.texts("hlo_op").owner] = True
    is_tied = (
        ~is_first & ~names_op[call]
    )  # if the call itself was not traced, the first event is an operation, which causes no others
    pairs: npt.NDArray[np.int64] = np.column_stack((call, rows))[is_tied]
    return pairs
