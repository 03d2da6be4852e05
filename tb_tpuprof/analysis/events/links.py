"""Ties between events of different threads and devices: which event scheduled, launched or fed which.

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
from tb_tpuprof.native import match, repeated
from tb_tpuprof.trace.trace import Trace

# (producer index, hub of each, consumer index, hub of each, number of hubs), as `match` returns them.
Matched = tuple[
    npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], int
]
# Names of context types (`_pt`, `_ct`), by number.
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
_CROWD = 64  # with this many events on both sides an id no longer identifies anything
FETCHES = ("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
EXECUTOR = "ExecutorState::Process"


def context_name(kind: int) -> str:
    """The name of a context type."""
    return CONTEXTS[kind] if 0 <= kind < len(CONTEXTS) else f"context {kind}"


@dataclass(frozen=True)
class Ties:
    """Producers and consumers (rows of `events`), each with the number of the hub (0 … n_hubs - 1) that ties
    them.

    `kinds`: (first hub, kind of the tie), ascending; a kind holds up to the next pair's hub.
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
    parts = [(kind, part) for kind, part in _all_ties(trace) if len(part[0]) and len(part[2])]
    kinds: list[tuple[int, str]] = []
    columns: list[list[npt.NDArray[np.int32]]] = [[], [], [], []]
    n_hubs = 0
    for kind, (producer, produced_key, consumer, consumed_key) in parts:
        kinds.append((n_hubs, kind))
        from_index, from_hub, to_index, to_hub, n_new = matched(produced_key, consumed_key)
        columns[0].append(_taken(producer, from_index))
        columns[1].append(from_hub + np.int32(n_hubs) if n_hubs else from_hub)
        columns[2].append(_taken(consumer, to_index))
        columns[3].append(to_hub + np.int32(n_hubs) if n_hubs else to_hub)
        n_hubs += n_new
    joined = [
        column[0] if len(column) == 1 else np.concatenate([np.empty(0, np.int32), *column])
        for column in columns
    ]
    return Ties(joined[0], joined[1], joined[2], joined[3], n_hubs, tuple(kinds))


