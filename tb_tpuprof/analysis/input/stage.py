"""The tf.data stage that an input-bound job waits for, and the estimated gain of the best change to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.advice import waiting
from tb_tpuprof.analysis.tf_data.changes import advice, evidence
from tb_tpuprof.analysis.tf_data.finding import by_weight, change_sentence, stage_text
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline
from tb_tpuprof.analysis.tf_data.what_if import Estimate, what_if
from tb_tpuprof.trace.trace import Trace

_TO_DO = ("parallel", "prefetch", "parallel_prefetch")  # kinds of changes that a user can make immediately


@dataclass(frozen=True)
class SlowStage:
    """A pipeline's bottleneck. `in_words`: with the user's call and its place; `advice`: what to change.

    `step_ps`: the estimated step after `change` (low, high), if an estimate is below `now_ps`, the mean step;
    `note`: its condition. Texts are empty without an estimate.
    """

    pipeline: str
    stage: str
    in_words: str
    advice: str
    change: str = ""
    step_ps: tuple[float, float] | None = None
    now_ps: float = 0.0
    note: str = ""

    @property
    def gain_ps(self) -> tuple[float, float] | None:
        """The time per step that `change` is estimated to save (low, high); None without an estimate."""
        return (
            (max(self.now_ps - self.step_ps[1], 0.0), self.now_ps - self.step_ps[0]) if self.step_ps else None
        )

    def saving_at_most(self, most_ps: float) -> SlowStage:
        """The same with an estimate that saves at most `most_ps` per step: the model of the pipeline also
        counts what waiting brings along, which the steps' own times do not show.
        """
        if self.step_ps is None:
            return self
        low, high = (max(step_ps, self.now_ps - most_ps) for step_ps in self.step_ps)
        return replace(self, step_ps=(low, high))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The stage and what to change there; the step after the most promising change."""
        first = f"The slow stage of the tf.data pipeline {self.pipeline} is {self.in_words}. {self.advice}"
        if self.step_ps is None:
            return (first.rstrip(),)
        gain = change_sentence(self.note, self.change, "step", self.now_ps, self.step_ps)
        return first.rstrip(), f"{gain}."


@once
def slow_stage(trace: Trace) -> SlowStage | None:
    """The bottleneck of the pipeline that the tf.data page opens on: the slowest one that feeds the host's
    steps. None if no stage takes time.
    """
    pipeline = next((other for other in by_weight(trace) if other.kind == "Host"), None)
    stage = pipeline.bottleneck_stage if pipeline else None
    if pipeline is None or stage is None or waiting(trace, pipeline).is_contended:
        return None
    to_change = next(iter(advice(pipeline, evidence(trace, pipeline))), "")
    return _with_gain(
        trace, pipeline, SlowStage(pipeline.name, stage.name, stage_text(trace, pipeline, stage), to_change)
    )


def _with_gain(trace: Trace, pipeline: Pipeline, stage: SlowStage) -> SlowStage:
    """The stage with the most promising change, by the upper end of its interval."""
    mean_ps = float(steps(trace).duration_ps.mean()) if len(steps(trace)) else 0.0
    estimates = [
        estimate
        for estimate in what_if(trace, pipeline)
        if estimate.kind in _TO_DO and estimate.step_ps and not estimate.is_no_gain
    ]
    best: Estimate | None = min(estimates, key=_upper_ps, default=None)
    if best is None or best.step_ps is None or best.step_ps[1] >= mean_ps:
        return stage
    return replace(stage, change=best.change, step_ps=best.step_ps, now_ps=mean_ps, note=best.note)


def _upper_ps(estimate: Estimate) -> float:
    return estimate.step_ps[1] if estimate.step_ps else 0.0
