"""Work that only every n-th step does: the excess of a part over its usual time, in steps at regular
intervals.

time of a part   ▁ ▁ ▁ █ ▁ ▁ ▁ █ ▁ ▁ ▁ █        every 4th step: only the excess is periodic work

Work that runs while the device computes has no part of its own, but it slows the computation down: if compute
takes longer in exactly the steps that call a function of the user, the excess belongs to that function.
The same holds for steps that stand out clearly by another part.

A program that every n-th step calls can run beyond the end of that step:

calls of it      · · 8 3 · · 6 5 · · 9 2        every 4th step, although two successive steps each time

Waiting for input is input, however regular: n workers that are too slow deliver n batches at once, and
every n-th step waits for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Calls, Part, Period, StepFunction
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM

Int64s = npt.NDArray[np.int64]
Key = tuple[Cause, Culprit]
_FEW_STEPS = 8
_FEW_SPIKES = 2
_LEAST_STEP = 0.15  # of the median step: a smaller excess is mostly noise
_LARGE = 0.5  # of the largest
_CLEAR = 5.0  # times the usual deviation
_NONE = 0.02  # of the median step: negligible
_LEAST_SLOWED = 0.05  # of the median step: how much longer steps that call a function compute
_MOST = 0.8  # of these steps take longer than
_UPPER = 75  # this percentile of the others
_EXPLAINED = 0.5  # of the excess: the least that the function itself has to last
_APART = 3.0  # times the largest of all others: high parts that are no noise, even if short; and alike
_LEAST_APART = 0.05  # of the median step
_RARE = 3  # at most every third step: two kinds of steps in turn are no periodic work
_MOST_STEPS = 2  # successive steps that one run of a program's calls can span
_UNEVEN = 0.5  # steps: deviation of the distance between two runs of calls


@dataclass(frozen=True)
class Spikes:
    """Steps that take longer, and their distance. `function`: what only these steps call, if it is known;
    `are_apart`: at least three steps, each far above all others.
    """

    steps: npt.NDArray[np.intp]
    every: int
    function: StepFunction | None = None
    are_apart: bool = False

    @property
    def n_times(self) -> int:
        """How often the work occurs: once in successive steps."""
        return 1 + int((np.diff(self.steps) > 1).sum())


def without_periodic(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s, functions: Sequence[StepFunction] = ()
) -> tuple[tuple[Part, ...], tuple[Period, ...]]:
    """Parts with their periodic time split off as PERIODIC parts, and the periods, most expensive first.

    `functions`: those that few steps call, the longest first.
    """
    n = len(duration_ps)
    if n < _FEW_STEPS:
        return tuple(parts), ()
    groups, totals, high = _found(parts, calls, duration_ps, functions)
    result, periods = [], []
    for key, group in groups.items():
        if key not in high or _are_phases(high[key].every, list(high.values())):
            result += group
            continue
        spikes = high[key]
        excess = _excess(totals[key], spikes)
        culprit = spikes.function.culprit if spikes.function else key[1]
        for part in group:
            taken_ps = (part.time_ps * (excess / np.maximum(totals[key], 1))).astype(np.int64)
            result.append(replace(part, time_ps=part.time_ps - taken_ps))
            if taken_ps.any():
                whose = culprit if spikes.function else part.culprit
                result.append(replace(part, cause=Cause.PERIODIC, culprit=whose, time_ps=taken_ps))
        longest = max(group, key=lambda part: int(part.time_ps[spikes.steps].sum()))
        periods.append(
            Period(
                culprit,
                longest.call,
                key[0],
                spikes.every,
                spikes.n_times,
                float(excess.sum()) / spikes.n_times,
                float(excess.mean()),
                longest.first_ps,
                longest.last_ps,
                _programs(calls, spikes.steps, n) if key[0] == Cause.COMPUTE else (),
            )
        )
    return tuple(part for part in result if part.time_ps.any()), tuple(
        sorted(periods, key=lambda period: -period.mean_ps)
    )


def _excess(time: Int64s, spikes: Spikes) -> Int64s:
    """What each step takes more than the median of the other steps; what a function explains is no longer
    than the function.
    """
    excess = np.zeros(len(time), np.int64)
    usual = int(np.median(np.delete(time, spikes.steps)))
    excess[spikes.steps] = np.maximum(time[spikes.steps] - usual, 0)
    return np.minimum(excess, spikes.function.time_ps) if spikes.function else excess


def _found(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s, functions: Sequence[StepFunction]
) -> tuple[dict[Key, list[Part]], dict[Key, Int64s], dict[Key, Spikes]]:
    """Parts grouped by key, the total time of each group, and the steps in which it is high."""
    usual_ps = float(np.median(duration_ps))
    groups: dict[Key, list[Part]] = {}
    for part in parts:
        groups.setdefault(_key(part), []).append(part)
    totals: dict[Key, Int64s] = {
        key: np.sum([part.time_ps for part in group], axis=0) for key, group in groups.items()
    }
    high = {
        key: spikes
        for key, total in totals.items()
        if key[0] != Cause.INPUT and (spikes := _of_part(key[0], total, usual_ps, calls, functions))
    }
    # What a function does while nothing computes belongs to the steps that call it, too.
    slowing = {
        spikes.function.culprit: spikes
        for (cause, _), spikes in high.items()
        if cause == Cause.COMPUTE and spikes.function
    }
    for key, total in totals.items():
        if key[1] in slowing and total[slowing[key[1]].steps].any():
            high[key] = slowing[key[1]]
    apart = [spikes for spikes in high.values() if spikes.are_apart]
    for key, total in totals.items():
        if key[0] == Cause.COMPUTE and key not in high:
            slowed = next((one for one in apart if _is_longer(total, one.steps, usual_ps)), None)
            if slowed:
                high[key] = slowed
    return groups, totals, high


def _of_part(
    cause: Cause, time: Int64s, usual_ps: float, calls: Calls, functions: Sequence[StepFunction]
) -> Spikes | None:
    """The spikes of a part. Compute varies by itself, so it needs three spikes, or a program or function that
    only these steps call.
    """
    spikes = _spikes(time, usual_ps)
    if cause != Cause.COMPUTE:
        return _far_above(time, usual_ps) or spikes
    if spikes and (len(spikes.steps) > _FEW_SPIKES or _programs(calls, spikes.steps, len(time))):
        return _with_function(spikes, time, functions)
    for call in calls.of(PROGRAM):
        steps = np.flatnonzero(call.per_step)
        every = _distance(steps, len(time)) or _distance_of_runs(call.per_step)
        if (
            every
            and float(np.median(time[steps])) > float(np.median(np.delete(time, steps))) + _NONE * usual_ps
        ):
            return _with_function(Spikes(steps, every), time, functions)
    return next((found for one in functions if (found := _slowed_by(one, time, usual_ps))), None)


def _with_function(spikes: Spikes, time: Int64s, functions: Sequence[StepFunction]) -> Spikes:
    """The spikes, with the function that only their steps call if it lasts long enough to be the reason."""
    excess = _median_excess(time, spikes.steps)
    for one in functions:
        if np.array_equal(np.flatnonzero(one.time_ps), spikes.steps) and _explains(one, excess):
            return replace(spikes, function=one)
    return spikes


def _slowed_by(function: StepFunction, time: Int64s, usual_ps: float) -> Spikes | None:
    """The steps that call a function, if they clearly compute longer than the others and the function lasts
    long enough to be the reason.
    """
    steps = np.flatnonzero(function.time_ps)
    every = _distance(steps, len(time))
    if not every or len(steps) <= _FEW_SPIKES:
        return None
    is_reason = _is_longer(time, steps, usual_ps) and _explains(function, _median_excess(time, steps))
    return Spikes(steps, every, function) if is_reason else None


def _is_longer(time: Int64s, steps: npt.NDArray[np.intp], usual_ps: float) -> bool:
    """Whether a part clearly takes longer in these steps than in the others."""
    is_clear = float((time[steps] > np.percentile(np.delete(time, steps), _UPPER)).mean()) >= _MOST
    return is_clear and _median_excess(time, steps) > _LEAST_SLOWED * usual_ps


def _median_excess(time: Int64s, steps: npt.NDArray[np.intp]) -> float:
    return float(np.median(time[steps]) - np.median(np.delete(time, steps)))


def _explains(function: StepFunction, excess: float) -> bool:
    called = function.time_ps[function.time_ps > 0]
    return float(np.median(called)) >= _EXPLAINED * excess


def _distance(steps: npt.NDArray[np.intp], n: int) -> int:
    """The distance of steps at regular intervals from the first step to the last; 0 for any other steps."""
    if len(steps) < 2 or len(steps) * 2 > n:
        return 0
    distances = np.diff(steps)
    if distances.min() < 2 or distances.max() != distances.min() or distances[0] * 2 > n:
        return 0
    return int(distances[0]) if max(int(steps[0]), n - 1 - int(steps[-1])) < distances[0] else 0


def _distance_of_runs(per_step: Int64s) -> int:
    """The distance in steps of runs of calls at regular intervals, each within two successive steps; 0 for
    any other calls.
    """
    n = len(per_step)
    steps = np.flatnonzero(per_step)
    if not len(steps):
        return 0
    runs = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
    if len(runs) <= _FEW_SPIKES or max(len(run) for run in runs) > _MOST_STEPS:
        return 0
    # The first and the last run can be cut off by the shown steps.
    whole = [run for run in runs if run[0] > 0 and run[-1] < n - 1]
    middles = np.array([np.average(run, weights=per_step[run]) for run in whole])
    if len(middles) <= _FEW_SPIKES:
        return 0
    distances = np.diff(middles)
    every = int(distances.mean().round())
    is_regular = every > _MOST_STEPS and float(np.abs(distances - every).max()) <= _UNEVEN
    reaches_ends = middles[0] < every + _UNEVEN and n - 1 - middles[-1] < every + _UNEVEN
    return every if is_regular and reaches_ends else 0


def _are_phases(every: int, spikes: Sequence[Spikes]) -> bool:
    """Whether each of `every` successive steps has periodic work: then they are phases of one longer step."""
    return len({int(one.steps[0]) % every for one in spikes if one.every == every}) == every


def _key(part: Part) -> Key:
    """The key that groups parts: cause and the user's function, whatever it calls."""
    return part.cause, part.caller if part.caller.name and part.cause == Cause.DISPATCH else part.culprit


