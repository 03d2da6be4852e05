"""The verdict on a tf.data pipeline: how much the job waits for it, which stage causes that, and that stage's
place in the user's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_tpuprof.analysis.ops.recommend import THRESHOLDS
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.forest import forest
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage
from tb_tpuprof.trace.trace import Trace

Measure = Literal["step", "time", "hidden", "outside", ""]
Place = Literal["inside", "between", "outside", ""]
_AHEAD_THREADS = "tf_data_iterator_resource"
_APART = 0.05  # share of the steps by which calls may exceed the steps' own time waiting for input
_SCHEDULED_PS = 500_000_000  # waking a thread takes less: a longer delay is waiting for a processor
HIDDEN = 0.2  # share of a step above which a call's time is never called hidden
# The calls that users write for tf.data's stages.
_CALLS = {
    "MapAndBatch": "map",
    "ParallelMap": "map",
    "Map": "map",
    "BatchV2": "batch",
    "Batch": "batch",
    "ParallelBatch": "batch",
    "PaddedBatchV2": "padded_batch",
    "ForeverRepeat": "repeat",
    "FiniteRepeat": "repeat",
    "ParallelInterleave": "interleave",
    "Interleave": "interleave",
    "FlatMap": "flat_map",
    "Filter": "filter",
    "ParallelFilter": "filter",
    "Generator": "from_generator",
    "TFRecord": "TFRecordDataset",
    "TextLine": "TextLineDataset",
    "FixedLengthRecord": "FixedLengthRecordDataset",
    "Scan": "scan",
    "Shuffle": "shuffle",
    "Prefetch": "prefetch",
    "MemoryCache": "cache",
    "FileCache": "cache",
    "Unbatch": "unbatch",
    "Zip": "zip",
    "DirectedInterleave": "sample_from_datasets",
    "TensorSlice": "from_tensor_slices",
    "Range": "range",
    "DataService": "data_service",
}


@dataclass(frozen=True)
class Waiting:
    """How much a job waits for a pipeline: the share `fraction`, its base `of` (steps, or the time between
    calls), and the severity (0 to 2).

    `woken`: the share of the same base spent in calls whose element was ready. `is_contended`: that time is
    waiting for a processor, and counts. `place`: of the calls, relative to the steps.
    """

    fraction: float | None
    of: Measure
    severity: int
    woken: float = 0.0
    place: Place = ""
    is_contended: bool = False


def waiting(trace: Trace, pipeline: Pipeline) -> Waiting:
    """The share of the steps' time spent waiting for input; if calls are between steps or there are no steps,
    the share of the time.

    Calls on tf.data's own threads run ahead, for devices: only the steps show whether anything waits for
    them. A call counts until its element was ready. One call makes no rate, and a pipeline that runs outside
    the steps (for validation) delays none of them.
    """
    host_steps = steps(trace)
    lines = {
        trace.line_names[line]
        for line in np.unique(trace.event_line[forest(trace).row[pipeline.calls]]).tolist()
    }
    is_ahead = all(line.startswith(_AHEAD_THREADS) for line in lines) or pipeline.kind == "Device"
    where = place(host_steps, pipeline)
    if len(pipeline.calls) < 2:
        return Waiting(None, "", 0, 0.0, where)
    if len(host_steps) and (is_ahead or where == "inside"):
        fraction = host_steps.fraction("input")
        if not is_ahead:
            called = _share_of_calls(host_steps, pipeline)
            fraction = called if called > fraction + _APART else fraction
        return _waiting_of(fraction, pipeline, "step", where)
    if is_ahead:
        return Waiting(None, "hidden", 0, 0.0, where)
    if where == "outside":
        return Waiting(None, "outside", 0, 0.0, where)
    return _waiting_of(pipeline.wait_fraction or 0.0, pipeline, "time", where)


def _waiting_of(fraction: float, pipeline: Pipeline, of: Measure, where: Place) -> Waiting:
    woken = fraction * pipeline.wake_fraction
    waited = fraction - woken
    late_ps = float((pipeline.duration_ps - pipeline.waited_ps).mean())
    if not pipeline.is_loop and late_ps >= _SCHEDULED_PS and not _severity(waited) and _severity(fraction):
        return Waiting(fraction, of, 1, woken, where, True)
    return Waiting(waited, of, _severity(waited), woken, where)


def place(host_steps: Steps, pipeline: Pipeline) -> Place:
    """Whether most calls are within steps, between consecutive ones, or outside them; empty without steps."""
    if not len(host_steps):
        return ""
    order = np.argsort(host_steps.start_ps, kind="stable")
    start, end = host_steps.start_ps[order], (host_steps.start_ps + host_steps.duration_ps)[order]
    middle = pipeline.start_ps + pipeline.duration_ps // 2
    is_in_range = (middle >= start[0]) & (middle <= end[-1])
    step = np.searchsorted(start, middle[is_in_range], "right") - 1
    is_within = middle[is_in_range] <= end[step]
    took_ps = pipeline.duration_ps[is_in_range]
    if is_in_range.any() and int(took_ps[is_within].sum()) * 2 >= int(took_ps.sum()):
        return "inside"
    # A training loop requests data before most of its steps, wherever these are marked; a validation runs
    # occasionally.
    feeds = len(np.unique(step[~is_within]))
    return "between" if feeds * 2 >= len(host_steps) - 1 and feeds else "outside"


def _share_of_calls(host_steps: Steps, pipeline: Pipeline) -> float:
    """Share of the steps' time spent in calls of the pipeline."""
    end = pipeline.start_ps + pipeline.duration_ps
    order = np.argsort(host_steps.start_ps, kind="stable")
    first, last = host_steps.start_ps[order], (host_steps.start_ps + host_steps.duration_ps)[order]
    step = np.maximum(np.searchsorted(first, pipeline.start_ps, "right") - 1, 0)
    overlap_ps = np.maximum(np.minimum(end, last[step]) - np.maximum(pipeline.start_ps, first[step]), 0)
    total_ps = int(host_steps.duration_ps.sum())
    return min(1.0, int(overlap_ps.sum()) / total_ps) if total_ps else 0.0


