"""Events of tf.data's iterators as a forest: each call of a pipeline, and what was called for it on this and
on other threads.

consumer   ├─ Root ─ Prefetch ─────────┤          nested on one thread: by time
                          ↑ element 7
producer       ├─ Batch ─ Map ─┤                  made ahead on another thread: by the element that was handed
over,
                                                  where the tracer did not number it by the iterator that
                                                  asked for it
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_named, first_ints, mix, values_at
from tb_tpuprof.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

# A loop over a data set inside of a tf.function has a `ReduceIterator::`; `MakeIterator::` is how one is
# made, not a call of it.
_ITERATOR = re.compile(rb"(?!Make)\w*Iterator::")
_DEVICE_GENERATOR = re.compile(r"Iterator::(?:Root::)?Prefetch::Generator")
_HANDOVER = re.compile(
    r"(?:Prefetch|ParallelInterleave|ParallelMap|MapAndBatch|ParseExample|ParallelBatch)(Produce|Consume)"
)
_NUMBERED = re.compile(r"((?:FlatMap|\w*Interleave(?:V\d+)?|\w*Repeat|\w*Window\w*))\[\d+\]")
_RUNS = (
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunAsync",
    "InstantiatedCapturedFunction::RunWithBorrowedArgs",
)
_DIRECTED = "DirectedInterleave"
_ASYNC = ("Prefetch", "Parallel", "MapAndBatch", "ParseExample", "LegacyParallel", "DataService")
_HOP_PS = (
    20_000_000  # to get a function onto a thread of the pool that is free; longer than that it waited for one
)
_DOUBLINGS = 8  # calls nested 256 deep; deeper ones are taken for a cycle
_NO_ELEMENT = -1


@dataclass(frozen=True)
class Runs:
    """Runs of iterators' functions, in time order: the run's event, the iterator's (its index), how long the
    executor worked for it, and how long it took to get onto a thread of the pool.
    """

    row: Rows
    event: Ints
    took_ps: Ints
    late_ps: Ints


@dataclass(frozen=True)
class Forest:
    """One entry per event of an iterator, by line and start. `parent` and `call` are indices into these, -1
    none.

    `call`: the event of the root iterator that the event worked for. `self_ps`: without what its children did
    meanwhile. `work_ps`: what of that is the stage's own doing: without the time that its function waited for
    a thread of the pool; where its function runs ahead, at most what it took. `function_ps`: time of its
    function on the pool. `after_ps`: of a prefetch, the time after the element was handed over, in which the
    caller's thread woke up. `runs`: each run of a function, in time order. `is_blocking`: the root's caller
    waited for it. `node`: its stage (see `stages`), a number that iterators share which a stage makes anew
    for each element, such as the files of an interleave.
    """

    row: Rows
    start_ps: Ints
    duration_ps: Ints
    iterator: Ints
    has_id: Bools
    parent: Ints
    call: Ints
    self_ps: Ints
    work_ps: Ints
    function_ps: Ints
    after_ps: Ints
    is_blocking: Bools
    node: Ints
    runs: Runs
    stages: tuple[str, ...]
    is_root: Bools
    device_iterators: frozenset[int]
    n_orphans: int
    n_in_cycles: int

    def __len__(self) -> int:
        return len(self.row)


def stage_name(event_name: str) -> str:
    """An iterator's name without the numbers of those that are made anew for each element; branches of a zip
    keep theirs.
    """
    name = event_name.partition("#")[0]
    return _NUMBERED.sub(lambda found: found[0] if found[1].startswith(_DIRECTED) else found[1], name)


def stage_type(long_name: str) -> str:
    """The stage's type: the name's last part without a number."""
    return long_name.rpartition("::")[2].partition("[")[0]


def works_ahead(long_name: str) -> bool:
    """Whether a stage works ahead on threads of its own, so that waiting in it is not its work."""
    return stage_type(long_name).startswith(_ASYNC)


@once
def forest(trace: Trace) -> Forest:
    """The forest of a trace's iterators; empty where there are none."""
    kind, node_of, stages = _kinds(trace)
    if not stages:
        return _empty()
    rows = np.flatnonzero((kind > 0)[trace.events["metadata"]])
    rows = rows[~planes(trace).is_derived_line[trace.event_line[rows]]]
    of_row = kind[trace.events["metadata"][rows]]
    above, _self_ps = nest_rows(trace, rows)
    mine = np.flatnonzero(of_row == 1)
    iterators = rows[mine]
    start = trace.events["start_ps"][iterators]
    duration = trace.events["duration_ps"][iterators]
    has_id, iterator = _stat(trace, iterators, "id")
    asked, asker = _stat(trace, iterators, "parent_id")
    node = node_of[trace.events["metadata"][iterators]]
    is_root = np.array([stage.count("::") == 1 for stage in stages], np.bool_)[node]
    number = np.full(len(rows) + 1, -1, np.int64)
    number[mine] = np.arange(len(mine))
    around = above[mine]
    inside = (around >= 0) & (of_row[around] == 1)
    parent = np.where(inside, number[around], -1)
    made = ~inside & (around >= 0) & (of_row[around] == 2)
    given = _element(trace, rows)
    handovers = _handovers(rows, of_row, above, number, given)
    # Where all elements are numbered, one that nobody took was left over; only where they are not, the
    # asker's next call takes it.
    taken_unseen = np.flatnonzero((of_row == 3) & (given == _NO_ELEMENT) & (above >= 0))
    unnumbered = np.unique(iterator[number[above[taken_unseen]]])
    numbered = (
        made
        & (given[around] != _NO_ELEMENT)
        & np.isin(asker, iterator[handovers[0]])
        & ~np.isin(asker, unnumbered)
    )
    # What a stage calls on its own thread lies inside of its call, or the capture cut that.
    ahead = np.isin(
        asker, np.unique(iterator[np.array([works_ahead(stage) for stage in stages], np.bool_)[node]])
    )
    free = np.flatnonzero(~inside & asked & ahead & ~is_root & ~numbered)
    parent[free] = _askers(free, asker, iterator, has_id, start + duration)
    exact = np.flatnonzero(made & asked)
    found = _takers(exact, asker, given[around[exact]], iterator, handovers, start + duration)
    parent[exact[found >= 0]] = found[found >= 0]
    generators = (
        np.array([bool(_DEVICE_GENERATOR.fullmatch(stage)) for stage in stages], np.bool_)[node] & asked
    )
    prefetches = np.unique(asker[generators])
    # Newer versions put a root above the device's prefetch.
    devices = frozenset(np.concatenate((prefetches, asker[asked & np.isin(iterator, prefetches)])).tolist())
    after_ps = _after_handover(trace, rows, of_row, above, number)
    base = Base(iterators, start, duration, iterator, has_id, parent, node, is_root, after_ps)
    owner = np.where(of_row == 1, number[:-1], -1)
    owner[around[made]] = parent[made]
    return _grown(
        base,
        stages,
        devices,
        _functions(trace, rows[of_row < 3], owner[of_row < 3], of_row[of_row < 3], len(mine)),
    )


