"""Compiled operations → the part of their time in which the resource that limits them was not used.

    wasted time = self time × (1 − utilization of the limiting resource)

    fusion.1   ├────── 10 µs ──────┤   FLOPS 20%, HBM 90%: HBM limits it, 1 µs is wasted
    dot.2      ├────── 10 µs ──────┤   FLOPS 60%, HBM 15%: compute limits it, 4 µs are wasted

The limiting resource is the one that the operation uses closest to its peak. Wasted times add up, so that a
group whose operations are limited by different resources does not seem to waste what it uses.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import Roofs, rates

Floats = npt.NDArray[np.float64]


def wasted_ps(ops: HloOps, peaks: Roofs) -> Floats:
    """Wasted time of each operation in ps; NaN if its utilization is unknown: no peak or work is known, more
    was counted than a peak allows, or only FLOPs are known and there are none. Operations that only run
    others are NaN, too: their work is that of the operations they run. Where a device only waits (infeed,
    copy-done) and the work is unknown, all time is wasted.
    """
    speed = rates(ops.work, ops.work_ps, peaks)
    is_known = (speed.efficiency > 0) | (ops.work.knows_bytes & (speed.efficiency == 0))
    has_peak = peaks.flops_per_s > 0 or any(peaks.bytes_per_s)
    unknown = np.where(ops.is_waiting & has_peak, ops.self_ps, np.nan)
    wasted = np.where(is_known, ops.self_ps * (1 - speed.efficiency), unknown)
    return np.where(ops.is_container, np.nan, wasted)
