"""Threads and device lines as the groups of a flame graph: numbered threads of a pool are one group, and so
are alike lines of several hosts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_tpuprof.analysis.timeline.tracks import Track, natural
from tb_tpuprof.tools.trace_hosts import HostView
from tb_tpuprof.trace.schema import STACK

MAX_GROUPS = 400
DEVICE_KINDS = ("hlo_ops", "stream")
_NOT_STACKS = frozenset(
    (
        *("steps", "modules", "scope", "source", "launches"),
        *("overhead", "exposed", "async", "counter", "ops"),
    )
)
_POOL = re.compile(r"[/_-]-?\d+$")


@dataclass
class Group:
    """Lines that are shown as one. `lines`: by position of the host among those shown."""

    section: str
    name: str
    kind: str
    lines: dict[int, list[int]] = field(default_factory=dict)
    track_ids: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def is_device(self) -> bool:
        """Whether it is a line of a device."""
        return self.kind in DEVICE_KINDS

    @property
    def n_lines(self) -> int:
        """Number of lines on all hosts."""
        return len(self.track_ids)

    @property
    def title(self) -> str:
        """The thread's own name if it is the only one, else that of the pool."""
        return self.names[0] if len(set(self.names)) == 1 else self.name


def groups_of(hosts: Sequence[HostView], by_line: bool = False) -> tuple[list[Group], int]:
    """(groups of the hosts' lines in drawing order, the number of lines left out: those with the fewest
    events beyond the limit). `by_line`: each line by itself, as calls in time order need it.
    """
    tracks = [
        (place, host, track)
        for place, host in enumerate(hosts)
        for track in host.tracks
        if track.line < len(host.trace.lines)
        and not track.is_derived
        and track.kind not in _NOT_STACKS
        and host.trace.kind_of_line[track.line] == STACK
    ]
    busiest = sorted(tracks, key=lambda one: -int(one[1].trace.lines["n_events"][one[2].line]))[:MAX_GROUPS]
    kept = {(place, track.line) for place, _, track in busiest}
    groups: dict[tuple[object, ...], Group] = {}
    for place, host, track in tracks:
        if (place, track.line) not in kept:
            continue
        section, name = track.section, _stem(track) if track.kind == "thread" else track.name
        # Python threads all have the same name: the n-th of each host are one group.
        number = _place_among(host, track) if track.kind == "python" else 0
        key: tuple[object, ...] = (place, track.line) if by_line else (section, name, track.kind, number)
        group = groups.setdefault(key, Group(section, name, track.kind))
        group.lines.setdefault(place, []).append(track.line)
        group.track_ids.append(int(host.track_ids(track.line)))
        group.names.append(track.name if not by_line or len(hosts) == 1 else f"{track.name} ({host.host})")
    return list(groups.values()), len(tracks) - len(kept)


def _stem(track: Track) -> str:
    """The name without the number of a pool's thread."""
    return _POOL.sub("", track.name) or track.name


def _place_among(host: HostView, track: Track) -> int:
    alike = [one for one in host.tracks if one.kind == track.kind and one.section == track.section]
    return sorted(alike, key=lambda one: (natural(one.name), one.line)).index(track)
