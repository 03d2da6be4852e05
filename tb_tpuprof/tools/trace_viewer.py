"""trace_viewer: a window of the timeline as boxes that a screen can show, or the details of one event."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.grouping import groups
from tb_tpuprof.analysis.timeline import Timeline, timeline
from tb_tpuprof.errors import BadParameter, EventNotFound
from tb_tpuprof.native import nest
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Column, Param, Params, Payload, Scalar, Table, Tool
from tb_tpuprof.tools.columns import pairs_table, text_column
from tb_tpuprof.trace.trace import Trace

_DEVICE = re.compile(r"^/device:([A-Za-z]+):(\d+)(.*)$")
_MAX_ANCESTORS = 64


@dataclass(frozen=True)
class Track:
    """One line as the viewer shows it; `order` sorts sections and tracks."""

    line: int
    section: str
    name: str
    kind: str
    order: tuple[int, int, str, int, int]


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The window's boxes, or with `event` the details of that event."""
    trace = session.trace(hosts[0])
    lanes = session.get(timeline, hosts[0])
    if "event" in params:
        return _event(session, hosts, trace, int(params["event"]))
    tracks = _tracks(trace)
    lines = _wanted_lines(str(params.get("tracks", "")), tracks)
    end = trace.duration_ps
    start_ps = int(params.get("start_ps", 0))
    end_ps = int(params.get("end_ps", end))
    if end_ps <= start_ps and end > 0:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    boxes = _boxes(lanes, lines, start_ps, end_ps, int(params["width_px"]))
    scalars = {
        "trace_duration_ps": Scalar(end, "ps", "Trace"),
        "start_ps": Scalar(start_ps, "ps", "Window's start"),
        "end_ps": Scalar(end_ps, "ps", "Window's end"),
        "n_events": Scalar(trace.n_events, "count", "Events in the trace"),
        "n_events_in_window": Scalar(int(boxes["n_merged"].sum()), "count", "Events in the window"),
    }
    tables = {"tracks": _tracks_table(trace, lanes, tracks), "boxes": _boxes_table(trace, lanes, boxes)}
    return Payload(TOOL.name, session.run, hosts, tables, scalars)


def _tracks(trace: Trace) -> list[Track]:
    """Lines that have events, sorted: device sections first, then host threads with Python's on top."""
    tracks = []
    for line in np.flatnonzero(trace.lines["n_events"] > 0).tolist():
        plane = trace.plane_names[trace.lines["plane"][line]]
        name = trace.line_names[line] or f"line {trace.lines['id'][line]}"
        section, rank, number = _section(plane)
        kind = "steps" if name in ("Steps", "Sparse Core Steps") else "device" if rank == 0 else "host"
        is_python = name.startswith("python")
        display_id = abs(int(trace.lines["display_id"][line]))
        order = (rank, number, section, 0 if is_python else 1, display_id)
        tracks.append(Track(line, section, name, kind, order))
    return sorted(tracks, key=lambda track: track.order)


def _section(plane: str) -> tuple[str, int, int]:
    """(what a person calls the plane, rank among sections, number of the device)."""
    match = _DEVICE.match(plane)
    if match:
        return f"{match[1]}:{match[2]}{match[3]}", 0, int(match[2][:9])
    if plane.startswith("/host:CPU"):
        return "Host threads" + plane.removeprefix("/host:CPU"), 1, 0
    return plane or "(unnamed plane)", 2, 0


def _wanted_lines(text: str, tracks: list[Track]) -> npt.NDArray[np.int32]:
    known = [track.line for track in tracks]
    if not text:
        return np.array(known, np.int32)
    try:
        wanted = {int(part) for part in text.split(",") if part}
    except ValueError:
        raise BadParameter("tracks", text, "track ids separated by commas") from None
    unknown = wanted - set(known)
    if unknown:
        raise EventNotFound(f"There is no track {min(unknown)}.", "Take track ids from the table `tracks`.")
    return np.array([line for line in known if line in wanted], np.int32)


