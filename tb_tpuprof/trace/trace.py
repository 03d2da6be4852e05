"""The frozen trace of one host: tables, strings, and access to the file for what was not decoded."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import last_end, repeated
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.heap import Heap
from tb_tpuprof.trace.held import Sizes
from tb_tpuprof.trace.hlo_programs import Programs, Watcher
from tb_tpuprof.trace.memo import Memo
from tb_tpuprof.trace.stats import StatTable
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.table import Table, table_from_rows

_WATCHER = "(watcher)"
_TEXTS = ("all", "_ids", "_index", "sizes")
_DERIVED = (
    "event_line",
    "line_offsets",
    "kind_of_line",
    "plane_names",
    "line_names",
    "event_names",
    "_lines_by_plane",
)


class TraceSource(Protocol):
    """The trace's file, for parts that are decoded on demand."""

    def read(self, position: int, size: int) -> bytes:
        """`size` bytes from `position`. Raises StorageError if the file is gone or has changed."""
        ...

    def block(self, position: int, size: int) -> npt.NDArray[np.uint8]:
        """Like `read`, but returns an array, which avoids a copy of large blocks."""
        ...

    def event_stats(self, trace: Trace, event: int) -> list[tuple[str, str | int | float]]:
        """All stats of an event as (name, value), in the file's order; bytes are replaced by a note of their
        size.
        """
        ...

    def programs(self, trace: Trace) -> Programs:
        """The compiled programs of the host; the HLO of each is read on first use."""
        ...


@dataclass(frozen=True)
class TraceInfo:
    """Facts about a trace as a whole. `start_ns` is the file's clock at the trace's time 0.

    `errors` and `warnings` are the profiler's own; `notes` name the parts of the file that cannot be drawn.
    `is_outline`: lines and events were not read.
    """

    host: str
    path: str
    size_bytes: int
    start_ns: int
    hostnames: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    n_damaged: int = 0
    damage: str = ""
    notes: tuple[str, ...] = ()
    is_outline: bool = False


