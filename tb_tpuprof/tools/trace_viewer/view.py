"""trace_viewer: a window of the timeline as boxes that a screen can show, or the answer to a question about
its events.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.payload import Payload, Scalar, Table
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.trace_hosts import View, hosts_table, open_view
from tb_tpuprof.tools.trace_viewer.details import event_answer, neighbour_answer
from tb_tpuprof.tools.trace_viewer.flows import flows_table
from tb_tpuprof.tools.trace_viewer.questions import minimap_answer, search_answer, totals_answer
from tb_tpuprof.tools.trace_viewer.window import (
    Window,
    boxes_tables,
    counters_table,
    steps_table,
    tracks_table,
)

Answer = tuple[dict[str, Table], dict[str, Scalar]]


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The window's boxes, or what `event`, `neighbour`, `search`, `totals` or `minimap` asks for."""
    opened = open_view(session, hosts)
    tables, scalars = _answer(opened, params)
    shown = tuple(host.host for host in opened.hosts)
    return Payload(TOOL.name, session.run, shown, tables, scalars, diagnostics=opened.diagnostics())


def _answer(opened: View, params: Params) -> Answer:
    if "search" in params:
        return search_answer(opened, params)
    if "neighbour" in params:
        return neighbour_answer(opened, params)
    if "event" in params:
        return event_answer(opened, int(params["event"]))
    window = window_of(opened, params)
    if params.get("minimap"):
        return minimap_answer(opened, window.width_px)
    if params.get("totals"):
        return totals_answer(opened, window, params)
    return _window_answer(opened, window, params)


def window_of(opened: View, params: Params) -> Window:
    """The stretch that is asked for. Raises BadParameter where it is empty."""
    end = opened.duration_ps
    start_ps = int(params.get("start_ps", 0))
    end_ps = int(params.get("end_ps", end))
    if end_ps <= start_ps and end > 0:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    return Window(start_ps, end_ps, int(params["width_px"]))


def _window_answer(opened: View, window: Window, params: Params) -> Answer:
    chosen = opened.chosen_tracks(str(params.get("tracks", "")))
    drawn = boxes_tables(chosen, window)
    n_merged = next(column for column in drawn["boxes"].columns if column.name == "n_merged").values
    scalars = {
        "trace_duration_ps": Scalar(opened.duration_ps, "ps", "Trace"),
        "start_ps": Scalar(window.start_ps, "ps", "Window's start"),
        "end_ps": Scalar(window.end_ps, "ps", "Window's end"),
        "n_events": Scalar(
            sum(host.trace.n_events for host in opened.hosts),
            "count",
            "Events in the trace",
            "derived ones not counted",
        ),
        "n_events_in_window": Scalar(int(n_merged.sum(dtype=np.int64)), "count", "Events in the window"),
    }
    tables = {
        "tracks": tracks_table(opened),
        **drawn,
        "counters": counters_table(chosen, window),
        "steps": steps_table(opened, window),
        "hosts": hosts_table(opened),
    }
    if params.get("flows"):
        tables["flows"], n_flows = flows_table(chosen, window)
        scalars["n_flows"] = Scalar(n_flows, "count", "Arrows in the window")
    return tables, scalars


TOOL = Tool(
    name="trace_viewer",
    title="Trace viewer",
    group="Time",
    summary="Every event of every host on its thread or device line",
    view=view,
    params=(
        Param("start_ps", "Start", "float", None, "Start of the window; absent: the trace's start"),
        Param("end_ps", "End", "float", None, "End of the window; absent: the trace's end"),
        Param(
            "width_px", "Width", "int", 2000, "Pixels that the window is drawn on", minimum=1, maximum=20_000
        ),
        Param("tracks", "Tracks", "text", None, "Track ids separated by commas; absent: all"),
        Param("event", "Event", "int", None, "Return details of this event instead of the window"),
        Param(
            "neighbour",
            "Neighbour",
            "choice",
            None,
            "With `event`: the event before or after it",
            choices=("next", "previous"),
        ),
        Param(
            "search", "Search", "text", None, "Return events whose name contains this text (case-insensitive)"
        ),
        Param("search_args", "Search arguments", "bool", False, "Search the texts among the arguments too"),
        Param("after_event", "After", "int", None, "With `search`: only matches after this event"),
        Param(
            "before_event",
            "Before",
            "int",
            None,
            "With `search`: only matches before this event, the last ones",
        ),
        Param("limit", "Limit", "int", 1000, "With `search`: matches to answer", minimum=1, maximum=100_000),
        Param("totals", "Totals", "bool", False, "Answer the time by name in the window and tracks"),
        Param(
            "depth_from",
            "From depth",
            "int",
            0,
            "With `totals`: the outermost depth that counts",
            maximum=65_535,
        ),
        Param(
            "depth_to",
            "To depth",
            "int",
            65_535,
            "With `totals`: the innermost depth that counts",
            maximum=65_535,
        ),
        Param(
            "minimap", "Minimap", "bool", False, "Return utilization over the whole trace, for the minimap"
        ),
        Param("flows", "Flows", "bool", False, "With a window: also the arrows between its events"),
        Param(
            "args",
            "Arguments",
            "bool",
            True,
            "In a file of Chrome trace JSON (format trace): the arguments of the events too",
        ),
    ),
)
