"""The gain of changes to a tf.data pipeline: the pipeline is simulated with and without each change (see
`simulation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import events_named
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.forest import Forest, Ints, Rows, forest
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, complete_calls, parameters_of
from tb_tpuprof.analysis.tf_data.simulation import Floats, Kind, Part, Simulated, simulate
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

# The model's own error; fitted on generated pipelines, tested on others (tests/truth/tf_data_evaluation.py)
MARGIN = 0.15
SATURATED = 0.75  # share of the processors' time above which more parallelism promises no gain
_MIN_CALLS = 4
_NO_GAIN = 0.05  # share of the time from call to call below which a gain cannot be distinguished from none
_WAKING_PS = 1e9  # the most that sleeping and tracing lengthen a consumer's time
_HOP_PS = 150e6  # the most that a switch to another free thread takes
_VARIES = 0.25  # the most that the mean step may differ from the median step
_UNEXPLAINED = 1.5  # the most that the model may differ from the measurement before any change, as a factor
_FUNCTIONS = ("Map", "ParallelMap", "MapAndBatch")
_BATCHES = ("BatchV2", "Batch")


@dataclass(frozen=True)
class Model:
    """A pipeline to simulate. `consumer_ps`: times between calls. `period_ps`: mean time from call to call.
    `errors`: relative standard errors of the bottleneck's and of the consumer's times. `cpu_ps`: processor
    time per call, without Python functions.
    """

    parts: tuple[Part, ...]
    bottleneck: int
    consumer_ps: Floats
    period_ps: float
    latency_ps: float
    step_ps: float | None
    errors: tuple[float, float]
    pool: int
    processors: int
    cpu_ps: float
    is_python: bool


@dataclass(frozen=True)
class Change:
    """A change: the bottleneck's function on n threads, a prefetch at the end, the bottleneck removed, or
    cached with its input.
    """

    parallel: int = 0
    prefetch: bool = False
    remove: bool = False
    cache: bool = False
    is_fused: bool = False


@dataclass(frozen=True)
class Estimate:
    """Times in ps (low, high) of a call and of a step after a change; `step_ps` is None without steps. `kind`
    is the change's stable name for programs.

    `is_no_gain`: the gain is too small to count.
    """

    kind: str
    change: str
    latency_ps: tuple[float, float] | None
    step_ps: tuple[float, float] | None
    limited_by: str = ""
    note: str = ""
    is_no_gain: bool = False


def what_if(trace: Trace, pipeline: Pipeline) -> tuple[Estimate, ...]:
    """`now` and each change that applies; or a single entry with the reason why there is no estimate."""
    model = build(trace, pipeline)
    if isinstance(model, str):
        return (Estimate("none", "cannot estimate", None, None, "", model),)
    now = _simulated(model, Change())
    explained = now.period_ps / model.period_ps if model.period_ps else 0.0
    if not 1 / _UNEXPLAINED <= explained <= _UNEXPLAINED:
        less = "the trace does not show the rest, such as other work on the same processors"
        more = "they overlap in ways that the model does not cover"
        share = format_fraction(explained)
        reason = (
            f"the model of the stages accounts for {share} of the time from call to call: "
            f"{less if explained < 1 else more}"
        )
        return (Estimate("none", "cannot estimate", None, None, "", reason),)
    step = (model.step_ps, model.step_ps) if model.step_ps is not None else None
    result = [
        Estimate("now", "now", (model.latency_ps, model.latency_ps), step, now.limited_by, "as measured")
    ]
    result += [_estimate(model, explained, *change) for change in _changes(model)]
    if len(result) == 1:
        return (replace(result[0], note="no change with a predictable gain was found"),)
    return tuple(result)


def _estimate(model: Model, explained: float, kind: str, text: str, change: Change) -> Estimate:
    """The interval after a change: the model as it is, with its times two standard errors off, and scaled by
    its error before the change.
    """
    variants = [
        _simulated(_shifted(model, n), changed) for n in (0, -2, 2) for changed in _variants(model, change)
    ]
    periods = [result.period_ps for result in variants]
    low, high = (
        min(periods) * min(1.0, 1 / explained) * (1 - MARGIN),
        max(periods) * max(1.0, 1 / explained) * (1 + MARGIN),
    )
    consumer = float(model.consumer_ps.mean())
    floor = min(consumer - _spared(consumer), model.period_ps)
    note, is_no_gain = "", False
    if periods[0] * min(1.0, 1 / explained) > (1 - _NO_GAIN) * model.period_ps:
        low, high = ((1 + sign * 2 * _NO_GAIN) * model.period_ps for sign in (-1, 1))
        note, is_no_gain = "hardly any gain", True
    else:
        # Nothing makes the consumer itself faster, and none of these changes makes the pipeline slower.
        low, high = min(max(low, floor), model.period_ps), min(max(high, floor), model.period_ps)
    latency = max(0.0, low - consumer), max(0.0, high - consumer)
    if change.parallel and model.is_python and not is_no_gain:
        note = "if its Python function waits for files or the network rather than computing"
    # The same ratio before and after: a step is as long as the time from call to call, except for time
    # outside the step.
    scale = model.step_ps / model.period_ps if model.step_ps is not None else 1.0
    step = (low * scale, high * scale) if model.step_ps is not None else None
    return Estimate(kind, text, latency, step, variants[0].limited_by, note, is_no_gain)


def build(trace: Trace, pipeline: Pipeline) -> Model | str:
    """The model of a pipeline, or the reason why there is none."""
    stage = pipeline.bottleneck_stage
    if pipeline.kind == "Device":
        return "this is the copy to the device, which waits for a pipeline on the host"
    if stage is None:
        return "no call waited for a stage"
    if pipeline.is_loop:
        return (
            "the loop over the data set runs inside a `tf.function`, as a stage of the pipeline, so consumer "
            "and input cannot be separated"
        )
    if pipeline.thread_count > 1:
        return (
            f"{pipeline.thread_count} threads call this pipeline, so the time between its calls says "
            "nothing about its consumer"
        )
    calls = complete_calls(pipeline)
    if len(calls) < _MIN_CALLS:
        return (
            f"the trace has only {len(calls)} complete calls; at least {_MIN_CALLS} are needed: capture for "
            "longer"
        )
    if any("DataService" in other.name for other in pipeline.stages):
        return "elements come from tf.data service: its workers are not in this trace"
    parameters = parameters_of(trace, pipeline)
    all_options = {key: value for options in parameters.values() for key, value in options.items()}
    processors = _number(all_options.get("cpu_budget", ""))
    pool = _number(all_options.get("threadpool_size", "")) or processors
    busy, python = processor_time(trace)
    if processors and busy >= SATURATED * processors:
        share = format_fraction(min(1.0, busy / processors))
        return f"the host's processors are already {share} busy: more threads would not help"
    step_ps, timing = _step(trace), _timing(pipeline)
    varies = _varies(steps(trace).duration_ps if step_ps is not None else timing[0])
    if varies:
        return varies
    parts = _parts(trace, pipeline, calls, parameters)
    period_ps = float(timing[0].mean())
    slowest = parts[pipeline.bottleneck]
    errors = _error(slowest.function_ps if len(slowest.function_ps) else slowest.work_ps), _error(timing[1])
    return Model(
        parts,
        pipeline.bottleneck,
        timing[1],
        period_ps,
        float(pipeline.duration_ps.mean()),
        step_ps,
        errors,
        pool,
        processors,
        busy * period_ps,
        python > 0.5,
    )


def _simulated(model: Model, change: Change) -> Simulated:
    """The pipeline after a change, not faster than the pool's threads and the processors allow."""
    pool = model.pool or sum(part.lanes for part in model.parts) + change.parallel
    parts = changed_parts(model, change)
    result = simulate(parts, model.consumer_ps, pool)
    bounds = [(result.period_ps, result.limited_by)]
    per_call = _per_call(parts)
    functions = sum(
        part.function_ps.mean() * n * (part.batch if part.kind == "batch_lanes" else 1)
        for part, n in zip(parts, per_call, strict=True)
        if len(part.function_ps)
    )
    if model.pool:
        bounds.append((float(functions) / model.pool, f"the thread pool ({model.pool})"))
    if model.processors and not (change.remove or change.cache):
        bounds.append((model.cpu_ps / model.processors, f"the processors ({model.processors})"))
    # The first of equal bounds counts: the stage rather than the pool that it fills.
    period_ps, limit = max(bounds, key=lambda bound: bound[0])
    return Simulated(period_ps, max(0.0, period_ps - float(model.consumer_ps.mean())), limit)


