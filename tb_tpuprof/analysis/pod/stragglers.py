"""Which hosts and cores hold the others up: since which step, in what, and what the job would gain without.

What counts is a core's own time: its step without waiting for others. A unit (a host, or a core) is compared
with the median of the *other* units in the same step, so that what all do together, a slow step or a short
one, cancels out:

    r[unit, step] = ln(own time / median own time of the others) sigma         = the noise of r: its usual
    change from one step to the next, which a lasting slowness does not touch since         = the step k from
    which mean(r[k:]) · √(n − k) / sigma is largest; that maximum is the evidence

A unit is accused if it is at least 5 % slower from then on (mean and median), if the evidence is beyond what
the noise of so many units and steps brings about by chance, and if it stands out of the other units' own
lasting differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.parts import Part

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

MIN_STEPS = 5
LEAST_EXCESS = 0.05
_MARGIN = 3.0  # sigmas beyond the largest that chance brings about
_OUTSTANDING = 4.0  # times the other units' usual difference
_TINY = 1e-6
_CAUSES: dict[str, tuple[Part, ...]] = {
    "compute": (Part.HIGH_FLOPS, Part.LOW_FLOPS, Part.COMPUTE, Part.HOST_COMPUTE, Part.PYTHON, Part.COMPILE),
    "input": (Part.INPUT, Part.OUTPUT),
    "network": (Part.COLLECTIVE, Part.SEND, Part.DEVICE_COPY, Part.COPY_WAIT),
    "idle": (Part.IDLE, Part.WAIT, Part.LAUNCH),
}


@dataclass(frozen=True)
class Slow:
    """A unit that is slower than the others from step `since` on, by `excess_ps` per step, and how much of it
    each cause takes.

    `own_ps`, `usual_ps`: its own time and the median of the others', means of these steps.
    """

    unit: int
    since: int
    excess_ps: float
    excess_fraction: float
    evidence: float
    causes: dict[str, float]
    own_ps: float
    usual_ps: float

    @property
    def cause(self) -> str:
        """What takes most of the excess."""
        return max(self.causes, key=lambda name: self.causes[name])


@dataclass(frozen=True)
class Straggler:
    """A host (`core` -1: all of its cores) or a core.

    `gain_ps`: what the job would save of each step, `job_ps`, if it were like the median; means of the steps
    in which it is slow.
    """

    host: str
    core: int
    slow: Slow
    gain_ps: float
    job_ps: float

    @property
    def gain_fraction(self) -> float:
        """Share of the job's step that would be saved."""
        return self.gain_ps / max(self.job_ps, 1.0)


def others_median(own: Floats) -> Floats:
    """For each unit and step the median of the other units; with two units the other one. Shape [n_units,
    n_steps], n_units ≥ 2.
    """
    n = len(own)
    low, high = (n - 2) // 2, (n - 1) // 2  # of n - 1 others
    by_step = np.partition(own.T, sorted({low, low + 1, high, high + 1}), axis=1)
    # Without a unit of at most the median's place, those above it move down by one.
    at_low, at_high = (
        np.where(own <= by_step[:, at], by_step[:, at + 1], by_step[:, at]) for at in (low, high)
    )
    result: Floats = (at_low + at_high) / 2
    return result


def slow_units(
    own_ps: npt.NDArray[np.number], part_ps: npt.NDArray[np.number] | None = None
) -> tuple[Slow, ...]:
    """Units that are slower than the others, slowest first. `own_ps`: [unit, step]; `part_ps`: [unit, step,
    part] tells the cause.
    """
    own = np.asarray(own_ps, np.float64)
    n_units, n_steps = own.shape
    if n_units < 2 or n_steps < MIN_STEPS:
        return ()
    usual = others_median(own)
    ratio = np.log(np.maximum(own, 1.0) / np.maximum(usual, 1.0))
    step_noise = np.abs(np.diff(ratio, axis=1))
    sigma = max(
        float(np.median(step_noise)) / 0.6745 / np.sqrt(2),
        float(np.sqrt(np.mean(np.minimum(step_noise, 1.0) ** 2) / 2)) / 4,
        _TINY,
    )
    since, level, evidence = _onset(ratio, sigma)
    chance = np.sqrt(2 * np.log(max(n_units * n_steps, 2))) + _MARGIN
    usual_level = _usual_level(ratio)
    least = np.log1p(LEAST_EXCESS)
    suspects = np.flatnonzero((level >= least) & (evidence >= chance) & (level >= _OUTSTANDING * usual_level))
    found = []
    spent = _Spent(part_ps)
    for unit in suspects.tolist():
        rows = slice(int(since[unit]), n_steps)
        if np.median(ratio[unit, rows]) < least:
            continue
        excess = float((own[unit, rows] - usual[unit, rows]).mean())
        fraction = excess / max(float(usual[unit, rows].mean()), 1.0)
        times = float(own[unit, rows].mean()), float(usual[unit, rows].mean())
        found.append(
            Slow(unit, rows.start, excess, fraction, float(evidence[unit]), spent.causes(unit, rows), *times)
        )
    return tuple(sorted(found, key=lambda slow: -slow.excess_ps))


