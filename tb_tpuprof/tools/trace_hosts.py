"""The hosts of a timeline in one view: their traces on one time axis, tracks and events with global ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.steps.clocks import long_time
from tb_tpuprof.analysis.timeline.counters import counter_of
from tb_tpuprof.analysis.timeline.focus import focus
from tb_tpuprof.analysis.timeline.steps import step_marks
from tb_tpuprof.analysis.timeline.timeline import Timeline, timeline
from tb_tpuprof.analysis.timeline.tracks import Track, tracks
from tb_tpuprof.errors import BadParameter, EventNotFound
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.tools.payload import Diagnostic
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_time

MAX_HOSTS = 16
LINES_PER_HOST, EVENTS_PER_HOST = 1 << 24, 1 << 40
MAX_APART_NS = 9_000_000_000_000  # 2^53 ps: the largest integer that a browser's number holds


@dataclass(frozen=True)
class HostView:
    """One host of a view. `index` is its index among all hosts of the run, `offset_ps` is added to its own
    times.
    """

    host: str
    index: int
    offset_ps: int
    is_aligned: bool
    trace: Trace
    drawn: Timeline
    tracks: tuple[Track, ...]

    @property
    def duration_ps(self) -> int:
        """The duration of the host's trace, from its rows, without reading every event."""
        return max(self.drawn.file.end_ps, int(self.trace.samples["time_ps"].max(initial=-1)) + 1)

    def track_ids(self, lines: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Global ids of lines."""
        return np.asarray(lines, np.int64) + self.index * LINES_PER_HOST

    def event_ids(self, events: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Global ids of events (as numbered in the timeline)."""
        return np.asarray(events, np.int64) + self.index * EVENTS_PER_HOST

    def counter_of(self, line: int) -> int:
        """The counter (row of `counters`) that a line shows, -1 for a line of events."""
        return counter_of(self.trace, line)

    def track_of(self, line: int) -> Track:
        """The track of a line that has events."""
        return next(track for track in self.tracks if track.line == line)


@dataclass(frozen=True)
class View:
    """The hosts shown, in the run's order; `skipped` is the number of other requested hosts."""

    hosts: tuple[HostView, ...]
    skipped: int = 0
    clocks: tuple[Diagnostic, ...] = ()

    @property
    def duration_ps(self) -> int:
        """From the first host's start to the last one's end."""
        return max((view.offset_ps + view.duration_ps for view in self.hosts), default=0)

    @property
    def focus_ps(self) -> tuple[int, int] | None:
        """(start, end) of the part that holds the events; None if that is the whole view."""
        parts = [(view.offset_ps, view.duration_ps, focus(view.trace)) for view in self.hosts]
        if all(part is None for _, _, part in parts):
            return None
        start = min(offset + (part.start_ps if part else 0) for offset, _, part in parts)
        end = max(offset + (part.end_ps if part else duration) for offset, duration, part in parts)
        return (start, end) if end - start < self.duration_ps else None

    def host_of_event(self, event_id: int) -> tuple[HostView, int]:
        """The host of an event and its number on that host. Raises EventNotFound."""
        index, event = divmod(event_id, EVENTS_PER_HOST)
        for view in self.hosts:
            if view.index == index and event < view.drawn.n_events:
                return view, event
        raise EventNotFound(
            f"There is no event {event_id} on the requested hosts.",
            "Use event ids from an answer for the same hosts.",
        )

    def chosen_tracks(self, text: str) -> list[tuple[HostView, list[Track]]]:
        """Tracks of a parameter such as `3,16777219` by host, in drawing order; all if it is empty.

        Raises BadParameter, EventNotFound.
        """
        if not text:
            return [(view, list(view.tracks)) for view in self.hosts]
        try:
            track_ids = {int(part) for part in text.split(",") if part}
        except ValueError:
            raise BadParameter("tracks", text, "track ids separated by commas") from None
        if any(not 0 <= number < 2**53 for number in track_ids):
            raise BadParameter("tracks", text, "track ids separated by commas")
        by_host = [
            (view, [track for track in view.tracks if view.index * LINES_PER_HOST + track.line in track_ids])
            for view in self.hosts
        ]
        unknown = track_ids - {
            view.index * LINES_PER_HOST + track.line for view, chosen in by_host for track in chosen
        }
        if unknown:
            raise EventNotFound(
                f"There is no track {min(unknown)} on the requested hosts.",
                "Use track ids from the table `tracks`.",
            )
        return by_host

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Notices about hosts left out, clocks that do not agree, and parts of a file that are not drawn."""
        notices = [
            Diagnostic("info", f"{view.host}: {text}")
            for view in self.hosts
            for text in view.trace.info.notes[:8]
        ]
        notices += [Diagnostic("info", text) for view in self.hosts for text in _strays(view)]
        if self.skipped:
            notices.append(
                Diagnostic(
                    "info",
                    f"Only the first {MAX_HOSTS} of {MAX_HOSTS + self.skipped:,} hosts are shown.",
                    f"Choose up to {MAX_HOSTS} hosts to see others.",
                )
            )
        notices += [
            Diagnostic(
                "warning",
                f"{sentence}, so its times start at the view's start.",
                "Compare times only within a host. If all hosts were captured together, synchronize their "
                "clocks and capture again.",
            )
            for sentence in _apart(self.hosts)
        ]
        return (*notices, *self.clocks)


def _apart(views: Sequence[HostView]) -> list[str]:
    """What the page says of up to 4 hosts whose clocks are too far from the others' to share an axis."""
    others_ns = min((view.trace.info.start_ns for view in views if view.is_aligned), default=0)
    late_ns = {view.host: view.trace.info.start_ns - others_ns for view in views if not view.is_aligned}
    return [
        f"{host} was captured {long_time(1000 * abs(late))} {'after' if late > 0 else 'before'} the others"
        for host, late in list(late_ns.items())[:4]
    ]


def _strays(view: HostView) -> list[str]:
    """What the page says of events far from all others."""
    part = focus(view.trace)
    if part is None:
        return []
    apart_ps, n, side = (
        (part.start_ps, part.n_before, "before")
        if part.n_before
        else (view.duration_ps - part.end_ps, part.n_after, "after")
    )
    events = "1 event is" if n == 1 else f"{n:,} events are"
    return [
        f"{view.host}: {events} {format_time(apart_ps)} {side} all others. The page opens on the others; All "
        "shows the whole trace."
    ]


def open_view(session: Session, hosts: Sequence[str]) -> View:
    """Open the hosts, in parallel if there are several."""
    shown = list(hosts[:MAX_HOSTS])
    if len(shown) > 1:
        session.map(_prepared, shown)
    traces = [session.trace(host) for host in shown]
    clocks = clocks_of(session, shown)
    offsets = _offsets(
        [trace.info.start_ns + add for trace, add in zip(traces, clocks.correction_ns, strict=True)]
    )
    index = {host: i for i, host in enumerate(session.hosts)}
    views = [
        HostView(host, index[host], offset_ps, is_aligned, trace, timeline(trace), tracks(trace))
        for host, trace, (offset_ps, is_aligned) in zip(shown, traces, offsets, strict=True)
    ]
    return View(tuple(views), len(hosts) - len(shown), clocks.diagnostics)


def _prepared(trace: Trace) -> int:
    """Build what a view needs; it stays with the trace."""
    step_marks(trace)
    focus(trace)
    return len(tracks(trace)) + timeline(trace).n_events


def _offsets(start_ns: Iterable[int]) -> list[tuple[int, bool]]:
    """(offset in ps, whether the clock is plausible) of each host: starts within 1.25 hours of the median
    are aligned.
    """
    starts = list(start_ns)
    if len(starts) < 2:
        return [(0, True) for _ in starts]
    middle = sorted(starts)[len(starts) // 2]
    near = [abs(start - middle) < MAX_APART_NS // 2 for start in starts]
    zero = min(start for start, is_near in zip(starts, near, strict=True) if is_near)
    return [
        ((start - zero) * 1000 if is_near else 0, is_near)
        for start, is_near in zip(starts, near, strict=True)
    ]
