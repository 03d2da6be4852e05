"""PyTorch's `[memory]` marks → the events and stats that allocators write into XPlanes.

    aten::linear ▏────────────────▏       "Bytes" 512, "Device Type" 1, "Device Id" 0, "Total Allocated",
                                          "Total Reserved", "Addr"
      aten::addmm  ▏──────────▏           → MemoryAllocation of the memory cuda:0, for
                                            aten::linear/aten::addmm
        aten::empty   ▏─│─▏               negative bytes → MemoryDeallocation

Versions before 1.10 write neither totals nor addresses: the level is then the running sum of the sizes (its
minimum taken as 0), and a deallocation ends the latest allocation of its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.kineto import Stat, dense, listed_devices
from tb_tpuprof.ingest.chrome.slices import THREAD, Slices, hash_rows
from tb_tpuprof.native import nest, pair_up
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.distinct_rows import distinct_rows

Int64s = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
MARK = "[memory]"
# PyTorch's device types (c10/core/DeviceType.h) and their names.
_DEVICES = {
    0: "cpu",
    1: "cuda",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    15: "hpu",
    19: "mtia",
    20: "privateuseone",
}
_GPUS = (1, 6)
_ALLOCATING = ("aten::empty", "aten::new_empty", "aten::resize_")  # the operators that others allocate with
_MAX_DEPTH = 64
_MAX_NAME = 1000
_WHOLE = (schema.INT, schema.UINT)


@dataclass(frozen=True)
class Marks:
    """Rows of slices that are memory marks, ascending; for each the bytes allocated (negative: freed) and the
    index of its memory.
    """

    row: Array
    size: Int64s
    memory: Int64s
    device_type: tuple[int, ...]
    device_id: tuple[int, ...]

    def names(self) -> list[str]:
        """Names of the memories, as PyTorch writes their devices."""
        pairs = zip(self.device_type, self.device_id, strict=True)
        return [
            _DEVICES.get(kind, f"device type {kind}") + (f":{number}" if number >= 0 else "")
            for kind, number in pairs
        ]


def memory_marks(raw: RawEvents, slices: Slices) -> Marks:
    """The marks of a file; none if it was profiled without `profile_memory`."""
    name = raw.texts.find(MARK)
    size = (
        dense(raw, "Bytes", (schema.INT,), 0)[slices.raw]
        if name >= 0
        else np.zeros(len(slices.raw), np.int64)
    )
    row = np.flatnonzero((raw["name"][slices.raw] == name) & (size != 0) & (slices.duration_ps == 0))
    kind, number = (
        dense(raw, argument, (schema.INT,))[slices.raw[row]] for argument in ("Device Type", "Device Id")
    )
    devices, memory = distinct_rows(kind, number)
    return Marks(
        row,
        size[row],
        memory,
        tuple(devices[:, 0].tolist()),
        tuple(devices[:, 1].tolist()),
    )


def renamed(raw: RawEvents, marks: Marks, name: Int64s) -> Int64s:
    """Names of slices (texts), with marks renamed to allocators' events."""
    words = np.array([raw.texts.add("MemoryDeallocation"), raw.texts.add("MemoryAllocation")], np.int64)
    result: Int64s = name.copy()
    result[marks.row] = words[(marks.size > 0).astype(np.int64)]
    return result


def memory_stats(
    raw: RawEvents, slices: Slices, line: Array, is_operation: npt.NDArray[np.bool_], marks: Marks
) -> list[Stat]:
    """Stats of the marks: memory, address, size, levels after the event, and the operations that allocated.

    `is_operation`: the slices that count as such operations.
    """
    if not len(marks.row):
        return []
    events = slices.raw[marks.row]
    total, reserved = (
        dense(raw, argument, _WHOLE)[events] for argument in ("Total Allocated", "Total Reserved")
    )
    order = np.lexsort((events, slices.start_ps[marks.row], marks.memory))
    level = _levels(marks, total, order)
    capacity = np.array(_capacities(raw, marks), np.int64)[marks.memory]
    texts = np.array([raw.texts.add(name) for name in marks.names()], np.int64)
    operation = _allocated_for(raw, slices, line, is_operation, marks.row)

    def stat(name: str, kind: int, selected: npt.NDArray[np.bool_], values: Int64s) -> Stat:
        return Stat(name, marks.row[selected], kind, values[selected])

    all_marks = np.ones(len(marks.row), np.bool_)
    return [
        stat("allocator_name", schema.TEXT, all_marks, texts[marks.memory]),
        stat("addr", schema.INT, all_marks, _addresses(dense(raw, "Addr", _WHOLE)[events], marks, order)),
        stat("allocation_bytes", schema.INT, all_marks, np.abs(marks.size)),
        stat("bytes_allocated", schema.INT, all_marks, level),
        stat("bytes_available", schema.INT, capacity > 0, np.maximum(capacity - level, 0)),
        stat("bytes_held", schema.INT, reserved > 0, reserved),
        stat("allocated_for", schema.TEXT, (operation >= 0) & (marks.size > 0), operation),
    ]


