"""tf.data pipelines: how long each call took, which stage limited it, and the stages of a single call as a
graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.tf_data.forest import Bools, Forest, Ints, Rows, forest, stage_type, works_ahead
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

SLOW_PS = 50_000_000
_HIDDEN_STATS = frozenset(("id", "parent_id", "element_id", "group_id", "element_size", "shapes"))

_UNAVAILABLE = "unavailable"
_N_SAMPLED_CALLS = 12  # calls of a stage that are read for its parameters


@dataclass(frozen=True)
class Times:
    """Times of a stage in ps, summed over all complete calls: self time, own work (see Forest), the part of
    the work while the caller waited, and its function's time.
    """

    self_ps: int
    work_ps: int
    blocking_ps: int
    function_ps: int
    n_calls: int


@dataclass(frozen=True)
class Stage:
    """A stage over all calls of a pipeline. `parent`: the stage that consumes from it, -1 for the root."""

    name: str
    long_name: str
    times: Times
    is_async: bool
    parent: int


@dataclass(frozen=True)
class Pipeline:
    """All calls of one root iterator, in time order. `calls` are indices into the forest. `bottleneck`: index
    into `stages`, -1 none.

    `is_complete`: for each call, whether the capture contains everything produced for it. `waited_ps`: for
    each call, the time until its element was ready; in the rest of the call its thread wakes up.
    """

    name: str
    kind: str
    calls: Rows
    start_ps: Ints
    duration_ps: Ints
    waited_ps: Ints
    is_complete: Bools
    stages: tuple[Stage, ...]
    bottleneck: int
    thread_count: int

    @property
    def n_slow(self) -> int:
        """Number of calls longer than 50 µs, the traditional threshold."""
        return int((self.duration_ps > SLOW_PS).sum())

    @property
    def max_ps(self) -> int:
        """Duration of the slowest call."""
        return int(self.duration_ps.max())

    @property
    def order(self) -> Rows:
        """Complete calls by duration, slowest first, then those that the capture cut; ties in time order."""
        return np.lexsort((-self.duration_ps, ~self.is_complete))

    @property
    def typical_rank(self) -> int:
        """The rank, from 1, of the complete call of median duration; of all calls if none is complete."""
        return ((int(self.is_complete.sum()) or len(self.calls)) + 1) // 2

    @property
    def wait_fraction(self) -> float | None:
        """Share of the time from the first call to the last one's end that was spent in calls; at most 1. One
        call makes no rate: None.
        """
        if len(self.calls) < 2:
            return None
        span = int((self.start_ps + self.duration_ps).max() - self.start_ps.min())
        return min(1.0, int(self.duration_ps.sum()) / span) if span else 0.0

    @property
    def wake_fraction(self) -> float:
        """Share of the calls' time after their elements were ready."""
        total_ps = int(self.duration_ps.sum())
        return 1 - int(self.waited_ps.sum()) / total_ps if total_ps else 0.0

    @property
    def is_loop(self) -> bool:
        """Whether a loop of a tf.function runs as a stage of the pipeline: its calls then contain the loop's
        body.
        """
        return any(_is_loop_body(stage) for stage in self.stages)

    @property
    def bottleneck_stage(self) -> Stage | None:
        """The stage that callers waited for most, None if there is none."""
        return self.stages[self.bottleneck] if self.bottleneck >= 0 else None

    def work_ps(self, stage: Stage) -> float:
        """A stage's work that callers waited for, in ps per complete call."""
        return stage.times.blocking_ps / max(1, int(self.is_complete.sum()))


@dataclass(frozen=True)
class Node:
    """A stage in a single call. `parent`: the node that consumes from it, -1 for the root."""

    iterator: str
    name: str
    long_name: str
    start_ps: int
    duration_ps: int
    self_ps: int
    work_ps: int
    n_calls: int
    n_iterators: int
    is_blocking: bool
    is_async: bool
    parent: int
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Call:
    """One call of a pipeline, as a graph: nodes with parents before children. `bottleneck`: index of a node,
    -1 none.
    """

    start_ps: int
    duration_ps: int
    nodes: tuple[Node, ...]
    bottleneck: int
    n_reparented: int


