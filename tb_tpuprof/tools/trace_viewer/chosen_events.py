"""Events chosen one by one, as a parameter → their rows on each host; and where they are on the timeline."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query import columns
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Param, Params, Question
from tb_tpuprof.tools.spec import TableSpec, number
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer.question import Answer, answering
from tb_tpuprof.tools.trace_viewer.questions import event_values
from tb_tpuprof.tools.trace_viewer.tables import EVENT_COLUMNS

Int64s = npt.NDArray[np.int64]
Rows = TypeVar("Rows", npt.NDArray[np.int32], npt.NDArray[np.int64])
MAX_EVENTS, MAX_DIGITS = 200, 19
_ALLOWED = f"1 to {MAX_EVENTS} event ids separated by commas"
EVENTS = Param("events", "Events", "text", None, f"Only these: {_ALLOWED}; absent: all")
PLACES = TableSpec(
    "places",
    "Events",
    (
        *EVENT_COLUMNS,
        number("depth", "Depth", "count", "Row of the event within its track; 0 is the outermost"),
    ),
    "A row for each requested event, by host and id",
)


def events_by_host(view: View, text: str) -> list[tuple[HostView, Int64s]]:
    """The events of a parameter such as `3,1099511627781`, ascending and each once, as numbered in the
    timeline of each host of the view. Raises BadParameter, EventNotFound.
    """
    parts = [part for part in text.split(",") if part]
    if not 0 < len(parts) <= MAX_EVENTS or not all(_is_id(part) for part in parts):
        raise BadParameter("events", text, _ALLOWED)
    rows: dict[int, set[int]] = {host.index: set() for host in view.hosts}
    for part in parts:
        host, event = view.host_of_event(int(part))
        rows[host.index].add(event)
    return [(host, np.array(sorted(rows[host.index]), np.int64)) for host in view.hosts]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def among(events: Rows, chosen: Int64s) -> Rows:
    """The elements of `events` that are among `chosen`; both ascend."""
    place = np.searchsorted(events, chosen)
    is_there = place < len(events)
    is_there[is_there] = events[place[is_there]] == chosen[is_there]
    return events[place[is_there]]


def places_answer(view: View, params: Params) -> Answer:
    """Track, row and times of the requested events. Raises BadParameter, EventNotFound."""
    parts = events_by_host(view, str(params["events"]))
    depths = [columns.depths(host.drawn, events) for host, events in parts]
    values = {**event_values(parts), "depth": np.concatenate([np.empty(0, np.int64), *depths])}
    return {"places": PLACES.fill(values)}, {}


QUESTION = Question(
    "places",
    "Where chosen events are on the timeline",
    answering(places_answer),
    (Param("events", "Events", "text", None, f"From {_ALLOWED}", is_required=True),),
    (PLACES,),
)
