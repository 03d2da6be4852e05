"""What a change of a tf.data pipeline would gain: a model of who waits for whom, bounded by everything that could be the next limit.

consumer   ├ call ┤ step ├ call ┤          a step cannot be shorter than what the consumer itself takes,
ahead      ├ Map ├ Map ├ Map ├             nor than any stretch of stages that runs on a thread of its own,
pool       ├ f ├ f ├ f ├ f ├               nor than all functions of a call on the pool's threads, nor than its work on the processors
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.links import EXECUTOR
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.stat_rows import events_named
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.analysis.tf_data import Pipeline, call
from tb_tpuprof.analysis.tf_data_forest import Bools, Ints, forest
from tb_tpuprof.trace.trace import Trace

MARGIN = 0.08  # of the model itself, set on pipelines that were measured before and after a change (tests/data/tf_data), in two captures
SATURATED = 0.75  # share of the processors' time from which more parallelism cannot be promised anything
_MIN_CALLS = 4
_OUTLIER = 3.0
_UNEXPLAINED = 1.5  # how far the model may be from what was measured before any change
_FUNCTIONS = ("Map", "ParallelMap", "MapAndBatch")


@dataclass(frozen=True)
class Part:
    """A stage in the model: mean work per call of the pipeline and its standard error; `parallelism` of its function, 0 if in line."""

    name: str
    parent: int
    work_ps: float
    function_ps: float
    error: float
    parallelism: int
    is_async: bool


@dataclass(frozen=True)
class Model:
    """A pipeline as the model sees it. `consumer_ps`: between calls. `cpu_ps`: processor time per call, without Python's functions."""

    parts: tuple[Part, ...]
    bottleneck: int
    consumer_ps: float
    consumer_error: float
    period_ps: float
    step_ps: float | None
    pool: int
    processors: int
    cpu_ps: float
    is_python: bool


@dataclass(frozen=True)
class Change:
    """What is altered: the bottleneck's function on n threads, a prefetch at the end, the bottleneck left out, or cached with its input."""

    parallel: int = 0
    prefetch: bool = False
    remove: bool = False
    cache: bool = False


@dataclass(frozen=True)
class Estimate:
    """Times of a call and of a step after a change; `step` is absent without steps. `kind` names the change for programs."""

    kind: str
    change: str
    latency_ps: tuple[float, float] | None
    step_ps: tuple[float, float] | None
    limited_by: str = ""
    note: str = ""


def what_if(trace: Trace, pipeline: Pipeline) -> tuple[Estimate, ...]:
    """`now` and each change that applies; or a single entry that says why nothing can be estimated."""
    model = build(trace, pipeline)
    if isinstance(model, str):
        return (Estimate("none", "cannot estimate", None, None, "", model),)
    now, limit = period(model, Change())
    explained = now / model.period_ps if model.period_ps else 0.0
    if not 1 / _UNEXPLAINED <= explained <= _UNEXPLAINED:
        less = "the rest passes in what the trace does not show, such as other work on the same processors"
        more = "they overlap in ways that the model does not know"
        reason = f"the stages' work is {explained:.0%} of the time from call to call: {less if explained < 1 else more}"
        return (Estimate("none", "cannot estimate", None, None, "", reason),)
    scale = max(1.0, 1 / explained)
    measured = (model.period_ps, model.period_ps)
    result = [_estimate(model, "now", "now", measured, limit, "as measured")]
    for kind, text, change in _changes(model):
        middle, limit = period(model, change)
        low, _ = period(_shifted(model, -2), change)
        high, _ = period(_shifted(model, 2), change)
        low, high = min(low, middle) * (1 - MARGIN / 2), max(high, middle) * scale * (1 + MARGIN)
        note = "if its Python function waits, for files or the network, rather than computes" if change.parallel and model.is_python else ""
        result.append(_estimate(model, kind, text, (low, min(high, max(model.period_ps, low))), limit, note))
    if len(result) == 1:
        return (replace(result[0], note="no change of this pipeline is known whose gain could be computed"),)
    return tuple(result)