def _severity(fraction: float) -> int:
    moderate, high = THRESHOLDS["input"]
    return (fraction >= moderate) + (fraction >= high)


def user_call(name: str) -> str:
    """The call that the user wrote for a stage: `ParallelMapV2` → `map`."""
    base = name.rstrip("0123456789").removesuffix("V")
    return _CALLS.get(name) or _CALLS.get(base) or base


def position_text(stages: tuple[Stage, ...], index: int) -> str:
    """Which of several stages of one kind is meant, by its neighbors: "the first of 2 `map` stages from the
    source, between `shuffle` and `batch`".
    """
    call = user_call(stages[index].name)
    same_call = [i for i, stage in enumerate(stages) if user_call(stage.name) == call]
    if len(same_call) < 2:
        return ""
    # Data flows from the source, which has the longest path to the root.
    order = sorted(same_call, key=lambda i: (-stages[i].long_name.count("::"), i))
    consumer = stages[index].parent
    producer = next((i for i, stage in enumerate(stages) if stage.parent == index), -1)
    names = [
        f"`{user_call(stages[i].name)}`" for i in (producer, consumer) if i >= 0 and stages[i].name != "Root"
    ]
    neighbors = (
        f", between {names[0]} and {names[1]}"
        if len(names) == 2
        else f", next to {names[0]}"
        if names
        else ""
    )
    rank = _ordinal(order.index(index) + 1)
    return f"the {rank} of {len(same_call)} `{call}` stages from the source{neighbors}"


def _ordinal(n: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth")
    return words[n - 1] if n <= len(words) else f"{n}th"
