"""The verdict on a tf.data pipeline, in words: whether the job waits for it, which stage is the bottleneck,
and the gain of the best change.

The tf.data page shows it for the selected pipeline, the overview for the one that feeds the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.ops.recommend import Level
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.advice import HIDDEN, Waiting, place, position_text, user_call, waiting
from tb_tpuprof.analysis.tf_data.changes import advice, evidence
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, parameters_of, pipelines
from tb_tpuprof.analysis.tf_data.source import source_of
from tb_tpuprof.analysis.tf_data.what_if import Estimate, what_if
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

_LEVELS: tuple[Level, ...] = ("good", "warn", "bad")
_HOW = ("", "Moderately", "Highly")
_READY = 0.5  # above this share of their time after the elements were ready, the calls themselves cost

_CONTENDED = (
    "The pipeline's functions and the step share the host's processors: give the pipeline fewer threads "
    "(`options.threading.private_threadpool_size`), make its functions cheaper, or use a host with more "
    "processors.",
)


@dataclass(frozen=True)
class PipelineVerdict:
    """All statements about a pipeline. `stage`: its bottleneck in words. `gain`: the best change with its
    interval, or why there is none.
    """

    waiting: Waiting
    level: Level
    stage: str
    work: str
    estimates: tuple[Estimate, ...]
    gain: str
    advice: tuple[str, ...]


def pipeline_verdict(trace: Trace, pipeline: Pipeline) -> PipelineVerdict:
    """The verdict on one pipeline of a host."""
    waits, stage = waiting(trace, pipeline), pipeline.bottleneck_stage
    estimates = what_if(trace, pipeline)
    level: Level = (
        "unknown"
        if waits.fraction is None
        else _LEVELS[waits.severity]
        if stage or waits.is_contended
        else "good"
    )
    in_words, work_text = (
        (stage_text(trace, pipeline, stage), _work_text(trace, pipeline, stage)) if stage else ("", "")
    )
    if waits.is_contended:
        return PipelineVerdict(waits, level, in_words, work_text, estimates, "", _CONTENDED)
    return PipelineVerdict(
        waits,
        level,
        in_words,
        work_text,
        estimates,
        _gain(estimates),
        advice(pipeline, evidence(trace, pipeline)),
    )


def by_weight(trace: Trace) -> list[Pipeline]:
    """A host's pipelines: those that feed the steps first, then the others; the slowest of each first."""
    host_steps = steps(trace)
    return sorted(
        pipelines(trace), key=lambda pipeline: (place(host_steps, pipeline) == "outside", -pipeline.max_ps)
    )


def sentence(
    pipeline: Pipeline, verdict: PipelineVerdict, host: str, step_ps: float | None, is_judged: bool = False
) -> str:
    """The verdict in a sentence. `is_judged`: the sentence omits how much the job waits, because the caller
    states it.
    """
    where, waits = f"pipeline {pipeline.name} on {host}", verdict.waiting
    average = float(pipeline.duration_ps.mean())
    calls = f"The {where} takes {format_time(average)} per call"
    if waits.fraction is None:
        why = {
            "hidden": "it is prefetched; nothing in this host's trace waits for it",
            "outside": "it runs outside the steps, for example for validation, so the steps do not wait for "
            "it",
        }.get(waits.of, "a rate needs at least two calls, and the trace has one")
        return f"{calls}; {why}."
    of = {
        "step": "of the step time is spent waiting for input",
        "time": "of the time between calls is spent inside them",
    }
    share = f"{format_fraction(waits.fraction)} {of.get(waits.of, '')}"
    if verdict.level == "good":
        share_text = "" if is_judged else f"; {share}"
        return (
            f"tf.data keeps up: the {where} takes {format_time(average)} per "
            f"call{share_text}.{_hidden(pipeline, waits, average, step_ps)}"
        )
    judged = "" if is_judged else f"{_HOW[waits.severity]} input-bound: {share}. "
    if waits.is_contended:
        late = format_time(float((pipeline.duration_ps - pipeline.waited_ps).mean()))
        ready = f"its elements are ready, but then the caller waits {late} for a processor"
        return f"{judged}{calls}; {ready}."
    return f"{judged}{calls}; its bottleneck is {verdict.stage} with {verdict.work}."