@once
def pipelines(trace: Trace) -> tuple[Pipeline, ...]:
    """The pipelines of a trace, numbered by their first call, separately for host and device."""
    iterators = forest(trace)
    roots = np.flatnonzero(iterators.is_root)
    if not len(roots):
        return ()
    # A pipeline is one root iterator; the name identifies events without an id.
    key = np.where(iterators.has_id[roots], iterators.iterator[roots], iterators.node[roots])
    _keys, code = distinct_rows(key, iterators.has_id[roots])
    with_call = np.flatnonzero(iterators.call >= 0)
    pipeline_of = np.full(len(iterators), -1, np.int64)
    pipeline_of[roots] = code
    events = _split_by(pipeline_of[iterators.call[with_call]], with_call, int(code.max()) + 1)
    calls = _split_by(code, roots, int(code.max()) + 1)
    calls, events = _same_loops(iterators, calls, events)
    order = sorted(range(len(calls)), key=lambda i: int(iterators.start_ps[calls[i]].min()))
    counts = {"Host": 0, "Device": 0}
    result = []
    for i in order:
        first = int(iterators.iterator[calls[i][0]])
        kind = "Device" if first in iterators.device_iterators and iterators.has_id[calls[i][0]] else "Host"
        result.append(_pipeline(trace, iterators, f"{kind}:{counts[kind]}", calls[i], events[i]))
        counts[kind] += 1
    return tuple(result)


def _same_loops(iterators: Forest, calls: list[Rows], events: list[Rows]) -> tuple[list[Rows], list[Rows]]:
    """Merge the iterators that a loop of a tf.function creates, one per run, if they have the same stages."""
    merged: dict[tuple[object, ...], list[int]] = {}
    for i, own_calls in enumerate(calls):
        is_loop = not iterators.stages[iterators.node[own_calls[0]]].startswith("Iterator::")
        merged.setdefault(
            tuple(np.unique(iterators.node[events[i]]).tolist()) if is_loop else ("", i), []
        ).append(i)
    return [np.concatenate([calls[i] for i in same]) for same in merged.values()], [
        np.concatenate([events[i] for i in same]) for same in merged.values()
    ]


