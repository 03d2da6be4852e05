"""Questions about marks and chains, and the events of a selection as a file."""

from __future__ import annotations

from tb_tpuprof.tools.base import File, Param, Question
from tb_tpuprof.tools.trace_viewer.chain import chain_answer
from tb_tpuprof.tools.trace_viewer.compare import compare_answer
from tb_tpuprof.tools.trace_viewer.export_csv import events_file
from tb_tpuprof.tools.trace_viewer.mark_tables import CHAIN, CHAIN_SCALARS, COMPARED, COMPARED_SCALARS
from tb_tpuprof.tools.trace_viewer.question import RANGE, TRACKS, answering
from tb_tpuprof.tools.trace_viewer.window import MOST_DEPTH

EXPORT_DEPTHS = (
    Param("depth_from", "From depth", "int", 0, "The outermost depth to write", maximum=MOST_DEPTH),
    Param("depth_to", "To depth", "int", MOST_DEPTH, "The innermost depth to write", maximum=MOST_DEPTH),
)
MARK_QUESTIONS = (
    Question(
        "chain",
        "What led to an event, and what it led to",
        answering(chain_answer),
        (Param("event", "Event", "int", None, "Id of the event", is_required=True),),
        (CHAIN,),
        CHAIN_SCALARS,
    ),
    Question(
        "compare",
        "Two windows by their totals",
        answering(compare_answer),
        (
            Param("a_start_ps", "Start of A", "float", None, "Start of window A", is_required=True),
            Param("a_end_ps", "End of A", "float", None, "End of window A", is_required=True),
            Param("b_start_ps", "Start of B", "float", None, "Start of window B", is_required=True),
            Param("b_end_ps", "End of B", "float", None, "End of window B", is_required=True),
            TRACKS,
            Param("by", "By", "choice", "name", "What a row stands for", choices=("name", "track")),
        ),
        (COMPARED,),
        COMPARED_SCALARS,
    ),
)
EVENTS_FILE = File(
    "events",
    "events.csv",
    "text/csv",
    events_file,
    (*RANGE, *EXPORT_DEPTHS),
    "The events of the window as CSV: track, depth, name, start and duration",
)
