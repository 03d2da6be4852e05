"""A window of the timeline → the boxes, counters, steps and flows for a screen of a given width."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.timeline.boxes import box_columns
from tb_tpuprof.analysis.timeline.counters import counter_of, counter_ranges, counter_samples, unit_of
from tb_tpuprof.analysis.timeline.layers import Layer
from tb_tpuprof.analysis.timeline.steps import step_marks
from tb_tpuprof.analysis.timeline.timeline import timeline
from tb_tpuprof.analysis.timeline.tracks import Track, tracks
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import Texts
from tb_tpuprof.tools.trace_hosts import HostView, View
from tb_tpuprof.tools.trace_viewer.tables import ACTIVE, BOXES, COLORS, COUNTERS, HOSTS, STEPS, TRACKS
from tb_tpuprof.trace.trace import Trace

Chosen = list[tuple[HostView, list[Track]]]
MIN_STEP_PX = 3
MAX_DEPTH_APART = 7
MOST_DEPTH = 65_535
BoxColumns = tuple[npt.NDArray[np.integer], ...]  # the columns of the table `boxes`
_NO_BOXES: BoxColumns = (np.empty(0, np.int64),) * 9


@dataclass(frozen=True)
class Window:
    """A range of time on a screen, and for files the depths; `pixel_ps` is the whole number of picoseconds
    per pixel.
    """

    start_ps: int
    end_ps: int
    width_px: int
    depth_from: int
    depth_to: int

    @property
    def pixel_ps(self) -> int:
        """Picoseconds per pixel, rounded up."""
        return max(1, -(-(self.end_ps - self.start_ps) // self.width_px))


def window_of(view: View, params: Params) -> Window:
    """The requested range and depths. Raises BadParameter if there is nothing in them."""
    start_ps, end_ps = int(params.get("start_ps", 0)), int(params.get("end_ps", view.duration_ps))
    if end_ps <= start_ps and view.duration_ps > 0:
        raise BadParameter("end_ps", end_ps, f"more than start_ps, which is {start_ps}")
    low, high = int(params.get("depth_from", 0)), int(params.get("depth_to", MOST_DEPTH))
    if high < low:
        raise BadParameter("depth_to", high, f"at least depth_from, which is {low}")
    return Window(start_ps, end_ps, int(params.get("width_px", 1)), low, high)


class TextCodes:
    """Texts of several hosts numbered together, with their color keys."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._colors: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]] = []

    def of(
        self, view: HostView, names: npt.NDArray[np.int32], seen: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.int32]:
        """Codes of a host's names; `seen` marks the names that occur."""
        distinct = np.flatnonzero(seen)
        texts, colors = view.drawn.names.looks(distinct)
        codes = self.codes
        new = np.array([codes.setdefault(text, len(codes)) for text in texts], np.int32)
        self._colors.append((new, colors))
        code_of = np.empty(len(seen), np.int32)
        code_of[distinct] = new
        return code_of.take(names)

    @property
    def strings(self) -> list[str]:
        """Texts by code."""
        return list(self.codes)

    @property
    def color_keys(self) -> npt.NDArray[np.uint8]:
        """Color keys by code."""
        keys = np.zeros(len(self.codes), np.uint8)
        for codes, colors in self._colors:
            keys[codes] = colors
        return keys


def tracks_table(view: View) -> Table:
    """All tracks of the hosts."""
    pairs = [(host, track) for host in view.hosts for track in host.tracks]
    sizes = [size for host in view.hosts for size in _sizes(host.trace)]
    return TRACKS.fill(
        {
            "track": np.array([host.track_ids(track.line) for host, track in pairs], np.int64),
            "host": [host.host for host, _ in pairs],
            "section": [track.section for _, track in pairs],
            "name": [track.name for _, track in pairs],
            "kind": [track.kind for _, track in pairs],
            "n_events": np.array([size.n_events for size in sizes], np.int64),
            "n_depths": np.array([size.n_depths for size in sizes], np.int64),
            "is_derived": np.array([track.is_derived for _, track in pairs], np.bool_),
            "order": np.arange(len(pairs)),
            "min_value": np.array([size.lowest for size in sizes], np.float64),
            "max_value": np.array([size.highest for size in sizes], np.float64),
            "unit": [size.unit for size in sizes],
        }
    )


