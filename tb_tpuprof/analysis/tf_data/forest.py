"""Events of tf.data iterators as a forest: each call of a pipeline with the calls made for it, on the same
and on other threads.

    consumer   ├─ Root ─ Prefetch ─────────┤      nested on one thread: linked by time
                              ↑ element 7
    producer       ├─ Batch ─ Map ─┤              produced ahead on another thread: linked by the element's
                                                  number, or, if the tracer did not number it, by the id
                                                  of the parent iterator
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import EXECUTOR
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.nesting import nest_rows
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import events_named, events_of, first_ints, mix, values_at
from tb_tpuprof.trace.trace import Trace

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

# A loop over a data set inside a tf.function has a `ReduceIterator::`; `MakeIterator::` creates an iterator
# and is not a call of one.
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
# The most that starting a function on a free pool thread takes; a longer delay is waiting for a thread.
_HOP_PS = 20_000_000
_DOUBLINGS = 8  # calls nested 256 deep; deeper nesting counts as a cycle
_NO_ELEMENT = -1


@dataclass(frozen=True)
class Runs:
    """Runs of iterators' functions, in time order: the event of the run, the index of its iterator's event,
    the executor's work on it (`took_ps`), and the delay until a pool thread started it (`late_ps`).
    """

    row: Rows
    event: Ints
    took_ps: Ints
    late_ps: Ints


@dataclass(frozen=True)
class Forest:
    """One entry per iterator event, by line and start. `parent` and `call` are indices into these entries, -1
    none.

    `call`: the root iterator's event that this event worked for. `self_ps`: duration without the overlapping
    time of its children. `work_ps`: the stage's own work within `self_ps`: without the time that its function
    waited for a pool thread; if its function runs ahead, at most the function's time. `function_ps`: time of
    its function on the pool. `after_ps`: for a prefetch, the time after it delivered the element, in which
    the caller's thread woke up. `runs`: each run of a function, in time order. `is_blocking`: the root's
    caller waited for it. `node`: its stage (index into `stages`); all iterators that a stage creates, such as
    one per file of an interleave, share it.
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
    """An iterator's name without the numbers of iterators that are created per element; branches of a sampled
    interleave keep theirs.
    """
    name = event_name.partition("#")[0]
    return _NUMBERED.sub(lambda match: match[0] if match[1].startswith(_DIRECTED) else match[1], name)


def stage_type(long_name: str) -> str:
    """The stage's type: the last part of its name, without a number."""
    return long_name.rpartition("::")[2].partition("[")[0]


def works_ahead(long_name: str) -> bool:
    """Whether a stage works ahead on its own threads, so that time in it is waiting, not work."""
    return stage_type(long_name).startswith(_ASYNC)