def _boxes(lanes: Timeline, lines: npt.NDArray[np.int32], start_ps: int, end_ps: int, width_px: int) -> npt.NDArray[np.void]:
    rows = [np.arange(lanes.first_row[line], lanes.first_row[line] + lanes.n_depths[line], dtype=np.int32) for line in lines.tolist()]
    pixel_ps = max(1, -(-(end_ps - start_ps) // width_px))
    found: npt.NDArray[np.void] = lanes.rows.boxes(np.concatenate([*rows, np.empty(0, np.int32)]), start_ps, end_ps, pixel_ps)
    _snap(found, start_ps, pixel_ps)
    return found


def _snap(boxes: npt.NDArray[np.void], origin_ps: int, pixel_ps: int) -> None:
    """Widen merged boxes to whole pixels, within their two: no eye can tell, and a full screen takes a third of the bytes."""
    merged = boxes["n_merged"] > 1
    start = boxes["start"][merged] - origin_ps
    end = -(-(start + boxes["duration"][merged]) // pixel_ps) * pixel_ps
    start = np.maximum(start, 0) // pixel_ps * pixel_ps
    pair_end = start // (2 * pixel_ps) * (2 * pixel_ps) + 2 * pixel_ps
    boxes["start"][merged] = start + origin_ps
    boxes["duration"][merged] = np.minimum(end, pair_end) - start


def _tracks_table(trace: Trace, lanes: Timeline, tracks: list[Track]) -> Table:
    lines = np.array([track.line for track in tracks], np.int32)
    return Table(
        "Tracks",
        (
            Column("track", "Track", lines, "id"),
            text_column("section", "Section", [track.section for track in tracks]),
            text_column("name", "Name", [track.name for track in tracks]),
            text_column("kind", "Kind", [track.kind for track in tracks]),
            Column("n_events", "Events", trace.lines["n_events"][lines], "count"),
            Column("n_depths", "Rows", lanes.n_depths[lines], "count"),
        ),
    )


def _boxes_table(trace: Trace, lanes: Timeline, boxes: npt.NDArray[np.void]) -> Table:
    names, codes = _names(trace, boxes["event"])
    return Table(
        "Boxes",
        (
            Column("track", "Track", lanes.row_line[boxes["row"]], "id"),
            Column("depth", "Depth", lanes.row_depth[boxes["row"]], "count"),
            Column("start_ps", "Start", boxes["start"], "ps", delta=True),
            Column("duration_ps", "Duration", boxes["duration"], "ps"),
            Column("name", "Name", codes, strings=names),
            Column("event", "Event", boxes["event"].astype(np.int64), "id", delta=True),
            Column("n_merged", "Events", boxes["n_merged"], "count"),
        ),
    )


def _names(trace: Trace, events: npt.NDArray[np.int32]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Names of events as distinct texts and a code for each; a step's has its number: `train 131`."""
    distinct, codes = np.unique(trace.event_names[trace.events["metadata"][events]], return_inverse=True)
    names = [trace.strings.get(i) for i in distinct.tolist()]
    code: npt.NDArray[np.int32] = codes.astype(np.int32)
    owner, number = trace.event_stats.ints("step_num")
    at = np.minimum(np.searchsorted(owner, events), max(len(owner) - 1, 0))
    for box in np.flatnonzero(owner[at] == events).tolist() if len(owner) else []:
        text = f"{names[code[box]]} {number[at[box]]}"
        code[box] = len(names)
        names.append(text)
    return names, code


def _event(session: Session, hosts: tuple[str, ...], trace: Trace, event: int) -> Payload:
    if not 0 <= event < trace.n_events:
        raise EventNotFound(f"There is no event {event}.", f"Events are numbered 0 to {trace.n_events - 1}.")
    metadata = int(trace.events["metadata"][event])
    line = int(np.searchsorted(trace.line_offsets, event, "right")) - 1
    start, duration = int(trace.events["start_ps"][event]), int(trace.events["duration_ps"][event])
    chain, self_ps = _family(trace, line, event)
    steps = session.get(groups, hosts[0])
    depth = int(session.get(timeline, hosts[0]).depth[event])
    scalars = {
        "event": Scalar(event, "id", "Event"),
        "track": Scalar(line, "id", "Track"),
        "depth": Scalar(depth, "count", "Depth"),
        "start_ps": Scalar(start, "ps", "Start"),
        "duration_ps": Scalar(duration, "ps", "Duration"),
        "self_time_ps": Scalar(self_ps, "ps", "Self time", "without the events directly inside of it"),
    }
    names, codes = _names(trace, np.array([event], np.int32))
    about = {
        "name": names[int(codes[0])],
        "full_name": trace.strings.get(int(trace.metadata["name"][metadata])),
        "track": trace.line_names[line],
        "section": _section(trace.plane_names[trace.lines["plane"][line]])[0],
        "step": steps.names.get(int(steps.group[event]), ""),
    }
    arguments = trace.source.event_stats(trace, event) + _metadata_stats(trace, metadata)
    tables = {
        "about": pairs_table("About", [(key, value) for key, value in about.items() if value]),
        "arguments": pairs_table("Arguments", [(name, str(value)) for name, value in arguments]),
        "ancestors": _ancestors(trace, chain),
    }
    return Payload(TOOL.name, session.run, hosts, tables, scalars)


def _family(trace: Trace, line: int, event: int) -> tuple[list[int], int]:
    """Ancestors of an event, the innermost first, and its self time. Only its own line is looked at."""
    first, last = int(trace.line_offsets[line]), int(trace.line_offsets[line + 1])
    start = trace.events["start_ps"][first:last]
    end = start + trace.events["duration_ps"][first:last]
    parent, self_ps = nest(start, end, np.array([0, last - first]))
    chain: list[int] = []
    above = int(parent[event - first])
    while above >= 0 and len(chain) < _MAX_ANCESTORS:
        chain.append(first + above)
        above = int(parent[above])
    return chain, int(self_ps[event - first])


def _metadata_stats(trace: Trace, metadata: int) -> list[tuple[str, str]]:
    table = trace.metadata_stats.table
    found = []
    for row in np.flatnonzero(table["owner"] == metadata).tolist():
        found.append((trace.strings.get(int(table["key"][row])), trace.metadata_stats.text_at(row)))
    return found


def _ancestors(trace: Trace, chain: list[int]) -> Table:
    events = np.array(chain, np.int64)
    names = [trace.strings.get(int(trace.event_names[trace.events["metadata"][event]])) for event in chain]
    return Table(
        "Ancestors",
        (
            Column("event", "Event", events, "id"),
            text_column("name", "Name", names),
            Column("start_ps", "Start", trace.events["start_ps"][events], "ps"),
            Column("duration_ps", "Duration", trace.events["duration_ps"][events], "ps"),
        ),
    )


TOOL = Tool(
    name="trace_viewer",
    title="Trace viewer",
    group="Time",
    summary="Every event of a host on its thread or device line",
    view=view,
    params=(
        Param("start_ps", "Start", "float", None, "Start of the window; absent: the trace's start"),
        Param("end_ps", "End", "float", None, "End of the window; absent: the trace's end"),
        Param("width_px", "Width", "int", 2000, "Pixels that the window is drawn on", minimum=1, maximum=20_000),
        Param("tracks", "Tracks", "text", None, "Track ids separated by commas; absent: all"),
        Param("event", "Event", "int", None, "Answer the details of this event instead of a window"),
    ),
    hosts="one",
)