def _taken(rows: Rows | npt.NDArray[np.intp], index: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The rows at `index`; all of them uncopied if it selects all."""
    return (rows if len(index) == len(rows) else rows[index]).astype(np.int32, copy=False)


Part = tuple[Rows | npt.NDArray[np.intp], Keys, Rows | npt.NDArray[np.intp], Keys]


def _all_ties(trace: Trace) -> Iterator[tuple[str, Part]]:
    yield from _contexts(trace)
    yield "iterator", _executor_to_iterators(trace)
    yield "kernel launch", launch_to_kernel(trace)
    yield from (("TPU launch", part) for part in _tpu_launches(trace))


def matched(produced_key: Keys, consumed_key: Keys) -> Matched:
    """Match producers and consumers of equal keys (see `native.match`). A key with 64 or more events on both
    sides is dropped.
    """
    result: Matched | None = match(produced_key, consumed_key, _CROWD)
    if result is None:  # keys too scattered: use their ranks, which are consecutive
        keys = distinct(np.concatenate((produced_key, consumed_key)))
        result = match(np.searchsorted(keys, produced_key), np.searchsorted(keys, consumed_key), _CROWD)
        assert result is not None
    return result


def _contexts(trace: Trace) -> Iterator[tuple[str, Part]]:
    """Producers and consumers by context type (`_pt`, `_ct`) and id (`_p`, `_c`); one part per type."""
    (producer, producer_type, produced_key), (consumer, consumer_type, consumed_key) = (
        _typed(trace, *keys) for keys in (("_pt", "_p"), ("_ct", "_c"))
    )
    if not len(produced_key) or not len(consumed_key):
        return
    valid_type = producer_type
    if producer_type.min() < 0 or producer_type.max() > _MOST_TYPES:
        valid_type = producer_type[(producer_type >= 0) & (producer_type <= _MOST_TYPES)]
    for kind in np.flatnonzero(np.bincount(valid_type)).tolist():
        is_producer, is_consumer = producer_type == kind, consumer_type == kind
        if is_consumer.any():
            name = context_name(kind)
            by_producer = _with_process(
                trace,
                *(
                    (producer, produced_key)
                    if is_producer.all()
                    else (producer[is_producer], produced_key[is_producer])
                ),
            )
            by_consumer = _with_process(
                trace,
                *(
                    (consumer, consumed_key)
                    if is_consumer.all()
                    else (consumer[is_consumer], consumed_key[is_consumer])
                ),
            )
            yield name, (*by_producer, *by_consumer)


def _typed(trace: Trace, type_key: str, id_key: str) -> tuple[Rows, Keys, Keys]:
    """Events that have both stats: (rows, types, ids)."""
    owner, kind = first_ints(trace, type_key)
    other, value = first_ints(trace, id_key)
    if len(owner) == len(other) and np.array_equal(owner, other):
        return owner, kind, value
    owner, in_owner, in_other = np.intersect1d(owner, other, assume_unique=True, return_indices=True)
    return owner, kind[in_owner], value[in_other]


def _with_process(trace: Trace, rows: Rows, keys: Keys) -> tuple[Rows, Keys]:
    """Make keys of different processes in one trace distinct."""
    owner, value = trace.plane_stats.ints("process_id")
    if len(set(value.tolist())) < 2:
        return rows, keys
    process = np.full(len(trace.planes), -1, np.int64)
    process[owner] = value
    return rows, mix(keys, process[trace.lines["plane"][trace.event_line[rows]]])


def _latest(rows: Rows | npt.NDArray[np.intp], keys: Keys) -> tuple[npt.NDArray[np.intp], Keys]:
    """The last event of each key, and the keys."""
    last_keys, last = np.unique(keys[::-1], return_index=True)
    return np.asarray(rows)[::-1][last].astype(np.intp), last_keys


def _executor_to_iterators(trace: Trace) -> Part:
    """An executor's run → its calls of the input pipeline, by (`id`, `iter_num`)."""
    fetches = events_named(trace, FETCHES)
    empty = np.empty(0, np.intp), np.empty(0, np.int64)
    if not len(fetches):
        return *empty, *empty
    rows, keys = events_with(trace, "id", "iter_num")
    is_executor = np.isin(rows, events_named(trace, (EXECUTOR,)))
    is_next = np.isin(rows, fetches)
    return *_latest(rows[is_executor], keys[is_executor]), rows[is_next], keys[is_next]


@once
def launch_to_kernel(trace: Trace) -> Part:
    """A host event with a `correlation_id` launches the device event with the same id. Framework operations
    on the host launch nothing.
    """
    rows, ids = first_ints(trace, "correlation_id")
    if not len(rows):
        empty = np.empty(0, np.intp), np.empty(0, np.int64)
        return *empty, *empty
    is_host = np.isin(trace.lines["plane"], planes(trace).hosts)
    on_host = repeated(is_host, np.diff(np.searchsorted(rows, trace.line_offsets.astype(rows.dtype))))
    launch = np.flatnonzero(on_host)
    if not len(launch):
        return np.empty(0, np.intp), np.empty(0, np.int64), rows, ids
    metadata = trace.events["metadata"][rows[launch]]
    category_of = {
        row: parse_op(trace.strings[trace.metadata["name"][row]]).category
        for row in np.unique(metadata).tolist()
    }
    framework_rows = np.array(
        [row for row, category in category_of.items() if category not in (UNKNOWN, MEMCPY)], np.int64
    )
    launch = launch[~np.isin(metadata, framework_rows)]
    return *_latest(rows[launch], ids[launch]), rows[~on_host], ids[~on_host]


def _tpu_launches(trace: Trace) -> Iterator[Part]:
    """Enqueueing a program on the host → its module on the TPU and its callbacks, by device, queue, run and
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
