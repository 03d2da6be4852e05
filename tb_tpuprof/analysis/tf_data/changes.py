"""What to change about the stage that holds a tf.data pipeline up: advice that the API of that
stage allows.
"""

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
    "Cache what this stage makes (`cache()`, before random augmentation and `shuffle`) if it fits into "
    "memory and is read more than once."
)
_OFFLINE = (
    "Do the work once, offline, and store its result; or spread it over more machines with "
    "`tf.data.experimental.service`."
)
_TINY_PS = 20e6  # function time per element below which handing elements over costs more than the function
_STRAGGLES = 2.5  # how many times the median the slowest runs take where one element holds up those behind it
_TUNED = "num_parallel_calls=tf.data.AUTOTUNE"


@dataclass(frozen=True)
class Evidence:
    """What the trace says of the bottleneck. `options`: its parameters; `root`: those of the whole pipeline.
    `run_ps`: its function's runs.

    `is_python`: Python functions take most of the functions' time.
    """

    options: dict[str, str]
    root: dict[str, str]
    run_ps: tuple[int, ...] = ()
    is_python: bool = False

    def number(self, name: str, otherwise: int = 0) -> int:
        """A parameter as a number."""
        text = self.options.get(name, self.root.get(name, ""))
        return int(text) if text.isdigit() else otherwise

    @property
    def typical_ps(self) -> float:
        """The median run of the function."""
        return float(np.median(self.run_ps)) if self.run_ps else 0.0

    @property
    def straggles(self) -> bool:
        """Whether a few runs of the function take much longer than most."""
        return len(self.run_ps) > 3 and float(np.quantile(self.run_ps, 0.95)) > _STRAGGLES * self.typical_ps


NOTHING_KNOWN = Evidence({}, {})


def evidence(trace: Trace, pipeline: Pipeline) -> Evidence:
    """What the trace says of a pipeline's bottleneck."""
    stage, found = pipeline.bottleneck_stage, forest(trace)
    if stage is None:
        return NOTHING_KNOWN
    told = parameters_of(trace, pipeline)
    node = found.stages.index(stage.long_name)
    event = found.runs.event
    mine = (found.node[event] == node) & np.isin(found.call[event], pipeline.calls)
    runs = tuple(found.runs.took_ps[mine].tolist())
    return Evidence(
        told.get(stage.long_name, {}),
        told.get(pipeline.stages[0].long_name, {}),
        runs,
        processor_time(trace)[1] > 0.5,
    )


def advice(pipeline: Pipeline, known: Evidence = NOTHING_KNOWN) -> tuple[str, ...]:
    """What to do about a pipeline's bottleneck, the most useful first."""
    stage = pipeline.bottleneck_stage
    if pipeline.kind == "Device":
        return (
            "This is the device's side: it waits for elements from the host and for their copy. Look at the "
            "host's pipeline.",
            "Raise the buffer of `prefetch_to_device`, or prefetch on the host.",
        )
    if stage is None:
        return ("Nothing: no stage was waited for.",)
    return stage_advice(stage, pipeline.stages, known)


def stage_advice(stage: Stage, stages: tuple[Stage, ...], known: Evidence = NOTHING_KNOWN) -> tuple[str, ...]:
    """What to do about a stage of a host's pipeline."""
    call = user_call(stage.name)
    if "DataService" in stage.name:
        return (
            "Elements come from tf.data service: profile its workers, add workers, or check the network "
            "between.",
        )
    if _is_window(stage):
        return (
            "A batch per window copies each element once per window: cut windows from a whole array with "
            "`tf.signal.frame`, or slice batches in one `map`, instead of `window(...).flat_map(...)`.",
            _CACHE,
        )
    if call == "map":
        return (*_before_map(stage, stages), *_map_advice(known))
    if stage.name in ("Filter", "Scan", "Unbatch", "Window"):
        return (
            f"`{call}` has no parallel form: do it inside of an `interleave(..., {_TUNED})` over parts of "
            "the data, or move its slow part into a `map` with `num_parallel_calls`.",
            _CACHE,
            _OFFLINE,
        )
    if call in ("interleave", "flat_map"):
        return _interleave_advice(stage, known)
    if call in ("batch", "padded_batch"):
        return _batch_advice(stage, known)
    return _source_advice(stage, stages, call)


def _is_window(stage: Stage) -> bool:
    parts = stage.long_name.split("::")
    return stage.name.startswith("Batch") and any(part.startswith("FlatMap") for part in parts[:-1])


def _before_map(stage: Stage, stages: tuple[Stage, ...]) -> tuple[str, ...]:
    """Where a filter throws away what a map made: drop first."""
    above = stages[stage.parent] if 0 <= stage.parent < len(stages) else None
    if above is None or above.name not in ("Filter", "ParallelFilter") or not above.times.n_calls:
        return ()
    made = stage.times.n_calls / above.times.n_calls
    if made < 1.2:
        return ()
    text = f"`filter` after this `map` keeps 1 of {made:.1f} elements: filter first, on what the `map` reads."
    return (text,)


