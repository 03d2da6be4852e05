"""Work that only every n-th step does: what a part's time is above its usual in steps at equal distances.

time of a part   ▁ ▁ ▁ █ ▁ ▁ ▁ █ ▁ ▁ ▁ █        every 4th step: the excess is periodic work, the rest is not
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.parts import Part
from tb_tpuprof.analysis.diagnosis.step_calls import PROGRAM, Calls

Int64s = npt.NDArray[np.int64]
_FEW_STEPS = 8
_LEAST_STEP = 0.15  # of the median step: a smaller excess is noise more often than not
_CLEAR = 5.0  # times the usual deviation
_NONE = 0.02  # of the median step: as good as nothing


@dataclass(frozen=True)
class Period:
    """Periodic work of one culprit: `every` n-th step takes `excess_ps` more. `was`: what the time would be without its period."""

    culprit: Culprit
    call: str
    was: Cause
    every: int
    n: int
    excess_ps: float
    mean_ps: float
    first_ps: int
    last_ps: int
    programs: tuple[str, ...] = ()


def without_periodic(parts: Sequence[Part], calls: Calls, duration_ps: Int64s) -> tuple[tuple[Part, ...], tuple[Period, ...]]:
    """Parts without what is periodic in them (that becomes PERIODIC parts), and the periods."""
    n = len(duration_ps)
    if n < _FEW_STEPS:
        return tuple(parts), ()
    usual = float(np.median(duration_ps))
    kept, periods = [], []
    for key in dict.fromkeys(_key(part) for part in parts):
        mine = [part for part in parts if _key(part) == key]
        total: Int64s = np.sum([part.time_ps for part in mine], axis=0)
        high = _spikes(total, usual)
        if high is None:
            kept += mine
            continue
        at, every = high
        normal = np.median(np.delete(total, at))
        excess = np.zeros(n, np.int64)
        excess[at] = np.maximum(total[at] - int(normal), 0)
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
    return tuple(part for part in kept if part.time_ps.any()), tuple(sorted(periods, key=lambda period: -period.mean_ps))


def _key(part: Part) -> tuple[Cause, Culprit]:
    """What is looked at as one: a user's function, whatever it calls."""
    return part.cause, part.caller if part.caller.name and part.cause == Cause.DISPATCH else part.culprit


def _spikes(time: Int64s, usual: float) -> tuple[npt.NDArray[np.intp], int] | None:
    """(steps, period) in which a part takes much longer, at equal distances; None where there are none such."""
    middle = float(np.median(time))
    deviation = float(np.median(np.abs(time - middle)))
    is_rare = middle <= _NONE * usual  # most steps do nothing of it: how long the others take need not be alike
    high = np.flatnonzero(time - middle > (_NONE * usual if is_rare else max(_LEAST_STEP * usual, _CLEAR * deviation)))
    if len(high) < 2 or len(high) * 2 > len(time):
        return None
    every = np.diff(high)
    if every.min() < 2 or every.max() != every.min() or every[0] * 2 > len(time):
        return None
    above = time[high] - middle
    if above.max() < _LEAST_STEP * usual or (not is_rare and above.min() * 2 < above.max()):
        return None
    first, last = int(high[0]), len(time) - 1 - int(high[-1])
    return (high, int(every[0])) if max(first, last) < every[0] else None


def _programs(calls: Calls, at: npt.NDArray[np.intp], n: int) -> tuple[str, ...]:
    """Programs that these steps alone call."""
    others = np.setdiff1d(np.arange(n), at)
    return tuple(call.name for call in calls.of(PROGRAM) if call.per_step[at].all() and not call.per_step[others].any())