def _split_by(code: npt.NDArray[np.integer], values: Rows, n: int) -> list[Rows]:
    """Values by code 0 … n - 1, each in their order."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(n + 1))
    return [values[order[bounds[i] : bounds[i + 1]]] for i in range(n)]


def _pipeline(trace: Trace, iterators: Forest, name: str, calls: Rows, events: Rows) -> Pipeline:
    calls = calls[np.argsort(iterators.start_ps[calls], kind="stable")]
    is_complete = _is_complete(iterators, calls, events)
    # If no call is complete, all events count.
    counted = events[np.isin(iterators.call[events], calls[is_complete])] if is_complete.any() else events
    stages = _stages(iterators, events, counted)
    threads = len(np.unique(trace.event_line[iterators.row[calls]]))
    kind = name.partition(":")[0]
    duration = iterators.duration_ps[calls]
    loops = [i for i, stage in enumerate(stages) if _is_loop_body(stage)]
    if loops:
        waited = np.minimum(_requested_ps(iterators, calls, events, stages[loops[0]].long_name), duration)
    else:
        waited = duration - np.minimum(_waking_ps(iterators, calls, events), duration)
    return Pipeline(
        name,
        kind,
        calls,
        iterators.start_ps[calls],
        duration,
        waited,
        is_complete,
        stages,
        _bottleneck(stages),
        threads,
    )


def _is_complete(iterators: Forest, calls: Rows, events: Rows) -> Bools:
    """Mark the calls with as many stages as most calls: other calls lack elements produced before the capture
    started.
    """
    row_of = np.full(len(iterators), -1, np.int64)
    row_of[calls] = np.arange(len(calls))
    call_row = row_of[iterators.call[events]]
    n_events = np.bincount(call_row, minlength=len(calls))
    pairs = np.unique(call_row * len(iterators.stages) + iterators.node[events])
    n_stages = np.bincount(pairs // len(iterators.stages), minlength=len(calls))
    most = n_stages[n_events * 2 >= np.median(n_events)]
    usual = np.quantile(most, 0.5, method="lower") if len(most) else 0
    complete: Bools = (n_events * 2 >= np.median(n_events)) & (n_stages >= usual)
    return complete


def _waking_ps(iterators: Forest, calls: Rows, events: Rows) -> Ints:
    """Time in ps of each call after the prefetch at its end delivered the element."""
    row_of = np.full(len(iterators), -1, np.int64)
    row_of[calls] = np.arange(len(calls))
    result = np.zeros(len(calls), np.int64)
    prefetches = events[
        (iterators.after_ps[events] > 0) & (iterators.parent[events] == iterators.call[events])
    ]
    end = iterators.start_ps + iterators.duration_ps
    call_of = iterators.call[prefetches]
    np.add.at(
        result,
        row_of[call_of],
        iterators.after_ps[prefetches] + np.maximum(end[call_of] - end[prefetches], 0),
    )
    return result


def _requested_ps(iterators: Forest, calls: Rows, events: Rows, loop: str) -> Ints:
    """Time in ps of each call in which a loop's body waited for its next element: the calls made by the stage
    that runs the loop.
    """
    row_of = np.full(len(iterators), -1, np.int64)
    row_of[calls] = np.arange(len(calls))
    parent = iterators.parent[events]
    requests = events[(parent >= 0) & (iterators.node[parent] == iterators.stages.index(loop))]
    result = np.zeros(len(calls), np.int64)
    np.add.at(result, row_of[iterators.call[requests]], iterators.duration_ps[requests])
    return result


def _bottleneck(stages: tuple[Stage, ...]) -> int:
    """The stage with most work that callers waited for, -1 if there is none.

    The root only requests elements. A prefetch whose input is in the trace does not work either: the rest of
    its time is waking threads. A scan at the end of a loop over a data set runs the loop's body, so it is the
    consumer.
    """
    fed = {stage.parent for stage in stages}
    candidates = [
        i for i, stage in enumerate(stages) if not (_only_requests(stage, i in fed) or _is_loop_body(stage))
    ]
    worst = max(candidates or range(len(stages)), key=lambda i: stages[i].times.blocking_ps, default=-1)
    return worst if worst >= 0 and stages[worst].times.blocking_ps else -1


def _only_requests(stage: Stage, is_fed: bool) -> bool:
    return is_fed and (stage.parent < 0 or stage.name == "Prefetch")


def _is_loop_body(stage: Stage) -> bool:
    root, *above = stage.long_name.split("::")
    return root != "Iterator" and stage.name == "Scan" and set(above[:-1]) <= {"Root", "Prefetch"}


def complete_calls(pipeline: Pipeline) -> Rows:
    """Calls, as indices into the forest, for which the capture contains everything produced for them."""
    return pipeline.calls[pipeline.is_complete]


def parameters_of(trace: Trace, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """Each stage's parameters in the trace, by the stage's long name: the first value in any of its sampled
    calls.

    A call that ran while the stage was locked reports "unavailable".
    """
    iterators = forest(trace)
    events = np.flatnonzero(np.isin(iterators.call, pipeline.calls))
    result: dict[str, dict[str, str]] = {}
    for node in np.unique(iterators.node[events]).tolist():
        stage_events = events[iterators.node[events] == node]
        parameters = result.setdefault(iterators.stages[node], {})
        for event in stage_events[
            np.unique(np.linspace(0, len(stage_events) - 1, _N_SAMPLED_CALLS).astype(int))
        ].tolist():
            for name, value in trace.source.event_stats(trace, int(iterators.row[event])):
                if name not in _HIDDEN_STATS and parameters.get(name, _UNAVAILABLE) == _UNAVAILABLE:
                    parameters[name] = str(value)
    return result


def _stages(iterators: Forest, events: Rows, counted: Rows) -> tuple[Stage, ...]:
    """Each stage of a pipeline's events, parents before children; times are of the events `counted`."""
    nodes, first = np.unique(iterators.node[events], return_index=True)
    n = len(nodes)
    work = iterators.work_ps[counted]
    parts = (
        iterators.self_ps[counted],
        work,
        work * iterators.is_blocking[counted],
        iterators.function_ps[counted],
        np.ones(len(counted), np.int64),
    )
    sums = np.zeros((5, n), np.int64)
    for total, part in zip(sums, parts, strict=True):
        np.add.at(total, np.searchsorted(nodes, iterators.node[counted]), part)
    parent = _parents(iterators, events[first], dict(zip(nodes.tolist(), range(n), strict=True)))[0]
    order = _parents_first(parent)
    new_index = {old: new for new, old in enumerate(order)}
    names = [iterators.stages[node] for node in nodes.tolist()]
    totals = [Times(*column) for column in sums.T.tolist()]
    new_parent = [new_index[i] if i >= 0 else -1 for i in parent]
    return tuple(
        Stage(stage_type(names[i]), names[i], totals[i], works_ahead(names[i]), new_parent[i]) for i in order
    )


