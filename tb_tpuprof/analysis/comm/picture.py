"""One step of one device as boxes: its compute, its operations in lanes, and what is exposed of them.

Compute    ■■■■■■■■■■   ■■■■■■  ▒▒ all-reduce
Lane 1       ░░░░░░░▒▒▒                            hidden, then exposed
Exposed             ▬▬▬         ▬▬
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.comm.activity import Activity
from tb_tpuprof.analysis.comm.host import Devices
from tb_tpuprof.analysis.comm.marks import exposed_stretches
from tb_tpuprof.analysis.events.charging import union
from tb_tpuprof.analysis.steps.windows import clipped, windows_of
from tb_tpuprof.native import lanes

Int64s = npt.NDArray[np.int64]
COMPUTE, HIDDEN, PARTLY, EXPOSED, TOTAL = "compute", "hidden", "partly", "exposed", "total"
MOST_RUNS, MOST_CUTS = 1_500, 10_000
_FINEST = 2_000  # of the step: shorter gaps are not drawn
_NO_LANE = -1


@dataclass(frozen=True)
class Boxes:
    """Boxes in ps from the step's start. `lane`: 0 is compute, then one for each operation at the same time,
    −1 for the exposed time of all together. `op`: code of the operation, −1 for compute. `n_left_out`: the
    shortest runs, which are beyond what a picture can show.
    """

    lane: Int64s
    kind: tuple[str, ...]
    op: Int64s
    start_ps: Int64s
    duration_ps: Int64s
    n_left_out: int


def picture(devices: Devices, core: int, step: int) -> Boxes:
    """A step of a device."""
    begin, total = int(devices.begin_ps[core, step]), int(devices.total_ps[core, step])
    device = devices.activities[core]
    drawn, n_left_out = _longest(device, begin, begin + total)
    runs = device.start_ps[drawn], device.end_ps[drawn]
    finest = max(total // _FINEST, 1)
    compute = _without_gaps((device.compute_start_ps, device.compute_end_ps), finest)
    while _n_cuts(runs, compute) > MOST_CUTS and finest < total:
        finest *= 4
        compute = _without_gaps(compute, finest)
    kept = Activity(
        device.start_ps[drawn], device.end_ps[drawn], device.op[drawn], device.event[drawn], *compute
    )
    in_lane = np.array([op.is_async or devices.kind != "TPU" for op in devices.ops], np.bool_)
    lane = _lanes(kept, in_lane)
    parts = [_compute_boxes(compute), *_run_boxes(kept, lane), _exposed_boxes(kept, finest)]
    box_lane, kind, op, start, end = (np.concatenate([part[i] for part in parts]) for i in range(5))
    box, _step, first, last = clipped(start, end, windows_of(np.array([begin]), np.array([total])))
    return Boxes(box_lane[box], tuple(kind[box].tolist()), op[box], first - begin, last - first, n_left_out)


Part = tuple[Int64s, npt.NDArray[np.object_], Int64s, Int64s, Int64s]


def _part(lane: Int64s, kind: str, op: Int64s, start: Int64s, end: Int64s) -> Part:
    return lane, np.full(len(start), kind, object), op, start, end


def _without_gaps(spans: tuple[Int64s, Int64s], finest: int) -> tuple[Int64s, Int64s]:
    """Intervals joined where less than `finest` is between them."""
    bridged = finest - 1
    start, end = union(spans[0], spans[1] + bridged)
    return start, end - bridged


def _n_cuts(runs: tuple[Int64s, Int64s], compute: tuple[Int64s, Int64s]) -> int:
    """The number of stretches of compute in all runs together."""
    inside = np.searchsorted(compute[0], runs[1]) - np.searchsorted(compute[1], runs[0], side="right")
    return int(inside.sum())


def _longest(device: Activity, begin: int, end: int) -> tuple[npt.NDArray[np.intp], int]:
    """The runs in a window, at most MOST_RUNS, in time order; and the number of the others."""
    rows = np.flatnonzero((device.end_ps > begin) & (device.start_ps < end))
    length = np.minimum(device.end_ps[rows], end) - np.maximum(device.start_ps[rows], begin)
    longest = np.sort(rows[np.argsort(-length, kind="stable")[:MOST_RUNS]])
    return longest, len(rows) - len(longest)


def _lanes(device: Activity, in_lane: npt.NDArray[np.bool_]) -> Int64s:
    """0 for operations on the line of a TensorCore's compute; for all others the first lane, from 1, that is
    free and below those of operations around it.
    """
    lane = np.zeros(len(device.op), np.int64)
    rows = np.flatnonzero(in_lane[device.op]) if len(in_lane) else np.empty(0, np.intp)
    rows = rows[np.lexsort((device.start_ps[rows] - device.end_ps[rows], device.start_ps[rows]))]
    depth = np.zeros(len(rows), np.uint16)
    length = device.end_ps[rows] - device.start_ps[rows]
    lanes(device.start_ps[rows], length, np.array([0, len(rows)], np.int64), depth)
    lane[rows] = depth.astype(np.int64) + 1
    return lane


def _compute_boxes(compute: tuple[Int64s, Int64s]) -> Part:
    n = len(compute[0])
    return _part(np.zeros(n, np.int64), COMPUTE, np.full(n, -1, np.int64), *compute)


def _run_boxes(device: Activity, lane: Int64s) -> list[Part]:
    """Each run cut where compute begins and ends."""
    compute = windows_of(device.compute_start_ps, device.compute_end_ps - device.compute_start_ps)
    run, _, start, end = clipped(device.start_ps, device.end_ps, compute)
    opens = np.append(np.int64(-(2**62)), device.compute_end_ps)
    closes = np.append(device.compute_start_ps, np.int64(2**62))
    bare, _, bare_start, bare_end = clipped(device.start_ps, device.end_ps, windows_of(opens, closes - opens))
    has_exposed = np.zeros(len(device.op), np.bool_)
    has_exposed[bare] = True
    partly = has_exposed[run]
    return [
        *(
            _part(lane[run[mask]], kind, device.op[run[mask]], start[mask], end[mask])
            for kind, mask in ((HIDDEN, ~partly), (PARTLY, partly))
        ),
        _part(lane[bare], EXPOSED, device.op[bare], bare_start, bare_end),
    ]


def _exposed_boxes(device: Activity, finest: int) -> Part:
    start, end, _run = exposed_stretches(device)
    first, last = _without_gaps((start, end), finest)
    n = len(first)
    return _part(np.full(n, _NO_LANE, np.int64), TOTAL, np.full(n, -1, np.int64), first, last)
