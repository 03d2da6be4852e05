"""What is said of a tf.data pipeline, in words: whether the job waits for it, for which stage, and what the
best change would gain.

The tf.data page says it of the pipeline chosen, the overview of the one that feeds the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tb_tpuprof.analysis.ops.recommend import Level
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.advice import HIDDEN, Waiting, described, place, user_call, waiting
from tb_tpuprof.analysis.tf_data.changes import advice, evidence
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, parameters_of, pipelines
from tb_tpuprof.analysis.tf_data.source import source_of
from tb_tpuprof.analysis.tf_data.what_if import Estimate, what_if
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time

_LEVELS: tuple[Level, ...] = ("good", "warn", "bad")
_HOW = ("", "Moderately", "Highly")
_READY = 0.5  # share of the calls' time after their elements were there from which the calls are what costs

_CONTENDED = (
    "The pipeline's functions and the step share the host's processors: give the pipeline fewer threads "
    "(`options.threading.private_threadpool_size`), make its functions cheaper, or take a host with more "
    "processors.",
)


@dataclass(frozen=True)
class Found:
    """All that is said of a pipeline. `stage`: its bottleneck in words. `gain`: the best change and its
    interval, or why there is none.
    """

    waiting: Waiting
    level: Level
    stage: str
    work: str
    estimates: tuple[Estimate, ...]
    gain: str
    advice: tuple[str, ...]


def found_of(trace: Trace, pipeline: Pipeline) -> Found:
    """What is said of a pipeline of a host."""
    waits, stage = waiting(trace, pipeline), pipeline.bottleneck_stage
    estimates = what_if(trace, pipeline)
    level: Level = (
        "unknown"
        if waits.fraction is None
        else _LEVELS[waits.severity]
        if stage or waits.is_contended
        else "good"
    )
    named, work = (_named(trace, pipeline, stage), _work(trace, pipeline, stage)) if stage else ("", "")
    if waits.is_contended:
        return Found(waits, level, named, work, estimates, "", _CONTENDED)
    return Found(
        waits, level, named, work, estimates, _gain(estimates), advice(pipeline, evidence(trace, pipeline))
    )


def by_weight(trace: Trace) -> list[Pipeline]:
    """A host's pipelines: those that feed the steps first, then those outside of them; the slowest of each
    first.
    """
    found = steps(trace)
    return sorted(
        pipelines(trace), key=lambda pipeline: (place(found, pipeline) == "outside", -pipeline.max_ps)
    )


def sentence(
    pipeline: Pipeline, found: Found, host: str, step_ps: float | None, is_judged: bool = False
) -> str:
    """The verdict in a sentence. `is_judged`: how much the job waits is said elsewhere, so that only the
    pipeline's part is.
    """
    where, waits = f"pipeline {pipeline.name} on {host}", found.waiting
    average = float(pipeline.duration_ps.mean())
    calls = f"The {where} takes {format_time(average)} per call"
    if waits.fraction is None:
        why = {
            "hidden": "it is prefetched; nothing in this host's trace waits for it",
            "outside": "it runs outside of the steps, such as for a validation, so the steps do not wait for "
            "it",
        }.get(waits.of, "a rate needs at least two calls, and the trace has one")
        return f"{calls}; {why}."
    of = {
        "step": "of the step time is spent waiting for input",
        "time": "of the time between calls is spent inside them",
    }
    share = f"{format_fraction(waits.fraction)} {of.get(waits.of, '')}"
    if found.level == "good":
        told = "" if is_judged else f"; {share}"
        return (
            f"tf.data keeps up: the {where} takes {format_time(average)} per "
            f"call{told}.{_hidden(pipeline, waits, average, step_ps)}"
        )
    judged = "" if is_judged else f"{_HOW[waits.severity]} input-bound: {share}. "
    if waits.is_contended:
        late = format_time(float((pipeline.duration_ps - pipeline.waited_ps).mean()))
        ready = f"its elements are ready, but then the caller waits {late} for a processor"
        return f"{judged}{calls}; {ready}."
    return f"{judged}{calls}; its bottleneck is {found.stage} with {found.work}."


def _hidden(pipeline: Pipeline, waits: Waiting, average_ps: float, step_ps: float | None) -> str:
    """What becomes of the calls' time where little of it is waited for."""
    if not pipeline.is_loop and pipeline.wake_fraction >= _READY and waits.woken >= 0.02:
        woken = format_time(average_ps * pipeline.wake_fraction)
        return (
            f" Elements were ready: of each call {woken} ({format_fraction(waits.woken)} of the time) is "
            "the call itself, the waking of a thread. Larger batches need fewer calls."
        )
    if not pipeline.n_slow or (step_ps and average_ps >= HIDDEN * step_ps):
        return ""
    what = "call" if pipeline.n_slow == 1 else "calls"
    return f" {pipeline.n_slow:,} {what} of {len(pipeline.calls):,} took over 50 µs, but that time is hidden."