def _per_call(parts: tuple[Part, ...]) -> list[float]:
    """Elements of each stage per call of the root."""
    result: list[float] = []
    for i, part in enumerate(parts):
        result.append(part.per_parent * result[part.parent] if i and part.parent >= 0 else 1.0)
    return result


def changed_parts(model: Model, change: Change) -> tuple[Part, ...]:
    """The stages after a change."""
    parts, index = list(model.parts), model.bottleneck
    part, nothing = parts[index], np.zeros(1)
    if change.parallel:
        parts[index] = _parallel(part, change.parallel)
        if change.is_fused:
            batch = replace(
                parts[index],
                kind="batch_lanes",
                name="MapAndBatch",
                batch=round(part.per_parent),
                per_parent=1.0,
            )
            parts[part.parent] = replace(
                batch, parent=parts[part.parent].parent, per_parent=parts[part.parent].per_parent
            )
            parts[index] = _passing(part)
    if change.remove:
        parts[index] = (
            replace(part, work_ps=nothing, function_ps=nothing)
            if part.kind == "batch_lanes"
            else _passing(part)
        )
    if change.cache:
        for i in range(len(parts)):
            if i == index or _feeds(parts, i, index):
                parts[i] = replace(_passing(parts[i]), per_parent=parts[i].per_parent if i == index else 0.0)
    if change.prefetch:
        prefetch = Part("Prefetch", 0, "prefetch", 1.0, nothing, nothing, buffer=2)
        moved = [replace(stage, parent=stage.parent + 1 if stage.parent > 0 else 1) for stage in parts[1:]]
        parts = [parts[0], prefetch, *moved]
    return tuple(parts)


