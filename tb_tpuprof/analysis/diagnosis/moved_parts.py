"""Time whose cause is something else than what ran in it: it moves from its own cause to that one, so that
causes still add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Beside, Calls, Gap, Part, Pools, Sync, busy_thread
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, LAUNCH, MANY, PROGRAM
from tb_tpuprof.analysis.diagnosis.tiny_calls import TinyCalls
from tb_tpuprof.analysis.steps.classes import TimeClass

Int64s = npt.NDArray[np.int64]
_PER_STEP, _SEVERAL = 0.8, 1.5
_TAKES = ("get", "get_nowait", "recv", "recv_bytes", "result", "popleft", "wait")
_LEAST = 0.03  # of the step


def behind_waits(
    parts: Sequence[Part], syncs: Sequence[Sync], has_accelerator: bool = False
) -> tuple[Part, ...]:
    """The host's time behind a wait for the device in mid-step is the wait's: it could be hidden while
    something computes.

    Behind a step's only wait it is what the host does by itself, unless the step dispatches more then, or an
    accelerator idles meanwhile.
    """
    for sync in _by_culprit(syncs)[:1]:
        after = (
            sync.after_ps if has_accelerator or sync.per_step.mean() >= _SEVERAL else sync.before_dispatch_ps
        )
        lost = np.minimum(after, sync.computed_ps)
        whole = sum(int(part.time_ps.sum()) for part in parts)
        if sync.per_step.mean() < _PER_STEP or int(lost.sum()) < _LEAST * whole:
            continue
        return _moved(
            parts, lost, (Cause.PYTHON, Cause.UNRECORDED), Cause.SYNCHRONIZATION, sync.culprit, sync.call
        )
    return tuple(parts)


def _by_culprit(syncs: Sequence[Sync]) -> list[Sync]:
    """Waits of one function put together, whatever shows each of them; those first behind which most time is
    lost.
    """
    groups: dict[Culprit, list[Sync]] = {}
    for sync in syncs:
        groups.setdefault(sync.culprit, []).append(sync)
    found = []
    for same in groups.values():
        per_step, after, before = (
            np.sum([getattr(one, name) for one in same], axis=0)
            for name in ("per_step", "after_ps", "before_dispatch_ps")
        )
        found.append(replace(same[0], per_step=per_step, after_ps=after, before_dispatch_ps=before))
    return sorted(found, key=lambda one: -int(one.after_ps.sum()))


def from_producers(parts: Sequence[Part], beside: Sequence[Beside]) -> tuple[Part, ...]:
    """What a step waits for in a queue is input where another Python thread hands things over: that thread's
    function is the culprit.
    """
    producer = next((one for one in beside if one.hands_over and one.culprit.name), None)
    if producer is None:
        return tuple(parts)
    return tuple(
        replace(part, cause=Cause.INPUT, culprit=producer.culprit)
        if part.cause == Cause.PYTHON and part.klass == TimeClass.HOST_WAIT and part.call in _TAKES
        else part
        for part in parts
    )


def in_turns(parts: Sequence[Part], turns_ps: Int64s, syncs: Sequence[Sync]) -> tuple[Part, ...]:
    """What devices compute one after the other is the wait's between them."""
    whole = sum(int(part.time_ps.sum()) for part in parts)
    if not whole or int(turns_ps.sum()) < _LEAST * whole:
        return tuple(parts)
    wait = max(syncs, key=lambda sync: int(sync.per_step.sum()), default=None)
    culprit, call = (wait.culprit, wait.call) if wait else (Culprit(), "")
    return _moved(parts, turns_ps, (Cause.COMPUTE,), Cause.SYNCHRONIZATION, culprit, call)


def beside_threads(parts: Sequence[Part], beside: Sequence[Beside], pools: Pools) -> tuple[Part, ...]:
    """What computing loses to a busy thread that takes processors away is that thread's."""
    worst = busy_thread(beside)
    return (
        _slowed(parts, pools.lost(worst.running), Cause.CONTENTION, worst.culprit) if worst else tuple(parts)
    )


