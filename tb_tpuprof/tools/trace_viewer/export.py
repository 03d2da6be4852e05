"""A window of the timeline → Chrome trace JSON, gzipped: a file that Perfetto, chrome://tracing and this
project open.

    lines ─▶ X      marks of a process ─▶ i      async lines ─▶ b n e      counters ─▶ C      arrows ─▶ s f
    names, order ─▶ M

Events that overlap the window are written whole, with the file's names and times. Derived lines are not in
the file and are left out: the program that opens the file derives them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from tb_tpuprof.errors import TooLarge
from tb_tpuprof.native import EventWriter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.trace_hosts import HostView, View, open_view
from tb_tpuprof.tools.trace_viewer.export_arguments import arguments_of
from tb_tpuprof.tools.trace_viewer.export_rows import Places, Rows, Texts, places_of, rows_of
from tb_tpuprof.tools.trace_viewer.window import MOST_DEPTH, Chosen, Window, window_of

MAX_EVENTS = 2_000_000
_CHUNK_ROWS = 1 << 15
_FAST, _GZIP = 1, 31  # ISA-L's level, and `wbits` for a gzip header and the largest window


def trace_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterator[bytes]]:
    """The run's name, and the file in parts, one of which is in memory at a time.

    Takes start_ps, end_ps, tracks, depth_from, depth_to and args. Raises what `open_view` raises,
    BadParameter and TooLarge.
    """
    opened = open_view(session, hosts)
    window = window_of(opened, params)
    chosen = opened.chosen_tracks(str(params.get("tracks", "")))
    n_total = sum(n_rows(host, [track.line for track in tracks], window) for host, tracks in chosen)
    if n_total > MAX_EVENTS:
        raise TooLarge(
            f"The window contains {n_total:,} events and samples; a Chrome trace JSON file can have at "
            f"most {MAX_EVENTS:,}.",
            "Narrow the window (start_ps, end_ps), or choose fewer tracks or hosts.",
        )
    return session.run, gzipped_parts(_texts(session.run, opened, chosen, window, bool(params["args"])))


def _dumps(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def n_rows(host: HostView, lines: list[int], window: Window) -> int:
    """Events and samples of some lines that are in the window."""
    n_inside = 0
    for line in lines:
        counter = host.counter_of(line)
        if line < len(host.trace.lines):
            n_inside += int(host_events(host, line, window).sum())
        elif counter >= 0:
            n_inside += int(host.trace.counters["n_samples"][counter])
    return n_inside


def host_events(host: HostView, line: int, window: Window) -> npt.NDArray[np.bool_]:
    """A mask of the events of a line of the file that overlap the window, at the window's depths."""
    first, last = host.trace.line_offsets[line : line + 2]
    start, duration = (host.trace.events[name][first:last] for name in ("start_ps", "duration_ps"))
    inside: npt.NDArray[np.bool_] = start < window.end_ps - host.offset_ps
    inside &= start + np.maximum(duration, 1) > window.start_ps - host.offset_ps
    if window.depth_from > 0 or window.depth_to < MOST_DEPTH:
        depth = host.drawn.file.depth[first:last]
        inside &= (depth >= window.depth_from) & (depth <= window.depth_to)
    return inside


def _texts(run: str, opened: View, chosen: Chosen, window: Window, with_args: bool) -> Iterator[bytes]:
    """The JSON in parts: a description of the file, names of processes and threads, then each host's rows."""
    zero = min(
        (host for host in opened.hosts if host.is_aligned), key=lambda host: host.offset_ps
    ).trace.info.start_ns
    places: list[Places] = []
    for host, tracks in chosen:
        lines = [track for track in tracks if track.line < len(host.trace.lines) + len(host.trace.counters)]
        places.append(
            places_of(host, lines, sum(len(place.planes) for place in places), len(opened.hosts) > 1)
        )
    notes = {
        "run": run,
        "hosts": [host.host for host in opened.hosts],
        "start_ps": window.start_ps,
        "end_ps": window.end_ps,
    }
    head = {"displayTimeUnit": "ns", "baseTimeNanoseconds": zero, "otherData": notes}
    yield (
        _dumps(head)[:-1]
        + b',"traceEvents":[\n'
        + b",\n".join(_dumps(name) for place in places for name in place.names())
    )
    left_out: dict[str, int] = {}
    for place in places:
        inside = [
            np.flatnonzero(host_events(place.host, line, window)) + first
            for line, first in place.event_lines()
        ]
        texts = Texts(place.host.trace.strings)
        rows = rows_of(place, inside, window, texts)
        left_out["arrows"] = left_out.get("arrows", 0) + rows.n_arrows_left_out
        yield from _written(place, rows, texts, with_args, left_out)
    nonzero = {name: n for name, n in left_out.items() if n}
    yield b"\n]" + (b',"leftOut":' + _dumps(nonzero) if nonzero else b"") + b"}\n"


def _written(
    place: Places, rows: Rows, texts: Texts, with_args: bool, left_out: dict[str, int]
) -> Iterator[bytes]:
    arguments = arguments_of(place.host.trace, rows, texts, with_args)
    left_out["arguments"] = left_out.get("arguments", 0) + arguments.n_left_out
    columns = rows.columns
    names = ("phase", "pid", "tid", "time", "duration", "id", "name", "cat")
    writer = EventWriter(
        (*(columns[name] for name in names), arguments.common),
        arguments.stats,
        texts.rendered(),
        arguments.data,
        arguments.spans,
    )
    for first in range(0, len(columns["phase"]), _CHUNK_ROWS):
        yield writer.lines(first, first + _CHUNK_ROWS)


def gzipped_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts as a single gzip member."""
    packer = isal_zlib.compressobj(_FAST, isal_zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()
