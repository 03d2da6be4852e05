"""Declarations of the questions about queries."""

from __future__ import annotations

from dataclasses import replace

from tb_tpuprof.tools.base import Param, Question
from tb_tpuprof.tools.trace_viewer import query_tables as tables
from tb_tpuprof.tools.trace_viewer.chosen_events import EVENTS
from tb_tpuprof.tools.trace_viewer.query import (
    SORTS,
    fields_answer,
    groups_answer,
    hits_answer,
    slices_answer,
    utilization_answer,
)
from tb_tpuprof.tools.trace_viewer.question import RANGE, WIDTH, answering
from tb_tpuprof.tools.trace_viewer.selection import DEPTHS, OF, QUERY

MAX_ROWS = 100_000
_LIMIT = Param("limit", "Limit", "int", 1000, "Maximum number of rows", minimum=1, maximum=MAX_ROWS)
_BY = Param(
    "by", "By", "text", "name", "name, track, thread, section, kind, host, step, category, module or arg.NAME"
)
_GROUP = (
    replace(_BY, default=None, help="Only the events of one `group` by this key, as `groups` takes it"),
    Param("group", "Group", "text", "", "The group, as `groups` names it; empty: the events without a value"),
)
_SELECTION = (QUERY, *RANGE, *DEPTHS, EVENTS, OF)

QUERY_QUESTIONS = (
    Question(
        "slices",
        "Events that match a query",
        answering(slices_answer),
        (
            *_SELECTION,
            Param("sort", "Sort by", "choice", "start", "Order of the rows", choices=SORTS),
            Param("descending", "Descending", "bool", False, "Largest, or last, first"),
            _LIMIT,
            Param("offset", "Offset", "int", 0, "Number of rows to skip", maximum=2.0**31),
            Param(
                "from_ps",
                "From",
                "float",
                None,
                "Skip the matches that start earlier (sorted by start); for offset",
            ),
            Param(
                "arguments",
                "Arguments",
                "text",
                None,
                "Names of arguments to show, separated by commas; at most 8",
            ),
            *_GROUP,
        ),
        (tables.SLICES,),
        tables.SLICES_SCALARS,
    ),
    Question(
        "groups",
        "Totals of the events that match a query, by name, track, step or argument",
        answering(groups_answer),
        (
            *_SELECTION,
            _BY,
            _LIMIT,
        ),
        (tables.GROUPS,),
        tables.GROUPS_SCALARS,
    ),
    Question(
        "hits",
        "Where a window of the timeline has events that match a query",
        answering(hits_answer),
        (QUERY, *RANGE, WIDTH, OF),
        (tables.HITS, tables.RULER),
        tables.HITS_SCALARS,
    ),
    Question(
        "utilization",
        "How much of a window the events of each track cover",
        answering(utilization_answer),
        RANGE,
        (tables.UTILIZATION,),
        tables.UTILIZATION_SCALARS,
    ),
    Question(
        "fields",
        "The fields and arguments that a query may name",
        answering(fields_answer),
        (),
        (tables.FIELDS,),
        tables.FIELDS_SCALARS,
    ),
)
