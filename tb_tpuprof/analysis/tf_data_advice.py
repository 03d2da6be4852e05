"""The verdict on a tf.data pipeline: how much the job waits for it, which stage is why, and what to change in the user's code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_tpuprof.analysis.recommend import THRESHOLDS
from tb_tpuprof.analysis.steps import steps
from tb_tpuprof.analysis.tf_data import Node, Pipeline
from tb_tpuprof.analysis.tf_data_forest import Ints, forest
from tb_tpuprof.trace.trace import Trace

Measure = Literal["step", "time", "hidden", ""]
_AHEAD_THREADS = "tf_data_iterator_resource"
# What users write for the stages that tf.data makes of it.
_CALLS = {
    "MapAndBatch": "map", "ParallelMap": "map", "Map": "map", "BatchV2": "batch", "Batch": "batch", "ParallelBatch": "batch",
    "PaddedBatchV2": "padded_batch", "ForeverRepeat": "repeat", "FiniteRepeat": "repeat", "ParallelInterleave": "interleave",
    "Interleave": "interleave", "FlatMap": "flat_map", "Filter": "filter", "ParallelFilter": "filter", "Generator": "from_generator",
    "TFRecord": "TFRecordDataset", "TextLine": "TextLineDataset", "FixedLengthRecord": "FixedLengthRecordDataset", "Scan": "scan",
    "Shuffle": "shuffle", "Prefetch": "prefetch", "MemoryCache": "cache", "FileCache": "cache", "Unbatch": "unbatch", "Zip": "zip",
    "DirectedInterleave": "sample_from_datasets", "TensorSlice": "from_tensor_slices", "Range": "range", "DataService": "data_service",
}  # fmt: skip
_SOURCES = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "CSV", "ArrayRecord", "TensorSlice", "Range", "Sql", "Lmdb")
_CACHE = (
    "Cache what this stage makes (`cache()`, before random augmentation and `shuffle`) if it fits into memory and is read more than once."
)
_OFFLINE = "Do the work once, offline, and store its result; or spread it over more machines with `tf.data.experimental.service`."


@dataclass(frozen=True)
class Waiting:
    """How much a job waits for a pipeline: the share, of what (steps, or the time between calls), and how bad it is (0 to 2)."""

    fraction: float | None
    of: Measure
    severity: int


def waiting(trace: Trace, pipeline: Pipeline) -> Waiting:
    """The share of the steps that passes in waiting for input; where calls lie outside of steps or there are none, of the time.

    Calls on tf.data's own threads are made ahead, for devices: only the steps tell whether anybody waits for them.
    """
    found = steps(trace)
    lines = {trace.line_names[line] for line in np.unique(trace.event_line[forest(trace).row[pipeline.calls]]).tolist()}
    is_ahead = all(line.startswith(_AHEAD_THREADS) for line in lines) or pipeline.kind == "Device"
    if len(found) and (is_ahead or _inside(found.start_ps, found.duration_ps, pipeline)):
        fraction = found.fraction("input")
        return Waiting(fraction, "step", _severity(fraction))
    if is_ahead:
        return Waiting(None, "hidden", 0)
    if len(pipeline.calls) < 2:
        return Waiting(None, "", 0)
    return Waiting(pipeline.wait_fraction, "time", _severity(pipeline.wait_fraction))


def _inside(start: Ints, duration: Ints, pipeline: Pipeline) -> bool:
    """Whether calls between the first and the last step lie within steps, for the most part."""
    middle = pipeline.start_ps + pipeline.duration_ps // 2
    among = (middle >= start[0]) & (middle <= start[-1] + duration[-1])
    if not among.any():
        return False
    order = np.argsort(start, kind="stable")
    at = np.searchsorted(start[order], middle[among], "right") - 1
    within = (at >= 0) & (middle[among] <= (start + duration)[order][at])
    took = pipeline.duration_ps[among]
    return int(took[within].sum()) * 2 >= int(took.sum())


def _severity(fraction: float) -> int:
    moderate, high = THRESHOLDS["input"]
    return (fraction >= moderate) + (fraction >= high)


def user_call(name: str) -> str:
    """What the user wrote for a stage: `ParallelMapV2` → `map`."""
    base = name.rstrip("0123456789").removesuffix("V")
    return _CALLS.get(name) or _CALLS.get(base) or base


def advice(name: str, long_name: str, node: Node | None, kind: str) -> tuple[str, ...]:
    """What to do about a bottleneck, the most useful first. `node`: the stage in a call, for its parameters."""
    options = dict(node.parameters) if node else {}
    call = user_call(name)
    if kind == "Device" or (name == "Generator" and long_name.startswith("Iterator::Prefetch::")):
        return (
            "This is the device's side: it waits for elements from the host and for their copy. Look at the host's pipeline.",
            "Raise the buffer of `prefetch_to_device`, or prefetch on the host.",
        )
    if "DataService" in name:
        return ("Elements come from tf.data service: profile its workers, add workers, or check the network between.",)
    if call == "map":
        return _map_advice(options)
    if name in ("Filter", "Scan", "Unbatch", "Window"):
        return (
            f"`{call}` has no parallel form: do it inside of an `interleave(..., num_parallel_calls=tf.data.AUTOTUNE)` over parts of "
            "the data, or move its slow part into a `map` with `num_parallel_calls`.", _CACHE, _OFFLINE,
        )  # fmt: skip
    if call in ("interleave", "flat_map"):
        return (
            "Use `interleave(..., cycle_length=n, num_parallel_calls=tf.data.AUTOTUNE)`: it opens and reads several inputs at once.",
            _CACHE,
        )
    if call in ("batch", "padded_batch"):
        return (
            f"`{call}` copies its elements: set `num_parallel_calls=tf.data.AUTOTUNE` on it, make elements smaller (narrower types, "
            "decode or widen after batching), or batch earlier.", _CACHE,
        )  # fmt: skip
    return _source_advice(name, call)


def _map_advice(options: dict[str, str]) -> tuple[str, ...]:
    lanes = int(options.get("parallelism", "1")) if options.get("parallelism", "1").isdigit() else 1
    cheaper = (
        "Make its function cheaper: batch first and let it work on whole batches, and keep Python (`py_function`, `numpy_function`) out."
    )
    if lanes <= 1:
        return ("Set `num_parallel_calls=tf.data.AUTOTUNE` on that `map`: it runs one element at a time.", cheaper, _CACHE, _OFFLINE)
    tuned = " (chosen by AUTOTUNE)" if options.get("autotune") == "true" else ""
    return (f"That `map` runs on {lanes} threads already{tuned}. {cheaper}", _CACHE, _OFFLINE)


def _source_advice(name: str, call: str) -> tuple[str, ...]:
    if name == "Generator":
        return (
            "A Python generator makes one element at a time: yield whole batches, `interleave` several generators, "
            "or write TFRecord files once.",
            "Put `prefetch(tf.data.AUTOTUNE)` at the end.", _CACHE,
        )  # fmt: skip
    if name.startswith(_SOURCES):
        return (
            f"Read several files at once: `interleave(tf.data.{call}, num_parallel_calls=tf.data.AUTOTUNE)` over the list of files."
            if call.endswith("Dataset")
            else "Read several parts at once: `interleave(..., num_parallel_calls=tf.data.AUTOTUNE)`.",
            "Keep the files near the host (same region, local disk), uncompressed or lightly compressed, of 100 MB or more each.",
            _CACHE,
        )
    if name == "Shuffle":
        return (
            "`shuffle` fills its buffer: shuffle file names first and use a smaller buffer, and shuffle before `map`, not after.",
            _CACHE,
        )
    if name == "Prefetch":
        return (
            "What feeds this `prefetch` was not traced with it: capture for longer, or look at its threads in the trace viewer.",
            "A larger buffer helps where the time per element varies.",
        )
    return (f"Do the work of `{call}` inside of a parallel `interleave` or `map`.", _CACHE, _OFFLINE)
