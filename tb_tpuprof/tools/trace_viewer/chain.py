"""One event → everything that led to it and that it led to."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.timeline.chain import ENCLOSES, Link, chain
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.spec import fill_scalars
from tb_tpuprof.tools.trace_hosts import View
from tb_tpuprof.tools.trace_viewer.mark_tables import CHAIN, CHAIN_SCALARS
from tb_tpuprof.tools.trace_viewer.question import Answer
from tb_tpuprof.tools.trace_viewer.questions import event_values

MAX_LINKS = 200


def chain_answer(view: View, params: Params) -> Answer:
    """The event's chain in time order; of a derived event that of the first event it was derived from.
    Raises EventNotFound.
    """
    host, event = view.host_of_event(int(params["event"]))
    row = host.drawn.file_event(event)
    found = chain(host.trace, host.drawn, row, MAX_LINKS)
    own = Link(row, -1, "", 0)
    links = [*found.causes[::-1], own, *found.effects]
    sides = ["cause"] * len(found.causes) + ["event"] + ["effect"] * len(found.effects)
    events = np.array([link.event for link in links], np.int64)
    towards = np.array([link.towards for link in links], np.int64)
    start, duration = (host.trace.events[name] for name in ("start_ps", "duration_ps"))
    is_effect = np.array([side == "effect" for side in sides])
    cause, effect = np.where(is_effect, towards, events), np.where(is_effect, events, towards)
    gap_ps = (start[effect] - start[cause] - duration[cause]).astype(np.float64)
    gap_ps[[link.kind in (ENCLOSES, "") for link in links]] = np.nan
    order = np.lexsort((-duration[events], start[events]))
    columns = {
        **event_values([(host, events)], order),
        "side": [sides[i] for i in order.tolist()],
        "kind": [links[i].kind for i in order.tolist()],
        "neighbor": np.where(towards < 0, -1, host.event_ids(towards))[order],
        "distance": np.array([link.distance for link in links], np.int64)[order],
        "gap_ps": gap_ps[order],
    }
    note = f"The nearest {MAX_LINKS} each way." if found.is_cut else ""
    values = {"n_causes": len(found.causes), "n_effects": len(found.effects), "is_cut": int(found.is_cut)}
    return {"chain": CHAIN.fill(columns, note)}, fill_scalars(CHAIN_SCALARS, values)
