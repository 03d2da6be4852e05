"""Advice on a job's input: changes to the calls in the user's code that take time in this run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW, TORCH_WORKERS
from tb_tpuprof.analysis.input.host import HOST_CATEGORIES, HostInput, merged_stage
from tb_tpuprof.analysis.input.pipeline import InputPipeline, copy_fraction
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.waits import StepWait
from tb_tpuprof.units import format_fraction

Tool = Literal["", "trace_viewer", "overview_page", "tf_data_bottleneck_analysis", "framework_op_stats"]
_MATTERS = 0.1  # share of the host's time for input above which a category gets advice
_GRAIN = "Grain with `ReadOptions(num_threads, prefetch_buffer_size)` and `mp_prefetch`"
_LOAD_AHEAD = {
    JAX: _GRAIN,
    PYTORCH: "`DataLoader` with `num_workers` and `persistent_workers=True`",
    TENSORFLOW: "tf.data with `prefetch(tf.data.AUTOTUNE)`",
    "": f"tf.data with `prefetch(tf.data.AUTOTUNE)`, {_GRAIN}, a PyTorch `DataLoader` with `num_workers`",
}
_COPY_AHEAD = {
    JAX: "`jax.device_put` ahead of use",
    PYTORCH: "`pin_memory=True` with `.to(device, non_blocking=True)`",
    TENSORFLOW: "`prefetch_to_device`",
    "": "prefetch_to_device, jax.device_put ahead of use",
}
_STAGE = re.compile(r"(?:V\d+)?(?:\[\d+\])?$")
# Stages whose own time is mostly waiting for the threads they started.
_WAITING = (
    "Prefetch",
    "Root",
    "Model",
    "FiniteTake",
    "FiniteRepeat",
    "ForeverRepeat",
    "MaxIntraOpParallelism",
    "DeviceGenerator",
)


@dataclass(frozen=True)
class Advice:
    """One recommendation. `category`: the saved category, of HOST_CATEGORIES or of CATEGORIES; `tool`: where
    to investigate, or empty.
    """

    category: str
    text: str
    tool: Tool = ""


def stage(name: str) -> str:
    """The kind of tf.data stage that an iterator's name ends in: `Iterator::Root::Prefetch::BatchV2` →
    `Batch`.

    A `Generator` below a prefetch is not the user's: it fetches elements of the host's pipeline for a device
    (`DeviceGenerator`).
    """
    if name.endswith("Prefetch::Generator"):
        return "DeviceGenerator"
    return _STAGE.sub("", name.rpartition("::")[2])


def short(name: str) -> str:
    """An iterator's last two stages: `Iterator::Root::Prefetch::Shuffle::Map` → `…::Shuffle::Map`."""
    parts = name.split("::")
    return "::".join(("…", *parts[-2:])) if len(parts) > 3 else name


def costliest(host_ops: HostInput, category: str) -> str:
    """The stage of a category with the most self time, its instances merged; stages that only wait for others
    come last. Empty if there is none.
    """
    return largest(host_ops, category)[0]


def largest(host_ops: HostInput, category: str) -> tuple[str, int]:
    """The same stage with its self time in ps, summed over its instances."""
    total: dict[str, int] = {}
    for i, own_category in enumerate(host_ops.category):
        if own_category == category:
            name = merged_stage(host_ops.ops.name[i])
            total[name] = total.get(name, 0) + int(host_ops.ops.self_ps[i])
    if not total:
        return "", 0
    name = min(total, key=lambda stage_name: (stage(stage_name) in _WAITING, -total[stage_name]))
    return name, total[name]


def input_advice(pipeline: InputPipeline, level: str, framework: str = "") -> tuple[Advice, ...]:
    """Recommendations, largest gain first, for the job's framework (empty: for all).

    `level`: of the verdict on the input; a job that does not wait needs no faster input.
    """
    if level == "good":
        text = "A faster input pipeline would not make the steps faster: see what limits them."
        return (Advice("input", text, "overview_page"),)
    if not pipeline.host_time.total_ps:
        return (
            *_copies(pipeline, framework),
            *_python_loader(pipeline.judged_steps),
            *_without_operations(level, pipeline.judged_steps, framework),
        )
    total = pipeline.host_time.total_ps
    shares = dict(zip(HOST_CATEGORIES, (time / total for time in pipeline.host_time.time_ps), strict=True))
    result = list(_copies(pipeline, framework))
    for category in sorted(HOST_CATEGORIES, key=lambda name: -shares[name]):
        if shares[category] >= _MATTERS:
            result.append(_category_advice(pipeline.host_input, category))
    if any(name.startswith("Iterator") for name in pipeline.host_input.ops.name):
        result += _pipeline_advice(pipeline.host_input)
    return tuple(result)