def _spikes(time: Int64s, usual_ps: float) -> Spikes | None:
    """(steps, period) in which a part takes much longer, at regular intervals; None without any."""
    # The lower median: where every second step is long, the usual one is short.
    middle_ps = float(np.percentile(time, 50, method="lower"))
    deviation = float(np.percentile(np.abs(time - middle_ps), 50, method="lower"))
    is_rare = middle_ps <= _NONE * usual_ps  # most steps do none of it: the others may differ in length
    least_ps = _NONE * usual_ps if is_rare else max(_LEAST_STEP * usual_ps, _CLEAR * deviation)
    # If small spikes come in between, only large ones count.
    for bound in (least_ps, max(least_ps, _LARGE * float((time - middle_ps).max()))):
        high = np.flatnonzero(time - middle_ps > bound)
        every = _distance(high, len(time))
        if every:
            break
    else:
        return None
    above = time[high] - middle_ps
    if above.max() < _LEAST_STEP * usual_ps or (not is_rare and above.min() * 2 < above.max()):
        return None
    return Spikes(high, every)


def _far_above(time: Int64s, usual_ps: float) -> Spikes | None:
    """At least three steps at regular intervals in which a part is far longer than in any other step."""
    above = time - np.percentile(time, 50, method="lower")
    order = np.argsort(-above, kind="stable")
    n_high = np.arange(_FEW_SPIKES + 1, len(time) // _RARE + 1)
    least, most_of_others = above[order[n_high - 1]], above[order[n_high]]
    are_apart = (least >= _APART * most_of_others) & (least * _APART >= above[order[:1]])
    for n in n_high[are_apart & (least >= _LEAST_APART * usual_ps)].tolist():
        high = np.sort(order[:n])
        if every := _distance(high, len(time)):
            return Spikes(high, every, are_apart=True)
    return None


def _programs(calls: Calls, steps: npt.NDArray[np.intp], n: int) -> tuple[str, ...]:
    """Programs that only these steps call."""
    others = np.setdiff1d(np.arange(n), steps)
    return tuple(
        call.name
        for call in calls.of(PROGRAM)
        if call.per_step[steps].all() and not call.per_step[others].any()
    )
