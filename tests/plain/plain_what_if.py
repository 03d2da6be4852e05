"""The gain of a change to a pipeline, as the documentation defines it: a tree of stages is changed and run as
threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tb_tpuprof.analysis.tf_data.simulation import Part
from tb_tpuprof.analysis.tf_data.what_if import Model
from tests.plain.plain_pipeline import means, per_call

_MARGIN, _NO_GAIN, _MILLISECOND = 0.15, 0.05, 1e9
_BATCHES = ("Batch", "BatchV2")
Interval = tuple[float, float]


@dataclass
class Stage:
    """A stage and its inputs."""

    part: Part
    feeds: list[Stage] = field(default_factory=list)


@dataclass(frozen=True)
class PlainEstimate:
    """As `Estimate`; `limit`: the pool or the processors if they are the bound, else empty."""

    kind: str
    latency_ps: Interval
    step_ps: Interval | None
    limit: str
    is_no_gain: bool
    has_condition: bool


def estimates(model: Model) -> list[PlainEstimate] | str:
    """`now` and each change that applies; or the reason why there are none."""
    now_ps, limit = _bounded(model, model.parts, "now")
    explained = now_ps / model.period_ps
    if explained > 1.5:
        return "overlap"
    if explained < 1 / 1.5:
        return "rest"
    step = None if model.step_ps is None else (model.step_ps, model.step_ps)
    result = [PlainEstimate("now", (model.latency_ps, model.latency_ps), step, limit, False, False)]
    return result + [_estimate(model, explained, kind) for kind in changes(model)]


def changes(model: Model) -> list[str]:
    """More lanes for a function that has fewer than the pool has threads, a prefetch at the end if there is
    none, a cache, and removal of a function.
    """
    part = model.parts[model.bottleneck]
    is_function = part.name.startswith(("Map", "ParallelMap", "MapAndBatch"))
    is_parallel = is_function and part.lanes < model.pool and model.pool > 1
    ends_in_prefetch = any(one.kind == "prefetch" and one.parent == 0 for one in model.parts)
    result = ["parallel"] if is_parallel else []
    result += [] if ends_in_prefetch else ["prefetch"]
    result += ["parallel_prefetch"] if is_parallel and not ends_in_prefetch else []
    return [*result, "cache", *(["remove"] if is_function else [])]


def _estimate(model: Model, explained: float, kind: str) -> PlainEstimate:
    """The range over times as measured and two standard errors off, fused with a batch or not."""
    fused = [False, True] if _can_fuse(model, kind) else [False]
    runs = [
        _bounded(shifted, altered(shifted, kind, fuse), kind) for shifted in _shifts(model) for fuse in fused
    ]
    periods = [period for period, _ in runs]
    consumer = sum(model.consumer_ps.tolist()) / len(model.consumer_ps)
    best = periods[0] / explained if explained > 1 else periods[0]
    is_no_gain = best > (1 - _NO_GAIN) * model.period_ps
    if is_no_gain:
        low, high = 0.9 * model.period_ps, 1.1 * model.period_ps
    else:
        low = min(periods) * (1 - _MARGIN) / max(explained, 1.0)
        high = max(periods) * (1 + _MARGIN) / min(explained, 1.0)
        floor = min(consumer - min(_MILLISECOND, consumer / 2), model.period_ps)
        low, high = (min(max(bound, floor), model.period_ps) for bound in (low, high))
    step = None
    if model.step_ps is not None:
        step = (low * model.step_ps / model.period_ps, high * model.step_ps / model.period_ps)
    latency = (max(0.0, low - consumer), max(0.0, high - consumer))
    condition = model.is_python and kind.startswith("parallel") and not is_no_gain
    return PlainEstimate(kind, latency, step, runs[0][1], is_no_gain, condition)


def _shifts(model: Model) -> list[Model]:
    """As measured, and with the times of bottleneck and consumer two standard errors shorter and longer. The
    shorter consumer is shorter by at most 1 ms or half its time, whichever is less.
    """
    result = [model]
    consumer = sum(model.consumer_ps.tolist()) / len(model.consumer_ps)
    for sign in (-2, 2):
        own_error, other_error = max(0.0, 1 + sign * model.errors[0]), max(0.0, 1 + sign * model.errors[1])
        if sign < 0 and consumer:
            other_error = min(other_error, 1 - min(_MILLISECOND, consumer / 2) / consumer)
        parts = list(model.parts)
        part = parts[model.bottleneck]
        parts[model.bottleneck] = replace(
            part, work_ps=part.work_ps * own_error, function_ps=part.function_ps * own_error
        )
        result.append(replace(model, parts=tuple(parts), consumer_ps=model.consumer_ps * other_error))
    return result


def _bounded(model: Model, parts: tuple[Part, ...], kind: str) -> tuple[float, str]:
    """Mean time from call to call: that of the threads, bounded by the pool and the processors."""
    # Without its own pool, a pipeline has as many threads as its stages use.
    pool = model.pool or sum(part.lanes for part in model.parts)
    period, _ = means(parts, model.consumer_ps.tolist(), pool)
    limit = ""
    functions = 0.0
    for part, count in zip(parts, per_call(parts), strict=True):
        if len(part.function_ps):
            mean = sum(part.function_ps.tolist()) / len(part.function_ps)
            functions += mean * count * (part.batch if part.kind == "batch_lanes" else 1)
    if model.pool and functions / model.pool > period:
        period, limit = functions / model.pool, f"the thread pool ({model.pool})"
    if model.processors and kind not in ("remove", "cache") and model.cpu_ps / model.processors > period:
        period, limit = model.cpu_ps / model.processors, f"the processors ({model.processors})"
    return period, limit


def _can_fuse(model: Model, kind: str) -> bool:
    part = model.parts[model.bottleneck]
    above = model.parts[part.parent]
    is_batched = part.parent > 0 and above.name in _BATCHES and above.kind == "inline" and part.per_parent > 1
    return kind.startswith("parallel") and is_batched


def altered(model: Model, kind: str, is_fused: bool) -> tuple[Part, ...]:
    """The stages after a change."""
    stages = [Stage(part) for part in model.parts]
    for i, stage in enumerate(stages):
        if i:
            stages[stage.part.parent].feeds.append(stage)
    slow, root = stages[model.bottleneck], stages[0]
    if kind.startswith("parallel"):
        _spread(slow, model.pool)
        if is_fused:
            _fuse(stages[slow.part.parent], slow)
    if kind == "remove" and slow.part.kind == "batch_lanes":
        slow.part = replace(slow.part, work_ps=np.zeros(1), function_ps=np.zeros(1))
    elif kind in ("remove", "cache"):
        slow.part = _passing(slow.part)
    if kind == "cache":
        slow.feeds = []
    if kind.endswith("prefetch"):
        root.feeds = [
            Stage(Part("Prefetch", 0, "prefetch", 1.0, np.zeros(1), np.zeros(0), buffer=2), root.feeds)
        ]
    return tuple(_listed(root, -1, []))


def _spread(slow: Stage, lanes: int) -> None:
    part = slow.part
    if part.kind == "batch_lanes":
        slow.part = replace(part, lanes=lanes)
        return
    runs = part.function_ps if len(part.function_ps) else part.work_ps
    slow.part = replace(part, kind="lanes", lanes=lanes, function_ps=runs, work_ps=np.zeros(1))


def _fuse(batch: Stage, slow: Stage) -> None:
    """Combine a map and the batch above it."""
    size = round(slow.part.per_parent)
    batch.part = replace(
        slow.part, name="MapAndBatch", kind="batch_lanes", batch=size, per_parent=batch.part.per_parent
    )
    slow.part = _passing(slow.part)


def _passing(part: Part) -> Part:
    return replace(part, kind="inline", work_ps=np.zeros(1), function_ps=np.zeros(0))


def _listed(stage: Stage, parent: int, parts: list[Part]) -> list[Part]:
    """The parts of a tree, consumers before producers."""
    parts.append(replace(stage.part, parent=parent))
    position = len(parts) - 1
    for feed in stage.feeds:
        _listed(feed, position, parts)
    return parts
