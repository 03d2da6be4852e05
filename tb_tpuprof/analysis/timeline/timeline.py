"""Trace → what a timeline draws: the file's events and the derived ones as rows, with their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once, together
from tb_tpuprof.analysis.timeline.derived import Derived
from tb_tpuprof.analysis.timeline.layers import Layer, layer
from tb_tpuprof.analysis.timeline.lines import derived_lines
from tb_tpuprof.analysis.timeline.names import Names, families, first_more, names_of, step_labels
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class Timeline:
    """Two layers over one numbering: lines 0 … n_lines - 1 and events 0 … n_events - 1 of the file, then
    counters (lines only), then the derived ones.
    """

    file: Layer
    derived: Layer
    made: Derived
    names: Names

    @property
    def layers(self) -> tuple[Layer, Layer]:
        """The file's and the derived one."""
        return self.file, self.derived

    @property
    def n_events(self) -> int:
        """Events that can be drawn."""
        return self.derived.first_event + self.derived.n_events

    def layer_of(self, event: int) -> Layer:
        """The layer that an event is in."""
        return self.derived if event >= self.derived.first_event else self.file

    def line_of(self, event: int) -> int:
        """The line of an event."""
        found = self.layer_of(event)
        return found.first_line + int(found.line_of(np.array([event - found.first_event]))[0])

    def row_of(self, event: int) -> tuple[Layer, int, int]:
        """An event's layer, its row there, and its place in the row's order."""
        found = self.layer_of(event)
        local = event - found.first_event
        line = int(found.line_of(np.array([local]))[0])
        row = int(found.first_row[line]) + int(found.depth[local])
        first, last = int(found.row_offsets[row]), int(found.row_offsets[row + 1])
        return found, row, first + int(np.searchsorted(found.order[first:last], local))

    def file_event(self, event: int) -> int:
        """The event of the file that an event is, or begins with."""
        return (
            int(self.made.source[event - self.derived.first_event])
            if event >= self.derived.first_event
            else event
        )


@once
def file_layer(trace: Trace) -> Layer:
    """Rows of the file's own events."""
    return layer(trace.events["start_ps"], trace.events["duration_ps"], trace.line_offsets)


@once
def timeline(trace: Trace) -> Timeline:
    """Rows, depths and names of a trace; about 20 ns an event."""
    together(trace, derived_lines, file_layer, families, step_labels)
    made = derived_lines(trace)
    names = names_of(trace, made.texts)
    own = layer(
        made.start_ps,
        made.duration_ps,
        made.line_offsets,
        len(trace.lines) + len(trace.counters),
        trace.n_events,
    )
    return Timeline(file_layer(trace), own, made, names)


def event_names(
    trace: Trace, drawn: Timeline, layer: Layer, events: npt.NDArray[np.integer]
) -> npt.NDArray[np.int32]:
    """Names of events, which are counted within the layer."""
    if layer is drawn.derived:
        names: npt.NDArray[np.int32] = drawn.made.name[events] + np.int32(
            first_more(drawn.names, drawn.made.texts)
        )
        return names
    return drawn.names.of_events(events, trace.events["metadata"][events])
