"""Moves time to the cause that is responsible for it, where that is not what ran in it. Causes still add up
to the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.finding import Culprit
from tb_tpuprof.analysis.diagnosis.records import Calls, Gap, Part, Pools, Sync, ThreadActivity, busy_thread
from tb_tpuprof.analysis.diagnosis.step_calls import EAGER, LAUNCH, MANY, PROGRAM
from tb_tpuprof.analysis.diagnosis.tiny_calls import TinyCalls
from tb_tpuprof.analysis.steps.classes import TimeClass

Int64s = npt.NDArray[np.int64]
_PER_STEP, _SEVERAL = 0.8, 1.5
_TAKES = ("get", "get_nowait", "recv", "recv_bytes", "result", "popleft", "wait")
_LEAST = 0.03  # of the step
_BUSY_STAGES = 0.5
_LONG_CALL_PS = 10**9
_WAITING = 0.2  # of the steps, in long calls


def after_waits(
    parts: Sequence[Part], syncs: Sequence[Sync], has_accelerator: bool = False
) -> tuple[Part, ...]:
    """Charges host time after a wait in mid-step to the wait: without it, compute could hide that time.

    Host time after a step's only wait keeps its cause, unless the step dispatches more afterwards, or an
    accelerator idles meanwhile.
    """
    for sync in _by_culprit(syncs)[:1]:
        hidden_by_wait = (
            sync.after_ps if has_accelerator or sync.per_step.mean() >= _SEVERAL else sync.before_dispatch_ps
        )
        lost = np.minimum(hidden_by_wait, sync.computed_ps)
        total_ps = sum(int(part.time_ps.sum()) for part in parts)
        if sync.per_step.mean() < _PER_STEP or int(lost.sum()) < _LEAST * total_ps:
            continue
        return _moved(
            parts, lost, (Cause.PYTHON, Cause.UNRECORDED), Cause.SYNCHRONIZATION, sync.culprit, sync.call
        )
    return tuple(parts)


def _by_culprit(syncs: Sequence[Sync]) -> list[Sync]:
    """Waits merged by function, those first after which most time is lost."""
    groups: dict[Culprit, list[Sync]] = {}
    for sync in syncs:
        groups.setdefault(sync.culprit, []).append(sync)
    merged = []
    for similar in groups.values():
        per_step, after, before = (
            np.sum([getattr(one, name) for one in similar], axis=0)
            for name in ("per_step", "after_ps", "before_dispatch_ps")
        )
        merged.append(replace(similar[0], per_step=per_step, after_ps=after, before_dispatch_ps=before))
    return sorted(merged, key=lambda one: -int(one.after_ps.sum()))


def from_producers(parts: Sequence[Part], threads: Sequence[ThreadActivity]) -> tuple[Part, ...]:
    """Charges waits for a queue to input if another Python thread hands over results: its function is the
    culprit.
    """
    producer = next((one for one in threads if one.hands_over and one.culprit.name), None)
    if producer is None:
        return tuple(parts)
    return tuple(
        replace(part, cause=Cause.INPUT, culprit=producer.culprit)
        if part.cause == Cause.PYTHON and part.klass == TimeClass.HOST_WAIT and part.call in _TAKES
        else part
        for part in parts
    )


def lost_to_stages(parts: Sequence[Part], stages: float) -> tuple[Part, ...]:
    """Charges waits for Python's interpreter lock to input, if Python functions of tf.data hold it. `stages`:
    how many of them run at once.

    A trace shows such a wait as a long call on the steps' own thread: a function that computes in Python
    passes the lock on only every 5 ms, whereas a call that dispatches work takes a fraction of a millisecond.
    """
    if stages < _BUSY_STAGES or not any(part.cause == Cause.INPUT for part in parts):
        return tuple(parts)
    waits = [part for part in parts if part.cause == Cause.DISPATCH and _each_ps(part) >= _LONG_CALL_PS]
    if sum(int(part.time_ps.sum()) for part in waits) < _WAITING * sum(int(p.time_ps.sum()) for p in parts):
        return tuple(parts)
    longest = max((part for part in parts if part.cause == Cause.INPUT), key=lambda part: part.mean_ps)
    return tuple(
        replace(part, cause=Cause.INPUT, culprit=longest.culprit, caller=part.culprit, call=longest.call)
        if any(part is wait for wait in waits) or part.cause == Cause.UNRECORDED
        else part
        for part in parts
    )


def _each_ps(part: Part) -> float:
    """Mean length of a part's stretches of time."""
    return float(part.time_ps.sum()) / part.n if part.n else 0.0


def in_turns(parts: Sequence[Part], turns_ps: Int64s, syncs: Sequence[Sync]) -> tuple[Part, ...]:
    """Charges compute of devices that take turns to the wait between them."""
    total_ps = sum(int(part.time_ps.sum()) for part in parts)
    if not total_ps or int(turns_ps.sum()) < _LEAST * total_ps:
        return tuple(parts)
    wait = max(syncs, key=lambda sync: int(sync.per_step.sum()), default=None)
    culprit, call = (wait.culprit, wait.call) if wait else (Culprit(), "")
    return _moved(parts, turns_ps, (Cause.COMPUTE,), Cause.SYNCHRONIZATION, culprit, call)


