"""Notices that a reader needs to judge a trace's numbers: missing steps, damage, errors reported by the
profiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, SERVING, TENSORFLOW, UNKNOWN
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.combine import CommonSteps
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.trace.trace import Trace

_HOW_TO_ANNOTATE = {
    JAX: "with jax.profiler.StepTraceAnnotation('train', step_num=i).",
    TENSORFLOW: (
        "with tf.profiler.experimental.Trace('train', step_num=i, _r=1). Keras: set profile_batch=(10, 20) "
        "in the TensorBoard callback."
    ),
    PYTORCH: "call prof.step() after each step of torch.profiler.profile, or with "
    "torch.profiler.record_function('train').",
}
_LONGER = "If steps are annotated, capture for longer than one step takes."
_REQUESTS = (
    "A model server has no steps: see how long programs ran in the trace viewer's track XLA Modules. In "
    "training, "
)
_RECAPTURE = "Capture the profile again, or copy the file again if it was cut off in transfer."


@dataclass(frozen=True)
class Notice:
    """A message about the trace, and a remedy (empty if there is none)."""

    severity: Literal["info", "warning", "error"]
    message: str
    remedy: str = ""


@once
def trace_notices(trace: Trace) -> tuple[Notice, ...]:
    """Notices about the trace of one host: damaged parts, the profiler's errors and warnings, devices without
    events.
    """
    info = trace.info
    notices = [
        Notice("error", f"{info.host}: the profiler reported: {text}") for text in dict.fromkeys(info.errors)
    ]
    notices += [
        Notice("warning", f"{info.host}: the profiler warned: {text}")
        for text in dict.fromkeys(info.warnings)
    ]
    if info.n_damaged:
        what = _damage(info.n_damaged, info.damage)
        notices.append(Notice("warning", f"{info.host}: {what}. Numbers may be too low.", _RECAPTURE))
    if not trace.n_events and not info.is_outline:
        notices.append(
            Notice(
                "warning", f"{info.host}: the trace contains no events.", "Capture while the job is running."
            )
        )
    roles = planes(trace)
    devices = (*roles.gpus, *roles.tensor_cores)
    if devices and trace.n_events and not trace.lines["n_events"][trace.lines_of(list(devices))].any():
        text = (
            f"{info.host}: the accelerators' planes contain no events: nothing ran on them, or the device "
            "tracer failed."
        )
        notices.append(
            Notice(
                "warning",
                text,
                "Capture while the job computes; on NVIDIA GPUs, CUPTI must be installed and permitted.",
            )
        )
    return tuple(notices)


def _damage(n_parts: int, description: str) -> str:
    """What is damaged, in words. `description` may be empty."""
    if n_parts == 1:
        return description or "1 damaged part was skipped"
    return f"{n_parts:,} damaged parts were skipped{f' (first: {description})' if description else ''}"


def annotate_remedy(framework: str = "") -> str:
    """How to mark steps in the job's framework; in all frameworks if it is unknown."""
    instruction = _HOW_TO_ANNOTATE.get(TENSORFLOW if framework == SERVING else framework)
    if instruction or framework not in ("", UNKNOWN):
        return f"Annotate steps: {instruction}" if instruction else "Annotate steps."
    return "Annotate steps. " + " ".join(f"{name}: {how}" for name, how in _HOW_TO_ANNOTATE.items())


def step_notices(
    common: CommonSteps, n_hosts: int, has_loop_ops: bool, framework: str = ""
) -> tuple[Notice, ...]:
    """Notices about the common steps, or why there are none. `has_loop_ops`: TensorFlow v1 loops made
    grouping impossible.
    """
    steps = common.steps
    if common.is_disjoint:
        text = (
            "The hosts have no steps in common, so there is no step time for the whole run: each host has "
            "its own."
        )
        return (Notice("warning", text, "Capture all hosts at the same time, or select a single host."),)
    if not len(steps):
        return (_no_steps_notice(steps, has_loop_ops, annotate_remedy(framework)),)
    notices = []
    if steps.source == "function":
        text = (
            "Steps are not annotated: a step lasts from the start of one run of a tf.function (or "
            "session) to the next."
        )
        notices.append(
            Notice(
                "info",
                text,
                "To mark steps yourself: with tf.profiler.experimental.Trace('train', step_num=i, _r=1).",
            )
        )
    if common.n_without:
        notices.append(
            Notice(
                "warning",
                f"{common.n_without} of {n_hosts} hosts have no steps; step times are from the others.",
            )
        )
    if steps.n_trimmed:
        n_all = len(steps) + steps.n_trimmed
        notices.append(
            Notice(
                "info",
                f"The first and the last of {n_all} steps are excluded, since the capture may have truncated "
                "them.",
            )
        )
    if steps.n_incomplete:
        notices.append(Notice("info", f"Excluded {_steps(steps.n_incomplete)} without computation."))
    return tuple(notices)


def _no_steps_notice(steps: Steps, has_loop_ops: bool, annotate: str) -> Notice:
    """Why there are no steps. `annotate`: how to mark them."""
    if has_loop_ops:
        text = "TensorFlow v1 loops run on the host: their steps cannot be distinguished."
    elif steps.n_incomplete:
        text = f"Found {_steps(steps.n_incomplete)} without computation, so there is no step time."
    elif steps.n_unmarked_runs:
        n_runs = steps.n_unmarked_runs
        runs = "1 program run" if n_runs == 1 else f"{n_runs:,} program runs"
        text = (
            "The TPU marked no steps (there is no line `Steps`), so there is no step time. The trace "
            f"contains {runs}."
        )
        return Notice("warning", text, f"{_REQUESTS}{annotate[:1].lower()}{annotate[1:]}")
    else:
        text = "No steps were found, so there is no step time."
    return Notice("warning", text, f"{annotate} {_LONGER}")


def _steps(n: int) -> str:
    return "1 step" if n == 1 else f"{n:,} steps"
