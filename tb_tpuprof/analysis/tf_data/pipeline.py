"""tf.data pipelines: how long each call took, which stage held it up, and the stages of a single call as a
graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.tf_data.forest import Bools, Forest, Ints, Rows, forest, stage_type, works_ahead
from tb_tpuprof.trace.trace import Trace

SLOW_PS = 50_000_000
_HIDDEN_STATS = frozenset(("id", "parent_id", "element_id", "group_id", "element_size", "shapes"))

_UNAVAILABLE = "unavailable"
_ASKED = 12  # calls of a stage that are asked for its parameters


@dataclass(frozen=True)
class Times:
    """Of a stage over all complete calls: self time, own work (see Forest), its part while the caller waited,
    its function's time.
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
    """All calls of one root iterator, in time order. `calls` are indices into the forest. `bottleneck`: into
    `stages`, -1 none.

    `is_complete`: of each call, whether what was made for it lies in the capture, too. `waited_ps`: of each
    call, the time until its element was there; the rest is the waking of the caller's thread.
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
        """Calls that took longer than 50 µs, the traditional bound."""
        return int((self.duration_ps > SLOW_PS).sum())

    @property
    def max_ps(self) -> int:
        """The slowest call."""
        return int(self.duration_ps.max())

    @property
    def order(self) -> Rows:
        """Complete calls by duration, the slowest first, then those that the capture cut; of equals the
        earlier.
        """
        return np.lexsort((-self.duration_ps, ~self.is_complete))

    @property
    def typical_rank(self) -> int:
        """The rank, from 1, of the complete call of median length; of all calls where none is complete."""
        return ((int(self.is_complete.sum()) or len(self.calls)) + 1) // 2

    @property
    def wait_fraction(self) -> float | None:
        """Share of the time from the first call to the last one's end that passed inside of calls; at most 1.
        One call makes no rate.
        """
        if len(self.calls) < 2:
            return None
        span = int((self.start_ps + self.duration_ps).max() - self.start_ps.min())
        return min(1.0, int(self.duration_ps.sum()) / span) if span else 0.0

    @property
    def wake_fraction(self) -> float:
        """Share of the calls' time that passed after their elements were there."""
        whole = int(self.duration_ps.sum())
        return 1 - int(self.waited_ps.sum()) / whole if whole else 0.0

    @property
    def is_loop(self) -> bool:
        """Whether a loop of a tf.function runs as a stage of the pipeline: its calls hold the loop's body,
        too.
        """
        return any(_is_loop_body(stage) for stage in self.stages)

    @property
    def bottleneck_stage(self) -> Stage | None:
        """The stage that callers waited for most."""
        return self.stages[self.bottleneck] if self.bottleneck >= 0 else None

    def work_ps(self, stage: Stage) -> float:
        """A stage's work that callers waited for, per complete call."""
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
    """The pipelines of a trace, numbered by their first call, of host and device apart."""
    found = forest(trace)
    roots = np.flatnonzero(found.is_root)
    if not len(roots):
        return ()
    # A pipeline is one root iterator; events without an id are told apart by their name.
    key = np.where(found.has_id[roots], found.iterator[roots], found.node[roots])
    _keys, code = np.unique(np.stack((key, found.has_id[roots])), axis=1, return_inverse=True)
    code = code.reshape(-1)
    worked = np.flatnonzero(found.call >= 0)
    number = np.full(len(found), -1, np.int64)
    number[roots] = code
    events = _by(number[found.call[worked]], worked, int(code.max()) + 1)
    calls = _by(code, roots, int(code.max()) + 1)
    calls, events = _same_loops(found, calls, events)
    order = sorted(range(len(calls)), key=lambda i: int(found.start_ps[calls[i]].min()))
    counts = {"Host": 0, "Device": 0}
    result = []
    for i in order:
        first = int(found.iterator[calls[i][0]])
        kind = "Device" if first in found.device_iterators and found.has_id[calls[i][0]] else "Host"
        result.append(_pipeline(trace, found, f"{kind}:{counts[kind]}", calls[i], events[i]))
        counts[kind] += 1
    return tuple(result)


def _same_loops(found: Forest, calls: list[Rows], events: list[Rows]) -> tuple[list[Rows], list[Rows]]:
    """Iterators that a loop of a tf.function made, one each time it ran, as one where their stages are the
    same.
    """
    merged: dict[tuple[object, ...], list[int]] = {}
    for i, mine in enumerate(calls):
        is_loop = not found.stages[found.node[mine[0]]].startswith("Iterator::")
        merged.setdefault(
            tuple(np.unique(found.node[events[i]]).tolist()) if is_loop else ("", i), []
        ).append(i)
    return [np.concatenate([calls[i] for i in same]) for same in merged.values()], [
        np.concatenate([events[i] for i in same]) for same in merged.values()
    ]