@dataclass(frozen=True)
class Base:
    """What is known of the events before the forest is walked."""

    row: Rows
    start: Ints
    duration: Ints
    iterator: Ints
    has_id: Bools
    parent: Ints
    node: Ints
    is_root: Bools
    after_ps: Ints


def _empty() -> Forest:
    none, rows, no = np.empty(0, np.int64), np.empty(0, np.intp), np.empty(0, np.bool_)
    runs = Runs(rows, none, none, none)
    return Forest(
        rows,
        none,
        none,
        none,
        no,
        none,
        none,
        none,
        none,
        none,
        none,
        no,
        none,
        runs,
        (),
        no,
        frozenset(),
        0,
        0,
    )


def _kinds(trace: Trace) -> tuple[npt.NDArray[np.uint8], Ints, tuple[str, ...]]:
    """For each row of `metadata` of a host: 1 iterator, 2 producing an element, 3 taking one, else 0; and
    each iterator's stage.
    """
    kind = np.zeros(len(trace.metadata), np.uint8)
    node = np.full(len(trace.metadata), -1, np.int64)
    stages: dict[str, int] = {}
    for row in np.flatnonzero(np.isin(trace.metadata["plane"], planes(trace).hosts)).tolist():
        raw = (
            trace.strings.bytes_at(int(trace.metadata["name"][row]))
            if trace.metadata["name"][row] >= 0
            else b""
        )
        if _ITERATOR.match(raw):
            kind[row] = 1
            node[row] = stages.setdefault(stage_name(raw.decode("utf-8", "replace")), len(stages))
        elif raw.endswith((b"Produce", b"Consume")):
            found = _HANDOVER.fullmatch(raw.decode("utf-8", "replace"))
            if found:
                kind[row] = 2 if found[1] == "Produce" else 3
    return kind, node, tuple(stages)


def _stat(trace: Trace, rows: Rows, key: str) -> tuple[Bools, Ints]:
    """Whether each event has an integer stat, and its value (0 without)."""
    owner, value = first_ints(trace, key)
    has = np.zeros(trace.n_events, np.bool_)
    has[owner] = True
    return has[rows], values_at(rows, owner, value, 0)


def _element(trace: Trace, rows: Rows) -> Ints:
    owner, value = first_ints(trace, "element_id")
    return values_at(rows, owner, value, _NO_ELEMENT)


