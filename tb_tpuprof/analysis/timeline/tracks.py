"""Lines of a trace → tracks for users: their section, name and kind, in drawing order."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import HOST_THREADS, planes
from tb_tpuprof.analysis.timeline.counters import counter_name
from tb_tpuprof.analysis.timeline.lines import derived_lines
from tb_tpuprof.trace.schema import ASYNC
from tb_tpuprof.trace.trace import Trace

_DEVICE = re.compile(r"^/device:([A-Za-z]+):(?:[A-Z]+:)?(\d+)(.*)$")
_POOL = re.compile(r"[/_-]-?\d+$")
_DIGITS = re.compile(r"(\d+)")
_BEFORE_POOLS = 3
_CHIP = "#Chip"  # planes of a TPU chip outside its cores: memory, links to other chips
# Kinds of lines by the beginning of their name, in the order of a device's section.
_DEVICE_KINDS = (
    ("Steps", "steps"),
    ("Sparse Core Steps", "steps"),
    ("Launch Stats", "launches"),
    ("XLA Modules", "modules"),
    ("Sparse Core Modules", "modules"),
    ("Framework Name Scope", "scope"),
    ("TensorFlow Name Scope", "scope"),
    ("Framework Ops", "ops"),
    ("TensorFlow Ops", "ops"),
    ("XLA Ops", "hlo_ops"),
    ("Sparse Core Ops", "hlo_ops"),
    ("Async XLA Ops", "async"),
    ("Host Offload Ops", "async"),
    ("DCN Transfers", "async"),
    ("Exposed communication", "exposed"),
    ("XLA Overhead", "overhead"),
    ("Source code", "source"),
    ("Stream #", "stream"),
)
KINDS = (
    "steps",
    "launches",
    "modules",
    "scope",
    "ops",
    "hlo_ops",
    "async",
    "pool",
    "exposed",
    "overhead",
    "source",
    "stream",
    "other",
    "counter",
)


@dataclass(frozen=True)
class Track:
    """One line in the viewer. `line` is its number, `kind` one of KINDS or of a host's kinds: python, thread,
    tf_data.
    """

    line: int
    plane: int
    section: str
    name: str
    kind: str
    is_derived: bool


@once
def tracks(trace: Trace) -> tuple[Track, ...]:
    """Lines that have events, and counters, in drawing order.

    Devices by number (steps, programs, scopes, operations, source, streams, counters), then host threads:
    Python's, named threads, the tasks of pools, numbered pools; then everything else. Derived lines are among
    those of their plane.
    """
    keyed: list[tuple[tuple[object, ...], Track]] = []
    is_derived, is_async = planes(trace).is_derived_line, trace.kind_of_line == ASYNC
    for line in np.flatnonzero(trace.lines["n_events"] > 0).tolist():
        plane = int(trace.lines["plane"][line])
        name = trace.line_names[line] or f"line {trace.lines['id'][line]}"
        track = Track(line, plane, "", name, "async" if is_async[line] else "", bool(is_derived[line]))
        keyed.append(_placed(trace, track, int(trace.lines["display_id"][line])))
    for number in np.flatnonzero(trace.counters["n_samples"] > 0).tolist():
        plane = int(trace.counters["plane"][number])
        track = Track(len(trace.lines) + number, plane, "", counter_name(trace, number), "counter", False)
        keyed.append(_placed(trace, track, number))
    n_before = len(trace.lines) + len(trace.counters)
    for number, derived_line in enumerate(derived_lines(trace).lines):
        track = Track(n_before + number, derived_line.plane, "", derived_line.name, derived_line.kind, True)
        keyed.append(_placed(trace, track, number))
    return tuple(track for _, track in sorted(keyed, key=lambda pair: pair[0]))


def section_of(plane: str) -> tuple[str, int, int]:
    """(the plane's name for users, rank among sections, device number)."""
    match = _DEVICE.match(plane)
    if match:
        return plane.removeprefix("/device:"), 0, int(match[2][:9])
    if plane.startswith("/device:"):
        return plane.removeprefix("/device:"), 0, 10**9
    if plane.startswith(_CHIP):
        digits = _DIGITS.search(plane)
        return plane.removeprefix("#"), 0, int(digits[1][:9]) if digits else 10**9
    if plane.startswith(HOST_THREADS):
        return "Host threads" + plane.removeprefix(HOST_THREADS), 1, 0
    return plane or "(unnamed plane)", 2, 0


def _placed(trace: Trace, track: Track, display_id: int) -> tuple[tuple[object, ...], Track]:
    """The track with its section and kind, and its sort key."""
    plane = trace.plane_names[track.plane]
    section, rank, number = section_of(plane)
    if rank == 0:
        kind = track.kind or device_kind(track.name)
        kind_rank = KINDS.index(kind)
    elif track.is_derived and track.kind:
        kind, kind_rank = track.kind, KINDS.index(track.kind) - len(KINDS)
        if kind == "pool":  # just above the pools' own threads
            kind_rank = _BEFORE_POOLS
    else:
        kind = track.kind or (host_kind(track.name) if rank == 1 else "other")
        kind_rank = _host_rank(track.name, kind) if rank == 1 else int(kind == "counter")
    key = (
        rank,
        number,
        plane.startswith(_CHIP),
        section,
        track.plane,
        kind_rank,
        abs(display_id),
        natural(track.name),
        track.line,
    )
    return key, Track(track.line, track.plane, section, track.name, kind, track.is_derived)


def device_kind(name: str) -> str:
    """Kind of a device's line, by its name."""
    return next((kind for start, kind in _DEVICE_KINDS if name.startswith(start)), "other")


def host_kind(name: str) -> str:
    """Kind of a host's thread, by its name."""
    if name.startswith("python"):
        return "python"
    return "tf_data" if name.startswith("tf_data") else "thread"


def _host_rank(name: str, kind: str) -> int:
    """Sort order: Python threads, the main thread, named threads, numbered pool threads after the tasks of
    pools, async events, counters.
    """
    if kind in ("async", "counter"):
        return 5 + int(kind == "counter")
    if name.startswith("python"):
        return 0
    if name == "main" or name.startswith("main/"):
        return 1
    return 4 if _POOL.search(name) else 2


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts numbers in names by their value: `worker 2` before `worker 10`."""
    parts = _DIGITS.split(name)
    return tuple(
        (parts[i].lower(), int(parts[i + 1][:18]) if i + 1 < len(parts) else -1)
        for i in range(0, len(parts), 2)
    )
