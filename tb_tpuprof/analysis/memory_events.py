"""Allocations and deallocations of every memory (allocator or device) of a host, in the order of time, tied to one another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.grouping import groups
from tb_tpuprof.analysis.memo import once
from tb_tpuprof.analysis.stat_rows import distinct, events_named, first_ints, metadata_named, values_at
from tb_tpuprof.trace.stats import Sparse
from tb_tpuprof.trace.trace import Trace

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
# TensorFlow's numbers of data types; 0 is none.
_DTYPES = (
    "", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8", "qint32",
    "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant", "uint32", "uint64", "float8_e5m2",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2",
)  # fmt: skip
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemoryEvents:
    """Events sorted by memory, then time. Memory m has the events first[m] … first[m + 1].

    `stack`, `heap`, `free`: the memory's bytes right after the event; `held`: what the allocator has taken from the device
    (PyTorch); `fragmentation` 0–1 and `lifetime_peak` as the allocator states them. What is not told is -1, fragmentation NaN;
    where `held` is told, fragmentation is the share of it that is not in use.

    `ends[i]`: for an allocation the event that frees its address (or uses it anew), n where none does; for a deallocation -1.
    `source[i]`: the allocation that an event is about: its own, the freed one, -1 if that was before the trace.
    `op`, `region`, `shape`: string ids, -1 none; `dtype`: rows of `dtypes`; `group`: the step's, -1 none; `event`: in the trace.
    """

    memories: tuple[str, ...]
    first: Int64s
    event: Int64s
    start_ps: Int64s
    is_allocation: npt.NDArray[np.bool_]
    requested_bytes: Int64s
    allocation_bytes: Int64s
    stack_bytes: Int64s
    heap_bytes: Int64s
    free_bytes: Int64s
    held_bytes: Int64s
    fragmentation: npt.NDArray[np.float64]
    lifetime_peak_bytes: Int64s
    op: Int64s
    region: Int64s
    shape: Int64s
    dtype: Int64s
    group: Int64s
    ends: Int64s
    source: Int64s
    strings: tuple[str, ...]
    step_names: dict[int, str]

    def of(self, memory: int) -> slice:
        """The events of one memory."""
        return slice(int(self.first[memory]), int(self.first[memory + 1]))

    @property
    def used_bytes(self) -> Int64s:
        """Stack and heap together, after each event."""
        return self.stack_bytes + self.heap_bytes


def dtype_name(number: int) -> str:
    """A data type as people write it; empty for none, its number if it is not known."""
    return _DTYPES[number] if 0 <= number < len(_DTYPES) else str(number)


def has_memory_events(trace: Trace) -> bool:
    """Whether the trace tells of any allocator."""
    return bool(len(events_named(trace, (ALLOCATION, DEALLOCATION))))


@once
def memory_events(trace: Trace) -> MemoryEvents:
    """Allocator events of a trace (TensorFlow's, PJRT's and PyTorch's allocators, libtpu).

    A memory is called by its allocator (`GPU_0_bfc`), else by the number of its device. The order is that of absolute time:
    events of several threads interleave.
    """
    rows = events_named(trace, (ALLOCATION, DEALLOCATION))
    names, memory = _memories(trace, rows)
    order = np.lexsort((np.arange(len(rows)), trace.events["start_ps"][rows], memory))
    rows, memory = rows[order], memory[order]
    is_allocation = metadata_named(trace, (ALLOCATION,))[trace.events["metadata"][rows]]
    numbers = {key: _ints(trace, key, rows, missing) for key, missing in _NUMBERS.items()}
    address, has_address = numbers["addr"], _has(trace, "addr", rows)
    ends, source = _tie(memory, address, is_allocation, has_address)
    freed = ~is_allocation & (source >= 0)
    texts, strings = _texts(trace, rows)
    for values in (*texts, numbers["data_type"], numbers["requested_bytes"], numbers["allocation_bytes"]):
        missing = freed & (values <= 0)
        values[missing] = values[source[missing]]
    group = groups(trace).group[rows].astype(np.int64)
    first = np.searchsorted(memory, np.arange(len(names) + 1)).astype(np.int64)
    step_names = {g: groups(trace).names.get(g, str(g)) for g in np.unique(group).tolist() if g >= 0}
    return MemoryEvents(
        memories=names,
        first=first,
        event=rows.astype(np.int64),
        start_ps=trace.events["start_ps"][rows].astype(np.int64),
        is_allocation=is_allocation,
        requested_bytes=numbers["requested_bytes"],
        allocation_bytes=numbers["allocation_bytes"],
        stack_bytes=numbers["bytes_reserved"],
        heap_bytes=numbers["bytes_allocated"],
        free_bytes=numbers["bytes_available"],
        held_bytes=numbers["bytes_held"],
        fragmentation=_fragmentation(trace, rows, numbers["bytes_held"], numbers["bytes_allocated"]),
        lifetime_peak_bytes=numbers["peak_bytes_in_use"],
        op=texts[0],
        region=texts[1],
        shape=texts[2],
        dtype=numbers["data_type"],
        group=group,
        ends=ends,
        source=source,
        strings=strings,
        step_names=step_names,
    )


# What stands for a number that is not told.
_NUMBERS = {
    "addr": 0, "requested_bytes": -1, "allocation_bytes": 0, "bytes_reserved": 0, "bytes_allocated": 0, "bytes_available": -1,
    "bytes_held": -1, "peak_bytes_in_use": -1, "data_type": 0,
}  # fmt: skip
_LARGEST = 2**53  # bytes; more is damage


def _ints(trace: Trace, key: str, rows: npt.NDArray[np.intp], missing: int) -> Int64s:
    """A stat of each event. Sizes out of all bounds are not told."""
    values = values_at(rows, *first_ints(trace, key), missing)
    if key != "addr":
        values[(values < 0) | (values > _LARGEST)] = missing
    return values


def _has(trace: Trace, key: str, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    return np.isin(rows, first_ints(trace, key)[0], assume_unique=True)


def _firsts(sparse: Sparse) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Owners and values, each owner once: the first of several values."""
    if (np.diff(sparse.owner) > 0).all():
        return sparse.owner, sparse.value
    owner, first = np.unique(sparse.owner, return_index=True)
    return owner, sparse.value[first]


def _strings(trace: Trace, key: str, rows: npt.NDArray[np.intp]) -> Int64s:
    """String id of a text stat of each event, -1 where it has none."""
    owner, value = _firsts(trace.event_stats.texts(key))
    return values_at(rows, owner, value.astype(np.int64), -1)


def _fragmentation(trace: Trace, rows: npt.NDArray[np.intp], held: Int64s, used: Int64s) -> npt.NDArray[np.float64]:
    owner, value = _firsts(trace.event_stats.floats("fragmentation"))
    none = int(np.array([np.nan]).view(np.int64)[0])
    told = values_at(rows, owner, value.astype(np.float64).view(np.int64), none).view(np.float64)
    by_held = np.where(held > 0, (held - used) / np.maximum(held, 1), np.nan)
    values: npt.NDArray[np.float64] = np.clip(np.where(np.isfinite(told), told, by_held), 0.0, 1.0)
    return values


def _memories(trace: Trace, rows: npt.NDArray[np.intp]) -> tuple[tuple[str, ...], Int64s]:
    """Names of the memories, sorted, and the memory of each event."""
    allocator = _strings(trace, "allocator_name", rows)
    device = values_at(rows, *first_ints(trace, "device_ordinal"), -1)
    device = np.where(device < 0, values_at(rows, *first_ints(trace, "index_on_host"), -1), device)
    key = np.where(allocator >= 0, allocator, -2 - device)  # strings from 0 up, devices from -2 down, -1 for neither
    keys = distinct(key)
    names = [trace.strings[i] if i >= 0 else f"device {-2 - i}" if i < -1 else "memory" for i in keys.tolist()]
    place = {name: i for i, name in enumerate(sorted(set(names), key=_natural))}
    table = np.array([place[name] for name in names], np.int64)
    return tuple(place), table[np.searchsorted(keys, key)] if len(table) else np.empty(0, np.int64)


def _natural(name: str) -> list[tuple[int, str]]:
    """GPU_2 before GPU_10: words and numbers in turn."""
    return [(int(part[:15]), "") if i % 2 else (0, part) for i, part in enumerate(re.split(r"([0-9]+)", name))]


def _texts(trace: Trace, rows: npt.NDArray[np.intp]) -> tuple[list[Int64s], tuple[str, ...]]:
    """Operation, region and shape of each event as rows of a list of texts; -1 none."""
    found = [_strings(trace, key, rows) for key in ("tf_op", "region_type", "shape")]
    found[0] = np.where(found[0] >= 0, found[0], _strings(trace, "allocated_for", rows))
    ids = distinct(np.concatenate(found))
    texts = [trace.strings.get(i) for i in ids.tolist()]
    strings = list(dict.fromkeys(text for text in texts if text not in ("", "(null)")))
    place = {text: i for i, text in enumerate(strings)}
    table = np.array([place.get(text, -1) for text in texts], np.int64)
    return [table[np.searchsorted(ids, values)] if len(ids) else values for values in found], tuple(strings)


def _tie(
    memory: Int64s, address: Int64s, is_allocation: npt.NDArray[np.bool_], has_address: npt.NDArray[np.bool_]
) -> tuple[Int64s, Int64s]:
    """(ends, source) of MemoryEvents. An address belongs to its last allocation until it is freed or allocated anew."""
    n = len(memory)
    ends = np.where(is_allocation, n, -1).astype(np.int64)
    source = np.where(is_allocation, np.arange(n), -1).astype(np.int64)
    order = np.lexsort((np.arange(n), address, memory))
    order = order[has_address[order]]
    before, after = order[:-1], order[1:]
    same = (memory[before] == memory[after]) & (address[before] == address[after]) & is_allocation[before]
    before, after = before[same], after[same]
    ends[before] = after
    frees = ~is_allocation[after]
    source[after[frees]] = before[frees]
    return ends, source
