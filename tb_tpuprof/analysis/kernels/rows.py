"""Which events of GPUs are kernels: all events on their streams except copies and fills, with or without
launch details.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.planes import line_events, planes
from tb_tpuprof.trace.trace import Trace

_TRANSFER = re.compile(r"mem(cpy|set|ory)|dma_request", re.IGNORECASE)


def is_transfer(name: str) -> bool:
    """Whether an event of a GPU's stream copies or fills memory: not a kernel, though it may run as one."""
    return _TRANSFER.match(name) is not None


@once
def kernel_mask(trace: Trace) -> npt.NDArray[np.bool_]:
    """For each event, whether it is a kernel: it has `kernel_details`, or is on a GPU's stream and is not a
    copy.

    Kernels that a graph launched (CUDA graphs, XLA's command buffers) may have no details but are still
    kernels.
    """
    result = np.zeros(trace.n_events, np.bool_)
    derived = planes(trace).is_derived_line
    lines = [line for line in trace.lines_of(list(planes(trace).gpus)).tolist() if not derived[line]]
    if not lines:
        return result
    names = metadata_names(trace)
    gpus = np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).gpus))
    is_copy = np.zeros(len(names), np.bool_)
    is_copy[gpus] = [is_transfer(names[row]) for row in gpus.tolist()]
    detailed = np.zeros(trace.n_events, np.bool_)
    detailed[trace.event_stats.texts("kernel_details").owner] = True
    for line in lines:
        rows = line_events(trace, line)
        result[rows] = detailed[rows] | ~is_copy[trace.events["metadata"][rows]]
    return result


def kernel_rows(trace: Trace) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Kernels in ascending order, and the string of each kernel's `kernel_details`, -1 if it has none."""
    rows = np.flatnonzero(kernel_mask(trace)).astype(np.int32)
    details = trace.event_stats.texts("kernel_details")
    owner, text = details.owner, details.value.astype(np.int64, copy=False)
    if len(owner) == len(rows) and np.array_equal(owner, rows):
        return rows, text
    details_of = np.full(trace.n_events, -1, np.int64)
    details_of[owner[::-1]] = text[::-1]
    return rows, details_of[rows]