def _copies(pipeline: InputPipeline, framework: str) -> tuple[Advice, ...]:
    """Advice on copies to the device, if they cost at least what makes input a moderate cost."""
    share = copy_fraction(pipeline.judged_steps)
    if share < THRESHOLDS["input"][0]:
        return ()
    ahead = _COPY_AHEAD.get(framework, _COPY_AHEAD[""])
    text = (
        f"Copies to the device take {format_fraction(share)} of the step time: send fewer, larger arrays and "
        f"smaller types (uint8, cast on the device), and copy the next batch during the step ({ahead})."
    )
    return (Advice("input", text, "trace_viewer"),)


def _costly_loader(steps: Steps) -> StepWait | None:
    """The function or annotation in which the steps' own thread waits for data, if it costs at least what
    makes input a moderate cost.
    """
    loader = next((wait for wait in steps.waits if wait.kind == TimeClass.HOST_WAIT_LOADER), None)
    is_costly = loader and loader.total_ps >= THRESHOLDS["input"][0] * int(steps.duration_ps.sum())
    return loader if is_costly else None


def _python_loader(steps: Steps) -> tuple[Advice, ...]:
    """Advice on such a function or annotation."""
    loader = _costly_loader(steps)
    if loader is None:
        return ()
    text = (
        f"{loader.title} waits for worker processes that are too slow: use more of them (`num_workers`), or "
        "make loading cheaper (decoding, transforms, storage)."
        if TORCH_WORKERS in loader.name
        else f"{loader.title} blocks the thread that runs the steps: do its work ahead of time in other "
        "threads or processes; if it already waits for such workers, add more."
    )
    return (Advice("input", text, "trace_viewer"),)


def _without_operations(level: str, steps: Steps, framework: str) -> tuple[Advice, ...]:
    check = "Check in the trace viewer what the host does between steps"
    option = "with_stack=True" if framework == PYTORCH else "python_tracer_level=1"
    tracer = "" if steps.waits else f"; the Python tracer ({option}) records Python loaders"
    look = Advice(
        "other", f"The trace has no operations of an input pipeline. {check}{tracer}.", "trace_viewer"
    )
    loader = _costly_loader(steps)
    if loader and TORCH_WORKERS in loader.name:
        return ()
    if level == "unknown":
        return (look,)
    text = f"Load ahead in other threads or processes: {_LOAD_AHEAD.get(framework, _LOAD_AHEAD[''])}."
    ahead = Advice("input", text)
    return (ahead,) if loader else (look, ahead)


_PREPROCESSING = {
    "Map": "`{name}` maps one element at a time: set `num_parallel_calls=tf.data.AUTOTUNE` "
    "(and `deterministic=False` if order does not matter).",
    "ParallelMap": (
        "`{name}` already runs in parallel, so make its function cheaper: batch() before map() to work on "
        "whole batches, do the work offline, or use more hosts with the tf.data service."
    ),
    "MapAndBatch": "`{name}` already runs in parallel: make its function cheaper, do the work offline, or "
    "use more hosts (tf.data service).",
    "Batch": "`{name}` copies elements into batches: set `num_parallel_calls=tf.data.AUTOTUNE`, or batch "
    "before map().",
    "PaddedBatch": "`{name}` pads every element on one thread: bucket elements by length "
    "(bucket_by_sequence_length), or pad offline.",
    "ParallelBatch": "`{name}` already copies on several threads: make elements smaller (narrower types), or "
    "batch before map().",
    "Shuffle": "`{name}` waits for its buffer to fill: use a smaller buffer_size, or shuffle file names and "
    "records offline.",
    "Filter": "`{name}` drops elements that other stages have processed: filter before map(), or offline.",
    "FlatMap": "`{name}` opens one source after another: use "
    "`interleave(num_parallel_calls=tf.data.AUTOTUNE)` instead of `flat_map()`.",
    "Interleave": "`{name}` interleaves on one thread: set `num_parallel_calls=tf.data.AUTOTUNE`.",
    "ParallelInterleave": "`{name}` already runs in parallel: use a larger cycle_length, more and smaller "
    "files, or faster storage.",
    "ParseExample": "`{name}` parses records: parse whole batches (parse_example after batch()), or store "
    "fewer features.",
    "Generator": "`{name}` runs Python for each element: yield batches, or replace from_generator() with "
    "files or NumPy arrays.",
    "FlatMapGenerator": "`{name}` runs Python for each element: yield whole batches.",
    "Cache": "`{name}` is being filled or read: the first pass over a cache is slow, later passes are not.",
}