def lost_to_threads(
    parts: Sequence[Part], threads: Sequence[ThreadActivity], pools: Pools
) -> tuple[Part, ...]:
    """Charges compute lost to a busy thread, which takes processors away, to that thread."""
    busiest = busy_thread(threads)
    return (
        _slowed(parts, pools.lost(busiest.running), Cause.CONTENTION, busiest.culprit)
        if busiest
        else tuple(parts)
    )


def lost_to_producers(
    parts: Sequence[Part], threads: Sequence[ThreadActivity], pools: Pools
) -> tuple[Part, ...]:
    """Charges compute lost to a thread that prepares data on the same processors to input."""
    producer = next((one for one in threads if one.hands_over and one.culprit.name), None)
    return (
        _slowed(parts, pools.lost(producer.running), Cause.INPUT, producer.culprit)
        if producer
        else tuple(parts)
    )


def lost_to_own_python(parts: Sequence[Part], ahead: ThreadActivity | None, pools: Pools) -> tuple[Part, ...]:
    """Charges compute lost to Python on the steps' own thread, which runs ahead of it, to that function."""
    return _slowed(parts, pools.lost(ahead.running), Cause.PYTHON, ahead.culprit) if ahead else tuple(parts)


def lost_to_copies(parts: Sequence[Part], copies: float, pools: Pools) -> tuple[Part, ...]:
    """Charges compute lost to concurrent copies on the same processors to transfers. `copies`: how many run
    at once.
    """
    longest = max(
        (part for part in parts if part.cause == Cause.TRANSFERS), key=lambda part: part.mean_ps, default=None
    )
    culprit, call = (longest.culprit, longest.call) if longest else (Culprit(), "")
    return _slowed(parts, pools.lost(copies), Cause.TRANSFERS, culprit, call)


def _slowed(
    parts: Sequence[Part], lost: float, to: Cause, culprit: Culprit, call: str = ""
) -> tuple[Part, ...]:
    """Parts with the fraction `lost` of the compute moved to another cause."""
    times = [part.time_ps for part in parts if part.cause == Cause.COMPUTE]
    if not times or not lost:
        return tuple(parts)
    return _moved(parts, (np.sum(times, axis=0) * lost).astype(np.int64), (Cause.COMPUTE,), to, culprit, call)


def of_tiny_calls(parts: Sequence[Part], tiny: TinyCalls) -> tuple[Part, ...]:
    """Charges the compute of tiny programs, and copies of their arguments, to dispatch: one program would
    avoid them.
    """
    if not tiny.names:
        return tuple(parts)
    calls = next((part for part in parts if part.cause == Cause.DISPATCH), None)
    function = (calls.caller if calls.caller.name else calls.culprit) if calls else Culprit()
    moved = _moved(
        parts, tiny.computed_ps, (Cause.COMPUTE,), Cause.DISPATCH, function, calls.call if calls else ""
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
    """Charges unrecorded time between many calls to dispatch: it is the framework's Python. `short_ps`: time
    in short gaps per step.
    """
    if max(calls.per_step(kind) for kind in (PROGRAM, EAGER, LAUNCH)) < MANY:
        return tuple(parts)
    named_ps: Int64s = np.sum([gap.time_ps for gap in gaps if _is_between(gap)], axis=0) + np.zeros_like(
        short_ps
    )
    return _moved(parts, np.maximum(named_ps, short_ps), (Cause.UNRECORDED,), Cause.DISPATCH, Culprit(), "")


def _is_between(gap: Gap) -> bool:
    return bool(gap.before) and gap.after.startswith(
        ("PjitFunction(", "EagerExecute", "TFE_", "aten::", "cudaLaunch", "hipLaunch")
    )


def _moved(
    parts: Sequence[Part], lost: Int64s, causes: tuple[Cause, ...], to: Cause, culprit: Culprit, call: str
) -> tuple[Part, ...]:
    """Parts with up to `lost` ps of each step moved from `causes`, largest part first, to another cause."""
    left_ps = lost.copy()
    result = []
    for part in parts:
        taken_ps = np.minimum(part.time_ps, left_ps) if part.cause in causes else np.zeros(0, np.int64)
        if not taken_ps.any():
            result.append(part)
            continue
        left_ps -= taken_ps
        result.append(replace(part, time_ps=part.time_ps - taken_ps))
        result.append(
            replace(part, cause=to, culprit=culprit, caller=part.culprit, call=call, time_ps=taken_ps)
        )
    not_empty = [part for part in result if part.time_ps.any()]
    return tuple(sorted(not_empty, key=lambda part: -part.mean_ps))