@dataclass(frozen=True)
class Trace:
    """One host's trace. Tables follow `trace/schema.py`; `event_stats` holds HOT_STATS only, `metadata_stats`
    and `plane_stats` hold all stats. `heap`: of a snapshot of memory, which has nothing else. `memo`: what
    analyses have made of this trace.
    """

    info: TraceInfo
    strings: Strings
    planes: Table
    lines: Table
    events: Table
    metadata: Table
    aggregates: Table
    stat_names: Table
    event_stats: StatTable
    metadata_stats: StatTable
    plane_stats: StatTable
    source: TraceSource
    line_kinds: Table = field(default_factory=lambda: table_from_rows(schema.LINE_KINDS, ()))
    counters: Table = field(default_factory=lambda: table_from_rows(schema.COUNTERS, ()))
    samples: Table = field(default_factory=lambda: table_from_rows(schema.SAMPLES, ()))
    flows: Table = field(default_factory=lambda: table_from_rows(schema.FLOWS, ()))
    heap: Heap | None = None
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)
    _sizes: Sizes = field(default_factory=Sizes, init=False, repr=False, compare=False)

    COUNTED_APART: ClassVar[bool] = True

    @property
    def n_events(self) -> int:
        """Number of events that have a start time."""
        return self.events.n_rows

    @property
    def size_bytes(self) -> int:
        """Memory of the tables; memory-mapped ones count in full."""
        columns = sum(table.size_bytes for table in self._tables)
        stats = sum(table.size_bytes for table in self._stat_tables)
        return columns + stats + self.strings.blob.nbytes + self.strings.offsets.nbytes

    @property
    def kept_bytes(self) -> int:
        """Memory of the tables and, about, of what was computed from them; without that of the programs."""
        derived: dict[Hashable, object] = dict(self.memo.results)
        derived |= {name: self.__dict__.get(name) for name in _DERIVED}
        derived |= {name: self.strings.__dict__.get(name) for name in _TEXTS}
        derived |= {i: table.__dict__.get("table") for i, table in enumerate(self._stat_tables)}
        counted = [column for table in self._tables for column in table.columns.values()]
        counted += [self.strings.blob, self.strings.offsets]
        heap_bytes = self.heap.kept_bytes if self.heap else 0
        return self.size_bytes + heap_bytes + self._sizes.total(derived, counted)

    @property
    def _tables(self) -> tuple[Table, ...]:
        main = (self.planes, self.lines, self.events, self.metadata, self.aggregates, self.stat_names)
        return (*main, self.line_kinds, self.counters, self.samples, self.flows)

    @property
    def _stat_tables(self) -> tuple[StatTable, ...]:
        return self.event_stats, self.metadata_stats, self.plane_stats

    @cached_property
    def event_line(self) -> npt.NDArray[np.int32]:
        """The line of each event."""
        line: npt.NDArray[np.int32] = repeated(
            np.arange(len(self.lines), dtype=np.int32), self.lines["n_events"]
        )
        return line

    def lines_at(self, events: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
        """The line of each of the given events."""
        return np.searchsorted(self.line_offsets, events, side="right") - 1

    @cached_property
    def line_offsets(self) -> npt.NDArray[np.int64]:
        """Events of line i are line_offsets[i] … line_offsets[i + 1]; one longer than `lines`."""
        return np.append(self.lines["first_event"], self.n_events).astype(np.int64)

    @cached_property
    def programs(self) -> Programs:
        """The compiled programs whose HLO is in the trace, or in a file next to it."""
        programs = self.source.programs(self)
        programs.watch(self.__dict__.get(_WATCHER))
        return programs

    def watch_programs(self, watcher: Watcher) -> None:
        """Calls `watcher(programs, program)` whenever a program is used that is kept."""
        self.__dict__[_WATCHER] = watcher
        if "programs" in self.__dict__:
            self.programs.watch(watcher)

    def take_programs(self, programs: Programs) -> None:
        """Sets `programs`, such as those of another reading of the same file, with its opened modules, or
        fewer than the folder has.
        """
        self.__dict__["programs"] = programs

    def take_duration(self, duration_ps: int) -> None:
        """Sets `duration_ps`, which the decoder computed while it read the events."""
        self.__dict__["duration_ps"] = duration_ps

    @cached_property
    def kind_of_line(self) -> npt.NDArray[np.uint8]:
        """STACK, ASYNC or INSTANTS for each line (trace/schema.py)."""
        kinds = np.full(len(self.lines), schema.STACK, np.uint8)
        kinds[self.line_kinds["line"]] = self.line_kinds["kind"]
        return kinds

    @cached_property
    def duration_ps(self) -> int:
        """From the trace's start to the end of the last event or the last counter sample; events without
        duration count as 1 ps.
        """
        last_sample_end = int(self.samples["time_ps"].max(initial=-1)) + 1
        last_event_end: int = last_end(self.events["start_ps"], self.events["duration_ps"])
        return max(last_sample_end, last_event_end)

    @cached_property
    def plane_names(self) -> list[str]:
        """Name of each plane."""
        return [self.strings.get(i) for i in self.planes["name"].tolist()]

    @cached_property
    def line_names(self) -> list[str]:
        """Name of each line."""
        return [self.strings.get(i) for i in self.lines["name"].tolist()]

    @cached_property
    def _lines_by_plane(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """(lines in the order of their planes, the first one of each plane): pages request plane by plane."""
        plane = self.lines["plane"]
        order = np.argsort(plane, kind="stable")
        return order, np.searchsorted(plane[order], np.arange(len(self.planes) + 1))

    @cached_property
    def event_names(self) -> npt.NDArray[np.int32]:
        """For each row of `metadata`, the string that names its events: the display name, else the name."""
        display = self.metadata["display_name"]
        return np.where(display >= 0, display, self.metadata["name"]).astype(np.int32)

    def lines_of(self, planes: list[int]) -> npt.NDArray[np.intp]:
        """Rows of `lines` that belong to the given planes."""
        if len(planes) == 1:
            order, first = self._lines_by_plane
            return order[first[planes[0]] : first[planes[0] + 1]]
        # np.isin takes ten times as long for a handful of lines.
        is_wanted = np.zeros(len(self.planes) + 1, np.bool_)
        is_wanted[planes] = True
        return np.flatnonzero(is_wanted[self.lines["plane"]])
