"""Time moved from one cause to another, with loops over parts and steps instead of arrays.

A part is a row [cause, culprit, caller, call, class, stretches, time in each step].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.steps.classes import TimeClass


@dataclass(frozen=True)
class Row:
    """A part."""

    cause: Cause
    culprit: str
    caller: str
    call: str
    klass: TimeClass
    n: int
    time: tuple[int, ...]


class Wait(NamedTuple):
    """A wait for the device: its culprit, its call, and per step how often, and what follows it."""

    culprit: str
    call: str
    per_step: list[int]
    after: list[int]
    before_dispatch: list[int]
    computed: list[int]


class Thread(NamedTuple):
    """A thread: its culprit, the share in which it runs, whether it hands over results."""

    culprit: str
    running: float
    hands_over: bool


def total(rows: Sequence[Row]) -> int:
    """Time of all steps."""
    return sum(sum(row.time) for row in rows)


def moved(
    rows: Sequence[Row], lost: Sequence[int], causes: Sequence[Cause], to: Cause, culprit: str, call: str
) -> list[Row]:
    """Take up to `lost` from each step of these causes, part by part, and sort what is left by its time."""
    left, result = list(lost), []
    for row in rows:
        taken = [0] * len(row.time)
        if row.cause in causes:
            taken = [min(pair) for pair in zip(row.time, left, strict=True)]
        left = [have - less for have, less in zip(left, taken, strict=True)]
        if not any(taken):
            result.append(row)
            continue
        rest = tuple(have - less for have, less in zip(row.time, taken, strict=True))
        result.append(replace(row, time=rest))
        result.append(
            replace(row, cause=to, culprit=culprit, caller=row.culprit, call=call, time=tuple(taken))
        )
    return sorted((row for row in result if any(row.time)), key=lambda row: -sum(row.time))


def after_waits(rows: Sequence[Row], waits: Sequence[Wait], has_accelerator: bool) -> list[Row]:
    """Host time behind the waits of the function after which most is lost."""
    by_culprit: dict[str, Wait] = {}
    for wait in waits:
        first = by_culprit.get(wait.culprit)
        if first:
            columns = [
                [a + b for a, b in zip(one, other, strict=True)]
                for one, other in zip(first[2:5], wait[2:5], strict=True)
            ]
            by_culprit[wait.culprit] = Wait(first.culprit, first.call, *columns, first.computed)
        else:
            by_culprit[wait.culprit] = wait
    if not by_culprit:
        return list(rows)
    wait = max(by_culprit.values(), key=lambda one: sum(one.after))
    mean = sum(wait.per_step) / len(wait.per_step)
    hidden = wait.after if has_accelerator or mean >= 1.5 else wait.before_dispatch
    lost = [min(pair) for pair in zip(hidden, wait.computed, strict=True)]
    if mean < 0.8 or sum(lost) < 0.03 * total(rows):
        return list(rows)
    causes = (Cause.PYTHON, Cause.UNRECORDED)
    return moved(rows, lost, causes, Cause.SYNCHRONIZATION, wait.culprit, wait.call)


def lost_to_stages(rows: Sequence[Row], stages: float) -> list[Row]:
    """Long calls and unrecorded time, if functions of tf.data hold the interpreter's lock for long enough."""
    inputs = [row for row in rows if row.cause == Cause.INPUT]
    long_calls = [
        row for row in rows if row.cause == Cause.DISPATCH and row.n and sum(row.time) / row.n >= 10**9
    ]
    if stages < 0.5 or not inputs or total(long_calls) < 0.2 * total(rows):
        return list(rows)
    longest = max(inputs, key=lambda row: sum(row.time))
    return [
        replace(row, cause=Cause.INPUT, culprit=longest.culprit, caller=row.culprit, call=longest.call)
        if row in long_calls or row.cause == Cause.UNRECORDED
        else row
        for row in rows
    ]


