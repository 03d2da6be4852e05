"""Advice on the stage that limits a tf.data pipeline: changes that this stage's API allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.tf_data.advice import user_call
from tb_tpuprof.analysis.tf_data.forest import forest
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, parameters_of
from tb_tpuprof.analysis.tf_data.what_if import processor_time
from tb_tpuprof.trace.trace import Trace

_SOURCES = (
    "TFRecord",
    "TextLine",
    "FixedLengthRecord",
    "SSTable",
    "RecordIO",
    "CSV",
    "ArrayRecord",
    "TensorSlice",
    "Range",
    "Sql",
    "Lmdb",
)
_CACHE = (
    "Cache this stage's output (`cache()`, before random augmentation and `shuffle`) if it fits in memory "
    "and is read more than once."
)
_OFFLINE = (
    "Do the work once, offline, and store the result; or spread it over more machines with "
    "`tf.data.experimental.service`."
)
_TINY_PS = 20e6  # function time per element below which passing elements on costs more than the function
_STRAGGLES = 2.5  # times the median, in the slowest runs, if one element delays the following ones
_TUNED = "num_parallel_calls=tf.data.AUTOTUNE"


@dataclass(frozen=True)
class Evidence:
    """The trace's data about the bottleneck. `options`: its parameters; `root`: those of the whole pipeline.
    `run_ps`: the times of its function's runs.

    `is_python`: Python functions take most of the functions' time.
    """

    options: dict[str, str]
    root: dict[str, str]
    run_ps: tuple[int, ...] = ()
    is_python: bool = False

    def number(self, name: str, otherwise: int = 0) -> int:
        """A parameter as a number, `otherwise` if it is absent."""
        text = self.options.get(name, self.root.get(name, ""))
        return int(text) if text.isdecimal() else otherwise

    @property
    def typical_ps(self) -> float:
        """The median time of a run of the function."""
        return float(np.median(self.run_ps)) if self.run_ps else 0.0

    @property
    def straggles(self) -> bool:
        """Whether a few runs of the function take much longer than most."""
        return len(self.run_ps) > 3 and float(np.quantile(self.run_ps, 0.95)) > _STRAGGLES * self.typical_ps


NOTHING_KNOWN = Evidence({}, {})


def evidence(trace: Trace, pipeline: Pipeline) -> Evidence:
    """The trace's data about a pipeline's bottleneck."""
    stage, iterators = pipeline.bottleneck_stage, forest(trace)
    if stage is None:
        return NOTHING_KNOWN
    parameters = parameters_of(trace, pipeline)
    node = iterators.stages.index(stage.long_name)
    event = iterators.runs.event
    is_stage_run = (iterators.node[event] == node) & np.isin(iterators.call[event], pipeline.calls)
    runs = tuple(iterators.runs.took_ps[is_stage_run].tolist())
    return Evidence(
        parameters.get(stage.long_name, {}),
        parameters.get(pipeline.stages[0].long_name, {}),
        runs,
        processor_time(trace)[1] > 0.5,
    )


def advice(pipeline: Pipeline, facts: Evidence = NOTHING_KNOWN) -> tuple[str, ...]:
    """Advice on a pipeline's bottleneck, the most useful first."""
    stage = pipeline.bottleneck_stage
    if pipeline.kind == "Device":
        return (
            "This is the device side: it waits for elements from the host and for their copy. Check the "
            "host's pipeline.",
            "Raise the buffer of `prefetch_to_device`, or prefetch on the host.",
        )
    if stage is None:
        return ("No change is needed: no call waited for a stage.",)
    return stage_advice(stage, pipeline.stages, facts)


def stage_advice(stage: Stage, stages: tuple[Stage, ...], facts: Evidence = NOTHING_KNOWN) -> tuple[str, ...]:
    """Advice on a stage of a host's pipeline."""
    call = user_call(stage.name)
    if "DataService" in stage.name:
        return (
            "Elements come from tf.data service: profile its workers, add workers, or check the network to "
            "them.",
        )
    if _is_window(stage):
        return (
            "A batch per window copies each element once per window: cut windows from a whole array with "
            "`tf.signal.frame`, or slice batches in one `map`, instead of `window(...).flat_map(...)`.",
            _CACHE,
        )
    if call == "map":
        return (*_before_map(stage, stages), *_map_advice(facts))
    if stage.name in ("Filter", "Scan", "Unbatch", "Window"):
        return (
            f"`{call}` has no parallel form: do it inside an `interleave(..., {_TUNED})` over parts of "
            "the data, or move its slow part into a `map` with `num_parallel_calls`.",
            _CACHE,
            _OFFLINE,
        )
    if call in ("interleave", "flat_map"):
        return _interleave_advice(stage, facts)
    if call in ("batch", "padded_batch"):
        return _batch_advice(stage, facts)
    return _source_advice(stage, stages, call)


def _is_window(stage: Stage) -> bool:
    parts = stage.long_name.split("::")
    return stage.name.startswith("Batch") and any(part.startswith("FlatMap") for part in parts[:-1])


def _before_map(stage: Stage, stages: tuple[Stage, ...]) -> tuple[str, ...]:
    """Advice to filter first, where a filter drops the output of this map; else empty."""
    consumer = stages[stage.parent] if 0 <= stage.parent < len(stages) else None
    if consumer is None or consumer.name not in ("Filter", "ParallelFilter") or not consumer.times.n_calls:
        return ()
    per_kept_element = stage.times.n_calls / consumer.times.n_calls
    if per_kept_element < 1.2:
        return ()
    text = (
        f"`filter` after this `map` keeps 1 of {per_kept_element:.1f} elements: filter first, on the `map`'s "
        "input."
    )
    return (text,)