@once
def forest(trace: Trace) -> Forest:
    """The forest of a trace's iterators; empty if there are none."""
    kind, node_of, stages = _kinds(trace)
    if not stages:
        return _empty()
    rows = events_of(trace, kind > 0)
    rows = rows[~planes(trace).is_derived_line[trace.event_line[rows]]]
    row_kind = kind[trace.events["metadata"][rows]]
    outer, _self_ps = nest_rows(trace, rows)
    positions = np.flatnonzero(row_kind == 1)
    events = rows[positions]
    start = trace.events["start_ps"][events]
    duration = trace.events["duration_ps"][events]
    has_id, iterator = _stat(trace, events, "id")
    has_parent_id, parent_id = _stat(trace, events, "parent_id")
    node = node_of[trace.events["metadata"][events]]
    is_root = np.array([stage.count("::") == 1 for stage in stages], np.bool_)[node]
    index_of_row = np.full(len(rows) + 1, -1, np.int64)
    index_of_row[positions] = np.arange(len(positions))
    outer_row = outer[positions]
    is_nested = (outer_row >= 0) & (row_kind[outer_row] == 1)
    parent = np.where(is_nested, index_of_row[outer_row], -1)
    is_produced = ~is_nested & (outer_row >= 0) & (row_kind[outer_row] == 2)
    element = _element(trace, rows)
    handovers = _handovers(rows, row_kind, outer, index_of_row, element)
    # Where all elements are numbered, an element without a taker was left over. Only where they are not, the
    # parent's next call takes it.
    unnumbered_takes = np.flatnonzero((row_kind == 3) & (element == _NO_ELEMENT) & (outer >= 0))
    unnumbered_iterators = np.unique(iterator[index_of_row[outer[unnumbered_takes]]])
    is_numbered = (
        is_produced
        & (element[outer_row] != _NO_ELEMENT)
        & np.isin(parent_id, iterator[handovers[0]])
        & ~np.isin(parent_id, unnumbered_iterators)
    )
    # A call that a stage makes on its own thread is inside the stage's call, unless the capture cut that.
    parent_works_ahead = np.isin(
        parent_id, np.unique(iterator[np.array([works_ahead(stage) for stage in stages], np.bool_)[node]])
    )
    unnested = np.flatnonzero(~is_nested & has_parent_id & parent_works_ahead & ~is_root & ~is_numbered)
    parent[unnested] = _calls_of_parents(unnested, parent_id, iterator, has_id, start + duration)
    produced = np.flatnonzero(is_produced & has_parent_id)
    takers = _takers(produced, parent_id, element[outer_row[produced]], iterator, handovers, start + duration)
    parent[produced[takers >= 0]] = takers[takers >= 0]
    after_ps = _after_handover(trace, rows, row_kind, outer, index_of_row)
    base = _IteratorEvents(events, start, duration, iterator, has_id, parent, node, is_root, after_ps)
    owner = np.where(row_kind == 1, index_of_row[:-1], -1)
    owner[outer_row[is_produced]] = parent[is_produced]
    return _build(
        base,
        stages,
        _device_iterators(stages, node, iterator, parent_id, has_parent_id),
        _functions(trace, rows[row_kind < 3], owner[row_kind < 3], row_kind[row_kind < 3], len(positions)),
    )


def _device_iterators(
    stages: Sequence[str], node: Ints, iterator: Ints, parent_id: Ints, has_parent_id: Bools
) -> frozenset[int]:
    """Ids of the iterators that prefetch to a device, and of their roots."""
    generators = np.array([bool(_DEVICE_GENERATOR.fullmatch(stage)) for stage in stages], np.bool_)
    prefetches = np.unique(parent_id[generators[node] & has_parent_id])
    # Newer versions put a root above the device's prefetch.
    roots = parent_id[has_parent_id & np.isin(iterator, prefetches)]
    return frozenset(np.concatenate((prefetches, roots)).tolist())


@dataclass(frozen=True)
class _IteratorEvents:
    """The iterator events with their parents, before the forest is walked."""

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
    """For each metadata row of a host: 1 iterator, 2 production of an element, 3 taking of one, else 0; and
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
            handover = _HANDOVER.fullmatch(raw.decode("utf-8", "replace"))
            if handover:
                kind[row] = 2 if handover[1] == "Produce" else 3
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
    rows: Rows, kind: npt.NDArray[np.uint8], outer: npt.NDArray[np.int32], index_of_row: Ints, element: Ints
) -> tuple[Ints, Ints]:
    """Elements taken: the index of the taking iterator's event, and the element."""
    taking = np.flatnonzero((kind == 3) & (element != _NO_ELEMENT) & (outer >= 0))
    taking = taking[kind[outer[taking]] == 1]
    return index_of_row[outer[taking]], element[taking]


def _takers(
    rows: Rows, parent_id: Ints, element: Ints, iterator: Ints, handovers: tuple[Ints, Ints], end: Ints
) -> Ints:
    """For events that produced an element, the event that took it: same iterator and element, and the first
    such event that ends later; -1 for none.
    """
    taking_event, taken_element = handovers
    result = np.full(len(rows), -1, np.int64)
    is_numbered = element != _NO_ELEMENT
    keys = mix(parent_id[rows[is_numbered]], element[is_numbered])
    entry = _first_later(
        keys, end[rows[is_numbered]], mix(iterator[taking_event], taken_element), end[taking_event]
    )
    result[is_numbered] = np.where(entry >= 0, taking_event[entry], -1) if len(taking_event) else -1
    return result


