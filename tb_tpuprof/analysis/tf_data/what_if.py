"""What a change of a tf.data pipeline would gain: the pipeline is played through with and without it (see
tf_data_simulation).
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
from tb_tpuprof.analysis.tf_data.simulation import Floats, Kind, Part, Played, play
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

# Of the model itself; set on generated pipelines, judged on others (tests/truth/tf_data_evaluation.py)
MARGIN = 0.15
SATURATED = 0.75  # share of the processors' time from which more parallelism cannot be promised anything
_MIN_CALLS = 4
_NO_GAIN = 0.05  # share of the time from call to call below which a gain is not told from none
_WAKING_PS = 1e9  # how much longer a consumer takes at most for having slept and being traced
_HOP_PS = 150e6  # from one thread to another that is free, at most
_VARIES = 0.25  # how far the mean step may be from the median one
_UNEXPLAINED = 1.5  # how far the model may be from what was measured before any change
_FUNCTIONS = ("Map", "ParallelMap", "MapAndBatch")
_BATCHES = ("BatchV2", "Batch")


@dataclass(frozen=True)
class Model:
    """A pipeline as it is played. `consumer_ps`: between calls. `period_ps`: mean time from call to call.
    `errors`: standard errors of the bottleneck's and of the consumer's times as shares. `cpu_ps`: processor
    time per call, without Python's functions.
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
    """What is altered: the bottleneck's function on n threads, a prefetch at the end, the bottleneck left
    out, or cached with its input.
    """

    parallel: int = 0
    prefetch: bool = False
    remove: bool = False
    cache: bool = False
    is_fused: bool = False


@dataclass(frozen=True)
class Estimate:
    """Times of a call and of a step after a change; `step` is absent without steps. `kind` names the change
    for programs.

    `is_no_gain`: it is as good as none.
    """

    kind: str
    change: str
    latency_ps: tuple[float, float] | None
    step_ps: tuple[float, float] | None
    limited_by: str = ""
    note: str = ""
    is_no_gain: bool = False


