"""Allocations and deallocations of every memory (allocator or device) of a host in time order, each linked to
its partner.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import consecutive, events_named, metadata_named
from tb_tpuprof.native import NOWHERE, classes_of, rows_of, split, tie
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
# TensorFlow's numbers of data types; 0 is none.
_DTYPES = (
    "",
    "float32",
    "float64",
    "int32",
    "uint8",
    "int16",
    "int8",
    "string",
    "complex64",
    "int64",
    "bool",
    "qint8",
    "quint8",
    "qint32",
    "bfloat16",
    "qint16",
    "quint16",
    "uint16",
    "complex128",
    "float16",
    "resource",
    "variant",
    "uint32",
    "uint64",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
    "int4",
    "uint4",
    "int2",
    "uint2",
)
# Values for missing numbers.
_NUMBERS = {
    "requested_bytes": -1,
    "allocation_bytes": 0,
    "bytes_reserved": 0,
    "bytes_allocated": 0,
    "bytes_available": -1,
    "bytes_held": -1,
    "peak_bytes_in_use": -1,
    "data_type": 0,
}
_LARGEST = 2**53  # bytes; larger values are damaged
Int64s = npt.NDArray[np.int64]


class Column:
    """A lazy column of MemoryEvents, of which few values are ever used: `column[rows]` looks them up."""

    def __init__(self, n: int, look_up: Callable[[Int64s], npt.NDArray[Any]]) -> None:
        self.n = n
        self.look_up = look_up

    def __getitem__(self, rows: int | slice | npt.NDArray[Any]) -> Any:
        if isinstance(rows, slice):
            return self.look_up(np.arange(*rows.indices(self.n), dtype=np.int64))
        values = self.look_up(np.atleast_1d(np.asarray(rows, np.int64)))
        return values if np.ndim(rows) else values[0]


@dataclass(frozen=True)
class MemoryEvents:
    """Events sorted by memory, then time. Memory m has the events first[m] … first[m + 1].

    `stack`, `heap`, `free`: the memory's bytes right after the event; `used`: stack plus heap; `held`: bytes
    that the allocator has reserved on the device (PyTorch); `fragmentation` 0–1 and `lifetime_peak` as
    reported by the allocator. Missing values are -1, a missing fragmentation is NaN; if `held` is known,
    fragmentation is the fraction of it that is not in use.

    `partner[i]`: for an allocation, the event that frees its address (or allocates it again), n if there is
    none; for a deallocation, the allocation that it frees, -1 if that was before the trace. A deallocation's
    missing values are those of its allocation. `op`, `region`, `shape`: ids of `strings`, -1 none; `dtype`:
    see `dtype_name`; `event`: row in the trace.
    """

    memories: tuple[str, ...]
    first: Int64s
    event: npt.NDArray[np.int32]
    start_ps: Int64s
    is_allocation: npt.NDArray[np.bool_]
    stack_bytes: Int64s
    heap_bytes: Int64s
    used_bytes: Int64s
    lifetime_peak_bytes: Int64s
    partner: npt.NDArray[np.int32]
    strings: Strings
    stats: StatTable

    def of(self, memory: int) -> slice:
        """The events of one memory."""
        return slice(int(self.first[memory]), int(self.first[memory + 1]))

    @property
    def requested_bytes(self) -> Column:
        """Bytes that were requested."""
        return self._of_allocation(lambda rows: self._numbers("requested_bytes", rows), 1)

    @property
    def allocation_bytes(self) -> Column:
        """Bytes that the allocator returned."""
        return self._of_allocation(lambda rows: self._numbers("allocation_bytes", rows), 1)

    @property
    def dtype(self) -> Column:
        """Numbers of data types."""
        return self._of_allocation(lambda rows: self._numbers("data_type", rows), 1)

    @property
    def op(self) -> Column:
        """Operations, as string ids."""
        return self._of_allocation(lambda rows: self._texts(("tf_op", "allocated_for"), rows), 0)

    @property
    def region(self) -> Column:
        """Purposes of the memory, as string ids."""
        return self._of_allocation(lambda rows: self._texts(("region_type",), rows), 0)

    @property
    def shape(self) -> Column:
        """Shapes, as string ids."""
        return self._of_allocation(lambda rows: self._texts(("shape",), rows), 0)

    @property
    def free_bytes(self) -> Column:
        """Bytes that are free."""
        return Column(len(self.event), lambda rows: self._numbers("bytes_available", rows))

    @property
    def held_bytes(self) -> Column:
        """Bytes that the allocator has reserved on the device."""
        return Column(len(self.event), lambda rows: self._numbers("bytes_held", rows))

    @property
    def fragmentation(self) -> Column:
        """Fragmentation 0–1, NaN if unknown."""
        return Column(len(self.event), self._fragmentation)

    def _numbers(self, key: str, rows: Int64s) -> Int64s:
        return _sane(self.stats.ints_at(key, self.event[rows], _NUMBERS[key]), _NUMBERS[key])

    def _texts(self, keys: tuple[str, ...], rows: Int64s) -> Int64s:
        """The string id of the first key that the event has, -1 for none; empty and `(null)` are none."""
        result = np.full(len(rows), -1, np.int64)
        for key in keys:
            result = np.where(result >= 0, result, self.stats.texts_at(key, self.event[rows]))
        empty, null = (self.strings.find(text) for text in ("", "(null)"))
        return np.where((result == empty) | (result == null), -1, result)

    def _of_allocation(self, look_up: Callable[[Int64s], Int64s], least: int) -> Column:
        """A column in which a deallocation takes its allocation's value if its own is less than `least`."""

        def filled(rows: Int64s) -> Int64s:
            values = look_up(rows)
            missing = np.flatnonzero(~self.is_allocation[rows] & (self.partner[rows] >= 0) & (values < least))
            if len(missing):
                values = values.copy()
                values[missing] = look_up(self.partner[rows[missing]].astype(np.int64))
            return values

        return Column(len(self.event), filled)

    def _fragmentation(self, rows: Int64s) -> npt.NDArray[np.float64]:
        reported = self.stats.floats_at("fragmentation", self.event[rows])
        held = self.held_bytes[rows]
        by_held = np.where(held > 0, (held - self.heap_bytes[rows]) / np.maximum(held, 1), np.nan)
        return np.clip(np.where(np.isfinite(reported), reported, by_held), 0.0, 1.0)


