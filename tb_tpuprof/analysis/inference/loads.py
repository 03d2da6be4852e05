"""What devices do for requests, by phase: FLOPs and bytes, the device time that they take, and which peak
limits it.

    device    ■■■matmul■■■■softmax■■■·custom-call·         device time: all of it, per device
    FLOPs     ███████████  ▏                  ?            known for part of it
    HBM       ▂▂▂▂▂▂▂▂▂▂▂  ██████████         ?

The work of an operation is that of the roofline page: the same operation has the same FLOPs and bytes on
both. Where it is unknown, the device may use up to the whole of a peak: a share of a peak is at least that of
the known work, and at most that and the share of the time without known work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import TOLERANCE
from tb_tpuprof.analysis.events.charging import unions_ps
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.phases import phase_marks
from tb_tpuprof.analysis.inference.piece_work import piece_work
from tb_tpuprof.analysis.inference.record import host_inference
from tb_tpuprof.analysis.inference.work import Part, work
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.ops.roofline import NEAR_A_LIMIT, roofs
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import PS_PER_S

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bound = Literal["compute", "memory", "neither", "unknown"]


@dataclass(frozen=True)
class Load:
    """What devices do for some requests, in sums that can be added over hosts; times in ps.

    `n`: requests, passes or marks. `device_ps`: time in which a device works for them, summed over devices.
    `worked_ps`: time of all operations, of which those with known FLOPs take `flops_ps`, those with known
    bytes `bytes_ps`. `flops`, `hbm_bytes`: known work; `roof_flops`: see Work. `max_flops`, `max_bytes`: what
    the peaks allow in the device time, 0 if unknown.
    """

    n: int = 0
    device_ps: int = 0
    worked_ps: float = 0.0
    flops_ps: float = 0.0
    bytes_ps: float = 0.0
    flops: float = 0.0
    roof_flops: float = 0.0
    hbm_bytes: float = 0.0
    max_flops: float = 0.0
    max_bytes: float = 0.0

    def plus(self, other: Load) -> Load:
        """The sum of both."""
        return Load(*(getattr(self, name) + getattr(other, name) for name in Load.__dataclass_fields__))

    @property
    def unknown_flops(self) -> float:
        """Share of the operations' time whose FLOPs are unknown; 1 if nothing is known."""
        return _share_left(self.flops_ps, self.worked_ps)

    @property
    def unknown_bytes(self) -> float:
        """Share of the operations' time whose bytes are unknown; 1 if nothing is known."""
        return _share_left(self.bytes_ps, self.worked_ps)

    @property
    def flops_fraction(self) -> float | None:
        """Known FLOPs as a share of what the peak allows in the device time; None if the FLOPs of no
        operation or the peak are unknown, or if it exceeds the peak.
        """
        return _fraction(self.roof_flops, self.max_flops, self.flops_ps)

    @property
    def hbm_fraction(self) -> float | None:
        """The same of the bytes to and from HBM."""
        return _fraction(self.hbm_bytes, self.max_bytes, self.bytes_ps)

    @property
    def is_above_a_peak(self) -> bool:
        """Whether work exceeds what a peak allows: its amount, the peak or the times are wrong."""
        above = [(self.roof_flops, self.max_flops), (self.hbm_bytes, self.max_bytes)]
        return any(most > 0 and amount > TOLERANCE * most for amount, most in above)

    @property
    def bound(self) -> Bound:
        """What limits the device while it works: the peak that it certainly comes nearest to, from
        NEAR_A_LIMIT of it on.
        """
        flops, hbm = self.flops_fraction, self.hbm_fraction
        if flops is None or hbm is None:
            return "unknown"
        most_flops, most_hbm = flops + self.unknown_flops, hbm + self.unknown_bytes
        if max(most_flops, most_hbm) < NEAR_A_LIMIT:
            return "neither"
        if flops >= NEAR_A_LIMIT and flops >= most_hbm:
            return "compute"
        return "memory" if hbm >= NEAR_A_LIMIT and hbm >= most_flops else "unknown"


def _share_left(part: float, whole: float) -> float:
    return max(1 - part / whole, 0.0) if whole > 0 else 1.0


def _fraction(amount: float, most: float, known_ps: float) -> float | None:
    if not most or not known_ps or amount > TOLERANCE * most:
        return None
    return min(amount / most, 1.0)