def _map_advice(known: Evidence) -> tuple[str, ...]:
    lanes, pool = known.number("parallelism", 1), known.number("threadpool_size")
    is_tuned = known.options.get("autotune") == "true"
    cheaper = (
        "Make its function cheaper: batch first and let it work on whole batches, and keep Python "
        "(`py_function`, `numpy_function`) out."
    )
    if 0 < known.typical_ps < _TINY_PS:
        first = (
            f"Batch first: its function takes {known.typical_ps / 1e6:.1f} µs per element, less than "
            "handing an element over. `batch(n)` before the `map` makes it work on n elements at a time."
        )
        return (first, _CACHE, _OFFLINE)
    if is_tuned and 0 < pool <= lanes:
        limit = f"`options.threading.private_threadpool_size={pool}`"
        text = (
            f"The pool holds that `map` to {lanes} {'thread' if lanes == 1 else 'threads'}: remove "
            f"{limit} or raise it. {cheaper}"
        )
        return (text, _CACHE, _OFFLINE)
    if lanes <= 1 and not is_tuned:
        if known.is_python:
            text = (
                f"Set `{_TUNED}` on that `map`: it runs one element at a time. Its function is Python: this "
                "helps as far as it waits (files, network); what it computes holds Python's lock, so write "
                "that in TensorFlow operations."
            )
            return (text, _CACHE, _OFFLINE)
        return (f"Set `{_TUNED}` on that `map`: it runs one element at a time.", cheaper, _CACHE, _OFFLINE)
    tuned = " (chosen by AUTOTUNE)" if is_tuned else ""
    running = f"That `map` runs on {lanes} {'thread' if lanes == 1 else 'threads'} already{tuned}."
    if known.straggles and known.options.get("deterministic", "true") != "false":
        slow = float(np.quantile(known.run_ps, 0.95)) / known.typical_ps
        text = (
            f"{running} Its slowest elements take {slow:.1f} times the median and hold up those behind "
            "them: set `deterministic=False` on it if the order of elements is free."
        )
        return (text, cheaper, _CACHE, _OFFLINE)
    if known.is_python:
        text = (
            f"{running} Its function is Python: what it computes holds Python's lock, so threads do not "
            "help; write it in TensorFlow operations."
        )
        return (text, _CACHE, _OFFLINE)
    return (f"{running} {cheaper}", _CACHE, _OFFLINE)


def _interleave_advice(stage: Stage, known: Evidence) -> tuple[str, ...]:
    if stage.name.startswith("Parallel"):
        n = known.number("cycle_length")
        now = f" (it is {n})" if n else ""
        return (
            f"It reads in parallel already: raise `cycle_length`{now}, use more and smaller files, or faster "
            "storage.",
            _CACHE,
        )
    return (
        f"Use `interleave(..., cycle_length=n, {_TUNED})`: it opens and reads several inputs at once.",
        _CACHE,
    )


def _batch_advice(stage: Stage, known: Evidence) -> tuple[str, ...]:
    smaller = "Make elements smaller (narrower types; decode or widen after batching), or batch earlier."
    if stage.name.startswith("PaddedBatch"):
        text = (
            "`padded_batch` pads on one thread and has no `num_parallel_calls`: group elements of like "
            "length with `bucket_by_sequence_length`, pad offline, or use `ragged_batch`."
        )
        return (text, smaller, _CACHE)
    if stage.name.startswith("ParallelBatch"):
        n = known.number("parallelism")
        return (
            f"`batch` copies its elements{f' on {n} threads' if n else ' in parallel'} already. {smaller}",
            _CACHE,
        )
    return (f"`batch` copies its elements: set `{_TUNED}` on it. {smaller}", _CACHE)


def _source_advice(stage: Stage, stages: tuple[Stage, ...], call: str) -> tuple[str, ...]:
    name = stage.name
    if name == "Generator":
        return (
            "A Python generator makes one element at a time: yield whole batches, `interleave` several "
            "generators, or write TFRecord files once.",
            "Put `prefetch(tf.data.AUTOTUNE)` at the end.",
            _CACHE,
        )
    if name.startswith(_SOURCES):
        return (
            f"Read several files at once: `interleave(tf.data.{call}, {_TUNED})` over the list of files."
            if call.endswith("Dataset")
            else f"Read several parts at once: `interleave(..., {_TUNED})`.",
            "Keep the files near the host (same region, local disk), uncompressed or lightly compressed, of "
            "100 MB or more each.",
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
            "What feeds this `prefetch` was not traced with it: capture for longer, or look at its threads "
            "in the trace viewer.",
            "A larger buffer helps where the time per element varies.",
        )
    return (f"Do the work of `{call}` inside of a parallel `interleave` or `map`.", _CACHE, _OFFLINE)


def _feeders(stage: Stage, stages: tuple[Stage, ...]) -> list[Stage]:
    return [one for one in stages if 0 <= one.parent < len(stages) and stages[one.parent] is stage]
