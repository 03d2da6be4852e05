"""A device's intervals → which part of its communication compute hides, and which part is exposed.

    compute      ■■■■■■■■■        ■■■■■
    all-gather       ├──────────┤                hidden 5, exposed 6
    copy           ├───────────────────┤         hidden 2 + 4, exposed 2
    charged to       ggggggggggggggcccccc        the copy also has the 2 before the all-gather begins

Communication time is the union of the intervals of all operations that move data on one device. Hidden is the
part of it during which the device computes, exposed the rest. Where several operations are in flight, each
moment is charged to the one that ends first: that is the one which the device can wait for next (a TPU core
waits for one done after another). So the times of the operations add up to the union, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import Activity
from tb_tpuprof.analysis.events.charging import union_cover
from tb_tpuprof.analysis.steps.windows import Windows, clipped, windows_of
from tb_tpuprof.native import ending_first

Int64s = npt.NDArray[np.int64]
# A run of which compute covers this share counts as hidden, and as exposed, as in XProf.
HIDDEN_FROM, EXPOSED_TO = 0.9, 0.1


@dataclass(frozen=True)
class Pieces:
    """Disjoint stretches of communication in time order: starts and ends in ps, and the run (a row of the
    activity) that each is charged to.
    """

    start_ps: Int64s
    end_ps: Int64s
    run: Int64s


@dataclass(frozen=True)
class Exposure:
    """One row per run of an operation and step: hidden and exposed time that is charged to it there, and the
    time from its start to its end within the step, in ps. `begins`: whether the run begins in this step.

    `compute_ps`: the time of each step in which the device computes.
    """

    run: Int64s
    step: Int64s
    hidden_ps: Int64s
    exposed_ps: Int64s
    elapsed_ps: Int64s
    begins: npt.NDArray[np.bool_]
    compute_ps: Int64s


def pieces(device: Activity) -> Pieces:
    """The communication of a device, each moment charged to one run."""
    return Pieces(*ending_first(device.start_ps, device.end_ps))


def exposure(device: Activity, start_ps: Int64s, duration_ps: Int64s) -> Exposure:
    """The hidden and exposed time of a device in each of its steps, which begin at `start_ps`.

    Steps may overlap: then a moment counts in each of them.
    """
    order = np.argsort(start_ps, kind="stable")
    steps = windows_of(start_ps[order], duration_ps[order])
    computed = union_cover(device.compute_start_ps, device.compute_end_ps)
    of_run = _elapsed(device, steps)
    charged_to = pieces(device)
    piece, step, begin, end = clipped(charged_to.start_ps, charged_to.end_ps, steps)
    hidden = computed(end) - computed(begin)
    n_steps = len(order)
    key = charged_to.run[piece] * n_steps + step
    row = np.searchsorted(of_run.key, key)
    sums = np.zeros((2, len(of_run.key)), np.int64)
    np.add.at(sums[0], row, hidden)
    np.add.at(sums[1], row, end - begin - hidden)
    compute_ps = np.zeros(n_steps, np.int64)
    compute_ps[order] = computed(steps.end) - computed(steps.start)
    run = of_run.key // max(n_steps, 1)
    return Exposure(
        run,
        order[of_run.key % max(n_steps, 1)].astype(np.int64),
        sums[0],
        sums[1],
        of_run.elapsed_ps,
        of_run.begins,
        compute_ps,
    )


@dataclass(frozen=True)
class _InSteps:
    """Runs by the steps that they overlap: `key` is run × number of steps + step, ascending."""

    key: Int64s
    elapsed_ps: Int64s
    begins: npt.NDArray[np.bool_]


def _elapsed(device: Activity, steps: Windows) -> _InSteps:
    run, step, begin, end = clipped(device.start_ps, device.end_ps, steps)
    key = run * len(steps.start) + step
    order = np.argsort(key, kind="stable")
    return _InSteps(key[order], (end - begin)[order], (begin == device.start_ps[run])[order])


def coverage(device: Activity) -> npt.NDArray[np.float64]:
    """The share of each run from its start to its end during which the device computes, whatever else is in
    flight.
    """
    computed = union_cover(device.compute_start_ps, device.compute_end_ps)
    length = np.maximum(device.end_ps - device.start_ps, 1)
    result: npt.NDArray[np.float64] = (computed(device.end_ps) - computed(device.start_ps)) / length
    return result