def from_producers(rows: Sequence[Row], threads: Sequence[Thread]) -> list[Row]:
    """Waits for a queue, if a thread with a name hands over results."""
    takes = ("get", "get_nowait", "recv", "recv_bytes", "result", "popleft", "wait")
    for thread in threads:
        if thread.hands_over and thread.culprit:
            return [
                replace(row, cause=Cause.INPUT, culprit=thread.culprit)
                if (row.cause, row.klass) == (Cause.PYTHON, TimeClass.HOST_WAIT) and row.call in takes
                else row
                for row in rows
            ]
    return list(rows)


def in_turns(rows: Sequence[Row], turns: Sequence[int], waits: Sequence[Wait]) -> list[Row]:
    """Compute of devices that take turns; the most frequent wait is the culprit."""
    if not total(rows) or sum(turns) < 0.03 * total(rows):
        return list(rows)
    wait = max(waits, key=lambda one: sum(one.per_step), default=None)
    culprit, call = (wait.culprit, wait.call) if wait else ("", "")
    return moved(rows, turns, (Cause.COMPUTE,), Cause.SYNCHRONIZATION, culprit, call)


def slowed(rows: Sequence[Row], running: float, pool: tuple[int, float], to: Cause, *whose: str) -> list[Row]:
    """The share of compute that so many running threads take from a pool (threads, active ones)."""
    n, active = pool
    runnable = min(active, n) + running
    lost = max(0.0, 1 - n / runnable) if n and runnable else 0.0
    times = [row.time for row in rows if row.cause == Cause.COMPUTE]
    if not times or not lost:
        return list(rows)
    taken = [int(sum(step) * lost) for step in zip(*times, strict=True)]
    return moved(rows, taken, (Cause.COMPUTE,), to, *whose)


def of_threads(rows: Sequence[Row], threads: Sequence[Thread], pool: tuple[int, float]) -> list[Row]:
    """What the first thread that runs for 30% and hands over nothing takes away."""
    for one in threads:
        if one.running >= 0.3 and not one.hands_over and one.culprit:
            return slowed(rows, one.running, pool, Cause.CONTENTION, one.culprit, "")
    return list(rows)


def of_producers(rows: Sequence[Row], threads: Sequence[Thread], pool: tuple[int, float]) -> list[Row]:
    """What the first thread that hands over results takes away."""
    for one in threads:
        if one.hands_over and one.culprit:
            return slowed(rows, one.running, pool, Cause.INPUT, one.culprit, "")
    return list(rows)


def of_copies(rows: Sequence[Row], copies: float, pool: tuple[int, float]) -> list[Row]:
    """What concurrent copies take away; the longest one is the culprit."""
    longest = max(
        (row for row in rows if row.cause == Cause.TRANSFERS), key=lambda row: sum(row.time), default=None
    )
    whose = (longest.culprit, longest.call) if longest else ("", "")
    return slowed(rows, copies, pool, Cause.TRANSFERS, *whose)


def of_tiny_calls(rows: Sequence[Row], names: frozenset[str], computed: Sequence[int]) -> list[Row]:
    """Compute of tiny programs and copies for them; the function that calls most is the culprit."""
    if not names:
        return list(rows)
    calls = [row for row in rows if row.cause == Cause.DISPATCH]
    culprit, call = (calls[0].caller or calls[0].culprit, calls[0].call) if calls else ("", "")
    return [
        replace(row, cause=Cause.DISPATCH) if row.cause == Cause.TRANSFERS and row.call in names else row
        for row in moved(rows, computed, (Cause.COMPUTE,), Cause.DISPATCH, culprit, call)
    ]


def between_calls(
    rows: Sequence[Row],
    gaps: Sequence[tuple[str, str, list[int]]],
    short: Sequence[int],
    n_calls: dict[str, float],
    is_call: Callable[[str], bool],
) -> list[Row]:
    """Unrecorded time between calls, if one kind of them has 8 per step."""
    if max(n_calls.values()) < 8:
        return list(rows)
    named = [0] * len(short)
    for before, after, time in gaps:
        if before and is_call(after):
            named = [a + b for a, b in zip(named, time, strict=True)]
    lost = [max(pair) for pair in zip(named, short, strict=True)]
    return moved(rows, lost, (Cause.UNRECORDED,), Cause.DISPATCH, "", "")