def _parallel(part: Part, lanes: int) -> Part:
    """A map on `lanes` lanes."""
    if part.kind == "batch_lanes":
        return replace(part, lanes=lanes)
    function = part.function_ps if len(part.function_ps) else part.work_ps
    return replace(part, kind="lanes", work_ps=np.zeros(1), function_ps=function, lanes=lanes)


def _passing(part: Part) -> Part:
    """A stage that forwards its input at once."""
    return replace(part, kind="inline", work_ps=np.zeros(1), function_ps=np.zeros(0))


def _feeds(parts: list[Part], index: int, consumer: int) -> bool:
    """Whether the stage `index` is upstream of another, which consumes its output."""
    while index > consumer:  # parents come before children
        index = parts[index].parent
        if index == consumer:
            return True
    return False


def _variants(model: Model, change: Change) -> list[Change]:
    """The possible outcomes of a change: tf.data fuses a parallel map with the batch above it, unless its
    optimizations are off.
    """
    part = model.parts[model.bottleneck]
    consumer = model.parts[part.parent] if part.parent > 0 else None
    can_fuse = (
        change.parallel
        and consumer
        and consumer.name in _BATCHES
        and consumer.kind == "inline"
        and part.per_parent > 1
    )
    return [change, replace(change, is_fused=True)] if can_fuse else [change]


def _changes(model: Model) -> list[tuple[str, str, Change]]:
    """The changes that apply to the bottleneck: kind, words, change."""
    part = model.parts[model.bottleneck]
    is_function = part.name.startswith(_FUNCTIONS)
    n = model.pool
    result = []
    can_parallel = is_function and n > max(1, part.lanes)
    # A prefetch at the end takes work off the caller's thread.
    can_prefetch = not any(stage.kind == "prefetch" and stage.parent == 0 for stage in model.parts)
    if can_parallel:
        result.append(("parallel", f"num_parallel_calls={n}", Change(parallel=n)))
    if can_prefetch:
        result.append(("prefetch", "prefetch at the end", Change(prefetch=True)))
    if can_parallel and can_prefetch:
        result.append(
            ("parallel_prefetch", f"num_parallel_calls={n} and prefetch", Change(parallel=n, prefetch=True))
        )
    result.append(("cache", f"cache after {part.name}, once it is filled", Change(cache=True)))
    if is_function:
        result.append(("remove", f"without {part.name} (done beforehand)", Change(remove=True)))
    return result


def _shifted(model: Model, n: float) -> Model:
    """The model with the times of its bottleneck and of its consumer n standard errors off."""
    if not n:
        return model
    stage_factor, consumer_factor = (max(0.0, 1 + n * error) for error in model.errors)
    mean = float(model.consumer_ps.mean())
    if n < 0 and mean:
        consumer_factor = min(consumer_factor, 1 - _spared(mean) / mean)
    parts = list(model.parts)
    part = parts[model.bottleneck]
    parts[model.bottleneck] = replace(
        part, work_ps=part.work_ps * stage_factor, function_ps=part.function_ps * stage_factor
    )
    return replace(model, parts=tuple(parts), consumer_ps=model.consumer_ps * consumer_factor)


def _spared(consumer_ps: float) -> float:
    """Time in ps that a step may save without waiting and without the profiler: a thread runs slowly at first
    after sleeping.
    """
    return min(_WAKING_PS, consumer_ps / 2)


