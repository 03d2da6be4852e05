"""Hosts and cores that delay the others: since which step, by what, and what the job would gain without them.

The basis is a core's own time: its step without waiting for others. A unit (a host, or a core) is compared
with the median of the *other* units in the same step, so that variation common to all, such as a slow step,
cancels out:

    r[unit, step] = ln(own time / median own time of the others)
    sigma         = the noise of r: its typical change from one step to the next, which is independent of a
                    lasting slowness
    since         = the step k for which mean(r[k:]) · √(n − k) / sigma is largest; that maximum is the
                    evidence

A unit is reported if it is at least 5% slower from then on (mean and median), if the evidence exceeds what
the noise of so many units and steps produces by chance, and if its excess exceeds the usual lasting
differences between units.
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
_MARGIN = 3.0  # sigmas beyond the largest value expected by chance
_OUTSTANDING = 4.0  # times the usual difference between units
_TINY = 1e-6
_CAUSES: dict[str, tuple[Part, ...]] = {
    "compute": (Part.HIGH_FLOPS, Part.LOW_FLOPS, Part.COMPUTE, Part.HOST_COMPUTE, Part.PYTHON, Part.COMPILE),
    "input": (Part.INPUT, Part.OUTPUT),
    "network": (Part.COLLECTIVE, Part.SEND, Part.DEVICE_COPY, Part.COPY_WAIT),
    "idle": (Part.IDLE, Part.WAIT, Part.LAUNCH),
}


@dataclass(frozen=True)
class Slow:
    """A unit that is slower than the others from step `since` on, by `excess_ps` per step, and the part of it
    due to each cause.

    `own_ps`, `usual_ps`: its own time and the median of the others', means over these steps.
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
        """The cause of most of the excess."""
        return max(self.causes, key=lambda name: self.causes[name])


