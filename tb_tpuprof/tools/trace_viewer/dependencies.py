"""One operation of a compiled program → the operations that it reads and those that read it."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.timeline.dependencies import dependencies
from tb_tpuprof.tools.base import Param, Params, Question
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, fill_scalars, text
from tb_tpuprof.tools.trace_hosts import View
from tb_tpuprof.tools.trace_viewer.question import Answer, answering
from tb_tpuprof.tools.trace_viewer.questions import event_values
from tb_tpuprof.tools.trace_viewer.tables import EVENT_COLUMNS

MAX_ARROWS = 50
KIND = "HLO operand"
DEPENDENCIES = TableSpec(
    "dependencies",
    "Operands and readers",
    (
        *EVENT_COLUMNS,
        text(
            "direction",
            "Direction",
            "Whether the operation reads its result (in), or it reads the operation's result (out)",
        ),
        text("kind", "Kind", f"Kind of the arrow: {KIND}"),
    ),
    "The operations of the program's HLO that an operation reads and that read it, as they ran nearest to "
    f"it: in the same run and step, on the same device; the nearest {MAX_ARROWS} each way",
)
SCALARS = (
    ScalarSpec(
        "n_producers",
        "Operands",
        "count",
        "Operations whose results it reads, including those left out of the table",
    ),
    ScalarSpec(
        "n_consumers",
        "Readers",
        "count",
        "Operations that read its result, including those left out of the table",
    ),
)


def dependencies_answer(view: View, params: Params) -> Answer:
    """Empty for events that are no operation of a program with HLO. Raises EventNotFound."""
    host, event = view.host_of_event(int(params["event"]))
    row = -1 if event >= host.drawn.derived.first_event else event
    found = dependencies(host.trace, row, MAX_ARROWS)
    events = np.concatenate((found.producers, found.consumers))
    n_cut = found.n_producers + found.n_consumers - len(events)
    columns = {
        **event_values([(host, events)]),
        "direction": ["in"] * len(found.producers) + ["out"] * len(found.consumers),
        "kind": [KIND] * len(events),
    }
    note = f"The nearest {MAX_ARROWS} each way; {n_cut:,} more are left out." if n_cut else ""
    values = {"n_producers": found.n_producers, "n_consumers": found.n_consumers}
    return {"dependencies": DEPENDENCIES.fill(columns, note)}, fill_scalars(SCALARS, values)


QUESTION = Question(
    "dependencies",
    "The operations that an operation of a compiled program reads, and those that read it",
    answering(dependencies_answer),
    (Param("event", "Event", "int", None, "Id of the event", is_required=True),),
    (DEPENDENCIES,),
    SCALARS,
)