def build(trace: Trace, pipeline: Pipeline) -> Model | str:
    """The model of a pipeline, or why there is none."""
    stage = pipeline.bottleneck_stage
    if pipeline.kind == "Device":
        return "this is the copy to the device: what it waits for is made by a pipeline of the host"
    if stage is None:
        return "no stage took any time"
    if pipeline.thread_count > 1:
        return f"{pipeline.thread_count} threads call this pipeline, so the time between its calls says nothing of its consumer"
    typical = _typical(trace, pipeline)
    if len(typical) < _MIN_CALLS:
        return f"only {len(typical)} complete calls are in the trace; at least {_MIN_CALLS} are needed: capture for longer"
    gaps = _gaps(pipeline)
    parameters = {node.long_name: dict(node.parameters) for node in call(trace, pipeline, 1).nodes}
    whole = {key: value for options in parameters.values() for key, value in options.items()}
    processors = _number(whole.get("cpu_budget", ""))
    if not processors:
        return "the trace does not tell how many processors the pipeline may use (`cpu_budget`)"
    busy, python = processor_time(trace)
    if busy >= SATURATED * processors:
        return f"the host's processors are {min(1.0, busy / processors):.0%} busy already: more parallelism would only share them out anew"
    parts = _parts(trace, pipeline, typical, parameters)
    consumer, consumer_error = _mean(gaps)
    period_ps = float(np.mean(np.diff(pipeline.start_ps)[_usual(np.diff(pipeline.start_ps))]))
    step = float(np.median(steps(trace).duration_ps)) if len(steps(trace)) else None
    pool = _number(whole.get("threadpool_size", "")) or processors
    return Model(
        parts, pipeline.bottleneck, consumer, consumer_error, period_ps, step, pool, processors, busy * period_ps, python > 0.5,
    )  # fmt: skip


def period(model: Model, change: Change) -> tuple[float, str]:
    """Time from call to call after a change, and what limits it."""
    bounds: list[tuple[float, str]] = []
    line = _visit(model, change, 0, bounds) if model.parts else 0.0
    if change.prefetch:
        bounds.append((line, _heaviest(model, change)))
        line = 0.0
    bounds.append((model.consumer_ps + line, "the consumer" if line < model.consumer_ps else _heaviest(model, change)))
    functions = sum(part.function_ps for i, part in enumerate(model.parts) if not _is_gone(model, change, i))
    bounds.append((functions / model.pool, f"the thread pool ({model.pool})"))
    bounds.append((model.cpu_ps / model.processors if not (change.remove or change.cache) else 0.0, f"the processors ({model.processors})"))
    # Of equal bounds the first counts: the stage rather than the pool that it fills.
    return max(bounds, key=lambda bound: bound[0])


def _visit(model: Model, change: Change, at: int, bounds: list[tuple[float, str]]) -> float:
    """Time that a stage takes of its caller's thread; stretches that run on threads of their own are put among the bounds."""
    part = model.parts[at]
    above = sum(_visit(model, change, i, bounds) for i, other in enumerate(model.parts) if other.parent == at and i != at)
    if _is_gone(model, change, at):
        return 0.0 if change.cache else above
    lanes = change.parallel if at == model.bottleneck and change.parallel else part.parallelism
    function = max(part.function_ps, part.work_ps if not part.is_async else 0.0)
    if lanes and (part.function_ps or at == model.bottleneck) and part.name.startswith(_FUNCTIONS):
        # A thread takes an input, then runs the function on it; inputs come one at a time.
        bounds.append((max(above, (above + function) / lanes), part.name if function >= above else _heaviest(model, change, at)))
        return 0.0
    if part.is_async:
        shared = max(1, part.parallelism) if "Interleave" in part.name else 1
        bounds.append((above / shared, part.name if not above else _heaviest(model, change, at)))
        return 0.0
    return part.work_ps + above


def _is_gone(model: Model, change: Change, at: int) -> bool:
    if at == model.bottleneck:
        return change.remove or change.cache
    return change.cache and _feeds(model, at, model.bottleneck)


def _feeds(model: Model, at: int, consumer: int) -> bool:
    """Whether a stage lies above another, which consumes what it makes."""
    while at > consumer:  # parents come before children
        at = model.parts[at].parent
        if at == consumer:
            return True
    return False


def _heaviest(model: Model, change: Change, below: int = -1) -> str:
    """The stage with most work that is left, of all or of those that feed one."""
    left = [
        part for i, part in enumerate(model.parts)
        if not _is_gone(model, change, i) and not (change.parallel and i == model.bottleneck) and (below < 0 or _feeds(model, i, below))
    ]  # fmt: skip
    return max(left, key=lambda part: max(part.work_ps, part.function_ps)).name if left else "the consumer"


def _changes(model: Model) -> list[tuple[str, str, Change]]:
    """The changes that apply to the bottleneck: kind, words, change."""
    part = model.parts[model.bottleneck]
    result = []
    n = model.pool
    can_parallel = part.name.startswith(_FUNCTIONS) and n > max(1, part.parallelism)
    inline = _visit(model, Change(), 0, [])
    can_prefetch = inline > 0.02 * model.period_ps
    if can_parallel:
        result.append(("parallel", f"num_parallel_calls={n}", Change(parallel=n)))
    if can_prefetch:
        result.append(("prefetch", "prefetch at the end", Change(prefetch=True)))
    if can_parallel and can_prefetch:
        result.append(("parallel_prefetch", f"num_parallel_calls={n} and prefetch", Change(parallel=n, prefetch=True)))
    result.append(("cache", f"cache after {part.name}, once it is filled", Change(cache=True)))
    if part.name.startswith(_FUNCTIONS):
        result.append(("remove", f"without {part.name} (done beforehand)", Change(remove=True)))
    return result


