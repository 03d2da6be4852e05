"""Ties between events of different threads and devices: who scheduled, launched or fed whom.

A tie is (group of producers) → (group of consumers) under one key: every consumer is a child of every
producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.names import MEMCPY, UNKNOWN, parse_op
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.events.stat_rows import (
    Keys,
    Rows,
    distinct,
    events_named,
    events_with,
    first_ints,
    metadata_named,
    mix,
    values_at,
)
from tb_tpuprof.native import match
from tb_tpuprof.trace.trace import Trace

# What `match` finds.
Matched = tuple[
    npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], int
]
# What context types (`_pt`, `_ct`) are called, by number.
CONTEXTS = (
    "context",
    "context",
    "TF executor",
    "TFRT executor",
    "batch scheduler",
    "PjRt",
    "adaptive batch",
    "TFRT TPU runtime",
    "TPU embedding",
    "GPU launch",
    "batcher",
    "TPU stream",
    "TPU launch",
    "Pathways executor",
    "PjRt call",
    "thread pool",
    "JAX serving",
    "SparseCore offload",
)
_RUN_ID_BITS = (1 << 27) - 1  # devices report only the low bits of a run's id
_MOST_TYPES = 63  # context types are small numbers
_CROWD = 64  # with this many on both sides an id says nothing any more
FETCHES = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
EXECUTOR = "ExecutorState::Process"


def context_name(kind: int) -> str:
    """What a context type is called."""
    return CONTEXTS[kind] if 0 <= kind < len(CONTEXTS) else f"context {kind}"


@dataclass(frozen=True)
class Ties:
    """Producers and consumers (rows of `events`), each with the hub (0 … n_hubs - 1) that ties them.

    `kinds`: (first hub, what kind of tie it and the following ones are), ascending.
    """

    producer: npt.NDArray[np.int32]
    producer_hub: npt.NDArray[np.int32]
    consumer: npt.NDArray[np.int32]
    consumer_hub: npt.NDArray[np.int32]
    n_hubs: int
    kinds: tuple[tuple[int, str], ...] = ()


def ties(trace: Trace) -> Ties:
    """All ties of a trace: contexts (`_pt`/`_p` → `_ct`/`_c`), executor → iterator, kernel launch → kernel,
    TPU launch → module.
    """
    parts = [(kind, part) for kind, part in _all(trace) if len(part[0]) and len(part[2])]
    kinds: list[tuple[int, str]] = []
    columns: list[list[npt.NDArray[np.int32]]] = [[], [], [], []]
    n_hubs = 0
    for kind, (producer, made, consumer, used) in parts:
        kinds.append((n_hubs, kind))
        from_at, from_hub, to_at, to_hub, n_here = matched(made, used)
        columns[0].append(_at(producer, from_at))
        columns[1].append(from_hub + np.int32(n_hubs) if n_hubs else from_hub)
        columns[2].append(_at(consumer, to_at))
        columns[3].append(to_hub + np.int32(n_hubs) if n_hubs else to_hub)
        n_hubs += n_here
    joined = [
        column[0] if len(column) == 1 else np.concatenate([np.empty(0, np.int32), *column])
        for column in columns
    ]
    return Ties(joined[0], joined[1], joined[2], joined[3], n_hubs, tuple(kinds))


def _at(rows: Rows | npt.NDArray[np.intp], at: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Some of the rows, or all as they are."""
    return (rows if len(at) == len(rows) else rows[at]).astype(np.int32, copy=False)


Part = tuple[Rows | npt.NDArray[np.intp], Keys, Rows | npt.NDArray[np.intp], Keys]


def _all(trace: Trace) -> Iterator[tuple[str, Part]]:
    yield from _contexts(trace)
    yield "iterator", _executor_to_iterators(trace)
    yield "kernel launch", launch_to_kernel(trace)
    yield from (("TPU launch", part) for part in _tpu_launches(trace))


def matched(made: Keys, used: Keys) -> Matched:
    """Which producers and consumers have a counterpart, and the hub of each (see `native.match`); a crowd of
    64 on both sides is none.
    """
    found: Matched | None = match(made, used, _CROWD)
    if found is None:  # scattered keys: their ranks lie close together
        keys = distinct(np.concatenate((made, used)))
        found = match(np.searchsorted(keys, made), np.searchsorted(keys, used), _CROWD)
        assert found is not None
    return found


def _contexts(trace: Trace) -> Iterator[tuple[str, Part]]:
    """Producers and consumers by context type (`_pt`, `_ct`) and id (`_p`, `_c`); one part per type."""
    (producer, made_type, made), (consumer, used_type, used) = (
        _typed(trace, *keys) for keys in (("_pt", "_p"), ("_ct", "_c"))
    )
    if not len(made) or not len(used):
        return
    known = made_type
    if made_type.min() < 0 or made_type.max() > _MOST_TYPES:
        known = made_type[(made_type >= 0) & (made_type <= _MOST_TYPES)]
    for kind in np.flatnonzero(np.bincount(known)).tolist():
        of_made, of_used = made_type == kind, used_type == kind
        if of_used.any():
            name = context_name(kind)
            by_producer = _with_process(
                trace, *((producer, made) if of_made.all() else (producer[of_made], made[of_made]))
            )
            by_consumer = _with_process(
                trace, *((consumer, used) if of_used.all() else (consumer[of_used], used[of_used]))
            )
            yield name, (*by_producer, *by_consumer)