def _parts(
    trace: Trace, pipeline: Pipeline, calls: Rows, parameters: dict[str, dict[str, str]]
) -> tuple[Part, ...]:
    """The stages with their times, event by event, of the complete calls `calls`."""
    iterators = forest(trace)
    is_used = np.zeros(len(iterators), np.bool_)
    is_used[calls] = True
    events = np.flatnonzero(iterators.call >= 0)
    events = events[is_used[iterators.call[events]]]
    index = {stage.long_name: i for i, stage in enumerate(pipeline.stages)}
    stage_of = np.array([index.get(name, -1) for name in iterators.stages], np.int64)[iterators.node[events]]
    events = events[np.argsort(iterators.start_ps[events], kind="stable")]
    stage_of = np.array([index.get(name, -1) for name in iterators.stages], np.int64)[iterators.node[events]]
    count = np.maximum(1, np.bincount(stage_of[stage_of >= 0], minlength=len(pipeline.stages)))
    runs_of = _runs(iterators, is_used, index)
    return tuple(
        _part(
            stage,
            iterators,
            events[stage_of == i],
            runs_of.get(i, np.zeros(0)),
            parameters.get(stage.long_name, {}),
            _ratio(count, stage, i),
        )
        for i, stage in enumerate(pipeline.stages)
    )


def _runs(iterators: Forest, is_used: npt.NDArray[np.bool_], index: dict[str, int]) -> dict[int, Floats]:
    """For each stage, the times in ps that runs of its function occupy a lane, in time order."""
    call = iterators.call[iterators.runs.event]
    mask = (call >= 0) & is_used[np.maximum(call, 0)]
    event, took_ps = iterators.runs.event[mask], iterators.runs.took_ps[mask].astype(np.float64)
    # A lane takes its next element after one thread was notified that the last is done and another has
    # started: two thread switches.
    late_ps = iterators.runs.late_ps[mask]
    took_ps += 2 * min(_HOP_PS, float(np.quantile(late_ps, 0.25))) if len(late_ps) else 0.0
    stage = np.array([index.get(name, -1) for name in iterators.stages], np.int64)[iterators.node[event]]
    return {i: took_ps[stage == i] for i in np.unique(stage).tolist()}


def _ratio(count: npt.NDArray[np.int64], stage: Stage, index: int) -> float:
    """Elements of a stage per element of its consumer, rounded to a whole number where only the capture's
    edges blur it.
    """
    if stage.parent < 0 or stage.parent == index:
        return 1.0
    ratio = float(count[index] / count[stage.parent])
    rounded = round(ratio)
    return float(rounded) if rounded and abs(ratio - rounded) <= 0.15 * rounded else ratio


def _part(
    stage: Stage, iterators: Forest, events: Rows, runs: Floats, options: dict[str, str], ratio: float
) -> Part:
    kind = _kind(stage)
    lanes = max(1, _number(options.get("parallelism", "")))
    work = iterators.work_ps[events].astype(np.float64) if kind == "inline" else np.zeros(1)
    function = runs
    if kind == "lanes" and not len(runs):
        function = iterators.work_ps[events].astype(np.float64)
    buffer = _number(options.get("buffer_limit", "")) or 2
    if kind == "interleave":
        buffer = max(lanes, _number(options.get("cycle_length", ""))) * max(
            1, _number(options.get("buffer_output_elements", ""))
        )
    is_ordered = options.get("deterministic", "true") != "false"
    batch = max(1, _number(options.get("batch_size", "")))
    return Part(
        stage.name,
        stage.parent,
        kind,
        ratio,
        work if len(work) else np.zeros(1),
        function,
        lanes,
        buffer,
        batch,
        is_ordered,
    )


def _kind(stage: Stage) -> Kind:
    if stage.name.startswith("Prefetch"):
        return "prefetch"
    if stage.name.startswith("MapAndBatch"):
        return "batch_lanes"
    if "Interleave" in stage.name and stage.is_async:
        return "interleave"
    return "lanes" if stage.is_async else "inline"


def _timing(pipeline: Pipeline) -> tuple[Floats, Floats]:
    """Times in ps from each call's start to the next one's, and from its end to the next one's start."""
    between = np.diff(pipeline.start_ps)
    gaps = np.maximum(between - pipeline.duration_ps[:-1], 0)
    return between.astype(np.float64), gaps.astype(np.float64)


def _step(trace: Trace) -> float | None:
    """The mean step in ps, as in the page's tile."""
    host_steps = steps(trace)
    return float(host_steps.duration_ps.mean()) if len(host_steps) else None


def _varies(times: Ints | Floats) -> str:
    """Why times vary too much for their mean to be useful; empty if they do not."""
    mean, median = float(np.mean(times)), float(np.median(times))
    if not median or abs(mean / median - 1) <= _VARIES:
        return ""
    return f"step times vary: the mean is {format_time(mean)}, the median {format_time(median)}"


def _error(values: Floats) -> float:
    """Standard error of a mean, relative to it."""
    mean = float(values.mean()) if len(values) else 0.0
    return float(values.std(ddof=1)) / len(values) ** 0.5 / mean if len(values) > 1 and mean else 0.0


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and int(text) > 0 else 0


@once
def processor_time(trace: Trace) -> tuple[float, float]:
    """Mean number of processors that executors kept busy, without Python functions; and the share of Python
    functions in the executors' time.
    """
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
