"""Arrows between the events in a window of the timeline: who scheduled, launched or fed whom."""

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
    """Arrows that cross the window between the chosen tracks, evenly thinned to MAX_FLOWS; and how many there
    are.
    """
    parts = [_flows(host, [track.line for track in tracks], window) for host, tracks in chosen]
    kinds = dict.fromkeys(kind for _, names in parts for kind in names)
    codes = {kind: i for i, kind in enumerate(kinds)}
    rows = [np.empty((8, 0), np.int64)]
    for columns, names in parts:
        columns[7] = np.array([codes[name] for name in names], np.int64)[columns[7]] if names else columns[7]
        rows.append(columns)
    found = np.concatenate(rows, axis=1)
    n_flows = found.shape[1]
    found = found[:, np.argsort(found[3], kind="stable")]
    if n_flows > MAX_FLOWS:
        found = found[:, np.linspace(0, n_flows - 1, MAX_FLOWS).astype(np.int64)]
    fields = ("flow", "from_event", "from_track", "from_ps", "to_event", "to_track", "to_ps")
    filled: Filled = {
        **dict(zip(fields, found[:7], strict=True)),
        "kind": Texts(found[7].astype(np.int32), list(kinds)),
    }
    note = f"{MAX_FLOWS} of {n_flows}, evenly chosen." if n_flows > MAX_FLOWS else ""
    return FLOWS.fill(filled, note), n_flows


def _flows(host: HostView, lines: list[int], window: Window) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Rows flow, from event, from track, from, to event, to track, to, kind of one host's arrows in the
    window.
    """
    found = flows(host.trace)
    every = np.arange(len(found.source))
    from_ps, to_ps = arrow_ends(host.trace, found, every)
    first, last = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps
    seen = every[(np.minimum(from_ps, to_ps) < last) & (np.maximum(from_ps, to_ps) >= first)]
    wanted = np.zeros(max(len(host.trace.lines), max(lines, default=0) + 1), np.bool_)
    wanted[lines] = True
    ends = [host.drawn.file.line_of(column[seen]) for column in (found.source, found.target)]
    kept = wanted[ends[0]] & wanted[ends[1]]
    seen = seen[kept]
    columns = (
        host.event_ids(seen),
        host.event_ids(found.source[seen]), host.track_ids(ends[0][kept]), from_ps[seen] + host.offset_ps,
        host.event_ids(found.target[seen]), host.track_ids(ends[1][kept]), to_ps[seen] + host.offset_ps,
        found.kind[seen].astype(np.int64),
    )  # fmt: skip
    return np.stack(columns), found.kinds
