"""trace_viewer: a window of the timeline as boxes for a screen, and questions about its events."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.timeline.steps import step_marks
from tb_tpuprof.tools.base import File, Param, Params, Question
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.trace_hosts import View
from tb_tpuprof.tools.trace_viewer import tables
from tb_tpuprof.tools.trace_viewer.chosen_events import QUESTION as PLACES_QUESTION
from tb_tpuprof.tools.trace_viewer.dependencies import QUESTION as DEPENDENCIES_QUESTION
from tb_tpuprof.tools.trace_viewer.details import event_answer, neighbour_answer
from tb_tpuprof.tools.trace_viewer.export import trace_file
from tb_tpuprof.tools.trace_viewer.flows import flows_table
from tb_tpuprof.tools.trace_viewer.mark_questions import EVENTS_FILE, EXPORT_DEPTHS, MARK_QUESTIONS
from tb_tpuprof.tools.trace_viewer.query_questions import QUERY_QUESTIONS
from tb_tpuprof.tools.trace_viewer.question import RANGE, WIDTH, answering
from tb_tpuprof.tools.trace_viewer.questions import minimap_answer
from tb_tpuprof.tools.trace_viewer.window import (
    active_answer,
    boxes_tables,
    counters_table,
    hosts_table,
    steps_table,
    tracks_table,
    window_of,
)

Answer = tuple[dict[str, Table], dict[str, Scalar]]


def _window_answer(opened: View, params: Params) -> Answer:
    window = window_of(opened, params)
    chosen = opened.chosen_tracks(str(params.get("tracks", "")))
    drawn = boxes_tables(chosen, window)
    n_merged = next(column for column in drawn["boxes"].columns if column.name == "n_merged").values
    values = {
        "trace_duration_ps": opened.duration_ps,
        "start_ps": window.start_ps,
        "end_ps": window.end_ps,
        "n_events": sum(host.trace.n_events for host in opened.hosts),
        "n_events_in_window": int(n_merged.sum(dtype=np.int64)),
        "n_marked_steps": max(len(step_marks(host.trace).number) for host in opened.hosts),
    }
    if opened.focus_ps:
        values["focus_start_ps"], values["focus_end_ps"] = opened.focus_ps
    answer = {
        "tracks": tracks_table(opened),
        **drawn,
        "counters": counters_table(chosen, window),
        "steps": steps_table(opened, window),
        "hosts": hosts_table(opened),
    }
    if params.get("flows"):
        answer["flows"], values["n_flows"] = flows_table(chosen, window)
    return answer, fill_scalars(tables.WINDOW_SCALARS, values)


_EVENT = Param("event", "Event", "int", None, "Id of the event", is_required=True)

TOOL = Tool(
    name="trace_viewer",
    title="Trace viewer",
    group="Time",
    summary="Every event of every host on its thread or device line",
    view=answering(_window_answer),
    params=(*RANGE, WIDTH, Param("flows", "Flows", "bool", False, "Include the arrows between events")),
    tables=tables.WINDOW_TABLES,
    scalars=tables.WINDOW_SCALARS,
    tiles=(),
    questions=(
        Question(
            "event",
            "Details of one event",
            answering(lambda opened, params: event_answer(opened, int(params["event"]))),
            (_EVENT,),
            tables.EVENT_TABLES,
            tables.EVENT_SCALARS,
        ),
        Question(
            "neighbour",
            "The event before or after another on its track, or the first within it",
            answering(neighbour_answer),
            (
                _EVENT,
                Param(
                    "direction",
                    "Direction",
                    "choice",
                    "next",
                    "In time; within: the first event directly below it",
                    choices=("next", "previous", "within"),
                ),
            ),
            (tables.NEIGHBOUR,),
        ),
        *QUERY_QUESTIONS,
        Question(
            "active",
            "The tracks that have events in a window",
            answering(active_answer),
            RANGE,
            (tables.ACTIVE,),
        ),
        Question(
            "minimap",
            "Utilization over the whole trace",
            answering(minimap_answer),
            (WIDTH,),
            (tables.DENSITY,),
            tables.MINIMAP_SCALARS,
        ),
        *MARK_QUESTIONS,
        DEPENDENCIES_QUESTION,
        PLACES_QUESTION,
    ),
    files=(
        File(
            "trace",
            "trace.json.gz",
            "application/gzip",
            trace_file,
            (
                *RANGE,
                *EXPORT_DEPTHS,
                Param("args", "Arguments", "bool", True, "Include the arguments of events"),
            ),
            "The window as Chrome trace JSON, which Perfetto and chrome://tracing open",
        ),
        EVENTS_FILE,
    ),
)
