"""The buffer assignment of an HLO module as columns: logical buffers, allocations and the heap simulator's
events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.schema import ColumnSpec
from tb_tpuprof.trace.table import Table

FREE, SHARE_WITH = 1, 2  # 0 allocates

LOGICAL_BUFFERS = (
    ColumnSpec("id", "int64", "id", "id in the file"),
    ColumnSpec("size_bytes", "int64", "bytes", "size with padding"),
    ColumnSpec(
        "instruction",
        "int32",
        "instruction",
        "the instruction that defines the value, -1 if not in the file",
    ),
    ColumnSpec("color", "int64", "", "memory space: 0 is the device's main memory"),
)
ALLOCATIONS = (
    ColumnSpec("index", "int64", "id", "index in the file"),
    ColumnSpec("size_bytes", "int64", "bytes", "size"),
    ColumnSpec("color", "int64", "", "memory space"),
    ColumnSpec("parameter_number", "int64", "", "number of the entry parameter that it holds"),
    ColumnSpec("is_thread_local", "bool", "", "used within a called computation only"),
    ColumnSpec("is_entry_parameter", "bool", "", "holds a parameter of the entry computation"),
    ColumnSpec("is_live_out", "bool", "", "may hold a part of the result"),
    ColumnSpec("is_tuple", "bool", "", "a table of pointers"),
    ColumnSpec("is_constant", "bool", "", "holds a constant"),
    ColumnSpec("is_aliased_with_output", "bool", "", "a parameter whose memory the result takes over"),
)
ASSIGNED = (
    ColumnSpec("allocation", "int32", "allocation", "row of the allocation"),
    ColumnSpec("buffer", "int32", "logical buffer", "row of the logical buffer, -1 if not in the file"),
    ColumnSpec("offset", "int64", "bytes", "its offset in the allocation"),
    ColumnSpec("size_bytes", "int64", "bytes", "its size in the allocation"),
)
HEAP_TRACES = (
    ColumnSpec("allocation_index", "int64", "id", "index of the allocation whose packing it simulates"),
    ColumnSpec("first_event", "int32", "event", "its first event"),
    ColumnSpec("n_events", "int32", "count", "number of its events"),
    ColumnSpec("is_whole_module", "bool", "", "whether it covers the whole module"),
)
HEAP_EVENTS = (
    ColumnSpec("kind", "int64", "", "0 allocate, 1 free, 2 share with another buffer"),
    ColumnSpec("buffer", "int32", "logical buffer", "row of the logical buffer, -1 if not in the file"),
    ColumnSpec(
        "instruction",
        "int32",
        "instruction",
        "the instruction at which it happens, -1 if not in the file",
    ),
    ColumnSpec("shared_with", "int32", "logical buffer", "the buffer whose memory is shared, -1 if none"),
    ColumnSpec("buffer_id", "int64", "id", "the logical buffer's id in the file"),
    ColumnSpec("shared_with_id", "int64", "id", "id in the file of the buffer whose memory is shared"),
)


@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """The tables above. `shape_index` locates a buffer within a tuple.

    `assigned` is sorted by allocation. `n_damaged` counts references to rows that the file lacks and negative
    sizes (read as 0).
    """

    logical_buffers: Table
    shape_index: tuple[tuple[int, ...], ...]
    allocations: Table
    assigned: Table
    heap_traces: Table
    heap_events: Table
    n_damaged: int

    @cached_property
    def assigned_offsets(self) -> npt.NDArray[np.int64]:
        """Rows of `assigned` of allocation i are assigned_offsets[i] … assigned_offsets[i + 1]."""
        counts = np.bincount(self.assigned["allocation"], minlength=len(self.allocations))
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def events_of(self, heap_trace: int) -> slice:
        """Rows of `heap_events` of one heap trace."""
        first = int(self.heap_traces["first_event"][heap_trace])
        return slice(first, first + int(self.heap_traces["n_events"][heap_trace]))