def _hidden(pipeline: Pipeline, waits: Waiting, average_ps: float, step_ps: float | None) -> str:
    """A note on the calls' time where the job waits for little of it."""
    if not pipeline.is_loop and pipeline.wake_fraction >= _READY and waits.woken >= 0.02:
        woken = format_time(average_ps * pipeline.wake_fraction)
        return (
            f" Elements were ready: {woken} of each call ({format_fraction(waits.woken)} of the time) is "
            "spent waking a thread. Larger batches need fewer calls."
        )
    if not pipeline.n_slow or (step_ps and average_ps >= HIDDEN * step_ps):
        return ""
    slow = f"{pipeline.n_slow:,} of {len(pipeline.calls):,} calls"
    return f" {slow} took over 50 µs, but they overlap with compute."


def stage_text(trace: Trace, pipeline: Pipeline, stage: Stage) -> str:
    """A stage with the call that the user wrote for it, and its place: "`ParallelMapV2` (your `map`:
    `augment`, train.py:31)". TensorFlow itself adds the stages of a device's pipeline.
    """
    call, source = user_call(stage.name), source_of(trace, pipeline)
    place_text = source or position_text(pipeline.stages, pipeline.bottleneck)
    is_own = pipeline.kind == "Device" or call in (stage.name, stage.name.lower())
    yours = "" if is_own else f"your `{call}`"
    details = ": ".join(part for part in (yours, place_text) if part)
    return f"`{stage.name}` ({details})" if details else f"`{stage.name}`"


def _work_text(trace: Trace, pipeline: Pipeline, stage: Stage) -> str:
    """A stage's work per call; if that is longer than the call, the reason."""
    work = pipeline.work_ps(stage)
    text = f"{format_time(work)} of work per call"
    if work <= float(pipeline.waited_ps.mean()) * 1.01:
        return text
    parameters = parameters_of(trace, pipeline)
    lanes = max(
        (
            int(parameters.get(consumer.long_name, {}).get("parallelism", "1"))
            for consumer in _with_consumers(pipeline, stage)
            if _is_number(parameters, consumer)
        ),
        default=1,
    )
    if lanes > 1:
        return f"{text}, spread over {lanes} threads"
    return f"{text}, part of which ran ahead of the call"


def _is_number(parameters: dict[str, dict[str, str]], stage: Stage) -> bool:
    return parameters.get(stage.long_name, {}).get("parallelism", "").isdecimal()


def _with_consumers(pipeline: Pipeline, stage: Stage) -> Sequence[Stage]:
    """A stage and the stages that consume from it."""
    index = pipeline.stages.index(stage)
    result = []
    while index >= 0 and pipeline.stages[index] not in result:
        result.append(pipeline.stages[index])
        index = pipeline.stages[index].parent
    return result


def _gain(estimates: tuple[Estimate, ...]) -> str:
    """The best change in words, its condition first; or why there is no estimate."""
    now, *others = estimates
    if now.latency_ps is None:
        return f"The gain of a change cannot be estimated: {now.note}."
    usual_changes = [
        estimate for estimate in others if estimate.kind in ("parallel", "prefetch", "parallel_prefetch")
    ]
    changes = [estimate for estimate in (usual_changes or others[:1]) if not estimate.is_no_gain]
    if not changes:
        return ""
    best = min(changes, key=lambda estimate: (estimate.step_ps or estimate.latency_ps or (0, 0))[1])
    what, times, before = (
        ("step", best.step_ps, now.step_ps)
        if best.step_ps and now.step_ps
        else ("call", best.latency_ps, now.latency_ps)
    )
    if not times or not before:
        return ""
    then = f", then limited by {best.limited_by}" if best.limited_by else ""
    return f"{change_sentence(best.note, best.change, what, before[0], times)}{then}."


def change_sentence(
    condition: str, change: str, what: str, now_ps: float, then_ps: tuple[float, float]
) -> str:
    """What one change alone is estimated to do to a step or a call, without a period: "If …, prefetch alone
    would shorten each step from 57.0 ms to between 22.6 ms and 31.3 ms (estimated)".
    """
    only = f"{change}{',' if ',' in change else ''} alone"
    start = f"{condition}, {only}" if condition else only
    start = start if start.startswith("num_parallel_calls") else start[0].upper() + start[1:]
    low, high = (format_time(time) for time in then_ps)
    times = f"between {low} and {high}" if low != high else low
    return f"{start} would shorten each {what} from {format_time(now_ps)} to {times} (estimated)"
