"""Work that only every n-th step does: the excess of a part over its usual time, in steps at regular
intervals.

time of a part   ▁ ▁ ▁ █ ▁ ▁ ▁ █ ▁ ▁ ▁ █        every 4th step: only the excess is periodic work
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Calls, Part, Period
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM

Int64s = npt.NDArray[np.int64]
Key = tuple[Cause, Culprit]
High = tuple[npt.NDArray[np.intp], int]  # steps, and their distance
_FEW_STEPS = 8
_FEW_SPIKES = 2
_LEAST_STEP = 0.15  # of the median step: a smaller excess is mostly noise
_LARGE = 0.5  # of the largest
_CLEAR = 5.0  # times the usual deviation
_NONE = 0.02  # of the median step: negligible


def without_periodic(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s
) -> tuple[tuple[Part, ...], tuple[Period, ...]]:
    """Parts with their periodic time split off as PERIODIC parts, and the periods, most expensive first."""
    n = len(duration_ps)
    if n < _FEW_STEPS:
        return tuple(parts), ()
    groups, totals, high = _found(parts, calls, duration_ps)
    result, periods = [], []
    for key, group in groups.items():
        if key not in high or _are_phases(high[key][1], list(high.values())):
            result += group
            continue
        spikes, every = high[key]
        total = totals[key]
        excess = np.zeros(n, np.int64)
        excess[spikes] = np.maximum(total[spikes] - int(np.median(np.delete(total, spikes))), 0)
        for part in group:
            taken_ps = np.where(total > 0, part.time_ps * (excess / np.maximum(total, 1)), 0).astype(np.int64)
            result.append(replace(part, time_ps=part.time_ps - taken_ps))
            if taken_ps.any():
                result.append(replace(part, cause=Cause.PERIODIC, time_ps=taken_ps))
        longest = max(group, key=lambda part: int(part.time_ps[spikes].sum()))
        periods.append(
            Period(
                key[1], longest.call, key[0], every, len(spikes), float(excess[spikes].mean()),
                float(excess.mean()), longest.first_ps, longest.last_ps,
                _programs(calls, spikes, n) if key[0] == Cause.COMPUTE else (),
            )
        )  # fmt: skip
    return tuple(part for part in result if part.time_ps.any()), tuple(
        sorted(periods, key=lambda period: -period.mean_ps)
    )


def _found(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s
) -> tuple[dict[Key, list[Part]], dict[Key, Int64s], dict[Key, High]]:
    """Parts grouped by key, the total time of each group, and the steps in which it is high."""
    usual_ps = float(np.median(duration_ps))
    groups: dict[Key, list[Part]] = {}
    for part in parts:
        groups.setdefault(_key(part), []).append(part)
    totals: dict[Key, Int64s] = {
        key: np.sum([part.time_ps for part in group], axis=0) for key, group in groups.items()
    }
    return (
        groups,
        totals,
        {
            key: spikes
            for key, total in totals.items()
            if (spikes := _of_part(key[0], total, usual_ps, calls))
        },
    )


def _of_part(cause: Cause, time: Int64s, usual_ps: float, calls: Calls) -> High | None:
    """The spikes of a part. Compute varies by itself, so it needs three spikes, or a program that only these
    steps call.
    """
    spikes = _spikes(time, usual_ps)
    if cause != Cause.COMPUTE:
        return spikes
    if spikes and (len(spikes[0]) > _FEW_SPIKES or _programs(calls, spikes[0], len(time))):
        return spikes
    for call in calls.of(PROGRAM):
        steps = np.flatnonzero(call.per_step)
        every = _distance(steps, len(time))
        if (
            every
            and float(np.median(time[steps])) > float(np.median(np.delete(time, steps))) + _NONE * usual_ps
        ):
            return steps, every
    return None


def _distance(steps: npt.NDArray[np.intp], n: int) -> int:
    """The distance of steps at regular intervals from the first step to the last; 0 for any other steps."""
    if len(steps) < 2 or len(steps) * 2 > n:
        return 0
    distances = np.diff(steps)
    if distances.min() < 2 or distances.max() != distances.min() or distances[0] * 2 > n:
        return 0
    return int(distances[0]) if max(int(steps[0]), n - 1 - int(steps[-1])) < distances[0] else 0


def _are_phases(every: int, spikes: Sequence[High]) -> bool:
    """Whether each of `every` successive steps has periodic work: then they are phases of one longer step."""
    return len({int(steps[0]) % every for steps, period in spikes if period == every}) == every


def _key(part: Part) -> Key:
    """The key that groups parts: cause and the user's function, whatever it calls."""
    return part.cause, part.caller if part.caller.name and part.cause == Cause.DISPATCH else part.culprit


def _spikes(time: Int64s, usual_ps: float) -> High | None:
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
    return high, every


def _programs(calls: Calls, steps: npt.NDArray[np.intp], n: int) -> tuple[str, ...]:
    """Programs that only these steps call."""
    others = np.setdiff1d(np.arange(n), steps)
    return tuple(
        call.name
        for call in calls.of(PROGRAM)
        if call.per_step[steps].all() and not call.per_step[others].any()
    )
