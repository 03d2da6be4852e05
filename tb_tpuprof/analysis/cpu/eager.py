"""Operations that TensorFlow ran eagerly: which event is an operation's execution, and the operation's name.

    EagerExecute (is_func 0)       ├─────────────────────────┤
      EagerLocalExecute: MatMul     ├───────────────────────┤      dispatch; names the operation
        EagerKernelExecute                 ├───────────────┤       its kernel: the execution

On CPUs TensorFlow traces no event `MatMul:MatMul` inside. `EagerExecute` with `is_func` 1 calls a function,
whose operations have events of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.events import named_like
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_of, first_ints, metadata_named, values_at
from tb_tpuprof.trace.trace import Trace

DISPATCH, KERNEL, CALL = "EagerLocalExecute: ", "EagerKernelExecute", "EagerExecute"
_FUNCTIONS = tuple(f"{DISPATCH}__{kind}_" for kind in ("inference", "forward", "backward"))


def eager_runs(trace: Trace) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Events (ascending) that execute an operation eagerly, and the metadata row of the dispatch that names
    it (after `DISPATCH`).

    The execution is the kernel's event, which in asynchronous execution is on another thread; if no kernel is
    known, the dispatch. Calls of functions are left out.
    """
    dispatch = named_like(trace, DISPATCH) & np.isin(trace.metadata["plane"], planes(trace).hosts)
    if not dispatch.any():
        return np.empty(0, np.intp), np.empty(0, np.int64)
    kernel, call = (metadata_named(trace, (name,)) for name in (KERNEL, CALL))
    rows = events_of(trace, dispatch | kernel | call)
    rows = rows[~planes(trace).is_derived_line[trace.event_line[rows]]]
    metadata = trace.events["metadata"][rows]
    parent, _ = nest_rows(trace, rows)
    calls_function = call[metadata] & (values_at(rows, *first_ints(trace, "is_func"), 0) != 0)
    is_function = named_like(trace, *_FUNCTIONS)[metadata] | _of_parent(calls_function, parent)
    is_dispatch, runs_kernel = dispatch[metadata], kernel[metadata]
    in_dispatch = runs_kernel & _of_parent(is_dispatch, parent)
    run = np.arange(len(rows))
    run[parent[in_dispatch]] = np.flatnonzero(in_dispatch)
    unmatched = np.flatnonzero(is_dispatch & ~is_function & (run == np.arange(len(rows))))
    run[unmatched] = _queued(trace, rows, unmatched, np.flatnonzero(runs_kernel & (parent < 0)))
    dispatches = np.flatnonzero(is_dispatch & ~is_function)
    dispatches = dispatches[np.argsort(run[dispatches], kind="stable")]
    return rows[run[dispatches]], metadata[dispatches].astype(np.int64)


def _queued(
    trace: Trace, rows: npt.NDArray[np.intp], dispatches: npt.NDArray[np.intp], kernels: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """For each dispatch that only queues its operation, the kernel that another thread ran for it, as an
    index into `rows`.

    A thread's queue is first in, first out. If several threads dispatch or run kernels, or the capture cut
    some off, kernels cannot be assigned; then it is the dispatch itself.
    """
    start, line = trace.events["start_ps"][rows], trace.event_line[rows]
    one_queue = (
        len(dispatches) == len(kernels)
        and len(np.unique(line[dispatches])) == len(np.unique(line[kernels])) == 1
    )
    return kernels if one_queue and bool((start[kernels] >= start[dispatches]).all()) else dispatches


def _of_parent(flag: npt.NDArray[np.bool_], parent: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Whether the event around each event has the flag."""
    result: npt.NDArray[np.bool_] = (parent >= 0) & flag[parent]
    return result
