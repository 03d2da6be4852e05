"""What to change about a job's input: advice for what takes time in this run, named by the calls in the
user's code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.input.host import HOST_CATEGORIES, HostInput, merged_stage
from tb_tpuprof.analysis.input.pipeline import InputPipeline, copy_fraction
from tb_tpuprof.analysis.ops.recommend import THRESHOLDS
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.units import format_fraction

Tool = Literal["", "trace_viewer", "overview_page", "tf_data_bottleneck_analysis", "framework_op_stats"]
_MATTERS = 0.1  # share of the host's time for input from which a category gets advice
_GRAIN = "Grain with `ReadOptions(num_threads, prefetch_buffer_size)` and `mp_prefetch`"
_LOAD_AHEAD = {
    JAX: _GRAIN,
    PYTORCH: "`DataLoader` with `num_workers` and `persistent_workers=True`",
    TENSORFLOW: "tf.data with `prefetch(tf.data.AUTOTUNE)`",
    "": f"tf.data with `prefetch(tf.data.AUTOTUNE)`, {_GRAIN}, a PyTorch `DataLoader` with `num_workers`",
}
_COPY_AHEAD = {
    JAX: "`jax.device_put` ahead of use", PYTORCH: "`pin_memory=True` with `.to(device, non_blocking=True)`",
    TENSORFLOW: "`prefetch_to_device`", "": "prefetch_to_device, jax.device_put ahead of use",
}  # fmt: skip
_STAGE = re.compile(r"(?:V\d+)?(?:\[\d+\])?$")
# Stages whose own time is mostly waiting for the threads that they started.
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
    """One thing to do. `category`: of HOST_CATEGORIES or of CATEGORIES, what it would save; `tool`: where to
    look, or empty.
    """

    category: str
    text: str
    tool: Tool = ""


def stage(name: str) -> str:
    """The kind of tf.data stage that an iterator's name ends in: `Iterator::Root::Prefetch::BatchV2` →
    `Batch`.

    A `Generator` below a prefetch is not the user's: it fetches from the host's pipeline for a device
    (`DeviceGenerator`).
    """
    if name.endswith("Prefetch::Generator"):
        return "DeviceGenerator"
    return _STAGE.sub("", name.rpartition("::")[2])


def short(name: str) -> str:
    """An iterator by its last two stages: `Iterator::Root::Prefetch::Shuffle::Map` → `…::Shuffle::Map`."""
    parts = name.split("::")
    return "::".join(("…", *parts[-2:])) if len(parts) > 3 else name


def costliest(found: HostInput, category: str) -> str:
    """The stage of a category with most self time, its instances merged; stages that only wait for others
    come last. Empty if none.
    """
    return largest(found, category)[0]


def largest(found: HostInput, category: str) -> tuple[str, int]:
    """The same with its self time, in ps, summed over its instances."""
    total: dict[str, int] = {}
    for i, mine in enumerate(found.category):
        if mine == category:
            name = merged_stage(found.ops.name[i])
            total[name] = total.get(name, 0) + int(found.ops.self_ps[i])
    if not total:
        return "", 0
    name = min(total, key=lambda one: (stage(one) in _WAITING, -total[one]))
    return name, total[name]


def input_advice(found: InputPipeline, level: str, framework: str = "") -> tuple[Advice, ...]:
    """What to do, biggest gain first, in terms of the job's framework (empty: of all).

    `level`: of the verdict on the input; a job that does not wait needs no faster input.
    """
    if level == "good":
        text = "A faster input pipeline would not make the steps faster: look at what they compute."
        return (Advice("input", text, "overview_page"),)
    if not found.host_time.total_ps:
        return (
            *_copies(found, framework),
            *_python_loader(found.steps),
            *_without_operations(level, found.steps, framework),
        )
    total = found.host_time.total_ps
    shares = dict(zip(HOST_CATEGORIES, (time / total for time in found.host_time.time_ps), strict=True))
    result = list(_copies(found, framework))
    for category in sorted(HOST_CATEGORIES, key=lambda name: -shares[name]):
        if shares[category] >= _MATTERS:
            result.append(_of(found.host_input, category))
    if any(name.startswith("Iterator") for name in found.host_input.ops.name):
        result += _of_pipeline(found.host_input)
    return tuple(result)


def _copies(found: InputPipeline, framework: str) -> tuple[Advice, ...]:
    """Copies to the device that cost as much of the step as makes input a moderate cost."""
    share = copy_fraction(found.steps)
    if share < THRESHOLDS["input"][0]:
        return ()
    ahead = _COPY_AHEAD.get(framework, _COPY_AHEAD[""])
    text = (
        f"Copies to the device take {format_fraction(share)} of the steps: send fewer, larger arrays and "
        f"smaller types (uint8, cast on the device), and copy the next batch during the step ({ahead})."
    )
    return (Advice("input", text, "trace_viewer"),)


def _python_loader(steps: Steps) -> tuple[Advice, ...]:
    """The function or annotation in which the steps' own thread waits for data, where that costs what makes
    input a moderate cost.
    """
    loader = next((wait for wait in steps.waits if wait.kind == TimeClass.HOST_WAIT_LOADER), None)
    if loader is None or loader.total_ps < THRESHOLDS["input"][0] * int(steps.duration_ps.sum()):
        return ()
    text = (
        f"{loader.title} holds up the thread of the steps: do its work ahead of time in other threads or "
        "processes; if it already waits for such workers, add more."
    )
    return (Advice("input", text, "trace_viewer"),)


def _without_operations(level: str, steps: Steps, framework: str) -> tuple[Advice, ...]:
    seen = "See on the timeline what the host does between steps"
    option = "with_stack=True" if framework == PYTORCH else "python_tracer_level=1"
    tracer = "" if steps.waits else f"; a Python loader shows with the Python tracer on ({option})"
    look = Advice(
        "other", f"The trace names no operations of an input pipeline. {seen}{tracer}.", "trace_viewer"
    )
    if level == "unknown":
        return (look,)
    text = f"Load ahead in other threads or processes: {_LOAD_AHEAD.get(framework, _LOAD_AHEAD[''])}."
    return (Advice("other", text),) if _python_loader(steps) else (look, Advice("other", text))


_PREPROCESSING = {
    "Map": "`{name}` maps one element at a time: give it `num_parallel_calls=tf.data.AUTOTUNE` "
    "(`deterministic=False` if order is free).",
    "ParallelMap": (
        "`{name}` is parallel already, so its function is what costs: batch() before map() and work on "
        "whole batches, do it offline, or let more hosts help with the tf.data service."
    ),
    "MapAndBatch": "`{name}` is parallel already: make its function cheaper, do it offline, or let more "
    "hosts help (tf.data service).",
    "Batch": "`{name}` copies elements into batches: give it `num_parallel_calls=tf.data.AUTOTUNE`, or batch "
    "before map().",
    "PaddedBatch": "`{name}` pads every element on one thread: bucket elements by length "
    "(bucket_by_sequence_length), or pad offline.",
    "ParallelBatch": "`{name}` copies on several threads already: make elements smaller (narrower types), or "
    "batch before map().",
    "Shuffle": "`{name}` waits for its buffer to fill: a smaller buffer_size, or shuffle file names and "
    "records offline.",
    "Filter": "`{name}` drops elements after they were made: filter before map(), or offline.",
    "FlatMap": "`{name}` opens one source after the other: use "
    "`interleave(num_parallel_calls=tf.data.AUTOTUNE)` in place of `flat_map()`.",
    "Interleave": "`{name}` interleaves in one thread: give it `num_parallel_calls=tf.data.AUTOTUNE`.",
    "ParallelInterleave": "`{name}` is parallel already: a larger cycle_length, more and smaller files, or "
    "faster storage.",
    "ParseExample": "`{name}` parses records: parse whole batches (parse_example after batch()), store fewer "
    "features.",
    "Generator": "`{name}` runs Python for each element: have it yield batches, or replace from_generator() "
    "by files or NumPy arrays.",
    "FlatMapGenerator": "`{name}` runs Python for each element: have it yield whole batches.",
    "Cache": "`{name}` is being filled or read: the first pass over a cache is slow, later ones are not.",
}


# Loaders other than tf.data by what their functions are called in a trace: what to change about them, in
# their own terms.
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
        "`{name}` is Grain's: read ahead in more threads (`to_iter_dataset(ReadOptions(num_threads=…, "
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
        "`{name}` is PyTorch's: load in other processes (`DataLoader(num_workers=…, persistent_workers=True, "
        "prefetch_factor=…)`), and "
        "set `pin_memory=True` with `.to(device, non_blocking=True)` for a GPU.",
    ),
)
_PLAIN = (
    "`{name}` reads in the job's own process: load the next batch in a thread (if it waits for files or the "
    "network) or in another process (if it computes), while the current step runs."
)


def loader_advice(name: str) -> str:
    """What to do about a loader that is not tf.data, by the function that the trace names."""
    for words, text in _LOADERS:
        if any(word in name for word in words):
            return text.format(name=name)
    return _PLAIN.format(name=name)


def _of(found: HostInput, category: str) -> Advice:
    full_name = costliest(found, category)
    name = short(full_name)
    uses_data = any(known.startswith("Iterator") for known in found.ops.name)
    tool: Tool = "tf_data_bottleneck_analysis" if uses_data else "trace_viewer"
    if category == "enqueuing":
        what = f"`{name}` hands data" if name else "Data is handed"
        text = (
            f"{what} to the device: send fewer, larger transfers (one array per batch), and smaller types "
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
            f"`{name}` reads when it is asked: read ahead with `interleave(…, "
            "num_parallel_calls=tf.data.AUTOTUNE)` over several files."
        )
        return Advice(category, text, tool)
    if category == "advanced_reads":
        text = (
            f"`{name}` reads ahead and is still waited for: more files at a time (a larger cycle_length of "
            "interleave()), files of 100 MB and more, storage near the host; cache() what fits into memory."
        )
        return Advice(category, text, tool)
    if category == "other":
        text = (
            "Between enqueues the host does what no input operation accounts for: see on the timeline "
            "what runs in its threads."
        )
        return Advice(category, text, "trace_viewer")
    if stage(full_name) in _WAITING:
        text = (
            f"`{name}` waits for stages that the trace does not name: see the pipeline on the host that "
            "runs it."
        )
        return Advice(category, text, tool)
    default = (
        "`{name}` takes most of the preprocessing: run it in parallel, do it offline, or let more "
        "hosts help (tf.data service)."
    )
    return Advice(category, _PREPROCESSING.get(stage(full_name), default).format(name=name), tool)


def _of_pipeline(found: HostInput) -> list[Advice]:
    """What the pipeline as a whole lacks: working ahead, and keeping what it makes again and again."""
    names = found.ops.name
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
            "The pipeline repeats its data and recomputes it every epoch: put cache() after the expensive "
            "part if that fits into memory."
        )
        result.append(Advice("preprocessing", text))
    return result
