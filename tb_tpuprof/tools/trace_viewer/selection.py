"""The parameters of a question about a query → the matching events of each host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns, spans
from tb_tpuprof.analysis.query.grammar import Query, parse
from tb_tpuprof.analysis.query.matching import HostTimeline, Selection, select
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest import arguments
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.spec import Number
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer.chosen_events import among, events_by_host

Events = npt.NDArray[np.integer]
Int64s = npt.NDArray[np.int64]
QUERY = Param("query", "Query", "text", "", "Which events, such as dur>1ms name~^dot; empty: all")
OF = Param(
    "of",
    "Of",
    "choice",
    "auto",
    "Tracks to count: recorded, derived, or auto: derived ones only if no recorded event matches",
    choices=("auto", "recorded", "derived"),
)
DEPTHS = (
    Param("depth_from", "From depth", "int", 0, "The outermost depth to count", maximum=spans.MOST_DEPTH),
    Param(
        "depth_to",
        "To depth",
        "int",
        spans.MOST_DEPTH,
        "The innermost depth to count",
        maximum=spans.MOST_DEPTH,
    ),
)


@dataclass(frozen=True)
class HostMatches:
    """A host's matches. `recorded` and `derived` (ascending) are those within the window; the answer is about
    one of the two kinds.
    """

    view: HostView
    timeline: HostTimeline
    selection: Selection
    window: spans.Window | None
    recorded: Events
    derived: Events
    is_derived: bool = False

    @property
    def events(self) -> Events:
        """The matches that the answer is about."""
        return self.derived if self.is_derived else self.recorded

    def only(self, chosen_rows: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> HostMatches:
        """Some of the matches that the answer is about: a mask, or ascending rows."""
        chosen = self.events[chosen_rows]
        return replace(self, derived=chosen) if self.is_derived else replace(self, recorded=chosen)

    def starts(self, events: Events) -> Int64s:
        """Starts in the view's time."""
        return columns.starts(self.timeline.drawn, events) + self.view.offset_ps


@dataclass(frozen=True)
class Matches:
    """The matches of all hosts. Numbers are of the window; `is_derived`: `events` are those of derived
    tracks.
    """

    hosts: tuple[HostMatches, ...]
    n_recorded: int
    n_derived: int
    is_derived: bool
    start_ps: int
    end_ps: int

    @property
    def n(self) -> int:
        """Number of matches that the answer is about."""
        return self.n_derived if self.is_derived else self.n_recorded

    @property
    def counts(self) -> dict[str, Number | float | int | bool | None]:
        """The numbers that every answer gives."""
        return {"n_recorded": self.n_recorded, "n_derived": self.n_derived, "is_derived": self.is_derived}


def timeline_of(host: HostView) -> HostTimeline:
    """A host of a view as analyses see it."""
    return HostTimeline(host.host, host.offset_ps, host.trace, host.drawn, host.tracks, arguments)


def query_of(params: Params) -> Query:
    """The requested query. Raises BadQuery."""
    return parse(str(params.get("query", "")))


def matches_of(view: View, params: Params, query: Query) -> Matches:
    """The matches in the requested window and tracks, of the chosen events if the parameters name any.
    Raises BadQuery, BadParameter, EventNotFound.
    """
    start_ps, end_ps = int(params.get("start_ps", 0)), int(params.get("end_ps", view.duration_ps))
    if end_ps <= start_ps and view.duration_ps > 0:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    low, high = int(params.get("depth_from", 0)), int(params.get("depth_to", spans.MOST_DEPTH))
    if high < low:
        raise BadParameter("depth_to", high, f"at least depth_from, which is {low}")
    has_window = "start_ps" in params or "end_ps" in params or low > 0 or high < spans.MOST_DEPTH
    chosen_ids = str(params.get("tracks", ""))
    named = events_by_host(view, str(params["events"])) if "events" in params else []
    chosen_events = {host.index: events for host, events in named}
    hosts = []
    for host, tracks in view.chosen_tracks(chosen_ids):
        timeline = timeline_of(host)
        lines = frozenset(track.line for track in tracks) if chosen_ids else None
        selection = select(timeline, query, lines)
        if host.index in chosen_events:
            selection = _chosen(selection, chosen_events[host.index])
        own = spans.Window(start_ps - host.offset_ps, end_ps - host.offset_ps, low, high)
        window = own if has_window else None
        inside = [
            spans.overlapping(host.drawn, events, window)
            for events in (selection.recorded, selection.derived)
        ]
        hosts.append(HostMatches(host, timeline, selection, window, inside[0], inside[1]))
    n_recorded, n_derived = sum(len(one.recorded) for one in hosts), sum(len(one.derived) for one in hosts)
    of = str(params.get("of", "auto"))
    has_recorded = any(len(one.selection.recorded) for one in hosts)
    has_derived = any(len(one.selection.derived) for one in hosts)
    is_derived = of == "derived" or (of == "auto" and not has_recorded and has_derived)
    return Matches(
        tuple(replace(one, is_derived=is_derived) for one in hosts),
        n_recorded,
        n_derived,
        is_derived,
        start_ps,
        end_ps,
    )


def _chosen(selection: Selection, events: Int64s) -> Selection:
    return Selection(among(selection.recorded, events), among(selection.derived, events))


def first_rows(
    key: Int64s, n: int, ties: Callable[[npt.NDArray[np.intp]], Int64s] | None = None
) -> npt.NDArray[np.intp]:
    """Rows of the n smallest keys, ascending; of equal ones those with the smallest `ties` (a function of
    rows), else the first.
    """
    if n >= len(key):
        return np.arange(len(key))
    limit = np.partition(key, n - 1)[n - 1]
    below, equal = np.flatnonzero(key < limit), np.flatnonzero(key == limit)
    n_equal = n - len(below)
    if ties is not None:
        equal = equal[first_rows(ties(equal), n_equal)]
    return np.sort(np.concatenate((below, equal[:n_equal])))
