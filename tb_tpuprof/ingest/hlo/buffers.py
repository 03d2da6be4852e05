"""A buffer assignment message → `BufferAssignment`: logical buffers, allocations, what lies where, heap
simulator traces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.hlo.message import Bytes
from tb_tpuprof.native import alike, find_ids, intern, ints, parts, spans
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_buffers import (
    ALLOCATIONS,
    ASSIGNED,
    HEAP_EVENTS,
    HEAP_TRACES,
    LOGICAL_BUFFERS,
    BufferAssignment,
)
from tb_tpuprof.trace.table import Table

Ints = npt.NDArray[np.int64]


def numbers(*values: int) -> Ints:
    """Field numbers as an array."""
    return np.array(values, np.int64)


def indexes(data: Bytes, starts: Ints, sizes: Ints, number: int) -> tuple[tuple[int, ...], ...]:
    """A repeated number field of many messages as tuples."""
    offsets, values = ints(data, starts, sizes, number)
    found: list[tuple[int, ...]] = [()] * len(starts)
    given = np.flatnonzero(np.diff(offsets))
    for i, first, last in zip(
        given.tolist(), offsets[given].tolist(), offsets[given + 1].tolist(), strict=True
    ):
        found[i] = tuple(values[first:last].tolist())
    return tuple(found)


class BufferReader:
    """Reads the assignment in data[start:start + size] of a module."""

    def __init__(self, module: HloModule, start: int, size: int) -> None:
        self.module = module
        self.data = module.data
        self.top = numbers(start), numbers(size)
        self.n_damaged = 0

    def read(self) -> BufferAssignment:
        """All tables."""
        buffers, shape_index = self._buffers()
        self._ids, self._instructions = _sorted(buffers["id"]), buffers["instruction"]
        _, starts, sizes = parts(self.data, *self.top, 3)
        allocations = self._allocations(starts, sizes)
        assigned = self._assigned(starts, sizes)
        parameter_index = indexes(self.data, starts, sizes, 10)
        traces, events = self._heap()
        return BufferAssignment(
            buffers, shape_index, allocations, parameter_index, assigned, traces, events, self.n_damaged
        )

    def _buffers(self) -> tuple[Table, tuple[tuple[int, ...], ...]]:
        _, starts, sizes = parts(self.data, *self.top, 1)
        values, found, _, bad = spans(self.data, starts, sizes, numbers(1, 2, 3, 4))
        self.n_damaged += int(bad.sum())
        place_starts, place_sizes = values[:, 2], np.maximum(found[:, 2], 0)
        places, place_found, counts, _ = spans(self.data, place_starts, place_sizes, numbers(4, 2), 0)
        rows = np.where(counts > 0, self.module.rows_of_ids(places[:, 0]), -1)
        unknown = np.flatnonzero((rows < 0) & (place_found[:, 1] > 0))
        rows[unknown] = self._sought(places[unknown, 1], place_found[unknown, 1])
        self.n_damaged += int((rows < 0).sum())
        columns = {
            "id": values[:, 0], "size_bytes": self._sizes(values[:, 1]), "instruction": rows.astype(np.int32),
            "color": values[:, 3],
        }  # fmt: skip
        return Table(LOGICAL_BUFFERS, columns), indexes(self.data, place_starts, place_sizes, 3)

    def _by_name(self, starts: Ints, sizes: Ints, likely: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Instructions by the places of their names; `likely` are those that have the names, as far as one
        can tell.
        """
        strings, names = self.module.strings, self.module.instructions["name"]
        place = strings.starts[names], strings.sizes[names]
        found: npt.NDArray[np.int32] = likely.copy()
        other = np.flatnonzero(~alike(self.data, starts, sizes, likely, place))
        found[other] = self._sought(starts[other], sizes[other])
        return found

    def _sought(self, starts: Ints, sizes: Ints) -> npt.NDArray[np.int32]:
        """Instructions by the places of their names, among all."""
        if not len(starts):
            return np.empty(0, np.int32)
        strings = self.module.strings
        at = np.concatenate((strings.starts, starts))
        length = np.concatenate((strings.sizes, np.maximum(sizes, 0)))
        ids, _ = intern(self.data, at, length, 0)
        row_of = np.full(len(at), -1, np.int32)  # of each distinct string the first instruction of that name
        names = self.module.instructions["name"]
        row_of[ids[names[::-1]]] = np.arange(len(names), dtype=np.int32)[::-1]
        found: npt.NDArray[np.int32] = row_of[ids[len(strings) :]]
        return found

    def _sizes(self, values: Ints) -> Ints:
        self.n_damaged += int((values < 0).sum())
        return np.clip(values, 0, 2**62)

    def _allocations(self, starts: Ints, sizes: Ints) -> Table:
        values, _, _, bad = spans(self.data, starts, sizes, numbers(1, 2, 8, 6, 3, 5, 7, 11, 12, 13))
        self.n_damaged += int(bad.sum())
        kinds = [spec.name for spec in ALLOCATIONS]
        columns: dict[str, npt.NDArray[np.int64] | npt.NDArray[np.bool_]] = {
            name: values[:, i].copy() if i < 4 else values[:, i] != 0 for i, name in enumerate(kinds)
        }
        columns["size_bytes"] = self._sizes(values[:, 1])
        return Table(ALLOCATIONS, columns)

    def _rows_of(self, ids: Ints, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Logical buffers by id; ids that no buffer has are counted."""
        rows = np.full(len(ids), -1, np.int32)
        rows[present] = find_ids(*self._ids, ids[present])
        self.n_damaged += int((present & (rows < 0)).sum())
        return rows

    def _assigned(self, starts: Ints, sizes: Ints) -> Table:
        offsets, part_starts, part_sizes = parts(self.data, starts, sizes, 9)
        values, _, _, bad = spans(self.data, part_starts, part_sizes, numbers(1, 2, 3))
        self.n_damaged += int(bad.sum())
        columns: dict[str, npt.NDArray[Any]] = {
            "allocation": np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(offsets)),
            "buffer": self._rows_of(values[:, 0], np.ones(len(values), np.bool_)),
            "offset": self._sizes(values[:, 1]), "size_bytes": self._sizes(values[:, 2]),
        }  # fmt: skip
        return Table(ASSIGNED, columns)

    def _heap(self) -> tuple[Table, Table]:
        _, starts, sizes = parts(self.data, *self.top, 4)
        values, _, _, _ = spans(self.data, starts, sizes, numbers(3, 2))
        offsets, event_starts, event_sizes = parts(self.data, starts, sizes, 1)
        event, found, counts, bad = spans(self.data, event_starts, event_sizes, numbers(1, 2, 4, 5), 3)
        self.n_damaged += int(bad.sum())
        traces: dict[str, npt.NDArray[Any]] = {
            "allocation_index": values[:, 0], "first_event": offsets[:-1].astype(np.int32),
            "n_events": np.diff(offsets).astype(np.int32), "is_whole_module": values[:, 1] != 0,
        }  # fmt: skip
        buffer = self._rows_of(event[:, 1], np.ones(len(event), np.bool_))
        own = self._instructions  # an event is at the instruction that defines its buffer
        likely = np.where(buffer >= 0, own[buffer], -1).astype(np.int32) if len(own) else buffer
        events: dict[str, npt.NDArray[Any]] = {
            "kind": event[:, 0], "buffer": buffer,
            "instruction": self._by_name(event[:, 2], found[:, 2], likely),
            "shared_with": self._rows_of(event[:, 3], (event[:, 0] == 2) | (counts > 0) & (event[:, 3] != 0)),
            "buffer_id": event[:, 1], "shared_with_id": event[:, 3],
        }  # fmt: skip
        return Table(HEAP_TRACES, traces), Table(HEAP_EVENTS, events)


def _sorted(ids: Ints) -> tuple[Ints, npt.NDArray[np.intp]]:
    order = np.argsort(ids, kind="stable")
    return ids[order], order
