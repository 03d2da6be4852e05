"""Arrows between events in a window of the timeline: scheduling, launches and data flow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.timeline.flows import arrow_ends, flows
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Filled, Texts
from tb_tpuprof.tools.trace_hosts import HostView
from tb_tpuprof.tools.trace_viewer.tables import FLOWS
from tb_tpuprof.tools.trace_viewer.window import Chosen, Window

MAX_FLOWS = 2000


def flows_table(chosen: Chosen, window: Window) -> tuple[Table, int]:
    """Arrows that cross the window between the chosen tracks, evenly thinned to MAX_FLOWS; and their
    number.
    """
    parts = [_flows(host, [track.line for track in tracks], window) for host, tracks in chosen]
    kinds = dict.fromkeys(kind for _, names in parts for kind in names)
    codes = {kind: i for i, kind in enumerate(kinds)}
    rows = [np.empty((8, 0), np.int64)]
    for columns, names in parts:
        columns[7] = np.array([codes[name] for name in names], np.int64)[columns[7]] if names else columns[7]
        rows.append(columns)
    arrows = np.concatenate(rows, axis=1)
    n_flows = arrows.shape[1]
    arrows = arrows[:, np.argsort(arrows[3], kind="stable")]
    if n_flows > MAX_FLOWS:
        arrows = arrows[:, np.linspace(0, n_flows - 1, MAX_FLOWS).astype(np.int64)]
    fields = ("flow", "from_event", "from_track", "from_ps", "to_event", "to_track", "to_ps")
    filled: Filled = {
        **dict(zip(fields, arrows[:7], strict=True)),
        "kind": Texts(arrows[7].astype(np.int32), list(kinds)),
    }
    note = f"{MAX_FLOWS} of {n_flows}, evenly sampled." if n_flows > MAX_FLOWS else ""
    return FLOWS.fill(filled, note), n_flows


def _flows(host: HostView, lines: list[int], window: Window) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Rows flow, from event, from track, from, to event, to track, to, kind of one host's arrows in the
    window.
    """
    arrows = flows(host.trace)
    all_rows = np.arange(len(arrows.source))
    from_ps, to_ps = arrow_ends(host.trace, arrows, all_rows)
    first, last = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps
    inside = all_rows[(np.minimum(from_ps, to_ps) < last) & (np.maximum(from_ps, to_ps) >= first)]
    is_shown = np.zeros(max(len(host.trace.lines), max(lines, default=0) + 1), np.bool_)
    is_shown[lines] = True
    ends = [host.drawn.file.line_of(column[inside]) for column in (arrows.source, arrows.target)]
    has_both_ends = is_shown[ends[0]] & is_shown[ends[1]]
    inside = inside[has_both_ends]
    columns = (
        host.event_ids(inside),
        host.event_ids(arrows.source[inside]),
        host.track_ids(ends[0][has_both_ends]),
        from_ps[inside] + host.offset_ps,
        host.event_ids(arrows.target[inside]),
        host.track_ids(ends[1][has_both_ends]),
        to_ps[inside] + host.offset_ps,
        arrows.kind[inside].astype(np.int64),
    )
    return np.stack(columns), arrows.kinds