def beside_producers(parts: Sequence[Part], beside: Sequence[Beside], pools: Pools) -> tuple[Part, ...]:
    """What computing loses to a thread that makes the steps' data on the same processors is input."""
    producer = next((one for one in beside if one.hands_over and one.culprit.name), None)
    return (
        _slowed(parts, pools.lost(producer.running), Cause.INPUT, producer.culprit)
        if producer
        else tuple(parts)
    )


def beside_own_python(parts: Sequence[Part], own: Beside | None, pools: Pools) -> tuple[Part, ...]:
    """What computing loses to Python of the steps' own thread, which runs ahead of it, is that function's."""
    return _slowed(parts, pools.lost(own.running), Cause.PYTHON, own.culprit) if own else tuple(parts)


def beside_copies(parts: Sequence[Part], copies: float, pools: Pools) -> tuple[Part, ...]:
    """What computing loses to copies that run beside it on the same processors is the transfers'. `copies`:
    how many run at once.
    """
    longest = max(
        (part for part in parts if part.cause == Cause.TRANSFERS), key=lambda part: part.mean_ps, default=None
    )
    culprit, call = (longest.culprit, longest.call) if longest else (Culprit(), "")
    return _slowed(parts, pools.lost(copies), Cause.TRANSFERS, culprit, call)


def _slowed(
    parts: Sequence[Part], lost: float, to: Cause, culprit: Culprit, call: str = ""
) -> tuple[Part, ...]:
    """Parts with a share of the computing given to another cause."""
    times = [part.time_ps for part in parts if part.cause == Cause.COMPUTE]
    if not times or not lost:
        return tuple(parts)
    return _moved(parts, (np.sum(times, axis=0) * lost).astype(np.int64), (Cause.COMPUTE,), to, culprit, call)


def of_tiny_calls(parts: Sequence[Part], tiny: TinyCalls) -> tuple[Part, ...]:
    """What tiny programs compute, and copying their arguments, is the price of calling them one by one."""
    if not tiny.names:
        return tuple(parts)
    calls = next((part for part in parts if part.cause == Cause.DISPATCH), None)
    who = (calls.caller if calls.caller.name else calls.culprit) if calls else Culprit()
    moved = _moved(
        parts, tiny.computed_ps, (Cause.COMPUTE,), Cause.DISPATCH, who, calls.call if calls else ""
    )
    return tuple(
        replace(part, cause=Cause.DISPATCH)
        if part.cause == Cause.TRANSFERS and part.call in tiny.names
        else part
        for part in moved
    )


def between_calls(
    parts: Sequence[Part], gaps: Sequence[Gap], short_ps: Int64s, calls: Calls
) -> tuple[Part, ...]:
    """What is not recorded between many calls is what the framework's Python does for each of them.
    `short_ps`: in short gaps.
    """
    if max(calls.per_step(kind) for kind in (PROGRAM, EAGER, LAUNCH)) < MANY:
        return tuple(parts)
    named: Int64s = np.sum([gap.time_ps for gap in gaps if _is_between(gap)], axis=0) + np.zeros_like(
        short_ps
    )
    return _moved(parts, np.maximum(named, short_ps), (Cause.UNRECORDED,), Cause.DISPATCH, Culprit(), "")


def _is_between(gap: Gap) -> bool:
    return bool(gap.before) and gap.after.startswith(
        ("PjitFunction(", "EagerExecute", "TFE_", "aten::", "cudaLaunch", "hipLaunch")
    )


def _moved(
    parts: Sequence[Part], lost: Int64s, causes: tuple[Cause, ...], to: Cause, culprit: Culprit, call: str
) -> tuple[Part, ...]:
    """Parts with up to `lost` of each step taken from those of some causes, the largest first, and given to
    another.
    """
    left = lost.copy()
    result = []
    for part in parts:
        taken = np.minimum(part.time_ps, left) if part.cause in causes else np.zeros(0, np.int64)
        if not taken.any():
            result.append(part)
            continue
        left -= taken
        result.append(replace(part, time_ps=part.time_ps - taken))
        result.append(replace(part, cause=to, culprit=culprit, caller=part.culprit, call=call, time_ps=taken))
    kept = [part for part in result if part.time_ps.any()]
    return tuple(sorted(kept, key=lambda part: -part.mean_ps))