def _onset(ratio: Floats, sigma: float) -> tuple[Int64s, Floats, Floats]:
    """Of each unit the first slow step, the mean from there on, and the evidence. At least MIN_STEPS - 2
    steps must follow.
    """
    n_steps = ratio.shape[1]
    length = np.arange(n_steps, 0, -1)
    mean = np.cumsum(ratio[:, ::-1], axis=1)[:, ::-1] / length
    evidence = mean * np.sqrt(length) / sigma
    evidence[:, n_steps - MIN_STEPS + 3 :] = -np.inf
    since = evidence.argmax(axis=1)
    at = np.arange(len(ratio))
    return since.astype(np.int64), mean[at, since], evidence[at, since]


def _usual_level(ratio: Floats) -> float:
    """How far units usually lie from the others for good: the median distance, a normal
    distribution's sigma.
    """
    if len(ratio) < 4:
        return 0.0
    return float(np.median(np.abs(np.median(ratio, axis=1)))) / 0.6745


class _Spent:
    """Time by cause of each unit and step, beside the other units' median; made once for all units that are
    slow.
    """

    def __init__(self, part_ps: npt.NDArray[np.number] | None) -> None:
        self.part_ps = part_ps

    def causes(self, unit: int, rows: slice) -> dict[str, float]:
        """A unit's excess over the others by cause, in ps a step; of compute and unknown where
        parts are not.
        """
        return {name: float(excess[unit, rows].mean()) for name, excess in self._excess.items()} or {
            "compute": 0.0
        }

    @cached_property
    def _excess(self) -> dict[str, Floats]:
        if self.part_ps is None:
            return {}
        spent = {
            name: np.asarray(sum(self.part_ps[:, :, part] for part in parts), np.float64)
            for name, parts in _CAUSES.items()
        }
        return {name: one - others_median(one) for name, one in spent.items()}


def gain(
    own_ps: npt.NDArray[np.number], slow: Slow, is_synchronous: bool, unit_of: Int64s | None = None
) -> float:
    """What the job would save, in ps per step, if the unit were like the median of the others; less than the
    slowest own time.

    Where steps are synchronised the slowest core sets each step's time; where they are not, the unit that
    ends last the job's. Averages are over the steps in which the unit is slow; a second slow unit keeps the
    gain small: it would set the time then. `unit_of`: the unit of each row, if units have several; each then
    becomes faster by what their mean is slower.
    """
    own = np.asarray(own_ps, np.float64)[:, slow.since :]
    unit_of = np.arange(len(own)) if unit_of is None else unit_of
    sizes = np.bincount(unit_of)
    means = np.add.reduceat(own, np.append(0, np.cumsum(sizes))[:-1], axis=0) / sizes[:, None]
    better = own.copy()
    better[unit_of == slow.unit] -= np.maximum(means - others_median(means), 0)[slow.unit]
    if is_synchronous:
        before, after = own.max(axis=0).mean(), better.max(axis=0).mean()
    else:
        before, after = own.mean(axis=1).max(), better.mean(axis=1).max()
    return float(before - after)


def stragglers(pod: Pod) -> tuple[Straggler, ...]:
    """Hosts that hold the others up, then cores of the other hosts that do."""
    own, n_hosts = pod.own_ps.astype(np.float64), len(pod.hosts)
    if not own.size:
        return ()
    sizes = np.bincount(pod.host_of, minlength=n_hosts)
    first = np.append(0, np.cumsum(sizes))[:-1]
    by_host = np.add.reduceat(own, first, axis=0) / sizes[:, None]
    parts_by_host = np.add.reduceat(pod.part_ps.astype(np.float64), first, axis=0) / sizes[:, None, None]
    lean = own
    if pod.is_synchronous:  # idling of others while a straggler works ends with it: it sets no step's time
        idle = pod.part_ps[:, :, Part.IDLE]
        lean = (
            pod.total_ps
            - pod.part_ps[:, :, [Part.COLLECTIVE_WAIT, Part.RECV, Part.IDLE]].sum(axis=2)
            + idle.min(axis=0)
        )
    hosts = slow_units(by_host, parts_by_host)
    synchronous = pod.is_synchronous
    # A host is slow if its cores are; one slow core of several raises its host's mean, but is to be named
    # itself.
    cores = slow_units(own, pod.part_ps) if len(own) > n_hosts else ()
    slow_cores = {slow.unit for slow in cores}
    found = []
    for slow in hosts:
        mine = set(np.flatnonzero(pod.host_of == slow.unit).tolist())
        if len(mine) > 1 and 0 < len(mine & slow_cores) <= len(mine) // 2:
            continue
        rest = _only(own, lean, pod.host_of == slow.unit)
        found.append(
            Straggler(
                pod.hosts[slow.unit],
                -1,
                slow,
                gain(rest, slow, synchronous, pod.host_of),
                pod.job_ps(slow.since),
            )
        )
    named = {straggler.slow.unit for straggler in found}
    for slow in cores:
        if (host := int(pod.host_of[slow.unit])) not in named:
            rest = _only(own, lean, np.arange(len(own)) == slow.unit)
            found.append(
                Straggler(
                    pod.hosts[host], slow.unit, slow, gain(rest, slow, synchronous), pod.job_ps(slow.since)
                )
            )
    return tuple(sorted(found, key=lambda straggler: -straggler.slow.excess_ps))


def _only(own: Floats, lean: npt.NDArray[np.number], mine: npt.NDArray[np.bool_]) -> Floats:
    """The own time of a unit's cores among the others' without idling."""
    result: Floats = np.where(mine[:, None], own, np.asarray(lean, np.float64))
    return result
