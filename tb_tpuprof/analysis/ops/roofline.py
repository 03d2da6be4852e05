"""Work and time of operations against the device's peaks: rates, operational intensity, and the limiting
resource.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import excess_of, is_above, share_of_peak
from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work, summed_work
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_GIGA = 1e9
Bools = npt.NDArray[np.bool_]
TITLES = ("HBM", "CMEM read", "CMEM write", "VMEM read", "VMEM write")
_PLANE_STATS = (
    "peak_cmem_rd_bw_gigabytes_per_second",
    "peak_cmem_wr_bw_gigabytes_per_second",
    "peak_vmem_rd_bw_gigabytes_per_second",
    "peak_vmem_wr_bw_gigabytes_per_second",
)
_ADDRESS = re.compile(r"https?://\S+ ?")
UNKNOWN, NO_LIMIT, WAITING = "Unknown", "Below every limit", "Waiting"
ABOVE_PEAK = "Counted above the peak"
RESOURCES = ("Compute", *TITLES)
LIMITS = (UNKNOWN, ABOVE_PEAK, WAITING, NO_LIMIT, *RESOURCES)
NEAR_A_LIMIT = 0.3  # of a peak: below it, the operation waits for something other than that resource


@dataclass(frozen=True)
class Roofs:
    """Peaks of one device (TPU: core), 0 where unknown: FLOP/s, and bytes/s of each memory of SPACES.

    `shared_bytes_per_s`: of a GPU's shared memory / L1, to which no operation's bytes are attributed.
    `sources`: the sources of the compute and the HBM peak.
    """

    flops_per_s: float
    bytes_per_s: tuple[float, ...]
    shared_bytes_per_s: float = 0.0
    sources: tuple[str, str] = ("", "")

    @property
    def short_sources(self) -> tuple[str, str]:
        """The sources without URLs."""
        compute, memory = (_ADDRESS.sub("", text).strip() for text in self.sources)
        return compute, memory

    @property
    def is_known(self) -> bool:
        """Whether the peaks of compute and of any memory are known."""
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
            values = sparse.value[sparse.owner == (cores[0] if cores else -1)]
            on_chip[i] = (
                float(values[0]) * _GIGA if len(values) and np.isfinite(values[0]) and values[0] > 0 else 0.0
            )
    shared = machine.peak_shared_bytes_per_s if machine.kind == "GPU" else 0.0
    return Roofs(
        machine.peak_flops_per_s, (machine.peak_hbm_bytes_per_s, *on_chip), shared, machine.peak_sources
    )


def first_roofs(parts: Sequence[Roofs]) -> Roofs:
    """The roofs of the first host whose roofs are known."""
    return next((part for part in parts if part.is_known), parts[0])


@dataclass(frozen=True)
class Rates:
    """One row per operation, or per sum of operations. NaN: unknown. Utilizations are rate / peak, by the
    rule of `attainable`; `efficiency` is the largest of them.

    `nearest`: index into (Compute, *TITLES) of the resource used closest to its peak, -1 if none is known or
    used. `is_above`: more was counted than a peak allows, so neither is known. `intensity`: FLOPs per byte of
    all memories; `bound_intensity`: FLOPs per byte of the memory nearest to its peak (HBM if compute is
    nearest).
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
    nearest: npt.NDArray[np.intp]
    is_above: Bools

    @property
    def memory_fraction(self) -> Floats:
        """Utilization of the memory used closest to its peak."""
        return _largest(self.space_fraction)

    @property
    def optimal_flops_per_s(self) -> Floats:
        """FLOP rate at which the limiting resource would reach its peak: rate / efficiency. For operands of
        another precision than the peak's, the peak is that of their precision.
        """
        return ratio(self.flops_per_s, self.efficiency)

    def nearest_text(self, row: int) -> str:
        """The resource that an operation uses closest to its peak, however low its utilization."""
        unknown = ABOVE_PEAK if self.is_above[row] else UNKNOWN
        return RESOURCES[self.nearest[row]] if self.nearest[row] >= 0 else unknown

    def limits(self, is_waiting: Bools) -> npt.NDArray[np.intp]:
        """The limit of each operation, as an index into LIMITS: the resource it uses closest to its peak, if
        it comes near.

        An operation below NEAR_A_LIMIT of every peak has no limit (`NO_LIMIT`); one that only waits is
        `WAITING`.
        """
        is_near = (self.nearest >= 0) & (np.nan_to_num(self.efficiency) >= NEAR_A_LIMIT)
        limit = np.where(is_near, self.nearest + len(LIMITS) - len(RESOURCES), LIMITS.index(NO_LIMIT))
        limit[np.isnan(self.efficiency)] = LIMITS.index(UNKNOWN)
        limit[self.is_above] = LIMITS.index(ABOVE_PEAK)
        limit[is_waiting] = LIMITS.index(WAITING)
        return limit.astype(np.intp)