# Loaders other than tf.data: the names of their functions in a trace, and advice in their own terms.
_LOADERS = (
    (
        (
            "SourceMapDataset",
            "MapDataset",
            "MapIterDataset",
            "DataLoader.__next__",
            "PyGrain",
            "grain",
            "PrefetchDatasetIterator",
        ),
        "`{name}` belongs to Grain: read ahead in more threads (`to_iter_dataset(ReadOptions(num_threads=…, "
        "prefetch_buffer_size=…))`), and "
        "transform in other processes (`mp_prefetch(MultiprocessingOptions(num_workers=…))`).",
    ),
    (
        (
            "DataLoader",
            "enumerate(DataLoader)",
            "_MultiProcessingDataLoaderIter",
            "_SingleProcessDataLoaderIter",
        ),
        "`{name}` belongs to PyTorch: load in other processes (`DataLoader(num_workers=…, "
        "persistent_workers=True, "
        "prefetch_factor=…)`), and "
        "set `pin_memory=True` with `.to(device, non_blocking=True)` for a GPU.",
    ),
)
_PLAIN = (
    "`{name}` runs in the job's own process: load the next batch in a thread (if it waits for files or the "
    "network) or in another process (if it computes), while the current step runs."
)


def loader_advice(name: str) -> str:
    """Advice on a loader other than tf.data, by the function that the trace names."""
    for words, text in _LOADERS:
        if any(word in name for word in words):
            return text.format(name=name)
    return _PLAIN.format(name=name)


def _category_advice(host_ops: HostInput, category: str) -> Advice:
    full_name = costliest(host_ops, category)
    name = short(full_name)
    uses_data = any(op_name.startswith("Iterator") for op_name in host_ops.ops.name)
    tool: Tool = "tf_data_bottleneck_analysis" if uses_data else "trace_viewer"
    if category == "enqueuing":
        what = f"`{name}` transfers data" if name else "Data is transferred"
        text = (
            f"{what} to the device: use fewer, larger transfers (one array per batch) and smaller types "
            "(uint8, cast on the device)."
        )
        return Advice(category, text, "trace_viewer")
    if (
        full_name
        and "Iterator" not in full_name
        and category in ("demanded_reads", "advanced_reads", "preprocessing")
    ):
        return Advice(category, loader_advice(full_name), "trace_viewer")
    if category == "demanded_reads":
        text = (
            f"`{name}` reads on demand: read ahead with `interleave(…, "
            "num_parallel_calls=tf.data.AUTOTUNE)` over several files."
        )
        return Advice(category, text, tool)
    if category == "advanced_reads":
        text = (
            f"`{name}` reads ahead, but the job still waits for it: read more files at a time (a larger "
            "cycle_length in interleave()), use files of 100 MB or more on storage near the host, and "
            "cache() data that fits in memory."
        )
        return Advice(category, text, tool)
    if category == "other":
        text = (
            "Between enqueues the host does work that no input operation accounts for: check its threads in "
            "the trace viewer."
        )
        return Advice(category, text, "trace_viewer")
    if stage(full_name) in _WAITING:
        text = (
            f"`{name}` waits for stages that the trace does not name: check the pipeline on the host that "
            "runs it."
        )
        return Advice(category, text, tool)
    default = (
        "`{name}` takes most of the preprocessing time: run it in parallel, do it offline, or use more "
        "hosts (tf.data service)."
    )
    return Advice(category, _PREPROCESSING.get(stage(full_name), default).format(name=name), tool)


def _pipeline_advice(host_ops: HostInput) -> list[Advice]:
    """Advice on the pipeline as a whole, if it does not work ahead or recomputes its elements."""
    names = host_ops.ops.name
    stages = {stage(part) for name in names for part in name.split("::")}
    result = []
    if "Prefetch" not in stages and not stages & {"ParallelMap", "MapAndBatch"}:
        text = (
            "Nothing in the pipeline works ahead: end it with prefetch(tf.data.AUTOTUNE), so that it runs "
            "during the step."
        )
        result.append(Advice("preprocessing", text, "tf_data_bottleneck_analysis"))
    if any("Repeat" in part for part in stages) and not any(
        "Cache" in part or part.startswith("Memory") for part in stages
    ):
        text = (
            "The pipeline repeats its data and recomputes it every epoch: add cache() after the expensive "
            "stage if the result fits in memory."
        )
        result.append(Advice("preprocessing", text))
    return result
