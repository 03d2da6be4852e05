"""One event of the timeline → all that is known of it: times, arguments, what it lies in, who caused it, and
its namesakes.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.ops import labels as op_labels
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.timeline.flows import flows
from tb_tpuprof.analysis.timeline.lines import facts_of
from tb_tpuprof.analysis.timeline.modules import module_around
from tb_tpuprof.analysis.timeline.totals import ancestors, neighbour, same_name, self_time
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.columns import pairs_table, text_column
from tb_tpuprof.tools.payload import Column, Scalar, Table
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer.links import links_table
from tb_tpuprof.tools.trace_viewer.questions import events_columns, names_of

Answer = tuple[dict[str, Table], dict[str, Scalar]]
_MAX_ANCESTORS = 64
_MAX_FLOWS = 200
# What an event's arguments may be called that say which operation it is, in the order in which they are
# believed.
_OPERATION = {
    "hlo_op": ("hlo_op",),
    "hlo_module": ("hlo_module",),
    "framework_op": ("tf_op", "tf_op_name"),
    "source": ("source", "source_info"),
}


def event_answer(view: View, event_id: int) -> Answer:
    """Details of an event. Raises EventNotFound."""
    host, event = view.host_of_event(event_id)
    layer, row, _ = host.drawn.row_of(event)
    line = layer.first_line + int(layer.row_line[row])
    local = event - layer.first_event
    alike = same_name(host.trace, host.drawn, event)
    scalars = {
        "event": Scalar(event_id, "id", "Event"),
        "track": Scalar(int(host.track_ids(line)), "id", "Track"),
        "depth": Scalar(int(layer.row_depth[row]), "count", "Depth"),
        "start_ps": Scalar(int(layer.start_ps[local]) + host.offset_ps, "ps", "Start"),
        "duration_ps": Scalar(int(layer.duration_ps[local]), "ps", "Duration"),
        "self_time_ps": Scalar(
            self_time(host.drawn, event), "ps", "Self time", "without the events directly inside of it"
        ),
        "n_same_name": Scalar(alike.n, "count", "Events of this name"),
        "same_total_ps": Scalar(alike.total_ps, "ps", "Their total"),
        "same_avg_ps": Scalar(alike.total_ps / max(alike.n, 1), "ps", "Their average"),
        "same_min_ps": Scalar(alike.min_ps, "ps", "The shortest"),
        "same_max_ps": Scalar(alike.max_ps, "ps", "The longest"),
    }
    arguments = _arguments(host, event)
    about = _about(host, event, line, dict(arguments))
    tables = {
        "about": pairs_table("About", [(key, value) for key, value in about.items() if value]),
        "arguments": pairs_table("Arguments", arguments),
        "ancestors": Table("Ancestors", _without_track(host, ancestors(host.drawn, event, _MAX_ANCESTORS))),
        "flows": _flows_table(host, event),
        "histogram": _histogram(alike.edges, alike.counts),
        "links": links_table(host.trace, about, host.track_of(line).kind),
    }
    return tables, scalars


def neighbour_answer(view: View, params: Params) -> Answer:
    """The event before or after another. Raises BadParameter, EventNotFound."""
    if "event" not in params:
        raise BadParameter("event", "", "the id of the event whose neighbour is asked for")
    host, event = view.host_of_event(int(params["event"]))
    found = neighbour(host.drawn, event, params["neighbour"] == "next")
    events = np.array([found] if found >= 0 else [], np.int64)
    depth = [
        int(host.drawn.layer_of(e).depth[e - host.drawn.layer_of(e).first_event]) for e in events.tolist()
    ]
    columns = (
        *events_columns([(host, events)]),
        Column("depth", "Depth", np.array(depth, np.int64), "count"),
    )
    return {"neighbour": Table("Neighbour", columns)}, {}


def _arguments(host: HostView, event: int) -> list[tuple[str, str]]:
    """What was derived for an event, all stats of it (or of the first one that it was made from), then those
    of its metadata.
    """
    trace, row = host.trace, host.drawn.file_event(event)
    metadata = int(trace.events["metadata"][row])
    facts = (
        facts_of(trace, event - host.drawn.derived.first_event)
        if event >= host.drawn.derived.first_event
        else []
    )
    own = [(name, str(value)) for name, value in trace.source.event_stats(trace, row)]
    table = trace.metadata_stats
    rows = np.flatnonzero(table.table["owner"] == metadata).tolist()
    own += [(trace.strings.get(int(table.table["key"][i])), table.text_at(i)) for i in rows]
    told = {name for name, _ in facts}
    return facts + [(name, value) for name, value in own if name not in told]


def _about(host: HostView, event: int, line: int, arguments: dict[str, str]) -> dict[str, str]:
    trace, row = host.trace, host.drawn.file_event(event)
    is_derived = event >= host.drawn.derived.first_event
    track = host.track_of(line)
    steps = groups(trace)
    about = {
        "name": names_of(host, np.array([event]))[0],
        "full_name": ""
        if is_derived
        else trace.strings.get(int(trace.metadata["name"][trace.events["metadata"][row]])),
        "derived_from": names_of(host, np.array([row]))[0] if is_derived else "",
        "host": host.host,
        "section": track.section,
        "track": track.name,
        "step": steps.names.get(int(steps.group[row]), ""),
    }
    about |= {
        key: next((arguments[name] for name in names if arguments.get(name)), "")
        for key, names in _OPERATION.items()
    }
    labels = op_labels.of_rows(trace, np.array([row]))
    for key, codes in (
        ("hlo_op", labels.hlo_op),
        ("hlo_module", labels.module),
        ("framework_op", labels.framework_op),
        ("source", labels.source),
    ):
        if len(codes) and codes[labels.of[0]] >= 0:
            about[key] = labels.texts(int(codes[labels.of[0]]))
    if about["framework_op"].startswith(op_labels.NO_OPERATION):
        about["framework_op"] = ""
    if not about["framework_op"] and track.kind == "ops":
        about["framework_op"] = about["full_name"] or about["name"]
    if not about["hlo_op"] and track.kind == "hlo_ops":
        about["hlo_op"] = about["name"]
    if not about["hlo_module"] and track.kind in (
        "steps",
        "modules",
        "scope",
        "ops",
        "hlo_ops",
        "async",
        "source",
    ):
        about["hlo_module"] = module_around(trace, row)
    return about


def _without_track(host: HostView, events: list[int]) -> tuple[Column, ...]:
    columns = events_columns([(host, np.array(events, np.int64))])
    return tuple(column for column in columns if column.name != "track")


def _flows_table(host: HostView, event: int) -> Table:
    """Arrows into and out of an event of the file; of very many the first ones."""
    found = flows(host.trace)
    row = -1 if event >= host.drawn.derived.first_event else event
    into, out = found.into(row)[:_MAX_FLOWS], found.out_of(row)[:_MAX_FLOWS]
    events = np.concatenate((found.source[into], found.target[out]))
    kinds = [found.kinds[code] for code in found.kind[np.concatenate((into, out))].tolist()]
    note = f"The first {_MAX_FLOWS} each way." if max(len(into), len(out)) == _MAX_FLOWS else ""
    return Table(
        "Flows",
        (
            *events_columns([(host, events)]),
            text_column("direction", "Direction", ["in"] * len(into) + ["out"] * len(out)),
            text_column("kind", "Kind", kinds),
        ),
        note,
    )


def _histogram(edges: np.typing.NDArray[np.int64], counts: np.typing.NDArray[np.int64]) -> Table:
    return Table(
        "Durations of all events of this name",
        (
            Column("from_ps", "From", edges[:-1], "ps"),
            Column("to_ps", "To", edges[1:], "ps"),
            Column("n", "Events", counts, "count"),
        ),
    )