class _Size(NamedTuple):
    """A track's events or samples and rows; a counter's lowest and highest value and their unit."""

    n_events: int
    n_depths: int
    lowest: float = np.nan
    highest: float = np.nan
    unit: str = ""


@once
def _sizes(trace: Trace) -> tuple[_Size, ...]:
    """Sizes of the tracks, in drawing order."""
    return tuple(_size(trace, track) for track in tracks(trace))


def _size(trace: Trace, track: Track) -> _Size:
    counter = counter_of(trace, track.line)
    if counter >= 0:
        ranges = counter_ranges(trace)
        return _Size(
            int(trace.counters["n_samples"][counter]),
            1,
            float(ranges.lowest[counter]),
            float(ranges.highest[counter]),
            unit_of(trace, counter),
        )
    drawn = timeline(trace)
    layer = drawn.derived if track.line >= drawn.derived.first_line else drawn.file
    line = track.line - layer.first_line
    return _Size(int(layer.line_offsets[line + 1] - layer.line_offsets[line]), int(layer.n_depths[line]))


def layer_of_line(host: HostView, line: int) -> Layer | None:
    """The layer that a line is in, None for a counter."""
    if host.counter_of(line) >= 0:
        return None
    return host.drawn.derived if line >= host.drawn.derived.first_line else host.drawn.file


def layers_of(host: HostView, chosen: list[Track]) -> list[tuple[Layer, npt.NDArray[np.int64]]]:
    """The chosen lines of events by layer, numbered within it."""
    parts = []
    for layer in host.drawn.layers:
        lines = [
            track.line - layer.first_line for track in chosen if layer_of_line(host, track.line) is layer
        ]
        if lines:
            parts.append((layer, np.array(lines, np.int64)))
    return parts


def counters_table(chosen: Chosen, window: Window) -> Table:
    """Samples of the chosen counters, thinned to what is visible."""
    parts = []
    for host, host_tracks in chosen:
        for track in host_tracks:
            counter = host.counter_of(track.line)
            if counter >= 0:
                start_ps, end_ps = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps
                times, values = counter_samples(host.trace, counter, start_ps, end_ps, window.pixel_ps)
                parts.append(
                    (np.full(len(times), host.track_ids(track.line)), times + host.offset_ps, values)
                )
    track_ids, times = (np.concatenate([np.empty(0, np.int64), *(part[i] for part in parts)]) for i in (0, 1))
    values = np.concatenate([np.empty(0), *(part[2] for part in parts)])
    return COUNTERS.fill({"track": track_ids, "time_ps": times, "value": values})


def boxes_tables(chosen: Chosen, window: Window) -> dict[str, Table]:
    """`boxes` by host, layer, track, depth and start, and `colors` of their names."""
    codes = TextCodes()
    parts = [
        _boxes(host, layer, lines, window, codes)
        for host, tracks in chosen
        for layer, lines in layers_of(host, tracks)
    ]
    filled = [part for part in parts if len(part[0])] or [_NO_BOXES]
    columns = (
        filled[0] if len(filled) == 1 else [np.concatenate(column) for column in zip(*filled, strict=True)]
    )
    track, depth, start, duration, longest, name, family, event, n_merged = columns
    boxes = {
        "track": track,
        "depth": depth,
        "start_ps": start,
        "duration_ps": duration,
        "longest_ps": longest,
        "name": Texts(name, codes.strings),
        "family": family,
        "event": event,
        "n_merged": n_merged,
    }
    table = replace(BOXES.fill(boxes), parts=_parts(depth, n_merged))
    return {"boxes": table, "colors": COLORS.fill({"color_key": codes.color_keys})}


