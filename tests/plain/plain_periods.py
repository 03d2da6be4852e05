"""Work that only every n-th step does, found with loops over steps instead of arrays.

`time`: of a group of parts, in each step. All functions return the steps that stand out, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tb_tpuprof.analysis.diagnosis.causes import Cause

Function = tuple[str, list[int]]  # its name and its time in each step
Called = dict[str, list[int]]  # calls of each program in each step


@dataclass
class PlainSpikes:
    """The steps, their distance, the function that explains them, and whether they are far above
    all others.
    """

    steps: list[int]
    every: int
    function: Function | None = None
    are_apart: bool = False


@dataclass
class PlainPart:
    """A part: its cause, its culprit and caller by name, its call and its time in each step."""

    cause: Cause
    culprit: str
    caller: str
    call: str
    time: list[int]


@dataclass
class PlainPeriod:
    """A period, with what it takes each time and per step."""

    culprit: str
    call: str
    was: Cause
    every: int
    n: int
    excess: float
    mean: float
    programs: tuple[str, ...]


def median(values: list[int]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered, n = sorted(values), len(values)
    return float(ordered[n // 2]) if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def lower_median(values: list[int]) -> int:
    """The middle value, or the lower one of the two."""
    return sorted(values)[(len(values) - 1) // 2]


def upper_quartile(values: list[int]) -> float:
    """Three quarters of the way through the sorted values."""
    ordered = sorted(values)
    place, rest = divmod(3 * (len(values) - 1), 4)
    above = ordered[min(place + 1, len(values) - 1)]
    return ordered[place] + (above - ordered[place]) * rest / 4


def others(time: list[int], steps: list[int]) -> list[int]:
    """The times of all other steps."""
    return [one for step, one in enumerate(time) if step not in steps]


def distance(steps: list[int], n: int) -> int:
    """The distance of evenly spaced steps, none of which is missing at the ends."""
    if len(steps) < 2 or 2 * len(steps) > n:
        return 0
    every = steps[1] - steps[0]
    expected = list(range(steps[0], n, every))
    is_even = steps == expected and steps[0] < every
    return every if is_even and 2 <= every <= n / 2 else 0


def distance_of_runs(counts: list[int]) -> int:
    """The distance of runs of calls in one or two successive steps, weighted with the calls of each."""
    n = len(counts)
    runs: list[list[int]] = []
    for step, count in enumerate(counts):
        if count and step and counts[step - 1]:
            runs[-1].append(step)
        elif count:
            runs.append([step])
    if len(runs) < 3 or any(len(run) > 2 for run in runs):
        return 0
    whole = [run for run in runs if run[0] > 0 and run[-1] < n - 1]
    middles = [sum(step * counts[step] for step in run) / sum(counts[step] for step in run) for run in whole]
    if len(middles) < 3:
        return 0
    every = round((middles[-1] - middles[0]) / (len(middles) - 1))
    gaps = [after - before for before, after in pairwise(middles)]
    is_even = every >= 3 and all(abs(gap - every) <= 0.5 for gap in gaps)
    return every if is_even and middles[0] < every + 0.5 and n - 1 - middles[-1] < every + 0.5 else 0


def spikes(time: list[int], usual: float) -> PlainSpikes | None:
    """Steps at even distances that take clearly more than the usual time of the part."""
    middle = lower_median(time)
    deviation = lower_median([abs(one - middle) for one in time])
    is_rare = middle <= 0.02 * usual
    least = 0.02 * usual if is_rare else max(0.15 * usual, 5.0 * deviation)
    largest = max(time) - middle
    for bound in (least, max(least, 0.5 * largest)):
        high = [step for step, one in enumerate(time) if one - middle > bound]
        every = distance(high, len(time))
        if not every:
            continue
        above = [time[step] - middle for step in high]
        is_large = max(above) >= 0.15 * usual and (is_rare or min(above) * 2 >= max(above))
        return PlainSpikes(high, every) if is_large else None
    return None


def far_above(time: list[int], usual: float) -> PlainSpikes | None:
    """Three or more steps at even distances, each three times as far above the usual time as any
    other step.
    """
    middle = lower_median(time)
    above = [one - middle for one in time]
    for n_high in range(3, len(time) // 3 + 1):
        order = sorted(range(len(time)), key=lambda step: -above[step])
        least, next_one = above[order[n_high - 1]], above[order[n_high]]
        if least < 0.05 * usual:
            return None
        every = distance(sorted(order[:n_high]), len(time))
        if every and least >= 3 * next_one and 3 * least >= above[order[0]]:
            return PlainSpikes(sorted(order[:n_high]), every, None, True)
    return None


def is_longer(time: list[int], steps: list[int], usual: float) -> bool:
    """Whether four fifths of the steps exceed the upper quartile of the others, and the median by 5% of a
    step.
    """
    rest = others(time, steps)
    n_above = sum(time[step] > upper_quartile(rest) for step in steps)
    return n_above / len(steps) >= 0.8 and excess_of(time, steps) > 0.05 * usual


def excess_of(time: list[int], steps: list[int]) -> float:
    """How much longer these steps are, by the medians."""
    return median([time[step] for step in steps]) - median(others(time, steps))


def explains(function: Function, excess: float) -> bool:
    """Whether a function lasts half as long as what it has to explain."""
    return median([one for one in function[1] if one]) >= 0.5 * excess


def only_these_call(called: Called, steps: list[int]) -> tuple[str, ...]:
    """Programs that each of these steps calls, and no other."""
    return tuple(
        name for name, counts in called.items() if [i for i, count in enumerate(counts) if count] == steps
    )


def of_compute(
    time: list[int], usual: float, called: Called, functions: list[Function]
) -> PlainSpikes | None:
    """Spikes of compute: three, or with a program or a function that only these steps call."""
    result = spikes(time, usual)
    if not result or (len(result.steps) < 3 and not only_these_call(called, result.steps)):
        result = None
        for counts in called.values():
            steps = [step for step, count in enumerate(counts) if count]
            every = distance(steps, len(time)) or distance_of_runs(counts)
            if every and excess_of(time, steps) > 0.02 * usual:
                result = PlainSpikes(steps, every)
                break
    if result:
        for function in functions:
            steps = [step for step, one in enumerate(function[1]) if one]
            if steps == result.steps and explains(function, excess_of(time, steps)):
                result.function = function
                break
        return result
    for function in functions:
        steps = [step for step, one in enumerate(function[1]) if one]
        every = distance(steps, len(time))
        is_slowed = every and len(steps) > 2 and is_longer(time, steps, usual)
        if is_slowed and explains(function, excess_of(time, steps)):
            return PlainSpikes(steps, every, function)
    return None


def plain_periods(
    parts: list[PlainPart], called: Called, durations: list[int], functions: list[Function]
) -> tuple[list[PlainPart], list[PlainPeriod]]:
    """The parts with their periodic time apart, and the periods, most expensive first."""
    n, usual = len(durations), median(durations)
    if n < 8:
        return parts, []
    groups: dict[tuple[Cause, str], list[PlainPart]] = {}
    for part in parts:
        name = part.caller if part.cause == Cause.DISPATCH and part.caller else part.culprit
        groups.setdefault((part.cause, name), []).append(part)
    totals = {key: [sum(part.time[i] for part in group) for i in range(n)] for key, group in groups.items()}
    high = _high(totals, usual, called, functions)
    kept: list[PlainPart] = []
    periods: list[PlainPeriod] = []
    for key, group in groups.items():
        found = high.get(key)
        phases = {one.steps[0] % one.every for one in high.values() if found and one.every == found.every}
        if not found or len(phases) == found.every:
            kept += group
            continue
        total, base = totals[key], int(median(others(totals[key], found.steps)))
        excess = [max(0, total[i] - base) if i in found.steps else 0 for i in range(n)]
        if found.function:
            excess = [min(pair) for pair in zip(excess, found.function[1], strict=True)]
        for part in group:
            taken = [int(part.time[i] * (excess[i] / max(total[i], 1))) for i in range(n)]
            whose = found.function[0] if found.function else part.culprit
            rest = [one - less for one, less in zip(part.time, taken, strict=True)]
            kept.append(PlainPart(part.cause, part.culprit, part.caller, part.call, rest))
            kept.append(PlainPart(Cause.PERIODIC, whose, part.caller, part.call, taken))
        times = 1 + sum(b - a > 1 for a, b in pairwise(found.steps))
        longest = max(group, key=lambda part: sum(part.time[i] for i in found.steps))
        programs = only_these_call(called, found.steps) if key[0] == Cause.COMPUTE else ()
        culprit = found.function[0] if found.function else key[1]
        of_run = sum(excess) / times, sum(excess) / n
        periods.append(PlainPeriod(culprit, longest.call, key[0], found.every, times, *of_run, programs))
    return [part for part in kept if any(part.time)], sorted(periods, key=lambda one: -one.mean)


def _high(
    totals: dict[tuple[Cause, str], list[int]], usual: float, called: Called, functions: list[Function]
) -> dict[tuple[Cause, str], PlainSpikes]:
    """The spikes of each group of parts, also of those that another group's spikes explain."""
    high: dict[tuple[Cause, str], PlainSpikes] = {}
    for key, time in totals.items():
        if key[0] == Cause.COMPUTE:
            result = of_compute(time, usual, called, functions)
        else:
            result = far_above(time, usual) or spikes(time, usual)
        if result:
            high[key] = result
    explained = [one for key, one in high.items() if key[0] == Cause.COMPUTE and one.function]
    for key, time in totals.items():
        for one in explained:
            if one.function and one.function[0] == key[1] and any(time[step] for step in one.steps):
                high[key] = one
    apart = [one for one in high.values() if one.are_apart]
    for key, time in totals.items():
        if key[0] == Cause.COMPUTE and key not in high:
            slowed = [one for one in apart if is_longer(time, one.steps, usual)]
            if slowed:
                high[key] = slowed[0]
    return high