def _calls_of_parents(rows: Rows, parent_id: Ints, iterator: Ints, has_id: Bools, end: Ints) -> Ints:
    """For events that no other contains: the first call of their parent iterator that ends later, -1 for
    none.
    """
    calls = np.flatnonzero(has_id & np.isin(iterator, parent_id[rows]))
    entry = _first_later(parent_id[rows], end[rows], iterator[calls], end[calls])
    parents: Ints = np.where(entry >= 0, calls[entry], -1) if len(calls) else np.full(len(rows), -1, np.int64)
    return parents


def _first_later(keys: Ints, times: Ints, table_keys: Ints, table_times: Ints) -> Ints:
    """For each key and time, the entry of the table with the same key and the first time not before it, -1
    for none.
    """
    if not len(table_keys) or not len(keys):
        return np.full(len(keys), -1, np.int64)
    _names, code = np.unique(np.concatenate((table_keys, keys)), return_inverse=True)
    _times, time_rank = np.unique(np.concatenate((table_times, times)), return_inverse=True)
    key_and_time = code.astype(np.int64) * (len(_times) + 1) + time_rank
    n = len(table_keys)
    order = np.argsort(key_and_time[:n], kind="stable")
    position = np.searchsorted(key_and_time[:n][order], key_and_time[n:])
    is_match = position < n
    is_match[is_match] = code[:n][order][position[is_match]] == code[n:][is_match]
    result: Ints = np.where(is_match, order[np.minimum(position, n - 1)], -1)
    return result


def _after_handover(
    trace: Trace, rows: Rows, kind: npt.NDArray[np.uint8], outer: npt.NDArray[np.int32], index_of_row: Ints
) -> Ints:
    """Time in ps from the delivery of a prefetched element to the end of each iterator event: the caller's
    thread wakes up.
    """
    result = np.zeros(int((kind == 1).sum()), np.int64)
    is_prefetch = np.array([name == "PrefetchConsume" for name in trace.strings.all], np.bool_)
    name = trace.metadata["name"][trace.events["metadata"][rows]]
    taking = np.flatnonzero((kind == 3) & (name >= 0) & (outer >= 0))
    taking = taking[is_prefetch[name[taking]]]
    taking = taking[kind[outer[taking]] == 1]
    taking_event = rows[outer[taking]]
    end = trace.events["start_ps"][taking_event] + trace.events["duration_ps"][taking_event]
    after_ps = end - trace.events["start_ps"][rows[taking]]
    result[index_of_row[outer[taking]]] = np.maximum(after_ps, 0)
    return result


@dataclass(frozen=True)
class _FunctionTimes:
    """For each iterator event: time of its function on the pool, the time that this waited for a thread, and
    whether it runs ahead.
    """

    function: Ints
    queued: Ints
    is_ahead: Bools
    runs: Runs


def _functions(trace: Trace, rows: Rows, owner: Ints, kind: npt.NDArray[np.uint8], n: int) -> _FunctionTimes:
    """Functions that iterators ran. `rows`: iterators and productions; `owner`: the iterator event that each
    works for.
    """
    nothing = np.empty(0, np.int64)
    result = _FunctionTimes(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        Runs(np.empty(0, np.intp), nothing, nothing, nothing),
    )
    runs = events_named(trace, _RUNS)
    if not len(runs) or not len(rows):
        return result
    all_rows = np.concatenate((rows, runs))
    order = np.argsort(all_rows, kind="stable")
    outer, _self_ps = nest_rows(trace, all_rows[order])
    position = np.empty(len(all_rows), np.int64)
    position[order] = np.arange(len(all_rows))
    outer_position = outer[position[len(rows) :]]
    has_outer = outer_position >= 0
    has_outer[has_outer] = order[outer_position[has_outer]] < len(rows)
    runs, outer_row = runs[has_outer], order[outer_position[has_outer]]
    took_ps, began_ps = _executed(trace, runs)
    event = owner[outer_row]
    is_known = (event >= 0) & (took_ps > 0)
    is_ahead = kind[outer_row] == 2
    np.add.at(result.function, event[is_known], took_ps[is_known])
    is_synchronous = is_known & ~is_ahead
    late_ps = np.maximum(began_ps - trace.events["start_ps"][runs], 0)
    np.add.at(result.queued, event[is_synchronous], np.maximum(late_ps[is_synchronous] - _HOP_PS, 0))
    result.is_ahead[event[is_known & is_ahead]] = True
    order = np.argsort(trace.events["start_ps"][runs[is_known]], kind="stable")
    return replace(
        result,
        runs=Runs(
            runs[is_known][order], event[is_known][order], took_ps[is_known][order], late_ps[is_known][order]
        ),
    )


