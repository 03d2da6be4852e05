"""Work and time of operations against what the device can do at most: rates, operational intensity, what binds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hardware import hardware
from tb_tpuprof.analysis.hlo_work import Work
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.memory_accesses import SPACES
from tb_tpuprof.analysis.planes import planes
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_GIGA = 1e9
TITLES = ("HBM", "CMEM read", "CMEM write", "VMEM read", "VMEM write")
_PLANE_STATS = (
    "peak_cmem_rd_bw_gigabytes_per_second", "peak_cmem_wr_bw_gigabytes_per_second", "peak_vmem_rd_bw_gigabytes_per_second",
    "peak_vmem_wr_bw_gigabytes_per_second",
)  # fmt: skip
UNKNOWN = "Unknown"


@dataclass(frozen=True)
class Roofs:
    """Peaks of one device (TPU: core), 0 where unknown: FLOP/s, and bytes/s of each memory of SPACES.

    `shared_bytes_per_s`: of a GPU's shared memory / L1, to which no operation's bytes are attributed. `source`: where peaks come from
    that the trace does not state.
    """

    flops_per_s: float
    bytes_per_s: tuple[float, ...]
    shared_bytes_per_s: float = 0.0
    source: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is any roof for compute and for memory."""
        return self.flops_per_s > 0 and any(self.bytes_per_s)


@once
def roofs(trace: Trace) -> Roofs:
    """The roofs of one host's devices. On-chip memories of TPUs: stats of the first core's plane."""
    machine = hardware(trace)
    on_chip = [0.0] * len(_PLANE_STATS)
    if machine.kind == "TPU":
        cores = planes(trace).tensor_cores
        for i, key in enumerate(_PLANE_STATS):
            sparse = trace.plane_stats.floats(key)
            found = sparse.value[sparse.owner == (cores[0] if cores else -1)]
            on_chip[i] = float(found[0]) * _GIGA if len(found) and np.isfinite(found[0]) and found[0] > 0 else 0.0
    shared = machine.peak_shared_bytes_per_s if machine.kind == "GPU" else 0.0
    return Roofs(machine.peak_flops_per_s, (machine.peak_hbm_bytes_per_s, *on_chip), shared, machine.peak_source)


def first_roofs(parts: Sequence[Roofs]) -> Roofs:
    """The roofs of several hosts: those of the first that knows any."""
    return next((part for part in parts if part.is_known), parts[0])


@dataclass(frozen=True)
class Rates:
    """Per operation (or sum of them). NaN: not known. Utilizations are rate / peak; `efficiency` is the largest of them.

    `bound_by`: index into (Compute, *TITLES) of the resource used closest to its peak, -1 where none is known.
    `intensity`: FLOPs per byte of all memories; `bound_intensity` of the memory that binds (HBM where compute does).
    """

    flops_per_s: Floats
    model_flops_per_s: Floats
    bytes_per_s: Floats
    space_bytes_per_s: Floats
    intensity: Floats
    space_intensity: Floats
    bound_intensity: Floats
    flops_fraction: Floats
    space_fraction: Floats
    efficiency: Floats
    bound_by: npt.NDArray[np.intp]

    @property
    def memory_fraction(self) -> Floats:
        """Of the memory used closest to its peak."""
        return _largest(self.space_fraction)

    @property
    def optimal_flops_per_s(self) -> Floats:
        """FLOP rate at which what binds would be at its peak: rate / efficiency."""
        return ratio(self.flops_per_s, self.efficiency)

    def bound_text(self, row: int) -> str:
        """What binds an operation, in words."""
        return ("Compute", *TITLES)[self.bound_by[row]] if self.bound_by[row] >= 0 else UNKNOWN


def ratio(above: Floats, below: Floats | Int64s) -> Floats:
    """above / below, NaN where below is 0 or either is unknown."""
    result = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=result, where=np.broadcast_to(np.asarray(below) > 0, np.shape(above)))
    return result


def rates(work: Work, time_ps: Int64s, peaks: Roofs) -> Rates:
    """Rates of work in its time. Formulas: Williams, Waterman, Patterson, CACM 52(4) 2009, doi:10.1145/1498765.1498785."""
    seconds = np.where(work.is_known, time_ps, 0) / 1e12
    flops, model, n_bytes = (ratio(values, seconds) for values in (work.flops, work.model_flops, work.n_bytes))
    space = ratio(work.space_bytes, np.broadcast_to(seconds, work.space_bytes.shape))
    known = np.where(work.is_known, work.flops, np.nan)
    space_intensity = ratio(np.broadcast_to(known, work.space_bytes.shape), work.space_bytes)
    flops_fraction = flops / peaks.flops_per_s if peaks.flops_per_s else np.full(len(flops), np.nan)
    top = np.array(peaks.bytes_per_s)[:, None]
    space_fraction = np.where(top > 0, space / np.where(top > 0, top, 1), np.nan)
    every = np.concatenate([flops_fraction[None], space_fraction])
    efficiency = _largest(every)
    bound = np.full(len(flops), -1, np.intp)
    for i in reversed(range(len(every))):  # of equals the first
        bound[(every[i] == efficiency) & (efficiency > 0)] = i
    at = np.maximum(bound - 1, 0)
    bound_intensity = space_intensity[at, np.arange(len(flops))] if len(flops) else np.empty(0)
    return Rates(
        flops, model, n_bytes, space, ratio(known, work.n_bytes), space_intensity, bound_intensity, flops_fraction, space_fraction,
        efficiency, bound,
    )  # fmt: skip


def _largest(values: Floats) -> Floats:
    """The largest of each column, NaN where all are."""
    found: Floats = np.fmax.reduce(values, axis=0)
    return found


def total_work(work: Work, mask: npt.NDArray[np.bool_]) -> Work:
    """The operations that are marked as one; those whose work is not known add nothing."""
    one = work.kept(mask)
    sums = [np.array([values.sum()]) for values in (one.flops, one.model_flops, one.n_bytes)]
    return Work(sums[0], sums[1], sums[2], one.space_bytes.sum(axis=1, keepdims=True), np.array([bool(one.is_known.any())]))


assert len(TITLES) == len(SPACES)