def limit_text(nearest: str, share: float, name: str) -> str:
    """The limit of an operation called `name` that uses `nearest` closest to its peak, at the fraction
    `share` of it: `nearest` or a text of LIMITS. `nearest` may be UNKNOWN or ABOVE_PEAK.
    """
    if is_waiting("", name.rpartition("/")[2]):
        return WAITING
    is_known = nearest not in (UNKNOWN, ABOVE_PEAK)
    return NO_LIMIT if is_known and share < NEAR_A_LIMIT else nearest


def in_words(resource: str) -> str:
    """A resource's name within a sentence."""
    return resource.lower() if resource == RESOURCES[0] else resource


def ratio(numerator: Floats, denominator: Floats | Int64s) -> Floats:
    """numerator / denominator, NaN if the denominator is 0 or either is unknown."""
    result = np.full(np.shape(numerator), np.nan)
    np.divide(
        numerator,
        denominator,
        out=result,
        where=np.broadcast_to(np.asarray(denominator) > 0, np.shape(numerator)),
    )
    return result


def possible_work(work: Work, time_ps: Int64s, peaks: Roofs) -> Work:
    """The work of operations; unknown where more was counted than the device can do in their time. Model
    FLOPs are not judged: of 8-bit operands a TPU states them as they are, and as `flops` half of them, which
    is what compares with the peak.
    """
    seconds = time_ps / 1e12
    amounts = ((work.roof_flops, peaks.flops_per_s), *zip(work.space_bytes, peaks.bytes_per_s, strict=True))
    excess = np.stack([excess_of(amount, seconds, peak) for amount, peak in amounts])
    return work.without(excess) if excess.any() else work


def rates(work: Work, time_ps: Int64s, peaks: Roofs) -> Rates:
    """Rates of work in its time. Formulas: Williams, Waterman, Patterson, CACM 52(4) 2009,
    doi:10.1145/1498765.1498785.
    """
    seconds, bytes_seconds = (
        np.where(is_known, time_ps, 0) / 1e12 for is_known in (work.knows_flops, work.knows_bytes)
    )
    peak_bytes_per_s = np.array(peaks.bytes_per_s)[:, None]
    roof_rate = ratio(work.roof_flops, seconds)
    space = ratio(work.space_bytes, np.broadcast_to(bytes_seconds, work.space_bytes.shape))
    space_above = is_above(space, peak_bytes_per_s)
    flops_above, bytes_above = is_above(roof_rate, peaks.flops_per_s), space_above.any(axis=0)
    knows_flops, knows_bytes = work.knows_flops & ~flops_above, work.knows_bytes & ~bytes_above
    flops, model = (
        np.where(knows_flops, ratio(values, seconds), np.nan) for values in (work.flops, work.model_flops)
    )
    n_bytes = np.where(knows_bytes, ratio(work.n_bytes, bytes_seconds), np.nan)
    space = np.where(bytes_above, np.nan, space)
    flops_or_nan = np.where(knows_flops, work.flops, np.nan)
    space_bytes = np.where(knows_bytes, work.space_bytes, 0.0)
    space_intensity = ratio(np.broadcast_to(flops_or_nan, work.space_bytes.shape), space_bytes)
    fractions = np.concatenate(
        [share_of_peak(roof_rate, peaks.flops_per_s)[None], share_of_peak(space, peak_bytes_per_s)]
    )
    above = work.is_miscounted | flops_above | bytes_above
    efficiency = np.where(above, np.nan, _largest(fractions))
    nearest = np.full(len(flops), -1, np.intp)
    for i in reversed(range(len(fractions))):  # the first of equals
        nearest[(fractions[i] == efficiency) & (efficiency > 0)] = i
    memory = np.maximum(nearest - 1, 0)
    bound_intensity = space_intensity[memory, np.arange(len(flops))]
    return Rates(
        flops,
        model,
        n_bytes,
        space,
        ratio(flops_or_nan, np.where(knows_bytes, work.n_bytes, 0.0)),
        space_intensity,
        bound_intensity,
        fractions[0],
        fractions[1:],
        efficiency,
        nearest,
        above,
    )


def _largest(values: Floats) -> Floats:
    """The largest value of each column, NaN if all are NaN."""
    largest: Floats = np.fmax.reduce(values, axis=0)
    return largest


def total_work(work: Work, mask: Bools) -> Work:
    """The sum of the operations that `mask` marks, as one row; unknown work adds nothing."""
    return summed_work(work, np.zeros(len(work.flops), np.int64), 1, mask)


assert len(TITLES) == len(SPACES)
