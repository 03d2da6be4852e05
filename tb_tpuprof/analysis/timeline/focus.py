"""Trace → the part of it that holds the events, where a few stray ones are far from all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import file_layer
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
_MIN_EVENTS = 10  # of fewer, none can be called stray
_MAX_STRAY_FRACTION = 0.01
_MAX_STRAYS = 1000
_EMPTY_FRACTION = 0.9  # of the trace, between the strays and the others


@dataclass(frozen=True)
class Focus:
    """From the first to the last event that is not stray, in ps, and the strays before and after."""

    start_ps: int
    end_ps: int
    n_before: int
    n_after: int


@once
def focus(trace: Trace) -> Focus | None:
    """Where the events are; None where the whole trace shows it.

         ▏                                          █▌██▐█     n_before = 1
         0        at least 90% of the trace         start … end

    Stray are up to 1% of the events (one of fewer than 200, at most 1,000) if nothing runs during at least
    90% of the trace between them and the others.
    """
    layer = file_layer(trace)
    if layer.n_events < _MIN_EVENTS:
        return None
    n_strays = min(max(1, int(layer.n_events * _MAX_STRAY_FRACTION)), _MAX_STRAYS)
    least_gap = _EMPTY_FRACTION * layer.end_ps
    first, last = _outermost(layer, n_strays + 1)
    gap, gap_after = np.diff(first), np.diff(last)
    if gap.max() >= least_gap:
        n_before = int(gap.argmax()) + 1
        end_ps = _last_end(layer, int(first[n_before]))
        if end_ps is not None and first[n_before] - end_ps >= least_gap:
            return Focus(int(first[n_before]), layer.end_ps, n_before, 0)
    if gap_after.max() >= least_gap:
        n_kept = int(gap_after.argmax()) + 1
        end_ps = _last_end(layer, int(last[n_kept]))
        if end_ps is not None and last[n_kept] - end_ps >= least_gap:
            return Focus(int(first[0]), end_ps, 0, len(last) - n_kept)
    return None


def _outermost(layer: Layer, n: int) -> tuple[Int64s, Int64s]:
    """(the first n, the last n) starts of all events, ascending: from those of each line."""
    bounds = zip(layer.line_offsets[:-1].tolist(), layer.line_offsets[1:].tolist(), strict=True)
    spans = [(a, b) for a, b in bounds if a < b]
    first = np.concatenate([layer.start_ps[a : min(b, a + n)] for a, b in spans])
    last = np.concatenate([layer.start_ps[max(a, b - n) : b] for a, b in spans])
    return np.sort(first)[:n], np.sort(last)[-n:]


def _last_end(layer: Layer, time_ps: int) -> int | None:
    """The last end of the events that start before a time, None if one of them ends after it."""
    rows = np.arange(len(layer.row_line), dtype=np.int32)
    places = layer.rows.first_ending_after(rows, time_ps)
    is_inside = places < layer.row_offsets[1:]
    if (layer.start_ps[layer.order[places[is_inside]]] < time_ps).any():
        return None
    ended = layer.order[places[places > layer.row_offsets[:-1]] - 1]
    return int((layer.start_ps[ended] + np.maximum(layer.duration_ps[ended], 1)).max(initial=0))