def _parts(depth: npt.NDArray[np.integer], n_merged: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """A number for boxes that are alike: single or merged ones of the same depth. Merged ones have times in
    whole pixels, and names and gaps differ by depth.
    """
    numbers: npt.NDArray[np.uint8] = np.minimum(depth, MAX_DEPTH_APART).astype(np.uint8)
    return 2 * numbers + (n_merged > 1)


def _boxes(
    host: HostView, layer: Layer, lines: npt.NDArray[np.int64], window: Window, codes: TextCodes
) -> BoxColumns:
    """Columns of boxes, with times, tracks, names and events as numbered in the view."""
    host_window = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps, window.pixel_ps
    shifts = int(host.track_ids(layer.first_line)), host.offset_ps, int(host.event_ids(layer.first_event))
    columns = box_columns(host.trace, layer, lines, host_window, shifts)
    track, start, duration, longest, event = columns.longs
    depth, name, n_merged = columns.ints
    return (
        track,
        depth,
        start,
        duration,
        longest,
        codes.of(host, name, columns.seen),
        columns.family,
        event,
        n_merged,
    )


def steps_table(view: View, window: Window) -> Table:
    """Steps in the window, of hosts that have at most one per MIN_STEP_PX pixels."""
    parts, names = [], []
    for row, host in enumerate(view.hosts):
        marks = step_marks(host.trace)
        start = marks.start_ps + host.offset_ps
        visible = np.flatnonzero(
            (start < window.end_ps) & (start + np.maximum(marks.duration_ps, 1) > window.start_ps)
        )
        if len(visible) * MIN_STEP_PX > window.width_px:
            continue
        host_of = np.full(len(visible), row)
        parts.append((marks.number[visible], host_of, start[visible], marks.duration_ps[visible]))
        names += [marks.name[step] for step in visible.tolist()]
    number, host_of, start, duration = (
        np.concatenate([np.empty(0, np.int64), *(part[i] for part in parts)]) for i in range(4)
    )
    return STEPS.fill(
        {
            "step": number,
            "host": Texts(host_of, [host.host for host in view.hosts]),
            "start_ps": start,
            "duration_ps": duration,
            "name": names,
        }
    )


def active_answer(view: View, params: Params) -> tuple[dict[str, Table], dict[str, Scalar]]:
    """The tracks that have an event, or a counter's sample, in the window."""
    window = window_of(view, params)
    active = [
        host.track_ids(track.line)
        for host, tracks in view.chosen_tracks(str(params.get("tracks", "")))
        for track, is_active in zip(tracks, _are_active(host, tracks, window), strict=True)
        if is_active
    ]
    return {"active": ACTIVE.fill({"track": np.array(active, np.int64)})}, {}


def _are_active(host: HostView, tracks: list[Track], window: Window) -> list[bool]:
    start_ps, end_ps = window.start_ps - host.offset_ps, window.end_ps - host.offset_ps
    events = [_active_lines(layer, start_ps, end_ps) for layer in host.drawn.layers]
    is_active = []
    for track in tracks:
        counter = host.counter_of(track.line)
        if counter >= 0:
            times, _ = counter_samples(host.trace, counter, start_ps, end_ps, 1)
            is_active.append(bool(((times >= start_ps) & (times < end_ps)).any()))
            continue
        is_derived = track.line >= host.drawn.derived.first_line
        is_active.append(bool(events[is_derived][track.line - host.drawn.layers[is_derived].first_line]))
    return is_active


def _active_lines(layer: Layer, start_ps: int, end_ps: int) -> npt.NDArray[np.bool_]:
    """Which lines of a layer have an event in the window."""
    rows = np.arange(len(layer.row_line), dtype=np.int32)
    places = layer.rows.first_ending_after(rows, start_ps)
    is_inside = np.flatnonzero(places < layer.row_offsets[1:])
    seen = is_inside[layer.start_ps[layer.order[places[is_inside]]] < end_ps]
    active = np.zeros(layer.n_lines, np.bool_)
    active[layer.row_line[seen]] = True
    return active


def hosts_table(view: View) -> Table:
    """The hosts, and how their times are aligned."""
    return HOSTS.fill(
        {
            "host": [host.host for host in view.hosts],
            "host_index": np.array([host.index for host in view.hosts], np.int64),
            "offset_ps": np.array([host.offset_ps for host in view.hosts], np.int64),
            "start_ns": [str(host.trace.info.start_ns) for host in view.hosts],
            "is_aligned": np.array([host.is_aligned for host in view.hosts], np.bool_),
        }
    )
