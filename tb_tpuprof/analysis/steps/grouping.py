"""The step that each event belongs to: groups of events that one root event caused, on its own thread and
others.

    thread A   ┌ train (root, step 7) ──────────┐        group 0: all events inside a root, all events tied
               │   EagerExecute ──┐             │                 to one of these, all events inside those,
    thread B   │                  └▶ MatMul ─   │                 and so on
    GPU        └─────────────────────── kernel ─┘

Roots: events with the stat `_r` (its value is the level), legacy `TraceContext`, batches of a model server.
If TensorFlow loops run and the user annotated no steps, on devices the first executor event of each iteration
is a root instead. Higher levels claim events first, then earlier roots; claimed events stay claimed; a root
inside another root of its level makes no group. If a back end has already grouped the file (stat `group_id`),
its groups are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.cpu.ties import run_ties
from tb_tpuprof.analysis.events.links import EXECUTOR, FETCHES
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.names import is_loop_op
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import (
    distinct,
    events_named,
    events_of,
    events_with,
    first_ints,
    metadata_named,
    values_at,
)
from tb_tpuprof.analysis.steps import tpu_grouping
from tb_tpuprof.analysis.steps.forest import Forest, forest
from tb_tpuprof.trace.trace import Trace

_NO_NUMBER = np.iinfo(np.int64).min
_MOST_AROUND = 64
_MOST_GROUPS = 2**22  # by the numbers that a file states
IMPLICIT_ROOTS = ("FunctionRun", "SessionRun", "RunGraph", EXECUTOR)
_ROOT_LEVELS = {
    "TraceContext": 1,
    "BatchingSessionRun": 1,
    "ProcessBatch": 2,
    "OrbaxServing::ProcessBatch": 2,
}
_DATA_FUNCTIONS = tuple(
    f"InstantiatedCapturedFunction::{name}"
    for name in ("Run", "RunWithBorrowedArgs", "RunInstantiated", "RunAsync")
)


class GroupNames(Mapping[int, str]):
    """Names by group, made when the first one is requested: a server's trace has a group for each request."""

    def __init__(self, make: Callable[[], dict[int, str]]) -> None:
        self._make = make

    @cached_property
    def _names(self) -> dict[int, str]:
        return self._make()

    def __getitem__(self, group: int) -> str:
        return self._names[group]

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Groups:
    """`group`: the group of each event, -1 none. `names`: the name of each group as shown to users (`train
    17`).

    `named_roots`: the events whose own name became the group's name (a user's step annotations), ascending.
    """

    group: npt.NDArray[np.int32]
    names: Mapping[int, str]
    named_roots: npt.NDArray[np.intp]
    has_loop_ops: bool = False

    def step_name(self, group: int) -> str:
        """The displayed name of a group's step, empty for none."""
        return self.names.get(group, str(group)) if group >= 0 else ""


@once
def groups(trace: Trace) -> Groups:
    """Group a trace's events (see the module's drawing). Source of the rules and their order: OpenXLA's
    profiler, `group_events.cc`.
    """
    owner, stated = first_ints(trace, "group_id")
    if len(owner):
        return _stated_groups(trace, owner, stated)
    names = trace.metadata["name"]
    if any(is_loop_op(trace.strings[i]) for i in _loop_candidates(trace, names)):
        return Groups(np.full(trace.n_events, -1, np.int32), {}, np.empty(0, np.intp), has_loop_ops=True)
    roots, levels, extra = _roots(trace)
    lines = tpu_grouping.grouping_lines(trace)
    if not len(roots) and not lines:
        return Groups(np.full(trace.n_events, -1, np.int32), {}, np.empty(0, np.intp))
    tree = forest(trace, roots, extra, run_ties(trace))
    if len(extra):
        order = roots
        labels = tree.claim(np.arange(len(roots), dtype=np.int64), roots, tree.no_labels())
    else:
        order, labels = _claim_by_level(trace, tree, roots, levels)
    group = tree.spread(labels)
    if lines:
        group = tpu_grouping.group_devices(trace, lines, group, len(order))
    return _named(trace, group, order)


def _loop_candidates(trace: Trace, names: npt.NDArray[np.int32]) -> list[int]:
    ids = (
        trace.strings.find(name)
        for name in ("WhileOp-EvalCond", "WhileOp-StartBody", "ForOp", "ParallelForOp", "ForeverOp")
    )
    return [i for i in ids if i >= 0 and (names == i).any()]


def _stated_groups(trace: Trace, owner: npt.NDArray[np.int32], stated: npt.NDArray[np.int64]) -> Groups:
    """The groups that the file states: `group_id`, and `step_name` on the roots. A file may state any number:
    where one is large, the groups are renumbered, as tables by group would not fit into the memory.
    """
    group = np.full(trace.n_events, -1, np.int32)
    owner, stated = owner[stated >= 0], stated[stated >= 0]
    numbers, code = np.unique(stated, return_inverse=True)
    is_large = len(numbers) > 0 and int(numbers[-1]) >= _MOST_GROUPS
    group[owner] = code.reshape(-1) if is_large else stated
    texts, strings = trace.event_stats.texts("step_name"), trace.strings
    named_rows = distinct(texts.owner[texts.value != strings.find("")].astype(np.int64))

    def make() -> dict[int, str]:
        pairs = zip(group[texts.owner].tolist(), strings.take(texts.value.astype(np.int64)), strict=True)
        names = {number: name for number, name in pairs if number >= 0}
        for place, number in enumerate(numbers.tolist()):
            names.setdefault(place if is_large else number, str(number))
        return names

    return Groups(group, GroupNames(make), named_rows.astype(np.intp))