@dataclass(frozen=True)
class HostLoads:
    """The loads of one host by model (its name; empty: all) and phase (NONE: all). `kind`: CPU, GPU or TPU;
    `knows_peaks`: whether both peaks of its devices are known.
    """

    loads: dict[tuple[str, Phase], Load]
    kind: str
    knows_peaks: bool

    def of(self, model: str, phase: Phase = Phase.NONE) -> Load:
        """The load of one model (empty: all) and phase (NONE: all); of nothing if there is none."""
        return self.loads.get((model, phase), Load())

    def phases(self, model: str) -> tuple[Phase, ...]:
        """The phases that the model's requests have."""
        return tuple(phase for phase in Phase if phase is not Phase.NONE and self.of(model, phase).n)


@once
def host_loads(trace: Trace) -> HostLoads:
    """The loads of one host."""
    inference, marks, done = host_inference(trace), phase_marks(trace), work(trace)
    models = inference.models
    pieces = piece_work(trace)
    kept = np.flatnonzero((done.part == Part.DEVICE) & (done.owner >= 0))
    of_execution = np.append(inference.model, inference.batches.model)
    phase = np.append(marks.phase, np.uint8(Phase.NONE))[marks.of_work[kept]]
    rows, key = _grouped(of_execution[done.owner[kept]], phase, len(models))
    rows = kept[rows]
    n = np.bincount(_grouped(inference.model, np.zeros(len(inference), np.uint8), len(models))[1])
    of_mark = np.append(inference.model, -1)[marks.request]
    _, mark_key = _grouped(of_mark, marks.phase, len(models))
    n_marks = np.bincount(mark_key)
    keys, code = distinct_codes(np.concatenate((np.flatnonzero(n), np.flatnonzero(n_marks), key)))
    code = code[len(code) - len(key) :]
    sums = np.stack([np.bincount(code, values[rows], len(keys)) for values in pieces.amounts], axis=1)
    devices = int(pieces.device.max(initial=0)) + 1
    of_device, place = distinct_codes(code * devices + pieces.device[rows])
    busy_ps = unions_ps(place, done.start[rows], done.end[rows], len(of_device))
    device_ps = sum_by(of_device // devices, busy_ps, len(keys))
    peaks = roofs(trace)
    loads = {}
    for one, amounts, load_ps in zip(keys.tolist(), sums.tolist(), device_ps.tolist(), strict=True):
        model, phase_number = divmod(one, len(Phase))
        counted = n_marks if phase_number else n
        most = (peak * (load_ps / PS_PER_S) for peak in (peaks.flops_per_s, peaks.bytes_per_s[0]))
        loads[models[model] if model < len(models) else "", Phase(phase_number)] = Load(
            int(counted[one]) if one < len(counted) else 0,
            load_ps,
            *amounts,
            *most,
        )
    is_known = bool(peaks.flops_per_s and peaks.bytes_per_s[0])
    return HostLoads(loads, planes(trace).hardware, is_known)


def _grouped(
    model: Int64s, phase: npt.NDArray[np.uint8], n_models: int
) -> tuple[npt.NDArray[np.intp], Int64s]:
    """(row, key) of every group that a row is in: all, its phase, its model, its model's phase. A key is
    model × number of phases + phase, where `n_models` stands for all models and NONE for all phases.
    """
    everything, has_phase = np.arange(len(model)), np.flatnonzero(phase != Phase.NONE)
    n = len(Phase)
    rows = [everything, has_phase]
    keys = [np.full(len(model), n_models * n, np.int64), n_models * n + phase[has_phase].astype(np.int64)]
    if n_models:
        has_model = np.flatnonzero(model >= 0)
        both = has_phase[model[has_phase] >= 0]
        rows += [has_model, both]
        keys += [model[has_model] * n, model[both] * n + phase[both].astype(np.int64)]
    return np.concatenate(rows), np.concatenate(keys)


def summed_loads(parts: Sequence[HostLoads]) -> HostLoads:
    """The loads of several hosts together. A share of a peak takes the peaks of all."""
    total: dict[tuple[str, Phase], Load] = {}
    for part in parts:
        for key, load in part.loads.items():
            total[key] = total[key].plus(load) if key in total else load
    knows_peaks = all(part.knows_peaks for part in parts if part.loads)
    return HostLoads(total, parts[0].kind, knows_peaks)
