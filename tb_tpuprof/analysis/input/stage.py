"""The tf.data stage that an input-bound job waits for, and the estimated gain of the best change to it."""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.advice import user_call, waiting
from tb_tpuprof.analysis.tf_data.finding import by_weight
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline
from tb_tpuprof.analysis.tf_data.what_if import Estimate, what_if
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time

_TO_DO = ("parallel", "prefetch", "parallel_prefetch")  # kinds of changes that a user can make immediately


@dataclass(frozen=True)
class SlowStage:
    """A pipeline's bottleneck. `step_ps`: the estimated step after `change` (low, high), if an estimate is
    below `now_ps`, the mean step; `note`: its condition. Texts are empty without an estimate.
    """

    pipeline: str
    stage: str
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

    @property
    def sentences(self) -> tuple[str, ...]:
        """The stage, and the gain of a change."""
        call = user_call(self.stage)
        named = f"`{self.stage}`" if call == self.stage.lower() else f"`{self.stage}` (your `{call}`)"
        first = f"The slow stage of the tf.data pipeline {self.pipeline} is {named}."
        if self.step_ps is None:
            return (first,)
        condition = f"{self.note[0].upper()}{self.note[1:]}: " if self.note else ""
        what = (
            f"estimated step with {self.change}: {format_time(self.step_ps[0])} to "
            f"{format_time(self.step_ps[1])}"
        )
        text = f"{condition}{what} instead of {format_time(self.now_ps)}."
        return first, text[0].upper() + text[1:]


@once
def slow_stage(trace: Trace) -> SlowStage | None:
    """The bottleneck of the pipeline that the tf.data page opens on: the slowest one that feeds the host's
    steps. None if no stage takes time.
    """
    pipeline = next((other for other in by_weight(trace) if other.kind == "Host"), None)
    stage = pipeline.bottleneck_stage if pipeline else None
    if pipeline is None or stage is None or waiting(trace, pipeline).is_contended:
        return None
    return _with_gain(trace, pipeline, stage.name)


def _with_gain(trace: Trace, pipeline: Pipeline, stage: str) -> SlowStage:
    """The stage with the most promising change, by the upper end of its interval."""
    mean_ps = float(steps(trace).duration_ps.mean()) if len(steps(trace)) else 0.0
    estimates = [
        estimate
        for estimate in what_if(trace, pipeline)
        if estimate.kind in _TO_DO and estimate.step_ps and not estimate.is_no_gain
    ]
    best: Estimate | None = min(estimates, key=_upper_ps, default=None)
    if best is None or best.step_ps is None or best.step_ps[1] >= mean_ps:
        return SlowStage(pipeline.name, stage)
    return SlowStage(pipeline.name, stage, best.change, best.step_ps, mean_ps, best.note)


def _upper_ps(estimate: Estimate) -> float:
    return estimate.step_ps[1] if estimate.step_ps else 0.0