@dataclass(frozen=True)
class Straggler:
    """A host (`core` -1: all of its cores) or a core.

    `gain_ps`: the time that the job would save of each step, `job_ps`, if the unit were like the median;
    means over the steps in which it is slow.
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


def others_median(own_ps: Floats) -> Floats:
    """For each unit and step, the median of the other units; with two units, the other unit. Shape [n_units,
    n_steps], n_units ≥ 2.
    """
    n = len(own_ps)
    low, high = (n - 2) // 2, (n - 1) // 2  # of n - 1 others
    by_step = np.partition(own_ps.T, sorted({low, low + 1, high, high + 1}), axis=1)
    # Without a unit at or below the median's position, the units above it move down by one.
    low_value, high_value = (
        np.where(own_ps <= by_step[:, index], by_step[:, index + 1], by_step[:, index])
        for index in (low, high)
    )
    result: Floats = (low_value + high_value) / 2
    return result


def slow_units(
    own_ps: npt.NDArray[np.number], part_ps: npt.NDArray[np.number] | None = None
) -> tuple[Slow, ...]:
    """Units that are slower than the others, slowest first. `own_ps`: [unit, step]; `part_ps`: [unit, step,
    part], for the causes.
    """
    own_time = np.asarray(own_ps, np.float64)
    n_units, n_steps = own_time.shape
    if n_units < 2 or n_steps < MIN_STEPS:
        return ()
    usual = others_median(own_time)
    ratio = np.log(np.maximum(own_time, 1.0) / np.maximum(usual, 1.0))
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
    result = []
    cause_times = _CauseTimes(part_ps)
    for unit in suspects.tolist():
        rows = slice(int(since[unit]), n_steps)
        if np.median(ratio[unit, rows]) < least:
            continue
        excess = float((own_time[unit, rows] - usual[unit, rows]).mean())
        fraction = excess / max(float(usual[unit, rows].mean()), 1.0)
        times = float(own_time[unit, rows].mean()), float(usual[unit, rows].mean())
        result.append(
            Slow(
                unit,
                rows.start,
                excess,
                fraction,
                float(evidence[unit]),
                cause_times.causes(unit, rows),
                *times,
            )
        )
    return tuple(sorted(result, key=lambda slow: -slow.excess_ps))


def _onset(ratio: Floats, sigma: float) -> tuple[Int64s, Floats, Floats]:
    """For each unit the first slow step, the mean of r from there on, and the evidence. At least MIN_STEPS -
    2 steps must follow.
    """
    n_steps = ratio.shape[1]
    length = np.arange(n_steps, 0, -1)
    mean = np.cumsum(ratio[:, ::-1], axis=1)[:, ::-1] / length
    evidence = mean * np.sqrt(length) / sigma
    evidence[:, n_steps - MIN_STEPS + 3 :] = -np.inf
    since = evidence.argmax(axis=1)
    units = np.arange(len(ratio))
    return since.astype(np.int64), mean[units, since], evidence[units, since]


def _usual_level(ratio: Floats) -> float:
    """The usual lasting difference of a unit from the others: the median distance, as a normal distribution's
    sigma.
    """
    if len(ratio) < 4:
        return 0.0
    return float(np.median(np.abs(np.median(ratio, axis=1)))) / 0.6745


class _CauseTimes:
    """Time by cause of each unit and step relative to the other units' median; computed once for all slow
    units.
    """

    def __init__(self, part_ps: npt.NDArray[np.number] | None) -> None:
        self.part_ps = part_ps

    def causes(self, unit: int, rows: slice) -> dict[str, float]:
        """A unit's excess over the others by cause, in ps per step; all of it is `compute` (0) if parts are
        unknown.
        """
        return {name: float(excess[unit, rows].mean()) for name, excess in self._excess.items()} or {
            "compute": 0.0
        }

    @cached_property
    def _excess(self) -> dict[str, Floats]:
        if self.part_ps is None:
            return {}
        time_by_cause = {
            name: np.asarray(sum(self.part_ps[:, :, part] for part in parts), np.float64)
            for name, parts in _CAUSES.items()
        }
        return {name: times - others_median(times) for name, times in time_by_cause.items()}


def gain(
    own_ps: npt.NDArray[np.number], slow: Slow, is_synchronous: bool, unit_of: Int64s | None = None
) -> float:
    """The time that the job would save, in ps per step, if the unit were like the median of the others; less
    than the slowest unit's own time.

    If steps are synchronized, the slowest core sets each step's time; if not, the unit that takes the longest
    overall sets the job's. Averages are over the steps in which the unit is slow; a second slow unit limits
    the gain, since it would set the time then. `unit_of`: the unit of each row, if units have several rows;
    each row then becomes faster by the excess of their mean.
    """
    own_time = np.asarray(own_ps, np.float64)[:, slow.since :]
    unit_of = np.arange(len(own_time)) if unit_of is None else unit_of
    sizes = np.bincount(unit_of)
    means = np.add.reduceat(own_time, np.append(0, np.cumsum(sizes))[:-1], axis=0) / sizes[:, None]
    better = own_time.copy()
    better[unit_of == slow.unit] -= np.maximum(means - others_median(means), 0)[slow.unit]
    if is_synchronous:
        before, after = own_time.max(axis=0).mean(), better.max(axis=0).mean()
    else:
        before, after = own_time.mean(axis=1).max(), better.mean(axis=1).max()
    return float(before - after)


def own_by_host(pod: Pod) -> Floats:
    """Own time in ps of each host and step, the mean over its cores: float64[hosts, steps]."""
    sizes, first = _cores_of_hosts(pod)
    result: Floats = np.add.reduceat(pod.own_ps.astype(np.float64), first, axis=0) / sizes[:, None]
    return result


def host_stragglers(pod: Pod) -> tuple[Straggler, ...]:
    """Hosts that delay the others by the mean of their cores, slowest first: also those of which a single
    core is slow.
    """
    if not pod.own_ps.size:
        return ()
    sizes, first = _cores_of_hosts(pod)
    parts = np.add.reduceat(pod.part_ps.astype(np.float64), first, axis=0) / sizes[:, None, None]
    return tuple(
        _straggler(pod, slow, pod.host_of == slow.unit, pod.host_of)
        for slow in slow_units(own_by_host(pod), parts)
    )


def stragglers(pod: Pod) -> tuple[Straggler, ...]:
    """Hosts that delay the others, then cores of the remaining hosts that do."""
    own_ps, n_hosts = pod.own_ps.astype(np.float64), len(pod.hosts)
    if not own_ps.size:
        return ()
    # A host is slow if its cores are. A single slow core raises its host's mean, but is reported itself.
    cores = slow_units(own_ps, pod.part_ps) if len(own_ps) > n_hosts else ()
    slow_cores = {slow.unit for slow in cores}
    result = []
    for host in host_stragglers(pod):
        host_cores = set(np.flatnonzero(pod.host_of == host.slow.unit).tolist())
        if not (len(host_cores) > 1 and 0 < len(host_cores & slow_cores) <= len(host_cores) // 2):
            result.append(host)
    slow_hosts = {straggler.slow.unit for straggler in result}
    result += [
        _straggler(pod, slow, np.arange(len(own_ps)) == slow.unit)
        for slow in cores
        if int(pod.host_of[slow.unit]) not in slow_hosts
    ]
    return tuple(sorted(result, key=lambda straggler: -straggler.slow.excess_ps))


def _cores_of_hosts(pod: Pod) -> tuple[Int64s, Int64s]:
    """Number of cores of each host, and the row of its first one."""
    sizes = np.bincount(pod.host_of, minlength=len(pod.hosts)).astype(np.int64)
    return sizes, np.append(0, np.cumsum(sizes))[:-1]


def _straggler(
    pod: Pod, slow: Slow, is_unit: npt.NDArray[np.bool_], unit_of: Int64s | None = None
) -> Straggler:
    """The slow host or core with its gain. `is_unit`: the cores that it consists of; `unit_of`: the unit of
    each core, if units are hosts.
    """
    own_ps = without_idle = pod.own_ps.astype(np.float64)
    # Without the straggler, the others would not idle meanwhile: their idle time determines no step's time.
    if pod.is_synchronous:
        idle = pod.part_ps[:, :, Part.IDLE]
        waits = pod.part_ps[:, :, [Part.COLLECTIVE_WAIT, Part.RECV, Part.IDLE]].sum(axis=2)
        without_idle = (pod.total_ps - waits + idle.min(axis=0)).astype(np.float64)
    adjusted: Floats = np.where(is_unit[:, None], own_ps, without_idle)
    host = slow.unit if unit_of is not None else int(pod.host_of[slow.unit])
    return Straggler(
        pod.hosts[host],
        -1 if unit_of is not None else slow.unit,
        slow,
        gain(adjusted, slow, pod.is_synchronous, unit_of),
        pod.job_ps(slow.since),
    )