def what_if(trace: Trace, pipeline: Pipeline) -> tuple[Estimate, ...]:
    """`now` and each change that applies; or a single entry that says why nothing can be estimated."""
    model = build(trace, pipeline)
    if isinstance(model, str):
        return (Estimate("none", "cannot estimate", None, None, "", model),)
    now = _played(model, Change())
    explained = now.period_ps / model.period_ps if model.period_ps else 0.0
    if not 1 / _UNEXPLAINED <= explained <= _UNEXPLAINED:
        less = "the rest passes in what the trace does not show, such as other work on the same processors"
        more = "they overlap in ways that the model does not know"
        share = format_fraction(explained)
        reason = (
            f"the model of the stages gives {share} of the time from call to call: "
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
    """The interval after a change: the model as it is, with its times two standard errors off, and as far off
    as it is before.
    """
    variants = [
        _played(_shifted(model, n), changed) for n in (0, -2, 2) for changed in _variants(model, change)
    ]
    periods = [one.period_ps for one in variants]
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
        # Nothing makes the consumer itself faster, and no change here makes the pipeline slower than it is.
        low, high = min(max(low, floor), model.period_ps), min(max(high, floor), model.period_ps)
    latency = max(0.0, low - consumer), max(0.0, high - consumer)
    if change.parallel and model.is_python and not is_no_gain:
        note = "if its Python function waits, for files or the network, rather than computes"
    # The same mean on both sides: a step is as long as the time from call to call, but for what lies outside
    # of it.
    scale = model.step_ps / model.period_ps if model.step_ps is not None else 1.0
    step = (low * scale, high * scale) if model.step_ps is not None else None
    return Estimate(kind, text, latency, step, variants[0].limited_by, note, is_no_gain)


def build(trace: Trace, pipeline: Pipeline) -> Model | str:
    """The model of a pipeline, or why there is none."""
    stage = pipeline.bottleneck_stage
    if pipeline.kind == "Device":
        return "this is the copy to the device, which waits for a pipeline on the host"
    if stage is None:
        return "no stage was waited for"
    if pipeline.is_loop:
        return (
            "the loop over it runs inside of a `tf.function`, as a stage of the pipeline: consumer and "
            "input cannot be told apart"
        )
    if pipeline.thread_count > 1:
        return (
            f"{pipeline.thread_count} threads call this pipeline, so the time between its calls says "
            "nothing of its consumer"
        )
    chosen = complete_calls(pipeline)
    if len(chosen) < _MIN_CALLS:
        return (
            f"only {len(chosen)} complete calls are in the trace; at least {_MIN_CALLS} are needed: "
            "capture for longer"
        )
    if any("DataService" in one.name for one in pipeline.stages):
        return "elements come from tf.data service: its workers are not in this trace"
    parameters = parameters_of(trace, pipeline)
    whole = {key: value for options in parameters.values() for key, value in options.items()}
    processors = _number(whole.get("cpu_budget", ""))
    pool = _number(whole.get("threadpool_size", "")) or processors
    busy, python = processor_time(trace)
    if processors and busy >= SATURATED * processors:
        share = format_fraction(min(1.0, busy / processors))
        return f"the host's processors are {share} busy already: more threads would not help"
    step_ps, timing = _step(trace), _timing(pipeline)
    varies = _varies(steps(trace).duration_ps if step_ps is not None else timing[0])
    if varies:
        return varies
    parts = _parts(trace, pipeline, chosen, parameters)
    period_ps = float(timing[0].mean())
    worst = parts[pipeline.bottleneck]
    errors = _error(worst.function_ps if len(worst.function_ps) else worst.work_ps), _error(timing[1])
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


def _played(model: Model, change: Change) -> Played:
    """The pipeline after a change, not faster than the threads of the pool and the processors let it be."""
    pool = model.pool or sum(part.lanes for part in model.parts) + change.parallel
    parts = changed_parts(model, change)
    found = play(parts, model.consumer_ps, pool)
    bounds = [(found.period_ps, found.limited_by)]
    per_call = _per_call(parts)
    functions = sum(
        part.function_ps.mean() * n * (part.batch if part.kind == "batch_lanes" else 1)
        for part, n in zip(parts, per_call, strict=True) if len(part.function_ps)
    )  # fmt: skip
    if model.pool:
        bounds.append((float(functions) / model.pool, f"the thread pool ({model.pool})"))
    if model.processors and not (change.remove or change.cache):
        bounds.append((model.cpu_ps / model.processors, f"the processors ({model.processors})"))
    # Of equal bounds the first counts: the stage rather than the pool that it fills.
    period_ps, limit = max(bounds, key=lambda bound: bound[0])
    return Played(period_ps, max(0.0, period_ps - float(model.consumer_ps.mean())), limit)


def _per_call(parts: tuple[Part, ...]) -> list[float]:
    """Elements of each stage per call of the root."""
    result: list[float] = []
    for i, part in enumerate(parts):
        result.append(part.per_parent * result[part.parent] if i and part.parent >= 0 else 1.0)
    return result


def changed_parts(model: Model, change: Change) -> tuple[Part, ...]:
    """The stages after a change."""
    parts, at = list(model.parts), model.bottleneck
    part, nothing = parts[at], np.zeros(1)
    if change.parallel:
        parts[at] = _parallel(part, change.parallel)
        if change.is_fused:
            batch = replace(
                parts[at],
                kind="batch_lanes",
                name="MapAndBatch",
                batch=round(part.per_parent),
                per_parent=1.0,
            )
            parts[part.parent] = replace(
                batch, parent=parts[part.parent].parent, per_parent=parts[part.parent].per_parent
            )
            parts[at] = _passing(part)
    if change.remove:
        parts[at] = (
            replace(part, work_ps=nothing, function_ps=nothing)
            if part.kind == "batch_lanes"
            else _passing(part)
        )
    if change.cache:
        for i in range(len(parts)):
            if i == at or _feeds(parts, i, at):
                parts[i] = replace(_passing(parts[i]), per_parent=parts[i].per_parent if i == at else 0.0)
    if change.prefetch:
        ahead = Part("Prefetch", 0, "prefetch", 1.0, nothing, nothing, buffer=2)
        moved = [replace(one, parent=one.parent + 1 if one.parent > 0 else 1) for one in parts[1:]]
        parts = [parts[0], ahead, *moved]
    return tuple(parts)


def _parallel(part: Part, lanes: int) -> Part:
    """A map on so many lanes."""
    if part.kind == "batch_lanes":
        return replace(part, lanes=lanes)
    function = part.function_ps if len(part.function_ps) else part.work_ps
    return replace(part, kind="lanes", work_ps=np.zeros(1), function_ps=function, lanes=lanes)


def _passing(part: Part) -> Part:
    """A stage that hands on what it gets at once."""
    return replace(part, kind="inline", work_ps=np.zeros(1), function_ps=np.zeros(0))


def _feeds(parts: list[Part], at: int, consumer: int) -> bool:
    """Whether a stage lies above another, which consumes what it makes."""
    while at > consumer:  # parents come before children
        at = parts[at].parent
        if at == consumer:
            return True
    return False


def _variants(model: Model, change: Change) -> list[Change]:
    """A change as it may turn out: tf.data fuses a parallel map with the batch above it, unless its
    optimizations are off.
    """
    part = model.parts[model.bottleneck]
    above = model.parts[part.parent] if part.parent > 0 else None
    can_fuse = (
        change.parallel
        and above
        and above.name in _BATCHES
        and above.kind == "inline"
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
    # What a prefetch at the end would take off the caller's thread.
    can_prefetch = not any(one.kind == "prefetch" and one.parent == 0 for one in model.parts)
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
    mine, consumer = (max(0.0, 1 + n * error) for error in model.errors)
    mean = float(model.consumer_ps.mean())
    if n < 0 and mean:
        consumer = min(consumer, 1 - _spared(mean) / mean)
    parts = list(model.parts)
    part = parts[model.bottleneck]
    parts[model.bottleneck] = replace(part, work_ps=part.work_ps * mine, function_ps=part.function_ps * mine)
    return replace(model, parts=tuple(parts), consumer_ps=model.consumer_ps * consumer)


def _spared(consumer_ps: float) -> float:
    """What a step may cost less without waiting and without the profiler: a thread that slept runs slowly at
    first.
    """
    return min(_WAKING_PS, consumer_ps / 2)


def _parts(
    trace: Trace, pipeline: Pipeline, chosen: Rows, parameters: dict[str, dict[str, str]]
) -> tuple[Part, ...]:
    """The stages with their times, event by event, of complete calls."""
    found = forest(trace)
    wanted = np.zeros(len(found), np.bool_)
    wanted[chosen] = True
    events = np.flatnonzero(found.call >= 0)
    events = events[wanted[found.call[events]]]
    index = {stage.long_name: i for i, stage in enumerate(pipeline.stages)}
    stage_of = np.array([index.get(name, -1) for name in found.stages], np.int64)[found.node[events]]
    events = events[np.argsort(found.start_ps[events], kind="stable")]
    stage_of = np.array([index.get(name, -1) for name in found.stages], np.int64)[found.node[events]]
    count = np.maximum(1, np.bincount(stage_of[stage_of >= 0], minlength=len(pipeline.stages)))
    runs_of = _runs(found, wanted, index)
    return tuple(
        _part(
            stage,
            found,
            events[stage_of == i],
            runs_of.get(i, np.zeros(0)),
            parameters.get(stage.long_name, {}),
            _ratio(count, stage, i),
        )
        for i, stage in enumerate(pipeline.stages)
    )


def _runs(found: Forest, wanted: npt.NDArray[np.bool_], index: dict[str, int]) -> dict[int, Floats]:
    """Of each stage the times that its function's runs keep a lane, in time order."""
    call = found.call[found.runs.event]
    kept = (call >= 0) & wanted[np.maximum(call, 0)]
    event, took = found.runs.event[kept], found.runs.took_ps[kept].astype(np.float64)
    # A lane takes its next element when a thread has heard that the last is done, and another has begun:
    # twice what a hop takes.
    late = found.runs.late_ps[kept]
    took += 2 * min(_HOP_PS, float(np.quantile(late, 0.25))) if len(late) else 0.0
    stage = np.array([index.get(name, -1) for name in found.stages], np.int64)[found.node[event]]
    return {i: took[stage == i] for i in np.unique(stage).tolist()}


def _ratio(count: npt.NDArray[np.int64], stage: Stage, at: int) -> float:
    """Elements of a stage per element of its consumer; whole numbers where the capture's edges blur them."""
    if stage.parent < 0 or stage.parent == at:
        return 1.0
    ratio = float(count[at] / count[stage.parent])
    near = round(ratio)
    return float(near) if near and abs(ratio - near) <= 0.15 * near else ratio


def _part(
    stage: Stage, found: Forest, events: Rows, runs: Floats, options: dict[str, str], ratio: float
) -> Part:
    kind = _kind(stage)
    lanes = max(1, _number(options.get("parallelism", "")))
    work = found.work_ps[events].astype(np.float64) if kind == "inline" else np.zeros(1)
    function = runs
    if kind == "lanes" and not len(runs):
        function = found.work_ps[events].astype(np.float64)
    buffer = _number(options.get("buffer_limit", "")) or 2
    if kind == "woven":
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
        return "woven"
    return "lanes" if stage.is_async else "inline"


def _timing(pipeline: Pipeline) -> tuple[Floats, Floats]:
    """From each call's start to the next one's, and from its end to the next one's start."""
    between = np.diff(pipeline.start_ps)
    gaps = np.maximum(between - pipeline.duration_ps[:-1], 0)
    return between.astype(np.float64), gaps.astype(np.float64)


def _step(trace: Trace) -> float | None:
    """The mean step, as the page's tile shows it."""
    found = steps(trace)
    return float(found.duration_ps.mean()) if len(found) else None


def _varies(times: Ints | Floats) -> str:
    """Why times vary too much for a mean to say anything of a change; empty if they do not."""
    mean, median = float(np.mean(times)), float(np.median(times))
    if not median or abs(mean / median - 1) <= _VARIES:
        return ""
    return f"step times vary: the mean is {format_time(mean)}, the median {format_time(median)}"


def _error(values: Floats) -> float:
    """Standard error of a mean, as a share of it."""
    mean = float(values.mean()) if len(values) else 0.0
    return float(values.std(ddof=1)) / len(values) ** 0.5 / mean if len(values) > 1 and mean else 0.0


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() and int(text) > 0 else 0


@once
def processor_time(trace: Trace) -> tuple[float, float]:
    """Processors that executors kept busy on average, Python's functions left out; and the share of these in
    the executors' time.
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