def _parents(iterators: Forest, events: Rows, index: dict[int, int]) -> tuple[list[int], int]:
    """The consuming stage of each stage, by its first event; a stage that leads back to itself is attached to
    the root instead. Also returns the number of these.
    """
    parent_event = iterators.parent[events]
    parent = [index.get(int(iterators.node[i]), -1) if i >= 0 else -1 for i in parent_event.tolist()]
    root = next((i for i, event in enumerate(events.tolist()) if iterators.is_root[event]), -1)
    n_changed = 0
    for i in range(len(parent)):
        seen, ancestor = {i}, parent[i]
        while ancestor >= 0 and ancestor not in seen:
            seen.add(ancestor)
            ancestor = parent[ancestor]
        if ancestor >= 0:
            parent[i] = root if i != root else -1
            n_changed += 1
    return parent, n_changed


def _parents_first(parent: list[int]) -> list[int]:
    """Indices with parents before children, siblings in their order."""
    children: dict[int, list[int]] = {}
    for i, consumer in enumerate(parent):
        children.setdefault(consumer, []).append(i)
    order: list[int] = []
    stack = children.get(-1, [])[::-1]
    while stack:
        i = stack.pop()
        order.append(i)
        stack += children.get(i, [])[::-1]
    return order


def call(trace: Trace, pipeline: Pipeline, rank: int) -> Call:
    """One call of a pipeline, by its rank from 1 (the slowest complete call), with the stages' parameters in
    the trace.

    Its bottleneck is the pipeline's, if that worked for this call, so that sentence, table and drawing name
    the same stage.
    """
    iterators = forest(trace)
    root = int(pipeline.calls[pipeline.order[rank - 1]])
    events = np.flatnonzero(iterators.call == root)
    events = events[np.lexsort((-iterators.duration_ps[events], iterators.start_ps[events]))]
    nodes, first, code = np.unique(iterators.node[events], return_index=True, return_inverse=True)
    parent, n_reparented = _parents(
        iterators, events[first], dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
    )
    order = _parents_first(parent)
    new_index = {old: new for new, old in enumerate(order)}
    result = [
        _node(trace, iterators, events[code == i], new_index[parent[i]] if parent[i] >= 0 else -1)
        for i in order
    ]
    stage = pipeline.bottleneck_stage
    worst = next((i for i, node in enumerate(result) if stage and node.long_name == stage.long_name), -1)
    return Call(
        int(iterators.start_ps[root]), int(iterators.duration_ps[root]), tuple(result), worst, n_reparented
    )


def _node(trace: Trace, iterators: Forest, events: Rows, parent: int) -> Node:
    long_name = iterators.stages[iterators.node[events[0]]]
    stats = trace.source.event_stats(trace, int(iterators.row[events[0]]))
    iterator = next((str(value) for name, value in stats if name == "id"), str(iterators.iterator[events[0]]))
    start, duration, self_ps, work_ps = (
        column[events]
        for column in (iterators.start_ps, iterators.duration_ps, iterators.self_ps, iterators.work_ps)
    )
    parameters = tuple((name, str(value)) for name, value in stats if name not in _HIDDEN_STATS)
    n_iterators, is_blocking = (
        len(np.unique(iterators.iterator[events])),
        bool(iterators.is_blocking[events].any()),
    )
    return Node(
        iterator,
        stage_type(long_name),
        long_name,
        int(start.min()),
        int(duration.sum()),
        int(self_ps.sum()),
        int(work_ps.sum()),
        len(events),
        n_iterators,
        is_blocking,
        works_ahead(long_name),
        parent,
        parameters,
    )