def _handovers(
    rows: Rows, kind: npt.NDArray[np.uint8], above: npt.NDArray[np.int32], number: Ints, element: Ints
) -> tuple[Ints, Ints]:
    """Elements taken: the taking iterator's event (its index), and the element."""
    taking = np.flatnonzero((kind == 3) & (element != _NO_ELEMENT) & (above >= 0))
    taking = taking[kind[above[taking]] == 1]
    return number[above[taking]], element[taking]


def _takers(
    rows: Rows, asker: Ints, element: Ints, iterator: Ints, handovers: tuple[Ints, Ints], end: Ints
) -> Ints:
    """For events in which an element was made, the event that took it: of that iterator, that element, the
    first to end later.
    """
    taker, taken = handovers
    result = np.full(len(rows), -1, np.int64)
    known = element != _NO_ELEMENT
    keys = mix(asker[rows[known]], element[known])
    at = _first_later(keys, end[rows[known]], mix(iterator[taker], taken), end[taker])
    result[known] = np.where(at >= 0, taker[at], -1) if len(taker) else -1
    return result


def _askers(rows: Rows, asker: Ints, iterator: Ints, has_id: Bools, end: Ints) -> Ints:
    """For events that nothing contains: the first call of the iterator that asked for them which
    ends later.
    """
    calls = np.flatnonzero(has_id & np.isin(iterator, asker[rows]))
    at = _first_later(asker[rows], end[rows], iterator[calls], end[calls])
    found: Ints = np.where(at >= 0, calls[at], -1) if len(calls) else np.full(len(rows), -1, np.int64)
    return found


def _first_later(keys: Ints, times: Ints, table_keys: Ints, table_times: Ints) -> Ints:
    """For each key and time the entry of the table with that key and the first time not before it, -1 for
    none.
    """
    if not len(table_keys) or not len(keys):
        return np.full(len(keys), -1, np.int64)
    _names, code = np.unique(np.concatenate((table_keys, keys)), return_inverse=True)
    _times, when = np.unique(np.concatenate((table_times, times)), return_inverse=True)
    both = code.astype(np.int64) * (len(_times) + 1) + when
    n = len(table_keys)
    order = np.argsort(both[:n], kind="stable")
    at = np.searchsorted(both[:n][order], both[n:])
    found = at < n
    found[found] = code[:n][order][at[found]] == code[n:][found]
    result: Ints = np.where(found, order[np.minimum(at, n - 1)], -1)
    return result


def _after_handover(
    trace: Trace, rows: Rows, kind: npt.NDArray[np.uint8], above: npt.NDArray[np.int32], number: Ints
) -> Ints:
    """Of each iterator's event, the time from the hand-over of a prefetched element to its end: the waking of
    the caller's thread.
    """
    result = np.zeros(int((kind == 1).sum()), np.int64)
    is_prefetch = np.array([name == "PrefetchConsume" for name in trace.strings.all], np.bool_)
    name = trace.metadata["name"][trace.events["metadata"][rows]]
    taking = np.flatnonzero((kind == 3) & (name >= 0) & (above >= 0))
    taking = taking[is_prefetch[name[taking]]]
    taking = taking[kind[above[taking]] == 1]
    around = rows[above[taking]]
    end = trace.events["start_ps"][around] + trace.events["duration_ps"][around]
    after = end - trace.events["start_ps"][rows[taking]]
    result[number[above[taking]]] = np.maximum(after, 0)
    return result


@dataclass(frozen=True)
class Functions:
    """Of each iterator's event: time of its function on the pool, how long this waited for a thread, and
    whether it runs ahead.
    """

    function: Ints
    queued: Ints
    is_ahead: Bools
    runs: Runs


def _functions(trace: Trace, rows: Rows, owner: Ints, kind: npt.NDArray[np.uint8], n: int) -> Functions:
    """Functions that iterators ran. `rows`: iterators and productions, `owner` the iterator's event that they
    work for.
    """
    nothing = np.empty(0, np.int64)
    result = Functions(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        Runs(np.empty(0, np.intp), nothing, nothing, nothing),
    )
    runs = events_named(trace, _RUNS)
    if not len(runs) or not len(rows):
        return result
    both = np.concatenate((rows, runs))
    order = np.argsort(both, kind="stable")
    above, _self_ps = nest_rows(trace, both[order])
    at = np.empty(len(both), np.int64)
    at[order] = np.arange(len(both))
    around = above[at[len(rows) :]]
    inside = around >= 0
    inside[inside] = order[around[inside]] < len(rows)
    runs, within = runs[inside], order[around[inside]]
    took, began = _executed(trace, runs)
    mine = owner[within]
    known = (mine >= 0) & (took > 0)
    is_ahead = kind[within] == 2
    np.add.at(result.function, mine[known], took[known])
    waits = known & ~is_ahead
    late = np.maximum(began - trace.events["start_ps"][runs], 0)
    np.add.at(result.queued, mine[waits], np.maximum(late[waits] - _HOP_PS, 0))
    result.is_ahead[mine[known & is_ahead]] = True
    order = np.argsort(trace.events["start_ps"][runs[known]], kind="stable")
    return replace(
        result, runs=Runs(runs[known][order], mine[known][order], took[known][order], late[known][order])
    )