def _map_advice(facts: Evidence) -> tuple[str, ...]:
    lanes, pool = facts.number("parallelism", 1), facts.number("threadpool_size")
    is_tuned = facts.options.get("autotune") == "true"
    cheaper = (
        "Make its function cheaper: batch first so that it works on whole batches, and avoid Python "
        "(`py_function`, `numpy_function`)."
    )
    if 0 < facts.typical_ps < _TINY_PS:
        first = (
            f"Batch first: its function takes {facts.typical_ps / 1e6:.1f} µs per element, less than "
            "passing an element on. With `batch(n)` before the `map` it works on n elements at a time."
        )
        return (first, _CACHE, _OFFLINE)
    if is_tuned and 0 < pool <= lanes:
        limit = f"`options.threading.private_threadpool_size={pool}`"
        text = (
            f"The pool limits that `map` to {lanes} {'thread' if lanes == 1 else 'threads'}: remove "
            f"{limit} or raise it. {cheaper}"
        )
        return (text, _CACHE, _OFFLINE)
    if lanes <= 1 and not is_tuned:
        if facts.is_python:
            text = (
                f"Set `{_TUNED}` on that `map`: it runs one element at a time. Its function is Python: this "
                "helps while the function waits (files, network), but its computation holds Python's lock, "
                "so write that with TensorFlow operations."
            )
            return (text, _CACHE, _OFFLINE)
        return (f"Set `{_TUNED}` on that `map`: it runs one element at a time.", cheaper, _CACHE, _OFFLINE)
    tuned = " (chosen by AUTOTUNE)" if is_tuned else ""
    running = f"That `map` already runs on {lanes} {'thread' if lanes == 1 else 'threads'}{tuned}."
    if facts.straggles and facts.options.get("deterministic", "true") != "false":
        slow = float(np.quantile(facts.run_ps, 0.95)) / facts.typical_ps
        text = (
            f"{running} Its slowest elements take {slow:.1f} times the median and delay the following ones: "
            "set `deterministic=False` on it if the order of elements does not matter."
        )
        return (text, cheaper, _CACHE, _OFFLINE)
    if facts.is_python:
        text = (
            f"{running} Its function is Python: its computation holds Python's lock, so threads do not help; "
            "write it with TensorFlow operations."
        )
        return (text, _CACHE, _OFFLINE)
    return (f"{running} {cheaper}", _CACHE, _OFFLINE)


def _interleave_advice(stage: Stage, facts: Evidence) -> tuple[str, ...]:
    if stage.name.startswith("Parallel"):
        n = facts.number("cycle_length")
        now = f" (now {n})" if n else ""
        return (
            f"It already reads in parallel: raise `cycle_length`{now}, use more and smaller files, or use "
            "faster storage.",
            _CACHE,
        )
    return (
        f"Use `interleave(..., cycle_length=n, {_TUNED})`: it opens and reads several inputs at once.",
        _CACHE,
    )


def _batch_advice(stage: Stage, facts: Evidence) -> tuple[str, ...]:
    smaller = "Make elements smaller (narrower types; decode or widen after batching), or batch earlier."
    if stage.name.startswith("PaddedBatch"):
        text = (
            "`padded_batch` pads on one thread and has no `num_parallel_calls`: group elements of similar "
            "length with `bucket_by_sequence_length`, pad offline, or use `ragged_batch`."
        )
        return (text, smaller, _CACHE)
    if stage.name.startswith("ParallelBatch"):
        n = facts.number("parallelism")
        return (
            f"`batch` already copies its elements{f' on {n} threads' if n else ' in parallel'}. {smaller}",
            _CACHE,
        )
    return (f"`batch` copies its elements: set `{_TUNED}` on it. {smaller}", _CACHE)


def _source_advice(stage: Stage, stages: tuple[Stage, ...], call: str) -> tuple[str, ...]:
    name = stage.name
    if name == "Generator":
        return (
            "A Python generator produces one element at a time: yield whole batches, `interleave` several "
            "generators, or write TFRecord files once.",
            "Add `prefetch(tf.data.AUTOTUNE)` at the end.",
            _CACHE,
        )
    if name.startswith(_SOURCES):
        return (
            f"Read several files at once: `interleave(tf.data.{call}, {_TUNED})` over the list of files."
            if call.endswith("Dataset")
            else f"Read several parts at once: `interleave(..., {_TUNED})`.",
            "Keep the files near the host (same region, local disk), uncompressed or lightly compressed, 100 "
            "MB or more each.",
            _CACHE,
        )
    if name == "Shuffle":
        return (
            "`shuffle` fills its buffer: shuffle file names first and use a smaller buffer, and shuffle "
            "before `map`, not after.",
            _CACHE,
        )
    if name == "Prefetch" and not _feeders(stage, stages):
        return (
            "The stages that feed this `prefetch` were not traced: capture for longer, or inspect its "
            "threads in the trace viewer.",
            "A larger buffer helps if the time per element varies.",
        )
    return (f"Do the work of `{call}` inside a parallel `interleave` or `map`.", _CACHE, _OFFLINE)


def _feeders(stage: Stage, stages: tuple[Stage, ...]) -> list[Stage]:
    return [other for other in stages if 0 <= other.parent < len(stages) and stages[other.parent] is stage]