def _estimate(model: Model, kind: str, text: str, times: tuple[float, float], limit: str, note: str) -> Estimate:
    low, high = times
    shift = model.period_ps - model.step_ps if model.step_ps is not None else 0.0
    latency = max(0.0, low - model.consumer_ps), max(0.0, high - model.consumer_ps)
    step = (max(0.0, low - shift), max(0.0, high - shift)) if model.step_ps is not None else None
    return Estimate(kind, text, latency, step, limit, note)


def _shifted(model: Model, n: float) -> Model:
    """The model with all times n standard errors off."""
    parts = tuple(
        replace(part, work_ps=part.work_ps * max(0.0, 1 + n * part.error), function_ps=part.function_ps * max(0.0, 1 + n * part.error))
        for part in model.parts
    )
    return replace(model, parts=parts, consumer_ps=model.consumer_ps * max(0.0, 1 + n * model.consumer_error))


def _parts(trace: Trace, pipeline: Pipeline, typical: Ints, parameters: dict[str, dict[str, str]]) -> tuple[Part, ...]:
    found = forest(trace)
    column = np.full(len(found), -1, np.int64)
    column[typical] = np.arange(len(typical))
    events = np.flatnonzero(found.call >= 0)
    events = events[column[found.call[events]] >= 0]
    index = {stage.long_name: i for i, stage in enumerate(pipeline.stages)}
    row = np.array([index.get(name, -1) for name in found.stages], np.int64)[found.node[events]]
    work, function = (np.zeros((len(pipeline.stages), len(typical))) for _ in range(2))
    np.add.at(work, (row, column[found.call[events]]), found.work_ps[events])
    np.add.at(function, (row, column[found.call[events]]), found.function_ps[events])
    result = []
    for i, stage in enumerate(pipeline.stages):
        options = parameters.get(stage.long_name, {})
        mean, error = _mean(np.maximum(work[i], function[i]) if stage.is_async else work[i])
        lanes = _number(options.get("parallelism", "")) if stage.is_async else 0
        ran = float(function[i].mean())
        result.append(Part(stage.name, stage.parent, min(mean, float(work[i].mean())), ran, error, lanes, stage.is_async))
    return tuple(result)


def _typical(trace: Trace, pipeline: Pipeline) -> Ints:
    """Calls that are complete (what was made for them is in the trace too) and took no outlier's time."""
    found = forest(trace)
    sizes = np.zeros(len(found), np.int64)
    np.add.at(sizes, found.call[found.call >= 0], 1)
    n_events = sizes[pipeline.calls]
    took = np.append(np.diff(pipeline.start_ps), pipeline.duration_ps[-1])
    kept: Ints = pipeline.calls[(n_events * 2 >= np.median(n_events)) & _usual(took)]
    return kept


def _usual(values: Ints) -> Bools:
    """Values that are no outliers, such as a pause of the whole machine."""
    return values <= _OUTLIER * max(1.0, float(np.quantile(values, 0.75))) if len(values) else np.empty(0, np.bool_)


def _gaps(pipeline: Pipeline) -> Ints:
    """From the end of each call to the start of the next, without outliers."""
    gaps = np.maximum(pipeline.start_ps[1:] - (pipeline.start_ps + pipeline.duration_ps)[:-1], 0)
    return gaps[_usual(gaps)]


def _mean(values: npt.NDArray[np.generic]) -> tuple[float, float]:
    """Mean and its standard error as a share of it."""
    if not len(values):
        return 0.0, 0.0
    numbers = values.astype(np.float64)
    mean = float(numbers.mean())
    error = float(numbers.std(ddof=1)) / np.sqrt(len(numbers)) if len(numbers) > 1 else 0.0
    return mean, float(error / mean) if mean else 0.0


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() and int(text) > 0 else 0


@once
def processor_time(trace: Trace) -> tuple[float, float]:
    """Processors that executors kept busy on average, Python's functions left out; and the share of these in the executors' time."""
    events = trace.events
    executed = events_named(trace, (EXECUTOR,))
    if not len(executed):
        return 0.0, 0.0
    span = max(1, int((events["start_ps"] + events["duration_ps"]).max() - events["start_ps"].min()))
    names = [i for i, name in enumerate(trace.strings.all) if name.endswith(("PyFunc", "PyFuncStateless"))]
    python = np.flatnonzero(np.isin(trace.metadata["name"], names)[events["metadata"]])
    total = float(events["duration_ps"][executed].sum())
    interpreted = min(total, float(events["duration_ps"][python].sum()))
    return (total - interpreted) / span, interpreted / total if total else 0.0
