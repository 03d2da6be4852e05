"""Kernel launches on the host, by device and step → their number, their duration, and the latency of kernels.

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
    """Pairs of launch and kernel (rows); a launch that started several kernels has one pair for each."""

    launch: Int64s
    kernel: Int64s


@dataclass(frozen=True)
class StepLaunches:
    """Launches of one device by step (`group` of `analysis.steps.grouping`), in time order. `first` is the
    first launch of a step.

    A launch lasts as long as the call on the host; a kernel's latency is from its launch's end to its start,
    0 if it started earlier.
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
    launch, launch_key, kernel, kernel_key = launch_to_kernel(trace)
    if not len(launch_key):
        return Launches(np.empty(0, np.int64), np.empty(0, np.int64))
    position = np.minimum(np.searchsorted(launch_key, kernel_key), len(launch_key) - 1)
    is_match = np.flatnonzero(launch_key[position] == kernel_key)
    return Launches(np.asarray(launch, np.int64)[position[is_match]], np.asarray(kernel, np.int64)[is_match])


def step_launches(trace: Trace, plane: int) -> StepLaunches:
    """Launches of a GPU's kernels by step; those outside of steps are not counted."""
    launches = kernel_launches(trace)
    is_here = np.zeros(trace.n_events, np.bool_)
    is_here[stream_events(trace, plane)] = True
    group = groups(trace).group[launches.launch].astype(np.int64)
    counted = np.flatnonzero(is_here[launches.kernel] & (group >= 0))
    launch, kernel, group = launches.launch[counted], launches.kernel[counted], group[counted]
    start = trace.events["start_ps"][launch]
    order = np.lexsort((start, group))
    launch, kernel, group, start = launch[order], kernel[order], group[order], start[order]
    duration = trace.events["duration_ps"][launch]
    latency = np.maximum(trace.events["start_ps"][kernel] - start - duration, 0)
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    if not len(first):
        empty = np.empty(0, np.int64)
        return StepLaunches(
            empty, empty, empty, empty, empty, empty, empty.astype(float), empty, empty.astype(float)
        )
    n = np.diff(np.append(first, len(group)))
    ends = np.maximum.reduceat(start + duration, first)
    by_time = np.lexsort((-ends, start[first]))
    begins, n = first[by_time], n[by_time]
    return StepLaunches(
        group[begins], launch[begins], start[begins], ends[by_time], n,
        np.maximum.reduceat(duration, first)[by_time], np.add.reduceat(duration, first)[by_time] / n,
        np.maximum.reduceat(latency, first)[by_time], np.add.reduceat(latency, first)[by_time] / n,
    )  # fmt: skip