def _roots(trace: Trace) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Root events, their levels, and for loops the ties from the first event of an iteration to its other
    events (2 columns).
    """
    data_ids = _data_step_ids(trace)
    rows, levels = _marked_roots(trace, data_ids)
    loop_roots, loop_ties = _loop_iterations(trace, data_ids)
    if (
        len(loop_roots)
        and not (planes(trace).hosts and _are_explicit(trace, rows))
        and (planes(trace).has_device or not len(rows))
    ):
        return loop_roots, np.ones(len(loop_roots), np.int64), loop_ties
    return rows, levels, np.empty((0, 2), np.int64)


def _are_explicit(trace: Trace, rows: npt.NDArray[np.intp]) -> bool:
    """Whether any of the roots is a user's step annotation: one with a step number and a name of its own.
    These take precedence over loops inside them.
    """
    numbered = rows[np.isin(rows, first_ints(trace, "step_num")[0])]
    return bool((~metadata_named(trace, IMPLICIT_ROOTS)[trace.events["metadata"][numbered]]).any())


def _marked_roots(
    trace: Trace, data_ids: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Root events by their stat or name, and their levels."""
    level_of_name = np.zeros(len(trace.metadata), np.int64)
    for name, level in _ROOT_LEVELS.items():
        level_of_name[metadata_named(trace, (name,))] = level
    named = events_of(trace, level_of_name > 0)
    owner, value = first_ints(trace, "_r")
    rows = np.union1d(named, owner[value > 0]).astype(np.intp)
    stated_level = values_at(rows, owner, value, 0)
    levels = np.where(stated_level > 0, stated_level, level_of_name[trace.events["metadata"][rows]])
    if len(data_ids):
        is_data_function = np.isin(
            values_at(rows, *first_ints(trace, "id"), np.iinfo(np.int64).min), data_ids
        )
        rows, levels = rows[~is_data_function], levels[~is_data_function]
    return rows, levels


def _data_step_ids(trace: Trace) -> npt.NDArray[np.int64]:
    """Executor step ids of functions that tf.data runs, which are not training steps."""
    rows = events_named(trace, _DATA_FUNCTIONS)
    if not len(rows):
        return np.empty(0, np.int64)
    owner, value = first_ints(trace, "id")
    return np.unique(value[np.isin(owner, rows)])


