"""One event of the timeline → its details: times, arguments, enclosing events, flows, and events of the
same name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.events.glossary import explained
from tb_tpuprof.analysis.events.python_frames import python_place
from tb_tpuprof.analysis.ops import labels as op_labels
from tb_tpuprof.analysis.steps.grouping import groups
from tb_tpuprof.analysis.timeline.flows import flows
from tb_tpuprof.analysis.timeline.lines import facts_of
from tb_tpuprof.analysis.timeline.modules import module_around
from tb_tpuprof.analysis.timeline.totals import ancestors, first_within, neighbour, same_name, self_time
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.source_lines import source_tables
from tb_tpuprof.tools.spec import TableSpec, fill_scalars
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer import tables
from tb_tpuprof.tools.trace_viewer.argument_units import BREAKDOWN, breakdown_of, shown
from tb_tpuprof.tools.trace_viewer.links import links_table
from tb_tpuprof.tools.trace_viewer.questions import event_values, names_of

Answer = tuple[dict[str, Table], dict[str, Scalar]]
_MAX_ANCESTORS = 64
_MAX_FLOWS = 200
# Names of arguments that identify an event's operation, in order of preference.
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
        "event": event_id,
        "track": int(host.track_ids(line)),
        "depth": int(layer.row_depth[row]),
        "start_ps": int(layer.start_ps[local]) + host.offset_ps,
        "duration_ps": int(layer.duration_ps[local]),
        "self_time_ps": self_time(host.drawn, event),
        "n_same_name": alike.n,
        "same_total_ps": alike.total_ps,
        "same_avg_ps": alike.total_ps / max(alike.n, 1),
        "same_min_ps": alike.min_ps,
        "same_max_ps": alike.max_ps,
    }
    arguments = _arguments(host, event)
    about = _about(host, event, line, dict(arguments))
    answer = {
        "about": _pairs(tables.ABOUT, [(key, value) for key, value in about.items() if value]),
        "arguments": _arguments_table(host, event, arguments),
        "ancestors": _ancestors(host, ancestors(host.drawn, event, _MAX_ANCESTORS)),
        "flows": _flows_table(host, event),
        "histogram": _histogram(alike.edges, alike.counts),
        "links": links_table(host.trace, about, host.track_of(line).kind),
        **source_tables(_places(about["source"], dict(arguments).get("source_stack", ""))),
    }
    return answer, fill_scalars(tables.EVENT_SCALARS, scalars)


def neighbour_answer(view: View, params: Params) -> Answer:
    """The event before or after a given one, or the first within it. Raises EventNotFound."""
    host, event = view.host_of_event(int(params["event"]))
    neighbour_event = (
        first_within(host.drawn, event)
        if params["direction"] == "within"
        else neighbour(host.drawn, event, params["direction"] == "next")
    )
    events = np.array([neighbour_event] if neighbour_event >= 0 else [], np.int64)
    depth = [
        int(host.drawn.layer_of(e).depth[e - host.drawn.layer_of(e).first_event]) for e in events.tolist()
    ]
    columns = {**event_values([(host, events)]), "depth": np.array(depth, np.int64)}
    return {"neighbour": tables.NEIGHBOUR.fill(columns)}, {}


def _arguments(host: HostView, event: int) -> list[tuple[str, str]]:
    """What the viewer derived for an event, its stats (or those of the first event it was derived from),
    then those of its metadata.
    """
    trace, row = host.trace, host.drawn.file_event(event)
    metadata = int(trace.events["metadata"][row])
    facts = (
        facts_of(trace, event - host.drawn.derived.first_event)
        if event >= host.drawn.derived.first_event
        else []
    )
    stats = [(name, str(value)) for name, value in trace.source.event_stats(trace, row)]
    table = trace.metadata_stats
    rows = np.flatnonzero(table.table["owner"] == metadata).tolist()
    stats += [(trace.strings.get(int(table.table["key"][i])), table.text_at(i)) for i in rows]
    derived_names = {name for name, _ in facts}
    return facts + [(name, value) for name, value in stats if name not in derived_names]


def _arguments_table(host: HostView, event: int, arguments: list[tuple[str, str]]) -> Table:
    metadata = int(host.trace.events["metadata"][host.drawn.file_event(event)])
    return tables.ARGUMENTS.fill(
        {
            "name": [name for name, _ in arguments],
            "value": [value for _, value in arguments],
            "shown": [
                breakdown_of(host.trace, metadata) if name == BREAKDOWN else shown(name, value)
                for name, value in arguments
            ],
        }
    )


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
    about["source"] = about["source"] or python_place(about["full_name"])
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
    return about | _explanation(about, track.kind)


def _places(source: str, stack: str) -> list[str]:
    """The places that an event names: those of its stack, innermost first, else its source line."""
    return [line.strip() for line in stack.splitlines() if line.strip()] or [source]


def _explanation(about: dict[str, str], track_kind: str) -> dict[str, str]:
    """What events of this name are, from the glossary; nothing for names of the program's own."""
    names = [about["name"], about["full_name"], about["hlo_op"]]
    entry = next((found for name in names if name and (found := explained(name, track_kind))), None)
    if entry is None:
        return {}
    return {"kind": entry.term, "explanation": entry.text, "explanation_source": entry.source}


def _pairs(spec: TableSpec, pairs: Sequence[tuple[str, str]]) -> Table:
    return spec.fill({"name": [name for name, _ in pairs], "value": [value for _, value in pairs]})


def _ancestors(host: HostView, events: list[int]) -> Table:
    columns = event_values([(host, np.array(events, np.int64))])
    del columns["track"]
    return tables.ANCESTORS.fill(columns)


def _flows_table(host: HostView, event: int) -> Table:
    """Arrows into and out of an event of the file; if very many, the first ones."""
    arrows = flows(host.trace)
    row = -1 if event >= host.drawn.derived.first_event else event
    incoming, outgoing = arrows.into(row)[:_MAX_FLOWS], arrows.out_of(row)[:_MAX_FLOWS]
    events = np.concatenate((arrows.source[incoming], arrows.target[outgoing]))
    kinds = [arrows.kinds[code] for code in arrows.kind[np.concatenate((incoming, outgoing))].tolist()]
    note = f"The first {_MAX_FLOWS} each way." if max(len(incoming), len(outgoing)) == _MAX_FLOWS else ""
    directions = ["in"] * len(incoming) + ["out"] * len(outgoing)
    return tables.EVENT_FLOWS.fill(
        {**event_values([(host, events)]), "direction": directions, "kind": kinds}, note
    )


def _histogram(edges: np.typing.NDArray[np.int64], counts: np.typing.NDArray[np.int64]) -> Table:
    return tables.HISTOGRAM.fill({"from_ps": edges[:-1], "to_ps": edges[1:], "n": counts})