def _executed(trace: Trace, runs: Rows) -> tuple[Ints, Ints]:
    """How long the executor worked for each run of a function, by the run's `id`, and when it began (the
    run's start if unknown).
    """
    owner, value = first_ints(trace, "id")
    processes = events_named(trace, (EXECUTOR,))
    ids = values_at(runs, owner, value, 0)
    theirs = values_at(processes, owner, value, 0)
    names, code = np.unique(np.concatenate((ids, theirs)), return_inverse=True)
    of_run, of_process = code[: len(runs)], code[len(runs) :]
    start = trace.events["start_ps"]
    total, first = np.zeros(len(names), np.int64), np.full(len(names), np.iinfo(np.int64).max)
    np.add.at(total, of_process, trace.events["duration_ps"][processes])
    np.minimum.at(first, of_process, start[processes])
    took: Ints = np.where(ids != 0, total[of_run], 0)
    return took, np.where(took > 0, first[of_run], start[runs])


def _grown(base: Base, stages: tuple[str, ...], devices: frozenset[int], functions: Functions) -> Forest:
    """Follow each event to its root; cut what never gets there."""
    n = len(base.row)
    here = np.arange(n)
    parent = base.parent.copy()
    parent[base.is_root] = -1
    first = np.maximum(base.start, base.start[parent])
    overlap = np.minimum(base.start + base.duration, (base.start + base.duration)[parent]) - first
    overlap = np.where(parent >= 0, np.maximum(overlap, 0), 0)
    top = np.where(parent >= 0, parent, here)
    good = (parent < 0) | (overlap > 0)
    for _ in range(_DOUBLINGS):
        good &= good[top]
        top = top[top]
    reached = parent[top] < 0
    parent[~reached] = -1
    call = np.where(reached & base.is_root[top], top, -1)
    is_blocking = good & (call >= 0)
    self_ps = base.duration - _covered(base, parent, overlap)
    work_ps = np.where(
        functions.is_ahead, np.minimum(self_ps, functions.function), np.maximum(self_ps - functions.queued, 0)
    )
    return Forest(
        base.row,
        base.start,
        base.duration,
        base.iterator,
        base.has_id,
        parent,
        call,
        self_ps,
        work_ps,
        functions.function,
        base.after_ps,
        is_blocking,
        base.node,
        functions.runs,
        stages,
        base.is_root,
        devices,
        int((reached & (call < 0)).sum()),
        int((~reached).sum()),
    )


def _covered(base: Base, parent: Ints, overlap: Ints) -> Ints:
    """Of each event, the time in which any of its children ran."""
    child = np.flatnonzero((parent >= 0) & (overlap > 0))
    covered = np.zeros(len(base.row), np.int64)
    if not len(child):
        return covered
    of = parent[child]
    order = np.lexsort((base.start[child], of))
    child, of = child[order], of[order]
    # Each parent has a stretch of its own on one long axis, so that a running maximum never reaches into the
    # next one's.
    fresh = np.append(True, of[1:] != of[:-1])
    width = np.where(fresh, base.duration[of] + 1, 0)
    shift = np.cumsum(width) - base.duration[of] - 1
    first = np.maximum(base.start[child] - base.start[of], 0) + shift
    last = first + overlap[child]
    before = np.append(np.int64(-1), np.maximum.accumulate(last)[:-1])
    fresh_ps = np.maximum(last - np.maximum(first, before), 0)
    np.add.at(covered, of, fresh_ps)
    return covered


@dataclass(frozen=True)
class Loose:
    """What the reader must know of the forest: events of iterators, and those that could not be placed."""

    n_events: int
    n_orphans: int
    n_in_cycles: int
    n_without_id: int


def loose(trace: Trace) -> Loose:
    """Counts of what was left out."""
    found = forest(trace)
    return Loose(len(found), found.n_orphans, found.n_in_cycles, int((~found.has_id).sum()))


def has_iterators(trace: Trace) -> bool:
    """Whether a host of the trace ran any iterator of tf.data. Looks at names only."""
    return bool(_kinds(trace)[2])