def _named(trace: Trace, pipeline: Pipeline, stage: Stage) -> str:
    """A stage with what the user wrote for it, and where: "`ParallelMapV2` (your `map`: `augment`,
    train.py:31)".
    """
    call, source = user_call(stage.name), source_of(trace, pipeline)
    which = source or described(pipeline.stages, pipeline.bottleneck)
    yours = "" if call in (stage.name, stage.name.lower()) else f"your `{call}`"
    inside = ": ".join(part for part in (yours, which) if part)
    return f"`{stage.name}` ({inside})" if inside else f"`{stage.name}`"


def _work(trace: Trace, pipeline: Pipeline, stage: Stage) -> str:
    """A stage's work per call; where that is longer than the call, why it can be."""
    work = pipeline.work_ps(stage)
    text = f"{format_time(work)} of work per call"
    if work <= float(pipeline.waited_ps.mean()) * 1.01:
        return text
    told = parameters_of(trace, pipeline)
    lanes = max(
        (
            int(told.get(one.long_name, {}).get("parallelism", "1"))
            for one in _around(pipeline, stage)
            if _is_number(told, one)
        ),
        default=1,
    )
    if lanes > 1:
        return f"{text}, spread over {lanes} threads"
    return f"{text}, part of which ran ahead of the call"


def _is_number(told: dict[str, dict[str, str]], stage: Stage) -> bool:
    return told.get(stage.long_name, {}).get("parallelism", "").isdigit()


def _around(pipeline: Pipeline, stage: Stage) -> Sequence[Stage]:
    """A stage and those that consume from it."""
    at = pipeline.stages.index(stage)
    result = []
    while at >= 0 and pipeline.stages[at] not in result:
        result.append(pipeline.stages[at])
        at = pipeline.stages[at].parent
    return result


def _gain(estimates: tuple[Estimate, ...]) -> str:
    """The best change in words, its condition first; or why there is no estimate."""
    now, *others = estimates
    if now.latency_ps is None:
        return f"What a change would gain cannot be estimated: {now.note}."
    wanted = [
        estimate for estimate in others if estimate.kind in ("parallel", "prefetch", "parallel_prefetch")
    ]
    changes = [estimate for estimate in (wanted or others[:1]) if not estimate.is_no_gain]
    if not changes:
        return ""
    best = min(changes, key=lambda estimate: (estimate.step_ps or estimate.latency_ps or (0, 0))[1])
    what, times, was = (
        ("step", best.step_ps, now.step_ps)
        if best.step_ps and now.step_ps
        else ("call", best.latency_ps, now.latency_ps)
    )
    if not times or not was:
        return ""
    then = f", then limited by {best.limited_by}" if best.limited_by else ""
    interval = f"{format_time(times[0])} to {format_time(times[1])} instead of {format_time(was[0])}"
    condition = f"{best.note[0].upper()}{best.note[1:]}: e" if best.note else "E"
    return f"{condition}stimated {what} with {best.change}: {interval}{then}."