def dtype_name(number: int) -> str:
    """A data type's usual name; empty for none, its number if unknown."""
    return _DTYPES[number] if 0 <= number < len(_DTYPES) else str(number)


def has_memory_events(trace: Trace) -> bool:
    """Whether the trace has events of any allocator."""
    return bool(len(events_named(trace, (ALLOCATION, DEALLOCATION))))


@once
def memory_events(trace: Trace) -> MemoryEvents:
    """Allocator events of a trace (the allocators of TensorFlow, PJRT and PyTorch, and libtpu).

    A memory is named after its allocator (`GPU_0_bfc`), else after the number of its device. Events of
    several threads are merged in time order.
    """
    rows = rows_of(
        trace.events["metadata"], metadata_named(trace, (ALLOCATION, DEALLOCATION)).view(np.uint8), np.int32
    )
    names, memory = _memories(trace, rows)
    index = consecutive(rows)
    start = trace.events["start_ps"][index]
    order = _order(memory, start)
    if order is not None:
        rows, memory, start, index = rows[order], memory[order], start[order], rows[order]
    is_allocation_name = metadata_named(trace, (ALLOCATION,)).view(np.uint8)
    is_allocation = classes_of(trace.events["metadata"][index], is_allocation_name).view(np.bool_)
    first = np.searchsorted(memory, np.arange(len(names) + 1, dtype=np.int32)).astype(np.int64)
    stats = trace.event_stats
    stack, heap, peak = (
        _sane(stats.ints_at(key, rows, _NUMBERS[key]), _NUMBERS[key])
        for key in ("bytes_reserved", "bytes_allocated", "peak_bytes_in_use")
    )
    return MemoryEvents(
        memories=names,
        first=first,
        event=rows,
        start_ps=start,
        is_allocation=is_allocation,
        stack_bytes=stack,
        heap_bytes=heap,
        used_bytes=stack + heap if stack.any() else heap,
        lifetime_peak_bytes=peak,
        partner=tie(
            first, is_allocation.view(np.uint8), np.ascontiguousarray(stats.ints_at("addr", rows, NOWHERE))
        ),
        strings=trace.strings,
        stats=stats,
    )


def _sane(values: Int64s, missing: int) -> Int64s:
    """Sizes in bytes; values out of range become `missing`."""
    if (
        not len(values) or values.view(np.uint64).max() <= _LARGEST
    ):  # as unsigned numbers, negative values exceed it, too
        return values
    return np.where((values < 0) | (values > _LARGEST), missing, values)


def _order(memory: npt.NDArray[np.int32], start: Int64s) -> npt.NDArray[np.intp] | None:
    """Order of events by memory, then time, then row; None if they already are in that order."""
    by_time = None if (start[1:] >= start[:-1]).all() else np.argsort(start, kind="stable")
    memory_by_time = memory if by_time is None else memory[by_time]
    if (memory_by_time[1:] >= memory_by_time[:-1]).all():
        return by_time
    by_memory = np.argsort(
        memory_by_time.astype(np.uint16) if int(memory_by_time.max()) < 2**16 else memory_by_time,
        kind="stable",
    )
    return by_memory if by_time is None else by_time[by_memory]


def _memories(trace: Trace, rows: npt.NDArray[np.int32]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Names of the memories, sorted, and the memory of each event."""
    stats = trace.event_stats
    key = stats.texts_at("allocator_name", rows)  # strings from 0 up, devices from -2 down, -1 for neither
    if stats.has("device_ordinal") or stats.has("index_on_host"):
        device = stats.ints_at("device_ordinal", rows)
        device = np.where(device < 0, stats.ints_at("index_on_host", rows), device)
        key = np.where(key >= 0, key, -2 - device)
    if len(key) and key.min() == key.max():
        code, first = np.zeros(len(key), np.int32), np.zeros(1, np.int64)
    else:
        code, first = split(np.empty(0, np.int32), np.ascontiguousarray(key))
    names = [
        trace.strings[i] if i >= 0 else f"device {-2 - i}" if i < -1 else "memory"
        for i in key[first].tolist()
    ]
    memory_of = {name: i for i, name in enumerate(sorted(set(names), key=_natural))}
    table = np.array([memory_of[name] for name in names], np.int32)
    return tuple(memory_of), code if (table == np.arange(len(table))).all() else table[code]


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key with words and numbers in turn: GPU_2 comes before GPU_10."""
    return [
        (int(part[:15]), "") if i % 2 else (0, part) for i, part in enumerate(re.split(r"([0-9]+)", name))
    ]
