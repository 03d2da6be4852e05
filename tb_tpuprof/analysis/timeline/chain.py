"""The chain that an event belongs to: what led to it, and what it led to, across threads and devices.

    python   ├─ train_step ──────────────┤       encloses
                 ├─ Execute ─┤                   encloses
    worker              ├─ launch ─┤             arrow
    stream                     ├─ kernel ─┤

Causes of an event are the events at whose arrows it begins, and the event around it on its thread, for
whatever started that one started this one too. Effects are the ends of arrows that begin at the event, or at
an event within it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.timeline.flows import flows
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.timeline import Timeline
from tb_tpuprof.analysis.timeline.totals import ancestors
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace

ENCLOSES = "encloses"


@dataclass(frozen=True)
class Link:
    """An event of a chain (row of the file's events), and the next one towards the chain's own event, which
    it leads to or comes from. `distance` counts links; `kind` is the arrow's, or ENCLOSES.
    """

    event: int
    towards: int
    kind: str
    distance: int


@dataclass(frozen=True)
class Chain:
    """Causes and effects of an event, nearest first. `is_cut`: there are more of them than were asked for."""

    causes: tuple[Link, ...]
    effects: tuple[Link, ...]
    is_cut: bool


_Near = Callable[[int], Iterator[Link]]


def chain(trace: Trace, drawn: Timeline, event: int, limit: int) -> Chain:
    """The chain of an event of the file, at most `limit` links each way. Distances count from the event that
    `near` is asked about.
    """
    arrows = flows(trace)
    sources = arrows.source[arrows.by_source]
    is_stack = trace.kind_of_line == schema.STACK

    def causes(of: int) -> Iterator[Link]:
        for arrow in arrows.into(of).tolist():
            yield Link(int(arrows.source[arrow]), of, arrows.kinds[arrows.kind[arrow]], 1)
        if is_stack[drawn.line_of(of)]:
            for around in ancestors(drawn, of, 1):
                yield Link(around, of, ENCLOSES, 1)

    def effects(of: int) -> Iterator[Link]:
        nests = bool(is_stack[drawn.line_of(of)])
        begun = arrows.by_source[_arrows_within(drawn.file, sources, of, nests)]
        _, first = np.unique(arrows.target[begun], return_index=True)
        # At most limit + 1 events are known by now, so that this many are enough to find `limit` new ones.
        for arrow in begun[np.sort(first)[: 2 * limit + 2]].tolist():
            source = int(arrows.source[arrow])
            if source != of:
                yield Link(source, of, ENCLOSES, 1)
            yield Link(
                int(arrows.target[arrow]), source, arrows.kinds[arrows.kind[arrow]], 1 + (source != of)
            )

    before, is_cut_before = _reached(event, causes, limit)
    after, is_cut_after = _reached(event, effects, limit)
    return Chain(before, after, is_cut_before or is_cut_after)


def _reached(event: int, near: _Near, limit: int) -> tuple[tuple[Link, ...], bool]:
    """All events in reach, nearest first, and whether `limit` left some out."""
    links: list[Link] = []
    distance_of = {event: 0}
    waiting = deque([event])
    while waiting:
        of = waiting.popleft()
        for link in near(of):
            if link.event in distance_of:
                continue
            if len(links) == limit:
                return tuple(links), True
            distance_of[link.event] = distance_of[of] + link.distance
            links.append(replace(link, distance=distance_of[link.event]))
            waiting.append(link.event)
    return tuple(links), False


def _arrows_within(
    layer: Layer, sources: npt.NDArray[np.int64], event: int, nests: bool
) -> npt.NDArray[np.intp]:
    """Positions in the sorted `sources` of arrows that begin at an event or, on a line whose events nest, at
    one within it.
    """
    last, end_ps = event + 1, int(layer.start_ps[event] + layer.duration_ps[event])
    if nests:
        line = int(layer.line_of(np.array([event]))[0])
        of_line = layer.start_ps[event : int(layer.line_offsets[line + 1])]
        last = max(last, event + int(np.searchsorted(of_line, end_ps)))
    first_arrow, last_arrow = np.searchsorted(sources, [event, last]).tolist()
    inner = sources[first_arrow:last_arrow]
    is_within = layer.start_ps[inner] + layer.duration_ps[inner] <= end_ps
    positions: npt.NDArray[np.intp] = first_arrow + np.flatnonzero(is_within)
    return positions
