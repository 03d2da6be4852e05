"""The time of a host's input pipeline: its operations, sorted into reading, preprocessing and enqueuing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.names import parse_op
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.ops.host import host_ops
from tb_tpuprof.analysis.ops.metrics import OpMetrics, add_up
from tb_tpuprof.trace.trace import Trace

# The kinds of work on the host, in display order.
HOST_CATEGORIES = ("enqueuing", "preprocessing", "advanced_reads", "demanded_reads", "other")
# A stage that only waits for the stages below it, which count themselves: no time of the pipeline.
WAITING = "waiting"
_ENQUEUE = "InfeedEnqueue"
_STAGES = {
    "enqueue": "enqueuing",
    "read": "demanded_reads",
    "preprocessing": "preprocessing",
    "unknown": "other",
}
_FILE_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_WAITERS = ("Root", "Prefetch")
_COPIES_TO_DEVICE = "::Prefetch::Generator"  # of a device's pipeline: fetches elements of the host's pipeline
_NUMBER = re.compile(r"(?<!DirectedInterleave)(?<!Zip)\[\d+\]")
_AHEAD = ("::MemoryReader", "::MemoryWriter", "::Interleave", "::Prefetch", "::ParallelMap")


@dataclass(frozen=True)
class HostInput:
    """The input operations of one host or of several, by name.

    `enqueue_ps` is the time in which threads enqueued for the infeed, without each thread's last enqueue, and
    `between_ps` the time from one enqueue's start to the next one's: their ratio is the share of the host's
    time spent enqueuing.
    """

    ops: OpMetrics
    category: tuple[str, ...]
    enqueue_ps: int = 0
    between_ps: int = 0

    @property
    def self_ps(self) -> int:
        """Self time of all input operations."""
        return self.ops.busy_ps

    def time_ps(self, category: str) -> int:
        """Self time in ps of the operations of one category."""
        is_in_category = np.array([own_category == category for own_category in self.category], np.bool_)
        return int(self.ops.self_ps[is_in_category].sum())


@dataclass(frozen=True)
class HostTime:
    """Time of the input pipeline in ps by category, in the order of HOST_CATEGORIES. `enqueue_fraction` is -1
    if it is unknown.
    """

    time_ps: tuple[float, ...]
    enqueue_fraction: float

    @property
    def total_ps(self) -> float:
        """Time of all categories."""
        return sum(self.time_ps)

    @property
    def largest(self) -> str:
        """The category that takes the most time, empty if none takes any."""
        return HOST_CATEGORIES[int(np.argmax(self.time_ps))] if self.total_ps > 0 else ""


def input_category(name: str, type_: str) -> str:
    """The category of an operation's work on input: one of HOST_CATEGORIES, or empty if it is no input
    operation.

    Infeed enqueues and copies to the device enqueue. A tf.data iterator whose last part reads files reads in
    advance if it is below a cache, an interleave, a prefetch or a parallel map, else on demand; other
    iterators preprocess. A stage's own category (`_ipl_stage_cat`) takes precedence. `IteratorGetNext` waits
    for input and does not produce any. Source: XProf, `op_stats_to_input_pipeline_analysis`.
    """
    if type_.startswith(_ENQUEUE) or type_ == "MemcpyHToD":
        return "enqueuing"
    if type_ != "Dataset":
        return _STAGES.get(type_.lower(), "")
    if name.rpartition("::")[2] in _FILE_READERS:
        return "advanced_reads" if any(part in name for part in _AHEAD) else "demanded_reads"
    return "preprocessing"


def _waits(name: str, stages: set[str]) -> bool:
    """Whether an iterator only waits for others: for the `stages` below it, or, in a device's pipeline, for
    the host's.
    """
    return (name in stages and name.rpartition("::")[2] in _WAITERS) or name.endswith(_COPIES_TO_DEVICE)


def merged_stage(name: str) -> str:
    """An iterator's name without the numbers of iterators created per element: `FlatMap[0]` … `FlatMap[19]`
    are one stage.
    """
    return _NUMBER.sub("", name) if "Iterator::" in name else name


@once
def host_input(trace: Trace) -> HostInput:
    """The input operations of one host's threads."""
    ops = host_ops(trace)
    enqueue_ps, between_ps = _enqueues(trace)
    return _select(ops, enqueue_ps, between_ps)