def _by(code: npt.NDArray[np.integer], values: Rows, n: int) -> list[Rows]:
    """Values by code 0 … n - 1, each in their order."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(n + 1))
    return [values[order[bounds[i] : bounds[i + 1]]] for i in range(n)]


def _pipeline(trace: Trace, found: Forest, name: str, calls: Rows, events: Rows) -> Pipeline:
    calls = calls[np.argsort(found.start_ps[calls], kind="stable")]
    is_complete = _complete(found, calls, events)
    # Where none is complete, all that there is has to do.
    counted = events[np.isin(found.call[events], calls[is_complete])] if is_complete.any() else events
    stages = _stages(found, events, counted)
    threads = len(np.unique(trace.event_line[found.row[calls]]))
    kind = name.partition(":")[0]
    duration = found.duration_ps[calls]
    loops = [i for i, stage in enumerate(stages) if _is_loop_body(stage)]
    if loops:
        waited = np.minimum(_asked_for(found, calls, events, stages[loops[0]].long_name), duration)
    else:
        waited = duration - np.minimum(_woken(found, calls, events), duration)
    return Pipeline(
        name,
        kind,
        calls,
        found.start_ps[calls],
        duration,
        waited,
        is_complete,
        stages,
        _bottleneck(stages),
        threads,
    )


def _complete(found: Forest, calls: Rows, events: Rows) -> Bools:
    """Of each call, whether as many stages worked for it as for most: what was made ahead of the capture's
    start is missing.
    """
    at = np.full(len(found), -1, np.int64)
    at[calls] = np.arange(len(calls))
    mine = at[found.call[events]]
    n_events = np.bincount(mine, minlength=len(calls))
    pairs = np.unique(mine * len(found.stages) + found.node[events])
    n_stages = np.bincount(pairs // len(found.stages), minlength=len(calls))
    most = n_stages[n_events * 2 >= np.median(n_events)]
    usual = np.quantile(most, 0.5, method="lower") if len(most) else 0
    complete: Bools = (n_events * 2 >= np.median(n_events)) & (n_stages >= usual)
    return complete


def _woken(found: Forest, calls: Rows, events: Rows) -> Ints:
    """Of each call, the time after the prefetch at its end had handed the element over."""
    at = np.full(len(found), -1, np.int64)
    at[calls] = np.arange(len(calls))
    result = np.zeros(len(calls), np.int64)
    below = events[(found.after_ps[events] > 0) & (found.parent[events] == found.call[events])]
    end = found.start_ps + found.duration_ps
    call_of = found.call[below]
    np.add.at(result, at[call_of], found.after_ps[below] + np.maximum(end[call_of] - end[below], 0))
    return result


def _asked_for(found: Forest, calls: Rows, events: Rows, loop: str) -> Ints:
    """Of each call, the time in which a loop's body waited for its next element: of what the stage that runs
    it called.
    """
    at = np.full(len(found), -1, np.int64)
    at[calls] = np.arange(len(calls))
    above = found.parent[events]
    mine = events[(above >= 0) & (found.node[above] == found.stages.index(loop))]
    result = np.zeros(len(calls), np.int64)
    np.add.at(result, at[found.call[mine]], found.duration_ps[mine])
    return result


def _bottleneck(stages: tuple[Stage, ...]) -> int:
    """The stage with most work that callers waited for, -1 if there is none.

    The root only asks. Nor does a prefetch work whose input is in the trace: what is left of its time is the
    waking of threads. A scan at the end of a loop over a data set runs the loop's body: that is who consumes.
    """
    fed = {stage.parent for stage in stages}
    candidates = [
        i for i, stage in enumerate(stages) if not (_only_asks(stage, i in fed) or _is_loop_body(stage))
    ]
    worst = max(candidates or range(len(stages)), key=lambda i: stages[i].times.blocking_ps, default=-1)
    return worst if worst >= 0 and stages[worst].times.blocking_ps else -1


def _only_asks(stage: Stage, is_fed: bool) -> bool:
    return is_fed and (stage.parent < 0 or stage.name == "Prefetch")


def _is_loop_body(stage: Stage) -> bool:
    root, *above = stage.long_name.split("::")
    return root != "Iterator" and stage.name == "Scan" and set(above[:-1]) <= {"Root", "Prefetch"}


def complete_calls(pipeline: Pipeline) -> Rows:
    """Calls, as indices into the forest, for which all that was made lies in the capture."""
    return pipeline.calls[pipeline.is_complete]


def parameters_of(trace: Trace, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """What the trace says of each stage's parameters, by its long name: the first value that one of its calls
    tells.

    A call that ran while the stage was locked says "unavailable".
    """
    found = forest(trace)
    events = np.flatnonzero(np.isin(found.call, pipeline.calls))
    result: dict[str, dict[str, str]] = {}
    for node in np.unique(found.node[events]).tolist():
        mine = events[found.node[events] == node]
        known = result.setdefault(found.stages[node], {})
        for event in mine[np.unique(np.linspace(0, len(mine) - 1, _ASKED).astype(int))].tolist():
            for name, value in trace.source.event_stats(trace, int(found.row[event])):
                if name not in _HIDDEN_STATS and known.get(name, _UNAVAILABLE) == _UNAVAILABLE:
                    known[name] = str(value)
    return result


def _stages(found: Forest, events: Rows, counted: Rows) -> tuple[Stage, ...]:
    """Each stage of a pipeline's events, parents before children; times of those that are `counted`."""
    nodes, first = np.unique(found.node[events], return_index=True)
    n = len(nodes)
    work = found.work_ps[counted]
    parts = (
        found.self_ps[counted],
        work,
        work * found.is_blocking[counted],
        found.function_ps[counted],
        np.ones(len(counted), np.int64),
    )
    sums = np.zeros((5, n), np.int64)
    for total, part in zip(sums, parts, strict=True):
        np.add.at(total, np.searchsorted(nodes, found.node[counted]), part)
    parent = _parents(found, events[first], dict(zip(nodes.tolist(), range(n), strict=True)))[0]
    order = _downwards(parent)
    at = {old: new for new, old in enumerate(order)}
    names = [found.stages[node] for node in nodes.tolist()]
    totals = [Times(*column) for column in sums.T.tolist()]
    above = [at[i] if i >= 0 else -1 for i in parent]
    return tuple(
        Stage(stage_type(names[i]), names[i], totals[i], works_ahead(names[i]), above[i]) for i in order
    )


