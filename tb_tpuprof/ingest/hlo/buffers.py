"""A buffer assignment message → `BufferAssignment`: logical buffers, allocations, the placement of buffers,
heap simulator traces.
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
    """A repeated number field of many messages, as one tuple per message."""
    offsets, values = ints(data, starts, sizes, number)
    tuples: list[tuple[int, ...]] = [()] * len(starts)
    non_empty = np.flatnonzero(np.diff(offsets))
    for i, first, last in zip(
        non_empty.tolist(), offsets[non_empty].tolist(), offsets[non_empty + 1].tolist(), strict=True
    ):
        tuples[i] = tuple(values[first:last].tolist())
    return tuple(tuples)


class BufferReader:
    """Reads the buffer assignment in data[start:start + size] of a module."""

    def __init__(self, module: HloModule, start: int, size: int) -> None:
        self.module = module
        self.data = module.data
        self.top = numbers(start), numbers(size)
        self.n_damaged = 0

    def read(self) -> BufferAssignment:
        """The buffer assignment with all its tables."""
        buffers, shape_index = self._buffers()
        self._ids, self._instructions = _sorted(buffers["id"]), buffers["instruction"]
        _, starts, sizes = parts(self.data, *self.top, 3)
        allocations = self._allocations(starts, sizes)
        assigned = self._assigned(starts, sizes)
        traces, events = self._heap()
        return BufferAssignment(buffers, shape_index, allocations, assigned, traces, events, self.n_damaged)

    def _buffers(self) -> tuple[Table, tuple[tuple[int, ...], ...]]:
        _, starts, sizes = parts(self.data, *self.top, 1)
        values, lengths, _, bad = spans(self.data, starts, sizes, numbers(1, 2, 3, 4))
        self.n_damaged += int(bad.sum())
        definition_starts, definition_sizes = values[:, 2], np.maximum(lengths[:, 2], 0)
        definitions, definition_lengths, counts, _ = spans(
            self.data, definition_starts, definition_sizes, numbers(4, 2), 0
        )
        rows = np.where(counts > 0, self.module.rows_of_ids(definitions[:, 0]), -1)
        by_name = np.flatnonzero((rows < 0) & (definition_lengths[:, 1] > 0))
        rows[by_name] = self._search(definitions[by_name, 1], definition_lengths[by_name, 1])
        self.n_damaged += int((rows < 0).sum())
        columns = {
            "id": values[:, 0], "size_bytes": self._sizes(values[:, 1]), "instruction": rows.astype(np.int32),
            "color": values[:, 3],
        }  # fmt: skip
        return Table(LOGICAL_BUFFERS, columns), indexes(self.data, definition_starts, definition_sizes, 3)

    def _by_name(self, starts: Ints, sizes: Ints, likely: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Instructions by the spans of their names. `likely` are the instructions that probably have the
        names.
        """
        strings, names = self.module.strings, self.module.instructions["name"]
        name_spans = strings.starts[names], strings.sizes[names]
        rows: npt.NDArray[np.int32] = likely.copy()
        mismatched = np.flatnonzero(~alike(self.data, starts, sizes, likely, name_spans))
        rows[mismatched] = self._search(starts[mismatched], sizes[mismatched])
        return rows

    def _search(self, starts: Ints, sizes: Ints) -> npt.NDArray[np.int32]:
        """Instructions by the spans of their names, searched among all instructions."""
        if not len(starts):
            return np.empty(0, np.int32)
        strings = self.module.strings
        all_starts = np.concatenate((strings.starts, starts))
        all_sizes = np.concatenate((strings.sizes, np.maximum(sizes, 0)))
        ids, _ = intern(self.data, all_starts, all_sizes, 0)
        # Per distinct string: the first instruction of that name.
        row_of = np.full(len(all_starts), -1, np.int32)
        names = self.module.instructions["name"]
        row_of[ids[names[::-1]]] = np.arange(len(names), dtype=np.int32)[::-1]
        rows: npt.NDArray[np.int32] = row_of[ids[len(strings) :]]
        return rows

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
        """Logical buffers by id; counts ids that no buffer has."""
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
        event, lengths, counts, bad = spans(self.data, event_starts, event_sizes, numbers(1, 2, 4, 5), 3)
        self.n_damaged += int(bad.sum())
        traces: dict[str, npt.NDArray[Any]] = {
            "allocation_index": values[:, 0], "first_event": offsets[:-1].astype(np.int32),
            "n_events": np.diff(offsets).astype(np.int32), "is_whole_module": values[:, 1] != 0,
        }  # fmt: skip
        buffer = self._rows_of(event[:, 1], np.ones(len(event), np.bool_))
        # Most events are at the instruction that defines the buffer.
        instruction_of_buffer = self._instructions
        likely = (
            np.where(buffer >= 0, instruction_of_buffer[buffer], -1).astype(np.int32)
            if len(instruction_of_buffer)
            else buffer
        )
        events: dict[str, npt.NDArray[Any]] = {
            "kind": event[:, 0], "buffer": buffer,
            "instruction": self._by_name(event[:, 2], lengths[:, 2], likely),
            "shared_with": self._rows_of(event[:, 3], (event[:, 0] == 2) | (counts > 0) & (event[:, 3] != 0)),
            "buffer_id": event[:, 1], "shared_with_id": event[:, 3],
        }  # fmt: skip
        return Table(HEAP_TRACES, traces), Table(HEAP_EVENTS, events)


def _sorted(ids: Ints) -> tuple[Ints, npt.NDArray[np.intp]]:
    order = np.argsort(ids, kind="stable")
    return ids[order], order