def _typed(trace: Trace, type_key: str, id_key: str) -> tuple[Rows, Keys, Keys]:
    """Events that have both stats: (rows, types, ids)."""
    owner, kind = first_ints(trace, type_key)
    other, value = first_ints(trace, id_key)
    if len(owner) == len(other) and np.array_equal(owner, other):
        return owner, kind, value
    owner, mine, theirs = np.intersect1d(owner, other, assume_unique=True, return_indices=True)
    return owner, kind[mine], value[theirs]


def _with_process(trace: Trace, rows: Rows, keys: Keys) -> tuple[Rows, Keys]:
    """Keep the ids of several processes in one trace apart."""
    owner, value = trace.plane_stats.ints("process_id")
    if len(set(value.tolist())) < 2:
        return rows, keys
    process = np.full(len(trace.planes), -1, np.int64)
    process[owner] = value
    return rows, mix(keys, process[trace.lines["plane"][trace.event_line[rows]]])


def _latest(rows: Rows | npt.NDArray[np.intp], keys: Keys) -> tuple[npt.NDArray[np.intp], Keys]:
    """Of several events with one key only the last counts."""
    last_keys, last = np.unique(keys[::-1], return_index=True)
    return np.asarray(rows)[::-1][last].astype(np.intp), last_keys


def _executor_to_iterators(trace: Trace) -> Part:
    """An executor's run → its calls of the input pipeline, by (`id`, `iter_num`)."""
    wanted = events_named(trace, FETCHES)
    none = np.empty(0, np.intp), np.empty(0, np.int64)
    if not len(wanted):
        return *none, *none
    rows, keys = events_with(trace, "id", "iter_num")
    is_executor = np.isin(rows, events_named(trace, (EXECUTOR,)))
    is_next = np.isin(rows, wanted)
    return *_latest(rows[is_executor], keys[is_executor]), rows[is_next], keys[is_next]


@once
def launch_to_kernel(trace: Trace) -> Part:
    """A host event with a `correlation_id` launches the device event with the same; framework operations
    launch nothing.
    """
    rows, ids = first_ints(trace, "correlation_id")
    if not len(rows):
        none = np.empty(0, np.intp), np.empty(0, np.int64)
        return *none, *none
    is_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    on_host = np.repeat(is_host, np.diff(np.searchsorted(rows, trace.line_offsets.astype(rows.dtype))))
    launch = np.flatnonzero(on_host)
    if not len(launch):
        return np.empty(0, np.intp), np.empty(0, np.int64), rows, ids
    metadata = trace.events["metadata"][rows[launch]]
    named = {
        row: parse_op(trace.strings[trace.metadata["name"][row]]).category
        for row in np.unique(metadata).tolist()
    }
    known = np.array([row for row, category in named.items() if category not in (UNKNOWN, MEMCPY)], np.int64)
    launch = launch[~np.isin(metadata, known)]
    return *_latest(rows[launch], ids[launch]), rows[~on_host], ids[~on_host]


def _tpu_launches(trace: Trace) -> Iterator[Part]:
    """Enqueueing a program on the host → its module on the TPU and its call-backs, by device, queue, run and
    core type.
    """
    cores = planes(trace).tensor_cores
    rows, _ = events_with(trace, "queue_id", "run_id")
    if not cores or not len(rows):
        return
    queue, run, core, ordinal = (
        values_at(rows, *first_ints(trace, key), missing) for key, missing in
        (("queue_id", 0), ("run_id", 0), ("core_type", 0), ("device_ordinal", -1))
    )  # fmt: skip
    plane = trace.lines["plane"][trace.event_line[rows]]
    for core_plane in cores:
        ordinal[plane == core_plane] = int(trace.plane_names[core_plane].rpartition(":")[2] or 0)
    on_host = np.isin(plane, planes(trace).hosts)
    run[on_host] &= _RUN_ID_BITS
    keys = mix(mix(mix(ordinal, queue), run), core)
    names = trace.events["metadata"][rows]
    is_launch = on_host & metadata_named(trace, ("DoEnqueueProgram",))[names]
    is_callback = on_host & metadata_named(trace, ("CompleteCallbacks",))[names]
    modules = [i for i, name in enumerate(trace.line_names) if name == "XLA Modules"]
    is_module = ~on_host & np.isin(trace.event_line[rows], modules)
    yield rows[is_launch], keys[is_launch], rows[is_callback | is_module], keys[is_callback | is_module]