def _parents(found: Forest, events: Rows, index: dict[int, int]) -> tuple[list[int], int]:
    """The consuming stage of each stage, seen from its first event; what leads back to itself hangs below the
    root instead.
    """
    above = found.parent[events]
    parent = [index.get(int(found.node[i]), -1) if i >= 0 else -1 for i in above.tolist()]
    root = next((i for i, event in enumerate(events.tolist()) if found.is_root[event]), -1)
    n_changed = 0
    for i in range(len(parent)):
        seen, at = {i}, parent[i]
        while at >= 0 and at not in seen:
            seen.add(at)
            at = parent[at]
        if at >= 0:
            parent[i] = root if i != root else -1
            n_changed += 1
    return parent, n_changed


def _downwards(parent: list[int]) -> list[int]:
    """Indices with parents before children, siblings in their order."""
    children: dict[int, list[int]] = {}
    for i, above in enumerate(parent):
        children.setdefault(above, []).append(i)
    order: list[int] = []
    stack = children.get(-1, [])[::-1]
    while stack:
        i = stack.pop()
        order.append(i)
        stack += children.get(i, [])[::-1]
    return order


def call(trace: Trace, pipeline: Pipeline, rank: int) -> Call:
    """One call of a pipeline, by its rank from 1 (the slowest complete one) on, with the parameters that the
    trace tells of its stages.

    Its bottleneck is the pipeline's, where that worked for this call, so that sentence, table and drawing
    name one stage.
    """
    found = forest(trace)
    root = int(pipeline.calls[pipeline.order[rank - 1]])
    events = np.flatnonzero(found.call == root)
    events = events[np.lexsort((-found.duration_ps[events], found.start_ps[events]))]
    nodes, first, code = np.unique(found.node[events], return_index=True, return_inverse=True)
    parent, n_reparented = _parents(
        found, events[first], dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
    )
    order = _downwards(parent)
    at = {old: new for new, old in enumerate(order)}
    result = [_node(trace, found, events[code == i], at[parent[i]] if parent[i] >= 0 else -1) for i in order]
    stage = pipeline.bottleneck_stage
    worst = next((i for i, node in enumerate(result) if stage and node.long_name == stage.long_name), -1)
    return Call(int(found.start_ps[root]), int(found.duration_ps[root]), tuple(result), worst, n_reparented)


def _node(trace: Trace, found: Forest, events: Rows, parent: int) -> Node:
    long_name = found.stages[found.node[events[0]]]
    stats = trace.source.event_stats(trace, int(found.row[events[0]]))
    iterator = next((str(value) for name, value in stats if name == "id"), str(found.iterator[events[0]]))
    start, duration, self_ps, work_ps = (
        column[events] for column in (found.start_ps, found.duration_ps, found.self_ps, found.work_ps)
    )
    parameters = tuple((name, str(value)) for name, value in stats if name not in _HIDDEN_STATS)
    n_iterators, is_blocking = len(np.unique(found.iterator[events])), bool(found.is_blocking[events].any())
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
