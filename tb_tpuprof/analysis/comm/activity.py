"""What a device does for communication, as intervals: its operations that move data, and its compute."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.charging import union

Int64s = npt.NDArray[np.int64]
COPY = "copy"


class Traffic(IntEnum):
    """Between what the data moves: two devices, a device and its host's memory, or two places in a device's
    own memory.
    """

    DEVICES = 0
    HOST = 1
    LOCAL = 2


N_TRAFFIC = len(Traffic)


@dataclass(frozen=True)
class CommOp:
    """One operation that moves data. `name`: of the instruction, for an asynchronous one without `-start`;
    for a GPU's copies and PyTorch's collectives the name of the event or the collective.

    `transfers`: its names among the pod's transfers, the one that waits first. `is_async`: timed from its
    start to its done. `size_bytes`: of a copy, 0 if the trace does not state it.
    """

    name: str
    kind: str
    traffic: Traffic
    is_async: bool = False
    transfers: tuple[str, ...] = ()
    size_bytes: int = 0


@dataclass(frozen=True)
class Activity:
    """The intervals of one device in ps: of each run of an operation that moves data, sorted by start, with
    its code into the operations and the event that has its arguments; and of compute, disjoint and ascending.
    """

    start_ps: Int64s
    end_ps: Int64s
    op: Int64s
    event: Int64s
    compute_start_ps: Int64s
    compute_end_ps: Int64s


def activity(runs: tuple[Int64s, Int64s, Int64s, Int64s], compute: tuple[Int64s, Int64s]) -> Activity:
    """The activity of a device. `runs`: starts, ends, operations and events; `compute`: starts and ends in
    any order, which may overlap.
    """
    start, end, op, event = runs
    kept = np.flatnonzero(end > start)
    order = kept[np.lexsort((end[kept], start[kept]))]
    return Activity(start[order], end[order], op[order], event[order], *union(*compute))