def _loop_iterations(
    trace: Trace, data_ids: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """The first executor event of each iteration of each TensorFlow loop (a step id with several iterations),
    in time order; and the ties from it to the iteration's other events (2 columns).
    """
    executors, step, iteration = _looping(trace, data_ids)
    if not len(executors):
        return np.empty(0, np.intp), np.empty((0, 2), np.int64)
    start = trace.events["start_ps"][executors]
    order = np.lexsort((start, iteration, step))
    executors, step, iteration, start = executors[order], step[order], iteration[order], start[order]
    is_first = np.append(True, (step[1:] != step[:-1]) | (iteration[1:] != iteration[:-1]))
    firsts = executors[is_first]
    tie = np.column_stack((firsts[np.cumsum(is_first) - 1], executors))[~is_first]
    return firsts[np.argsort(start[is_first], kind="stable")].astype(np.intp), tie.astype(np.int64)


def _looping(
    trace: Trace, data_ids: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Executor events of loops, their step ids and iterations."""
    executors = events_named(trace, (EXECUTOR,))
    step = values_at(executors, *first_ints(trace, "id"), _NO_NUMBER)
    iteration = values_at(executors, *first_ints(trace, "iter_num"), -1)
    is_usable = (step != _NO_NUMBER) & (iteration >= 0) & ~np.isin(step, data_ids)
    executors, step, iteration = executors[is_usable], step[is_usable], iteration[is_usable]
    steps, inverse = np.unique(step, return_inverse=True)
    last_iteration = np.zeros(len(steps), np.int64)
    np.maximum.at(last_iteration, inverse, iteration)
    is_looping = last_iteration[inverse] > 0
    return executors[is_looping], step[is_looping], iteration[is_looping]


def fetching_loops(trace: Trace) -> npt.NDArray[np.intp]:
    """Events that begin the iterations of loops that fetch their own data inside one run of a function; none
    if there is no such loop.

    For `steps_per_execution` these are the fetches (IteratorGetNext) of all runs whose iterations fetch; for
    `for batch in dataset` in a tf.function, the calls of the iterator that runs the loop's body
    (`ReduceIterator::…::Scan`).
    """
    fetches = events_named(trace, FETCHES)
    step = values_at(fetches, *first_ints(trace, "id"), _NO_NUMBER)
    iteration = values_at(fetches, *first_ints(trace, "iter_num"), -1)
    _executors, looping, _iteration = _looping(trace, _data_step_ids(trace))
    is_in_loop = np.isin(step, looping)
    if len(np.unique(iteration[is_in_loop])) > 1:
        return fetches[is_in_loop]
    strings, names = trace.strings, trace.metadata["name"]
    is_body = np.array([_is_loop_body(strings[i]) for i in names.tolist()], np.bool_)
    return events_of(trace, is_body)


def _is_loop_body(name: str) -> bool:
    return name.startswith("ReduceIterator::") and name.endswith("::Scan")


def _claim_by_level(
    trace: Trace, tree: Forest, roots: npt.NDArray[np.intp], levels: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Let roots claim the events that they cause, highest level first: (roots that made a group, in order;
    label of each node).
    """
    labels = tree.no_labels()
    claimed: list[npt.NDArray[np.intp]] = []
    n_claimed = 0
    for level in distinct(levels)[::-1].tolist():
        at_level = roots[levels == level]
        at_level = at_level[tree.label_of(at_level, labels) < 0]
        at_level = at_level[~tree.has_ancestor_among(at_level)]
        at_level = at_level[np.argsort(trace.events["start_ps"][at_level], kind="stable")]
        labels = tree.claim(n_claimed + np.arange(len(at_level), dtype=np.int64), at_level, labels)
        claimed.append(at_level)
        n_claimed += len(at_level)
    order = np.concatenate(claimed) if claimed else np.empty(0, np.intp)
    return order, labels


def _named(trace: Trace, group: npt.NDArray[np.int32], order: npt.NDArray[np.intp]) -> Groups:
    """Name groups after their roots: the graph's type or the root's name, followed by the iteration, step
    number or group number.
    """
    implicit = metadata_named(trace, IMPLICIT_ROOTS)[trace.events["metadata"][order]]
    graph_type = trace.event_stats.texts("graph_type")
    graph_types = dict(zip(graph_type.owner.tolist(), graph_type.value.tolist(), strict=True))
    texts = np.where(implicit, -1, trace.metadata["name"][trace.events["metadata"][order]]).tolist()
    strings, stated, beyond = trace.strings, _numbers(trace, order), group[group >= len(order)]

    def make() -> dict[int, str]:
        text_of = {i: strings.get(i) for i in {*texts, *graph_types.values()}}
        names: dict[int, str] = {}
        for number, (root, stated_number) in enumerate(zip(order.tolist(), stated.tolist(), strict=True)):
            name = text_of[graph_types.get(root, texts[number])]
            names[number] = f"{name} {number if stated_number == _NO_NUMBER else stated_number}".strip()
        for number in np.unique(beyond).tolist():
            names[number] = str(number)
        return names

    return Groups(group, GroupNames(make), np.sort(order[~implicit]))


def _numbers(trace: Trace, roots: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Iteration or step number of each root: its own, else that of the nearest enclosing event
    that has one.
    """
    kinds = [first_ints(trace, key) for key in ("iter_num", "step_num")]
    own_numbers = [values_at(roots, *kind, -1) for kind in kinds]
    result = np.where(
        own_numbers[0] >= 0, own_numbers[0], np.where(own_numbers[1] >= 0, own_numbers[1], _NO_NUMBER)
    )
    parent = parents(trace)
    for owner, value in kinds:
        unnumbered = np.flatnonzero(result == _NO_NUMBER)
        ancestor = parent[roots[unnumbered]]
        for _ in range(_MOST_AROUND):
            unnumbered, ancestor = unnumbered[ancestor >= 0], ancestor[ancestor >= 0]
            if not len(unnumbered) or not len(owner):
                break
            numbers = values_at(ancestor, owner, value, _NO_NUMBER)
            result[unnumbered] = numbers
            unnumbered, ancestor = unnumbered[numbers == _NO_NUMBER], parent[ancestor[numbers == _NO_NUMBER]]
    return result


@once
def eager_ops(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each event ran in eager mode: below an `EagerExecute` that runs a single operation (`is_func`
    is 0).

    If the file states it (stat `is_eager`), that is used.
    """
    result = np.zeros(trace.n_events, np.bool_)
    owner, value = first_ints(trace, "is_eager")
    if len(owner):
        result[owner] = value != 0
        return result
    rows, is_function = events_with(trace, "is_func")
    is_call = metadata_named(trace, ("EagerExecute",))[trace.events["metadata"][rows]]
    rows, is_function = rows[is_call], is_function[is_call]
    if not len(rows) or (is_function != 0).all():
        return result
    tree = forest(trace, rows.astype(np.intp), np.empty((0, 2), np.int64))
    labels = tree.claim(
        np.where(is_function == 0, 0, 1).astype(np.int64), rows.astype(np.intp), tree.no_labels()
    )
    eager: npt.NDArray[np.bool_] = tree.spread(labels) == 0
    return eager