def sum_host_input(parts: Sequence[HostInput]) -> HostInput:
    """The sum of several hosts: times and occurrences by name."""
    if len(parts) == 1:
        return parts[0]
    return _select(
        add_up(part.ops for part in parts), sum(p.enqueue_ps for p in parts), sum(p.between_ps for p in parts)
    )


def _select(ops: OpMetrics, enqueue_ps: int, between_ps: int) -> HostInput:
    category = [input_category(name, type_) for name, type_ in zip(ops.name, ops.type, strict=True)]
    stages = {
        name.rpartition("::")[0]
        for name, own_category in zip(ops.name, category, strict=True)
        if own_category
    }
    # A consumer waits inside a prefetch while the stages below work: counting that wait would count it twice.
    category = [
        WAITING if own_category and _waits(name, stages) else own_category
        for name, own_category in zip(ops.name, category, strict=True)
    ]
    kept_rows = [i for i, own_category in enumerate(category) if own_category]
    rows = np.array(kept_rows, np.intp)
    columns = (
        getattr(ops, key)[rows] if len(getattr(ops, key)) else getattr(ops, key)
        for key in ("flops", "model_flops", "n_bytes")
    )
    selected = OpMetrics(
        tuple(ops.name[i] for i in kept_rows),
        tuple(ops.type[i] for i in kept_rows),
        ops.n_occurrences[rows],
        ops.time_ps[rows],
        ops.self_ps[rows],
        ops.is_eager[rows],
        ops.span_ps,
        tuple(ops.program[i] for i in kept_rows if ops.program),
        tuple(ops.provenance[i] for i in kept_rows if ops.provenance),
        *columns,
    )
    return HostInput(selected, tuple(category[i] for i in kept_rows), enqueue_ps, between_ps)


def _enqueues(trace: Trace) -> tuple[int, int]:
    """Total duration in ps of infeed enqueues except each line's last, and the total time between their
    starts.
    """
    strings = trace.strings
    is_enqueue = np.zeros(len(trace.metadata), np.bool_)
    for row in np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist():
        name = strings[trace.metadata["name"][row]]
        is_enqueue[row] = _ENQUEUE in name and parse_op(name).type.startswith(_ENQUEUE)
    if not is_enqueue.any():
        return 0, 0
    rows = events_of(trace, is_enqueue)
    line, start = trace.event_line[rows], trace.events["start_ps"][rows]
    has_next: npt.NDArray[np.bool_] = line[1:] == line[:-1]
    duration = trace.events["duration_ps"][rows][:-1]
    return int(duration[has_next].sum()), int(np.diff(start)[has_next].sum())


def host_time(host_ops: HostInput, copy_fraction: float = 0.0) -> HostTime:
    """Time by category in ps. `copy_fraction`: share of the step time spent on copies to the device, used if
    there is no infeed.

    Threads read and preprocess concurrently and ahead of the step, so their self times show their
    proportions, not how long the input takes. That follows from the enqueues, which happen once per batch: if
    the host enqueues for the share r of its time, E in total, it spends E · (1 - r) / r on everything else,
    which reading, preprocessing and other stages share in proportion to their self times. If r is unknown or
    nothing is enqueued, the result is the self times.
    """
    ratio = (
        min(1.0, host_ops.enqueue_ps / host_ops.between_ps)
        if host_ops.between_ps
        else min(1.0, copy_fraction)
    )
    self_ps = [float(host_ops.time_ps(category)) for category in HOST_CATEGORIES]
    enqueue, rest_ps = self_ps[0], sum(self_ps[1:])
    has_ratio = ratio > 0 and enqueue > 0
    if not has_ratio:
        return HostTime(tuple(self_ps), -1.0)
    others = enqueue * (1 - ratio) / ratio
    if rest_ps <= 0:
        return HostTime((enqueue, 0.0, 0.0, 0.0, others), ratio)
    return HostTime((enqueue, *(time * others / rest_ps for time in self_ps[1:])), ratio)
