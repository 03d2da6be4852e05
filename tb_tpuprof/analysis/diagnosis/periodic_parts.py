"""Work that only every n-th step does: what a part's time is above its usual in steps at equal distances.

time of a part   ▁ ▁ ▁ █ ▁ ▁ ▁ █ ▁ ▁ ▁ █        every 4th step: the excess is periodic work, the rest is not
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
High = tuple[npt.NDArray[np.intp], int]  # steps, and the distance between them
_FEW_STEPS = 8
_FEW_SPIKES = 2
_LEAST_STEP = 0.15  # of the median step: a smaller excess is noise more often than not
_LARGE = 0.5  # of the largest
_CLEAR = 5.0  # times the usual deviation
_NONE = 0.02  # of the median step: as good as nothing


def without_periodic(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s
) -> tuple[tuple[Part, ...], tuple[Period, ...]]:
    """Parts without what is periodic in them (that becomes PERIODIC parts), and the periods."""
    n = len(duration_ps)
    if n < _FEW_STEPS:
        return tuple(parts), ()
    groups, totals, high = _found(parts, calls, duration_ps)
    kept, periods = [], []
    for key, mine in groups.items():
        if key not in high or _are_phases(high[key][1], list(high.values())):
            kept += mine
            continue
        at, every = high[key]
        total = totals[key]
        excess = np.zeros(n, np.int64)
        excess[at] = np.maximum(total[at] - int(np.median(np.delete(total, at))), 0)
        for part in mine:
            taken = np.where(total > 0, part.time_ps * (excess / np.maximum(total, 1)), 0).astype(np.int64)
            kept.append(replace(part, time_ps=part.time_ps - taken))
            if taken.any():
                kept.append(replace(part, cause=Cause.PERIODIC, time_ps=taken))
        longest = max(mine, key=lambda part: int(part.time_ps[at].sum()))
        periods.append(
            Period(
                key[1], longest.call, key[0], every, len(at), float(excess[at].mean()), float(excess.mean()),
                longest.first_ps, longest.last_ps,
                _programs(calls, at, n) if key[0] == Cause.COMPUTE else (),
            )
        )  # fmt: skip
    return tuple(part for part in kept if part.time_ps.any()), tuple(
        sorted(periods, key=lambda period: -period.mean_ps)
    )


def _found(
    parts: Sequence[Part], calls: Calls, duration_ps: Int64s
) -> tuple[dict[Key, list[Part]], dict[Key, Int64s], dict[Key, High]]:
    """Parts that are looked at as one, their times together, and where these are high."""
    usual = float(np.median(duration_ps))
    groups: dict[Key, list[Part]] = {}
    for part in parts:
        groups.setdefault(_key(part), []).append(part)
    totals: dict[Key, Int64s] = {
        key: np.sum([part.time_ps for part in mine], axis=0) for key, mine in groups.items()
    }
    return (
        groups,
        totals,
        {key: found for key, total in totals.items() if (found := _of_part(key[0], total, usual, calls))},
    )


def _of_part(cause: Cause, time: Int64s, usual: float, calls: Calls) -> High | None:
    """The spikes of a part; computing varies by itself, so that it needs a program that these steps alone
    call, or three spikes.
    """
    found = _spikes(time, usual)
    if cause != Cause.COMPUTE:
        return found
    if found and (len(found[0]) > _FEW_SPIKES or _programs(calls, found[0], len(time))):
        return found
    for call in calls.of(PROGRAM):
        at = np.flatnonzero(call.per_step)
        every = _distance(at, len(time))
        if every and float(np.median(time[at])) > float(np.median(np.delete(time, at))) + _NONE * usual:
            return at, every
    return None


def _distance(at: npt.NDArray[np.intp], n: int) -> int:
    """The distance of steps that are equally far apart and have none left out at the ends; 0 of others."""
    if len(at) < 2 or len(at) * 2 > n:
        return 0
    every = np.diff(at)
    if every.min() < 2 or every.max() != every.min() or every[0] * 2 > n:
        return 0
    return int(every[0]) if max(int(at[0]), n - 1 - int(at[-1])) < every[0] else 0


def _are_phases(every: int, found: Sequence[High]) -> bool:
    """Whether each of `every` successive steps has periodic work of its own: then these steps are phases of
    one, and none is special.
    """
    return len({int(at[0]) % every for at, period in found if period == every}) == every


def _key(part: Part) -> Key:
    """What is looked at as one: a user's function, whatever it calls."""
    return part.cause, part.caller if part.caller.name and part.cause == Cause.DISPATCH else part.culprit


def _spikes(time: Int64s, usual: float) -> High | None:
    """(steps, period) in which a part takes much longer, at equal distances; None where there are
    none such.
    """
    # The lower of two in the middle: where every second step is long, the usual one is short.
    middle = float(np.percentile(time, 50, method="lower"))
    deviation = float(np.percentile(np.abs(time - middle), 50, method="lower"))
    is_rare = (
        middle <= _NONE * usual
    )  # most steps do nothing of it: how long the others take need not be alike
    least = _NONE * usual if is_rare else max(_LEAST_STEP * usual, _CLEAR * deviation)
    # Where something small comes now and then as well, only what is large is looked at.
    for bound in (least, max(least, _LARGE * float((time - middle).max()))):
        high = np.flatnonzero(time - middle > bound)
        every = _distance(high, len(time))
        if every:
            break
    else:
        return None
    above = time[high] - middle
    if above.max() < _LEAST_STEP * usual or (not is_rare and above.min() * 2 < above.max()):
        return None
    return high, every


def _programs(calls: Calls, at: npt.NDArray[np.intp], n: int) -> tuple[str, ...]:
    """Programs that these steps alone call."""
    others = np.setdiff1d(np.arange(n), at)
    return tuple(
        call.name for call in calls.of(PROGRAM) if call.per_step[at].all() and not call.per_step[others].any()
    )