def _levels(marks: Marks, total: Int64s, order: Array) -> Int64s:
    """Bytes in use after each mark: the file's totals, else the running sum with its minimum taken as 0.
    `order`: the marks by memory, then time.
    """
    memory, size = marks.memory[order], marks.size[order]
    first = np.searchsorted(memory, np.arange(len(marks.device_type)))
    sums = np.cumsum(size)
    sums -= (sums - size)[first][memory]
    level = sums - np.minimum(np.minimum.reduceat(sums, first), 0)[memory]
    has_totals = np.maximum.reduceat(total[order], first) > 0
    result = np.empty(len(order), np.int64)
    result[order] = np.where(has_totals[memory], np.maximum(total[order], 0), level)
    return result


def _capacities(raw: RawEvents, marks: Marks) -> list[int]:
    """The size of each memory, from the file's list of GPUs; 0 if unknown."""
    sizes = {number: entry.get("totalGlobalMem") for number, entry in listed_devices(raw).items()}
    listed = [
        sizes.get(number) if kind in _GPUS else 0
        for kind, number in zip(marks.device_type, marks.device_id, strict=True)
    ]
    return [size if isinstance(size, int) and 0 < size < 2**53 else 0 for size in listed]


def _addresses(address: Int64s, marks: Marks, order: Array) -> Int64s:
    """Addresses; if the file has none, a number per allocation, shared with the deallocation that ends it."""
    missing = order[(address[order] == -1)]
    if not len(missing):
        return address
    pairs = hash_rows(marks.memory[missing], np.abs(marks.size[missing]))
    by_pair = np.argsort(pairs, kind="stable")
    rows = missing[by_pair]
    _, key = np.unique(pairs[by_pair], return_inverse=True)
    partner, _ = pair_up(
        key.reshape(-1).astype(np.int32),
        (marks.size[rows] < 0).astype(np.uint8),
        np.full(len(rows), -1, np.int32),
    )
    number = np.arange(len(rows), dtype=np.int64)
    is_end = (marks.size[rows] < 0) & (partner >= 0)
    number[is_end] = partner[is_end]
    result: Int64s = address.copy()
    result[rows] = number
    return result


def _allocated_for(
    raw: RawEvents, slices: Slices, line: Array, is_operation: npt.NDArray[np.bool_], marks: Array
) -> Int64s:
    """The operations around each mark, outermost first, as one text; -1 if there is none."""
    is_mark = np.zeros(len(line), np.bool_)
    is_mark[marks] = True
    around = is_operation & (slices.kind == THREAD) & np.isin(line, np.unique(line[marks])) & ~is_mark
    rows = np.flatnonzero(around | is_mark)
    offsets = np.searchsorted(line[rows], np.arange(int(line[rows].max()) + 2)).astype(np.int64)
    start = slices.start_ps[rows]
    parent, _ = nest(start, start + slices.duration_ps[rows], offsets)
    parent = np.where((parent >= 0) & is_mark[rows[np.maximum(parent, 0)]], -1, parent)
    path, names = _paths(parent.astype(np.int64), raw["name"][slices.raw[rows]].astype(np.int64))
    mark_parent = parent[is_mark[rows]]
    path_code = np.where(mark_parent >= 0, path[np.maximum(mark_parent, 0)], -1)
    texts = np.full(len(names), -1, np.int64)
    for code in np.unique(path_code[path_code >= 0]).tolist():
        texts[code] = raw.texts.add(_joined_path(raw, names, code))
    text_ids: Int64s = (
        np.where(path_code >= 0, texts[np.maximum(path_code, 0)], -1)
        if len(texts)
        else path_code.astype(np.int64)
    )
    return text_ids


def _paths(parent: Int64s, name: Int64s) -> tuple[Int64s, list[tuple[int, int]]]:
    """(for each row the code of the path of names that ends with its own, (code of the parent path or -1,
    name) per code). Paths deeper than 64 have none.
    """
    path = np.full(len(parent), -1, np.int64)
    names: list[tuple[int, int]] = []
    level, rest = np.flatnonzero(parent < 0), np.flatnonzero(parent >= 0)
    for _ in range(_MAX_DEPTH):
        above = np.where(parent[level] >= 0, path[np.maximum(parent[level], 0)], -1)
        pairs, code = distinct_rows(above, name[level])
        path[level] = len(names) + code
        names += [(int(a), int(b)) for a, b in pairs.tolist()]
        is_next = path[parent[rest]] >= 0
        level, rest = rest[is_next], rest[~is_next]
        if not len(level):
            break
    return path, names


def _joined_path(raw: RawEvents, names: list[tuple[int, int]], code: int) -> str:
    parts: list[str] = []
    while code >= 0:
        code, name = names[code]
        parts.append(raw.texts.get(name))
    parts.reverse()
    while len(parts) > 1 and parts[-1].startswith(_ALLOCATING):
        parts.pop()
    return "/".join(parts)[-_MAX_NAME:]