def _executed(trace: Trace, runs: Rows) -> tuple[Ints, Ints]:
    """Time that the executor worked for each run of a function, matched by the run's `id`, and when it began
    (the run's start if unknown).
    """
    owner, value = first_ints(trace, "id")
    processes = events_named(trace, (EXECUTOR,))
    ids = values_at(runs, owner, value, 0)
    process_ids = values_at(processes, owner, value, 0)
    names, code = np.unique(np.concatenate((ids, process_ids)), return_inverse=True)
    of_run, of_process = code[: len(runs)], code[len(runs) :]
    start = trace.events["start_ps"]
    total, first = np.zeros(len(names), np.int64), np.full(len(names), np.iinfo(np.int64).max)
    np.add.at(total, of_process, trace.events["duration_ps"][processes])
    np.minimum.at(first, of_process, start[processes])
    took_ps: Ints = np.where(ids != 0, total[of_run], 0)
    return took_ps, np.where(took_ps > 0, first[of_run], start[runs])


def _build(
    base: _IteratorEvents, stages: tuple[str, ...], devices: frozenset[int], functions: _FunctionTimes
) -> Forest:
    """Follow each event to its root; detach events that do not reach one."""
    n = len(base.row)
    own_index = np.arange(n)
    parent = base.parent.copy()
    parent[base.is_root] = -1
    first = np.maximum(base.start, base.start[parent])
    overlap = np.minimum(base.start + base.duration, (base.start + base.duration)[parent]) - first
    overlap = np.where(parent >= 0, np.maximum(overlap, 0), 0)
    top = np.where(parent >= 0, parent, own_index)
    is_overlapping = (parent < 0) | (overlap > 0)
    for _ in range(_DOUBLINGS):
        is_overlapping &= is_overlapping[top]
        top = top[top]
    reaches_root = parent[top] < 0
    parent[~reaches_root] = -1
    call = np.where(reaches_root & base.is_root[top], top, -1)
    is_blocking = is_overlapping & (call >= 0)
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
        int((reaches_root & (call < 0)).sum()),
        int((~reaches_root).sum()),
    )


def _covered(base: _IteratorEvents, parent: Ints, overlap: Ints) -> Ints:
    """Time in ps of each event in which any of its children ran."""
    child = np.flatnonzero((parent >= 0) & (overlap > 0))
    covered = np.zeros(len(base.row), np.int64)
    if not len(child):
        return covered
    parent_of_child = parent[child]
    order = np.lexsort((base.start[child], parent_of_child))
    child, parent_of_child = child[order], parent_of_child[order]
    # Each parent gets a separate stretch of one long axis, so that the running maximum of one parent never
    # affects the next.
    is_first_child = np.append(True, parent_of_child[1:] != parent_of_child[:-1])
    width = np.where(is_first_child, base.duration[parent_of_child] + 1, 0)
    shift = np.cumsum(width) - base.duration[parent_of_child] - 1
    first = np.maximum(base.start[child] - base.start[parent_of_child], 0) + shift
    last = first + overlap[child]
    covered_until = np.append(np.int64(-1), np.maximum.accumulate(last)[:-1])
    fresh_ps = np.maximum(last - np.maximum(first, covered_until), 0)
    np.add.at(covered, parent_of_child, fresh_ps)
    return covered


@dataclass(frozen=True)
class Unplaced:
    """Counts for the page's notes: iterator events, and those that the forest could not place."""

    n_events: int
    n_orphans: int
    n_in_cycles: int
    n_without_id: int


def count_unplaced(trace: Trace) -> Unplaced:
    """Count the iterator events that were left out."""
    events = forest(trace)
    return Unplaced(len(events), events.n_orphans, events.n_in_cycles, int((~events.has_id).sum()))


def has_iterators(trace: Trace) -> bool:
    """Whether a host of the trace ran any tf.data iterator. Reads names only."""
    return bool(_kinds(trace)[2])
