"""The verdict on a tf.data pipeline: how much the job waits for it, which stage is why, and where that stage
stands in the user's code.
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
_APART = (
    0.05  # share of the steps by which calls may take longer than what the steps count as waiting for input
)
_SCHEDULED_PS = 500_000_000  # the waking of a thread takes less: from here on it waits for a processor
HIDDEN = 0.2  # share of a step from which a call's time is never called hidden
# What users write for the stages that tf.data makes of it.
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
    """How much a job waits for a pipeline: the share, of what (steps, or the time between calls), and how bad
    it is (0 to 2).

    `woken`: the share of the same that passed in calls whose element was there. `is_contended`: it passed in
    waiting for a processor, and counts. `place`: of the calls, relative to the steps.
    """

    fraction: float | None
    of: Measure
    severity: int
    woken: float = 0.0
    place: Place = ""
    is_contended: bool = False


def waiting(trace: Trace, pipeline: Pipeline) -> Waiting:
    """The share of the steps that passes in waiting for input; where calls lie between steps or there are
    none, of the time.

    Calls on tf.data's own threads are made ahead, for devices: only the steps tell whether anybody waits for
    them. Of a call counts the time until its element was there. One call makes no rate, and a pipeline that
    runs outside of the steps (a validation) holds none of them up.
    """
    found = steps(trace)
    lines = {
        trace.line_names[line]
        for line in np.unique(trace.event_line[forest(trace).row[pipeline.calls]]).tolist()
    }
    is_ahead = all(line.startswith(_AHEAD_THREADS) for line in lines) or pipeline.kind == "Device"
    where = place(found, pipeline)
    if len(pipeline.calls) < 2:
        return Waiting(None, "", 0, 0.0, where)
    if len(found) and (is_ahead or where == "inside"):
        fraction = found.fraction("input")
        if not is_ahead:
            called = _share_of_calls(found, pipeline)
            fraction = called if called > fraction + _APART else fraction
        return _weighed(fraction, pipeline, "step", where)
    if is_ahead:
        return Waiting(None, "hidden", 0, 0.0, where)
    if where == "outside":
        return Waiting(None, "outside", 0, 0.0, where)
    return _weighed(pipeline.wait_fraction or 0.0, pipeline, "time", where)


def _weighed(fraction: float, pipeline: Pipeline, of: Measure, where: Place) -> Waiting:
    woken = fraction * pipeline.wake_fraction
    waited = fraction - woken
    late_ps = float((pipeline.duration_ps - pipeline.waited_ps).mean())
    if not pipeline.is_loop and late_ps >= _SCHEDULED_PS and not _severity(waited) and _severity(fraction):
        return Waiting(fraction, of, 1, woken, where, True)
    return Waiting(waited, of, _severity(waited), woken, where)


def place(found: Steps, pipeline: Pipeline) -> Place:
    """Whether calls lie within steps for the most part, between consecutive ones, or outside of them; empty
    without steps.
    """
    if not len(found):
        return ""
    order = np.argsort(found.start_ps, kind="stable")
    start, end = found.start_ps[order], (found.start_ps + found.duration_ps)[order]
    middle = pipeline.start_ps + pipeline.duration_ps // 2
    among = (middle >= start[0]) & (middle <= end[-1])
    at = np.searchsorted(start, middle[among], "right") - 1
    within = middle[among] <= end[at]
    took = pipeline.duration_ps[among]
    if among.any() and int(took[within].sum()) * 2 >= int(took.sum()):
        return "inside"
    # A training loop asks before most of its steps, wherever these are marked; a validation comes once in a
    # while.
    feeds = len(np.unique(at[~within])) if among.any() else 0
    return "between" if feeds * 2 >= len(found) - 1 and feeds else "outside"


def _share_of_calls(found: Steps, pipeline: Pipeline) -> float:
    """Share of the steps' time that passed in calls of the pipeline."""
    end = pipeline.start_ps + pipeline.duration_ps
    order = np.argsort(found.start_ps, kind="stable")
    first, last = found.start_ps[order], (found.start_ps + found.duration_ps)[order]
    at = np.maximum(np.searchsorted(first, pipeline.start_ps, "right") - 1, 0)
    inside = np.maximum(np.minimum(end, last[at]) - np.maximum(pipeline.start_ps, first[at]), 0)
    whole = int(found.duration_ps.sum())
    return min(1.0, int(inside.sum()) / whole) if whole else 0.0


def _severity(fraction: float) -> int:
    moderate, high = THRESHOLDS["input"]
    return (fraction >= moderate) + (fraction >= high)


def user_call(name: str) -> str:
    """What the user wrote for a stage: `ParallelMapV2` → `map`."""
    base = name.rstrip("0123456789").removesuffix("V")
    return _CALLS.get(name) or _CALLS.get(base) or base


def described(stages: tuple[Stage, ...], at: int) -> str:
    """Which of several stages of one kind is meant, by its neighbours: "the first of 2 `map`s, between
    `shuffle` and `batch`".
    """
    call = user_call(stages[at].name)
    alike = [i for i, stage in enumerate(stages) if user_call(stage.name) == call]
    if len(alike) < 2:
        return ""
    # Data flows from the source, which is the last on its way to the root.
    order = sorted(alike, key=lambda i: (-stages[i].long_name.count("::"), i))
    above = stages[at].parent
    below = next((i for i, stage in enumerate(stages) if stage.parent == at), -1)
    names = [f"`{user_call(stages[i].name)}`" for i in (below, above) if i >= 0 and stages[i].name != "Root"]
    near = (
        f", between {names[0]} and {names[1]}"
        if len(names) == 2
        else f", next to {names[0]}"
        if names
        else ""
    )
    return f"the {_ordinal(order.index(at) + 1)} of {len(alike)} `{call}` stages from the source{near}"


def _ordinal(n: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth")
    return words[n - 1] if n <= len(words) else f"{n}th"
