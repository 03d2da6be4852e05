"""Trace → the contents of a timeline: the file's events and the derived events as rows, with their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import compute_ahead, once
from tb_tpuprof.analysis.timeline.derived import Derived
from tb_tpuprof.analysis.timeline.layers import Layer, layer
from tb_tpuprof.analysis.timeline.lines import derived_lines
from tb_tpuprof.analysis.timeline.names import Names, families, first_more, names_of, step_labels
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class Timeline:
    """Two layers with continuous numbering: lines 0 … n_lines - 1 and events 0 … n_events - 1 of the file,
    then counters (lines only), then the derived lines and events.
    """

    file: Layer
    derived: Layer
    derived_events: Derived
    names: Names

    @property
    def layers(self) -> tuple[Layer, Layer]:
        """The file's layer and the derived one."""
        return self.file, self.derived

    @property
    def n_events(self) -> int:
        """Number of events in both layers."""
        return self.derived.first_event + self.derived.n_events

    def layer_of(self, event: int) -> Layer:
        """The layer of an event."""
        return self.derived if event >= self.derived.first_event else self.file

    def line_of(self, event: int) -> int:
        """The line of an event."""
        layer = self.layer_of(event)
        return layer.first_line + int(layer.line_of(np.array([event - layer.first_event]))[0])

    def row_of(self, event: int) -> tuple[Layer, int, int]:
        """An event's layer, its row there, and its position in the row's order."""
        layer = self.layer_of(event)
        local = event - layer.first_event
        line = int(layer.line_of(np.array([local]))[0])
        row = int(layer.first_row[line]) + int(layer.depth[local])
        first, last = int(layer.row_offsets[row]), int(layer.row_offsets[row + 1])
        return layer, row, first + int(np.searchsorted(layer.order[first:last], local))

    def file_event(self, event: int) -> int:
        """The file's event: `event` itself, or the first event of a derived one."""
        return (
            int(self.derived_events.source[event - self.derived.first_event])
            if event >= self.derived.first_event
            else event
        )


@once
def file_layer(trace: Trace) -> Layer:
    """Rows of the file's own events."""
    return layer(trace.events["start_ps"], trace.events["duration_ps"], trace.line_offsets)


@once
def timeline(trace: Trace) -> Timeline:
    """Rows, depths and names of a trace; about 20 ns per event."""
    compute_ahead(trace, derived_lines, file_layer, families, step_labels)
    derived_events = derived_lines(trace)
    names = names_of(trace, derived_events.texts)
    derived_layer = layer(
        derived_events.start_ps,
        derived_events.duration_ps,
        derived_events.line_offsets,
        len(trace.lines) + len(trace.counters),
        trace.n_events,
    )
    return Timeline(file_layer(trace), derived_layer, derived_events, names)


def event_names(
    trace: Trace, drawn: Timeline, layer: Layer, events: npt.NDArray[np.integer]
) -> npt.NDArray[np.int32]:
    """Names of events, numbered within the layer."""
    if layer is drawn.derived:
        names: npt.NDArray[np.int32] = drawn.derived_events.name[events] + np.int32(
            first_more(drawn.names, drawn.derived_events.texts)
        )
        return names
    return drawn.names.of_events(events, trace.events["metadata"][events])


def starts_of(drawn: Timeline, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Starts in ps of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    start = np.empty(len(events), np.int64)
    start[~is_derived] = drawn.file.start_ps[events[~is_derived]]
    start[is_derived] = drawn.derived.start_ps[events[is_derived] - drawn.derived.first_event]
    return start


def durations_of(drawn: Timeline, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Durations in ps of events of either layer."""
    is_derived = events >= drawn.derived.first_event
    duration = np.empty(len(events), np.int64)
    duration[~is_derived] = drawn.file.duration_ps[events[~is_derived]]
    duration[is_derived] = drawn.derived.duration_ps[events[is_derived] - drawn.derived.first_event]
    return duration
