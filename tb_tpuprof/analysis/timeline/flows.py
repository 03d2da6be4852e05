"""Arrows between events, from the event that scheduled, launched or fed another. One arrow per consumer, from
the latest producer before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.flow_points import flow_arrows
from tb_tpuprof.analysis.events.links import Ties, context_name, ties
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Flows:
    """Arrows, sorted by target event. `kind` is a code into `kinds`; `by_source` sorts the arrows by source
    event.
    """

    source: Int64s
    target: Int64s
    kind: npt.NDArray[np.int32]
    kinds: tuple[str, ...]
    by_source: npt.NDArray[np.intp]

    def out_of(self, event: int) -> npt.NDArray[np.intp]:
        """Arrows that begin at an event."""
        first, last = np.searchsorted(self.source[self.by_source], [event, event + 1])
        return self.by_source[first:last]

    def into(self, event: int) -> npt.NDArray[np.intp]:
        """Arrows that end at an event."""
        first, last = np.searchsorted(self.target, [event, event + 1])
        return np.arange(first, last)


@once
def flows(trace: Trace) -> Flows:
    """Arrows of a trace: those that its file draws or states in stats `flow`, then those of context ids,
    correlation ids and launches (see `analysis.events.flow_points`, `analysis.events.links`). Each pair of
    events counts once, under its first kind.
    """
    tie, stated = ties(trace), flow_arrows(trace)
    source, target, hub = _latest_producers(trace, tie)
    drawn = [trace.strings.get(kind) or "flow" for kind in trace.flows["kind"].tolist()]
    categories = {category: context_name(category) for category in np.unique(stated.category).tolist()}
    kinds = tuple(dict.fromkeys([*drawn, *categories.values(), *(name for _, name in tie.kinds)]))
    code = {name: i for i, name in enumerate(kinds)}
    firsts, of_part = (
        np.array([first for first, _ in tie.kinds], np.int64),
        np.array([code[name] for _, name in tie.kinds], np.int32),
    )
    tied = of_part[np.searchsorted(firsts, hub, side="right") - 1] if len(firsts) else np.empty(0, np.int32)
    source = np.concatenate((trace.flows["from_event"].astype(np.int64), stated.source, source))
    target = np.concatenate((trace.flows["to_event"].astype(np.int64), stated.target, target))
    stated_kind = [code[categories[category]] for category in stated.category.tolist()]
    kind = np.concatenate((np.array([code[name] for name in drawn] + stated_kind, np.int32), tied))
    order = np.lexsort((kind, source, target))
    source, target, kind = source[order], target[order], kind[order]
    keep = np.append(True, (source[1:] != source[:-1]) | (target[1:] != target[:-1]))[: len(source)] & (
        source != target
    )
    source, target, kind = source[keep], target[keep], kind[keep]
    return Flows(source, target, kind, kinds, np.argsort(source, kind="stable"))


def arrow_ends(trace: Trace, arrows: Flows, rows: npt.NDArray[np.intp]) -> tuple[Int64s, Int64s]:
    """The times in ps of the arrows' ends: the consumer's start, and the producer at that time or at its end,
    whichever is earlier.
    """
    start, duration = trace.events["start_ps"], trace.events["duration_ps"]
    source, target = arrows.source[rows], arrows.target[rows]
    to_ps = start[target]
    from_ps = np.clip(to_ps, start[source], start[source] + duration[source])
    return from_ps, to_ps


def _latest_producers(trace: Trace, tie: Ties) -> tuple[Int64s, Int64s, Int64s]:
    """For each consumer, the producer of its hub with the latest start before it, or else the hub's first
    producer: (producer, consumer, hub).
    """
    start = trace.events["start_ps"]
    event = np.concatenate((tie.producer, tie.consumer)).astype(np.int64)
    hub = np.concatenate((tie.producer_hub, tie.consumer_hub)).astype(np.int64)
    is_consumer = np.zeros(len(event), np.bool_)
    is_consumer[len(tie.producer) :] = True
    order = np.lexsort((is_consumer, start[event], hub))
    event, hub, is_consumer = event[order], hub[order], is_consumer[order]
    position = np.arange(len(event))
    latest = np.maximum.accumulate(np.where(is_consumer, -1, position))
    first = np.minimum.accumulate(np.where(is_consumer, len(event), position)[::-1])[::-1]
    producer = np.where((latest >= 0) & (hub[latest] == hub), latest, first)[is_consumer]
    has_producer = producer < len(event)
    has_producer[has_producer] = hub[producer[has_producer]] == hub[is_consumer][has_producer]
    return event[producer[has_producer]], event[is_consumer][has_producer], hub[is_consumer][has_producer]
