"""Launches of kernels on the host, by device and step → how many there were, how long they took, and how long
kernels waited.

host      ├launch┤├launch┤                    ├launch┤
stream           ▪kernel   ▪kernel                   ▪kernel
Launch Stats
          ├── step 3 ────┤                    ├step 4┤      first launch to the end of the last
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import launch_to_kernel
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.gpu import stream_events
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Launches:
    """Launches with the kernel of each; a launch that started several kernels stands once for each."""

    launch: Int64s
    kernel: Int64s


@dataclass(frozen=True)
class StepLaunches:
    """Launches of one device by step (`group` of `analysis.grouping`), in time order. `first` is a step's
    first launch.

    A launch lasts as long as the call on the host; a kernel's latency is from its launch's end to its start,
    0 where it started before.
    """

    group: Int64s
    first: Int64s
    start_ps: Int64s
    end_ps: Int64s
    n: Int64s
    longest_ps: Int64s
    mean_ps: npt.NDArray[np.float64]
    longest_latency_ps: Int64s
    mean_latency_ps: npt.NDArray[np.float64]


@once
def kernel_launches(trace: Trace) -> Launches:
    """All launches that have a kernel."""
    launch, made, kernel, used = launch_to_kernel(trace)
    if not len(made):
        return Launches(np.empty(0, np.int64), np.empty(0, np.int64))
    at = np.minimum(np.searchsorted(made, used), len(made) - 1)
    found = np.flatnonzero(made[at] == used)
    return Launches(np.asarray(launch, np.int64)[at[found]], np.asarray(kernel, np.int64)[found])


def step_launches(trace: Trace, plane: int) -> StepLaunches:
    """Launches of a GPU's kernels by the step that they belong to; those outside of steps are not counted."""
    found = kernel_launches(trace)
    is_here = np.zeros(trace.n_events, np.bool_)
    is_here[stream_events(trace, plane)] = True
    group = groups(trace).group[found.launch].astype(np.int64)
    mine = np.flatnonzero(is_here[found.kernel] & (group >= 0))
    launch, kernel, group = found.launch[mine], found.kernel[mine], group[mine]
    start = trace.events["start_ps"][launch]
    order = np.lexsort((start, group))
    launch, kernel, group, start = launch[order], kernel[order], group[order], start[order]
    duration = trace.events["duration_ps"][launch]
    latency = np.maximum(trace.events["start_ps"][kernel] - start - duration, 0)
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    if not len(first):
        none = np.empty(0, np.int64)
        return StepLaunches(none, none, none, none, none, none, none.astype(float), none, none.astype(float))
    n = np.diff(np.append(first, len(group)))
    ends = np.maximum.reduceat(start + duration, first)
    by_time = np.lexsort((-ends, start[first]))
    begins, n = first[by_time], n[by_time]
    return StepLaunches(
        group[begins], launch[begins], start[begins], ends[by_time], n,
        np.maximum.reduceat(duration, first)[by_time], np.add.reduceat(duration, first)[by_time] / n,
        np.maximum.reduceat(latency, first)[by_time], np.add.reduceat(latency, first)[by_time] / n,
    )  # fmt: skip
